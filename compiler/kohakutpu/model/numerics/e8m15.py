# SPDX-License-Identifier: Apache-2.0
"""The lane of the vector core: multiply-add and the opcodes built on it (docs/spec/numerics.md 8 and 9).

Values are E8M15 codes {S, E8, M15} in uint32, any shape; operands broadcast. Every function is pure.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .bits import I64, U32
from .e8m15_codes import MAGNITUDE, NAN, ONE, PLUS_INF, SIGN, ZERO, Bool, Codes, codes, is_nan, pack
from .e8m15_seeds import SEEDS

LAYER = "leaf"

# shifts of addend and product inside a 52-bit window: beyond them the smaller term is only a sticky bit
_ADDEND_SHIFT = 35
_PRODUCT_SHIFT = 18


def fma(a: Codes, b: Codes, c: Codes) -> U32:
    """a*b + c rounded once, to nearest, ties to even (section 8). Returns uint32."""
    x, y, z = np.broadcast_arrays(codes(a), codes(b), codes(c))
    ex, ey, ez = (x >> 15) & 255, (y >> 15) & 255, (z >> 15) & 255
    sp, sz = ((x ^ y) >> 23) & 1, (z >> 23) & 1
    zp, zz = (ex == 0) | (ey == 0), ez == 0

    product = ((x & 0x7FFF) | 0x8000) * ((y & 0x7FFF) | 0x8000)
    addend = (z & 0x7FFF) | 0x8000
    # binades by which the addend's unit lies above the product's
    d = np.where(zz, 0, ez - ex - ey + 142)
    up = np.clip(d, 0, _ADDEND_SHIFT)
    down = np.clip(-d, 0, _PRODUCT_SHIFT)
    big = np.where(d > _ADDEND_SHIFT, 1, product << down)
    small = np.where(zz, 0, np.where(d < -_PRODUCT_SHIFT, 1, addend << up))
    weight = np.where(d > _ADDEND_SHIFT, ez - 142 - _ADDEND_SHIFT, ex + ey - 284 - down)
    total = np.where(sp == 1, -big, big) + np.where(sz == 1, -small, small)
    out = pack((total < 0).astype(np.int64), np.maximum(np.abs(total), 1), weight)
    out = np.where(total == 0, np.uint32(0), out)

    out = np.where(zp, np.where(zz, z & SIGN, z), out)
    # infinities and NaNs; a NaN operand or an invalid operation overrides the rest
    ix, iy, iz = ((v & MAGNITUDE) == PLUS_INF for v in (x, y, z))
    ip = ix | iy
    out = np.where(iz, z, out)
    out = np.where(ip, (sp << 23) | PLUS_INF, out)
    bad = is_nan(x) | is_nan(y) | is_nan(z) | (ip & zp) | (ip & iz & (sp != sz))
    return np.where(bad, NAN, out).astype(np.uint32)


def compare(a: Codes, b: Codes) -> tuple[Bool, Bool, Bool]:
    """(a < b, a > b, a == b) on raw bits (section 9); all False with a NaN."""
    x, y = np.broadcast_arrays(codes(a), codes(b))
    ma, mb, sa, sb = x & MAGNITUDE, y & MAGNITUDE, x >> 23 & 1, y >> 23 & 1
    ordered = ~(is_nan(x) | is_nan(y))
    same = ((ma == 0) & (mb == 0)) | (x == y)
    below = np.where(sa != sb, sa == 1, np.where(sa == 1, ma > mb, ma < mb))
    lt = ordered & ~same & below
    return lt, ordered & ~same & ~lt, ordered & same


def _through(value: Codes) -> U32:
    """A move through the lane: zeros become +0, NaNs the canonical one."""
    return fma(value, ONE, ZERO)


def _bit(mask: Bool) -> U32:
    return np.where(mask, ONE, ZERO).astype(np.uint32)


def maximum(a: Codes, b: Codes) -> U32:
    """VMAX: b where a < b, else a."""
    return _through(np.where(compare(a, b)[0], codes(b), codes(a)))


def minimum(a: Codes, b: Codes) -> U32:
    """VMIN: b where a > b, else a."""
    return _through(np.where(compare(a, b)[1], codes(b), codes(a)))


def add(a: Codes, c: Codes) -> U32:
    """VADD."""
    return fma(a, ONE, c)


def multiply(a: Codes, b: Codes) -> U32:
    """VMUL."""
    return fma(a, b, ZERO)


_LANE: tuple[Callable[[I64, I64, I64], U32], ...] = (
    lambda a, b, c: _through(a),
    lambda a, b, c: _through(a ^ SIGN),
    lambda a, b, c: _through(a & MAGNITUDE),
    lambda a, b, c: add(a, c),
    lambda a, b, c: fma(a, ONE, c ^ SIGN),
    lambda a, b, c: multiply(a, b),
    fma,
    lambda a, b, c: fma(a ^ SIGN, b, c),
    lambda a, b, c: maximum(a, b),
    lambda a, b, c: minimum(a, b),
    lambda a, b, c: _through(np.where((c & MAGNITUDE) != 0, a, b)),
    lambda a, b, c: _bit(compare(a, b)[0]),
    lambda a, b, c: _bit(compare(a, b)[1]),
    lambda a, b, c: _bit(compare(a, b)[2]),
    *(lambda a, b, c, seed=seed: seed(a) for seed in SEEDS),
)

OPCODES = len(_LANE)
"""Number of arithmetic opcodes: 0..OPCODES-1."""


def lane(op: int, a: Codes, b: Codes, c: Codes) -> U32:
    """Result of arithmetic opcode `op` (0x00 VMOV .. 0x11 VRSQRT); operands it does not read are ignored.

    Raises ValueError for another opcode.
    """
    if not 0 <= op < OPCODES:
        raise ValueError(f"lane: opcode {op:#x} is no arithmetic opcode; 0..{OPCODES - 1:#x} are")
    return _LANE[op](codes(a), codes(b), codes(c))
