# SPDX-License-Identifier: Apache-2.0
"""Vector chains, and the parts an expression of many operands is computed in (docs/spec/compiler.md 13.2).

A chain takes at most three operands. A longer expression is computed in several, each of which leaves one array of half
precision for the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from math import prod

from ktpu_tinygrad import generated
from ktpu_tinygrad.expression import Expr, rewritten
from ktpu_tinygrad.nest import NoMatchError
from ktpu_tinygrad.operands import FULL, MAX_OPERANDS, Match, Operand, Plane, gathered, loads

LEAVES = ("load", "const", "accumulator")
NOT_STORED = ("less", "equal")
"""Conditions, which only a choice may read."""


class Work:
    """The kernels that run ahead of the last one, and the sizes of all buffers, their results included.

    A result of them is read as a parameter with a negative slot, -1 for the first.
    """

    def __init__(self, sizes: Mapping[int, int]) -> None:
        self.sizes = dict(sizes)
        self.before: list[Match] = []

    def result(self, one: Match) -> int:
        """Run ``one`` ahead; the slot of its result."""
        self.before.append(one)
        slot = -len(self.before)
        self.sizes[slot] = prod(one.shape)
        return slot

    def load(self, value: Expr, plane: Plane) -> Expr:
        """A load of ``value``, computed ahead."""
        return Expr("load", slot=self.result(chain(value, plane, self)), access=plane.whole())


def chain(value: Expr, plane: Plane, work: Work) -> Match:
    """The kernel that computes every element of ``plane``.

    Raises:
        NoMatchError: no operand, too many, or none that has an element for each result.
    """
    value = narrowed(value, plane, work)
    operands = gathered(dict.fromkeys(loads(value), plane), work.sizes)
    if not operands:
        raise NoMatchError("no operand: a kernel that only writes constants")
    ports, single, order = generated.ported(operands)
    if len(order) == len(single):
        raise NoMatchError("every operand is repeated; a chain needs one that has an element for each result")
    return Match("chain", partial(generated.elements, value, ports, single, "chain"), order, plane.shape)


def side(value: Expr, plane: Plane, work: Work) -> Operand | None:
    """An operand of a product: a buffer that is ``plane``, or what a chain makes of one; None if it is neither."""
    if value.op == "load" and plane.form(value.access, work.sizes[value.slot], FULL) == FULL:
        return Operand(value.slot, FULL, plane.shape)
    if plane.batch or FULL not in _forms(value, plane, work).values():
        return None
    return Operand(work.result(chain(value, plane, work)), FULL, plane.shape)


def narrowed(value: Expr, plane: Plane, work: Work) -> Expr:
    """``value`` with parts of it computed ahead until few enough operands are left, if that helps."""
    while not plane.batch and _count(value, plane, work) > MAX_OPERANDS:
        part = min(_parts(value, plane, work), key=lambda one: one[:2], default=None)
        if part is None:
            break
        computed = work.load(part[2], plane)
        value = _with(value, part[2], computed)
    return value


def _parts(value: Expr, plane: Plane, work: Work) -> Iterator[tuple[int, int, Expr]]:
    """(operands left without it, -nodes, part) of every part one chain computes and that leaves fewer operands."""
    forms = _forms(value, plane, work)
    now = _count(value, plane, work)
    for node in value.nodes():
        inside = list(node.nodes())
        fit = node != value and node.op not in (*LEAVES, *NOT_STORED, "fold")
        if fit and not any(n.op in ("fold", "accumulator") for n in inside):
            read = loads(node)
            # any slot that is not taken stands for the result
            left = _count(_with(value, node, Expr("load", access=plane.whole(), slot=min(work.sizes) - 1)), plane, work)
            if FULL in {forms[r] for r in read} and _count(node, plane, work) <= MAX_OPERANDS and left < now:
                yield left, -len(inside), node


def _with(value: Expr, part: Expr, computed: Expr) -> Expr:
    return rewritten(value, lambda node: computed if node == part else node)


def _forms(value: Expr, plane: Plane, work: Work) -> dict[Expr, str]:
    return {load: plane.form(load.access, work.sizes.get(load.slot, 0), FULL) for load in loads(value)}


def _count(value: Expr, plane: Plane, work: Work) -> int:
    """Distinct operands: one buffer read in two ways is two."""
    forms = {load: (load.slot, plane.form(load.access, work.sizes.get(load.slot, 0), FULL)) for load in loads(value)}
    return len(set(forms.values()))
