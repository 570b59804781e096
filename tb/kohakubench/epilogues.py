# SPDX-License-Identifier: Apache-2.0
"""Products with every epilogue, and running one on the arriving tile and through memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import ktpu
from kohakubench.programs import description, run, spec
from kohakutpu.tensor import Call

ONE, FOUR = description(cores=1), description(4, cores=4)
TILE: dict[str, Any] = {"gm": 4, "gn": 8, "nk": 2}
M, N, K = 32, 32, 64


def half(*shape: int, seed: int = 3, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float16)


def operands(m: int = M, n: int = N, k: int = K) -> dict[str, np.ndarray]:
    return {
        "x": half(m, k),
        "w": half(n, k, seed=1, scale=0.1),
        "u": half(n, k, seed=2, scale=0.1),
        "b": half(n, seed=4, scale=0.2),
        "c": half(n, seed=5, scale=0.2),
        "r": half(m, n, seed=6),
    }


def both(call: Call, body: dict[str, Any], **options: Any) -> tuple[ktpu.Compiled, ktpu.Compiled, np.ndarray]:
    """Compile fused and staged, run both, require equal bits of every result word."""
    machine = spec(body)
    fused = ktpu.compile(call, machine, fuse="require", **options)
    staged = ktpu.compile(call, machine, fuse="never", **options)
    a, b = run(body, fused), run(body, staged)
    assert np.array_equal(a, b)
    assert not fused.relaxed
    return fused, staged, a


def counters(c: ktpu.Compiled) -> dict[str, int]:
    counted: dict[str, int] = c.artifact.meta["counters"]
    return counted


OPERANDS = operands()
FORMS: dict[str, Call] = {
    "silu": ktpu.linear_silu(OPERANDS["x"], OPERANDS["w"], **TILE),
    "relu": ktpu.linear(OPERANDS["x"], OPERANDS["w"], activation="relu", **TILE),
    "gelu": ktpu.linear(OPERANDS["x"], OPERANDS["w"], activation="gelu", **TILE),
    "scale": ktpu.linear(OPERANDS["x"], OPERANDS["w"], scale=0.125, **TILE),
    "bias": ktpu.linear_bias(OPERANDS["x"], OPERANDS["w"], OPERANDS["b"], **TILE),
    "bias_silu": ktpu.linear(OPERANDS["x"], OPERANDS["w"], bias=OPERANDS["b"], activation="silu", **TILE),
    "bias_gelu": ktpu.linear(OPERANDS["x"], OPERANDS["w"], bias=OPERANDS["b"], activation="gelu", **TILE),
    "add": ktpu.linear_add(OPERANDS["x"], OPERANDS["w"], OPERANDS["r"], **TILE),
    "add_silu": ktpu.linear(OPERANDS["x"], OPERANDS["w"], add=OPERANDS["r"], activation="silu", **TILE),
    "bias_add": ktpu.linear(OPERANDS["x"], OPERANDS["w"], bias=OPERANDS["b"], add=OPERANDS["r"], **TILE),
    "geglu": ktpu.geglu(OPERANDS["x"], OPERANDS["w"], OPERANDS["u"], **TILE),
    "geglu_biases": ktpu.geglu(
        OPERANDS["x"], OPERANDS["w"], OPERANDS["u"], gate_bias=OPERANDS["b"], up_bias=OPERANDS["c"], **TILE
    ),
    "swiglu": ktpu.geglu(OPERANDS["x"], OPERANDS["w"], OPERANDS["u"], activation="silu", **TILE),
}
