# SPDX-License-Identifier: Apache-2.0
"""Walks over memory as the mover's walkers make them (docs/spec/memory.md 12.2)."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

LAYER = "leaf"

WORD_BYTES = 32
DIMS_MAX = 6
COUNT_MAX = (1 << 16) - 1


@dataclass(frozen=True)
class Dim:
    """One dimension of a walk: `count` steps of `stride` bytes; `axis` 1 or 2 adds `step` to that axis."""

    count: int
    stride: int
    axis: int = 0
    step: int = 0


@dataclass(frozen=True)
class Walk:
    """A walk over addresses, outermost dimension first, with the (base, extent) windows of axis 0 and 1.

    Extent 0 leaves an axis unbounded.
    """

    base: int
    dims: tuple[Dim, ...]
    windows: tuple[tuple[int, int], tuple[int, int]] = ((0, 0), (0, 0))

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(dim.count or 1 for dim in self.dims)


def contiguous(base: int, count: int, stride: int = WORD_BYTES) -> Walk:
    """`count` elements `stride` bytes apart; more than 65,535 become several dimensions.

    Raises:
        ValueError: a count below 1, or one whose factors do not fit; move the tail separately.
    """
    sizes: list[int] = []
    rest = count
    while rest > COUNT_MAX and len(sizes) < DIMS_MAX:
        size = next(d for d in range(COUNT_MAX, 0, -1) if rest % d == 0)
        sizes.append(size)
        rest //= size
    sizes.append(rest)
    if not 1 <= rest <= COUNT_MAX or len(sizes) > DIMS_MAX:
        raise ValueError(
            f"contiguous({count}): {DIMS_MAX} counts of 1..{COUNT_MAX} cannot give it; move a tail separately"
        )
    dims = []
    for size in sizes:
        dims.append(Dim(size, stride))
        stride *= size
    return Walk(base, tuple(reversed(dims)))
