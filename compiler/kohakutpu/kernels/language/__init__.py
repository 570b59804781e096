# SPDX-License-Identifier: Apache-2.0
"""The kernel language: what a kernel author imports (docs/spec/compiler.md 11)."""

from kohakutpu.kernels.language.buffers import In, Out
from kohakutpu.kernels.language.constructs import adjacent, grid, loop, plane, region, table, temp, tile, units
from kohakutpu.kernels.language.integers import Int, dims
from kohakutpu.kernels.language.kernel import Bound, Kernel, Trace, kernel
from kohakutpu.kernels.language.lanes import (
    absolute,
    equal,
    exp2,
    fma,
    greater,
    less,
    log2,
    maximum,
    minimum,
    recip,
    row_max,
    row_sum,
    rsqrt,
    sqrt_approx,
    sqrt_newton,
    where,
)

LAYER = "L4"

__all__ = [
    "Bound",
    "In",
    "Int",
    "Kernel",
    "Out",
    "Trace",
    "absolute",
    "adjacent",
    "dims",
    "equal",
    "exp2",
    "fma",
    "greater",
    "grid",
    "kernel",
    "less",
    "log2",
    "loop",
    "maximum",
    "minimum",
    "plane",
    "recip",
    "region",
    "row_max",
    "row_sum",
    "rsqrt",
    "sqrt_approx",
    "sqrt_newton",
    "table",
    "temp",
    "tile",
    "units",
    "where",
]
