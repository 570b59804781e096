# SPDX-License-Identifier: Apache-2.0
"""The flow itself: write-back, internal signals, seeds and the cycle limit work."""

import cocotb
from cocotb.triggers import FallingEdge

from kohakubench import Bench, checks, clocks, seed

BENCH = Bench(
    name="canary",
    top="tb_canary",
    sources=["tb/hdl/tb_canary.v"],
    public=["tb_canary.hidden_q"],
    mutations={"stuck": ("tb/hdl/tb_canary.v", "count + 32'd1", "count + 32'd2")},
    wall_s=60,
)


@cocotb.test()
async def write_back(dut):
    """A value written from Python is counted on from, and an internal register is readable."""
    clocks.start(dut.clk, limit=10_000)
    dut.load.value = 0
    await clocks.reset(dut)
    await FallingEdge(dut.clk)
    dut.value.value = 1000 + seed()
    dut.load.value = 1
    await FallingEdge(dut.clk)
    dut.load.value = 0
    await clocks.cycles(10)
    checks.equal("count", int(dut.count.value), 1010 + seed())
    checks.equal("hidden", int(dut.hidden_q.value), 1009 + seed())
