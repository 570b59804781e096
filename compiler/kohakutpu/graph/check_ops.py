# SPDX-License-Identifier: Apache-2.0
"""Checks of single ops: dtypes, shapes, windows, spread reads (docs/spec/compiler.md 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kohakutpu.chain import COMPARES, FOLDS
from kohakutpu.errors import CompileError
from kohakutpu.graph.check_parts import check_window
from kohakutpu.graph.ir import Graph, Matrix, Op, Value
from kohakutpu.ints import cdiv
from kohakutpu.views import Spread, Strided, Window

LAYER = "L3"

_TILING = ("gm", "gn", "nk")
_ROUTES = ("peer", "core", "memory")
_KBLOCK = 32


def check_contract(graph: Graph, op: Op) -> None:
    """Refuse a contraction whose operands, blocks, tiling or result do not fit.

    Raises:
        CompileError: naming the operand or attribute and what would fit.
    """
    a, b, c = (graph.values[n] for n in (*op.args, op.result))
    for v in (a, b):
        if v.dtype not in ("fp16", "mxfp7"):
            raise CompileError(f"contract: operand {v.name} is {v.dtype}; the cluster reads fp16 or mxfp7")
    if c.dtype != "fp16":
        raise CompileError(f"contract: result {c.name} is {c.dtype}; the cluster writes fp16")
    knobs = [k for k in _TILING if op.attr(k) is not None]
    if knobs and len(knobs) != len(_TILING):
        raise CompileError(f"contract: {c.name} names {', '.join(knobs)} alone; name gm, gn and nk or none")
    for k in (*_TILING, "batch", "join", "split"):
        number = op.attr(k)
        if number is not None and number < 1:
            raise CompileError(f"contract: {c.name} has {k} = {number}; it must be at least 1")
    batch, join = op.attr("batch") or 1, op.attr("join") or 1
    left = _blocks(op, 0, a, {batch * join, 1})
    right = _blocks(op, 1, b, {batch, 1})
    if join * left.cols != right.cols:
        ka = f"{join} x {left.cols}" if join > 1 else f"{left.cols}"
        raise CompileError(f"contract: {a.name} has K = {ka}, {b.name} has K = {right.cols}; both reduce it")
    want = (batch * left.rows, right.rows)
    if c.shape != want:
        raise CompileError(f"contract: {c.name} is stated as {c.shape}, operands give {want}")
    _check_split(op, right.cols)


def _blocks(op: Op, position: int, value: Value, counts: set[int]) -> Window:
    read = op.read(position)
    if isinstance(read, Spread | Strided):
        raise CompileError(f"contract: {value.name} is read as {read.text()}; the cluster reads windows of whole rows")
    window = op.window(position, value.shape)
    check_window(window, value, f"contract {op.result}")
    if window.blocks not in counts:
        wanted = " or ".join(str(n) for n in sorted(counts, reverse=True))
        raise CompileError(f"contract: {op.result} reads {window.blocks} blocks of {value.name}; it takes {wanted}")
    return window


def _check_split(op: Op, k: int) -> None:
    split, route = op.attr("split") or 1, op.route
    if split == 1:
        if route:
            raise CompileError(f"contract: {op.result} names route {route!r} without a split; state split or no route")
        return
    if route and route not in _ROUTES:
        raise CompileError(f"contract: {op.result} has route {route!r}; known: {', '.join(_ROUTES)}")
    chunks = cdiv(k, _KBLOCK * (op.attr("nk") or 1))
    if chunks % split:
        raise CompileError(
            f"contract: {op.result} splits {chunks} chunks of K into {split}; the split divides the chunks"
        )


def check_rearrange(graph: Graph, op: Op) -> None:
    """Refuse a move between values that are no whole buffers, or a read that does not fit them.

    Raises:
        CompileError: naming the value and what would fit.
    """
    a, c, read = graph.values[op.args[0]], graph.values[op.result], op.read(0)
    for v in (a, c):
        if v.dtype != "fp16" or not v.in_memory:
            raise CompileError(f"rearrange: {v.name} is {v.dtype}; only fp16 buffers are moved")
    if c.of:
        raise CompileError(f"rearrange: {c.name} is a part of {c.of}; move to a buffer of its own and store that")
    if not isinstance(read, Strided):
        raise CompileError(f"rearrange: {c.name} states no strided read of {a.name}; state one")
    if not read.dims or read.first < 0 or any(count < 1 or stride < 0 for count, stride in read.dims):
        raise CompileError(f"rearrange: read {read.text()} of {a.name}; first, strides >= 0 and counts >= 1")
    if read.elements != math.prod(c.shape):
        raise CompileError(
            f"rearrange: read {read.text()} of {a.name} gives {read.elements} elements, {c.name} {c.shape} has "
            f"{math.prod(c.shape)}"
        )
    if read.last >= math.prod(a.shape):
        raise CompileError(
            f"rearrange: read {read.text()} reaches element {read.last} of {a.name}, which has {math.prod(a.shape)}"
        )


def check_lanes(graph: Graph, op: Op, made: dict[str, str]) -> None:
    """Refuse a lane operation whose operands, reads or result do not fit; ``made`` are the kinds of earlier results.

    Raises:
        CompileError: naming the operand and what would fit.
    """
    args, c = [graph.values[n] for n in op.args], graph.values[op.result]
    for v in args:
        if v.dtype not in ("fp16", "e8m15"):
            raise CompileError(f"{op.kind}: operand {v.name} is {v.dtype}; the vector core reads fp16")
    if c.dtype not in ("fp16", "e8m15"):
        raise CompileError(f"{op.kind}: result {c.name} is {c.dtype}; the vector core writes fp16")
    if c.dtype == "e8m15" and c.role != "temp":
        raise CompileError(f"{op.kind}: {c.role} {c.name} is e8m15, which has no words in memory; make it fp16")
    for position, v in enumerate(args):
        if made.get(v.name) in COMPARES and not (op.kind == "where" and position == 0):
            raise CompileError(f"{op.kind}: {v.name} is a comparison, which only decides a where")
    if op.kind in COMPARES and c.dtype != "e8m15":
        raise CompileError(f"{op.kind}: {c.name} is stored; a comparison only decides a where, write where(c, 1, 0)")
    space = op.space or c.shape
    shapes = [_read_shape(op, i, v, space) for i, v in enumerate(args)]
    if op.space is not None:
        shapes.append(op.space)
    inner = _broadcast(op, args, shapes)
    if op.space is not None and inner != op.space:
        raise CompileError(f"{op.kind}: {op.result} states {op.space} elements, operands give {inner}")
    want = (inner[0], 1) if op.kind in FOLDS else inner
    if c.shape != want and not (c.in_memory and all(w in (1, e) for w, e in zip(want, c.shape, strict=True))):
        raise CompileError(f"{op.kind}: {c.name} is stated as {c.shape}, operands give {want}")


def _read_shape(op: Op, position: int, value: Value, space: Matrix) -> Matrix:
    read = op.read(position)
    if read is None:
        return value.shape
    if not isinstance(read, Spread):
        what = "window" if isinstance(read, Window) else "strided"
        raise CompileError(f"{op.kind}: {value.name} is read as {what} {read.text()}; a lane operation takes a spread")
    if not value.in_memory:
        raise CompileError(f"{op.kind}: {value.name} is read as {read.text()} but is no buffer; store it first")
    if min(read.first, read.advance) < 0 or min(read.take, read.repeat) < 1:
        raise CompileError(f"{op.kind}: read {read.text()} of {value.name}; first, advance >= 0 and take, repeat >= 1")
    elements, period = math.prod(space), read.take * read.repeat
    if elements % period:
        raise CompileError(
            f"{op.kind}: read {read.text()} of {value.name} has a period of {period} elements, {op.result} works on "
            f"{elements}; the period divides them"
        )
    if read.last(elements) >= math.prod(value.shape):
        raise CompileError(
            f"{op.kind}: read {read.text()} reaches element {read.last(elements)} of {value.name}, which has "
            f"{math.prod(value.shape)}"
        )
    return space


def _broadcast(op: Op, args: Sequence[Value], read: Sequence[Matrix]) -> Matrix:
    out = []
    for axis in (0, 1):
        extents = {s[axis] for s in read} - {1}
        if len(extents) > 1:
            shapes = ", ".join(f"{v.name} {s}" for v, s in zip(args, read, strict=False))
            raise CompileError(f"{op.kind}: {shapes} do not fit; an extent is equal or 1")
        out.append(extents.pop() if extents else 1)
    return out[0], out[1]
