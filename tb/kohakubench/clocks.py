# SPDX-License-Identifier: Apache-2.0
"""Clock, reset and the cycle limit of a bench."""

from __future__ import annotations

import os
from typing import Any

PERIOD_NS = 10


def start(clk: Any, *, limit: int | None = None) -> None:
    """Run ``clk`` inside the simulator (10 ns) and arm the cycle limit of this test.

    Args:
        clk: one-bit clock handle.
        limit: cycles until the test counts as hung; the bench's own limit by default.
    """
    import cocotb
    from cocotb.clock import Clock

    Clock(clk, PERIOD_NS, unit="ns", impl="gpi").start()
    cycles = limit or int(os.environ.get("KOHAKU_TIMEOUT_CYCLES", "2000000"))
    cocotb.start_soon(_watchdog(cycles))


async def _watchdog(cycles: int) -> None:
    from cocotb.triggers import Timer

    await Timer(cycles * PERIOD_NS, unit="ns")
    raise AssertionError(f"hang: the test did not end within {cycles} cycles")


async def cycles(n: int) -> None:
    """Let ``n`` clock periods pass without waking Python in between."""
    from cocotb.triggers import Timer

    await Timer(n * PERIOD_NS, unit="ns")


async def reset(dut: Any, n: int = 16) -> None:
    """Hold ``dut.rst_n`` low for ``n`` cycles, release it and pass one more cycle.

    The signals change on the falling edge, so every rising edge sees them stable.
    """
    from cocotb.triggers import FallingEdge

    dut.rst_n.value = 0
    await cycles(n)
    await FallingEdge(dut.clk)
    dut.rst_n.value = 1
    await cycles(1)


def now() -> int:
    """Clock cycles since the start of the simulation."""
    from cocotb.utils import get_sim_time

    return int(get_sim_time("ns")) // PERIOD_NS
