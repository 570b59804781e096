# SPDX-License-Identifier: Apache-2.0
"""What one unit has to run, as words: the input of dispatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LAYER = "L0"

Arrivals = Mapping[tuple[str, int], int]
"""Burst acknowledgements of receivers, by unit type and number."""


@dataclass(frozen=True)
class Words:
    """Payloads of one program, its modelled cycles, and the unit type they were encoded for ("" if unknown)."""

    payloads: tuple[int, ...]
    cycles: int = 0
    engine: str = ""


@dataclass(frozen=True)
class UnitWork:
    """Programs of unit number ``unit`` of type ``engine``, in order."""

    engine: str
    unit: int
    programs: tuple[Words, ...]
