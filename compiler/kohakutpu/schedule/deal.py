# SPDX-License-Identifier: Apache-2.0
"""The only dealing function (docs/spec/compiler.md 10.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import cycle
from typing import Any, TypeVar

LAYER = "L2"

K = TypeVar("K", bound=Any)
N = TypeVar("N")


def deal(keys: Iterable[K], nodes: Sequence[N]) -> dict[K, N]:
    """Key i of the sorted keys runs on ``nodes[i mod len(nodes)]``; the result keeps the keys' own order.

    Raises:
        ValueError: no node to deal to.
    """
    if not nodes:
        raise ValueError("deal: no node to run on")
    listed = list(keys)
    place = dict(zip(sorted(listed), cycle(nodes), strict=False))
    return {key: place[key] for key in listed}
