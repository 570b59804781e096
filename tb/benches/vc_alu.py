# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of one vector lane (vc_alu) and its conversions against the reference model and published vectors."""

import json
import os
import zlib
from itertools import product

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, Timer

from kohakubench import Bench, checks, clocks, memfile, scale, seed
from kohakubench.bench import ROOT
from kohakubench.numeric_vectors import vectors
from kohakutpu.model.numerics import e8m15_to_fp16, e8m15_to_fp32, fp16_to_e8m15, fp32_to_e8m15
from kohakutpu.model.numerics import lane as reference

BENCH = Bench(
    name="vc_alu",
    top="tb_vc_alu",
    sources=["rtl/vector/vc_stage.v", "rtl/vector/vc_seed_rom.v", "rtl/vector/vc_seed_prep.v"]
    + [f"rtl/vector/vc_{part}.v" for part in ("prep", "scale", "poly", "product", "align", "sum", "round", "alu")]
    + [f"rtl/vector/vc_{part}.v" for part in ("f16_to_e8", "e8_to_f16", "f32_to_e8", "e8_to_f32")]
    + ["tb/hdl/tb_vc_alu.v"],
    params={"ALAT": 14},
    variants={f"alat{n}": {"ALAT": n} for n in (12, 13, 15, 16, 17, 18)},
    slow_variants=("alat12", "alat13", "alat15", "alat16", "alat17"),
    mutations={
        "ties_away": ("rtl/vector/vc_round.v", "(residue2_q || bits2_q[1])", "1'b1"),
        "truncate": ("rtl/vector/vc_round.v", "bits2_q[0] && (residue2_q", "1'b0 && (residue2_q"),
        "flush_early": ("rtl/vector/vc_round.v", "e <= 10'sd0", "e <= 10'sd1"),
        "infinity_late": ("rtl/vector/vc_round.v", "e >= 10'sd255", "e > 10'sd255"),
        "signed_cancellation": (
            "rtl/vector/vc_round.v",
            "(!last[25])     code_q <= 24'd0",
            "(!last[25]) code_q <= {last[27], 23'd0}",
        ),
        "coarse_sticky": ("rtl/vector/vc_round.v", "octets0 <= 3'd2 && mag0[8:1]", "octets0 <= 3'd1 && mag0[8:1]"),
        "lost_sticky": ("rtl/vector/vc_align.v", "(sig & below) != 16'd0", "1'b0"),
        "short_sticky": ("rtl/vector/vc_align.v", "down > 6'd33", "down > 6'd34"),
        "no_borrow": ("rtl/vector/vc_sum.v", "{48'd0, !lost}", "49'd1"),
        "narrow_window": ("rtl/vector/vc_scale.v", "(distance[10] && !none0_q)", "(distance <= 11'sd0 && !none0_q)"),
        "zero_addend_bit": ("rtl/vector/vc_alu.v", "z_none ? {z_only, 15'd0}", "z_none ? 16'h8000"),
        "infinity_minus_infinity": ("rtl/vector/vc_scale.v", "(p_inf && z_inf && sp != z[23])", "1'b0"),
        "zero_times_infinity": ("rtl/vector/vc_scale.v", "(p_inf && p_zero)", "1'b0"),
        "compare_negative": ("rtl/vector/vc_prep.v", "a[23] ? a[22:0] > b[22:0]", "a[23] ? a[22:0] < b[22:0]"),
        "compare_zeros": ("rtl/vector/vc_prep.v", "(a[22:0] == 23'd0 && b[22:0] == 23'd0)", "1'b0"),
        "nan_is_less": ("rtl/vector/vc_prep.v", "less  = !nan && !same && below", "less  = !same && below"),
        "select_sign": ("rtl/vector/vc_prep.v", "c[22:0] != 23'd0", "c[23:1] != 23'd0"),
        "exp2_limit": ("rtl/vector/vc_prep.v", "a0_q[22:15] >= 8'd134", "a0_q[22:15] >= 8'd135"),
        "exp2_segment": ("rtl/vector/vc_seed_prep.v", "{3'd0, fixed[16:12]}", "{3'd0, fixed[16:13], 1'b0}"),
        "exp2_truncate": ("rtl/vector/vc_seed_prep.v", "s ^ fixed0_q[0]", "s"),
        "rsqrt_parity": ("rtl/vector/vc_seed_prep.v", "!e[0], 5'd0", "e[0], 5'd0"),
        "seed_exponent": ("rtl/vector/vc_seed_prep.v", "+ 9'd1) >> 1", ") >> 1"),
        "wrong_coefficient": ("rtl/vector/vc_seed_rom.v", "22'h0059B1", "22'h0059B3"),
        "slope_rounding": ("rtl/vector/vc_poly.v", "c1_1_q, 16'h8000", "c1_1_q, 16'h0000"),
        "clamp_late": ("rtl/vector/vc_e8_to_f16.v", "|| r == 15'h7C00", ""),
        "clamp_silent": ("rtl/vector/vc_e8_to_f16.v", "{1'b1, 15'h7BFF}", "{1'b0, 15'h7BFF}"),
        "half_subnormal": ("rtl/vector/vc_e8_to_f16.v", "4'd1 - e[3:0]", "4'd0 - e[3:0]"),
        "half_normalise": ("rtl/vector/vc_f16_to_e8.v", "v[9:8] == 2'd0", "v[9:8] == 2'd1"),
        "word_tie": ("rtl/vector/vc_f32_to_e8.v", "|| word[8]", ""),
        "word_nan": ("rtl/vector/vc_f32_to_e8.v", "{8'd255, 1'b1, word[21:8]}", "{8'd255, word[22:8]}"),
        "word_zero": ("rtl/vector/vc_e8_to_f32.v", "(code[22:15] == 8'd0)", "1'b0"),
        "gap_result": (
            "rtl/vector/vc_alu.v",
            "wire [ALAT-1:0] work = {work_q, en}",
            "wire [ALAT-1:0] work = {work_q, 1'b1}",
        ),
    },
    mutation_tests={
        "ties_away": ["product_ties"],
        "truncate": ["known_answers"],
        "flush_early": ["cancellation_and_bounds"],
        "infinity_late": ["cancellation_and_bounds"],
        "signed_cancellation": ["cancellation_and_bounds"],
        "coarse_sticky": ["fma_alignment"],
        "lost_sticky": ["fma_alignment"],
        "short_sticky": ["fma_alignment"],
        "no_borrow": ["borrow_family"],
        "narrow_window": ["borrow_family"],
        "zero_addend_bit": ["product_ties"],
        "infinity_minus_infinity": ["special_pairs"],
        "zero_times_infinity": ["special_pairs"],
        "compare_negative": ["special_pairs"],
        "compare_zeros": ["special_pairs"],
        "nan_is_less": ["special_pairs"],
        "select_sign": ["special_pairs"],
        "exp2_limit": ["seeds"],
        "exp2_segment": ["seeds"],
        "exp2_truncate": ["seeds"],
        "rsqrt_parity": ["seed_identities"],
        "seed_exponent": ["seed_identities"],
        "wrong_coefficient": ["seed_table"],
        "slope_rounding": ["seeds"],
        "clamp_late": ["conversions_from_e8m15"],
        "clamp_silent": ["conversions_from_e8m15"],
        "half_subnormal": ["conversions_from_e8m15"],
        "half_normalise": ["conversions"],
        "word_tie": ["conversions"],
        "word_nan": ["conversions"],
        "word_zero": ["conversions"],
        "gap_result": ["random_triples"],
    },
    timeout_cycles=30_000_000,
    wall_s=600,
)
LIMIT = 1 << 20
SIGN = 0x800000
ONE = 0x3F8000
NAMES = ["MOV", "NEG", "ABS", "ADD", "SUB", "MUL", "FMA", "FNMA", "MAX", "MIN", "SEL", "CMPLT", "CMPGT", "CMPEQ"]
SEEDS = ["EXP2", "LOG2", "INV", "RSQRT"]
OPS = {name: number for number, name in enumerate(NAMES + SEEDS)}
"""Opcodes of the instruction word; a lane takes 16..19 for the four seeds."""
CORNERS = np.array([0, 1, 2, 0x7FFF, 0x7FFE, 0x4000, 0x3FFF, 0x4001, 0x5555, 0x2AAA])
"""Fractions at which rounding, carries and cancellation change."""
SPECIAL = np.array(
    [
        *(0x000000, 0x800000, 0x000001, 0x807FFF),  # zeros, canonical and not
        *(0x3F8000, 0xBF8000, 0x3F8001, 0x3F7FFF, 0xBF8001, 0xBF7FFF, 0x400000, 0xC00000),
        *(0x7F8000, 0xFF8000, 0x7FC000, 0xFFC000, 0x7F8001, 0xFFFFFF),  # infinities and NaNs
        *(0x008000, 0x808000, 0x008001, 0x7F7FFF, 0xFF7FFF, 0x7F0000),  # both ends of the range
    ]
)


def code(sign, e, m):
    """E8M15 codes of broadcast fields."""
    return (np.asarray(sign) << 23) | (np.asarray(e) << 15) | np.asarray(m)


def expected(op, a, b, c):
    """Reference results; op, a, b, c are arrays of one length."""
    out = np.zeros(len(op), dtype=np.uint32)
    for which in np.unique(op):
        at = op == which
        out[at] = reference(int(which), a[at], b[at], c[at])
    return out


class Lane:
    """Feeds arrays through the player and compares what comes back."""

    def __init__(self, dut):
        self.dut = dut
        self.run_id = 0
        self.rng = np.random.default_rng(seed())

    async def start(self):
        for name in ("go", "gaps", "counting", "convert", "base"):
            getattr(self.dut, name).value = 0
        clocks.start(self.dut.clk)
        await clocks.reset(self.dut)
        return self

    async def play(self, n, width, words=None, *, convert=False, gaps=False, base=0):
        """Run n cases; returns raw result words of `width` bytes."""
        dut = self.dut
        self.run_id += 1
        if words is not None:
            memfile.write(f"cases_{self.run_id}.hex", words)
        dut.run_id.value = self.run_id
        dut.n_cases.value = n
        dut.gaps.value = gaps
        dut.counting.value = words is None
        dut.convert.value = convert
        dut.base.value = base
        dut.go.value = 1
        await RisingEdge(dut.done)
        dut.go.value = 0
        await Timer(5 * clocks.PERIOD_NS, unit="ns")
        got = memfile.read(f"results_{self.run_id}.hex", width)
        for name in ("cases", "results"):
            if name == "results" or words is not None:
                os.remove(f"{name}_{self.run_id}.hex")
        return got

    async def check(self, name, op, a, b=0, c=0, *, gaps=False, want=None):
        """op (instruction opcode), a, b, c: broadcast to one length; `want` replaces the reference."""
        op, a, b, c = (np.ascontiguousarray(v).ravel() for v in np.broadcast_arrays(op, a, b, c))
        for at in range(0, op.size, LIMIT):
            piece = slice(at, at + LIMIT)
            o, x, y, z = op[piece], a[piece], b[piece], c[piece]
            lane_op = np.where(o >= OPS["EXP2"], o + 2, o)
            words = memfile.pack(80, (x, 24), (y, 24), (z, 24), (lane_op, 8))
            raw = await self.play(len(o), 3, words, gaps=gaps)
            got = memfile.field(raw, 0, 24).astype(np.uint32)
            checks.arrays(name, got, expected(o, x, y, z) if want is None else np.asarray(want)[piece])

    async def converted(self, e8, f32):
        """Raw results of the converters; the low half of an FP32 word goes through the one from FP16."""
        words = memfile.pack(80, (e8, 24), (f32 & 0xFFFFFF, 24), (f32 >> 24, 24), (0, 8))
        return await self.play(len(words), 22, words, convert=True)

    @staticmethod
    def compare_e8(name, e8, raw):
        """What the two converters from E8M15 made of `e8`."""
        magnitude = e8 & 0x7FFFFF
        clamped = (magnitude >= 0x477FF0) & (magnitude < 0x7F8000)  # 65520 and beyond, finite
        checks.arrays(f"{name}: e8_to_f16", memfile.field(raw, 0, 16), e8m15_to_fp16(e8))
        checks.arrays(f"{name}: clamped", memfile.field(raw, 16, 8) != 0, clamped)
        checks.arrays(f"{name}: e8_to_f32", memfile.field(raw, 72, 32), e8m15_to_fp32(e8))

    def operands(self, n, lo=1, hi=254):
        """Codes with exponents lo..hi and fractions that crowd at corners."""
        rng = self.rng
        m = np.where(rng.integers(0, 4, n) == 0, rng.choice(CORNERS, n), rng.integers(0, 1 << 15, n))
        return code(rng.integers(0, 2, n), rng.integers(lo, hi + 1, n), m)


@cocotb.test()
async def known_answers(dut):
    """Every lane and conversion row of the JSON and of the published vectors, with the values written there."""
    lane = await Lane(dut).start()
    doc = json.loads((ROOT / "spec" / "vector_isa.json").read_text())["examples"]
    rows = [(r["op"][1:], r["a"], r["b"], r["c"], r["out"]) for r in doc["lane"]]
    rows += [tuple(r[:5]) for r in vectors("fma")["cases"]]
    rows += [(op, a, "0", "0", out) for op, a, out in vectors("seeds")["cases"]]
    op = np.array([OPS[r[0]] for r in rows])
    a, b, c, out = (np.array([int(r[i], 16) for r in rows]) for i in (1, 2, 3, 4))
    await lane.check("known answers", op, a, b, c, want=out)
    await lane.check("known answers with gaps", op, a, b, c, want=out, gaps=True)

    published = vectors("cvt")
    for kind, key, low, bits in (
        ("E8_TO_F16", "e8_f16", 0, 16),
        ("E8_TO_F32", "e8_f32", 72, 32),
        ("F16_TO_E8", "f16_e8", 24, 24),
        ("F32_TO_E8", "f32_e8", 48, 24),
    ):
        pairs = [(r["in"], r["out"]) for r in doc["convert"] if r["conv"] == kind] + published[key]
        given, want = (np.array([int(p[i], 16) for p in pairs]) for i in (0, 1))
        raw = await lane.converted(given & 0xFFFFFF, given)
        checks.arrays(kind, memfile.field(raw, low, bits), want)


@cocotb.test()
async def special_pairs(dut):
    """Every opcode on the full product of the special values over all three operands."""
    lane = await Lane(dut).start()
    a, b, c = (v.ravel() for v in np.meshgrid(SPECIAL, SPECIAL, SPECIAL, indexing="ij"))
    for name, op in OPS.items():
        if name in SEEDS:
            await lane.check(name, op, SPECIAL)
        else:
            await lane.check(name, op, a, b, c)
    mixed = lane.rng.integers(0, 18, a.size)
    await lane.check("mixed opcodes with gaps", mixed, a, b, c, gaps=True)


@cocotb.test()
async def fma_alignment(dut):
    """Distances -50..50 between product and addend, both signs, all corner fractions of all operands."""
    lane = await Lane(dut).start()
    triples = np.array(list(product(CORNERS, CORNERS, CORNERS)))
    pairs = np.array(list(product(CORNERS, CORNERS)))
    pairs = np.concatenate([pairs, lane.rng.integers(0, 1 << 15, (100, 2))])
    for name, op in ((n, OPS[n]) for n in ("FMA", "FNMA", "ADD", "SUB")):
        m = triples if name in ("FMA", "FNMA") else np.stack([pairs[:, 0], 0 * pairs[:, 0], pairs[:, 1]], axis=1)
        d, sign = np.arange(-50, 51)[:, None, None], np.arange(2)[None, :, None]
        skew = lane.rng.integers(-20, 21, d.shape) * (name in ("FMA", "FNMA"))
        a = code(lane.rng.integers(0, 2, (101, 2, len(m))), 127 + skew, m[:, 0])
        b = np.where(name in ("FMA", "FNMA"), code(0, 127 - skew, m[:, 1]), lane.rng.integers(0, 1 << 24, a.shape))
        c = code((a >> 23) ^ sign, 127 + d, m[:, 2])
        await lane.check(f"{name} by distance", op, a, b, c)


@cocotb.test()
async def product_ties(dut):
    """Exact ties of a product with a zero addend: both parities, both signs, every kind of zero."""
    lane = await Lane(dut).start()
    rng = lane.rng
    ma, mb = (rng.integers(1 << 15, 1 << 16, 1 << 21) for _ in range(2))
    ma = np.where(rng.integers(0, 2, ma.size) == 1, ma & -(1 << rng.integers(0, 9, ma.size)) | (1 << 15), ma)
    p = ma * mb
    drop = np.where(p >= 1 << 31, 16, 15)
    tie = (p & ((1 << drop) - 1)) == (1 << (drop - 1))
    odd = (p >> drop) & 1
    for parity in (0, 1):
        at = tie & (odd == parity)
        checks.true(f"ties with parity {parity}", np.count_nonzero(at) >= 1000)
        n = int(np.count_nonzero(at))
        sa, sb = rng.integers(0, 2, (2, n))
        a, b = code(sa, 130, ma[at] & 0x7FFF), code(sb, 124, mb[at] & 0x7FFF)
        for zero in (0x000000, 0x800000, 0x001234, 0x807FFF):
            await lane.check("FMA tie", OPS["FMA"], a, b, zero)
            await lane.check("FNMA tie", OPS["FNMA"], a, b, zero)
        await lane.check("MUL tie", OPS["MUL"], a, b, lane.operands(n))


@cocotb.test()
async def borrow_family(dut):
    """Subtractions that lose addend bits next to a tie, and addends 18 binades above the product."""
    lane = await Lane(dut).start()
    rng = lane.rng
    m = np.concatenate([[1, 0x1234], rng.choice(1 << 15, 1022, replace=False)])
    exact = (ONE | m)[:, None]
    for c in (0xB78000 | np.array([0, 1, 2, 3, 0x4000, 0x7FFF]), 0x378000 | np.array([0, 1, 0x7FFF])):
        await lane.check("family", OPS["FMA"], exact, ONE, c)
        await lane.check("family, negated", OPS["FNMA"], exact, ONE, c)
        await lane.check("family as ADD", OPS["ADD"], exact, 0, c)
    # The residue lies below the window: distances from -16 down, result on or next to a tie.
    n = 40000
    d = rng.integers(-33, -14, n)
    low = rng.choice([0, 1, 0x7FFF, 0x4000, 0x4001, 0x3FFF], n)
    a = code(0, 127, rng.integers(0, 1 << 15, n))
    b = code(0, 127, np.where(rng.integers(0, 2, n) == 1, 0x4000, rng.choice(CORNERS, n)))
    await lane.check("lost residue", OPS["FMA"], a, b, code(1, 127 + d, low))
    # A power of two 18 binades above the product, product significand below, at and above 2^31.
    x = rng.integers(1 << 15, 1 << 16, 4000)
    at = -(-(1 << 31) // x)
    y = np.clip(at + rng.integers(-1, 2, x.size), 1 << 15, (1 << 16) - 1)
    checks.true("2^31 from both sides", (x * y > 1 << 31).sum() > 1000 and (x * y < 1 << 31).sum() > 1000)
    for binades in (17, 18, 19):
        for fraction in (0, 1, 0x7FFF):
            a, b = code(0, 127, x & 0x7FFF), code(0, 127, y & 0x7FFF)
            await lane.check("far addend", OPS["FMA"], a, b, code(1, 127 + binades, fraction))
            await lane.check("far addend", OPS["FNMA"], a, b, code(1, 127 + binades, fraction))


@cocotb.test()
async def cancellation_and_bounds(dut):
    """Cancellation to +0 and to few bits, overflow to infinity, flush after rounding, at both range ends."""
    lane = await Lane(dut).start()
    rng, n = lane.rng, 30000
    x = lane.operands(n, 20, 230)
    await lane.check("x - x", OPS["SUB"], x, 0, x)
    await lane.check("x + (-x)", OPS["ADD"], x, 0, x ^ SIGN)
    await lane.check("neighbours", OPS["SUB"], x, 0, x + rng.integers(-3, 4, n))
    # a*b - round(a*b): what is left is the rounding error, in every position of the window
    a, b = lane.operands(n, 100, 154), lane.operands(n, 100, 154)
    c = reference(OPS["MUL"], a, b, a)
    await lane.check("residue of a product", OPS["FNMA"], a, b, c)
    await lane.check("residue of a product", OPS["FMA"], a, b, np.asarray(c, dtype=np.int64) ^ SIGN)
    # exponent sums around both ends; all-ones fractions round across the limit
    for total in (*range(127 - 20, 127 + 4), *range(254 + 127 - 4, 254 + 127 + 4)):
        ea = rng.integers(max(1, total - 254), min(254, total - 1) + 1, 4000)
        a = code(rng.integers(0, 2, 4000), ea, rng.choice([*CORNERS, 0x7FFD, 0x7FFC], 4000))
        b = code(rng.integers(0, 2, 4000), total - ea, rng.choice([*CORNERS, 0x7FFD, 0x7FFC], 4000))
        end = 1 if total < 200 else 250
        await lane.check("range ends", OPS["MUL"], a, b)
        await lane.check("range ends", OPS["FMA"], a, b, lane.operands(4000, end, end + 4))
    for end in (1, 245):
        a, c = lane.operands(n, end, end + 9), lane.operands(n, end, end + 9)
        await lane.check("range ends", OPS["ADD"], a, 0, c)
        await lane.check("range ends", OPS["SUB"], a, 0, c)


@cocotb.test()
async def random_triples(dut):
    """Random operands in exponent bands, every opcode; the stream of mixed opcodes takes one case a cycle."""
    lane = await Lane(dut).start()
    rng = lane.rng
    n = scale(1 << 20, 1 << 23)
    ea, eb = rng.integers(60, 195, (2, n))
    near = np.clip(ea + eb - 127 + rng.integers(-40, 41, n), 0, 255)
    near = np.where(rng.integers(0, 8, n) == 0, rng.integers(0, 256, n), near)
    m = rng.integers(0, 1 << 15, (3, n))
    m = np.where(rng.integers(0, 4, (3, n)) == 0, rng.choice(CORNERS, (3, n)), m)
    s = rng.integers(0, 2, (3, n))
    await lane.check(
        "multiply-add", np.where(s[0] ^ s[1], 6, 7), code(s[0], ea, m[0]), code(s[1], eb, m[1]), code(s[2], near, m[2])
    )
    n = scale(1 << 19, 18 << 20)
    a, b, c = (lane.operands(n, 0, 255) for _ in range(3))
    tie = rng.integers(0, 4, n)
    b = np.where(tie == 0, a ^ (rng.integers(0, 4, n) << 22) & 0xFFFFFF, b)
    c = np.where(tie == 1, a ^ SIGN, c)
    await lane.check("mixed opcodes", rng.integers(0, 18, n), a, b, c)
    last = (n - 1) % LIMIT + 1
    alat = int(dut.ALAT.value)
    checks.true("one case a cycle", int(dut.cycles.value) <= last + alat + 4, f"{int(dut.cycles.value)} for {last}")
    n = 1 << 16
    await lane.check("gaps", rng.integers(0, 18, n), a[:n], b[:n], c[:n], gaps=True)
    checks.equal("y held without work", int(dut.unsteady.value), 0)


@cocotb.test()
async def seeds(dut):
    """Every fraction through every seed; exp2 at every exponent; all exponents at some fractions."""
    lane = await Lane(dut).start()
    rng = lane.rng
    every = np.arange(1 << 15)
    sign = rng.integers(0, 2, every.size)
    for e in (127, 128, 1, 254):
        await lane.check(f"inv, e = {e}", OPS["INV"], code(sign, e, every))
    for e in (127, 128, 90, 201):
        await lane.check(f"rsqrt, e = {e}", OPS["RSQRT"], code(0, e, every))
    for e in (100, *range(120, 136), 150):
        await lane.check(f"log2, e = {e}", OPS["LOG2"], code(0, e, every))
    some = np.unique(np.concatenate([CORNERS, rng.choice(1 << 15, 990, replace=False)]))
    wide, few = range(90, 141), range(100, 136)
    for e, s in product(wide, (0, 1)):
        await lane.check(f"exp2, e = {e}", OPS["EXP2"], code(s, e, every if scale(0, 1) and e in few else some))
    for op in SEEDS:
        s, e, m = np.meshgrid((0, 1), np.arange(256), some[:: len(some) // 16], indexing="ij")
        await lane.check(f"{op}, all exponents", OPS[op], code(s, e, m))
    edge = np.array([0x430000, 0x42FC00, 0x42FE00, 0x430000])  # 128, 126, 127, 128
    edge = (edge[:, None] + np.arange(-2, 3)).ravel()
    await lane.check("exp2 at its limits", OPS["EXP2"], np.concatenate([edge, edge | SIGN]))


@cocotb.test()
async def seed_table(dut):
    """The elaborated table has the checksum and the column sums of numerics.md 10.1."""
    lane = await Lane(dut).start()
    raw = await lane.converted(np.zeros(256, dtype=np.int64), np.arange(256))
    columns = np.stack([memfile.field(raw, 104 + 24 * i, 22) for i in range(3)], axis=1).astype(np.int32)
    columns -= (columns >> 21) << 22
    checks.equal("CRC-32", zlib.crc32(columns[:160].astype("<i4").tobytes()), 0xE7A5FBC5)
    checks.arrays("rows behind the table", columns[160:], np.zeros((96, 3)))
    sums = [columns[a:b].sum(axis=0) for a, b in ((0, 32), (32, 64), (64, 96), (96, 160))]
    checks.arrays("exp2", sums[0], [14331986, 16595431, 2907233])
    checks.arrays("log2", sums[1], [18173798, 16966111, -3025284])
    checks.arrays("inv", sums[2], [23522338, -8584881, 3145129])
    checks.arrays("rsqrt", sums[3], [47716782, -8533051, 2314008])


@cocotb.test()
async def seed_identities(dut):
    """exp2 of integers, log2 and inv of powers of two, rsqrt of even powers are exact."""
    lane = await Lane(dut).start()
    k = np.arange(-126, 128)
    power = code(0, k + 127, 0)
    value = fp32_to_e8m15(k.astype(np.float32).view(np.uint32))  # exact: |k| < 2^8
    await lane.check("exp2(k)", OPS["EXP2"], value, want=power)
    await lane.check("log2(2^k)", OPS["LOG2"], power, want=value & np.where(k == 0, 0, 0xFFFFFF))
    inside = k[(k >= -126) & (k <= 126)]
    await lane.check("1/2^k", OPS["INV"], code(0, inside + 127, 0), want=code(0, 127 - inside, 0))
    even = np.arange(-63, 64)
    await lane.check("1/sqrt(2^2k)", OPS["RSQRT"], code(0, 2 * even + 127, 0), want=code(0, 127 - even, 0))


@cocotb.test()
async def conversions(dut):
    """All FP16 codes, FP32 words around every rounding point, E8M15 codes with every pattern of dropped bits."""
    lane = await Lane(dut).start()
    rng = lane.rng
    half = np.arange(1 << 16)
    e, s = np.meshgrid(np.arange(256), (0, 1))
    kept, low = np.append(CORNERS, 0x7FFD), np.array([0, 1, 0x7F, 0x80, 0x81, 0xFF])
    around = np.concatenate([((kept << 8)[:, None] | low).ravel(), rng.integers(0, 1 << 23, 32)])
    words = ((s.ravel() << 31) | (e.ravel() << 23))[:, None] | around
    words = np.concatenate([words.ravel(), rng.integers(0, 1 << 16, half.size) << 16 | half])
    words = np.concatenate([words, rng.integers(0, 1 << 32, scale(1 << 17, 1 << 20))])
    checks.equal("FP16 codes covered", len(np.unique(words & 0xFFFF)), half.size)
    dropped = np.concatenate([np.arange(128), CORNERS, 1 << np.arange(15), 0x7FFF ^ (1 << np.arange(15))])
    codes = (((s.ravel() << 23) | (e.ravel() << 15))[:, None] | np.unique(dropped)).ravel()
    codes = np.concatenate([codes, rng.integers(0, 1 << 24, words.size - codes.size)])
    for at in range(0, words.size, LIMIT):
        w, a = words[at : at + LIMIT], codes[at : at + LIMIT]
        raw = await lane.converted(a, w)
        lane.compare_e8("codes", a, raw)
        checks.arrays("f32_to_e8", memfile.field(raw, 48, 24), fp32_to_e8m15(w))
        checks.arrays("f16_to_e8", memfile.field(raw, 24, 24), fp16_to_e8m15(w & 0xFFFF))
    number = half[(half & 0x7FFF) <= 0x7C00]
    raw = await lane.converted(fp16_to_e8m15(number).astype(np.int64), number)
    checks.arrays("FP16 through E8M15", memfile.field(raw, 0, 16), number)


@cocotb.test()
async def conversions_from_e8m15(dut):
    """Every positive E8M15 code whose FP16 result is neither zero nor saturated; all 2^24 codes in a slow run."""
    lane = await Lane(dut).start()
    first, last = scale(100 << 15, 0), scale(144 << 15, 1 << 24)
    for base in range(first, last, LIMIT):
        n = min(LIMIT, last - base)
        raw = await lane.play(n, 22, convert=True, base=base)
        lane.compare_e8(f"from {base:06x}", np.arange(base, base + n), raw)
