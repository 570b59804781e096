# SPDX-License-Identifier: Apache-2.0
"""FP16 codes that reach every case of the quantiser (docs/spec/memory.md 13.1), for all that contain it.

An entry is four lanes of 32 codes, shape (4, 32); a corpus is an integer array (n, 4, 32).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kohakubench.numeric_vectors import unhex16, vectors
from kohakutpu.model.numerics import Layout

Codes = NDArray[np.int64]
ALL_CODES = 1 << 16


def source_bytes(codes: NDArray[Any]) -> NDArray[np.uint8]:
    """Codes (n, 4, 32) -> uint8 (n, 256), the order in which the words carry them."""
    return np.ascontiguousarray(codes, dtype="<u2").view(np.uint8).reshape(len(codes), 256)


def published(layout: Layout) -> tuple[Codes, NDArray[np.uint8]]:
    """The known answers of one packing: codes (n, 4, 32) and their entries, uint8 (n, 128)."""
    mine = [case for case in vectors("quant")["cases"] if case["layout"] == int(layout)]
    words = [b"".join(bytes.fromhex(word)[::-1] for word in case["words"]) for case in mine]
    codes = np.stack([unhex16(case["fp16"], 4, 32) for case in mine]).astype(np.int64)
    return codes, np.frombuffer(b"".join(words), np.uint8).reshape(len(mine), 128)


def every_code_alone(rng: np.random.Generator) -> Codes:
    """All codes, each in a lane with 31 zeros."""
    alone = np.zeros((ALL_CODES // 4, 4, 32), dtype=np.int64)
    at = rng.integers(0, 32, ALL_CODES).reshape(-1, 4, 1)
    np.put_along_axis(alone, at, np.arange(ALL_CODES).reshape(-1, 4, 1), axis=2)
    return alone


def every_code_beside_a_peak() -> Codes:
    """All codes, 31 in a lane, next to the peak 7BFF."""
    lanes = -(-ALL_CODES // 31)
    rows = np.resize(np.arange(ALL_CODES), (-(-lanes // 4) * 4, 31))
    return np.concatenate([rows, np.full((len(rows), 1), 0x7BFF)], axis=1).reshape(-1, 4, 32)


def boundaries(rng: np.random.Generator) -> tuple[Codes, Codes]:
    """Every peak around every boundary of the scale at every exponent: smaller elements beside it, and alone."""
    edges = np.array([1134, 1260, 1386, 1512, 1638, 1764, 1890, 2016])
    sig = np.unique(np.concatenate([edges, edges + 1, edges - 1, [1024, 1025, 2046, 2047]]))
    e = np.arange(1, 32)
    normal = ((e[:, None] << 10) | (sig - 1024)).ravel()
    tiny = np.unique(np.concatenate([sig >> n for n in range(1, 12)] + [(sig >> n) + 1 for n in range(1, 12)]))
    peaks = np.concatenate([normal, tiny[(tiny > 0) & (tiny < 1024)], np.arange(1, 1024), [0, 0, 0, 0]])
    peaks = np.concatenate([peaks, np.zeros(-len(peaks) % 4, dtype=np.int64)])
    lanes = (rng.random((len(peaks), 32)) * (peaks[:, None] + 1)).astype(np.int64)
    lanes[np.arange(len(peaks)), rng.integers(0, 32, len(peaks))] = peaks
    lanes |= rng.integers(0, 2, lanes.shape) << 15
    alone = np.zeros_like(lanes)
    alone[np.arange(len(peaks)), rng.integers(0, 32, len(peaks))] = peaks | 0x8000
    return lanes.reshape(-1, 4, 32), alone.reshape(-1, 4, 32)


def named(rng: np.random.Generator) -> Codes:
    """Lanes of zeros, of -0, of subnormals, of +-65504, with one outlier, with infinities and NaNs, in every place."""
    n = 32
    sign = rng.integers(0, 2, n) << 15
    outlier = 0x1400 | rng.integers(0, 1 << 10, n) | sign
    special = 0x3C00 | sign
    outlier[7], special[30], special[31] = 0x7000, 0x7C00, 0xFE01
    lanes = [
        np.zeros(n, dtype=np.int64),
        np.full(n, 0x8000),
        rng.integers(1, 1 << 10, n) | sign,
        np.full(n, 0x0001) | sign,
        np.full(n, 0x7BFF) | sign,
        outlier,
        np.full(n, 0x7C00) | sign,
        rng.integers(0x7C01, 0x8000, n) | sign,
        special,
        rng.integers(0, 1 << 15, n) | sign,
    ]
    picked: Codes = np.array(lanes)[np.array([rng.permutation(len(lanes))[:4] for _ in range(400)])]
    return picked


def random_entries(rng: np.random.Generator, n: int) -> Codes:
    """Exponents in bands around a lane's own, some lanes sparse, subnormal, or all one code."""
    middle = rng.integers(0, 32, (n, 4, 1))
    width = rng.choice([0, 1, 3, 8, 31], (n, 4, 1))
    e = np.clip(
        middle - np.abs(rng.integers(-31, 32, (n, 4, 32)) % (width + 1)), 0, 30 + (rng.random((n, 1, 1)) < 0.1)
    )
    codes: Codes = rng.integers(0, 2, e.shape) << 15 | e << 10 | rng.integers(0, 1 << 10, e.shape)
    codes = np.where(rng.random((n, 4, 1)) < 0.1, codes & (rng.random(e.shape) < 0.1) * 0xFFFF, codes)
    codes = np.where(rng.random((n, 4, 1)) < 0.02, codes[..., :1], codes)
    return codes
