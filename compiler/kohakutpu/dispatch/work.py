# SPDX-License-Identifier: Apache-2.0
"""What one unit has to run, as words: the input of dispatch."""

from __future__ import annotations

from dataclasses import dataclass

LAYER = "L0"


@dataclass(frozen=True)
class Words:
    """Payloads of one program and its modelled cycles."""

    payloads: tuple[int, ...]
    cycles: int = 0


@dataclass(frozen=True)
class UnitWork:
    """Programs of unit number ``unit`` of type ``engine``, in order."""

    engine: str
    unit: int
    programs: tuple[Words, ...]
