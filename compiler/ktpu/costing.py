# SPDX-License-Identifier: Apache-2.0
"""Modelled cycles of a compiled call (docs/spec/compiler.md 14.2)."""

from __future__ import annotations

from kohakutpu import cost as model
from kohakutpu.cost import KernelCost, MeshCost
from kohakutpu.cost.mesh import LATENCY
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


def mesh_cost(compiled: Compiled, latency: int = LATENCY) -> MeshCost:
    """Cycles with the words of every band as messages on the links of the mesh; tag ``model``, not cycle accurate.

    Args:
        latency: cycles from a request at a memory port to its first word.

    Raises:
        ValueError: a latency below 0.
    """
    return model.mesh_cost(compiled.programs, compiled.moves, compiled.machine, latency)
