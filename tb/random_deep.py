# SPDX-License-Identifier: Apache-2.0
"""Random programs of several layers: blocks, windows, heads, periodic reads, parts, tiers (docs/spec/compiler.md 17).

A program is a row of products and passes over values that are stored in between. Whatever nothing reads at the end is
a result. The first generator (:mod:`random_graphs`) draws single kernels; seeds of the two mean different things.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any

import numpy as np

from kohakubench.formulas import activation
from kohakubench.programs import spec
from kohakutpu.graph import Graph, Op, Value, verify
from kohakutpu.graph.ir import Matrix
from kohakutpu.kernels import Trace
from kohakutpu.kernels.formula import Argument
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.tensor import Call
from kohakutpu.views import Spread, Window
from ktpu import devices
from random_graphs import Expression, Kernel, half, hand_machine, options

MACHINES = ("mm_store", "mm_mesh")
"""Pictured machines, beside those made by hand."""

FORMS = (
    "adjacent",
    "batched",
    "column window",
    "fold over product",
    "joined",
    "layers",
    "part by pass",
    "part by product",
    "per_group",
    "repeated",
    "row window",
    "row_repeat",
    "rows_from",
    "shared a",
    "shared b",
    "split",
    "tier",
    "two results",
)
"""What a program may contain beside whole products and passes."""


def _divisors(value: int, most: int) -> list[int]:
    return [d for d in range(1, min(value, most) + 1) if value % d == 0]


@dataclass
class Program:
    """A program under construction; ``stored`` are the values that later statements may read.

    Args:
        calm: only operations whose results keep a bound.
    """

    rng: np.random.Generator
    machine: MachineSpec
    calm: bool
    graph: Graph = field(default_factory=Graph)
    operands: dict[str, np.ndarray] = field(default_factory=dict)
    stored: list[str] = field(default_factory=list)
    passes: list[str] = field(default_factory=list)
    forms: set[str] = field(default_factory=set)

    # ---------------------------------------------------------------- values

    def chance(self, share: float) -> bool:
        """True with probability ``share``."""
        return bool(self.rng.random() < share)

    def draw(self, *choices: Any) -> Any:
        """One of ``choices``."""
        return choices[int(self.rng.integers(len(choices)))]

    def name(self, stem: str) -> str:
        """A name no value has."""
        return f"{stem}{sum(n.startswith(stem) for n in self.graph.values)}"

    def shape(self, name: str) -> Matrix:
        """Rows and columns of a value."""
        return self.graph.values[name].shape

    def given(self, shape: Matrix, scale: float = 1.0) -> str:
        """A new operand from the host."""
        name = self.name("x")
        self.graph.value(Value(name, "fp16", shape, "in"))
        self.operands[name] = half(self.rng, shape, scale, wild=not self.calm and self.chance(0.2))
        return name

    def temp(self, stem: str, shape: Matrix) -> str:
        """A new stored value."""
        tier = self.draw("l2", "dram") if self.chance(0.12) and self.machine.stage_bytes else ""
        if tier:
            self.forms.add("tier")
        return self.graph.value(Value(self.name(stem), "fp16", shape, "temp", tier=tier)).name

    def rows(self) -> int:
        """Rows of a new value, mostly whole sub-tiles."""
        return 4 * int(self.rng.integers(1, 13)) if self.chance(0.85) else int(self.rng.integers(1, 40))

    def columns(self) -> int:
        """Columns of a new value, mostly whole words."""
        return 16 * int(self.rng.integers(1, 9)) if self.chance(0.85) else int(self.rng.integers(1, 130))

    # ---------------------------------------------------------------- products

    def window(self, name: str, blocks: int) -> Window:
        """All of ``blocks`` blocks, or a rectangle of each."""
        rows, cols = self.shape(name)
        height, at, col = rows // blocks, 0, 0
        if height >= 8 and height % 4 == 0 and self.chance(0.25):
            at = 4 * int(self.rng.integers(0, height // 4))
            height = 4 * int(self.rng.integers(1, (height - at) // 4 + 1))
            self.forms.add("row window")
        if cols >= 64 and self.chance(0.25):
            col = 32 * int(self.rng.integers(0, cols // 32))
            cols = 32 * int(self.rng.integers(1, (cols - col) // 32 + 1))
            self.forms.add("column window")
        return Window(blocks, at, height, col, cols)

    def product(self, out: str = "", shape: Matrix = (0, 0), blocks: int = 1) -> str:
        """A contraction; into the declared value ``out`` of ``shape``, whose rows are ``blocks`` blocks."""
        if out:
            return self._product_of(out, shape, blocks)
        earlier = [n for n in self.stored if self.shape(n)[0] % 4 == 0]
        read = earlier and self.chance(0.85)
        a = str(self.draw(*earlier[-4:])) if read else self.given((self.rows(), self.columns()))
        rows = self.shape(a)[0]
        count = int(self.draw(*_divisors(rows // 4, 4))) if rows % 4 == 0 and self.chance(0.5) else 1
        wa = self.window(a, count)
        heads = [h for h in _divisors(count, 4) if h > 1 and wa.cols % 32 == 0]
        join = int(self.draw(*heads)) if heads and self.chance(0.4) else 1
        batch, own = count // join, False
        if count == 1 and wa.rows % 4 == 0 and self.chance(0.2):
            batch, own = int(self.rng.integers(2, 4)), True
            self.forms.add("shared a")
        elif batch > 1 and not (own := self.chance(0.5)):
            self.forms.add("shared b")
        elif batch > 1:
            self.forms.add("batched")
        if join > 1:
            self.forms.add("joined")
        k = join * wa.cols
        b, wb = self._right(k, batch if own else 1)
        c = self.temp("p", (batch * wa.rows, wb.rows))
        attrs = {k: v for k, v in (("batch", batch), ("join", join)) if v > 1}
        self._contract(a, b, c, wa, wb, attrs)
        self.stored.append(c)
        return c

    def _right(self, k: int, blocks: int) -> tuple[str, Window]:
        """Operand B: ``k`` columns, in ``blocks`` blocks."""
        fits = [n for n in self.stored if self.shape(n)[1] == k and self.shape(n)[0] % (4 * blocks) == 0]
        if fits and self.chance(0.4):
            b = str(self.draw(*fits[-3:]))
            return b, Window(blocks, 0, self.shape(b)[0] // blocks, 0, k)
        n = self.columns() if self.chance(0.8) else self.rows()
        n = -(-n // 4) * 4 if blocks > 1 else n
        wide = 32 if k % 32 == 0 and self.chance(0.15) else 0
        high = 8 if n % 4 == 0 and self.chance(0.15) else 0
        b = self.given((blocks * (n + high), k + wide), 1 / np.sqrt(k))
        if wide:
            self.forms.add("column window")
        if high:
            self.forms.add("row window")
        return b, Window(blocks, high and 4, n, wide and 32, k)

    def _contract(self, a: str, b: str, c: str, wa: Window, wb: Window, attrs: dict[str, int | str]) -> None:
        free = all(w.whole(self.shape(n)) and w.blocks == 1 for n, w in ((a, wa), (b, wb)))
        chunks = wb.cols // 32 if wb.cols % 32 == 0 else 0
        parts = [d for d in _divisors(chunks, 4) if d > 1]
        if parts and "join" not in attrs and self.chance(0.2):
            # which chunks a partial sum covers, and so its bits, depend on the tiling
            height = self.shape(b)[0] // wb.blocks
            whole = wb.blocks == 1 and wb.rows == height
            gn = 4 if whole or gcd(wb.row, wb.rows, height) % 16 == 0 else 1
            attrs |= {"gm": 1, "gn": gn, "nk": 1, "split": int(self.draw(*parts)), "route": "memory"}
            self.forms.add("split")
        elif free and self.chance(0.25):
            gm, gn, nk = int(self.draw(1, 2, 4)), int(self.draw(1, 2, 4, 4, 8)), int(self.draw(1, 1, 2))
            attrs |= {"gm": min(gm, self.machine.tiles // gn), "gn": gn, "nk": nk}
        reads = () if free else (wa, wb)
        self.graph.ops.append(Op("contract", (a, b), c, tuple(sorted(attrs.items())), reads))

    def _product_of(self, out: str, shape: Matrix, blocks: int) -> str:
        """A product of a stated result, a batch of ``blocks`` with a shared B."""
        k = 32 * int(self.rng.integers(1, 4))
        a, b = self.given((shape[0], k)), self.given((shape[1], k), 1 / np.sqrt(k))
        wa, wb = Window(blocks, 0, shape[0] // blocks, 0, k), Window(1, 0, shape[1], 0, k)
        attrs = (("batch", blocks),) if blocks > 1 else ()
        self.graph.ops.append(Op("contract", (a, b), out, attrs, (wa, wb) if blocks > 1 else ()))
        return out

    # ---------------------------------------------------------------- passes

    def elementwise(self, out: str = "", shape: Matrix = (0, 0)) -> str:
        """A pass; into the declared value ``out`` of ``shape``, or over the shape of an earlier value."""
        if not out:
            fit = self.stored[-4:]
            shape = self.shape(str(self.draw(*fit))) if fit else (self.rows(), self.columns())
        whole = [n for n in self.stored if self.shape(n) == shape]
        first = str(self.draw(*whole)) if whole and self.chance(0.9) else self.given(shape)
        words = shape[1] % 16 == 0
        leaves = [first]
        for _ in range(int(self.rng.integers(0, 3))):
            draw = self.rng.random()
            if draw < 0.25 and whole:
                leaves.append(str(self.draw(*whole)))
            elif draw < 0.4 and words:
                leaves.append(self.given((1, shape[1])))
            elif words:
                leaves += self._periodic(first, shape)
        folds = words and shape[1] <= 128 and self.chance(0.45)
        results = 2 if not out and self.chance(0.15) else 1
        made = [self._chain(shape, list(dict.fromkeys(leaves)), folds, out) for _ in range(results)]
        if not out:
            self.stored += made
            self.passes += made
        if results == 2:
            self.forms.add("two results")
            if self.chance(0.5) and len({self.graph.values[n].tier for n in made}) == 1:
                self.graph.adjacent.append((made[1], made[0]) if self.chance(0.3) else (made[0], made[1]))
                self.forms.add("adjacent")
        return made[0]

    def _chain(self, shape: Matrix, leaves: list[str], folds: bool, out: str) -> str:
        e = Expression(self.rng, self.graph, shape, leaves, folds)
        made = leaves[0]
        for _ in range(int(self.rng.integers(1, 4))):
            made = self._calm(e) if self.calm else e.step()
        fold = folds and not any(op.kind.startswith("row_") and op.result in e.pool for op in self.graph.ops)
        if fold:
            # a pass that folds is over rows, whatever came of the steps
            spread = e.lanes.op("sub", leaves[0], e.lanes.op("row_max", leaves[0]))
            e.pool.append(made := e.lanes.op("add", made, spread))
        if folds and any(n.startswith("p") for n in leaves):
            self.forms.add("fold over product")
        out = out or self.temp("e", shape)
        e.finish(made, out, self.graph.values[out].role)
        return out

    def _calm(self, e: Expression) -> str:
        """An operation that neither overflows nor loses its bound."""
        lanes, v = e.lanes, e.value()
        rows = ("softmax", "mean") if e.folds else ()
        kind = str(self.draw("scale", "max", "sub", "act", *rows))
        wide = [n for n in e.pool if self.shape(n) == e.full]
        if kind == "scale":
            made = lanes.op("mul", v, float(self.draw(0.5, -0.25, 0.75)))
        elif kind in ("max", "sub"):
            made = lanes.op("maximum" if kind == "max" else "sub", v, e.value())
        elif kind == "act":
            made = activation(lanes, str(self.draw("relu", "silu", "gelu_sigmoid")), v)
        elif kind == "softmax":
            v = str(self.draw(*wide))
            made = lanes.op("exp2", lanes.op("sub", v, lanes.op("row_max", v)))
            made = lanes.op("mul", made, lanes.op("recip", lanes.op("row_sum", made)))
        else:
            v = str(self.draw(*wide))
            made = lanes.op("sub", v, lanes.op("row_sum", lanes.op("mul", v, 1.0 / e.full[1])))
        e.pool.append(made)
        return made

    def _periodic(self, beside: str, shape: Matrix) -> list[str]:
        """A value read periodically, joined with ``beside`` in a register; nothing if none fits."""
        m, n = shape
        kind = str(self.draw("repeated", "per_group", "row_repeat", "rows_from"))
        groups = [d for d in _divisors(m, 16) if d > 1]
        if kind in ("per_group", "row_repeat") and not groups:
            return []
        if kind == "repeated":
            rows = int(self.draw(*_divisors(m, 8)))
            name, read = self._source((rows, n)), Spread(0, rows * n, m // rows, 0)
        elif kind == "rows_from":
            row = int(self.rng.integers(1, 9))
            name, read = self._source((m + row, n)), Spread(row * n, m * n, 1, m * n)
        elif kind == "per_group":
            rows = int(self.draw(*groups))
            name, read = self._source((m, n)), Spread(0, n, rows, rows * n)
        else:
            times = int(self.draw(*groups))
            name, read = self._source((m // times, n)), Spread(0, n, times, n)
        self.forms.add(kind)
        lanes = Expression(self.rng, self.graph, shape, [beside]).lanes
        args: list[Argument] = [(beside, None), (name, read)]
        return [lanes.read(str(self.draw("add", "mul", "maximum", "sub")), args[:: self.draw(1, -1)], shape)]

    def _source(self, shape: Matrix) -> str:
        """A stored value of as many elements, or an operand."""
        same = [n for n in self.stored if self.shape(n) == shape]
        return str(self.draw(*same)) if same and self.chance(0.6) else self.given(shape)

    # ---------------------------------------------------------------- parts

    def parts(self) -> str:
        """A buffer that several statements write."""
        blocks = int(self.draw(1, 1, 2, 3))
        heights = [4 * int(self.rng.integers(1, 5)) for _ in range(int(self.draw(1, 2, 2)))]
        widths = [16 * int(self.rng.integers(1, 4)) for _ in range(int(self.draw(1, 2, 2)))]
        if len(heights) == len(widths) == 1:
            widths.append(16)
        buffer = self.temp("b", (blocks * sum(heights), sum(widths)))
        for i, rows in enumerate(heights):
            for j, cols in enumerate(widths):
                window = Window(blocks, sum(heights[:i]), rows, sum(widths[:j]), cols)
                shape = blocks * rows, cols
                part = self.graph.value(
                    Value(f"{buffer}:{i}{j}", "fp16", shape, "temp", of=buffer, window=window)
                ).name
                if self.chance(0.5):
                    self.forms.add("part by product")
                    self.product(part, shape, blocks)
                else:
                    self.forms.add("part by pass")
                    self.elementwise(part, shape)
        self.stored.append(buffer)
        return buffer

    # ---------------------------------------------------------------- the whole

    def finish(self) -> None:
        """What nothing reads is a result, and now and then what is read too."""
        read = {name for op in self.graph.ops for name in op.args}
        for name in self.stored:
            if name not in read or self.chance(0.08):
                for v in list(self.graph.values.values()):
                    if name in (v.name, v.of):
                        self.graph.values[v.name] = replace(v, role="out", tier="")
        for group in self.graph.adjacent:
            tiers = {self.graph.values[n].tier for n in group}
            for n in group if len(tiers) > 1 else ():
                self.graph.values[n] = replace(self.graph.values[n], tier="")
        if not any(v.tier for v in self.graph.values.values()):
            self.forms.discard("tier")


def deep_machine(rng: np.random.Generator) -> tuple[dict[str, Any], MachineSpec]:
    """A pictured machine, or one made by hand."""
    if rng.random() < 0.5:
        body = devices.description(MACHINES[int(rng.integers(len(MACHINES)))])
        return body, spec(json.loads(json.dumps(body)))
    shares = {"emit_fuse": 0.7, "xform_granule": 0.6, "vshuf_pred": 0.8, "stage_l2": 0.7}
    return hand_machine(rng, [name for name, share in shares.items() if rng.random() < share])


def deep_options(rng: np.random.Generator, machine: MachineSpec) -> dict[str, Any]:
    """Options of the first generator, the engine of conversions and the reuse of memory."""
    some = options(rng, machine)
    if rng.random() < 0.5:
        engines = ["auto", "cores", *(["mover"] if "xform_granule" in machine.features else [])]
        some["convert"] = str(rng.choice(engines))
    if rng.random() < 0.3:
        some["reuse_temps"] = bool(rng.random() < 0.5)
    return some


def deep(seed: int, on: tuple[dict[str, Any], MachineSpec] | None = None) -> Kernel:
    """Program number ``seed``, always the same; ``on`` a given machine instead of a random one."""
    rng = np.random.Generator(np.random.PCG64([seed, 1]))
    body, machine = on or deep_machine(rng)
    p = Program(rng, machine, calm=bool(rng.random() < 0.7))
    for _ in range(int(rng.integers(2, 7))):
        kind = str(rng.choice(["product", "pass", "parts"], p=[0.45, 0.43, 0.12]))
        {"product": p.product, "pass": p.elementwise, "parts": p.parts}[kind]()
    if sum(op.kind == "contract" for op in p.graph.ops) > 1:
        p.forms.add("layers")
    p.finish()
    verify(p.graph)
    call = Call(Trace(f"deep_{seed}", p.graph, {}), p.operands)
    return Kernel(seed, "deep", call, body, machine, deep_options(rng, machine), forms=frozenset(p.forms))


def in_pieces(graph: Graph) -> Graph:
    """The graph with every split contraction written as partial products and the pass that adds them.

    The machine rounds each partial sum to FP16 (docs/spec/compiler.md 5.4), which the whole product does not show.
    """
    out = Graph(dict(graph.values), [], list(graph.adjacent))
    for op in graph.ops:
        split, nk = op.attr("split") or 1, op.attr("nk") or 1
        if op.kind != "contract" or split == 1:
            out.ops.append(op)
            continue
        windows = [op.window(i, graph.values[n].shape) for i, n in enumerate(op.args)]
        width = -(-windows[1].cols // (32 * nk)) // split * 32 * nk
        total = ""
        for ko in range(split):
            reads = tuple(
                replace(w, col=w.col + ko * width, cols=min(width, w.cols - ko * width)) for w in windows
            )
            part = f"{op.result}:sum{ko}"
            out.value(Value(part, "fp16", graph.values[op.result].shape, "temp"))
            kept = tuple((k, v) for k, v in op.attrs if k == "batch")
            out.ops.append(Op("contract", op.args, part, kept, reads))
            if not total:
                total = part
                continue
            name = op.result if ko == split - 1 else f"{op.result}:to{ko}"
            if name not in out.values:
                out.value(Value(name, "e8m15", out.values[part].shape, "temp"))
            out.ops.append(Op("add", (total, part), name))
            total = name
    return out
