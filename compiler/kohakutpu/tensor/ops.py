# SPDX-License-Identifier: Apache-2.0
"""Operators on float arrays; each is one kernel call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kohakutpu.errors import CompileError
from kohakutpu.kernels import library
from kohakutpu.kernels.language import Kernel
from kohakutpu.kernels.language.kernel import Knob
from kohakutpu.kernels.library.chain import Step, chain
from kohakutpu.kernels.library.helpers import SUB_ROW
from kohakutpu.tensor.call import KernelCall, call
from kohakutpu.tensor.operand import Array, Operand, row, to_half

LAYER = "L5"


WIDEST = SUB_ROW
"""Elements one reduction takes; longer rows go to a kernel that folds parts of a row."""


def matmul(a: Array, b: Array, **tiling: int) -> KernelCall:
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
    return call(library.matmul, x, y, extents=None, **tiling)


def matmul_batched(a: Array, b: Array, **tiling: int) -> KernelCall:
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
) -> KernelCall:
    """activation(scale * x weight^T + bias + add), as a Linear layer stores its weight [out][in].

    Args:
        bias: one value an output column; add: [rows][out].
        activation: "silu", "gelu", "gelu_sigmoid", "relu", "sigmoid", "exp" or "".

    Raises:
        CompileError: operands that do not fit together.
    """
    if bias is None and add is None and scale is None and not activation:
        return matmul(x, weight, **tiling)
    a, w = to_half("x", x), to_half("weight", weight)
    if a.shape[1] != w.shape[1]:
        raise CompileError(f"x is {a.shape}, weight is {w.shape}; both contract their last axis, so K must agree")
    operands = [a, w]
    if bias is not None:
        operands.append(_columns("bias", bias, w.shape[0]))
    if add is not None:
        operands.append(to_half("add", add))
        if operands[-1].shape != (a.shape[0], w.shape[0]):
            raise CompileError(f"add is {operands[-1].shape}, the product is {(a.shape[0], w.shape[0])}")
    kernel = library.linear(activation, scaled=scale is not None, bias=bias is not None, add=add is not None)
    knobs: dict[str, Knob] = {**tiling} if scale is None else {"scale": float(scale), **tiling}
    return call(kernel, *operands, extents=None, **knobs)


def linear_silu(x: Array, weight: Array, **tiling: int) -> KernelCall:
    """silu(x weight^T)."""
    return linear(x, weight, activation="silu", **tiling)


def linear_bias(x: Array, weight: Array, bias: Array, **tiling: int) -> KernelCall:
    """x weight^T + bias."""
    return linear(x, weight, bias=bias, activation="", scale=None, **tiling)


def linear_add(x: Array, weight: Array, add: Array, **tiling: int) -> KernelCall:
    """x weight^T + add."""
    return linear(x, weight, add=add, activation="", scale=None, **tiling)


GATED = {"gelu": (library.geglu_fused, library.geglu_bias), "silu": (library.swiglu_fused, library.swiglu_bias)}
"""Kernels without and with biases that have a name of their own."""


def geglu(
    x: Array,
    gate: Array,
    up: Array,
    *,
    gate_bias: Array | None = None,
    up_bias: Array | None = None,
    activation: str = "gelu",
    **tiling: int,
) -> KernelCall:
    """gelu(x gate^T + gate_bias) * (x up^T + up_bias); the activation is on the *first* weight.

    Raises:
        CompileError: weights of different shapes, or one bias without the other.
    """
    a, g, u = to_half("x", x), to_half("gate", gate), to_half("up", up)
    if g.shape != u.shape or a.shape[1] != g.shape[1]:
        raise CompileError(f"x is {a.shape}, gate is {g.shape}, up is {u.shape}; the weights agree, and K with x")
    if (gate_bias is None) != (up_bias is None):
        raise CompileError("geglu: one bias without the other; give both or none")
    named = ("gate_bias", gate_bias), ("up_bias", up_bias)
    biases = [_columns(name, b, g.shape[0]) for name, b in named if b is not None]
    kernels = GATED.get(activation)
    kernel = kernels[bool(biases)] if kernels else library.gated(activation, bias=bool(biases))
    return call(kernel, a, g, u, *biases, extents=None, **tiling)


def softmax(x: Array, mask: Array | None = None) -> KernelCall:
    """Softmax along the last axis of [rows][width]; ``mask`` is one row of 0 and 1."""
    a = to_half("x", x)
    if mask is not None:
        return call(library.softmax_masked(a.shape[1]), a, _columns("mask", mask, a.shape[1]))
    return call(_rows(library.softmax, library.softmax_wide, a), a)


def layernorm(x: Array, weight: Array, bias: Array, *, eps: float = 1e-5) -> KernelCall:
    """Normalised rows of [rows][width] times weight plus bias."""
    a = to_half("x", x)
    w, b = (_columns(name, v, a.shape[1]) for name, v in (("weight", weight), ("bias", bias)))
    return call(_rows(library.layernorm, library.layernorm_wide, a), a, w, b, eps=float(eps))


def rmsnorm(x: Array, weight: Array, *, eps: float = 1e-5) -> KernelCall:
    """Rows of [rows][width] divided by their root mean square, times weight."""
    a = to_half("x", x)
    kernel = _rows(library.rmsnorm, library.rmsnorm_wide, a)
    return call(kernel, a, _columns("weight", weight, a.shape[1]), eps=float(eps))


def _rows(narrow: Callable[[int], Kernel], wide: Callable[[int], Kernel], x: Operand) -> Kernel:
    """The kernel for the width of a row; a kernel cannot branch on an extent."""
    return (wide if x.shape[1] > WIDEST else narrow)(x.shape[1])


def _columns(name: str, array: Array, n: int) -> Operand:
    return row(name, array, n).reshape(-1)


def elementwise(operands: Mapping[str, Array], steps: Sequence[Step], name: str = "") -> KernelCall:
    """A chain of operations in one pass, see :func:`kohakutpu.kernels.library.chain.chain`.

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
    rows = max(half.shape[0] for half in halves.values())
    inputs = tuple((key, half.shape[0] < rows and half.shape[0] == 1) for key, half in halves.items())
    arrays = [h.reshape(-1) if single else h for h, (_, single) in zip(halves.values(), inputs, strict=True)]
    return call(chain(inputs, tuple(map(_frozen, steps)), name), *arrays)


def _frozen(step: Step) -> Step:
    """A step whose operands may have been given as a list, to be looked up."""
    if isinstance(step, tuple | list) and len(step) == 2 and isinstance(step[1], list):
        return step[0], tuple(step[1])
    return step


def add(a: Array, b: Array) -> KernelCall:
    """a + b."""
    return elementwise({"a": a, "b": b}, [("add", ("a", "b"))], "add")


def mul(a: Array, b: Array) -> KernelCall:
    """a * b."""
    return elementwise({"a": a, "b": b}, [("mul", ("a", "b"))], "mul")


def silu(x: Array) -> KernelCall:
    """x * sigmoid(x)."""
    return elementwise({"x": x}, [("silu", ("x",))], "silu")


def gelu(x: Array) -> KernelCall:
    """The tanh form of GELU."""
    return elementwise({"x": x}, [("gelu", ("x",))], "gelu")


def relu(x: Array) -> KernelCall:
    """max(x, 0)."""
    return elementwise({"x": x}, [("relu", ("x",))], "relu")


def sigmoid(x: Array) -> KernelCall:
    """1 / (1 + exp(-x))."""
    return elementwise({"x": x}, [("sigmoid", ("x",))], "sigmoid")


def exp(x: Array) -> KernelCall:
    """e^x."""
    return elementwise({"x": x}, [("exp", ("x",))], "exp")
