# SPDX-License-Identifier: Apache-2.0
"""Modelled cycles of a compiled call (docs/spec/compiler.md 14.2)."""

from __future__ import annotations

from kohakutpu import cost as model
from kohakutpu.cost import KernelCost
from ktpu.compiling import Compiled


def cost(compiled: Compiled, profile: str = "default") -> KernelCost:
    """The bracket [fills behind a sweep hidden, everything charged] and what it is made of; tag ``model``.

    Args:
        profile: "default" for the table of 14.2, "ref" for the prices of the published check values.

    Raises:
        ValueError: an unknown profile; the message lists them.
    """
    return model.cost(
        compiled.schedule, compiled.programs, compiled.moves, compiled.machine, model.profile(profile)
    )
