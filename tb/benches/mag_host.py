# SPDX-License-Identifier: Apache-2.0
"""Host window S_AXI_MEM of the memory agent, driven by an AXI4 master (docs/spec/memory.md 9)."""

import itertools
import logging

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, with_timeout
from cocotbext.axi import AxiBus, AxiMaster, AxiResp
from cocotbext.axi.axi_channels import (
    AxiARSource,
    AxiARTransaction,
    AxiAWSource,
    AxiAWTransaction,
    AxiBSink,
    AxiRSink,
    AxiWSource,
    AxiWTransaction,
)

from kohakubench import Bench, checks, clocks, scale
from kohakubench.mag_model import M_APER, M_BUS, M_MESH, M_RANGE, M_RSVD, WORD, read_request, write_flits
from kohakubench.mag_tb import DRAMCNT, DROP, FAULT, PUBLIC, SOURCES, STGCNT, UNITS, MagTb

HOSTX = 12
INCR, FIXED, WRAP = 1, 0, 2
OKAY, SLVERR, DECERR = AxiResp.OKAY, AxiResp.SLVERR, AxiResp.DECERR

BENCH = Bench(
    name="mag_host",
    top="tb_mag",
    sources=SOURCES,
    params={"HOST": 1, "STAGE": 1, "STAGE_ENTRIES": 1024, "DRAM_LOG2": 17},
    slow_variants=("mesh1",),
    variants={"mesh1": {"MESH_ID": 1, "STAGE_PIPE": 0, "RD_OUT": 1}},
    public=PUBLIC,
    mutations={
        "page_split": ("rtl/memory/mag_host.v", "8'd128 - {1'b0, word_q[6:0]}", "8'd128"),
        "strobes": ("rtl/memory/mag_host.v", ".in_data   ({s_axi_mem_wstrb,", ".in_data   ({~32'd0,"),
        "id_lost": ("rtl/memory/mag_host.v", "assign s_axi_mem_rid     = id_q;", "assign s_axi_mem_rid     = 4'd0;"),
        "early_b": (
            "rtl/memory/mag_host.v",
            "(ask_q == 9'd0 && open_q == 5'd0));",
            "(ask_q == 9'd0));",
        ),
        "range_open": ("rtl/memory/mag_host.v", ".words ({2'd0, words}),", ".words (11'd1),"),
        "read_first": (
            "rtl/memory/mag_host.v",
            "state_q == S_IDLE && !s_axi_mem_awvalid;",
            "state_q == S_IDLE;",
        ),
        "error_kept": (
            "rtl/memory/mag_host.v",
            "(refused || ret_err) ? 256'd0 : ret_data",
            "refused ? 256'd0 : ret_data",
        ),
        "bus_error_lost": ("rtl/memory/mag_host.v", ": bus_q ? SLVERR : OKAY;", ": OKAY;"),
        "burst_type": ("rtl/memory/mag_host.v", "s_axi_mem_awburst != INCR || ", ""),
        "wrong_class": (
            "rtl/memory/mag.v",
            "host_bad_addr, 16'd0, `KT_MEM_CLS_HOST",
            "host_bad_addr, 16'd0, `KT_MEM_CLS_PORT",
        ),
        "no_reservation": ("rtl/memory/mag_host.v", "ask && free_q >= {1'b0, piece};", "ask;"),
        "reset_keeps": ("rtl/memory/mag_host.v", "open_q     <= 5'd0;", "open_q     <= open_q;"),
    },
    mutation_tests={
        "page_split": ["long_bursts"],
        "strobes": ["ends_at_a_page"],
        "id_lost": ["sixteen_outstanding"],
        "early_b": ["write_then_read"],
        "range_open": ["refused"],
        "read_first": ["write_then_read"],
        "error_kept": ["errors_on_any_beat"],
        "bus_error_lost": ["errors_on_any_beat"],
        "burst_type": ["refused"],
        "wrong_class": ["refused"],
        "no_reservation": ["b_delayed"],
        "reset_keeps": ["reset_inside_a_burst"],
    },
    wall_s=400,
)


class _Raw:
    """The five channels, each under the test's control."""

    def __init__(self, dut):
        bus = AxiBus.from_prefix(dut, "s_axi_mem")
        make = lambda kind, ch: kind(ch, dut.clk, dut.rst_n, reset_active_level=False)  # noqa: E731
        self.aw, self.w, self.b = (
            make(AxiAWSource, bus.write.aw),
            make(AxiWSource, bus.write.w),
            make(AxiBSink, bus.write.b),
        )
        self.ar, self.r = make(AxiARSource, bus.read.ar), make(AxiRSink, bus.read.r)

    async def address(self, write, addr, n, *, ident=0, burst=INCR, size=5):
        if write:
            item = AxiAWTransaction(awid=ident, awaddr=addr, awlen=n - 1, awsize=size, awburst=burst)
            await self.aw.send(item)
        else:
            await self.ar.send(AxiARTransaction(arid=ident, araddr=addr, arlen=n - 1, arsize=size, arburst=burst))

    async def data(self, words, strobes=None):
        for k, word in enumerate(words):
            strb = 0xFFFFFFFF if strobes is None else strobes[k]
            await self.w.send(AxiWTransaction(wdata=word, wstrb=strb, wlast=int(k == len(words) - 1)))

    async def answer(self):
        """(id, response) of the next B."""
        b = await with_timeout(self.b.recv(), 200, "us")
        return int(b.bid), AxiResp(int(b.bresp))

    async def beats(self, n):
        """(id, response, data, last) of the next ``n`` R beats."""
        out = []
        for _ in range(n):
            r = await with_timeout(self.r.recv(), 200, "us")
            out.append((int(r.rid), AxiResp(int(r.rresp)), int(r.rdata), int(r.rlast)))
        return out

    async def write(self, addr, words, strobes=None, **kw):
        await self.address(True, addr, len(words), **kw)
        await self.data(words, strobes)
        return await self.answer()

    async def read(self, addr, n, **kw):
        await self.address(False, addr, n, **kw)
        return await self.beats(n)


class _Host:
    """Bench with the reference images: DRAM and staging as the host has left them."""

    @classmethod
    async def start(cls, dut, *, raw=False, **dram):
        self = cls()
        logging.getLogger("cocotb").setLevel(logging.WARNING)
        self.tb = await MagTb.start(dut, **dram)
        self.dut, self.rng, self.m = dut, self.tb.rng, self.tb.model
        if raw:
            self.raw = _Raw(dut)
        else:
            self.axi = AxiMaster(AxiBus.from_prefix(dut, "s_axi_mem"), dut.clk, dut.rst_n, reset_active_level=False)
        await clocks.cycles(2)
        return self

    def tiers(self):
        """(window address of byte 0, reference image) of both memories."""
        return (self.tb.own(0), self.m.memory), (self.tb.staged(0), self.m.stage)

    async def write(self, tier, at, data):
        base, image = tier
        image[at : at + len(data)] = data
        done = await with_timeout(self.axi.write(base + at, data), 400, "us")
        checks.equal(f"write {base + at:#x}", done.resp, OKAY)

    async def read(self, tier, at, n):
        base, image = tier
        done = await with_timeout(self.axi.read(base + at, n), 400, "us")
        checks.equal(f"response {base + at:#x}", done.resp, OKAY)
        checks.true(f"bytes {base + at:#x}+{n}", bytes(done.data) == bytes(image[at : at + n]))

    def word(self):
        return self.rng.getrandbits(256)

    def store(self, image, at, words, strobes=None):
        """Apply whole-word beats to a reference image."""
        for k, word in enumerate(words):
            strb = 0xFFFFFFFF if strobes is None else strobes[k]
            for b in range(32):
                if strb >> b & 1:
                    image[at + WORD * k + b] = word >> 8 * b & 255

    async def same(self):
        """Both memories hold what the reference holds."""
        await self.tb.compare_memory()
        n = self.tb.stage_bytes // WORD
        await self.tb.play(
            [
                read_request(UNITS[0], k & 255, self.tb.staged(256 * WORD * k), 256, port=self.tb.port)
                for k in range(n // 256)
            ],
            limit=200_000,
        )


def _expect(image, at, n):
    return [int.from_bytes(image[at + WORD * k : at + WORD * k + WORD], "little") for k in range(n)]


@cocotb.test()
async def ends_at_a_page(dut):
    """Reads and writes that end at byte 4095, 4096 and 4097, of every length to 33 and some longer."""
    h = await _Host.start(dut)
    for tier in h.tiers():
        for end in (4095, 4096, 4097):
            for n in [1, 2, 31, 32, 33, 64, 100, 1000, 4000]:
                await h.write(tier, end - n + 1, h.rng.randbytes(n))
                await h.read(tier, end - n + 1, n)
    await h.same()


@cocotb.test()
async def long_bursts(dut):
    """256 full beats in one burst, from word 0 and across two pages, both memories; MEM counters."""
    h = await _Host.start(dut, raw=True)
    before = [await h.tb.register(r) for r in (DRAMCNT, STGCNT)]
    for base, image in h.tiers():
        for at in (0, 4096 - 32, 4096 - 128, 2048, 8192 + 64):
            words = [h.word() for _ in range(256)]
            h.store(image, at, words)
            checks.equal("B", await h.raw.write(base + at, words, ident=5), (5, OKAY))
            got = await h.raw.read(base + at, 256, ident=9)
            expected = [(9, OKAY, w, int(k == 255)) for k, w in enumerate(_expect(image, at, 256))]
            checks.equal("beats", got, expected, n=256)
    after = [await h.tb.register(r) for r in (DRAMCNT, STGCNT)]
    for name, a, b in zip(("DRAM", "staging"), before, after, strict=True):
        delta = (b >> 32) - (a >> 32), (b & 0xFFFFFFFF) - (a & 0xFFFFFFFF)
        checks.equal(f"{name} words written, read", delta, (5 * 256, 5 * 256))
    await h.same()


@cocotb.test()
async def w_before_aw(dut):
    """Data offered long before its address; both memories."""
    h = await _Host.start(dut, raw=True)
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
    h = await _Host.start(dut, raw=True)
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
    h = await _Host.start(dut, raw=True)
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
    expected = [(k, OKAY, w, int(i == 7)) for k in range(16) for i, w in enumerate(_expect(image, 256 * k, 8))]
    checks.equal("beats", got, expected, n=128)
    await h.same()


@cocotb.test()
async def interleaved_r(dut):
    """The memory interleaves the host's R beats with those of a busy port: both see their own, in order."""
    h = await _Host.start(dut, interleave=1, reorder=1, lat_min=1, lat_max=60)
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
    h = await _Host.start(dut, raw=True)
    base, image = h.tiers()[0]
    for slow in ("host", "memory"):
        h.tb.dram.configure(b_pct=0 if slow == "memory" else 90)
        h.raw.b.pause = slow == "host"
        words = [h.word() for _ in range(20)]
        h.store(image, 0x8000, words)
        await h.raw.address(True, base + 0x8000, 20, ident=3)
        await h.raw.data(words)
        await clocks.cycles(60)
        steps = [read_request(UNITS[0], k, h.tb.own(0x1000 * k), 100, port=h.tb.port) for k in range(2)]
        await h.tb.play(steps, compare=False)
        h.tb.compare_flits()
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
    steps = [read_request(UNITS[0], k, h.tb.own(0x1000 * k), 100, port=h.tb.port) for k in range(2)]
    await h.tb.play(steps, compare=False)
    h.tb.compare_flits()
    h.raw.r.pause = False
    got = await h.raw.beats(200)
    checks.equal("beats", [d for _, _, d, _ in got], _expect(image, 0, 200), n=200)
    await h.same()


@cocotb.test()
async def errors_on_any_beat(dut):
    """A bus error of either kind on each beat of a burst: SLVERR there, data 0, once in MEM_FAULT."""
    h = await _Host.start(dut, raw=True)
    base, image = h.tiers()[0]
    for resp in (2, 3):
        for bad in (0, 1, 15, 31, 32, 39):
            at = 0x2000 - 8 * WORD
            window = {"err_lo": at + bad * WORD, "err_hi": at + bad * WORD + WORD, "err_resp": resp}
            h.tb.dram.configure(err_rd=1, err_wr=0, **window)
            got = await h.raw.read(base + at, 40, ident=bad & 15)
            expected = [
                (bad & 15, SLVERR if k == bad else OKAY, 0 if k == bad else w, int(k == 39))
                for k, w in enumerate(_expect(image, at, 40))
            ]
            checks.equal(f"beats, error on {bad}", got, expected, n=40)
            fault = await h.tb.register(FAULT)
            checks.equal("MEM_FAULT", fault, (base + at) << 24 | 1 << 4 | M_BUS)
            h.tb.dram.configure(err_rd=0, err_wr=1, **window)
            checks.equal("B", await h.raw.write(base + at, [h.word() for _ in range(40)]), (0, SLVERR))
            checks.equal("counted", await h.tb.register(DROP), 2)
            await h.tb.clear()
            h.tb.dram.configure(err_rd=0, err_wr=0)
            words = [h.word() for _ in range(40)]
            h.store(image, at, words)
            checks.equal("B", await h.raw.write(base + at, words), (0, OKAY))
    checks.equal("no fault", await h.tb.register(FAULT), 0)
    await h.same()


@cocotb.test()
async def refused(dut):
    """Every refusal answers the full burst with its response, stores nothing and names itself in MEM_FAULT."""
    h = await _Host.start(dut, raw=True)
    own, staged = h.tb.own(0), h.tb.staged(0)
    mesh = (h.tb.mesh + 1 & 3) << 36
    cases = [
        (1 << 38 | own, {}, M_RSVD, DECERR),
        (mesh, {}, M_MESH, DECERR),
        (1 << 39 | mesh, {}, M_MESH, DECERR),
        (staged | 1 << 32, {}, M_APER, DECERR),
        (own + h.tb.bytes - 4 * WORD, {}, M_RANGE, DECERR),
        (own + h.tb.bytes, {}, M_RANGE, DECERR),
        (staged + h.tb.stage_bytes - 4 * WORD, {}, M_RANGE, DECERR),
        (staged + (1 << 32) - WORD, {}, M_RANGE, DECERR),
        (own, {"burst": FIXED}, HOSTX, SLVERR),
        (own, {"burst": WRAP}, HOSTX, SLVERR),
        (own, {"size": 4}, HOSTX, SLVERR),
        (own, {"size": 0}, HOSTX, SLVERR),
        (staged, {"size": 3, "burst": FIXED}, HOSTX, SLVERR),
        (1 << 38 | own, {"size": 2}, HOSTX, SLVERR),
    ]
    for k, (addr, how, code, resp) in enumerate(cases):
        for n in (5, 256):
            ident = k & 15
            got = await h.raw.write(addr, [h.word() for _ in range(n)], ident=ident, **how)
            checks.equal(f"write {addr:#x} {how}", got, (ident, resp))
            checks.equal("MEM_FAULT", await h.tb.register(FAULT), addr << 24 | 1 << 4 | code)
            got = await h.raw.read(addr, n, ident=ident, **how)
            checks.equal(f"read {addr:#x} {how}", got, [(ident, resp, 0, int(i == n - 1)) for i in range(n)], n=n)
            checks.equal("MEM_DROP", await h.tb.register(DROP), 2)
            await h.tb.clear()
    for addr in (own + h.tb.bytes - 5 * WORD, staged + h.tb.stage_bytes - 5 * WORD):  # just inside
        words = [h.word() for _ in range(5)]
        h.store(h.m.memory if addr == own + h.tb.bytes - 5 * WORD else h.m.stage, addr & 0xFFFFFFFF, words)
        checks.equal("last words", await h.raw.write(addr, words), (0, OKAY))
    await h.same()


@cocotb.test()
async def strobes(dut):
    """Every single byte, every run of bytes, random and empty patterns; unaligned addresses select nothing."""
    h = await _Host.start(dut, raw=True)
    every = [1 << k for k in range(32)] + [((1 << n) - 1) << k for n in range(2, 33) for k in range(33 - n)]
    patterns = h.rng.sample(every, len(every)) + [0] * 8 + [h.rng.getrandbits(32) for _ in range(60)]
    for base, image in h.tiers():
        at = 0x3000
        for first in range(0, len(patterns), 50):
            part = patterns[first : first + 50]
            words = [h.word() for _ in part]
            h.store(image, at, words, part)
            checks.equal("B", await h.raw.write(base + at + h.rng.randrange(32), words, part), (0, OKAY))
            got = await h.raw.read(base + at + h.rng.randrange(32), len(part))
            checks.equal("beats", [d for _, _, d, _ in got], _expect(image, at, len(part)), n=len(part))
    await h.same()


@cocotb.test()
async def reset_inside_a_burst(dut):
    """Reset in the middle of a write, a read and a piece in flight; afterwards the window works again."""
    h = await _Host.start(dut, raw=True)
    for cut in range(8):
        write, tier = cut % 2, h.tiers()[cut // 2 % 2]
        await h.raw.address(bool(write), tier[0] + 0x400, 200, ident=1)
        if write:
            await h.raw.data([h.word() for _ in range(20 + 30 * (cut // 4))])
        await clocks.cycles(30 + 25 * (cut // 4))
        dut.rst_n.value = 0
        await clocks.cycles(20)
        for ch in (h.raw.aw, h.raw.w, h.raw.ar, h.raw.b, h.raw.r):
            ch.clear()
        checks.equal("silent in reset", (int(dut.s_axi_mem_bvalid.value), int(dut.s_axi_mem_rvalid.value)), (0, 0))
        dut.rst_n.value = 1
        await clocks.cycles(10)
        got = await h.raw.read(tier[0] + 0x400, 256)
        checks.equal("whole words", {r for _, r, _, _ in got}, {OKAY}, n=256)
        words = [h.word() for _ in range(256)]
        h.store(tier[1], 0x400, words)
        checks.equal("B", await h.raw.write(tier[0] + 0x400, words, ident=7), (7, OKAY))
        got = await h.raw.read(tier[0] + 0x400, 256, ident=6)
        checks.equal("beats", [d for _, _, d, _ in got], words, n=256)
    await h.same()


@cocotb.test()
async def request_as_reset_falls(dut):
    """AW, W and AR stand while reset is released: each is taken once, the write first."""
    h = await _Host.start(dut, raw=True)
    for base, image in h.tiers():
        for early in (0, 1, 5):
            await FallingEdge(dut.clk)
            dut.rst_n.value = 0
            for _ in range(20 - early):
                await FallingEdge(dut.clk)
            # Driven by hand: a channel model waits for the end of reset.
            word = h.word()
            for name, value in (("id", 4), ("addr", base + 0x740), ("len", 0), ("size", 5), ("burst", INCR)):
                getattr(dut, f"s_axi_mem_aw{name}").value = value
                getattr(dut, f"s_axi_mem_ar{name}").value = value
            dut.s_axi_mem_wdata.value, dut.s_axi_mem_wstrb.value, dut.s_axi_mem_wlast.value = word, 0xFFFFFFFF, 1
            for name in ("aw", "ar", "w"):
                getattr(dut, f"s_axi_mem_{name}valid").value = 1
            dut.s_axi_mem_bready.value = dut.s_axi_mem_rready.value = 0
            for _ in range(early):
                await FallingEdge(dut.clk)
            dut.rst_n.value = 1
            taken = {"aw": 0, "ar": 0, "w": 0}
            order = []
            for _ in range(400):
                await FallingEdge(dut.clk)
                busy = {n: getattr(dut, f"s_axi_mem_{n}valid") for n in taken}
                ready = {n: int(getattr(dut, f"s_axi_mem_{n}ready").value) for n in taken}
                fire = [n for n in taken if int(busy[n].value) and ready[n]]
                b, r = int(dut.s_axi_mem_bvalid.value), int(dut.s_axi_mem_rvalid.value)
                if r:
                    checks.equal("read after the write", int(dut.s_axi_mem_rdata.value), word)
                dut.s_axi_mem_bready.value, dut.s_axi_mem_rready.value = b, r
                order += ["b"] * b + ["r"] * r + fire
                await RisingEdge(dut.clk)
                for n in fire:
                    taken[n] += 1
                    busy[n].value = 0
                if r:
                    break
            dut.s_axi_mem_bready.value = dut.s_axi_mem_rready.value = 0
            checks.equal("each once", taken, {"aw": 1, "ar": 1, "w": 1}, n=3)
            checks.equal("order", order, ["aw", "w", "b", "ar", "r"], n=5)
            h.store(image, 0x740, [word])
            await clocks.cycles(4)
    await h.same()


@cocotb.test()
async def pressure(dut):
    """Random pauses on all five channels, slow memory, a busy port: every byte, every response."""
    h = await _Host.start(dut)
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
    h = await _Host.start(dut, raw=True, lat_min=50, lat_max=200)
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
            h.store(image, 0x2900, words)
            checks.equal("B", await h.raw.write(base + 0x2900, words), (0, OKAY))
            if base == h.tb.own(0):
                there = await h.tb.dram.read(0x2900, WORD * len(words))
                checks.equal("bytes at B", there, bytes(image[0x2900 : 0x2900 + WORD * len(words)]))
    await h.same()
