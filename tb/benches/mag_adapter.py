# SPDX-License-Identifier: Apache-2.0
"""L2 adapter between a scripted endpoint and the memory agent (docs/spec/memory.md 11)."""

import json
import os
import random
from pathlib import Path
from typing import ClassVar

import cocotb
from cocotb.triggers import RisingEdge, SimTimeoutError, Timer, with_timeout

from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench import adapter_model as am
from kohakubench.bench import ROOT
from kohakubench.dram import DRAM_PUBLIC, Dram
from kohakubench.mag_model import (
    CU_DATA,
    M_APER,
    RD_RESP,
    WORD,
    WR_ACK,
    Flit,
    MagModel,
    flit,
    read_request,
    write_flits,
)
from kohakubench.mag_tb import SOURCES

EP, PORT, ORCH = 0x12, 0x10, 0x11  # nodes {y, x}
WINDOW = 0x81_0000_0000
BENCH = Bench(
    name="mag_adapter",
    top="tb_mag_adapter",
    sources=[
        *[s for s in SOURCES if not s.startswith("tb/")],
        "rtl/memory/mag_ad_window.v",
        "rtl/memory/mag_ad_regs.v",
        "rtl/memory/mag_ad_store.v",
        "rtl/memory/mag_adapter.v",
        "tb/hdl/flit_player.v",
        "tb/hdl/stall_gen.v",
        "tb/hdl/axi_dram_model.v",
        "tb/hdl/tb_mag_adapter.v",
        "tb/hdl/tb_mag_adapter_links.sv",
    ],
    slow_variants=("full",),
    variants={"full": {"DEPTH": 8192}, "pass": {"PASS": 1}},
    public=DRAM_PUBLIC,
    mutations={
        "always_on": ("rtl/memory/mag_ad_window.v", "touches = enable && tag_0", "touches = tag_0"),
        "straddle_served": ("rtl/memory/mag_ad_window.v", "(tag_0 != tag || tag_1 != tag)", "(tag_0 != tag)"),
        "last_line": (
            "rtl/memory/mag_ad_window.v",
            "{25'd0, lines, 5'd0} - 41'd1;",
            "{25'd0, lines, 5'd0};",
        ),
        "mesh_ignored": ("rtl/memory/mag_ad_regs.v", "q_value & BASE_MASK", "q_value & BASE_MASK & 40'hCFFFFFFFFF"),
        "ack_overtakes": (
            "rtl/memory/mag_adapter.v",
            "wire         ack_local = ord_valid && !ord_far;",
            "wire         ack_local = ord_valid && (!ord_far || ord_code != 4'd0 || resp_valid);",
        ),
        "pops_early": ("rtl/memory/mag_adapter.v", "(is_ack && quiet));", "is_ack);"),
        "old_value": (
            "rtl/memory/mag_ad_regs.v",
            "ENABLE:  value = {63'd0, enable_d};",
            "ENABLE:  value = {63'd0, enable_q};",
        ),
        "lost_unseen": ("rtl/memory/mag_ad_regs.v", "{req_valid && !room, status_event}", "{1'b0, status_event}"),
        "face_held": (
            "rtl/memory/mag_adapter.v",
            "assign r_take      = is_ctrl ||",
            "assign r_take      = (is_ctrl && to_rt_room) ||",
        ),
        "cut_unseen": (
            "rtl/memory/mag_adapter.v",
            "assign e_take = start_own ||",
            "assign e_take = cut || start_own ||",
        ),
        "far_left_open": (
            "rtl/memory/mag_adapter.v",
            "cut_far = wr_hit && open_q == PASSED;",
            "cut_far = 1'b0 && wr_hit && open_q == PASSED;",
        ),
        "credits": ("rtl/memory/mag_ad_store.v", "launch = run_q && flying_q != CREDITS;", "launch = run_q;"),
        "stream_tag": ("rtl/memory/mag_ad_store.v", "if (last_w) txn_q <= txn_q + 8'd1;", ""),
    },
    mutation_tests={
        "always_on": ["reset_state"],
        "straddle_served": ["edges"],
        "last_line": ["edges"],
        "mesh_ignored": ["reset_state"],
        "ack_overtakes": ["ack_order"],
        "pops_early": ["random_traffic"],
        "old_value": ["reset_state"],
        "lost_unseen": ["control_blocked"],
        "face_held": ["control_blocked"],
        "cut_unseen": ["protocol_errors"],
        "far_left_open": ["protocol_errors"],
        "credits": ["stalls"],
        "stream_tag": ["shapes"],
    },
    wall_s=300,
)


class _Tb:
    """Plays scripts on both faces and compares everything with the reference."""

    kept: ClassVar[dict] = {}  # the line store outlives a reset

    def __init__(self, dut):
        self.dut, self.rng = dut, random.Random(seed())
        self.lines = int(dut.DEPTH.value)
        self.agent = MagModel(1 << int(dut.DRAM_LOG2.value))
        self.model = am.AdapterModel(self.lines, self.agent)
        self.model.store = self.kept.setdefault("store", self.model.store)
        self.dir = Path(os.environ["KOHAKU_RUN_DIR"])
        self.dram = Dram(dut.u_dram, words=self.agent.dram_bytes // WORD)
        self.end = WINDOW + self.lines * WORD

    @classmethod
    async def start(cls, dut, *, on=True, **dram):
        self = cls(dut)
        for name in (
            "load",
            "dump",
            "n_ep",
            "n_ct",
            "goal_ep",
            "goal_rt",
            "ep_mode",
            "rt_mode",
            "ep_level",
            "rt_level",
        ):
            getattr(dut, name).value = 0
        dut.stall_seed.value = self.rng.getrandbits(31)
        clocks.start(dut.clk)
        await clocks.reset(dut)
        self.dram.configure(**{"lat_min": 2, "lat_max": 40, "ideal": 0, "fatal": 1, **dram})
        self.agent.memory[:] = self.rng.randbytes(self.agent.dram_bytes)
        await self.dram.load(0, bytes(self.agent.memory))
        await clocks.cycles(8)
        if on:
            await self.setup(am.BASE, WINDOW)
            await self.setup(am.ENABLE, 1)
        return self

    async def setup(self, index, value=None):
        """One control access; returns the value of the reply."""
        request = am.control(EP, ORCH, self.rng.randrange(256), index, value)
        await self.play([], [request])
        return Flit.of(self.rt[-1]).payload >> 176 & (1 << 64) - 1

    async def load(self, ep, ct=(), *, discarded=0):
        """Give both scripts to the players; flits or (flit, gap) pairs."""
        m, d = self.model, self.dut
        m.start()
        pairs = lambda script: [s if isinstance(s, tuple) else (s, 0) for s in script]  # noqa: E731
        ep, ct = pairs(ep), pairs(ct)
        replies = [m.control(f) for f, _ in ct[: len(ct) - discarded]]
        if discarded:
            m.status |= am.CTRL_LOST
        self.replies = [r for r in replies if r is not None]
        self.passed = [f for (f, _), r in zip(ct, replies, strict=False) if r is None]
        for f, _ in ep:
            m.feed(f)
        for name, script in (("ep", ep), ("ct", ct)):
            text = "\n".join(f"{gap << 288 | f:076x}" for f, gap in script)
            (self.dir / f"{name}.hex").write_text(text + "\n" if text else "0\n")
        d.n_ep.value, d.n_ct.value = len(ep), len(ct)
        expected = len(m.responses) + len(self.agent.responses) + len(m.acks) + len(self.passed)
        d.goal_ep.value, d.goal_rt.value = expected, len(m.forwarded) + len(self.replies)
        d.load.value = 1
        await clocks.cycles(1)
        d.load.value = 0
        await clocks.cycles(2)

    async def finish(self, limit=60_000):
        """Wait for everything expected, compare all of it."""
        d, m = self.dut, self.model
        try:
            if not int(d.done.value):
                await with_timeout(RisingEdge(d.done), limit * clocks.PERIOD_NS, "ns")
        except SimTimeoutError:
            got = int(d.n_ep_cap.value), int(d.n_rt_cap.value)
            goal = int(d.goal_ep.value), int(d.goal_rt.value)
            raise AssertionError(f"no end: endpoint, router got {got} flits of {goal}") from None
        await clocks.cycles(60)
        d.dump.value = 1
        await Timer(1, unit="ps")
        d.dump.value = 0
        await clocks.cycles(1)
        self.ep, self.ep_cycles = self._captured("ep_cap.hex", int(d.n_ep_cap.value))
        self.rt, _ = self._captured("rt_cap.hex", int(d.n_rt_cap.value))
        is_reply = lambda r: Flit.of(r).kind == am.CU_CTRL and Flit.of(r).dst in (ORCH, PORT)  # noqa: E731
        self._same("replies", [r for r in self.rt if is_reply(r)], self.replies)
        self._same("forwarded", [r for r in self.rt if not is_reply(r)], m.forwarded)
        got = [(r, Flit.of(r)) for r in self.ep]
        self._same("acknowledgements", [r for r, f in got if f.kind == WR_ACK], m.acks)
        self._same("passed to the endpoint", [r for r, f in got if f.kind not in (WR_ACK, RD_RESP)], self.passed)
        answers = [r for r, f in got if f.kind == RD_RESP]
        here, there = m.responses, self.agent.responses
        checks.equal("responses", len(answers), len(here) + len(there))
        at = [0, 0]
        for k, r in enumerate(answers):  # an interleaving of both sequences
            for side, expected in enumerate((here, there)):
                if at[side] < len(expected) and expected[at[side]] == r:
                    at[side] += 1
                    break
            else:
                want = [Flit.of(e[a]) for e, a in zip((here, there), at, strict=True) if a < len(e)]
                raise AssertionError(f"response {k}: got {Flit.of(r)}, expected one of {want}")
        checks.true("responses", True)

    def _captured(self, name, n):
        lines = [t for t in (self.dir / name).read_text().split() if not t.startswith(("//", "@", "0x"))]
        raw = [int(t, 16) for t in lines[:n]]
        return [r & (1 << 288) - 1 for r in raw], [r >> 288 for r in raw]

    def _same(self, what, got, expected):
        for k, (g, e) in enumerate(zip(got, expected, strict=False)):
            if g != e:
                raise AssertionError(f"{what} {k}: got {Flit.of(g)}, expected {Flit.of(e)}")
        checks.equal(what, len(got), len(expected), n=max(1, len(expected)))

    async def play(self, ep, ct=(), *, limit=60_000):
        await self.load(ep, ct)
        await self.finish(limit)

    async def registers(self):
        """COUNT and STATUS agree with the reference."""
        for index in (am.COUNT, am.STATUS):
            await self.setup(index)

    def word(self):
        return self.rng.getrandbits(256)

    def write(self, addr, n=1, txn=0, **kw):
        return write_flits(EP, txn, addr, [self.word() for _ in range(n)], port=PORT, **kw)

    def read(self, addr, n=1, txn=0, **kw):
        return read_request(EP, txn, addr, n, port=PORT, **kw)

    async def fill(self):
        """Random lines everywhere."""
        for first in range(0, self.lines, 512):
            steps = [self.write(WINDOW + (first + k) * WORD, 256, txn=7) for k in (0, 256)]
            await self.play([f for s in steps for f in s])


def _wired(dut):
    if int(dut.PASS.value):
        checks.true("nothing but wires in this build", True)
    return bool(int(dut.PASS.value))


@cocotb.test()
async def reset_state(dut):
    """Disabled after reset; register values and replies; neighbours of the index range reach the endpoint."""
    if _wired(dut):
        return
    tb = await _Tb.start(dut, on=False)
    caps = 2 << 48 | 1 << 40 | (tb.lines * WORD).bit_length() - 1 << 32 | tb.lines
    checks.equal("CAPS", await tb.setup(am.CAPS), caps)
    low = 0xF000_0000 // (tb.lines * WORD) * tb.lines * WORD
    checks.equal("reset values", [await tb.setup(k) for k in range(0xE1, 0xE8)], [low, 0, 0, 0, 0, 0, 0], n=7)
    for base in (0, 0x40, 0xF000_0000, 0xF000_0000 - WORD):  # in-window traffic of a disabled adapter
        await tb.play([*tb.write(base % 2**18, 8), *tb.write(base, 8)])
        await tb.play([tb.read(base % 2**18, 8), tb.read(base, 8)])
    everything = [am.control(EP, ORCH, k, k) for k in range(256)]
    await tb.play([], everything)
    ones = (1 << 64) - 1
    await tb.play([], [am.control(EP, ORCH, k, k, ones) for k in range(0xDC, 0xEC)])
    checks.equal("BASE", await tb.setup(am.BASE), (1 << 40) - tb.lines * WORD)
    checks.equal("ENABLE", await tb.setup(am.ENABLE), 1)
    odd = flit(dst=EP, src=ORCH, kind=am.CU_CTRL, last=1, payload=7 << 248 | am.ENABLE << 240)
    await tb.play([], [odd, am.control(EP, ORCH, 5, am.ENABLE, 0)])
    examples = json.loads((ROOT / "spec" / "memory.json").read_text())["adapter"]["mailbox_examples"]
    flits = [sum(int(w, 16) << 64 * k for k, w in enumerate(x["words"])) for x in examples]
    await tb.play([], flits[:3])
    if tb.lines == 8192:
        checks.equal("example reply", tb.rt[-1], flits[3])


@cocotb.test()
async def shapes(dut):
    """8 + 8 lines written, then STREAM 4x4, plain 4, entries of 1 to 3; 256 lines; the last line."""
    if _wired(dut):
        return
    tb = await _Tb.start(dut)
    await tb.play([*tb.write(WINDOW, 8, txn=1), *tb.write(WINDOW + 256, 8, txn=2)])
    await tb.play([tb.read(WINDOW, txn=4, ew=4, count=4), tb.read(WINDOW + 64, 4, txn=9)])
    for ew in (1, 2, 3, 4, 0, 5, 255):
        await tb.play(
            [tb.read(WINDOW + 32 * ew % 96, txn=20, ew=ew, count=c, noise=tb.rng.getrandbits(40)) for c in (0, 1, 3)]
        )
    await tb.fill()
    await tb.play(
        [tb.read(WINDOW + 64 * WORD, 256, txn=3), tb.read(WINDOW, txn=0, ew=1, count=255), tb.read(tb.end - WORD)]
    )
    cycles = tb.ep_cycles
    checks.true("a line a cycle", cycles[255] - cycles[0] <= 258, f"{cycles[255] - cycles[0]}")
    await tb.play(
        [
            *tb.write(tb.end - WORD, txn=8),
            tb.read(tb.end - WORD, txn=9),
            tb.read(tb.end - 5 * WORD, txn=1, ew=5, count=1, rsvd=0),
        ]
    )
    await tb.registers()


@cocotb.test()
async def edges(dut):
    """Runs that end at, cross, enter and span the window; a refused access leaves every line alone."""
    if _wired(dut):
        return
    tb = await _Tb.start(dut)
    await tb.fill()
    for n in (1, 2, 8):
        for at in (WINDOW - n * WORD, WINDOW - WORD, WINDOW, tb.end - n * WORD, tb.end - WORD, tb.end):
            await tb.play([*tb.write(at, n, txn=n), tb.read(at, n, txn=n + 1)])
            await tb.play([tb.read(at, txn=30, ew=1, count=n), tb.read(at, txn=40, ew=2, count=(n + 1) // 2)])
    await tb.play([tb.read(WINDOW - 64, txn=0, ew=4, count=255), tb.read(WINDOW - 64, txn=0, ew=3, count=200)])
    await tb.play([*tb.write(WINDOW - 64, 256, txn=3), *tb.write(tb.end - 64, 256, txn=4), *tb.write(WINDOW, 256)])
    await tb.registers()
    await tb.setup(am.BASE, (1 << 40) - 1)  # the top of the address space: nothing wraps to 0
    top = (1 << 40) - WORD
    await tb.play(
        [tb.read(top, 1), tb.read(top, 2, txn=1), *tb.write(top, 2, txn=5), tb.read(0, 2, txn=9), *tb.write(0x4000, 2)]
    )
    await tb.registers()


@cocotb.test()
async def elsewhere(dut):
    """Another mesh misses, multicast is forwarded and counted, ignored flags, foreign flits in order."""
    if _wired(dut):
        return
    tb = await _Tb.start(dut)
    for mesh in (1, 2, 3):
        at = WINDOW | mesh << 36
        await tb.play([*tb.write(at, 3), tb.read(at, 3, txn=200)])
    peers = [tb.read(WINDOW + 64, txn=200, ew=2, count=3, peers=(0x11,) * n) for n in (1, 2, 3)]
    await tb.play([*peers, tb.read(WINDOW - 64, txn=200, ew=2, count=3, peers=(0x11,))])
    await tb.registers()
    marked = [tb.read(WINDOW, 2, txn=210, rsvd=4), tb.read(WINDOW, 2, txn=3), *tb.write(WINDOW, 2, rsvd=4)]
    await tb.play(marked)
    plain = tb.read(WINDOW, txn=4, ew=2, count=4)
    await tb.play([plain ^ 1 << 204, plain ^ 1 << 205, plain])
    other = [flit(dst=0x21, src=EP, kind=k, txn=t, payload=tb.word()) for t in range(5) for k in (6, 7, 8)]
    other += [flit(dst=0x11, src=EP, kind=CU_DATA, rsvd=5, payload=tb.word())]
    await tb.play(tb.rng.sample(other, len(other)))
    inward = [flit(dst=EP, src=0x21, kind=k, txn=k, rsvd=r, payload=tb.word()) for k in (5, 6, 7, 8, 2) for r in (0, 2)]
    keep = [f for f in inward if Flit.of(f).kind not in (RD_RESP,)]
    await tb.play([], keep)
    await tb.setup(am.ENABLE, 0)
    await tb.play([*tb.write(WINDOW, 2), tb.read(WINDOW, 2, txn=255)])
    checks.equal("disabled", {c for c, *_ in tb.agent.faults}, {M_APER}, n=2)


@cocotb.test()
async def ack_order(dut):
    """Local and forwarded writes alternate with agent acknowledgements 1,000 cycles late; 64 and one more."""
    if _wired(dut):
        return
    tb = await _Tb.start(dut, lat_min=1000, lat_max=1400)
    for mix in (lambda k: k % 2, lambda k: k % 5 == 0, lambda k: k in (0, 64), lambda k: tb.rng.randrange(2)):
        script = []
        for k in range(70):
            at = tb.rng.randrange(64) * WORD
            script += tb.write(at if mix(k) else WINDOW + at, 1, txn=k)
        await tb.play(script)
    far = [f for k in range(66) for f in tb.write(WORD * k, 1, txn=k)]
    await tb.play([*far, *tb.write(WINDOW, 4, txn=99), tb.read(WINDOW, 4, txn=1)])
    bad = [
        tb.write(WINDOW + 3, 2, txn=1),
        tb.write(WINDOW - WORD, 2, txn=2),
        tb.write(0, 2, txn=3),
        tb.write(WINDOW, 2, txn=4),
    ]
    for _ in range(6):
        await tb.play([f for w in tb.rng.sample(bad, 4) for f in w])
    await tb.registers()


@cocotb.test()
async def control_blocked(dut):
    """Replies blocked by a jammed router face with 1 to 6 requests: data still reaches the endpoint."""
    if _wired(dut):
        return
    tb = await _Tb.start(dut)
    await tb.fill()
    for n in range(1, 7):
        dut.rt_mode.value = 1
        jam = [flit(dst=0x11, src=EP, kind=CU_DATA, txn=k, payload=k) for k in range(3)]
        reads = [tb.read(WINDOW + 96, 20, txn=4)]
        ct = [(am.control(EP, ORCH, 0x50 + k, am.CAPS), 40 * (k == 0)) for k in range(n)]
        inward = [(flit(dst=EP, src=0x21, kind=CU_DATA, txn=k, payload=tb.word()), 0) for k in range(20)]
        await tb.load([*reads, *jam], ct + inward if n < 5 else [*ct[:4], *ct[4:]], discarded=max(0, n - 4))
        await clocks.cycles(400)
        checks.equal("router face jammed", int(dut.n_rt_cap.value), 0)
        checks.equal("data passed", int(dut.n_ep_cap.value), 20 + (20 if n < 5 else 0))
        dut.rt_mode.value = 0
        await tb.finish()
        checks.equal("STATUS", await tb.setup(am.STATUS), am.CTRL_LOST if n > 4 else 0)
        await tb.setup(am.STATUS, 0)


@cocotb.test()
async def stalls(dut):
    """Endpoint stalled or router face jammed during a run, runs back to back, writes and control inside a run."""
    if _wired(dut):
        return
    tb = await _Tb.start(dut)
    await tb.fill()
    runs = [tb.read(WINDOW, 256, txn=1), tb.read(WINDOW + WORD * 8, txn=2, ew=3, count=60)]
    dut.ep_mode.value = 1
    await tb.load(runs)
    await clocks.cycles(300)
    checks.equal("nothing taken", int(dut.n_ep_cap.value), 0)
    dut.ep_mode.value = 0
    await tb.finish()
    dut.rt_mode.value = 1
    await tb.load([*runs, tb.read(0, 8, txn=200), flit(dst=0x11, src=EP, kind=CU_DATA)])
    await clocks.cycles(1000)
    checks.equal("served behind a jammed face", int(dut.n_ep_cap.value), len(tb.model.responses))
    dut.rt_mode.value = 0
    await tb.finish()
    for ep_mode, rt_mode in ((0, 0), (2, 2), (3, 3), (3, 2)):
        dut.ep_mode.value, dut.rt_mode.value, dut.ep_level.value, dut.rt_level.value = ep_mode, rt_mode, 120, 60
        await tb.play(
            [*runs, *tb.write(WINDOW + 400 * WORD, 8, txn=5), *runs[::-1], tb.read(0, 100, txn=180)],
            [(am.control(EP, ORCH, k, am.BASE), tb.rng.randrange(30)) for k in range(4)],
            limit=200_000,
        )
    await tb.registers()


@cocotb.test()
async def protocol_errors(dut):
    """Second descriptor while open, wrong `last`, unaligned, tag overflow; the next write works."""
    if _wired(dut):
        return
    tb = await _Tb.start(dut)
    await tb.fill()
    here, there, bad = WINDOW + 0x400, 0x400, WINDOW + 0x401
    kinds = {"here": here, "there": there, "refused": bad}
    for first in kinds.values():
        for second in kinds.values():
            for sent in (0, 1, 3):
                await tb.play(
                    [
                        *tb.write(first, 4, txn=1)[: 1 + sent],
                        *tb.write(second + 0x400, 2, txn=2),
                        *tb.write(here, 1, txn=3),
                    ]
                )
                await tb.play([tb.read(here, 8, txn=4), tb.read(there, 8, txn=200)])
                await tb.registers()
    for at in kinds.values():
        for lasts in ([0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]):
            await tb.play([*tb.write(at, 4, txn=1, lasts=lasts), *tb.write(at + 0x400, 2, txn=2), tb.read(here, 6)])
            await tb.registers()
            await tb.setup(am.STATUS, 0)
    await tb.play(
        [tb.read(here + 5, 4), tb.read(here, txn=254, ew=2, count=3), tb.read(here + 1, txn=255, ew=1, count=2)]
    )
    await tb.play([tb.write(here, 3)[1], tb.read(here, txn=253, ew=2, count=3)])
    checks.equal("orphan at the agent", tb.agent.orphans, 1)
    await tb.registers()
    await tb.setup(am.ENABLE, 0)
    await tb.play(tb.write(there, 2))
    await tb.play([tb.read(there, 2, txn=200)])


@cocotb.test()
async def random_traffic(dut):
    """Random requests in and around the window, local tags below 128, random stalls on both faces."""
    if _wired(dut):
        return
    tb = await _Tb.start(dut)
    await tb.fill()
    for _ in range(scale(4, 60)):
        script = []
        for _ in range(60):
            mine = tb.rng.random() < 0.6
            ew, count, n = tb.rng.randrange(6), tb.rng.randrange(6), tb.rng.randrange(1, 9)
            span = tb.lines if mine else tb.agent.dram_bytes // WORD
            at = tb.rng.randrange(span // 2 - 30) * WORD + (WINDOW if mine else 0)
            txn = tb.rng.randrange(120) + (0 if mine else 128)
            kind = tb.rng.randrange(5)
            if kind < 2:  # reads never meet a write in flight: they use the lower half
                script.append(tb.read(at, n, txn=txn) if kind else tb.read(at, txn=txn, ew=ew, count=count))
            elif kind == 2:
                script.append(flit(dst=0x11, src=EP, kind=CU_DATA, txn=txn, payload=tb.word()))
            else:
                script += tb.write(at + span // 2 * WORD, n, txn=txn)
        dut.ep_mode.value, dut.rt_mode.value = tb.rng.randrange(0, 4) & 2, tb.rng.choice((0, 2, 3))
        dut.ep_level.value, dut.rt_level.value = tb.rng.randrange(200), tb.rng.randrange(120)
        ct = [(am.control(EP, ORCH, k, am.BASE), tb.rng.randrange(200)) for k in range(3)]
        ct += [(flit(dst=EP, src=0x21, kind=CU_DATA, txn=k, payload=tb.word()), tb.rng.randrange(9)) for k in range(30)]
        await tb.play([(f, tb.rng.choice((0, 0, 2))) for f in script], ct, limit=200_000)
    dut.ep_mode.value = dut.rt_mode.value = 0
    await tb.play([tb.read(WINDOW + k * WORD, 256) for k in range(0, tb.lines, 256)])
    got = await tb.dram.read(0, tb.agent.dram_bytes)
    checks.equal("DRAM", got, bytes(tb.agent.memory), n=len(got) // WORD)
    await tb.registers()


@cocotb.test()
async def wires(dut):
    """PASS = 1: both faces are equal in every cycle."""
    if not int(dut.PASS.value):
        checks.true("an adapter is built", True)
        return
    tb = await _Tb.start(dut, on=False)
    dut.rt_mode.value = 2
    dut.rt_level.value = 90
    script = [f for k in range(40) for f in tb.write(k * 256, 8, txn=k)] + [tb.read(0x20, 200, txn=3)]
    await tb.play(script, [flit(dst=EP, src=0x21, kind=CU_DATA, txn=k, payload=tb.word()) for k in range(50)])
    checks.equal("cycles in which the faces differ", int(dut.unlike.value), 0)
