# SPDX-License-Identifier: Apache-2.0
"""The kernel library, for ``from ktpu.library import flash_attention`` (docs/guide_kernels.md)."""

from kohakutpu.kernels import library
from kohakutpu.kernels.library import *  # noqa: F403

__all__ = library.__all__
