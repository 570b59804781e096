# SPDX-License-Identifier: Apache-2.0
"""Graphs, machines, knobs and operands of random kernels, all from one seed (docs/spec/compiler.md 17)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

import ktpu
from kohakubench.formulas import ACTIVATIONS, activation
from kohakubench.programs import description, spec
from kohakutpu.chain import COMPARES, FOLDS
from kohakutpu.graph import Graph, Op, Value, verify
from kohakutpu.kernels import Trace
from kohakutpu.kernels.formula import Formula
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.tensor import Call


@dataclass(frozen=True)
class Kernel:
    """A call, the machine it is for, and the options it is compiled with.

    ``norm``: the error class of docs/spec/kernels.md 0 that holds for it, "" for none. ``forms``: what a program of
    several layers contains.
    """

    seed: int
    kind: str
    call: Call
    body: dict[str, Any]
    machine: MachineSpec
    options: dict[str, Any]
    norm: str = ""
    forms: frozenset[str] = frozenset()

    @property
    def repeat(self) -> str:
        """The command that repeats this kernel alone."""
        deep = "--deep " if self.kind == "deep" else ""
        return f"PYTHONPATH=compiler:driver:tb python tb/random_kernels.py {deep}{self.seed}"


# ------------------------------------------------------------------ machines and knobs


@lru_cache(maxsize=512)
def _machine(clusters: int, cores: int, size: int, tiles: int, flight: int, features: tuple[str, ...]) -> Any:
    body = description(
        clusters,
        cores=cores,
        features=features,
        stage_bytes=(2 << 20) if "stage_l2" in features else 0,
        MG_GA=size,
        MG_GB=size,
        MG_TILES=tiles,
    )
    body["max_inflight"] = {**body["max_inflight"], "MG": flight}
    return body, spec(body)


def _random_machine(rng: np.random.Generator) -> Any:
    features: list[str] = ["emit_fuse"] if rng.random() < 0.7 else []
    if rng.random() < 0.8:
        features += ["xform_granule", "stage_l2"]
    return hand_machine(rng, features)


def hand_machine(rng: np.random.Generator, features: list[str]) -> tuple[dict[str, Any], MachineSpec]:
    """A machine with ``features`` and random numbers and sizes of units."""
    made: tuple[dict[str, Any], MachineSpec] = _machine(
        int(rng.choice([1, 2, 4])),
        int(rng.choice([1, 2, 4])),
        int(rng.choice([64, 128, 512])),
        int(rng.choice([16, 512])),
        int(rng.choice([1, 4])),
        tuple(features),
    )
    return made


def options(rng: np.random.Generator, machine: MachineSpec) -> dict[str, Any]:
    some: dict[str, Any] = {
        "fuse": rng.choice(["auto", "auto", "never", "require"]),
        "interleave": int(rng.choice([0, 0, 0, 1, 2, 3])),
        "group": int(rng.choice([1, 1, 2, 4])),
        "emit_fuse": bool(rng.random() < 0.7),
        "occupancy": bool(rng.random() < 0.7),
        "clusters": int(rng.integers(1, len(machine.units("MG")) + 1)),
        "cores": int(rng.integers(1, len(machine.units("VC")) + 1)),
        "pass_budget": int(rng.choice([1, 5, 17, 128])),
    }
    kept = {k: v for k, v in some.items() if rng.random() < 0.6}
    return {k: str(v) if k == "fuse" else v for k, v in kept.items()}


def _tiling(rng: np.random.Generator, machine: MachineSpec) -> dict[str, int]:
    """A tiling by hand that fits the cluster, or none."""
    if rng.random() < 0.5:
        return {}
    half_a, half_b = machine.bank_entries
    gm, gn = int(rng.integers(1, 5)), int(rng.choice([1, 2, 3, 4, 4, 8]))
    while gm * gn > machine.tiles:
        gm, gn = max(1, gm // 2), max(1, gn // 2)
    return {"gm": gm, "gn": gn, "nk": int(rng.integers(1, 1 + min(3, half_a // gm, half_b // gn)))}


# ------------------------------------------------------------------ values


def half(rng: np.random.Generator, shape: tuple[int, int], scale: float = 1.0, *, wild: bool = False) -> np.ndarray:
    """Normal values; ``wild`` spreads magnitudes and puts zeros, subnormals and the largest among them."""
    values = rng.standard_normal(shape) * scale
    if wild:
        values = values * 10.0 ** rng.uniform(-5, 3, shape)
        special = rng.choice([0.0, -0.0, 6e-8, -3e-5, 65504.0, -65504.0, 1.0], shape)
        values = np.where(rng.random(shape) < 0.05, special, values)
    with np.errstate(over="ignore"):
        return np.clip(values, -65504, 65504).astype(np.float16)


def _extent(rng: np.random.Generator, top: int) -> int:
    """1..top, small ones as often as large ones."""
    return min(top, int(2 ** rng.uniform(0, np.log2(top + 1))))


# ------------------------------------------------------------------ random expressions


@dataclass
class Expression:
    """Random lane operations in a graph; every leaf is read, and a value is often read again."""

    rng: np.random.Generator
    graph: Graph
    full: tuple[int, int]
    leaves: list[str]
    folds: bool = False
    lanes: Formula = field(init=False)
    pool: list[str] = field(init=False)
    unread: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.lanes = Formula(self.graph)
        self.pool, self.unread = list(self.leaves), list(self.leaves)

    def pick(self) -> str | float:
        """A leaf nobody reads yet, an earlier value or a constant."""
        draw = self.rng.random()
        if self.unread and draw < 0.45:
            return self.unread.pop(int(self.rng.integers(len(self.unread))))
        if draw < 0.6:
            return float(self.rng.choice([0.0, 1.0, -1.0, 0.5, -0.25, 3.0, round(self.rng.uniform(-2, 2), 3)]))
        recent = self.pool[-4:] if draw < 0.85 else self.pool
        return str(self.rng.choice(recent))

    def value(self) -> str:
        """A picked value that is no number."""
        made = self.pick()
        return made if isinstance(made, str) else str(self.rng.choice(self.pool))

    def step(self) -> str:
        """One random operation, activation or choice."""
        kind = str(self.rng.choice(["one", "two", "two", "three", "act", "choose", "fold" if self.folds else "two"]))
        if kind == "one":
            op = str(self.rng.choice(["neg", "absolute", "exp2", "log2", "recip", "rsqrt"]))
            made = self.lanes.op(op, self.value())
        elif kind == "two":
            op = str(self.rng.choice(["add", "sub", "mul", "maximum", "minimum"]))
            args = [self.value(), self.pick()]
            made = self.lanes.op(op, *(args if self.rng.random() < 0.5 else args[::-1]))
        elif kind == "three":
            made = self.lanes.op("fma", self.value(), self.pick(), self.pick())
        elif kind == "act":
            made = activation(self.lanes, str(self.rng.choice(ACTIVATIONS)), self.value())
        elif kind == "choose":
            test = self.value()
            if self.rng.random() < 0.7:
                test = self.lanes.op(str(self.rng.choice(sorted(COMPARES))), test, self.pick())
            made = self.lanes.op("where", test, self.value(), self.pick())
        else:
            wide = [n for n in self.pool if self.graph.values[n].shape == self.full]
            made = self.lanes.op(str(self.rng.choice(sorted(FOLDS))), str(self.rng.choice(wide)))
        self.pool.append(made)
        return made

    def _behind(self, made: str) -> set[str]:
        """Everything ``made`` depends on, itself included."""
        makers = {op.result: op for op in self.graph.ops}
        found, left = set(), [made]
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += makers[name].args if name in makers else ()
        return found

    def finish(self, made: str, out: str, role: str = "out") -> None:
        """Join ``made`` with the leaves it does not depend on, give it the full shape, and store it as ``out``,
        which may be declared already."""
        reached = self._behind(made)
        rest = [n for n in self.leaves if n not in reached]
        self.unread = []
        wide = [n for n in self.leaves if self.graph.values[n].shape == self.full]
        if self.graph.values[made].shape != self.full and not any(n in wide for n in rest):
            rest.append(wide[0])
        for n in rest[:-1]:
            made = self.lanes.op(str(self.rng.choice(["add", "mul", "maximum"])), made, n)
        if out not in self.graph.values:
            self.graph.value(Value(out, "fp16", self.full, role))  # type: ignore[arg-type]
        if rest:
            self.lanes.op("add", made, rest[-1], out=out)
        else:
            op = str(self.rng.choice(["add", "mul", "maximum"]))
            self.lanes.op(op, made, float(self.rng.choice([0.5, -1.0, 1.5])), out=out)


# ------------------------------------------------------------------ kinds of kernels


def _lanes(rng: np.random.Generator, machine: MachineSpec) -> tuple[Graph, dict[str, np.ndarray], str]:
    """A chain or several on operands from memory, with or without folds, some results read again."""
    folds = bool(rng.random() < 0.35)
    rows = _extent(rng, 48)
    columns = int(16 * rng.integers(1, 9)) if folds or rng.random() < 0.5 else _extent(rng, 150)
    if rng.random() < 0.03:
        columns = 136
    graph, operands = Graph(), {}
    leaves = []
    wild = bool(rng.random() < 0.25)
    for i in range(int(rng.integers(1, 5))):
        name, shape = f"x{i}", (rows, columns)
        if i and columns % 16 == 0 and rng.random() < 0.3:
            shape = (1, columns)
        graph.value(Value(name, "fp16", shape, "in"))
        operands[name] = half(rng, shape, wild=wild)
        leaves.append(name)
    e = Expression(rng, graph, (rows, columns), leaves, folds)
    for _ in range(int(rng.integers(1, 9))):
        made = e.step()
    if rng.random() < 0.3:
        e.finish(made, "y0", "out" if rng.random() < 0.6 else "temp")
        e.pool.append("y0")
        e.leaves.append("y0")
        for _ in range(int(rng.integers(1, 4))):
            made = e.step()
    e.finish(made, "y")
    return graph, operands, ""


def _contract(graph: Graph, a: str, b: str, out: str, knobs: dict[str, int], role: str = "temp") -> None:
    shape = (graph.values[a].shape[0], graph.values[b].shape[0])
    graph.value(Value(out, "fp16", shape, role))  # type: ignore[arg-type]
    graph.ops.append(Op("contract", (a, b), out, tuple(sorted(knobs.items()))))


def _inputs(rng: np.random.Generator, graph: Graph, operands: dict[str, np.ndarray], **shapes: tuple[int, int]) -> None:
    wild = bool(rng.random() < 0.15)
    for name, shape in shapes.items():
        graph.value(Value(name, "fp16", shape, "in"))
        scale = 1.0 if name in "xbr" else 1.0 / np.sqrt(shape[1])
        operands[name] = half(rng, shape, scale, wild=wild)


def _products(rng: np.random.Generator, machine: MachineSpec) -> tuple[Graph, dict[str, np.ndarray], str]:
    """One or two products and a random epilogue, with per-channel and full-shape operands."""
    m, n, k = _extent(rng, 80), _extent(rng, 80), _extent(rng, 200)
    graph, operands, knobs = Graph(), {}, _tiling(rng, machine)
    two = bool(rng.random() < 0.4)
    _inputs(rng, graph, operands, x=(m, k), w=(n, k), **({"u": (n, k)} if two else {}))
    side = {name: shape for name, shape in (("b", (1, n)), ("r", (m, n))) if rng.random() < 0.4}
    _inputs(rng, graph, operands, **side)
    kept = bool(rng.random() < 0.1)
    _contract(graph, "x", "w", "z", knobs, "out" if kept else "temp")
    leaves = ["z", *side]
    if two:
        _contract(graph, "x", "u", "v", knobs)
        leaves.insert(1, "v")
    e = Expression(rng, graph, (m, n), leaves, bool(rng.random() < 0.05))
    for _ in range(int(rng.integers(1, 6))):
        made = e.step()
    e.finish(made, "y")
    return graph, operands, ""


def _layers(rng: np.random.Generator, machine: MachineSpec) -> tuple[Graph, dict[str, np.ndarray], str]:
    """Two products behind one another, with or without an epilogue between and behind."""
    m, k, n = _extent(rng, 64), _extent(rng, 100), _extent(rng, 64)
    hidden = int(rng.choice([32, 64, 128])) if rng.random() < 0.85 else _extent(rng, 100)
    graph, operands, knobs = Graph(), {}, _tiling(rng, machine)
    if knobs and rng.random() < 0.8:
        # rows can be made of a value in tiles only if a row of a tile is whole words
        knobs.update(gm=int(rng.integers(1, 5)), gn=4, nk=1)
    _inputs(rng, graph, operands, x=(m, k), w=(hidden, k), u=(n, hidden))
    if rng.random() < 0.5:
        _contract(graph, "x", "w", "h", knobs)
    else:
        _contract(graph, "x", "w", "z", knobs)
        e = Expression(rng, graph, (m, hidden), ["z"])
        e.finish(e.step(), "h", "temp")
    if rng.random() < 0.6:
        _contract(graph, "h", "u", "y", knobs if rng.random() < 0.5 else _tiling(rng, machine), "out")
    else:
        _contract(graph, "h", "u", "q", knobs)
        e = Expression(rng, graph, (m, n), ["q"])
        e.finish(e.step(), "y")
    return graph, operands, ""


def _library(rng: np.random.Generator, machine: MachineSpec) -> tuple[Graph, dict[str, np.ndarray], str]:
    """A kernel of the library on the operands of docs/spec/kernels.md 0, with the class that grades it."""
    m, n, k = (4 * _extent(rng, 16) for _ in range(3))
    k = 32 * _extent(rng, 8)
    knobs = _tiling(rng, machine)
    x, w, u = half(rng, (m, k)), half(rng, (n, k), 0.1), half(rng, (n, k), 0.1)
    b, r = half(rng, (1, n), 0.2), half(rng, (m, n))
    act = str(rng.choice(ACTIVATIONS[:4]))
    rows, width = _extent(rng, 64), int(16 * rng.integers(1, 9))
    v, gain = half(rng, (rows, width)), (1 + 0.2 * rng.standard_normal(width)).astype(np.float16)
    shift = half(rng, (1, width), 0.2)
    calls = {
        "matmul": (lambda: ktpu.matmul(x, w, **knobs), "M"),
        "act": (lambda: ktpu.linear(x, w, activation=act, **knobs), "M"),
        "bias": (lambda: ktpu.linear(x, w, bias=b, **knobs), "M"),
        "bias_act": (lambda: ktpu.linear(x, w, bias=b, activation=act, **knobs), "M"),
        "add": (lambda: ktpu.linear_add(x, w, r, **knobs), "M"),
        "gated": (lambda: ktpu.geglu(x, w, u, activation=act, **knobs), ""),
        "softmax": (lambda: ktpu.softmax(v), "V"),
        "layernorm": (lambda: ktpu.layernorm(v, gain, shift), "V"),
        "rmsnorm": (lambda: ktpu.rmsnorm(v, gain), "V"),
        "lane": (lambda: ktpu.elementwise({"x": v}, [(act, ("x",))]), "V"),
    }
    make, norm = calls[str(rng.choice(sorted(calls)))]
    call = make()
    # a percentile of a few elements says nothing, and the peak of a few is no peak
    return call.trace.graph, dict(call.operands), norm if m * n >= 1024 and rows * width >= 1024 else ""


KINDS = {"lanes": _lanes, "products": _products, "layers": _layers, "library": _library}
_SHARES = {"lanes": 0.4, "products": 0.3, "layers": 0.12, "library": 0.18}


def kernel(seed: int, on: tuple[dict[str, Any], MachineSpec] | None = None) -> Kernel:
    """Kernel number ``seed``, always the same; ``on`` a given machine instead of a random one."""
    rng = np.random.Generator(np.random.PCG64(seed))
    body, machine = on or _random_machine(rng)
    kind = str(rng.choice(list(_SHARES), p=list(_SHARES.values())))
    graph, operands, norm = KINDS[kind](rng, machine)
    verify(graph)
    call = Call(Trace(f"random_{seed}", graph, {}), operands)
    return Kernel(seed, kind, call, body, machine, options(rng, machine), norm)
