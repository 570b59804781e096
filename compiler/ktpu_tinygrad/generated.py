# SPDX-License-Identifier: Apache-2.0
"""Kernels written from an expression (docs/spec/compiler.md 5.7, 11 and 13.2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from kohakutpu.kernels.language import (
    In,
    Kernel,
    Out,
    dims,
    equal,
    less,
    maximum,
    minimum,
    recip,
    rsqrt,
    sqrt_approx,
    units,
    where,
)
from kohakutpu.kernels.language.buffers import Buffer, Port
from kohakutpu.kernels.language.lanes import Arithmetic, Lane, apply, lane
from kohakutpu.kernels.library.fold import SubRows, fold_max, fold_mean
from kohakutpu.kernels.library.helpers import OPEN, part_for, product, split, sub_row, with_ports
from ktpu_tinygrad.expression import FOLDS, Expr, rewritten
from ktpu_tinygrad.operands import Operand

M, N, K = dims("M, N, K")
RESULT = "y"

Leaf = Callable[[Expr], Arithmetic]
Ports = tuple[tuple[Expr, str], ...]
"""Loads and the ports they read."""

_LANES: dict[str, Callable[..., Lane]] = {
    "maximum": maximum,
    "minimum": minimum,
    "recip": recip,
    "rsqrt": rsqrt,
    "sqrt": sqrt_approx,
    "less": less,
    "equal": equal,
    "where": where,
}


def expressed(value: Expr, leaf: Leaf) -> Lane:
    """``value`` on lanes; ``leaf`` gives what a load, a fold's result or an accumulator is."""
    known: dict[Expr, Arithmetic] = {}

    def walk(node: Expr) -> Arithmetic:
        if node not in known:
            known[node] = made(node)
        return known[node]

    def made(node: Expr) -> Arithmetic:
        if node.op in ("load", "accumulator", "given"):
            return leaf(node)
        if node.op == "const":
            return lane(node.value)
        args = [walk(a) for a in node.args]
        if node.op == "fold":
            return apply(FOLDS[node.name], *args)
        return _LANES[node.op](*args) if node.op in _LANES else apply(node.op, *args)

    return lane(walk(value))


@lru_cache(maxsize=256)
def elements(value: Expr, ports: Ports, single: frozenset[str], name: str) -> Kernel:
    """y[M, N] = ``value`` of operands of [M][N], or of one row [N] for those in ``single``."""
    named = _named(ports)
    declared: dict[str, Port] = {p: In(N) if p in single else In(M, N) for p in named.values()}

    def body(**given: Any) -> None:
        views = {p: given[p].repeated() if p in single else given[p] for p in named.values()}
        out = given[RESULT]
        out <<= expressed(value, lambda load: views[named[load]])

    return with_ports(name, {**declared, RESULT: Out(M, N)}, {}, body, f"y = {value.text()}.")


@lru_cache(maxsize=256)
def rows(value: Expr, ports: Ports, single: frozenset[str], width: int, name: str) -> Kernel:
    """y[M, width] = ``value``, which folds rows of at most 128 elements; every element of a row has its result."""
    named = _named(ports)
    declared: dict[str, Port] = {p: In(width) if p in single else In(M, width) for p in named.values()}
    first = next(p for p in named.values() if p not in single)

    def body(**given: Any) -> None:
        views = {p: given[p].repeated() if p in single else given[p] for p in named.values()}
        out = given[RESULT]
        for e in units(given[first].parts(part_for(width))):
            out[e] <<= expressed(value, _at(lambda load, e: views[named[load]][e], e))

    return with_ports(name, {**declared, RESULT: Out(M, width)}, {}, body, f"y = {value.text()}.")


@lru_cache(maxsize=256)
def wide_rows(value: Expr, ports: Ports, single: frozenset[str], cols: int, name: str) -> Kernel:
    """y[M, cols] = ``value`` with one fold over rows wider than one reduction takes (docs/spec/kernels.md 5.2).

    Raises:
        TraceError: ``cols`` is no multiple of 16.
    """
    named, width = _named(ports), sub_row(cols)
    declared: dict[str, Port] = {p: In(cols) if p in single else In(M, cols) for p in named.values()}
    first = next(p for p in named.values() if p not in single)
    fold = next(n for n in value.nodes() if n.op == "fold")
    outer = rewritten(value, lambda node: Expr("given") if node == fold else node)

    def body(**given: Any) -> None:
        views = {p: given[p].repeated() if p in single else given[p].as_rows(width) for p in named.values()}
        out = given[RESULT].as_rows(width)
        shape = SubRows(given[first].length // width, width, split(cols, width))
        whole = _folded(fold, shape, lambda load, e: views[named[load]][e])
        for e in units(views[first].parts(shape.part)):
            result = whole[e] * float(cols) if fold.name == "sum" else lane(whole[e])
            out[e] <<= expressed(outer, _leaf(views, named, e, result))

    return with_ports(name, {**declared, RESULT: Out(M, cols)}, {}, body, f"y = {value.text()}.")


def _leaf(views: Mapping[str, Any], named: Mapping[Expr, str], e: Any, result: Lane) -> Leaf:
    return lambda node: result if node.op == "given" else views[named[node]][e]


def _folded(fold: Expr, shape: SubRows, read: Callable[[Expr, Any], Arithmetic]) -> Buffer:
    """The mean or the maximum of every row, in each of its sub-rows; a mean never leaves FP16 where a sum would."""
    partial = shape.temp()
    for e in units(partial.parts(shape.part)):
        inner = expressed(fold.args[0], _at(read, e))
        share = inner * (1.0 / shape.width) if fold.name == "sum" else inner
        partial[e] <<= apply(FOLDS[fold.name], share)
    joined = fold_mean(partial, shape) if fold.name == "sum" else fold_max(partial, shape)
    return joined.per_group(shape.rows)


def _at(read: Callable[[Expr, Any], Arithmetic], e: Any) -> Leaf:
    return lambda load: read(load, e)


@lru_cache(maxsize=256)
def contraction(value: Expr, ports: Ports, single: frozenset[str], shared: bool, name: str) -> Kernel:
    """y[..., M, N] = ``value`` of the accumulator x[..., M, K] w[N, K]^T; ``w`` has the batch too if not ``shared``."""
    named = _named(ports)
    declared: dict[str, Port] = {"x": In(..., M, K), "w": In(N, K) if shared else In(..., N, K)}
    declared |= {p: In(N) if p in single else In(..., M, N) for p in named.values()}

    def body(x: Any, w: Any, gm: Any, gn: Any, nk: Any, **given: Any) -> None:
        out = given[RESULT]
        for i, j in units(x.tiles(gm), w.tiles(gn)):
            acc = product(x, w, i, j, (gm, gn, nk))

            def leaf(node: Expr, i: Any = i, j: Any = j, acc: Any = acc) -> Any:
                if node.op == "accumulator":
                    return acc
                port = named[node]
                return given[port][j] if port in single else given[port][i, j]

            out[i, j] <<= expressed(value, leaf)

    return with_ports(name, {**declared, RESULT: Out(..., M, N)}, OPEN, body, f"y = {value.text()}.")


def _named(ports: Ports) -> dict[Expr, str]:
    return dict(ports)


def ported(operands: Mapping[Expr, Operand]) -> tuple[Ports, frozenset[str], tuple[Operand, ...]]:
    """Ports a, b, c of distinct operands: (loads and their ports, ports of one row, operands in port order)."""
    distinct = list(dict.fromkeys(operands.values()))
    names = {operand: "abcdefgh"[i] for i, operand in enumerate(distinct)}
    single = frozenset(names[o] for o in distinct if o.one_row)
    return tuple((load, names[o]) for load, o in operands.items()), single, tuple(distinct)
