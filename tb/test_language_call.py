# SPDX-License-Identifier: Apache-2.0
"""Kernels of the language on the model: compiled, run, read back (docs/spec/compiler.md 11 to 13)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ktpu
from kohakudriver import Device
from kohakutpu.errors import CompileError
from ktpu.language import (
    In,
    Out,
    dims,
    exp2,
    kernel,
    loop,
    maximum,
    recip,
    row_max,
    row_sum,
    sqrt_newton,
    table,
    tile,
    units,
    where,
)

pytestmark = pytest.mark.unit

M, N, K = dims("M, N, K")
LOG2E = math.log2(math.e)


@pytest.fixture(scope="module")
def device() -> Iterator[Device]:
    opened = ktpu.open("model:mm_mesh")
    yield opened
    opened.close()


@kernel
def linear_silu(x=In(..., M, K), w=In(N, K), b=In(N), y=Out(..., M, N), *, gm=None, gn=None, nk=None):  # type: ignore[no-untyped-def]
    for i, j in units(x.tiles(gm), w.tiles(gn)):
        acc = tile(gm, gn, nk)
        for k in loop(x.chunks32(nk)):
            acc += x[i, k] @ w[j, k]
        v = acc + b[j]
        y[i, j] <<= v * recip(exp2(-v * LOG2E) + 1)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """Largest error relative to the peak."""
    return float(np.abs(got.astype(np.float64) - want).max() / np.abs(want).max())


def test_fused_and_staged_give_one_result(device: Device) -> None:
    """With batch axes, padding on every axis, and hand-chosen tiles."""
    rng = np.random.default_rng(1)
    x, w, b = rng.standard_normal((2, 7, 70)), rng.standard_normal((22, 70)) / 8, rng.standard_normal(22)
    v = x @ w.T + b
    want = v / (1 + np.exp(-v))
    results = []
    tilings: tuple[dict[str, Any], ...] = ({}, {"gm": 2, "gn": 4, "nk": 1})
    for knobs in tilings:
        call = ktpu.call(linear_silu, x, w, b, **knobs)
        for fuse in ("auto", "never"):
            y = ktpu.run(call, device, fuse=fuse)["y"]
            assert y.shape == (2, 7, 22)
            assert error(y, want) < 3e-2
            results.append(y.tobytes())
    assert results[0] == results[1]
    assert results[2] == results[3]


def test_rows_tables_and_choices(device: Device) -> None:
    @kernel
    def rows(x=In(...), y=Out(...), z=Out(...), *, part=8192):  # type: ignore[no-untyped-def]
        slope = table(np.linspace(0.0, 1.0, 32))
        v, o, q = x.as_rows(32), y.as_rows(32), z.as_rows(32)
        for e in units(x.parts(part)):
            ex = exp2((v[e] - row_max(v[e])) * LOG2E)
            o[e] <<= ex / row_sum(ex)
        q <<= where(v, maximum(v, 0) * slope.repeated(), 1.0)

    x = np.random.default_rng(2).standard_normal((3, 4, 64)).astype(np.float16)
    x[0, 0, 0] = 0
    got = ktpu.run(ktpu.call(rows, x), device)
    r = x.astype(np.float64).reshape(-1, 32)
    ex = np.exp(r - r.max(axis=1, keepdims=True))
    assert error(got["y"], (ex / ex.sum(axis=1, keepdims=True)).reshape(x.shape)) < 1.5e-3
    want = np.where(r != 0, np.maximum(r, 0) * np.linspace(0, 1, 32), 1.0).reshape(x.shape)
    assert error(got["z"], want) < 1.5e-3


def test_newton_square_root(device: Device) -> None:
    @kernel
    def root(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= sqrt_newton(x)

    x = np.random.default_rng(3).uniform(1e-3, 4, (8, 16)).astype(np.float16)
    got = ktpu.run(ktpu.call(root, x), device)["y"]
    exact = np.sqrt(x.astype(np.float64))
    assert np.abs(got.astype(np.float64) / exact - 1).max() <= 2.0**-11 * 1.01


def test_refusals(device: Device) -> None:
    with pytest.raises(CompileError, match=r"linear_silu takes 3 operands \(x, w, b\), got 1"):
        ktpu.call(linear_silu, np.ones((4, 32)))
    with pytest.raises(CompileError, match="x holds 1 values beyond 65504"):
        ktpu.call(linear_silu, np.full((1, 1), 1e6), np.ones((4, 1)), np.ones(4))
    with pytest.raises(CompileError, match="linear_silu has no knob"):
        ktpu.call(linear_silu, np.ones((4, 32)), np.ones((4, 32)), np.ones(4), tiles=4)
