# SPDX-License-Identifier: Apache-2.0
"""Scalar witness for the arithmetic of docs/spec/numerics.md, written from its mathematics.

Where the reference model follows the page's bit algorithms on arrays, this file computes the exact value as a
rational number and rounds it once, to nearest even, with an exponent taken from the value. It shares no code
with the model and serves tests only. Codes are plain ints.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import ceil

RECIPROCAL = {8: 4096, 9: 3641, 10: 3277, 11: 2979, 12: 2731, 13: 2520, 14: 2341, 15: 2185}


def floor_log2(v: Fraction) -> int:
    """Largest n with 2**n <= v, v > 0."""
    n = v.numerator.bit_length() - v.denominator.bit_length()
    return n if Fraction(2) ** n <= v else n - 1


def nearest_even(v: Fraction) -> int:
    """Integer nearest to v >= 0, ties to even. Python's round() of a Fraction is exactly that."""
    return round(v)


# ---------------------------------------------------------------- FP16 and FP32


def fp16_value(code: int) -> Fraction | None:
    """Value of an FP16 code, None for Inf and NaN."""
    e, m = (code >> 10) & 31, code & 0x3FF
    if e == 31:
        return None
    mag = Fraction(m, 1 << 24) if e == 0 else Fraction(1024 + m, 1024) * Fraction(2) ** (e - 15)
    return -mag if code >> 15 else mag


@cache
def _peak_magnitude(code: int) -> Fraction:
    """Quantiser view of an FP16 magnitude: exponent 31 is the binade 2**16."""
    e, m = (code >> 10) & 31, code & 0x3FF
    return Fraction(m, 1 << 24) if e == 0 else Fraction(1024 + m, 1024) * Fraction(2) ** (e - 15)


# ---------------------------------------------------------------- quantiser


def quantise_lane(codes: list[int]) -> tuple[list[int], int]:
    """One lane of 32 FP16 codes -> (q, scale field), section 3.2 read as real arithmetic.

    The scale is the smallest m8/8 * 2**es (m8 an integer relative to the peak's binade) that holds the
    peak in 63 steps; an element is the nearest multiple of 2**-16 * R(m8) * 2**-es, halves away from zero.
    """
    peak = max(_peak_magnitude(c & 0x7FFF) for c in codes)
    if peak == 0:
        return [0] * 32, 0xA0
    binade = floor_log2(peak)
    # peak significand as the 11-bit number of the page, times 2 for the 126 = 2 * 63 steps
    m8 = ceil(peak / Fraction(2) ** (binade - 10) / 126)
    es = binade - 6
    if m8 >= 16:
        m8, es = (8, es + 1) if m8 == 16 else (9, es + 1)
    es = min(max(es, -20), 11)
    out = []
    for c in codes:
        mag = _peak_magnitude(c & 0x7FFF)
        if not mag:
            out.append(0)
            continue
        steps = mag / Fraction(2) ** es * Fraction(RECIPROCAL[m8], 4096)
        q = min(63, int(steps + Fraction(1, 2)))
        out.append(-q if c >> 15 else q)
    return out, (es + 20) << 3 | (m8 - 8)


def pack_entry(q: list[list[int]], scale: list[int], layout_b: bool) -> tuple[list[int], int]:
    """(four 256-bit words, 928-bit L1 entry) of elements q[lane][k], sections 3.3 and 3.4."""
    words = [0, 0, 0, 0]
    l1 = 0
    for lane in range(4):
        l1 |= scale[lane] << (896 + 8 * lane)
        for w in range(4):
            words[w] |= scale[lane] << (24 - 8 * lane)
        for k in range(32):
            v = q[lane][k] % 128
            kk = k % 8
            slot = kk * 4 + lane if layout_b else lane * 8 + kk
            words[k // 8] |= v << (249 - 7 * slot)
            l1 |= v << (7 * (k * 4 + lane if layout_b else lane * 32 + k))
    return words, l1


# ---------------------------------------------------------------- accumulator float


def acc_value(code: int, mw: int) -> Fraction:
    """Value of an ACC(mw) code; exponent 127 is an ordinary binade."""
    e, f = (code >> mw) & 127, code & ((1 << mw) - 1)
    if e == 0:
        return Fraction(0)
    mag = Fraction((1 << mw) + f, 1 << mw) * Fraction(2) ** (e - 63)
    return -mag if code >> (mw + 7) else mag


def acc_round(v: Fraction, mw: int) -> tuple[int, bool]:
    """(ACC code nearest to v, True if the exponent left the range 1..126)."""
    if v == 0:
        return 0, False
    sign = 1 if v < 0 else 0
    mag = abs(v)
    n = floor_log2(mag)
    sig = nearest_even(mag / Fraction(2) ** (n - mw))
    if sig == 1 << (mw + 1):
        sig, n = 1 << mw, n + 1
    e = n + 63
    if e <= 0:
        return 0, True
    if e >= 127:
        return sign << (mw + 7) | (128 << mw) - 1, True
    return sign << (mw + 7) | e << mw | sig - (1 << mw), False


def acc_chain(d: int, sa: int, sb: int, anchor: int, mw: int) -> int:
    """Block value: d * mA/8 * mB/8 * 2**(EA+EB-anchor), rounded once (section 5.2)."""
    m = Fraction((8 + (sa & 7)) * (8 + (sb & 7)), 64)
    return acc_round(d * m * Fraction(2) ** ((sa >> 3) + (sb >> 3) - anchor), mw)[0]


def contract_tie(x: int, y: int, mw: int) -> bool:
    """True where section 5.3 asks for one ulp more than the rounded difference.

    That is a subtraction whose smaller operand, cut at 2**-(mw+9) of the larger one's exponent step, loses
    bits, while the difference formed with the *cut* operand falls exactly on a rounding tie.
    """
    a, b = acc_value(x, mw), acc_value(y, mw)
    if a == 0 or b == 0 or (a < 0) == (b < 0):
        return False
    big, small = max(abs(a), abs(b)), min(abs(a), abs(b))
    e_big, e_small = floor_log2(big), floor_log2(small)
    step = Fraction(2) ** (e_big - mw - 8)
    cut = Fraction(0) if e_big - e_small >= mw + 9 else (small // step) * step
    if cut == small:
        return False
    r = big - cut
    if r == 0:
        return False
    ulp = Fraction(2) ** (floor_log2(r) - mw)
    return (r / ulp) % 1 == Fraction(1, 2)


def acc_add(x: int, y: int, mw: int) -> int:
    """Exact sum rounded to nearest even, plus the contract exception.

    On the exception the kept half (the true difference lies just below it) is rounded away from zero.
    """
    a, b = acc_value(x, mw), acc_value(y, mw)
    if a == 0 or b == 0:  # the other operand passes through, also from the top binade
        return y if a == 0 and b != 0 else x if b == 0 and a != 0 else 0
    s = a + b
    if contract_tie(x, y, mw):
        mag = abs(s)
        # the true value is just below the tie r; the ulp is that of r's binade
        sign = -1 if s < 0 else 1
        ulp = Fraction(2) ** (floor_log2(mag) - mw)
        up = -((-mag) // ulp) * ulp
        return acc_round(sign * up, mw)[0]
    return acc_round(s, mw)[0]


def acc_to_fp16(code: int, mw: int) -> int:
    """FP16 emitted for an ACC code: 11 significant bits, no subnormals, clamp at 65504 (5.6)."""
    sign = (code >> (mw + 7)) << 15
    mag = abs(acc_value(code, mw))
    if mag == 0:
        return sign
    n = floor_log2(mag)
    sig = nearest_even(mag / Fraction(2) ** (n - 10))
    if sig == 2048:
        sig, n = 1024, n + 1
    if n < -14:
        return sign
    if n > 15:
        return sign | 0x7BFF
    return sign | (n + 15) << 10 | sig - 1024


def acc_to_e8m15(code: int, mw: int) -> int:
    """E8M15 of an ACC code, section 5.7."""
    sign = (code >> (mw + 7)) << 23
    e, f = (code >> mw) & 127, code & ((1 << mw) - 1)
    if e == 0:
        return sign
    if e == 127:
        payload = int(Fraction(f) * Fraction(2) ** (15 - mw))
        return sign | 0xFF << 15 | (1 if f and not payload else payload)
    return sign | e8m15_round(abs(acc_value(code, mw)))


# ---------------------------------------------------------------- lane formats


def e8m15_value(code: int) -> Fraction | None:
    """Value of an E8M15 code, None for Inf and NaN."""
    e, m = (code >> 15) & 255, code & 0x7FFF
    if e == 255:
        return None
    mag = Fraction(0) if e == 0 else Fraction(0x8000 + m, 0x8000) * Fraction(2) ** (e - 127)
    return -mag if code >> 23 else mag


def e8m15_round(mag: Fraction) -> int:
    """Magnitude code nearest to mag > 0 (16 significant bits), Inf above, zero below the normals."""
    n = floor_log2(mag)
    sig = nearest_even(mag / Fraction(2) ** (n - 15))
    if sig == 1 << 16:
        sig, n = 1 << 15, n + 1
    if n + 127 >= 255:
        return 0x7F8000
    if n + 127 <= 0:
        return 0
    return (n + 127) << 15 | sig - 0x8000


def fp16_to_e8m15(code: int) -> int:
    """Exact; Inf and NaN keep their mantissa field."""
    sign = (code >> 15) << 23
    v = fp16_value(code)
    if v is None:
        return sign | 0xFF << 15 | (code & 0x3FF) << 5
    return sign | (e8m15_round(abs(v)) if v else 0)


def e8m15_to_fp16(code: int) -> int:
    """RNE on the grid of FP16 with subnormals, saturating."""
    sign = (code >> 23) << 15
    v = e8m15_value(code)
    if v is None:
        m = code & 0x7FFF
        return sign | (0x7C00 if m == 0 else 0x7E00 | (m >> 5) & 0x1FF)
    mag = abs(v)
    if mag == 0:
        return sign
    n = max(floor_log2(mag), -14)
    grid = nearest_even(mag / Fraction(2) ** (n - 10))  # 0..2048 steps of this binade
    return sign | min(0x7BFF, (n + 14) * 1024 + grid)


def fp32_to_e8m15(code: int) -> int:
    """RNE to 16 significant bits; subnormals become zero, NaN is quieted."""
    sign = (code >> 31) << 23
    e, m = (code >> 23) & 255, code & 0x7FFFFF
    if e == 255:
        return sign | (0x7F8000 if m == 0 else 0x7FC000 | (m >> 8) & 0x3FFF)
    if e == 0:
        return sign
    return sign | e8m15_round(Fraction(0x800000 + m, 0x800000) * Fraction(2) ** (e - 127))


def e8m15_to_fp32(code: int) -> int:
    """Exact; zero keeps its sign only."""
    return (code if (code >> 15) & 255 else code & 0x800000) << 8


def dot(qa: list[int], qb: list[int]) -> int:
    """Exact sum of one lane pair over a K block."""
    return sum(a * b for a, b in zip(qa, qb, strict=True))
