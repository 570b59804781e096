# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of the accumulator lane (mg_norm, mg_acc_add, mg_to_fp16) against the reference model."""

import os
from itertools import product

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, Timer

from kohakubench import Bench, checks, clocks, memfile, scale, seed
from kohakubench.mg_stimulus import clamped
from kohakutpu.model.numerics import acc_add, chain, to_fp16

BENCH = Bench(
    name="mg_lane",
    top="tb_mg_lane",
    sources=[
        "rtl/matmul/mg_normalize.v",
        "rtl/matmul/mg_round.v",
        "rtl/matmul/mg_norm.v",
        "rtl/matmul/mg_acc_add.v",
        "rtl/matmul/mg_to_fp16.v",
        "tb/hdl/tb_mg_lane.v",
    ],
    params={"ACC_MW": 14},
    slow_variants=("mw11", "mw12"),
    variants={"mw10": {"ACC_MW": 10}, "mw11": {"ACC_MW": 11}, "mw12": {"ACC_MW": 12}, "mw16": {"ACC_MW": 16}},
    mutations={
        "truncate": ("rtl/matmul/mg_round.v", "guard && (st || m[31-MW])", "1'b0"),
        "ties_away": ("rtl/matmul/mg_round.v", "guard && (st || m[31-MW])", "guard"),
        "drop_lost": ("rtl/matmul/mg_acc_add.v", "(u << diff) != t,", "1'b0,"),
        "saturate_pass": ("rtl/matmul/mg_acc_add.v", "align  = {s_zero,", "align  = {1'b0,"),
        "scale_hidden_bit": ("rtl/matmul/mg_norm.v", "{4'd0, 1'b1, mb}", "{5'd0, mb}"),
        "anchor_wrap": ("rtl/matmul/mg_norm.v", "$signed({2'd0, offset})", "$signed({3'd0, offset[6:0]})"),
        "flush_early": ("rtl/matmul/mg_to_fp16.v", "q <= 9'sd0", "q <= 9'sd1"),
        "clamp_flag": ("rtl/matmul/mg_to_fp16.v", "{1'b1, v[MW+7], 15'h7BFF}", "{1'b0, v[MW+7], 15'h7BFF}"),
    },
    mutation_tests={
        "truncate": ["check_values"],
        "ties_away": ["add_exponent_differences"],
        "drop_lost": ["add_corners"],
        "saturate_pass": ["add_corners"],
        "scale_hidden_bit": ["check_values"],
        "anchor_wrap": ["scales_and_anchors"],
        "flush_early": ["check_values"],
        "clamp_flag": ["check_values"],
    },
    timeout_cycles=30_000_000,
    wall_s=300,
)
LIMIT = 1 << 20
CONVERTERS = 4


class Lane:
    """Feeds arrays through the player and compares what comes back."""

    def __init__(self, dut):
        self.dut = dut
        self.mw = int(dut.ACC_MW.value)
        self.run_id = 0
        self.rng = np.random.default_rng(seed())

    async def start(self):
        self.dut.go.value = 0
        clocks.start(self.dut.clk)
        await clocks.reset(self.dut)
        return self

    def codes(self, n):
        """Random codes, exponents crowded around the middle, one in 16 with exponent 0, 126 or 127."""
        e = self.rng.integers(0, 128, n)
        e = np.where(self.rng.integers(0, 16, n) == 0, self.rng.choice([0, 1, 126, 127], n), e)
        f = self.rng.integers(0, 1 << self.mw, n)
        f = np.where(self.rng.integers(0, 4, n) == 0, f & -(1 << self.rng.integers(0, self.mw + 1, n)), f)
        return (self.rng.integers(0, 2, n) << (self.mw + 7)) | (e << self.mw) | (f & ((1 << self.mw) - 1))

    async def play(self, norm, add, codes):
        """One case a row: norm (d, sa, sb, anchor), add (x, y), codes (n, 4); results by name."""
        d, sa, sb, anchor = norm
        x, y = add
        self.run_id += 1
        quads = [(codes[:, q], 24) for q in range(CONVERTERS)]
        words = memfile.pack(192, *quads, (x, 24), (y, 24), (d & 0xFFFFFF, 24), (sa, 8), (sb, 8), (anchor, 8))
        memfile.write(f"cases_{self.run_id}.hex", words)
        self.dut.run_id.value = self.run_id
        self.dut.n_cases.value = len(words)
        self.dut.go.value = 1
        await RisingEdge(self.dut.done)
        self.dut.go.value = 0
        await Timer(5 * clocks.PERIOD_NS, unit="ns")
        got = memfile.read(f"results_{self.run_id}.hex", 18)
        os.remove(f"cases_{self.run_id}.hex")
        os.remove(f"results_{self.run_id}.hex")
        halves = np.stack([memfile.field(got, 48 + 24 * q, 24) for q in range(CONVERTERS)], axis=1)
        return {
            "norm": memfile.field(got, 0, 24).astype(np.uint32),
            "add": memfile.field(got, 24, 24).astype(np.uint32),
            "fp16": (halves & np.uint64(0xFFFF)).astype(np.uint16),
            "clamp": (halves >> np.uint64(16)) != 0,
        }

    async def check(self, name, norm=None, add=None, emit=None):
        """norm: (d, sa, sb, anchor), add: (x, y), emit: codes; shorter ones repeat."""
        zero = np.zeros(1, dtype=np.int64)
        d, sa, sb, anchor = (np.atleast_1d(v) for v in np.broadcast_arrays(*(norm or (zero,) * 4)))
        x, y = (np.atleast_1d(v) for v in np.broadcast_arrays(*(add or (zero,) * 2)))
        codes = np.atleast_1d(zero if emit is None else emit)
        n = max(len(d), len(x), -(-len(codes) // CONVERTERS))
        for at in range(0, n, LIMIT):
            pick = np.arange(at, min(n, at + LIMIT))
            nd, nsa, nsb, nanchor = (v.ravel()[pick % v.size] for v in (d, sa, sb, anchor))
            ax, ay = (v.ravel()[pick % v.size] for v in (x, y))
            ec = codes[(pick[:, None] * CONVERTERS + np.arange(CONVERTERS)) % codes.size]
            got = await self.play((nd, nsa, nsb, nanchor), (ax, ay), ec)
            if norm is not None:
                exp = chain_rows(nd, nsa, nsb, nanchor, self.mw)
                checks.arrays(f"{name}: norm", got["norm"], exp)
            if add is not None:
                checks.arrays(f"{name}: add", got["add"], acc_add(ax, ay, self.mw))
            if emit is not None:
                checks.arrays(f"{name}: fp16", got["fp16"], to_fp16(ec, self.mw))
                checks.arrays(f"{name}: clamp", got["clamp"], clamped(ec, self.mw))


def chain_rows(d, sa, sb, anchor, mw):
    """Reference `chain` with an anchor per case."""
    exp = np.zeros(len(d), dtype=np.uint32)
    for value in np.unique(anchor):
        at = anchor == value
        exp[at] = chain(d[at], sa[at], sb[at], int(value), mw)
    return exp


@cocotb.test()
async def check_values(dut):
    """Every row of cluster.md 6.5 (values of MW = 14), as written there."""
    lane = await Lane(dut).start()
    if lane.mw != 14:
        checks.true("6.5 is for MW 14", lane.mw in (10, 11, 12, 16))
        return
    norm = [
        (1, 0xA0, 0xA0, 0x0FC000),
        (-1, 0xA0, 0xA0, 0x2FC000),
        (131072, 0xA7, 0xA7, 0x147080),
        (-129024, 0xA1, 0xA3, 0x342174),
        (12345, 0xB5, 0x9E, 0x13C491),
        (32767, 0xA0, 0xA7, 0x13B7FF),
        (1, 0x00, 0x00, 0x05C000),
        (131072, 0xFF, 0xFF, 0x19F080),
    ]
    add = [
        (0x0FC000, 0x2FC000, 0x000000),
        (0x0FC001, 0x0C4000, 0x0FC002),
        (0x0FC000, 0x2C4000, 0x0FBFFE),
        (0x0A28E7, 0x264001, 0x0A28E7),
        (0x0D0000, 0x290001, 0x0D0000),
        (0x1FBFFF, 0x1FBFFF, 0x1FFFFF),
        (0x004000, 0x204001, 0x000000),
    ]
    emit = [
        (0x13BFE8, 0x7BFE),
        (0x13BFF0, 0x7BFF),
        (0x13BFF8, 0x7BFF),
        (0x13C000, 0x7BFF),
        (0x0C4000, 0x0400),
        (0x0C3FFF, 0x0400),
        (0x0C3FF8, 0x0400),
        (0x2C3FF0, 0x8000),
        (0x0FC008, 0x3C00),
        (0x0FC009, 0x3C01),
        (0x0FC018, 0x3C02),
    ]
    n = len(emit)
    rows = [norm[i % len(norm)] + add[i % len(add)] + emit[i] for i in range(n)]
    d, sa, sb, _, x, y, _, c, _ = (np.array(col, dtype=np.int64) for col in zip(*rows, strict=True))
    got = await lane.play((d, sa, sb, np.full(n, 40)), (x, y), np.repeat(c[:, None], CONVERTERS, axis=1))
    for i, row in enumerate(rows):
        checks.equal(f"norm{row[:3]}", int(got["norm"][i]), row[3])
        checks.equal(f"add({row[4]:06x},{row[5]:06x})", int(got["add"][i]), row[6])
        checks.equal(f"to_fp16({row[7]:06x})", int(got["fp16"][i, 0]), row[8])
        checks.equal(f"clamp({row[7]:06x})", bool(got["clamp"][i, 0]), row[7] in (0x13BFF8, 0x13C000))


@cocotb.test()
async def random_million(dut):
    """>= 10^6 random norm, add and to_fp16 cases."""
    lane = await Lane(dut).start()
    n, rng = scale(1 << 20, 1 << 23), lane.rng
    d = np.where(rng.integers(0, 2, n) == 1, rng.integers(-129024, 131073, n), rng.integers(-300, 300, n))
    anchor = np.where(rng.integers(0, 2, n) == 1, 40, rng.integers(0, 256, n))
    norm = (d, rng.integers(0, 256, n), rng.integers(0, 256, n), anchor)
    x = lane.codes(n)
    # Half of the pairs lie close together, where alignment and cancellation happen.
    near = np.clip(((x >> lane.mw) & 127) + rng.integers(-lane.mw - 11, lane.mw + 12, n), 0, 127)
    y = lane.codes(n)
    y = np.where(rng.integers(0, 2, n) == 1, y & ~(127 << lane.mw) | (near << lane.mw), y)
    await lane.check("random", norm, (x, y), lane.codes(n))


@cocotb.test()
async def scales_and_anchors(dut):
    """All 256 scale codes on each side, all (M_A, M_B) pairs, the anchors of the page, rounding edges."""
    lane = await Lane(dut).start()
    edges = [0, 1, -1, 2, 3, 131072, -129024, 127008, (1 << 16) - 1, -(1 << 15), 12345, -32767]
    sa, sb = (v.ravel() for v in np.meshgrid(np.arange(256), np.arange(256)))
    for anchor in (0, 16, 17, 40, 62, 63, 255):
        d = np.array(edges)[lane.rng.integers(0, len(edges), sa.size)]
        await lane.check(f"anchor {anchor}", (d, sa, sb, np.full(sa.size, anchor)))
    # Products around every rounding boundary: all |d| of the top two binades at eight scale pairs.
    d = np.arange(32768, 131073)
    for ma, mb in ((0, 0), (7, 7), (1, 3), (5, 6), (2, 7), (0, 7), (4, 4), (3, 5)):
        await lane.check(f"rounding {ma},{mb}", (d, 0xA0 | ma, 0xA0 | mb, np.full(d.size, 40)))


@cocotb.test()
async def add_exponent_differences(dut):
    """Every difference 0..MW+12, both signs, both orders, >= 200 fraction pairs of edge and random kind."""
    lane = await Lane(dut).start()
    mw, rng = lane.mw, lane.rng
    ones = (1 << mw) - 1
    special = [0, ones, 1, ones - 1, 1 << (mw - 1), *(1 << b for b in range(mw))]
    pairs = np.array(list(product(special, special)) + [list(p) for p in rng.integers(0, ones + 1, (400, 2))])
    x, y = [], []
    for diff, same, swap in product(range(mw + 13), (0, 1), (0, 1)):
        big = int(rng.integers(diff + 1, 126))
        sign = int(rng.integers(0, 2))
        a = (sign << (mw + 7)) | (big << mw) | pairs[:, 0]
        b = ((sign ^ same) << (mw + 7)) | ((big - diff) << mw) | pairs[:, 1]
        x.append(b if swap else a)
        y.append(a if swap else b)
    await lane.check("differences", add=(np.concatenate(x), np.concatenate(y)))


@cocotb.test()
async def add_corners(dut):
    """Cancellation, equal magnitudes, E = 0 with F != 0, E = 126 and 127, both range ends, contract ties."""
    lane = await Lane(dut).start()
    mw, rng = lane.mw, lane.rng
    sign, ones = 1 << (mw + 7), (1 << mw) - 1
    code = lane.codes(20000)
    await lane.check("cancel", add=(code, code ^ sign))
    await lane.check("double", add=(code, code))
    zero_like = rng.integers(0, ones + 1, 20000) | (rng.integers(0, 2, 20000) << (mw + 7))
    await lane.check("zero and value", add=(zero_like, code))
    await lane.check("value and zero", add=(code, zero_like))
    await lane.check("zero and zero", add=(zero_like, rng.permutation(zero_like)))
    top = rng.choice([125, 126, 127], (2, 40000)) << mw | rng.integers(0, ones + 1, (2, 40000))
    top |= rng.integers(0, 2, (2, 40000)) << (mw + 7)
    await lane.check("top binades", add=(top[0], top[1]))
    low = rng.integers(1, mw + 12, (2, 40000)) << mw | rng.integers(0, ones + 1, (2, 40000))
    low |= rng.integers(0, 2, (2, 40000)) << (mw + 7)
    await lane.check("bottom binades", add=(low[0], low[1]))
    x, y = contract_ties(rng, mw, 2000)
    await lane.check("contract ties", add=(x, y))


def contract_ties(rng, mw, wanted):
    """Pairs of opposite sign with lost = 1 and the difference on a tie, found by search."""
    found_x, found_y = [], []
    have = 0
    while have < wanted:
        n = 400000
        diff = rng.integers(9, mw + 9, n)
        fx, fy = rng.integers(0, 1 << mw, (2, n))
        fy = np.where(rng.integers(0, 2, n) == 1, fy & 0xF, fy)
        b, t = ((1 << mw) + fx) << 8, ((1 << mw) + fy) << 8
        u = t >> diff
        r = b - u
        p = np.floor(np.log2(r)).astype(np.int64)
        r = r << (mw + 9 - p)
        tie = ((u << diff) != t) & ((r & 0x1FF) == 0x100)
        e = rng.integers(60, 90, n)
        s = rng.integers(0, 2, n)
        found_x.append(((s << (mw + 7)) | (e << mw) | fx)[tie])
        found_y.append((((1 - s) << (mw + 7)) | ((e - diff) << mw) | fy)[tie])
        have += int(tie.sum())
    checks.true("contract ties", have >= 500)
    return np.concatenate(found_x), np.concatenate(found_y)


@cocotb.test()
async def fp16_exhaustive(dut):
    """ACC -> FP16: every code up to MW = 14, 2^20 random ones and all boundaries at MW = 16."""
    lane = await Lane(dut).start()
    if lane.mw <= 14:
        await lane.check("all codes", emit=np.arange(1 << (lane.mw + 8)))
        return
    await lane.check("random", emit=lane.rng.integers(0, 1 << (lane.mw + 8), 1 << 20))
    around = np.array([0x13BFE8, 0x13BFF0, 0x13BFF8, 0x13C000, 0x0C4000, 0x0C3FFF, 0x0C3FF8, 0x0C3FF0]) << 2
    codes = (around[:, None] + np.arange(-64, 65)).ravel()
    await lane.check("boundaries", emit=np.concatenate([codes, codes | (1 << (lane.mw + 7))]))
