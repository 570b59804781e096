# SPDX-License-Identifier: Apache-2.0
"""Vector bands: what an instance covers, where it lies in L1, how much one RUN does (docs/spec/compiler.md 9.4)."""

from __future__ import annotations

from collections.abc import Mapping

from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.ir import Elementwise, VectorBand
from kohakutpu.schedule.lanes_choice import LaneOptions, cost_of, covered, work_of
from kohakutpu.schedule.lanes_flat import flat_band, row_band
from kohakutpu.schedule.lanes_nest import plain
from kohakutpu.schedule.lanes_spread import spread_band
from kohakutpu.schedule.lanes_tiles import cannot_fuse, resident_band, tile_band

LAYER = "L2"

_UPLOADED = ("in", "const", "table")
"""Roles of values whose padding the host uploads."""

__all__ = [
    "LaneOptions",
    "cannot_fuse",
    "cost_of",
    "covered",
    "flat_band",
    "lane_band",
    "plain",
    "resident_band",
    "row_band",
    "spread_band",
    "tile_band",
    "work_of",
]


def lane_band(
    e: Elementwise,
    machine: MachineSpec,
    cores: int,
    options: LaneOptions,
    parents: Mapping[str, tuple[int, int]] | None = None,
    *,
    exact: bool = False,
) -> VectorBand:
    """A pass over values in memory, none of them in the order of a product's tiles.

    Args:
        parents: shapes of the buffers that results are parts of.
        exact: read and write no word behind an operand or result, as members of an exact ADJACENT group need. A pass
            over computed values does so in any case, because nothing wrote what lies behind them.

    Returns:
        a band whose buffers have at least ``reach`` words an operand and ``words`` a result that is no part.

    Raises:
        CompileError: what the form of the pass refuses.
    """
    e = plain(e)
    if exact or e.reads or any(r.of for r in e.results):
        return spread_band(e, machine, cores, options, parents)
    words = cdiv(e.shape[0] * e.shape[1], machine.slices)
    if e.chain.folds or any(e.channel(o) for o in e.operands):
        band = row_band(e, machine, cores, options)
    else:
        band = flat_band(e, words, machine, cores, options)
    computed = any(o.role not in _UPLOADED for o in e.operands)
    return spread_band(e, machine, cores, options) if computed and band.words > words else band
