# SPDX-License-Identifier: Apache-2.0
"""Views of buffers as periodic reads of their elements (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language.buffers import Buffer
from kohakutpu.views import Spread

LAYER = "L4"


@dataclass
class View:
    """Elements of one block in the order a view reads them.

    Starts at ``first``; ``take`` elements ``repeat`` times, then on by ``advance``; in order if ``take`` is 0.
    ``chosen`` tells that the author named where it starts or how it repeats. ``width`` is a row of the view, 0 if
    nothing says.
    """

    text: str
    width: int
    first: int = 0
    take: int = 0
    repeat: int = 1
    advance: int = 0
    chosen: bool = False

    def rows_from(self, r: int) -> None:
        """From row ``r`` on."""
        if not self.width:
            raise TraceError(f"{self.text}: nothing says how wide a row is; say as_rows(width) before rows_from(r)")
        skipped, period = r * self.width, self.take * self.repeat
        if period and skipped % period:
            raise TraceError(f"{self.text}: row {r} is not where the view repeats, every {period // self.width} rows")
        self.first += skipped // period * self.advance if period else skipped

    def repeated(self, length: int) -> None:
        """All of the rest, again and again."""
        self._once("repeated")
        self.take, self.advance = length - self.first, 0

    def per_group(self, rows: int) -> None:
        """Row 0 of every group of ``rows`` rows."""
        self._once("per_group")
        self.take, self.repeat, self.advance = self.width, rows, rows * self.width

    def row_repeat(self, k: int) -> None:
        """Every row ``k`` times."""
        if self.take and self.take == self.width and self.advance:
            self.repeat *= k
            return
        self._once("row_repeat")
        self.take, self.repeat, self.advance = self.width, k, self.width

    def _once(self, kind: str) -> None:
        if self.take:
            raise TraceError(f"{self.text}: {kind}() of a view that repeats already; copy the view to a temp first")
        if not self.width and kind != "repeated":
            raise TraceError(f"{self.text}: nothing says how wide a row is; say as_rows(width) before {kind}()")


def view(buffer: Buffer, env: Mapping[str, int], length: int) -> View:
    """What ``buffer`` reads of its block of ``length`` elements.

    Raises:
        TraceError: steps that do not follow one another, or a convolution operand.
    """
    natural = 0 if buffer.whole else buffer.dims[-1].value(env) if len(buffer.dims) > 1 else 1
    out = View(buffer.text(), natural)
    for step in buffer.steps:
        arg = 0 if step.arg is None else step.arg.value(env)
        out.chosen = out.chosen or step.kind != "as_rows"
        if step.kind == "as_rows":
            out.width = arg
        elif step.kind == "rows_from":
            out.rows_from(arg)
        elif step.kind == "repeated":
            out.repeated(length)
        elif step.kind == "per_group":
            out.per_group(arg)
        elif step.kind == "row_repeat":
            out.row_repeat(arg)
        else:
            raise TraceError(f"{out.text}: the graph has no {step.kind} read; only a convolution reads it")
    if out.repeat == 1 and out.advance == out.take:
        out.take = 0  # every element once, in order
    return out


def spread(v: View, elements: int, batch: int, length: int, blocks: int) -> Spread:
    """The read of a pass over ``batch`` blocks of ``elements`` from a buffer of ``blocks`` blocks of ``length``.

    Raises:
        TraceError: a read past the block, or a period that does not divide a block.
    """
    period = v.take * v.repeat
    if period and elements % period:
        raise TraceError(
            f"{v.text}: the view repeats every {period} elements, the statement covers {elements}; it repeats a whole "
            "number of times"
        )
    one = Spread(v.first, v.take, v.repeat, v.advance) if period else Spread(v.first, elements, 1, elements)
    if one.last(elements) >= length:
        raise TraceError(
            f"{v.text}: the statement covers {elements} elements and reads element {one.last(elements)} of {length}"
        )
    if batch == 1:
        return _repeat(one, elements)
    if blocks == 1:  # every block of the batch reads the same
        if not period:
            return Spread(v.first, elements, batch, 0)
        if v.advance == 0:
            return _repeat(one, batch * elements)
    elif not period:
        whole = (v.first, elements) == (0, length)
        return Spread(0, batch * elements, 1, batch * elements) if whole else Spread(v.first, elements, 1, length)
    elif v.advance == 0:
        return Spread(v.first, v.take, elements // v.take, length)
    elif elements // period * v.advance == length:
        return one
    raise TraceError(
        f"{v.text}: the view covers {elements // period * v.advance if period else elements} of {length} elements of a "
        "block, and a batch has no gaps between blocks; copy the view to a temp"
    )


def _repeat(one: Spread, elements: int) -> Spread:
    """A whole buffer again and again, with the number of times."""
    return Spread(one.first, one.take, elements // one.take, 0) if one.advance == 0 else one
