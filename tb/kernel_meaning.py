# SPDX-License-Identifier: Apache-2.0
"""The meaning of a kernel body, statement by statement and tile by tile (docs/spec/compiler.md 11).

A second reading of a trace beside the compiler's graph: buffers are flat arrays, a sweep multiplies the blocks its
indices name, a part statement evaluates its expression for every element. Values are exact, stores round to FP16.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from kohakutpu.kernels.language.buffers import Buffer, Ref, Region, Tile
from kohakutpu.kernels.language.integers import Int
from kohakutpu.kernels.language.kernel import Bound
from kohakutpu.kernels.language.lanes import FOLDS, Lane
from kohakutpu.kernels.language.recorder import Assign, Block, Drain, Load, Read, Statement, Sweep

F64 = npt.NDArray[np.float64]

OPEN = {"gm": 4, "gn": 4, "nk": 1}
"""Tiling of kernels that leave it open."""

_LANES = {
    "neg": lambda a: -a,
    "absolute": np.abs,
    "exp2": np.exp2,
    "log2": np.log2,
    "recip": lambda a: 1.0 / a,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "less": lambda a, b: (a < b).astype(np.float64),
    "greater": lambda a, b: (a > b).astype(np.float64),
    "equal": lambda a, b: (a == b).astype(np.float64),
    "fma": lambda a, b, c: a * b + c,
    "where": lambda p, a, b: np.where(p != 0, a, b),
}


def meaning(bound: Bound, operands: Mapping[str, npt.ArrayLike]) -> dict[str, F64]:
    """Results of a bound kernel by name, in the shapes of the call."""
    blocks = math.prod(bound.batch)
    outs = {b.name: np.zeros(bound.shapes[b.name]) for b in bound.trace.buffers if b.role == "out"}
    for z in range(blocks):
        run = _Run({**OPEN, **bound.env})
        for b in bound.trace.buffers:
            shape = bound.shapes[b.name]
            inner = shape[len(bound.batch) :] if b.name not in bound.trace.ports or b.batch else shape
            inner = shape if b.role == "table" else inner
            value = operands[b.name] if b.role == "in" else b.data if b.data is not None else np.full(shape, np.nan)
            flat = np.asarray(value, dtype=np.float64).reshape(-1, math.prod(inner))
            run.memory[b.name] = flat[z if len(flat) > 1 else 0].copy()
            run.inner[b.name] = inner
        run.body(bound.trace.body)
        for name, out in outs.items():
            out.reshape(blocks, -1)[z] = run.memory[name]
    return outs


@dataclass
class _Run:
    env: dict[str, int]
    memory: dict[str, F64] = field(default_factory=dict)
    inner: dict[str, tuple[int, ...]] = field(default_factory=dict)
    tiles: dict[str, tuple[int, F64]] = field(default_factory=dict)
    held: dict[int, Ref] = field(default_factory=dict)
    seen: dict[int, F64] = field(default_factory=dict)
    instance: int = 0

    def n(self, value: Int | int) -> int:
        return value.value(self.env) if isinstance(value, Int) else value

    def body(self, statements: list[Statement] | tuple[Statement, ...]) -> None:
        for s in statements:
            match s:
                case Block():
                    self._block(s)
                case Read():
                    self.seen[id(s.node)] = self.memory[s.node.leaf.buffer.name]  # type: ignore[union-attr]
                case Load():
                    self.held[id(s.region)] = s.source
                case Sweep():
                    self._sweep(s)
                case Drain():
                    self._put(s.target, self._tile(s.acc), s.acc)
                case Assign() if s.accumulators:
                    acc = s.accumulators[0]
                    self._put(s.target, self._fused(s.value, acc), acc)
                case Assign():
                    self._elements(s)

    def _block(self, s: Block) -> None:
        if s.kind != "loop" and all(isinstance(i, Read) or _whole(i) for i in s.body):
            self.body(s.body)  # parts of whole statements; what they cover is what they write
            return
        counts = [self.n(c) for c in s.count]
        for index in np.ndindex(*counts):
            self.instance += s.kind != "loop"
            self.env.update({i.text(): int(v) for i, v in zip(s.index, index, strict=True)})
            self.body(s.body)

    # ---------------------------------------------------------------------------------------------------- products
    def _sweep(self, s: Sweep) -> None:
        left, right = (self.held[id(x)] if isinstance(x, Region) else x for x in (s.left, s.right))
        rows, columns, width = 4 * self.n(s.acc.gm), 4 * self.n(s.acc.gn), 32 * self.n(s.acc.nk)
        product = self._rectangle(left, rows, width) @ self._rectangle(right, columns, width).T
        before = self.tiles.get(s.acc.name)
        if before and before[0] == self.instance:
            product = before[1] + product
        self.tiles[s.acc.name] = (self.instance, product)

    def _rectangle(self, ref: Ref, rows: int, width: int) -> F64:
        """Block (i, k) of a matrix, zero beyond its edge."""
        matrix = self.memory[ref.buffer.name].reshape(self.inner[ref.buffer.name])
        i, k = (self.n(x) for x in ref.index)
        matrix = matrix[self._view(ref.buffer)[0] // matrix.shape[1] :]
        assert i * rows < matrix.shape[0], ref.text()
        assert k * width < matrix.shape[1], ref.text()
        part = matrix[i * rows : (i + 1) * rows, k * width : (k + 1) * width]
        assert not np.isnan(part).any(), f"{ref.text()} was never written"
        return np.pad(part, ((0, rows - part.shape[0]), (0, width - part.shape[1])))

    def _tile(self, acc: Tile) -> F64:
        return self.tiles[acc.name][1]

    def _fused(self, node: Lane, acc: Tile) -> F64:
        def read(node: Lane) -> F64:
            leaf: Ref = node.leaf  # type: ignore[assignment]
            rows, columns = 4 * self.n(acc.gm), 4 * self.n(acc.gn)
            if len(leaf.index) == 1:
                at = self.n(leaf.index[0]) * columns + self._view(leaf.buffer)[0]
                part = self.memory[leaf.buffer.name][at : at + columns]
                return np.pad(part, (0, columns - len(part)))[None]
            return self._rectangle(leaf, rows, columns)

        return self._lanes(node, read, 0)

    def _put(self, target: Ref, value: F64, acc: Tile) -> None:
        matrix = self.memory[target.buffer.name].reshape(self.inner[target.buffer.name])
        i, j = (self.n(x) for x in target.index)
        place = matrix[i * 4 * self.n(acc.gm) :, j * 4 * self.n(acc.gn) :]
        rows, columns = min(place.shape[0], value.shape[0]), min(place.shape[1], value.shape[1])
        place[:rows, :columns] = _half(value[:rows, :columns])

    # ---------------------------------------------------------------------------------------------------- elements
    def _elements(self, s: Assign) -> None:
        reads = [leaf.buffer for n in s.value.nodes() if isinstance(leaf := n.leaf, Ref)]
        plain = [b for b in reads if not b.periodic]
        count = min(len(self.memory[b.name]) - self._view(b)[0] for b in [s.target.buffer, *plain])
        widths = {self.n(w) for b in [*reads, s.target.buffer] if (w := b.row_width) is not None}
        folds = any(n.op in FOLDS for n in s.value.nodes())
        assert len(widths) == 1 or not folds, f"rows of {widths}"

        def read(node: Lane) -> F64:
            leaf: Ref = node.leaf  # type: ignore[assignment]
            value = self.seen[id(node)][self._view(leaf.buffer, count)[1]]
            assert not np.isnan(value).any(), f"{leaf.text()} was never written"
            return value

        value = self._lanes(s.value, read, widths.pop() if folds else 0)
        first, name = self._view(s.target.buffer)[0], s.target.buffer.name
        self.memory[name] = self.memory[name].copy()  # what was read before stays as it was
        self.memory[name][first : first + count] = _half(value)

    def _view(self, b: Buffer, count: int = 0) -> tuple[int, npt.NDArray[np.int64]]:
        """First element of a view, and where each of ``count`` elements comes from."""
        width = self.n(b.dims[-1]) if len(b.dims) > 1 else 1
        first, at = 0, np.arange(count)
        for step in b.steps:
            arg = self.n(step.arg) if step.arg is not None else 0
            match step.kind:
                case "as_rows":
                    width = arg
                case "rows_from":
                    first += arg * width
                case "per_group":
                    at = at // (arg * width) * (arg * width) + at % width
                case "row_repeat":
                    at = at // (arg * width) * width + at % width
                case "repeated":
                    at = at % (len(self.memory[b.name]) - first)
        return first, first + at

    def _lanes(self, node: Lane, read: object, width: int) -> F64:
        done: dict[int, F64] = {}
        with np.errstate(all="ignore"):
            for n in node.nodes():
                args = [done[id(a)] for a in n.args]
                if n.op == "const":
                    done[id(n)] = np.float64(n.leaf)  # type: ignore[assignment]
                elif n.op == "resident":
                    done[id(n)] = self._tile(n.leaf)  # type: ignore[arg-type]
                elif n.op == "read":
                    done[id(n)] = read(n)  # type: ignore[operator]
                elif n.op in FOLDS:
                    rows = args[0].reshape(-1, width)
                    fold = rows.max(axis=1, keepdims=True) if n.op == "row_max" else rows.sum(axis=1, keepdims=True)
                    done[id(n)] = np.broadcast_to(fold, rows.shape).reshape(-1)
                else:
                    done[id(n)] = _LANES[n.op](*args)  # type: ignore[operator]
        return done[id(node)]


def _whole(s: Statement) -> bool:
    return isinstance(s, Assign) and not s.accumulators


def _half(value: F64) -> F64:
    """FP16 with saturation."""
    return np.clip(value, -65504, 65504).astype(np.float16).astype(np.float64)
