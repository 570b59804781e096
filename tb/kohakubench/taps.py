# SPDX-License-Identifier: Apache-2.0
"""Recorded link transfers: reading a tap's dump and showing flits as text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TAP_PUBLIC = ["flit_tap.count"]


@dataclass(frozen=True)
class Transfer:
    """One flit on one link."""

    cycle: int
    flit: int


def read_tap(path: Path, count: int) -> list[tuple[int, str]]:
    """(cycle, flit as 72 hex digits) of the transfers still in the ring, oldest first.

    Args:
        count: transfers since the start; the ring keeps the last ones.
    """
    words = [w for w in path.read_text(encoding="ascii").split() if not w.startswith(("//", "@"))]
    depth = len(words)
    order = range(count) if count <= depth else [*range(count % depth, depth), *range(count % depth)]
    out = []
    for i in order:
        word = int(words[i % depth].replace("x", "0"), 16)
        out.append((word >> 288, f"{word & (1 << 288) - 1:072x}"))
    return out
