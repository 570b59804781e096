# SPDX-License-Identifier: Apache-2.0
"""Reference matrix product on whole matrices (docs/spec/numerics.md section 6).

The bits do not depend on the tiling, so one sweep over all row and column groups defines the product that
any sequence of cluster instructions must give.
"""

from __future__ import annotations

import numpy as np

from .accumulator import ACC_MW_DEFAULT, ANCHOR_MXFP7, to_fp16
from .bits import U8, U16, U32, IntArray
from .events import NumericEvents
from .mxfp7 import BLOCK_K, I8, LANES, quantise
from .tiles import TileStore

LAYER = "leaf"


def operand_entries(fp16: IntArray, events: NumericEvents | None = None) -> tuple[I8, U8]:
    """Quantise a matrix of lanes into entries.

    fp16: FP16 codes (lanes, K), rows of A or columns of B; lanes a multiple of 4, K of 32 (ValueError).
    Returns (q int8 (lanes/4, K/32, 4, 32), scale uint8 (lanes/4, K/32, 4)).
    """
    lanes, k = fp16.shape
    if lanes % LANES or k % BLOCK_K:
        raise ValueError(f"operand_entries: shape {fp16.shape} is not a multiple of (4, 32)")
    groups = fp16.reshape(lanes // LANES, LANES, k // BLOCK_K, BLOCK_K).transpose(0, 2, 1, 3)
    return quantise(groups, events)


def product(
    a: IntArray,
    b: IntArray,
    mw: int = ACC_MW_DEFAULT,
    anchor: int = ANCHOR_MXFP7,
    events: NumericEvents | None = None,
) -> tuple[U32, U16]:
    """C = A @ B.T of FP16 codes a (M, K) and b (N, K).

    Returns (ACC codes uint32 (M, N) after the last block, emitted FP16 codes uint16 (M, N)).
    """
    ea = operand_entries(a, events)
    eb = operand_entries(b, events)
    gm, gn = ea[0].shape[0], eb[0].shape[0]
    store = TileStore(gm * gn, mw)
    store.sweep(ea, eb, accumulate=False, anchor=anchor)
    codes = store.matrix(gm, gn)
    fp16 = to_fp16(codes, mw, store.events)
    if events is not None:
        events.add(store.events)
    return codes, fp16


def fp16_codes(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> U16:
    """Host conversion of real values to FP16 codes: IEEE RNE with subnormals (section 7)."""
    return values.astype(np.float16).view(np.uint16)
