# SPDX-License-Identifier: Apache-2.0
"""Global addresses of the tiers of memory (docs/spec/compiler.md 8.3)."""

from __future__ import annotations

from kohakutpu.isa import address

LAYER = "L1"

MESHES = 4
TIERS = ("dram", "l2", "near")


def place(base: int, mesh: int, tier: str) -> int:
    """Address of byte ``base`` of a tier of ``mesh``.

    Raises:
        KeyError: an unknown tier.
        kohakutpu.isa.EncodingError: a base or mesh that 40 bits cannot name.
    """
    form = {"dram": address.dram, "l2": address.staging, "near": address.adapter}[tier]
    return form(base, mesh)
