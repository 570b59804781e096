# SPDX-License-Identifier: Apache-2.0
"""Writing tensor expressions for :func:`ktpu.auto`; see :mod:`kohakutpu.rewrite.ops`."""

from kohakutpu.rewrite import ops
from kohakutpu.rewrite.expr import array
from kohakutpu.rewrite.ops import *  # noqa: F403

__all__ = ["array"]
__all__ += ops.__all__
