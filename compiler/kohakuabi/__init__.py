# SPDX-License-Identifier: Apache-2.0
"""What compiler and driver share, and nothing else: the artifact and the round builder.

Both packages import this one and never each other (docs/spec/compiler.md section 10).
"""

from kohakuabi.artifact import Artifact
from kohakuabi.commands import Command, RoundBuilder, build_round, command_count
from kohakuabi.errors import ArtifactError
from kohakuabi.parts import Image, Output, Round, first_conflict
from kohakuabi.steps import Await, Barrier, Kick, Move, Seed, Step

__all__ = [
    "Artifact",
    "ArtifactError",
    "Await",
    "Barrier",
    "Command",
    "Image",
    "Kick",
    "Move",
    "Output",
    "Round",
    "RoundBuilder",
    "Seed",
    "Step",
    "build_round",
    "command_count",
    "first_conflict",
]

LAYER = "leaf"
