# SPDX-License-Identifier: Apache-2.0
"""Graph to schedule: tile choice, residency, byte orders, placement (docs/spec/compiler.md 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kohakutpu.errors import CompileError
from kohakutpu.graph import Graph, Op, verify
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.arena import Arena
from kohakutpu.schedule.cover import check_cover
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.ir import Band, Buffer, Schedule
from kohakutpu.schedule.layout import ByteOrder, MxEntry, Tile, from_key
from kohakutpu.schedule.tiles import Tiling, banks, check, choose

LAYER = "L2"


@dataclass
class Lowering:
    """State of one lowering: the arena and the buffers placed so far."""

    machine: MachineSpec
    arena: Arena
    buffers: dict[str, Buffer] = field(default_factory=dict)

    def place(self, name: str, role: str, order: ByteOrder, shape: tuple[int, int]) -> Buffer:
        """Allocate a buffer; a second byte order for one name is refused."""
        have = self.buffers.get(name)
        if have is not None:
            if have.layout != order.key:
                raise CompileError(
                    f"{name} is read as {have.layout} and as {order.key}; one buffer holds one byte order, "
                    "give the kernel a second copy"
                )
            return have
        nbytes = order.nbytes(shape)
        span = self.arena.alloc(nbytes, name)
        self.buffers[name] = Buffer(name, role, order.key, span.base, nbytes, shape)
        return self.buffers[name]


def lower(
    graph: Graph,
    machine: MachineSpec,
    *,
    clusters: int | None = None,
    occupancy: bool = True,
    emit_fuse: bool = True,
    pass_budget: int | None = None,
) -> Schedule:
    """Schedule every contraction of ``graph`` on the clusters of mesh 0.

    Args:
        clusters: use only the first so many clusters.
        occupancy: include the occupancy factor in the tile choice.
        emit_fuse: hand results out with the last sweep; off gives separate drains.
        pass_budget: instructions a program; by default the staging slots shared by the clusters.

    Raises:
        CompileError: what the graph verifier, tile choice, coverage check or arena refuse.
    """
    verify(graph)
    available = machine.units("MG")
    used = available[: clusters or len(available)]
    state = Lowering(machine, Arena(machine.arena_base, machine.dram_bytes - machine.arena_base, machine.arena_align))
    bands = tuple(_contract(graph, op, state, len(used), occupancy, emit_fuse) for op in graph.ops)
    dealt = tuple(tuple(deal(b.instances(), range(len(used))).items()) for b in bands)
    active = max((len({u for _, u in d}) for d in dealt), default=1)
    budget = pass_budget or machine.stage_flits // active
    if not 4 <= budget <= machine.stage_flits:
        raise CompileError(f"pass budget {budget} is not in 4..{machine.stage_flits} (staging slots)")
    return Schedule(machine.name, state.buffers, bands, dealt, budget)


def _contract(
    graph: Graph, op: Op, state: Lowering, clusters: int, occupancy: bool, emit_fuse: bool
) -> Band:
    machine = state.machine
    a, b = (graph.values[n] for n in op.args)
    for v in (a, b):
        if v.role not in ("in", "const", "table"):
            raise CompileError(
                f"{op.result}: operand {v.name} is computed on the machine; reading it back needs a quantise "
                "pass of the memory mover, which this machine does not have"
            )
    c = graph.values[op.result]
    m, n, k = a.shape[0], b.shape[0], a.shape[1]
    if op.attrs:
        tiling = check(Tiling(*(int(op.attr(x) or 0) for x in ("gm", "gn", "nk"))), machine)
    else:
        tiling = choose(m, n, k, machine, clusters if occupancy else None)
    for v, groups, side in ((a, tiling.gm, "a"), (b, tiling.gn, "b")):
        state.place(v.name, v.role, MxEntry(groups, tiling.nk, side), v.shape)
    state.place(c.name, c.role, Tile.of(c.shape, tiling.gm, tiling.gn), c.shape)
    band = Band(
        engine="MG",
        extents=(m, n, k),
        tiling=tiling,
        ops=("contract",),
        reads=(a.name, b.name),
        writes=(c.name,),
        emit_fuse=emit_fuse and "emit_fuse" in machine.features,
    )
    band = _residency(band, machine)
    check_cover(c.shape, band.rects())
    return band


def _residency(band: Band, machine: MachineSpec) -> Band:
    """B stays in L1 across the row tiles of a column band when all its chunks fit (5.5)."""
    from dataclasses import replace

    chunk = band.tiling.gn * band.tiling.nk
    per_bank = banks(machine)[1] // chunk
    fits = band.chunks <= per_bank * machine.banks
    # one chunk leaves the other bank free for the next column; several fill their own places
    reused = band.grid[0] > 1
    a, b = band.reads
    if fits and reused:
        return replace(band, resident=(b,), double_buffered=(a,) if band.chunks > 1 else (a, b))
    return replace(band, double_buffered=(a, b))


def pack_operands(schedule: Schedule, operands: Mapping[str, object]) -> dict[str, bytes]:
    """Bytes of every input buffer in its byte order.

    Raises:
        CompileError: an operand that is missing or has another shape.
    """
    out: dict[str, bytes] = {}
    for buf in schedule.buffers.values():
        if buf.role == "out":
            continue
        if buf.name not in operands:
            raise CompileError(f"operand {buf.name} {buf.shape} was not given")
        array = operands[buf.name]
        if getattr(array, "shape", None) != buf.shape:
            raise CompileError(f"operand {buf.name} has shape {getattr(array, 'shape', None)}, expected {buf.shape}")
        out[buf.name] = from_key(buf.layout).pack(array)  # type: ignore[arg-type]
    return out
