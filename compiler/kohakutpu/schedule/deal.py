# SPDX-License-Identifier: Apache-2.0
"""The only dealing function (docs/spec/compiler.md 10.2)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

LAYER = "L2"

K = TypeVar("K", bound=Hashable)
N = TypeVar("N")


def deal(keys: Iterable[K], nodes: Sequence[N]) -> dict[K, N]:
    """Key i of the keys in their order runs on ``nodes[i mod len(nodes)]``.

    Raises:
        ValueError: no node to deal to.
    """
    if not nodes:
        raise ValueError("deal: no node to run on")
    return {key: nodes[i % len(nodes)] for i, key in enumerate(keys)}
