# SPDX-License-Identifier: Apache-2.0
"""Operand L1 of a cluster: one side, with the assembly of entries from CU_DATA words.

docs/spec/cluster.md sections 3.1, 3.2 and 8.3.
"""

from __future__ import annotations

import numpy as np

from kohakutpu.isa import generated as g
from kohakutpu.model.numerics.bits import U8
from kohakutpu.model.numerics.mxfp7 import Layout, pack_l1, unpack_words

LAYER = "L0"


class OperandStore:
    """`entries` entries of one side; `q` int8 (entries, 4, 32), `scale` uint8 (entries, 4), zero at reset."""

    def __init__(self, entries: int, layout: Layout) -> None:
        self.layout = layout
        self.q = np.zeros((entries, g.MG_LANES, g.MG_K_BLOCK), dtype=np.int8)
        self.scale = np.zeros((entries, g.MG_LANES), dtype=np.uint8)

    def commit(self, first: int, words: U8) -> None:
        """Entries first.. from memory words, uint8 (n, 4, 32)."""
        q, scale = unpack_words(words, self.layout)
        self.q[first : first + len(words)] = q
        self.scale[first : first + len(words)] = scale

    def entry(self, index: int) -> int:
        """The 928-bit L1 form of one entry."""
        packed = pack_l1(self.q[index], self.scale[index], self.layout)
        return int.from_bytes(packed.tobytes(), "little")


class EntryAssembly:
    """The one assembly register for operand words that arrive as CU_DATA, shared by both sides."""

    def __init__(self, sides: tuple[OperandStore, OperandStore]) -> None:
        self._sides = sides
        self._place: tuple[int, int] | None = None
        self._words: list[U8] = []

    def store(self, side: int, granule: int, words: U8) -> bool:
        """Take words (k, 32) from `granule` on. False if a word broke an entry (A_SPLIT)."""
        good = True
        at = 0
        while at < len(words):
            entry, word = divmod(granule + at, g.MG_ENTRY_WORDS)
            whole = (len(words) - at) // g.MG_ENTRY_WORDS
            if word == 0 and whole:
                good &= not self._drop()
                body = words[at : at + whole * g.MG_ENTRY_WORDS]
                self._sides[side].commit(entry, body.reshape(whole, g.MG_ENTRY_WORDS, -1))
                at += whole * g.MG_ENTRY_WORDS
            else:
                good &= self._one(side, entry, word, words[at])
                at += 1
        return good

    def _drop(self) -> bool:
        """Discard a partial entry; True if there was one."""
        partial = bool(self._words)
        self._words.clear()
        return partial

    def _one(self, side: int, entry: int, word: int, data: U8) -> bool:
        if self._words and (self._place != (side, entry) or word != len(self._words)):
            self._drop()
            good = False
        else:
            good = word == len(self._words)
        if word != len(self._words):
            return False  # earlier words are missing
        self._place = (side, entry)
        self._words.append(data)
        if word == g.MG_ENTRY_WORDS - 1:
            self._sides[side].commit(entry, np.stack(self._words)[None])
            self._words.clear()
        return good
