# SPDX-License-Identifier: Apache-2.0
"""The four seed functions of the numpy model: table, bits, identities and accuracy (docs/spec/numerics.md 10).

Bits against the rational scalar witness, accuracy against numpy's functions in float64.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from kohakubench import witness_e8m15 as witness
from kohakubench.numeric_vectors import VECTORS
from kohakutpu.gen import seeds as rule
from kohakutpu.isa.generated import VectorOp
from kohakutpu.model import numerics as num
from kohakutpu.model.numerics import e8m15_seeds
from kohakutpu.model.numerics.seed_tables import SEED_ROWS

pytestmark = pytest.mark.unit

ISA = json.loads((VECTORS.parent / "vector_isa.json").read_text())

witness.load_table(ISA["seed_tables"]["rows"])


def test_seed_tables_follow_from_their_rule() -> None:
    rows = rule.rows()
    assert rows == ISA["seed_tables"]["rows"]
    assert rule.digest(rows) == ISA["seed_tables"]["sha256"]
    assert [row[2:] for row in rows] == [list(row) for row in SEED_ROWS]
    table = np.array(SEED_ROWS, dtype="<i4")
    assert zlib.crc32(table.tobytes()) == 0xE7A5FBC5
    sums = [table[n : n + rows].sum(axis=0, dtype=int).tolist() for n, rows in ((0, 32), (32, 32), (64, 32), (96, 64))]
    assert sums == [
        [14331986, 16595431, 2907233],
        [18173798, 16966111, -3025284],
        [23522338, -8584881, 3145129],
        [47716782, -8533051, 2314008],
    ]
    assert not list(rule.problems(ISA["seed_tables"]))
    changed = {**ISA["seed_tables"], "rows": [[0, 0, 0, 1, 2], *rows[1:]]}
    assert len(list(rule.problems(changed))) == 2


def all_fractions(*exponents: int, signs: tuple[int, ...] = (0,)) -> np.ndarray:
    m = np.arange(1 << 15)
    return np.concatenate([s << 23 | e << 15 | m for s in signs for e in exponents])


def check_seed(op: VectorOp, codes: np.ndarray) -> None:
    """The model's result equals the rational witness everywhere; the first difference is shown."""
    got = num.lane(op, codes, codes, codes).astype(np.int64)
    want = np.array([witness.lane(op, code, code, code) for code in codes.tolist()])
    wrong = np.flatnonzero(got != want)
    if len(wrong):
        n = wrong[0]
        pytest.fail(f"{len(wrong)} of {len(want)} wrong: {op.name}({codes[n]:06x}) = {got[n]:06x}, exact {want[n]:06x}")


def codes_of(values: np.ndarray) -> np.ndarray:
    """E8M15 codes of numbers that have them exactly."""
    words = values.astype(np.float32).view(np.uint32)
    assert not (words & 0xFF).any()
    return words >> 8


def test_inv_and_rsqrt_of_every_mantissa() -> None:
    check_seed(VectorOp.VINV, all_fractions(127))
    check_seed(VectorOp.VINV, all_fractions(90, signs=(1,)))
    check_seed(VectorOp.VRSQRT, all_fractions(127, 128))


def test_inv_and_rsqrt_of_every_exponent() -> None:
    m = np.r_[0, 1, 2, 0x1FFF, 0x2000, 0x3FFF, 0x4000, 0x4001, 0x5555, 0x6000, 0x7000, 0x7FFC, 0x7FFD, 0x7FFE, 0x7FFF]
    codes = (np.arange(512)[:, None] << 15 | m[None]).ravel()
    for op in (VectorOp.VINV, VectorOp.VRSQRT, VectorOp.VLOG2, VectorOp.VEXP2):
        check_seed(op, codes)


@pytest.mark.parametrize("e", [100, 125, 126, 127, 128, 129, 150])
def test_log2_of_every_mantissa(e: int) -> None:
    check_seed(VectorOp.VLOG2, all_fractions(e))


def test_exp2_of_every_exponent() -> None:
    m = np.random.default_rng(11).choice(1 << 15, 1000, replace=False)
    for e in range(90, 141):
        codes = np.r_[e << 15 | m, 1 << 23 | e << 15 | m]
        check_seed(VectorOp.VEXP2, codes)


@pytest.mark.slow
@pytest.mark.parametrize("e", range(90, 141))
def test_exp2_of_every_mantissa(e: int) -> None:
    check_seed(VectorOp.VEXP2, all_fractions(e, signs=(0, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("e", range(120, 136))
def test_log2_of_every_mantissa_near_one(e: int) -> None:
    check_seed(VectorOp.VLOG2, all_fractions(e))


def test_seed_identities() -> None:
    k = np.arange(-126, 128)
    power = (k + 127) << 15
    assert np.array_equal(num.lane(VectorOp.VEXP2, codes_of(k.astype(float)), 0, 0), power)
    assert np.array_equal(num.lane(VectorOp.VLOG2, power, 0, 0), codes_of(k.astype(float)))
    half = k[k % 2 == 0]
    assert np.array_equal(num.lane(VectorOp.VRSQRT, (half + 127) << 15, 0, 0), (127 - half // 2) << 15)
    inner = k[k <= 126]
    assert np.array_equal(num.lane(VectorOp.VINV, (inner + 127) << 15, 0, 0), (127 - inner) << 15)
    # 2^-127 is below the normals; its inverse flushes too
    assert num.lane(VectorOp.VINV, [0x7F0000, 0xFF0000], 0, 0).tolist() == [0, 0x800000]


def test_exp2_around_its_limits() -> None:
    edge = []
    for bound in (128, -126, -127, -128):
        code = int(codes_of(np.array([float(bound)]))[0])
        edge += [code - 1, code, code + 1]
    edge += [0x7F7FFF, 0xFF7FFF, 0x7F8000, 0xFF8000, 0x438000, 0xC38000]
    codes = np.array(edge)
    check_seed(VectorOp.VEXP2, codes)
    got = num.lane(VectorOp.VEXP2, [0x430000, 0x430001, 0xC30000, 0xC38000, 0x438000], 0, 0)
    assert got.tolist() == [0x7F8000, 0x7F8000, 0, 0, 0x7F8000]


# function -> exact value, operand exponents, signs
_TRUE: dict[VectorOp, Callable[[np.ndarray], np.ndarray]] = {
    VectorOp.VEXP2: np.exp2,
    VectorOp.VLOG2: np.log2,
    VectorOp.VINV: lambda v: 1 / v,
    VectorOp.VRSQRT: lambda v: 1 / np.sqrt(v),
}


def seed_errors(op: VectorOp, exponents: range, signs: tuple[int, ...]) -> tuple[float, float]:
    """Worst error in ulp of the exact value over the normal results with magnitude >= 1 (log2) or all (others).

    The second figure is log2's below 1: the error relative to max(0.99 ulp, 2^-18).
    """
    worst = small = 0.0
    for e in exponents:
        code = all_fractions(e, signs=signs)
        value = num.e8m15_to_fp32(code).view(np.float32).astype(np.float64)
        with np.errstate(over="ignore"):
            true = _TRUE[op](value)
        code_out = num.lane(op, code, 0, 0)
        out = num.e8m15_to_fp32(code_out).view(np.float32).astype(np.float64)
        normal = (code_out >> 15 & 255 > 0) & (code_out >> 15 & 255 < 255) & (np.abs(true) >= 2.0**-126)
        ulp = np.exp2(np.floor(np.log2(np.abs(true[normal]))) - 15)
        error = np.abs(out[normal] - true[normal])
        big = np.abs(true[normal]) >= (1 if op == VectorOp.VLOG2 else 0)
        worst = max(worst, (error / ulp)[big].max(initial=0))
        small = max(small, (error / np.maximum(0.99 * ulp, 2.0**-18))[~big].max(initial=0))
    return worst, small


def rounded_up(value: float, digits: int) -> float:
    """The next decimal number of `digits` places, as the page states its worst errors."""
    scale = 10.0**digits
    return math.ceil(value * scale) / scale


def test_seed_accuracy_of_one_period() -> None:
    assert rounded_up(seed_errors(VectorOp.VINV, range(127, 128), (0,))[0], 3) == 0.592
    assert rounded_up(seed_errors(VectorOp.VRSQRT, range(127, 129), (0,))[0], 3) == 0.568
    assert seed_errors(VectorOp.VEXP2, range(120, 134), (0, 1))[0] <= 0.71
    near, below = seed_errors(VectorOp.VLOG2, range(120, 136), (0,))
    assert near <= 0.55
    assert below <= 1


@pytest.mark.slow
def test_seed_accuracy_over_all_operands() -> None:
    everything = range(1, 255)
    assert rounded_up(seed_errors(VectorOp.VINV, everything, (0, 1))[0], 3) == 0.592
    assert rounded_up(seed_errors(VectorOp.VRSQRT, everything, (0,))[0], 3) == 0.568
    assert rounded_up(seed_errors(VectorOp.VEXP2, range(1, 134), (0, 1))[0], 3) == 0.703
    near, below = seed_errors(VectorOp.VLOG2, everything, (0,))
    assert (rounded_up(near, 3), rounded_up(below, 2)) == (0.542, 0.82)


def test_seed_functions_stand_in_opcode_order() -> None:
    assert [f.__name__ for f in e8m15_seeds.SEEDS] == ["exp2", "log2", "inv", "rsqrt"]
