# SPDX-License-Identifier: Apache-2.0
"""L1 and FILL obligations (docs/spec/cluster.md 3, 4.4)."""

from __future__ import annotations

import cocotb
import numpy as np

from benches.mg_ref import DRAIN, FILL, GEMM, MEM, UNIT, Ref, flit, pack, unpack
from benches.mg_rig import Rig
from kohakubench import checks, clocks, seed

LAT = 40  # L of the ideal memory


def response(tag: int, word: int, data: np.ndarray, bad: int = 0) -> int:
    """One MEM_RD_RESP flit."""
    return flit(UNIT, MEM, 2, tag, int(word == 3), bad << 2 | word, int.from_bytes(data.tobytes(), "little"))


@cocotb.test()
async def fill_sizes(dut):
    """N = 0, 1, 2, 127, 128, 254, 255 and runs that end exactly at the bank, both banks and sides."""
    clocks.start(dut.clk)
    ga, gb, tiles = (int(getattr(dut, name).value) for name in ("GA", "GB", "TILES"))
    rig = Rig(dut, seed(), ga=ga, gb=gb, tiles=tiles)
    rig.operands()
    top = max(ga, gb)
    for bank in range(2 if top == 512 else 1):
        for sel in (0, 1):
            edge = min(256, ga if sel == 0 else gb)
            rig.op(FILL, 0x8000, n=edge - 1, sel=sel, fbank=bank)
            rig.op(FILL, 0x100, n=1, eoff=edge - 1, sel=sel, fbank=bank)
            for k, n in enumerate((0, 1, 2, 127, 128, 254, 255)):
                rig.op(FILL, 0x1000 * k, n=n, sel=sel, fbank=bank)
                size = max(n, 1)
                if size <= edge:
                    rig.op(FILL, 0x1400 * k, n=n, eoff=edge - size, sel=sel, fbank=bank)
    if top == 512:
        rig.probe()
    else:
        nk = min(ga, gb) // 4
        for bank in (0, 1):
            for off in range(0, gb, 4 * nk):
                rig.op(GEMM, gm=4, gn=4, nk=nk, abank=bank, boff=off)
                rig.op(DRAIN, 0x80000, n=16)
    await rig.run()


@cocotb.test()
async def fill_order(dut):
    """Words permuted within an entry, gaps, and foreign traffic between the responses."""
    clocks.start(dut.clk)
    for gap in (0, 100, 230):
        rig = Rig(dut, seed() + gap)
        rig.operands()
        rig.config.update(cfg_perm=1, cfg_gap=gap, cfg_mix=128, cfg_lat=9)
        rig.op(FILL, 0, n=100)
        rig.op(FILL, 0x4000, n=100, sel=1)
        rig.op(FILL, 0x8000, n=60, eoff=100, fbank=1)
        for i in range(80):
            rig.stray(flit(UNIT, (4, 4), 7, i, 1, 0, (i % 4) << 240), delay=i % 7)  # CU_CTRL reads
            rig.stray(flit(UNIT, (5, 4), 6, i, 1, 0, i), delay=i % 3)  # signals, discarded
        rig.op(GEMM, gm=10, gn=10, nk=10)
        rig.op(DRAIN, 0x80000, n=100)
        rig.op(GEMM, gm=10, gn=10, nk=6, abank=1, aoff=100)
        rig.op(DRAIN, 0x90000, n=100, last=1)
        await rig.run()


@cocotb.test()
async def fill_errors(dut):
    """An unreadable word 0 to 3, or all of them: zero in L1, F_MEM_RD, later FILLs unaffected."""
    clocks.start(dut.clk)
    for first, n in ((40, 1), (41, 1), (42, 1), (43, 1), (46, 3), (0, 2000)):
        rig = Rig(dut, seed())
        rig.operands()
        rig.config.update(rd_bad_lo=first, rd_bad_hi=first + n)
        rig.op(FILL, 0x8000, n=20)
        rig.op(FILL, 0x8000, n=20, sel=1)
        for sel in (0, 1):
            rig.op(FILL, 0, n=16, sel=sel, last=sel)
            rig.op(FILL, 0x10000, n=4, eoff=30, sel=sel)
            rig.op(GEMM, gm=4, gn=4, nk=5)
            rig.op(DRAIN, 0x80000 + 0x1000 * sel, n=16)
        await rig.run()


@cocotb.test()
async def fill_stray_words(dut):
    """Stray, duplicate and foreign words raise A_RESP once and never land in an entry."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands()
    rig.config["cfg_mute"] = 1
    w = rig.memory

    def entry(e: int, tag: int, order: tuple[int, ...] = (0, 1, 2, 3), delay: int = 0) -> None:
        for k, word in enumerate(order):
            rig.stray(response(tag, word, w[4 * e + word]), delay=0 if k else delay)

    junk = w[5000]
    rig.stray(response(7, 0, junk))  # no FILL at all
    rig.event(0x88)
    rig.op(FILL, 0, n=3, eoff=10, delay=40)  # reports the stray
    entry(0, 10, (3, 1, 0, 2), delay=900)  # after the clearing walk
    rig.stray(response(9, 0, junk))  # below the range
    rig.event(0x88)
    rig.stray(response(13, 1, junk))  # above it
    entry(1, 11, (2, 0))
    rig.stray(response(11, 2, junk))  # a second copy of word 2: the open entry is discarded
    entry(1, 11, (1, 3))  # so these do not complete it
    rig.stray(response(12, 2, junk))  # discards it again and opens entry 12
    entry(1, 11)  # word 0 of another entry discards that
    entry(2, 12)
    rig.op(FILL, 0x2000, n=1, eoff=40, done=1, delay=60)
    entry(64, 40, delay=100)
    rig.op(FILL, 0x4000, n=16, sel=1, done=2)
    for e in range(16):
        entry(128 + e, e, delay=300 if e == 0 else 0)
    for aoff, addr in ((10, 0x80000), (40, 0x81000)):
        rig.op(GEMM, gm=3, gn=16, nk=1, aoff=aoff)
        rig.op(DRAIN, addr, n=48)
    t = await rig.run(expect=False)
    codes = [(f >> 248 & 255, f >> 216 & 0xFFFF) for f in t.signals(False)]
    checks.equal("stray words reported", codes[:3], [(4, 0x0188), (0, 2), (0, 3)])
    checks.equal("later retirements are clean", [c for c, _ in codes[3:]], [0] * 4)
    ref = Ref(rig.memory.copy())
    for index, first in ((10, 0), (11, 4), (12, 8), (40, 256)):
        ref.l1[0][index] = w[first : first + 4]
    ref.l1[1][:16] = w[512:576].reshape(16, 4, 32)
    for aoff, addr in ((10, 0x80000), (40, 0x81000)):
        ref.gemm(unpack(pack(GEMM, gm=3, gn=16, nk=1, aoff=aoff)))
        ref.drain(unpack(pack(DRAIN, addr, n=48)))
    checks.arrays("entries in spite of strays", rig.image, ref.memory)


@cocotb.test()
async def fill_watchdog(dut):
    """A FILL without answers ends with F_WDOG; its late words are A_RESP; the next FILL works."""
    clocks.start(dut.clk)
    limit = int(dut.FILL_WDOG.value)
    rig = Rig(dut, seed())
    rig.operands()
    rig.config["cfg_mute"] = 1
    rig.op(FILL, 0, n=2, force=0x11)
    rig.event(0x88)
    for w in range(4):
        rig.stray(response(0, w, rig.memory[w]), done=1, delay=20)
    rig.op(FILL, 0x400, n=1, done=1, delay=200, last=1)
    for w in (3, 0, 2, 1):
        rig.stray(response(0, w, rig.memory[32 + w]), delay=300 if w == 3 else 0)
    rig.op(FILL, 0x800, n=1, sel=1, done=2)
    for w in range(4):
        rig.stray(response(0, w, rig.memory[64 + w]), done=2, delay=100)
    rig.op(GEMM, gm=1, gn=1)
    rig.op(DRAIN, 0x80000, n=1)
    t = await rig.run()
    checks.equal("cycles to F_WDOG", t.done[0][0] - t.reads[0], limit + 1)


@cocotb.test()
async def fill_under_sweep(dut):
    """FILL over the running sweep waits and gives the sequential result; beside it, it proceeds (P2)."""
    clocks.start(dut.clk)
    for where in (0, 31, 63, 64, 200):
        for sel in (0, 1):
            rig = Rig(dut, seed())
            rig.operands()
            rig.op(FILL, 0, n=64)
            rig.op(FILL, 0x8000, n=64, sel=1)
            rig.op(GEMM, gm=16, gn=16, nk=4)
            rig.op(FILL, 0x4000, n=1, eoff=where, sel=sel)
            rig.op(GEMM, gm=16, gn=16, nk=4, acc=1)
            rig.op(DRAIN, 0x80000, n=256, last=1)
            t = await rig.run()
            waits = where < 64
            checks.equal(f"FILL of entry {where} waits", t.reads[2] > t.last[0], waits)
            if not waits:
                checks.true("FILL ran under the sweep", t.done[3][0] < t.last[0])


@cocotb.test()
async def fill_other_bank(dut):
    """Data in one bank, zeros in the other, both ways; both banks of a side under a sweep."""
    clocks.start(dut.clk)
    for bank in (0, 1):
        rig = Rig(dut, seed())
        rig.operands()
        rig.op(FILL, 0, n=255, fbank=bank)
        rig.op(FILL, 0x8000, n=255, sel=1, fbank=bank)
        rig.op(GEMM, gm=16, gn=16, nk=15, abank=bank, bbank=bank)
        rig.op(FILL, 0x4000, n=64, fbank=1 - bank)
        rig.op(DRAIN, 0x80000, n=256)
        rig.op(GEMM, gm=16, gn=16, nk=15, abank=1 - bank, bbank=bank, acc=1)
        rig.op(DRAIN, 0x90000, n=256)
        rig.op(GEMM, gm=16, gn=16, nk=15, abank=bank, bbank=1 - bank)
        rig.op(DRAIN, 0xA0000, n=256, last=1)
        await rig.run()


@cocotb.test()
async def unfilled_reads_zero(dut):
    """After a reset every entry reads as zero, although the RAM held data before."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands()
    for bank in (0, 1):
        for sel in (0, 1):
            rig.op(FILL, 0x2000 * sel, n=255, sel=sel, fbank=bank)
            rig.op(FILL, 0x2000, n=1, eoff=255, sel=sel, fbank=bank)
    rig.probe()
    await rig.run()
    rig = Rig(dut, seed() + 1)
    rig.operands()
    rig.probe()
    await rig.run()
    checks.equal("zero sub-tiles", int(rig.image[0x80000 // 32 : 0x88000 // 32].any()), 0)


@cocotb.test()
async def fill_bound(dut):
    """Accept to exec_done <= L + 4N + 8 at L = 10, 40, 200 for both sides."""
    clocks.start(dut.clk)
    for latency in (10, LAT, 200):
        rig = Rig(dut, seed())
        rig.operands()
        rig.config["cfg_lat"] = latency - 2
        sizes = (1, 2, 7, 64, 255)
        for n in sizes:
            rig.op(FILL, 0, n=n, sel=n % 2)
        t = await rig.run()
        for i, n in enumerate(sizes):
            spent = t.done[i][0] - t.accepted[i]
            cocotb.log.info("FILL N %3d L %3d: %d cycles (bound %d)", n, latency, spent, latency + 4 * n + 8)
            checks.true(f"FILL of {n} at L = {latency}", spent <= latency + 4 * n + 8, f"{spent} cycles")
