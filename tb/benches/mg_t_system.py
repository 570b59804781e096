# SPDX-License-Identifier: Apache-2.0
"""Random streams, asynchronous reports, counters, reset (docs/spec/cluster.md 9, 12)."""

from __future__ import annotations

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from benches.mg_ref import DRAIN, FILL, GEMM, UNIT, Ref, flit
from benches.mg_rig import Rig, operand_words
from benches.mg_t_encode import illegal_payload
from benches.mg_t_gemm import fill_all
from kohakubench import checks, clocks, scale, seed


class Stream:
    """Random legal instructions with CU_DATA bursts between; keeps to the rules a program has to keep."""

    def __init__(self, rig: Rig) -> None:
        self.rig, self.r = rig, rig.random
        self.open = 0
        self.batch = 0
        self.sent = 0  # DATA_RECEIVED asked for
        self.gate = 0  # the next instruction waits for that many

    def op(self, op: int, addr: int = 0, **f: int) -> None:
        gate, self.gate = self.gate, 0
        self.rig.op(op, addr, recv=gate, **f)

    def dest(self, n: int, send: bool) -> dict[str, int]:
        """Destination fields: memory, node or remote."""
        r = self.r
        kind = r.random()
        if kind < 0.6 and not send:
            return {"addr": 0x80000 + 32 * r.randrange(8000 - 2 * n)}
        f = {
            "dnode": 1,
            "dst_x": 1,
            "dst_y": r.randrange(4),
            "dflags": r.randrange(2),
            "dack_x": r.randrange(1, 16),
            "dmesh": r.randrange(4),
            "dbuf": 2 if send else r.choice((0, 1, 3, 200)),
            "addr": 64 * r.randrange(32000),
        }
        if kind < 0.8:
            f["dfin"] = r.randrange(1, 256)
        return f

    def step(self) -> None:
        r = self.r
        pick = r.random()
        if pick < 0.34 or self.open == 0:
            n = r.choice((1, 1, 2, 3, 5, r.randrange(1, 40)))
            self.op(FILL, 128 * r.randrange(4096 - n), n=n, sel=r.randrange(2), fbank=0, eoff=r.randrange(129 - n))
            if self.open:
                return
        if pick < 0.68 or self.open == 0:
            self.gemm()
        elif pick < 0.8:
            n = r.randrange(1, self.open + 1)
            send = r.random() < 0.4
            f = self.dest(n, send)
            self.op(DRAIN, f.pop("addr"), n=n, **f)
            self.batch = 0
        elif pick < 0.9 and self.batch:
            self.op(DRAIN, r.getrandbits(40), n=r.randrange(self.batch + 1), fuse=1, dnode=r.randrange(2))
        elif pick < 0.95:
            self.burst()
        else:
            probe = Ref(self.rig.memory, **self.rig.sizes)
            probe.open, probe.batch = self.open, self.batch
            gate, self.gate = self.gate, 0
            self.rig.word(illegal_payload(r, probe), r.randrange(2), recv=gate)

    def gemm(self) -> None:
        r = self.r
        gm, gn, nk = r.choice(((1, 1, 1), (2, 2, 3), (3, 1, 5), (4, 4, 2), (1, 2, 7), (8, 8, 1), (5, 7, 3), (2, 1, 9)))
        n = gm * gn
        acc = int(n <= self.open and r.random() < 0.6)
        f: dict[str, int] = {}
        if r.random() < 0.4:
            f = {"emit": 1, **self.dest(n, False)}
            self.batch = n
        last = int(r.random() < 0.1)
        self.op(GEMM, f.pop("addr", 0), gm=gm, gn=gn, nk=nk, acc=acc, last=last, aoff=r.randrange(129 - gm * nk),
                boff=r.randrange(129 - gn * nk), **f)  # fmt: skip
        if not acc:
            self.open = max(self.open, n)

    def burst(self) -> None:
        """Ordered against the instructions before and after by completions and DATA_RECEIVED."""
        r, rig = self.r, self.rig
        count = len(rig.inst)
        if count >= 60000:
            return
        buf = r.choice((0, 1, 2, 2, 3))
        if buf == 2:
            n = 2 * r.randrange(1, min(self.open, 8) + 1)
            off = 2 * r.randrange(self.open - n // 2 + 1)
            data = np.zeros((n, 32), np.uint8)
            for i in range(n // 2):
                v = sum(r.randrange(0x0C0000, 0x110000) << 22 * j for j in range(16))
                data[2 * i : 2 * i + 2] = np.frombuffer(v.to_bytes(64, "little"), np.uint8).reshape(2, 32)
        else:
            n = r.choice((1, 3, 4, 8, 20))
            off = r.randrange(0, 512 - n)
            data = operand_words(rig.rng, n)
        rig.burst(buf, off, data, done=count, gap=r.choice((0, 0, 1, 5)), ack=(r.randrange(4), r.randrange(1, 4)))
        self.sent += 1
        self.gate = self.sent


async def play_random(stream: Stream, steps: int, number: int) -> None:
    """Random steps in random surroundings, then every sub-tile read out; ``number`` counts the programs of a test."""
    rig, r = stream.rig, stream.r
    rig.operands(16384)
    rig.config.update(
        cfg_busy=r.choice((0, 40, 160)), cfg_gap=r.choice((0, 60)), cfg_perm=number % 2, cfg_mix=r.choice((0, 128)),
        cfg_lat=r.choice((3, 38, 90)), cfg_ack=r.choice((2, 200)), cfg_credit=r.choice((1, 4, 32)),
        wr_bad_lo=0x80000 // 32 + 4000, wr_bad_hi=0x80000 // 32 + 4000 + r.choice((0, 300)),
        rd_bad_lo=9000, rd_bad_hi=9000 + r.choice((0, 40)),
    )  # fmt: skip
    for _ in range(steps):
        stream.step()
    stream.op(DRAIN, 0xC0000, n=stream.open, last=1)
    await rig.run(cycles=1_000_000)


@cocotb.test()
async def random_stream(dut):
    """Random legal and illegal instructions with random stalls and CU_DATA against the sequential model."""
    clocks.start(dut.clk)
    part = 500
    for k in range(scale(1000, 12000) // part):
        await play_random(Stream(Rig(dut, seed() * 1000 + k)), part, k)


@cocotb.test()
async def async_reports(dut):
    """First code kept, own fault first, reported once, also on a `last`; CU_ERR bits; count of good ones."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(1024)
    word = operand_words(rig.rng, 1)
    rig.op(FILL, 0, n=1)
    rig.burst(9, 0, word, done=1, signal=1)  # A_BUF
    rig.burst(0, 4000, word, signal=1)  # A_RANGE, hidden by the first
    rig.op(12, recv=2)  # own fault keeps it pending
    rig.op(FILL, 0, n=300)
    rig.op(FILL, 0, n=1)
    rig.op(FILL, 0, n=1)
    rig.burst(0, 4000, word, done=5, signal=1)
    rig.op(FILL, 0, n=1, recv=3, last=1)
    rig.op(GEMM, gm=1, gn=1)
    rig.burst(2, 2, np.zeros((2, 32), np.uint8), done=7, signal=1)  # A_NOTREADY
    rig.op(DRAIN, 0x40000, n=1, recv=4)
    rig.op(DRAIN, 0x40000, n=1, last=1)
    rig.stray(flit(UNIT, (4, 4), 7, 1, 1, 0, 4 << 240), done=9)
    rig.stray(flit(UNIT, (4, 4), 7, 2, 1, 0, 0), done=9)
    t = await rig.run()
    err, caps = (f >> 176 & (1 << 64) - 1 for f in t.of(7))
    checks.equal("unit_err", err >> 8 & 0xFF, 0x02)
    checks.equal("CU_CAPS", caps >> 36, 0x4D47 << 12 | 5 << 4 | 3)
    checks.equal("debug counters", rig.retired, (5, 1, 2))


@cocotb.test()
async def counters(dut):
    """`memory` and `compute` of 9.2 against the bench's own count of cycles."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    rig.op(GEMM, gm=16, gn=16, nk=2)
    rig.op(FILL, 0, n=20, fbank=1)
    rig.op(GEMM, gm=2, gn=2, nk=4)
    rig.op(FILL, 0, n=300)
    rig.op(DRAIN, 0x40000, n=4)
    t = await rig.run()
    memory = sum(t.done[i][0] - t.accepted[i] for i in (0, 1, 2, 3, 5, 7))
    checks.equal("memory cycles", rig.counters & 0xFFFFFFFF, memory)
    # a sweep counts from its first issue to the tile write of its last one
    tail = 17 + 7 + int(dut.L1_LAT.value)
    spans = [(f, end + tail) for f, end in zip(t.first, t.last, strict=True)]
    cycles = set()
    for lo, hi in spans:
        cycles |= set(range(lo, hi + 1))
    checks.true(
        "compute cycles",
        abs((rig.counters >> 32) - len(cycles)) <= len(spans),
        f"{rig.counters >> 32} against {len(cycles)}",
    )


@cocotb.test()
async def reset_anywhere(dut):
    """Reset in the middle of a FILL, a sweep, a burst and a stream; the next program runs from scratch."""
    clocks.start(dut.clk)
    for k, at in enumerate((560, 640, 900, 1400, 1700, 2100, 2500)):
        rig = Rig(dut, seed())
        rig.operands(4096)
        fill_all(rig)
        rig.op(GEMM, 0x40000, gm=16, gn=32, nk=2, emit=1)
        rig.burst(0, 4, operand_words(rig.rng, 200), expect=False, delay=600, gap=3)
        rig.burst(2, 0, operand_words(rig.rng, 200), expect=False, gap=5)
        rig.op(DRAIN, 0x44000, n=512)
        rig.op(DRAIN, 0, n=512, dnode=1, dst_x=1, dbuf=2)
        try:
            await rig.run(expect=False, cycles=at)
        except AssertionError:
            pass
        else:
            raise AssertionError(f"the program ended before cycle {at}")
        await FallingEdge(dut.clk)
        rig = Rig(dut, seed() + k)
        rig.operands(4096)
        rig.op(DRAIN, n=1, fuse=1)  # no batch, nothing opened
        rig.op(DRAIN, n=1)
        rig.op(GEMM, gm=1, gn=1, acc=1)
        rig.op(FILL, 0, n=8)
        rig.op(FILL, 0x400, n=8, sel=1)
        rig.op(GEMM, 0x40000, gm=4, gn=4, nk=3, emit=1)
        rig.op(DRAIN, n=16, fuse=1)
        rig.op(DRAIN, 0x48000, n=16, last=1)
        await rig.run()
        checks.equal("counters restart", rig.retired, (2, 2, 4))
