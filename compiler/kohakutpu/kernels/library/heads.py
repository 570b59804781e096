# SPDX-License-Identifier: Apache-2.0
"""Projections into heads and out of them (docs/spec/kernels.md 3, rows 20 to 22, and 4): no head is ever moved."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import In, Kernel, Out, dims, kernel, loop, tile, units
from kohakutpu.kernels.library.helpers import named, product

LAYER = "L4"

L, C, D, V = dims("L, C, D, V")


@kernel
def project_heads(
    x: Any = In(L, C),
    w: Any = In(..., D, C),
    y: Any = Out(..., L, D),
    *,
    gm: Any = None,
    gn: Any = None,
    nk: Any = None,
) -> None:
    """y[heads, L, D] = x[L, C] w[heads, D, C]^T; the batch is on the weight, ``w = heads_of(W, heads)``."""
    for i, j in units(x.tiles(gm), w.tiles(gn)):
        y[i, j] <<= product(x, w, i, j, (gm, gn, nk))


@lru_cache(typed=True)
def attn_out(heads: int) -> Kernel:
    """y[L, D] = r[L, D] + concat(o) w[D, heads*V]^T + b[D] with o [heads*L, V], the heads under one another.

    One sweep runs over (head, chunk), so the heads are joined in the accumulator. L is whole tiles of 4 gm rows and V
    whole chunks of 32 nk.

    Raises:
        TraceError: fewer than one head.
    """
    if heads < 1:
        raise TraceError(f"attn_out: {heads} heads; give at least 1")

    def body(
        o: Any = In(L * heads, V),
        w: Any = In(D, V * heads),
        r: Any = In(L, D),
        b: Any = In(D),
        y: Any = Out(L, D),
        *,
        gm: Any = None,
        gn: Any = None,
        nk: Any = None,
    ) -> None:
        rows, chunks = r.tiles(gm), o.chunks32(nk)
        for i, j in units(rows, w.tiles(gn)):
            acc = tile(gm, gn, nk)
            for s in loop(chunks * heads):
                acc += o[(s // chunks) * rows + i, s % chunks] @ w[j, s]
            y[i, j] <<= acc + b[j] + r[i, j]

    return named("attn_out", body, attn_out.__doc__)
