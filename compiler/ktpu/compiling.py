# SPDX-License-Identifier: Apache-2.0
"""All six levels in one call."""

from __future__ import annotations

from dataclasses import dataclass

from kohakuabi import Artifact, Image, Output
from kohakutpu.dispatch import link
from kohakutpu.graph import contractions
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import UnitProgram, assemble
from kohakutpu.schedule import Schedule, emit, from_key, pack_operands, plan
from kohakutpu.schedule.layout import F16
from kohakutpu.tensor import Call


@dataclass(frozen=True)
class Compiled:
    """Every level of a compiled call; ``artifact`` is what runs."""

    call: Call
    machine: MachineSpec
    schedule: Schedule
    programs: list[list[UnitProgram]]
    artifact: Artifact

    def text(self) -> str:
        """Graph, schedule and unit programs as text."""
        parts = [self.call.trace.graph.text(), self.schedule.text()]
        parts += [u.text() for band in self.programs for u in band]
        return "\n\n".join(parts)


def compile(
    call: Call,
    machine: MachineSpec,
    *,
    clusters: int | None = None,
    occupancy: bool = True,
    emit_fuse: bool = True,
    pass_budget: int | None = None,
) -> Compiled:
    """Compile ``call`` for ``machine``.

    Args:
        clusters: use only the first so many clusters.
        occupancy: weigh idle clusters in the tile choice.
        emit_fuse: hand results out with the last sweep; off emits separate drains.
        pass_budget: instructions a program (1..stage_flits).

    Raises:
        kohakutpu.errors.CompileError: naming the object, the value, the limit and the fix.
    """
    schedule = plan(
        contractions(call.trace.graph),
        machine,
        clusters=clusters,
        occupancy=occupancy,
        emit_fuse=emit_fuse,
        pass_budget=pass_budget,
    )
    programs = emit(schedule, machine)
    packed = pack_operands(schedule, dict(call.operands))
    images = [Image(schedule.buffers[n].address, data, n) for n, data in packed.items()]
    outputs = [
        Output(b.name, b.address, b.nbytes, b.layout, b.shape)
        for b in schedule.buffers.values()
        if b.role == "out"
    ]
    meta = {
        "kernel": call.trace.kernel,
        "extents": call.trace.extents,
        "knobs": {**call.trace.knobs, "emit_fuse": emit_fuse},
        "schedule": schedule.text(),
        "notes": [f"{o.name}: FP16 result, bound unknown, saturates at 65504" for o in outputs],
    }
    artifact = link(machine, [assemble(band, machine) for band in programs], images, outputs, meta)
    return Compiled(call, machine, schedule, programs, artifact)


def read_output(output: Output, raw: bytes) -> F16:
    """Bytes of a result region as an array of its logical shape."""
    rows, cols = output.shape
    return from_key(output.layout).unpack(raw, (rows, cols))
