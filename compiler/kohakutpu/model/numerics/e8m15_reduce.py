# SPDX-License-Identifier: Apache-2.0
"""Tree reductions of the vector core in their fixed order (docs/spec/numerics.md section 11)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from .bits import U32
from .e8m15 import add, maximum, minimum, multiply
from .e8m15_codes import MINUS_INF, PLUS_INF, ZERO
from .e8m15_seeds import exp2

LAYER = "leaf"

SUM, MAX, MIN, SUMSQ, DOT, EXPSUM = range(6)
ACCUMULATORS = 16

_NODES: dict[int, tuple[Callable[[U32, U32], U32], int]] = {
    MAX: (maximum, MINUS_INF),
    MIN: (minimum, PLUS_INF),
}


def reduce_elements(kind: int, a: npt.ArrayLike, b: npt.ArrayLike | None = None) -> tuple[int, U32 | None]:
    """Reduction `kind` (0 SUM .. 5 EXPSUM) of a, uint32 (n,), n a multiple of 16 up to 128.

    b: second factor of SUMSQ and DOT. Returns (E8M15 code, leaves): the leaves are the exponentials that
    EXPSUM also stores, None for the other kinds. Raises ValueError for another kind or length.
    """
    va = np.asarray(a, dtype=np.uint32)
    n = len(va)
    if n == 0 or n % 16 or n > 128:
        raise ValueError(f"reduction of {n} elements: a multiple of 16 up to 128 is needed")
    leaves: U32 | None = None
    if kind in (SUM, MAX, MIN):
        beats = va.reshape(-1, 16)
    elif kind in (SUMSQ, DOT):
        if b is None:
            raise ValueError(f"reduction kind {kind}: the second operand is missing")
        beats = multiply(va, b).reshape(-1, 8)
    elif kind == EXPSUM:
        leaves = exp2(va)
        beats = leaves.reshape(-1, 8)
    else:
        raise ValueError(f"reduction kind {kind}: 0..5 are tree reductions")
    node, identity = _NODES.get(kind, (add, ZERO))
    accumulators = np.full(ACCUMULATORS, identity, dtype=np.uint32)
    # at most 16 beats, so each accumulator takes at most one
    used = len(beats)
    accumulators[:used] = node(_tree(node, beats), accumulators[:used])
    return int(_tree(node, accumulators[None])[0]), leaves


def _tree(node: Callable[[U32, U32], U32], values: U32) -> U32:
    """Pairwise tree over the last axis of (rows, 2**k); the lower index is the left operand."""
    while values.shape[1] > 1:
        values = node(values[:, 0::2], values[:, 1::2])
    return values[:, 0]
