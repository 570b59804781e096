# SPDX-License-Identifier: Apache-2.0
"""Bands, placed buffers and the printed form of a schedule (docs/spec/compiler.md 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kohakutpu.ints import cdiv
from kohakutpu.schedule.cover import Rect
from kohakutpu.schedule.tiles import Tiling

LAYER = "L2"


@dataclass(frozen=True)
class Operand:
    """A value a contraction reads or writes, before it has a place."""

    name: str
    role: str
    shape: tuple[int, int]


@dataclass(frozen=True)
class Contraction:
    """c[M, N] = a[M, K] b[N, K]^T, with the tiling its author named or None."""

    a: Operand
    b: Operand
    c: Operand
    tiling: Tiling | None = None


@dataclass(frozen=True)
class Buffer:
    """A placed buffer: global byte address, size, byte order and logical shape."""

    name: str
    role: str
    layout: str
    address: int
    nbytes: int
    shape: tuple[int, int]


@dataclass(frozen=True)
class Band:
    """Work of one unit type between two barriers.

    Args:
        engine: unit type.
        extents: (M, N, K) of the product.
        tiling: what one instance computes.
        ops: op kinds in order.
        reads: operand buffers, A then B.
        writes: result buffers.
        resident: operands kept in L1 across the row tiles of a column band.
        double_buffered: operands whose fills alternate banks.
        emit_fuse: results leave with the last sweep instead of a separate read-out.
    """

    engine: str
    extents: tuple[int, int, int]
    tiling: Tiling
    ops: tuple[str, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    resident: tuple[str, ...] = ()
    double_buffered: tuple[str, ...] = ()
    tier: str = "dram"
    role: str = "compute"
    emit_fuse: bool = True

    @property
    def grid(self) -> tuple[int, int, int]:
        """(row tiles, column tiles, split K)."""
        m, n, _ = self.extents
        return cdiv(m, 4 * self.tiling.gm), cdiv(n, 4 * self.tiling.gn), 1

    @property
    def chunks(self) -> int:
        """K chunks of an instance."""
        return cdiv(self.extents[2], 32 * self.tiling.nk)

    def instances(self) -> Iterator[tuple[int, int]]:
        """(mo, no) in loop order: column band outermost, row tiles inside."""
        rows, cols, _ = self.grid
        for no in range(cols):
            for mo in range(rows):
                yield mo, no

    def rects(self) -> Iterator[Rect]:
        """Unclipped rectangles of all instances."""
        bm, bn = 4 * self.tiling.gm, 4 * self.tiling.gn
        for mo, no in self.instances():
            yield Rect(mo, no, 0, mo * bm, (mo + 1) * bm, no * bn, (no + 1) * bn)

    def text(self) -> str:
        """One printed line."""
        t = self.tiling
        m, n, k = self.extents
        return (
            f"band {self.engine} {'+'.join(self.ops)} {m}x{n}x{k} grid={'x'.join(map(str, self.grid))} "
            f"tile=gm{t.gm},gn{t.gn},nk{t.nk} chunks={self.chunks} reads={','.join(self.reads)} "
            f"writes={','.join(self.writes)} resident={','.join(self.resident) or '-'} "
            f"double={','.join(self.double_buffered) or '-'} tier={self.tier} role={self.role} "
            f"out={'emit' if self.emit_fuse else 'drain'}"
        )


@dataclass(frozen=True)
class Schedule:
    """Placed buffers, bands in order, and where each instance runs.

    Args:
        dealt: per band, (instance, unit number) in loop order.
        pass_budget: instructions one program may hold.
    """

    machine: str
    buffers: dict[str, Buffer]
    bands: tuple[Band, ...]
    dealt: tuple[tuple[tuple[tuple[int, int], int], ...], ...]
    pass_budget: int
    notes: tuple[str, ...] = field(default_factory=tuple)

    def text(self) -> str:
        """Printed form; tests compare it."""
        lines = [f"schedule for {self.machine}, pass budget {self.pass_budget}"]
        for b in self.buffers.values():
            lines.append(
                f"{b.role} {b.name}: {b.layout} {b.shape[0]}x{b.shape[1]} at {b.address:#x}, {b.nbytes} bytes"
            )
        for band, dealt in zip(self.bands, self.dealt, strict=True):
            lines.append(band.text())
            units: dict[int, int] = {}
            for _, unit in dealt:
                units[unit] = units.get(unit, 0) + 1
            lines.append("  dealt " + ", ".join(f"unit {u}: {c}" for u, c in sorted(units.items())))
        lines += [f"note: {n}" for n in self.notes]
        return "\n".join(lines)
