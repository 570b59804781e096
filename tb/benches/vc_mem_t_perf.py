# SPDX-License-Identifier: Apache-2.0
"""Cycle counts of the memory commands (docs/spec/vector.md 16.2) and the counters of 16.1.

A command costs the cycles from its acceptance to the acceptance of the next one; the player offers
that one in the cycle after the answer.
"""

from __future__ import annotations

import cocotb

from benches.vc_mem_rig import LATENCY, Rig
from kohakubench import checks, clocks, figures, seed


def bursts(n: int) -> int:
    return -(-n // 8)


@cocotb.test()
async def load_store_cycles(dut):
    """VLD and VST: N + 3 and 2N + 3 cycles (one more for a load at L1 latency 2): below the goal for every N."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    extra = int(dut.L1_LAT.value) - 1
    rig.desc(1, 16, (1, 16))
    rows = [(n, dtype, rig.vld(0, 1, vl=16 * n, dtype=dtype), rig.vst(1, 1, vl=16 * n, dtype=dtype))
            for n in range(1, 9) for dtype in (1, 2)]  # fmt: skip
    t = await rig.run()
    measured = []
    for n, dtype, load, store in rows:
        words = n * dtype
        checks.equal(f"VLD N = {n} dtype {dtype}", t.cycles(load) + 1, words + 3 + extra)
        checks.equal(f"VST N = {n} dtype {dtype}", t.cycles(store) + 1, words + 3)
        checks.true("goal", max(t.cycles(load) + 1 - extra, t.cycles(store) + 1) <= words + 4)
        for name, k, bound in (("VLD", load, 4 * words + 5), ("VST", store, (dtype + 2) * n + 5)):
            kind = f"{name} FP{16 * dtype}"
            row = {"name": kind, "n": n, "cycles": t.cycles(k) + 1, "bound": bound, "goal": words + 4}
            checks.true(f"{kind} N = {n}", row["cycles"] <= bound, f"{row['cycles']} cycles, bound {bound}")
            measured.append(row)
    figures.write("load_store", measured)


@cocotb.test()
async def fill_cycles(dut):
    """VFILL + VBAR: n + L + 16 or less; VFILL itself returns after 5 cycles whatever n is."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rows = []
    for n in (1, 2, 8, 64, 128, 255, 256):
        for stride in (32, 64):
            rig.desc(0, 0x1000, (stride, n))
            rows.append((n, rig.vfill(0, 0), rig.vbar()))
    t = await rig.run()
    for n, fill, bar in rows:
        cycles = t.answers[bar][0] + 1 - t.accepted[fill]
        checks.true("goal", cycles <= n + LATENCY + 16, f"n = {n}: {cycles} cycles")
        checks.true("bound", cycles <= 3 * n + LATENCY + 10, f"n = {n}: {cycles} cycles")
        checks.equal("VFILL", t.cycles(fill) + 1, 5)


@cocotb.test()
async def drain_cycles(dut):
    """VDRAIN to memory: n + ceil(n/8) + 12 or less for contiguous walks; 2 flits a word when nothing is."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rows = []
    for n in (1, 2, 7, 8, 9, 16, 64, 255, 256):
        rig.desc(0, 0x80000, (32, n))
        rig.desc(1, 0x80000, (64, n))
        rig.desc(2, 7, (1, n))
        rows.append((n, "memory", rig.vdrain(0, 0), n + bursts(n)))
        rows.append((n, "apart", rig.vdrain(1, 0), 2 * n))
        rows.append((n, "peer", rig.peer(2, 0, (2, 1)), n + 1))
    t = await rig.run()
    measured = []
    for n, name, k, flits in rows:
        cycles = t.cycles(k) + 1
        checks.true(f"{name} goal", cycles <= flits + 12, f"n = {n}: {cycles} cycles")
        checks.true(f"{name} bound", cycles <= 5 * n + 8, f"n = {n}: {cycles} cycles")
        measured.append({"name": name, "n": n, "cycles": cycles, "bound": 5 * n + 8, "goal": flits + 12})
    figures.write("drains", measured)
    checks.equal("drain words", int(dut.stat_drain_words.value), sum(3 * n for n, name, *_ in rows if name == "peer"))


@cocotb.test()
async def counters(dut):
    """Counts describe the last RUN: cleared by its first command, kept after its end."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.desc(0, 0x1000, (32, 10))
    rig.vfill(0, 0)
    rig.vdrain(0, 0)
    rig.vhalt()
    rig.vfill(0, 0)
    rig.vfill(0, 20)
    rig.vhalt()
    await rig.run()
    checks.equal("fill words", int(dut.stat_fill_words.value), 20)
    checks.equal("drain words", int(dut.stat_drain_words.value), 0)
    checks.equal("port stalls", int(dut.stat_port_stalls.value), 0)


@cocotb.test()
async def requests(dut):
    """Runs are merged into one request where the walk is contiguous; split at 255 words and at L1 word 256."""
    clocks.start(dut.clk)
    merge = int(dut.MERGE.value)
    rig = Rig(dut, seed())
    expected = 0
    for l1, dims, merged in (
        (0, [(32, 1)], 1), (0, [(32, 64)], 1), (0, [(32, 255)], 1), (0, [(32, 256)], 2), (200, [(32, 100)], 2),
        (256, [(32, 256)], 2), (3, [(32, 5), (4096, 7)], 7), (3, [(64, 9)], 9), (255, [(32, 2)], 2), (254, [(32, 2)],
        1),
    ):  # fmt: skip
        rig.desc(0, 0x4000, *dims)
        rig.vfill(0, l1)
        rig.vbar()
        expected += merged if merge else rig.ref.desc[0].total
    t = await rig.run()
    checks.equal("read requests", len(t.of(0)), expected)
