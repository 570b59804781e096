# SPDX-License-Identifier: Apache-2.0
"""Cycles of unit programs, an instruction at a time (docs/spec/compiler.md 14.2); tag ``model``."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from kohakutpu.cost.profile import HiddenFills, Profile, Spent, filled
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.cost import cycles, executed_words
from kohakutpu.program.instructions import Desc, Dims, Drain, Fill, Gemm, Image, Instruction, Run
from kohakutpu.program.moves import Move
from kohakutpu.program.vector_words import Bar, Halt, Seti, Setmode, Setvl, Vdrain, Vfill, Word

LAYER = "L1"

_CONTROL = (Setvl, Setmode, Seti, Bar, Vfill, Vdrain)


def program(instructions: Iterable[Instruction], machine: MachineSpec, profile: Profile) -> Spent:
    """What one unit spends on its instructions of one band, in order.

    Args:
        instructions: all passes of the unit; a vector core finds nothing in its instruction memory.
    """
    listed = list(instructions)
    vector = any(isinstance(i, Image | Desc | Dims | Run) for i in listed)
    return (_vector if vector else _cluster)(listed, machine, profile)


def moves(listed: Iterable[Move]) -> Spent:
    """What the mover spends on a sequence of moves."""
    chosen = list(listed)
    return Spent(
        moved=sum(m.cycles for m in chosen), payloads=len(chosen), words=sum(sum(m.traffic) for m in chosen)
    )


def _cluster(instructions: list[Instruction], machine: MachineSpec, profile: Profile) -> Spent:
    mac = fill = drain = words = 0
    hidden = HiddenFills()
    entry_words = machine.mx_entry_bytes // machine.word_bytes
    for ins in instructions:
        match ins:
            case Fill(n=n):
                fill += filled(n, profile.refill, hidden, profile)
                words += entry_words * n
            case Gemm():
                fill += filled((ins.gm + ins.gn) * ins.nk, not profile.refill, hidden, profile)
                mac += cycles(ins, machine)
                hidden.sweep(cycles(ins, machine))
                words += ins.gm * ins.gn if ins.emit and not ins.to else 0
            case Drain():
                drain += cycles(ins, machine)
                words += 0 if ins.fuse or ins.to else ins.n
    return Spent(mac, fill, drain, hidden=hidden.total, payloads=len(instructions), words=words)


def _vector(instructions: list[Instruction], machine: MachineSpec, profile: Profile) -> Spent:
    memory: dict[int, Word] = {}
    bounds: dict[int, dict[int, int]] = {}
    lanes = control = words = 0
    entry_words = machine.mx_entry_bytes // machine.word_bytes
    for ins in instructions:
        match ins:
            case Image(at=at, word=word):
                memory[at] = word
                control += profile.control
            case Desc():
                control += profile.control
            case Dims():
                bounds.setdefault(ins.ad, {})[ins.dim] = ins.bound or 1
                control += profile.control
            case Run():
                for word, chunks in executed_words(memory, ins.pc, machine):
                    if isinstance(word, Vfill | Vdrain):
                        each = entry_words if isinstance(word, Vdrain) and word.mx else 1
                        words += each * prod(bounds.get(word.ad, {}).values())
                    if isinstance(word, _CONTROL):
                        control += profile.control
                    elif isinstance(word, Halt):
                        control += chunks * profile.control
                    else:
                        lanes += chunks
    return Spent(
        lanes=lanes, control=control, walk=profile.walk * words, payloads=len(instructions), words=words
    )
