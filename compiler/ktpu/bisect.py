# SPDX-License-Identifier: Apache-2.0
"""Shortest beginning of a program on which two devices differ: by step first, then by instruction.

A cut program is a legal program: its kicks are shortened, its awaits count what is left, its slots
are consecutive again. Every run starts from reset, so the answer is a true boundary: the program up
to the instruction before it agrees in everything compared, with it something differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from kohakuabi import Artifact
from kohakuabi.parts import Round
from kohakuabi.steps import Await, Barrier, Kick, Move, Seed, Step
from ktpu.diagnosis import places, unit_kinds
from ktpu.replay import ReplayReport

Rerun = Callable[[Artifact], ReplayReport]


@dataclass(frozen=True)
class Boundary:
    """The first difference.

    Args:
        artifact: the shortest program that differs.
        report: its comparison.
        where: step and instruction it ends with, in words.
        runs: runs it took.
    """

    artifact: Artifact
    report: ReplayReport
    where: str
    runs: int


def acts(r: Round) -> list[Step]:
    """The steps of a round that change something: kicks and moves."""
    return [s for s in r.steps if isinstance(s, (Kick, Move))]


def cut(artifact: Artifact, index: int, keep: int, instructions: int | None = None) -> Artifact:
    """The rounds before ``index`` and of that round the first ``keep`` kicks and moves.

    Args:
        instructions: how many the last kept step, a kick, dispatches; all by default.
    """
    steps: list[Step] = []
    payloads: list[int] = []
    for r in artifact.rounds():
        if r.index > index:
            break
        head, words = (list(r.steps), list(r.payloads)) if r.index < index else _head(r, keep, instructions)
        steps += [Barrier(), *head] if steps and head else head
        payloads += words
    return replace(artifact, steps=tuple(steps), payloads=tuple(payloads))


def _head(r: Round, keep: int, instructions: int | None) -> tuple[list[Step], list[int]]:
    """The beginning of one round as steps and payloads."""
    last = acts(r)[keep - 1] if keep else None
    out: list[Step] = []
    words: list[int] = []
    sent: Counter[tuple[int, int]] = Counter()
    kicked = False  # awaits before the first kick are of acknowledgements of earlier rounds
    left = keep
    for step in r.steps:
        match step:
            case Await(x, y) if kicked:
                if sent[x, y]:
                    out.append(Await(x, y, sent.pop((x, y))))
            case Kick(x, y, base, n) if left:
                n = instructions if step is last and instructions is not None else n
                out.append(Kick(x, y, len(words), n))
                words += r.payloads[base : base + n]
                sent[x, y] += n
                kicked = True
            case Move() if left:
                out.append(step)
            case Seed() | Await():
                out.append(step)
        if isinstance(step, (Kick, Move)):
            left = max(0, left - 1)
            if not left:
                break
    out += [Await(x, y, n) for (x, y), n in sent.items() if n]
    return out, words


def first(low: int, high: int, differs: Callable[[int], bool]) -> int:
    """Smallest n of (low, high] that differs, if ``low`` agrees and ``high`` differs."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle, high)
    return high


def bisect(report: ReplayReport, rerun: Rerun) -> Boundary | None:
    """Narrow the difference of ``report`` down to one instruction.

    Args:
        rerun: runs a program on both devices, fresh ones with the same seeds.

    Returns:
        the boundary; None if the difference does not come back in a second run.
    """
    r = next(r for r in report.artifact.rounds() if r.index == report.rounds[-1].index)
    steps = acts(r)
    seen: dict[tuple[int, int | None], ReplayReport] = {}

    def differs(keep: int, instructions: int | None = None) -> bool:
        part = cut(report.artifact, r.index, keep, instructions)
        if not part.steps:
            return False
        found = rerun(part)
        seen[keep, instructions] = found
        return bool(found.findings())

    def boundary(keep: int, instructions: int | None, where: str) -> Boundary:
        shortest = cut(report.artifact, r.index, keep, instructions)
        return Boundary(shortest, seen[keep, instructions], where, len(seen))

    if not differs(len(steps)):
        return None
    if not steps or differs(0):
        return boundary(0, None, f"before the first step of round {r.index}")
    keep = first(0, len(steps), differs)
    step = steps[keep - 1]
    if not isinstance(step, Kick):
        return boundary(keep, None, f"round {r.index}, move of the mover: {step}")
    n = first(0, step.n, lambda i: differs(keep, i))
    count = None if n == step.n else n
    *_, ends = cut(report.artifact, r.index, keep, count).rounds()
    return boundary(keep, count, places(ends, unit_kinds(report.artifact))[-1].text())
