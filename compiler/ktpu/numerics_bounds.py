# SPDX-License-Identifier: Apache-2.0
"""Bounds of every result element, computed from the formats alone (docs/spec/numerics.md 3, 5, 7, 8, 10, 11).

A value is an interval that holds both what the machine computes and what float64 with one rounding an operation
computes. Derivation, with u = 2^-16 (half an ulp of E8M15's 16 significand bits):

* a lane operation rounds once: relative u, and 2^-126 where it flushes;
* exp2, recip, rsqrt, log2 keep the limits of numerics 10.3, 0.71, 0.60, 0.57 and max(0.99, 2^-18 / ulp) ulp of 2u;
* row_sum is at most 9 additions deep (4 in a beat, 1 into an accumulator, 4 across): 9u of the sum of magnitudes;
* an FP16 store rounds by 2^-11 relative or 2^-25, and clamps at 65,504; an emitted product also flushes below 2^-14;
* an MXFP7 element is off by at most 0.521 steps: 0.5 of rounding and 63 x 3.3e-4 of the reciprocal table. The peak
  of a normal block is 56..63 steps, so a step is at most peak/55.4, and never below the clamp needs 1.875 x 2^-20;
* a block sum converts to ACC(14) within 2^-15 and each addition is off by at most one ulp, 2^-14 of the running sum.

Infinities, NaN and anything that may become one have no bound: both ends are NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohakutpu.dtypes import E8M15, FP16
from kohakutpu.graph import Graph, Value
from ktpu.numerics_graph import Array, evaluate, outputs

F16 = npt.NDArray[np.float16]
F64 = npt.NDArray[np.float64]

UNIT = 2.0**-16 * 1.001
"""Relative rounding of a lane operation, with room for float64's own."""
FLUSH = 2.0**-126
TOP = 2.0**127
"""Beyond this an E8M15 value may round to infinity."""
STEPS_OFF = 0.521
LEAST_PEAK_STEPS = 55.4
LEAST_STEP = 1.875 * 2.0**-20
BLOCK = 32
FOLD_DEPTH = 9


def _pair(low: F64, high: F64) -> Array:
    """[2][R][C]; what is not surely finite has no bound."""
    both = np.stack(np.broadcast_arrays(low, high))
    bad = ~np.isfinite(both).all(axis=0) | (np.abs(both) > TOP).any(axis=0)
    return np.where(bad, np.nan, both)


def _widen(low: F64, high: F64, relative: float, absolute: float | F64 = 0.0) -> Array:
    return _pair(low - np.abs(low) * relative - absolute, high + np.abs(high) * relative + absolute)


def _product(a: Array, b: Array) -> tuple[F64, F64]:
    ends = np.stack([a[i] * b[j] for i in (0, 1) for j in (0, 1)])
    return ends.min(axis=0), ends.max(axis=0)


def _sum(a: tuple[F64, F64] | Array, b: tuple[F64, F64] | Array) -> Array:
    size = sum(np.maximum(np.abs(x[0]), np.abs(x[1])) for x in (a, b))
    return _widen(a[0] + b[0], a[1] + b[1], UNIT, FLUSH + 2.0**-51 * size)


def _magnitude(a: Array) -> F64:
    return np.asarray(np.maximum(np.abs(a[0]), np.abs(a[1])), dtype=np.float64)


def _negated(a: Array) -> Array:
    return np.stack([-a[1], -a[0]])


def _absolute(a: Array) -> Array:
    through = (a[0] <= 0) & (a[1] >= 0)
    return np.stack([np.where(through, 0.0, np.minimum(np.abs(a[0]), np.abs(a[1]))), _magnitude(a)])


def _recip(a: Array) -> Array:
    inside = (a[0] > 0) | (a[1] < 0)
    low, high = np.where(inside, 1.0 / a[1], np.nan), np.where(inside, 1.0 / a[0], np.nan)
    return _widen(low, high, 2 * 0.60 * UNIT, FLUSH)


def _rsqrt(a: Array) -> Array:
    fine = a[0] > 0
    root = np.sqrt(np.where(fine, a, np.nan))
    return _widen(1.0 / root[1], 1.0 / root[0], 2 * 0.57 * UNIT, FLUSH)


def _exp2(a: Array) -> Array:
    return _widen(np.exp2(a[0]), np.exp2(a[1]), 2 * 0.71 * UNIT, FLUSH)


def _log2(a: Array) -> Array:
    ends = np.log2(np.where(a[0] > 0, a, np.nan))
    return _widen(ends[0], ends[1], 2 * 0.99 * UNIT, 2.0**-18)


def _decided(yes: npt.NDArray[np.bool_], no: npt.NDArray[np.bool_]) -> Array:
    """A comparison: [1, 1] if surely true, [0, 0] if surely false, else [0, 1]."""
    return np.stack([yes.astype(np.float64), 1.0 - no.astype(np.float64)])


def _where(p: Array, a: Array, b: Array) -> Array:
    first = (p[0] > 0) | (p[1] < 0)
    second = (p[0] == 0) & (p[1] == 0)
    low, high = np.minimum(a[0], b[0]), np.maximum(a[1], b[1])
    low = np.where(first, a[0], np.where(second, b[0], low))
    return np.stack([low, np.where(first, a[1], np.where(second, b[1], high))])


def _row_sum(a: Array) -> Array:
    low, high = (e.sum(axis=-1, keepdims=True) for e in a)
    size = _magnitude(a).sum(axis=-1, keepdims=True)
    return _pair(low - FOLD_DEPTH * UNIT * size - 256 * FLUSH, high + FOLD_DEPTH * UNIT * size + 256 * FLUSH)


_LANES: dict[str, Callable[..., Array]] = {
    "neg": _negated,
    "absolute": _absolute,
    "exp2": _exp2,
    "log2": _log2,
    "recip": _recip,
    "rsqrt": _rsqrt,
    "add": _sum,
    "sub": lambda a, b: _sum(a, _negated(b)),
    "mul": lambda a, b: _widen(*_product(a, b), UNIT, FLUSH),
    "fma": lambda a, b, c: _sum(_product(a, b), c),
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": lambda a, b: _decided(a[1] < b[0], a[0] >= b[1]),
    "greater": lambda a, b: _decided(a[0] > b[1], a[1] <= b[0]),
    "equal": lambda a, b: _decided(
        (a[0] == a[1]) & (b[0] == b[1]) & (a[0] == b[0]), (a[1] < b[0]) | (b[1] < a[0])
    ),
    "where": _where,
    "row_max": lambda a: a.max(axis=-1, keepdims=True),
    "row_sum": _row_sum,
}


def quantisation_error(matrix: F64) -> F64:
    """Largest |MXFP7 value - x| of every element of a matrix [R][K] of FP16 magnitudes, blocks along K."""
    rows, k = matrix.shape
    blocks = np.pad(np.abs(matrix), ((0, 0), (0, -k % BLOCK))).reshape(rows, -1, BLOCK)
    peak = blocks.max(axis=-1, keepdims=True)
    step = np.where(peak > 0, np.maximum(peak / LEAST_PEAK_STEPS, LEAST_STEP), peak)
    return np.asarray(np.broadcast_to(STEPS_OFF * step, blocks.shape).reshape(rows, -1)[:, :k], dtype=np.float64)


@dataclass(frozen=True)
class Intervals:
    """Intervals [2][R][C], lower ends first, of the machine's result and of the rounded float64 result."""

    def load(self, array: F16) -> Array:
        """Exact."""
        return np.stack([array.astype(np.float64)] * 2)

    def number(self, value: float, dtype: str) -> Array:
        """The number as the machine holds it."""
        return np.full((2, 1, 1), float(E8M15.round(value)))

    def contract(self, a: Array, b: Array) -> Array:
        """Quantisation of both sides, the interval of both, and the accumulator."""
        (x, ex), (y, ey) = (self._around(v) for v in (a, b))
        middle = x @ y.T
        error = np.abs(x) @ ey.T + ex @ (np.abs(y) + ey).T
        blocks = -(-x.shape[1] // BLOCK)
        size = (np.abs(x) + ex) @ (np.abs(y) + ey).T
        error = error + 1.01 * blocks * 2.0**-14 * size + blocks * 2.0**-62
        return _pair(middle - error, middle + error)

    @staticmethod
    def _around(a: Array) -> tuple[F64, F64]:
        """Middle and distance: half the interval, the store to FP16 already in it, and the quantiser."""
        half = (a[1] - a[0]) / 2
        return (a[0] + a[1]) / 2, half * (1 + 2.0**-50) + quantisation_error(_magnitude(a))

    def lane(self, kind: str, args: list[Array]) -> Array:
        """The operation on every choice of operands."""
        return _LANES[kind](*args)

    def store(self, made: Array, value: Value, *, product: bool) -> Array:
        """The rounding of a store; lane operations have theirs already."""
        if value.dtype != "fp16":
            return made
        least = np.abs(made).min(axis=0)
        absolute = np.where(least < 2.0**-13, 2.0**-14, 2.0**-25) if product else 2.0**-25
        wide = _widen(made[0], made[1], 2.0**-11 * 1.001, absolute)
        return np.asarray(np.clip(wide, -FP16.max_fin, FP16.max_fin))


def bounds(graph: Graph, operands: Mapping[str, F16]) -> dict[str, Array]:
    """[2][M][N] for every output: lower and upper ends, NaN where nothing bounds an element."""
    return outputs(graph, evaluate(graph, operands, Intervals()))
