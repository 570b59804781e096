# SPDX-License-Identifier: Apache-2.0
"""Numeric events of docs/spec/numerics.md section 13: counted, never altering data."""

from __future__ import annotations

from dataclasses import dataclass, fields

LAYER = "leaf"


@dataclass
class NumericEvents:
    """Counters, one increment per element that met the condition."""

    q_special: int = 0
    """FP16 inputs of the quantiser with exponent field 31."""
    fp16_sat: int = 0
    """Finite values that a conversion to FP16 clamped to +-65504."""
    acc_range: int = 0
    """Block values flushed or saturated because the anchor moved the exponent out of range."""
    acc_ovf: int = 0
    """Accumulator additions that ended in the saturation code."""

    def add(self, other: NumericEvents) -> None:
        """Add the counts of `other` to this object."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))

    def clear(self) -> None:
        """Set every count to zero."""
        for f in fields(self):
            setattr(self, f.name, 0)
