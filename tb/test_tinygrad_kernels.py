# SPDX-License-Identifier: Apache-2.0
"""Kernels of tinygrad on the device: the bits of the same kernel called through ktpu, and float64 within the bounds of
the formats (docs/spec/compiler.md 13.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pytest

pytest.importorskip("tinygrad", reason="tinygrad is not installed; fix: make setup")

from tinygrad import Tensor
from tinygrad.helpers import Context

import ktpu
import ktpu_tinygrad
from ktpu.numerics_bounds import bounds
from tinygrad_cases import CASES, Case

pytestmark = pytest.mark.unit

CONSTANT = 2.0**-9
"""Room for a constant of tinygrad that went through half precision."""


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu_tinygrad.KTPUDevice]:
    """The model of mm_store, tensors in half precision on it."""
    with ktpu_tinygrad.use() as opened, Context(PARALLEL=0):
        yield opened


def operands(case: Case) -> list[np.ndarray]:
    """Standard normal values in half precision; the weight of a product is scaled for sums of that size."""
    rng = np.random.default_rng(crc32(str(case).encode()))
    made = [rng.standard_normal(shape) for shape in case.shapes]
    if case.what.startswith(("matmul", "linear")):
        made[1] /= np.sqrt(case.shapes[1][-1])
    return [a.astype(np.float16) for a in made]


def shown(case: Case, result: np.ndarray) -> np.ndarray:
    """What tinygrad's buffer holds of a result of the kernel."""
    return result.reshape(case.shapes[0][0], -1)[:, 0].copy() if case.first else result.reshape(-1)


def test_there_are_enough_shapes() -> None:
    """At least 100, each another one."""
    assert len({str(c) for c in CASES}) == len(CASES) >= 100


@pytest.mark.parametrize("case", CASES, ids=str)
def test_runs_as_the_kernel_it_is(case: Case, device: ktpu_tinygrad.KTPUDevice) -> None:
    """One kernel, on the device, of the expected name, with the bits of the direct call, near float64."""
    arrays = operands(case)
    begin = len(device.schedule)
    got = case.tinygrad(*(Tensor(a) for a in arrays)).numpy()
    (one,) = device.schedule[begin:]
    assert (one.where, one.steps) == ("device", (case.what,)), str(one)

    call = case.call(*arrays)
    (same,) = (shown(case, r) for r in ktpu.run(call, device.arrays).values())
    assert got.dtype == np.float16
    np.testing.assert_array_equal(got.reshape(-1).view(np.uint16), same.view(np.uint16))

    (interval,) = bounds(call.trace.graph, call.values).values()
    low, high = (shown(case, end) for end in interval)
    assert np.isfinite(low).all()
    exact = np.asarray(case.numpy(*(a.astype(np.float64) for a in arrays))).reshape(-1)
    assert ((low <= got.reshape(-1)) & (got.reshape(-1) <= high)).all()
    room = CONSTANT * np.abs(exact)
    assert ((low - room <= exact) & (exact <= high + room)).all()


# ---------------------------------------------------------------------- several kernels for one of tinygrad


class Composite(NamedTuple):
    """An expression of x[16][32], w[48][32], y[16][32], v[32] and c[48] in several kernels of the device."""

    name: str
    tinygrad: Callable[..., Any]
    numpy: Callable[..., Any]
    steps: tuple[str, ...]


def norm(x: Any) -> Any:
    """Rows without their mean, of variance 1, in numpy."""
    return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)


def gated(v: Any, factor: float) -> Any:
    """v times the sigmoid of its multiple, in numpy."""
    return v / (1 + np.exp(-factor * v))


COMPOSITES = [
    Composite(
        "gain on x", lambda x, w, y, v, c: (x * v) @ w.T, lambda x, w, y, v, c: (x * v) @ w.T, ("chain", "matmul")
    ),
    Composite(
        "gain on w", lambda x, w, y, v, c: x @ (w * v).T, lambda x, w, y, v, c: (x * v) @ w.T, ("chain", "matmul")
    ),
    Composite(
        "rows of w",
        lambda x, w, y, v, c: x @ (w * c.unsqueeze(1)).T,
        lambda x, w, y, v, c: x @ w.T * c,
        ("chain", "matmul"),
    ),
    Composite(
        "both sides",
        lambda x, w, y, v, c: (x + y) @ (w + v).T,
        lambda x, w, y, v, c: (x + y) @ (w + v).T,
        ("chain", "chain", "matmul"),
    ),
    Composite("a number", lambda x, w, y, v, c: (x * 0.5) @ w.T, lambda x, w, y, v, c: x @ w.T / 2, ("linear_scale",)),
    Composite(
        "negative", lambda x, w, y, v, c: (-x) @ w.T + c, lambda x, w, y, v, c: -(x @ w.T) + c, ("linear_scale_bias",)
    ),
    Composite(
        "norm", lambda x, w, y, v, c: x.layernorm() @ w.T, lambda x, w, y, v, c: norm(x) @ w.T, ("chain", "matmul")
    ),
    Composite(
        "five operands",
        lambda x, w, y, v, c: x.layernorm() * v + y,
        lambda x, w, y, v, c: norm(x) * v + y,
        ("chain", "chain"),
    ),
    Composite(
        "sum of four",
        lambda x, w, y, v, c: (x * y + v * w[:16].contiguous()).sum(1),
        lambda x, w, y, v, c: (x * y + v * w[:16]).sum(1),
        ("chain", "fold"),
    ),
    Composite(
        "epilogue of four",
        lambda x, w, y, v, c: (x @ w[:32].contiguous().T + x * y) * (v + y),
        lambda x, w, y, v, c: (x @ w[:32].T + x * y) * (v + y),
        ("linear_chain",),
    ),
    Composite(
        "quick gelu",
        lambda x, w, y, v, c: (x @ w.T).quick_gelu(),
        lambda x, w, y, v, c: gated(x @ w.T, 1.702),
        ("linear_gelu_sigmoid",),
    ),
    Composite(
        "another sigmoid",
        lambda x, w, y, v, c: (x @ w.T) * ((x @ w.T) * 1.1).sigmoid(),
        lambda x, w, y, v, c: gated(x @ w.T, 1.1),
        ("linear_chain",),
    ),
    Composite(
        "exponential", lambda x, w, y, v, c: (x @ w.T).exp(), lambda x, w, y, v, c: np.exp(x @ w.T), ("linear_exp",)
    ),
    Composite(
        "residual minus product",
        lambda x, w, y, v, c: y - x @ w[:32].contiguous().T,
        lambda x, w, y, v, c: y - x @ w[:32].T,
        ("linear_scale_add",),
    ),
]


@pytest.mark.parametrize("one", COMPOSITES, ids=lambda c: c.name.replace(" ", "_"))
def test_parts_ahead_of_the_last_kernel(one: Composite, device: ktpu_tinygrad.KTPUDevice) -> None:
    """The expected kernels run for the last kernel of tinygrad; the result is near float64."""
    rng = np.random.default_rng(len(one.name))
    shapes = ((16, 32), (48, 32), (16, 32), (32,), (48,))
    arrays = [rng.uniform(-1, 1, shape).astype(np.float16) for shape in shapes]
    got = one.tinygrad(*(Tensor(a) for a in arrays)).numpy()
    assert device.schedule[-1].steps == one.steps, str(device.schedule[-1])
    exact = one.numpy(*(a.astype(np.float64) for a in arrays))
    np.testing.assert_allclose(got, exact, rtol=0.02, atol=0.02 * float(np.abs(exact).max()))


def test_parts_have_the_bits_of_their_kernels(device: ktpu_tinygrad.KTPUDevice) -> None:
    """A chain and a product in one kernel of tinygrad are that chain and that product called through ktpu."""
    rng = np.random.default_rng(8)
    x, w, v = (rng.standard_normal(s).astype(np.float16) for s in ((16, 64), (24, 64), (64,)))
    got = ((Tensor(x) * Tensor(v)) @ Tensor(w).T).numpy()
    assert device.schedule[-1].steps == ("chain", "matmul")
    scaled = ktpu.tensor(x, device.arrays) * ktpu.tensor(v, device.arrays)
    same = (scaled @ ktpu.tensor(w, device.arrays)).numpy()
    np.testing.assert_array_equal(got.view(np.uint16), same.view(np.uint16))
