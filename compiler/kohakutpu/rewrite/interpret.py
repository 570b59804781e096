# SPDX-License-Identifier: Apache-2.0
"""What a tensor expression means, in float64 (docs/spec/compiler.md 13.3).

Nothing is rounded but what says so (``half``). Sums run in the order float64 allows, so two expressions that add the
same terms agree to the last bit where the terms are exact, for example small integers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.rewrite.expr import Expr, walk

LAYER = "L5"

F64 = npt.NDArray[np.float64]


def interpret(root: Expr, values: Mapping[str, npt.ArrayLike]) -> F64:
    """The value of an expression.

    Args:
        values: of every input, by name.

    Raises:
        CompileError: an input without a value, or with one of another shape.
    """
    found: dict[Expr, F64] = {}
    with np.errstate(all="ignore"):
        for e in walk(root):
            if e.op == "input":
                found[e] = _value(e, values)
            elif e.op == "const":
                found[e] = np.asarray(e.number)
            else:
                found[e] = np.asarray(_MEANING[e.op](e, *(found[a] for a in e.args)), np.float64)
    return found[root]


def _value(e: Expr, values: Mapping[str, npt.ArrayLike]) -> F64:
    if e.name not in values:
        raise CompileError(f"input {e.name} has no value; given: {', '.join(values) or 'none'}")
    value = np.asarray(values[e.name], np.float64)
    if value.shape != e.shape:
        raise CompileError(f"input {e.name} is {e.shape}, its value is {value.shape}")
    return value


def _sigmoid(v: F64) -> F64:
    return np.exp(-np.logaddexp(0.0, -v))


def _gelu(v: F64) -> F64:
    return 0.5 * v * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (v + 0.044715 * v**3)))


def _take(e: Expr, x: F64) -> F64:
    at = [slice(None)] * x.ndim
    at[e.index("axis")] = slice(e.index("lo"), e.index("hi"), e.index("step"))
    return x[tuple(at)]


def _join(_e: Expr, a: F64, b: F64) -> F64:
    heads, _, d = a.shape
    total = np.zeros((a.shape[1], b.shape[0]))
    for h in range(heads):
        total = total + a[h] @ b[:, h * d : (h + 1) * d].T
    return total


def _pad(x: F64, frame: tuple[int, ...]) -> F64:
    top, bottom, left, right = frame
    return np.pad(x, ((top, bottom), (left, right), (0, 0)))


def _conv2d(e: Expr, x: F64, w: F64) -> F64:
    """A sum over the taps, each a product over the channels of a strided view."""
    plane, stride = _pad(x, e.axes("pad")), e.index("stride")
    rows, columns, channels = e.extents
    total = np.zeros((rows, columns, channels))
    for i in range(w.shape[1]):
        for j in range(w.shape[2]):
            view = plane[i : i + (rows - 1) * stride + 1 : stride, j : j + (columns - 1) * stride + 1 : stride]
            total = total + view @ w[:, i, j].T
    return total


def _attention(e: Expr, q: F64, k: F64, v: F64) -> F64:
    """The recurrence of the running maximum, sum and result."""
    block, keys = e.index("block"), e.index("keys")
    top = np.full((*q.shape[:-1], 1), -np.inf)
    total, result = np.zeros_like(top), np.zeros(e.extents)
    for first in range(0, keys, block):
        last = min(first + block, keys)
        scores = q @ k[..., first:last, :].swapaxes(-1, -2)
        highest = np.maximum(top, scores.max(axis=-1, keepdims=True))
        old, weights = np.exp2(top - highest), np.exp2(scores - highest)
        total = total * old + weights.sum(axis=-1, keepdims=True)
        result = result * old + weights @ v[..., first:last].swapaxes(-1, -2)
        top = highest
    return result / total


_LANES: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "absolute": np.absolute,
    "exp2": np.exp2,
    "log2": np.log2,
    "recip": lambda x: 1.0 / x,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": np.less,
    "greater": np.greater,
    "equal": np.equal,
    "fma": lambda a, b, c: a * b + c,
    "where": lambda p, a, b: np.where(p != 0, a, b),
    "div": np.divide,
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "silu": lambda x: x * _sigmoid(x),
    "gelu": _gelu,
    "gelu_sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "sigmoid": _sigmoid,
    "relu": lambda x: np.maximum(x, 0.0),
    "half": lambda x: x.astype(np.float16),
}


def _lane(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda _e, *args: f(*args)


_MEANING: dict[str, Callable[..., Any]] = {
    **{op: _lane(f) for op, f in _LANES.items()},
    "reduce_max": lambda e, x: x.max(axis=e.index("axis"), keepdims=True),
    "reduce_sum": lambda e, x: x.sum(axis=e.index("axis"), keepdims=True),
    "contract": lambda _e, a, b: a @ b.swapaxes(-1, -2),
    "contract_heads": _join,
    "reshape": lambda e, x: x.reshape(e.extents),
    "transpose": lambda e, x: x.transpose(e.axes("axes")),
    "broadcast": lambda e, x: np.broadcast_to(x, e.extents),
    "concat": lambda e, *parts: np.concatenate(parts, axis=e.index("axis")),
    "adjacent": lambda _e, *parts: np.concatenate(parts, axis=-1),
    "slice": _take,
    "pad": lambda e, x: _pad(x, e.axes("pad")),
    "conv2d": _conv2d,
    "upsample2": lambda _e, x: x.repeat(2, axis=0).repeat(2, axis=1),
    "online_attention": _attention,
}
