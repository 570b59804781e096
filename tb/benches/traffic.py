# SPDX-License-Identifier: Apache-2.0
"""Handles of ``tb/hdl/traffic_core.v``: what to send, how often to be busy, what arrived."""

from __future__ import annotations

from typing import Any

from kohakubench import checks, clocks

XY = tuple[int, int]


class Node:
    """One traffic node; ``xy`` is the coordinate it sends from."""

    def __init__(self, handle: Any, xy: XY):
        self.handle = handle.u_core
        self.xy = xy

    def get(self, name: str) -> int:
        """A result register."""
        return int(getattr(self.handle, name).value)

    def setup(self, seed: int, *, busy: int = 0, period: int = 0) -> None:
        """Sink behaviour; source off. Call while the node is in reset.

        Args:
            seed: start of the node's generator.
            busy: chance of a busy cycle, of 256.
            period: when not 0, ready exactly once in ``period`` cycles.
        """
        h = self.handle
        h.seed.value = seed & 0xFFFFFFFF
        h.busy_rate.value = busy
        h.period.value = period
        h.rate.value = 256
        h.send_limit.value = 0
        h.n_dst.value = 0

    def send(self, dsts: list[XY], limit: int, rate: int = 256) -> None:
        """Send until ``limit`` flits have left in all, to ``dsts`` at random."""
        h = self.handle
        h.dst_list.value = sum((y << 4 | x) << (8 * i) for i, (x, y) in enumerate(dsts))
        h.rate.value = rate
        h.send_limit.value = limit
        h.n_dst.value = len(dsts)


async def fresh(dut: Any, nodes: list[Node], seed: int, **sink: int) -> None:
    """Reset everything with all sinks behaving as ``sink`` says (:meth:`Node.setup`)."""
    dut.rst_n.value = 0
    for i, node in enumerate(nodes):
        node.setup(seed * 0x9E3779B1 + i, **sink)
    await clocks.reset(dut)
    await clocks.cycles(8)


async def drain(nodes: list[Node], expect: int, limit: int, lost: int = 0) -> None:
    """Wait until ``expect`` flits were sent and all but ``lost`` arrived, unharmed and in order.

    Raises:
        AssertionError: they did not within ``limit`` cycles, or a sink found a fault.
    """
    step = max(50, min(2000, limit // 50))
    for _ in range(0, limit, step):
        await clocks.cycles(step)
        if sum(n.get("received") for n in nodes) >= expect - lost:
            break
    await clocks.cycles(200)
    for node in nodes:
        bad = node.get("bad")
        checks.equal(f"bad flits at {node.xy} (first {node.get('first_bad'):#074x})", bad, 0)
    checks.equal("flits sent", sum(n.get("sent") for n in nodes), expect)
    checks.equal("flits received", sum(n.get("received") for n in nodes), expect - lost, n=max(1, expect))
