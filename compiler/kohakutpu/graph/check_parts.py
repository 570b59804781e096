# SPDX-License-Identifier: Apache-2.0
"""Checks of buffers that are written in parts, and of ADJACENT groups (docs/spec/compiler.md 4 and 8.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kohakutpu.errors import CompileError
from kohakutpu.graph.ir import Graph, Matrix, Value
from kohakutpu.views import Window

LAYER = "L3"


def check_part(graph: Graph, part: Value) -> None:
    """Refuse a part of nothing, of a buffer ops cannot write, or outside its buffer.

    Raises:
        CompileError: naming the part, its buffer and the window.
    """
    parent, window = graph.values.get(part.of), part.window
    if window is None:
        raise CompileError(f"part {part.name} of {part.of} has no window; state which part it is")
    if parent is None:
        raise CompileError(f"part {part.name} of {part.of}: {part.of} was never declared")
    if parent.of:
        raise CompileError(f"part {part.name} of {part.of}, which is itself a part of {parent.of}; name {parent.of}")
    if parent.role not in ("out", "temp") or not parent.in_memory:
        raise CompileError(f"part {part.name} of {parent.name}, {parent.role} {parent.dtype}; only buffers are written")
    if (part.dtype, part.role) != (parent.dtype, parent.role):
        raise CompileError(
            f"part {part.name} is {part.role} {part.dtype}, its buffer {parent.role} {parent.dtype}; they agree"
        )
    check_window(window, parent, f"part {part.name}")
    want = (window.blocks * window.rows, window.cols)
    if part.shape != want:
        raise CompileError(f"part {part.name} is stated as {part.shape}, its window gives {want}")


def check_window(window: Window, value: Value, what: str) -> None:
    """Refuse blocks that do not divide a value, and a rectangle outside its block.

    Raises:
        CompileError: naming the value, the window and the shape.
    """
    rows, cols = value.shape
    if window.blocks < 1 or rows % window.blocks:
        raise CompileError(f"{what}: {rows} rows of {value.name} are no {window.blocks} equal blocks")
    if not window.fits(value.shape):
        raise CompileError(
            f"{what}: {window.text()} lies outside {value.name}, blocks of {(rows // window.blocks, cols)}"
        )


def check_cover(parent: Value, parts: Sequence[Value]) -> None:
    """Refuse parts that leave an element of their buffer unwritten or write one twice.

    Raises:
        CompileError: naming the first such element.
    """
    rects = [r for p in parts if p.window is not None for r in _rects(p.window, parent.shape)]
    cuts = [np.unique([*(r[a] for r in rects), *(r[a + 1] for r in rects), 0, parent.shape[a // 2]]) for a in (0, 2)]
    count = np.zeros([len(c) - 1 for c in cuts], dtype=np.int64)
    for top, bottom, left, right in rects:
        rows, cols = np.searchsorted(cuts[0], (top, bottom)), np.searchsorted(cuts[1], (left, right))
        count[rows[0] : rows[1], cols[0] : cols[1]] += 1
    for wrong, what in ((count == 0, "no part"), (count > 1, "more than one part")):
        if wrong.any():
            row, col = np.argwhere(wrong)[0]
            at = f"[{cuts[0][row]}, {cuts[1][col]}]"
            raise CompileError(f"{parent.name}{at} is written by {what}; the parts of a buffer cover it exactly once")


def _rects(window: Window, shape: Matrix) -> Iterator[tuple[int, int, int, int]]:
    block = shape[0] // window.blocks
    for z in range(window.blocks):
        top = z * block + window.row
        yield top, top + window.rows, window.col, window.col + window.cols


def check_adjacent(graph: Graph) -> None:
    """Refuse a group of values that have no place of their own, or of one value in two places.

    Raises:
        CompileError: naming the group.
    """
    placed: set[str] = set()
    for group in graph.adjacent:
        what = f"adjacent group {' '.join(group)}"
        if len(group) < 2:
            raise CompileError(f"{what}: a group is two values or more")
        for name in group:
            v = graph.values.get(name)
            if v is None:
                raise CompileError(f"{what}: value {name} was never declared")
            if not v.in_memory or v.of:
                why = f"a part of {v.of}" if v.of else "no buffer"
                raise CompileError(f"{what}: {name} is {why} and has no place of its own")
            if name in placed:
                raise CompileError(f"{what}: {name} has a place already; a value is in one group, once")
            placed.add(name)
