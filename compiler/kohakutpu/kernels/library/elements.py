# SPDX-License-Identifier: Apache-2.0
"""Elementwise kernels on blocks of any rank (docs/spec/kernels.md 3, rows 15 and 19)."""

from __future__ import annotations

from typing import Any

from kohakutpu.kernels.language import In, Kernel, Out, kernel, units
from kohakutpu.kernels.library import functions
from kohakutpu.kernels.library.functions import Function
from kohakutpu.kernels.library.helpers import PART, named

LAYER = "L4"


def _element(name: str, f: Function) -> Kernel:
    def body(x: Any = In(...), y: Any = Out(...), *, part: Any = PART) -> None:
        for e in units(x.parts(part)):
            y[e] <<= f(x[e])

    return named(name, body, f"y = {f.__doc__} Knob: part, the elements of an instance.")


silu = _element("silu", functions.silu)
gelu = _element("gelu", functions.gelu)
gelu_sigmoid = _element("gelu_sigmoid", functions.gelu_sigmoid)
sigmoid = _element("sigmoid", functions.sigmoid)
relu = _element("relu", functions.relu)
exp = _element("exp", functions.exp)


@kernel
def residual(x: Any = In(...), r: Any = In(...), y: Any = Out(...), *, part: Any = PART) -> None:
    """y = x + r, both of one length; the sum is rounded to a register, then to FP16."""
    for e in units(x.parts(part)):
        y[e] <<= x[e] + r[e]
