# SPDX-License-Identifier: Apache-2.0
"""The two surroundings of a vector core model: the shell in a mesh, and a plain memory for benches."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from kohakutpu.isa import generated as g
from kohakutpu.isa.generated import VectorError, VectorFault
from kohakutpu.model.description import Node
from kohakutpu.model.memory import WORD, Image
from kohakutpu.model.messages import DataBurst
from kohakutpu.model.numerics.bits import U8
from kohakutpu.model.shell import Shell
from kohakutpu.model.vector_memory import WRITE_TXN

LAYER = "L0"


class ShellLink:
    """A core behind the shell of a mesh model."""

    def __init__(self, shell: Shell) -> None:
        self.pos = shell.pos
        self._shell = shell

    def read(self, l1: int, address: int, n: int) -> tuple[U8, U8]:
        """One run of single-word entries; a refused word is F_MEM_RD."""
        words, failed = self._shell.read(l1, address, n, 1)
        return words.reshape(n, WORD), np.where(failed.reshape(n), VectorFault.F_MEM_RD, 0).astype(np.uint8)

    def write(self, address: int, words: U8) -> None:
        """One write burst."""
        self._shell.write(WRITE_TXN, address, words)

    def send_burst(self, burst: DataBurst) -> None:
        """One CU_DATA burst."""
        self._shell.send_burst(burst)

    def acknowledge(self, flit: int) -> None:
        """One DATA_RECEIVED flit."""
        self._shell.acknowledge(flit)

    def unit_error(self, bit: VectorError) -> None:
        """Raise `unit_err[bit]`."""
        self._shell.unit_error(bit)


class PlainLink:
    """A core alone: 2**40 bytes of memory, recorded traffic.

    `read_errors` and `lost` hold byte addresses of words that are answered with an error or never; `refused` those
    of write bursts (first word) that memory refuses. `writes` lists (address, words), `bursts` CU_DATA bursts,
    `acks` DATA_RECEIVED flits, `reads` (L1 word, address, n); `errors` are the sticky `unit_err` bits.
    `loopback` takes bursts to the core's own coordinate; without it they are only recorded.
    """

    def __init__(self, pos: Node = (1, 1)) -> None:
        self.pos = pos
        self.image = Image(1 << g.VC_ADDR_BITS)
        self.read_errors: set[int] = set()
        self.lost: set[int] = set()
        self.refused: set[int] = set()
        self.reads: list[tuple[int, int, int]] = []
        self.writes: list[tuple[int, U8]] = []
        self.bursts: list[DataBurst] = []
        self.acks: list[int] = []
        self.errors = 0
        self.loopback: Callable[[DataBurst], None] | None = None

    def read(self, l1: int, address: int, n: int) -> tuple[U8, U8]:
        """Words of memory with the fault codes of the prepared failures."""
        self.reads.append((l1, address, n))
        words = self.image.read(address, n * WORD).reshape(n, WORD)
        codes = np.zeros(n, dtype=np.uint8)
        for k, place in enumerate(range(address, address + n * WORD, WORD)):
            if place in self.lost:
                codes[k] = VectorFault.F_WDOG
            elif place in self.read_errors:
                codes[k] = VectorFault.F_MEM_RD
        return words, codes

    def write(self, address: int, words: U8) -> None:
        """Store a burst unless it is refused."""
        self.writes.append((address, words))
        if address not in self.refused:
            self.image.write(address, words.reshape(-1))

    def send_burst(self, burst: DataBurst) -> None:
        """Record a burst."""
        self.bursts.append(burst)
        if burst.dst == self.pos and self.loopback is not None:
            self.loopback(burst)

    def acknowledge(self, flit: int) -> None:
        """Record a DATA_RECEIVED flit."""
        self.acks.append(flit)

    def unit_error(self, bit: VectorError) -> None:
        """Set a sticky bit."""
        self.errors |= 1 << bit
