# SPDX-License-Identifier: Apache-2.0
"""What the timed model charges (docs/spec/compiler.md 14.2)."""

from __future__ import annotations

from dataclasses import dataclass

LAYER = "leaf"


@dataclass(frozen=True)
class Profile:
    """Prices in cycles.

    Args:
        fill: one entry of a FILL.
        control: one DESC or IMEM payload, and one word that only sets up, starts a walk or waits; also whether the
            beats of VHALT count.
        walk: one word that a VFILL or VDRAIN moves.
        barrier: whether bytes that one band leaves in memory for another are charged.
        refill: every sweep is charged the fills of both its sides, whatever L1 still holds of them.
    """

    name: str
    fill: int
    control: int
    walk: int
    barrier: bool
    refill: bool = False


DEFAULT = Profile("default", fill=4, control=1, walk=0, barrier=True)
"""The table of 14.2."""

REF = Profile("ref", fill=8, control=0, walk=1, barrier=False, refill=True)
"""The published check values (docs/spec/kernels.md 0).

FILL takes 8 cycles an entry and bands end without a barrier term, as 14.2 says. They are cycles of statements, and a
statement of a product fills both sides, so fills that the emitter drops are charged. A pass over elements is charged
one cycle a word it loads, stores, computes, fills or drains and nothing else: of the readings of 14.2 this one gives
the published 35,840 cycles of ``linear_add`` (20,480 lane beats and 15,360 words moved, a core).
"""

RELAYOUT_REF = Profile("ref", fill=8, control=1, walk=0, barrier=False, refill=True)
"""A relayout under profile "ref": its published figures follow the table."""

PROFILES = {p.name: p for p in (DEFAULT, REF)}


def profile(name: str) -> Profile:
    """The profile called ``name``.

    Raises:
        ValueError: there is none; the message lists them.
    """
    if name not in PROFILES:
        raise ValueError(f"cost profile {name!r} is unknown; there are {', '.join(PROFILES)}")
    return PROFILES[name]


def of_role(chosen: Profile, role: str) -> Profile:
    """The prices of a band of ``role``."""
    return RELAYOUT_REF if chosen is REF and role == "relayout" else chosen


@dataclass(frozen=True)
class Spent:
    """Cycles of one unit by what they are spent on, with what it moves.

    Args:
        mac, fill, drain: sweeps, operand fills and result drains of a cluster.
        lanes, control, walk: lane beats, set-up, and priced words of walks of a vector core.
        moved: words moved by the mover, priced.
        hidden: part of ``fill`` that fits behind the sweep before it.
        payloads: instructions.
        words: memory words read and written.
    """

    mac: int = 0
    fill: int = 0
    drain: int = 0
    lanes: int = 0
    control: int = 0
    walk: int = 0
    moved: int = 0
    hidden: int = 0
    payloads: int = 0
    words: int = 0

    @property
    def high(self) -> int:
        """Everything charged."""
        return self.mac + self.fill + self.drain + self.lanes + self.control + self.walk + self.moved

    @property
    def low(self) -> int:
        """Without the fills that a sweep hides."""
        return self.high - self.hidden


@dataclass
class HiddenFills:
    """Cycles of fills that run while the sweep before them does."""

    total: int = 0
    _left: int = 0

    def sweep(self, cycles: int) -> None:
        """A GEMM of so many cycles starts."""
        self._left = cycles

    def fill(self, cycles: int) -> None:
        """A FILL of so many cycles follows."""
        covered = min(cycles, self._left)
        self._left -= covered
        self.total += covered


def filled(entries: int, charged_elsewhere: bool, hidden: HiddenFills, profile: Profile) -> int:
    """Cycles of a fill, noted in ``hidden``; 0 where the profile charges it elsewhere."""
    cycles = 0 if charged_elsewhere else profile.fill * entries
    hidden.fill(cycles)
    return cycles
