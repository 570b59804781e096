# SPDX-License-Identifier: Apache-2.0
"""Scripts for both faces of the L2 adapter, everything compared with the reference."""

import os
import random
from pathlib import Path
from typing import ClassVar

from cocotb.triggers import RisingEdge, SimTimeoutError, Timer, with_timeout

from kohakubench import adapter_model as am
from kohakubench import checks, clocks, seed
from kohakubench.dram import Dram
from kohakubench.mag_model import RD_RESP, WORD, WR_ACK, Flit, MagModel, read_request, write_flits

EP, PORT, ORCH = 0x12, 0x10, 0x11  # nodes {y, x}
WINDOW = 0x81_0000_0000


class AdapterTb:
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


def wired(dut):
    """A build of nothing but wires: only ``wires`` has something to compare."""
    return bool(int(dut.PASS.value))
