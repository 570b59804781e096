# SPDX-License-Identifier: Apache-2.0
"""L4: how one unit's work is shaped."""

from kohakutpu.kernels.trace import Trace

LAYER = "L4"

__all__ = ["Trace"]
