# SPDX-License-Identifier: Apache-2.0
"""Round builder: turns the steps of one round into WR, POLL and DONE commands.

The same builder measures a round for the compiler and emits it for the driver, so the
command limit is never estimated (docs/spec/fabric.md 8.1 and 8.2). Registers stand by
name; only the driver knows their addresses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from kohakuabi.errors import ArtifactError
from kohakuabi.steps import Await, Barrier, Kick, Move, Seed, Step

LAYER = "leaf"

AWAIT_MASK = 0x00FF_FF01
"""Bits of NODE_STATUS an await looks at: signal_count and valid, never a code."""

MOVER_SEQUENCE = frozenset({0x10, 0x18, 0x20, 0x28})
"""HDR, DIM, AXIS, WINDOW: they select, stage and commit, so only all of them or none are skipped."""

MOVER_LATCHED = frozenset({0x30, 0x38, 0x40, 0x50})
"""INDEX, SEED, IMM, GATHER: plain values. Every other mover register is an event."""

MOVER_CTRL, MOVER_GO, MOVER_END = 0x00, 1 << 16, 0x80
"""The mover's CTRL, the bit that starts a move, and the end of its window."""

REGISTER_BYTES = 8


@dataclass(frozen=True)
class Command:
    """One slot of the command RAM.

    Args:
        op: ``WR``, ``POLL`` or ``DONE``.
        register: name of the register of the orchestrator window; empty for DONE.
        index: element of a register array (NODE_STATUS, AUX_CFG), else 0.
        data: value written, awaited, or the DONE code.
        mask: bits a POLL compares.
    """

    op: Literal["WR", "POLL", "DONE"]
    register: str = ""
    index: int = 0
    data: int = 0
    mask: int = 0


@dataclass
class RoundBuilder:
    """Builds one round; the shadow of latched registers starts empty.

    Args:
        expect: cumulative 16-bit signal count of each node, ``{(x, y): count}``; advanced
            by every await, so the caller keeps it across rounds.
    """

    expect: dict[tuple[int, int], int] = field(default_factory=dict)
    commands: list[Command] = field(default_factory=list)
    _shadow: dict[tuple[str, int], int] = field(default_factory=dict)
    _last_sequence: tuple[tuple[int, int], ...] | None = None

    def _latched(self, register: str, value: int, index: int = 0) -> None:
        if self._shadow.get((register, index)) != value:
            self.commands.append(Command("WR", register, index, value))
            self._shadow[(register, index)] = value

    def _event(self, register: str, value: int, index: int = 0) -> None:
        self.commands.append(Command("WR", register, index, value))

    def seed(self, n: int) -> None:
        """Seed the credit; consumed by hardware, so never elided."""
        self._event("PROG_CRED", n)

    def kick(self, step: Kick) -> None:
        """Wait for the dispatcher, update what changed, start the dispatch."""
        self.commands.append(Command("POLL", "PROG_STAT", 0, 0, 1))
        self._latched("PROG_DST", step.y << 4 | step.x)
        self._latched("PROG_BASE", step.base)
        self._latched("PROG_LEN", step.n)
        self._event("PROG_KICK", 1)

    def await_(self, step: Await) -> None:
        """Wait for the node's cumulative signal count."""
        node = (step.x, step.y)
        self.expect[node] = (self.expect.get(node, 0) + step.count) & 0xFFFF
        want = self.expect[node] << 8 | 1
        self.commands.append(Command("POLL", "NODE_STATUS", step.y << 4 | step.x, want, AWAIT_MASK))

    def move(self, step: Move) -> None:
        """Program the mover, start it and wait.

        Raises:
            ArtifactError: an offset that names no register of the window.
        """
        sequence = tuple(w for w in step.writes if w[0] in MOVER_SEQUENCE)
        known = sequence == self._last_sequence
        self._last_sequence = sequence
        for offset, value in step.writes:
            index, rest = divmod(offset, REGISTER_BYTES)
            if rest or offset < 0:
                raise ArtifactError(
                    f"move writes offset {offset:#x}; registers stand at multiples of {REGISTER_BYTES}"
                )
            if offset in MOVER_LATCHED:
                self._latched("AUX_CFG", value, index)
            elif not (known and offset in MOVER_SEQUENCE):
                self._event("AUX_CFG", value, index)
        self.commands.append(Command("POLL", "AUX_STAT", 0, 0, 1))

    def add(self, step: Step) -> None:
        """Append any step; a barrier ends the round and adds nothing."""
        match step:
            case Seed(n):
                self.seed(n)
            case Kick():
                self.kick(step)
            case Await():
                self.await_(step)
            case Move():
                self.move(step)
            case Barrier():
                pass

    def done(self, code: int = 0) -> list[Command]:
        """Close the round with DONE(code) and return its commands."""
        self.commands.append(Command("DONE", data=code))
        return self.commands


def build_round(
    steps: Iterable[Step], expect: dict[tuple[int, int], int] | None = None, code: int = 0
) -> list[Command]:
    """Commands of one round; ``expect`` is advanced in place when given."""
    builder = RoundBuilder(expect if expect is not None else {})
    for step in steps:
        builder.add(step)
    return builder.done(code)


def command_count(steps: Iterable[Step], expect: Mapping[tuple[int, int], int] | None = None) -> int:
    """Number of command slots the round needs, measured with the builder that emits it."""
    return len(build_round(steps, dict(expect or {})))
