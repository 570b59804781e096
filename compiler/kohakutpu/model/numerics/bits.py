# SPDX-License-Identifier: Apache-2.0
"""Vectorised integer helpers shared by the arithmetic functions (docs/spec/numerics.md section 1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

LAYER = "leaf"

I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]
U16 = npt.NDArray[np.uint16]
U32 = npt.NDArray[np.uint32]
IntArray = npt.NDArray[Any]

_F64_EXP_SHIFT = 52
_F64_BIAS = 1023


def msb(m: I64) -> I64:
    """Index of the highest set bit of every positive element; undefined where the element is 0.

    m: int64, 0 <= m < 2**53, any shape. The exponent of the exactly converted double is the answer.
    """
    as_float: npt.NDArray[np.float64] = np.asarray(m, dtype=np.float64)
    raw: I64 = as_float.view(np.int64)
    exponent: I64 = (raw >> _F64_EXP_SHIFT) - _F64_BIAS
    return exponent


def rne_shift(m: I64, n: I64 | int) -> I64:
    """Round-to-nearest-even of m / 2**n, element by element.

    m: int64 >= 0 and < 2**61; n: int64 0..61, broadcast against m. Returns int64.
    """
    floor = m >> n
    rest = m - (floor << n)
    # twice the remainder against the divisor decides; n = 0 leaves rest = 0 and never rounds
    twice = rest << 1
    one = np.int64(1) << np.asarray(n, dtype=np.int64)
    rounded: I64 = floor + ((twice > one) | ((twice == one) & ((floor & 1) == 1)))
    return rounded


def round_rne(m: I64, p: int) -> tuple[I64, I64]:
    """Round positive integers to p significant bits, ties to even (`round_rne` of section 1).

    m: int64, 0 < m < 2**53. Returns (sig, msb): sig has exactly p bits, value ~ sig * 2**(msb-p+1).
    """
    top = msb(m)
    drop = top + 1 - p
    sig = rne_shift(m << np.maximum(-drop, 0), np.maximum(drop, 0))
    carry = sig >> p
    return sig >> carry, top + carry
