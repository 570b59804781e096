# SPDX-License-Identifier: Apache-2.0
"""Python side of ``window_player``: batches of 256-bit bursts at simulation speed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WINDOW_PUBLIC = [f"window_player.{n}" for n in ("load", "dump", "run", "done", "broken", "results")]

WORD = 32
INCR, SIZE_WORD = 1, 5
_WRITE, _READ = 1, 2
_FULL = (1 << WORD) - 1


class WindowError(RuntimeError):
    """A slave that answers with the wrong ID or ends a burst at the wrong beat."""


@dataclass(frozen=True)
class Burst:
    """One burst at a 40-bit address: a write of `words` (256-bit integers) or a read of `n` words.

    `strobes` has one 32-bit mask a word, all bytes by default; `burst` and `size` are AxBURST and AxSIZE.
    """

    address: int
    words: tuple[int, ...] = ()
    n: int = 0
    strobes: tuple[int, ...] = ()
    burst: int = INCR
    size: int = SIZE_WORD

    def entries(self) -> Iterable[int]:
        """Entries of ``window_ops.hex``."""
        kind, beats = (_WRITE, len(self.words)) if self.words else (_READ, self.n)
        yield kind << 56 | self.burst << 51 | self.size << 48 | (beats - 1) << 40 | self.address
        for i, word in enumerate(self.words):
            yield (self.strobes[i] if self.strobes else _FULL) << 256 | word


@dataclass(frozen=True)
class Answer:
    """Responses of a burst, one of a write and one a beat of a read, and the words read."""

    responses: tuple[int, ...]
    words: tuple[int, ...] = ()

    @property
    def response(self) -> int:
        """The worst response."""
        return max(self.responses)


def write_burst(address: int, data: bytes, strobe: bytes | None = None) -> Burst:
    """A write of whole words; strobe byte 0 keeps a byte."""
    words, masks = [], []
    for at in range(0, len(data), WORD):
        words.append(int.from_bytes(data[at : at + WORD], "little"))
        kept = strobe[at : at + WORD] if strobe is not None else bytes([1]) * WORD
        masks.append(sum(1 << i for i, byte in enumerate(kept) if byte))
    return Burst(address, tuple(words), strobes=tuple(masks))


class Window:
    """Plays bursts on the memory window of a machine bench."""

    def __init__(self, handle: Any) -> None:
        self._h = handle
        self._dir = Path(os.environ.get("KOHAKU_RUN_DIR", "."))

    async def play(self, bursts: Sequence[Burst], limit: int = 1_000_000) -> list[Answer]:
        """Run the bursts one after another.

        Args:
            limit: cycles after which the slave has hung.

        Raises:
            WindowError: an answer with another ID, or RLAST at the wrong beat.
            cocotb.triggers.SimTimeoutError: no end within ``limit``.
        """
        from cocotb.triggers import RisingEdge, Timer, with_timeout

        entries = [e for b in bursts for e in b.entries()]
        text = "".join(f"{e:072x}\n" for e in [*entries, 0])
        (self._dir / "window_ops.hex").write_text(text, encoding="ascii")
        self._h.load.value = 1
        await Timer(1, unit="ps")
        self._h.load.value = 0
        self._h.run.value = 1
        await with_timeout(RisingEdge(self._h.done), limit * 10, "ns")
        self._h.run.value = 0
        await Timer(30, unit="ns")
        if int(self._h.broken.value):
            raise WindowError("a burst was answered with another ID, or its RLAST was at the wrong beat")
        results = await self._results()
        out = []
        for b in bursts:
            count = 1 if b.words else b.n
            mine, results = results[:count], results[count:]
            words = () if b.words else tuple(r & (1 << 256) - 1 for r in mine)
            out.append(Answer(tuple(r >> 256 for r in mine), words))
        return out

    async def _results(self) -> list[int]:
        from cocotb.triggers import Timer

        self._h.dump.value = 1
        await Timer(1, unit="ps")
        self._h.dump.value = 0
        await Timer(1, unit="ps")
        text = (self._dir / "window_res.hex").read_text(encoding="ascii")
        return [int(w, 16) for w in text.split() if not w.startswith("//")]

    async def write(self, address: int, data: bytes, strobe: bytes | None = None) -> int:
        """One write burst of whole words; its response."""
        (answer,) = await self.play([write_burst(address, data, strobe)])
        return answer.response

    async def read(self, address: int, n: int) -> tuple[bytes, int]:
        """One read burst of n bytes, whole words: (bytes, worst response)."""
        (answer,) = await self.play([Burst(address, n=n // WORD)])
        return b"".join(w.to_bytes(WORD, "little") for w in answer.words), answer.response
