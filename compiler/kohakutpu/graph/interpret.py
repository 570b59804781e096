# SPDX-License-Identifier: Apache-2.0
"""Reference interpreter: every op exact in float64, rounded once to its result's dtype."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.graph.ir import Graph, verify

LAYER = "L3"

FP16_MAX = float(np.finfo(np.float16).max)

F64 = npt.NDArray[np.float64]


def interpret(graph: Graph, inputs: Mapping[str, npt.ArrayLike]) -> dict[str, F64]:
    """Outputs of the graph in float64.

    Args:
        inputs: one array per input, table and constant, of its shape.

    Raises:
        CompileError: a missing input, a wrong shape, or what :func:`verify` refuses.
    """
    verify(graph)
    env: dict[str, F64] = {}
    for v in graph.values.values():
        if v.role not in ("in", "table", "const"):
            continue
        if v.name not in inputs:
            raise CompileError(f"input {v.name} {v.shape} was not given")
        array = np.asarray(inputs[v.name], dtype=np.float64)
        if array.shape != v.shape:
            raise CompileError(f"input {v.name} has shape {array.shape}, the graph says {v.shape}")
        env[v.name] = array
    for op in graph.ops:
        a, b = (env[n] for n in op.args)
        exact = a @ b.T
        env[op.result] = np.clip(exact, -FP16_MAX, FP16_MAX).astype(np.float16).astype(np.float64)
    return {v.name: env[v.name] for v in graph.values.values() if v.role == "out"}
