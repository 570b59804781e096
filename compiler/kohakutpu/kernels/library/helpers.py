# SPDX-License-Identifier: Apache-2.0
"""What callers and bodies share: shapes on the host, part sizes, and one product (docs/spec/kernels.md 4 and 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import Int, Kernel, loop, tile
from kohakutpu.kernels.language import kernel as declare
from kohakutpu.kernels.language.buffers import Port, Tile
from kohakutpu.kernels.language.integers import cdiv, integer

LAYER = "L4"

SUB_ROW = 128
"""Elements of the widest row one reduction takes."""

PART = 8 * 1024
"""Elements of a part where nothing else decides."""

STEP = 16
"""A reduction takes multiples of so many elements."""

MASKED = -60000.0
"""What a masked score becomes before the maximum is taken."""


OPEN: dict[str, object] = {"gm": None, "gn": None, "nk": None}
"""The knobs of a tiling, all left to the compiler."""


def named(name: str, body: Callable[..., None], doc: str | None) -> Kernel:
    """The kernel of a body that a function defines anew for each of its arguments."""
    body.__name__, body.__doc__ = name, doc
    return declare(body)


def with_ports(
    name: str, ports: Mapping[str, Port], knobs: Mapping[str, object], body: Callable[..., None], doc: str
) -> Kernel:
    """The kernel of a body whose ports and knobs a function chooses; the body takes them by name."""
    places = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=p) for n, p in ports.items()]
    places += [Parameter(n, Parameter.KEYWORD_ONLY, default=v) for n, v in knobs.items()]
    body.__signature__ = Signature(places)  # type: ignore[attr-defined]
    return named(name, body, doc)


def heads_of(w: npt.NDArray[Any], heads: int) -> npt.NDArray[Any]:
    """[heads*d][c] as [heads][d][c]; moves no byte.

    Raises:
        TraceError: ``heads`` does not divide the rows.
    """
    rows, columns = np.shape(w)
    if heads < 1 or rows % heads:
        raise TraceError(f"heads_of: {rows} rows are no {heads} heads of one width; give a divisor of {rows}")
    return np.reshape(w, (heads, rows // heads, columns))


def stack_groups(q: npt.NDArray[Any], groups: int) -> npt.NDArray[Any]:
    """[heads][L][d] as [heads/groups][groups*L][d]: query heads of one KV head on the row axis; moves no byte.

    Raises:
        TraceError: ``groups`` does not divide the heads.
    """
    heads, rows, width = np.shape(q)
    if groups < 1 or heads % groups:
        raise TraceError(f"stack_groups: {heads} query heads are no groups of {groups}; give a divisor of {heads}")
    return np.reshape(q, (heads // groups, groups * rows, width))


def split(cols: int, width: int = SUB_ROW) -> int:
    """Sub-rows of ``width`` elements in a row of ``cols`` elements.

    Raises:
        TraceError: no whole number of them.
    """
    if cols < 1 or cols % width:
        fix = -(-max(cols, 1) // width) * width
        raise TraceError(f"a row of {cols} elements is no whole number of sub-rows of {width}; pad it to {fix}")
    return cols // width


def sub_row(cols: int) -> int:
    """The widest sub-row one reduction takes, a multiple of 16 up to 128, that divides a row of ``cols`` elements.

    Raises:
        TraceError: ``cols`` is no multiple of 16.
    """
    split(cols, STEP)
    return max(w for w in range(STEP, SUB_ROW + 1, STEP) if cols % w == 0)


def part_for(group: int, want: int = PART) -> int:
    """Elements of a part: whole groups, about ``want`` elements.

    Raises:
        TraceError: a group below one element.
    """
    if group < 1:
        raise TraceError(f"part_for: a group of {group} elements; it must be at least 1")
    return max(1, want // group) * group


def tiles(rows: object, g: object) -> Int:
    """Instances along ``rows`` rows of an operand, ``g`` lane groups of 4 each."""
    return cdiv(integer(rows), integer(g) * 4)


def product(x: Any, w: Any, i: Any, j: Any, knobs: tuple[Any, Any, Any]) -> Tile:
    """The accumulator of tile (i, j) of x w^T, swept over all of K; ``knobs`` are gm, gn, nk."""
    acc = tile(*knobs)
    for k in loop(x.chunks32(knobs[2])):
        acc += x[i, k] @ w[j, k]
    return acc
