# SPDX-License-Identifier: Apache-2.0
"""Published numeric vectors and code generators shared by the tests of the arithmetic model."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

VECTORS = Path(__file__).resolve().parents[2] / "spec" / "vectors"
MWS = (10, 12, 14, 16)
"""Accumulator widths every arithmetic test covers."""


SWEEP = int(os.environ.get("KOHAKU_SWEEP", "1000000"))
"""Random cases of one slow sweep."""


def vectors(name: str) -> Any:
    return json.loads((VECTORS / f"numerics_{name}.json").read_text())


def hexes(items: Any) -> np.ndarray:
    """Nested lists of hex strings -> int64 array."""
    if isinstance(items, str):
        return np.array(int(items, 16))
    return np.array([hexes(i) for i in items], dtype=np.int64)


def unhex16(text: str, *shape: int) -> np.ndarray:
    return np.array([int(text[i : i + 4], 16) for i in range(0, len(text), 4)]).reshape(shape)


def word_hex(words: np.ndarray) -> list[str]:
    """Byte rows (lowest first) -> hex, most significant digit first."""
    return [row.tobytes()[::-1].hex() for row in words]


def random_codes(rng: np.random.Generator, n: int, mw: int, lo: int = 0, hi: int = 127) -> np.ndarray:
    """ACC codes with fractions that mix uniform, all-ones, zero and single-bit patterns."""
    frac = rng.integers(0, 1 << mw, n)
    kind = rng.integers(0, 6, n)
    one_bit = 1 << rng.integers(0, mw, n)
    frac = np.select([kind == 0, kind == 1, kind == 2], [0, (1 << mw) - 1, one_bit], frac)
    return (rng.integers(0, 2, n) << (mw + 7)) | (rng.integers(lo, hi + 1, n) << mw) | frac
