# SPDX-License-Identifier: Apache-2.0
"""Bands, placed buffers and the printed form of a schedule (docs/spec/compiler.md 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kohakutpu.chain import Chain
from kohakutpu.ints import cdiv
from kohakutpu.program import Store, Stream
from kohakutpu.schedule.cover import Rect
from kohakutpu.schedule.requantise import Requantise
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
class Elementwise:
    """One pass over elements: every result is a chain of lane operations on the operands.

    Results have one shape [M][N]; an operand has it too, or is [1][N] and read by every row. A chain that
    reduces rows reads along N.
    """

    chain: Chain
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """[M][N] of every result."""
        return self.results[0].shape

    def channel(self, operand: Operand) -> bool:
        """True if ``operand`` has one row that every row reads."""
        return operand.shape != self.shape


@dataclass(frozen=True)
class Product:
    """Names of one product of a band: operands A and B, and the result."""

    a: str
    b: str
    c: str


@dataclass(frozen=True)
class Delivery:
    """Where an epilogue takes over: the vector core of every instance, and the L1 words between two tiles."""

    cores: tuple[int, ...]
    span: int


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
        products: the products of an instance, one after another; all have the same grid.
        delivery: results go to vector cores instead of memory.
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
    products: tuple[Product, ...] = ()
    delivery: Delivery | None = None

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
            f"out={'emit' if self.emit_fuse else 'drain'}" + self._sent()
        )

    def _sent(self) -> str:
        if self.delivery is None:
            return ""
        return f" to={','.join(f'VC{u}' for u in self.delivery.cores)} span={self.delivery.span}"


@dataclass(frozen=True)
class VectorBand:
    """Work of the vector cores between two barriers; an instance is one RUN.

    Args:
        chain: what an element goes through.
        form: "flat", "rows", "tiles" or "resident" (the tile is already in L1).
        extents: [M][N] of the results.
        vl: elements of a step.
        reads, writes: buffers, in order of the chain's operands and results.
        streams, stores: regions of L1, walks and step offsets, common to all instances.
        offsets: per instance, the byte offset inside its buffer of every fill and drain.
        words: length of the image the instances write, in words, padding included.
        shifts: per instance, the words by which a resident tile's part is further on; none if nothing moves.
        nodes: core of every instance when a delivery fixed it.
        acks: burst acknowledgements each receiver has to have sent before the first RUN.
    """

    chain: Chain
    form: str
    extents: tuple[int, int]
    vl: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    streams: tuple[Stream, ...]
    stores: tuple[Store, ...]
    offsets: tuple[tuple[int, ...], ...]
    words: int
    nodes: tuple[int, ...] = ()
    acks: int = 0
    interleave: int = 0
    group: int = 1
    shifts: tuple[int, ...] = ()
    engine: str = "VC"

    @property
    def steps(self) -> int:
        """Steps of a RUN."""
        return len(self.stores[0].offsets)

    @property
    def role(self) -> str:
        """What the band is for."""
        return "epilogue" if self.form in ("tiles", "resident") else "compute"

    def instances(self) -> Iterator[tuple[int, int]]:
        """(number, 0) in order."""
        yield from ((i, 0) for i in range(len(self.offsets)))

    def text(self) -> str:
        """One printed line."""
        m, n = self.extents
        regions = [(r.l1, r.words) for r in self.streams] + [(r.l1, r.words) for r in self.stores]
        used = max(first + words for first, words in regions)
        cores = dict.fromkeys(self.nodes)
        fixed = f" nodes={','.join(f'VC{u}' for u in cores)} acks={self.acks}" if self.nodes else ""
        return (
            f"band {self.engine} {self.chain.text()} {m}x{n} form={self.form} instances={len(self.offsets)} "
            f"steps={self.steps} vl={self.vl} l1={used} reads={','.join(self.reads)} "
            f"writes={','.join(self.writes)} role={self.role}{fixed}"
        )


@dataclass(frozen=True)
class Schedule:
    """Placed buffers, bands in order, and where each instance runs.

    Args:
        dealt: per band, (instance, unit number) in loop order.
        pass_budget: instructions one program may hold.
        relaxed: epilogues that were asked to run on the arriving tile and go through memory instead, with the reason.
        conversions: values that become operands, in order.
        staging_full: buffers that were to stand in the staging store and did not fit.
    """

    machine: str
    buffers: dict[str, Buffer]
    bands: tuple[Band | VectorBand, ...]
    dealt: tuple[tuple[tuple[tuple[int, int], int], ...], ...]
    pass_budget: int
    notes: tuple[str, ...] = field(default_factory=tuple)
    relaxed: tuple[str, ...] = field(default_factory=tuple)
    conversions: tuple[Requantise, ...] = field(default_factory=tuple)
    staging_full: int = 0

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
        lines += [c.text() for c in self.conversions]
        lines += [f"note: {n}" for n in self.notes]
        lines += [f"relaxed: {r}" for r in self.relaxed]
        return "\n".join(lines)
