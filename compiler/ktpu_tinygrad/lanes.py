# SPDX-License-Identifier: Apache-2.0
"""Expressions in the lane operations of the vector core (docs/spec/compiler.md 9.4 and 13.2).

tinygrad writes a square root's reciprocal as two operations, and a minimum or a maximum as a choice; the lanes have
one operation for each. There is no lane operation for a sine, a truncation or an operation on bits.
"""

from __future__ import annotations

import math

from ktpu_tinygrad.expression import FOLDS, Expr, const, rewritten
from ktpu_tinygrad.nest import NoMatchError

PLAIN = {"add": "add", "sub": "sub", "mul": "mul", "neg": "neg", "max": "maximum", "exp2": "exp2", "log2": "log2"}
CONDITIONS = ("less", "equal", "unequal")


def lanes(value: Expr) -> Expr:
    """``value`` in lane operations.

    Raises:
        NoMatchError: an operation the lanes do not have, or a constant that is not finite.
    """
    return rewritten(value, _lane)


def _lane(node: Expr) -> Expr:
    match node.op:
        case "load" | "accumulator":
            return node
        case "const":
            if not math.isfinite(node.value):
                raise NoMatchError(f"the constant {node.value} is no number of a lane")
            return node
        case "fold":
            if node.name not in FOLDS:
                raise NoMatchError(f"a {node.name} along an axis; the lanes fold with {' and '.join(FOLDS)}")
            return node
        case "sqrt":
            return Expr("sqrt", node.args)
        case "reciprocal":
            (arg,) = node.args
            return Expr("rsqrt", arg.args) if arg.op == "sqrt" else Expr("recip", node.args)
        case "cmplt":
            return Expr("less", node.args)
        case "cmpeq":
            return Expr("equal", node.args)
        case "cmpne":
            return Expr("unequal", node.args)
        case "where":
            return _choice(*node.args)
        case "neg":
            return _negated(node.args[0])
        case "mul" if const(-1.0) in node.args:
            return _negated(node.args[1] if node.args[0] == const(-1.0) else node.args[0])
        case op if op in PLAIN:
            return Expr(PLAIN[op], node.args)
    raise NoMatchError(f"{node.op} is no operation of a lane")


def _negated(arg: Expr) -> Expr:
    """The negative; -max(-a, -b) is a minimum."""
    if arg.op == "neg":
        return arg.args[0]
    if arg.op == "const":
        return const(-arg.value)
    if arg.op == "maximum" and all(a.op in ("neg", "const") for a in arg.args):
        return Expr("minimum", tuple(_negated(a) for a in arg.args))
    return Expr("neg", (arg,))


def _choice(condition: Expr, a: Expr, b: Expr) -> Expr:
    """A choice between values; one between the two values that were compared is a maximum or a minimum."""
    if condition.op not in CONDITIONS:
        raise NoMatchError(f"a choice by {condition.op}")
    x, y = condition.args
    if condition.op == "less" and (a, b) == (y, x):
        return Expr("maximum", (x, y))
    if condition.op == "less" and (a, b) == (x, y):
        return Expr("minimum", (x, y))
    if condition.op == "unequal":
        return Expr("where", (Expr("equal", condition.args), b, a))
    return Expr("where", (condition, a, b))
