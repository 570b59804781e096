# SPDX-License-Identifier: Apache-2.0
"""Steps of a program: what the orchestrator is asked to do, without a register address."""

from __future__ import annotations

from dataclasses import dataclass

LAYER = "leaf"


@dataclass(frozen=True)
class Seed:
    """Seed the dispatch credit with ``n`` (docs/spec/fabric.md 6.5)."""

    n: int


@dataclass(frozen=True)
class Kick:
    """Dispatch ``n`` payloads from staging slot ``base`` to the unit at (x, y)."""

    x: int
    y: int
    base: int
    n: int


@dataclass(frozen=True)
class Await:
    """Wait until the node at (x, y) has sent ``count`` further signals."""

    x: int
    y: int
    count: int


@dataclass(frozen=True)
class Move:
    """One move of the memory mover.

    Args:
        writes: register writes ``(byte offset in the mover's window, value)`` in order,
            the start of the move included.
    """

    writes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Barrier:
    """End of a round."""


Step = Seed | Kick | Await | Move | Barrier
