# SPDX-License-Identifier: Apache-2.0
"""L2: where data lives and where work runs (docs/spec/compiler.md 5 to 8)."""

from kohakutpu.schedule.emission import emit
from kohakutpu.schedule.ir import Band, Buffer, Contraction, Operand, Schedule
from kohakutpu.schedule.layout import from_key
from kohakutpu.schedule.plan import pack_operands, plan
from kohakutpu.schedule.tiles import Tiling

LAYER = "L2"

__all__ = [
    "Band",
    "Buffer",
    "Contraction",
    "Operand",
    "Schedule",
    "Tiling",
    "emit",
    "from_key",
    "pack_operands",
    "plan",
]
