# SPDX-License-Identifier: Apache-2.0
"""Philox-4x32-10 as GENERATE uses it (docs/spec/memory.md 12.4).

``words(seed, addresses)`` is the whole interface: a pure function of the seed and of each word's absolute
address, so a region split over several moves gets the same bytes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kohakutpu.isa import generated as g
from kohakutpu.model.numerics.bits import U8

LAYER = "L0"

U64 = npt.NDArray[np.uint64]
_LOW = np.uint64(0xFFFF_FFFF)
_32 = np.uint64(32)
_M0, _M1 = np.uint64(g.MEM_PHILOX_M0), np.uint64(g.MEM_PHILOX_M1)


def words(seed: int, addresses: npt.NDArray[np.int64]) -> U8:
    """Contents of the words at 40-bit byte addresses (n,) under a 64-bit seed: uint8 (n, 32)."""
    wa = addresses.astype(np.uint64) >> np.uint64(5)
    # both halves of every word at once: h = 0 is bits 127:0
    c0 = np.repeat(wa & _LOW, 2)
    c1 = np.repeat(wa >> _32 << np.uint64(1), 2)
    c1[1::2] |= np.uint64(1)
    c2 = np.zeros_like(c0)
    c3 = np.zeros_like(c0)
    k0, k1 = seed & 0xFFFF_FFFF, seed >> 32
    for _ in range(g.MEM_PHILOX_ROUNDS):
        p0, p1 = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = p1 >> _32 ^ c1 ^ np.uint64(k0), p1 & _LOW, p0 >> _32 ^ c3 ^ np.uint64(k1), p0 & _LOW
        k0, k1 = (k0 + g.MEM_PHILOX_W0) & 0xFFFF_FFFF, (k1 + g.MEM_PHILOX_W1) & 0xFFFF_FFFF
    halves = np.stack([c0, c1, c2, c3], axis=1).astype("<u4")
    return np.ascontiguousarray(halves).view(np.uint8).reshape(len(addresses), g.MEM_WORD_BYTES)
