# SPDX-License-Identifier: Apache-2.0
"""Memory contents and the address check of every requester (docs/spec/memory.md section 1).

`Image` holds the bytes of DRAM or of the staging store; `classify` judges one access, `classify_words` many
accesses of one length at once by asking `classify` about their address regions.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from kohakutpu.isa.generated import MemFault
from kohakutpu.model.numerics.bits import U8

LAYER = "L0"

WORD = 32
PAGE = 1 << 16
ADDR_MASK = (1 << 40) - 1

Tier = Literal["dram", "stage"]


class Image:
    """Sparse byte image of `size` bytes, zero where never written."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.pages: dict[int, U8] = {}

    def _spans(self, offset: int, n: int) -> list[tuple[int, int, int, int]]:
        """(page, start in page, position in the access, length) covering offset..offset+n-1."""
        spans = []
        done = 0
        while done < n:
            page, start = divmod(offset + done, PAGE)
            length = min(PAGE - start, n - done)
            spans.append((page, start, done, length))
            done += length
        return spans

    def read(self, offset: int, n: int) -> U8:
        """Copy of n bytes from `offset`. Raises IndexError outside the image."""
        self._check(offset, n)
        out = np.zeros(n, dtype=np.uint8)
        for page, start, at, length in self._spans(offset, n):
            data = self.pages.get(page)
            if data is not None:
                out[at : at + length] = data[start : start + length]
        return out

    def write(self, offset: int, data: U8) -> None:
        """Store the bytes `data` (uint8, flat) at `offset`. Raises IndexError outside the image."""
        self._check(offset, len(data))
        for page, start, at, length in self._spans(offset, len(data)):
            store = self.pages.get(page)
            if store is None:
                store = self.pages[page] = np.zeros(PAGE, dtype=np.uint8)
            store[start : start + length] = data[at : at + length]

    def gather(self, offsets: npt.NDArray[np.int64]) -> U8:
        """Words at the byte offsets (n,), multiples of 32 inside the image: uint8 (n, 32)."""
        out = np.zeros((len(offsets), WORD), dtype=np.uint8)
        pages, rows = np.divmod(offsets, PAGE)
        for page in np.unique(pages):
            data = self.pages.get(int(page))
            if data is not None:
                here = pages == page
                out[here] = data.reshape(-1, WORD)[rows[here] // WORD]
        return out

    def scatter(self, offsets: npt.NDArray[np.int64], words: U8) -> None:
        """Store uint8 (n, 32) at the byte offsets (n,); of equal offsets the last one stays."""
        pages, rows = np.divmod(offsets, PAGE)
        for page in np.unique(pages):
            store = self.pages.get(int(page))
            if store is None:
                store = self.pages[int(page)] = np.zeros(PAGE, dtype=np.uint8)
            here = pages == page
            store.reshape(-1, WORD)[rows[here] // WORD] = words[here]

    def _check(self, offset: int, n: int) -> None:
        if offset < 0 or offset + n > self.size:
            raise IndexError(
                f"bytes {offset:#x}..{offset + n - 1:#x} lie outside an image of {self.size:#x} bytes"
            )

    def first_difference(self, other: Image) -> int | None:
        """Lowest offset whose bytes differ, None if the images are equal."""
        blank = np.zeros(PAGE, dtype=np.uint8)
        for page in sorted(self.pages.keys() | other.pages.keys()):
            diff = np.flatnonzero(self.pages.get(page, blank) != other.pages.get(page, blank))
            if len(diff):
                return page * PAGE + int(diff[0])
        return None


def classify(
    addr: int, n: int, *, mesh: int, dram_bytes: int, stage_bytes: int, aligned: bool = True
) -> tuple[MemFault, Tier, int]:
    """The one address check: (fault, tier, offset); tier and offset count only without a fault.

    addr: 40-bit byte address; n: byte length of the whole access; mesh: the agent's own id;
    stage_bytes: 0 if no staging store is built; aligned: a multiple of 32 is required.
    """
    special = bool(addr >> 39 & 1)
    offset = addr & (0xFFFF_FFFF if special else 0xF_FFFF_FFFF)
    tier: Tier = "stage" if special else "dram"
    size = stage_bytes if special else dram_bytes
    if addr >> 38 & 1:
        fault = MemFault.M_RSVD
    elif addr >> 36 & 3 != mesh:
        fault = MemFault.M_MESH
    elif special and (addr >> 32 & 15 or not stage_bytes):
        fault = MemFault.M_APER
    elif aligned and addr % WORD:
        fault = MemFault.M_ALIGN
    elif offset + n > size:
        fault = MemFault.M_RANGE
    else:
        fault = MemFault.M_NONE
    return fault, tier, offset


Words = npt.NDArray[np.int64]


def classify_words(
    addresses: Words, n: int | Words, *, mesh: int, dram_bytes: int, stage_bytes: int
) -> tuple[Words, npt.NDArray[np.bool_], Words]:
    """`classify` of n bytes at every address: (fault codes, in the staging store, offsets), each (k,).

    addresses: exact int64 sums, multiples of 32; one outside 40 bits is M_RANGE. n: for all, or (k,).
    """
    outside = addresses >> 40 != 0
    inside = np.where(outside, 0, addresses)
    staged: npt.NDArray[np.bool_] = (inside >> 39).astype(np.bool_)
    offsets: Words = (inside & np.where(staged, 0xFFFF_FFFF, 0xF_FFFF_FFFF)).astype(np.int64)
    codes = np.zeros(len(addresses), dtype=np.int64)
    regions = inside >> 32
    for region in np.unique(regions):
        # within 4 GiB only the range check depends on the rest of the address
        fault, _, _ = classify(
            int(region) << 32, 0, mesh=mesh, dram_bytes=dram_bytes, stage_bytes=stage_bytes
        )
        codes[regions == region] = fault
    size = np.where(staged, stage_bytes, dram_bytes)
    codes[(codes == MemFault.M_NONE) & (offsets + n > size)] = MemFault.M_RANGE
    codes[outside] = MemFault.M_RANGE
    return codes, staged, offsets
