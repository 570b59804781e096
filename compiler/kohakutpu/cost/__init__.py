# SPDX-License-Identifier: Apache-2.0
"""Timed model of compiled schedules, tag ``model`` (docs/spec/compiler.md 14.2).

:func:`cost` prices typed unit programs; :mod:`kohakutpu.cost.executed` counts the same cycles while payloads run,
:func:`mesh_cost` puts their words on the links of the mesh.
"""

from kohakutpu.cost.mesh import MeshBand, MeshCost
from kohakutpu.cost.mesh import cost as mesh_cost
from kohakutpu.cost.profile import DEFAULT, PROFILES, REF, Profile, Spent, profile
from kohakutpu.cost.report import BandCost, KernelCost, cost

LAYER = "L2"

__all__ = [
    "DEFAULT",
    "PROFILES",
    "REF",
    "BandCost",
    "KernelCost",
    "MeshBand",
    "MeshCost",
    "Profile",
    "Spent",
    "cost",
    "mesh_cost",
    "profile",
]
