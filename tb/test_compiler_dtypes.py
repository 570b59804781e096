# SPDX-License-Identifier: Apache-2.0
"""Format predicates against every code of the formats (docs/spec/compiler.md 2)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from kohakutpu import dtypes as dt
from kohakutpu.errors import CompileError

pytestmark = pytest.mark.unit

FORMATS = (dt.FP32, dt.FP16, dt.E8M15, dt.acc(14), dt.acc(16))


def codes(d: dt.DType) -> tuple[np.ndarray, np.ndarray]:
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


def holds(a: dt.DType, significand: np.ndarray, power: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
@pytest.mark.parametrize("b", [dt.FP16, dt.acc(14)], ids=lambda d: d.name)
def test_predicates_agree_with_every_code(a: dt.DType, b: dt.DType) -> None:
    in_range, exact = holds(a, *codes(b))
    # a value may round up past the largest finite one although its own binade exists
    assert dt.is_exact_from(a, b) == bool(exact.all())
    biggest = dt.max_fin(b) <= dt.max_fin(a)
    assert dt.contains_range_of(a, b) == (bool(in_range.all()) and biggest)


def test_table_of_the_page() -> None:
    """The rows of section 2 as the page states them."""
    e8, f16, f32 = dt.E8M15, dt.FP16, dt.FP32
    assert dt.contains_range_of(e8, f16)
    assert dt.is_exact_from(e8, f16)
    assert dt.contains_range_of(f32, e8)
    assert dt.is_exact_from(f32, e8)
    assert not dt.contains_range_of(e8, f32)
    assert not dt.is_exact_from(e8, f32)
    assert dt.contains_range_of(e8, dt.acc(14))
    assert dt.is_exact_from(e8, dt.acc(14))
    assert dt.contains_range_of(e8, dt.acc(16))
    assert not dt.is_exact_from(e8, dt.acc(16))
    assert not any(dt.contains_range_of(f16, b) for b in (f32, e8, dt.acc(14)))


def test_limits_are_exact() -> None:
    assert dt.max_fin(dt.FP16) == 65504
    assert dt.min_pos(dt.FP16) == Fraction(1, 1 << 24)
    assert dt.max_fin(dt.FP32) == Fraction(float(np.finfo(np.float32).max))
    assert dt.min_pos(dt.E8M15) == Fraction(1, 1 << 126)
    assert dt.max_fin(dt.acc(14)) == Fraction((1 << 15) - 1, 1 << 14) * (1 << 64)


def test_memory_formats() -> None:
    assert [dt.FP16.nbytes, dt.FP32.nbytes, dt.MXFP7.nbytes] == [2, 4, 1]
    for inside in (dt.E8M15, dt.acc(14)):
        with pytest.raises(CompileError, match="only inside a unit"):
            _ = inside.nbytes


def test_names() -> None:
    assert dt.of("acc(16)") == dt.acc(16)
    assert dt.of("fp16") is dt.FP16
    with pytest.raises(CompileError, match="'bf16' is unknown; known: fp32"):
        dt.of("bf16")
    with pytest.raises(CompileError, match=r"9\.\.24"):
        dt.of("acc(3)")
    with pytest.raises(CompileError, match="mxfp7 is no plain float"):
        dt.max_fin(dt.MXFP7)


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
