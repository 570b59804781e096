# SPDX-License-Identifier: Apache-2.0
"""What tracing a kernel gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral

from kohakutpu.errors import CompileError
from kohakutpu.graph import Graph

LAYER = "L4"

Knob = int | str | float


@dataclass(frozen=True)
class Trace:
    """A kernel traced at concrete extents: its graph and the knobs it was traced with."""

    kernel: str
    graph: Graph
    extents: dict[str, int]
    knobs: dict[str, Knob] = field(default_factory=dict)


def tiling(kernel: str, gm: int | None, gn: int | None, nk: int | None) -> dict[str, int]:
    """The knobs of a tiling named by hand, all three or none.

    Raises:
        CompileError: only some of them, or a number that is no integer.
    """
    named = {name: v for name, v in (("gm", gm), ("gn", gn), ("nk", nk)) if v is not None}
    for name, v in named.items():
        if not isinstance(v, Integral):
            raise CompileError(f"{kernel}: {name} = {v!r}; it counts sub-tiles or K blocks, give an integer")
    if named and len(named) != 3:
        raise CompileError(f"{kernel}: {sorted(named)} named alone; name gm, gn and nk together or none of them")
    return named
