# SPDX-License-Identifier: Apache-2.0
"""All six levels in one call."""

from __future__ import annotations

from dataclasses import dataclass

from kohakuabi import Artifact, Image, Output
from kohakutpu.dispatch import link
from kohakutpu.graph import requests
from kohakutpu.ints import up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Move, UnitProgram, assemble, assemble_moves
from kohakutpu.program.moves import text as move_text
from kohakutpu.schedule import (
    Band,
    LaneOptions,
    Schedule,
    VectorBand,
    emit,
    emit_moves,
    from_key,
    pack_operands,
    plan,
)
from kohakutpu.schedule.layout import F16
from kohakutpu.tensor import Call


@dataclass(frozen=True)
class Compiled:
    """Every level of a compiled call; ``artifact`` is what runs. ``moves`` are the mover passes before each band."""

    call: Call
    machine: MachineSpec
    schedule: Schedule
    programs: list[list[UnitProgram]]
    artifact: Artifact
    moves: tuple[tuple[Move, ...], ...] = ()

    @property
    def relaxed(self) -> tuple[str, ...]:
        """Epilogues that go through memory although they were to run on the arriving tile, with the reason."""
        return self.schedule.relaxed

    def summary(self) -> str:
        """One line: kernel, extents, what it costs to start, and every relaxation."""
        counters = self.artifact.meta["counters"]
        extents = " ".join(f"{k}={v}" for k, v in self.call.trace.extents.items())
        line = (
            f"{self.call.trace.kernel} {extents}: {counters['dispatches']} dispatches, {counters['rounds']} rounds, "
            f"{counters['payloads']} payloads, {counters['temp_bytes']} bytes of temps"
        )
        return "; ".join([line, *(f"relaxed: {r}" for r in self.relaxed)])

    def text(self) -> str:
        """Graph, schedule and unit programs as text."""
        parts = [self.call.trace.graph.text(), self.schedule.text()]
        for number, band in enumerate(self.programs):
            moves = self.moves[number] if self.moves else ()
            parts += ["\n".join(["mover", *(f"  {move_text(m)}" for m in moves)])] if moves else []
            parts += [u.text() for u in band]
        return "\n\n".join(parts)


def compile(
    call: Call,
    machine: MachineSpec,
    *,
    clusters: int | None = None,
    occupancy: bool = True,
    cores: int | None = None,
    emit_fuse: bool = True,
    fuse: str = "auto",
    interleave: int = 0,
    group: int = 1,
    pass_budget: int | None = None,
) -> Compiled:
    """Compile ``call`` for ``machine``.

    Args:
        clusters: use only the first so many clusters.
        occupancy: weigh idle clusters in the tile choice.
        cores: use only the first so many vector cores.
        emit_fuse: hand results out with the last sweep; off emits separate drains.
        fuse: epilogues on the tile where it arrives: "auto" if they fit, "require", or "never".
        interleave, group: steps of a vector kernel that alternate (0: as many as fit), and words of a chain
            group (1, 2, 4); no result depends on them.
        pass_budget: instructions a program (1..stage_flits).

    Raises:
        kohakutpu.errors.CompileError: naming the object, the value, the limit and the fix.
    """
    schedule = plan(
        requests(call.trace.graph),
        machine,
        clusters=clusters,
        cores=cores,
        occupancy=occupancy,
        emit_fuse=emit_fuse,
        fuse=fuse,
        lanes=LaneOptions(interleave, group),
        pass_budget=pass_budget,
    )
    programs = emit(schedule, machine)
    moves = emit_moves(schedule, machine)
    packed = pack_operands(schedule, dict(call.operands))
    images = [Image(schedule.buffers[n].address, data, n) for n, data in packed.items()]
    outputs = [
        Output(b.name, b.address, up(from_key(b.layout).nbytes(b.shape), machine.word_bytes), b.layout, b.shape)
        for b in schedule.buffers.values()
        if b.role == "out"
    ]
    meta = {
        "kernel": call.trace.kernel,
        "extents": call.trace.extents,
        "knobs": {**call.trace.knobs, "emit_fuse": emit_fuse, "fuse": fuse},
        "schedule": schedule.text(),
        "notes": list(schedule.notes),
        "counters": {
            "relaxed": len(schedule.relaxed),
            "temp_bytes": sum(b.nbytes for b in schedule.buffers.values() if b.role == "temp"),
            **(_moved(schedule, moves) if schedule.conversions else {}),
        },
    }
    arrivals = [_arrivals(band) for band in schedule.bands]
    work = [assemble(band, machine) for band in programs]
    passes = [assemble_moves(before) for before in moves]
    artifact = link(machine, work, images, outputs, meta, arrivals, passes)
    return Compiled(call, machine, schedule, programs, artifact, tuple(map(tuple, moves)))


def _moved(schedule: Schedule, moves: list[list[Move]]) -> dict[str, int]:
    """Counters of what the mover does for the program (docs/spec/compiler.md 7.4)."""
    return {
        "quantised": len(schedule.conversions),
        "moves": sum(len(before) for before in moves),
        "staging_full": schedule.staging_full,
    }


def _arrivals(band: Band | VectorBand) -> dict[tuple[str, int], int]:
    """Burst acknowledgements the band waits for, a receiver."""
    return {("VC", unit): band.acks for unit in band.nodes} if isinstance(band, VectorBand) else {}


def read_output(output: Output, raw: bytes) -> F16:
    """Bytes of a result region, whole words, as an array of its logical shape."""
    rows, cols = output.shape
    order = from_key(output.layout)
    return order.unpack(raw[: order.nbytes((rows, cols))], (rows, cols))
