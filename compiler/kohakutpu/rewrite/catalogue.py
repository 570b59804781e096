# SPDX-License-Identifier: Apache-2.0
"""The rewrite catalogue (docs/spec/compiler.md 13.3)."""

from __future__ import annotations

from kohakutpu.rewrite.algebra import ExponentBase, OnlineSoftmax, ShiftedLogSumExp, TwoPassVariance
from kohakutpu.rewrite.planes import ChannelConcat, FoldedUpsample, PointConvolution, StridedPlane
from kohakutpu.rewrite.products import ChunkGate, HeadJoin, HeadSplit, TransposedProduct
from kohakutpu.rewrite.rule import Rewrite

LAYER = "L5"

CATALOGUE: tuple[Rewrite, ...] = (
    OnlineSoftmax(),
    TwoPassVariance(),
    ShiftedLogSumExp(),
    FoldedUpsample(),
    StridedPlane(),
    HeadSplit(),
    HeadJoin(),
    TransposedProduct(),
    ChunkGate(),
    PointConvolution(),
    ChannelConcat(),
    ExponentBase(),
)
"""Every entry, in the order of the page; where two match one node the first is applied."""

BY_NAME = {entry.name: entry for entry in CATALOGUE}


def without(*names: str) -> tuple[Rewrite, ...]:
    """The catalogue without the entries of these names.

    Raises:
        KeyError: there is no such entry.
    """
    left_out = {BY_NAME[n].name for n in names}
    return tuple(entry for entry in CATALOGUE if entry.name not in left_out)
