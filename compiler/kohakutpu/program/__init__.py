# SPDX-License-Identifier: Apache-2.0
"""L1: the instruction stream of each unit (docs/spec/compiler.md 9)."""

from kohakutpu.program.emit import emit
from kohakutpu.program.hazard import check_hazards
from kohakutpu.program.instructions import Drain, Fill, Gemm, Instruction, Pass, UnitProgram, parse

LAYER = "L1"

__all__ = ["Drain", "Fill", "Gemm", "Instruction", "Pass", "UnitProgram", "check_hazards", "emit", "parse"]
