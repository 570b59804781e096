# SPDX-License-Identifier: Apache-2.0
"""The axes of a nest: loops that run on as one, and the order they are stored in (docs/spec/compiler.md 13.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod

from ktpu_tinygrad.expression import Access, Expr, rewritten
from ktpu_tinygrad.nest import Nest, NoMatchError


@dataclass(frozen=True)
class Axes:
    """A nest whose result is stored densely from its first element on.

    Args:
        loops: (number, extent) of the parallel loops, outermost first; neighbours cannot be joined.
        folds: extents of the loops folds run over.
    """

    nest: Nest
    loops: tuple[tuple[int, int], ...]
    folds: Mapping[int, int]
    value: Expr


def axes(nest: Nest) -> Axes:
    """The axes of a nest.

    Raises:
        NoMatchError: a result that is not all of its buffer in order.
    """
    loops, folds = dict(nest.loops), dict(nest.folds)
    target, value = nest.target, nest.value
    for extents in (loops, folds):
        while (pair := _joinable(extents, [target, *_accesses(value)], value)) is not None:
            target, value = _without(target, pair[0]), _joined(value, *pair)
            extents[pair[1]] *= extents.pop(pair[0])
    order = sorted(loops, key=target.stride, reverse=True)
    dense = [prod(loops[n] for n in order[i + 1 :]) for i in range(len(order))]
    if [target.stride(n) for n in order] != dense or prod(loops.values()) != nest.sizes[nest.slot]:
        raise NoMatchError("the result does not fill its buffer in the order of the loops")
    return Axes(nest, tuple((n, loops[n]) for n in order), folds, value)


def _accesses(value: Expr) -> Iterable[Access]:
    return (n.access for n in value.nodes() if n.op == "load")


def _joinable(extents: Mapping[int, int], accesses: Iterable[Access], value: Expr) -> tuple[int, int] | None:
    """(outer, inner) of two loops every access walks as one."""
    together = [n.loops for n in value.nodes() if n.op == "fold"]
    known = list(accesses)
    for outer, inner in permutations(extents, 2):
        apart = any((outer in fold) != (inner in fold) for fold in together)
        if not apart and all(a.stride(outer) == a.stride(inner) * extents[inner] for a in known):
            return outer, inner
    return None


def _without(access: Access, loop: int) -> Access:
    return Access(tuple((n, s) for n, s in access.strides if n != loop))


def _joined(value: Expr, outer: int, _inner: int) -> Expr:
    def change(node: Expr) -> Expr:
        if node.op == "load":
            return replace(node, access=_without(node.access, outer))
        return replace(node, loops=tuple(n for n in node.loops if n != outer)) if node.op == "fold" else node

    return rewritten(value, change)
