# SPDX-License-Identifier: Apache-2.0
"""Chains of elementwise operations in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from kohakutpu.chain import ARITY, COMPARES, FOLDS
from kohakutpu.errors import CompileError
from kohakutpu.graph import Graph, Value, verify
from kohakutpu.kernels.formula import ACTIVATIONS, Formula
from kohakutpu.kernels.trace import Trace

LAYER = "L4"

Argument = int | float | str
Step = tuple[str, tuple[Argument, ...]]
"""An operation and its operands: a number, the name of an input, or "_" for the result of the step before."""

PREVIOUS = "_"


def elementwise(shapes: dict[str, tuple[int, int]], steps: Sequence[Step], name: str = "") -> Trace:
    """y = the last of ``steps``, each applied to inputs, numbers and the result of the step before it.

    Args:
        shapes: inputs in order; [M][N], or [1][N] for one row that every row reads.

    Raises:
        CompileError: no step, an unknown operation, the wrong number of operands, or an input nobody reads.
    """
    if not steps:
        raise CompileError("elementwise: no operation")
    rows, columns = (max(s[axis] for s in shapes.values()) for axis in (0, 1))
    graph = Graph()
    for key, shape in shapes.items():
        graph.value(Value(key, "fp16", shape, "in"))
    result = next(n for n in ("y", "out", *(f"out{i}" for i in range(len(shapes)))) if n not in shapes)
    graph.value(Value(result, "fp16", (rows, columns), "out"))
    f = Formula(graph)
    before = ""
    for position, step in enumerate(steps):
        op, args = _step(step, shapes)
        if PREVIOUS in args and not before:
            raise CompileError(f"elementwise: the first step, {op}, has no result before it")
        named = [before if a == PREVIOUS else a if isinstance(a, str) else float(a) for a in args]
        out = result if position == len(steps) - 1 else ""
        if op in ACTIVATIONS and len(named) == 1 and isinstance(named[0], str):
            before = f.activation(op, named[0], out=out)
        elif op == "div" and len(named) == 2 and isinstance(named[1], str):
            before = f.div(named[0], named[1], out=out)
        elif op in ARITY and op not in FOLDS and op not in COMPARES and len(named) == ARITY[op]:
            before = f.op(op, *named, out=out)
        else:
            known = sorted({*ARITY, *ACTIVATIONS, "div"} - FOLDS - COMPARES)
            raise CompileError(f"elementwise: {op} with {len(args)} operands; known operations: {', '.join(known)}")
    verify(graph)
    return Trace(name or f"elementwise_{len(steps)}", graph, {"M": rows, "N": columns})


def _step(step: object, shapes: dict[str, tuple[int, int]]) -> Step:
    match step:
        case (str(op), (*args,)):
            for a in args:
                if isinstance(a, str) and a != PREVIOUS and a not in shapes:
                    raise CompileError(f"elementwise: {op} reads {a!r}; the operands are {', '.join(shapes)}")
            return cast(Step, (op, tuple(args)))
    raise CompileError(f'elementwise: step {step!r}; a step is an operation and its operands, ("add", ("a", 0.5))')
