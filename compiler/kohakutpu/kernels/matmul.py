# SPDX-License-Identifier: Apache-2.0
"""The matrix product as a kernel: a grid of accumulator tiles swept over K."""

from __future__ import annotations

from kohakutpu.graph import Graph, Op, Value, verify
from kohakutpu.kernels.trace import Trace, tiling

LAYER = "L4"


def matmul(m: int, n: int, k: int, *, gm: int | None = None, gn: int | None = None, nk: int | None = None) -> Trace:
    """Trace C[m, n] = A[m, k] B[n, k]^T.

    Args:
        m, n, k: extents, at least 1.
        gm, gn, nk: sub-tiles of an instance and K blocks of a chunk; name all three or none.

    Raises:
        CompileError: an extent below 1, or only some of the knobs.
    """
    named = tiling("matmul", gm, gn, nk)
    graph = Graph()
    graph.value(Value("a", "fp16", (m, k), "in"))
    graph.value(Value("b", "fp16", (n, k), "in"))
    graph.value(Value("c", "fp16", (m, n), "out"))
    graph.ops.append(Op("contract", ("a", "b"), "c", tuple(sorted(named.items()))))
    verify(graph)
    return Trace("matmul", graph, {"M": m, "N": n, "K": k}, dict(named))
