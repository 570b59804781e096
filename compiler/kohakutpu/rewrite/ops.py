# SPDX-License-Identifier: Apache-2.0
"""Writing tensor expressions: what a frontend calls (docs/spec/compiler.md 13.3).

Every function takes expressions and gives one; shapes are checked where the expression is made.
"""

from __future__ import annotations

from kohakutpu.errors import CompileError
from kohakutpu.rewrite.expr import Expr, Number, as_expr, make

LAYER = "L5"

__all__ = [
    "absolute",
    "adjacent",
    "broadcast",
    "chunk",
    "concat",
    "contract",
    "contract_heads",
    "conv2d",
    "equal",
    "exp",
    "exp2",
    "gelu",
    "gelu_sigmoid",
    "greater",
    "half",
    "layernorm",
    "less",
    "log",
    "log2",
    "maximum",
    "minimum",
    "online_attention",
    "pad",
    "recip",
    "relu",
    "reshape",
    "rmsnorm",
    "row_max",
    "row_mean",
    "row_sum",
    "rsqrt",
    "sigmoid",
    "silu",
    "softmax",
    "sqrt",
    "take",
    "transpose",
    "upsample2",
    "where",
]


def exp(x: Expr) -> Expr:
    """e^x."""
    return make("exp", x)


def exp2(x: Expr) -> Expr:
    """2^x."""
    return make("exp2", x)


def log(x: Expr) -> Expr:
    """The natural logarithm."""
    return make("log", x)


def log2(x: Expr) -> Expr:
    """The logarithm to base 2."""
    return make("log2", x)


def absolute(x: Expr) -> Expr:
    """The magnitude."""
    return make("absolute", x)


def sqrt(x: Expr) -> Expr:
    """The square root."""
    return make("sqrt", x)


def rsqrt(x: Expr) -> Expr:
    """1 / sqrt(x)."""
    return make("rsqrt", x)


def recip(x: Expr) -> Expr:
    """1 / x."""
    return make("recip", x)


def maximum(a: Expr | Number, b: Expr | Number) -> Expr:
    """The larger of two."""
    return make("maximum", as_expr(a), as_expr(b))


def minimum(a: Expr | Number, b: Expr | Number) -> Expr:
    """The smaller of two."""
    return make("minimum", as_expr(a), as_expr(b))


def less(a: Expr | Number, b: Expr | Number) -> Expr:
    """1 where a < b, else 0."""
    return make("less", as_expr(a), as_expr(b))


def greater(a: Expr | Number, b: Expr | Number) -> Expr:
    """1 where a > b, else 0."""
    return make("greater", as_expr(a), as_expr(b))


def equal(a: Expr | Number, b: Expr | Number) -> Expr:
    """1 where a = b, else 0."""
    return make("equal", as_expr(a), as_expr(b))


def where(p: Expr, a: Expr | Number, b: Expr | Number) -> Expr:
    """a where p is not 0, else b."""
    return make("where", p, as_expr(a), as_expr(b))


def relu(x: Expr) -> Expr:
    """max(x, 0)."""
    return make("relu", x)


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x))."""
    return make("sigmoid", x)


def silu(x: Expr) -> Expr:
    """x * sigmoid(x)."""
    return make("silu", x)


def gelu(x: Expr) -> Expr:
    """The tanh form of GELU."""
    return make("gelu", x)


def gelu_sigmoid(x: Expr) -> Expr:
    """x * sigmoid(1.702 x)."""
    return make("gelu_sigmoid", x)


def row_max(x: Expr, axis: int = -1) -> Expr:
    """The maximum along an axis, which stays with extent 1."""
    return make("reduce_max", x, axis=axis)


def row_sum(x: Expr, axis: int = -1) -> Expr:
    """The sum along an axis, which stays with extent 1."""
    return make("reduce_sum", x, axis=axis)


def row_mean(x: Expr, axis: int = -1) -> Expr:
    """The mean along an axis, which stays with extent 1."""
    return row_sum(x, axis) * (1.0 / x.extents[axis])


def softmax(x: Expr, axis: int = -1) -> Expr:
    """exp(x - max) / sum along an axis."""
    shifted = exp(x - row_max(x, axis))
    return shifted / row_sum(shifted, axis)


def layernorm(x: Expr, weight: Expr, bias: Expr, eps: float = 1e-5) -> Expr:
    """Normalised along the last axis, times weight plus bias."""
    d = x - row_mean(x)
    return d * rsqrt(row_mean(d * d) + eps) * weight + bias


def rmsnorm(x: Expr, weight: Expr, eps: float = 1e-5) -> Expr:
    """Divided by the root mean square of the last axis, times weight."""
    return x * rsqrt(row_mean(x * x) + eps) * weight


def contract(a: Expr, b: Expr) -> Expr:
    """c[..., m, n] = sum over k of a[..., m, k] b[..., n, k]."""
    return make("contract", a, b)


def contract_heads(a: Expr, b: Expr) -> Expr:
    """c[m, n] = sum over heads h and then over k of a[h, m, k] b[n, h*d + k]."""
    return make("contract_heads", a, b)


def reshape(x: Expr, *shape: int) -> Expr:
    """The same elements in row-major order with other extents."""
    return make("reshape", x, shape=shape)


def transpose(x: Expr, *axes: int) -> Expr:
    """Axis i of the result is axis ``axes[i]`` of x; without axes the last two are exchanged."""
    if not axes and x.ndim < 2:
        raise CompileError(f"transpose of {x.shape}; name the axes, or give at least two")
    return make("transpose", x, axes=axes or (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def broadcast(x: Expr, *shape: int) -> Expr:
    """x repeated to ``shape``."""
    return make("broadcast", x, shape=shape)


def concat(*parts: Expr, axis: int = -1) -> Expr:
    """The parts one after another along an axis."""
    return make("concat", *parts, axis=axis)


def adjacent(*parts: Expr) -> Expr:
    """Planes [..., C] whose channels follow each other because their bytes do."""
    return make("adjacent", *parts)


def take(x: Expr, axis: int, lo: int, hi: int, step: int = 1) -> Expr:
    """Elements lo, lo + step, ... below hi of an axis that counts from the last one, -1."""
    return make("slice", x, axis=axis, lo=lo, hi=hi, step=step)


def chunk(x: Expr, parts: int = 2, axis: int = -1) -> tuple[Expr, ...]:
    """Equal parts along an axis.

    Raises:
        CompileError: the axis does not divide.
    """
    extent = x.extents[axis]
    if extent % parts:
        raise CompileError(f"chunk: {extent} elements are no {parts} equal parts; give a divisor of {extent}")
    size = extent // parts
    return tuple(take(x, axis, i * size, (i + 1) * size) for i in range(parts))


def pad(x: Expr, top: int, bottom: int, left: int, right: int) -> Expr:
    """A plane [H, W, C] with a frame of zeros."""
    return make("pad", x, pad=(top, bottom, left, right))


def conv2d(x: Expr, w: Expr, stride: int = 1, pad: tuple[int, int, int, int] = (0, 0, 0, 0)) -> Expr:
    """y[r, c, n] = sum over taps (i, j) and channels of x[r*stride + i - top, c*stride + j - left, ch] w[n, i, j, ch].

    Args:
        x: [H, W, C]; w: [N, kh, kw, C]; pad: top, bottom, left, right rows and columns of zeros.
    """
    return make("conv2d", x, w, stride=stride, pad=pad)


def upsample2(x: Expr) -> Expr:
    """Every pixel of [H, W, C] four times, [2H, 2W, C]."""
    return make("upsample2", x)


def half(x: Expr) -> Expr:
    """x rounded to FP16."""
    return make("half", x)


def online_attention(q: Expr, k: Expr, v: Expr, block: int, keys: int) -> Expr:
    """softmax in base 2 of q k^T over the first ``keys`` keys, times v [..., Dv, Lkv], ``block`` keys at a time."""
    return make("online_attention", q, k, v, block=block, keys=keys)
