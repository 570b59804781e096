# SPDX-License-Identifier: Apache-2.0
"""L5: what to compute, on arrays."""

from kohakutpu.tensor.ops import Call, linear, matmul

LAYER = "L5"

__all__ = ["Call", "linear", "matmul"]
