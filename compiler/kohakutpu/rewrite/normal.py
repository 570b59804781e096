# SPDX-License-Identifier: Apache-2.0
"""One spelling for what is written in several (docs/spec/compiler.md 13.3).

Rewrites and library kernels are matched against this form: constants stand on the right and are folded, a factor of a
sum stands behind it, a division by a number is a product, the reciprocal of a root is one operation, activations have
their names, views that change nothing are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kohakutpu.rewrite.expr import Expr, as_expr, hole, like, make, walk
from kohakutpu.rewrite.interpret import interpret
from kohakutpu.rewrite.shapes import LANES
from kohakutpu.rewrite.template import first

LAYER = "L5"

SIGMOID_GELU = 1.702


def normal(root: Expr) -> Expr:
    """The normal form of an expression, or of a template."""
    made: dict[Expr, Expr] = {}
    for e in walk(root):
        made[e] = _settled(like(e, tuple(made[a] for a in e.args)))
    return made[root]


def _settled(e: Expr) -> Expr:
    """``e`` under the local rules until none applies; its operands are in normal form."""
    while True:
        for rule in (_numbers, _products, _sums, _views, _functions):
            found = rule(e)
            if found is not None:
                e = like(found, tuple(map(_settled, found.args)))
                break
        else:
            return e


def _constant(e: Expr) -> bool:
    return e.op in ("const", "numeral")


def _numbers(e: Expr) -> Expr | None:
    """Constants folded, and on the right."""
    if e.op in LANES and all(a.number is not None for a in e.args):
        return as_expr(float(interpret(e, {})))
    match e.op, e.args:
        case "neg", (x,):
            return x * -1.0
        case ("sub", (x, c)) if c.number is not None:
            return x + -c.number
        case ("div", (x, c)) if c.number:
            return x * (1.0 / c.number)
        case ("add" | "mul" | "maximum" | "minimum"), (c, x) if _constant(c) and not _constant(x):
            return make(e.op, x, c)
        case ("mul", (x, c)) if c.number == 1.0:
            return x
        case ("add", (x, c)) if c.number == 0.0:
            return x
        case (("add" | "mul") as op, (x, c)) if c.number is not None and x.op == op and x.args[1].number is not None:
            return make(op, x.args[0], make(op, x.args[1], c))
    return None


def _products(e: Expr) -> Expr | None:
    """Divisions and roots."""
    match e.op, e.args:
        case "fma", (a, b, c):
            return a * b + c
        case ("div", (one, x)) if one.number == 1.0:
            return make("recip", x)
        case ("recip", (x,)) if x.op == "sqrt":
            return make("rsqrt", x.args[0])
        case ("div", (x, y)) if y.op == "sqrt":
            return x * make("rsqrt", y.args[0])
        case ("mul", (x, y)) if y.op == "recip":
            return x / y.args[0]
        case ("mul", (x, y)) if x.op == "recip":
            return y / x.args[0]
    return None


def _sums(e: Expr) -> Expr | None:
    """A constant factor of a summand becomes one of the sum."""
    if e.op != "reduce_sum" or e.args[0].op != "mul":
        return None
    x, y = e.args[0].args
    if y.number is not None:
        return like(e, (x,)) * y
    for a, b in ((x, y), (y, x)):
        if a.op == "mul" and a.args[1].number is not None:
            return like(e, (a.args[0] * b,)) * a.args[1]
    return None


def _views(e: Expr) -> Expr | None:
    """Views of the whole, and views of views."""
    if e.op not in ("reshape", "transpose", "slice", "broadcast") or e.shape is None:
        return _repeated(e)
    (x,) = e.args
    if e.op == "transpose":
        axes = e.axes("axes")
        if axes == tuple(range(len(axes))):
            return x
        if x.op == "transpose":
            return make("transpose", x.args[0], axes=tuple(x.axes("axes")[i] for i in axes))
        return None
    if e.shape == x.shape:
        return x
    return like(e, x.args) if e.op == x.op == "reshape" else None


def _repeated(e: Expr) -> Expr | None:
    """An operand that is repeated by the operation anyway need not be repeated before."""
    if e.op not in LANES or e.shape is None:
        return None
    bare = tuple(a.args[0] if a.op == "broadcast" else a for a in e.args)
    if bare == e.args:
        return None
    found = like(e, bare)
    return found if found.shape == e.shape else None


@cache
def _named() -> tuple[tuple[Expr, Callable[[Expr], Expr]], ...]:
    """Templates of activations, in normal form once their parts are."""
    x = hole("x")
    return (
        (make("recip", make("exp", x * -1.0) + 1.0), lambda v: make("sigmoid", v)),
        (x / (make("exp", x * -1.0) + 1.0), lambda v: make("silu", v)),
        (x * make("sigmoid", x), lambda v: make("silu", v)),
        (x * make("sigmoid", x * SIGMOID_GELU), lambda v: make("gelu_sigmoid", v)),
        (make("maximum", x, as_expr(0.0)), lambda v: make("relu", v)),
    )


def _functions(e: Expr) -> Expr | None:
    if e.op not in ("recip", "div", "mul", "maximum"):
        return None
    for template, function in _named():
        found = first(template, e)
        if found is not None:
            return function(found["x"])
    return None


def factors(e: Expr) -> tuple[float, tuple[Expr, ...]]:
    """A product as its constant factor and the others."""
    if e.number is not None:
        return e.number, ()
    if e.op == "neg":
        number, rest = factors(e.args[0])
        return -number, rest
    if e.op != "mul":
        return 1.0, (e,)
    (a, left), (b, right) = map(factors, e.args)
    return a * b, left + right


