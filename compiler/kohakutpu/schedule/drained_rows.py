# SPDX-License-Identifier: Apache-2.0
"""Products drained as rows, straight into a buffer of rows or a part of one (docs/spec/compiler.md 6 Rows, 7.1).

Only with ``drain_rowmajor``. The tiles end where the rows end, so the pitch is that of the buffer and nothing is
converted afterwards.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from kohakutpu.ints import up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.cover import check_cover
from kohakutpu.schedule.ir import Buffer, Contraction, Elementwise, Rearrange
from kohakutpu.schedule.layout import Flat
from kohakutpu.schedule.planner import Planner
from kohakutpu.schedule.products import made_product, product_band
from kohakutpu.schedule.tiles import Tiling
from kohakutpu.views import Window

LAYER = "L2"

Request = Contraction | Elementwise | Rearrange

FEATURE = "drain_rowmajor"
WORD_ELEMENTS = 16
"""FP16 elements of a word."""
QUAD = 4
"""Column groups of a row word; gn is a multiple of it."""


def rowwise(requests: Sequence[Request], machine: MachineSpec, *, fuse: str) -> set[str]:
    """Values whose every reader needs rows.

    These are products, moves, passes over rows, plain passes that meet another operand in rows, and those that feed
    only such readers.

    Args:
        fuse: with "require" a plain pass stays on the arriving tile.
    """
    if FEATURE not in machine.features:
        return set()
    readers: dict[str, list[Request]] = {}
    for r in requests:
        for o in (r.a, r.b) if isinstance(r, Contraction) else r.operands:
            readers.setdefault(o.name, []).append(r)
    found: set[str] = set()
    flat = _made_in_rows(requests)
    for r in reversed(requests):
        for result in (r.c,) if isinstance(r, Contraction) else r.results:
            mine = readers.get(result.name, [])
            if mine and all(_needs_rows(one, found, flat, fuse) for one in mine):
                found.add(result.name)
    return found


def _made_in_rows(requests: Sequence[Request]) -> set[str]:
    """Results of moves, of passes over rows, and of passes that read one of them."""
    flat: set[str] = set()
    for r in requests:
        if not isinstance(r, Contraction) and (r.over_rows or _meets(r, flat)):
            flat |= {result.name for result in r.results}
    return flat


def _meets(e: Elementwise | Rearrange, flat: Collection[str]) -> bool:
    """True if an operand of the shape of the pass is in rows."""
    return isinstance(e, Elementwise) and any(o.name in flat and not e.channel(o) for o in e.operands)


def _needs_rows(reader: Request, found: Collection[str], flat: Collection[str], fuse: str) -> bool:
    if isinstance(reader, Contraction) or reader.over_rows:
        return True
    return fuse != "require" and (_meets(reader, flat) or all(r.name in found for r in reader.results))


def in_rows(planner: Planner, c: Contraction) -> bool:
    """True if ``c`` is drained as rows: its readers need them, and its tiles end on words and with the rows."""
    if FEATURE not in planner.machine.features or c.split > 1:
        return False
    if not c.c.of and (c.c.name not in planner.rowwise or planner.order_of(c.c.name) not in (None, Flat())):
        return False
    tiling = planner.tilings[c.c.name]
    width = 4 * tiling.gn
    if tiling.gn % QUAD:
        return False
    if not c.c.of:
        return c.c.shape[1] % width == 0
    window, parent = c.c.window, planner.parent(c.c).shape
    assert window is not None
    whole_words = window.col % WORD_ELEMENTS == 0 and parent[1] % WORD_ELEMENTS == 0
    return whole_words and window.cols % width == 0 and window.rows % (4 * tiling.gm) == 0


def drain_rows(planner: Planner, c: Contraction) -> None:
    """One band of a product that is drained as rows; whole sub-tiles leave, so the buffer has rows for them."""
    made, tiling = made_product(planner, c), planner.tilings[c.c.name]
    if c.c.of:
        target = planner.parent(c.c)
        made = replace(made, c=target.name, c_window=c.c.window)
        planner.store(target, Flat())
    else:
        rows, cols = c.c.shape
        planner.store(c.c, Flat(), 2 * up(rows, 4 * tiling.gm) * cols)
    band = replace(product_band(planner, [c], [made]), emit_fuse=False, rows=True)
    check_cover(c.c.shape, band.rects())
    planner.bands.append(band)


def row_place(buffer: Buffer, window: Window | None, tiling: Tiling, mo: int, no: int) -> tuple[int, int]:
    """(byte address, pitch in words) of a tile of a buffer of rows, or of its part ``window``."""
    rows, cols = buffer.shape
    row, col = 4 * tiling.gm * mo, 4 * tiling.gn * no
    if window is not None:
        block, inside = divmod(row, window.rows)
        row, col = block * (rows // window.blocks) + window.row + inside, window.col + col
    return buffer.address + 2 * (row * cols + col), cols // WORD_ELEMENTS

