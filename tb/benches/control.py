# SPDX-License-Identifier: Apache-2.0
"""What the benches of orchestrator and engine share: AXI master, flit source and sink, client stand-in."""

from __future__ import annotations

import random

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from kohakubench import checks, clocks, seed
from kohakubench import orch_model as om
from kohakubench.orch_model import Orch

NODES = frozenset((0x01, 0x12, 0x33))
HDL = [
    "rtl/common/*.v",
    "rtl/control/axi_beats.v",
    "rtl/control/ram_bytes.v",
    "rtl/control/orch*.v",
    "rtl/control/orch_sva.sv",
    "rtl/noc/link_checker_sva.sv",
    "tb/hdl/ctl_*.v",
    "tb/hdl/stall_gen.v",
]


class MregClient:
    """Reference of the register client in tb/hdl/ctl_clients.v."""

    def __init__(self):
        self.reads = 0
        self.store = 0

    def read(self, offset):
        """Value and error of a read."""
        if offset == 8:
            self.reads += 1
        values = {0: 0x0123456789ABCDEF, 8: self.reads, 16: self.store}
        return values.get(offset, 0), offset not in values

    def write(self, offset, value):
        """Error of a write."""
        if offset == 8:
            self.reads = 0
        if offset == 16:
            self.store = value
        return offset > 16


def aux_word(index):
    """Status words of the auxiliary client stand-in."""
    return 0xA55A_0000_0000_C300 | index


def model(**changes):
    """Reference of the orchestrator as the tops of this folder build it."""
    return Orch(**{"nodes": NODES, "mem": MregClient(), "aux_word": aux_word, "aux_stat": 0x77, **changes})


class Axi:
    """The Verilog AXI master of the top; one transaction of each direction at a time."""

    def __init__(self, dut):
        self.dut = dut

    async def write_burst(self, address, beats, size=3, burst=1, ident=5):
        """Send (data, strobes) beats and return the response."""
        d = self.dut
        d.w_addr.value, d.w_len.value, d.w_size.value = address, len(beats) - 1, size
        d.w_burst.value, d.w_id.value = burst, ident
        for n, (data, strobes) in enumerate(beats):
            d.w_data.value, d.w_strb.value = data, strobes
            if len(beats) > 1:
                d.fill_at.value = n
                d.fill.value = int(d.fill.value) ^ 1
                await RisingEdge(d.clk)
                await FallingEdge(d.clk)
        if len(beats) > 1:
            await FallingEdge(d.clk)
        d.w_go.value = int(d.w_done.value) ^ 1
        await d.w_done.value_change
        checks.equal("bid", int(d.w_bid.value), ident)
        return int(d.w_resp.value)

    async def read_burst(self, address, n, size=3, burst=1, ident=9):
        """List of (data, response)."""
        d = self.dut
        d.r_addr.value, d.r_len.value, d.r_size.value = address, n - 1, size
        d.r_burst.value, d.r_id.value, d.r_sel.value = burst, ident, 0
        d.r_go.value = int(d.r_done.value) ^ 1
        await d.r_done.value_change
        out = []
        for i in range(n):
            if i or n > 1:
                d.r_sel.value = i
            await FallingEdge(d.clk)
            out.append((int(d.r_data.value), int(d.r_resp.value)))
        checks.equal("rid and rlast", int(d.r_framing.value), 1)
        return out

    async def write(self, address, data, strobes=0xFF):
        """One beat; returns the response."""
        return await self.write_burst(address, [(data, strobes)])

    async def read(self, address):
        """One beat; returns (data, response)."""
        return (await self.read_burst(address, 1))[0]


class Pair:
    """Machine and reference driven by the same events; every response is compared."""

    def __init__(self, dut, ref):
        self.dut, self.ref, self.axi = dut, ref, Axi(dut)
        self.seen = 0

    async def write(self, address, data, strobes=0xFF):
        """One write beat on both."""
        got = await self.axi.write(address, data, strobes)
        exp = self.ref.write(address, data, strobes)
        checks.equal(f"response of write {address:#06x} strobes {strobes:#04x}", got, exp)

    async def read(self, address):
        """One read beat on both; returns the data."""
        got = await self.axi.read(address)
        exp = self.ref.read(address)
        checks.equal(f"response of read {address:#06x}", got[1], exp[1])
        checks.equal(f"data at {address:#06x}", got[0], exp[0])
        return got[0]

    async def push(self, flit):
        """Queue a flit into the inbound link of the machine only."""
        d = self.dut
        d.flit.value = flit
        d.push.value = int(d.push.value) ^ 1
        await RisingEdge(d.clk)  # whatever the caller waited for, the source sees every toggle
        await FallingEdge(d.clk)

    async def receive(self, *flits):
        """Flits arrive at both."""
        for flit in flits:
            await self.push(flit)
            self.ref.receive(flit)
        await self.quiet()

    async def quiet(self, n=40):
        """Let the machine settle."""
        d = self.dut
        if not int(d.feed_idle.value):
            await d.feed_idle.value_change
        await clocks.cycles(n)
        await FallingEdge(d.clk)

    async def sent(self):
        """Flits that left since the last call, compared with the reference; returns them."""
        d = self.dut
        total = int(d.tap_count.value)
        out = []
        for n in range(self.seen, total):
            d.tap_sel.value = n & 1023
            await FallingEdge(d.clk)
            out.append(int(d.tap_data.value))
        checks.equal("flits sent", total, len(self.ref.sent))
        for k, flit in enumerate(out):
            checks.equal(f"flit {self.seen + k}", flit, self.ref.sent[self.seen + k])
        self.seen = total
        return out

    async def state(self, *offsets):
        """Compare registers, by default all that describe state."""
        for offset in offsets or (*range(0, 0x80, 8), 0x148, 0x1C8):
            await self.read(self.base + offset)

    base = 0


INPUTS = [
    "stall",
    "w_go",
    "r_go",
    "fill",
    "push",
    "blast",
    "echo_en",
    "echo_delay",
    "out_mode",
    "out_level",
    "aux_hold",
    "aux_stall",
    "mesh_lost_in",
    "w_addr",
    "r_addr",
    "r_sel",
    "fill_at",
    "tap_sel",
    "log_sel",
]


async def fresh(dut, *extra, clock=True):
    """Clock (once a test), quiet inputs and reset."""
    if clock:
        clocks.start(dut.clk)
    for name in (*INPUTS, *extra):
        getattr(dut, name).value = 0
    dut.echo_fault_at.value = 0xFFFF
    dut.aux_present.value = 1
    dut.mreg_present.value = 1
    dut.aux_stat.value = 0x77
    dut.blast_rep.value = 1
    dut.seed.value = seed() * 7919 | 1
    await clocks.reset(dut)
    await FallingEdge(dut.clk)


async def ready(dut, pair):
    """Wait for the end of the clear after reset."""
    await clocks.cycles(300)
    await FallingEdge(dut.clk)
    checks.equal("mesh_ready", (await pair.axi.read(8 + pair.base))[0] >> 2 & 1, 1)


async def stage_program(pair, rng, slot, n, *, code=5, txn=0x42):
    """Write ``n`` random staged flits from ``slot`` on; the last carries last = 1."""
    for k in range(n):
        for word in range(4):
            await pair.write(pair.base + 0x2000 + 40 * (slot + k) + 8 * word, rng.getrandbits(64))
        head = rng.getrandbits(48) << 16 | code << 12 | txn << 4 | (k == n - 1) << 3 | rng.getrandbits(3)
        await pair.write(pair.base + 0x2000 + 40 * (slot + k) + 32, head)


async def kick(pair, dst, base, n):
    """Point at a staged program and kick it."""
    for offset, value in ((0x40, dst), (0x68, base), (0x48, n)):
        await pair.write(pair.base + offset, value)
    await pair.write(pair.base + 0x50, 1)


def build(dut):
    """Reference with the parameters of this build."""
    return model(stage_flits=int(dut.STAGE_FLITS.value), credit_max=int(dut.CREDIT_MAX.value))


async def begin(dut, **changes):
    """Reset, clear over, reference beside it."""
    await fresh(dut, "ext")
    pair = Pair(dut, build(dut))
    for name, value in changes.items():
        setattr(pair.ref, name, value)
    await ready(dut, pair)
    return pair, random.Random(seed())


async def clears_beside(pair, offset, value, flit, delay):
    """A register write, and a flit queued ``delay`` cycles after (before, if negative) its start."""
    if delay < 0:
        await pair.push(flit)
    for _ in range(-delay - 1):  # the push itself took one cycle
        await FallingEdge(pair.dut.clk)
    writer = cocotb.start_soon(pair.axi.write(offset, value))
    for _ in range(delay):
        await FallingEdge(pair.dut.clk)
    if delay >= 0:
        await pair.push(flit)
    await writer


async def answered(dut, pair):
    """Wait for the echo of the units and tell the reference about every signal."""
    await pair.quiet(400)
    checks.equal("unanswered", int(dut.echo_open.value), 0)


def model_echo(ref, known, fault_at=None):
    """The units answer every flit that the reference sent beyond ``known``."""
    while known < len(ref.sent):
        flit = ref.sent[known]
        node = (flit >> 280 & 15) << 4 | flit >> 284 & 15
        txn, last = flit >> 260 & 0xFF, flit >> 259 & 1
        if known == fault_at:
            ref.receive(om.signal(node, 4, 0x4D470301))
        else:
            ref.receive(om.signal(node, last, txn if last else 0xBEEF))
        known += 1
    return known
