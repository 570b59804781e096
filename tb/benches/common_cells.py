# SPDX-License-Identifier: Apache-2.0
"""Shared cells: fifo_sync and skid2 under random traffic, ram_sdp against a model."""

import random

import cocotb
from cocotb.triggers import FallingEdge

from kohakubench import Bench, checks, clocks, scale, seed

_FIFO = "rtl/common/fifo_sync.v"
_SKID = "rtl/common/skid2.v"
_RAM = "rtl/common/ram_sdp.v"

BENCH = Bench(
    name="common_cells",
    top="tb_cells",
    sources=["rtl/common/*.v", "tb/hdl/cell_exerciser.v", "tb/hdl/tb_cells.v"],
    mutations={
        "fifo_overflow": (_FIFO, "ready_q <= level_d != FULL;", "ready_q <= 1'b1;"),
        "fifo_wastes_an_entry": (_FIFO, "ready_q <= level_d != FULL;", "ready_q <= level_d < FULL - ONE;"),
        "fifo_misses_bypass": (_FIFO, "|| (level_q == ONE && pop)", ""),
        "skid_drops_spare": (_SKID, "valid_q <= !free || spare_q || push;", "valid_q <= !free || push;"),
        "skid_ready_in_reset": (_SKID, "ready_q <= 1'b0;", "ready_q <= 1'b1;"),
        "ram_new_data": (
            _RAM,
            "if (rd_en) rd_q <= mem[rd_addr];",
            "if (rd_en) rd_q <= (wr_en && wr_addr == rd_addr) ? wr_data : mem[rd_addr];",
        ),
        "ram_not_held": (_RAM, "if (rd_en) rd_q <= mem[rd_addr];", "rd_q <= mem[rd_addr];"),
    },
    wall_s=120,
)


async def _fresh(dut, push, pop, limit):
    for name in ("wr_en", "wr_addr", "wr_data", "rd_en", "rd_addr"):
        getattr(dut, name).value = 0
    dut.push_rate.value = push
    dut.pop_rate.value = pop
    dut.limit.value = limit
    dut.seed.value = (seed() * 0x9E3779B1 + push * 512 + pop) & 0xFFFFFFFF
    await clocks.reset(dut)


@cocotb.test()
async def random_rates(dut):
    """Every lane keeps its model's state in every cycle, at all mixtures of push and pop rates."""
    clocks.start(dut.clk)
    words = scale(2000, 100_000)
    full = drained = 0
    for push in (256, 200, 128, 20):
        for pop in (256, 200, 128, 20):
            await _fresh(dut, push, pop, words)
            await clocks.cycles(words * 256 // min(push, pop) * 2 + 200)
            checks.equal(f"broken lanes at {push}/{pop}", int(dut.lane_bad.value), 0)
            checks.equal(f"finished lanes at {push}/{pop}", int(dut.lane_done.value), 0b1111, n=4 * words)
            full |= int(dut.hit_full.value)
            drained |= int(dut.hit_drained.value)
    checks.equal("lanes that were full", full, 0b1111)
    checks.equal("lanes that drained after it", drained, 0b1111)


@cocotb.test()
async def one_word_a_cycle(dut):
    """With both sides always willing every lane passes a word in every cycle, depth 2 included."""
    clocks.start(dut.clk)
    await _fresh(dut, 256, 256, 1_000_000)
    await clocks.cycles(100)
    before = int(dut.popped.value)
    await clocks.cycles(1000)
    after = int(dut.popped.value)
    for lane in range(4):
        moved = (after >> 32 * lane & 0xFFFFFFFF) - (before >> 32 * lane & 0xFFFFFFFF)
        checks.equal(f"words of lane {lane} in 1000 cycles", moved, 1000)
    checks.equal("broken lanes", int(dut.lane_bad.value), 0)


@cocotb.test()
async def full_then_empty(dut):
    """Without pops every lane stops exactly full; without pushes it empties exactly."""
    clocks.start(dut.clk)
    await _fresh(dut, 256, 0, 1000)
    await clocks.cycles(100)
    checks.equal("full lanes", int(dut.hit_full.value), 0b1111)
    checks.equal("broken lanes", int(dut.lane_bad.value), 0)
    checks.equal("popped", int(dut.popped.value), 0)
    dut.push_rate.value = 0
    dut.pop_rate.value = 256
    await clocks.cycles(100)
    checks.equal("drained lanes", int(dut.hit_drained.value), 0b1111)
    for lane, depth in enumerate((2, 4, 32, 2)):
        checks.equal(f"popped by lane {lane}", int(dut.popped.value) >> 32 * lane & 0xFFFFFFFF, depth)
    checks.equal("broken lanes", int(dut.lane_bad.value), 0)


@cocotb.test()
async def ram_against_model(dut):
    """Random reads and writes: latency, hold while idle, old word on a collision."""
    clocks.start(dut.clk)
    rng = random.Random(seed())
    await _fresh(dut, 0, 0, 0)
    memory = [0] * 32
    asked = [None] * 3  # words of the last three cycles' reads, newest first
    shown = {1: None, 2: None, 3: None}
    collisions = 0
    await FallingEdge(dut.clk)
    # the arrays keep what earlier tests wrote, so every word is written once first
    for step in range(scale(2000, 50_000)):
        fill = step < 32
        wr, rd = fill or rng.random() < 0.6, not fill and rng.random() < 0.6
        wa = step if fill else rng.randrange(32)
        ra = wa if rng.random() < 0.3 else rng.randrange(32)
        wd = rng.getrandbits(40)
        dut.wr_en.value, dut.wr_addr.value, dut.wr_data.value = int(wr), wa, wd
        dut.rd_en.value, dut.rd_addr.value = int(rd), ra
        word = memory[ra] if rd else None
        collisions += wr and rd and wa == ra
        asked = [word, *asked[:2]]
        for lat in shown:
            if asked[lat - 1] is not None:
                shown[lat] = asked[lat - 1]
        if wr:
            memory[wa] = wd
        await FallingEdge(dut.clk)
        for lat, name in ((1, "rd_data1"), (2, "rd_data2"), (3, "rd_data3")):
            if shown[lat] is not None:
                checks.equal(f"{name} in step {step}", int(getattr(dut, name).value), shown[lat])
    checks.true("collisions", collisions > 100, f"only {collisions}")
