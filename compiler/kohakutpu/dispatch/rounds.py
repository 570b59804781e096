# SPDX-License-Identifier: Apache-2.0
"""Programs to rounds under the three limits (docs/spec/compiler.md 10.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import zip_longest

from kohakuabi import Await, Kick, Seed, Step, command_count
from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec

LAYER = "L0"


@dataclass(frozen=True)
class Program:
    """Payloads of one kick to the node (x, y), and its modelled cycles."""

    x: int
    y: int
    payloads: tuple[int, ...]
    cycles: int = 0


def round_robin(lists: Sequence[Sequence[Program]]) -> list[Program]:
    """First program of every list, then the second, ...; ragged tails appended."""
    return [p for row in zip_longest(*lists) for p in row if p is not None]


def round_steps(programs: Sequence[Program], credit: int, head: Sequence[Await] = ()) -> list[Step]:
    """Awaits of burst acknowledgements, seed, one kick a program from slot 0 up, one await a node for its total."""
    steps: list[Step] = [*head, Seed(credit)]
    counts: dict[tuple[int, int], int] = {}
    base = 0
    for p in programs:
        steps.append(Kick(p.x, p.y, base, len(p.payloads)))
        base += len(p.payloads)
        counts[(p.x, p.y)] = counts.get((p.x, p.y), 0) + len(p.payloads)
    steps += [Await(x, y, n) for (x, y), n in counts.items()]
    return steps


def fits(programs: Sequence[Program], machine: MachineSpec, head: Sequence[Await] = ()) -> str | None:
    """The limit a round of ``programs`` breaks, or None.

    Staging, commands (measured with the builder that emits them) and credit. ``head`` are the awaits of burst
    acknowledgements it begins with.
    """
    flits = sum(len(p.payloads) for p in programs)
    if flits > machine.stage_flits:
        return f"{flits} payloads exceed the {machine.stage_flits} staging slots"
    credit = machine.credit
    if len(programs) >= credit:
        return f"{len(programs)} programs need more than the {credit} credits: each keeps one for good"
    commands = _commands(tuple(round_steps(programs, credit, head)))
    if commands > machine.ncmd:
        return f"{commands} commands exceed the {machine.ncmd} command slots"
    return None


@lru_cache(maxsize=4096)
def _commands(steps: tuple[Step, ...]) -> int:
    """Commands of a round; a long program repeats one."""
    return command_count(steps)


def windows(program: Program, size: int) -> list[Program]:
    """A program longer than ``size`` as consecutive programs of the same node.

    Nothing between two windows touches the unit, so they do what the whole would. Every window
    keeps the cycles of the whole: they only bound how long a round may take.
    """
    words = program.payloads
    if len(words) <= size:
        return [program]
    return [replace(program, payloads=words[i : i + size]) for i in range(0, len(words), size)]


def plan_rounds(
    lists: Sequence[Sequence[Program]], machine: MachineSpec, head: Sequence[Await] = ()
) -> list[list[Program]]:
    """Rounds of all programs; each list is one unit's programs in order.

    Args:
        head: awaits of burst acknowledgements the first round begins with.

    Returns:
        the programs of every round, in slot order.

    Raises:
        CompileError: a machine whose limits do not even hold one program.
    """
    rounds: list[list[Program]] = [[]]
    cut = [[w for p in programs for w in windows(p, machine.stage_flits)] for programs in lists]
    for program in round_robin(cut):
        broken = fits([*rounds[-1], program], machine, head if len(rounds) == 1 else ())
        if broken and rounds[-1]:
            rounds.append([])
            broken = fits([program], machine)
        if broken:
            raise CompileError(f"program for node ({program.x},{program.y}): {broken}")
        rounds[-1].append(program)
    return [group for group in rounds if group]
