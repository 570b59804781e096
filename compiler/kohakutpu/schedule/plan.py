# SPDX-License-Identifier: Apache-2.0
"""Contractions to a schedule: tile choice, residency, byte orders, placement (docs/spec/compiler.md 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.arena import Arena
from kohakutpu.schedule.cover import check_cover
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.ir import Band, Buffer, Contraction, Operand, Schedule
from kohakutpu.schedule.layout import ByteOrder, MxEntry, Tile, from_key
from kohakutpu.schedule.tiles import check, choose

LAYER = "L2"

_HOST_ROLES = ("in", "const", "table")


@dataclass
class Placement:
    """The arena and the buffers placed so far."""

    machine: MachineSpec
    arena: Arena
    buffers: dict[str, Buffer] = field(default_factory=dict)

    def place(self, value: Operand, order: ByteOrder) -> None:
        """Allocate a buffer; a second byte order for one name is refused."""
        have = self.buffers.get(value.name)
        if have is None:
            nbytes = order.nbytes(value.shape)
            span = self.arena.alloc(nbytes, value.name)
            self.buffers[value.name] = Buffer(
                value.name, value.role, order.key, span.base, nbytes, value.shape
            )
        elif have.layout != order.key:
            raise CompileError(
                f"{value.name} is needed as {have.layout} and as {order.key}; one buffer holds one byte "
                "order, give the kernel a second copy"
            )


def plan(
    contractions: Sequence[Contraction],
    machine: MachineSpec,
    *,
    clusters: int | None = None,
    occupancy: bool = True,
    emit_fuse: bool = True,
    pass_budget: int | None = None,
) -> Schedule:
    """Schedule every contraction on the clusters of mesh 0.

    Args:
        clusters: use only the first so many clusters.
        occupancy: include the occupancy factor in the tile choice.
        emit_fuse: hand results out with the last sweep; off gives separate drains.
        pass_budget: instructions a program; by default the staging slots shared by the clusters.

    Raises:
        CompileError: an option out of range, or what tile choice, coverage check or arena refuse.
    """
    available = machine.units("MG")
    if clusters is not None and not 1 <= clusters <= len(available):
        raise CompileError(
            f"clusters = {clusters}; machine {machine.name} has {len(available)}, use 1..{len(available)}"
        )
    used = len(available) if clusters is None else clusters
    arena = Arena(machine.arena_base, machine.dram_bytes - machine.arena_base, machine.arena_align)
    placement = Placement(machine, arena)
    bands = tuple(_band(c, placement, used, occupancy, emit_fuse) for c in contractions)
    dealt = tuple(tuple(deal(b.instances(), range(used)).items()) for b in bands)
    active = max((len({u for _, u in d}) for d in dealt), default=1)
    budget = max(1, machine.stage_flits // active) if pass_budget is None else pass_budget
    if not 1 <= budget <= machine.stage_flits:
        raise CompileError(f"pass budget {budget} is not in 1..{machine.stage_flits} (staging slots)")
    return Schedule(machine.name, placement.buffers, bands, dealt, budget)


def _band(c: Contraction, placement: Placement, clusters: int, occupancy: bool, emit_fuse: bool) -> Band:
    machine = placement.machine
    for v in (c.a, c.b):
        if v.role not in _HOST_ROLES:
            raise CompileError(
                f"{c.c.name}: operand {v.name} is computed on the machine; reading it back needs a quantise "
                "pass of the memory mover, which the compiler does not emit"
            )
    m, n, k = c.a.shape[0], c.b.shape[0], c.a.shape[1]
    tiling = (
        check(c.tiling, machine) if c.tiling else choose(m, n, k, machine, clusters if occupancy else None)
    )
    placement.place(c.a, MxEntry(tiling.gm, tiling.nk, "a"))
    placement.place(c.b, MxEntry(tiling.gn, tiling.nk, "b"))
    placement.place(c.c, Tile.of(c.c.shape, tiling.gm, tiling.gn))
    band = Band(
        engine="MG",
        extents=(m, n, k),
        tiling=tiling,
        ops=("contract",),
        reads=(c.a.name, c.b.name),
        writes=(c.c.name,),
        emit_fuse=emit_fuse and "emit_fuse" in machine.features,
    )
    check_cover(c.c.shape, band.rects())
    return _residency(band, machine)


def _residency(band: Band, machine: MachineSpec) -> Band:
    """B stays in L1 across the row tiles of a column band when all its chunks fit (5.5)."""
    per_half = machine.bank_entries[1] // (band.tiling.gn * band.tiling.nk)
    a, b = band.reads
    if band.grid[0] > 1 and band.chunks <= per_half * machine.banks:
        # one chunk leaves the other half free for the next column; several have places of their own
        return replace(band, resident=(b,), double_buffered=(a,) if band.chunks > 1 else (a, b))
    return replace(band, double_buffered=(a, b))


def pack_operands(schedule: Schedule, operands: Mapping[str, npt.NDArray[np.float16]]) -> dict[str, bytes]:
    """Bytes of every buffer the host fills, in its byte order.

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
            raise CompileError(
                f"operand {name} is {array.dtype} {array.shape}, expected float16 {buffer.shape}"
            )
        out[name] = from_key(buffer.layout).pack(array)
    return out
