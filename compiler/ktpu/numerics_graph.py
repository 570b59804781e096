# SPDX-License-Identifier: Apache-2.0
"""A graph evaluated in any arithmetic (docs/spec/compiler.md 4 and 14.3).

What a value is, is left to an :class:`Algebra`: float64, codes of the reference arithmetic, intervals. Only the
order of the operations and which elements they read is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from kohakutpu.chain import FOLDS
from kohakutpu.graph import REARRANGE, Graph, Op, Value, verify
from kohakutpu.views import Spread, Strided, Window

Array = npt.NDArray[Any]


class Algebra(Protocol):
    """Meaning of loads, operations and stores; a value is an array whose last two axes are those of the matrix."""

    def load(self, array: npt.NDArray[np.float16]) -> Array:
        """An operand in memory."""

    def number(self, value: float, dtype: str) -> Array:
        """A scalar constant as a matrix [1][1]."""

    def contract(self, a: Array, b: Array) -> Array:
        """a [M][K] times b [N][K] transposed, before it is stored."""

    def lane(self, kind: str, args: list[Array]) -> Array:
        """A lane operation or fold on operands that fit one another, before it is stored."""

    def store(self, made: Array, value: Value, *, product: bool) -> Array:
        """What was made, in the format of the value it becomes; ``product`` if a cluster emits it."""


def evaluate(graph: Graph, operands: Mapping[str, npt.NDArray[np.float16]], algebra: Algebra) -> dict[str, Array]:
    """Every value of ``graph`` that is an operand or that an output depends on, by name.

    Args:
        operands: inputs and tables of the graph, each of its shape.

    Raises:
        kohakutpu.errors.CompileError: what :func:`kohakutpu.graph.verify` refuses.
        KeyError: an operand that is missing.
    """
    verify(graph)
    env: dict[str, Array] = {}
    for v in graph.values.values():
        if v.number is not None:
            env[v.name] = algebra.number(v.number, v.dtype)
        elif v.role in ("in", "table", "const"):
            env[v.name] = algebra.load(operands[v.name])
    with np.errstate(all="ignore"):
        for op in _needed(graph):
            value = graph.values[op.result]
            if op.kind == REARRANGE:
                env[value.name] = _moved(op, value, env)
                continue
            made = _contract(op, env, algebra) if op.kind == "contract" else _lanes(op, value, env, algebra)
            _keep(graph, value, algebra.store(made, value, product=op.kind == "contract"), env)
    return env


def _needed(graph: Graph) -> list[Op]:
    """Operations an output depends on, in order; a program has no others."""
    needed = {v.name for v in graph.values.values() if v.role == "out"}
    kept = []
    for op in reversed(graph.ops):
        if op.result in needed or graph.values[op.result].of in needed:
            needed.update(op.args)
            kept.append(op)
    return kept[::-1]


def outputs(graph: Graph, env: Mapping[str, Array]) -> dict[str, Array]:
    """The values of ``env`` that the graph hands out."""
    return {v.name: env[v.name] for v in graph.values.values() if v.role == "out" and not v.of}


def _moved(op: Op, value: Value, env: Mapping[str, Array]) -> Array:
    """Elements in another order; a move rounds nothing."""
    read, array = op.read(0), env[op.args[0]]
    assert isinstance(read, Strided)  # the verifier refuses any other
    flat = array.reshape(*array.shape[:-2], -1)
    return flat[..., read.sources()].reshape(*array.shape[:-2], *value.shape)


def _lanes(op: Op, value: Value, env: Mapping[str, Array], algebra: Algebra) -> Array:
    rows, columns = op.space or value.shape
    args = []
    for position, name in enumerate(op.args):
        read, array = op.read(position), env[name]
        if isinstance(read, Spread):
            flat = array.reshape(*array.shape[:-2], -1)
            array = flat[..., read.sources(rows * columns)].reshape(*array.shape[:-2], rows, columns)
        elif op.kind in FOLDS and op.space is not None:
            array = np.broadcast_to(array, (*array.shape[:-2], rows, columns))
        args.append(array)
    return algebra.lane(op.kind, args)


def _contract(op: Op, env: Mapping[str, Array], algebra: Algebra) -> Array:
    parts = []
    for position, name in enumerate(op.args):
        rows, columns = env[name].shape[-2:]
        parts.append(_blocks(env[name], op.window(position, (rows, columns))))
    a, b = parts
    batch, join = op.attr("batch") or 1, op.attr("join") or 1
    made = []
    for z in range(batch):
        heads = [a[z * join + h] if len(a) > 1 else a[0] for h in range(join)]
        made.append(algebra.contract(np.concatenate(heads, axis=-1), b[z] if len(b) > 1 else b[0]))
    return np.concatenate(made, axis=-2)


def _blocks(array: Array, window: Window) -> list[Array]:
    """The rectangle of every block of a window."""
    height = array.shape[-2] // window.blocks
    tops = [z * height + window.row for z in range(window.blocks)]
    return [array[..., t : t + window.rows, window.col : window.col + window.cols] for t in tops]


def _keep(graph: Graph, value: Value, made: Array, env: dict[str, Array]) -> None:
    """The value, or its part of the buffer it belongs to; a row or one value a row fills all of it."""
    whole = np.broadcast_to(made, (*made.shape[:-2], *value.shape))
    if value.window is None:
        env[value.name] = whole
        return
    if value.of not in env:
        env[value.of] = np.zeros((*whole.shape[:-2], *graph.values[value.of].shape), whole.dtype)
    for z, part in enumerate(_blocks(env[value.of], value.window)):
        part[...] = whole[..., z * value.window.rows : (z + 1) * value.window.rows, :]
