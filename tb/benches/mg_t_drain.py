# SPDX-License-Identifier: Apache-2.0
"""DRAIN, emit and fuse obligations (docs/spec/cluster.md 5, 2.2)."""

from __future__ import annotations

import cocotb

from benches.mg_ref import DRAIN, FILL, GEMM, bursts
from benches.mg_rig import Rig
from benches.mg_t_gemm import fill_all
from kohakubench import checks, clocks, scale, seed


def start(rig: Rig, gm: int = 16, gn: int = 32, nk: int = 2) -> None:
    """Operands, both L1 sides, one opening GEMM."""
    rig.operands(4096)
    fill_all(rig)
    rig.op(GEMM, gm=gm, gn=gn, nk=nk)


@cocotb.test()
async def memory_sizes(dut):
    """N = 1, 7, 8, 9, 64, 511, 512, 0 to memory: exactly N words, bursts() descriptors, neighbours kept."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    start(rig)
    rig.memory[0x40000 // 32 :] = 0xA5
    sizes = (1, 7, 8, 9, 64, 511, 512, 0)
    at = 0x40020
    for n in sizes:
        rig.op(DRAIN, at, n=n, dbuf=2)  # memory form whatever dbuf is
        at += 32 * max(n, 1) + 64
    t = await rig.run()
    checks.equal("descriptors", len(t.of(1)), sum(bursts("emit", max(n, 1)) for n in sizes))


@cocotb.test()
async def node_forms(dut):
    """Local and remote node form, FP16 and accumulator floats: every flit as in 5.4."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    start(rig, 8, 8)
    for n in (1, 3, 4, 5, 8, 9, 64):
        rig.op(DRAIN, 0x20 * n, n=n, dnode=1, dst_x=1, dbuf=0, dflags=1, dack_x=3, dack_y=1, dmesh=3)
        rig.op(DRAIN, 0x40 * n, n=n, dnode=1, dst_y=2, dbuf=2, dflags=0x81, dack_x=1, dack_y=15)
        rig.op(DRAIN, 0x40 * n, n=n, dnode=1, dst_y=1, dbuf=2, dflags=1, dack_x=1, dack_y=1, dmesh=2, dfin=0x12)
        rig.op(DRAIN, 0x20 * n, n=n, dnode=1, dst_y=1, dbuf=1, dack_x=1, dmesh=1, dfin=0x81)
    rig.op(DRAIN, (65536 - 64) * 32, n=64, dnode=1, dst_x=15, dst_y=15, dbuf=255)
    rig.op(DRAIN, (65536 - 128) * 32, n=64, dnode=1, dst_x=15, dst_y=15, dbuf=2)
    rig.op(GEMM, 0x60, gm=5, gn=5, acc=1, emit=1, dnode=1, dst_x=1, dbuf=1, dflags=1)
    rig.op(DRAIN, n=25, fuse=1)
    rig.op(
        GEMM,
        0x60,
        gm=5,
        gn=5,
        acc=1,
        emit=1,
        dnode=1,
        dst_y=1,
        dbuf=1,
        dflags=1,
        dfin=0x33,
        dack_x=2,
        dack_y=2,
        dmesh=1,
    )
    rig.op(DRAIN, n=25, fuse=1)
    # the node image equals the memory image word for word
    rig.op(DRAIN, 0x50000, n=64)
    rig.op(DRAIN, 0, n=64, dnode=1, dst_x=1, last=1)
    t = await rig.run()
    node = [f & (1 << 256) - 1 for f in t.of(8)][-72:]
    words = [int.from_bytes(w.tobytes(), "little") for w in rig.image[0x50000 // 32 :][:64]]
    checks.equal("node image", [f for i, f in enumerate(node) if i % 9], words)


@cocotb.test()
async def blocked_link(dut):
    """The link stalls before every flit in turn, 0 to 500 cycles: same flits, nothing lost."""
    clocks.start(dut.clk)
    positions = range(0, 64, scale(3, 1))
    for k in positions:
        rig = Rig(dut, seed() + k)
        rig.operands(256)
        rig.config.update(block_flit=k, block_len=rig.random.choice((1, 2, 3, 5, 17, 60, 150, 500)))
        rig.op(FILL, 0, n=6)
        rig.op(FILL, 0x1000, n=6, sel=1)
        rig.op(GEMM, 0x40000, gm=3, gn=3, nk=2, emit=1)
        rig.op(DRAIN, n=9, fuse=1)
        rig.op(DRAIN, 0x20, n=9, dnode=1, dst_x=1, dflags=1)
        rig.op(DRAIN, 0x40, n=5, dnode=1, dst_x=1, dbuf=2)
        rig.op(FILL, 0x800, n=1)
        rig.op(DRAIN, 0x48000, n=8, last=1)
        await rig.run(dump=False)


@cocotb.test()
async def random_busy(dut):
    """Random back-pressure on the output link at several densities."""
    clocks.start(dut.clk)
    for busy in (60, 128, 230):
        rig = Rig(dut, seed() + busy)
        rig.pressure(busy)
        start(rig, 8, 8, 4)
        for i in range(8):
            rig.op(GEMM, 0x40000 + 0x800 * i, gm=8, gn=8, nk=1 + i % 3, acc=i % 2, emit=1)
            rig.op(FILL, 0, n=3, fbank=1, sel=i % 2)  # its request goes between the drain flits
            if i % 3 == 0:
                rig.op(DRAIN, n=64, fuse=1)
            rig.op(DRAIN, 0x60, n=7, dnode=1, dst_x=1, dbuf=2 * (i % 2) + (1 - i % 2), dflags=1)
        rig.op(FILL, 0, n=1, last=1)
        await rig.run()


@cocotb.test()
async def sweep_never_waits(dut):
    """An emitting GEMM of all sub-tiles with the link blocked for the whole sweep: the sweep ends (4.5)."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    start(rig)
    rig.op(GEMM, 0x40000, gm=16, gn=32, nk=1, emit=1)
    rig.op(GEMM, gm=16, gn=32, nk=1, acc=1)
    rig.op(FILL, 0, n=4, fbank=1)
    rig.op(DRAIN, n=512, fuse=1, last=1)
    # five requests and completions leave before the first write
    rig.config.update(block_flit=11, block_len=3000)
    t = await rig.run()
    checks.equal("issue cycles of the emitting sweep", t.last[1] - t.first[1], 511)
    checks.equal("gap behind it", t.first[2] - t.last[1] <= 3, True)
    writes = [c for c, f in t.out if f >> 268 & 15 in (1, 4)]
    checks.true("writes left after the sweep", writes[1] > t.last[1] + 1000)


@cocotb.test()
async def emit_batches(dut):
    """Batches without, before, between and after barriers; explicit DRAIN after emit; `last` on a GEMM."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    start(rig)
    rig.op(DRAIN, n=1, fuse=1)  # no batch: F_FUSE
    rig.op(GEMM, 0x40000, gm=8, gn=8, nk=1, emit=1)  # acc 0, nk 1: LOAD and hand out
    rig.op(GEMM, 0x41000, gm=4, gn=4, nk=3, acc=1, emit=1)  # no barrier between
    rig.op(DRAIN, 0x55555, n=16, fuse=1, dnode=1)  # its own fields are ignored
    rig.op(DRAIN, n=16, fuse=1)  # repeated: retires at once
    rig.op(DRAIN, n=17, fuse=1)  # F_FUSE
    rig.op(GEMM, 0x42000, gm=16, gn=32, nk=1, emit=1)
    rig.op(FILL, 0, n=30, fbank=1)
    rig.op(GEMM, gm=2, gn=2, nk=2)
    rig.op(DRAIN, n=512, fuse=1)
    rig.op(GEMM, 0x46000, gm=16, gn=32, nk=1, acc=1, emit=1)
    rig.op(DRAIN, 0x4B000, n=512)  # explicit after emit
    rig.op(DRAIN, n=1, fuse=1)  # no batch any more: F_FUSE
    rig.op(GEMM, 0x50000, gm=3, gn=3, nk=2, acc=1, emit=1, last=1)
    rig.op(GEMM, 0x51000, gm=3, gn=3, nk=2, acc=1, emit=1)
    rig.op(9, last=1)  # a faulting last waits for the batch too
    rig.op(GEMM, 0x52000, gm=3, gn=3, nk=2, acc=1, emit=1)
    rig.op(FILL, 0, n=1, last=1)
    t = await rig.run()
    for i, (cycle, d) in enumerate(t.done):
        if rig.inst[i][1] >> 259 & 1:
            sent = [c for c, f in t.out if f >> 268 & 15 == 4 and c <= cycle + 1]
            expected = {18: 1625, 20: 1634, 22: 1643}[i]
            checks.equal(f"words out when {i} retires", len(sent), expected)
            checks.equal(f"cover of {i}", d >> 33 & 1, 1)


@cocotb.test()
async def partial_drains(dut):
    """Prefixes, the same twice, drain then accumulate, a smaller opening GEMM and the old sub-tiles."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    start(rig, 8, 16, 2)
    rig.op(DRAIN, 0x40000, n=50)
    rig.op(DRAIN, 0x41000, n=50)
    rig.op(GEMM, gm=8, gn=16, nk=1, acc=1)
    rig.op(DRAIN, 0x42000, n=128)
    rig.op(GEMM, gm=3, gn=7, nk=2)
    rig.op(DRAIN, 0x44000, n=128)
    rig.op(GEMM, gm=16, gn=16, nk=2, aoff=3)
    rig.op(DRAIN, 0x46000, n=256)
    rig.op(GEMM, gm=16, gn=8, nk=2, aoff=3, acc=1)
    rig.op(GEMM, gm=16, gn=16, nk=1, aoff=30)
    rig.op(GEMM, gm=2, gn=2, nk=1, aoff=40)
    rig.op(DRAIN, 0x49000, n=256, last=1)
    await rig.run()


@cocotb.test()
async def refused_writes(dut):
    """A refused write of an emitted batch or a DRAIN, first, middle, last: FAULT on the owner only."""
    clocks.start(dut.clk)
    for at, n in ((0, 1), (24, 1), (56, 8), (0, 64), (64, 1), (100, 8), (200, 40)):
        for ack in (2, 400):
            rig = Rig(dut, seed())
            start(rig, 8, 8)
            base = 0x40000 // 32
            rig.config.update(wr_bad_lo=base + at, wr_bad_hi=base + at + n, cfg_ack=ack)
            rig.op(GEMM, 0x40000, gm=8, gn=8, emit=1)  # words 0..63
            rig.op(FILL, 0, n=2, fbank=1)
            rig.op(GEMM, gm=2, gn=2, acc=1)
            rig.op(FILL, 0, n=2, fbank=1)
            rig.op(DRAIN, n=64, fuse=1)
            rig.op(GEMM, 0x40800, gm=8, gn=8, emit=1, acc=1)  # 64..127
            rig.op(GEMM, 0x41000, gm=8, gn=8, emit=1, acc=1)  # 128..191
            rig.op(FILL, 0, n=2, fbank=1)
            rig.op(DRAIN, 0x41800, n=50)  # 192..241, owns both batches too
            rig.op(FILL, 0, n=2, fbank=1)
            rig.op(GEMM, 0x42000, gm=1, gn=1, emit=1, last=1)
            await rig.run()
