# SPDX-License-Identifier: Apache-2.0
"""Encoded programs and operand bytes to an artifact (docs/spec/compiler.md 10.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kohakuabi import Artifact, Barrier, Image, Output, Step, first_conflict
from kohakutpu.dispatch.rounds import Program, plan_rounds, round_steps
from kohakutpu.dispatch.work import UnitWork
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec

LAYER = "L0"


def _programs(work: UnitWork, machine: MachineSpec) -> list[Program]:
    nodes = machine.units(work.engine)
    if not 0 <= work.unit < len(nodes):
        raise CompileError(
            f"unit {work.engine}{work.unit}: machine {machine.name} has {len(nodes)} of this type"
        )
    x, y = nodes[work.unit]
    for number, p in enumerate(work.programs):
        if not p.payloads:
            raise CompileError(
                f"unit {work.engine}{work.unit}: program {number} is empty; it cannot be dispatched"
            )
    return [Program(x, y, p.payloads, p.cycles) for p in work.programs]


def link(
    machine: MachineSpec,
    bands: Sequence[Sequence[UnitWork]],
    images: Sequence[Image],
    outputs: Sequence[Output],
    meta: Mapping[str, Any] | None = None,
) -> Artifact:
    """Plan rounds and assemble the artifact; bands run one after another.

    Raises:
        CompileError: a unit the machine does not have, an empty program, conflicting images.
    """
    conflict = first_conflict(images)
    if conflict:
        a, b, at = conflict
        raise CompileError(f"images {a.name} and {b.name} put different bytes at {at:#x}; place them apart")
    steps: list[Step] = []
    payloads: list[int] = []
    cycles: list[int] = []
    for band in bands:
        for group in plan_rounds([_programs(u, machine) for u in band], machine):
            steps += [*round_steps(group, machine.credit), Barrier()]
            payloads += [w for p in group for w in p.payloads]
            cycles.append(sum(p.cycles for p in group))
    info = dict(meta or {})
    info["counters"] = {
        **info.get("counters", {}),
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
