# SPDX-License-Identifier: Apache-2.0
"""A chain of lane operations as a kernel of one pass (docs/spec/compiler.md 5.7, 13.1)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from kohakutpu.chain import ARITY, COMPARES, FOLDS
from kohakutpu.errors import TraceError
from kohakutpu.kernels.language import In, Kernel, Out, dims
from kohakutpu.kernels.language.lanes import Arithmetic, Lane, apply, lane
from kohakutpu.kernels.library.functions import FUNCTIONS
from kohakutpu.kernels.library.helpers import with_ports

LAYER = "L4"

Argument = int | float | str
Step = tuple[str, tuple[Argument, ...]]
"""An operation and its operands: a number, the name of an input, or "_" for the result of the step before."""

PREVIOUS = "_"

M, N = dims("M, N")


def chain(inputs: tuple[tuple[str, bool], ...], steps: tuple[Step, ...], name: str = "") -> Kernel:
    """y = the last of ``steps``, each applied to inputs, numbers and the result of the step before it.

    Args:
        inputs: name of each, and True for one row [N] that every row reads, False for [M][N].

    Raises:
        TraceError: no step, an unknown operation, the wrong number of operands, or an input nobody reads.
    """
    # 0.0 and -0.0 are equal keys, their texts are not
    return _made(inputs, steps, name, repr(steps))


@lru_cache(maxsize=256)
def _made(inputs: tuple[tuple[str, bool], ...], steps: tuple[Step, ...], name: str, _text: str) -> Kernel:
    names = tuple(n for n, _ in inputs)
    if not steps:
        raise TraceError("elementwise: no operation")
    for position, step in enumerate(steps):
        _check(step, names, first=position == 0)
    unread = sorted(set(names) - {a for _, args in steps for a in args if isinstance(a, str)})
    if unread:
        raise TraceError(f"elementwise: input {unread[0]} is never read; leave it out or use it")
    result = next(n for n in ("y", "out", *(f"out{i}" for i in range(len(inputs)))) if n not in names)
    ports = {n: In(N) if row else In(M, N) for n, row in inputs}

    def body(**given: Any) -> None:
        views: dict[str, Arithmetic] = {n: given[n].repeated() if row else given[n] for n, row in inputs}
        out = given[result]
        for op, args in steps:
            views[PREVIOUS] = _apply(op, [_value(a, views) for a in args])
        out <<= views[PREVIOUS]

    doc = f"{result} = the last of {len(steps)} operations on {', '.join(names)}."
    return with_ports(name or f"elementwise_{len(steps)}", {**ports, result: Out(M, N)}, {}, body, doc)


def _value(argument: Argument, views: Mapping[str, Arithmetic]) -> Arithmetic:
    return views[argument] if isinstance(argument, str) else lane(float(argument))


def _apply(op: str, args: list[Arithmetic]) -> Lane:
    if op in FUNCTIONS:
        return FUNCTIONS[op](*args)
    return lane(args[0] / args[1]) if op == "div" else apply(op, *args)


def _check(step: object, names: tuple[str, ...], *, first: bool) -> None:
    match step:
        case (str(op), (*args,)):
            pass
        case _:
            example = '("add", ("a", 0.5))'
            raise TraceError(f"elementwise: step {step!r}; a step is an operation and its operands, {example}")
    if PREVIOUS in args and first:
        raise TraceError(f"elementwise: the first step, {op}, has no result before it")
    for a in args:
        if isinstance(a, str) and a != PREVIOUS and a not in names:
            raise TraceError(f"elementwise: {op} reads {a!r}; the operands are {', '.join(names)}")
    if _ARGUMENTS.get(op) != len(args):
        known = ", ".join(sorted(_ARGUMENTS))
        raise TraceError(f"elementwise: {op} with {len(args)} operands; known operations: {known}")


_ARGUMENTS = {
    **{op: n for op, n in ARITY.items() if op not in FOLDS | COMPARES},
    **{name: 1 for name in FUNCTIONS if name},
    "div": 2,
}
