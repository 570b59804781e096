# SPDX-License-Identifier: Apache-2.0
"""What tracing a kernel gives."""

from __future__ import annotations

from dataclasses import dataclass, field

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
