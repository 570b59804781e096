# SPDX-License-Identifier: Apache-2.0
"""L4: how one unit's work is shaped."""

from kohakutpu.kernels.matmul import Trace, matmul

LAYER = "L4"

__all__ = ["Trace", "matmul"]
