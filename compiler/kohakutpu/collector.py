# SPDX-License-Identifier: Apache-2.0
"""The garbage collector during a compilation."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

LAYER = "leaf"


@contextmanager
def paused() -> Iterator[None]:
    """No collections inside; as before afterwards.

    A long program is hundreds of thousands of objects without a cycle, which the collector would visit over and over
    while they are made.
    """
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()
