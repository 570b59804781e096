# SPDX-License-Identifier: Apache-2.0
"""Rows that one reduction takes, a multiple of 16 up to 128 wide (docs/spec/kernels.md 5.1).

Every kernel is one band: an intermediate result never leaves a register. Wider rows are in
:mod:`kohakutpu.kernels.library.wide`.
"""

from __future__ import annotations

from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import In, Kernel, Out, dims, exp2, row_max, row_sum, rsqrt, table, units, where
from kohakutpu.kernels.language.lanes import Arithmetic, Lane
from kohakutpu.kernels.library.functions import LOG2E
from kohakutpu.kernels.library.helpers import MASKED, STEP, SUB_ROW, named, part_for

LAYER = "L4"

(M,) = dims("M")


def _width(what: str, cols: int) -> int:
    if cols < STEP or cols % STEP or cols > SUB_ROW:
        fix = f"{what}_wide({cols})" if cols > SUB_ROW else f"pad the row to {-(-max(cols, 1) // STEP) * STEP}"
        raise TraceError(f"{what}: rows of {cols} elements; one reduction takes 16, 32, ... {SUB_ROW}: {fix}")
    return cols


def _softmax(v: Arithmetic) -> Lane:
    ex = exp2((v - row_max(v)) * LOG2E)
    return ex / row_sum(ex)


@lru_cache(typed=True)
def softmax(cols: int) -> Kernel:
    """y[..., M, cols] = exp(x - max) / sum along rows of ``cols``.

    Raises:
        TraceError: ``cols`` is no multiple of 16 up to 128.
    """
    part = part_for(_width("softmax", cols))

    def body(x: Any = In(..., M, cols), y: Any = Out(..., M, cols)) -> None:
        for e in units(x.parts(part)):
            y[e] <<= _softmax(x[e])

    return named("softmax", body, softmax.__doc__)


@lru_cache(typed=True)
def softmax_keys(keys: int, cols: int = SUB_ROW) -> Kernel:
    """The softmax of the first ``keys`` of ``cols`` columns; the others are exactly 0 whatever x holds there.

    They are masked before the maximum is taken, so neither padding above every score nor scores far below zero spoil
    the row; scores below -59,900 would meet the value of a masked one, -60,000.

    Raises:
        TraceError: ``keys`` outside 1..cols, or ``cols`` no multiple of 16 up to 128.
    """
    part = part_for(_width("softmax", cols))
    row = key_mask(keys, cols)

    def body(x: Any = In(..., M, cols), y: Any = Out(..., M, cols)) -> None:
        mask = table(row).repeated()
        for e in units(x.parts(part)):
            y[e] <<= _softmax(where(mask[e], x[e], MASKED))

    return named("softmax_keys", body, softmax_keys.__doc__)


@lru_cache(typed=True)
def softmax_masked(cols: int) -> Kernel:
    """The softmax of the columns where ``mask[cols]`` is not 0; the others are 0 unless the whole row is masked.

    Raises:
        TraceError: ``cols`` is no multiple of 16 up to 128.
    """
    part = part_for(_width("softmax", cols))

    def body(x: Any = In(..., M, cols), mask: Any = In(cols), y: Any = Out(..., M, cols)) -> None:
        row = mask.repeated()
        for e in units(x.parts(part)):
            y[e] <<= _softmax(where(row[e], x[e], MASKED))

    return named("softmax_masked", body, softmax_masked.__doc__)


@lru_cache(typed=True)
def layernorm(cols: int) -> Kernel:
    """y[..., M, cols] = (x - mean) * rsqrt(variance + eps) * w[cols] + b[cols] along rows; knob eps.

    A square is taken of what was divided by the width before, so no partial sum passes 65,504.

    Raises:
        TraceError: ``cols`` is no multiple of 16 up to 128.
    """
    part = part_for(_width("layernorm", cols))

    def body(
        x: Any = In(..., M, cols), w: Any = In(cols), b: Any = In(cols), y: Any = Out(..., M, cols), *, eps: Any = 1e-5
    ) -> None:
        for e in units(x.parts(part)):
            d = x[e] - row_sum(x[e]) * (1.0 / cols)
            square = row_sum(d * (1.0 / cols) * d)
            y[e] <<= d * rsqrt(square + eps) * w.repeated()[e] + b.repeated()[e]

    return named("layernorm", body, layernorm.__doc__)


@lru_cache(typed=True)
def rmsnorm(cols: int) -> Kernel:
    """y[..., M, cols] = x * rsqrt(mean square + eps) * w[cols] along rows; knob eps.

    Raises:
        TraceError: ``cols`` is no multiple of 16 up to 128.
    """
    part = part_for(_width("rmsnorm", cols))

    def body(x: Any = In(..., M, cols), w: Any = In(cols), y: Any = Out(..., M, cols), *, eps: Any = 1e-5) -> None:
        for e in units(x.parts(part)):
            square = row_sum(x[e] * (1.0 / cols) * x[e])
            y[e] <<= x[e] * rsqrt(square + eps) * w.repeated()[e]

    return named("rmsnorm", body, rmsnorm.__doc__)


@lru_cache(typed=True)
def group_norm(group: int) -> Kernel:
    """The layernorm of groups of ``group`` elements with w and b at the full shape of x; knob eps.

    Raises:
        TraceError: ``group`` is no multiple of 16 up to 128.
    """
    part = part_for(_width("group_norm", group))

    def body(
        x: Any = In(...), w: Any = In(...), b: Any = In(...), y: Any = Out(...), *, eps: Any = 1e-5
    ) -> None:
        v, gain, shift, out = (p.as_rows(group) for p in (x, w, b, y))
        for e in units(x.parts(part)):
            d = v[e] - row_sum(v[e]) * (1.0 / group)
            square = row_sum(d * (1.0 / group) * d)
            out[e] <<= d * rsqrt(square + eps) * gain[e] + shift[e]

    return named("group_norm", body, group_norm.__doc__)


def key_mask(keys: int, cols: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """One row of ``cols`` values, 1 for the first ``keys``.

    Raises:
        TraceError: ``keys`` no integer or outside 1..cols.
    """
    if not isinstance(keys, Integral) or not 1 <= keys <= cols:
        raise TraceError(f"softmax_keys: {keys} keys in rows of {cols}; give an integer from 1 to {cols}")
    return (np.arange(cols) < keys).astype(np.float64)
