# SPDX-License-Identifier: Apache-2.0
"""Format predicates against every code of the formats (docs/spec/compiler.md 2)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kohakutpu import dtypes as dt
from kohakutpu.errors import CompileError

pytestmark = pytest.mark.unit

FORMATS = (dt.FP32, dt.FP16, dt.E8M15, dt.accumulator(14), dt.accumulator(16))


def codes(d: dt.Dtype) -> tuple[np.ndarray, np.ndarray]:
    """Every positive nonzero finite value as (integer significand, power of two), from the layout alone."""
    exponent = np.arange(1 << d.exp_bits, dtype=np.int64)
    if d.has_inf:
        exponent = exponent[:-1]
    fraction = np.arange(1 << d.man_bits, dtype=np.int64)
    e, f = (x.ravel() for x in np.meshgrid(exponent, fraction, indexing="ij"))
    significand = np.where(e == 0, f if d.has_subnormals else 0, (1 << d.man_bits) + f)
    power = np.maximum(e, 1) - d.bias - d.man_bits
    keep = significand > 0
    return significand[keep], power[keep]


def holds(a: dt.Dtype, significand: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Per value: in the range of ``a``, and exactly a value of ``a``."""
    top = np.floor(np.log2(significand.astype(np.float64))).astype(np.int64) + power
    highest = (1 << a.exp_bits) - 1 - int(a.has_inf) - a.bias
    lowest = 1 - a.bias
    floor = lowest - a.man_bits if a.has_subnormals else lowest
    in_range = (top <= highest) & (top >= floor)
    step = np.maximum(top, lowest) - a.man_bits if a.has_subnormals else top - a.man_bits
    trailing = (significand & -significand).astype(np.float64)
    exact = in_range & (np.log2(trailing).astype(np.int64) + power >= step)
    return in_range, exact


@pytest.mark.parametrize("a", FORMATS, ids=lambda d: d.name)
@pytest.mark.parametrize("b", [dt.FP16, dt.accumulator(14)], ids=lambda d: d.name)
def test_predicates_agree_with_every_code(a: dt.Dtype, b: dt.Dtype) -> None:
    in_range, exact = holds(a, *codes(b))
    # a value may round up past the largest finite one although its own binade exists
    assert a.is_exact_from(b) == bool(exact.all())
    biggest = b.max_fin <= a.max_fin
    assert a.contains_range_of(b) == (bool(in_range.all()) and biggest)


def test_table_of_the_page() -> None:
    """The rows of section 2 as the page states them."""
    e8, f16, f32 = dt.E8M15, dt.FP16, dt.FP32
    assert e8.contains_range_of(f16)
    assert e8.is_exact_from(f16)
    assert f32.contains_range_of(e8)
    assert f32.is_exact_from(e8)
    assert not e8.contains_range_of(f32)
    assert not e8.is_exact_from(f32)
    assert e8.contains_range_of(dt.accumulator(14))
    assert e8.is_exact_from(dt.accumulator(14))
    assert e8.contains_range_of(dt.accumulator(16))
    assert not e8.is_exact_from(dt.accumulator(16))
    assert not any(f16.contains_range_of(b) for b in (f32, e8, dt.accumulator(14)))


def test_limits_are_exact() -> None:
    assert dt.FP16.max_fin == 65504
    assert dt.FP16.min_pos == Fraction(1, 1 << 24)
    assert dt.FP32.max_fin == Fraction(float(np.finfo(np.float32).max))
    assert dt.E8M15.min_pos == Fraction(1, 1 << 126)
    assert dt.accumulator(14).max_fin == Fraction((1 << 15) - 1, 1 << 14) * (1 << 64)


def test_memory_formats() -> None:
    assert [dt.FP16.nbytes, dt.FP32.nbytes, dt.MXFP7.nbytes] == [2, 4, 1]
    for inside in (dt.E8M15, dt.accumulator(14)):
        with pytest.raises(CompileError, match="only inside a unit"):
            _ = inside.nbytes


def test_names() -> None:
    assert dt.of("acc(16)") == dt.accumulator(16)
    assert dt.of("fp16") is dt.FP16
    with pytest.raises(CompileError, match="'bf16' is unknown; known: fp32"):
        dt.of("bf16")
    with pytest.raises(CompileError, match=r"9\.\.24"):
        dt.of("acc(3)")
    with pytest.raises(CompileError, match="mxfp7 is no plain float"):
        _ = dt.MXFP7.max_fin


@pytest.mark.parametrize(
    ("bound", "proven", "text"),
    [
        (None, False, "y: bound unknown, saturates at 65504"),
        (65504.0, True, "y: at most 65504, never saturates"),
        (65505.0, False, "y: up to 65505, saturates at 65504"),
    ],
)
def test_range_notes(bound: float | None, proven: bool, text: str) -> None:
    note = dt.RangeNote("y", bound)
    assert note.proven is proven
    assert note.text() == text


def test_rounding_to_fp16_and_fp32_is_ieee() -> None:
    """Against numpy's own conversion, halfway cases and subnormals included; FP16 saturates."""
    rng = np.random.default_rng(5)
    v = np.concatenate([np.ldexp(rng.standard_normal(200_000), rng.integers(-30, 20, 200_000)), [0.0, -0.0]])
    halves = (np.arange(1, 1 << 15, dtype=np.uint16).view(np.float16).astype(np.float64)[:-1024] * 2) / 2
    v = np.concatenate([v, halves, (halves[1:] + halves[:-1]) / 2])
    inside = np.abs(v) <= 65504
    with np.errstate(over="ignore"):
        want = np.where(inside, v.astype(np.float16), np.copysign(65504, v)).astype(np.float64)
    got = dt.FP16.round(v)
    assert np.array_equal(got, want)
    assert np.array_equal(np.signbit(got), np.signbit(v))
    assert np.array_equal(dt.FP32.round(v), v.astype(np.float32).astype(np.float64))


def test_e8m15_codes() -> None:
    """Known codes, flush below the smallest normal, infinity above the largest."""
    known = {0.0: 0, 1.0: 0x3F8000, -1.0: 0xBF8000, 1.5: 0x3FC000, 2.0**-127: 0, 1e39: 0x7F8000}
    for value, code in known.items():
        assert dt.e8m15_bits(value) == code
    assert dt.e8m15_bits(-0.0) == 0x800000
    assert dt.e8m15_bits(1 + 2.0**-16) == 0x3F8000
    assert dt.e8m15_bits(1 + 3 * 2.0**-16) == 0x3F8002
    with pytest.raises(ValueError, match="not a number"):
        dt.e8m15_bits(float("nan"))
