# SPDX-License-Identifier: Apache-2.0
"""The four base-2 seeds of the vector lane (docs/spec/numerics.md section 10).

Operands and results are E8M15 codes in uint32, any shape.
"""

from __future__ import annotations

import numpy as np

from .bits import I64, U32
from .e8m15_codes import MINUS_INF, NAN, PLUS_INF, Bool, Codes, codes, pack
from .seed_tables import SEED_ROWS

LAYER = "leaf"

EXP2, LOG2, INV, RSQRT = range(4)
_SEGMENTS = 32
_WEIGHT = -20
"""Weight of a polynomial result."""
_UNIT = 1 << -_WEIGHT

_TABLE: I64 = np.array(SEED_ROWS, dtype=np.int64)
"""(160, 3): c0, c1, c2; function f starts at row 32*f, rsqrt has 64 rows."""


def _poly(f: int, segment: I64, u: I64, exact: Bool, extra: I64 | int) -> I64:
    """Segment polynomial at u * 2**-12, weight 2**-20; where `exact` the constant term is f(0) itself."""
    row: I64 = _TABLE[_SEGMENTS * f + segment]
    c0: I64 = np.where(exact, 0 if f in (EXP2, LOG2) else _UNIT, row[..., 0])
    h = (row[..., 2] * u + (row[..., 1] << 16) + 0x8000) >> 16
    value: I64 = (h * u + ((c0 + extra) << 16) + 0x8000) >> 16
    return value


def _fields(code: Codes) -> tuple[I64, I64, I64, I64, Bool]:
    """(code, sign, exponent, fraction, is NaN)."""
    c = codes(code)
    return c, c >> 23 & 1, c >> 15 & 255, c & 0x7FFF, (c & 0x7FFFFF) > PLUS_INF


def exp2(code: Codes) -> U32:
    """VEXP2: 2**a."""
    _, s, e, m, nan = _fields(code)
    shift = np.minimum(134 - np.minimum(e, 133), 26)
    w = ((m | 0x8000) << 10) >> shift
    r = (w >> 1) + (w & 1)
    r = np.where(s == 1, -r, r)
    k, f = r >> 17, r & 0x1FFFF
    mag = _poly(EXP2, f >> 12, f & 0xFFF, f == 0, _UNIT)
    out = pack(np.zeros_like(s), mag, k + _WEIGHT)
    out = np.where(e >= 134, np.where(s == 1, 0, PLUS_INF), out)
    return np.where(nan, NAN, out).astype(np.uint32)


def log2(code: Codes) -> U32:
    """VLOG2: log2(a); NaN for negative operands, -infinity for a zero."""
    _, s, e, m, nan = _fields(code)
    v = _poly(LOG2, m >> 10, (m & 0x3FF) << 2, m == 0, (e - 127) << 20)
    sign = (v < 0).astype(np.int64)
    out = pack(sign, np.maximum(np.abs(v), 1), np.full_like(v, _WEIGHT))
    out = np.where(v == 0, 0, out)
    out = np.where(e == 255, PLUS_INF, out)
    out = np.where(e == 0, MINUS_INF, np.where(s == 1, NAN, out))
    return np.where(nan, NAN, out).astype(np.uint32)


def inv(code: Codes) -> U32:
    """VINV: 1/a."""
    _, s, e, m, nan = _fields(code)
    mag = _poly(INV, m >> 10, (m & 0x3FF) << 2, m == 0, 0)
    out = pack(s, mag, 127 - e + _WEIGHT)
    out = np.where(e == 0, (s << 23) | PLUS_INF, np.where(e == 255, s << 23, out))
    return np.where(nan, NAN, out).astype(np.uint32)


def rsqrt(code: Codes) -> U32:
    """VRSQRT: 1/sqrt(a); NaN for negative operands, +infinity for a zero."""
    _, s, e, m, nan = _fields(code)
    k, odd = (e - 127) >> 1, (e - 127) & 1
    mag = _poly(RSQRT, _SEGMENTS * odd + (m >> 10), (m & 0x3FF) << 2, (m == 0) & (odd == 0), 0)
    out = pack(np.zeros_like(s), mag, _WEIGHT - k)
    out = np.where(e == 255, 0, out)
    out = np.where(e == 0, PLUS_INF, np.where(s == 1, NAN, out))
    return np.where(nan, NAN, out).astype(np.uint32)


SEEDS = (exp2, log2, inv, rsqrt)
"""In opcode order, 0x0E..0x11."""
