# SPDX-License-Identifier: Apache-2.0
"""Generator of every file derived from ``spec/*.json``: ``python -m kohakutpu.gen [--check]``."""

from kohakutpu.gen.command import main, outputs

LAYER = "L0"

__all__ = ["main", "outputs"]
