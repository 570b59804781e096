# SPDX-License-Identifier: Apache-2.0
"""Parts of a matrix that an operation reads or writes: windows of its blocks, periodic and strided reads."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
import numpy.typing as npt

LAYER = "leaf"


@dataclass(frozen=True)
class Window:
    """Of a matrix whose rows are cut into ``blocks`` equal blocks, the same rectangle of each.

    Rows [row, row + rows) and columns [col, col + cols) of every block.
    """

    blocks: int
    row: int
    rows: int
    col: int
    cols: int

    def text(self) -> str:
        """Printed form."""
        blocks = f"{self.blocks}*" if self.blocks > 1 else ""
        return f"[{blocks}{self.row}:{self.row + self.rows}, {self.col}:{self.col + self.cols}]"

    def fits(self, shape: tuple[int, int]) -> bool:
        """True if a matrix of ``shape`` has these blocks and every rectangle lies inside its block."""
        rows, cols = shape
        if self.blocks < 1 or rows % self.blocks or min(self.row, self.col) < 0 or min(self.rows, self.cols) < 1:
            return False
        return self.row + self.rows <= rows // self.blocks and self.col + self.cols <= cols

    def whole(self, shape: tuple[int, int]) -> bool:
        """True if nothing of a matrix of ``shape`` is left out."""
        return (self.row, self.col, self.rows * self.blocks, self.cols) == (0, 0, *shape)

    def of(self, array: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """[blocks][rows][cols] of ``array`` [R][C]."""
        stack = array.reshape(self.blocks, array.shape[0] // self.blocks, array.shape[1])
        return stack[:, self.row : self.row + self.rows, self.col : self.col + self.cols]


@dataclass(frozen=True)
class Spread:
    """A periodic read of a buffer, in elements of its row-major contents (docs/spec/compiler.md 11).

    Starts at ``first``, reads ``take`` elements ``repeat`` times over, moves on by ``advance``, and so on.
    """

    first: int
    take: int
    repeat: int
    advance: int

    def text(self) -> str:
        """Printed form."""
        return f"({self.first}+{self.take}x{self.repeat}+{self.advance})"

    def sources(self, elements: int) -> npt.NDArray[np.int64]:
        """For each of ``elements`` elements of the result, the element that is read."""
        at = np.arange(elements, dtype=np.int64)
        return self.first + at // (self.take * self.repeat) * self.advance + at % self.take

    def last(self, elements: int) -> int:
        """The furthest element a result of ``elements`` elements reads."""
        period = self.take * self.repeat
        whole, rest = divmod(elements, period)
        ends = [(whole - 1) * self.advance + self.take - 1] if whole else []
        if rest:
            ends.append(whole * self.advance + min(rest, self.take) - 1)
        return self.first + max(ends)


@dataclass(frozen=True)
class Strided:
    """A strided read of a buffer, in elements of its row-major contents (docs/spec/compiler.md 4).

    Args:
        first: element the read starts at.
        dims: (count, stride) of every dimension, outermost first.
    """

    first: int
    dims: tuple[tuple[int, int], ...]

    @property
    def elements(self) -> int:
        """Elements of the result."""
        return prod(count for count, _ in self.dims)

    @property
    def last(self) -> int:
        """The furthest element that is read."""
        return self.first + sum((count - 1) * stride for count, stride in self.dims)

    def merged(self) -> Strided:
        """The same read in as few dimensions as give it, at least one."""
        out: list[tuple[int, int]] = []
        for count, stride in self.dims:
            if out and out[-1][1] == count * stride:
                out[-1] = out[-1][0] * count, stride
            elif count > 1:
                out.append((count, stride))
        return Strided(self.first, tuple(out or [(1, 1)]))

    def sources(self) -> npt.NDArray[np.int64]:
        """For each element of the result, the element that is read."""
        at = np.full(1, self.first, dtype=np.int64)
        for count, stride in self.dims:
            at = (at[:, None] + stride * np.arange(count, dtype=np.int64)).reshape(-1)
        return at

    def text(self) -> str:
        """Printed form."""
        return f"({self.first}+{'+'.join(f'{count}*{stride}' for count, stride in self.dims)})"
