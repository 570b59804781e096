# SPDX-License-Identifier: Apache-2.0
"""The link checker itself: every property fires on its own fault and on nothing else."""

import cocotb

from kohakubench import Bench, checks, clocks

_CHK = "rtl/noc/link_checker_sva.sv"

BENCH = Bench(
    name="link_faults",
    top="tb_link_faults",
    sources=[_CHK, "tb/hdl/tb_link_faults.v"],
    mutations={
        "blind_to_withdrawal": (_CHK, "if (held && !valid) fail(1", "if (held && valid && !valid) fail(1"),
        "blind_to_change": (_CHK, "if (held && valid && data != held_data)", "if (0)"),
        "busy_clock_stuck": (_CHK, "busy_for <= busy_for + 1;", "busy_for <= busy_for;"),
        "ignores_own_outbound": (_CHK, "if (!busy || own_out_blocked) busy_for", "if (!busy) busy_for"),
        "stops_where_it_should": ("tb/hdl/tb_link_faults.v", "STOP_LANE = -1", "STOP_LANE = 1"),
    },
    wall_s=120,
)

# lane: properties that must have fired, all others must not
FAULTS = {
    0: set(),
    1: {1},
    2: {2},
    3: {11},
    4: {12},
    5: {12},
    6: {8},
    7: {8},
    8: {10},
    9: {9},
    10: set(),
    11: {12},
}


def seen(dut):
    """Properties that fired, per lane."""
    word = int(dut.failed.value)
    return {lane: {n for n in range(16) if word >> (16 * lane + n) & 1} for lane in FAULTS}


@cocotb.test()
async def each_fault_is_named(dut):
    """One property per faulty lane, none on the correct ones; L9 and L10 only when their time is up."""
    clocks.start(dut.clk)
    dut.hold_reset_rules.value = 0
    await clocks.reset(dut)
    await clocks.cycles(280)
    early = seen(dut)
    checks.equal("L9 before 300 cycles", early[9], set())
    checks.equal("L10 before MAX_BUSY", early[8], set())
    await clocks.cycles(1000)
    for lane, expected in FAULTS.items():
        checks.equal(f"properties that fired on lane {lane}", seen(dut)[lane], expected)
        errors = int(dut.errors.value) >> 32 * lane & 0xFFFFFFFF
        checks.equal(f"lane {lane} counts errors", errors > 0, bool(expected))
    checks.true("transfers", int(dut.transfers.value) > 500, "lane 0 stands still")
    checks.true("back to back", int(dut.back_to_back.value) > 100, "no transfers in adjacent cycles")


@cocotb.test()
async def first_reset_edge_is_free(dut):
    """L8 holds from the second edge in reset on: a fault that ends with the first edge is none."""
    clocks.start(dut.clk)
    dut.hold_reset_rules.value = 1
    await clocks.reset(dut)
    before = int(dut.errors.value) >> 32 * 6 & (1 << 64) - 1
    # one edge with rst_n = 0 while valid and busy still have their old values
    dut.rst_n.value = 0
    await clocks.cycles(1)
    dut.rst_n.value = 1
    await clocks.cycles(20)
    checks.equal("new L8 errors", (int(dut.errors.value) >> 32 * 6 & (1 << 64) - 1) - before, 0)
