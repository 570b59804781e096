# SPDX-License-Identifier: Apache-2.0
"""Requests to a schedule: tile choice, residency, byte orders, fusion, placement (docs/spec/compiler.md 5 and 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CannotFuse, CompileError
from kohakutpu.ints import up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.cover import check_cover
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.ir import (
    Band,
    Buffer,
    Contraction,
    Delivery,
    Elementwise,
    Operand,
    Product,
    Schedule,
    VectorBand,
)
from kohakutpu.schedule.lanes import (
    LaneOptions,
    cannot_fuse,
    flat_band,
    resident_band,
    row_band,
    tile_band,
)
from kohakutpu.schedule.layout import ByteOrder, ChannelBias, Flat, MxEntry, Tile, from_key
from kohakutpu.schedule.requantise import Requantise, scratch_shape
from kohakutpu.schedule.tiers import DRAM, L2, Tiers
from kohakutpu.schedule.tiles import Tiling, check, choose

LAYER = "L2"

Request = Contraction | Elementwise
FUSE = ("auto", "require", "never")

_HOST_ROLES = ("in", "const", "table")


@dataclass
class Need:
    """A buffer still without a place: its value, byte order and size, padding included."""

    value: Operand
    order: ByteOrder
    nbytes: int
    tier: str = DRAM


@dataclass
class Planner:
    """Bands and buffers collected so far; places are given at the end, in order of first use."""

    machine: MachineSpec
    clusters: int
    cores: int
    tuned: int | None
    emit_fuse: bool
    fuse: str
    lanes: LaneOptions
    needs: dict[str, Need] = field(default_factory=dict)
    bands: list[Band | VectorBand] = field(default_factory=list)
    relaxed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conversions: list[Requantise] = field(default_factory=list)
    clean: set[str] = field(default_factory=set)

    # ---------------------------------------------------------------- buffers

    def hold(self, value: Operand, order: ByteOrder, nbytes: int = 0) -> None:
        """Ask for a buffer; a second byte order for one name is refused."""
        size = max(nbytes, order.nbytes(value.shape))
        have = self.needs.get(value.name)
        if have is None:
            self.needs[value.name] = Need(value, order, size)
        elif have.order.key != order.key:
            raise CompileError(
                f"{value.name} is needed as {have.order.key} and as {order.key}; one buffer holds one byte "
                "order, give the kernel a second copy"
            )
        else:
            have.nbytes = max(have.nbytes, size)

    def operand(self, value: Operand, order: MxEntry) -> str:
        """Name of the buffer a product reads ``value`` from: its own, or its MXFP7 form made by the mover."""
        if value.role in _HOST_ROLES:
            self.hold(value, order)
            self.clean.add(value.name)
            return value.name
        have = self.needs.get(value.name)
        if have is None:
            raise CompileError(f"operand {value.name} is computed on the machine and never stored; store it first")
        name = f"{value.name}:{order.key}"
        if name in self.needs:
            return name
        try:
            shape = scratch_shape(
                have.order, value.shape, order, self.machine, clean=value.name in self.clean
            )
        except CompileError as err:
            raise CompileError(f"operand {value.name} is computed on the machine; {err}") from err
        rows = "" if shape is None else f"{value.name}:rows:{shape[0]}x{shape[1]}"
        if shape is not None:
            self.hold(Operand(rows, "temp", shape), Flat())
            self.needs[rows].tier = L2
        self.hold(Operand(name, "temp", value.shape), order)
        self.needs[name].tier = L2
        self.conversions.append(Requantise(len(self.bands), value.name, rows, name))
        if value.name in self.clean:
            self.clean.add(name)
        return name

    def buffers(self) -> tuple[dict[str, Buffer], int]:
        """Place everything asked for; also how much of it found no room in the staging store.

        What a conversion makes is proposed for the staging store of a machine that has one.
        """
        tiers = Tiers(self.machine)
        out = {}
        for name, need in self.needs.items():
            tier = need.tier if self.machine.stage_bytes else DRAM
            at = tiers.place(name, need.nbytes, tier, proposed=True)
            out[name] = Buffer(name, need.value.role, need.order.key, at, need.nbytes, need.value.shape)
        return out, tiers.staging_full

    # ---------------------------------------------------------------- products

    def tiling(self, group: Sequence[Contraction]) -> Tiling:
        """One tiling for products that share an epilogue, the one its author named or the best of the longest."""
        named = {c.tiling for c in group if c.tiling}
        if len(named) > 1:
            raise CompileError(
                f"{', '.join(c.c.name for c in group)} feed one pass with different tilings; name the same one"
            )
        if named:
            return check(named.pop(), self.machine)
        c = max(group, key=lambda c: c.a.shape[1])
        return choose(c.c.shape[0], c.c.shape[1], c.a.shape[1], self.machine, self.tuned)

    def products(self, group: Sequence[Contraction], tiling: Tiling, delivery: Delivery | None = None) -> None:
        """One band of products on the same grid, one after another in each instance."""
        first = group[0]
        if any(c.c.shape != first.c.shape or c.a.shape[1] != first.a.shape[1] for c in group):
            raise CompileError(
                f"{', '.join(c.c.name for c in group)} share an instance but not M, N and K; compute them apart"
            )
        products: list[Product] = []
        for c in group:
            try:
                a = self.operand(c.a, MxEntry(tiling.gm, tiling.nk, "a"))
                b = self.operand(c.b, MxEntry(tiling.gn, tiling.nk, "b"))
            except CompileError as err:
                raise CompileError(f"{c.c.name}: {err}") from err
            products.append(Product(a, b, c.c.name))
            if {a, b} <= self.clean:
                self.clean.add(c.c.name)
            if delivery is None:
                self.store(c.c, Tile.of(c.c.shape, tiling.gm, tiling.gn))
        band = Band(
            engine="MG",
            extents=(*first.c.shape, first.a.shape[1]),
            tiling=tiling,
            ops=("contract",) * len(group),
            reads=tuple(dict.fromkeys(n for p in products for n in (p.a, p.b))),
            writes=tuple(c.c.name for c in group),
            emit_fuse=self.emit_fuse and "emit_fuse" in self.machine.features,
            products=tuple(products),
            delivery=delivery,
        )
        check_cover(first.c.shape, band.rects())
        self.bands.append(_residency(band, self.machine))

    def store(self, value: Operand, order: ByteOrder, nbytes: int = 0) -> None:
        """Ask for a result's buffer and note that FP16 may saturate."""
        self.hold(value, order, nbytes)
        if value.role != "in":
            self.notes.append(f"{value.name}: FP16, bound unknown, saturates at 65504")

    # ---------------------------------------------------------------- passes over elements

    def epilogue(self, e: Elementwise, group: Sequence[Contraction], *, private: bool) -> None:
        """A pass that reads results of products: on the arriving tiles if it can, else through memory."""
        tiling = self.tiling(group)
        tile = Tile.of(e.shape, tiling.gm, tiling.gn)
        if self.fuse != "never":
            try:
                self._fused(e, group, tile, tiling, private)
                return
            except CannotFuse as err:
                if self.fuse == "require":
                    raise
                self.relaxed.append(str(err))
        self.products(group, tiling)
        self.add(e, tile_band(e, tile, self.machine, self.cores, self.lanes), tile, tiling.gn)

    def _fused(self, e: Elementwise, group: Sequence[Contraction], tile: Tile, tiling: Tiling, private: bool) -> None:
        cores = len(self.machine.meshes[0].units.get("VC", ()))
        instances = tile.gi * tile.gj
        if not private:
            raise cannot_fuse(e, "the product is also read elsewhere, so it needs a place in memory")
        if self.machine.meshes[0].orch is None:
            raise cannot_fuse(e, f"machine {self.machine.name} has no orchestrator to acknowledge bursts to")
        if instances > min(cores, self.cores):
            raise cannot_fuse(e, f"{instances} tiles for {min(cores, self.cores)} vector cores; a core holds one")
        order = [(mo, no) for no in range(tile.gj) for mo in range(tile.gi)]
        place = deal(order, range(self.cores))
        receivers = tuple(place[key] for key in order)
        arriving = tuple(c.c.name for c in group)
        band = resident_band(e, tile, arriving, receivers, self.machine, self.lanes)
        self.products(group, tiling, Delivery(receivers, up(tiling.gm * tiling.gn, 8)))
        self.add(e, band, tile, tiling.gn, delivered=arriving)

    def standalone(self, e: Elementwise) -> None:
        """A pass over values in memory, none of them a product."""
        rows = e.chain.folds or any(e.channel(o) for o in e.operands)
        if rows:
            band = row_band(e, self.machine, self.cores, self.lanes)
        else:
            words = -(-e.shape[0] * e.shape[1] // self.machine.slices)
            band = flat_band(e, words, self.machine, self.cores, self.lanes)
        self.add(e, band, Flat())

    def add(
        self, e: Elementwise, band: VectorBand, order: ByteOrder, gn: int = 0, delivered: Sequence[str] = ()
    ) -> None:
        """Append a pass; operands and results take the order of the pass, padded to whole RUNs."""
        padded = self.machine.word_bytes * band.words
        for o in e.operands:
            if o.name in delivered:
                continue
            if not e.channel(o):
                self.hold(o, order, padded)
            else:
                self.hold(o, ChannelBias(gn) if gn else Flat())
        for r in e.results:
            self.store(r, order, padded)
        self.bands.append(band)


def plan(
    requests: Sequence[Request],
    machine: MachineSpec,
    *,
    clusters: int | None = None,
    cores: int | None = None,
    occupancy: bool = True,
    emit_fuse: bool = True,
    fuse: str = "auto",
    lanes: LaneOptions | None = None,
    pass_budget: int | None = None,
) -> Schedule:
    """Schedule every request on the units of mesh 0.

    Args:
        clusters, cores: use only the first so many clusters or vector cores.
        occupancy: include the occupancy factor in the tile choice.
        emit_fuse: hand results out with the last sweep; off gives separate drains.
        fuse: epilogues on the arriving tile: "auto" if they fit, "require", or "never".
        lanes: choices of the vector kernels that change no result.
        pass_budget: instructions a program; by default the staging slots shared by the units.

    Raises:
        CannotFuse: fuse="require" and an epilogue that does not fit.
        CompileError: an option out of range, or what tile choice, coverage check or arena refuse.
    """
    if fuse not in FUSE:
        raise CompileError(f"fuse = {fuse!r}; it is one of {', '.join(FUSE)}")
    products = [r for r in requests if isinstance(r, Contraction)]
    passes = [r for r in requests if isinstance(r, Elementwise)]
    used = _units("clusters", clusters, "MG", machine) if products else 0
    busy = _units("cores", cores, "VC", machine) if passes else 0
    planner = Planner(machine, used, busy, used if occupancy else None, emit_fuse, fuse, lanes or LaneOptions())
    _walk(planner, requests)
    bands = tuple(planner.bands)
    dealt = tuple(_dealt(b, used, busy) for b in bands)
    active = max((len({u for _, u in d}) for d in dealt), default=1)
    budget = max(1, machine.stage_flits // active) if pass_budget is None else pass_budget
    if not 1 <= budget <= machine.stage_flits:
        raise CompileError(f"pass budget {budget} is not in 1..{machine.stage_flits} (staging slots)")
    buffers, staging_full = planner.buffers()
    return Schedule(
        machine.name,
        buffers,
        bands,
        dealt,
        budget,
        tuple(dict.fromkeys(planner.notes)),
        tuple(planner.relaxed),
        tuple(planner.conversions),
        staging_full,
    )


def _walk(planner: Planner, requests: Sequence[Request]) -> None:
    """Products wait for the pass that reads them; everything else goes in order."""
    waiting: dict[str, Contraction] = {}
    readers: dict[str, int] = {}
    for r in requests:
        if isinstance(r, Elementwise):
            for o in r.operands:
                readers[o.name] = readers.get(o.name, 0) + 1
    computed: set[str] = set()
    tiled: dict[str, Tile] = {}
    for r in requests:
        if isinstance(r, Contraction):
            if readers.get(r.c.name):
                waiting[r.c.name] = r
            else:
                planner.products([r], planner.tiling([r]))
            continue
        group = [waiting.pop(o.name) for o in r.operands if o.name in waiting]
        stored = [o for o in r.operands if o.name in computed]
        mine = next((tiled[o.name] for o in r.operands if o.name in tiled), None)
        if group and not stored:
            private = all(c.c.role == "temp" and readers[c.c.name] == 1 for c in group)
            planner.epilogue(r, group, private=private)
        elif group or mine is not None:
            for c in group:
                planner.products([c], planner.tiling([c]))
                mine = mine or Tile.of(c.c.shape, *_sides(planner.tiling([c])))
            assert mine is not None
            planner.add(r, tile_band(r, mine, planner.machine, planner.cores, planner.lanes), mine, mine.gn)
        else:
            planner.standalone(r)
        for c in group:
            order = planner.needs.get(c.c.name)
            if order is not None and isinstance(order.order, Tile):
                tiled[c.c.name] = order.order
        for result in r.results:
            computed.add(result.name)
            order = planner.needs[result.name]
            if isinstance(order.order, Tile):
                tiled[result.name] = order.order


def _sides(tiling: Tiling) -> tuple[int, int]:
    return tiling.gm, tiling.gn


def _units(what: str, asked: int | None, kind: str, machine: MachineSpec) -> int:
    available = len(machine.units(kind))
    if asked is not None and not 1 <= asked <= available:
        raise CompileError(f"{what} = {asked}; machine {machine.name} has {available}, use 1..{available}")
    return available if asked is None else asked


def _dealt(band: Band | VectorBand, clusters: int, cores: int) -> tuple[tuple[tuple[int, int], int], ...]:
    instances = list(band.instances())
    if isinstance(band, VectorBand) and band.nodes:
        return tuple(zip(instances, band.nodes, strict=True))
    return tuple(deal(instances, range(clusters if band.engine == "MG" else cores)).items())


def _residency(band: Band, machine: MachineSpec) -> Band:
    """B stays in L1 across the row tiles of a column band when all its chunks fit (5.5)."""
    per_half = machine.bank_entries[1] // (band.tiling.gn * band.tiling.nk)
    a, b = band.products[0].a, band.products[0].b
    if len(band.products) == 1 and band.grid[0] > 1 and band.chunks <= per_half * machine.banks:
        # one chunk leaves the other half free for the next column; several have places of their own
        return replace(band, resident=(b,), double_buffered=(a,) if band.chunks > 1 else (a, b))
    return replace(band, double_buffered=band.reads)


def pack_operands(schedule: Schedule, operands: Mapping[str, npt.NDArray[np.float16]]) -> dict[str, bytes]:
    """Bytes of every buffer the host fills, in its byte order, padded with zeros to the buffer's size.

    Raises:
        CompileError: an operand that is missing, has another shape or dtype, or that nothing reads.
    """
    wanted = {b.name: b for b in schedule.buffers.values() if b.role in _HOST_ROLES}
    stray = sorted(set(operands) - set(wanted))
    if stray:
        raise CompileError(f"operands {stray} are read by nothing; the schedule reads {sorted(wanted)}")
    out: dict[str, bytes] = {}
    for name, buffer in wanted.items():
        if name not in operands:
            raise CompileError(f"operand {name} {buffer.shape} was not given")
        array = operands[name]
        if array.shape != buffer.shape or array.dtype != np.float16:
            raise CompileError(f"operand {name} is {array.dtype} {array.shape}, expected float16 {buffer.shape}")
        out[name] = from_key(buffer.layout).pack(array).ljust(buffer.nbytes, b"\0")
    return out
