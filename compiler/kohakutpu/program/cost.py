# SPDX-License-Identifier: Apache-2.0
"""Analytic cycles of cluster instructions (docs/spec/compiler.md 14.2); tag ``model``."""

from __future__ import annotations

from collections.abc import Iterable

from kohakutpu.ints import cdiv, up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.instructions import Drain, Fill, Gemm, Instruction

LAYER = "L1"

FILL_CYCLES_PER_ENTRY = 4


def cycles(ins: Instruction, machine: MachineSpec) -> int:
    """Cycles of one instruction with nothing hidden."""
    match ins:
        case Fill(n=n):
            return FILL_CYCLES_PER_ENTRY * n
        case Gemm():
            macs = 4 * ins.gm * 4 * ins.gn * machine.kblock * up(ins.nk, machine.k_per_issue)
            return cdiv(macs, machine.macs_per_cycle)
        case Drain(n=n):
            return n
    raise TypeError(f"{ins!r} is not a cluster instruction")


def total(instructions: Iterable[Instruction], machine: MachineSpec) -> int:
    """Cycles of a program, everything charged."""
    return sum(cycles(i, machine) for i in instructions)
