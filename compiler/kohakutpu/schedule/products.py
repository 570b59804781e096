# SPDX-License-Identifier: Apache-2.0
"""Bands of matrix products: blocks, residency, split K (docs/spec/compiler.md 5.1 to 5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kohakutpu.chain import ChainBuilder
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.cover import check_cover
from kohakutpu.schedule.ir import Band, Contraction, Delivery, Elementwise, Operand, Product
from kohakutpu.schedule.lanes import tile_band
from kohakutpu.schedule.layout import MxEntry, Tile
from kohakutpu.schedule.planner import Planner

LAYER = "L2"


def tile_of(planner: Planner, c: Contraction) -> Tile:
    """The order the result of ``c`` is drained in."""
    tiling = planner.tilings[c.c.name]
    return Tile.of(c.c.shape, tiling.gm, tiling.gn)


def alike(group: Sequence[Contraction]) -> bool:
    """True if products can share an instance: one grid and one K sweep."""
    return len({(c.c.shape, c.extents, c.batch, c.join, c.split) for c in group}) == 1


def product(planner: Planner, c: Contraction) -> None:
    """A product whose result goes to memory, split and part of another buffer included."""
    if c.c.of:
        whole = replace(c, c=Operand(f"{c.c.name}:tile", "temp", c.c.shape))
        planner.tilings[whole.c.name] = planner.tilings[c.c.name]
        product(planner, whole)
        planner.into_part(whole.c, c.c)
    elif c.split > 1:
        _split(planner, c)
    else:
        products(planner, [c])


def products(planner: Planner, group: Sequence[Contraction], delivery: Delivery | None = None) -> None:
    """One band of products on the same grid, one after another in each instance."""
    made = []
    for c in group:
        made.append(_product(planner, c))
        if delivery is None:
            planner.store(c.c, tile_of(planner, c))
    band = _band(planner, group, made, delivery)
    check_cover(group[0].c.shape, band.rects())
    planner.bands.append(band)


def _product(planner: Planner, c: Contraction, partials: tuple[str, ...] = ()) -> Product:
    tiling = planner.tilings[c.c.name]
    try:
        a = planner.operand(c.a, MxEntry(tiling.gm, tiling.nk, "a"))
        b = planner.operand(c.b, MxEntry(tiling.gn, tiling.nk, "b"))
    except CompileError as err:
        raise CompileError(f"{c.c.name}: {err}") from err
    if {a, b} <= planner.clean and not partials:
        planner.clean.add(c.c.name)
    return Product(a, b, c.c.name, c.a_window, c.b_window, partials)


def _band(planner: Planner, group: Sequence[Contraction], made: Sequence[Product], delivery: Delivery | None) -> Band:
    first = group[0]
    band = Band(
        engine="MG",
        extents=(first.c.shape[0], *first.extents[1:]),
        tiling=planner.tilings[first.c.name],
        ops=("contract",) * len(group),
        reads=tuple(dict.fromkeys(n for p in made for n in (p.a, p.b))),
        writes=tuple(n for p in made for n in (p.partials or (p.c,))),
        emit_fuse=planner.options.emit_fuse and "emit_fuse" in planner.machine.features,
        products=tuple(made),
        delivery=delivery,
        batch=first.batch,
        join=first.join,
        split=first.split,
        route=first.route,
    )
    return _residency(band, planner.machine)


def _residency(band: Band, machine: MachineSpec) -> Band:
    """B stays in L1 across the row tiles of a column band when all its chunks fit (5.5)."""
    per_half = machine.bank_entries[1] // (band.tiling.gn * band.tiling.nk)
    a, b = band.products[0].a, band.products[0].b
    if len(band.products) == 1 and band.block_rows > 1 and band.chunks <= per_half * machine.banks:
        # one chunk leaves the other half free for the next column; several have places of their own
        return replace(band, resident=(b,), double_buffered=(a,) if band.chunks > 1 else (a, b))
    return replace(band, double_buffered=band.reads)


def _split(planner: Planner, c: Contraction) -> None:
    """Partial products in FP16 and the pass that adds them (docs/spec/compiler.md 5.4, route memory)."""
    tile = tile_of(planner, c)
    partials = tuple(Operand(f"{c.c.name}:part{ko}", "temp", c.c.shape) for ko in range(c.split))
    made = _product(planner, c, tuple(p.name for p in partials))
    for p in partials:
        planner.store(p, tile)
    band = _band(planner, [c], [made], None)
    planner.bands.append(band)
    builder = ChainBuilder()
    total = builder.operand(0)
    for i in range(1, c.split):
        total = builder.op("add", total, builder.operand(i))
    e = Elementwise(builder.chain([total]), partials, (c.c,))
    adding = tile_band(e, tile, planner.machine, planner.options.cores, planner.options.lanes)
    padded = planner.machine.word_bytes * adding.words
    for p in partials:
        planner.hold(p, tile, padded)
    planner.store(c.c, tile, padded)
    planner.bands.append(replace(adding, purpose="reduce"))
    reductions = sum(b.reads == band.writes for b in planner.bands if not isinstance(b, Band) and b.role == "reduce")
    check_cover(c.c.shape, band.rects(), c.split, reductions)
