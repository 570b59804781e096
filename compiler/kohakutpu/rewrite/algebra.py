# SPDX-License-Identifier: Apache-2.0
"""Rewrites of formulas: softmax, variance, logarithm of a sum, base of an exponential (docs/spec/compiler.md 13.3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from math import prod

from kohakutpu.rewrite import ops
from kohakutpu.rewrite.expr import Expr, as_expr, hole, like, make, named, some
from kohakutpu.rewrite.normal import factors
from kohakutpu.rewrite.rule import Equality, Rewrite
from kohakutpu.rewrite.shapes import ROW_GROUP
from kohakutpu.rewrite.template import Bound, first

LAYER = "L5"

LOG2E = math.log2(math.e)
BLOCKS = (128, 96, 64, 32)
"""Keys of a step of the attention kernel, largest first."""

_x, _s, _v = hole("x"), hole("s"), hole("v")
_CLOSE = 1e-9


def _is_last(e: Expr) -> bool:
    return e.attr("axis") == -1


class OnlineSoftmax(Rewrite):
    """The softmax of scores, times v, becomes a running maximum, sum and result over blocks of keys.

    Pattern: ``softmax(c * (q k^T)) v^T`` with v [..., Dv, Lkv], in base e or 2, the division before or behind the
    product. Replacement: ``online_attention``, with c and log2(e) on q. Preconditions: the softmax is along the keys;
    heads are the leading axes of all three, with several the queries are a multiple of 4; keys and Dv are whole blocks
    of 32. Other numbers of keys are given by slicing padded k and v to the first of them; then the queries are whole
    blocks too. No score matrix is kept.
    """

    name = "streamed softmax"
    equality = Equality.BOUND
    templates = tuple(
        named("out", t)
        for power in ("exp", "exp2")
        for shifted in [named("powers", make(power, _s - named("top", some("reduce_max", _s))))]
        for total in [named("total", some("reduce_sum", shifted))]
        for t in (make("contract", shifted / total, _v), make("contract", shifted, _v) / total)
    )

    def refusal(self, found: Bound) -> str:
        """Axis, scores, and whole blocks."""
        if not (_is_last(found["top"]) and _is_last(found["total"])):
            return f"the softmax runs along axis {found['total'].attr('axis')}, not along the keys, the last one"
        _, rest = factors(found["s"])
        if len(rest) != 1 or rest[0].op != "contract":
            return "the scores are no product of queries and keys times a number"
        q, k = rest[0].args
        v = found["v"]
        if not q.extents[:-2] == k.extents[:-2] == v.extents[:-2]:
            return f"q {q.shape}, k {k.shape} and v {v.shape} have different leading axes"
        rows, width, keys = q.extents[-2], v.extents[-2], k.extents[-2]
        if prod(q.extents[:-2]) > 1 and rows % ROW_GROUP:
            return f"{rows} queries of several heads are no multiple of {ROW_GROUP}"
        if _block(q, k, v) is not None:
            return ""
        if _padded(k, v) is not None:
            return f"{keys} padded keys: {rows} queries and a head of {width} are no whole blocks of {BLOCKS[-1]}"
        return (
            f"{keys} keys and a head of {width} are no whole blocks of {BLOCKS[-1]}; pad k and v, and slice them to "
            "the keys"
        )

    def replacement(self, found: Bound) -> Expr:
        """Recurrence over blocks."""
        scale, (scores,) = factors(found["s"])
        q, k = scores.args
        block = _block(q, k, found["v"])
        assert block is not None
        base = scale * (LOG2E if found["powers"].op == "exp" else 1.0)
        whole_k, whole_v = _padded(k, found["v"]) or (k, found["v"])
        return ops.online_attention(_times(q, base), whole_k, whole_v, block, k.extents[-2])


def _padded(k: Expr, v: Expr) -> tuple[Expr, Expr] | None:
    """The arrays whose first keys are k and v, None if they are not cut alike."""
    keys = k.extents[-2]
    cut = (("axis", -2), ("hi", keys), ("lo", 0), ("step", 1)), (("axis", -1), ("hi", keys), ("lo", 0), ("step", 1))
    if (k.op, v.op) != ("slice", "slice") or (k.attrs, v.attrs) != cut:
        return None
    longer = k.args[0], v.args[0]
    return longer if longer[0].extents[-2] == longer[1].extents[-1] else None


def _block(q: Expr, k: Expr, v: Expr) -> int | None:
    """The most keys of a step, None if none fits."""
    longer = _padded(k, v)
    extents = [(longer[0] if longer else k).extents[-2], v.extents[-2]]
    if longer is not None:
        extents.append(q.extents[-2])
    return next((b for b in BLOCKS if not any(n % b for n in extents)), None)


def _times(x: Expr, number: float) -> Expr:
    return x if math.isclose(number, 1.0, rel_tol=_CLOSE) else x * number


class TwoPassVariance(Rewrite):
    """E[x^2] - E[x]^2 becomes the mean square of the distance from the mean.

    Pattern: a * sum(x*x) - b * sum(x)^2 in any spelling. Replacement: a * sum(d*d) with d = x - sum(x)/n. Precondition:
    both sums are of the same x along the same axis, and b = a/n, without which it is no variance. The identity form
    loses the variance when the mean is large (docs/spec/kernels.md 5.1); nothing else removes it, and
    :func:`identity_variance` finds what is left of it.
    """

    name = "two-pass variance"
    equality = Equality.BOUND

    def matches(self, e: Expr) -> Iterator[Bound]:
        """Any difference of a sum of squares and a squared sum."""
        match e.op, e.args:
            case "sub", (squares, mean):
                sign = 1.0
            case "add", (squares, mean):
                sign = -1.0
            case _:
                return
        for a, b in ((squares, mean), (mean, squares)) if sign < 0 else ((squares, mean),):
            one, other = _sum_of_squares(a), _square_of_sum(b)
            if one is not None and other is not None:
                yield {
                    "sum": one[1],
                    "x": one[2],
                    "scale": as_expr(one[0]),
                    "other": other[1],
                    "back": as_expr(sign * other[0]),
                }

    def refusal(self, found: Bound) -> str:
        """One x, one axis, factors of a variance."""
        squares, plain, x = found["sum"], found["other"], found["x"]
        if factors(plain.args[0])[1] != (x,):
            return "the squares and the mean are of different arrays"
        if squares.attr("axis") != plain.attr("axis"):
            return f"sums along axis {squares.attr('axis')} and axis {plain.attr('axis')}"
        n = x.extents[squares.index("axis")]
        scale, back = found["scale"].number or 0.0, found["back"].number or 0.0
        if not math.isclose(back * n, scale, rel_tol=1e-6):
            return f"factors {scale:g} and {back:g} of the sums; a variance of {n} elements has 1/{n} between them"
        return ""

    def replacement(self, found: Bound) -> Expr:
        """Distance from the mean, squared."""
        squares, x = found["sum"], found["x"]
        d = x - like(squares, (x,)) * (1.0 / x.extents[squares.index("axis")])
        return like(squares, (d * d,)) * found["scale"]


def _sum_of_squares(e: Expr) -> tuple[float, Expr, Expr] | None:
    """(factor, sum, x) of factor * sum(x * x)."""
    outer, rest = factors(e)
    if len(rest) != 1 or rest[0].op != "reduce_sum":
        return None
    inner, squared = factors(rest[0].args[0])
    if len(squared) != 2 or squared[0] is not squared[1]:
        return None
    return outer * inner, rest[0], squared[0]


def _square_of_sum(e: Expr) -> tuple[float, Expr] | None:
    """(factor, sum) of factor * sum(x) * sum(x); a factor inside the sum counts twice."""
    outer, rest = factors(e)
    if len(rest) != 2 or rest[0] is not rest[1] or rest[0].op != "reduce_sum":
        return None
    inner, plain = factors(rest[0].args[0])
    return (outer * inner * inner, rest[0]) if len(plain) == 1 else None


def identity_variance(e: Expr) -> bool:
    """True if ``e`` is a variance as the difference of a mean square and a squared mean."""
    rule = TwoPassVariance()
    return any(not rule.refusal(found) for found in rule.matches(e))


class ShiftedLogSumExp(Rewrite):
    """log(sum(exp(x))) becomes max + log(sum(exp(x - max))), in base e or 2.

    Precondition: x has not had its maximum subtracted. Without the shift a score of 90 passes every format here.
    """

    name = "shifted log-sum-exp"
    equality = Equality.BOUND
    templates = tuple(
        make(log, named("total", some("reduce_sum", make(power, _x))))
        for log, power in (("log", "exp"), ("log2", "exp2"))
    )

    def refusal(self, found: Bound) -> str:
        """Not shifted already."""
        shifted = first(_s - some("reduce_max", _s), found["x"])
        return "the maximum is subtracted already" if shifted is not None else ""

    def replacement(self, found: Bound) -> Expr:
        """The maximum outside."""
        x, total = found["x"], found["total"]
        power = total.args[0].op
        top = ops.row_max(x, total.index("axis"))
        return top + make({"exp": "log", "exp2": "log2"}[power], like(total, (make(power, x - top),)))


class ExponentBase(Rewrite):
    """exp(x) becomes exp2, log2(e) going into a factor x already has.

    Pattern: exp of c*x, of c*x - max(c*x), or of c*(x - max x). Precondition: there is such a c; a factor of its own
    would be an operation more, which the kernel of ``exp`` spends anyway.
    """

    name = "exp as exp2"
    equality = Equality.BOUND
    templates = (make("exp", _x),)

    def refusal(self, found: Bound) -> str:
        """A constant factor to fold into."""
        return "" if _scaled(found["x"]) is not None else "x has no constant factor that could take log2(e)"

    def replacement(self, found: Bound) -> Expr:
        """The factor multiplied."""
        scaled = _scaled(found["x"])
        assert scaled is not None
        return make("exp2", scaled)


def _scaled(x: Expr) -> Expr | None:
    """x * log2(e) without an operation more, None if that takes one."""
    if x.op == "mul" and x.args[1].number is not None:
        return x.args[0] * (x.args[1].number * LOG2E)
    if x.op == "sub":
        score, top = x.args
        inner = _scaled(score) if score.op == "mul" else None
        if inner is not None and top.op == "reduce_max" and top.args[0] is score:
            return inner - like(top, (inner,))
    return None
