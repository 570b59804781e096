# SPDX-License-Identifier: Apache-2.0
"""VFILL: placement, order, waiting, errors, watchdog (docs/spec/vector.md 7.8, 9.2)."""

from __future__ import annotations

import cocotb

from benches.vc_mem_rig import ANSWER, HOLD, Rig
from benches.vc_mem_t_ldst import show_l1
from kohakubench import checks, clocks, scale, seed, slow
from kohakubench.vc_mem_ref import F_ADDR, F_ALIGN, F_L1RANGE, F_LEN, F_MEM_RD, F_WDOG, OWN, PORT, flit

ORDERS = {"order": 0, "reversed": 1, "random": 2}


def _response(tag: int, value: int = 0, rsvd: int = 0) -> int:
    return flit(OWN, PORT, 2, tag, 1, rsvd, value)


@cocotb.test()
async def footprints(dut):
    """Every L1 start with n = 1, 8, 128, 255, 256 words, any order of responses: no word misplaced."""
    clocks.start(dut.clk)
    near = [0, 1, 7, 127, 128, 129, 248, 249, 254, 255, 256, 257, 383, 384, 503, 504, 505, 510, 511]
    for order in ORDERS.values():
        starts = range(512) if slow() else sorted({*near, *range(order, 512, 41)})
        rig = Rig(dut, seed() + order, cfg_order=order, cfg_lat=39 if order == 0 else 5, cfg_gap=20, cfg_quiet=1)
        for n in (1, 8, 128, 255, 256):
            for l1 in starts:
                if l1 + n <= 512:
                    rig.desc(0, 32 * int(rig.rng.integers(0, 0x7000)), (32, n))
                    rig.vfill(0, l1)
                    rig.desc(1, 32 * int(rig.rng.integers(0x8000, 0xF000)), (32, n))
                    rig.vdrain(1, l1)
        await rig.run()


@cocotb.test()
async def split_footprints(dut):
    """Two operands and a result with a total footprint of 256..512 words, across word 256."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_order=2, cfg_lat=3, cfg_quiet=1)
    for total in range(256, 513, 1 if slow() else 13):
        n = total // 3
        rig.desc(0, 32 * int(rig.rng.integers(0, 0x4000)), (32, n))
        rig.desc(1, 32 * int(rig.rng.integers(0x4000, 0x7000)), (64, n))
        rig.desc(2, 0x120000 + 32 * (total % 99), (32, total - 2 * n))
        rig.desc(3, total - 8, (1, 8))
        rig.vfill(0, 0)
        rig.vfill(1, n)
        rig.vld(2, 3, -n)
        rig.vst(2, 3)
        rig.vdrain(2, 2 * n)
    await rig.run()


@cocotb.test()
async def fill_walks(dut):
    """Walks of one to four dimensions, forwards and backwards, strides 0 and unlike a word."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_order=2, cfg_lat=2, cfg_busy=60)
    for k in range(scale(60, 1000)):
        dims = []
        for _ in range(int(rig.rng.integers(1, 5))):
            bound = int(rig.rng.integers(0, 5 if k % 3 else 9))
            dims.append((32 * int(rig.rng.choice([1, 1, 2, 3, 8, -1, -4, 0, 40])), bound))
        if k % 5 == 0:
            dims = [(32, int(rig.rng.integers(1, 257)))]
        rig.desc(0, 0x40000 + 32 * k, *dims)
        n = rig.ref.desc[0].total
        if n <= 256:
            rig.vfill(0, int(rig.rng.integers(0, 513 - n)))
    await rig.run()


@cocotb.test()
async def limits(dut):
    """Lengths 1, 255, 256, 257 and 65535^4, unaligned walks, L1 ranges, in the order of the checks."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    expect: list[tuple[int, int]] = []

    def both(l1: int, code: int) -> None:
        expect.append((rig.vfill(0, l1), code))
        if l1 < 512:
            expect.append((rig.vdrain(0, l1), code))

    for dims, code in (
        ([(32, 1)], 0), ([(32, 255)], 0), ([(32, 256)], 0), ([(32, 257)], F_LEN), ([(32, 16), (512, 16)], 0),
        ([(32, 16), (512, 17)], F_LEN), ([(32, 65535), (32, 0)], F_LEN), ([(32, 2)] * 4, 0), ([(32, 2), (64, 8),
        (512, 16)], 0),
        ([(32, 2), (64, 8), (512, 16), (0, 2)], F_LEN), ([(32, 65535)] * 4, F_LEN), ([(32, 256), (32, 256)], F_LEN),
        ([(32, 1), (32, 1), (32, 1), (32, 65535)], F_LEN), ([(32, 512), (32, 512)], F_LEN), ([(32, 32768),
        (0, 2)], F_LEN),
    ):  # fmt: skip
        rig.desc(0, 0x8000, *dims)
        both(0, code)
    for base, dims, code in (
        (0x8010, [(32, 4)], F_ALIGN), (0x8000, [(48, 4)], F_ALIGN), (0x8000, [(48, 1)], 0), (0x8000, [(32, 2),
        (16, 2)], F_ALIGN),
        (0x8000, [(32, 2), (16, 1), (1, 0), (2, 2)], F_ALIGN), (0x8000, [(32, 2), (16, 1), (1, 0), (64, 2)], 0),
        (0x8001, [(32, 257)], F_LEN), (1 << 39 | 4, [(32, 1)], F_ALIGN),
    ):  # fmt: skip
        rig.desc(0, base, *dims)
        both(0, code)
    for n, l1, code in ((256, 256, 0), (256, 257, F_L1RANGE), (1, 511, 0), (2, 511, F_L1RANGE)):
        rig.desc(0, 0x8000, (32, n))
        both(l1, code)
    rig.desc(0, 0x8000, (32, 1))
    for bit in (9, 10, 13):
        both(1 << bit, F_L1RANGE)
    rig.desc(0, 0x8010, (32, 300))
    both(511, F_LEN)
    rig.desc(0, 0x8010, (32, 200))
    both(511, F_ALIGN)
    for k, code in expect:
        checks.equal(f"code of command {k}", rig.ref.codes[k], code)
    t = await rig.run()
    checks.equal("answers", len(t.answers), len(expect))


@cocotb.test()
async def address_space(dut):
    """Walks that leave 0..2^40-1 at their first, a middle and their last word: the words before are moved."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=40)
    top = 1 << 40
    for n in (1, 2, 9, 20):
        for base, stride in (
            (32 * (n - 1), -32), (32 * (n - 2), -32), (0, -32), (top - 32 * n, 32), (top - 32 * (n - 1), 32),
            (top - 32, 32), (top - 32, -32), (top - 64 * n, 64), (64, -64), (top - 1024, 96), (0, -131072 + 32),
        ):  # fmt: skip
            if not 0 <= base < top:
                continue
            rig.desc(0, base, (stride, n))
            l1 = int(rig.rng.integers(0, 500 - n))
            rig.vfill(0, l1)
            rig.vdrain(0, l1)
            rig.desc(0, base, (stride, 2), (stride * 2, (n + 1) // 2))
            rig.vdrain(0, l1)
            rig.vfill(0, l1)
    t = await rig.run()
    codes = [c for _, c in t.answers]
    checks.true("both outcomes", F_ADDR in codes and 0 in codes)


@cocotb.test()
async def waiting(dut):
    """No VBAR: VLD, VST and VDRAIN of outstanding words and VFILL over them wait; others go on."""
    clocks.start(dut.clk)
    for order in ORDERS.values():
        rig = Rig(dut, seed() + order, cfg_order=order, cfg_lat=60, cfg_gap=100, cfg_busy=20)
        for k in range(scale(40, 400)):
            n = int(rig.rng.choice([1, 5, 8, 64, 200]))
            l1 = int(rig.rng.integers(0, 513 - n))
            rig.desc(0, 32 * int(rig.rng.integers(0, 0x7000)), (32, n))
            rig.vfill(0, l1)
            inside = min(l1 + int(rig.rng.integers(0, n)), 504)
            rig.desc(1, inside, (1, 8))
            what = int(rig.rng.integers(0, 5))
            if what == 0:
                rig.vld(k % 16, 1)
            elif what == 1:
                rig.vst(k % 16, 1)
            elif what == 2:
                rig.desc(2, 0x180000 + 32 * k, (32, 8))
                rig.vdrain(2, inside)
            elif what == 3:
                rig.vfill(0, min(inside ^ 256, 512 - n))
            if k % 4 == 0:
                show_l1(rig)
        await rig.run()


@cocotb.test()
async def free_words(dut):
    """While a fill is outstanding, words it does not cover are loaded, stored and drained at once."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_lat=600)
    rig.desc(0, 0x1000, (32, 64))
    rig.desc(1, 64, (1, 8))
    rig.desc(2, 0x100000, (32, 8))
    rig.vfill(0, 0)
    free = [rig.vld(0, 1), rig.vst(1, 1, 8), rig.vdrain(2, 72), rig.vfill(2, 128)]
    tied = [rig.vld(0, 1, -8), rig.vbar()]
    t = await rig.run()
    for k in free:
        checks.true(f"command {k}", t.cycles(k) < 100, f"took {t.cycles(k)} cycles")
    checks.true("load of the last words", t.cycles(tied[0]) > 400, f"took {t.cycles(tied[0])} cycles")


@cocotb.test()
async def read_errors(dut):
    """An error on the first, a middle or the last word, early or late: the same command reports it."""
    clocks.start(dut.clk)
    for order, lat in ((0, 5), (0, 300), (1, 5), (2, 40)):
        rig = Rig(dut, seed(), cfg_order=order, cfg_lat=lat, rd_bad_lo=0x1000, rd_bad_hi=0x1001)
        rig.ignore_l1 = list(range(64))
        for at in (0, 11, 31):
            for touch in range(8):
                rig.desc(0, 32 * (0x1000 - at), (32, 32))
                rig.desc(1, 32 * 0x3000, (32, 32))
                rig.desc(2, 20, (1, 8))
                rig.desc(3, 28, (1, 8))  # the first four words are bad
                rig.desc(4, 0x100000, (32, 4))
                rig.vfill(0, 0)
                rig.vfill(1, 32)
                if touch == 0:
                    rig.vld(0, 2)
                elif touch == 1:
                    rig.vst(0, 2)
                elif touch == 2:
                    rig.vfill(1, 31)
                elif touch == 3:
                    rig.vdrain(4, 30)
                elif touch == 4:
                    rig.vbar()
                elif touch == 5:
                    rig.vhalt()
                elif touch == 6:
                    rig.vfill(4, 60)  # elsewhere: goes on
                    rig.vld(1, 2, 20)
                    rig.desc(5, 33, (-1, 8))
                    rig.vld(2, 5)  # two good words first
                    rig.vst(2, 5, dtype=2)
                    rig.desc(5, 33, (-1, 16))
                    rig.vst(2, 5, dtype=2)
                    rig.vld(3, 5, dtype=2, vl=32)
                    rig.vbar()
                rig.quiesce()
                rig.vfill(1, 0)  # a clean start
                rig.vbar()
                rig.vdrain(1, 0)
        t = await rig.run()
        checks.true("reported", sum(c == F_MEM_RD for _, c in t.answers) >= 3 * 7)


@cocotb.test()
async def many_bad_fills(dut):
    """More failed fills than can be in flight, untouched: later fills still work, VBAR reports once."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_lat=20, rd_bad_lo=0x1000, rd_bad_hi=0x1100)
    rig.ignore_l1 = list(range(0, 512, 2))
    rig.desc(0, 32 * 0x1000, (32, 1))
    rig.desc(1, 32 * 0x2000, (32, 1))
    for k in range(0, 64, 2):
        rig.vfill(0, k)
        rig.vfill(1, k + 1)
    rig.desc(2, 1, (2, 8))
    rig.vld(0, 2)
    checks.equal("bar", rig.ref.codes[rig.vbar()], F_MEM_RD)
    rig.vhalt()
    checks.equal("after", rig.ref.codes[rig.vbar()], 0)
    await rig.run()


@cocotb.test()
async def stray_responses(dut):
    """Responses that nobody waits for, duplicates, late ones: dropped, one event each."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_lat=300, cfg_mix=255)
    rig.desc(0, 0x1000, (32, 4))
    for tag in (0, 7, 255):
        rig.stray(_response(tag, (1 << 256) - 1))
    rig.stray(flit(OWN, PORT, 3, 0, 1, 0, 5))  # a type the unit does not know
    rig.wait_entered()
    rig.vfill(0, 254)
    rig.stray(_response(253, 5), after=1)
    rig.stray(_response(2, 5), after=1)
    rig.vbar()
    for tag in (254, 255, 0, 1):
        rig.stray(_response(tag, 9), after=2)
    rig.wait_entered()
    show_l1(rig)
    t = await rig.run()
    checks.equal("A_RESP events", t.raised(8), 9)
    checks.equal("A_RESP flags", t.raised(2), 9)


@cocotb.test()
async def duplicate_response(dut):
    """The second response of a word of an open fill is dropped; the fill ends with its own last word."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_limit=0, cfg_mix=255)
    rig.ref.limit = 1 << 31
    rig.desc(0, 0x1000, (32, 3))
    rig.vfill(0, 10)
    values = [int.from_bytes(rig.memory[0x80 + k].tobytes(), "little") for k in range(3)]
    for tag, value in ((11, values[1]), (11, 99), (10, values[0]), (11, 98), (12, values[2]), (10, 97)):
        rig.stray(_response(tag, value), after=1)
    rig.vbar()
    rig.wait_entered()
    show_l1(rig)
    t = await rig.run()
    checks.equal("A_RESP events", t.raised(8), 3)


@cocotb.test()
async def watchdog(dut):
    """No response: every outstanding fill becomes bad with F_WDOG; late responses are events; then all works."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_limit=10)
    rig.ignore_l1 = list(range(0, 40))
    rig.desc(0, 0x1000, (32, 8))
    rig.desc(1, 0x2000, (64, 8))
    rig.desc(2, 32 * 0x400, (32, 4))
    rig.desc(3, 7, (1, 8))
    rig.desc(4, 8, (1, 8))
    rig.vfill(0, 0)  # answered
    rig.vfill(1, 8)  # two words answered
    rig.vfill(2, 32)  # none
    checks.equal("load", rig.ref.codes[rig.vld(0, 3)], F_WDOG)
    checks.equal("fill", rig.ref.codes[rig.vfill(0, 35)], F_WDOG)
    checks.equal("bar", rig.ref.codes[rig.vbar()], F_WDOG)
    rig.quiesce()
    rig.setting(ANSWER, 0x7FFFFFFF)
    rig.pause(200)  # the late words
    rig.vbar()
    rig.ref.limit = 1 << 31
    rig.vfill(0, 8)
    rig.vld(1, 4)
    rig.vdrain(2, 8)
    t = await rig.run()
    checks.equal("watchdog flag", t.raised(5), 1)
    checks.equal("late responses", t.raised(8), 10)
    checks.true("time", 3000 < t.cycles(3) < 3200, f"{t.cycles(3)} cycles")


@cocotb.test()
async def watchdog_blocked(dut):
    """The watchdog while the send link holds requests back: the walk stops, the offered request leaves later."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_limit=0)
    rig.ignore_l1 = list(range(0, 64))
    rig.desc(0, 0x1000, (64, 64))
    rig.setting(HOLD, 1)
    rig.pause(20)
    rig.vfill(0, 0)
    checks.equal("bar", rig.ref.codes[rig.vbar()], F_WDOG)
    rig.setting(HOLD, 0)
    rig.vhalt()
    rig.setting(ANSWER, 0x7FFFFFFF)
    rig.pause(300)
    rig.ref.limit = 1 << 31
    rig.ref.reads.clear()
    rig.vfill(0, 100)
    rig.vdrain(0, 100)
    t = await rig.run(reads=False)
    checks.equal("requests", len(t.of(0)), 1 + 64)
    checks.equal("late responses", t.raised(8), 1)


@cocotb.test()
async def blocked_link(dut):
    """The send link blocked before every flit in turn: the same flits, the same memory."""
    clocks.start(dut.clk)
    for at in range(0, 40, scale(6, 1)):
        rig = Rig(dut, seed(), block_flit=at, block_len=500 if at % 2 else 37, cfg_lat=10)
        rig.desc(0, 0x1000, (64, 6), (32, 2))
        rig.desc(1, 0x100000, (32, 11))
        rig.desc(2, 0x00110000, (1, 5))
        rig.vfill(0, 250)
        rig.vdrain(1, 250)
        rig.peer(2, 252, (2, 1), 0, 1)
        rig.burst(0, rig.words(3))
        rig.vhalt()
        await rig.run()
