# SPDX-License-Identifier: Apache-2.0
"""Rows and groups wider than one reduction (docs/spec/kernels.md 5.2).

A row is a number of sub-rows of at most 128 elements, and all rows of a block are worked on at once. A group of a
group norm is such a row. The mean is held in FP16.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import In, Kernel, Out, exp2, row_max, row_sum, rsqrt, table, temp, units, where
from kohakutpu.kernels.language.buffers import Buffer
from kohakutpu.kernels.library.fold import SubRows, fold_max, fold_mean
from kohakutpu.kernels.library.functions import LOG2E, Function, identity, silu
from kohakutpu.kernels.library.helpers import MASKED, named, split, sub_row
from kohakutpu.kernels.library.rows import key_mask

LAYER = "L4"

_LONGEST = 65504.0
"""A sum is a mean times the row length, which FP16 has to hold."""


@lru_cache(typed=True)
def layernorm_wide(cols: int) -> Kernel:
    """y = (x - mean) * rsqrt(variance + eps) * w[cols] + b[cols] along rows of ``cols``, x of any rank; knob eps.

    Raises:
        TraceError: ``cols`` is no multiple of 16.
    """
    width = sub_row(cols)

    def body(x: Any = In(...), w: Any = In(cols), b: Any = In(cols), y: Any = Out(...), *, eps: Any = 1e-5) -> None:
        _norm(x, (w.repeated(), b.repeated()), y, _rows(x, width, cols), eps, identity)

    return named("layernorm_wide", body, layernorm_wide.__doc__)


@lru_cache(typed=True)
def rmsnorm_wide(cols: int) -> Kernel:
    """y = x * rsqrt(mean square + eps) * w[cols] along rows of ``cols``, x of any rank; knob eps.

    Raises:
        TraceError: ``cols`` is no multiple of 16.
    """
    width = sub_row(cols)

    def body(x: Any = In(...), w: Any = In(cols), y: Any = Out(...), *, eps: Any = 1e-5) -> None:
        shape, v, out, gain = _rows(x, width, cols), x.as_rows(width), y.as_rows(width), w.repeated()
        squares = shape.temp()
        for e in units(v.parts(shape.part)):
            squares[e] <<= row_sum(v[e] * (1.0 / width) * v[e])
        square = fold_mean(squares, shape).per_group(shape.rows)
        for e in units(v.parts(shape.part)):
            out[e] <<= v[e] * rsqrt(square[e] + eps) * gain[e]

    return named("rmsnorm_wide", body, rmsnorm_wide.__doc__)


@lru_cache(typed=True)
def group_norm_wide(group: int) -> Kernel:
    """y = (x - mean) * rsqrt(variance + eps) * w + b over groups of ``group`` consecutive elements; knob eps.

    w and b have the full shape of x.

    Raises:
        TraceError: ``group`` is no multiple of 16.
    """
    return _group_norm("group_norm_wide", group, identity, group_norm_wide.__doc__)


@lru_cache(typed=True)
def group_norm_silu_wide(group: int) -> Kernel:
    """The SiLU of :func:`group_norm_wide`.

    Raises:
        TraceError: ``group`` is no multiple of 16.
    """
    return _group_norm("group_norm_silu_wide", group, silu, group_norm_silu_wide.__doc__)


def _group_norm(name: str, group: int, tail: Function, doc: str | None) -> Kernel:
    width = sub_row(group)

    def body(x: Any = In(...), w: Any = In(...), b: Any = In(...), y: Any = Out(...), *, eps: Any = 1e-5) -> None:
        _norm(x, (w.as_rows(width), b.as_rows(width)), y, _rows(x, width, group), eps, tail)

    return named(name, body, doc)


def _rows(x: Buffer, width: int, cols: int) -> SubRows:
    return SubRows(x.length // width, width, split(cols, width))


def _norm(x: Buffer, affine: tuple[Buffer, Buffer], y: Buffer, shape: SubRows, eps: float, tail: Function) -> None:
    v, out, fraction = x.as_rows(shape.width), y.as_rows(shape.width), 1.0 / shape.width
    (gain, shift), means, squares = affine, shape.temp(), shape.temp()
    for e in units(v.parts(shape.part)):
        means[e] <<= row_sum(v[e] * fraction)
    mean = fold_mean(means, shape).per_group(shape.rows)
    for e in units(v.parts(shape.part)):
        d = v[e] - mean[e]
        squares[e] <<= row_sum(d * fraction * d)
    square = fold_mean(squares, shape).per_group(shape.rows)
    for e in units(v.parts(shape.part)):
        out[e] <<= tail((v[e] - mean[e]) * rsqrt(square[e] + eps) * gain[e] + shift[e])


@lru_cache(typed=True)
def softmax_wide(cols: int) -> Kernel:
    """y = exp(x - max) / sum along rows of ``cols``, x of any rank.

    Raises:
        TraceError: ``cols`` is no multiple of 16, or above 65,504.
    """
    width = _softmax_row("softmax_wide", cols)

    def body(x: Any = In(...), y: Any = Out(...)) -> None:
        _softmax(x.as_rows(width), y.as_rows(width), _rows(x, width, cols))

    return named("softmax_wide", body, softmax_wide.__doc__)


@lru_cache(typed=True)
def softmax_keys_wide(keys: int, cols: int) -> Kernel:
    """The softmax of the first ``keys`` of ``cols`` columns; the others are exactly 0 whatever x holds there.

    Raises:
        TraceError: ``keys`` outside 1..cols; ``cols`` no multiple of 16, or above 65,504.
    """
    width, row = _softmax_row("softmax_keys_wide", cols), key_mask(keys, cols)

    def body(x: Any = In(...), y: Any = Out(...)) -> None:
        v, shape, mask = x.as_rows(width), _rows(x, width, cols), table(row).repeated()
        masked = shape.temp()
        for e in units(v.parts(shape.part)):
            masked[e] <<= where(mask[e], v[e], MASKED)
        _softmax(masked, y.as_rows(width), shape)

    return named("softmax_keys_wide", body, softmax_keys_wide.__doc__)


def _softmax_row(what: str, cols: int) -> int:
    if cols > _LONGEST:
        raise TraceError(f"{what}: rows of {cols} elements; a sum is held in FP16, at most {_LONGEST:.0f} fit")
    return sub_row(cols)


def _softmax(v: Buffer, out: Buffer, shape: SubRows) -> None:
    peak, ex, sums = temp(shape.firsts, shape.width), shape.temp(), shape.temp()
    highest = fold_max(v, shape)
    for e in units(peak.parts(shape.part)):
        peak[e] <<= row_max(highest[e])
    top = peak.per_group(shape.rows)
    for e in units(v.parts(shape.part)):
        value = exp2((v[e] - top[e]) * LOG2E)
        ex[e] <<= value
        sums[e] <<= row_sum(value * (1.0 / shape.width))
    share = fold_mean(sums, shape).per_group(shape.rows)
    for e in units(v.parts(shape.part)):
        out[e] <<= ex[e] / (share[e] * float(shape.rows * shape.width))
