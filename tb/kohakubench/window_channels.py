# SPDX-License-Identifier: Apache-2.0
"""The five channels of the host window, each under the test's control (docs/spec/memory.md 9)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cocotb.triggers import with_timeout
from cocotbext.axi import AxiBus, AxiResp
from cocotbext.axi.axi_channels import (
    AxiARSource,
    AxiARTransaction,
    AxiAWSource,
    AxiAWTransaction,
    AxiBSink,
    AxiRSink,
    AxiWSource,
    AxiWTransaction,
)

from kohakubench.mag_model import WORD

HOSTX = 12
"""Fault code of a burst type or size that the window does not take."""
INCR, FIXED, WRAP = 1, 0, 2
OKAY, SLVERR, DECERR = AxiResp.OKAY, AxiResp.SLVERR, AxiResp.DECERR

Beat = tuple[int, AxiResp, int, int]
"""(id, response, data, last) of an R beat."""


class WindowChannels:
    """Drives ``s_axi_mem`` of ``dut``; a channel is held back through its ``pause``."""

    def __init__(self, dut: Any) -> None:
        bus = AxiBus.from_prefix(dut, "s_axi_mem")

        def make(kind: Any, channel: Any) -> Any:
            return kind(channel, dut.clk, dut.rst_n, reset_active_level=False)

        self.aw, self.w, self.b = (
            make(AxiAWSource, bus.write.aw),
            make(AxiWSource, bus.write.w),
            make(AxiBSink, bus.write.b),
        )
        self.ar, self.r = make(AxiARSource, bus.read.ar), make(AxiRSink, bus.read.r)

    async def address(
        self, write: bool, addr: int, n: int, *, ident: int = 0, burst: int = INCR, size: int = 5
    ) -> None:
        """Offer the address of a burst of ``n`` beats."""
        if write:
            item = AxiAWTransaction(awid=ident, awaddr=addr, awlen=n - 1, awsize=size, awburst=burst)
            await self.aw.send(item)
        else:
            await self.ar.send(AxiARTransaction(arid=ident, araddr=addr, arlen=n - 1, arsize=size, arburst=burst))

    async def data(self, words: Sequence[int], strobes: Sequence[int] | None = None) -> None:
        """Offer the beats of a write; 32-bit masks, all bytes by default."""
        for k, word in enumerate(words):
            strb = 0xFFFFFFFF if strobes is None else strobes[k]
            await self.w.send(AxiWTransaction(wdata=word, wstrb=strb, wlast=int(k == len(words) - 1)))

    async def answer(self) -> tuple[int, AxiResp]:
        """(id, response) of the next B."""
        b = await with_timeout(self.b.recv(), 200, "us")
        return int(b.bid), AxiResp(int(b.bresp))

    async def beats(self, n: int) -> list[Beat]:
        """The next ``n`` R beats."""
        out = []
        for _ in range(n):
            r = await with_timeout(self.r.recv(), 200, "us")
            out.append((int(r.rid), AxiResp(int(r.rresp)), int(r.rdata), int(r.rlast)))
        return out

    async def write(
        self, addr: int, words: Sequence[int], strobes: Sequence[int] | None = None, **kw: int
    ) -> tuple[int, AxiResp]:
        """A whole write burst; its answer."""
        await self.address(True, addr, len(words), **kw)
        await self.data(words, strobes)
        return await self.answer()

    async def read(self, addr: int, n: int, **kw: int) -> list[Beat]:
        """A whole read burst; its beats."""
        await self.address(False, addr, n, **kw)
        return await self.beats(n)


def words_of(image: bytes | bytearray, at: int, n: int) -> list[int]:
    """``n`` whole words of a byte image from byte ``at``."""
    return [int.from_bytes(image[k : k + WORD], "little") for k in range(at, at + n * WORD, WORD)]
