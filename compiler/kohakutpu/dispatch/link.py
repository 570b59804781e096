# SPDX-License-Identifier: Apache-2.0
"""Unit programs and operand bytes to an artifact (docs/spec/compiler.md 10.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kohakuabi import Artifact, Barrier, Image, Output, Step
from kohakutpu.dispatch.encode import check_program, encode
from kohakutpu.dispatch.rounds import Program, plan_rounds, round_steps
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import UnitProgram, cost

LAYER = "L0"


def _programs(unit: UnitProgram, machine: MachineSpec) -> list[Program]:
    nodes = machine.units(unit.engine)
    x, y = nodes[unit.unit]
    out = []
    for p in unit.passes:
        check_program(p.instructions)
        words = tuple(encode(i, machine) for i in p.instructions)
        out.append(Program(x, y, words, cost.total(p.instructions, machine)))
    return out


def _check_images(images: Sequence[Image]) -> None:
    placed = sorted(images, key=lambda i: i.address)
    for a, b in zip(placed, placed[1:], strict=False):
        overlap = a.address + len(a.data) - b.address
        if overlap > 0:
            start = b.address - a.address
            same = min(overlap, len(b.data))
            if a.data[start : start + same] != b.data[:same]:
                raise CompileError(f"images {a.name} and {b.name} put different bytes at {b.address:#x}")


def link(
    machine: MachineSpec,
    bands: Sequence[Sequence[UnitProgram]],
    images: Sequence[Image],
    outputs: Sequence[Output],
    meta: Mapping[str, Any] | None = None,
) -> Artifact:
    """Encode, plan rounds and assemble the artifact; bands run one after another.

    Raises:
        CompileError: an encoding refused, a program that breaks a limit, conflicting images.
    """
    _check_images(images)
    steps: list[Step] = []
    payloads: list[int] = []
    cycles: list[int] = []
    for band in bands:
        for group in plan_rounds([_programs(u, machine) for u in band], machine):
            steps += [*round_steps(group, machine.credit), Barrier()]
            payloads += [w for p in group for w in p.payloads]
            cycles.append(sum(p.cycles for p in group))
    info = dict(meta or {})
    info.setdefault("counters", {})
    info["counters"] = {
        **info["counters"],
        "payloads": len(payloads),
        "rounds": len(cycles),
        "dispatches": len(bands),
        "image_bytes": sum(len(i.data) for i in images),
    }
    info["modelled_cycles"] = cycles
    artifact = Artifact(
        machine=machine.name,
        machine_hash=machine.digest(),
        payloads=tuple(payloads),
        images=tuple(images),
        steps=tuple(steps),
        outputs=tuple(outputs),
        limits={"stage_flits": machine.stage_flits, "ncmd": machine.ncmd, "credit_max": machine.credit},
        meta=info,
    )
    artifact.check(machine.digest())
    return artifact
