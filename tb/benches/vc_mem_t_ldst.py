# SPDX-License-Identifier: Apache-2.0
"""VLD and VST: walks, formats, ranges, the limit flag (docs/spec/vector.md 7.5, 8)."""

from __future__ import annotations

import cocotb
import numpy as np

from benches.vc_mem_rig import Rig
from kohakubench import checks, clocks, scale, seed
from kohakubench.vc_mem_ref import F_DTYPE, F_L1RANGE

SHOW = 7
"""Descriptor of the words that show what a register holds."""


def show(rig: Rig, v: int, at: int = 0) -> None:
    """Send register v to a peer, exactly."""
    rig.desc(SHOW, 0, (1, 16))
    rig.vst(v, SHOW, at, dtype=2)
    rig.peer(SHOW, at, (2, 1))


def show_l1(rig: Rig) -> None:
    """Send the whole L1 to a peer."""
    rig.desc(SHOW, 0, (1, 256))
    rig.peer(SHOW, 0, (2, 1))
    rig.peer(SHOW, 256, (2, 1))


def usual_codes(rig: Rig) -> None:
    """Registers in the range of FP16 and around its ends, some special values."""
    e = rig.rng.integers(98, 146, (128, 16), dtype=np.uint32)
    e = np.where(rig.rng.random((128, 16)) < 0.05, 255, e)
    code = (rig.regs & 0x807FFF) | e << 15
    code = np.where(rig.rng.random((128, 16)) < 0.3, code & 0xFFF000, code)
    rig.regs[:] = np.where(rig.rng.random((128, 16)) < 0.03, code & 0x800000 | 0x7F8000, code)
    rig.ref.regs[:] = rig.regs


def shapes(rng: np.random.Generator, n: int) -> list[tuple[int, list[tuple[int, int]], int]]:
    """n walks: base, dimensions, offset."""
    fixed: list[tuple[int, list[tuple[int, int]], int]] = [
        (3, [(1, 16)], 0), (0, [(0, 1), (7, 16)], 5), (9, [(0, 1), (0, 1), (31, 16)], 0),
        (2, [(0, 0), (0, 0), (0, 0), (29, 16)], 1), (40, [(1, 2), (10, 3), (100, 5), (7, 7)], 0),
        (300, [(1, 7), (-11, 5), (50, 3), (-200, 2)], 4), (511, [(-1, 16)], 0), (17, [(0, 16)], -17),
        (5, [(0, 0)], 0), (200, [(3, 4)], 0), (100, [(1, 3), (-5, 3)], 0), (0, [(1, 65535)], 0),
        (8192, [(1, 16)], -8192), (0, [(1, 16)], -8191), (0, [(1, 1)], 8191), ((1 << 40) - 1, [(1, 16)], 1),
        (1, [(-1, 8)], 0), (505, [(1, 16)], 0), (0, [(131071, 2)], 0), (131072, [(-131072, 2)], 0),
        (0, [(-131072, 4)], 0), (496, [(1, 16)], 0),
    ]  # fmt: skip
    while len(fixed) < n:
        dims = [(int(rng.integers(-40, 90)), int(rng.integers(0, 8))) for _ in range(int(rng.integers(1, 5)))]
        fixed.append((int(rng.integers(0, 400)), dims, int(rng.integers(-30, 60))))
    return fixed[:n]


@cocotb.test()
async def load_walks(dut):
    """VLD along every kind of walk, both formats, VL 1..128: registers exact, faults at the right word."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=30)
    for base, dims, off in shapes(rig.rng, scale(90, 1500)):
        for dtype in (1, 2):
            rig.desc(1, base, *dims)
            v = int(rig.rng.integers(0, 16))
            rig.vld(v, 1, off, vl=int(rig.rng.choice([1, 15, 16, 17, 100, 127, 128, 128])), dtype=dtype)
            show(rig, v, 16 * (v % 30))
    t = await rig.run()
    checks.true("range faults seen", F_L1RANGE in [c for _, c in t.answers])


@cocotb.test()
async def store_walks(dut):
    """VST along every kind of walk, both formats: L1 exact after each, limit flag per word."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed() + 1)
    usual_codes(rig)
    for base, dims, off in shapes(rig.rng, scale(45, 400)):
        for dtype in (1, 2):
            rig.desc(1, base, *dims)
            rig.vst(int(rig.rng.integers(0, 16)), 1, off, vl=int(rig.rng.choice([1, 16, 33, 127, 128])), dtype=dtype)
            show_l1(rig)
    t = await rig.run()
    checks.true("range faults seen", F_L1RANGE in [c for _, c in t.answers])
    checks.true("limits seen", rig.ref.limited > 0)


@cocotb.test()
async def formats(dut):
    """Every FP16 pattern through VLD; dense E8M15 codes around both ends of FP16 through VST and back."""
    clocks.start(dut.clk)
    for part in range(scale(1, 8)):
        rig = Rig(dut, seed() + part)
        usual_codes(rig)
        half = np.arange(65536, dtype=np.uint16) if part == 0 else rig.rng.permutation(65536).astype(np.uint16)
        rig.memory[:4096] = half.view(np.uint8).reshape(4096, 32)
        rig.ref.memory[:4096] = rig.memory[:4096]
        rig.desc(1, 0, (1, 8))
        for at in range(0, 4096, 256):
            rig.desc(0, 32 * at, (32, 256))
            rig.vfill(0, 256)
            for k in range(0, 256, 8):
                v = (at // 256 + k // 8) % 16
                rig.vld(v, 1, 256 + k)
                rig.vst(v, 1, k, dtype=1)
            rig.desc(2, 0x100000 + 32 * at, (32, 256))
            rig.vdrain(2, 0)
        for v in range(16):
            rig.vst(v, 1, 8 * v, vl=128)
            rig.vst(v, 1, 128 + 16 * v, vl=128, dtype=2)
            rig.vld(v, 1, 128 + 16 * v, dtype=2)
            rig.vld(v, 1, 128 + 8 * v, dtype=1)
        await rig.run()


@cocotb.test()
async def limit_flag(dut):
    """The limit flag counts elements below VL only, and words that were written."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    plain = np.full((128, 16), 0x3F8000, np.uint32)
    rig.regs[:] = plain
    for v, e in enumerate((0, 15, 16, 17, 100, 127)):
        rig.regs[8 * v + e // 16, e % 16] = 0x7F0000
    rig.ref.regs[:] = rig.regs
    rig.desc(1, 0, (1, 8))
    rig.desc(2, 508, (1, 8))
    expected = 0
    for v, e in enumerate((0, 15, 16, 17, 100, 127)):
        for vl in (1, 15, 16, 17, 18, 101, 127, 128):
            rig.vst(v, 1, vl=vl)
            expected += e < vl
            rig.vst(v, 2, vl=vl)  # stops at word 512
            expected += e < min(vl, 64)
            rig.vst(v, 1, 32, vl=vl, dtype=2)
    checks.equal("limited words by hand", rig.ref.limited, expected)
    await rig.run()


@cocotb.test()
async def dtypes(dut):
    """F_DTYPE for every other dtype: nothing is read or written."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.desc(1, 0, (1, 16))
    for dtype in (0, 3, 4, 5, 6, 7):
        checks.equal("code", rig.ref.codes[rig.vld(1, 1, dtype=dtype)], F_DTYPE)
        checks.equal("code", rig.ref.codes[rig.vst(1, 1, dtype=dtype)], F_DTYPE)
    rig.vst(2, 1)
    await rig.run()


@cocotb.test()
async def every_field(dut):
    """Every descriptor field at its limits; fields written one by one keep the others."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    for ad in range(8):
        rig.vld(ad, ad)  # reset values: word 0 in every chunk
        rig.field(ad, 0, 10 + ad)
        rig.field(ad, 1, 3 << 16 | 3)
        rig.vld(ad, ad)
        rig.field(ad, 3, 40 << 16 | 2)
        rig.vld(8 + ad, ad)
        rig.field(ad, 2, 0x3FFFF << 16 | 2)  # stride -1
        rig.field(ad, 4, 60 << 16 | 4)
        rig.vld(ad, ad)
        rig.field(ad, 3, 0)
        rig.vst(ad, ad, 100)
    for ad in range(8):
        for bit in (9, 33, 34, 39):
            rig.field(ad, 0, 1 << bit)
            rig.vld(ad, ad)
    await rig.run()
