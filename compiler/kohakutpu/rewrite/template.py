# SPDX-License-Identifier: Apache-2.0
"""Matching expressions against templates (docs/spec/compiler.md 13.3).

A template is an expression with holes. A hole stands for any expression, the same hole for the same one; operands of
a commutative operation match in both orders; a constant matches what equals it to one part in a million.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from kohakutpu.rewrite.expr import Expr
from kohakutpu.rewrite.shapes import ANY, COMMUTATIVE

LAYER = "L5"

Bound = Mapping[str, Expr]
"""Expressions by the name of the hole they fill."""

_CLOSE = 1e-6


def unify(template: Expr, e: Expr, bound: Bound | None = None) -> Iterator[dict[str, Expr]]:
    """Every way to fill the holes of ``template`` so that it is ``e``."""
    have = dict(bound or {})
    if template.op in ("hole", "numeral", "named"):
        yield from _bind(template, e, have)
    elif template.number is not None:
        if e.number is not None and math.isclose(template.number, e.number, rel_tol=_CLOSE):
            yield have
    elif template.op == e.op and len(template.args) == len(e.args) and _same_attrs(template, e):
        yield from _operands(template.args, e.args, have)
        if e.op in COMMUTATIVE and e.args[0] is not e.args[1]:
            yield from _operands(template.args, e.args[::-1], have)


def first(template: Expr, e: Expr) -> dict[str, Expr] | None:
    """One way to fill the holes, None if there is none."""
    return next(unify(template, e), None)


def _bind(template: Expr, e: Expr, bound: dict[str, Expr]) -> Iterator[dict[str, Expr]]:
    if template.op == "numeral" and e.number is None:
        return
    ways = unify(template.args[0], e, bound) if template.op == "named" else iter([bound])
    for way in ways:
        if way.get(template.name, e) is e:
            yield {**way, template.name: e}


def _operands(templates: tuple[Expr, ...], args: tuple[Expr, ...], bound: dict[str, Expr]) -> Iterator[dict[str, Expr]]:
    if not templates:
        yield bound
        return
    for way in unify(templates[0], args[0], bound):
        yield from _operands(templates[1:], args[1:], way)


def _same_attrs(template: Expr, e: Expr) -> bool:
    return template.attrs == e.attrs or ANY in dict(template.attrs)
