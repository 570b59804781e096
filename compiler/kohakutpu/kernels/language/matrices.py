# SPDX-License-Identifier: Apache-2.0
"""The matrix every buffer of a kernel is in the graph (docs/spec/compiler.md 4).

Batch axes are folded into the rows, one value a column is one row, and a block of any rank gets the row width its
statements name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kohakutpu.errors import TraceError
from kohakutpu.graph import Matrix
from kohakutpu.kernels.language.buffers import Buffer
from kohakutpu.kernels.language.kernel import Bound
from kohakutpu.kernels.language.recorder import Assign, Drain, Sweep
from kohakutpu.kernels.language.unroll import Step, named_width, reads

LAYER = "L4"

Widths = dict[str, dict[int, None]]


class Matrices:
    """Shapes of buffers: [blocks * rows][width], blocks of the batch under one another.

    Raises:
        TraceError: a buffer written in two row widths, or with no whole number of rows.
    """

    def __init__(self, bound: Bound, steps: Sequence[Step]) -> None:
        self.batch = math.prod(bound.batch)
        self._batched = {b.name: _batched(bound, b) for b in bound.trace.buffers}
        written, read, hinted = _widths(steps)
        self.shapes: dict[str, Matrix] = {}
        for b in bound.trace.buffers:
            total = math.prod(bound.shapes[b.name])
            natural = total if b.whole else bound.shapes[b.name][-1]
            width = _width(b.name, natural, b.whole, [w.get(b.name, {}) for w in (written, read, hinted)])
            if (total // self.blocks(b.name)) % width:
                raise TraceError(f"{b.name} has {total} elements, no whole number of rows of {width}")
            self.shapes[b.name] = total // width, width

    def blocks(self, name: str) -> int:
        """Blocks of the batch a buffer holds, 1 for one that all share."""
        return self.batch if self._batched[name] else 1

    def block(self, name: str) -> Matrix:
        """[rows][width] of one block."""
        rows, width = self.shapes[name]
        return rows // self.blocks(name), width

    def length(self, name: str) -> int:
        """Elements of one block."""
        return math.prod(self.block(name))


def _batched(bound: Bound, buffer: Buffer) -> bool:
    return bool(bound.batch) and not buffer.whole and len(bound.shapes[buffer.name]) > len(buffer.dims)


def _widths(steps: Sequence[Step]) -> tuple[Widths, Widths, Widths]:
    """Per buffer, the row widths it is written in, read in, and has beside the other buffers of a statement."""
    written: Widths = {}
    read: Widths = {}
    hinted: Widths = {}

    def note(into: Widths, view: Buffer, step: Step) -> int | None:
        width = named_width(view, step.env)
        if width is not None:
            into.setdefault(view.name, {})[width] = None
        return width

    for step in steps:
        s = step.statement
        if isinstance(s, Sweep):
            for source in s.sources:
                note(read, source.buffer, step)
        elif isinstance(s, Drain):
            note(written, s.target.buffer, step)
        elif isinstance(s, Assign):
            views = [r.buffer for r in reads(s)]
            plain = [v for v in views if not v.strided]
            widths = {note(written, s.target.buffer, step), *(note(read, v, step) for v in plain if not v.periodic)}
            # rows of a permuted or sliced view are no rows of its buffer
            named = (widths | {named_width(v, step.env) for v in views if v.strided}) - {None}
            if len(named) == 1:
                for v in (s.target.buffer, *plain):
                    hinted.setdefault(v.name, {}).update(dict.fromkeys(w for w in named if w is not None))
    return written, read, hinted


def _width(name: str, natural: int, whole: bool, found: Sequence[dict[int, None]]) -> int:
    written, read, hinted = (list(f) for f in found)
    if len(written) > 1:
        raise TraceError(
            f"{name} is written as rows of {' and '.join(map(str, sorted(written)))} elements; a buffer is stored in "
            "one shape, write a temp for the second"
        )
    if written:
        return written[0]
    if len(read) == 1 or (read and whole):
        return read[0]
    if whole and len(hinted) == 1:
        return hinted[0]
    return natural
