# SPDX-License-Identifier: Apache-2.0
"""Strided reads of a buffer of rows as one COPY of the memory mover (docs/spec/compiler.md 4, 6.1)."""

from __future__ import annotations

from kohakutpu.errors import CompileError
from kohakutpu.program.moves import Move
from kohakutpu.schedule.ir import Rearrange
from kohakutpu.schedule.layout import Flat
from kohakutpu.schedule.planner import Planner
from kohakutpu.schedule.requantise import Rearranged, Region
from kohakutpu.views import Strided
from kohakutpu.walks import COUNT_MAX, DIMS_MAX, WORD_BYTES, Dim, Walk, contiguous

LAYER = "L2"

_LANES = 16
"""FP16 elements of a word."""


def rearrange(planner: Planner, r: Rearrange) -> None:
    """Ask for both buffers of rows and the move between them.

    Raises:
        CompileError: rows that no move can make; names both values, the limit and the fix.
    """
    try:
        walks(r.read, 0, 0)
    except CompileError as err:
        raise CompileError(f"{r.result.name} is read from {r.source.name} as {r.read.text()}; {err}") from err
    rows = planner.rows(r.source)
    planner.hold(r.result, Flat())  # what is moved was rounded when it was stored
    planner.conversions.append(Rearranged(len(planner.bands), rows, r.result.name, r.read))
    planner.needs[rows].converted += 1
    planner.needs[r.result.name].converted += 1


def moved(value: Region, target: Region, read: Strided) -> Move:
    """The COPY between two placed buffers."""
    return Move("copy", *walks(read, value.address, target.address))


def walks(read: Strided, source: int, target: int) -> tuple[Walk, Walk]:
    """What is read of the rows at ``source``, and the words at ``target`` it goes to.

    Raises:
        CompileError: runs that are no whole words, or a walk of too many dimensions or too large a count.
    """
    flat = read.merged()
    *outer, (run, stride) = flat.dims
    if stride != 1:
        run, outer = 1, list(flat.dims)
    if run % _LANES:
        raise CompileError(
            f"its innermost run is {run} elements, a move copies whole words of {_LANES}; pad the last axis to a "
            f"multiple of {_LANES}, or keep it where it is"
        )
    for name, number in (("starts at element", flat.first), *(("has a stride of", s) for _, s in outer)):
        if number % _LANES:
            raise CompileError(
                f"it {name} {number}, a move copies whole words of {_LANES}; use multiples of {_LANES} along the last "
                "axis"
            )
    dims = [d for count, step in outer for d in _counted(count, 2 * step)]
    if run > _LANES or not dims:
        dims += _counted(run // _LANES, WORD_BYTES)
    if len(dims) > DIMS_MAX:
        raise CompileError(
            f"it walks {len(dims)} dimensions, the mover has {DIMS_MAX}; move in two steps through a temp"
        )
    return Walk(source + 2 * flat.first, tuple(dims)), contiguous(target, flat.elements // _LANES)


def _counted(count: int, stride: int) -> tuple[Dim, ...]:
    """One dimension, or several for more steps than a dimension counts."""
    try:
        return contiguous(0, count, stride).dims
    except ValueError as err:
        raise CompileError(
            f"one dimension has {count} steps, which are no product of numbers up to {COUNT_MAX}; move it in parts"
        ) from err
