# SPDX-License-Identifier: Apache-2.0
"""L0: encoding and dispatch (docs/spec/compiler.md 9.1 and 10)."""

from kohakutpu.dispatch.encode import encode
from kohakutpu.dispatch.link import link
from kohakutpu.dispatch.rounds import Program, plan_rounds

LAYER = "L0"

__all__ = ["Program", "encode", "link", "plan_rounds"]
