# SPDX-License-Identifier: Apache-2.0
"""Witness for the lane arithmetic of docs/spec/vector.md 12, written from its mathematics.

Scalars are exact: a finite operand is a rational number, the result is rounded once from the exact value.
`fma_array` is a second exact route for millions of cases: float64 holds the product and the addend exactly, and
the error of their sum is recovered exactly. Nothing here is shared with the model. Codes are plain ints.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from kohakubench.witness_numerics import e8m15_round, e8m15_value

NAN = 0x7FC000
INF = 0x7F8000
SIGN = 0x800000
ONE = 0x3F8000


def is_nan(code: int) -> bool:
    return code & 0x7FFFFF > INF


def is_inf(code: int) -> bool:
    return code & 0x7FFFFF == INF


def is_zero(code: int) -> bool:
    return code >> 15 & 255 == 0


def value(code: int) -> Fraction:
    """Value of a finite code."""
    v = e8m15_value(code)
    assert v is not None, f"{code:06x} is not finite"
    return v


def rounded(v: Fraction) -> int:
    """Code of v != 0, to nearest even at 16 bits, the range looked at afterwards."""
    return (SIGN if v < 0 else 0) | e8m15_round(abs(v))


def fma(a: int, b: int, c: int) -> int:
    """a*b + c with one rounding."""
    if is_nan(a) or is_nan(b) or is_nan(c):
        return NAN
    sign = (a ^ b) & SIGN
    if is_inf(a) or is_inf(b):
        if is_zero(a) or is_zero(b) or (is_inf(c) and c & SIGN != sign):
            return NAN
        return sign | INF
    if is_inf(c):
        return c
    if is_zero(a) or is_zero(b):
        return c & SIGN if is_zero(c) else c
    v = value(a) * value(b) + value(c)
    return rounded(v) if v else 0


def fma_int(a: int, b: int, c: int) -> int:
    """`fma` on integers alone: everything over the common unit 2**-300. Faster than fractions."""
    if is_nan(a) or is_nan(b) or is_nan(c) or is_inf(a) or is_inf(b) or is_inf(c) or is_zero(a) or is_zero(b):
        return fma(a, b, c)
    ea, eb, ec = a >> 15 & 255, b >> 15 & 255, c >> 15 & 255
    v = (a & 0x7FFF | 0x8000) * (b & 0x7FFF | 0x8000) << (ea + eb + 16)
    if (a ^ b) & SIGN:
        v = -v
    if ec:
        addend = (c & 0x7FFF | 0x8000) << (ec + 158)
        v += -addend if c & SIGN else addend
    if v == 0:
        return 0
    sign, mag = (SIGN, -v) if v < 0 else (0, v)
    drop = mag.bit_length() - 16
    sig, rest = mag >> drop, mag & (1 << drop) - 1
    half = 1 << (drop - 1)
    if rest > half or (rest == half and sig & 1):
        sig += 1
    n = drop + 15 - 300
    if sig == 1 << 16:
        n += 1
    if n > 127:
        return sign | INF
    return sign if n < -126 else sign | (n + 127) << 15 | sig & 0x7FFF


def fma_array(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """`fma` of finite operands (exponents below 255), exact through float64 (int64 arrays)."""
    x, y, z = (_float(v) for v in (a, b, c))
    p = x * y  # 32 significand bits: exact
    s = p + z
    back = s - p
    error = (p - (s - back)) + (z - back)  # s + error is the exact sum
    fraction, exponent = np.frexp(np.abs(s))
    scaled = np.ldexp(fraction, 16)
    floor = np.floor(scaled)
    rest = scaled - floor
    away = np.sign(error) * np.sign(s)  # the exact magnitude lies above (+1) or below (-1) that of s
    up = (rest > 0.5) | ((rest == 0.5) & ((away > 0) | ((away == 0) & (floor % 2 == 1))))
    sig = floor.astype(np.int64) + up
    n = exponent.astype(np.int64) - 1 + (sig >> 16)
    body = np.where(n > 127, INF, np.where(n < -126, 0, (n + 127) << 15 | sig & 0x7FFF))
    sign = np.where(s < 0, SIGN, 0)
    # zero product: the addend with its own sign; cancellation: +0
    zero_product = (x == 0) | (y == 0)
    plain = np.where(z == 0, c & SIGN, c)
    return np.where(zero_product, plain, np.where(s == 0, 0, sign | body))


def _float(code: np.ndarray) -> np.ndarray:
    e = code >> 15 & 255
    mag = np.where(e == 0, 0.0, np.ldexp((code & 0x7FFF | 0x8000).astype(np.float64), e - 142))
    return np.where(code & SIGN, -mag, mag)


# ---------------------------------------------------------------- opcodes


def less(a: int, b: int) -> bool:
    """Order of the represented values on raw bits; a zero with a fraction lies above zero."""
    if is_nan(a) or is_nan(b):
        return False
    rank_a, rank_b = (-(v & 0x7FFFFF) if v & SIGN else v & 0x7FFFFF for v in (a, b))
    return rank_a < rank_b


def equal(a: int, b: int) -> bool:
    return not (is_nan(a) or is_nan(b)) and not less(a, b) and not less(b, a)


def move(a: int) -> int:
    return NAN if is_nan(a) else 0 if is_zero(a) else a


def lane(op: int, a: int, b: int, c: int) -> int:
    """Result of arithmetic opcode `op`."""
    match op:
        case 0x00:
            return move(a)
        case 0x01:
            return move(a ^ SIGN)
        case 0x02:
            return move(a & ~SIGN)
        case 0x03:
            return fma_int(a, ONE, c)
        case 0x04:
            return fma_int(a, ONE, c ^ SIGN)
        case 0x05:
            return fma_int(a, b, 0)
        case 0x06:
            return fma_int(a, b, c)
        case 0x07:
            return fma_int(a ^ SIGN, b, c)
        case 0x08:
            return move(b if less(a, b) else a)
        case 0x09:
            return move(b if less(b, a) else a)
        case 0x0A:
            return move(a if c & 0x7FFFFF else b)
        case 0x0B:
            return ONE if less(a, b) else 0
        case 0x0C:
            return ONE if less(b, a) else 0
        case 0x0D:
            return ONE if equal(a, b) else 0
        case 0x0E | 0x0F | 0x10 | 0x11:
            return (exp2, log2, inv, rsqrt)[op - 0x0E](a)
    raise ValueError(f"{op:#x} is no arithmetic opcode")


# ---------------------------------------------------------------- seeds

Table = dict[tuple[int, int], tuple[int, int, int]]
TABLE: Table = {}
"""(function, entry) -> c0, c1, c2; the test that uses the seeds loads it with the rows of the JSON."""


def load_table(rows: list[list[int]]) -> None:
    TABLE.clear()
    TABLE.update({(f, i): (c0, c1, c2) for f, i, c0, c1, c2 in rows})


def _poly(key: tuple[int, int], u: int, start: int | None, extra: int) -> Fraction:
    """Segment polynomial in units of 2**-20; both steps round half up, the first to 2**-24."""
    c0, c1, c2 = TABLE[key]
    c0 = c0 if start is None else start
    h = (Fraction(c2 * u, 1 << 16) + c1 + Fraction(1, 2)).__floor__()
    return Fraction((Fraction(h * u, 1 << 16) + c0 + extra + Fraction(1, 2)).__floor__(), 1 << 20)


def exp2(a: int) -> int:
    if is_nan(a):
        return NAN
    if a >> 15 & 255 >= 134:
        return 0 if a & SIGN else INF
    # the operand is cut to 2**-18 below the binade limit, then rounded half up in magnitude to 2**-17
    e = a >> 15 & 255
    steps = int(Fraction(a & 0x7FFF | 0x8000) * Fraction(2) ** (e - 124)) if e else 0
    r = (steps + 1) // 2
    if a & SIGN:
        r = -r
    whole, f = r // (1 << 17), r % (1 << 17)
    mag = _poly((0, f >> 12), f & 0xFFF, 0 if f == 0 else None, 1 << 20)
    return rounded(mag * Fraction(2) ** whole)


def log2(a: int) -> int:
    if is_nan(a) or (a & SIGN and not is_zero(a)):
        return NAN
    if is_zero(a):
        return SIGN | INF
    if is_inf(a):
        return INF
    m = a & 0x7FFF
    v = _poly((1, m >> 10), (m & 0x3FF) * 4, 0 if m == 0 else None, ((a >> 15) - 127) << 20)
    return rounded(v) if v else 0


def inv(a: int) -> int:
    if is_nan(a):
        return NAN
    if is_zero(a):
        return a & SIGN | INF
    if is_inf(a):
        return a & SIGN
    m, e = a & 0x7FFF, a >> 15 & 255
    mag = _poly((2, m >> 10), (m & 0x3FF) * 4, 1 << 20 if m == 0 else None, 0)
    v = mag * Fraction(2) ** (127 - e)
    return rounded(-v if a & SIGN else v)


def rsqrt(a: int) -> int:
    if is_nan(a) or (a & SIGN and not is_zero(a)):
        return NAN
    if is_zero(a):
        return INF
    if is_inf(a):
        return 0
    m, e = a & 0x7FFF, (a >> 15) - 127
    odd = e % 2
    mag = _poly((3, 32 * odd + (m >> 10)), (m & 0x3FF) * 4, 1 << 20 if m == 0 and not odd else None, 0)
    return rounded(mag * Fraction(2) ** -((e - odd) // 2))


# ---------------------------------------------------------------- reductions


def reduce(kind: int, a: list[int], b: list[int]) -> tuple[int, list[int]]:
    """(result, leaves) of reduction 0..5 as the loop of docs/spec/vector.md 7.4 runs."""

    def comb(x: int, y: int) -> int:
        if kind == 1:
            return lane(0x08, x, y, 0)
        if kind == 2:
            return lane(0x09, x, y, 0)
        return lane(0x03, x, 0, y)

    def tree8(leaf: list[int]) -> int:
        return comb(
            comb(comb(leaf[0], leaf[1]), comb(leaf[2], leaf[3])),
            comb(comb(leaf[4], leaf[5]), comb(leaf[6], leaf[7])),
        )

    ident = {1: SIGN | INF, 2: INF}.get(kind, 0)
    acc = [ident] * 16
    k = 0
    stored = []
    for c in range(len(a) // 16):
        if kind <= 2:
            pairs = [comb(a[16 * c + 2 * j], a[16 * c + 2 * j + 1]) for j in range(8)]
            acc[k] = comb(tree8(pairs), acc[k])
            k += 1
            continue
        for p in range(2):
            places = [16 * c + 8 * p + j for j in range(8)]
            leaf = [exp2(a[e]) if kind == 5 else lane(0x05, a[e], b[e], 0) for e in places]
            stored += leaf
            acc[k] = comb(tree8(leaf), acc[k])
            k += 1
    return tree8([comb(acc[2 * j], acc[2 * j + 1]) for j in range(8)]), stored


# ---------------------------------------------------------------- conversions


def clamps(code: int) -> bool:
    """True for a finite value that rounds beyond the FP16 range: 65520 and above."""
    return not is_nan(code) and not is_inf(code) and abs(value(code)) >= 65520
