# SPDX-License-Identifier: Apache-2.0
"""Templates, normal form and the application of a catalogue (docs/spec/compiler.md 13.3)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import rewrite_cases as rc
from kohakutpu.errors import CompileError
from kohakutpu.rewrite import (
    BY_NAME,
    CATALOGUE,
    Equality,
    Expr,
    Rewrite,
    array,
    inputs,
    interpret,
    library,
    normal,
    ops,
    rewrite,
    walk,
    without,
)
from kohakutpu.rewrite.expr import hole, make, named, numeral, some
from kohakutpu.rewrite.template import Bound, first, unify

pytestmark = pytest.mark.unit

X, Y = array("x", 8, 32), array("y", 8, 32)
G, B = array("g", 32), array("b", 32)


def test_equal_expressions_are_one_object() -> None:
    assert X * 2.0 + Y is X * 2.0 + Y
    assert X * 2.0 is not X * -2.0
    assert X + 0.0 is not X + -0.0


def test_one_hole_is_one_expression() -> None:
    square = hole("a") * hole("a")
    assert first(square, X * X) == {"a": X}
    assert first(square, X * Y) is None


def test_commutative_operands_match_in_both_orders() -> None:
    template = make("exp", hole("a")) * hole("b")
    assert first(template, Y * ops.exp(X)) == {"a": X, "b": Y}
    assert first(make("exp", hole("a")) - hole("b"), Y - ops.exp(X)) is None
    assert len(list(unify(hole("a") + hole("b"), X + Y))) == 2


def test_numbers_and_names() -> None:
    template = named("all", hole("a") * numeral("n"))
    assert first(template, X * 0.5) == {"a": X, "n": (X * 0.5).args[1], "all": X * 0.5}
    assert first(template, X * Y) is None
    assert first(hole("a") * 0.1, X * (0.1 + 1e-9)) is not None
    assert first(hole("a") * 0.1, X * 0.11) is None


def test_attributes_match_unless_any() -> None:
    assert first(make("reduce_sum", hole("a"), axis=-1), ops.row_sum(X, -2)) is None
    assert first(some("reduce_sum", hole("a")), ops.row_sum(X, -2)) == {"a": X}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (2.0 * X, X * 2.0),
        (X / 4, X * 0.25),
        (-X, X * -1.0),
        (X - 1, X + -1.0),
        ((X * 2.0) * 3.0, X * 6.0),
        (X * ops.recip(Y), X / Y),
        (X / ops.sqrt(Y), X * ops.rsqrt(Y)),
        (ops.recip(ops.sqrt(X)), ops.rsqrt(X)),
        (1.0 / X, ops.recip(X)),
        (ops.row_sum(X * 0.5), ops.row_sum(X) * 0.5),
        (ops.row_sum(X * 0.5 * Y), ops.row_sum(X * Y) * 0.5),
        (X / (1.0 + ops.exp(-X)), ops.silu(X)),
        (X * ops.sigmoid(X), ops.silu(X)),
        (1.0 / (1.0 + ops.exp(-X)), ops.sigmoid(X)),
        (ops.maximum(0.0, X), ops.relu(X)),
        (X * ops.sigmoid(1.702 * X), ops.gelu_sigmoid(X)),
        (make("fma", X, Y, X), X * Y + X),
        (ops.transpose(ops.transpose(X)), X),
        (ops.reshape(ops.reshape(X, 256), 16, 16), ops.reshape(X, 16, 16)),
        (ops.take(X, -1, 0, 32), X),
        (X + ops.broadcast(G, 8, 32), X + G),
        (X * 1.0 + 0.0, X),
    ],
)
def test_spellings_have_one_normal_form(one: Expr, other: Expr) -> None:
    """And the normal form means the same."""
    assert normal(one) is normal(other)
    rng = np.random.default_rng(3)
    values = {e.name: rng.random(e.extents) + 0.5 for e in (*inputs(one), *inputs(other))}
    assert np.allclose(interpret(one, values), interpret(normal(one), values), rtol=1e-12)


def _norm(order: int) -> Expr:
    mean = ops.row_mean(X)
    d = X - mean
    root = ops.rsqrt(1e-5 + ops.row_mean(d * d))
    divided = d / ops.sqrt(ops.row_mean(d * d) + 1e-5)
    return (d * root * G + B, B + G * (root * d), d * (G * root) + B, divided * G + B)[order]


@pytest.mark.parametrize("order", range(4))
def test_a_layernorm_in_several_spellings(order: int) -> None:
    """All of them are the kernel of the library."""
    choice = library.match(normal(_norm(order)))
    assert choice is not None
    assert choice.kernel.name == "layernorm"
    assert choice.operands == (X, G, B)
    assert choice.knobs["eps"] == pytest.approx(1e-5)


def test_a_near_layernorm_is_none() -> None:
    """Another divisor, and a second moment about another mean."""
    d = X - ops.row_mean(X)
    for wrong in (ops.row_sum(d * d) * (1 / 31), ops.row_mean(d * (X - ops.row_mean(Y)))):
        assert library.match(normal(d * ops.rsqrt(wrong + 1e-5) * G + B)) is None
    short = X - ops.row_sum(X) * (1 / 31)
    for part in (1 / 31, 1 / 32):
        wrong = ops.row_sum(short * short) * part
        assert library.match(normal(short * ops.rsqrt(wrong + 1e-5) * G + B)) is None


class _Swap(Rewrite):
    """Exchanges the operands of a difference, for ever."""

    name = "swap"
    equality = Equality.EXACT
    templates = (hole("a") - hole("b"),)

    def replacement(self, found: Bound) -> Expr:
        """The other way round."""
        return found["b"] - found["a"]


def test_entries_that_undo_each_other_are_refused() -> None:
    with pytest.raises(CompileError, match="swap undo each other"):
        rewrite(X - Y, [_Swap()])


def test_without() -> None:
    assert len(without(rc.EXP2, rc.LSE)) == len(CATALOGUE) - 2
    with pytest.raises(KeyError):
        without("no such entry")


def test_what_was_done_is_listed() -> None:
    """Node before and node after, and the near misses that are left."""
    done = rewrite(ops.transpose(X @ Y) + ops.exp(array("z", 8, 8)), CATALOGUE)
    (step,) = done.applied
    assert (step.rewrite, step.before.op, step.after.op) == (rc.TRANSPOSE, "transpose", "contract")
    assert [(r.rewrite, r.node.op) for r in done.refused] == [(rc.EXP2, "exp")]


@pytest.mark.parametrize("entry", BY_NAME)
def test_catalogue_is_idempotent(entry: str) -> None:
    """A rewritten expression is left alone by its entry."""
    for case in rc.POSITIVE:
        if case.entry == entry:
            done = rewrite(case.make(), [BY_NAME[entry]])
            assert rewrite(done.result, [BY_NAME[entry]]).result is done.result


def test_text() -> None:
    """One line an operation, operands first."""
    lines = (ops.softmax(X) @ Y).text().splitlines()
    assert lines[0] == "x = input shape=(8, 32): [8, 32]"
    assert lines[-1].startswith("%7 = contract(%5, y)")
    assert len(lines) == len(list(walk(ops.softmax(X) @ Y)))


@pytest.mark.parametrize("f", [lambda: hole("a").extents, lambda: inputs(array("x", 2) + array("x", 1))])
def test_refusals(f: Callable[[], object]) -> None:
    with pytest.raises(CompileError, match=r"only an expression has a shape|name them apart"):
        f()
