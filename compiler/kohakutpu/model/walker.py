# SPDX-License-Identifier: Apache-2.0
"""Address walkers of the memory mover (docs/spec/memory.md 12.2).

``Walker.length()`` elements, dimension 0 outermost; ``Walker.part(first, n)`` gives the addresses and validity
of a stretch of them. Sums are exact; the caller judges whether an address is legal.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

import numpy as np
import numpy.typing as npt

from kohakutpu.isa import generated as g

LAYER = "L0"

I64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]


@dataclass
class Dimension:
    """One committed dimension; `count` 0 acts as 1, `axis` 1 and 2 name axis 0 and 1."""

    count: int = 0
    stride: int = 0
    axis: int = 0
    step: int = 0


@dataclass
class Walker:
    """State of one walker as its registers hold it.

    `axis_base` and `extent` are the WINDOW registers of axis 0 and 1; `bad_index` is set by a commit of
    dimension 6 or 7 and cleared by the next HDR write.
    """

    base: int = 0
    ndim: int = 1
    dims: list[Dimension] = field(default_factory=lambda: [Dimension() for _ in range(g.MEM_MOVER_NDIM_MAX)])
    axis_base: list[int] = field(default_factory=lambda: [0, 0])
    extent: list[int] = field(default_factory=lambda: [0, 0])
    bad_index: bool = False

    @property
    def legal(self) -> bool:
        """False if a move that uses this walker is F_WALK."""
        return 1 <= self.ndim <= g.MEM_MOVER_NDIM_MAX and not self.bad_index

    def length(self) -> int:
        """Number of elements."""
        return prod(max(d.count, 1) for d in self.dims[: self.ndim])

    def part(self, first: int, n: int) -> tuple[I64, Bool]:
        """Elements first..first+n-1: (exact addresses int64 (n,), valid (n,)).

        A sum stays below 2**52 in magnitude, so int64 is exact.
        """
        address = np.full(n, self.base, dtype=np.int64)
        axes = [np.full(n, base, dtype=np.int64) for base in self.axis_base]
        carry = np.arange(n, dtype=np.int64)
        for dim in reversed(self.dims[: self.ndim]):
            count = max(dim.count, 1)
            first, digit = divmod(first, count)
            carry, index = np.divmod(carry + digit, count)
            address += index * dim.stride
            if dim.axis in (1, 2):
                axes[dim.axis - 1] += index * dim.step
        valid = np.ones(n, dtype=bool)
        for value, extent in zip(axes, self.extent, strict=True):
            if extent:
                valid &= (value >= 0) & (value < extent)
        return address, valid
