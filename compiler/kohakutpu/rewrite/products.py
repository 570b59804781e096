# SPDX-License-Identifier: Apache-2.0
"""Rewrites of products: heads, transposes, gates (docs/spec/compiler.md 13.3)."""

from __future__ import annotations

from collections.abc import Iterator

from kohakutpu.rewrite import ops
from kohakutpu.rewrite.expr import Expr, hole, like, make, named, some, walk
from kohakutpu.rewrite.rule import Equality, Rewrite
from kohakutpu.rewrite.shapes import K_BLOCK, LANES, ROW_GROUP, VIEW_STEP
from kohakutpu.rewrite.template import Bound

LAYER = "L5"

_x, _w = hole("x"), hole("w")


class HeadSplit(Rewrite):
    """The heads of a projection become the batch of its weight.

    Pattern: the projection x w^T [L, heads*d] reshaped to [L, heads, d] and transposed to [heads, L, d]. Replacement:
    x against w reshaped to [heads, d, C], which moves nothing; for [heads, d, L] the operands swapped. Preconditions:
    x and w are matrices, the rows stay rows, the columns are whole heads, and rows and heads are multiples of 4, as
    blocks of a batch are.
    """

    name = "head split"
    equality = Equality.BIT
    templates = (named("out", some("transpose", named("cut", some("reshape", make("contract", _x, _w))))),)

    def refusal(self, found: Bound) -> str:
        """Matrices, and [L, heads, d] with the axes exchanged."""
        x, w, cut = (found[n].extents for n in ("x", "w", "cut"))
        if len(x) != 2 or len(w) != 2:
            return f"x {x} and the weight {w} are no matrices"
        if found["out"].attr("axes") not in ((1, 0, 2), (1, 2, 0)):
            return f"axes {found['out'].attr('axes')} are not those of [L, heads, d] to [heads, L, d] or [heads, d, L]"
        if cut[0] != x[0]:
            return f"{x[0]} rows become {cut[0]}; {w[0]} columns are no whole number of heads of {cut[2]}"
        if x[0] % ROW_GROUP or cut[2] % ROW_GROUP:
            return f"{x[0]} rows and heads of {cut[2]} are no multiples of {ROW_GROUP}"
        return ""

    def replacement(self, found: Bound) -> Expr:
        """Batch on the weight."""
        _, heads, d = found["cut"].extents
        weight = ops.reshape(found["w"], heads, d, found["w"].extents[1])
        swapped = found["out"].attr("axes") == (1, 2, 0)
        return ops.contract(weight, found["x"]) if swapped else ops.contract(found["x"], weight)


class HeadJoin(Rewrite):
    """A projection of joined heads becomes one sum over the heads.

    Pattern: o [heads, L, d] transposed to [L, heads, d], reshaped to [L, heads*d], against w [N, heads*d]. Replacement:
    ``contract_heads``, whose accumulator goes over (head, k) in that order. Preconditions: the axes exchanged are heads
    and rows, so that K runs head by head, the reshape joins just the last two, a head is whole K blocks of 32, and the
    rows are a multiple of 4.
    """

    name = "head join"
    equality = Equality.BIT
    templates = (make("contract", named("joined", some("reshape", named("turned", some("transpose", hole("o"))))), _w),)

    def refusal(self, found: Bound) -> str:
        """[heads, L, d] to [L, heads*d], head by head."""
        o, w, joined = (found[n].extents for n in ("o", "w", "joined"))
        if len(o) != 3 or len(w) != 2:
            return f"o {o} and the weight {w} are not [heads, L, d] and [N, heads*d]"
        if found["turned"].attr("axes") != (1, 0, 2):
            return f"axes {found['turned'].attr('axes')}: K does not run head by head"
        if joined != (o[1], o[0] * o[2]):
            return f"the joined rows are {joined}, not {(o[1], o[0] * o[2])}"
        if o[2] % K_BLOCK or o[1] % ROW_GROUP:
            return f"heads of {o[2]} and {o[1]} rows are no whole K blocks of {K_BLOCK} and groups of {ROW_GROUP} rows"
        return ""

    def replacement(self, found: Bound) -> Expr:
        """One accumulator over all heads."""
        return ops.contract_heads(found["o"], found["w"])


class TransposedProduct(Rewrite):
    """The transpose of a product becomes the product of the exchanged operands.

    Precondition: the last two axes are exchanged and the others stay.
    """

    name = "transposed product"
    equality = Equality.BIT
    templates = (named("out", some("transpose", make("contract", _x, _w))),)

    def refusal(self, found: Bound) -> str:
        """The last two axes."""
        axes, rank = found["out"].axes("axes"), found["out"].ndim
        swapped = (*range(rank - 2), rank - 1, rank - 2)
        return "" if axes == swapped else f"axes {axes} are not {swapped}, the last two exchanged"

    def replacement(self, found: Bound) -> Expr:
        """Operands swapped."""
        return ops.contract(found["w"], found["x"])


class ChunkGate(Rewrite):
    """A gate of two halves of one projection becomes two products that share the fill of x.

    Pattern: h * f(g) where h and g are the two halves of the columns of x w^T, or of x w^T + b, and f works element by
    element on g alone. Replacement: the same on x w_h^T and x w_g^T (+ their halves of b), w_h and w_g being rows of w.
    Preconditions: the two slices are the two equal halves of one product with a matrix, a half is a multiple of 4
    columns, with a bias of 16.
    """

    name = "chunk gate"
    equality = Equality.BIT

    def matches(self, e: Expr) -> Iterator[Bound]:
        """A product of a slice of columns with a function of another slice."""
        if e.op != "mul":
            return
        for h, gate in (e.args, e.args[::-1]):
            g = _only_slice(gate)
            if h.op == "slice" and g is not None and h is not g and h.args[0] is g.args[0]:
                yield {"h": h, "gate": gate, "g": g, "product": h.args[0], "out": e}

    def refusal(self, found: Bound) -> str:
        """Equal halves of the columns of one product."""
        product, h, g = _bare(found["product"]), found["h"], found["g"]
        if product.op != "contract" or product.args[1].ndim != 2:
            return "the halves are of no product with a matrix"
        if h.attr("axis") != -1 or g.attr("axis") != -1:
            return f"slices along axes {h.attr('axis')} and {g.attr('axis')}, not along the columns"
        n = found["product"].extents[-1]
        ranges = sorted((s.index("lo"), s.index("hi"), s.index("step")) for s in (h, g))
        if ranges != [(0, n // 2, 1), (n // 2, n, 1)] or n % 2:
            return f"columns {ranges[0][:2]} and {ranges[1][:2]} of {n} are not its two halves"
        step = ROW_GROUP if product is found["product"] else VIEW_STEP
        return f"halves of {n // 2} columns are no multiples of {step}" if n // 2 % step else ""

    def replacement(self, found: Bound) -> Expr:
        """Rows of the weight instead of columns of the result."""
        halves = {found[s]: _half(found["product"], found[s]) for s in ("h", "g")}
        made: dict[Expr, Expr] = {}
        for e in walk(found["out"]):
            made[e] = halves[e] if e in halves else like(e, tuple(made[a] for a in e.args))
        return made[found["out"]]


def _only_slice(gate: Expr) -> Expr | None:
    """The slice of columns that ``gate`` is an elementwise function of, None if it reads anything else."""
    found: set[Expr] = set()
    stack = [gate]
    while stack:
        e = stack.pop()
        if e.op == "slice":
            found.add(e)
        elif e.op in LANES:
            stack.extend(e.args)
        elif e.number is None:
            return None
    return found.pop() if len(found) == 1 else None


def _bare(e: Expr) -> Expr:
    """The product of a product plus a row of biases."""
    if e.op == "add" and e.args[0].op == "contract" and e.args[1].ndim == 1:
        return e.args[0]
    return e


def _half(product: Expr, cut: Expr) -> Expr:
    """The columns ``cut`` of a product, from the rows of its weight."""
    lo, hi = cut.index("lo"), cut.index("hi")
    if product.op == "add":
        return _half(product.args[0], cut) + ops.take(product.args[1], -1, lo, hi)
    x, w = product.args
    return ops.contract(x, ops.take(w, -2, lo, hi))
