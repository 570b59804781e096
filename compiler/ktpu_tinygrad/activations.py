# SPDX-License-Identifier: Apache-2.0
"""Epilogues of the kernel library, recognised in an expression (docs/spec/kernels.md 4).

A constant of tinygrad went through half precision; it counts as the library's if it is that close to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ktpu_tinygrad.expression import ACCUMULATOR, Expr, const

HALF_STEP = 2.0**-11
"""Relative error of a constant rounded to half precision."""

LOG2E = math.log2(math.e)
GELU = -2.0 * math.sqrt(2.0 / math.pi) * LOG2E
CUBIC = 0.044715
COMMUTES = ("add", "mul", "maximum", "minimum")

HOLE = Expr("hole")


def _op(name: str, *args: Expr) -> Expr:
    return Expr(name, args)


def _sigmoid(factor: float, v: Expr) -> Expr:
    return _op("recip", _op("add", _op("exp2", _op("mul", v, const(factor))), const(1.0)))


_CUBE = _op("mul", _op("mul", HOLE, HOLE), HOLE)
FORMS = {
    "relu": _op("maximum", HOLE, const(0.0)),
    "silu": _op("mul", HOLE, _sigmoid(-LOG2E, HOLE)),
    "sigmoid": _sigmoid(-LOG2E, HOLE),
    "gelu": _op("mul", HOLE, _sigmoid(GELU, _op("add", HOLE, _op("mul", _CUBE, const(CUBIC))))),
    "gelu_sigmoid": _op("mul", HOLE, _sigmoid(-1.702 * LOG2E, HOLE)),
    "exp": _op("exp2", _op("mul", HOLE, const(LOG2E))),
}
"""Activations of the library by name, as functions of the hole."""


@dataclass(frozen=True)
class Linear:
    """activation(scale * accumulator + bias + addend)."""

    activation: str
    scale: float | None
    terms: tuple[Expr, ...]


def linear(value: Expr) -> Linear | None:
    """The epilogue of a library kernel that ``value`` is, None if it is none."""
    for name in ("", *FORMS):
        for inner in _holes(value, name):
            found = _terms(inner)
            if found is not None:
                return Linear(name, *found)
    return None


def _holes(value: Expr, name: str) -> Iterator[Expr]:
    if not name:
        yield value
        return
    for candidate in value.nodes():
        if candidate != value and _equal(FORMS[name], value, candidate):
            yield candidate


def _equal(form: Expr, value: Expr, hole: Expr) -> bool:
    """True if ``value`` is ``form`` with ``hole`` in the hole, in any order of commutative operands."""
    if form == HOLE:
        return value == hole
    if form.op == "const":
        return value.op == "const" and math.isclose(value.value, form.value, rel_tol=HALF_STEP)
    if value.op != form.op:
        return False
    orders = [value.args, value.args[::-1]] if form.op in COMMUTES else [value.args]
    return any(all(_equal(f, v, hole) for f, v in zip(form.args, args, strict=True)) for args in orders)


def _terms(value: Expr) -> tuple[float | None, tuple[Expr, ...]] | None:
    """(scale, other terms) of a sum with the accumulator in it once."""
    summands = list(_summands(value))
    scales = [s for s in map(_scale, summands) if s is not None]
    others = tuple(s for s in summands if _scale(s) is None)
    if len(scales) != 1 or any(o.op != "load" for o in others):
        return None
    return (None if scales[0] == 1.0 else scales[0]), others


def _summands(value: Expr) -> Iterator[Expr]:
    if value.op == "add":
        for arg in value.args:
            yield from _summands(arg)
    elif value.op == "sub":
        yield from _summands(value.args[0])
        yield Expr("neg", value.args[1:])
    else:
        yield value


def _scale(value: Expr) -> float | None:
    if value == ACCUMULATOR:
        return 1.0
    if value.op == "neg":
        inner = _scale(value.args[0])
        return None if inner is None else -inner
    if value.op == "mul" and ACCUMULATOR in value.args:
        other = value.args[1] if value.args[0] == ACCUMULATOR else value.args[0]
        return other.value if other.op == "const" else None
    return None
