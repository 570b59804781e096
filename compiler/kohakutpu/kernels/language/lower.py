# SPDX-License-Identifier: Apache-2.0
"""A bound trace to its graph: products of windows, lane operations on buffers (docs/spec/compiler.md 4, 11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kohakutpu.errors import TraceError
from kohakutpu.graph import REARRANGE, Graph, Matrix, Op, Value, verify
from kohakutpu.kernels.formula import Argument, Formula
from kohakutpu.kernels.language.buffers import Ref, Tile
from kohakutpu.kernels.language.kernel import Bound
from kohakutpu.kernels.language.lanes import Lane
from kohakutpu.kernels.language.matrices import Matrices
from kohakutpu.kernels.language.products import Rectangles, Swept, first_row
from kohakutpu.kernels.language.recorder import Assign, Drain, Read
from kohakutpu.kernels.language.spreads import View, spread, view
from kohakutpu.kernels.language.strides import periodic, strided
from kohakutpu.kernels.language.unroll import Step, unroll
from kohakutpu.kernels.language.versions import Versions
from kohakutpu.kernels.language.writes import Work, works
from kohakutpu.kernels.trace import Trace
from kohakutpu.views import Spread, Strided

LAYER = "L4"


def lower(bound: Bound) -> Trace:
    """The graph of a kernel at concrete extents.

    Raises:
        TraceError: operands of different lengths, two row shapes in one expression, a grid that does not cover what it
            writes, or a form the graph has no op for; the message says which and what to write instead.
    """
    trace = bound.trace
    try:
        graph = _graph(bound)
    except TraceError as error:
        raise TraceError(f"{trace.kernel}: {error}") from None
    verify(graph)
    knobs = {k: v for k, v in trace.knobs.items() if v is not None}
    return Trace(trace.kernel, graph, dict(bound.env), knobs)


def _graph(bound: Bound) -> Graph:
    trace, graph, versions = bound.trace, Graph(), Versions()
    steps = unroll(bound)
    matrices = Matrices(bound, steps)
    work = works(steps, matrices)
    for b in trace.buffers:
        if b.tier not in ("dram", "l2"):
            raise TraceError(f"temp {b.name} asks for tier {b.tier!r}; a graph knows 'dram' and 'l2'")
        if b.role in ("in", "table"):
            graph.value(Value(b.name, "fp16", matrices.shapes[b.name], b.role))
            continue
        versions.add(b, matrices.shapes[b.name], [w.write for w in work.values()])
        for v in versions.values[b.name]:
            graph.value(v)
    for group in trace.adjacent:
        graph.adjacent += versions.groups(group)
    lowering = _Lowering(graph, matrices, versions, Formula(graph))
    for number, step in enumerate(steps):
        lowering.step(number, step, work.get(number))
    return graph


@dataclass
class _Lowering:
    """Emits the ops of one statement after the other.

    ``held`` is the value each reading of a buffer meant where it was written down, ``known`` the register values of
    the grid at hand, ``drained`` its products, ``moved`` the temps that strided reads of values were moved to.
    """

    graph: Graph
    matrices: Matrices
    versions: Versions
    lanes: Formula
    held: dict[int, str] = field(default_factory=dict)
    known: dict[tuple[object, ...], str] = field(default_factory=dict)
    drained: dict[str, str] = field(default_factory=dict)
    moved: dict[tuple[str, Strided], str] = field(default_factory=dict)
    run: int = -1

    def step(self, number: int, step: Step, work: Work | None) -> None:
        """One statement."""
        if step.run != self.run:
            self.run = step.run
            self.known.clear()
            self.drained.clear()
        s = step.statement
        if isinstance(s, Read):
            assert isinstance(s.node.leaf, Ref)
            self.held[id(s.node)] = self.versions.current(s.node.leaf.buffer)
        if work is None:
            return
        result = self.versions.names[number]
        if isinstance(s, Drain):
            if s.acc.name in self.drained:
                raise TraceError(f"{s.acc.name} is handed out twice; drain it once and read the result")
            self._product(*work.products[s.acc.name], result)
            self.drained[s.acc.name] = result
        else:
            assert isinstance(s, Assign)
            _Expression(self, step, work, s).store(result)
        self.versions.wrote(work.write.buffer, number)

    def resident(self, acc: Tile, products: Mapping[str, tuple[Swept, Rectangles]]) -> str:
        """The value of an accumulator inside an expression."""
        if acc.name not in self.drained:
            product, where = products[acc.name]
            name = self.lanes.fresh("z")
            self.graph.value(Value(name, "fp16", (where.blocks * where.m, where.n), "temp"))
            self._product(product, where, name)
            self.drained[acc.name] = name
        return self.drained[acc.name]

    def _product(self, product: Swept, where: Rectangles, result: str) -> None:
        args = self._operand(product.left), self._operand(product.right)
        acc = product.acc
        knobs = [(n, v) for n, v in (("gm", acc.gm), ("gn", acc.gn), ("nk", acc.nk)) if not v.names("knob")]
        attrs: list[tuple[str, int | str]] = [(n, product.step.value(v)) for n, v in knobs]
        counts = ("batch", where.batch), ("join", where.join), ("split", acc.split)
        attrs += [(n, v) for n, v in counts if v > 1]
        attrs += [("route", acc.route)] if acc.route else []
        reads = (where.a, where.b) if where.a or where.b else ()
        self.graph.ops.append(Op("contract", args, result, tuple(attrs), reads))

    def _operand(self, side: Ref) -> str:
        return self.written(self.versions.current(side.buffer), side)

    def move(self, name: str, read: Strided, result: str) -> None:
        """Store a strided read of a value."""
        self.graph.ops.append(Op(REARRANGE, (name,), result, reads=(read,)))

    def temp(self, name: str, read: Strided, shape: Matrix) -> str:
        """A temp of ``shape`` that holds a strided read of a value."""
        if (name, read) not in self.moved:
            made = self.lanes.fresh(f"{name}.m")
            self.graph.value(Value(made, "fp16", shape, "temp"))
            self.move(name, read, made)
            self.moved[name, read] = made
        return self.moved[name, read]

    def written(self, name: str, ref: Ref) -> str:
        """``name``, the value a reference means.

        Raises:
            TraceError: nothing has written all of it.
        """
        if not name:
            raise TraceError(f"{ref.text()}: {ref.buffer.name} is read before all of it is written")
        return name


@dataclass
class _Expression:
    """One elementwise statement or epilogue."""

    lowering: _Lowering
    step: Step
    work: Work
    statement: Assign

    def store(self, result: str) -> None:
        """Emit the ops that end in ``result``."""
        value = self.statement.value
        if value.op == "read" and isinstance(ref := value.leaf, Ref) and ref.buffer.strided:
            name = self.lowering.written(self.lowering.held[id(value)], ref)
            read = self._strided(ref)
            if not self.lowering.graph.values[result].of:
                self.lowering.move(name, read, result)
                return
        if value.op in ("read", "resident", "const"):
            value = Lane("mul", (value, Lane("const", leaf=1.0)))
        self._node(value, result)

    def _node(self, node: Lane, out: str = "") -> Argument:
        if node.op == "resident":
            assert isinstance(node.leaf, Tile)
            return self.lowering.resident(node.leaf, self.work.products), None
        if node.op == "read":
            assert isinstance(node.leaf, Ref)
            name = self.lowering.written(self.lowering.held[id(node)], node.leaf)
            return self._view(node.leaf, name) if node.leaf.buffer.strided else (name, self._spread(node.leaf, name))
        if node.op == "const":
            assert isinstance(node.leaf, float)
            return self.lowering.lanes.number(node.leaf), None
        if node.op == "div":
            over, under = node.args
            if under.op == "const" and under.leaf:
                assert isinstance(under.leaf, float)
                inverse: Argument = self.lowering.lanes.number(1.0 / under.leaf), None
            else:
                inverse = self._op("recip", (self._node(under),))
            return self._op("mul", (self._node(over), inverse), out)
        return self._op(node.op, tuple(self._node(a) for a in node.args), out)

    def _op(self, kind: str, args: Sequence[Argument], out: str = "") -> Argument:
        lanes, known, key = self.lowering.lanes, self.lowering.known, (kind, *args)
        if out:
            lanes.read(kind, args, self.work.shape, out)
            return out, None
        if key not in known:
            known[key] = lanes.read(kind, args, self.work.shape)
        return known[key], None

    def _strided(self, ref: Ref) -> Strided:
        """What a permuted or sliced view reads for this statement, as many elements as it stores.

        Raises:
            TraceError: another number of elements, or a slice outside its axis.
        """
        blocks = self.lowering.matrices.blocks(ref.buffer.name)
        self._check_blocks(ref, blocks)
        read = strided(ref.buffer, self.step.env, self.work.blocks, blocks)
        rows, width = self.work.shape
        if read.elements != rows * width:
            raise TraceError(
                f"{self.statement.target.text()} <<= ... covers {rows * width} elements, {ref.text()} has "
                f"{read.elements}; a permuted or sliced view has as many as the statement"
            )
        return read

    def _view(self, ref: Ref, name: str) -> Argument:
        """A permuted or sliced view, read in place if it is a periodic read, else moved to a temp."""
        read = self._strided(ref)
        return (name, found) if (found := periodic(read)) else (self.lowering.temp(name, read, self.work.shape), None)

    def _check_blocks(self, ref: Ref, blocks: int) -> None:
        if blocks > self.work.blocks:
            raise TraceError(
                f"{self.statement.target.text()} <<= ... reads {ref.text()} of {blocks} blocks; a result without batch "
                "axes is one block, declare it with ..."
            )

    def _spread(self, ref: Ref, name: str) -> Spread | None:
        """How the statement reads ``ref``; None if all of it has the statement's shape or is one row."""
        matrices, shape = self.lowering.matrices, self.work.shape
        have, blocks = matrices.shapes[ref.buffer.name], matrices.blocks(ref.buffer.name)
        self._check_blocks(ref, blocks)
        length = matrices.length(ref.buffer.name)
        elements = shape[0] // self.work.blocks * shape[1]
        seen = view(ref.buffer, self.step.env, length)
        if len(ref.index) == 2:
            self._tile(seen, ref)
        elif len(self.statement.target.index) == 2:
            self._column(seen, ref)
        if not seen.chosen and length != elements:
            raise self._lengths(ref)
        read = spread(seen, elements, self.work.blocks, length, blocks)
        if have == shape and read == Spread(0, shape[0] * shape[1], 1, shape[0] * shape[1]):
            return None
        row = have[0] == 1 and have[1] == shape[1]
        return None if row and (read.take, read.advance) == (shape[1], 0) else read

    def _tile(self, seen: View, ref: Ref) -> None:
        """A full-shape operand of a grid of tiles starts where the target's tiles do, and may have more rows."""
        row, col = self.work.origin
        row -= first_row(self.statement.target.buffer, self.step)
        rows, width = self.lowering.matrices.block(ref.buffer.name)
        seen.first += row * width
        need = self.work.shape[0] // self.work.blocks
        if seen.take or col or width != self.work.shape[1] or seen.first + need * width > rows * width:
            raise self._lengths(ref)
        seen.chosen = True

    def _column(self, seen: View, ref: Ref) -> None:
        """One value a column is read by every row, from the first column of the target's tiles on."""
        if seen.take:
            raise TraceError(f"{ref.text()}: every row reads b[j] already; leave the view out")
        rows, width = self.work.shape
        seen.first += self.work.origin[1]
        if seen.first + width > self.lowering.matrices.length(ref.buffer.name):
            raise self._lengths(ref)
        seen.chosen = True
        seen.take, seen.repeat, seen.advance = width, rows // self.work.blocks, 0

    def _lengths(self, ref: Ref) -> TraceError:
        s, matrices = self.statement, self.lowering.matrices
        want, have = self.work.shape, matrices.shapes[ref.buffer.name]
        name = ref.buffer.name
        return TraceError(
            f"{s.target.text()} <<= ... covers {want[0]}x{want[1]} elements, {ref.text()} {have[0]}x{have[1]}; the "
            "operands of a vector statement have one length, a single row is read by all as "
            f"{'b[j]' if len(s.target.index) == 2 else f'{name}.repeated()'}, a longer one from a row on as "
            f"{name}.rows_from(r)"
        )
