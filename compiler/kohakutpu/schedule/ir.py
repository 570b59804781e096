# SPDX-License-Identifier: Apache-2.0
"""Bands, placed buffers and the printed form of a schedule (docs/spec/compiler.md 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kohakutpu.chain import Chain
from kohakutpu.ints import cdiv
from kohakutpu.program import Store, Stream, Walk
from kohakutpu.schedule.cover import Rect
from kohakutpu.schedule.drains import DrainBand
from kohakutpu.schedule.lifetimes import Life
from kohakutpu.schedule.relayout import RelayoutBand
from kohakutpu.schedule.requantise import Conversion
from kohakutpu.schedule.tiles import Tiling
from kohakutpu.views import Spread, Strided, Window

LAYER = "L2"


@dataclass(frozen=True)
class Operand:
    """A value before it has a place.

    Args:
        tier: the author's tier, "dram" or "l2", or "" for the compiler's choice.
        of: the buffer it is a part of, "" for a buffer of its own.
        window: which part; given exactly when ``of`` is.
    """

    name: str
    role: str
    shape: tuple[int, int]
    tier: str = ""
    of: str = ""
    window: Window | None = None


@dataclass(frozen=True)
class Contraction:
    """c[Z*M][N]: c[z*M+m, n] = sum over h, k of a[z*H+h][m, k] * b[z][n, h*Ka+k].

    Args:
        tiling: what its author named, or None.
        a_window, b_window: the blocks of an operand; None is the whole value as one block. One block is shared
            by every element of the batch.
        batch: Z.
        join: H, the heads whose columns are joined in one K sweep (K = H*Ka).
        split: SK, partial products of one result tile (5.4).
        route: how partials are summed: "peer", "core" or "memory", "" for the first that fits; only with a split.
    """

    a: Operand
    b: Operand
    c: Operand
    tiling: Tiling | None = None
    a_window: Window | None = None
    b_window: Window | None = None
    batch: int = 1
    join: int = 1
    split: int = 1
    route: str = ""

    @property
    def a_blocks(self) -> Window:
        """The blocks of a."""
        return self.a_window or Window(1, 0, self.a.shape[0], 0, self.a.shape[1])

    @property
    def b_blocks(self) -> Window:
        """The blocks of b."""
        return self.b_window or Window(1, 0, self.b.shape[0], 0, self.b.shape[1])

    @property
    def extents(self) -> tuple[int, int, int]:
        """(M, N, K) of one element of the batch."""
        return self.a_blocks.rows, self.b_blocks.rows, self.b_blocks.cols


@dataclass(frozen=True)
class Elementwise:
    """One pass over elements: every result is a chain of lane operations on the operands.

    Results have one shape [M][N]; an operand has it too, or is [1][N] and read by every row. A chain that
    reduces rows reads along N.

    Args:
        reads: per operand, the part of it that the elements of the pass read in turn (:class:`Spread`); None for
            an operand of the pass's shape or of one row. Empty if no operand has one.
    """

    chain: Chain
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]
    reads: tuple[Spread | None, ...] = ()

    @property
    def shape(self) -> tuple[int, int]:
        """[M][N] of every result."""
        return self.results[0].shape

    @property
    def over_rows(self) -> bool:
        """True if the pass is over rows whatever the order of its operands (docs/spec/compiler.md 7.1)."""
        return self.chain.folds or any(self.reads) or any(r.of for r in self.results)

    def channel(self, operand: Operand) -> bool:
        """True if ``operand`` has one row that every row reads."""
        return operand.shape != self.shape

    def spread(self, index: int) -> Spread | None:
        """How operand ``index`` is read."""
        return self.reads[index] if self.reads else None


@dataclass(frozen=True)
class Rearrange:
    """The elements that ``read`` gives of ``source`` become ``result``, by a move between two buffers of rows."""

    source: Operand
    result: Operand
    read: Strided

    @property
    def operands(self) -> tuple[Operand, ...]:
        """What is read."""
        return (self.source,)

    @property
    def results(self) -> tuple[Operand, ...]:
        """What is written."""
        return (self.result,)

    @property
    def over_rows(self) -> bool:
        """A move reads rows and writes rows."""
        return True


@dataclass(frozen=True)
class Product:
    """Names of one product of a band: operands A and B, and the result.

    Args:
        a_window, b_window: the blocks an instance reads; None is the whole operand as one block.
        partials: with a split, where partial ko goes.
        c_window: the part of a buffer of rows the result goes to; None is a buffer of its own.
    """

    a: str
    b: str
    c: str
    a_window: Window | None = None
    b_window: Window | None = None
    partials: tuple[str, ...] = ()
    c_window: Window | None = None

    @property
    def batched_b(self) -> bool:
        """True if every element of the batch has a B of its own."""
        return self.b_window is not None and self.b_window.blocks > 1


@dataclass(frozen=True)
class Delivery:
    """Where an epilogue takes over: the vector core of every instance, and the L1 words between two tiles."""

    cores: tuple[int, ...]
    span: int


@dataclass(frozen=True)
class Buffer:
    """A placed buffer: global byte address, size, byte order and logical shape.

    ``source`` is the operand a copy in another order is filled from, "" for the buffer's own name.
    """

    name: str
    role: str
    layout: str
    address: int
    nbytes: int
    shape: tuple[int, int]
    source: str = ""


@dataclass(frozen=True)
class Band:
    """Work of one unit type between two barriers.

    Args:
        engine: unit type.
        extents: (Z*M, N, K) of the product.
        tiling: what one instance computes.
        ops: op kinds in order.
        reads: operand buffers, A then B.
        writes: result buffers.
        resident: operands kept in L1 across the row tiles of a column band.
        double_buffered: operands whose fills alternate banks.
        emit_fuse: results leave with the last sweep instead of a separate read-out.
        products: the products of an instance, one after another; all have the same grid.
        delivery: results go to vector cores instead of memory.
        batch, join, split, route: Z, H, SK and how partials are summed (:class:`Contraction`).
        kept: the instances of a band whose tiles stay in the tile stores, one a cluster; none if results leave.
        rows: results are drained as rows (docs/spec/cluster.md 5.6).
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
    batch: int = 1
    join: int = 1
    split: int = 1
    route: str = ""
    kept: tuple[tuple[int, int, int], ...] = ()
    rows: bool = False

    @property
    def grid(self) -> tuple[int, int, int]:
        """(row tiles of the whole batch, column tiles, split K)."""
        m, n, _ = self.extents
        return cdiv(m, 4 * self.tiling.gm), cdiv(n, 4 * self.tiling.gn), self.split

    @property
    def chunks(self) -> int:
        """K chunks of an instance."""
        return cdiv(self.extents[2], 32 * self.tiling.nk) // self.split

    @property
    def block_rows(self) -> int:
        """Row tiles that read the same B."""
        batched = any(p.batched_b for p in self.products)
        return self.grid[0] // (self.batch if batched else 1)

    def instances(self) -> Iterator[tuple[int, ...]]:
        """(mo, no), with a split (mo, no, ko), in loop order: blocks of B, column bands, partials, row tiles.

        Partials that one cluster sends to a core follow one another.
        """
        if self.kept:
            yield from self.kept
        elif self.split == 1:
            yield from self.tiles()
        elif self.delivery is not None:
            yield from ((*tile, ko) for tile in self.tiles() for ko in range(self.split))
        else:
            height = self.block_rows
            tiles = list(self.tiles())
            for first in range(0, len(tiles), height):
                yield from ((*tile, ko) for ko in range(self.split) for tile in tiles[first : first + height])

    def tiles(self) -> Iterator[tuple[int, int]]:
        """(mo, no) in loop order: blocks of B, column bands, row tiles."""
        rows, cols, _ = self.grid
        height = self.block_rows
        for first in range(0, rows, height):
            for no in range(cols):
                for mo in range(first, first + height):
                    yield mo, no

    def rects(self) -> Iterator[Rect]:
        """Unclipped rectangles of all instances."""
        bm, bn = 4 * self.tiling.gm, 4 * self.tiling.gn
        for mo, no, *ko in self.instances():
            yield Rect(mo, no, ko[0] if ko else 0, mo * bm, (mo + 1) * bm, no * bn, (no + 1) * bn)

    def text(self) -> str:
        """One printed line."""
        t = self.tiling
        m, n, k = self.extents
        return (
            f"band {self.engine} {'+'.join(self.ops)} {m}x{n}x{k} grid={'x'.join(map(str, self.grid))} "
            f"tile=gm{t.gm},gn{t.gn},nk{t.nk} chunks={self.chunks} reads={','.join(self.reads)} "
            f"writes={','.join(self.writes)} resident={','.join(self.resident) or '-'} "
            f"double={','.join(self.double_buffered) or '-'} tier={self.tier} role={self.role} "
            f"out={self._out()}" + self._blocks() + self._sent()
        )

    def _out(self) -> str:
        """How results leave."""
        return "kept" if self.kept else "rows" if self.rows else "emit" if self.emit_fuse else "drain"

    def _blocks(self) -> str:
        """What is not the plain product of two whole operands."""
        words = [f"batch={self.batch}"] if self.batch > 1 else []
        words += [f"join={self.join}"] if self.join > 1 else []
        words += [f"split={self.split} route={self.route}"] if self.split > 1 else []
        for p in self.products:
            parts = ((p.a, p.a_window), (p.b, p.b_window), (p.c, p.c_window))
            words += [f"{n}{w.text()}" for n, w in parts if w is not None]
        return "".join(f" {w}" for w in words)

    def _sent(self) -> str:
        if self.delivery is None:
            return ""
        return f" to={','.join(f'VC{u}' for u in self.delivery.cores)} span={self.delivery.span}"


@dataclass(frozen=True)
class Target:
    """The part of a buffer of ``shape`` that a result is written into."""

    window: Window
    shape: tuple[int, int]

    def words(self, slices: int) -> npt.NDArray[np.int64]:
        """Words of the part, in order, of ``slices`` elements each."""
        w, (rows, cols) = self.window, self.shape
        if any(c % slices for c in (w.col, w.cols, cols)):
            elements = w.of(np.arange(rows * cols, dtype=np.float64).reshape(rows, cols))
            return np.unique(elements.astype(np.int64) // slices)
        inside = Window(w.blocks, w.row, w.rows, w.col // slices, w.cols // slices)
        numbers = np.arange(rows * cols // slices, dtype=np.float64).reshape(rows, -1)
        return inside.of(numbers).reshape(-1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class VectorBand:
    """Work of the vector cores between two barriers; an instance is one RUN.

    Args:
        chain: what an element goes through.
        form: "flat", "rows", "spread", "entries", "tiles" or "resident" (the tile is already in L1).
        extents: [M][N] of the results.
        vl: elements of a step.
        reads, writes: buffers, in order of the chain's operands and results; a part is named by its parent.
        streams, stores: regions of L1, walks and step offsets, common to all instances.
        offsets: the byte offset inside its buffer of every fill and drain, [instances][fills and drains].
        words: length of the image the instances write of a result, in words, padding included.
        shifts: per instance, the words by which a resident tile's part is further on; none if nothing moves.
        nodes: core of every instance when a delivery fixed it.
        acks: burst acknowledgements each receiver has to have sent before the first RUN.
        stride: dimensions of the L1 words of a step, none if they follow one another (:class:`LaneWork`).
        purpose: role of a pass that is neither computation nor epilogue ("relayout", "reduce"), "" for those.
    """

    chain: Chain
    form: str
    extents: tuple[int, int]
    vl: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    streams: tuple[Stream, ...]
    stores: tuple[Store, ...]
    offsets: npt.NDArray[np.int64]
    words: int
    nodes: tuple[int, ...] = ()
    acks: int = 0
    interleave: int = 0
    group: int = 1
    shifts: tuple[int, ...] = ()
    engine: str = "VC"
    reach: tuple[int, ...] = ()
    short: tuple[Walk, ...] = ()
    targets: tuple[Target | None, ...] = ()
    stride: tuple[tuple[int, int], ...] = ()
    purpose: str = ""

    @property
    def steps(self) -> int:
        """Steps of a RUN."""
        return len(self.stores[0].offsets)

    @property
    def role(self) -> str:
        """What the band is for."""
        return self.purpose or ("epilogue" if self.form in ("tiles", "resident") else "compute")

    def instances(self) -> Iterator[tuple[int, ...]]:
        """(number, 0) in order."""
        yield from ((i, 0) for i in range(len(self.offsets)))

    def _out(self) -> str:
        """How results leave, where one of them is quantised."""
        forms = [f"mx:{s.mx}" if s.mx else "rows" for s in self.stores]
        return f" out={','.join(forms)}" if any(s.mx for s in self.stores) else ""

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
            f"writes={','.join(self.writes)} role={self.role}{self._out()}{fixed}"
        )


AnyBand = Band | DrainBand | VectorBand | RelayoutBand


@dataclass(frozen=True)
class Schedule:
    """Placed buffers, bands in order, and where each instance runs.

    Args:
        dealt: per band, (instance, unit number) in loop order.
        pass_budget: instructions one program may hold.
        relaxed: epilogues that were asked to run on the arriving tile and go through memory instead, with the reason.
        conversions: what the memory mover does between bands, in order.
        staging_full: buffers that were to stand in the staging store and did not fit.
        lives: the steps every buffer occupies bytes in (docs/spec/compiler.md 8.2).
    """

    machine: str
    buffers: dict[str, Buffer]
    bands: tuple[AnyBand, ...]
    dealt: tuple[tuple[tuple[tuple[int, ...], int], ...], ...]
    pass_budget: int
    notes: tuple[str, ...] = field(default_factory=tuple)
    relaxed: tuple[str, ...] = field(default_factory=tuple)
    conversions: tuple[Conversion, ...] = field(default_factory=tuple)
    staging_full: int = 0
    lives: dict[str, Life] = field(default_factory=dict)

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
