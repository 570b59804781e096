# SPDX-License-Identifier: Apache-2.0
"""Exactly-once coverage of an output by the tiles of a band (docs/spec/compiler.md 5.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CoverageError

LAYER = "L2"


@dataclass(frozen=True)
class Rect:
    """Rows [r0, r1) x columns [c0, c1) computed by instance (mo, no), partial ko."""

    mo: int
    no: int
    ko: int
    r0: int
    r1: int
    c0: int
    c1: int


def check_cover(shape: tuple[int, int], rects: Iterable[Rect], split_k: int = 1, reductions: int = 0) -> None:
    """Require every element of ``shape`` exactly once, and all ``split_k`` partials reduced once.

    Args:
        shape: (M, N) of the output.
        rects: rectangles of all instances, unclipped.
        split_k: partials per tile.
        reductions: later bands that read exactly those partials.

    Raises:
        CoverageError: OVERSHOOT, GAP, OVERLAP, SPLIT or NOREDUCE with the first element or instance.
    """
    m, n = shape
    seen: dict[tuple[int, int], Rect] = {}
    partials: dict[tuple[int, int], Counter[int]] = {}
    for r in rects:
        if not (0 <= r.r0 < m and 0 <= r.c0 < n):
            raise CoverageError(
                f"OVERSHOOT: instance ({r.mo},{r.no}) starts at ({r.r0},{r.c0}) outside {m}x{n}"
            )
        partials.setdefault((r.mo, r.no), Counter())[r.ko] += 1
        seen.setdefault((r.mo, r.no), r)
    for (mo, no), have in partials.items():
        if have != Counter(range(split_k)):
            counts = ", ".join(f"{ko}: {c}x" for ko, c in sorted(have.items()))
            raise CoverageError(
                f"SPLIT: instance ({mo},{no}) has partials {counts}; expected 0..{split_k - 1} once each"
            )
    count = np.zeros((m, n), dtype=np.int32)
    for r in seen.values():
        count[r.r0 : min(r.r1, m), r.c0 : min(r.c1, n)] += 1
    if (count > 1).any():
        at = tuple(int(v) for v in np.argwhere(count > 1)[0])
        raise CoverageError(f"OVERLAP: element {at} is computed {count[at]} times")
    if (count == 0).any():
        at = tuple(int(v) for v in np.argwhere(count == 0)[0])
        raise CoverageError(f"GAP: element {at} is never computed")
    if split_k > 1 and reductions != 1:
        raise CoverageError(
            f"NOREDUCE: {split_k} partials are read by {reductions} reduction bands, expected 1"
        )


def check_intervals(name: str, words: int, intervals: npt.ArrayLike) -> None:
    """Require every word of a padded image exactly once.

    Args:
        words: length of the image.
        intervals: (first word, words) of every instance, [instances][2].

    Raises:
        CoverageError: OVERSHOOT, OVERLAP or GAP with the first word.
    """
    listed = np.asarray(intervals, dtype=np.int64).reshape(-1, 2)
    listed = listed[np.lexsort((listed[:, 1], listed[:, 0]))]
    ends = np.cumsum(listed[:, 1])
    if len(ends) and ends[-1] == words and (listed[:, 0] == ends - listed[:, 1]).all():
        return
    end = 0
    for first, count in listed.tolist():
        if first < 0 or first + count > words:
            raise CoverageError(f"OVERSHOOT: {name} words {first}..{first + count - 1} leave the image of {words}")
        if first < end:
            raise CoverageError(f"OVERLAP: {name} word {first} is written twice")
        if first > end:
            raise CoverageError(f"GAP: {name} word {end} is never written")
        end = first + count
    if end != words:
        raise CoverageError(f"GAP: {name} word {end} is never written")
