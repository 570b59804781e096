# SPDX-License-Identifier: Apache-2.0
"""MXFP7, block products, conversions, events and metrics of the numpy model (docs/spec/numerics.md).

Published vectors and an independent exact witness; the accumulator has a file of its own.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from kohakubench import witness_numerics as witness
from kohakubench.numeric_vectors import MWS, SWEEP, VECTORS, hexes, unhex16, vectors, word_hex
from kohakutpu.model import numerics as num

pytestmark = pytest.mark.unit


# ------------------------------------------------------------------ quantiser


@pytest.mark.parametrize("index", range(len(vectors("quant")["cases"]) if VECTORS.exists() else 0))
def test_quantiser_vectors(index: int) -> None:
    case = vectors("quant")["cases"][index]
    layout = num.Layout(case["layout"])
    q, scale = num.quantise(unhex16(case["fp16"], 4, 32))
    assert [f"{s:02x}" for s in scale] == case["scale"]
    assert word_hex(num.pack_words(q, scale, layout)) == case["words"]
    assert word_hex(num.pack_l1(q, scale, layout)[None])[0] == case["l1"]


def check_lanes(codes: np.ndarray) -> None:
    """Every lane of (n, 32) against the witness, and the range -63..63."""
    q, scale = num.quantise(codes)
    assert np.abs(q.astype(int)).max() <= 63
    for row, got_q, got_s in zip(codes.tolist(), q.tolist(), scale.tolist(), strict=True):
        want_q, want_s = witness.quantise_lane(row)
        assert (got_q, got_s) == (want_q, want_s), [hex(c) for c in row]


def lone(codes: np.ndarray, place: np.ndarray, rest: int = 0) -> np.ndarray:
    lanes = np.full((len(codes), 32), rest)
    lanes[np.arange(len(codes)), place] = codes
    return lanes


def test_lone_code_and_fixed_peak_subset() -> None:
    rng = np.random.default_rng(1)
    codes = np.unique(np.r_[0:8, 0x3F8:0x408, 0x7BF8:0x7C08, rng.integers(0, 0x8000, 400)])
    codes = np.r_[codes, codes | 0x8000]
    check_lanes(lone(codes, rng.integers(0, 32, len(codes))))
    fixed = lone(codes, rng.integers(1, 32, len(codes)))
    fixed[:, 0] = 0x7BFF
    check_lanes(fixed)
    # only the scale 8/8 has exact element ties: a peak significand of 2016, elements of multiples of 8
    ties = np.array([e << 10 | m for e in range(24, 31) for m in range(0, 1024, 8) if e << 10 | m <= 0x7BE0])
    fixed = lone(ties | rng.integers(0, 2, len(ties)) << 15, rng.integers(1, 32, len(ties)))
    fixed[:, 0] = 0x7BE0
    check_lanes(fixed)


@pytest.mark.slow
def test_all_fp16_codes_alone_and_against_a_fixed_peak() -> None:
    codes = np.arange(65536)
    check_lanes(lone(codes, codes % 32))
    fixed = lone(codes, 1 + codes % 31)
    fixed[:, 0] = 0x7BFF
    check_lanes(fixed)


def test_lone_code_all_65536_by_vector_formula() -> None:
    """A lone peak p gives q = floor(p/step + 1/2) with step from its own scale: closed form, no tables."""
    codes = np.arange(65536)
    q, scale = num.quantise(lone(codes, codes % 32))
    got = q[codes, codes % 32].astype(int)
    others = np.abs(q.astype(int)).sum(axis=1) - np.abs(got)
    assert not others.any()
    normal = (codes & 0x7FFF) >= 0x400
    assert (np.abs(got[normal]) >= 56).all()
    assert ((got >= 0) | (codes >= 0x8000)).all()
    assert (got[[0, 0x8000, 1, 2]] == 0).all()
    assert scale[0] == scale[0x8000] == 0xA0
    assert (scale[0x03B1], abs(got[0x03B1])) == (0x07, 32)
    assert (scale[0x3C00], got[0x3C00]) == (0x71, 57)


def test_scale_boundaries() -> None:
    edges = [
        1024,
        1134,
        1135,
        1260,
        1261,
        1386,
        1387,
        1512,
        1513,
        1638,
        1639,
        1764,
        1765,
        1890,
        1891,
        2016,
        2017,
    ]
    want = {}
    for sp in [*edges, 2047]:
        m8 = -(-sp // 126)
        want[sp] = {16: (8, 1), 17: (9, 1)}.get(m8, (m8, 0))
    for e in (1, 15, 30, 31):
        for sp, (m8, up) in want.items():
            _, scale = num.quantise(np.array([[e << 10 | (sp - 1024)] * 32]))
            assert scale[0] == (e - 21 + up + 20) << 3 | (m8 - 8), (e, sp)
    subnormal = np.array([[m] * 32 for m in (*range(1, 64), 945, 946, 0x3B1, 1022, 1023)])
    check_lanes(subnormal)
    check_lanes(np.array([[e << 10 | (sp - 1024)] + [0x0200] * 31 for e in (1, 15, 30, 31) for sp in want]))


def test_special_lanes() -> None:
    lanes = np.array(
        [
            [0] * 32,
            [0x8000] * 32,
            list(range(1, 33)),
            [0x7BFF] + [0x0001] * 31,
            [0x5640] + [0x1234] * 31,
            [0x7C00] * 16 + [0xFC00] * 16,
            [0x7E01] * 8 + [0xFFFF] * 8 + [0x3C00] * 16,
        ]
    )
    check_lanes(lanes)
    q, scale = num.quantise(lanes[:2])
    assert not q.any()
    assert scale.tolist() == [0xA0, 0xA0]


def random_entries(rng: np.random.Generator, n: int) -> np.ndarray:
    """FP16 codes (n, 4, 32) with an own exponent range in every lane."""
    top = rng.integers(0, 32, (n, 4, 1))
    width = rng.integers(1, 12, (n, 4, 1))
    exp = np.clip(top - rng.integers(0, 12, (n, 4, 32)) % width, 0, 31)
    return rng.integers(0, 2, (n, 4, 32)) << 15 | exp << 10 | rng.integers(0, 1024, (n, 4, 32))


def test_random_entries_against_the_witness() -> None:
    codes = random_entries(np.random.default_rng(2), 200)
    check_lanes(codes.reshape(-1, 32))
    q, scale = num.quantise(codes)
    for layout in num.Layout:
        words = num.pack_words(q, scale, layout)
        entry = num.pack_l1(q, scale, layout)
        for i in range(len(codes)):
            want_words, want_l1 = witness.pack_entry(q[i].tolist(), scale[i].tolist(), layout == num.Layout.B)
            assert [int.from_bytes(w.tobytes(), "little") for w in words[i]] == want_words
            assert int.from_bytes(entry[i].tobytes(), "little") == want_l1


def test_ten_thousand_entries_round_trip_and_toggle_every_bit() -> None:
    codes = random_entries(np.random.default_rng(3), 10_000)
    q, scale = num.quantise(codes)
    assert np.abs(q.astype(int)).max() == 63
    for layout in num.Layout:
        words = num.pack_words(q, scale, layout)
        entry = num.pack_l1(q, scale, layout)
        for form in (words, entry):
            flat = form.reshape(len(codes), -1)
            assert (np.bitwise_or.reduce(flat) == 0xFF).all()
            assert (np.bitwise_and.reduce(flat) == 0).all()
        for back in (num.unpack_words(words, layout), num.unpack_l1(entry, layout)):
            assert np.array_equal(back[0], q)
            assert np.array_equal(back[1], scale)


def test_source_order_and_minus_64() -> None:
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 0x7C00, (5, 4, 32)).astype("<u2")
    packed = num.quantise_entries(codes.reshape(5, 128).view(np.uint8), num.Layout.B)
    q, scale = num.quantise(codes)
    assert np.array_equal(packed.reshape(5, 4, 32), num.pack_words(q, scale, num.Layout.B))
    q64 = np.full((4, 32), -64)
    for layout in num.Layout:
        assert (num.unpack_words(num.pack_words(q64, scale[0], layout), layout)[0] == -64).all()
        assert (num.unpack_l1(num.pack_l1(q64, scale[0], layout), layout)[0] == -64).all()
    with pytest.raises(ValueError, match="a lane has 32"):
        num.quantise(codes[..., :16])


def test_dequantise_is_exact() -> None:
    field = np.arange(256)
    got = num.dequantise(np.full((256, 32), -63), field)[:, 0]
    want = [-63.0 * math.ldexp(8 + (f & 7), (f >> 3) - 23) for f in range(256)]
    assert got.tolist() == want


# ------------------------------------------------------------------ dot product and chain


@pytest.mark.parametrize("index", range(len(vectors("dot")["cases"]) if VECTORS.exists() else 0))
def test_dot_vectors(index: int) -> None:
    case = vectors("dot")["cases"][index]
    d = num.block_dot(np.array(case["a"]), np.array(case["b"]).T)
    assert d.tolist() == case["d"]
    sa, sb = hexes(case["sa"])[:, None], hexes(case["sb"])[None]
    for mw in (14, 16):
        assert np.array_equal(num.chain(d, sa, sb, case["anchor"], mw), hexes(case[f"chain{mw}"]))


def test_dot_extremes_and_single_products() -> None:
    for a, b in [(-64, -64), (63, 63), (63, -64), (-63, 63)]:
        assert (num.block_dot(np.full((4, 32), a), np.full((4, 32), b)) == 32 * a * b).all()
    for k in range(32):
        for i in range(4):
            for j in range(4):
                a, b = np.zeros((4, 32), int), np.zeros((4, 32), int)
                a[i, k], b[j, k] = -7, 9
                want = np.zeros((4, 4), int)
                want[i, j] = -63
                assert np.array_equal(num.block_dot(a, b), want)


def test_dot_random_tiles_are_exact() -> None:
    rng = np.random.default_rng(5)
    a = rng.integers(-64, 64, (5000, 4, 32))
    b = rng.integers(-64, 64, (5000, 4, 32))
    assert np.array_equal(num.block_dot(a, b), np.einsum("nik,njk->nij", a, b))
    assert num.block_dot(a[0], b[0])[1, 2] == witness.dot(a[0, 1].tolist(), b[0, 2].tolist())


@pytest.mark.parametrize("mw", MWS)
def test_chain_against_the_witness(mw: int) -> None:
    rng = np.random.default_rng(6)
    n = 6000
    d = rng.integers(-131072, 131073, n) >> rng.integers(0, 17, n)
    sa, sb = rng.integers(0, 256, n), rng.integers(0, 256, n)
    # all 256 codes on each side, all 64 mantissa pairs, rounding carries and both kinds of tie
    sa[:256], sb[256:512] = np.arange(256), np.arange(256)
    sa[512:576], sb[512:576] = np.arange(64) >> 3, np.arange(64) & 7
    for extra in (2, 3):
        base = np.arange(576 + 500 * extra, 576 + 500 * extra + 500)
        sa[base] &= 0xF8
        sb[base] &= 0xF8
        if mw + 1 + extra <= 17:
            top = rng.integers(1 << mw, 1 << (mw + 1), 500)
            d[base] = (top << extra | 1 << (extra - 1)) & 0x1FFFF
    d[:3] = [0, 131072, -131072]
    anchors = np.array([0, 16, 17, 40, 62, 63, 255])
    for anchor in anchors:
        sel = slice(None) if anchor == 40 else slice(0, 1500)
        got = num.chain(d[sel], sa[sel], sb[sel], int(anchor), mw)
        want = [
            witness.acc_chain(x, s, t, int(anchor), mw)
            for x, s, t in zip(d[sel].tolist(), sa[sel].tolist(), sb[sel].tolist(), strict=True)
        ]
        assert got.tolist() == want


def test_acc_range_event_needs_an_unusual_anchor() -> None:
    d = np.array([1, -1, 131072, -129024, 0])[:, None, None]
    s = np.arange(256)
    for anchor in (17, 40, 62):
        events = num.NumericEvents()
        num.chain(d, s[:, None], s[None], anchor, events=events)
        assert events.acc_range == 0, anchor
    for anchor, scale, value, want in [
        (16, 0xFF, 131072, 0x1FFFFF),
        (0, 0xFF, -131072, 0x3FFFFF),
        (63, 0x00, 1, 0),
        (255, 0x00, -1, 0),
    ]:
        events = num.NumericEvents()
        code = num.chain(np.array([value, 0]), scale, scale, anchor, events=events)
        assert events.acc_range == 1, (anchor, hex(int(code[0])))
        assert code[0] == want
        assert code[1] == 0


# ------------------------------------------------------------------ conversions of the lane


def test_conversion_vectors() -> None:
    table = {
        "f16_e8": num.fp16_to_e8m15,
        "e8_f16": num.e8m15_to_fp16,
        "e8_f32": num.e8m15_to_fp32,
        "f32_e8": num.fp32_to_e8m15,
        "acc14_e8": num.to_e8m15,
        "acc16_e8": lambda c: num.to_e8m15(c, 16),
    }
    data = vectors("cvt")
    assert set(table) == set(data) - {"note"}
    for name, function in table.items():
        x, want = hexes(data[name]).T
        assert np.array_equal(function(x), want), name


def test_fp16_to_e8m15_all_codes_and_identity() -> None:
    codes = np.arange(65536)
    e8 = num.fp16_to_e8m15(codes)
    assert e8.tolist() == [witness.fp16_to_e8m15(c) for c in range(65536)]
    nan = (codes & 0x7FFF) > 0x7C00
    events = num.NumericEvents()
    back = num.e8m15_to_fp16(e8, events)
    assert np.array_equal(back[~nan], codes[~nan])
    assert events.fp16_sat == 0


def test_e8m15_to_fp16_and_fp32_all_codes_against_ieee() -> None:
    for first in range(0, 1 << 24, 1 << 18):
        code = np.arange(first, first + (1 << 18), dtype=np.uint32)
        fp32 = num.e8m15_to_fp32(code)
        e = (code >> 15) & 255
        assert np.array_equal(fp32, np.where(e == 0, code & 0x800000, code) << np.uint32(8))
        with np.errstate(over="ignore", invalid="ignore"):
            ieee = fp32.view(np.float32).astype(np.float16).view(np.uint16)
        finite = e != 255
        over = finite & ((ieee & 0x7FFF) == 0x7C00)
        want = np.where(over, (ieee & 0x8000) | 0x7BFF, ieee)
        events = num.NumericEvents()
        got = num.e8m15_to_fp16(code, events)
        assert np.array_equal(got[finite], want[finite])
        assert events.fp16_sat == int(np.count_nonzero(over))
        special = np.flatnonzero(~finite)
        assert got[special].tolist() == [witness.e8m15_to_fp16(int(c)) for c in code[special]]


def test_e8m15_to_fp16_boundaries_against_the_witness() -> None:
    rng = np.random.default_rng(15)
    codes = np.r_[rng.integers(0, 1 << 24, 3000), rng.integers(95 << 15, 146 << 15, 4000)]
    got = num.e8m15_to_fp16(codes)
    assert got.tolist() == [witness.e8m15_to_fp16(int(c)) for c in codes]
    below, at = 0x477FEF, 0x477FF0  # 65519.x rounds to 65504, 65520 would round to Inf
    events = num.NumericEvents()
    assert num.e8m15_to_fp16(np.array([0x477FE0, below]), events).tolist() == [0x7BFF, 0x7BFF]
    assert events.fp16_sat == 0
    assert num.e8m15_to_fp16(np.array([at, at | 0x800000]), events).tolist() == [0x7BFF, 0xFBFF]
    assert events.fp16_sat == 2


def fp32_cases(rng: np.random.Generator) -> np.ndarray:
    low = np.r_[0:4, 0x7E:0x83, 0xFC:0x100]
    high = np.r_[0, 1, 2, 0x3FFF, 0x4000, 0x7FFE, 0x7FFF]
    mant = (high[:, None] << 8 | low[None]).ravel()
    e = np.arange(256)
    return (np.arange(2)[:, None, None] << 31 | e[None, :, None] << 23 | mant[None, None]).ravel()


def test_fp32_to_e8m15_every_exponent() -> None:
    words = fp32_cases(np.random.default_rng(16))
    assert len(words) >= 2 * 256 * 64
    got = num.fp32_to_e8m15(words)
    assert got.tolist() == [witness.fp32_to_e8m15(int(w)) for w in words]


@pytest.mark.slow
def test_fp32_to_e8m15_million_random_words() -> None:
    words = np.random.default_rng(17).integers(0, 1 << 32, SWEEP)
    assert num.fp32_to_e8m15(words).tolist() == [witness.fp32_to_e8m15(int(w)) for w in words]


# ------------------------------------------------------------------ events and metrics


def test_q_special_boundary() -> None:
    events = num.NumericEvents()
    lane = np.zeros((1, 32), dtype=int)
    lane[0, :2] = [0x7BFF, 0xFBFF]
    num.quantise(lane, events)
    assert events.q_special == 0
    lane[0, :3] = [0x7C00, 0xFC01, 0x7BFF]
    num.quantise(lane, events)
    assert events.q_special == 2


def test_fp16_sat_boundary_of_the_emit() -> None:
    for code, sat in [
        (0x13BFF0, 0),
        (0x13BFF7, 0),
        (0x13BFF8, 1),
        (0x13C000, 1),
        (0x33C000, 1),
        (0x1FFFFF, 1),
    ]:
        events = num.NumericEvents()
        num.to_fp16(np.array([code]), 14, events)
        assert events.fp16_sat == sat, hex(code)


def test_events_add_and_clear() -> None:
    one = num.NumericEvents(1, 2, 3, 4)
    one.add(num.NumericEvents(10, 20, 30, 40))
    assert one == num.NumericEvents(11, 22, 33, 44)
    one.clear()
    assert one == num.NumericEvents()


def test_metrics_on_constructed_tensors() -> None:
    ref = np.array([1.0, -2.0, 4.0, 0.0])
    m = num.error_metrics(ref + np.array([0.0, 0.0, 0.04, 0.8]), ref, saturated=3)
    assert m.max == pytest.approx(0.2)
    assert m.p50 == pytest.approx(0.005)
    assert m.p99 == pytest.approx(0.01 + 0.19 * 0.97)
    assert (m.over_10_percent, m.saturated, m.non_finite) == (0.25, 3, 0)
    assert m.over_1_percent in (0.25, 0.5)
    zero = num.error_metrics([0.0, 0.0], [0.0, 0.0])
    assert (zero.p50, zero.p99, zero.max) == (0.0, 0.0, 0.0)
    off = num.error_metrics([0.0, 1e-30], [0.0, 0.0])
    assert (off.p50, off.p99, off.max) == (math.inf,) * 3
    bad = num.error_metrics([1.0] * 99 + [math.nan], [1.0] * 100)
    assert (bad.max, bad.p50, bad.non_finite) == (math.inf, 0.0, 1)
    with pytest.raises(ValueError, match="shapes"):
        num.error_metrics([1.0], [1.0, 2.0])
    with pytest.raises(ValueError, match="non-finite"):
        num.error_metrics([1.0], [math.inf])
