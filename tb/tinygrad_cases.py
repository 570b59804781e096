# SPDX-License-Identifier: Apache-2.0
"""Expressions of tinygrad, the same kernels called through ktpu, and their meaning in float64.

Every case says what tinygrad computes, which kernel of the device has to run, what a call of that kernel gives, and
what numpy gives in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import ktpu
from kohakutpu.kernels.library.fold import SubRows, fold_max, fold_mean
from kohakutpu.kernels.library.helpers import sub_row, with_ports
from ktpu.language import (
    In,
    Out,
    dims,
    equal,
    exp2,
    kernel,
    less,
    log2,
    maximum,
    minimum,
    recip,
    row_max,
    row_sum,
    rsqrt,
    sqrt_approx,
    units,
    where,
)

M, N = dims("M, N")
LOG2E = 1.4426950408889634
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """One kernel.

    Args:
        shapes: of the operands, all standard normal and half precision.
        tinygrad: the expression of tensors.
        call: the same through ktpu, of arrays.
        numpy: the same in float64.
        what: the kernel that has to run.
        first: the result is the first column of what the call gives.
    """

    name: str
    shapes: tuple[Shape, ...]
    tinygrad: Callable[..., Any]
    call: Callable[..., Any]
    numpy: Callable[..., Any]
    what: str
    first: bool = False

    def __str__(self) -> str:
        return f"{self.name}-{'-'.join('x'.join(map(str, s)) for s in self.shapes)}"


def _sigmoid(v: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-v))


ACTIVATIONS: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "": (lambda v: v, lambda v: v),
    "relu": (lambda v: v.relu(), lambda v: np.maximum(v, 0)),
    "silu": (lambda v: v.silu(), lambda v: v * _sigmoid(v)),
    "sigmoid": (lambda v: v.sigmoid(), _sigmoid),
    "gelu": (lambda v: v.gelu(), lambda v: v * _sigmoid(2 * np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))),
}

# ---------------------------------------------------------------------- products

PRODUCTS = [
    *((16, 16, 32), (16, 48, 32), (4, 4, 32), (1, 16, 32), (1, 100, 64), (7, 5, 32), (5, 16, 16), (33, 17, 96)),
    *((8, 8, 8), (2, 2, 2), (3, 50, 40), (64, 64, 64), (20, 24, 100), (12, 12, 31), (1, 40, 48), (16, 1, 64)),
    *((40, 8, 256), (10, 128, 36)),
]
BATCHED = [(2, 8, 24, 32), (3, 16, 16, 32), (4, 8, 12, 16), (2, 4, 4, 64), (5, 20, 12, 48), (2, 32, 16, 32)]
EPILOGUES = [
    *(((16, 32, 32), act, bias, add) for act in ACTIVATIONS for bias in (0, 1) for add in (0, 1) if act or bias or add),
    *(((m, n, k), "relu", 1, 0) for m, n, k in ((1, 16, 32), (7, 20, 48), (5, 100, 16), (33, 10, 64))),
    *(((m, n, k), "silu", 1, 1) for m, n, k in ((12, 24, 32), (3, 8, 40))),
]


def _products() -> list[Case]:
    cases = [
        Case("matmul", ((m, k), (n, k)), lambda a, b: a @ b.T, ktpu.matmul, lambda a, b: a @ b.T, "matmul")
        for m, n, k in PRODUCTS
    ]
    for b, m, n, k in BATCHED:
        batched = ((b, m, k), (b, n, k))
        cases.append(
            Case(
                "matmul_batched",
                batched,
                lambda a, w: a @ w.transpose(1, 2),
                ktpu.matmul_batched,
                lambda a, w: a @ w.transpose(0, 2, 1),
                "matmul_batched",
            )
        )
    return cases


def _epilogues() -> list[Case]:
    return [_epilogue(*one) for one in EPILOGUES]


def _epilogue(shape: Shape, activation: str, bias: int, add: int) -> Case:
    m, n, k = shape
    extra = [(n,)] * bias + [(m, n)] * add
    on_tensor, on_array = ACTIVATIONS[activation]

    def through_ktpu(x: Any, w: Any, *more: Any) -> Any:
        named = dict(zip(["bias"] * bias + ["add"] * add, more, strict=True))
        return ktpu.linear(x, w, activation=activation, **named)

    what = "_".join(p for p in ("linear", "bias" * bias, "add" * add, activation) if p)
    return Case(
        what,
        ((m, k), (n, k), *extra),
        lambda x, w, *more: on_tensor(sum(more, x @ w.T)),
        through_ktpu,
        lambda x, w, *more: on_array(sum(more, x @ w.T)),
        what,
    )


# ---------------------------------------------------------------------- chains


def lanes(function: Callable[..., Any], rows: Sequence[bool]) -> Callable[..., Any]:
    """A call of the kernel y = function(operands), those in ``rows`` one row for all rows."""
    names = "abcd"[: len(rows)]
    ports: dict[str, Any] = {n: In(N) if row else In(M, N) for n, row in zip(names, rows, strict=True)}

    def body(**given: Any) -> None:
        y = given["y"]
        y <<= function(*(given[n].repeated() if row else given[n] for n, row in zip(names, rows, strict=True)))

    made = with_ports("reference", {**ports, "y": Out(M, N)}, {}, body, "The reference.")
    return lambda *arrays: ktpu.call(made, *arrays)


def _half(value: float) -> float:
    return float(np.float16(value))


CHAINS: list[tuple[str, Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = [
    ("add", lambda a, b: a + b, lambda a, b: a + b, np.add),
    ("sub", lambda a, b: a - b, lambda a, b: a - b, np.subtract),
    ("mul", lambda a, b: a * b, lambda a, b: a * b, np.multiply),
    ("min", lambda a, b: a.minimum(b), minimum, np.minimum),
    ("max", lambda a, b: a.maximum(b), maximum, np.maximum),
    ("choice", lambda a, b: (a < b).where(a * 2, b), lambda a, b: where(less(a, b), a * 2.0, b), None),
    ("equal", lambda a, b: (a == b).where(a, b + 1), lambda a, b: where(equal(a, b), a, b + 1.0), None),
    ("neg", lambda a: -a, lambda a: -a, np.negative),
    ("relu", lambda a: a.relu(), lambda a: maximum(a, 0.0), lambda a: np.maximum(a, 0)),
    ("exp", lambda a: a.exp(), lambda a: exp2(a * LOG2E), np.exp),
    ("rsqrt", lambda a: (a * a + 1).rsqrt(), lambda a: rsqrt(a * a + 1.0), lambda a: 1 / np.sqrt(a * a + 1)),
    ("sqrt", lambda a: (a * a + 1).sqrt(), lambda a: sqrt_approx(a * a + 1.0), lambda a: np.sqrt(a * a + 1)),
    ("recip", lambda a: (a * a + 1).reciprocal(), lambda a: recip(a * a + 1.0), lambda a: 1 / (a * a + 1)),
    ("log2", lambda a: (a * a + 1).log2(), lambda a: log2(a * a + 1.0), lambda a: np.log2(a * a + 1)),
    ("sigmoid", lambda a: a.sigmoid(), lambda a: recip(exp2(a * _half(-LOG2E)) + 1.0), _sigmoid),
    ("two", lambda a, b: a * b + a, lambda a, b: a * b + a, lambda a, b: a * b + a),
    ("three", lambda a, b, c: a * b + c, lambda a, b, c: a * b + c, lambda a, b, c: a * b + c),
    ("clip", lambda a: a.clip(-1, 1), lambda a: minimum(maximum(a, -1.0), 1.0), lambda a: np.clip(a, -1, 1)),
]
CHAIN_SHAPES = [(4, 16), (3, 20), (1, 7), (2, 3, 32), (5, 128), (100,)]


def _chains() -> list[Case]:
    cases = []
    for i, (name, on_tensor, on_lanes, on_array) in enumerate(CHAINS):
        count = on_tensor.__code__.co_argcount
        for shape in (CHAIN_SHAPES[i % len(CHAIN_SHAPES)], CHAIN_SHAPES[(i + 3) % len(CHAIN_SHAPES)]):
            call = _flat(lanes(on_lanes, [False] * count))
            cases.append(Case(name, (shape,) * count, on_tensor, call, on_array or _CHOICES[name], "chain"))
    for shape in ((4, 16), (7, 48), (2, 128)):
        cases.append(_shared_row("bias", shape, lambda a, b: a + b, np.add))
        cases.append(_shared_row("gain", shape, lambda a, b: b * a, np.multiply))
    return cases


_CHOICES: dict[str, Callable[..., Any]] = {
    "choice": lambda a, b: np.where(a < b, a * 2, b),
    "equal": lambda a, b: np.where(a == b, a, b + 1),
}


def _flat(call: Callable[..., Any]) -> Callable[..., Any]:
    """A chain of arrays in order, whatever their shape."""
    return lambda *arrays: call(*(np.reshape(a, (1, -1)) for a in arrays))


def _shared_row(name: str, shape: Shape, function: Callable[..., Any], on_array: Callable[..., Any]) -> Case:
    return Case(name, (shape, shape[-1:]), function, lanes(function, [False, True]), on_array, "chain")


# ---------------------------------------------------------------------- folds

FOLDS: list[tuple[str, Callable[..., Any], Callable[..., Any], Callable[..., Any]]] = [
    ("sum", lambda a: a.sum(1), row_sum, lambda a: a.sum(1)),
    ("max", lambda a: a.max(1), row_max, lambda a: a.max(1)),
    ("min", lambda a: a.min(1), lambda a: -row_max(-a), lambda a: a.min(1)),
    ("squares", lambda a: (a * a).sum(1), lambda a: row_sum(a * a), lambda a: (a * a).sum(1)),
    ("mean", lambda a: a.mean(1), row_sum, lambda a: a.mean(1)),
    ("norm", lambda a: (a * a).sum(1).rsqrt(), lambda a: rsqrt(row_sum(a * a)), lambda a: (a * a).sum(1) ** -0.5),
    ("dot", lambda a, b: (a * b).sum(1), lambda a, b: row_sum(a * b), lambda a, b: (a * b).sum(1)),
]
FOLD_SHAPES = [(4, 16), (3, 48), (1, 128), (9, 96), (2, 112)]


def folded(function: Callable[..., Any], width: int, count: int, share: float | None) -> Callable[..., Any]:
    """A call of the kernel y = function(operands) along rows of ``width``, times ``share``."""
    names = "ab"[:count]

    def body(**given: Any) -> None:
        y = given["y"]
        for e in units(given["a"].parts(8 * width)):
            v = function(*(given[n][e] for n in names))
            y[e] <<= v if share is None else v * share

    made = with_ports(
        "reference_fold", {**{n: In(M, width) for n in names}, "y": Out(M, width)}, {}, body, "The reference."
    )
    return lambda *arrays: ktpu.call(made, *arrays)


def _folds() -> list[Case]:
    cases = []
    for i, (name, on_tensor, on_lanes, on_array) in enumerate(FOLDS):
        count = on_tensor.__code__.co_argcount
        for shape in (FOLD_SHAPES[i % 5], FOLD_SHAPES[(i + 2) % 5], FOLD_SHAPES[(i + 3) % 5]):
            share = 1 / shape[1] if name == "mean" else None
            call = folded(on_lanes, shape[1], count, share)
            cases.append(Case(name, (shape,) * count, on_tensor, call, on_array, "fold", first=True))
    return cases


def _wide() -> list[Case]:
    """Rows wider than one reduction."""
    cases = []
    for shape in ((4, 144), (3, 256), (1, 640)):
        for name, on_tensor, on_array in (
            ("wide_sum", lambda a: a.sum(1), lambda a: a.sum(1)),
            ("wide_max", lambda a: a.max(1), lambda a: a.max(1)),
        ):
            call = wide_fold(name == "wide_sum", shape[1])
            cases.append(Case(name, (shape,), on_tensor, call, on_array, "wide_fold", first=True))
    return cases


def wide_fold(total: bool, cols: int) -> Callable[..., Any]:
    """A call of the hierarchical sum or maximum along rows of ``cols``."""
    width = sub_row(cols)

    @kernel
    def reference(x: Any = In(M, cols), y: Any = Out(M, cols)) -> None:
        """The reference."""
        v, out = x.as_rows(width), y.as_rows(width)
        shape = SubRows(x.length // width, width, cols // width)
        partial = shape.temp()
        for e in units(v.parts(shape.part)):
            partial[e] <<= row_sum(v[e] * (1 / width)) if total else row_max(v[e])
        whole = (fold_mean if total else fold_max)(partial, shape).per_group(shape.rows)
        for e in units(v.parts(shape.part)):
            out[e] <<= whole[e] * float(cols) if total else whole[e] * 1.0

    return lambda x: ktpu.call(reference, x)


CASES = [*_products(), *_epilogues(), *_chains(), *_folds(), *_wide()]
