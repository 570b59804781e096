# SPDX-License-Identifier: Apache-2.0
"""Bursts of the host window: shapes, orders of the channels, strobes, pressure (docs/spec/memory.md 9)."""

import itertools

import cocotb

from benches.mag_host_rig import Host
from kohakubench import checks, clocks, scale
from kohakubench.mag_model import WORD, read_request, write_flits
from kohakubench.mag_tb import DRAMCNT, STGCNT, UNITS
from kohakubench.window_channels import OKAY, words_of


@cocotb.test()
async def ends_at_a_page(dut):
    """Reads and writes that end at byte 4095, 4096 and 4097, of every length to 33 and some longer."""
    h = await Host.start(dut)
    for tier in h.tiers():
        for end in (4095, 4096, 4097):
            for n in [1, 2, 31, 32, 33, 64, 100, 1000, 4000]:
                await h.write(tier, end - n + 1, h.rng.randbytes(n))
                await h.read(tier, end - n + 1, n)
    await h.same()


@cocotb.test()
async def long_bursts(dut):
    """256 full beats in one burst, from word 0 and across two pages, both memories; MEM counters."""
    h = await Host.start(dut, raw=True)
    before = [await h.tb.register(r) for r in (DRAMCNT, STGCNT)]
    for tier in h.tiers():
        for at in (0, 4096 - 32, 4096 - 128, 2048, 8192 + 64):
            await h.put(tier, at, [h.word() for _ in range(256)], ident=5)
            await h.get(tier, at, 256, ident=9)
    after = [await h.tb.register(r) for r in (DRAMCNT, STGCNT)]
    for name, a, b in zip(("DRAM", "staging"), before, after, strict=True):
        delta = (b >> 32) - (a >> 32), (b & 0xFFFFFFFF) - (a & 0xFFFFFFFF)
        checks.equal(f"{name} words written, read", delta, (5 * 256, 5 * 256))
    await h.same()


@cocotb.test()
async def w_before_aw(dut):
    """Data offered long before its address; both memories."""
    h = await Host.start(dut, raw=True)
    for base, image in h.tiers():
        for n in (1, 7, 40):
            words = [h.word() for _ in range(n)]
            await h.raw.data(words)
            await clocks.cycles(60)
            await h.raw.address(True, base + 0x1FC0, n, ident=n & 15)
            h.store(image, 0x1FC0, words)
            checks.equal("B", await h.raw.answer(), (n & 15, OKAY))
    await h.same()


@cocotb.test()
async def aw_aw_w_w(dut):
    """Two to four addresses queued before any data: data binds to them in order."""
    h = await Host.start(dut, raw=True)
    for base, image in h.tiers():
        for n in (2, 4):
            bursts = [(0x300 * k + 0xFE0, [h.word() for _ in range(3 + k)]) for k in range(n)]
            for k, (at, words) in enumerate(bursts):
                await h.raw.address(True, base + at, len(words), ident=k)
            await clocks.cycles(30)
            for at, words in bursts:
                await h.raw.data(words)
                h.store(image, at, words)
            answers = [await h.raw.answer() for _ in bursts]
            checks.equal("answers", answers, [(k, OKAY) for k in range(n)], n=n)
    await h.same()


@cocotb.test()
async def sixteen_outstanding(dut):
    """16 writes and 16 reads with different IDs offered at once."""
    h = await Host.start(dut, raw=True)
    base, image = h.tiers()[0]
    for ident in range(16):
        await h.raw.address(True, base + 0x8000 + 256 * ident, 4, ident=ident)
    for ident in range(16):
        await h.raw.address(False, base + 256 * ident, 8, ident=ident)
    for ident in range(16):
        words = [h.word() for _ in range(4)]
        h.store(image, 0x8000 + 256 * ident, words)
        await h.raw.data(words)
    answers = [await h.raw.answer() for _ in range(16)]
    checks.equal("answers", answers, [(k, OKAY) for k in range(16)], n=16)
    got = await h.raw.beats(128)
    expected = [(k, OKAY, w, int(i == 7)) for k in range(16) for i, w in enumerate(words_of(image, 256 * k, 8))]
    checks.equal("beats", got, expected, n=128)
    await h.same()


@cocotb.test()
async def interleaved_r(dut):
    """The memory interleaves the host's R beats with those of a busy port: both see their own, in order."""
    h = await Host.start(dut, interleave=1, reorder=1, lat_min=1, lat_max=60)
    for _ in range(scale(3, 20)):
        steps = [
            read_request(UNITS[k % 4], k, h.tb.own(h.rng.randrange(1000) * WORD), 64, port=h.tb.port) for k in range(20)
        ]
        port = cocotb.start_soon(h.tb.play(steps, compare=False))
        for _ in range(8):
            tier = h.tiers()[h.rng.randrange(2)]
            await h.read(tier, h.rng.randrange(20000), h.rng.randrange(1, 6000))
        await port
        h.tb.compare_flits()


@cocotb.test()
async def b_delayed(dut):
    """B held back 100 cycles, by the host and by the memory, while R flows to the port."""
    h = await Host.start(dut, raw=True)
    base, image = h.tiers()[0]
    for slow in ("host", "memory"):
        h.tb.dram.configure(b_pct=0 if slow == "memory" else 90)
        h.raw.b.pause = slow == "host"
        words = [h.word() for _ in range(20)]
        h.store(image, 0x8000, words)
        await h.raw.address(True, base + 0x8000, 20, ident=3)
        await h.raw.data(words)
        await clocks.cycles(60)
        await h.port_reads()
        checks.true("B still waits", h.raw.b.empty())
        held = int(dut.s_axi_mem_bvalid.value)
        checks.equal("BVALID", held, int(slow == "host"))
        h.tb.dram.configure(b_pct=90)
        h.raw.b.pause = False
        checks.equal("B", await h.raw.answer(), (3, OKAY))
    # R not taken for long holds no port either.
    h.raw.r.pause = True
    await h.raw.address(False, base, 200, ident=2)
    await clocks.cycles(200)
    await h.port_reads()
    h.raw.r.pause = False
    got = await h.raw.beats(200)
    checks.equal("beats", [d for _, _, d, _ in got], words_of(image, 0, 200), n=200)
    await h.same()


@cocotb.test()
async def strobes(dut):
    """Every single byte, every run of bytes, random and empty patterns; unaligned addresses select nothing."""
    h = await Host.start(dut, raw=True)
    every = [1 << k for k in range(32)] + [((1 << n) - 1) << k for n in range(2, 33) for k in range(33 - n)]
    patterns = h.rng.sample(every, len(every)) + [0] * 8 + [h.rng.getrandbits(32) for _ in range(60)]
    for tier in h.tiers():
        for first in range(0, len(patterns), 50):
            part = patterns[first : first + 50]
            await h.put(tier, 0x3000, [h.word() for _ in part], part, skew=h.rng.randrange(32))
            await h.get(tier, 0x3000, len(part), skew=h.rng.randrange(32))
    await h.same()


@cocotb.test()
async def pressure(dut):
    """Random pauses on all five channels, slow memory, a busy port: every byte, every response."""
    h = await Host.start(dut)
    axi = h.axi
    pauses = lambda p: (h.rng.random() < p for _ in itertools.count())  # noqa: E731
    for level in (0.0, 0.3, 0.8):
        for ch in (axi.write_if.aw_channel, axi.write_if.w_channel, axi.write_if.b_channel):
            ch.set_pause_generator(pauses(level))
        for ch in (axi.read_if.ar_channel, axi.read_if.r_channel):
            ch.set_pause_generator(pauses(level))
        port = [
            f
            for k in range(40)
            for f in write_flits(UNITS[1], k, h.tb.own(0x10000 + 256 * k), [h.word()] * 8, port=h.tb.port)
        ]
        play = cocotb.start_soon(h.tb.play(port, compare=False))
        for _ in range(scale(12, 100)):
            tier = h.tiers()[h.rng.randrange(2)]
            n, at = h.rng.choice((1, 32, 500, 2100)), h.rng.randrange(40000)
            await h.write(tier, at, h.rng.randbytes(n))
            await h.read(tier, max(0, at - 40), n + 80)
        await play
        h.tb.compare_flits()
    for ch in (
        axi.write_if.aw_channel,
        axi.write_if.w_channel,
        axi.write_if.b_channel,
        axi.read_if.ar_channel,
        axi.read_if.r_channel,
    ):
        ch.clear_pause_generator()
        ch.pause = False
    await h.same()


@cocotb.test()
async def write_then_read(dut):
    """With AW and AR on offer together the write goes first, and B means the bytes are there."""
    h = await Host.start(dut, raw=True, lat_min=50, lat_max=200)
    for base, image in h.tiers():
        for k in range(6):
            words = [h.word() for _ in range(1 + 6 * k)]
            h.store(image, 0x900, words)
            await h.raw.data(words)
            await h.raw.address(True, base + 0x900, len(words), ident=1)
            await h.raw.address(False, base + 0x900, len(words), ident=2)
            got = await h.raw.beats(len(words))
            checks.equal("B before R", await h.raw.answer(), (1, OKAY))
            checks.equal("new bytes", [d for _, _, d, _ in got], words, n=len(words))
            await h.put((base, image), 0x2900, words)
            if base == h.tb.own(0):
                there = await h.tb.dram.read(0x2900, WORD * len(words))
                checks.equal("bytes at B", there, bytes(image[0x2900 : 0x2900 + WORD * len(words)]))
    await h.same()
