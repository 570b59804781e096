# SPDX-License-Identifier: Apache-2.0
"""Values and ops of a graph, and the verifier (docs/spec/compiler.md 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from kohakutpu.errors import CompileError

LAYER = "L3"

Role = Literal["in", "out", "temp", "table", "const"]
_ARITY = {"contract": 2}
_ATTRS = {"contract": {"gm", "gn", "nk"}}


@dataclass(frozen=True)
class Value:
    """A buffer: name, dtype name, shape and role."""

    name: str
    dtype: str
    shape: tuple[int, int]
    role: Role


@dataclass(frozen=True)
class Op:
    """One hardware feature: kind, argument names, result name, attributes.

    ``contract``: result[m, n] = sum over k of a[m, k] b[n, k].
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
        lines = [f"{v.role} {v.name}: {v.dtype}{list(v.shape)}" for v in self.values.values()]
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
    read: set[str] = set()
    for op in graph.ops:
        if op.kind not in _ARITY:
            raise CompileError(f"op kind {op.kind!r} is unknown; known: {', '.join(_ARITY)}")
        if len(op.args) != _ARITY[op.kind]:
            raise CompileError(f"{op.kind} takes {_ARITY[op.kind]} operands, got {len(op.args)}: {op.args}")
        stray = {k for k, _ in op.attrs} - _ATTRS[op.kind]
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
        _check_contract(graph, op)
        defined.add(op.result)
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
        raise CompileError(
            f"contract: {a.name} has K = {a.shape[1]}, {b.name} has K = {b.shape[1]}; both reduce it"
        )
    want = (a.shape[0], b.shape[0])
    if c.shape != want:
        raise CompileError(f"contract: {c.name} is stated as {c.shape}, operands give {want}")
