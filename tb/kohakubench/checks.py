# SPDX-License-Identifier: Apache-2.0
"""Counted comparisons: a run that compared nothing is a failure."""

from __future__ import annotations

import atexit
import json
import os
from typing import Any

_count = 0
_registered = False


def _bump(n: int) -> None:
    global _count, _registered
    _count += n
    if not _registered:
        _registered = True
        atexit.register(flush)


def flush() -> None:
    """Write the number of comparisons where the runner reads it."""
    path = os.environ.get("KOHAKU_CHECKS")
    if path:
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"compared": _count}, f)


def equal(name: str, got: Any, exp: Any, *, n: int = 1) -> None:
    """Require ``got == exp``; counts ``n`` comparisons.

    Integers are shown in hexadecimal with the lowest differing bit.
    """
    _bump(n)
    if got == exp:
        return
    if isinstance(got, int) and isinstance(exp, int) and not isinstance(got, bool):
        diff = got ^ exp
        low = (diff & -diff).bit_length() - 1
        raise AssertionError(f"{name}: got {got:#x}, expected {exp:#x}, lowest differing bit {low}")
    raise AssertionError(f"{name}: got {got!r}, expected {exp!r}")


def true(name: str, cond: object, msg: str = "") -> None:
    """Require ``cond``; counts one comparison."""
    _bump(1)
    if not cond:
        raise AssertionError(f"{name}: {msg or 'condition does not hold'}")


def arrays(name: str, got: Any, exp: Any) -> None:
    """Require two integer arrays to be identical; counts every element.

    Reports the number of differing elements and the first one with its index.
    """
    import numpy as np

    g, e = np.asarray(got), np.asarray(exp)
    if g.shape != e.shape:
        _bump(1)
        raise AssertionError(f"{name}: shape {g.shape}, expected {e.shape}")
    _bump(max(1, int(g.size)))
    bad = np.argwhere(g != e)
    if len(bad):
        at = tuple(int(i) for i in bad[0])
        raise AssertionError(
            f"{name}: {len(bad)} of {g.size} elements differ, first at {at}: got {g[at]!r}, expected {e[at]!r}"
        )


def count() -> int:
    """Comparisons made so far in this process."""
    return _count
