# SPDX-License-Identifier: Apache-2.0
"""Resident sub-tiles and the accumulator commands on them (docs/spec/numerics.md 5.4 and 6)."""

from __future__ import annotations

import numpy as np

from .accumulator import (
    ACC_MW_DEFAULT,
    ANCHOR_MXFP7,
    TILE_VALUES,
    acc_add,
    block_dot,
    canonical,
    chain,
    check_mw,
    emit_words,
    send_granules,
)
from .bits import U8, U32, IntArray
from .events import NumericEvents

LAYER = "leaf"


class TileStore:
    """`tiles` sub-tiles of 16 ACC(mw) codes, array `codes` of shape (tiles, 16), uint32.

    Contents after construction are zero; the machine calls them undefined until a LOAD.
    """

    def __init__(self, tiles: int, mw: int = ACC_MW_DEFAULT) -> None:
        self.mw = check_mw(mw)
        self.codes: U32 = np.zeros((tiles, TILE_VALUES), dtype=np.uint32)
        self.events = NumericEvents()

    def load(self, first: int, chains: IntArray) -> None:
        """LOAD: sub-tiles first.. take the block values `chains` (n, 16)."""
        self.codes[first : first + len(chains)] = canonical(chains, self.mw)

    def add(self, first: int, chains: IntArray) -> None:
        """ADD and ADD_PEER: sub-tiles first.. take acc_add(tile, operand); operand codes (n, 16)."""
        span = slice(first, first + len(chains))
        self.codes[span] = acc_add(self.codes[span], chains, self.mw, self.events)

    def emit(self, n: int) -> U8:
        """EMIT of sub-tiles 0..n-1: uint8 (n, 32), FP16 words. Event FP16_SAT."""
        return emit_words(self.codes[:n], self.mw, self.events)

    def send(self, n: int) -> U8:
        """SEND of sub-tiles 0..n-1: uint8 (2n, 32)."""
        return send_granules(self.codes[:n], self.mw)

    def sweep(
        self,
        a: tuple[IntArray, IntArray],
        b: tuple[IntArray, IntArray],
        accumulate: bool,
        anchor: int = ANCHOR_MXFP7,
    ) -> None:
        """Accumulate a whole product into sub-tiles t = g*gn + h, K blocks ascending (section 6).

        a = (q, scale): q int (gm, nk, 4, 32), scale (gm, nk, 4) of row groups g;
        b likewise with gn column groups. `accumulate` False opens the tiles with the first block.
        Raises ValueError if nk differs or gm*gn exceeds the store.
        """
        qa, sa = a
        qb, sb = b
        gm, nk = qa.shape[:2]
        gn = qb.shape[0]
        if qb.shape[1] != nk:
            raise ValueError(f"sweep: A has {nk} K blocks, B has {qb.shape[1]}")
        if gm * gn > len(self.codes):
            raise ValueError(f"sweep: {gm} x {gn} sub-tiles exceed the store of {len(self.codes)}")
        fa = qa.astype(np.float32)
        fb = qb.astype(np.float32)
        # rows x columns form during the sweep, one reorder at each end
        value = self.matrix(gm, gn) if accumulate else None
        for kb in range(nk):
            d = block_dot(fa[:, kb].reshape(4 * gm, 32), fb[:, kb].reshape(4 * gn, 32))
            block = chain(
                d,
                sa[:, kb].reshape(4 * gm, 1),
                sb[:, kb].reshape(1, 4 * gn),
                anchor,
                self.mw,
                events=self.events,
            )
            value = block if value is None else acc_add(value, block, self.mw, self.events)
        assert value is not None
        tiled = value.reshape(gm, 4, gn, 4).transpose(0, 2, 1, 3)
        self.codes[: gm * gn] = tiled.reshape(gm * gn, TILE_VALUES)

    def matrix(self, gm: int, gn: int) -> U32:
        """Codes of sub-tiles 0..gm*gn-1 as a (4*gm, 4*gn) matrix."""
        t = self.codes[: gm * gn].reshape(gm, gn, 4, 4).transpose(0, 2, 1, 3)
        return np.ascontiguousarray(t).reshape(4 * gm, 4 * gn)
