# SPDX-License-Identifier: Apache-2.0
"""Python side of ``host_player``: batches of register accesses at simulation speed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HOST_PUBLIC = [f"host_player.{n}" for n in ("load", "dump", "run", "done", "results")]

_WRITE, _READ = 1, 2
_BEATS = 256
_ENTRIES = 16000
_OKAY = 0


class HostError(RuntimeError):
    """A register access that was not answered with OKAY; names the address and the response."""


def _runs(addresses: Sequence[int]) -> list[tuple[int, int]]:
    """(first index, length) of runs of consecutive 64-bit addresses inside 4 KiB."""
    out: list[tuple[int, int]] = []
    for i, address in enumerate(addresses):
        if out:
            first, length = out[-1]
            start = addresses[first]
            if address == start + 8 * length and length < _BEATS and (start ^ address) < 4096:
                out[-1] = (first, length + 1)
                continue
        out.append((i, 1))
    return out


def encode_writes(writes: Sequence[tuple[int, int]]) -> list[int]:
    """Player entries of register writes, without the closing entry."""
    addresses = [a for a, _ in writes]
    entries: list[int] = []
    for first, length in _runs(addresses):
        entries.append(_WRITE << 44 | (length - 1) << 32 | addresses[first])
        entries += [d & (1 << 64) - 1 for _, d in writes[first : first + length]]
    return entries


def entry_text(entries: Sequence[int]) -> str:
    """Content of ``host_ops.hex``: the entries and the closing one."""
    return "".join(f"{e:016x}\n" for e in [*entries, 0])


class Host:
    """Plays batches on the control window of a machine bench."""

    def __init__(self, handle: Any) -> None:
        self._h = handle
        self._dir = Path(os.environ.get("KOHAKU_RUN_DIR", "."))

    async def _play(self, entries: list[int], limit: int) -> None:
        from cocotb.triggers import RisingEdge, Timer, with_timeout

        (self._dir / "host_ops.hex").write_text(entry_text(entries), encoding="ascii")
        self._h.load.value = 1
        await Timer(1, unit="ps")
        self._h.load.value = 0
        self._h.run.value = 1
        await with_timeout(RisingEdge(self._h.done), limit * 10, "ns")
        self._h.run.value = 0
        await Timer(30, unit="ns")

    async def _results(self) -> list[int]:
        from cocotb.triggers import Timer

        self._h.dump.value = 1
        await Timer(1, unit="ps")
        self._h.dump.value = 0
        words = (self._dir / "host_res.hex").read_text(encoding="ascii").split()
        return [int(w, 16) for w in words if not w.startswith("//")]

    async def write(self, writes: Sequence[tuple[int, int]]) -> None:
        """Write 64-bit registers in order.

        Raises:
            HostError: a burst answered with an error.
        """
        for start in range(0, len(writes), _ENTRIES // 2):
            part = writes[start : start + _ENTRIES // 2]
            addresses = [a for a, _ in part]
            runs = _runs(addresses)
            entries = encode_writes(part)
            await self._play(entries, 2000 + 64 * len(part))
            for (first, length), result in zip(runs, await self._results(), strict=True):
                if result >> 64 != _OKAY:
                    raise HostError(
                        f"write of {length} registers at {addresses[first]:#x} was answered with "
                        f"{('OKAY', 'EXOKAY', 'SLVERR', 'DECERR')[result >> 64]}"
                    )

    async def read(self, addresses: Sequence[int]) -> list[int]:
        """Read 64-bit registers in order.

        Raises:
            HostError: a beat answered with an error.
        """
        out: list[int] = []
        for start in range(0, len(addresses), _ENTRIES // 2):
            part = list(addresses[start : start + _ENTRIES // 2])
            entries = [_READ << 44 | (n - 1) << 32 | part[first] for first, n in _runs(part)]
            await self._play(entries, 2000 + 64 * len(part))
            for address, result in zip(part, await self._results(), strict=True):
                if result >> 64 != _OKAY:
                    raise HostError(f"read of {address:#x} was answered with response {result >> 64}")
                out.append(result & (1 << 64) - 1)
        return out
