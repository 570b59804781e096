# SPDX-License-Identifier: Apache-2.0
"""Rows of at most one reduction: softmax and the norms (docs/spec/kernels.md 5.1)."""

from __future__ import annotations

from kohakutpu.graph import Graph, Value, verify
from kohakutpu.kernels.formula import LOG2E, Formula
from kohakutpu.kernels.trace import Trace

LAYER = "L4"

MASKED = -60000.0
"""What a masked score becomes before the maximum is taken."""


def softmax(m: int, n: int, *, masked: bool = False) -> Trace:
    """y = exp(x - max) / sum along rows of n; with ``masked`` only where ``mask``, one row of 0 and 1, is not 0.

    A row with nothing unmasked gives equal shares.
    """
    graph = Graph()
    graph.value(Value("x", "fp16", (m, n), "in"))
    if masked:
        graph.value(Value("mask", "fp16", (1, n), "in"))
    graph.value(Value("y", "fp16", (m, n), "out"))
    f = Formula(graph)
    v = f.op("where", "mask", "x", MASKED) if masked else "x"
    shifted = f.op("sub", v, f.op("row_max", v))
    ex = f.op("exp2", f.op("mul", shifted, LOG2E))
    f.div(ex, f.op("row_sum", ex), out="y")
    verify(graph)
    return Trace("softmax_keys" if masked else "softmax", graph, {"M": m, "N": n})


def layernorm(m: int, n: int, *, eps: float = 1e-5) -> Trace:
    """y = (x - mean) * rsqrt(variance + eps) * w + b along rows of n; w and b are one row each.

    The variance is the mean square about the mean, divided before it is squared, so no partial sum leaves FP16.
    """
    graph = Graph()
    graph.value(Value("x", "fp16", (m, n), "in"))
    graph.value(Value("w", "fp16", (1, n), "in"))
    graph.value(Value("b", "fp16", (1, n), "in"))
    graph.value(Value("y", "fp16", (m, n), "out"))
    f = Formula(graph)
    mean = f.op("mul", f.op("row_sum", "x"), 1.0 / n)
    d = f.op("sub", "x", mean)
    variance = f.op("row_sum", f.op("mul", f.op("mul", d, 1.0 / n), d))
    scaled = f.op("mul", d, f.op("rsqrt", f.op("add", variance, float(eps))))
    f.op("add", f.op("mul", scaled, "w"), "b", out="y")
    verify(graph)
    return Trace("layernorm", graph, {"M": m, "N": n}, {"eps": eps})


def rmsnorm(m: int, n: int, *, eps: float = 1e-5) -> Trace:
    """y = x * rsqrt(mean square + eps) * w along rows of n; w is one row."""
    graph = Graph()
    graph.value(Value("x", "fp16", (m, n), "in"))
    graph.value(Value("w", "fp16", (1, n), "in"))
    graph.value(Value("y", "fp16", (m, n), "out"))
    f = Formula(graph)
    square = f.op("row_sum", f.op("mul", f.op("mul", "x", 1.0 / n), "x"))
    f.op("mul", f.op("mul", "x", f.op("rsqrt", f.op("add", square, float(eps)))), "w", out="y")
    verify(graph)
    return Trace("rmsnorm", graph, {"M": m, "N": n}, {"eps": eps})
