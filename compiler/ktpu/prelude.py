# SPDX-License-Identifier: Apache-2.0
"""What runs before a program to bring its operands into their byte orders: moves, and passes of the vector cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kohakuabi import Artifact
from kohakutpu.dispatch import link
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Move, UnitProgram, assemble, assemble_moves
from kohakutpu.program.relayout import relayout_program
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.relayout import RelayoutBand


@dataclass(frozen=True)
class Relayout:
    """A conversion on the vector cores between two byte addresses (docs/spec/compiler.md 7.2, 7.3)."""

    band: RelayoutBand
    source: int
    target: int


Step = Move | Relayout


@dataclass(frozen=True)
class Prelude:
    """Steps in order: moves before each pass of the cores, its programs, and the moves behind the last one."""

    moves: list[list[Move]]
    programs: list[list[UnitProgram]]
    rest: list[Move]


def prelude(steps: Sequence[Step], machine: MachineSpec) -> Prelude:
    """Divide ``steps`` at the passes of the vector cores."""
    out = Prelude([], [], [])
    for step in steps:
        if isinstance(step, Move):
            out.rest.append(step)
            continue
        out.moves.append(out.rest.copy())
        out.rest.clear()
        out.programs.append(_programs(step, machine))
    return out


def _programs(step: Relayout, machine: MachineSpec) -> list[UnitProgram]:
    units: dict[int, list[int]] = {}
    for (number, *_), unit in deal(step.band.instances(), range(len(machine.units("VC")))).items():
        units.setdefault(unit, []).append(number)
    budget = max(1, machine.stage_flits // len(units))
    return [
        relayout_program(unit, step.band.work(tuple(numbers), step.source, step.target), machine, budget)
        for unit, numbers in sorted(units.items())
    ]


def alone(steps: Sequence[Step], machine: MachineSpec) -> Artifact:
    """A program of nothing but ``steps``."""
    before = prelude(steps, machine)
    work = [*(assemble(p, machine) for p in before.programs), []]
    passes = [assemble_moves(m) for m in (*before.moves, before.rest)]
    return link(machine, work, [], [], {"kernel": "reorder"}, (), passes, reorder=len(work))
