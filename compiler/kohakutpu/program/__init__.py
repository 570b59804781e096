# SPDX-License-Identifier: Apache-2.0
"""L1: the instruction stream of each unit (docs/spec/compiler.md 9)."""

from kohakutpu.program.assemble import assemble
from kohakutpu.program.emit import Sweep, TileWork, unit_program
from kohakutpu.program.encode import encode
from kohakutpu.program.hazard import check_hazards
from kohakutpu.program.instructions import Drain, Fill, Gemm, Instruction, Pass, UnitProgram, parse, text

LAYER = "L1"

__all__ = [
    "Drain",
    "Fill",
    "Gemm",
    "Instruction",
    "Pass",
    "Sweep",
    "TileWork",
    "UnitProgram",
    "assemble",
    "check_hazards",
    "encode",
    "parse",
    "text",
    "unit_program",
]
