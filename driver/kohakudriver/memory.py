# SPDX-License-Identifier: Apache-2.0
"""The host's memory window: DRAM and staging store of a mesh in bursts (docs/spec/memory.md 9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from kohakudriver import generated as g
from kohakudriver.errors import DriverError
from kohakudriver.transport import MemoryWindow, Transport

LAYER = "L0"

_PAGE = 4096
_RESPONSES = ("OKAY", "EXOKAY", "SLVERR", "DECERR")


def check_words(what: str, addr: int, n: int) -> None:
    """Refuse what is not a whole number of words inside 40 bits of address.

    Raises:
        DriverError: naming the access, its length and its address.
    """
    if addr % g.MEM_WORD_BYTES or n % g.MEM_WORD_BYTES:
        raise DriverError(f"{what} of {n} bytes at {addr:#x}: whole words of {g.MEM_WORD_BYTES} bytes only")
    if n < 0 or not 0 <= addr <= (1 << g.ADDR_W) - n:
        raise DriverError(f"{what} of {n} bytes at {addr:#x}: it leaves the {g.ADDR_W}-bit address space")


class HostWindow:
    """Reads and writes of whole words, each burst inside a 4 KiB page and checked by the machine.

    Raises:
        DriverError: the transport plays no bursts on a memory window.
    """

    def __init__(self, transport: Transport) -> None:
        description: dict[str, Any] = transport.description
        if not (hasattr(transport, "window_write") and hasattr(transport, "window_read")):
            raise DriverError(
                f"machine {description['name']} has no memory window on this transport; use write and read"
            )
        self._window = cast(MemoryWindow, transport)
        base, _, step = g.HOST_MAP["mem"]
        self._base = base + int(description.get("mesh_id", 0)) * step

    def write(self, addr: int, data: bytes, strobe: bytes | None = None) -> None:
        """Bytes to a 40-bit address; strobe byte 0 keeps what is there.

        Raises:
            DriverError: not whole words, strobes of another length, or a burst that was refused.
        """
        check_words("upload", addr, len(data))
        if strobe is not None and len(strobe) != len(data):
            raise DriverError(f"upload of {len(data)} bytes at {addr:#x} with {len(strobe)} strobes")
        for first, n in _bursts(addr, len(data)):
            part = slice(first, first + n)
            kept = None if strobe is None else strobe[part]
            answer = self._window.window_write(self._base + addr + first, data[part], kept)
            _accepted("upload", addr + first, n, answer)

    def read(self, addr: int, n: int) -> bytes:
        """Bytes from a 40-bit address.

        Raises:
            DriverError: as :meth:`write`.
        """
        check_words("readback", addr, n)
        out = bytearray()
        for first, size in _bursts(addr, n):
            data, answer = self._window.window_read(self._base + addr + first, size)
            _accepted("readback", addr + first, size, answer)
            out += data
        return bytes(out)


def _bursts(addr: int, n: int) -> Iterator[tuple[int, int]]:
    """(position, bytes) of the parts of an access, none across a page."""
    first = 0
    while first < n:
        size = min(n - first, _PAGE - (addr + first) % _PAGE)
        yield first, size
        first += size


def _accepted(what: str, addr: int, n: int, answer: int) -> None:
    if answer:
        raise DriverError(f"{what} of {n} bytes at {addr:#x} was answered with {_RESPONSES[answer]}")
