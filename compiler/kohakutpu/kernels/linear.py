# SPDX-License-Identifier: Apache-2.0
"""Products with an epilogue (docs/spec/kernels.md 4): activation, bias, residual, gating."""

from __future__ import annotations

from kohakutpu.errors import CompileError
from kohakutpu.graph import Graph, Op, Value, verify
from kohakutpu.kernels.formula import Formula
from kohakutpu.kernels.trace import Knob, Trace, tiling

LAYER = "L4"


def linear(
    m: int,
    n: int,
    k: int,
    *,
    activation: str = "",
    bias: bool = False,
    add: bool = False,
    scale: float | None = None,
    gm: int | None = None,
    gn: int | None = None,
    nk: int | None = None,
) -> Trace:
    """y[m, n] = f(s * x w^T + b[n] + r[m, n]) with x[m, k] and w[n, k]; each part is optional.

    Args:
        activation: name of f, "" for none.
        bias, add: read ``b``, one value a column, or ``r``, the full shape.
        scale: the factor s.
        gm, gn, nk: sub-tiles of an instance and K blocks of a chunk; name all three or none.

    Raises:
        CompileError: nothing to do behind the product, an unknown activation, or only some of the knobs.
    """
    parts = [bias, add, scale is not None, bool(activation)]
    if not any(parts):
        raise CompileError("linear: no activation, bias, residual or scale; that is matmul")
    named = tiling("linear", gm, gn, nk)
    graph = _product_graph(m, n, k, ("w",))
    lanes = Formula(graph)
    if bias:
        graph.value(Value("b", "fp16", (1, n), "in"))
    if add:
        graph.value(Value("r", "fp16", (m, n), "in"))
    graph.value(Value("y", "fp16", (m, n), "out"))
    left = sum(parts)

    def out() -> str:
        return "y" if left == 0 else ""

    _contract(graph, "x", "w", "z", named)
    v = "z"
    if scale is not None:
        left -= 1
        v = lanes.op("mul", v, float(scale), out=out())
    if bias:
        left -= 1
        v = lanes.op("add", v, "b", out=out())
    if add:
        left -= 1
        v = lanes.op("add", v, "r", out=out())
    if activation:
        left -= 1
        lanes.activation(activation, v, out=out())
    verify(graph)
    name = "linear" + "".join(
        f"_{part}" for part in ("scale" if scale is not None else "", "bias" * bias, "add" * add, activation) if part
    )
    knobs: dict[str, Knob] = {**named, **({"scale": scale} if scale is not None else {})}
    return Trace(name, graph, {"M": m, "N": n, "K": k}, knobs)


def gated(
    m: int,
    n: int,
    k: int,
    *,
    activation: str = "gelu",
    bias: bool = False,
    gm: int | None = None,
    gn: int | None = None,
    nk: int | None = None,
) -> Trace:
    """y[m, n] = act(x wg^T + bg) * (x wu^T + bu): two products that share the fills of x.

    Args:
        activation: applied to the product with ``wg``, the first weight.
        bias: read ``bg`` and ``bu``, one value a column each.
        gm, gn, nk: sub-tiles of an instance and K blocks of a chunk; name all three or none.

    Raises:
        CompileError: an unknown activation, or only some of the knobs.
    """
    named = tiling("gated", gm, gn, nk)
    graph = _product_graph(m, n, k, ("wg", "wu"))
    lanes = Formula(graph)
    if bias:
        graph.value(Value("bg", "fp16", (1, n), "in"))
        graph.value(Value("bu", "fp16", (1, n), "in"))
    graph.value(Value("y", "fp16", (m, n), "out"))
    _contract(graph, "x", "wg", "zg", named)
    _contract(graph, "x", "wu", "zu", named)
    gate, up = "zg", "zu"
    if bias:
        gate, up = lanes.op("add", gate, "bg"), lanes.op("add", up, "bu")
    lanes.op("mul", lanes.activation(activation, gate), up, out="y")
    verify(graph)
    names = {"gelu": "geglu", "silu": "swiglu"}
    knobs: dict[str, Knob] = {**named, "activation": activation, "bias": int(bias)}
    return Trace(names.get(activation, f"gated_{activation}"), graph, {"M": m, "N": n, "K": k}, knobs)


def _product_graph(m: int, n: int, k: int, weights: tuple[str, ...]) -> Graph:
    graph = Graph()
    graph.value(Value("x", "fp16", (m, k), "in"))
    for w in weights:
        graph.value(Value(w, "fp16", (n, k), "in"))
    return graph


def _contract(graph: Graph, a: str, b: str, result: str, named: dict[str, int]) -> None:
    graph.value(Value(result, "fp16", (graph.values[a].shape[0], graph.values[b].shape[0]), "temp"))
    graph.ops.append(Op("contract", (a, b), result, tuple(sorted(named.items()))))
