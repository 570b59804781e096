# SPDX-License-Identifier: Apache-2.0
"""L1: the instruction stream of each unit (docs/spec/compiler.md 9)."""

from kohakutpu.program.assemble import assemble, assemble_moves
from kohakutpu.program.emit import Sweep, TileWork, acknowledgements, unit_program
from kohakutpu.program.encode import encode
from kohakutpu.program.hazard import check_hazards
from kohakutpu.program.instructions import (
    TILE_BUFFER,
    Desc,
    Dims,
    Drain,
    Fill,
    Gemm,
    Image,
    Instruction,
    Pass,
    Run,
    UnitProgram,
    parse,
    text,
)
from kohakutpu.program.moves import Move
from kohakutpu.program.vector import build_image, run_cost, shortened, vector_program
from kohakutpu.program.vector_words import MX_WORDS
from kohakutpu.program.vector_work import LaneWork, Runs, Store, Stream, Walk, check_footprint

LAYER = "L1"

__all__ = [
    "MX_WORDS",
    "TILE_BUFFER",
    "Desc",
    "Dims",
    "Drain",
    "Fill",
    "Gemm",
    "Image",
    "Instruction",
    "LaneWork",
    "Move",
    "Pass",
    "Run",
    "Runs",
    "Store",
    "Stream",
    "Sweep",
    "TileWork",
    "UnitProgram",
    "Walk",
    "acknowledgements",
    "assemble",
    "assemble_moves",
    "build_image",
    "check_footprint",
    "check_hazards",
    "encode",
    "parse",
    "run_cost",
    "shortened",
    "text",
    "unit_program",
    "vector_program",
]
