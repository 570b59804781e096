# SPDX-License-Identifier: Apache-2.0
"""Where the words of a matrix lie in a byte order, and walks over rectangles of them (docs/spec/compiler.md 6, 7.2).

In every order here the byte offset of a word is a sum of one term for its row and one for its column, so a matrix is
two short tables, and a rectangle has the same walk as another when both tables repeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Walk
from kohakutpu.program.relayout import GROUP, walk_problem
from kohakutpu.schedule.layout import Entry, Flat, Shape, Tile
from kohakutpu.schedule.layout_conv import ConvEntry, Image
from kohakutpu.walks import WORD_BYTES

LAYER = "L2"

I64 = npt.NDArray[np.int64]
Order = Flat | Entry | Tile | ConvEntry

LANES = 16
"""FP16 elements of a word of a row."""
_ENTRY = 256
_POSITION = 64


@dataclass(frozen=True)
class Matrix:
    """A matrix in a byte order.

    Args:
        pitch: distance of two rows of a Flat buffer in elements, 0 for the number of columns.
        image: height, width and channels of a ConvEntry buffer, whose pixels are the rows.
    """

    order: Order
    shape: Shape
    pitch: int = 0
    image: Image = (0, 0, 0)

    @property
    def held(self) -> Shape:
        """Rows and columns the buffer holds, padding included; the halo of an image is not part of it."""
        match self.order:
            case Entry():
                return self.order.padded(self.shape)
            case Tile(gi, gj, gm, gn):
                return 4 * gi * gm, 4 * gj * gn
        return self.shape

    @property
    def tiled(self) -> bool:
        """A word is a 4x4 sub-tile, not a piece of a row."""
        return isinstance(self.order, Tile)

    def check(self) -> None:
        """Refuse a buffer whose words are no words of the matrix.

        Raises:
            CompileError: naming the order, the value and the fix.
        """
        key, (rows, cols) = self.order.key, self.shape
        if min(rows, cols) < 1:
            raise CompileError(f"{key}: a matrix of {rows}x{cols} has no element")
        if isinstance(self.order, Tile):
            self.order.nbytes(self.shape)
        if isinstance(self.order, Flat):
            pitch = self.pitch or cols
            if pitch % LANES or pitch < cols:
                raise CompileError(
                    f"{key}: rows of {cols} elements at a pitch of {pitch} do not start on words; allocate the buffer "
                    f"with a pitch that is a multiple of {LANES} and at least {cols}"
                )
        elif self.pitch:
            raise CompileError(f"{key}: a pitch of {self.pitch} elements; only flat rows have one")
        if isinstance(self.order, ConvEntry) and (self.image[0] * self.image[1], self.image[2]) != self.shape:
            raise CompileError(f"{key}: an image of {self.image} is not a matrix of {rows}x{cols}")

    def tables(self, extents: Shape) -> tuple[I64, I64]:
        """int64 byte offsets of rows and columns inside ``extents``, of 4x4 sub-tiles in a tile order."""
        order = self.order
        across = GROUP if isinstance(order, Tile) else LANES
        r = np.arange(extents[0] // (GROUP if isinstance(order, Tile) else 1), dtype=np.int64)
        c = np.arange(extents[1] // across, dtype=np.int64)
        match order:
            case Flat():
                return r * 2 * (self.pitch or self.shape[1]), c * WORD_BYTES
            case Tile(_, gj, gm, gn):
                rows = (r // gm * gj * gm + r % gm) * gn
                return rows * WORD_BYTES, (c // gn * gm * gn + c % gn) * WORD_BYTES
            case Entry(g, b):
                chunks = order.padded(self.shape)[1] // (32 * b)
                t, group, lane = r // (4 * g), r % (4 * g) // 4, r % 4
                block = c // 2
                rows = _ENTRY * (t * chunks * g * b + group * b) + 64 * lane
                return rows, _ENTRY * (block // b * g * b + block % b) + WORD_BYTES * (c % 2)
        rows = _POSITION * order.position(self.image).reshape(-1)[: extents[0]]
        return rows, _POSITION * order.plane(self.image) * (c // 2) + WORD_BYTES * (c % 2)


@dataclass(frozen=True)
class Side:
    """Byte offsets of the words of units: rows int64 (R, a), columns int64 (C, b), a*b words a unit."""

    rows: I64
    cols: I64

    @classmethod
    def of(cls, matrix: Matrix, extents: Shape, granules: bool) -> Side:
        """Words one by one; with ``granules`` the four rows, or the four sub-tiles, of every granule array."""
        rows, cols = matrix.tables(extents)
        if not granules:
            return cls(rows[:, None], cols[:, None])
        if matrix.tiled:
            return cls(rows[:, None], cols.reshape(-1, GROUP))
        return cls(rows.reshape(-1, GROUP), cols[:, None])

    def repeats(self, rows: int, cols: int) -> bool:
        """Rectangles of ``rows`` x ``cols`` units all look the same."""
        return _repeats(self.rows, rows) and _repeats(self.cols, cols)

    def words(self, rows: int, cols: int, by_rows: bool) -> I64:
        """Offsets of the words of the first rectangle, units row by row or column by column."""
        r, c = self.rows[:rows], self.cols[:cols]
        units = (r[:, None, :, None] + c[None, :, None, :]).reshape(rows, cols, -1)
        return (units if by_rows else units.transpose(1, 0, 2)).reshape(-1)

    def starts(self, rows: int, cols: int) -> list[int]:
        """Offset of the first word of every rectangle, row of rectangles by row."""
        grid: I64 = self.rows[::rows, :1] + self.cols[::cols, 0][None, :]
        return [int(v) for v in grid.reshape(-1)]


def _repeats(table: I64, block: int) -> bool:
    blocks = table.reshape(len(table) // block, -1)
    return bool((blocks - blocks[:, :1] == blocks[0] - blocks[0, 0]).all())


def factor(at: I64) -> tuple[tuple[int, int], ...] | None:
    """The fewest (stride, bound), fastest first, that walk over ``at``; None if none do."""
    if len(at) == 1:
        return ()
    step = int(at[1] - at[0])
    steps = np.diff(at) == step
    longest = len(at) if steps.all() else int(np.argmin(steps)) + 1
    best: tuple[tuple[int, int], ...] | None = None
    for n in range(longest, 1, -1):
        if len(at) % n or not _repeats(at[:, None], n):
            continue
        rest = factor(at[::n])
        if rest is not None and (best is None or len(rest) + 1 < len(best)):
            best = ((step, n), *rest)
    return best


def walk(at: I64, machine: MachineSpec) -> Walk | None:
    """The walk of one descriptor over ``at``, None if it takes more dimensions or longer strides."""
    dims = factor(at)
    if dims is None:
        return None
    made = Walk(dims or ((machine.word_bytes, 1),))
    return None if walk_problem(made, machine) else made


def divisors(n: int, most: int) -> Iterator[int]:
    """Divisors of ``n`` up to ``most``."""
    yield from (d for d in range(1, min(n, most) + 1) if n % d == 0)
