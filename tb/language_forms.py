# SPDX-License-Identifier: Apache-2.0
"""Extents, and kernels traced and interpreted, for the tests of the kernel language."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kohakutpu.graph import Op, interpret
from kohakutpu.kernels.language import (
    Kernel,
    dims,
)
from kohakutpu.kernels.language.lower import lower
from kohakutpu.kernels.trace import Trace

M, N, K, F, L, D, V = dims("M, N, K, F, L, D, V")
F64 = npt.NDArray[np.float64]
Knobs = dict[str, Any]
OPEN: Knobs = {}


def rand(*shape: int) -> F64:
    """Values FP16 holds."""
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float16).astype(np.float64)


def traced(k: Kernel, arrays: dict[str, F64], **knobs: Any) -> Trace:
    """The graph of a kernel for these operands."""
    return lower(k.trace(**knobs).extents({n: a.shape for n, a in arrays.items()}))


def run(k: Kernel, arrays: dict[str, F64], **knobs: Any) -> dict[str, F64]:
    """Interpret a kernel; operands take and results lose the matrix shape the graph gives them."""
    bound = k.trace(**knobs).extents({n: a.shape for n, a in arrays.items()})
    graph = lower(bound).graph
    given = {**arrays, **{b.name: b.data for b in bound.trace.buffers if b.data is not None}}
    got = interpret(graph, {n: a.reshape(graph.values[n].shape) for n, a in given.items()})
    return {n: a.reshape(bound.shapes[n]) for n, a in got.items()}


def close(got: F64, want: F64, limit: float = 2e-3) -> None:
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= limit * max(1.0, np.abs(want).max())


def contraction(trace: Trace, number: int = 0) -> Op:
    """A contraction of the graph."""
    return [op for op in trace.graph.ops if op.kind == "contract"][number]
