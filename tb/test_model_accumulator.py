# SPDX-License-Identifier: Apache-2.0
"""Accumulator float and matrix products of the numpy model (docs/spec/numerics.md sections 5 and 6)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kohakubench import witness_numerics as witness
from kohakubench.numeric_vectors import MWS, SWEEP, hexes, random_codes, unhex16, vectors, word_hex
from kohakutpu.model import numerics as num
from kohakutpu.model.numerics.accumulator import ACC_MW_SUPPORTED, canonical, to_float64

pytestmark = pytest.mark.unit


# ------------------------------------------------------------------ accumulator

CHECK_CHAIN = [
    (1, 0xA0, 0xA0, 0x0FC000),
    (-1, 0xA0, 0xA0, 0x2FC000),
    (131072, 0xA7, 0xA7, 0x147080),
    (-129024, 0xA1, 0xA3, 0x342174),
    (12345, 0xB5, 0x9E, 0x13C491),
    (32767, 0xA0, 0xA7, 0x13B7FF),
    (1, 0x00, 0x00, 0x05C000),
    (131072, 0xFF, 0xFF, 0x19F080),
    (103968, 0x71, 0x71, 0x110040),
]
CHECK_ADD = [
    (0x0FC000, 0x2FC000, 0x000000),
    (0x0FC001, 0x0C4000, 0x0FC002),
    (0x0FC000, 0x2C4000, 0x0FBFFE),
    (0x0A28E7, 0x264001, 0x0A28E7),
    (0x0D0000, 0x290001, 0x0D0000),
    (0x1FBFFF, 0x1FBFFF, 0x1FFFFF),
    (0x004000, 0x204001, 0x000000),
]
CHECK_FP16 = [
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
    (0x110040, 0x5004),
]


@pytest.mark.parametrize("case", CHECK_CHAIN)
def test_check_values_of_the_block_value(case: tuple[int, int, int, int]) -> None:
    d, sa, sb, want = case
    assert num.chain(np.array(d), sa, sb) == want == witness.acc_chain(d, sa, sb, 40, 14)


@pytest.mark.parametrize("case", CHECK_ADD)
def test_check_values_of_the_addition(case: tuple[int, int, int]) -> None:
    x, y, want = case
    assert num.acc_add(np.array(x), np.array(y)) == num.acc_add(np.array(y), np.array(x)) == want
    assert witness.acc_add(x, y, 14) == want


@pytest.mark.parametrize("case", CHECK_FP16)
def test_check_values_of_the_emit_conversion(case: tuple[int, int]) -> None:
    code, want = case
    assert num.to_fp16(np.array(code)) == want == witness.acc_to_fp16(code, 14)


def test_accumulator_vectors() -> None:
    data = vectors("acc")
    for mw in (14, 16):
        x, y, want = hexes(data[f"add{mw}"]).T
        assert np.array_equal(num.acc_add(x, y, mw), want)
        assert np.array_equal(num.acc_add(y, x, mw), want)
        code, fp16 = hexes(data[f"emit{mw}"]).T
        assert np.array_equal(num.to_fp16(code, mw), fp16)
    for case in data["send14"]:
        tile = hexes(case["tile"])[None]
        granules = num.send_granules(tile)
        assert word_hex(granules) == case["granules"]
        assert np.array_equal(num.receive_granules(granules), tile)


def check_adds(x: np.ndarray, y: np.ndarray, mw: int) -> None:
    got = num.acc_add(x, y, mw)
    assert np.array_equal(got, num.acc_add(y, x, mw))
    for a, b, g in zip(x.tolist(), y.tolist(), got.tolist(), strict=True):
        assert g == witness.acc_add(a, b, mw), (hex(a), hex(b), mw)


@pytest.mark.parametrize("mw", MWS)
def test_add_every_exponent_difference(mw: int) -> None:
    rng = np.random.default_rng(7 + mw)
    per = 200 if mw == 14 else 40
    for diff in range(mw + 13):
        x = random_codes(rng, per, mw, diff + 1, 126)
        e = (x >> mw) & 127
        y = random_codes(rng, per, mw)
        y = (y & ~(127 << mw)) | (e - diff) << mw
        for sign in (0, 1 << (mw + 7)):
            check_adds(x, (y & ~(1 << (mw + 7))) | ((x ^ sign) & (1 << (mw + 7))), mw)


@pytest.mark.parametrize("mw", MWS)
def test_add_corners(mw: int) -> None:
    rng = np.random.default_rng(70 + mw)
    sign = 1 << (mw + 7)
    x = random_codes(rng, 300, mw)
    assert not num.acc_add(x, x ^ sign, mw).any()
    check_adds(x, x, mw)
    check_adds(x, random_codes(rng, 300, mw, 0, 0), mw)
    check_adds(random_codes(rng, 100, mw, 0, 0), random_codes(rng, 100, mw, 0, 0), mw)
    check_adds(random_codes(rng, 400, mw, 125, 127), random_codes(rng, 400, mw, 120, 127), mw)
    check_adds(random_codes(rng, 400, mw, 1, 3), random_codes(rng, 400, mw, 1, 3), mw)


@pytest.mark.parametrize("mw", MWS)
def test_add_contract_exception(mw: int) -> None:
    """At least 500 subtractions with lost bits and the truncated difference on a tie."""
    rng = np.random.default_rng(700 + mw)
    n = 800
    # the smaller operand, cut at 2**-8 of the larger one's ulp, ends in one half: its low byte there is 80h
    diff = rng.integers(9, mw + 2, n)
    cut = 1 << (mw + 8 - diff) | (rng.integers(0, 1 << mw, n) << 8 | 0x80) & (1 << (mw + 8 - diff)) - 1
    wide = cut << diff | rng.integers(1, 1 << 20, n) % ((1 << (diff - 8)) - 1) + 1 << 8
    big = rng.integers(0, 1 << mw, n) | 1 << (mw - 1)
    e = rng.integers(40, 100, n)
    sign = rng.integers(0, 2, n)
    x = sign << (mw + 7) | e << mw | big
    y = (1 - sign) << (mw + 7) | (e - diff) << mw | (wide >> 8) - (1 << mw)
    hit = np.array([witness.contract_tie(a, b, mw) for a, b in zip(x.tolist(), y.tolist(), strict=True)])
    assert hit.sum() >= 500
    check_adds(x[hit], y[hit], mw)
    # the exception is one ulp above the rounded difference, and nothing else differs from it
    exact = [
        witness.acc_round(witness.acc_value(a, mw) + witness.acc_value(b, mw), mw)[0]
        for a, b in zip(x[hit].tolist(), y[hit].tolist(), strict=True)
    ]
    assert (num.acc_add(x[hit], y[hit], mw).astype(int) - np.array(exact) == 1).all()


def check_conversions(code: np.ndarray, mw: int) -> None:
    fp16, e8 = num.to_fp16(code, mw), num.to_e8m15(code, mw)
    for c, f, g in zip(code.tolist(), fp16.tolist(), e8.tolist(), strict=True):
        assert f == witness.acc_to_fp16(c, mw), (hex(c), mw)
        assert g == witness.acc_to_e8m15(c, mw), (hex(c), mw)


@pytest.mark.parametrize("mw", ACC_MW_SUPPORTED)
def test_conversions_from_the_accumulator(mw: int) -> None:
    rng = np.random.default_rng(8)
    check_conversions(random_codes(rng, 2000, mw), mw)
    check_conversions(random_codes(rng, 2000, mw, 46, 81), mw)
    check_conversions(random_codes(rng, 300, mw, 0, 1), mw)
    check_conversions(random_codes(rng, 300, mw, 126, 127), mw)


def test_to_fp16_exhaustive_against_ieee_rounding() -> None:
    """All 2**22 codes: numpy's own float64 -> float16 with the page's flush and clamp on top."""
    code = np.arange(1 << 22)
    value = to_float64(code)
    with np.errstate(over="ignore"):
        ieee = value.astype(np.float16).view(np.uint16).astype(np.int64)
    # flush before the subnormal grid can round up: only a magnitude of 2**-14 - 2**-26 or more survives
    tiny = np.abs(value) < 2.0**-14 - 2.0**-26
    want = np.where(tiny, ieee & 0x8000, ieee)
    kept = ~tiny & (np.abs(value) < 2.0**-14)
    want = np.where(kept, (ieee & 0x8000) | 0x0400, want)
    want = np.where((want & 0x7FFF) == 0x7C00, (want & 0x8000) | 0x7BFF, want)
    zero = ((code >> 14) & 127) == 0
    want = np.where(zero, (code >> 21) << 15, want)
    events = num.NumericEvents()
    assert np.array_equal(num.to_fp16(code, 14, events), want)
    assert events.fp16_sat == int(np.count_nonzero(np.abs(value) >= 65520.0))


def test_to_e8m15_exhaustive() -> None:
    code = np.arange(1 << 22)
    e8 = num.to_e8m15(code).astype(np.int64)
    e = (code >> 14) & 127
    plain = (e > 0) & (e < 127)
    back = np.ldexp(((e8 & 0x7FFF) | 0x8000).astype(float), (((e8 >> 15) & 255) - 142).astype(np.int32))
    assert np.array_equal(np.where(e8 >> 23, -back, back)[plain], to_float64(code)[plain])
    assert ((e8[e == 127] >> 15) & 255 == 255).all()
    assert np.array_equal(e8[e == 0], (code[e == 0] >> 21) << 23)


@pytest.mark.slow
@pytest.mark.parametrize("mw", [14, 16])
def test_conversions_from_the_accumulator_million(mw: int) -> None:
    rng = np.random.default_rng(9)
    for _ in range(SWEEP // 50_000):
        check_conversions(rng.integers(0, 1 << (mw + 8), 50_000), mw)


@pytest.mark.slow
def test_million_random_adds() -> None:
    rng = np.random.default_rng(10)
    for _ in range(SWEEP // 50_000):
        x = random_codes(rng, 50_000, 14, 30, 100)
        near = np.clip(((x >> 14) & 127) - rng.integers(-26, 27, len(x)), 0, 127)
        y = (random_codes(rng, len(x), 14) & ~(127 << 14)) | near << 14
        check_adds(x, y, 14)


@pytest.mark.parametrize("mw", ACC_MW_SUPPORTED)
def test_commands_on_tiles(mw: int) -> None:
    rng = np.random.default_rng(11)
    store = num.TileStore(8, mw)
    first = random_codes(rng, 32, mw).reshape(2, 16)
    store.load(3, first)
    assert np.array_equal(store.codes[3:5], canonical(first, mw))
    assert not store.codes[:3].any()
    second = random_codes(rng, 32, mw).reshape(2, 16)
    store.add(3, second)
    assert np.array_equal(store.codes[3:5], num.acc_add(canonical(first, mw), second, mw))
    granules = num.send_granules(store.codes, mw)
    assert granules.shape == (16, 32)
    if mw == 14:
        assert not granules[1::2, 12:].any()
    # SEND then ADD_PEER into an empty second accumulator copies, into itself doubles
    other = num.TileStore(8, mw)
    other.add(0, num.receive_granules(store.send(8), mw))
    assert np.array_equal(other.codes, canonical(store.codes, mw))
    words = store.emit(8)
    assert np.array_equal(words.view("<u2"), num.to_fp16(store.codes, mw))


def test_send_ignores_padding_and_foreign_zero_codes() -> None:
    tile = np.full((1, 16), 0x201234)
    assert not num.send_granules(tile).any()
    granules = num.send_granules(np.full((1, 16), 0x0FC000))
    granules[1, 12:] = 0xFF
    assert (num.receive_granules(granules) == 0x0FC000).all()


def test_load_with_emit_equals_load_then_emit() -> None:
    """The value handed out is the value written (section 5.4): a zero chain gives +0."""
    store = num.TileStore(1)
    store.load(0, np.full((1, 16), 0x200001))
    assert not store.codes.any()
    assert not store.emit(1).any()


def test_acc_ovf_is_counted_per_value() -> None:
    events = num.NumericEvents()
    num.acc_add(
        np.array([0x1FBFFF, 0x1FBFFF, 0x0FC000, 0x1FC000]),
        np.array([0x1FBFFF, 0x3FBFFF, 0x0FC000, 0]),
        14,
        events,
    )
    assert events.acc_ovf == 1
    with pytest.raises(ValueError, match="ACC_MW"):
        num.TileStore(4, 13)


# ------------------------------------------------------------------ matrix products


def test_gemm_vectors() -> None:
    for case in vectors("gemm")["cases"]:
        m, k, n = case["m"], case["k"], case["n"]
        codes, fp16 = num.product(unhex16(case["a"], m, k), unhex16(case["b"], n, k))
        acc = case["acc14"]
        if isinstance(acc, str):
            acc = [acc[i : i + 6] for i in range(0, len(acc), 6)]
        assert np.array_equal(codes.ravel(), hexes(acc).ravel())
        assert np.array_equal(fp16, unhex16(case["c14"], m, n))


def witness_product(a: np.ndarray, b: np.ndarray, mw: int) -> list[list[int]]:
    def lanes(x: np.ndarray) -> list[list[tuple[list[int], int]]]:
        return [[witness.quantise_lane(r[i : i + 32]) for i in range(0, len(r), 32)] for r in x.tolist()]

    out = []
    for row in lanes(a):
        line = []
        for col in lanes(b):
            acc = 0
            for step, ((qa, sa), (qb, sb)) in enumerate(zip(row, col, strict=True)):
                block = witness.acc_chain(witness.dot(qa, qb), sa, sb, 40, mw)
                acc = block if step == 0 else witness.acc_add(acc, block, mw)
            line.append(acc)
        out.append(line)
    return out


@pytest.mark.parametrize("mw", MWS)
@pytest.mark.parametrize("kind", ["normal", "positive", "large", "tiny"])
def test_products_against_the_witness(mw: int, kind: str) -> None:
    rng = np.random.default_rng(12)
    for nk in (1, 2, 32) if mw == 14 else (2, 7):
        x = rng.standard_normal((2, 4, 32 * nk))
        x = {"normal": x, "positive": np.abs(x), "large": x * 20000, "tiny": x * 2.0**-13}[kind]
        a, b = num.fp16_codes(np.clip(x, -65504, 65504))
        events = num.NumericEvents()
        codes, fp16 = num.product(a, b, mw, events=events)
        want = witness_product(a, b, mw)
        assert codes.tolist() == want
        assert fp16.tolist() == [[witness.acc_to_fp16(c, mw) for c in row] for row in want]
        if kind == "large":
            assert events.fp16_sat > 0
        if kind == "tiny":
            assert not (fp16 & 0x7FFF).all()


def test_k_chunks_and_order() -> None:
    rng = np.random.default_rng(13)
    a, b = num.fp16_codes(rng.standard_normal((2, 16, 2048)))
    (qa, sa), (qb, sb) = num.operand_entries(a), num.operand_entries(b)
    whole = num.TileStore(16)
    whole.sweep((qa, sa), (qb, sb), accumulate=False)
    assert np.array_equal(whole.matrix(4, 4), num.product(a, b)[0])
    for chunk in (1, 2, 16, 32):
        part = num.TileStore(16)
        for k in range(0, 64, chunk):
            s = slice(k, k + chunk)
            part.sweep((qa[:, s], sa[:, s]), (qb[:, s], sb[:, s]), accumulate=k > 0)
        assert np.array_equal(part.codes, whole.codes), chunk
    # another order of the blocks is another result, so the equality above says something
    reverse = num.TileStore(16)
    reverse.sweep((qa[:, ::-1], sa[:, ::-1]), (qb[:, ::-1], sb[:, ::-1]), accumulate=False)
    assert not np.array_equal(reverse.codes, whole.codes)
    with pytest.raises(ValueError, match="K blocks"):
        part.sweep((qa[:, :2], sa[:, :2]), (qb, sb), accumulate=False)
    with pytest.raises(ValueError, match="exceed"):
        num.TileStore(8).sweep((qa, sa), (qb, sb), accumulate=False)
    with pytest.raises(ValueError, match="multiple"):
        num.operand_entries(a[:, :40])


@pytest.mark.parametrize("k", [256, 1024])
def test_format_error_within_the_acceptance_bound(k: int) -> None:
    rng = np.random.default_rng(14)
    a = num.fp16_codes(rng.standard_normal((128, k)))
    b = num.fp16_codes(rng.standard_normal((128, k)) / math.sqrt(k))
    events = num.NumericEvents()
    _, fp16 = num.product(a, b, events=events)
    exact = a.view(np.float16).astype(float) @ b.view(np.float16).astype(float).T
    m = num.error_metrics(fp16.view(np.float16).astype(float), exact, events.fp16_sat)
    print(
        f"normal, seed 14, K={k}: p50 {m.p50:.2e} p99 {m.p99:.2e} max {m.max:.2e} 1% {m.over_1_percent:.4f}"
    )
    assert (m.p50 < 4e-3, m.p99 < 1.5e-2, m.max < 3e-2) == (True, True, True)
    assert (m.non_finite, m.saturated) == (0, 0)
