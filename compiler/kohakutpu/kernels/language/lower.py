# SPDX-License-Identifier: Apache-2.0
"""A bound trace to its graph: products, and lane operations on whole buffers (docs/spec/compiler.md 4 and 11).

Every buffer is a matrix in the graph: batch axes are folded into the rows, one value a column is one row, and a
block of any rank gets the row width its statements name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from kohakutpu.errors import TraceError
from kohakutpu.graph import Graph, Op, Value, verify
from kohakutpu.kernels.formula import Formula
from kohakutpu.kernels.language.buffers import Buffer, Ref, Region, Tile
from kohakutpu.kernels.language.integers import Int
from kohakutpu.kernels.language.kernel import Bound
from kohakutpu.kernels.language.lanes import FOLDS, Lane
from kohakutpu.kernels.language.recorder import Assign, Block, Drain, Load, Statement, Sweep
from kohakutpu.kernels.trace import Trace

LAYER = "L4"

Matrix = tuple[int, int]


def lower(bound: Bound) -> Trace:
    """The graph of a kernel at concrete extents.

    Raises:
        TraceError: operands of different lengths, two row shapes in one expression, a grid that does not cover what it
            writes, or a form the graph has no op for; the message says which and what to write instead.
    """
    return _Lowering(bound).run()


@dataclass
class _Accumulated:
    """What was swept into an accumulator: operands and the graph value of the product."""

    left: Ref
    right: Ref
    value: str = ""


@dataclass
class _Lowering:
    bound: Bound
    graph: Graph = field(default_factory=Graph)
    tiles: dict[str, _Accumulated] = field(default_factory=dict)
    done: dict[tuple[object, ...], str] = field(default_factory=dict)

    def run(self) -> Trace:
        trace = self.bound.trace
        if trace.adjacent:
            self._refuse(f"adjacent({', '.join(trace.adjacent[0])}): the graph places no groups; leave it out")
        for b in trace.buffers:
            if b.tier != "dram":
                self._refuse(f"temp {b.name} asks for tier {b.tier!r}; the schedule chooses tiers itself, leave it out")
        shapes = {b.name: self._matrix(b) for b in trace.buffers}
        self.shapes = shapes
        self.lanes = Formula(self.graph)
        for b in trace.buffers:
            self.graph.value(Value(b.name, "fp16", shapes[b.name], b.role))
        for s in trace.body:
            self._statement(s, ())
        verify(self.graph)
        knobs = {k: v for k, v in trace.knobs.items() if v is not None}
        return Trace(trace.kernel, self.graph, dict(self.bound.env), knobs)

    def _refuse(self, what: str) -> NoReturn:
        raise TraceError(f"{self.bound.trace.kernel}: {what}")

    # ------------------------------------------------------------------ shapes
    def _matrix(self, buffer: Buffer) -> Matrix:
        shape = self.bound.shapes[buffer.name]
        total = math.prod(shape)
        widths = {w for w in (self._width(b) for b in _uses(self.bound.trace.body, buffer.name)) if w}
        if len(widths) > 1:
            self._refuse(
                f"{buffer.name} is read as rows of {' and '.join(map(str, sorted(widths)))} elements; the graph keeps "
                "one shape for a buffer, copy it to a temp for the second"
            )
        width = widths.pop() if widths else shape[-1] if not buffer.whole else total
        if total % width:
            self._refuse(f"{buffer.name} has {total} elements, no whole number of rows of {width}")
        return total // width, width

    def _width(self, view: Buffer) -> int | None:
        for step in reversed(view.steps):
            if step.kind == "as_rows" and step.arg is not None:
                return step.arg.value(self.bound.env)
        return None if view.whole else view.dims[-1].value(self.bound.env)

    # --------------------------------------------------------------- statements
    def _statement(self, s: Statement, blocks: tuple[Block, ...]) -> None:
        if isinstance(s, Block):
            for inner in s.body:
                self._statement(inner, (*blocks, s))
        elif isinstance(s, Sweep):
            self._sweep(s, blocks)
        elif isinstance(s, Drain):
            self._covered(s.target, s.acc, blocks)
            self._product(s.acc, s.target.buffer.name)
        elif isinstance(s, Assign):
            self._assign(s, blocks)
        else:
            assert isinstance(s, Load)  # a region stands for what it was filled with

    def _sweep(self, s: Sweep, blocks: tuple[Block, ...]) -> None:
        acc, left, right = s.acc, _held(s.left), _held(s.right)
        if acc.name in self.tiles:
            self._refuse(
                f"{acc.name} is swept by two statements; the graph knows one product a tile, write the second into a "
                "tile of its own and add them where they are handed out"
            )
        grids = [b for b in blocks if b.kind != "loop"]
        loops = [b for b in blocks if b.kind == "loop"]
        if len(grids) != 1 or len(grids[0].index) != 2 or len(loops) > 1:
            self._refuse(
                f"{acc.name} is swept inside {len(grids)} grids and {len(loops)} loops; write one grid over rows and "
                "columns, units(a.tiles(gm), b.tiles(gn)), and one loop over chunks"
            )
        grid = grids[0]
        for side, axis, g in ((left, 0, acc.gm), (right, 1, acc.gn)):
            if side.buffer.steps:
                self._refuse(f"{side.text()}: the graph has no product of a view; copy it to a temp")
            want = side.buffer.tiles(g).text()
            if grid.count[axis].text() != want or side.index[0].text() != grid.index[axis].text():
                self._refuse(
                    f"{side.text()} in a grid of {grid.count[axis].text()} instances; the "
                    f"{'rows' if axis == 0 else 'columns'} are {side.buffer.name}[{grid.index[axis].text()}, ...] of "
                    f"{want}"
                )
            self._chunk(side, acc, loops)
        if right.buffer.batch and self.bound.batch:
            self._refuse(
                f"{right.text()} has batch axes {self.bound.batch}; the graph multiplies by one matrix, call the "
                "kernel once a block or declare the operand without ..."
            )
        self.tiles[acc.name] = _Accumulated(left, right)

    def _chunk(self, side: Ref, acc: Tile, loops: Sequence[Block]) -> None:
        chunk, want = side.index[1], side.buffer.chunks32(acc.nk)
        if loops and chunk.text() == loops[0].index[0].text() and loops[0].count[0].text() == want.text():
            return
        single = chunk.op == "const" and not want.names("knob") and want.value(self.bound.env) == 1
        if not (single and not loops and chunk.text() == "0"):
            self._refuse(
                f"{side.text()} does not sweep all of K; write for k in loop({side.buffer.name}.chunks32(nk)): "
                f"acc += a[i, k] @ b[j, k]"
            )

    def _product(self, acc: Tile, result: str = "") -> str:
        swept = self.tiles[acc.name]
        if swept.value:
            if result:
                self._refuse(f"{acc.name} is handed out twice; drain it once and read the result")
            return swept.value
        if not result:
            result = self.lanes.fresh("z")
            rows = self.shapes[swept.left.buffer.name][0]
            self.graph.value(Value(result, "fp16", (rows, self.shapes[swept.right.buffer.name][0]), "temp"))
        attrs = tuple((n, v.value({})) for n, v in (("gm", acc.gm), ("gn", acc.gn), ("nk", acc.nk)) if v.op == "const")
        self.graph.ops.append(Op("contract", (swept.left.buffer.name, swept.right.buffer.name), result, attrs))
        swept.value = result
        return result

    def _covered(self, target: Ref, acc: Tile, blocks: tuple[Block, ...]) -> None:
        swept = self.tiles[acc.name]
        grid = next(b for b in blocks if b.kind != "loop")
        if [i.text() for i in target.index] != [i.text() for i in grid.index] or target.buffer.steps:
            order = ", ".join(i.text() for i in grid.index)
            self._refuse(f"{target.text()} <<= {acc.name}: tile ({order}) goes to {target.buffer.name}[{order}]")
        want = self.shapes[swept.left.buffer.name][0], self.shapes[swept.right.buffer.name][0]
        if self.shapes[target.buffer.name] != want:
            self._refuse(f"{target.buffer.name} is {self.shapes[target.buffer.name]}, the product gives {want}")

    def _assign(self, s: Assign, blocks: tuple[Block, ...]) -> None:
        self.done.clear()
        target = s.target.buffer
        if any(b.kind == "loop" for b in blocks):
            self._refuse(
                f"{s.target.text()} <<= ... inside loop(); a graph writes a buffer once, call the kernel in a loop"
            )
        for acc in s.accumulators:
            self._covered(s.target, acc, blocks)
        if not s.accumulators and s.target.index:
            self._parts(s.target, blocks)
        self._check_rows(s)
        if any(v.kind != "as_rows" for v in target.steps):
            self._refuse(f"{s.target.text()} <<= ...: the graph writes whole buffers; write a temp of the view's shape")
        value = s.value
        if value.op in ("read", "resident", "const"):
            value = Lane("mul", (value, Lane("const", leaf=1.0)))
        self._node(value, s, target.name)

    def _parts(self, target: Ref, blocks: tuple[Block, ...]) -> None:
        count = blocks[-1].count[0]
        shape = self.shapes[target.buffer.name]
        total = math.prod(shape) // math.prod(self.bound.batch if target.buffer.batch else ())
        covered = count.args[0] if count.op == "cdiv" else count
        elements = covered.value(self.bound.env) if isinstance(covered, Int) else -1
        if elements != total:
            self._refuse(
                f"{target.text()} <<= ...: the grid covers {elements} elements, {target.buffer.name} has {total}; "
                f"write for e in units({target.buffer.name}.parts(part))"
            )

    def _check_rows(self, s: Assign) -> None:
        if not any(n.op in FOLDS for n in s.value.nodes()):
            return
        widths = {
            self.shapes[r.buffer.name][1]
            for n in s.value.nodes()
            if n.op == "read" and isinstance(r := n.leaf, Ref) and r.buffer.row_width is not None
        }
        if len(widths) > 1:
            self._refuse(
                f"{s.target.text()} <<= ... mixes rows of {' and '.join(map(str, sorted(widths)))} elements; one "
                "expression has one row shape, use as_rows() alike"
            )

    # -------------------------------------------------------------- expressions
    def _node(self, node: Lane, s: Assign, out: str = "") -> str:
        if node.op == "resident":
            assert isinstance(node.leaf, Tile)
            return self._product(node.leaf)
        if node.op == "read":
            assert isinstance(node.leaf, Ref)
            return self._read(node.leaf, s)
        if node.op == "const":
            assert isinstance(node.leaf, float)
            return self.lanes.number(node.leaf)
        if node.op == "div":
            over, under = node.args
            if under.op == "const" and under.leaf:
                assert isinstance(under.leaf, float)
                return self._op("mul", (self._node(over, s), self.lanes.number(1.0 / under.leaf)), out)
            return self._op("mul", (self._node(over, s), self._op("recip", (self._node(under, s),))), out)
        return self._op(node.op, tuple(self._node(a, s) for a in node.args), out)

    def _op(self, kind: str, args: tuple[str, ...], out: str = "") -> str:
        key = (kind, *args)
        if out or key not in self.done:
            self.done[key] = self.lanes.op(kind, *args, out=out)
        return self.done[key]

    def _read(self, ref: Ref, s: Assign) -> str:
        kinds = [v.kind for v in ref.buffer.steps if v.kind != "as_rows"]
        other = [k for k in kinds if k != "repeated"]
        if other:
            self._refuse(f"{ref.text()}: the graph has no {other[0]} read; copy the view to a temp of the full shape")
        have, want = self.shapes[ref.buffer.name], self.shapes[s.target.buffer.name]
        column = bool(s.accumulators) and len(ref.index) == 1
        if have == want or (have == (1, want[1]) and (column or "repeated" in kinds)):
            return ref.buffer.name
        self._refuse(
            f"{s.target.text()} <<= ... covers {want[0]}x{want[1]} elements, {ref.text()} {have[0]}x{have[1]}; the "
            "operands of a vector statement have one length, and a single row is read by all as "
            f"{'b[j]' if s.accumulators else f'{ref.buffer.name}.repeated()'}"
        )


def _held(side: Ref | Region) -> Ref:
    if isinstance(side, Region):
        assert side.held is not None  # the recorder refuses an empty one
        return side.held
    return side


def _uses(body: Sequence[Statement], name: str) -> Iterator[Buffer]:
    """Every view of a buffer that a statement names."""
    for s in body:
        if isinstance(s, Block):
            yield from _uses(s.body, name)
            continue
        refs: list[Ref] = []
        if isinstance(s, Sweep):
            refs = [_held(s.left), _held(s.right)]
        elif isinstance(s, Drain):
            refs = [s.target]
        elif isinstance(s, Assign):
            refs = [s.target, *(leaf for n in s.value.nodes() if isinstance(leaf := n.leaf, Ref))]
        yield from (r.buffer for r in refs if r.buffer.name == name)
