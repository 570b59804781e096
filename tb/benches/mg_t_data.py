# SPDX-License-Identifier: Apache-2.0
"""CU_DATA obligations (docs/spec/cluster.md 8)."""

from __future__ import annotations

import cocotb
import numpy as np

from benches.mg_ref import DRAIN, FILL, GEMM, UNIT, flit
from benches.mg_rig import Rig, burst_flits, operand_words
from benches.mg_t_gemm import fill_all
from kohakubench import checks, clocks, seed


@cocotb.test()
async def operand_bursts(dut):
    """Operands as CU_DATA equal a FILL: both sides and banks, bursts of 1, 3, 4, 8, 256, split entries."""
    clocks.start(dut.clk)
    images = []
    for way in ("fill", "data"):
        rig = Rig(dut, seed())
        rig.operands(4096)
        sent = 0
        for sel in (0, 1):
            for bank in (0, 1):
                sizes = [256, 256, 1, 3, 4, 8, 1, 1, 2, 5, 7, 256, 32]
                total = sum(sizes)  # 832 words, 208 entries
                first = 1024 * (2 * sel + bank)
                if way == "fill":
                    rig.op(FILL, 32 * first, n=total // 4, sel=sel, fbank=bank)
                    continue
                at = 0
                for n in sizes:
                    rig.burst(sel, 1024 * bank + at, rig.memory[first + at : first + at + n], ack=(3, 1))
                    at += n
                    sent += 1
        for a in (0, 1):
            for b in (0, 1):
                rig.op(GEMM, gm=13, gn=13, nk=16, abank=a, bbank=b, recv=sent)
                rig.op(DRAIN, 0x40000 + 0x4000 * a + 0x2000 * b, n=169)
        await rig.run()
        images.append(rig.image[0x40000 // 32 :])
    checks.arrays("CU_DATA operands against FILL", images[1], images[0])


@cocotb.test()
async def split_entries(dut):
    """A word that does not continue its entry, or has no beginning: not committed, A_SPLIT once."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    new = operand_words(rig.rng, 64)
    recv = 0

    def send(buf: int, off: int, n: int, done: int = 0) -> None:
        nonlocal recv
        rig.burst(buf, off, new[off % 32 : off % 32 + n], done=done)
        recv += 1

    send(0, 2, 4, done=4)  # words 2, 3 of entry 0 have no beginning; 0, 1 of entry 1 stay open
    send(0, 6, 2)  # continues: entry 1 is committed
    rig.op(FILL, 0, n=1, eoff=60, recv=recv)
    send(0, 8, 3, done=5)
    send(0, 16, 4)  # another entry while one is open
    rig.op(FILL, 0, n=1, eoff=60, recv=recv)
    send(0, 20, 2, done=6)
    send(1, 22, 2)  # the other side does not continue it
    rig.op(FILL, 0, n=1, eoff=60, recv=recv)
    send(1, 4, 5, done=7)
    send(1, 10, 1)  # word 2 after word 0
    rig.op(FILL, 0, n=1, eoff=60, recv=recv)
    rig.op(FILL, 0, n=1, eoff=60)  # reported once
    rig.op(GEMM, gm=16, gn=16, nk=4)
    rig.op(DRAIN, 0x40000, n=256, last=1)
    await rig.run()
    checks.equal("A_SPLIT reports", sum(1 for c, a, _ in rig.ref.completions if c == 4 and a & 255 == 0x89), 4)


@cocotb.test()
async def send_replay(dut):
    """SEND captured and replayed doubles every tile: 2x2, 3x3, 16x32; then zero plus 1.0 gives 0x3C00."""
    clocks.start(dut.clk)
    for gm, gn in ((2, 2), (3, 3), (16, 32)):
        n = gm * gn

        def base(rig: Rig, gm: int = gm, gn: int = gn) -> None:
            rig.operands(4096)
            fill_all(rig)
            rig.op(GEMM, gm=gm, gn=gn, nk=3)

        rig = Rig(dut, seed())
        base(rig)
        rig.op(DRAIN, n=n, dnode=1, dst_x=1, dbuf=2)
        t = await rig.run(dump=False)
        words, left = [], 0
        for f in t.of(8):
            if left == 0:
                left = (f >> 224 & 255) + 1
            else:
                words.append(np.frombuffer((f & (1 << 256) - 1).to_bytes(32, "little"), np.uint8))
                left -= 1
        checks.equal("granules", len(words), 2 * n)
        rig = Rig(dut, seed())
        base(rig)
        count = 0
        for at in range(0, 2 * n, 8):
            rig.burst(2, at, np.stack(words[at : at + 8]), done=5, ack=(0, 0), src=(4, 1))
            count += 1
        rig.op(DRAIN, n=n, dnode=1, dst_x=1, dbuf=2, recv=count)
        rig.op(DRAIN, 0x40000, n=n, last=1)
        t2 = await rig.run()
        checks.true("a doubled tile differs", t2.of(8)[1] != t.of(8)[1])
    one = sum(0x0FC000 << 22 * i for i in range(16)).to_bytes(64, "little")
    rig = Rig(dut, seed())
    rig.op(GEMM, gm=1, gn=1)
    rig.burst(2, 0, np.frombuffer(one, np.uint8).reshape(2, 32), done=1)
    rig.op(DRAIN, 0x40000, n=1, recv=1)
    await rig.run()
    checks.equal("zero plus one", rig.image[0x40000 // 32].view("<u2").tolist(), [0x3C00] * 16)


@cocotb.test()
async def rejects(dut):
    """Every reject reason the descriptor shows, limits at max and max+1, ack targets; a good burst follows."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    rig.op(GEMM, gm=4, gn=4, nk=2)
    rng = rig.rng
    recv, done = 0, 5
    cases = [
        (3, 0, 1), (255, 0, 4), (0, 2048, 1), (0, 2047, 1), (0, 2044, 8), (0, 2040, 8), (1, 2048 - 255, 256),
        (1, 2048 - 256, 256), (0, 65535, 256), (2, 1, 2), (2, 0, 1), (2, 0, 3), (2, 1, 1), (2, 1022, 2),
        (2, 1024, 2), (2, 1023, 2), (2, 30, 2), (2, 32, 2), (2, 30, 4), (2, 0, 32), (2, 0, 34),
    ]  # fmt: skip
    for k, (buf, off, n) in enumerate(cases):
        data = rng.integers(0, 256, (n, 32), dtype=np.uint8)
        if buf == 2:  # small exponents
            data = np.where(np.arange(32) % 3 == 2, data & 0x0F, data).astype(np.uint8)
        ack = ((0, 0), (3, 1), (9, 9))[k % 3]
        rig.burst(buf, off, data, ack=ack, src=(1, k % 4), txn=k, done=done, signal=1)
        rig.burst(0, 1600, operand_words(rng, 4), ack=(0, 0), src=(7, 7))
        recv += 2
        rig.op(FILL, 0, n=1, eoff=250, recv=recv, last=k % 2)
        done += 1
    # without a signal: only the async report tells
    rig.burst(5, 0, operand_words(rng, 2), done=done, signal=0)
    rig.burst(0, 1600, operand_words(rng, 4), ack=(0, 0), src=(7, 7))
    recv += 1
    rig.op(FILL, 0, n=1, eoff=250, recv=recv)
    # own fault first, the event with the next clean retirement
    rig.burst(4, 0, operand_words(rng, 2), done=done + 1)
    recv += 1
    rig.op(7, recv=recv)
    rig.op(DRAIN, n=600)
    rig.op(GEMM, gm=4, gn=4, acc=1)
    rig.op(GEMM, gm=4, gn=4, acc=1)
    rig.probe()
    rig.op(DRAIN, 0x70000, n=16, last=1)
    await rig.run()


@cocotb.test()
async def second_sender(dut):
    """Second and third senders flit by flit; `last` early and late: reasons 4 and 5, the first unharmed."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    rig.op(GEMM, gm=4, gn=4)
    a, b, c = (operand_words(rig.rng, 16) for _ in range(3))
    fa = burst_flits(0, 0, a, (1, 0), (3, 1), 1, 5)
    fb = burst_flits(1, 0, b, (4, 4), (0, 0), 1, 6)
    for i, (x, y) in enumerate(zip(fa, fb, strict=True)):
        rig.stray(x, done=5 if i == 0 else 0)
        rig.stray(y)
    rig.script.append(("burst", 0, 0, a, True, (3, 1), None))
    rig.script.append(("burst", 1, 0, b, True, (4, 4), 4))
    rig.op(FILL, 0, n=1, eoff=250, recv=2)
    # `last` on the first data flit of four, then none on the final one
    for early in (True, False):
        fl = burst_flits(0, 256, c[:4], (1, 0), (3, 1), 1, 7)
        fl[1 if early else 4] ^= 1 << 259
        for i, x in enumerate(fl):
            rig.stray(x, done=6 if early and i == 0 else 0)
        rig.script.append(("burst", 0, 256, c[:4], True, (3, 1), 5))
        rig.event(0x85)
        if early:
            # its first word was written: the entry stays open until the next one
            rig.burst(0, 260, c[4:8])
            rig.event(0x89)
    rig.op(FILL, 0, n=1, eoff=250, recv=5)
    rig.op(FILL, 0, n=1, eoff=250)
    # the late one was complete when the mismatch showed, so its words stand
    rig.script.append(("patch", 0, 64, c[:4]))
    rig.op(GEMM, gm=16, gn=16, nk=4)
    rig.op(DRAIN, 0x40000, n=256, last=1)
    await rig.run()


@cocotb.test()
async def third_sender(dut):
    """Three senders flit by flit: the first stored, the second rejected, the third only leaves unit_err[0]."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    a, b, c = (operand_words(rig.rng, n) for n in (16, 12, 4))
    first = burst_flits(0, 0, a, (1, 0), (3, 1), 1, 5)
    second = burst_flits(1, 0, b, (4, 4), (0, 0), 1, 6)
    third = burst_flits(1, 128, c, (7, 2), (3, 1), 1, 7)
    for i, own in enumerate(first):
        rig.stray(own, done=4 if i == 0 else 0)
        for other in (second, third):
            if i < len(other):
                rig.stray(other[i])
    rig.script.append(("burst", 1, 0, b, True, (4, 4), 4))
    rig.script.append(("burst", 0, 0, a, True, (3, 1), None))
    rig.op(FILL, 0, n=1, eoff=250, recv=2)
    rig.stray(flit(UNIT, (4, 4), 7, 1, 1, 0, 4 << 240), done=5)
    # the same sender again, now alone
    rig.burst(1, 128, c, src=(7, 2), ack=(0, 0), done=5)
    rig.op(GEMM, gm=16, gn=16, nk=4, recv=3)
    rig.op(DRAIN, 0x40000, n=256, last=1)
    t = await rig.run()
    checks.equal("unit_err", t.of(7)[0] >> (176 + 8) & 0xFF, 0x03)


@cocotb.test()
async def mixed_with_fills(dut):
    """CU_DATA word by word between the responses of a FILL, on the same and on the other side."""
    clocks.start(dut.clk)
    for sel in (0, 1):
        rig = Rig(dut, seed() + sel)
        rig.operands(4096)
        rig.config.update(cfg_mix=140, cfg_perm=1, cfg_lat=9)
        rig.op(FILL, 0, n=200, sel=0, delay=500)
        rig.op(FILL, 0x8000, n=200, sel=1)
        recv = 0
        for k in range(12):
            rig.burst(sel, 1024 + 32 * k, operand_words(rig.rng, 32), delay=560 if k == 0 else 0, gap=k % 3)
            recv += 1
        for bank in (0, 1):
            rig.op(
                GEMM,
                gm=16,
                gn=16,
                nk=6,
                abank=bank if sel == 0 else 0,
                bbank=bank if sel else 0,
                recv=0 if bank else recv,
            )
            rig.op(DRAIN, 0x40000 + 0x4000 * bank, n=256)
        t = await rig.run()
        span = [c for c, _ in t.entered]
        checks.true("bursts ran beside the FILLs", span[0] < t.done[1][0] < span[-1] or span[-1] < t.done[1][0])


@cocotb.test()
async def burst_under_sweep(dut):
    """A burst over the running sweep is held until it has read; beside it, it is not (4.4)."""
    clocks.start(dut.clk)
    for entry in (0, 63, 64, 300):
        rig = Rig(dut, seed())
        rig.operands(4096)
        fill_all(rig)
        rig.op(GEMM, gm=16, gn=16, nk=4)
        rig.burst(0, 4 * entry, operand_words(rig.rng, 4), done=5)
        rig.op(GEMM, gm=16, gn=16, nk=4, acc=1, recv=1)
        rig.op(DRAIN, 0x40000, n=256)
        await rig.run()
    # the same entry in a burst of many: the second entry cannot enter before the first is written
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    rig.op(GEMM, gm=16, gn=16, nk=4)
    rig.burst(0, 0, operand_words(rig.rng, 16), done=5)
    rig.op(FILL, 0, n=8, eoff=200, done=5)
    rig.op(GEMM, gm=16, gn=16, nk=4, acc=1, recv=1)
    rig.op(DRAIN, 0x40000, n=256)
    t = await rig.run()
    acks = [c for c, f in t.out if f >> 268 & 15 == 6 and f >> 248 & 255 == 3]
    checks.true("burst held for the sweep", acks[0] > t.last[0])


@cocotb.test()
async def burst_into_emitting_sweep(dut):
    """Operand bursts over an emitting sweep while the memory takes nothing: the sweep ends, all completes."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    rig.config.update(block_flit=11, block_len=2500)
    rig.op(GEMM, gm=16, gn=32, nk=1)
    rig.op(GEMM, 0x40000, gm=16, gn=32, nk=2, emit=1)
    for k in range(20):
        rig.burst(k % 2, 32 * (k // 2), operand_words(rig.rng, 32), done=6 if k == 0 else 0)
    rig.op(GEMM, gm=16, gn=16, nk=4, recv=20)
    rig.op(DRAIN, 0x48000, n=256, last=1)
    t = await rig.run()
    checks.equal("the sweep was not disturbed", t.last[1] - t.first[1], 1023)


@cocotb.test()
async def ack_queue(dut):
    """128 acknowledgements wait behind a blocked link while FILL responses flow; the next burst end holds."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    rig.config.update(block_flit=1, block_len=3000, cfg_lat=20, cfg_mix=128)
    rig.op(FILL, 0, n=100, delay=530)
    depth = 128
    for k in range(depth + 20):
        rig.burst(1, 4 * (k % 200), operand_words(rig.rng, 4), delay=560 if k == 0 else 0)
    rig.op(GEMM, gm=10, gn=10, nk=20, recv=depth + 20)
    rig.op(DRAIN, 0x40000, n=100, last=1)
    t = await rig.run()
    acks = [c for c, f in t.out if f >> 268 & 15 == 6 and f >> 248 & 255 == 3]
    checks.true("the FILL ended while no signal could leave", t.done[0][0] < acks[0])
    checks.true("the burst that found the queue full waited", t.entered[-1][0] > acks[0])


@cocotb.test()
async def peer_order(dut):
    """Peer streams before, during and after sweeps and during DRAINs, below and above the read position."""
    clocks.start(dut.clk)
    rng = np.random.default_rng(seed())

    def tiles(n: int) -> np.ndarray:
        codes = rng.integers(0x0C0000, 0x110000, (n, 16), dtype=np.int64)
        out = np.zeros((2 * n, 32), np.uint8)
        for i in range(n):
            v = sum(int(c) << 22 * j for j, c in enumerate(codes[i]))
            out[2 * i : 2 * i + 2] = np.frombuffer(v.to_bytes(64, "little"), np.uint8).reshape(2, 32)
        return out

    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    rig.op(GEMM, gm=16, gn=16, nk=2)
    # during the sweep, which runs for 512 cycles
    for k in range(4):
        rig.burst(2, 100 * k, tiles(4), done=5)
    rig.op(GEMM, gm=16, gn=16, nk=1, acc=1, recv=4)
    rig.op(DRAIN, 0x40000, n=256)
    # after a DRAIN; sub-tiles inside and beyond the next one
    rig.burst(2, 0, tiles(100), done=7)
    rig.op(DRAIN, 0x42000, n=50, recv=5)
    rig.op(DRAIN, 0x43000, n=256)
    await rig.run()
    # while a SEND of more granules than the queue holds runs on a slow link:
    # sub-tiles already read, not yet read, and beyond it
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    rig.config.update(cfg_busy=100)
    rig.op(GEMM, gm=16, gn=32, nk=1)
    rig.op(DRAIN, n=400, dnode=1, dst_x=1, dbuf=2)
    rig.burst(2, 0, tiles(20), done=5, delay=800)
    rig.burst(2, 740, tiles(20))
    rig.burst(2, 900, tiles(20))
    rig.op(DRAIN, 0x44000, n=512, recv=3, last=1)
    t = await rig.run()
    checks.true("the streams ran during the DRAIN", t.entered[0][0] < t.done[5][0])


@cocotb.test()
async def peer_watchdog(dut):
    """A silent sender: reason 6, unit_err bit 4, the sweep behind it starts, its late flits are dropped."""
    clocks.start(dut.clk)
    limit = int(dut.PEER_WDOG.value)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    rig.op(GEMM, gm=4, gn=4, nk=2)
    flits = burst_flits(2, 0, operand_words(rig.rng, 8), (1, 0), (3, 1), 1, 2)
    for i, f in enumerate(flits):
        rig.stray(f, done=5 if i == 0 else 0, delay=4000 if i == 5 else 0)
    # two sub-tiles were added before it went silent: open them again
    rig.op(FILL, 0, n=1, eoff=250, done=5, delay=60)
    rig.op(GEMM, gm=4, gn=4, nk=1)
    rig.event(0x86)
    rig.op(DRAIN, 0x40000, n=16, done=7, delay=100)
    rig.extra_recv = 1
    rig.stray(flit(UNIT, (4, 4), 7, 1, 1, 0, 4 << 240), recv=1)
    rig.op(GEMM, gm=4, gn=4, nk=2, acc=1, recv=1)
    rig.op(DRAIN, 0x41000, n=16, last=1)
    t = await rig.run(expect=False)
    sig = [f >> 216 & 0xFFFFFFFF for f in t.signals(True)]
    checks.equal("the burst is acknowledged as rejected", sig, [2 | 1 << 31 | 6 << 24])
    codes = [(f >> 248 & 255, f >> 216 & 0xFFFFFFFF) for f in t.signals(False)]
    checks.true("the GEMM behind the stream waited", t.first[1] - t.entered[4][0] > limit - 40)
    checks.true("and started then", t.first[1] - t.entered[4][0] < limit + 100)
    checks.equal("A_NOTREADY once", sum(1 for c, a in codes if c == 4 and a & 255 == 0x86), 1)
    reply = t.of(7)
    checks.equal("CU_ERR unit_err", reply[0] >> (176 + 8) & 0xFF, 0x12)
