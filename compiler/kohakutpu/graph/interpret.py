# SPDX-License-Identifier: Apache-2.0
"""Reference interpreter: every op exact in float64, rounded once to its result's dtype."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from kohakutpu.dtypes import BY_NAME
from kohakutpu.errors import CompileError
from kohakutpu.graph.ir import Graph, verify

LAYER = "L3"

F64 = npt.NDArray[np.float64]


def _choose(where: npt.NDArray[np.bool_], a: F64, b: F64) -> F64:
    return np.asarray(np.where(where, a, b), dtype=np.float64)


_MEANING: dict[str, Callable[..., F64]] = {
    "contract": lambda a, b: a @ b.T,
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


def interpret(graph: Graph, inputs: Mapping[str, npt.ArrayLike]) -> dict[str, F64]:
    """Outputs of the graph in float64.

    Args:
        inputs: one array per input, table and constant without a number, of its shape.

    Raises:
        CompileError: a missing input, a wrong shape, or what :func:`verify` refuses.
    """
    verify(graph)
    env: dict[str, F64] = {}
    for v in graph.values.values():
        if v.role not in ("in", "table", "const"):
            continue
        if v.number is not None:
            env[v.name] = BY_NAME[v.dtype].round(np.full(v.shape, v.number))
            continue
        if v.name not in inputs:
            raise CompileError(f"input {v.name} {v.shape} was not given")
        array = np.asarray(inputs[v.name], dtype=np.float64)
        if array.shape != v.shape:
            raise CompileError(f"input {v.name} has shape {array.shape}, the graph says {v.shape}")
        env[v.name] = array
    for op in graph.ops:
        with np.errstate(all="ignore"):
            exact = _MEANING[op.kind](*(env[n] for n in op.args))
        env[op.result] = BY_NAME[graph.values[op.result].dtype].round(exact)
    return {v.name: env[v.name] for v in graph.values.values() if v.role == "out"}
