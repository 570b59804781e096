# SPDX-License-Identifier: Apache-2.0
"""Analytic cycles of unit programs (docs/spec/compiler.md 14.2); tag ``model``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kohakutpu.ints import cdiv, up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.instructions import Desc, Dims, Drain, Fill, Gemm, Image, Instruction, Run
from kohakutpu.program.vector_words import Bar, Halt, Imm, Loop, Seti, Setmode, Setvl, Vdrain, Vfill, Word

LAYER = "L1"

FILL_CYCLES_PER_ENTRY = 4


ISSUED = (Setvl, Setmode, Seti, Bar, Vfill, Vdrain)
"""Words of a kernel that cost their issue alone; an immediate is part of its VSETI."""


def cycles(ins: Instruction, machine: MachineSpec) -> int:
    """Cycles of one instruction with nothing hidden; a RUN needs its kernel, see :func:`total`."""
    match ins:
        case Fill(n=n):
            return FILL_CYCLES_PER_ENTRY * n
        case Gemm():
            macs = 4 * ins.gm * 4 * ins.gn * machine.kblock * up(ins.nk, machine.k_per_issue)
            return cdiv(macs, machine.macs_per_cycle)
        case Drain(n=n):
            return n
        case Image() | Desc() | Dims():
            return 1
    raise TypeError(f"{ins!r} has no cycles of its own")


def kernel_cycles(words: Mapping[int, Word], pc: int, machine: MachineSpec) -> int:
    """Cycles of one RUN of the kernel in instruction memory, VHALT included.

    A loop is charged once per iteration its scalar register was set to.
    """
    spent, length, scalars = 0, machine.vlmax, {}
    at, repeat, left, top, end = pc, False, 0, 0, -1
    while at in words:
        word = words[at]
        following = at + 1
        match word:
            case Seti(to):
                follower = words.get(at + 1)
                scalars[to] = follower.value if isinstance(follower, Imm) else 0
                following = at + 2
            case Setvl(sa):
                length = scalars.get(f"S{sa}", length)
            case Loop(sa, body):
                repeat, left, top, end = True, scalars.get(f"S{sa}", 1), at + 1, at + 1 + body
        spent += 1 if isinstance(word, ISSUED) else cdiv(length, machine.slices)
        if isinstance(word, Halt):
            return spent
        if repeat and following == end:
            left -= 1
            repeat = left > 0
            following = top if repeat else end
        at = following
    return spent


def total(instructions: Iterable[Instruction], machine: MachineSpec, loaded: dict[int, Word] | None = None) -> int:
    """Cycles of a program, everything charged.

    Args:
        loaded: instruction memory of the core so far; advanced in place.
    """
    memory = {} if loaded is None else loaded
    spent = 0
    for ins in instructions:
        if isinstance(ins, Image):
            memory[ins.at] = ins.word
        spent += kernel_cycles(memory, ins.pc, machine) if isinstance(ins, Run) else cycles(ins, machine)
    return spent
