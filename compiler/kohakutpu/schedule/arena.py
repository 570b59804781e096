# SPDX-License-Identifier: Apache-2.0
"""Best-fit arena of one mesh and tier (docs/spec/compiler.md 8.1)."""

from __future__ import annotations

from dataclasses import dataclass, field

from kohakutpu.errors import CompileError
from kohakutpu.ints import up

LAYER = "L2"


class ArenaFullError(CompileError):
    """No free span is large enough."""


@dataclass(frozen=True)
class Span:
    """A placed buffer: byte address, size, and the epoch it belongs to."""

    base: int
    nbytes: int
    epoch: int = 0


@dataclass
class Arena:
    """Allocator over [base, base + size); ties go to the lowest address.

    ``peak`` is the most bytes from the base on that were in use since the last :meth:`trim`.
    """

    base: int
    size: int
    align: int = 2048
    epoch: int = 0
    peak: int = 0
    _free: list[tuple[int, int]] = field(default_factory=list)
    _live: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._free = [(self.base, self.size)]

    def alloc(self, nbytes: int, name: str = "buffer") -> Span:
        """Place ``nbytes`` (at least one granule).

        Raises:
            ArenaFullError: no free span is large enough; names the buffer and what is free.
        """
        need = up(max(nbytes, 1), self.align)
        fits = [(size, base) for base, size in self._free if size >= need]
        if not fits:
            largest = max((s for _, s in self._free), default=0)
            raise ArenaFullError(
                f"{name}: {need} bytes do not fit; the largest free span is {largest} of {self.size} bytes"
            )
        size, base = min(fits)
        self._free.remove((base, size))
        if size > need:
            self._free.append((base + need, size - need))
            self._free.sort()
        self._live[base] = need
        self.peak = max(self.peak, base + need - self.base)
        return Span(base, nbytes, self.epoch)

    def free(self, span: Span) -> None:
        """Return a span; neighbours coalesce.

        Raises:
            CompileError: a span of an older epoch, or one that is not live.
        """
        if span.epoch != self.epoch or span.base not in self._live:
            raise CompileError(
                f"span at {span.base:#x} of epoch {span.epoch} is not live in epoch {self.epoch}"
            )
        self._free.append((span.base, self._live.pop(span.base)))
        merged: list[tuple[int, int]] = []
        for base, size in sorted(self._free):
            if merged and merged[-1][0] + merged[-1][1] == base:
                merged[-1] = (merged[-1][0], merged[-1][1] + size)
            else:
                merged.append((base, size))
        self._free = merged

    def trim(self) -> int:
        """Give the free span at the top back: ``peak`` falls to the end of what is live. Bytes it fell by."""
        before = self.peak
        self.peak = max((base + size - self.base for base, size in self._live.items()), default=0)
        return before - self.peak

    def reset(self) -> None:
        """Forget every span; older ones refuse to be freed or read afterwards."""
        self.epoch += 1
        self._live.clear()
        self._free = [(self.base, self.size)]

    def stats(self) -> dict[str, float]:
        """live, used, peak, free_spans, largest_free (bytes) and fragmentation (0..1)."""
        total = sum(s for _, s in self._free)
        largest = max((s for _, s in self._free), default=0)
        return {
            "live": len(self._live),
            "used": sum(self._live.values()),
            "peak": self.peak,
            "free_spans": len(self._free),
            "largest_free": largest,
            "fragmentation": 1 - largest / total if total else 0.0,
        }
