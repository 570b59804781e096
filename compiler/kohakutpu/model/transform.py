# SPDX-License-Identifier: Apache-2.0
"""Transform slot of the memory mover (docs/spec/memory.md 13): identity, quantiser, granule transpose.

``convert(occupant, mode, words)`` turns whole entries of source words into entries of output words and says
which entries held an infinity or a NaN; ``occupants(granule)`` is the set a build offers.
"""

from __future__ import annotations

import numpy as np

from kohakutpu.isa import generated as g
from kohakutpu.isa.generated import MoverTransform
from kohakutpu.model.numerics.bits import U8
from kohakutpu.model.numerics.mxfp7 import SOURCE_BYTES, Layout, quantise_entries
from kohakutpu.model.walker import Bool

LAYER = "L0"

_GRANULE = 8


def occupants(granule: bool) -> frozenset[int]:
    """Occupant numbers of a build; `granule` is the feature ``xform_granule``."""
    built = {MoverTransform.IDENTITY, MoverTransform.QUANTISE}
    return frozenset(built | {MoverTransform.GRANULE} if granule else built)


def convert(occupant: int, mode: int, words: U8) -> tuple[U8, Bool]:
    """Entries through an occupant.

    words: uint8 (n, in, 32), `in` words per entry as `MV_XFORM_WORDS` says; mode: XFORM_MODE.
    Returns (uint8 (n, out, 32), bool (n,): the entry held an FP16 infinity or NaN).
    """
    n = len(words)
    quiet = np.zeros(n, dtype=bool)
    if occupant == MoverTransform.IDENTITY:
        return words, quiet
    if occupant == MoverTransform.GRANULE:
        out = g.MV_XFORM_WORDS[occupant][1]
        cells = words.reshape(n, out, out, _GRANULE)
        return np.ascontiguousarray(cells.transpose(0, 2, 1, 3)).reshape(words.shape), quiet
    source = np.ascontiguousarray(words).reshape(n, SOURCE_BYTES)
    special = (source.view("<u2") & 0x7C00) == 0x7C00
    packed = quantise_entries(source, Layout.B if mode & 1 else Layout.A)
    return packed.reshape(n, g.MV_XFORM_WORDS[occupant][1], g.MEM_WORD_BYTES), special.any(axis=1)
