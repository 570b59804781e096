# SPDX-License-Identifier: Apache-2.0
"""Unit programs to payload words."""

from __future__ import annotations

from collections.abc import Iterable

from kohakutpu.dispatch import UnitWork, Words
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import cost
from kohakutpu.program.encode import encode
from kohakutpu.program.instructions import UnitProgram

LAYER = "L1"


def assemble(programs: Iterable[UnitProgram], machine: MachineSpec) -> list[UnitWork]:
    """Payloads and modelled cycles of every program.

    Raises:
        EncodeError: a value its field cannot hold; the message starts with the instruction.
    """
    return [
        UnitWork(
            u.engine,
            u.unit,
            tuple(
                Words(tuple(encode(i, machine) for i in p.instructions), cost.total(p.instructions, machine))
                for p in u.passes
            ),
        )
        for u in programs
    ]
