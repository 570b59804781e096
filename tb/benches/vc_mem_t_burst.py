# SPDX-License-Identifier: Apache-2.0
"""CU_DATA bursts into L1, rejections, acknowledgements (docs/spec/vector.md 10)."""

from __future__ import annotations

import cocotb
import numpy as np

from benches.vc_mem_rig import BUSY, HOLD, Rig, burst_flits
from benches.vc_mem_t_ldst import show_l1
from kohakubench import checks, clocks, scale, seed


@cocotb.test()
async def burst_ranges(dut):
    """offset + len = 511 and 512, lengths 1 and 256, buffers 0..255, explicit and implicit acknowledgement."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    for off, n in ((0, 1), (511, 1), (256, 256), (0, 256), (510, 2), (512, 1), (511, 2), (257, 256), (65535, 1),
                   (65535, 2), (65300, 256), (65280, 256), (1 << 9, 1), (1 << 15, 1), (300, 7)):  # fmt: skip
        rig.burst(off, rig.words(n), txn=off & 255)
    for buf in (1, 2, 3, 16, 128, 255):
        rig.burst(0, rig.words(2), buf=buf)
        rig.burst(0, rig.words(2), buf=buf, signal=0)
    for ack, src in (((0, 0), (2, 1)), ((0, 0), (15, 3)), ((5, 9), (2, 1)), ((0, 7), (3, 3)), ((7, 0), (3, 3))):
        rig.burst(20, rig.words(3), ack=ack, src=src, txn=0x5A)
        rig.burst(600, rig.words(3), ack=ack, src=src, txn=0xA5)
    rig.burst(40, rig.words(9), signal=0)
    t = await rig.run()
    checks.equal("third senders", t.raised(0), 0)


@cocotb.test()
async def wrong_last(dut):
    """`last` early and late: reason 5, the words up to the wrong one stay, the next burst is whole."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    for n, at, value in ((5, 2, 1), (5, 0, 1), (1, 0, 0), (5, 4, 0), (256, 100, 1)):
        data = rig.words(n)
        flits = burst_flits(0, 30, data, (2, 1), (1, 1), 1, 0)
        flits[1 + at] = flits[1 + at] & ~(1 << 259) | value << 259
        for f in flits:
            rig.stray(f)
        rig.ref.l1[30 : 31 + at] = data[: 1 + at]
        rig.ref.burst(0, 30, data, (2, 1), (1, 1), 1, 0, reason=5)
        rig.burst(400, rig.words(4))
    await rig.run()


@cocotb.test()
async def second_sender(dut):
    """A second sender in every phase: rejected with reason 4, the open burst intact; a third raises its flag."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    for at in range(7):
        first, second = rig.words(5), rig.words(3)
        a = burst_flits(0, 10, first, (2, 1), (1, 1), 1, 1)
        b = burst_flits(0, 200, second, (3, 2), (0, 0), 1, 2)
        merged = [*a[:at], *b, *a[at:]] if 0 < at < 6 else [*a, *b]
        for f in merged:
            rig.stray(f)
        if 0 < at < 6:
            rig.ref.burst(0, 200, second, (3, 2), (0, 0), 1, 2, reason=4)
            rig.ref.burst(0, 10, first, (2, 1), (1, 1), 1, 1)
        else:
            rig.ref.burst(0, 10, first, (2, 1), (1, 1), 1, 1)
            rig.ref.burst(0, 200, second, (3, 2), (0, 0), 1, 2)
    a, b = (
        burst_flits(0, 10, rig.words(4), (2, 1), (1, 1), 1, 1),
        burst_flits(0, 50, rig.words(2), (3, 2), (0, 0), 1, 2),
    )
    third = burst_flits(0, 70, rig.words(2), (4, 2), (0, 0), 1, 3)
    for f in (*a[:2], b[0], *third, *a[2:], *b[1:]):
        rig.stray(f)
    for k, f in enumerate(a[1:]):
        rig.ref.l1[10 + k] = np.frombuffer((f & (1 << 256) - 1).to_bytes(32, "little"), np.uint8)
    rig.ref.burst(0, 10, rig.ref.l1[10:14].copy(), (2, 1), (1, 1), 1, 1)
    rig.ref.burst(0, 50, rig.words(2), (3, 2), (0, 0), 1, 2, reason=4)
    t = await rig.run()
    checks.equal("flits of a third sender", t.raised(0), 3)


@cocotb.test()
async def acknowledgement_queue(dut):
    """64 acknowledgements wait behind a blocked link while bursts and fill responses still land."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_lat=400, cfg_mix=255)
    rig.desc(0, 0x1000, (32, 100))
    rig.vfill(0, 300)
    rig.pause(150)
    rig.setting(HOLD, 1)
    for k in range(64):
        rig.burst(k, rig.words(3), txn=k, after=1, delay=0 if k else 250)
    rig.wait_entered()
    bar = rig.vbar()
    rig.setting(HOLD, 0)
    rig.wait_signals(64)
    show_l1(rig)
    t = await rig.run()
    checks.true(
        "the fill ended with the link blocked", t.answers[bar][0] < min(c for c, f in t.out if f >> 268 & 15 == 6)
    )


@cocotb.test()
async def full_queue_holds(dut):
    """The burst end that finds the queue full waits; nothing is lost."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.setting(HOLD, 1)
    for k in range(80):
        rig.burst(5 * k, rig.words(2), txn=k, src=(2 + k % 3, 1))
    rig.pause(1500)
    rig.setting(HOLD, 0)
    rig.wait_signals(80)
    await rig.run()


@cocotb.test()
async def bursts_beside_commands(dut):
    """Bursts during VLD, VST, fills, drains: each word placed by its own rule, signals not inside a write burst."""
    clocks.start(dut.clk)
    for part in range(scale(3, 20)):
        rig = Rig(
            dut, seed() + part, cfg_order=part % 3, cfg_lat=20, cfg_busy=40, cfg_gap=60, cfg_mix=100 + 50 * part % 150
        )
        rig.desc(0, 0x1000, (32, 60))
        rig.desc(1, 0, (1, 8))
        rig.desc(2, 0x100000, (32, 60))
        rig.desc(3, 0x00110000, (1, 100))
        for k in range(20):
            rig.vfill(0, 64 * (k % 4))
            rig.vst(k % 16, 1, 64 * (k % 4))
            rig.vld(k % 16, 1, 64 * (k % 4) + 8)
            rig.vst(k % 7, 1, 64 * (k % 4) + 30, dtype=2)
            rig.vdrain(2, 64 * (k % 4))
            rig.peer(3, 20, (2, 1), 0, 1)
        for _ in range(60):
            n = int(rig.rng.integers(1, 30))
            rig.burst(int(rig.rng.integers(256, 513 - n)), rig.words(n), gap=int(rig.rng.integers(0, 3)))
        await rig.run()


@cocotb.test()
async def store_against_bursts(dut):
    """VST while a word arrives in every cycle: delayed by one cycle a word, never lost."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_mix=255)
    rig.setting(BUSY, 0)
    rig.desc(1, 0, (1, 16))
    for _ in range(5):
        rig.burst(256, rig.words(256))
    rig.wait_sent(0)
    for k in range(16):
        rig.vst(k, 1, 16 * (k % 8), dtype=1 + k % 2)
    show_l1(rig)
    t = await rig.run()
    checks.equal("port stalls", int(dut.stat_port_stalls.value) > 200, True)
    checks.equal("drained words", int(dut.stat_drain_words.value), 512)
    checks.equal("signals", len(t.of(6)), 5)
