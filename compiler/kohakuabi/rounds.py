# SPDX-License-Identifier: Apache-2.0
"""What a round must keep to (docs/spec/fabric.md 8.1 and 8.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from kohakuabi.commands import MOVER_CTRL, MOVER_END, MOVER_GO, REGISTER_BYTES, command_count
from kohakuabi.errors import ArtifactError
from kohakuabi.steps import Await, Kick, Move, Seed, Step

LAYER = "leaf"

COUNT_END = 1 << 16
NODE_END = 16

Node = tuple[int, int]


@dataclass(frozen=True)
class Limits:
    """Staging slots, command slots and largest credit of the machine."""

    stage_flits: int
    ncmd: int
    credit_max: int

    @classmethod
    def of(cls, stated: Mapping[str, int]) -> Limits:
        """From an artifact's ``limits``.

        Raises:
            ArtifactError: a limit that is missing or below 1.
        """
        for f in fields(cls):
            if stated.get(f.name, 0) < 1:
                raise ArtifactError(f"limits: {f.name} is {stated.get(f.name)}; a machine has at least 1")
        return cls(**{f.name: stated[f.name] for f in fields(cls)})


def check_round(index: int, steps: Sequence[Step], limits: Limits, acknowledging: set[Node]) -> int:
    """Refuse a round that could hang, overrun or run something else.

    Args:
        acknowledging: nodes that acknowledge bursts.

    Returns:
        staging slots used.

    Raises:
        ArtifactError: naming the round, the step, its value and the limit.
    """
    try:
        used = _check_kicks(steps, limits.stage_flits)
        _check_credit(steps, limits.credit_max)
        _check_awaits(steps, acknowledging)
        _check_moves(steps)
        commands = command_count(steps)
        if commands > limits.ncmd:
            raise ArtifactError(f"{commands} commands exceed the {limits.ncmd} command slots")
    except ArtifactError as err:
        raise ArtifactError(f"round {index}: {err}") from err
    return used


def _check_kicks(steps: Sequence[Step], stage: int) -> int:
    kicks = [s for s in steps if isinstance(s, Kick)]
    used = 0
    for k in sorted(kicks, key=lambda k: k.base):
        if not (0 <= k.x < NODE_END and 0 <= k.y < NODE_END):
            raise ArtifactError(f"kick of node ({k.x},{k.y}); coordinates are 0..{NODE_END - 1}")
        if k.n < 1 or k.base < 0 or k.base + k.n > stage:
            raise ArtifactError(f"kick of {k.n} payloads from slot {k.base}; there are {stage} staging slots")
        if k.base != used:
            what = (
                f"slot {k.base} belongs to two programs" if k.base < used else f"no program uses slot {used}"
            )
            raise ArtifactError(f"kick of node ({k.x},{k.y}), slots {k.base}..{k.base + k.n - 1}: {what}")
        used += k.n
    return used


def _check_credit(steps: Sequence[Step], credit_max: int) -> None:
    seeds = [s.n for s in steps if isinstance(s, Seed)]
    kicks = sum(isinstance(s, Kick) for s in steps)
    for n in seeds:
        if not 1 <= n <= credit_max:
            raise ArtifactError(f"credit seed {n} is not in 1..{credit_max}")
    if kicks and (len(seeds) != 1 or _index(steps, Seed) > _index(steps, Kick)):
        raise ArtifactError(
            f"{len(seeds)} credit seeds; a round that kicks seeds once, before its first kick"
        )
    if kicks and kicks >= seeds[0]:
        raise ArtifactError(
            f"{kicks} programs with a credit of {seeds[0]}; each keeps one for good, so there must be fewer"
        )


def _check_moves(steps: Sequence[Step]) -> None:
    """A move writes mover registers only and is started once, by its last write."""
    for number, move in enumerate(s for s in steps if isinstance(s, Move)):
        for offset, value in move.writes:
            if not 0 <= offset < MOVER_END or offset % REGISTER_BYTES or value >> 64:
                raise ArtifactError(
                    f"move {number} writes {value:#x} to offset {offset:#x}; the mover has 64-bit registers at "
                    f"multiples of {REGISTER_BYTES} below {MOVER_END:#x}"
                )
        starts = [i for i, (offset, value) in enumerate(move.writes) if offset == MOVER_CTRL and value & MOVER_GO]
        if starts != [len(move.writes) - 1]:
            raise ArtifactError(f"move {number} is started by writes {starts}; its last write, and no other, starts it")


def _index(steps: Sequence[Step], kind: type) -> int:
    return next(i for i, s in enumerate(steps) if isinstance(s, kind))


def _check_awaits(steps: Sequence[Step], acknowledging: set[Node]) -> None:
    """Burst acknowledgements are awaited before the first kick, every kicked node once after its kicks."""
    sent: Counter[Node] = Counter()
    for s in steps:
        if isinstance(s, Kick):
            sent[s.x, s.y] += s.n
    at_head: set[Node] = set()
    awaited: set[Node] = set()
    kicked_before = False
    for s in steps:
        kicked_before |= isinstance(s, Kick)
        if not isinstance(s, Await):
            continue
        node = (s.x, s.y)
        name = f"await on node ({s.x},{s.y})"
        if not 1 <= s.count < COUNT_END:
            raise ArtifactError(f"{name}: count {s.count} is not in 1..{COUNT_END - 1}")
        seen = awaited if kicked_before else at_head
        if node in seen:
            raise ArtifactError(f"{name}: a round awaits a node once, for its total")
        seen.add(node)
        if not kicked_before:
            if node not in acknowledging:
                raise ArtifactError(f"{name}, which nothing kicked or acknowledged")
        elif node not in sent:
            if node not in acknowledging:
                raise ArtifactError(f"{name}, which nothing kicked or acknowledged")
            raise ArtifactError(f"{name}: burst acknowledgements are awaited before the first kick of a round")
        elif s.count != sent[node]:
            raise ArtifactError(f"{name}: count {s.count}, but {sent[node]} instructions are kicked there")
    missing = sorted(set(sent) - awaited)
    if missing:
        raise ArtifactError(f"node ({missing[0][0]},{missing[0][1]}) is kicked but never awaited")
