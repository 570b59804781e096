# SPDX-License-Identifier: Apache-2.0
"""The fold of many sub-rows into one (docs/spec/kernels.md 5.2): a mean or a maximum that never leaves FP16.

Sub-rows g*rows .. g*rows + rows - 1 of every group g end in sub-row g*rows of the result, which has v.rows - rows + 1
sub-rows exactly. Every partial result is a weighted mean of its inputs, so it stays within their range; a sum divided
at the end saturates for large groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kohakutpu.kernels.language import Int, maximum, temp, units
from kohakutpu.kernels.language.buffers import Buffer
from kohakutpu.kernels.library.helpers import part_for

LAYER = "L4"

Join = Callable[[Any, Any, float, float], Any]


@dataclass(frozen=True)
class SubRows:
    """The rows of a block: ``length`` sub-rows of ``width`` elements, ``rows`` of them a group."""

    length: Int
    width: int
    rows: int

    @property
    def part(self) -> int:
        """Elements of a part of whole groups."""
        return part_for(self.rows * self.width)

    @property
    def firsts(self) -> Int:
        """Sub-rows of a fold's result: up to the first one of the last group."""
        return self.length - (self.rows - 1)

    def temp(self) -> Buffer:
        """A buffer for all of them."""
        return temp(self.length, self.width)


def fold_mean(v: Buffer, shape: SubRows) -> Buffer:
    """The mean over the sub-rows of every group, in its first one."""
    return _span(lambda a, c, wa, wc: a * wa + c * wc, v, shape, 0)


def fold_max(v: Buffer, shape: SubRows) -> Buffer:
    """The maximum over the sub-rows of every group, in its first one."""
    return _span(lambda a, c, _wa, _wc: maximum(a, c), v, shape, 0)


def _span(join: Join, source: Buffer, shape: SubRows, first: int, out: Int | None = None) -> Buffer:
    """shape.rows sub-rows of ``source`` from ``first`` on; valid in ``out`` sub-rows of the result."""
    n, have = shape.rows, shape.length
    out = shape.firsts if out is None else out
    if n == 1:
        return _from(source, first)
    if n % 2:
        p = 1 << (n.bit_length() - 1)
        low = _span(join, source, replace(shape, rows=p), first, out)
        high = _span(join, source, replace(shape, rows=n - p), first + p, out)
        return _joined(join, low, high, (p / n, (n - p) / n), out, shape.width)
    half = n // 2
    length = out if n == 2 else have - (first + half)
    both = _joined(join, _from(source, first), _from(source, first + half), (0.5, 0.5), length, shape.width)
    return _span(join, both, replace(shape, length=length, rows=half), 0, out)


def _from(source: Buffer, row: int) -> Buffer:
    return source.rows_from(row)


def _joined(join: Join, low: Buffer, high: Buffer, weights: tuple[float, float], length: Int, width: int) -> Buffer:
    both = temp(length, width)
    for e in units(both.parts(part_for(width))):
        both[e] <<= join(low[e], high[e], *weights)
    return both
