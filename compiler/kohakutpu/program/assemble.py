# SPDX-License-Identifier: Apache-2.0
"""Unit programs to payload words."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from kohakutpu.dispatch import MoverPass, UnitWork, Words
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import cost
from kohakutpu.program.columns import joined
from kohakutpu.program.encode import encode_all
from kohakutpu.program.instructions import UnitProgram
from kohakutpu.program.moves import Move
from kohakutpu.program.moves import encode as encode_move

LAYER = "L1"


def assemble(programs: Iterable[UnitProgram], machine: MachineSpec) -> list[UnitWork]:
    """Payloads of every program and the cycles it takes at most.

    Raises:
        EncodeError: a value its field cannot hold; the message starts with the instruction.
    """
    out = []
    for u in programs:
        core = cost.Core()
        words = iter(encode_all(joined([p.instructions for p in u.passes]), machine))
        passes = tuple(
            Words(tuple(islice(words, len(p))), cost.at_most(p.instructions, machine, core), u.engine)
            for p in u.passes
        )
        out.append(UnitWork(u.engine, u.unit, passes))
    return out


def assemble_moves(moves: Iterable[Move]) -> list[MoverPass]:
    """Register writes and modelled cycles of every move.

    Raises:
        EncodeError: a walk the mover cannot make; the message starts with the move.
    """
    return [MoverPass(encode_move(m), m.cycles) for m in moves]
