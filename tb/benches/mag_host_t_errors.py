# SPDX-License-Identifier: Apache-2.0
"""Errors, refusals and resets of the host window (docs/spec/memory.md 7, 9)."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from benches.mag_host_rig import Host
from kohakubench import checks, clocks
from kohakubench.mag_model import M_APER, M_BUS, M_MESH, M_RANGE, M_RSVD, WORD
from kohakubench.mag_tb import DROP, FAULT
from kohakubench.window_channels import DECERR, FIXED, HOSTX, INCR, OKAY, SLVERR, WRAP, words_of


@cocotb.test()
async def errors_on_any_beat(dut):
    """A bus error of either kind on each beat of a burst: SLVERR there, data 0, once in MEM_FAULT."""
    h = await Host.start(dut, raw=True)
    base, image = h.tiers()[0]
    for resp in (2, 3):
        for bad in (0, 1, 15, 31, 32, 39):
            at = 0x2000 - 8 * WORD
            window = {"err_lo": at + bad * WORD, "err_hi": at + bad * WORD + WORD, "err_resp": resp}
            h.tb.dram.configure(err_rd=1, err_wr=0, **window)
            got = await h.raw.read(base + at, 40, ident=bad & 15)
            expected = [
                (bad & 15, SLVERR if k == bad else OKAY, 0 if k == bad else w, int(k == 39))
                for k, w in enumerate(words_of(image, at, 40))
            ]
            checks.equal(f"beats, error on {bad}", got, expected, n=40)
            fault = await h.tb.register(FAULT)
            checks.equal("MEM_FAULT", fault, (base + at) << 24 | 1 << 4 | M_BUS)
            h.tb.dram.configure(err_rd=0, err_wr=1, **window)
            checks.equal("B", await h.raw.write(base + at, [h.word() for _ in range(40)]), (0, SLVERR))
            checks.equal("counted", await h.tb.register(DROP), 2)
            await h.tb.clear()
            h.tb.dram.configure(err_rd=0, err_wr=0)
            await h.put((base, image), at, [h.word() for _ in range(40)])
    checks.equal("no fault", await h.tb.register(FAULT), 0)
    await h.same()


@cocotb.test()
async def refused(dut):
    """Every refusal answers the full burst with its response, stores nothing and names itself in MEM_FAULT."""
    h = await Host.start(dut, raw=True)
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
            await h.put(h.tiers()[0], 0x2040, [h.word() for _ in range(3)], ident=ident)  # the next burst is right
            await h.get(h.tiers()[0], 0x2040, 3, ident=ident)
    for tier, size in zip(h.tiers(), (h.tb.bytes, h.tb.stage_bytes), strict=True):  # just inside
        await h.put(tier, size - 5 * WORD, [h.word() for _ in range(5)])
    await h.same()


@cocotb.test()
async def reset_inside_a_burst(dut):
    """Reset in the middle of a write, a read and a piece in flight; afterwards the window works again."""
    h = await Host.start(dut, raw=True)
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
        await h.put(tier, 0x400, [h.word() for _ in range(256)], ident=7)
        await h.get(tier, 0x400, 256, ident=6)
    await h.same()


@cocotb.test()
async def request_as_reset_falls(dut):
    """AW, W and AR stand while reset is released: each is taken once, the write first."""
    h = await Host.start(dut, raw=True)
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
