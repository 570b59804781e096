# SPDX-License-Identifier: Apache-2.0
"""Split K: the route of the partial products and the bands that make and add them (docs/spec/compiler.md 5.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from kohakutpu.errors import CannotFuse, CompileError
from kohakutpu.ints import up
from kohakutpu.program import acknowledgements
from kohakutpu.schedule.blocks import ROUTES
from kohakutpu.schedule.cover import check_cover
from kohakutpu.schedule.drained_rows import drain_rows, in_rows
from kohakutpu.schedule.ir import Band, Contraction, Operand, VectorBand
from kohakutpu.schedule.lanes import resident_band, tile_band
from kohakutpu.schedule.partials import made_partials, partials_of, receivers_of, send_partials, send_sums, summing
from kohakutpu.schedule.planner import Planner
from kohakutpu.schedule.products import product_band, products, tile_of

LAYER = "L2"


def product(planner: Planner, c: Contraction) -> None:
    """A product whose result goes to memory, split and part of another buffer included."""
    if in_rows(planner, c):
        drain_rows(planner, c)
    elif c.c.of:
        whole = replace(c, c=Operand(f"{c.c.name}:tile", "temp", c.c.shape))
        planner.tilings[whole.c.name] = planner.tilings[c.c.name]
        product(planner, whole)
        planner.into_part(whole.c, c.c)
    elif c.split > 1:
        c = routed(planner, c)
        {"peer": _by_peer, "core": _by_core, "memory": _by_memory}[c.route](planner, c)
    else:
        products(planner, [c])


# -------------------------------------------------------------------- choice


def routed(planner: Planner, c: Contraction) -> Contraction:
    """``c`` with the route its partials take: its author's, else the first that fits, with a note.

    Raises:
        CompileError: the author's route does not fit, or none does.
    """
    if c.split == 1:
        return c
    what = f"{c.c.name}: split into {c.split}"
    if c.route:
        fault = _fault(planner, c, c.route)
        if fault:
            raise CompileError(
                f"{what} by route {c.route}: {fault}; name another tile or route, or no route for one that fits"
            )
        return c
    reasons: list[str] = []
    for route in ROUTES:
        fault = _fault(planner, c, route)
        if not fault:
            planner.notes.append("; ".join([f"{what} by route {route}", *reasons]))
            return replace(c, route=route)
        reasons.append(f"{route} does not fit, {fault}")
    raise CompileError(f"{what}: no route fits; {'; '.join(reasons)}")


def _fault(planner: Planner, c: Contraction, route: str) -> str:
    """What stands against a route, "" for nothing."""
    found: dict[str, Callable[[Planner, Contraction], str]] = {
        "peer": _peer_fault,
        "core": _core_fault,
        "memory": _memory_fault,
    }
    return found[route](planner, c)


def _peer_fault(planner: Planner, c: Contraction) -> str:
    machine, clusters = planner.machine, planner.options.clusters
    if c.split > clusters:
        return f"{c.split} partials of a tile need as many clusters, {clusters} are used"
    if machine.meshes[0].orch is None:
        return f"machine {machine.name} has no orchestrator to acknowledge bursts to"
    bursts, queue = acknowledgements(_subtiles(planner, c), wide=True), machine.ackq.get("MG", 0)
    if bursts > queue:
        return f"a tile of {_subtiles(planner, c)} sub-tiles is {bursts} bursts, a cluster queues {queue}"
    return ""


def _core_fault(planner: Planner, c: Contraction) -> str:
    try:
        _adding(planner, c)
    except CannotFuse as err:
        return err.reason
    except CompileError as err:
        return str(err)
    return ""


def _memory_fault(planner: Planner, c: Contraction) -> str:
    machine, options = planner.machine, planner.options
    if not machine.meshes[0].units.get("VC"):
        return f"machine {machine.name} has no vector core to add partials"
    try:
        tile_band(summing(c), tile_of(planner, c), machine, options.cores, options.lanes)
    except CompileError as err:
        return str(err)
    return ""


def _subtiles(planner: Planner, c: Contraction) -> int:
    tiling = planner.tilings[c.c.name]
    return tiling.gm * tiling.gn

# -------------------------------------------------------------------- to memory


def _by_peer(planner: Planner, c: Contraction) -> None:
    """Partials in accumulator width, added by the cluster that has the first one."""
    made = made_partials(planner, c)
    planner.store(c.c, tile_of(planner, c))
    send_sums(planner, c, made)


def _by_core(planner: Planner, c: Contraction) -> None:
    """Partials in FP16 in the slots of one core a tile, and a pass that adds them there."""
    tile, (receivers, adding) = tile_of(planner, c), _adding(planner, c)
    made = made_partials(planner, c)
    waits = send_partials(planner, [c], [made], receivers, up(tile.gm * tile.gn, 8))
    planner.store(c.c, tile, planner.machine.word_bytes * adding.words)
    planner.bands.append(replace(adding, purpose="reduce", acks=adding.acks if waits else 0))
    _check_reduced(planner, c)


def _adding(planner: Planner, c: Contraction) -> tuple[tuple[int, ...], VectorBand]:
    """The core of every tile, and the pass that adds partials where they arrive.

    Raises:
        CompileError: what the cores do not hold.
    """
    e, tile = summing(c), tile_of(planner, c)
    receivers = receivers_of(e, tile, planner)
    names = tuple(o.name for o in e.operands)
    return receivers, resident_band(e, tile, names, receivers, planner.machine, planner.options.lanes)


def _by_memory(planner: Planner, c: Contraction) -> None:
    """Partials in FP16 in memory, and a pass that adds them."""
    tile, parts = tile_of(planner, c), partials_of(c)
    made = made_partials(planner, c)
    for p in parts:
        planner.store(p, tile)
    planner.bands.append(product_band(planner, [c], [made]))
    adding = tile_band(summing(c), tile, planner.machine, planner.options.cores, planner.options.lanes)
    padded = planner.machine.word_bytes * adding.words
    for p in parts:
        planner.hold(p, tile, padded)
    planner.store(c.c, tile, padded)
    planner.bands.append(replace(adding, purpose="reduce"))
    _check_reduced(planner, c)


def _check_reduced(planner: Planner, c: Contraction) -> None:
    """Every partial of every tile once, and one pass that reads exactly them (5.2)."""
    names = tuple(p.name for p in partials_of(c))
    rects = [r for b in planner.bands if isinstance(b, Band) and b.writes == names for r in b.rects()]
    reductions = sum(b.reads == names for b in planner.bands if isinstance(b, VectorBand) and b.role == "reduce")
    check_cover(c.c.shape, rects, c.split, reductions)
