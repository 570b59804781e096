# SPDX-License-Identifier: Apache-2.0
"""L2: where data lives and where work runs (docs/spec/compiler.md 5 to 8)."""

from kohakutpu.schedule.drains import DrainBand
from kohakutpu.schedule.emission import arrivals, emit, emit_moves
from kohakutpu.schedule.ir import (
    AnyBand,
    Band,
    Buffer,
    Contraction,
    Elementwise,
    Operand,
    Rearrange,
    Schedule,
    VectorBand,
)
from kohakutpu.schedule.lanes import LaneOptions
from kohakutpu.schedule.layout import from_key
from kohakutpu.schedule.plan import Request, pack_operands, plan
from kohakutpu.schedule.tiles import Tiling

LAYER = "L2"

__all__ = [
    "AnyBand",
    "Band",
    "Buffer",
    "Contraction",
    "DrainBand",
    "Elementwise",
    "LaneOptions",
    "Operand",
    "Rearrange",
    "Request",
    "Schedule",
    "Tiling",
    "VectorBand",
    "arrivals",
    "emit",
    "emit_moves",
    "from_key",
    "pack_operands",
    "plan",
]
