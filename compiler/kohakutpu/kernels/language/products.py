# SPDX-License-Identifier: Apache-2.0
"""Which rectangles of its operands an accumulator sums (docs/spec/compiler.md 4 and 11).

Indices of tiles and chunks are evaluated for every step of the sweep: a row index is a start plus the index of the
grid, a chunk index walks along K. Heads whose rows follow one another are joined in one sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from kohakutpu.errors import TraceError
from kohakutpu.ints import cdiv
from kohakutpu.kernels.language.buffers import Buffer, Ref, Tile
from kohakutpu.kernels.language.integers import Int
from kohakutpu.kernels.language.matrices import Matrices
from kohakutpu.kernels.language.recorder import Sweep
from kohakutpu.kernels.language.unroll import Step
from kohakutpu.views import Window

LAYER = "L4"

_KBLOCK = 32
_GROUP = 4


@dataclass(frozen=True)
class Swept:
    """What was swept into an accumulator."""

    step: Step
    acc: Tile
    left: Ref
    right: Ref

    @property
    def run(self) -> int:
        """Execution of the grid it belongs to."""
        return self.step.run


@dataclass(frozen=True)
class Rectangles:
    """A product: result blocks [m][n], and the windows of both operands (None: all of it as one block).

    ``row`` and ``col`` are where the result starts in a block of its target, ``blocks`` the blocks of the target.
    """

    m: int
    n: int
    row: int
    col: int
    blocks: int
    a: Window | None
    b: Window | None
    batch: int
    join: int


@dataclass(frozen=True)
class _Run:
    """Rows of an operand that one stretch of the sweep reads, and its columns."""

    row: int
    col: int
    end: int


def swept(step: Step) -> Swept:
    """The accumulator a sweep adds to.

    Raises:
        TraceError: a nest the graph has no product for.
    """
    s = step.statement
    assert isinstance(s, Sweep)
    grid, loops = step.grid, step.loops
    if grid is None or len(grid.index) != 2 or len(loops) > 1:
        grids = [b for b in step.blocks if b.kind != "loop"]
        raise TraceError(
            f"{s.acc.name} is swept inside {len(grids)} grids and {len(loops)} loops; write one grid over rows and "
            "columns, units(a.tiles(gm), b.tiles(gn)), and one loop over chunks"
        )
    for side in s.sources:
        if any(v.kind != "rows_from" for v in side.buffer.steps) or len(side.index) != 2:
            raise TraceError(f"{side.text()}: the graph has no product of a tapped view; copy it to a temp")
    return Swept(step, s.acc, *s.sources)


def rectangles(product: Swept, target: Ref, matrices: Matrices) -> Rectangles:
    """The rectangles of ``product`` when it goes to ``target``.

    Raises:
        TraceError: indices that do not walk over whole tiles and chunks, operands that disagree, or a batch that does
            not fit; the message names the operand.
    """
    grid, acc, step = product.step.grid, product.acc, product.step
    assert grid is not None
    tile = [_GROUP * step.value(g) for g in (acc.gm, acc.gn)]
    count = [step.value(c) for c in grid.count]
    starts = [_start(target.index[a], grid.index[a], count[a], step, grid.index[1 - a]) for a in (0, 1)]
    if None in starts:
        order = ", ".join(i.text() for i in grid.index)
        raise TraceError(f"{target.text()} <<= {acc.name}: tile ({order}) goes to {target.buffer.name}[{order}]")
    row, col = (tile[a] * (starts[a] or 0) for a in (0, 1))
    row += first_row(target.buffer, step)
    runs = _runs(product, product.left, 0), _runs(product, product.right, 1)
    join = len(runs[0])
    rows_a, k_a = _natural(product.left, step, matrices)
    rows_b, k_b = _natural(product.right, step, matrices)
    rows_c, cols_c = _natural(target, step, matrices)
    height = _head_height(product, runs[0], rows_a)
    m = _extent(product, 0, tile[0], height - runs[0][0].row, rows_c - row, f"{target.buffer.name} {(rows_c, cols_c)}")
    n = _extent(product, 1, tile[1], rows_b - runs[1][0].row, cols_c - col, f"{target.buffer.name} {(rows_c, cols_c)}")
    left, right = _columns(product, runs, k_a, k_b)
    heads = Window(join, runs[0][0].row, m, left.col, left.end - left.col)
    other = Window(1, runs[1][0].row, n, right.col, right.end - right.col)
    blocks = [matrices.blocks(r.buffer.name) for r in (product.left, product.right, target)]
    return _batched(
        product, target, Rectangles(m, n, row, col, blocks[2], heads, other, 1, join), blocks, rows_a, matrices
    )


def first_row(buffer: Buffer, step: Step) -> int:
    """Row at which a row-offset view starts."""
    return sum(step.value(v.arg) for v in buffer.steps if v.kind == "rows_from" and v.arg is not None)


def _start(index: Int, axis: Int, count: int, step: Step, other: Int, **more: int) -> int | None:
    """``index`` at instance 0 of ``axis``, None if it does not count the instances one by one."""
    if other.text() in index.names("index"):
        return None
    at = {v: step.value(index, **{axis.text(): v}, **more) for v in {0, 1, count - 1} if v < count}
    return at[0] if all(value == at[0] + v for v, value in at.items()) else None


def _natural(ref: Ref, step: Step, matrices: Matrices) -> tuple[int, int]:
    """[rows][columns] of a block, as the operand of a product has to be stored."""
    rows, cols = matrices.block(ref.buffer.name)
    want = step.value(ref.buffer.dims[-1])
    if want != cols:
        raise TraceError(
            f"{ref.text()}: {ref.buffer.name} is stored as rows of {cols} elements, a product reads rows of {want}; "
            "write a temp for the second shape"
        )
    return rows, cols


def _runs(product: Swept, side: Ref, axis: int) -> list[_Run]:
    """Stretches of the sweep, in order, with the columns before they are clipped to the operand."""
    step, acc, grid = product.step, product.acc, product.step.grid
    assert grid is not None
    g = _GROUP * step.value((acc.gm, acc.gn)[axis])
    width, first = _KBLOCK * step.value(acc.nk), first_row(side.buffer, step)
    loop = step.loops[0] if step.loops else None
    count, steps = step.value(grid.count[axis]), step.value(loop.count[0]) if loop else 1
    at: list[tuple[int, int]] = []
    start: int | None = None
    tiled = bool(side.index[1].names("index") & {i.text() for i in grid.index})
    moves = loop is not None and loop.index[0].text() in side.index[0].names("index")
    for s in range(steps):
        index = {loop.index[0].text(): s} if loop else {}
        if s == 0 or moves:
            start = _start(side.index[0], grid.index[axis], count, step, grid.index[1 - axis], **index)
        if start is None:
            raise _grid_error(product, axis)
        if tiled:
            raise TraceError(f"{side.text()}: the chunk depends on the tile; an accumulator sums one part of K")
        at.append((first + g * start, width * step.value(side.index[1], **index)))
    runs = []
    for row, chunks in groupby(at, key=lambda rc: rc[0]):
        cols = [c for _, c in chunks]
        if cols != list(range(cols[0], cols[0] + width * len(cols), width)):
            raise TraceError(
                f"{side.text()} does not sweep K in order, chunk by chunk; write for k in "
                f"loop({side.buffer.name}.chunks32(nk)): acc += a[i, k] @ b[j, k]"
            )
        runs.append(_Run(row, cols[0], cols[0] + width * len(cols)))
    if axis and len(runs) > 1:
        raise TraceError(f"{side.text()}: its rows change during the sweep; only the left side joins heads")
    return runs


def _head_height(product: Swept, runs: Sequence[_Run], rows: int) -> int:
    """Rows of a head; all rows of the block if the sweep stays in them."""
    if len(runs) == 1:
        return rows
    text, heads = product.left.text(), len(runs)
    stride = runs[1].row - runs[0].row
    equal = {(r.row - h * stride, r.col, r.end) for h, r in enumerate(runs)}
    if len(equal) > 1 or rows != heads * stride:
        raise TraceError(
            f"{text}: the sweep reads {heads} groups of rows, every {stride} rows from row {runs[0].row}; heads joined "
            f"in one sweep lie under one another and fill the {rows} rows of {product.left.buffer.name}, each whole "
            "tiles of 4 gm rows and whole chunks of 32 nk columns"
        )
    return stride


def _extent(product: Swept, axis: int, tile: int, operand: int, target: int, what: str) -> int:
    """Rows or columns of a block of the result."""
    grid = product.step.grid
    assert grid is not None
    count = product.step.value(grid.count[axis])
    extent = min(tile * count, operand, target)
    if extent < 1 or count != cdiv(extent, tile):
        raise _grid_error(product, axis, f", {what} has {target} left")
    return extent


def _grid_error(product: Swept, axis: int, more: str = "") -> TraceError:
    side, grid, acc = (product.left, product.right)[axis], product.step.grid, product.acc
    assert grid is not None
    want = side.buffer.tiles((acc.gm, acc.gn)[axis]).text()
    return TraceError(
        f"{side.text()} in a grid of {grid.count[axis].text()} instances{more}; the "
        f"{'rows' if axis == 0 else 'columns'} are {side.buffer.name}[{grid.index[axis].text()}, ...] of {want}"
    )


def _columns(product: Swept, runs: tuple[list[_Run], list[_Run]], k_a: int, k_b: int) -> tuple[_Run, _Run]:
    """Columns of both sides, clipped to what the operands have."""
    heads, (left, right) = len(runs[0]), (runs[0][0], runs[1][0])
    sides = (product.left, left, k_a), (product.right, right, k_b)
    for side, run, k in sides:
        if run.col < 0 or run.col >= k:
            raise TraceError(f"{side.text()} starts at column {run.col}; {side.buffer.name} has {k}")
    a, b = (_Run(run.row, run.col, min(run.end, k)) for _, run, k in sides)
    if heads > 1 and a.end != left.end:
        raise TraceError(
            f"{product.left.text()}: a head of {k_a} columns is no whole number of chunks; the sweep goes on in the "
            f"next head before the chunk ends, choose nk so that 32 nk divides {k_a}"
        )
    if heads * (a.end - a.col) != b.end - b.col:
        raise TraceError(
            f"{product.left.text()} @ {product.right.text()} sweeps K = {heads * (a.end - a.col)} on the left and "
            f"{b.end - b.col} on the right; both sides reduce the same columns"
        )
    if (a.col, a.end) != (0, k_a) and (b.col, b.end) != (0, k_b):
        side = product.left
        raise TraceError(
            f"{side.text()} does not sweep all of K; write for k in loop({side.buffer.name}.chunks32(nk)): "
            "acc += a[i, k] @ b[j, k]"
        )
    return a, b


def _batched(
    product: Swept, target: Ref, one: Rectangles, blocks: Sequence[int], rows_a: int, matrices: Matrices
) -> Rectangles:
    """``one`` for every element of the batch."""
    count_a, count_b, count = blocks
    assert one.a is not None
    assert one.b is not None
    if count == 1 and max(count_a, count_b) > 1:
        raise TraceError(
            f"{target.text()} <<= {product.acc.name}: {target.buffer.name} has no batch axes, its operands have "
            f"{max(count_a, count_b)} blocks; declare the result with ... or use a temp"
        )
    a, b, batch = one.a, one.b, count
    if one.join == count_b == 1 and count_a == count and (a.row, a.rows) == (0, rows_a):
        a, batch = Window(1, 0, count * a.rows, a.col, a.cols), 1  # the batch is more rows
    elif count_a == count:
        a = Window(count * a.blocks, a.row, a.rows, a.col, a.cols)
    elif one.join > 1:
        raise TraceError(f"{product.left.text()} is shared by a batch and joins heads; declare it with ...")
    b = Window(count_b, b.row, b.rows, b.col, b.cols)
    left, right = (
        None if w.blocks == 1 and w.whole(matrices.shapes[ref.buffer.name]) else w
        for w, ref in ((a, product.left), (b, product.right))
    )
    return replace(one, blocks=count, a=left, b=right, batch=batch)
