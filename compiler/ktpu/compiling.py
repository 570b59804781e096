# SPDX-License-Identifier: Apache-2.0
"""All six levels in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Any

from kohakuabi import Artifact, Image, Output
from kohakutpu.collector import paused
from kohakutpu.dispatch import link
from kohakutpu.errors import CompileError
from kohakutpu.graph import requests
from kohakutpu.graph.lower import buffers
from kohakutpu.ints import up
from kohakutpu.kernels import Trace
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Move, UnitProgram, assemble, assemble_moves
from kohakutpu.program.moves import text as move_text
from kohakutpu.schedule import (
    LaneOptions,
    Schedule,
    arrivals,
    emit,
    emit_moves,
    from_key,
    pack_operands,
    plan,
)
from kohakutpu.schedule.layout import F16
from kohakutpu.schedule.placement import guard
from kohakutpu.schedule.requantise import Requantise, ToRows
from kohakutpu.tensor import Call
from ktpu.prelude import Step, prelude

CompileOption = int | str | bool | None


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
        behind = self.moves[len(self.programs)] if len(self.moves) > len(self.programs) else ()
        parts += ["\n".join(["mover", *(f"  {move_text(m)}" for m in behind)])] if behind else []
        return "\n\n".join(parts)


def expect(what: str, given: object, kind: type, example: str) -> None:
    """Refuse an argument of another type.

    Raises:
        kohakutpu.errors.CompileError: naming both and an example.
    """
    if not isinstance(given, kind):
        raise CompileError(f"{what} is needed, such as {example}; got {type(given).__name__} {given!r:.60}")


@paused()
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
    convert: str = "auto",
    reuse_temps: bool = True,
    stage_operands: bool = True,
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
        convert: what brings tiles into rows: "mover", "cores", or "auto" for the mover where it can.
        reuse_temps: temps that are never alive together may share bytes; it changes no result.
        stage_operands: operands that products read at least twice over may be placed in the staging store; it
            changes no result.

    Raises:
        kohakutpu.errors.CompileError: naming the object, the value, the limit and the fix; a call on device
            arrays, which only their device can place.
    """
    expect("a call", call, Call, "ktpu.matmul(a, b)")
    expect("a machine", machine, MachineSpec, 'ktpu.machine("mm_mesh")')
    schedule = scheduled(
        call.trace,
        machine,
        clusters=clusters,
        cores=cores,
        occupancy=occupancy,
        emit_fuse=emit_fuse,
        fuse=fuse,
        interleave=interleave,
        group=group,
        pass_budget=pass_budget,
        convert=convert,
        reuse_temps=reuse_temps,
        stage_operands=stage_operands,
    )
    packed = pack_operands(schedule, call.values)
    images = [Image(schedule.buffers[n].address, data, n) for n, data in packed.items()]
    return finished(call, machine, schedule, images, knobs={"emit_fuse": emit_fuse, "fuse": fuse})


OPTIONS = tuple(n for n, p in signature(compile).parameters.items() if p.kind is Parameter.KEYWORD_ONLY)
"""Names of the compile options."""


def scheduled(trace: Trace, machine: MachineSpec, **options: Any) -> Schedule:
    """The first half of :func:`compile`: bands, byte orders and places; options and errors are the same."""
    for name in options:
        if name not in OPTIONS:
            raise CompileError(f"{trace.kernel}: no compile option {name}; there are: {', '.join(OPTIONS)}")
    lanes = LaneOptions(options.pop("interleave", 0), options.pop("group", 1))
    return plan(
        requests(trace.graph),
        machine,
        lanes=lanes,
        adjacent=trace.graph.adjacent,
        buffers=buffers(trace.graph),
        **options,
    )


def finished(
    call: Call,
    machine: MachineSpec,
    schedule: Schedule,
    images: Sequence[Image],
    *,
    knobs: Mapping[str, object],
    before: Sequence[Step] = (),
) -> Compiled:
    """The second half: unit programs and the artifact of a schedule whose buffers have their final addresses.

    Args:
        images: what loading the artifact writes.
        knobs: options to note in the artifact.
        before: what brings operands into their byte orders.

    Raises:
        CompileError: buffers at addresses where one spoils another that is read later.
    """
    guard(schedule)
    earlier = prelude(before, machine)
    programs = [*earlier.programs, *emit(schedule, machine)]
    first, *later = emit_moves(schedule, machine)
    moves = [*earlier.moves, [*earlier.rest, *first], *later]
    outputs = [
        Output(b.name, b.address, up(from_key(b.layout).nbytes(b.shape), machine.word_bytes), b.layout, b.shape)
        for b in schedule.buffers.values()
        if b.role == "out"
    ]
    meta = {
        "kernel": call.trace.kernel,
        "extents": call.trace.extents,
        "knobs": {**call.trace.knobs, **knobs},
        "schedule": schedule.text(),
        "notes": list(schedule.notes),
        "temps": [[b.address, b.nbytes] for b in schedule.buffers.values() if b.role == "temp"],
        "counters": {
            **planned(schedule),
            "moves": sum(map(len, moves)),
            "temp_bytes": sum(b.nbytes for b in schedule.buffers.values() if b.role == "temp"),
        },
    }
    awaited = [*({} for _ in earlier.programs), *arrivals(schedule)]
    work = [assemble(band, machine) for band in programs]
    passes = [assemble_moves(between) for between in moves]
    reorder = len(earlier.programs) + _relayouts(schedule)
    artifact = link(machine, work, images, outputs, meta, awaited, passes, reorder=reorder)
    return Compiled(call, machine, schedule, programs, artifact, tuple(map(tuple, moves)))


def planned(schedule: Schedule) -> dict[str, int]:
    """Counters of docs/spec/compiler.md 14.2 that a schedule decides.

    ``quantised`` are conversions that make MXFP7 entries, ``relayouts_device`` those that reorder, on either engine.
    """
    return {
        "relayouts": 0,  # the compiler refuses what only the host could reorder
        "relayouts_device": _relayouts(schedule) + sum(isinstance(c, ToRows) for c in schedule.conversions),
        "quantised": sum(isinstance(c, Requantise) for c in schedule.conversions),
        "staging_full": schedule.staging_full,
        "relaxed": len(schedule.relaxed),
    }


def _relayouts(schedule: Schedule) -> int:
    """Passes of the vector cores that only reorder; they are bands, but compute nothing."""
    return sum(b.role == "relayout" for b in schedule.bands)


def read_output(output: Output, raw: bytes) -> F16:
    """Bytes of a result region, whole words, as an array of its logical shape."""
    rows, cols = output.shape
    order = from_key(output.layout)
    return order.unpack(raw[: order.nbytes((rows, cols))], (rows, cols))
