# SPDX-License-Identifier: Apache-2.0
"""What the driver needs of a machine: registers, memory, and a way to let it run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

LAYER = "L0"

Progress = Callable[[int], None]


class MemoryWindow(Protocol):
    """A transport that plays bursts on the host's memory window (docs/spec/memory.md 9)."""

    def window_write(self, address: int, data: bytes, strobe: bytes | None = None) -> int:
        """One burst of whole words at a host address; strobe byte 0 keeps a byte. The AXI response."""

    def window_read(self, address: int, n: int) -> tuple[bytes, int]:
        """One read burst of whole words at a host address: (bytes, the AXI response)."""


class Transport(Protocol):
    """A machine: the reference model, its RTL in a simulator, or a card.

    ``description`` is the content of the machine's ``<name>.machine.json``. A machine with a memory window has
    the methods of :class:`MemoryWindow` too.
    """

    description: dict[str, Any]

    def write64(self, writes: Sequence[tuple[int, int]]) -> None:
        """Write 64-bit control registers (host address, value) in order."""

    def read64(self, addresses: Sequence[int]) -> list[int]:
        """Read 64-bit control registers in order."""

    def mem_write(self, address: int, data: bytes) -> None:
        """Write whole 32-byte words at a 40-bit address."""

    def mem_read(self, address: int, n: int) -> bytes:
        """Read whole 32-byte words at a 40-bit address."""

    def wait_done(self, limit: int, progress: Progress | None = None) -> bool:
        """Let the machine run until the control-program engine is done.

        Returns:
            False when ``limit`` cycles passed before. A transport without time ignores it.
        """

    def signals(self) -> list[int] | None:
        """Every CU_SIGNAL flit the orchestrator has taken so far, oldest first; None if unknown."""

    def reset(self) -> None:
        """Reset the machine; memory keeps its contents."""

    def close(self) -> None:
        """Release the machine."""
