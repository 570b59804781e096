# SPDX-License-Identifier: Apache-2.0
"""L4: how one unit's work is shaped."""

from kohakutpu.kernels.elementwise import Step, elementwise
from kohakutpu.kernels.linear import gated, linear
from kohakutpu.kernels.matmul import matmul
from kohakutpu.kernels.rows import layernorm, rmsnorm, softmax
from kohakutpu.kernels.trace import Trace

LAYER = "L4"

__all__ = [
    "Step",
    "Trace",
    "elementwise",
    "gated",
    "layernorm",
    "linear",
    "matmul",
    "rmsnorm",
    "softmax",
]
