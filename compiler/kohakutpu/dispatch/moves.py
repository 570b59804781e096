# SPDX-License-Identifier: Apache-2.0
"""Rounds of mover passes (docs/spec/compiler.md 10.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kohakuabi import Move, command_count
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec

LAYER = "L0"


@dataclass(frozen=True)
class MoverPass:
    """Register writes of one move and its modelled cycles."""

    writes: tuple[tuple[int, int], ...]
    cycles: int = 0


def move_rounds(passes: Sequence[MoverPass], machine: MachineSpec) -> list[tuple[list[Move], int]]:
    """(moves, modelled cycles) of each round, as many moves as the command slots hold.

    Raises:
        CompileError: a machine whose command slots do not even hold one move.
    """
    rounds: list[tuple[list[Move], int]] = []
    for p in passes:
        step = Move(p.writes)
        need = command_count([step])
        if need > machine.ncmd:
            raise CompileError(f"a move of {need} commands exceeds the {machine.ncmd} command slots")
        if not rounds or command_count([*rounds[-1][0], step]) > machine.ncmd:
            rounds.append(([], 0))
        steps, cycles = rounds[-1]
        rounds[-1] = ([*steps, step], cycles + p.cycles)
    return rounds
