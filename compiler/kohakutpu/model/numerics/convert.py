# SPDX-License-Identifier: Apache-2.0
"""Conversions of the vector lane: FP16, FP32 and E8M15 (docs/spec/numerics.md section 7).

Codes are unsigned integers: FP16 uint16, FP32 uint32, E8M15 uint32 with 24 used bits {S, E8, M15}.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .bits import U16, U32, msb, rne_shift
from .events import NumericEvents

LAYER = "leaf"

FP16_MAX = 0x7BFF
E8M15_INF = 0x7F8000


def fp16_to_e8m15(code: npt.ArrayLike) -> U32:
    """FP16 -> E8M15, exact; NaN payload and quiet bit are kept. Returns uint32."""
    h = np.asarray(code, dtype=np.int64)
    e = (h >> 10) & 31
    m = h & 0x3FF
    p = msb(np.maximum(m, 1))
    subnormal = ((103 + p) << 15) | ((m << (15 - p)) & 0x7FFF)
    value = np.where(e == 31, 255 << 15, (e + 112) << 15) | (m << 5)
    value = np.where(e == 0, np.where(m == 0, 0, subnormal), value)
    return (((h >> 15) << 23) | value).astype(np.uint32)


def e8m15_to_fp16(code: npt.ArrayLike, events: NumericEvents | None = None) -> U16:
    """E8M15 -> FP16, RNE with subnormals; finite values saturate at +-65504 (event FP16_SAT)."""
    c = np.asarray(code, dtype=np.int64)
    sign = ((c >> 23) & 1) << 15
    e = (c >> 15) & 0xFF
    m = c & 0x7FFF
    sig = m | 0x8000
    normal = ((e - 113) << 10) + rne_shift(sig, 5)
    # a right shift by 18 already leaves nothing but zero, sig < 2**16
    tiny = rne_shift(sig, np.clip(118 - e, 0, 18))
    r = np.where(e >= 113, normal, tiny)
    over = (r > FP16_MAX) & (e != 255)
    if events is not None:
        events.fp16_sat += int(np.count_nonzero(over))
    r = np.where(over, FP16_MAX, r)
    special = np.where(m == 0, 0x7C00, 0x7E00 | ((m >> 5) & 0x1FF))
    r = np.where(e == 255, special, np.where(e == 0, 0, r))
    return (sign | r).astype(np.uint16)


def fp32_to_e8m15(code: npt.ArrayLike) -> U32:
    """FP32 -> E8M15: RNE, rounding may reach Inf, subnormals flush to signed zero, NaN is quieted."""
    w = np.asarray(code, dtype=np.int64)
    sign = (w >> 31) << 23
    e = (w >> 23) & 0xFF
    m = w & 0x7FFFFF
    r = np.minimum((e << 15) + rne_shift(m, 8), E8M15_INF)
    nan = E8M15_INF | 0x4000 | ((m >> 8) & 0x3FFF)
    r = np.where(e == 255, np.where(m == 0, E8M15_INF, nan), np.where(e == 0, 0, r))
    return (sign | r).astype(np.uint32)


def e8m15_to_fp32(code: npt.ArrayLike) -> U32:
    """E8M15 -> FP32, exact: zero keeps its sign only, everything else gains eight zero bits."""
    c = np.asarray(code, dtype=np.uint32) & np.uint32(0xFFFFFF)
    zero = ((c >> 15) & 0xFF) == 0
    return np.where(zero, c & np.uint32(0x800000), c) << np.uint32(8)
