# SPDX-License-Identifier: Apache-2.0
"""Row-major DRAIN obligations (docs/spec/cluster.md 5.6, 5.7, 12)."""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge

from benches.mg_ref import DRAIN, FILL, GEMM, bursts
from benches.mg_rig import Rig
from benches.mg_t_gemm import fill_all
from benches.mg_t_system import Stream, play_random
from kohakubench import checks, clocks, scale, seed
from kohakutpu.model.messages import bursts as model_bursts

WIDTHS = (4, 8, 12, 32, 64)
TILE_IMAGE = 0x40000


def rig_of(dut: Any, number: int) -> Rig:
    """A rig with the tile store of this build."""
    return Rig(dut, number, tiles=int(dut.TILES.value))


def opened(rig: Rig, groups: int, most: int = 16, spare: int = 0) -> int:
    """Operands in both L1 sides and up to ``most`` x ``groups`` opened sub-tiles, ``spare`` rows of them less than
    the tile store holds; their number."""
    rig.operands(4096)
    fill_all(rig)
    gm = min(most, rig.sizes["tiles"] // groups - spare)
    rig.op(GEMM, gm=gm, gn=groups, nk=2)
    return gm * groups


def rowmajor(rig: Rig, addr: int, n: int, gn: int, pitch: int, low: int = 0, **f: int) -> None:
    """A row-major DRAIN; ``low`` are the reserved bits."""
    rig.op(DRAIN, addr, n=n, gn=gn, rowmajor=1, tail=pitch << 40 | low, **f)


def reordered(image: np.ndarray, n: int, gn: int, pitch: int, out: np.ndarray) -> None:
    """Write the rows of ``n`` sub-tiles of ``image`` into the words of ``out``, element by element."""
    tiles = image.view("<u2").reshape(-1, 4, 4)[:n].reshape(n // gn, gn, 4, 4)
    matrix = tiles.transpose(0, 2, 1, 3).reshape(4 * n // gn, 4 * gn)
    for row, values in enumerate(matrix):
        out[row * pitch : row * pitch + gn // 4] = values.copy().view(np.uint8).reshape(-1, 32)


@cocotb.test()
async def row_shapes(dut):
    """gn 4 to 64, pitch gn/4 and larger: the image is the tile image re-ordered, bursts() = acknowledgements."""
    clocks.start(dut.clk)
    tiles = int(dut.TILES.value)
    for gn in [w for w in WIDTHS if w <= tiles]:
        for pitch in (gn // 4, gn // 4 + 1, gn // 4 + 9):
            rig = rig_of(dut, seed() + gn)
            count = opened(rig, min(gn, 32))
            sizes = sorted({gn, gn * (count // gn // 2 or 1), count - count % gn})
            rig.memory[0x60000 // 32 :] = 0xA5
            rig.op(DRAIN, TILE_IMAGE, n=count)
            expected = rig.memory.copy()
            at, expect, places = 0x60000 // 32, bursts("emit", count), []
            for n in sizes:
                rowmajor(rig, 32 * at, n, gn, pitch, dbuf=2)
                places.append((at, n))
                at += 4 * n // gn * pitch + 3
                expect += bursts("rowmajor", n, gn, pitch)
                checks.equal(
                    "burst function", bursts("rowmajor", n, gn, pitch), model_bursts("rowmajor", n, gn, pitch)
                )
            rig.op(FILL, 0, n=1, last=1)
            t = await rig.run()
            checks.equal(f"gn {gn} pitch {pitch}: descriptors", len(t.of(1)), expect)
            checks.equal(f"gn {gn} pitch {pitch}: acknowledgements", len(t.acks), expect)
            plain = rig.image[TILE_IMAGE // 32 : TILE_IMAGE // 32 + count]
            checks.true("the tiles are not all alike", len(np.unique(plain.view("<u2"))) > min(count, 100))
            expected[TILE_IMAGE // 32 : TILE_IMAGE // 32 + count] = plain
            for at, n in places:
                reordered(plain, n, gn, pitch, expected[at:])
            checks.arrays(f"gn {gn} pitch {pitch}: image", rig.image, expected)


@cocotb.test()
async def row_addresses(dut):
    """Every address bit from 25 to 39 in the base, or carried into by each row; the largest pitch: every descriptor."""
    clocks.start(dut.clk)
    rig = rig_of(dut, seed())
    opened(rig, 4)
    for bit in range(25, 40):
        rowmajor(rig, 1 << bit | 0x20, 8, 4, 3)
        for row in (1, 2, 3):
            rowmajor(rig, (1 << bit) - 32 * row * (2 + bit % 3), 4, 4, 2 + bit % 3)
        rowmajor(rig, 1 << bit, 16, 8, (1 << 22) - bit)
    rig.op(FILL, 0, n=1, last=1)
    t = await rig.run()
    checks.true("all bits", all(any(f >> 216 + b & 1 for f in t.of(1)) for b in range(25, 40)))


@cocotb.test()
async def row_nodes(dut):
    """Node and remote form; captured bursts played to the operand buffer: one DATA_RECEIVED for each."""
    clocks.start(dut.clk)
    for gn, pitch in ((4, 1), (4, 3), (8, 2), (12, 5), (16, 4)):
        n = gn if gn > 8 else 16
        rig = rig_of(dut, seed() + gn)
        count = opened(rig, 4)
        n = min(n, count)
        rowmajor(rig, 0x60, n, gn, pitch, dnode=1, dst_x=1, dflags=1, dack_x=3, dack_y=1, dmesh=3)
        local = len(rig.inst)
        rowmajor(
            rig, 0x40, n, gn, pitch, dnode=1, dst_y=1, dbuf=1, dflags=1, dack_x=1, dack_y=2, dmesh=2, dfin=0x12
        )
        t = await rig.run()
        each = bursts("rowmajor", n, gn, pitch)
        first, found = captured(t.of(8))[:each], len(captured(t.of(8)))
        checks.equal("bursts of both transfers", found, 2 * each)
        rig = rig_of(dut, seed() + gn)
        opened(rig, 4)
        for off, words in first:
            rig.burst(0, off, words, done=local - 1, ack=(3, 1), expect=False)
        # rows apart leave holes: entries are not all complete, only the signals count here
        rig.extra_recv = each
        rig.op(FILL, 0, n=1, fbank=1, recv=each)
        t2 = await rig.run(expect=False)
        checks.equal("DATA_RECEIVED", len(t2.signals(True)), each)
        checks.true("none rejected", all(not f >> 247 & 1 for f in t2.signals(True)))


def captured(flits: list[int]) -> list[tuple[int, np.ndarray]]:
    """(offset, words) of every CU_DATA burst, in order."""
    out: list[tuple[int, np.ndarray]] = []
    k = 0
    while k < len(flits):
        n = (flits[k] >> 224 & 255) + 1
        part = [(f & (1 << 256) - 1).to_bytes(32, "little") for f in flits[k + 1 : k + 1 + n]]
        out.append((flits[k] >> 232 & 0xFFFF, np.frombuffer(b"".join(part), np.uint8).reshape(n, 32)))
        k += n + 1
    return out


@cocotb.test()
async def row_violations(dut):
    """Every rule of 5.6 at the last legal and first illegal value, within 16 cycles, a working drain after each."""
    clocks.start(dut.clk)
    rig = rig_of(dut, seed())
    count = opened(rig, 4, spare=1)
    top = (1 << 22) - 1
    node = {"dnode": 1, "dst_x": 1}
    cases: list[tuple[int, int, int, int, int, dict[str, int]]] = [
        (0, n, gn, 64, 0, {}) for gn in (0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 252, 254, 255) for n in (gn or 4, 2 * gn or 8)
    ]
    cases += [(0, n, gn, 64, 0, {}) for gn in (4, 8, 12) for n in (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 15, 16, 20, 24)]
    cases += [(0, gn, gn, p, 0, {}) for gn in (4, 8, 16) for p in (0, gn // 4 - 1, gn // 4, gn // 4 + 1, top)]
    cases += [(0, 4, 4, 1, 1 << b, {}) for b in range(40)]
    cases += [
        (0, 16, 4, 2, 0, {"dbuf": 2}), (0, 16, 4, 2, 0, {**node, "dbuf": 2}), (0, 16, 4, 2, 0, {**node, "dbuf": 1}),
        (0, rig.sizes["tiles"] + 4, 4, 1, 0, {}), (0, 65532, 4, 1, 0, {}), (0, 65535, 4, 1, 0, {}),
        (0, count + 4, 4, 1, 0, {}), (0, count, 4, 0, 0, {"dfin": 1}), (0, 8, 4, 1, 0, {"dfin": 1}),
        (0, 8, 4, 1, 0, {**node, "dfin": 1}), (0, 8, 4, 1, 0, {"dnode": 1}), (0, 8, 5, 1, 0, {"dnode": 1}),
        (0, 8, 4, 1, 0, {**node, "dst_x": 2, "dst_y": 1}), (1, 8, 4, 1, 0, node), (1 << 21, 8, 4, 1, 0, node),
        (1 << 39, 8, 4, 1, 0, node), (1, 8, 4, 0, 0, node), (0x20, 8, 4, 4, 0, node),
    ]  # fmt: skip
    for n, gn, pitch in ((4, 4, 1), (8, 4, 1), (8, 4, 7), (16, 8, 2), (16, 8, 3), (16, 4, 1000), (4, 4, 21845),
                         (16, 4, 4369), (8, 4, 9362)):  # fmt: skip
        last = (4 * n // gn - 1) * pitch + gn // 4 - 1
        cases += [(32 * a, n, gn, pitch, 0, node) for a in {max(65534 - last, 0), 65535 - last, 65536 - last} if a >= 0]
    cases += [(0, n, 4, p, 0, node) for n in (4, 8) for p in (9363, 21846, 65535, 65536, 1 << 20, 1 << 21, top)]
    for k, (addr, n, gn, pitch, low, f) in enumerate(cases):
        to_node = f.get("dnode", 0) or f.get("dfin", 0)
        rowmajor(rig, addr if to_node else 0x80000 + addr, n, gn, pitch, low, last=int(k % 5 == 4), **f)
        if k % 2:
            rowmajor(rig, 0x90000, 8, 4, 1 + k % 3)
        elif k % 3 == 0:
            rig.op(DRAIN, 0xA0000, n=5)
    rig.probe(0xC0000)
    rig.config.update(cfg_credit=4)
    t = await rig.run()
    codes = {a & 0xFF for c, a, _ in rig.ref.completions if c == 4}
    checks.true("all codes of the table", {0x07, 0x08, 0x0B, 0x0C, 0x0D, 0x0E} <= codes, str(codes))
    late = [
        (i, done - t.done[i - 1][0])
        for i, (done, d) in enumerate(t.done)
        if i and d >> 32 & 1 and t.accepted[i] <= t.done[i - 1][0] + 1 and not rig.inst[i][1] >> 259 & 1
    ]
    checks.true("refusals were measured", len(late) > 40)
    checks.true("refused within 16 cycles", max(c for _, c in late) <= 16, f"{max(late, key=lambda x: x[1])}")


@cocotb.test()
async def row_rate(dut):
    """Flits leave without a gap behind row 0 of the first row group; a full burst behind a shorter one is collected
    while that one is sent."""
    clocks.start(dut.clk)
    tiles = int(dut.TILES.value)
    for gn, pitch in ((4, 1), (4, 2), (12, 3), (28, 7), (32, 8), (32, 9), (36, 9), (36, 10), (40, 11), (60, 16),
                      (64, 16), (64, 17), (68, 18), (252, 63), (252, 100)):  # fmt: skip
        if gn > tiles or (gn > 64 and tiles < 512):
            continue
        rig = rig_of(dut, seed())
        count = opened(rig, min(gn, 32))
        n = count - count % gn
        rowmajor(rig, 0x80000, n, gn, pitch, last=1, done=len(rig.inst), delay=1200)  # the sweep is over
        t = await rig.run()
        flits = [c for c, f in t.out if f >> 268 & 15 in (1, 4)]
        total = n + bursts("rowmajor", n, gn, pitch)
        checks.equal("flits", len(flits), total)
        # row 0 of the first group grows by a word in four reads; everything behind it is read ahead
        tail = gn // 4 % 8 if gn > 32 and pitch > gn // 4 else 0
        waits = 4 * (n // gn) * (7 - tail) if tail else 0
        took, most = flits[-1] - flits[0], total + 2 + max(0, gn - 32) + waits
        checks.true(f"gn {gn} pitch {pitch}: no gap", took <= most, f"{took} of {most}")
        accept = t.accepted[-1]
        checks.true("first flit", flits[0] - accept <= 4 * min(8, gn // 4) + 36, f"{flits[0] - accept} at gn {gn}")


@cocotb.test()
async def row_full(dut):
    """Every sub-tile of the store in one transfer with the link blocked for the whole of it, or busy: all words."""
    clocks.start(dut.clk)
    tiles = int(dut.TILES.value)
    for gn, pitch in ((4, 1), (4, 5), (16, 4), (16, 7), (64, 16), (64, 19), (252, 63)):
        if gn > tiles or (gn > 64 and tiles < 512):
            continue
        for blocked in (1, 0):
            rig = rig_of(dut, seed() + gn)
            groups = min(16, tiles // 4) if tiles < 4096 else 64
            count = opened(rig, groups, most=64)
            checks.equal("sub-tiles", count, tiles)
            n = count - count % gn
            rowmajor(rig, 0x80000, n, gn, pitch)
            rig.op(GEMM, 0x60000, gm=4, gn=4, emit=1)
            rowmajor(rig, 0x60000, 16, 4, 1)
            rig.op(DRAIN, 0x60, n=5, dnode=1, dst_x=1, dbuf=2, last=1)
            # requests and completions of the FILLs and of the first GEMM leave before the first write
            before = sum(2 if f >> 252 & 15 == FILL else 1 for _, f in rig.inst[:-4])
            rig.config.update(cfg_busy=0 if blocked else 200, block_flit=before + 1, block_len=6000 * blocked)
            t = await rig.run()
            writes = [c for c, f in t.out if f >> 268 & 15 in (1, 4)]
            checks.true("the link was blocked", not blocked or writes[1] - writes[0] > 5000)


@cocotb.test()
async def row_reset(dut):
    """Reset at many places of a row-major DRAIN, its checks included; the next program runs from scratch."""
    clocks.start(dut.clk)
    start, end = 0, 0
    for k in range(16):
        rig = rig_of(dut, seed())
        opened(rig, 4)
        rowmajor(rig, 0x80000, 16, 8, 3, done=len(rig.inst), delay=100, last=1)
        if not k:
            t = await rig.run()
            start, end = t.accepted[-1], t.done[-1][0]
            continue
        try:
            await rig.run(expect=False, cycles=start + (end - start) * k // 16)
        except AssertionError:
            pass
        else:
            raise AssertionError(f"the program ended before its reset, {k} of 16")
        await FallingEdge(dut.clk)
        rig = rig_of(dut, seed() + k)
        rowmajor(rig, 0x80000, 16, 8, 2)  # nothing opened
        count = opened(rig, 4)
        if k % 2:
            rig.op(DRAIN, 0x60000, n=9)
        rowmajor(rig, 0x80000, 16, 4, 2)
        rowmajor(rig, 0x90000, 16, 8, 2)
        rig.op(DRAIN, 0xA0000, n=count, last=1)
        await rig.run()


@cocotb.test()
async def row_refused_writes(dut):
    """A refused write of any burst of a row-major DRAIN is the FAULT of that DRAIN and of nothing else."""
    clocks.start(dut.clk)
    for bad, size in ((0, 1), (5, 2), (30, 1)):
        rig = rig_of(dut, seed())
        opened(rig, 4)
        rig.config.update(wr_bad_lo=0x80000 // 32 + bad, wr_bad_hi=0x80000 // 32 + bad + size)
        rig.op(DRAIN, 0x60000, n=16)
        rowmajor(rig, 0x80000, 16, 4, 2)
        rowmajor(rig, 0x80000, 16, 8, 7)
        rowmajor(rig, 0x90000, 16, 16, 4)
        rig.op(DRAIN, 0x60000, n=16, last=1)
        await rig.run()
        faults = sum(1 for c, _, _ in rig.ref.completions if c == 4)
        checks.true("a drain was blamed", 1 <= faults <= 2, str(faults))


@cocotb.test()
async def row_mixed(dut):
    """Row-major beside emitted batches, SENDs and streams into the tiles it has read, with a busy link."""
    clocks.start(dut.clk)
    for busy in (0, 128, 230):
        rig = rig_of(dut, seed() + busy)
        rig.pressure(busy)
        count = opened(rig, 4)
        for i in range(6):
            rig.op(GEMM, 0x60000, gm=4, gn=4, acc=1, emit=1)
            rowmajor(rig, 0x68000, count // 16 * 16, 16, 4 + i)
            rig.op(GEMM, gm=4, gn=4, acc=i % 2, nk=2)
            rowmajor(rig, 0x70000, 16, 8, 2 + i % 2, dnode=i % 2, dst_x=1, dflags=1)
            rig.op(DRAIN, 0x60, n=5, dnode=1, dst_x=1, dbuf=2)
            rig.burst(2, 0, np.zeros((8, 32), np.uint8), done=len(rig.inst))
            rowmajor(rig, 0x78000, 16, 4, 1, recv=i + 1)
            rig.op(FILL, 0, n=3, fbank=1, sel=i % 2)
        rig.op(DRAIN, 0x60000, n=count, last=1)
        await rig.run()


class RowStream(Stream):
    """The random stream with row-major drains of every destination among its steps."""

    def step(self) -> None:
        if self.open < 4 or self.r.random() > 0.3:
            super().step()
            return
        r = self.r
        gn = 4 * r.randrange(1, min(self.open, 64) // 4 + 1)
        n = gn * r.randrange(1, self.open // gn + 1)
        pitch = gn // 4 + r.choice((0, 0, 1, r.randrange(40)))
        f = self.dest(n, False)
        if f.get("dnode"):
            f["addr"] = 32 * r.randrange(40000)
            f["dbuf"] = r.choice((0, 1, 3, 200))
        else:
            f["addr"] = 0x80000 + 32 * r.randrange(16000 - (4 * n // gn) * pitch)
        self.op(DRAIN, f.pop("addr"), n=n, gn=gn, rowmajor=1, tail=pitch << 40, **f)
        self.batch = 0


@cocotb.test()
async def row_random(dut):
    """Random programs with row-major drains, random stalls and CU_DATA against the sequential model."""
    clocks.start(dut.clk)
    part = 400
    for k in range(scale(1600, 12000) // part):
        rig = rig_of(dut, seed() * 1000 + k)
        await play_random(RowStream(rig), part, k)
        checks.true("row-major drains", sum(1 for _, w in rig.inst if w >> 62 & 1 and w >> 252 & 15 == DRAIN) > 60)
