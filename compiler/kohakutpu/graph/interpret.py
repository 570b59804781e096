# SPDX-License-Identifier: Apache-2.0
"""Reference interpreter: every op exact in float64, rounded once to its result's dtype (docs/spec/compiler.md 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from kohakutpu.chain import FOLDS
from kohakutpu.dtypes import BY_NAME
from kohakutpu.errors import CompileError
from kohakutpu.graph.check import verify
from kohakutpu.graph.ir import REARRANGE, Graph, Op, Value
from kohakutpu.views import Spread, Strided

LAYER = "L3"

F64 = npt.NDArray[np.float64]


def _choose(where: npt.NDArray[np.bool_], a: F64, b: F64) -> F64:
    return np.asarray(np.where(where, a, b), dtype=np.float64)


MEANING: dict[str, Callable[..., F64]] = {
    "neg": lambda a: -a,
    "absolute": np.abs,
    "exp2": np.exp2,
    "log2": np.log2,
    "recip": lambda a: 1.0 / a,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "maximum": lambda a, b: _choose(a < b, b, a),
    "minimum": lambda a, b: _choose(a > b, b, a),
    "less": lambda a, b: (a < b).astype(np.float64),
    "greater": lambda a, b: (a > b).astype(np.float64),
    "equal": lambda a, b: (a == b).astype(np.float64),
    "fma": lambda a, b, c: a * b + c,
    "where": lambda p, a, b: _choose(p != 0, a, b),
    "row_max": lambda a: a.max(axis=1, keepdims=True),
    "row_sum": lambda a: a.sum(axis=1, keepdims=True),
}
"""What each lane operation computes, exactly."""


def interpret(graph: Graph, inputs: Mapping[str, npt.ArrayLike]) -> dict[str, F64]:
    """Outputs of the graph in float64.

    Args:
        inputs: one array per input, table and constant without a number, of its shape.

    Raises:
        CompileError: a missing input, a wrong shape, or what :func:`~kohakutpu.graph.check.verify` refuses.
    """
    verify(graph)
    env = {v.name: _given(v, inputs) for v in graph.values.values() if v.role in ("in", "table", "const")}
    for op in graph.ops:
        value = graph.values[op.result]
        with np.errstate(all="ignore"):
            exact = _exact(op, value.shape, env)
        rounded = BY_NAME[value.dtype].round(np.broadcast_to(exact, value.shape))
        if value.window is None:
            env[op.result] = rounded
            continue
        whole = env.setdefault(value.of, np.full(graph.values[value.of].shape, np.nan))
        value.window.of(whole)[...] = rounded.reshape(value.window.blocks, value.window.rows, value.window.cols)
    return {v.name: env[v.name] for v in graph.values.values() if v.role == "out" and not v.of}


def _given(v: Value, inputs: Mapping[str, npt.ArrayLike]) -> F64:
    if v.number is not None:
        return BY_NAME[v.dtype].round(np.full(v.shape, v.number))
    if v.name not in inputs:
        raise CompileError(f"input {v.name} {v.shape} was not given")
    array = np.asarray(inputs[v.name], dtype=np.float64)
    if array.shape != v.shape:
        raise CompileError(f"input {v.name} has shape {array.shape}, the graph says {v.shape}")
    return array


def _exact(op: Op, shape: tuple[int, int], env: Mapping[str, F64]) -> F64:
    """What an op gives before it is rounded."""
    if op.kind == "contract":
        return _contract(op, env)
    if op.kind == REARRANGE:
        read = op.read(0)
        assert isinstance(read, Strided)  # the verifier refuses any other
        out: F64 = env[op.args[0]].reshape(-1)[read.sources()].reshape(shape)
        return out
    return _lanes(op, shape, env)


def _contract(op: Op, env: Mapping[str, F64]) -> F64:
    left, right = (env[n] for n in op.args)
    a, b = op.window(0, _shape(left)).of(left), op.window(1, _shape(right)).of(right)
    batch, join = op.attr("batch") or 1, op.attr("join") or 1
    heads = np.broadcast_to(a, (batch * join, *a.shape[1:])).reshape(batch, join, *a.shape[1:])
    joined = heads.transpose(0, 2, 1, 3).reshape(batch, a.shape[1], join * a.shape[2])
    out: F64 = (joined @ b.transpose(0, 2, 1)).reshape(batch * a.shape[1], b.shape[1])
    return out


def _lanes(op: Op, shape: tuple[int, int], env: Mapping[str, F64]) -> F64:
    rows, cols = op.space or shape
    args = []
    for position, name in enumerate(op.args):
        read, array = op.read(position), env[name]
        if isinstance(read, Spread):
            array = array.reshape(-1)[read.sources(math.prod((rows, cols)))].reshape(rows, cols)
        elif op.kind in FOLDS and op.space is not None:
            array = np.broadcast_to(array, (rows, cols))
        args.append(array)
    return MEANING[op.kind](*args)


def _shape(array: F64) -> tuple[int, int]:
    return array.shape[0], array.shape[1]
