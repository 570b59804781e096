# SPDX-License-Identifier: Apache-2.0
"""Graph to what the schedule level works on: products, moves, passes of elementwise ops (docs/spec/compiler.md 5.7).

Ops whose results stay in registers belong to the pass that stores what they lead to. A stored value ends a chain:
whoever reads it reads the rounded one from memory, in a later pass. Results of one pass have one shape; either all of
them depend on a reduction of their row or none does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kohakutpu.chain import FOLDS, ChainBuilder
from kohakutpu.errors import CompileError
from kohakutpu.graph.check import verify
from kohakutpu.graph.ir import REARRANGE, Graph, Matrix, Op, Value
from kohakutpu.schedule import Contraction, Elementwise, Operand, Rearrange, Request, Tiling
from kohakutpu.views import Spread, Strided, Window

LAYER = "L3"

Read = tuple[str, Spread | None]
Leaves = tuple[frozenset[Read], bool]


def contractions(graph: Graph) -> tuple[Contraction, ...]:
    """Every contraction of ``graph`` with its operands and the tiling its caller named, if any.

    Raises:
        CompileError: what :func:`~kohakutpu.graph.check.verify` refuses.
    """
    verify(graph)
    return tuple(_contraction(graph, op) for op in graph.ops if op.kind == "contract")


def buffers(graph: Graph) -> tuple[Operand, ...]:
    """The buffers that ops write in parts, with their full shapes."""
    return tuple(_operand(graph.values[parent]) for parent in graph.parts())


def requests(graph: Graph) -> tuple[Request, ...]:
    """Products, moves and elementwise passes in program order.

    Raises:
        CompileError: what :func:`~kohakutpu.graph.check.verify` refuses, or a value the passes cannot hold.
    """
    verify(graph)
    out: list[Request] = []
    ops, leaves = {op.result: op for op in graph.ops}, _leaves(graph)
    open_pass: _Pass | None = None
    for op in graph.ops:
        if op.kind in ("contract", REARRANGE):
            if open_pass is not None:
                out.append(open_pass.finished())
                open_pass = None
            out.append(_contraction(graph, op) if op.kind == "contract" else _rearrange(graph, op))
        elif graph.values[op.result].in_memory:
            if open_pass is not None and not open_pass.takes(op):
                out.append(open_pass.finished())
                open_pass = None
            if open_pass is None:
                open_pass = _Pass(graph, ops, leaves, graph.values[op.result].shape)
            open_pass.store(op)
    if open_pass is not None:
        out.append(open_pass.finished())
    return tuple(out)


def _leaves(graph: Graph) -> dict[str, Leaves]:
    """For every result of a lane operation, the buffers its chain reads, and whether it folds."""
    out: dict[str, Leaves] = {}
    for op in graph.ops:
        reads: frozenset[Read] = frozenset()
        folds = op.kind in FOLDS
        for position, name in enumerate(op.args):
            if graph.values[name].in_memory:
                read = op.read(position)
                reads |= {(name, read if isinstance(read, Spread) else None)}
            elif name in out:
                reads |= out[name][0]
                folds |= out[name][1]
        out[op.result] = reads, folds
    return out


def _contraction(graph: Graph, op: Op) -> Contraction:
    a, b, c = (_operand(graph.values[n]) for n in (*op.args, op.result))
    gm, gn, nk = (op.attr(k) for k in ("gm", "gn", "nk"))
    named = None if gm is None or gn is None or nk is None else Tiling(gm, gn, nk)
    left, right = (r if isinstance(r, Window) else None for r in (op.read(0), op.read(1)))
    batch, join, split = (op.attr(k) or 1 for k in ("batch", "join", "split"))
    return Contraction(a, b, c, named, left, right, batch, join, split, op.route)


def _rearrange(graph: Graph, op: Op) -> Rearrange:
    source, result = (_operand(graph.values[n]) for n in (*op.args, op.result))
    read = op.read(0)
    assert isinstance(read, Strided)  # the verifier refuses any other
    return Rearrange(source, result, read)


@dataclass
class _Pass:
    """A pass under construction over [M][N] elements."""

    graph: Graph
    ops: dict[str, Op]
    leaves: dict[str, Leaves]
    shape: Matrix
    builder: ChainBuilder = field(default_factory=ChainBuilder)
    operands: list[Read] = field(default_factory=list)
    results: list[Value] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    folds: bool = False

    def takes(self, op: Op) -> bool:
        """True if ``op`` stores the same shape, reads nothing this pass stores, and folds if the pass does."""
        mine = {name for v in self.results for name in (v.name, v.of)}
        reads, folds = self.leaves[op.result]
        same = self.graph.values[op.result].shape == self.shape
        return same and not mine & {name for name, _ in reads} and folds == self.folds

    def store(self, op: Op) -> None:
        """Add the chain that ends in ``op``."""
        value = self.graph.values[op.result]
        reads, self.folds = self.leaves[op.result]
        self._check_shapes(value, {self.graph.values[n].shape for n, read in reads if read is None})
        self.results.append(value)
        self.nodes.append(self._op(op))

    def _check_shapes(self, result: Value, shapes: set[Matrix]) -> None:
        m, n = result.shape
        for shape in shapes - {(m, n), (1, n)}:
            what = "one value a row" if shape == (m, 1) else "another shape"
            raise CompileError(
                f"{result.name} {result.shape} reads a value of shape {shape} from memory, {what}; a pass reads "
                f"[{m}][{n}] or [1][{n}]"
            )

    def _op(self, op: Op) -> int:
        if op.kind in FOLDS:
            width = (op.space or self.graph.values[op.args[0]].shape)[1]
            if width != self.shape[1]:
                raise CompileError(
                    f"{op.result}: rows of {width} elements are reduced in a pass over rows of {self.shape[1]}; store "
                    "the reduced value to a buffer of its operand's shape"
                )
        nodes = []
        for position, name in enumerate(op.args):
            read = op.read(position)
            nodes.append(self._value((name, read if isinstance(read, Spread) else None)))
        return self.builder.op(op.kind, *nodes)

    def _value(self, read: Read) -> int:
        v = self.graph.values[read[0]]
        if v.number is not None:
            return self.builder.const(v.number)
        if not v.in_memory:
            if v.name not in self.known:
                self.known[v.name] = self._op(self.ops[v.name])
            return self.known[v.name]
        if read not in self.operands:
            self.operands.append(read)
        return self.builder.operand(self.operands.index(read))

    def finished(self) -> Elementwise:
        """The pass."""
        reads = tuple(read for _, read in self.operands)
        return Elementwise(
            self.builder.chain(self.nodes),
            tuple(_operand(self.graph.values[name]) for name, _ in self.operands),
            tuple(_operand(v) for v in self.results),
            reads if any(r is not None for r in reads) else (),
        )


def _operand(value: Value) -> Operand:
    return Operand(value.name, value.role, value.shape, value.tier, value.of, value.window)
