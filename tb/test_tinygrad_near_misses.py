# SPDX-License-Identifier: Apache-2.0
"""Nests that nearly are a kernel of the device: none is matched, each is right on the host, counted and explained
(docs/spec/compiler.md 13.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("tinygrad", reason="tinygrad is not installed; fix: make setup")

from tinygrad import Tensor, dtypes
from tinygrad.helpers import Context

import ktpu_tinygrad

pytestmark = pytest.mark.unit


class Miss(NamedTuple):
    """An expression of x[16][32], w[48][32], y[16][32] and v[32] that no kernel of the device computes."""

    name: str
    tinygrad: Callable[..., Any]
    numpy: Callable[..., Any]
    reason: str


def pairs(x: Any, w: Any, y: Any, v: Any) -> Any:
    """Each operand is read twice, so no part of it leaves fewer."""
    u, z = w[:16] + 0, w[32:] + 0
    if isinstance(w, Tensor):
        u, z = u.contiguous(), z.contiguous()
    return (x + y) * (x + u) * (y + z) * (u + z)


FIT = "fit no operand"
SHAPE = "neither along the last axis nor a product of rows"
MISSES = [
    Miss("columns from 16 on", lambda x, w, y, v: x[:, 16:] * 2, lambda x, w, y, v: x[:, 16:] * 2, "constant offset"),
    Miss("rows from 1 on", lambda x, w, y, v: x[1:] * y[1:], lambda x, w, y, v: x[1:] * y[1:], "constant offset"),
    Miss("two halves", lambda x, w, y, v: x[:8] + x[8:], lambda x, w, y, v: x[:8] + x[8:], "constant offset"),
    Miss("the first rows", lambda x, w, y, v: x[:8] * 2, lambda x, w, y, v: x[:8] * 2, FIT),
    Miss("the first columns", lambda x, w, y, v: x[:, :16] * 2, lambda x, w, y, v: x[:, :16] * 2, FIT),
    Miss("transposed", lambda x, w, y, v: x.T.contiguous(), lambda x, w, y, v: x.T, FIT),
    Miss(
        "one side transposed",
        lambda x, w, y, v: x.reshape(32, 16) + y.T,
        lambda x, w, y, v: x.reshape(32, 16) + y.T,
        FIT,
    ),
    Miss("every second column", lambda x, w, y, v: x[:, ::2] * 2, lambda x, w, y, v: x[:, ::2] * 2, FIT),
    Miss("every second row", lambda x, w, y, v: x[::2] * 2, lambda x, w, y, v: x[::2] * 2, FIT),
    Miss("flipped", lambda x, w, y, v: x.flip(1) * 2, lambda x, w, y, v: x[:, ::-1] * 2, "constant offset"),
    Miss("rolled", lambda x, w, y, v: x.roll(3, 1) * 2, lambda x, w, y, v: np.roll(x, 3, 1) * 2, "modulo"),
    Miss("repeated", lambda x, w, y, v: v.repeat(3) * 2, lambda x, w, y, v: np.tile(v, 3) * 2, "every operand is"),
    Miss(
        "columns repeated",
        lambda x, w, y, v: x.repeat((1, 2)) * 2,
        lambda x, w, y, v: np.tile(x, (1, 2)) * 2,
        "3 loops",
    ),
    Miss("each twice", lambda x, w, y, v: x.repeat_interleave(2, 1) * 2, lambda x, w, y, v: x.repeat(2, 1) * 2, ""),
    Miss(
        "padded", lambda x, w, y, v: x.pad(((0, 0), (1, 1))) * 2, lambda x, w, y, v: np.pad(x, ((0, 0), (1, 1))) * 2, ""
    ),
    Miss("lower triangle", lambda x, w, y, v: x.tril() * 2, lambda x, w, y, v: np.tril(x) * 2, ""),
    Miss("index as a value", lambda x, w, y, v: x + Tensor.arange(32), lambda x, w, y, v: x + np.arange(32), ""),
    Miss(
        "product, columns of w",
        lambda x, w, y, v: x @ w.reshape(32, 48),
        lambda x, w, y, v: x @ w.reshape(32, 48),
        SHAPE,
    ),
    Miss("product, columns of x", lambda x, w, y, v: x.T @ y, lambda x, w, y, v: x.T @ y, SHAPE),
    Miss(
        "product, one row for all",
        lambda x, w, y, v: v.expand(16, 32) @ w.T,
        lambda x, w, y, v: np.tile(v, (16, 1)) @ w.T,
        "",
    ),
    Miss(
        "product, stride 0 along K",
        lambda x, w, y, v: x[:, :1].expand(16, 32) @ w.T,
        lambda x, w, y, v: x[:, :1].repeat(32, 1) @ w.T,
        "",
    ),
    Miss(
        "product, part of K",
        lambda x, w, y, v: x[:, :16] @ w[:, :16].T,
        lambda x, w, y, v: x[:, :16] @ w[:, :16].T,
        SHAPE,
    ),
    Miss(
        "product, K from 16 on",
        lambda x, w, y, v: x[:, 16:] @ w[:, 16:].T,
        lambda x, w, y, v: x[:, 16:] @ w[:, 16:].T,
        "constant offset",
    ),
    Miss(
        "product, every second of K",
        lambda x, w, y, v: x[:, ::2] @ w[:, ::2].T,
        lambda x, w, y, v: x[:, ::2] @ w[:, ::2].T,
        SHAPE,
    ),
    Miss("product, every second row", lambda x, w, y, v: x[::2] @ w.T, lambda x, w, y, v: x[::2] @ w.T, SHAPE),
    Miss(
        "product, K reversed",
        lambda x, w, y, v: x.flip(1) @ w.T,
        lambda x, w, y, v: x[:, ::-1] @ w.T,
        "constant offset",
    ),
    Miss(
        "product, K padded",
        lambda x, w, y, v: x.pad(((0, 0), (0, 16))) @ w.pad(((0, 0), (0, 16))).T,
        lambda x, w, y, v: x @ w.T,
        "",
    ),
    Miss(
        "sum of distances",
        lambda x, w, y, v: (x.unsqueeze(1) - w).square().sum(2),
        lambda x, w, y, v: ((x[:, None] - w) ** 2).sum(2),
        SHAPE,
    ),
    Miss(
        "product of sums of both sides",
        lambda x, w, y, v: ((x.unsqueeze(1) + w) * x.unsqueeze(1)).sum(2),
        lambda x, w, y, v: ((x[:, None] + w) * x[:, None]).sum(2),
        SHAPE,
    ),
    Miss(
        "product, residual transposed",
        lambda x, w, y, v: x @ y.T + (x @ x.T).contiguous().T,
        lambda x, w, y, v: x @ y.T + (x @ x.T).T,
        FIT,
    ),
    Miss(
        "product in single precision",
        lambda x, w, y, v: x.dot(w.T, dtype=dtypes.float),
        lambda x, w, y, v: x @ w.T,
        "float",
    ),
    Miss("sum along the first axis", lambda x, w, y, v: x.sum(0), lambda x, w, y, v: x.sum(0), FIT),
    Miss("sum along part of a row", lambda x, w, y, v: x[:, :16].sum(1), lambda x, w, y, v: x[:, :16].sum(1), FIT),
    Miss(
        "sum of 20",
        lambda x, w, y, v: w.reshape(-1)[:60].contiguous().reshape(3, 20).sum(1),
        lambda x, w, y, v: w.reshape(-1)[:60].reshape(3, 20).sum(1),
        "multiple of 16",
    ),
    Miss("product along a row", lambda x, w, y, v: x.prod(1), lambda x, w, y, v: x.prod(1), "product along an axis"),
    Miss("running sum", lambda x, w, y, v: x.cumsum(1), lambda x, w, y, v: x.cumsum(1), ""),
    Miss("four operands in pairs", pairs, pairs, "at most 3"),
    Miss("single precision", lambda x, w, y, v: x.float() * 2, lambda x, w, y, v: x * 2, "float"),
    Miss("integers", lambda x, w, y, v: (x * 8).int(), lambda x, w, y, v: np.trunc(np.float16(x * 8)), "int"),
    Miss("sine", lambda x, w, y, v: x.sin(), lambda x, w, y, v: np.sin(x), "no operation of a lane"),
    Miss(
        "window sums",
        lambda x, w, y, v: x.reshape(1, 1, 16, 32).avg_pool2d((2, 2)),
        lambda x, w, y, v: x.reshape(8, 2, 16, 2).mean((1, 3))[None, None],
        "",
    ),
    Miss("looked up", lambda x, w, y, v: x[Tensor([3, 1, 2])] * 2, lambda x, w, y, v: x[[3, 1, 2]] * 2, ""),
]


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu_tinygrad.KTPUDevice]:
    """The default model."""
    with ktpu_tinygrad.use() as opened, Context(PARALLEL=0):
        yield opened


@pytest.mark.parametrize("miss", MISSES, ids=lambda m: m.name.replace(" ", "_"))
def test_is_not_matched_and_is_right(miss: Miss, device: ktpu_tinygrad.KTPUDevice) -> None:
    """The last kernel runs on the host with a reason, is counted once, and rounds what float64 gives."""
    rng = np.random.default_rng(len(miss.name))
    arrays = [rng.uniform(-1.5, 1.5, shape).astype(np.float16) for shape in ((16, 32), (48, 32), (16, 32), (32,))]
    before = device.stats()["host_ops"]
    begin = len(device.schedule)
    got = miss.tinygrad(*(Tensor(a) for a in arrays)).numpy()
    ran = device.schedule[begin:]
    print(*ran, sep="\n")
    assert ran[-1].where == "host"
    assert miss.reason in ran[-1].reason
    assert ran[-1].reason
    assert device.stats()["host_ops"] - before == sum(r.where == "host" for r in ran)
    assert device.stats()["host_kernels"][ran[-1].kernel] >= 1
    exact = miss.numpy(*(a.astype(np.float64) for a in arrays))
    np.testing.assert_allclose(got, exact, rtol=2**-8, atol=2**-8 * max(1.0, float(np.abs(exact).max())))


def test_there_are_enough() -> None:
    """At least 20 that differ."""
    assert len({m.name for m in MISSES}) == len(MISSES) >= 20
