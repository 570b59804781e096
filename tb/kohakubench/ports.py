# SPDX-License-Identifier: Apache-2.0
"""Python side of ``flit_port``: one mesh endpoint that a bench plays."""

from __future__ import annotations

from typing import Any

from cocotb.triggers import Timer, with_timeout

from kohakubench import clocks

RING = 4096


class Port:
    """Sends flits one at a time and reads what arrived, in order."""

    def __init__(self, handle: Any) -> None:
        self._h = handle
        self._taken = int(handle.rx_count.value)

    def pressure(self, percent: int) -> None:
        """Refuse inbound flits in so many percent of the cycles."""
        self._h.busy_pct.value = percent

    async def send(self, flit: int, limit: int = 50_000) -> None:
        """Transfer one flit into the mesh."""
        self._h.tx_flit.value = flit
        want = 1 - int(self._h.tx_ack.value)
        self._h.tx_req.value = want
        await Timer(1, unit="ps")
        while int(self._h.tx_ack.value) != want:
            await with_timeout(self._h.tx_ack.value_change, limit * clocks.PERIOD_NS, "ns")

    async def receive(self, limit: int = 50_000) -> int:
        """The next flit that arrived.

        Raises:
            cocotb.triggers.SimTimeoutError: none within ``limit`` cycles.
        """
        while int(self._h.rx_count.value) == self._taken:
            await with_timeout(self._h.rx_count.value_change, limit * clocks.PERIOD_NS, "ns")
        await Timer(1, unit="ps")
        flit = int(self._h.ring[self._taken % RING].value)
        self._taken += 1
        return flit

    def pending(self) -> int:
        """Flits that arrived and were not received yet."""
        return int(self._h.rx_count.value) - self._taken
