# SPDX-License-Identifier: Apache-2.0
"""Partial products kept by clusters and sent to one that adds them, or to a core (docs/spec/compiler.md 5.4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kohakutpu.chain import ROUND, ChainBuilder
from kohakutpu.ints import up
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.drains import DrainBand
from kohakutpu.schedule.ir import Contraction, Delivery, Elementwise, Operand, Product
from kohakutpu.schedule.lanes import cannot_fuse
from kohakutpu.schedule.layout import Tile
from kohakutpu.schedule.planner import Planner
from kohakutpu.schedule.products import made_product, product_band, tile_of
from kohakutpu.schedule.split_check import check_sums

LAYER = "L2"

Key = tuple[int, int, int]
"""Row tile, column tile and partial."""


def partials_of(c: Contraction) -> tuple[Operand, ...]:
    """The partial products in order of their K ranges."""
    return tuple(Operand(f"{c.c.name}:part{ko}", "temp", c.c.shape) for ko in range(c.split))


def _sum(builder: ChainBuilder, numbers: Sequence[int]) -> int:
    """Operands ``numbers`` added in their order."""
    total = builder.operand(numbers[0])
    for number in numbers[1:]:
        total = builder.op("add", total, builder.operand(number))
    return total


def summing(c: Contraction) -> Elementwise:
    """The pass that adds the partials of ``c``."""
    builder = ChainBuilder()
    return Elementwise(builder.chain([_sum(builder, range(c.split))]), partials_of(c), (c.c,))


def with_sums(e: Elementwise, group: Sequence[Contraction]) -> Elementwise:
    """``e`` on the partials of the products it reads; every sum is rounded to FP16 before ``e`` reads it."""
    split = {c.c.name: c for c in group}
    builder = ChainBuilder()
    operands: list[Operand] = []
    values: list[int] = []
    for o in e.operands:
        mine = partials_of(split[o.name]) if o.name in split else (o,)
        numbers = range(len(operands), len(operands) + len(mine))
        operands += mine
        values.append(builder.op(ROUND, _sum(builder, numbers)) if len(mine) > 1 else builder.operand(numbers[0]))
    made: list[int] = []
    for n in e.chain.nodes:
        if n.op == "operand":
            made.append(values[n.index])
        else:
            made.append(builder.add(replace(n, args=tuple(made[a] for a in n.args))))
    chain = builder.chain([made[r] for r in e.chain.results])
    return replace(e, chain=chain, operands=tuple(operands), reads=())


def receivers_of(e: Elementwise, tile: Tile, planner: Planner) -> tuple[int, ...]:
    """The vector core of every tile in loop order (docs/spec/compiler.md 12.3).

    Raises:
        CannotFuse: no orchestrator, or more tiles than cores.
    """
    machine, options = planner.machine, planner.options
    cores = min(len(machine.meshes[0].units.get("VC", ())), options.cores)
    instances = tile.gi * tile.gj
    if machine.meshes[0].orch is None:
        raise cannot_fuse(e, f"machine {machine.name} has no orchestrator to acknowledge bursts to")
    if instances > cores:
        raise cannot_fuse(e, f"{instances} tiles for {cores} vector cores; a core holds one")
    order = _order(tile)
    place = deal(order, range(options.cores))
    return tuple(place[key] for key in order)


def made_partials(planner: Planner, c: Contraction) -> Product:
    """The product of ``c`` with the names of its partials."""
    return made_product(planner, c, tuple(p.name for p in partials_of(c)))


# -------------------------------------------------------------------- bands


def send_sums(
    planner: Planner,
    c: Contraction,
    made: Product,
    receivers: Sequence[int] = (),
    slot: int = 0,
) -> None:
    """Route peer: waves of tiles, each swept by a cluster a partial and added in the cluster of partial 0.

    Args:
        receivers: the core of every tile in loop order; none for memory.
        slot: tiles of a core in front of these.
    """
    tile, split = tile_of(planner, c), c.split
    subtiles = tile.gm * tile.gn
    first = len(planner.bands)
    core = dict(zip(_order(tile), receivers, strict=True)) if receivers else {}
    for keys, place in _waves(planner, c, made, planner.options.clusters // split):
        owners = tuple(k for k in keys if k[2] == 0)
        for ko in range(1, split):
            mine = tuple(k for k in keys if k[2] == ko)
            to = tuple(f"MG{place[mo, no, 0]}" for mo, no, _ in mine)
            nodes = tuple(place[k] for k in mine)
            planner.bands.append(DrainBand(subtiles, mine, nodes, (made.partials[ko],), (), to))
        planner.bands.append(
            DrainBand(
                subtiles,
                owners,
                tuple(place[k] for k in owners),
                made.partials,
                (made.c,),
                tuple(f"VC{core[mo, no]}" for mo, no, _ in owners) if core else (),
                slot,
                up(subtiles, 8) if core else 0,
            )
        )
    check_sums(c.c.shape, planner.bands[first:], planner.options.clusters, split)


def send_partials(
    planner: Planner, group: Sequence[Contraction], made: Sequence[Product], receivers: tuple[int, ...], span: int
) -> bool:
    """Route core: every partial of a tile into a slot of the core of the tile.

    A cluster a partial, if there are as many; they send one after another. Else one cluster makes all of a tile.

    Returns:
        True if the pass behind has to wait for the bursts of all partials, False if the next band does.
    """
    tile, split = tile_of(planner, group[0]), group[0].split
    for c in group:
        planner.notes += [f"{p.name}: FP16, bound unknown, saturates at 65504" for p in partials_of(c)]
    if split * tile.gi * tile.gj > planner.options.clusters:
        planner.bands.append(product_band(planner, group, made, Delivery(receivers, span)))
        return True
    core = dict(zip(_order(tile), receivers, strict=True))
    for number, (c, m) in enumerate(zip(group, made, strict=True)):
        first = len(planner.bands)
        for keys, place in _waves(planner, c, m, tile.gi * tile.gj):
            for ko in range(split):
                mine = tuple(k for k in keys if k[2] == ko)
                nodes = tuple(place[k] for k in mine)
                to = tuple(f"VC{core[mo, no]}" for mo, no, _ in mine)
                slot = number * split + ko
                drain = DrainBand(tile.gm * tile.gn, mine, nodes, (m.partials[ko],), (), to, slot, span)
                planner.bands.append(replace(drain, route="core", role="compute"))
        check_sums(c.c.shape, planner.bands[first:], planner.options.clusters, split, apart=True)
    return False


def _order(tile: Tile) -> list[tuple[int, int]]:
    """(mo, no) of every tile in the order cores are named in."""
    return [(mo, no) for no in range(tile.gj) for mo in range(tile.gi)]


def _waves(
    planner: Planner, c: Contraction, made: Product, size: int
) -> Iterator[tuple[tuple[Key, ...], dict[Key, int]]]:
    """Append the sweeps of ``size`` tiles at a time: their partials, and the cluster that keeps each."""
    tiles = list(product_band(planner, [c], [made]).tiles())
    for at in range(0, len(tiles), size):
        keys = tuple((*tile, ko) for tile in tiles[at : at + size] for ko in range(c.split))
        planner.bands.append(product_band(planner, [c], [made], kept=keys))
        yield keys, deal(keys, range(planner.options.clusters))
