# SPDX-License-Identifier: Apache-2.0
"""Bands of matrix products: blocks, residency (docs/spec/compiler.md 5.1 to 5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.cover import check_cover
from kohakutpu.schedule.ir import Band, Contraction, Delivery, Product
from kohakutpu.schedule.layout import MxEntry, Tile
from kohakutpu.schedule.planner import Planner

LAYER = "L2"


def tile_of(planner: Planner, c: Contraction) -> Tile:
    """The order the result of ``c`` is drained in."""
    tiling = planner.tilings[c.c.name]
    return Tile.of(c.c.shape, tiling.gm, tiling.gn)


def alike(group: Sequence[Contraction]) -> bool:
    """True if products can share an instance: one grid and one K sweep."""
    return len({(c.c.shape, c.extents, c.batch, c.join, c.split, c.route) for c in group}) == 1


def products(planner: Planner, group: Sequence[Contraction], delivery: Delivery | None = None) -> None:
    """One band of products on the same grid, one after another in each instance."""
    made = []
    for c in group:
        made.append(made_product(planner, c))
        if delivery is None:
            planner.store(c.c, tile_of(planner, c))
    band = product_band(planner, group, made, delivery)
    check_cover(group[0].c.shape, band.rects())
    planner.bands.append(band)


def made_product(planner: Planner, c: Contraction, partials: tuple[str, ...] = ()) -> Product:
    """A product with its operands in the entries its tiling reads.

    Raises:
        CompileError: an operand that cannot be brought into them, named with the product.
    """
    tiling = planner.tilings[c.c.name]
    try:
        a = planner.operand(c.a, MxEntry(tiling.gm, tiling.nk, "a"))
        b = planner.operand(c.b, MxEntry(tiling.gn, tiling.nk, "b"))
    except CompileError as err:
        raise CompileError(f"{c.c.name}: {err}") from err
    if {a, b} <= planner.clean and not partials:
        planner.clean.add(c.c.name)
    return Product(a, b, c.c.name, c.a_window, c.b_window, partials)


def product_band(
    planner: Planner,
    group: Sequence[Contraction],
    made: Sequence[Product],
    delivery: Delivery | None = None,
    kept: tuple[tuple[int, int, int], ...] = (),
) -> Band:
    """The band of products on one grid, or of the tiles of them that clusters keep."""
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
        kept=kept,
    )
    return _residency(band, planner.machine)


def _residency(band: Band, machine: MachineSpec) -> Band:
    """B stays in L1 across the row tiles of a column band when all its chunks fit (5.5)."""
    per_half = machine.bank_entries[1] // (band.tiling.gn * band.tiling.nk)
    a, b = band.products[0].a, band.products[0].b
    # neither one tile a cluster nor partials that alternate read a chunk of B twice
    again = not band.kept and (band.split == 1 or band.delivery is None)
    if again and len(band.products) == 1 and band.block_rows > 1 and band.chunks <= per_half * machine.banks:
        # one chunk leaves the other half free for the next column; several have places of their own
        return replace(band, resident=(b,), double_buffered=(a,) if band.chunks > 1 else (a, b))
    return replace(band, double_buffered=band.reads)
