# SPDX-License-Identifier: Apache-2.0
"""Values and ops of a graph, and the verifier (docs/spec/compiler.md 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kohakutpu.chain import ARITY, COMPARES, FOLDS
from kohakutpu.dtypes import BY_NAME
from kohakutpu.errors import CompileError

LAYER = "L3"

Role = Literal["in", "out", "temp", "table", "const"]
_ATTRS = {"contract": {"gm", "gn", "nk"}}
KINDS = {"contract": 2, **ARITY}
"""Operands of every op kind."""


@dataclass(frozen=True)
class Value:
    """A buffer, or a value that never leaves a unit: name, dtype name, shape and role.

    A temp of a dtype that has no words in memory (``e8m15``) lives in registers. ``number`` is the value of a
    scalar constant.
    """

    name: str
    dtype: str
    shape: tuple[int, int]
    role: Role
    number: float | None = None

    @property
    def in_memory(self) -> bool:
        """True if it is a buffer."""
        return self.number is None and (self.dtype not in BY_NAME or BY_NAME[self.dtype].memory)


@dataclass(frozen=True)
class Op:
    """One hardware feature: kind, argument names, result name, attributes.

    ``contract``: result[m, n] = sum over k of a[m, k] b[n, k]. The lane operations of
    :data:`kohakutpu.chain.ARITY` work element by element; an operand of one row is read by every row, one of one
    column by every column. ``row_max`` and ``row_sum`` reduce [M][N] to [M][1].
    """

    kind: str
    args: tuple[str, ...]
    result: str
    attrs: tuple[tuple[str, int], ...] = ()

    def attr(self, name: str) -> int | None:
        """Value of an attribute, None if not stated."""
        return dict(self.attrs).get(name)


@dataclass
class Graph:
    """Values and ops in program order."""

    values: dict[str, Value] = field(default_factory=dict)
    ops: list[Op] = field(default_factory=list)

    def value(self, value: Value) -> Value:
        """Declare a value.

        Raises:
            CompileError: the name is bound already.
        """
        if value.name in self.values:
            raise CompileError(f"value {value.name} is bound twice; every value is assigned once")
        if any(e < 1 for e in value.shape):
            raise CompileError(f"value {value.name} has shape {value.shape}; every extent must be at least 1")
        self.values[value.name] = value
        return value

    def text(self) -> str:
        """Printed form, one line a value and an op."""
        lines = []
        for v in self.values.values():
            number = "" if v.number is None else f" = {v.number!r}"
            lines.append(f"{v.role} {v.name}: {v.dtype}{list(v.shape)}{number}")
        for op in self.ops:
            attrs = "".join(f" {k}={v}" for k, v in op.attrs)
            lines.append(f"{op.result} = {op.kind}({', '.join(op.args)}){attrs}")
        return "\n".join(lines)


def verify(graph: Graph) -> None:
    """Refuse a malformed graph.

    Raises:
        CompileError: use before definition, rebinding, arity, attribute, dtype, shape,
            an output never written or an input never read.
    """
    defined = {v.name for v in graph.values.values() if v.role in ("in", "table", "const")}
    made: dict[str, str] = {}
    read: set[str] = set()
    for op in graph.ops:
        if op.kind not in KINDS:
            raise CompileError(f"op kind {op.kind!r} is unknown; known: {', '.join(KINDS)}")
        if len(op.args) != KINDS[op.kind]:
            raise CompileError(f"{op.kind} takes {KINDS[op.kind]} operands, got {len(op.args)}: {op.args}")
        stray = {k for k, _ in op.attrs} - _ATTRS.get(op.kind, set())
        if stray:
            raise CompileError(f"{op.kind}: unknown attributes {sorted(stray)}")
        for name in (*op.args, op.result):
            if name not in graph.values:
                raise CompileError(f"{op.kind}: value {name} was never declared")
        for name in op.args:
            if name not in defined:
                raise CompileError(f"{op.kind}: value {name} is used before it is defined")
        if op.result in defined:
            raise CompileError(f"{op.kind}: value {op.result} is assigned a second time")
        _check_contract(graph, op) if op.kind == "contract" else _check_lanes(graph, op, made)
        defined.add(op.result)
        made[op.result] = op.kind
        read.update(op.args)
    for v in graph.values.values():
        if v.role == "out" and v.name not in defined:
            raise CompileError(f"output {v.name} is never written")
    for v in graph.values.values():
        if v.role == "in" and v.name not in read:
            raise CompileError(f"input {v.name} is never read")


def _check_contract(graph: Graph, op: Op) -> None:
    a, b, c = (graph.values[n] for n in (*op.args, op.result))
    for v in (a, b):
        if v.dtype not in ("fp16", "mxfp7"):
            raise CompileError(f"contract: operand {v.name} is {v.dtype}; the cluster reads fp16 or mxfp7")
    if c.dtype != "fp16":
        raise CompileError(f"contract: result {c.name} is {c.dtype}; the cluster writes fp16")
    knobs = [k for k, _ in op.attrs]
    if knobs and set(knobs) != _ATTRS["contract"]:
        raise CompileError(f"contract: {c.name} names {', '.join(knobs)} alone; name gm, gn and nk or none")
    if a.shape[1] != b.shape[1]:
        raise CompileError(f"contract: {a.name} has K = {a.shape[1]}, {b.name} has K = {b.shape[1]}; both reduce it")
    want = (a.shape[0], b.shape[0])
    if c.shape != want:
        raise CompileError(f"contract: {c.name} is stated as {c.shape}, operands give {want}")


def _check_lanes(graph: Graph, op: Op, made: dict[str, str]) -> None:
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
    want = (args[0].shape[0], 1) if op.kind in FOLDS else _broadcast(op, args)
    if c.shape != want:
        raise CompileError(f"{op.kind}: {c.name} is stated as {c.shape}, operands give {want}")


def _broadcast(op: Op, args: list[Value]) -> tuple[int, int]:
    out = []
    for axis in (0, 1):
        extents = {v.shape[axis] for v in args} - {1}
        if len(extents) > 1:
            shapes = ", ".join(f"{v.name} {v.shape}" for v in args)
            raise CompileError(f"{op.kind}: {shapes} do not fit; an extent is equal or 1")
        out.append(extents.pop() if extents else 1)
    return out[0], out[1]
