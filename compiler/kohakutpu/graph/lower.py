# SPDX-License-Identifier: Apache-2.0
"""Graph to what the schedule level works on: products, and passes of elementwise ops (docs/spec/compiler.md 5.7).

Ops whose results stay in registers belong to the pass that stores what they lead to. A stored value ends a chain:
whoever reads it reads the rounded one from memory, in a later pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kohakutpu.chain import FOLDS, ChainBuilder
from kohakutpu.errors import CompileError
from kohakutpu.graph.ir import Graph, Op, Value, verify
from kohakutpu.schedule import Contraction, Elementwise, Operand, Request, Tiling

LAYER = "L3"


def contractions(graph: Graph) -> tuple[Contraction, ...]:
    """Every contraction of ``graph`` with its operands and the tiling its caller named, if any.

    Raises:
        CompileError: what :func:`~kohakutpu.graph.ir.verify` refuses.
    """
    verify(graph)
    return tuple(_contraction(graph, op) for op in graph.ops if op.kind == "contract")


def requests(graph: Graph) -> tuple[Request, ...]:
    """Products and elementwise passes in program order.

    Raises:
        CompileError: what :func:`~kohakutpu.graph.ir.verify` refuses, or a value the passes cannot hold.
    """
    verify(graph)
    out: list[Request] = []
    ops = {op.result: op for op in graph.ops}
    open_pass: _Pass | None = None
    for op in graph.ops:
        if op.kind == "contract":
            if open_pass is not None:
                out.append(open_pass.finished())
                open_pass = None
            out.append(_contraction(graph, op))
        elif graph.values[op.result].in_memory:
            if open_pass is not None and not open_pass.takes(op):
                out.append(open_pass.finished())
                open_pass = None
            if open_pass is None:
                open_pass = _Pass(graph, ops)
            open_pass.store(op)
    if open_pass is not None:
        out.append(open_pass.finished())
    return tuple(out)


def _contraction(graph: Graph, op: Op) -> Contraction:
    a, b, c = (_operand(graph.values[n]) for n in (*op.args, op.result))
    knobs = dict(op.attrs)
    named = Tiling(knobs["gm"], knobs["gn"], knobs["nk"]) if knobs else None
    return Contraction(a, b, c, named)


@dataclass
class _Pass:
    """A pass under construction."""

    graph: Graph
    ops: dict[str, Op]
    builder: ChainBuilder = field(default_factory=ChainBuilder)
    operands: list[Value] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    rows: set[int] = field(default_factory=set)
    known: dict[str, int] = field(default_factory=dict)

    def takes(self, op: Op) -> bool:
        """True if ``op`` stores the same shape and reads nothing this pass stores."""
        mine = {v.name for v in self.results}
        return self.graph.values[op.result].shape == self.results[0].shape and not mine & self._reads(op)

    def _reads(self, op: Op) -> set[str]:
        out: set[str] = set()
        for name in op.args:
            if self.graph.values[name].in_memory:
                out.add(name)
            elif name in self.ops:
                out |= self._reads(self.ops[name])
        return out

    def store(self, op: Op) -> None:
        """Add the chain that ends in ``op``."""
        value = self.graph.values[op.result]
        shapes = {self.graph.values[n].shape for n in self._reads(op)}
        self._check_shapes(value, shapes)
        self.results.append(value)
        self.nodes.append(self._op(op))

    def _check_shapes(self, result: Value, shapes: set[tuple[int, int]]) -> None:
        m, n = result.shape
        for shape in shapes - {(m, n), (1, n)}:
            what = "one value a row" if shape == (m, 1) else "another shape"
            raise CompileError(
                f"{result.name} {result.shape} reads a value of shape {shape} from memory, {what}; a pass reads "
                f"[{m}][{n}] or [1][{n}]"
            )

    def _op(self, op: Op) -> int:
        if op.kind in FOLDS:
            self.rows.add(self.graph.values[op.args[0]].shape[1])
            if len(self.rows) > 1:
                raise CompileError(f"{op.result}: rows of {sorted(self.rows)} elements are reduced in one pass")
        return self.builder.op(op.kind, *(self._value(n) for n in op.args))

    def _value(self, name: str) -> int:
        v = self.graph.values[name]
        if v.number is not None:
            return self.builder.const(v.number)
        if not v.in_memory:
            if name not in self.known:
                self.known[name] = self._op(self.ops[name])
            return self.known[name]
        if v not in self.operands:
            self.operands.append(v)
        return self.builder.operand(self.operands.index(v))

    def finished(self) -> Elementwise:
        """The pass."""
        return Elementwise(
            self.builder.chain(self.nodes),
            tuple(_operand(v) for v in self.operands),
            tuple(_operand(v) for v in self.results),
        )


def _operand(value: Value) -> Operand:
    return Operand(value.name, value.role, value.shape)
