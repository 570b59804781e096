# SPDX-License-Identifier: Apache-2.0
"""E8M15 codes: constants, classes and the one rounding (docs/spec/numerics.md 2 and 8)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .bits import I64, U32, round_rne

LAYER = "leaf"

Bool = npt.NDArray[np.bool_]
Codes = npt.ArrayLike

ZERO = 0x000000
ONE = 0x3F8000
MINUS_ONE = 0xBF8000
NAN = 0x7FC000
PLUS_INF = 0x7F8000
MINUS_INF = 0xFF8000
SIGN = 0x800000
MAGNITUDE = 0x7FFFFF


def codes(code: Codes) -> I64:
    """Codes as int64."""
    return np.asarray(code, dtype=np.int64)


def is_nan(code: Codes) -> Bool:
    """True where the code is a NaN."""
    return (codes(code) & MAGNITUDE) > PLUS_INF


def pack(sign: I64, mag: I64, weight: I64) -> U32:
    """The number (-1)**sign * mag * 2**weight rounded to E8M15, ties to even.

    sign: 0 or 1; mag: int64, 0 < mag < 2**53; weight: int64. Too large gives infinity, too small (after
    rounding) a zero of the sign.
    """
    sig, top = round_rne(mag, 16)
    e = top + weight + 127
    body = np.where(e >= 255, PLUS_INF, np.where(e <= 0, 0, (e << 15) | (sig & 0x7FFF)))
    return ((sign << 23) | body).astype(np.uint32)
