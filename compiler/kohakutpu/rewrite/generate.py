# SPDX-License-Identifier: Apache-2.0
"""Kernels made for an expression: vector chains, and products with an epilogue (docs/spec/compiler.md 13.4)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kohakutpu.chain import ARITY, COMPARES
from kohakutpu.errors import CompileError
from kohakutpu.kernels.language import In, Kernel, Out, loop, row_max, row_sum, tile, units, where
from kohakutpu.kernels.language.lanes import Arithmetic, apply, fma, lane
from kohakutpu.kernels.library.functions import FUNCTIONS
from kohakutpu.kernels.library.helpers import OPEN, SUB_ROW, part_for, product, tiles, with_ports
from kohakutpu.kernels.library.helpers import STEP as ROW_STEP
from kohakutpu.rewrite.expr import Expr
from kohakutpu.rewrite.shapes import LANES, Shape

LAYER = "L5"

REDUCTIONS: dict[str, Callable[[Any], Arithmetic]] = {"reduce_max": row_max, "reduce_sum": row_sum}


@dataclass(frozen=True)
class Made:
    """A kernel and what its In ports take, in order: nodes, and the shapes they are read in."""

    kernel: Kernel
    operands: tuple[tuple[Expr, Shape], ...]


def reducible(width: int) -> bool:
    """True if one reduction takes rows of ``width`` elements."""
    return width % ROW_STEP == 0 and 0 < width <= SUB_ROW


def full(shape: Shape, space: Shape) -> bool:
    """True if an operand of ``shape`` has every element of ``space``."""
    return math.prod(shape) == math.prod(space) and shape[-1:] == space[-1:]


def one_row(shape: Shape, space: Shape) -> bool:
    """True if an operand of ``shape`` is one row of ``space``."""
    return bool(shape) and shape[-1] == space[-1] == math.prod(shape)


@lru_cache(maxsize=256)
def chain(root: Expr, leaves: tuple[Expr, ...]) -> Made:
    """One vector pass that computes ``root`` from ``leaves``; rows are reduced along the last axis.

    Raises:
        CompileError: an operand that is neither of the shape of the result nor one row of it.
    """
    space = root.extents
    flat = (math.prod(space[:-1]), space[-1])
    names = [f"x{i}" for i in range(len(leaves))]
    rows = []
    for leaf in leaves:
        if not full(leaf.extents, space) and not one_row(leaf.extents, space):
            raise CompileError(f"a pass over {space} cannot read {leaf.op} {leaf.shape}: neither all of it nor one row")
        rows.append(not full(leaf.extents, space))
    inner = _inner(root, leaves)
    reduces = any(e.op in REDUCTIONS for e in inner)
    ports = {n: In(space[-1]) if row else In(*flat) for n, row in zip(names, rows, strict=True)}

    def body(**given: Any) -> None:
        views = [given[n].repeated() if row else given[n] for n, row in zip(names, rows, strict=True)]
        if not reduces:
            given["y"].__ilshift__(evaluated(root, dict(zip(leaves, views, strict=True))))
            return
        for e in units(given["y"].parts(part_for(space[-1]))):
            given["y"][e] <<= evaluated(root, dict(zip(leaves, (v[e] for v in views), strict=True)))

    doc = f"One pass over {space}: {', '.join(sorted({e.op for e in inner} & {*LANES, *REDUCTIONS}))}."
    made = with_ports("auto_rows" if reduces else "auto_chain", {**ports, "y": Out(*flat)}, {}, body, doc)
    shapes = [(space[-1],) if row else flat for row in rows]
    return Made(made, tuple(zip(leaves, shapes, strict=True)))


def _inner(root: Expr, leaves: tuple[Expr, ...]) -> set[Expr]:
    """The nodes that compute ``root`` from its leaves."""
    found: set[Expr] = set()
    stack = [root]
    while stack:
        e = stack.pop()
        if e not in leaves and e not in found:
            found.add(e)
            stack.extend(e.args)
    return found


def evaluated(root: Expr, leaves: Mapping[Expr, Arithmetic]) -> Any:
    """``root`` as a lane expression of its leaves.

    A product that only a sum reads is one operation with it. A comparison is the condition of ``where``, anywhere else
    1.0 or 0.0.
    """
    inner = _inner(root, tuple(leaves))
    users = Counter(a for e in inner for a in e.args)
    found: dict[Expr, Any] = dict(leaves)

    def value(e: Expr) -> Any:
        if e.number is not None:
            return lane(e.number)
        if e not in found:
            scaled = next((a for a in e.args if e.op == "add" and a.op == "mul" and users[a] == 1), None)
            if e.op == "where":
                found[e] = where(condition(e.args[0]), value(e.args[1]), value(e.args[2]))
            elif e.op in COMPARES:
                found[e] = where(condition(e), 1.0, 0.0)
            elif scaled is None or scaled in found:
                found[e] = _lane(e, [value(a) for a in e.args])
            else:
                other = e.args[1] if e.args[0] is scaled else e.args[0]
                found[e] = fma(*(value(a) for a in (*scaled.args, other)))
        return found[e]

    def condition(e: Expr) -> Any:
        if e.op not in COMPARES or e in found:
            return value(e)
        return apply(e.op, *(value(a) for a in e.args))

    return lane(value(root))


def _lane(e: Expr, args: list[Any]) -> Any:
    if e.op in REDUCTIONS:
        return REDUCTIONS[e.op](args[0])
    if e.op in FUNCTIONS:
        return FUNCTIONS[e.op](*args)
    match e.op:
        case "div":
            return args[0] / args[1]
        case "log":
            return apply("log2", *args) * math.log(2.0)
        case "sqrt":
            return args[0] * apply("rsqrt", *args)
        case "broadcast" | "reshape":
            return args[0]
    if e.op not in ARITY:
        raise CompileError(f"{e.op} is no operation of a vector core")
    return apply(e.op, *args)


@dataclass(frozen=True)
class _Factor:
    """One product of a kernel: operands, the row of the weight it begins with, and the heads it joins."""

    x: Expr
    w: Expr
    first: int
    heads: int


def factor(e: Expr) -> _Factor:
    """The operands of a product; rows of a weight are read in place."""
    x, w = e.args
    if w.op == "slice" and w.attr("axis") == -2 and w.ndim == 2 and w.attr("step") == 1:
        return _Factor(x, w.args[0], w.index("lo"), x.extents[0] if e.op == "contract_heads" else 1)
    return _Factor(x, w, 0, x.extents[0] if e.op == "contract_heads" else 1)


def bias_of(e: Expr) -> tuple[Expr, int]:
    """A row of values, and its first one, where it is a part of a longer row."""
    if e.op == "slice" and e.ndim == 1 and e.attr("step") == 1:
        return e.args[0], e.index("lo")
    return e, 0


@lru_cache(maxsize=256)
def products(root: Expr, leaves: tuple[Expr, ...], contracts: tuple[Expr, ...]) -> Made:
    """One grid of products whose epilogue computes ``root`` from them and from ``leaves``.

    Raises:
        CompileError: a side operand that is neither one value a column nor of the shape of the result.
    """
    space = root.extents
    n = space[-1]
    factors = {e: factor(e) for e in contracts}
    sides = {leaf: bias_of(leaf) if one_row(leaf.extents, space) else (leaf, 0) for leaf in leaves}
    for leaf in leaves:
        if not full(leaf.extents, space) and not one_row(leaf.extents, space):
            raise CompileError(f"an epilogue of {space} cannot read {leaf.op} {leaf.shape}")
    ports: dict[tuple[Expr, str], In] = {}
    shapes: dict[tuple[Expr, str], Shape] = {}
    for f in factors.values():
        shapes[f.x, "left"] = _stacked(f.x.extents) if f.heads > 1 else f.x.extents
        shapes[f.w, "right"] = f.w.extents
    for leaf, (whole, _) in sides.items():
        shapes[whole, "lanes"] = (math.prod(whole.extents),) if one_row(leaf.extents, space) else space
    for port, shape in shapes.items():
        ports[port] = In(*_axes(shape))
    names = {port: f"x{i}" for i, port in enumerate(ports)}

    def body(gm: Any, gn: Any, nk: Any, **given: Any) -> None:
        knobs = gm, gn, nk
        first = factors[contracts[0]]
        above = tiles(space[-2], gm) if first.heads > 1 else given[names[first.x, "left"]].tiles(gm)
        for i, j in units(above, tiles(n, gn)):
            values: dict[Expr, Any] = {}
            for e, f in factors.items():
                w = given[names[f.w, "right"]]
                if f.first or f.w.extents[-2] != n:
                    w = w.rows_from(f.first)
                x = given[names[f.x, "left"]]
                values[e] = _joined(x, w, i, j, knobs, f.heads, above) if f.heads > 1 else product(x, w, i, j, knobs)
            for leaf, (whole, lo) in sides.items():
                buffer = given[names[whole, "lanes"]]
                if one_row(leaf.extents, space):
                    values[leaf] = (buffer.rows_from(lo) if whole is not leaf else buffer)[j]
                else:
                    values[leaf] = buffer[i, j]
            given["y"][i, j] <<= values[root] if root in values else evaluated(root, values)

    doc = f"{len(contracts)} product(s) of {space} and an epilogue."
    listed = {names[port]: declared for port, declared in ports.items()}
    made = with_ports("auto_product", {**listed, "y": Out(*_axes(space))}, OPEN, body, doc)
    return Made(made, tuple((e, shape) for (e, _), shape in shapes.items()))


def _stacked(shape: Shape) -> Shape:
    """Heads under one another."""
    return shape[0] * shape[1], shape[2]


def _axes(shape: Shape) -> tuple[Any, ...]:
    """Extents of a port; leading axes are a batch."""
    return (..., *shape[-2:]) if len(shape) > 2 else shape


def _joined(x: Any, w: Any, i: Any, j: Any, knobs: tuple[Any, Any, Any], heads: int, rows: Any) -> Any:
    """One accumulator over the heads of x, which lie under one another, and the chunks of each."""
    acc, chunks = tile(*knobs), x.chunks32(knobs[2])
    for s in loop(chunks * heads):
        acc += x[(s // chunks) * rows + i, s % chunks] @ w[j, s]
    return acc
