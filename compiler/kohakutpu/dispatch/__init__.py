# SPDX-License-Identifier: Apache-2.0
"""L0: dispatch of encoded programs (docs/spec/compiler.md 10)."""

from kohakutpu.dispatch.link import link
from kohakutpu.dispatch.moves import MoverPass
from kohakutpu.dispatch.rounds import Program, plan_rounds
from kohakutpu.dispatch.work import Arrivals, UnitWork, Words

LAYER = "L0"

__all__ = ["Arrivals", "MoverPass", "Program", "UnitWork", "Words", "link", "plan_rounds"]
