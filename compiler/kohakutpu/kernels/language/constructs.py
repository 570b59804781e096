# SPDX-License-Identifier: Apache-2.0
"""The constructs of a kernel body: grids, loops, tiles, regions, buffers (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import TraceError
from kohakutpu.kernels.language.buffers import Buffer, Region, Tile, _knob
from kohakutpu.kernels.language.integers import integer
from kohakutpu.kernels.language.recorder import current

LAYER = "L4"


def units(*counts: object) -> Iterator[Any]:
    """Instances ``for i, j in units(x.tiles(gm), w.tiles(gn))``; a barrier follows the grid."""
    return current("units()").block("units", counts)


def grid(*counts: object) -> Iterator[Any]:
    """Instances without a barrier after them."""
    return current("grid()").block("grid", counts)


def loop(count: object) -> Iterator[Any]:
    """Iterations, recorded once; outside a grid whole stages repeat."""
    return current("loop()").block("loop", (count,))


def tile(gm: object, gn: object, nk: object, *, split: int = 1, route: str = "") -> Tile:
    """An accumulator of gm x gn sub-tiles swept nk K blocks at a time.

    Args:
        split: partial sums of the sweep, made side by side.
        route: how they are added: "peer", "core", "memory", or "" for the first of them that fits
            (docs/spec/compiler.md 5.4).

    Raises:
        TraceError: outside a grid, a knob below 1, or a route without a split.
    """
    recorder = current("tile()")
    if recorder.grid is None:
        raise TraceError("tile() outside a grid; for i, j in units(x.tiles(gm), w.tiles(gn)): acc = tile(gm, gn, nk)")
    if split < 1 or (split == 1 and route) or route not in ("", "peer", "core", "memory"):
        raise TraceError(
            f"tile(split={split!r}, route={route!r}): partial sums, at least 1, and with more than one the route that "
            "adds them, 'peer', 'core', 'memory', or none for one that fits"
        )
    g, h, k = (integer(_knob(v, f"{n} of tile()")) for v, n in ((gm, "gm"), (gn, "gn"), (nk, "nk")))
    return Tile(recorder, recorder.fresh("acc"), g, h, k, len(recorder._open), split=split, route=route)


def region(g: object, b: object) -> Region:
    """A place in L1: ``ra = region(gm, nk); ra <<= a[i, k]; acc += ra @ rb``.

    Raises:
        TraceError: outside a grid, or a size below 1.
    """
    recorder = current("region()")
    if recorder.grid is None:
        raise TraceError("region() outside a grid; L1 belongs to an instance")
    return Region(
        recorder,
        recorder.fresh("region"),
        integer(_knob(g, "groups of region()")),
        integer(_knob(b, "blocks of region()")),
    )


def temp(*shape: object, tier: str = "dram") -> Buffer:
    """An intermediate buffer in tier "dram", "l2" or "near".

    Raises:
        TraceError: no shape, or an unknown tier.
    """
    recorder = current("temp()")
    if not shape:
        raise TraceError("temp() names no extent; temp(M, N)")
    if tier not in ("dram", "l2", "near"):
        raise TraceError(f"temp(tier={tier!r}); tiers are 'dram', 'l2' and 'near'")
    dims = tuple(integer(d, "an extent of temp()") for d in shape)
    return recorder.declare(Buffer(recorder, recorder.fresh("t"), "temp", dims, tier=tier))


def table(array: npt.ArrayLike) -> Buffer:
    """A buffer with contents known now, uploaded once a compilation."""
    recorder = current("table()")
    data = np.asarray(array, dtype=np.float64)
    if data.size == 0:
        raise TraceError("table() of an empty array")
    dims = tuple(integer(int(d)) for d in (data.shape or (1,)))
    return recorder.declare(Buffer(recorder, recorder.fresh("const"), "table", dims, data=data.reshape(-1)))


def plane(x: Buffer, gm: object) -> Buffer:
    """A convolution operand: ``plane(x, gm)[i, k, tap]`` reads at a lane offset."""
    return x._view("plane", integer(_knob(gm, "gm of plane()")))


def adjacent(*buffers: Buffer) -> None:
    """Place buffers consecutively in this order.

    Raises:
        TraceError: fewer than two, a view, or a buffer named twice.
    """
    recorder = current("adjacent()")
    names = tuple(b.name for b in buffers)
    if len(names) < 2:
        raise TraceError("adjacent() takes two buffers or more")
    if any(b.steps for b in buffers):
        raise TraceError("adjacent() takes buffers, not views; a view has no place of its own")
    taken = {n for g in recorder.adjacent for n in g}
    if len(set(names)) < len(names) or taken & set(names):
        raise TraceError(f"adjacent({', '.join(names)}): a buffer has one place; name it once")
    recorder.adjacent.append(names)
