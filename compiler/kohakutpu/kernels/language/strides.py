# SPDX-License-Identifier: Apache-2.0
"""Permuted and sliced views of buffers as strided reads of their elements (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language.buffers import Buffer
from kohakutpu.views import Spread, Strided

LAYER = "L4"

_WORD = 16
"""Elements that a periodic read takes at least, and in multiples."""

Axes = list[tuple[int, int]]


def strided(buffer: Buffer, env: Mapping[str, int], batch: int, blocks: int) -> Strided:
    """What a permuted or sliced view reads of a buffer of ``blocks`` blocks, for ``batch`` blocks.

    Raises:
        TraceError: a slice outside its axis, or one that moves with the instance.
    """
    extents = [d.value(env) for d in buffer.dims]
    length = prod(extents)
    axes: Axes = [(extent, prod(extents[at + 1 :])) for at, extent in enumerate(extents)]
    first = 0
    for step in buffer.steps:
        try:
            numbers = [a.value(env) for a in step.args]
        except TraceError as error:
            raise TraceError(
                f"{buffer.text()}: {error}; a view is the same in every instance of a grid, take the index of a loop() "
                "around the grid"
            ) from None
        if step.kind == "permute":
            axes = [axes[n] for n in numbers]
        else:
            first += _cut(buffer, axes, *numbers)
    outer = [(batch, length if blocks > 1 else 0)] if batch > 1 else []
    return Strided(first, (*outer, *axes))


def _cut(buffer: Buffer, axes: Axes, axis: int, first: int, count: int, step: int) -> int:
    """Slice one of ``axes``; the distance of the first element."""
    extent, stride = axes[axis]
    if min(first, count - 1, step - 1) < 0:
        raise TraceError(
            f"{buffer.text()}: axis {axis} from {first}, {count} by {step}; first is at least 0, count and step 1"
        )
    if first + (count - 1) * step >= extent:
        raise TraceError(
            f"{buffer.text()}: the slice reaches {first + (count - 1) * step} along axis {axis}, which has {extent}; "
            "take fewer or start earlier"
        )
    axes[axis] = count, step * stride
    return first * stride


def periodic(read: Strided) -> Spread | None:
    """The periodic read that gives the same elements, None if none does or if it takes no whole words."""
    flat = read.merged()
    *outer, (take, stride) = flat.dims
    advance = outer[0][1] if outer else take
    if len(outer) > 1 or stride != 1 or any(n % _WORD for n in (flat.first, take, advance)):
        return None
    return Spread(flat.first, take, 1, advance)
