# SPDX-License-Identifier: Apache-2.0
"""What the runtime reads from a graph: passes that never look at positions, and results whose padding is zero."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from kohakutpu.chain import FOLDS
from kohakutpu.graph import Graph
from kohakutpu.kernels import Trace
from kohakutpu.schedule.layout import Tile, from_key
from kohakutpu.schedule.relayout_walks import LANES
from ktpu.numerics_reference import exact_bits

_SIGN = np.uint16(0x8000)
_TILE = (1, 4)
"""Sub-tiles of the tiles that ragged rows of the host are brought in: they can be turned into whole rows."""


def flat_order(graph: Graph, sources: Iterable[str]) -> str:
    """The byte order an elementwise pass adopts instead of rows, "" if it has to see rows or rows do as well.

    Args:
        sources: byte orders its operands are in on the device, "" for values of the host.
    """
    if not flat(graph):
        return ""
    shape = next(v.shape for v in graph.values.values() if v.role == "out")
    found = [s for s in sources if s]
    tiles = [s for s in found if isinstance(from_key(s), Tile)]
    if tiles:
        return tiles[0]
    return Tile.of(shape, *_TILE).key if not found and shape[1] % LANES and shape[0] > 1 else ""


def flat(graph: Graph) -> bool:
    """True for elementwise work on whole buffers of one shape: no product, no row, no view."""
    shapes = {v.shape for v in graph.values.values() if v.role != "const" and v.in_memory}
    kinds = {op.kind for op in graph.ops}
    viewed = any(op.reads for op in graph.ops) or any(v.of for v in graph.values.values())
    return len(shapes) == 1 and "contract" not in kinds and not kinds & FOLDS and not viewed


def padded(trace: Trace, layout: str) -> Trace:
    """``trace`` with the extents of the whole image in ``layout``."""
    if not layout:
        return trace
    order = from_key(layout)
    assert isinstance(order, Tile)
    whole = 4 * order.gi * order.gm, 4 * order.gj * order.gn
    return replace(trace, graph=_resized(trace.graph, whole))


def _resized(graph: Graph, shape: tuple[int, int]) -> Graph:
    """A graph of one shape with another one; what is smaller stays."""
    (old,) = {v.shape for v in graph.values.values() if v.role == "out"}
    out = Graph(ops=list(graph.ops))
    for v in graph.values.values():
        out.value(replace(v, shape=shape) if v.shape == old else v)
    return out


def clean_results(graph: Graph, clean: Mapping[str, bool]) -> dict[str, bool]:
    """For every result, whether the padding of its tiles is zero.

    Args:
        clean: the same of every operand. Values of the host are padded with zeros.
    """
    results = [v for v in graph.values.values() if v.role == "out"]
    if not all(clean.values()):
        return {v.name: False for v in results}
    made = {op.result: op for op in graph.ops}
    if any(op.kind == "contract" for op in graph.ops):
        return {v.name: made[v.name].kind == "contract" for v in results if v.name in made}
    if not flat(graph):
        return {v.name: False for v in results}
    small = _resized(graph, (1, 1))
    zeros = {v.name: np.zeros((1, 1), np.float16) for v in small.values.values() if v.role in ("in", "table")}
    # what is 0 by the formula need not be 0 on the machine: 1/(x + 11) * 11 - 1 at 0
    return {name: not np.any(bits & ~_SIGN) for name, bits in exact_bits(small, zeros).items()}
