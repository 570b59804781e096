# SPDX-License-Identifier: Apache-2.0
"""Activations written into a graph by hand (docs/spec/kernels.md 4), for graphs that no kernel makes."""

from __future__ import annotations

import math

from kohakutpu.kernels.formula import Formula

LOG2E = math.log2(math.e)
ACTIVATIONS = ("silu", "gelu", "gelu_sigmoid", "relu", "exp")


def activation(f: Formula, name: str, v: str, out: str = "") -> str:
    """Apply one of :data:`ACTIVATIONS` to value ``v``; ``out`` names the buffer that stores the result."""
    if name == "relu":
        return f.op("maximum", v, 0.0, out=out)
    if name == "exp":
        return f.op("exp2", f.op("mul", v, LOG2E), out=out)
    if name == "gelu":
        slope = -2.0 * math.sqrt(2.0 / math.pi) * LOG2E
        inner = f.op("mul", f.op("fma", f.op("mul", v, v), slope * 0.044715, slope), v)
    else:
        inner = f.op("mul", v, -LOG2E * {"silu": 1.0, "gelu_sigmoid": 1.702}[name])
    return f.op("mul", v, f.op("recip", f.op("add", f.op("exp2", inner), 1.0)), out=out)
