# SPDX-License-Identifier: Apache-2.0
"""Cases of the numerics report: the kernels of the library on the operands of docs/spec/kernels.md 0.

Activations N(0, 1), weights N(0, 0.1^2), gains N(1, 0.2^2), shifts N(0, 0.2^2), PCG64 seed 3, rounded to FP16.
Shapes of a product are MxKxN.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from kohakutpu import tensor
from kohakutpu.rewrite import Expr, ops
from kohakutpu.tensor import Call
from ktpu.numerics import Formula, register

F64 = npt.NDArray[np.float64]
Rng = np.random.Generator
WEIGHT, SHIFT, GAIN = 0.1, 0.2, 0.2
_ACTIVATIONS: dict[str, Callable[[Expr], Expr]] = {
    "": lambda y: y,
    "silu": ops.silu,
    "relu": ops.relu,
    "gelu": ops.gelu,
}
TANH = "GELU in its tanh form, graded against that form"
SIGMOID = "GELU in its sigmoid form, graded against that form"


def _operands(rng: Rng, m: int, k: int, n: int) -> tuple[F64, F64]:
    return rng.standard_normal((m, k)), WEIGHT * rng.standard_normal((n, k))


def _product(m: int, k: int, n: int) -> None:
    @register(f"matmul {m}x{k}x{n}", "M", formula=lambda a, b: a @ b)
    def _(rng: Rng) -> Call:
        return tensor.matmul(*_operands(rng, m, k, n))


def _linear(name: str, note: str = "", *, activation: str = "", scale: float | None = None) -> None:
    m, k, n = 64, 128, 64

    def formula(x: Expr, w: Expr, *sides: Expr) -> Expr:
        y = x @ w if scale is None else (x @ w) * scale
        for side in sides:
            y = y + side
        return _ACTIVATIONS[activation](y)

    @register(f"linear_{name} {m}x{k}x{n}", "M", note, formula)
    def _(rng: Rng) -> Call:
        x, w = _operands(rng, m, k, n)
        bias = SHIFT * rng.standard_normal(n) if "bias" in name else None
        add = rng.standard_normal((m, n)) if "add" in name else None
        return tensor.linear(x, w, bias=bias, add=add, activation=activation, scale=scale)


def _gated(name: str, activation: str, *, bias: bool = False, note: str = "") -> None:
    m, k, n = 64, 128, 64

    def formula(x: Expr, g: Expr, u: Expr, *biases: Expr) -> Expr:
        gate, up = x @ g, x @ u
        if biases:
            gate, up = gate + biases[0], up + biases[1]
        return _ACTIVATIONS[activation](gate) * up

    @register(f"{name} {m}x{k}x{n}", "M", note, formula)
    def _(rng: Rng) -> Call:
        x, g = _operands(rng, m, k, n)
        u = WEIGHT * rng.standard_normal((n, k))
        biases = {side: SHIFT * rng.standard_normal(n) for side in ("gate_bias", "up_bias") if bias}
        return tensor.geglu(x, g, u, activation=activation, **biases)  # type: ignore[arg-type]


def _rows(name: str, m: int, n: int, make: Callable[[F64, Rng], Call], formula: Formula) -> None:
    @register(f"{name} {m}x{n}", "V", formula=formula)
    def _(rng: Rng) -> Call:
        return make(rng.standard_normal((m, n)), rng)


def _gain(rng: Rng, n: int) -> F64:
    return 1 + GAIN * rng.standard_normal(n)


def _lane(name: str, note: str = "") -> None:
    @register(f"{name} 64x1024", "V", note, getattr(ops, name))
    def _(rng: Rng) -> Call:
        return tensor.elementwise({"x": rng.standard_normal((64, 1024))}, [(name, ("x",))], name)


for shape in ((64, 256, 64), (77, 2048, 64), (256, 1280, 128), (300, 100, 77)):
    _product(*shape)
_linear("silu", activation="silu")
_linear("relu", activation="relu")
_linear("gelu", TANH, activation="gelu")
_linear("scale", scale=0.125)
_linear("bias")
_linear("bias_silu", activation="silu")
_linear("bias_gelu", TANH, activation="gelu")
_linear("add")
_linear("add_silu", activation="silu")
_gated("geglu", "gelu", note=TANH)
_gated("geglu_bias", "gelu", bias=True, note=TANH)
_gated("swiglu", "silu")
for wide in (64, 128):
    _rows("softmax", 64, wide, lambda x, rng: tensor.softmax(x), ops.softmax)
_rows(
    "layernorm",
    64,
    128,
    lambda x, rng: tensor.layernorm(x, _gain(rng, 128), SHIFT * rng.standard_normal(128)),
    ops.layernorm,
)
_rows("rmsnorm", 64, 128, lambda x, rng: tensor.rmsnorm(x, _gain(rng, 128)), ops.rmsnorm)
_rows("add", 64, 1024, lambda x, rng: tensor.add(x, rng.standard_normal(x.shape)), lambda x, y: x + y)
_rows("mul", 64, 1024, lambda x, rng: tensor.mul(x, rng.standard_normal(x.shape)), lambda x, y: x * y)
_lane("silu")
_lane("gelu", TANH)
_lane("gelu_sigmoid", SIGMOID)
_lane("relu")
_lane("exp")
