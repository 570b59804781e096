# SPDX-License-Identifier: Apache-2.0
"""Timed model of compiled schedules, tag ``model`` (docs/spec/compiler.md 14.2).

:func:`cost` prices typed unit programs; :mod:`kohakutpu.cost.executed` counts the same cycles while payloads run.
"""

from kohakutpu.cost.profile import DEFAULT, PROFILES, REF, Profile, Spent, profile
from kohakutpu.cost.report import BandCost, KernelCost, cost

LAYER = "L2"

__all__ = ["DEFAULT", "PROFILES", "REF", "BandCost", "KernelCost", "Profile", "Spent", "cost", "profile"]
