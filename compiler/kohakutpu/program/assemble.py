# SPDX-License-Identifier: Apache-2.0
"""Unit programs to payload words."""

from __future__ import annotations

from collections.abc import Iterable

from kohakutpu.dispatch import MoverPass, UnitWork, Words
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import cost
from kohakutpu.program.encode import encode
from kohakutpu.program.instructions import UnitProgram
from kohakutpu.program.moves import Move
from kohakutpu.program.moves import encode as encode_move
from kohakutpu.program.vector_words import Word

LAYER = "L1"


def assemble(programs: Iterable[UnitProgram], machine: MachineSpec) -> list[UnitWork]:
    """Payloads of every program and the cycles it takes at most.

    Raises:
        EncodeError: a value its field cannot hold; the message starts with the instruction.
    """
    out = []
    for u in programs:
        loaded: dict[int, Word] = {}
        words = tuple(
            Words(
                tuple(encode(i, machine) for i in p.instructions),
                cost.at_most(p.instructions, machine, loaded),
                u.engine,
            )
            for p in u.passes
        )
        out.append(UnitWork(u.engine, u.unit, words))
    return out


def assemble_moves(moves: Iterable[Move]) -> list[MoverPass]:
    """Register writes and modelled cycles of every move.

    Raises:
        EncodeError: a walk the mover cannot make; the message starts with the move.
    """
    return [MoverPass(encode_move(m), m.cycles) for m in moves]
