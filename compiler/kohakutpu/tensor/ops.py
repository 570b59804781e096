# SPDX-License-Identifier: Apache-2.0
"""Operators on float arrays; each is one kernel call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohakutpu import kernels
from kohakutpu.errors import CompileError

LAYER = "L5"

F16 = npt.NDArray[np.float16]


@dataclass(frozen=True)
class Call:
    """A kernel and its operands by name, rounded to FP16 (round to nearest even)."""

    trace: kernels.Trace
    operands: dict[str, F16]


FP16_MAX = float(np.finfo(np.float16).max)


def to_half(name: str, array: npt.ArrayLike, axes: tuple[int, ...] = (2,)) -> F16:
    values = np.asarray(array)
    if values.dtype.kind not in "fiub":
        raise CompileError(f"{name} is {values.dtype}; an operand holds real numbers")
    if values.ndim not in axes:
        what = "a matrix product takes two-dimensional operands" if axes == (2,) else f"it takes {axes}"
        raise CompileError(f"{name} has {values.ndim} axes; {what}")
    with np.errstate(over="ignore"):
        half = values.astype(np.float16)
    beyond = int(np.count_nonzero(~np.isfinite(half)))
    if beyond:
        raise CompileError(f"{name} holds {beyond} values beyond {FP16_MAX:.0f} or not a number; scale it first")
    return half


def _row(name: str, array: npt.ArrayLike, n: int) -> F16:
    """One value a column as [1][n]."""
    half = to_half(name, array, (1, 2)).reshape(1, -1)
    if half.shape[1] != n:
        raise CompileError(f"{name} has {half.shape[1]} values; one for each of {n} columns is needed")
    return half


def matmul(a: npt.ArrayLike, b: npt.ArrayLike, **tiling: int) -> Call:
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


def linear(
    x: npt.ArrayLike,
    weight: npt.ArrayLike,
    *,
    bias: npt.ArrayLike | None = None,
    add: npt.ArrayLike | None = None,
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
    operands = {"x": a, "w": w}
    if bias is not None:
        operands["b"] = _row("bias", bias, n)
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


def linear_silu(x: npt.ArrayLike, weight: npt.ArrayLike, **tiling: int) -> Call:
    """silu(x weight^T)."""
    return linear(x, weight, activation="silu", **tiling)


def linear_bias(x: npt.ArrayLike, weight: npt.ArrayLike, bias: npt.ArrayLike, **tiling: int) -> Call:
    """x weight^T + bias."""
    return linear(x, weight, bias=bias, activation="", scale=None, **tiling)


def linear_add(x: npt.ArrayLike, weight: npt.ArrayLike, add: npt.ArrayLike, **tiling: int) -> Call:
    """x weight^T + add."""
    return linear(x, weight, add=add, activation="", scale=None, **tiling)


def geglu(
    x: npt.ArrayLike,
    gate: npt.ArrayLike,
    up: npt.ArrayLike,
    *,
    gate_bias: npt.ArrayLike | None = None,
    up_bias: npt.ArrayLike | None = None,
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
    operands = {"x": a, "wg": g, "wu": u}
    if gate_bias is not None and up_bias is not None:
        operands |= {"bg": _row("gate_bias", gate_bias, n), "bu": _row("up_bias", up_bias, n)}
    trace = kernels.gated(a.shape[0], n, a.shape[1], activation=activation, bias=gate_bias is not None, **tiling)
    return Call(trace, operands)


def softmax(x: npt.ArrayLike, mask: npt.ArrayLike | None = None) -> Call:
    """Softmax along the last axis of [rows][width]; ``mask`` is one row of 0 and 1."""
    a = to_half("x", x)
    operands = {"x": a}
    if mask is not None:
        operands["mask"] = _row("mask", mask, a.shape[1])
    return Call(kernels.softmax(*a.shape, masked=mask is not None), operands)


def layernorm(x: npt.ArrayLike, weight: npt.ArrayLike, bias: npt.ArrayLike, *, eps: float = 1e-5) -> Call:
    """Normalised rows of [rows][width] times weight plus bias."""
    a = to_half("x", x)
    operands = {"x": a, "w": _row("weight", weight, a.shape[1]), "b": _row("bias", bias, a.shape[1])}
    return Call(kernels.layernorm(*a.shape, eps=eps), operands)


def rmsnorm(x: npt.ArrayLike, weight: npt.ArrayLike, *, eps: float = 1e-5) -> Call:
    """Rows of [rows][width] divided by their root mean square, times weight."""
    a = to_half("x", x)
    return Call(kernels.rmsnorm(*a.shape, eps=eps), {"x": a, "w": _row("weight", weight, a.shape[1])})


def elementwise(operands: dict[str, npt.ArrayLike], steps: Sequence[kernels.Step], name: str = "") -> Call:
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


def add(a: npt.ArrayLike, b: npt.ArrayLike) -> Call:
    """a + b."""
    return elementwise({"a": a, "b": b}, [("add", ("a", "b"))], "add")


def mul(a: npt.ArrayLike, b: npt.ArrayLike) -> Call:
    """a * b."""
    return elementwise({"a": a, "b": b}, [("mul", ("a", "b"))], "mul")


def silu(x: npt.ArrayLike) -> Call:
    """x * sigmoid(x)."""
    return elementwise({"x": x}, [("silu", ("x",))], "silu")


def gelu(x: npt.ArrayLike) -> Call:
    """The tanh form of GELU."""
    return elementwise({"x": x}, [("gelu", ("x",))], "gelu")


def relu(x: npt.ArrayLike) -> Call:
    """max(x, 0)."""
    return elementwise({"x": x}, [("relu", ("x",))], "relu")


def exp(x: npt.ArrayLike) -> Call:
    """e^x."""
    return elementwise({"x": x}, [("exp", ("x",))], "exp")
