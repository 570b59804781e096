# SPDX-License-Identifier: Apache-2.0
"""Block dot product and accumulator float ACC(MW) (docs/spec/numerics.md sections 4, 5 and 6).

ACC codes are uint32 arrays holding MW+8 bits: sign, 7-bit exponent (bias 63), MW-bit fraction. Exponent 0 is
zero whatever the other bits say; every zero produced here is the all-zero code.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .bits import I64, U8, U16, U32, IntArray, msb, rne_shift, round_rne
from .events import NumericEvents

LAYER = "leaf"

ACC_MW_DEFAULT = 14
ACC_MW_SUPPORTED = (10, 11, 12, 14, 16)
ANCHOR_MXFP7 = 40
BIAS = 63
TILE_VALUES = 16
"""Values of one sub-tile, index 4*i + j."""
GRANULE_BITS = 256
GUARD = 8
FP16_MAX = 0x7BFF


def check_mw(mw: int) -> int:
    """Return mw if ACC(mw) is a supported build, else raise ValueError."""
    if mw not in ACC_MW_SUPPORTED:
        raise ValueError(f"ACC_MW = {mw} is not supported; choose one of {ACC_MW_SUPPORTED}")
    return mw


def block_dot(qa: npt.ArrayLike, qb: npt.ArrayLike) -> I64:
    """Exact sums d[i][j] = sum_k qA[i][k] * qB[j][k] over one K block (section 4).

    qa, qb: integers -64..63, shape (..., rows, 32) and (..., columns, 32), entries indexed [lane, k].
    Returns int64 (..., rows, columns). Single precision is exact: every partial sum is an integer
    of magnitude <= 2**17.
    """
    a = np.asarray(qa, dtype=np.float32)
    b = np.asarray(qb, dtype=np.float32)
    sums: I64 = np.matmul(a, np.swapaxes(b, -1, -2)).astype(np.int64)
    return sums


def chain(
    d: npt.ArrayLike,
    scale_a: npt.ArrayLike,
    scale_b: npt.ArrayLike,
    anchor: int = ANCHOR_MXFP7,
    mw: int = ACC_MW_DEFAULT,
    *,
    events: NumericEvents | None = None,
) -> U32:
    """Block sums -> ACC codes (section 5.2; `norm` of docs/spec/cluster.md 6.1).

    d: exact sums, abs <= 2**17; scale_a, scale_b: scale fields 0..255, all three broadcast together;
    anchor 0..255. Returns uint32. Event: ACC_RANGE per nonzero value flushed or saturated.
    """
    d64 = np.asarray(d, dtype=np.int64)
    sa = np.asarray(scale_a, dtype=np.int64)
    sb = np.asarray(scale_b, dtype=np.int64)
    mag = np.abs(d64) * ((8 + (sa & 7)) * (8 + (sb & 7)))
    x = (sa >> 3) + (sb >> 3) + (BIAS - 6 - anchor)
    sig, top = round_rne(np.maximum(mag, 1), mw + 1)
    e = top + x
    nonzero = mag != 0
    low = e <= 0
    high = e >= 127
    sign = (d64 < 0).astype(np.int64) << (mw + 7)
    frac = (1 << mw) - 1
    code = sign | (e << mw) | (sig & frac)
    if low.any() or high.any():
        if events is not None:
            events.acc_range += int(np.count_nonzero(nonzero & (low | high)))
        code = np.where(low, 0, np.where(high, sign | (127 << mw) | frac, code))
    return np.where(nonzero, code, 0).astype(np.uint32)


def acc_add(
    x: npt.ArrayLike, y: npt.ArrayLike, mw: int = ACC_MW_DEFAULT, events: NumericEvents | None = None
) -> U32:
    """Accumulator addition with the contract exception on ties (section 5.3).

    x, y: ACC codes, broadcast together. Returns uint32. Event: ACC_OVF per saturated result.
    """
    # 32 bits hold every intermediate: the aligned sum has MW+10 <= 26 bits
    a = np.asarray(x).astype(np.int32)
    b = np.asarray(y).astype(np.int32)
    one = 1 << mw
    frac = one - 1
    magnitude = (1 << (mw + 7)) - 1
    swap = (a & magnitude) < (b & magnitude)
    big = np.where(swap, b, a)
    small = np.where(swap, a, b)
    eb = (big >> mw) & 127
    es = (small >> mw) & 127
    sign = big & (1 << (mw + 7))
    wide_b = ((big & frac) | one) << GUARD
    wide_s = ((small & frac) | one) << GUARD
    n = np.minimum(eb - es, mw + 9)
    shifted = wide_s >> n
    lost = (shifted << n) != wide_s
    same = ((big ^ small) >> (mw + 7)) == 0
    r = np.where(same, wide_b + shifted, wide_b - shifted)
    cancelled = r == 0
    p = msb(np.maximum(r, 1)).astype(np.int32)
    r = r << (mw + 9 - p)
    e = eb + p - (mw + 8)
    sig = r >> 9
    low9 = r & 0x1FF
    # g and (st or sig[0]) with g = bit 8: above the half, or on it with lost or an odd sig
    up = (low9 > 0x100) | ((low9 == 0x100) & (lost | ((sig & 1) == 1)))
    sig = sig + up
    carry = sig >> (mw + 1)
    e = e + carry
    code = sign | (e << mw) | ((sig >> carry) & frac)
    over = e >= 127
    both = es != 0
    if over.any():
        if events is not None:
            events.acc_ovf += int(np.count_nonzero(over & both & ~cancelled))
        code = np.where(over, sign | (127 << mw) | frac, code)
    code = np.where(cancelled | (e <= 0), 0, code)
    # a zero operand sorts as the smaller one, since its exponent field is 0
    return np.where(both, code, np.where(eb != 0, big, 0)).astype(np.uint32)


def canonical(code: npt.ArrayLike, mw: int = ACC_MW_DEFAULT) -> U32:
    """The code as SEND, EMIT and ADD_PEER see it: exponent 0 reads as the all-zero code (5.4)."""
    c = np.asarray(code, dtype=np.uint32)
    return np.where((c >> mw) & 127, c, 0).astype(np.uint32)


def to_fp16(code: npt.ArrayLike, mw: int = ACC_MW_DEFAULT, events: NumericEvents | None = None) -> U16:
    """ACC codes -> FP16 codes as EMIT hands them out (section 5.6).

    No FP16 subnormal is produced; overflow saturates at +-65504. Event: FP16_SAT per saturation.
    Returns uint16.
    """
    c = np.asarray(code, dtype=np.int64)
    sign = ((c >> (mw + 7)) & 1) << 15
    e = (c >> mw) & 127
    f = rne_shift(c & ((1 << mw) - 1), mw - 10)
    carry = f >> 10
    q = e - 48 + carry
    value = (q << 10) | (f & 0x3FF)
    over = q >= 31
    if over.any():
        if events is not None:
            events.fp16_sat += int(np.count_nonzero(over))
        value = np.where(over, FP16_MAX, value)
    return (sign | np.where((q <= 0) | (e == 0), 0, value)).astype(np.uint16)


def to_e8m15(code: npt.ArrayLike, mw: int = ACC_MW_DEFAULT) -> U32:
    """ACC codes -> E8M15 (section 5.7): saturation becomes NaN, {S, 127, 0} becomes infinity."""
    c = np.asarray(code, dtype=np.int64)
    sign = ((c >> (mw + 7)) & 1) << 23
    e = (c >> mw) & 127
    f = c & ((1 << mw) - 1)
    if mw <= 15:
        payload = f << (15 - mw)
        finite = ((e + 64) << 15) | payload
    else:
        payload = f >> (mw - 15)
        finite = ((e + 64) << 15) + rne_shift(f, mw - 15)
    payload = np.where((f != 0) & (payload == 0), 1, payload)
    value = np.where(e == 127, (0xFF << 15) | payload, finite)
    return (sign | np.where(e == 0, 0, value)).astype(np.uint32)


def to_float64(code: npt.ArrayLike, mw: int = ACC_MW_DEFAULT) -> npt.NDArray[np.float64]:
    """Exact values of ACC codes as float64 (section 5.1)."""
    c = np.asarray(code, dtype=np.int64)
    e = (c >> mw) & 127
    mant = np.where(e == 0, 0, (c & ((1 << mw) - 1)) | (1 << mw)).astype(np.float64)
    value = np.ldexp(mant, (e - BIAS - mw).astype(np.int32))
    return np.where((c >> (mw + 7)) & 1, -value, value)


def send_granules(tiles: IntArray, mw: int = ACC_MW_DEFAULT) -> U8:
    """SEND form of sub-tiles (section 5.5).

    tiles: ACC codes (n, 16). Returns uint8 (2n, 32): granules 2t and 2t+1 of sub-tile t.
    """
    w = mw + 8
    codes = canonical(tiles, mw).astype("<u4")
    bits = np.unpackbits(codes.view(np.uint8).reshape(*codes.shape, 4), axis=-1, bitorder="little")
    vector = bits[..., :w].reshape(codes.shape[0], TILE_VALUES * w)
    padded = np.zeros((codes.shape[0], 2 * GRANULE_BITS), dtype=np.uint8)
    padded[:, : TILE_VALUES * w] = vector
    return np.packbits(padded, axis=-1, bitorder="little").reshape(-1, GRANULE_BITS // 8)


def receive_granules(granules: U8, mw: int = ACC_MW_DEFAULT) -> U32:
    """Codes carried by SEND granules, padding ignored: uint8 (2n, 32) -> uint32 (n, 16)."""
    w = mw + 8
    bits = np.unpackbits(granules.reshape(-1, 64), axis=-1, bitorder="little")
    codes = bits[:, : TILE_VALUES * w].reshape(-1, TILE_VALUES, w)
    full = np.zeros((*codes.shape[:2], 32), dtype=np.uint8)
    full[..., :w] = codes
    return np.packbits(full, axis=-1, bitorder="little").view("<u4")[..., 0].astype(np.uint32)


def emit_words(tiles: IntArray, mw: int = ACC_MW_DEFAULT, events: NumericEvents | None = None) -> U8:
    """EMIT form of sub-tiles: ACC codes (n, 16) -> uint8 (n, 32), 16 FP16 each, value g at 2g."""
    fp16 = to_fp16(tiles, mw, events)
    return np.ascontiguousarray(fp16.astype("<u2")).view(np.uint8).reshape(-1, GRANULE_BITS // 8)
