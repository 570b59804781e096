# SPDX-License-Identifier: Apache-2.0
"""Which kernel of the device does what a nest does (docs/spec/compiler.md 13.2).

Order: a product with its epilogue from the library, a product with a generated epilogue, a generated vector chain.
Whatever is not understood completely has no match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce

from kohakutpu.kernels import library
from kohakutpu.kernels.library.helpers import STEP, SUB_ROW
from ktpu_tinygrad import activations, generated
from ktpu_tinygrad.chains import Work, chain, narrowed, side
from ktpu_tinygrad.expression import ACCUMULATOR, Expr, const, rewritten
from ktpu_tinygrad.lanes import lanes
from ktpu_tinygrad.nest import Nest, NoMatchError
from ktpu_tinygrad.operands import COLUMN, FULL, ROW, SCALAR, Loop, Match, Operand, Plane, gathered, loads
from ktpu_tinygrad.shape import Axes, axes

LONGEST_SUM = 65504
"""A wide sum is a mean times the row length, which FP16 has to hold."""


def match(nest: Nest) -> Match:
    """The kernel for a nest.

    Raises:
        NoMatchError: there is none; the reason.
    """
    found = axes(nest)
    contraction = _contraction(found)
    if contraction is not None:
        return _product(found, contraction)
    return _chain(found)


# ---------------------------------------------------------------------- products


@dataclass(frozen=True)
class _Contraction:
    """``fold`` sums scale * x[row, k] * w[column, k]."""

    fold: Expr
    scale: float
    plane: Plane
    x: Operand
    w: Operand
    work: Work


def _contraction(found: Axes) -> _Contraction | None:
    """The product in the machine's meaning, rows of both operands along K; None if no fold is one."""
    folds = [n for n in found.value.nodes() if n.op == "fold" and n.name == "sum" and len(n.loops) == 1]
    # two vectors are summed by the lanes: one result is no work for a cluster, and MXFP7 would cost accuracy
    if not folds or not 1 <= len(found.loops) <= 3:
        return None
    return next((one for one in (_sides(found, fold) for fold in folds) if one is not None), None)


def _sides(found: Axes, fold: Expr) -> _Contraction | None:
    """Every factor of the sum belongs to the rows or to the columns of the result."""
    (k,) = fold.loops
    *outer, row, column = _padded(found)
    batch = tuple(loop for loop in outer if loop)
    first, second = _one_kind(row, k), _one_kind(column, k)
    of_x, of_w, scale = [], [], 1.0
    for factor in _factors(lanes(fold.args[0])):
        moves = {loop for load in loads(factor) for loop, _ in load.access.strides} - {n for n, _ in batch}
        if factor.op == "const":
            scale *= factor.value
        elif moves <= first:
            of_x.append(factor)
        elif moves <= second:
            of_w.append(factor)
        else:
            return None
    if not of_x or not of_w or not scale:
        return None
    work, line = Work(found.nest.sizes), (k, found.folds[k])
    shared = not any(load.access.stride(n) for f in of_w for load in loads(f) for n, _ in batch)
    x = side(_multiplied(of_x), Plane(row, line, batch), work)
    w = side(_multiplied(of_w), Plane(column, line, () if shared else batch), work)
    return _Contraction(fold, scale, Plane(row, column, batch), x, w, work) if x and w else None


def _one_kind(loop: Loop | None, k: int) -> set[int]:
    return {k, loop[0]} if loop else {k}


def _factors(value: Expr) -> Iterator[Expr]:
    if value.op == "neg":
        yield const(-1.0)
        yield from _factors(value.args[0])
    elif value.op == "mul":
        for arg in value.args:
            yield from _factors(arg)
    else:
        yield value


def _multiplied(factors: list[Expr]) -> Expr:
    return reduce(lambda a, b: Expr("mul", (a, b)), factors)


def _padded(found: Axes) -> list[Loop | None]:
    """Loops of batch, rows and columns; one loop alone is the columns, as a vector is one row."""
    loops: list[Loop | None] = list(found.loops)
    return [None] * (2 - len(loops)) + loops


def _product(found: Axes, one: _Contraction) -> Match:
    result = ACCUMULATOR if one.scale == 1.0 else Expr("mul", (ACCUMULATOR, const(one.scale)))
    value = rewritten(found.value, lambda node: result if node == one.fold else node)
    if any(n.op == "fold" for n in value.nodes()):
        raise NoMatchError("a product and another reduction in one kernel")
    value = narrowed(lanes(value), one.plane, one.work)
    operands = gathered(dict.fromkeys(loads(value), one.plane), one.work.sizes, aligned=False)
    shared = len(one.w.shape) == 2
    if value == ACCUMULATOR:
        kernel = library.matmul if shared else library.matmul_batched
        return Match(kernel.name, lambda: kernel, (one.x, one.w), one.plane.shape, before=tuple(one.work.before))
    known = activations.linear(value) if shared else None
    ready = _library(known, operands, one) if known is not None else None
    if ready is not None:
        return ready
    ports, single, more = generated.ported(operands)
    build = partial(generated.contraction, value, ports, single, shared, "linear_chain")
    before = tuple(one.work.before)
    return Match("linear_chain", build, (one.x, one.w, *more), one.plane.shape, before=before)


def _library(known: activations.Linear, operands: dict[Expr, Operand], one: _Contraction) -> Match | None:
    """The library's linear layer: at most one bias of a row and one addend."""
    bias = [operands[t] for t in known.terms if operands[t].form == ROW]
    addend = [operands[t] for t in known.terms if operands[t].form in (FULL, COLUMN, SCALAR)]
    if len(bias) > 1 or len(addend) > 1 or len(bias) + len(addend) != len(known.terms):
        return None
    scaled = known.scale is not None
    build = partial(library.linear, known.activation, scaled=scaled, bias=bool(bias), add=bool(addend))
    parts = ("scale" * scaled, "bias" * bool(bias), "add" * bool(addend), known.activation)
    name = "_".join(("linear", *(p for p in parts if p)))
    knobs = (("scale", known.scale),) if known.scale is not None else ()
    order = (one.x, one.w, *bias, *addend)
    return Match(name, build, order, one.plane.shape, knobs=knobs, before=tuple(one.work.before))


# ---------------------------------------------------------------------- chains


def _chain(found: Axes) -> Match:
    value = lanes(found.value)
    folds = [n for n in value.nodes() if n.op == "fold"]
    return _folding(found, value, folds) if folds else _elementwise(found, value)


def _elementwise(found: Axes, value: Expr) -> Match:
    if len(found.loops) > 2:
        raise NoMatchError(f"{len(found.loops)} loops that do not run on as one; a chain has rows and elements")
    work = Work(found.nest.sizes)
    row, column = _padded(found)
    last = chain(value, Plane(row, column), work)
    return replace(last, before=tuple(work.before))


def _folding(found: Axes, value: Expr, folds: list[Expr]) -> Match:
    """One value a row: the kernel leaves it in every element of the row."""
    loop = {n for fold in folds for n in fold.loops}
    if len(found.loops) > 1 or len(loop) != 1 or any(_nested(f) for f in folds):
        raise NoMatchError(
            "a reduction that is neither along the last axis nor a product of rows: "
            f"reduced loops {len(loop)}, loops around them {len(found.loops)}"
        )
    (k,) = loop
    width = found.folds[k]
    if width % STEP:
        raise NoMatchError(f"rows of {width} elements are reduced; a reduction takes a multiple of {STEP}")
    row = found.loops[0] if found.loops else None
    inside = Plane(row, (k, width))
    work = Work(found.nest.sizes)
    value = narrowed(value, inside, work)
    folds = [n for n in value.nodes() if n.op == "fold"]
    inner = {load: inside for fold in folds for load in loads(fold.args[0])}
    outside = loads(_without(value, folds))
    operands = gathered({**inner, **dict.fromkeys(outside, inside)}, work.sizes)
    if any(operands[load].form not in (COLUMN, SCALAR) for load in outside):
        raise NoMatchError("an operand outside the reduction that has no single value a row")
    ports, single, order = generated.ported(operands)
    if len(order) == len(single):
        raise NoMatchError("every operand is repeated; a reduction needs one that has an element for each of its own")
    before = tuple(work.before)
    if width <= SUB_ROW:
        build = partial(generated.rows, value, ports, single, width, "fold")
        return Match("fold", build, order, inside.shape, column=True, before=before)
    if len(folds) > 1 or (folds[0].name == "sum" and width > LONGEST_SUM):
        raise NoMatchError(f"{len(folds)} reductions over rows of {width} elements")
    build = partial(generated.wide_rows, value, ports, single, width, "wide_fold")
    return Match("wide_fold", build, order, inside.shape, column=True, before=before)


def _nested(fold: Expr) -> bool:
    return any(n.op == "fold" for n in fold.args[0].nodes())


def _without(value: Expr, folds: list[Expr]) -> Expr:
    return rewritten(value, lambda n: ACCUMULATOR if n in folds else n)
