# SPDX-License-Identifier: Apache-2.0
"""Sweep obligations (docs/spec/cluster.md 4, 7, 10.1)."""

from __future__ import annotations

from itertools import pairwise

import cocotb
import numpy as np

from benches.mg_ref import DRAIN, FILL, GEMM
from benches.mg_rig import Rig, Trace
from kohakubench import checks, clocks, seed

SHAPES = ((1, 1), (1, 2), (2, 1), (1, 3), (2, 2), (1, 4), (1, 5), (3, 3), (4, 4), (16, 32), (255, 2))
MENU = ((16, 16, 3), (1, 1, 4), (3, 3, 9), (16, 32, 1), (2, 2, 8), (1, 5, 30), (8, 8, 8), (1, 3, 20), (5, 7, 3))


def fill_all(rig: Rig) -> None:
    """Whole bank 0 of both sides."""
    for sel in (0, 1):
        rig.op(FILL, 0x8000 * sel, n=255, sel=sel)
        rig.op(FILL, 0x8000 * sel + 255 * 128, n=1, eoff=255, sel=sel)


@cocotb.test()
async def shapes(dut):
    """gm x gn of the list with nk 1, 2, 7; DRAIN at once, and the same handed out: identical words."""
    clocks.start(dut.clk)
    for nk in (1, 2, 7):
        rig = Rig(dut, seed() + nk)
        rig.operands(4096)
        fill_all(rig)
        done = []
        for i, (gm, gn) in enumerate(SHAPES):
            if gm * nk > 256 or gn * nk > 256:
                continue
            done.append((gm, gn))
            rig.op(GEMM, gm=gm, gn=gn, nk=nk, aoff=i % 2)
            rig.op(DRAIN, 0x40000, n=gm * gn)
            rig.op(GEMM, 0x60000, gm=gm, gn=gn, nk=nk, aoff=i % 2, emit=1)
            rig.op(DRAIN, n=gm * gn, fuse=1)
        t = await rig.run()
        per_sweep = {1: 5, 2: 3, 3: 2, 4: 2}
        for i, (gm, gn) in enumerate(done):
            n = gm * gn
            factor = 1 if nk == 1 else per_sweep.get(n, 1)
            checks.true(f"sweep {gm}x{gn}x{nk}", t.last[2 * i] - t.first[2 * i] < n * nk * factor)
        writes = [f & (1 << 256) - 1 for f in t.of(4)]
        at = 0
        for gm, gn in done:
            n = gm * gn
            checks.true(f"{gm}x{gn} emitted = drained", writes[at : at + n] == writes[at + n : at + 2 * n])
            at += 2 * n


@cocotb.test()
async def k_split(dut):
    """K split into 1, 2, 4, 8 accumulating GEMMs and other tilings of the same matrix: the same bits."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    a, b = 0x0000, 0x8000
    # entries of side A: row group g, block k at 8g + k (16 x 8); B likewise
    images = 0
    for parts in (1, 2, 4, 8):
        nk = 8 // parts
        for p in range(parts):
            for g in range(16):
                rig.op(FILL, a + 128 * (8 * g + nk * p), n=nk, eoff=g * nk)
                rig.op(FILL, b + 128 * (8 * g + nk * p), n=nk, eoff=g * nk, sel=1)
            rig.op(GEMM, gm=16, gn=16, nk=nk, acc=int(p > 0))
        rig.op(DRAIN, 0x40000 + 0x2000 * images, n=256)
        images += 1
    # one row group at a time: sub-tiles 16g + h are rows of the same matrix
    rig.op(FILL, a, n=128)
    rig.op(FILL, b, n=128, sel=1)
    for g in range(16):
        rig.op(GEMM, gm=1, gn=16, nk=8, aoff=8 * g)
        rig.op(DRAIN, 0x40000 + 0x2000 * images + 512 * g, n=16)
    images += 1
    await rig.run()
    parts = [rig.image[(0x40000 + 0x2000 * i) // 32 :][:256] for i in range(images)]
    for i in range(1, images):
        checks.arrays(f"split {i} against one GEMM", parts[i], parts[0])


@cocotb.test()
async def back_to_back(dut):
    """GEMMs of different tilings without a pause: bits, and gap <= 2 between adjacent sweeps (P1)."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    plan: list[tuple[int, int, int]] = []
    rig.op(GEMM, gm=16, gn=32, nk=2)
    plan.append((16, 32, 2))
    for _ in range(60):
        gm, gn, nk = rig.random.choice(MENU)
        plan.append((gm, gn, nk))
        rig.op(
            GEMM,
            gm=gm,
            gn=gn,
            nk=nk,
            acc=rig.random.randrange(2),
            aoff=rig.random.randrange(200),
            boff=rig.random.randrange(200),
        )
    rig.op(DRAIN, 0x40000, n=512, last=1)
    t = await rig.run()
    checks.true("pairs measured", _gaps(t, plan) > 20)


def _gaps(t: Trace, plan: list[tuple[int, int, int]]) -> int:
    """Checks the gap behind every sweep of ``plan``, four FILLs before it and a DRAIN behind; how many."""
    checks.equal("sweeps", len(t.first), len([1 for d in t.done if not d[1] >> 32 & 1]) - 5)
    gaps = []
    started = [i for i, d in enumerate(t.done[4:-1]) if not d[1] >> 32 & 1]
    for k in range(len(t.first) - 1):
        gap = t.first[k + 1] - t.last[k] - 1
        gm, gn, _ = plan[started[k]]
        longer = t.last[k] - t.first[k]
        reuse = gm * gn < 5  # the next sweep may have to respect the spacing of sub-tile 0
        if longer >= 14:
            gaps.append(gap)
            checks.true(f"gap after sweep {k}", gap <= (4 if reuse else 2), f"{gap} cycles")
    cocotb.log.info("gaps between adjacent sweeps: %s", sorted(set(gaps)))
    return len(gaps)


def every_pair(n: int) -> list[int]:
    """A walk over 0..n-1 that takes every ordered pair, equal ones too, exactly once."""
    left = {i: list(range(n)) for i in range(n)}
    stack, walk = [0], []
    while stack:
        if left[stack[-1]]:
            stack.append(left[stack[-1]].pop())
        else:
            walk.append(stack.pop())
    return walk[::-1]


@cocotb.test()
async def adjacent_pairs(dut):
    """Every ordered pair of the tilings back to back: gap <= 2 behind each, small after large and back."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    plan = [(16, 32, 2), *(MENU[i] for i in every_pair(len(MENU)))]
    checks.equal("pairs", len({*pairwise(plan[1:])}), len(MENU) ** 2)
    for k, (gm, gn, nk) in enumerate(plan):
        rig.op(GEMM, gm=gm, gn=gn, nk=nk, acc=int(k > 0 and k % 3 == 0), aoff=k % 64, boff=k % 50)
    rig.op(DRAIN, 0x40000, n=512, last=1)
    checks.equal("pairs measured", _gaps(await rig.run(), plan), len(plan) - 1)


@cocotb.test()
async def tilings(dut):
    """One 64x64 product under six tilings, ragged ones too: the same bits for every element."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    nk, side = 2, 16
    fill_all(rig)
    at, place = 0x40000, {}
    shapes = ((16, 16), (1, 16), (16, 1), (2, 8), (5, 3), (4, 4))
    for shape in shapes:
        for top in range(0, side, shape[0]):
            for left in range(0, side, shape[1]):
                gm, gn = min(shape[0], side - top), min(shape[1], side - left)
                rig.op(GEMM, gm=gm, gn=gn, nk=nk, aoff=nk * top, boff=nk * left)
                rig.op(DRAIN, at, n=gm * gn)
                for i in range(gm * gn):
                    place[shape, top + i // gn, left + i % gn] = at // 32 + i
                at += 32 * gm * gn
    await rig.run()
    whole = [place[shapes[0], g, h] for g in range(side) for h in range(side)]
    for shape in shapes[1:]:
        mine = [place[shape, g, h] for g in range(side) for h in range(side)]
        checks.arrays(f"tiling {shape}", rig.image[mine], rig.image[whole])


@cocotb.test()
async def gemm_bound(dut):
    """Accept to exec_done <= 12 with nothing to wait for; adjacent long sweeps leave no idle cycle."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.operands(4096)
    fill_all(rig)
    rig.op(GEMM, gm=16, gn=16, nk=2)
    for _ in range(6):
        rig.op(GEMM, gm=16, gn=16, nk=2, acc=1)
    rig.op(DRAIN, 0x40000, n=256)
    t = await rig.run()
    spent = t.done[4][0] - t.accepted[4]
    checks.true("GEMM alone", spent <= 12, f"{spent} cycles")
    cocotb.log.info("GEMM accept to exec_done: %d cycles", spent)
    for k in range(6):
        checks.true(f"gap {k}", t.first[k + 1] - t.last[k] <= 3, f"{t.first[k + 1] - t.last[k] - 1} idle cycles")
    # explicit DRAIN: first flit <= 32 after the last tile write (7 + 17 + 1 + 1 after the last issue)
    writes = [c for c, f in t.out if f >> 268 & 15 in (1, 4)]
    write_done = t.last[-1] + 26
    checks.true("first drain flit", writes[0] - write_done <= 32, f"{writes[0] - write_done} cycles")
    checks.equal("drain flits in a row", writes[-1] - writes[0] + 1, 256 + 32)
    checks.true("exec_done after the last flit", t.done[-1][0] - (writes[-1] - 1) <= 4)
    cocotb.log.info("DRAIN: first flit %d after the last tile write", writes[0] - write_done)


@cocotb.test()
async def extremes(dut):
    """All -64, +63 by -64, alternating signs, anchors at the clamps, saturating FP16, every scale byte."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())

    # 7-bit fields of one value, scales 0xA0
    def word(values: list[int], scales: list[int]) -> np.ndarray:
        bits = "".join(f"{v & 0x7F:07b}" for v in values) + "".join(f"{s:08b}" for s in scales)
        return np.frombuffer(int(bits, 2).to_bytes(32, "little"), np.uint8)

    kinds = ([-64] * 32, [63] * 32, [-64, 63] * 16, [63, -64] * 16, [1] * 32, [0] * 31 + [-64])
    for k, v in enumerate(kinds):
        for w in range(4):
            rig.memory[4 * k + w] = word(v, [0xA0] * 4)
    for s in range(64):
        for w in range(4):
            rig.memory[256 + 4 * s + w] = word(
                [rig.random.randrange(-64, 64) for _ in range(32)], [4 * s + i for i in range(4)]
            )
    rig.op(FILL, 0, n=6)
    rig.op(FILL, 0, n=6, sel=1)
    at = 0x40000
    for anchor in (0, 16, 17, 40, 62, 63, 255):
        rig.op(GEMM, at, gm=6, gn=6, anchor=anchor, emit=1)
        rig.op(DRAIN, 0, n=36, dnode=1, dst_x=1, dbuf=2)
        at += 36 * 32
    rig.op(FILL, 256 * 32, n=64, eoff=8)
    rig.op(FILL, 256 * 32, n=64, eoff=8, sel=1)
    rig.op(GEMM, at, gm=16, gn=32, aoff=8, boff=8, emit=1)
    rig.op(GEMM, at, gm=16, gn=32, aoff=56, boff=40, emit=1, acc=1)
    rig.op(DRAIN, 0, n=512, dnode=1, dst_x=1, dbuf=2, last=1)
    await rig.run()
