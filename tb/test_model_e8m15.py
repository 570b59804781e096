# SPDX-License-Identifier: Apache-2.0
"""The vector lane of the numpy model: multiply-add, opcodes and reductions (docs/spec/numerics.md 8, 9, 11).

Published vectors, the check values of docs/spec/vector.md 12.6, and two exact routes: rational scalars, and
error-free float64 sums for the large sweeps. The four functions have their tests in test_model_e8m15_seeds.py,
conversions theirs in test_model_numerics.py.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import numpy as np
import pytest

from kohakubench import witness_e8m15 as witness
from kohakubench.numeric_vectors import SWEEP, VECTORS, vectors
from kohakutpu.isa.generated import Reduction, VectorOp
from kohakutpu.model import numerics as num

pytestmark = pytest.mark.unit

ISA = json.loads((VECTORS.parent / "vector_isa.json").read_text())
ARITHMETIC = [op for op in VectorOp if op <= VectorOp.VRSQRT]
FUSED = [op for op in VectorOp if op <= VectorOp.VCMPEQ]
SPECIAL = np.array(
    [
        *(0x000000, 0x3F8000, 0x7F8000, 0x7FC000, 0x7F8001, 0x7FFFFF, 0x008000, 0x008001, 0x7F7FFF),
        *(0x3F8001, 0x3F7FFF, 0x400000, 0x000001, 0x007FFF, 0x7F0000),
    ]
)
SPECIAL = np.r_[SPECIAL, SPECIAL | 0x800000]
"""Zeros (also with a fraction), ones and neighbours, infinities, NaNs, extreme normals, two; both signs."""

witness.load_table(ISA["seed_tables"]["rows"])


def exact(op: VectorOp, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Scalar witness over arrays."""
    rows = zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    return np.array([witness.lane(op, x, y, z) for x, y, z in rows], dtype=np.int64)


def same(op: VectorOp, a: np.ndarray, b: np.ndarray, c: np.ndarray, want: np.ndarray) -> None:
    """The model's result equals `want` everywhere; the first difference is shown."""
    got = num.lane(op, a, b, c).astype(np.int64)
    wrong = np.flatnonzero(got != want)
    if len(wrong):
        n = wrong[0]
        pytest.fail(
            f"{len(wrong)} of {len(want)} wrong: {op.name}({a[n]:06x}, {b[n]:06x}, {c[n]:06x}) = {got[n]:06x}, "
            f"exact {want[n]:06x}"
        )


def finite_codes(rng: np.random.Generator, n: int, low: int = 0, high: int = 254) -> np.ndarray:
    """Codes with exponents low..high and fractions that mix uniform, extreme and single-bit patterns."""
    kind = rng.integers(0, 6, n)
    m = rng.integers(0, 1 << 15, n)
    m = np.select([kind == 0, kind == 1, kind == 2], [0, 0x7FFF, 1 << rng.integers(0, 15, n)], m)
    return rng.integers(0, 2, n) << 23 | rng.integers(low, high + 1, n) << 15 | m


def triples(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Finite operands; for most the addend lies within 50 binades of the product."""
    a, b, c = (finite_codes(rng, n) for _ in range(3))
    near = (a >> 15 & 255) + (b >> 15 & 255) - 127 + rng.integers(-50, 51, n)
    near = np.where((near < 0) | (near > 254) | (rng.integers(0, 8, n) == 0), c >> 15 & 255, near)
    return a, b, c & 0x807FFF | near << 15


# ------------------------------------------------------------------ published values


def test_lane_examples_of_the_isa_tables() -> None:
    rows = ISA["examples"]["lane"]
    assert len(rows) > 100
    for row in rows:
        got = num.lane(VectorOp[row["op"]], *(int(row[k], 16) for k in "abc"))
        assert f"{int(got):06X}" == row["out"], row


def test_conversion_examples_of_the_isa_tables() -> None:
    functions: dict[str, Callable[[int], np.ndarray]] = {
        "F16_TO_E8": num.fp16_to_e8m15,
        "E8_TO_F16": num.e8m15_to_fp16,
        "F32_TO_E8": num.fp32_to_e8m15,
        "E8_TO_F32": num.e8m15_to_fp32,
    }
    rows = ISA["examples"]["convert"]
    assert {row["conv"] for row in rows} == set(functions)
    for row in rows:
        assert int(functions[row["conv"]](int(row["in"], 16))) == int(row["out"], 16), row


PAGE = [
    ("VMOV 800000", "000000"),
    ("VMOV FFC001", "7FC000"),
    ("VADD 3F8000 - 378000", "3F8000"),
    ("VADD 3F8001 - 378000", "3F8002"),
    ("VMUL 3F8003 3FC000", "3FC004"),
    ("VMUL 3F8001 3FC000", "3FC002"),
    ("VMUL 808000 3F0000", "800000"),
    ("VMUL 7F0000 7F0000", "7F8000"),
    ("VFMA 3F8001 3F8000 B78001", "3F8000"),
    ("VFMA 40A000 404000 C17000", "000000"),
    ("VFMA BF8000 3F8000 480000", "480000"),
    ("VMAX 7FC000 3F8000", "7FC000"),
    ("VMAX 3F8000 7FC000", "3F8000"),
    ("VEXP2 3F0000", "3FB505"),
    ("VEXP2 C0490F", "3DE814"),
    ("VEXP2 42FFFF", "7F7FA7"),
    ("VEXP2 430000", "7F8000"),
    ("VEXP2 C34800", "000000"),
    ("VLOG2 40490F", "3FD363"),
    ("VLOG2 3F7FFF", "B7C000"),
    ("VLOG2 008000", "C2FC00"),
    ("VINV 40400A", "3EAAA2"),
    ("VINV C0490F", "BEA2FA"),
    ("VINV 7F0000", "000000"),
    ("VRSQRT 400000", "3F3505"),
    ("VRSQRT 40490F", "3F106F"),
    ("VRSQRT 7F7FFF", "1F8000"),
]


@pytest.mark.parametrize(("call", "want"), PAGE)
def test_check_values_of_the_page(call: str, want: str) -> None:
    name, *operands = call.split()
    codes = [0 if text == "-" else int(text, 16) for text in operands] + [0, 0]
    assert f"{int(num.lane(VectorOp[name], *codes[:3])):06X}" == want


def test_conversion_check_values_of_the_page() -> None:
    assert num.e8m15_to_fp16([0x477FF0, 0x387FFF, 0x330001]).tolist() == [0x7BFF, 0x0400, 0x0001]
    assert num.fp16_to_e8m15([0x0001, 0x03FF, 0x7BFF]).tolist() == [0x338000, 0x387FC0, 0x477FE0]
    assert num.fp32_to_e8m15([0x3F800180, 0x7F7FFFFF, 0x80000001]).tolist() == [0x3F8002, 0x7F8000, 0x800000]


def test_fma_and_seed_vectors() -> None:
    cases = vectors("fma")["cases"]
    assert len(cases) >= 60
    for name, a, b, c, out, pred in cases:
        op = VectorOp["V" + name]
        got = int(num.lane(op, int(a, 16), int(b, 16), int(c, 16)))
        assert got == int(out, 16), (name, a, b, c)
        if name.startswith("CMP"):
            assert (got == witness.ONE) == bool(pred)
    cases = vectors("seeds")["cases"]
    assert len(cases) >= 60
    for name, a, out in cases:
        assert int(num.lane(VectorOp["V" + name], int(a, 16), 0, 0)) == int(out, 16), (name, a)


def codes_of(values: np.ndarray) -> np.ndarray:
    """E8M15 codes of numbers that have them exactly."""
    codes = num.fp32_to_e8m15(values.astype(np.float32).view(np.uint32))
    back = num.e8m15_to_fp32(codes).view(np.float32)
    assert np.array_equal(back, values)
    return codes


def test_reduction_examples() -> None:
    e = np.arange(128)
    a = codes_of(((37 * e % 101) - 50) / 8)
    b = codes_of((((53 * e + 7) % 97) - 48) / 16)
    rows = ISA["examples"]["reduce"]["rows"]
    assert {row["kind"] for row in rows} == {k.name for k in Reduction if k <= Reduction.EXPSUM}
    for row in rows:
        kind, vl = Reduction[row["kind"]], row["vl"]
        second = a if kind == Reduction.SUMSQ else b
        assert f"{num.reduce_elements(kind, a[:vl], second[:vl])[0]:06X}" == row["result"], row
    for case in vectors("reduce")["cases"]:
        va, vb, vd = ([int(x, 16) for x in case.get(k, "").split()] for k in ("va", "vb", "vd"))
        kind = Reduction[case["kind"]]
        result, leaves = num.reduce_elements(kind, va, vb or va)
        assert f"{result:06x}" == case["result"]
        assert (leaves is not None) == (kind == Reduction.EXPSUM)
        if leaves is not None:
            assert leaves.tolist() == vd


# ------------------------------------------------------------------ multiply-add


@pytest.mark.parametrize("op", FUSED, ids=lambda op: op.name)
def test_special_operands_in_every_combination(op: VectorOp) -> None:
    a, b, c = (grid.ravel() for grid in np.meshgrid(SPECIAL, SPECIAL, SPECIAL, indexing="ij"))
    same(op, a, b, c, exact(op, a, b, c))


def test_alignment_sweep() -> None:
    rng = np.random.default_rng(3)
    corner = np.r_[0, 1, 2, 3, 0x3FFF, 0x4000, 0x4001, 0x5555, 0x7FFE, 0x7FFF, 1 << np.arange(15)]
    m = rng.integers(0, 1 << 15, (3, 300))
    m[:, :200] = rng.choice(corner, (3, 200))
    signs = rng.integers(0, 2, (3, 300)) << 23
    for distance in range(-50, 51):
        # ec - (ea + eb - 127) = distance, in the middle of the exponent range and at both ends
        ea, eb = rng.integers(100, 150, 300), rng.integers(100, 150, 300)
        ec = ea + eb - 127 + distance
        a, b, c = (signs[n] | e << 15 | m[n] for n, e in enumerate((ea, eb, ec)))
        for op in (VectorOp.VFMA, VectorOp.VFNMA):
            same(op, a, b, c, exact(op, a, b, c))
        a = signs[0] | ea << 15 | m[0]
        c = signs[2] | (ea + distance) << 15 | m[2]
        for op in (VectorOp.VADD, VectorOp.VSUB):
            same(op, a, b, c, exact(op, a, b, c))


def test_exact_ties_with_a_zero_addend() -> None:
    # products whose low half is exactly a tie: (2^15 + x)(2^15 + y) = ...1000...
    m = np.arange(1 << 15)
    found = []
    for y in (0x4000, 0x2000, 0x6000, 0x1000, 0x7000):
        p = (m | 0x8000) * (y | 0x8000)
        width = np.where(p >> 31, 16, 15)
        tie = p % (1 << width) == 1 << (width - 1)
        found.append(np.stack([m[tie], np.full(int(tie.sum()), y), (p >> width)[tie] & 1]))
    x, y, parity = np.concatenate(found, axis=1)
    assert {0, 1} == set(parity.tolist())
    assert len(x) >= 1000
    for sign_a, sign_c in itertools.product((0, 1), repeat=2):
        a, b = sign_a << 23 | 127 << 15 | x, 127 << 15 | y
        c = np.full_like(a, sign_c << 23)
        for op in (VectorOp.VMUL, VectorOp.VFMA, VectorOp.VFNMA):
            same(op, a, b, c, exact(op, a, b, c))


def test_addend_bits_below_the_product_break_a_tie_downwards() -> None:
    # FMA(3F8001, 3F8000, B78001) and its family: the product less a half ulp and a little
    assert int(num.fma(0x3F8001, 0x3F8000, 0xB78001)) == 0x3F8000
    rng = np.random.default_rng(4)
    m = rng.integers(0, 1 << 15, 2000)
    low = rng.integers(1, 1 << 15, 2000)
    for distance in range(14, 20):
        a = np.r_[127 << 15 | m, 1 << 23 | 127 << 15 | m]
        c = (a ^ 0x800000) & 0x800000 | (127 - distance) << 15 | np.r_[low, low]
        b = np.full_like(a, 0x3F8000)
        same(VectorOp.VFMA, a, b, c, exact(VectorOp.VFMA, a, b, c))


def test_power_of_two_addend_eighteen_binades_above() -> None:
    rng = np.random.default_rng(5)
    x = rng.integers(0, 1 << 15, 3000)
    # a third anywhere, the rest as close to 2^31 from below and above as the first factor allows
    close = (1 << 31) // (x | 0x8000) + rng.integers(0, 2, 3000)
    y = np.r_[rng.integers(0, 1 << 15, 1000), (close[1000:] - 0x8000).clip(0, 0x7FFF)]
    products = (x | 0x8000) * (y | 0x8000)
    for close_by in ((products < 1 << 31), (products > 1 << 31)):
        assert (close_by & (np.abs(products - (1 << 31)) < 1 << 16)).sum() > 500
    for distance in (17, 18, 19):
        a, b = 127 << 15 | x, 127 << 15 | y
        c = np.full_like(a, 0x800000 | (127 + distance) << 15)
        same(VectorOp.VFMA, a, b, c, exact(VectorOp.VFMA, a, b, c))
    top = 0x800000 | (127 + 18) << 15
    assert int(num.fma(0x3FFFFF, 0x3FFFFF, top)) == top - 1
    assert int(num.fma(0x3F8000, 0x3F8000, top)) == top


def test_range_limits_after_rounding() -> None:
    rng = np.random.default_rng(6)
    ea = rng.integers(1, 255, 20000)
    for total in (-2, -1, 0, 1, 2, 253, 254, 255, 256):  # exponent of the product before rounding
        eb = total - ea + 127
        good = (eb >= 1) & (eb <= 254)
        m = np.where(rng.integers(0, 2, (2, 20000)) == 1, 0x7FFF - rng.integers(0, 4, (2, 20000)), 0)
        sign = rng.integers(0, 2, 20000) << 23
        a = (sign | ea << 15 | m[0])[good]
        b = (eb << 15 | m[1])[good]
        c = np.where(rng.integers(0, 2, len(a)) == 1, finite_codes(rng, len(a), 0, 3), 0)
        same(VectorOp.VFMA, a, b, c, exact(VectorOp.VFMA, a, b, c))


def test_a_million_random_triples() -> None:
    rng = np.random.default_rng(7)
    a, b, c = triples(rng, 1_000_000)
    same(VectorOp.VFMA, a, b, c, witness.fma_array(a, b, c))


def test_the_two_exact_routes_agree() -> None:
    a, b, c = triples(np.random.default_rng(8), 40_000)
    scalar = [witness.fma(x, y, z) for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)]
    assert witness.fma_array(a, b, c).tolist() == scalar
    assert exact(VectorOp.VFMA, a, b, c).tolist() == scalar


@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.name)
def test_random_operands_of_every_opcode(op: VectorOp) -> None:
    rng = np.random.default_rng(9)
    a, b, c = triples(rng, 4000)
    # equal and negated operands for the comparisons, all patterns for the rest
    b = np.where(rng.integers(0, 4, 4000) == 0, a ^ (rng.integers(0, 2, 4000) << 23), b)
    a[:1000], c[1000:2000] = rng.integers(0, 1 << 24, (2, 1000))
    same(op, a, b, c, exact(op, a, b, c))


@pytest.mark.slow
@pytest.mark.parametrize("op", ARITHMETIC, ids=lambda op: op.name)
def test_a_million_operands_of_every_opcode(op: VectorOp) -> None:
    rng = np.random.default_rng(10 + op)
    for first in range(0, SWEEP, 100_000):
        n = min(100_000, SWEEP - first)
        a, b, c = triples(rng, n) if first % 200_000 else rng.integers(0, 1 << 24, (3, n))
        same(op, a, b, c, exact(op, a, b, c))


def test_unknown_opcode_is_refused() -> None:
    with pytest.raises(ValueError, match="0x12"):
        num.lane(VectorOp.VCVT, 0, 0, 0)


# ------------------------------------------------------------------ reductions

KINDS = [kind for kind in Reduction if kind <= Reduction.EXPSUM]


def check_reduction(kind: Reduction, a: np.ndarray, b: np.ndarray) -> int:
    got, leaves = num.reduce_elements(kind, a, b)
    want, stored = witness.reduce(kind, a.tolist(), b.tolist())
    assert got == want, (kind.name, a.tolist())
    if kind == Reduction.EXPSUM:
        assert leaves is not None
        assert leaves.tolist() == stored
    return got


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("chunks", range(1, 9))
def test_reductions_at_every_length(kind: Reduction, chunks: int) -> None:
    rng = np.random.default_rng(chunks)
    n = 16 * chunks
    for low, high in ((120, 134), (0, 254), (1, 20)):
        a, b = finite_codes(rng, n, low, high), finite_codes(rng, n, low, high)
        check_reduction(kind, a, a if kind == Reduction.SUMSQ else b)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_specials_in_every_leaf(kind: Reduction) -> None:
    rng = np.random.default_rng(12)
    base = finite_codes(rng, 128, 120, 130)
    zeros = rng.integers(0, 2, 128) << 23
    check_reduction(kind, zeros, zeros)
    for e in range(128):
        for special in (0x7FC000, 0xFF8001, 0x7F8000):
            a = base.copy()
            a[e] = special
            check_reduction(kind, a, a)
        hot = np.zeros(128, dtype=int)
        hot[e] = 0x3F8000
        result = check_reduction(kind, hot, hot)
        if kind in (Reduction.SUM, Reduction.MAX, Reduction.SUMSQ, Reduction.DOT):
            assert result == 0x3F8000


def test_sum_depends_on_the_order_as_stated() -> None:
    big, one = 0x498000, 0x3F8000
    seen = set()
    for places in itertools.permutations((0, 1, 17), 3):
        a = np.zeros(32, dtype=int)
        a[list(places)] = [big, one, big | 0x800000]
        seen.add(check_reduction(Reduction.SUM, a, a))
    assert len(seen) == 2
    inf = np.full(16, 0x7F8000)
    inf[7] = 0xFF8000
    assert check_reduction(Reduction.SUM, inf, inf) == 0x7FC000


def test_reduction_arguments_are_checked() -> None:
    a = np.zeros(16, dtype=np.uint32)
    with pytest.raises(ValueError, match="15 elements"):
        num.reduce_elements(Reduction.SUM, a[:15])
    with pytest.raises(ValueError, match="second operand"):
        num.reduce_elements(Reduction.DOT, a)
    with pytest.raises(ValueError, match="kind 6"):
        num.reduce_elements(Reduction.ANY, a)
