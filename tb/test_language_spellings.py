# SPDX-License-Identifier: Apache-2.0
"""Tiling, placement and schedule spellings of a kernel emit the same instruction words (docs/spec/compiler.md 11)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ktpu
from kohakutpu.kernels.language import In, Kernel, Out, dims, grid, kernel, loop, region, temp, tile, units

pytestmark = pytest.mark.unit

M, N, K = dims("M, N, K")
SPELLINGS = ("tiling", "region", "grid", "stages")


def spelled(spelling: str) -> Kernel:
    """max(a b^T + r, 0): a product and its epilogue."""
    stage = grid if spelling == "grid" else units

    def product(
        a: Any = In(M, K), b: Any = In(N, K), r: Any = In(M, N), c: Any = Out(M, N), *, gm: Any = 2, gn: Any = 4
    ) -> None:
        held = temp(M, N) if spelling == "stages" else None
        for i, j in stage(a.tiles(gm), b.tiles(gn)):
            acc = tile(gm, gn, 1)
            for k in loop(a.chunks32(1)):
                if spelling == "region":
                    left, right = region(gm, 1), region(gn, 1)
                    left <<= a[i, k]
                    right <<= b[j, k]
                    acc += left @ right
                else:
                    acc += a[i, k] @ b[j, k]
            if held is None:
                c[i, j] <<= acc + r[i, j]
            else:
                held[i, j] <<= acc
        if held is not None:
            for e in stage(c.parts(1024)):
                c[e] <<= held[e] + r[e]

    return kernel(product)


@pytest.mark.parametrize("shape", [(40, 24, 96), (16, 32, 32)])
def test_spellings_emit_equal_words(shape: tuple[int, int, int]) -> None:
    """One program for tiles, regions, a grid, and the stages written apart: fused or not is the compiler's choice."""
    m, n, k = shape
    rng = np.random.default_rng(k)
    operands = [rng.standard_normal(s) for s in ((m, k), (n, k), (m, n))]
    for fuse in ("auto", "never"):
        made = [
            ktpu.compile(ktpu.call(spelled(s), *operands), ktpu.machine("mm_mesh"), fuse=fuse).artifact
            for s in SPELLINGS
        ]
        for spelling, artifact in zip(SPELLINGS, made, strict=True):
            assert artifact.payloads == made[0].payloads, (spelling, fuse)
            assert artifact.steps == made[0].steps, (spelling, fuse)
