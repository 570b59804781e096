# SPDX-License-Identifier: Apache-2.0
"""Operators on float arrays; each is one kernel call."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kohakutpu import kernels
from kohakutpu.errors import CompileError
from kohakutpu.kernels import library
from kohakutpu.kernels.library.helpers import SUB_ROW
from kohakutpu.tensor.call import call
from kohakutpu.tensor.operand import Array, Call, Operand, row, to_half

LAYER = "L5"


WIDEST = SUB_ROW
"""Elements one reduction takes; longer rows go to a kernel that folds parts of a row."""


def matmul(a: Array, b: Array, **tiling: int) -> Call:
    """C = A @ B.T, contracting the last axis of both.

    Args:
        a: [M][K]; b: [N][K]; real numbers, rounded to FP16.
        tiling: gm, gn, nk to fix the tiling by hand.

    Raises:
        CompileError: operands that are not matrices of finite FP16 values, or disagree in K.
    """
    x, y = to_half("a", a), to_half("b", b)
    if x.shape[1] != y.shape[1]:
        raise CompileError(f"a is {x.shape}, b is {y.shape}; both contract their last axis, so K must agree")
    trace = kernels.matmul(x.shape[0], y.shape[0], x.shape[1], **tiling)
    return Call(trace, {"a": x, "b": y})


def matmul_batched(a: Array, b: Array, **tiling: int) -> Call:
    """C[..., M, N] = A[..., M, K] B[..., N, K]^T, block by block.

    Raises:
        CompileError: leading axes or K that disagree.
    """
    return call(library.matmul_batched, a, b, extents=None, **tiling)


def linear(
    x: Array,
    weight: Array,
    *,
    bias: Array | None = None,
    add: Array | None = None,
    activation: str = "",
    scale: float | None = None,
    **tiling: int,
) -> Call:
    """activation(scale * x weight^T + bias + add), as a Linear layer stores its weight [out][in].

    Args:
        bias: one value an output column; add: [rows][out].
        activation: "silu", "gelu", "gelu_sigmoid", "relu", "exp" or "".

    Raises:
        CompileError: operands that do not fit together.
    """
    if bias is None and add is None and scale is None and not activation:
        return matmul(x, weight, **tiling)
    a, w = to_half("x", x), to_half("weight", weight)
    if a.shape[1] != w.shape[1]:
        raise CompileError(f"x is {a.shape}, weight is {w.shape}; both contract their last axis, so K must agree")
    m, n = a.shape[0], w.shape[0]
    operands: dict[str, Operand] = {"x": a, "w": w}
    if bias is not None:
        operands["b"] = row("bias", bias, n)
    if add is not None:
        operands["r"] = to_half("add", add)
        if operands["r"].shape != (m, n):
            raise CompileError(f"add is {operands['r'].shape}, the product is {(m, n)}")
    trace = kernels.linear(
        m,
        n,
        a.shape[1],
        activation=activation,
        bias=bias is not None,
        add=add is not None,
        scale=scale,
        **tiling,
    )
    return Call(trace, operands)


def linear_silu(x: Array, weight: Array, **tiling: int) -> Call:
    """silu(x weight^T)."""
    return linear(x, weight, activation="silu", **tiling)


def linear_bias(x: Array, weight: Array, bias: Array, **tiling: int) -> Call:
    """x weight^T + bias."""
    return linear(x, weight, bias=bias, activation="", scale=None, **tiling)


def linear_add(x: Array, weight: Array, add: Array, **tiling: int) -> Call:
    """x weight^T + add."""
    return linear(x, weight, add=add, activation="", scale=None, **tiling)


def geglu(
    x: Array,
    gate: Array,
    up: Array,
    *,
    gate_bias: Array | None = None,
    up_bias: Array | None = None,
    activation: str = "gelu",
    **tiling: int,
) -> Call:
    """gelu(x gate^T + gate_bias) * (x up^T + up_bias); the activation is on the *first* weight.

    Raises:
        CompileError: weights of different shapes, or one bias without the other.
    """
    a, g, u = to_half("x", x), to_half("gate", gate), to_half("up", up)
    if g.shape != u.shape or a.shape[1] != g.shape[1]:
        raise CompileError(f"x is {a.shape}, gate is {g.shape}, up is {u.shape}; the weights agree, and K with x")
    if (gate_bias is None) != (up_bias is None):
        raise CompileError("geglu: one bias without the other; give both or none")
    n = g.shape[0]
    operands: dict[str, Operand] = {"x": a, "wg": g, "wu": u}
    if gate_bias is not None and up_bias is not None:
        operands |= {"bg": row("gate_bias", gate_bias, n), "bu": row("up_bias", up_bias, n)}
    trace = kernels.gated(a.shape[0], n, a.shape[1], activation=activation, bias=gate_bias is not None, **tiling)
    return Call(trace, operands)


def softmax(x: Array, mask: Array | None = None) -> Call:
    """Softmax along the last axis of [rows][width]; ``mask`` is one row of 0 and 1."""
    a = to_half("x", x)
    if mask is None and a.shape[1] > WIDEST:
        return call(library.softmax_wide(a.shape[1]), a)
    operands: dict[str, Operand] = {"x": a}
    if mask is not None:
        operands["mask"] = row("mask", mask, a.shape[1])
    return Call(kernels.softmax(*a.shape, masked=mask is not None), operands)


def layernorm(x: Array, weight: Array, bias: Array, *, eps: float = 1e-5) -> Call:
    """Normalised rows of [rows][width] times weight plus bias."""
    a = to_half("x", x)
    if a.shape[1] > WIDEST:
        w, b = (row(name, v, a.shape[1]).reshape(-1) for name, v in (("weight", weight), ("bias", bias)))
        return call(library.layernorm_wide(a.shape[1]), a, w, b, eps=eps)
    operands = {"x": a, "w": row("weight", weight, a.shape[1]), "b": row("bias", bias, a.shape[1])}
    return Call(kernels.layernorm(*a.shape, eps=eps), operands)


def rmsnorm(x: Array, weight: Array, *, eps: float = 1e-5) -> Call:
    """Rows of [rows][width] divided by their root mean square, times weight."""
    a = to_half("x", x)
    if a.shape[1] > WIDEST:
        w = row("weight", weight, a.shape[1]).reshape(-1)
        return call(library.rmsnorm_wide(a.shape[1]), a, w, eps=eps)
    return Call(kernels.rmsnorm(*a.shape, eps=eps), {"x": a, "w": row("weight", weight, a.shape[1])})


def elementwise(operands: dict[str, Array], steps: Sequence[kernels.Step], name: str = "") -> Call:
    """A chain of operations in one pass, see :func:`kohakutpu.kernels.elementwise`.

    Args:
        operands: arrays of one or two axes; one axis stands for a single row.

    Raises:
        CompileError: shapes that do not fit, or an operation that is unknown.
    """
    halves = {}
    for key, array in operands.items():
        half = to_half(key, array, (1, 2))
        halves[key] = half.reshape(1, -1) if half.ndim == 1 else half
    if not halves:
        raise CompileError("elementwise: no operand")
    shapes = {key: (half.shape[0], half.shape[1]) for key, half in halves.items()}
    return Call(kernels.elementwise(shapes, steps, name), halves)


def add(a: Array, b: Array) -> Call:
    """a + b."""
    return elementwise({"a": a, "b": b}, [("add", ("a", "b"))], "add")


def mul(a: Array, b: Array) -> Call:
    """a * b."""
    return elementwise({"a": a, "b": b}, [("mul", ("a", "b"))], "mul")


def silu(x: Array) -> Call:
    """x * sigmoid(x)."""
    return elementwise({"x": x}, [("silu", ("x",))], "silu")


def gelu(x: Array) -> Call:
    """The tanh form of GELU."""
    return elementwise({"x": x}, [("gelu", ("x",))], "gelu")


def relu(x: Array) -> Call:
    """max(x, 0)."""
    return elementwise({"x": x}, [("relu", ("x",))], "relu")


def sigmoid(x: Array) -> Call:
    """1 / (1 + exp(-x))."""
    steps: list[kernels.Step] = [
        ("mul", ("x", -math.log2(math.e))),
        ("exp2", ("_",)),
        ("add", ("_", 1.0)),
        ("recip", ("_",)),
    ]
    return elementwise({"x": x}, steps, "sigmoid")


def exp(x: Array) -> Call:
    """e^x."""
    return elementwise({"x": x}, [("exp", ("x",))], "exp")
