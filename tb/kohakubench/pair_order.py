# SPDX-License-Identifier: Apache-2.0
"""Scoreboard for link property L13 (docs/spec/fabric.md 2.2): order, loss and duplication per pair."""

from __future__ import annotations

from collections import deque

from kohakubench import checks


class PairOrder:
    """Compares what entered a network with what left it, per (source, destination).

    Feed it flits from taps in the order of their transfers; flits of different pairs may interleave freely.
    """

    def __init__(self) -> None:
        self._flying: dict[int, deque[int]] = {}
        self.delivered = 0

    @staticmethod
    def _pair(flit: int) -> int:
        return flit >> 272 & 0xFFFF  # dst_x, dst_y, src_x, src_y

    @staticmethod
    def _text(pair: int) -> str:
        return f"({pair >> 4 & 15}, {pair & 15}) to ({pair >> 12 & 15}, {pair >> 8 & 15})"

    def sent(self, flit: int) -> None:
        """A flit entered the network."""
        self._flying.setdefault(self._pair(flit), deque()).append(flit)

    def received(self, flit: int, at: tuple[int, int] | None = None) -> None:
        """A flit left the network, at the endpoint ``at`` if given.

        Raises:
            AssertionError: it is not the next one of its pair, or not for this endpoint; the message says
                whether it was lost, repeated or overtaken.
        """
        pair = self._pair(flit)
        name = f"flit {self.delivered} in all, {self._text(pair)}"
        if at is not None:
            checks.equal(f"{name}: endpoint", at, (pair >> 12 & 15, pair >> 8 & 15))
        waiting = self._flying.get(pair) or deque()
        if waiting and waiting[0] == flit:
            checks.equal(name, flit, waiting.popleft())
            self.delivered += 1
            return
        place = waiting.index(flit) if flit in waiting else None
        reason = (
            "was never sent, or arrived before: duplicate or damage"
            if place is None
            else f"overtook {place} earlier flits of its pair, or they were lost"
        )
        checks.true(name, False, f"{flit:#074x} {reason}")

    def finish(self) -> None:
        """Everything that was sent has arrived.

        Raises:
            AssertionError: flits are missing; the message names the first pair.
        """
        missing = {pair: len(q) for pair, q in self._flying.items() if q}
        first = next(iter(missing), 0)
        checks.true(
            "flits on their way at the end",
            not missing,
            f"{sum(missing.values())} missing, first pair {self._text(first)}",
        )
