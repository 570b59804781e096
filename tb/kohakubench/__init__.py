# SPDX-License-Identifier: Apache-2.0
"""Bench library of KohakuTPU: one declaration a bench, one entry to run it.

A bench file declares a :class:`Bench` and its cocotb tests; ``python -m kohakubench``
(behind ``make``) and ``pytest tb/`` are two skins over :mod:`kohakubench.run`.
"""

from __future__ import annotations

import os

from kohakubench import checks, clocks
from kohakubench.bench import Bench

__all__ = ["Bench", "checks", "clocks", "scale", "seed", "slow"]


def seed() -> int:
    """Seed of this run (``SEED=n`` on the command line, 1 by default)."""
    return int(os.environ.get("KOHAKU_SEED", "1"))


def slow() -> bool:
    """True when the long sweeps were asked for (``pytest -m slow`` or ``SLOW=1``)."""
    return os.environ.get("KOHAKU_SLOW", "0") not in ("", "0")


def scale(fast: int, nightly: int) -> int:
    """Size of a sweep: ``fast`` in a normal run, ``nightly`` in a slow one."""
    return nightly if slow() else fast
