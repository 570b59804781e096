# SPDX-License-Identifier: Apache-2.0
"""Random expressions through the automatic path: the reference model against float64 (docs/spec/compiler.md 13.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import ktpu
from kohakutpu.rewrite import Expr, array, inputs, interpret, ops
from kohakutpu.rewrite.select import CHAIN_OPERANDS

pytestmark = pytest.mark.unit

N = 32
"""Every array is [N][N], so that any two fit."""

TOLERANCE = 0.08
"""Of the largest result: a few products after one another, each of class M."""

UNARY: tuple[Callable[[Expr], Expr], ...] = (
    ops.silu,
    ops.sigmoid,
    ops.relu,
    ops.gelu,
    lambda x: x * 0.5,
    lambda x: ops.softmax(x) * 4.0,
    lambda x: x - ops.row_mean(x),
    lambda x: x - ops.row_max(x) * 0.5,
    ops.transpose,
    lambda x: ops.chunk(x)[0] * ops.silu(ops.chunk(x)[1]) @ array("half", N, N // 2),
    lambda x: ops.layernorm(x, array("gain", N), array("shift", N), 1e-2),
)
BINARY: tuple[Callable[[Expr, Expr], Expr], ...] = (
    lambda a, b: a + b,
    lambda a, b: a * ops.sigmoid(b),
    lambda a, b: (a @ b) * (1.0 / N),
    lambda a, b: (a @ b) * (1.0 / N),
    ops.maximum,
    # of an input, because a computed condition near 0 decides otherwise after a rounding
    lambda a, b: ops.where(ops.greater(array("m", N, N), 0.0), a, b),
    lambda a, b: a + b * ops.less(array("m", N, N), 0.5),
)


def drawn(seed: int, size: int = 9) -> Expr:
    """An expression of about ``size`` steps over few inputs, parts of it read more than once."""
    rng = np.random.default_rng(seed)
    pool = [array(n, N, N) for n in "xyz"]
    for _ in range(size):
        # recent results are read more often than old ones
        a, b = (pool[-1 - int(rng.integers(min(4, len(pool))))] for _ in range(2))
        if rng.random() < 0.4:
            pool.append(UNARY[rng.integers(len(UNARY))](a))
        else:
            pool.append(BINARY[rng.integers(len(BINARY))](a, b))
    return pool[-1] + pool[-2]


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu.TensorDevice]:
    with ktpu.open("model:mm_store") as opened:
        yield opened


@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(s, marks=pytest.mark.slow) for s in range(12, 200))])
def test_random_expression(seed: int, device: ktpu.TensorDevice) -> None:
    """The value is right, every node is computed once, and a pass reads at most three arrays."""
    e = drawn(seed)
    rng = np.random.default_rng(seed)
    values = {i.name: rng.standard_normal(i.extents).astype(np.float16) for i in inputs(e)}
    program = ktpu.auto(e, *values.values())
    results = [s.result for s in program.chosen.steps]
    assert len(results) == len(set(results))
    assert all(len(s.operands) <= CHAIN_OPERANDS for s in program.chosen.steps if s.how == "chain")
    want = interpret(e, values)
    got = program.run(device).numpy().astype(np.float64)
    assert np.isfinite(want).all()
    assert np.abs(got - want).max() <= TOLERANCE * np.abs(want).max(), program.text()
