# SPDX-License-Identifier: Apache-2.0
"""The kernel language, for ``from ktpu.language import ...`` (docs/guide_kernels.md)."""

from kohakutpu.kernels import language
from kohakutpu.kernels.language import *  # noqa: F403

__all__ = language.__all__
