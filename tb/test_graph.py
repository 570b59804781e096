# SPDX-License-Identifier: Apache-2.0
"""The graph: windows, spreads, parts and groups against numpy, and what the verifier refuses (compiler.md 4)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kohakutpu.errors import CompileError
from kohakutpu.graph import Graph, Op, Value, buffers, interpret, requests, verify
from kohakutpu.schedule import Contraction, Elementwise
from kohakutpu.views import Spread, Window

pytestmark = pytest.mark.unit

F64 = npt.NDArray[np.float64]


def rand(*shape: int, seed: int = 0) -> F64:
    """Values FP16 holds."""
    return np.random.default_rng((seed, *shape)).standard_normal(shape).astype(np.float16).astype(np.float64)


def half(array: F64) -> F64:
    """Rounded to FP16."""
    return array.astype(np.float16).astype(np.float64)


def graph(*ops: Op, adjacent: tuple[tuple[str, ...], ...] = (), **values: Any) -> Graph:
    """A graph of values ``name=(role, shape)``, ``(role, shape, dtype)``, or a whole Value without its name."""
    g = Graph(ops=list(ops), adjacent=list(adjacent))
    for name, v in values.items():
        if isinstance(v, dict):
            g.value(Value(name, **{"dtype": "fp16", **v}))
        else:
            role, shape, *dtype = v
            g.value(Value(name, dtype[0] if dtype else "fp16", shape, role))
    return g


def part(of: str, window: Window, role: str = "out") -> dict[str, Any]:
    """A part of a buffer."""
    return {"shape": (window.blocks * window.rows, window.cols), "role": role, "of": of, "window": window}


# ------------------------------------------------------------------------------------------------- contractions


@pytest.mark.parametrize("seed", range(12))
def test_windows_batch_and_join(seed: int) -> None:
    """Random windows of both operands, blocks of their own or shared, heads joined in one sum."""
    rng = np.random.default_rng(seed)
    batch, join = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    blocks_a, blocks_b = int(rng.choice([1, batch * join])), int(rng.choice([1, batch]))
    m, n, k, skip = (int(v) for v in rng.integers(1, 6, 4))
    rows_a, rows_b, cols_a, cols_b = m + skip, n + skip + 1, k + skip, join * k + 2
    a, b = rand(blocks_a * rows_a, cols_a, seed=seed), rand(blocks_b * rows_b, cols_b, seed=seed)
    reads = Window(blocks_a, skip, m, 1, k), Window(blocks_b, 1, n, 2, join * k)
    if skip < 1:
        reads = Window(blocks_a, 0, m, 0, k), reads[1]
    op = Op("contract", ("a", "b"), "c", (("batch", batch), ("join", join)), reads)
    c = interpret(graph(op, a=("in", a.shape), b=("in", b.shape), c=("out", (batch * m, n))), {"a": a, "b": b})["c"]
    want = np.zeros((batch * m, n))
    for z in range(batch):
        for h in range(join):
            block = z * join + h if blocks_a > 1 else 0
            left = a[block * rows_a + reads[0].row :][:m, reads[0].col :][:, :k]
            right = b[(z if blocks_b > 1 else 0) * rows_b + 1 :][:n, 2 + h * k :][:, :k]
            want[z * m : (z + 1) * m] += left @ right.T
    assert np.array_equal(c, half(want))


def contract(attrs: tuple[tuple[str, Any], ...] = (), reads: tuple[Any, ...] = (), **shapes: tuple[int, int]) -> Graph:
    """c = a b^T with attributes and windows."""
    roles = {"a": "in", "b": "in", "c": "out"}
    named = {"a": (8, 64), "b": (4, 64), "c": (8, 4), **shapes}
    return graph(Op("contract", ("a", "b"), "c", attrs, reads), **{n: (roles[n], s) for n, s in named.items()})


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (contract((("batch", 3),), (Window(3, 0, 2, 0, 64), None)), "8 rows of a are no 3 equal blocks"),
        (contract((), (Window(1, 0, 8, 32, 64), None)), r"\[0:8, 32:96\] lies outside a, blocks of \(8, 64\)"),
        (contract((), (Window(2, 2, 4, 0, 64), None)), r"\[2\*2:6, 0:64\] lies outside a, blocks of \(4, 64\)"),
        (contract((), (Window(1, -4, 8, 0, 64), None)), r"\[-4:4, 0:64\] lies outside a"),
        (contract((), (Window(2, 0, 4, 0, 64), None)), "c reads 2 blocks of a; it takes 1"),
        (contract((("batch", 4),), (Window(2, 0, 4, 0, 64), None)), "c reads 2 blocks of a; it takes 4 or 1"),
        (contract((("batch", 2),), (Window(2, 0, 4, 0, 64), Window(4, 0, 1, 0, 64))), "4 blocks of b; it takes 2 or 1"),
        (contract((), (Window(1, 0, 8, 0, 32), None)), "a has K = 32, b has K = 64; both reduce it"),
        (contract((("join", 2),), (Window(2, 0, 4, 0, 64), None)), "a has K = 2 x 64, b has K = 64"),
        (contract((), (Window(1, 0, 4, 0, 64), None)), r"c is stated as \(8, 4\), operands give \(4, 4\)"),
        (contract((), (Spread(0, 64, 1, 64), None)), "a is read as .* the cluster reads windows"),
        (contract((), (None,)), "c states 1 reads for 2 operands"),
        (contract((("batch", 0),)), "c has batch = 0; it must be at least 1"),
        (contract((("gm", 2),)), "c names gm alone; name gm, gn and nk or none"),
        (contract((("split", 2), ("route", "mail"))), "route 'mail'"),
        (contract((("route", "peer"),)), "names route 'peer' without a split"),
        (contract((("split", 3), ("route", "core"))), "c splits 2 chunks of K into 3"),
        (
            contract((("gm", 1), ("gn", 1), ("nk", 2), ("split", 2), ("route", "core"))),
            "c splits 1 chunks of K into 2; the split divides the chunks",
        ),
        (contract((("rows", 2),)), r"contract: unknown attributes \['rows'\]"),
    ],
)
def test_contractions_refused(made: Graph, message: str) -> None:
    """One condition each; without it the graph is sound."""
    verify(contract((("split", 2), ("route", "peer"))))
    verify(contract((("split", 2),)))
    with pytest.raises(CompileError, match=message):
        verify(made)


# ------------------------------------------------------------------------------------------------------ spreads


def add(spread: Spread, x: tuple[int, int] = (4, 8), z: tuple[int, int] = (4, 8)) -> Graph:
    """y = x + a spread read of z."""
    return graph(Op("add", ("x", "z"), "y", (), (None, spread)), x=("in", x), z=("in", z), y=("out", x))


@pytest.mark.parametrize("seed", range(12))
def test_spread_reads(seed: int) -> None:
    """Element by element as the period says, and rows of it reduced."""
    rng = np.random.default_rng(seed)
    take, repeat, periods, advance, first = (int(v) for v in rng.integers(1, 5, 5))
    elements = take * repeat * periods
    z = rand(1, first + advance * periods + take, seed=seed)
    at = [first + p * advance + t for p in range(periods) for _ in range(repeat) for t in range(take)]
    x = rand(periods, take * repeat, seed=seed)
    spread = Spread(first, take, repeat, advance)
    assert at == list(spread.sources(elements))
    assert max(at) == spread.last(elements)
    want = z[0, at].reshape(x.shape)
    assert np.array_equal(interpret(add(spread, x.shape, z.shape), {"x": x, "z": z})["y"], half(x + want))
    fold = Op("row_sum", ("z",), "t", (("rows", periods), ("cols", take * repeat)), (spread,))
    g = graph(
        fold,
        Op("mul", ("t", "x"), "y"),
        x=("in", x.shape),
        z=("in", z.shape),
        t=("temp", (periods, 1), "e8m15"),
        y=("out", x.shape),
    )
    got = interpret(g, {"x": x, "z": z})["y"]
    assert np.abs(got - want.sum(axis=1, keepdims=True) * x).max() <= 2e-3 * (1 + np.abs(got).max())


def test_one_buffer_read_in_two_ways() -> None:
    """In one op and in one pass, where each way is an operand of its own."""
    x = rand(4, 32)
    g = graph(
        Op("add", ("x", "x"), "y", (), (None, Spread(0, 32, 4, 0))),
        x=("in", (4, 32)),
        y=("out", (4, 32)),
    )
    assert np.array_equal(interpret(g, {"x": x})["y"], half(x + x[:1]))
    (made,) = requests(g)
    assert isinstance(made, Elementwise)
    assert [o.name for o in made.operands] == ["x", "x"]
    assert made.reads == (None, Spread(0, 32, 4, 0))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (add(Spread(1, 32, 1, 32)), r"reaches element 32 of z, which has 32"),
        (add(Spread(0, 8, 3, 8)), r"has a period of 24 elements, y works on 32; the period divides them"),
        (add(Spread(0, 0, 1, 8)), r"first, advance >= 0 and take, repeat >= 1"),
        (add(Spread(0, 8, 1, -8)), r"first, advance >= 0"),
        (
            graph(Op("neg", ("x",), "y", (), (Window(1, 0, 4, 0, 8),)), x=("in", (4, 8)), y=("out", (4, 8))),
            "a lane operation takes a spread",
        ),
        (
            graph(Op("row_sum", ("x",), "y", (), (Spread(0, 32, 1, 32),)), x=("in", (4, 8)), y=("out", (4, 1))),
            "y folds a spread read; state rows and cols",
        ),
        (
            graph(Op("neg", ("x",), "y", (("rows", 4),)), x=("in", (4, 8)), y=("out", (4, 8))),
            "y states rows or cols alone",
        ),
        (
            graph(Op("neg", ("x",), "y", (("rows", 8), ("cols", 8))), x=("in", (4, 8)), y=("out", (8, 8))),
            r"do not fit; an extent is equal or 1",
        ),
        (
            graph(
                Op("neg", ("x",), "t"),
                Op("neg", ("t",), "y", (), (Spread(0, 32, 1, 32),)),
                x=("in", (4, 8)),
                t=("temp", (4, 8), "e8m15"),
                y=("out", (4, 8)),
            ),
            "t is read as .* but is no buffer; store it first",
        ),
    ],
)
def test_spreads_refused(made: Graph, message: str) -> None:
    """One condition each."""
    with pytest.raises(CompileError, match=message):
        verify(made)


def test_narrow_values_are_stored_to_all_of_a_buffer() -> None:
    """A value a row, one row, and a number; registers keep the shape operands give."""
    x, b = rand(4, 16), rand(1, 16)
    g = graph(
        Op("row_max", ("x",), "y"),
        Op("neg", ("b",), "z"),
        Op("neg", ("k",), "u"),
        x=("in", (4, 16)),
        b=("in", (1, 16)),
        k={"role": "const", "dtype": "e8m15", "shape": (1, 1), "number": 2.5},
        y=("out", (4, 16)),
        z=("out", (4, 16)),
        u=("out", (4, 16)),
    )
    got = interpret(g, {"x": x, "b": b})
    assert np.array_equal(got["y"], np.broadcast_to(x.max(axis=1, keepdims=True), (4, 16)))
    assert np.array_equal(got["z"], np.broadcast_to(-b, (4, 16)))
    assert np.array_equal(got["u"], np.full((4, 16), -2.5))
    wide = graph(
        Op("row_max", ("x",), "t"),
        Op("add", ("t", "x"), "y"),
        x=("in", (4, 16)),
        t=("temp", (4, 16), "e8m15"),
        y=("out", (4, 16)),
    )
    with pytest.raises(CompileError, match=r"t is stated as \(4, 16\), operands give \(4, 1\)"):
        verify(wide)


def test_a_fold_repeats_its_operand_up_to_the_stated_row() -> None:
    """The sum of a value a row over 16 columns is 16 times the value."""
    x = rand(4, 16)
    g = graph(
        Op("row_max", ("x",), "t"),
        Op("row_sum", ("t",), "y", (("rows", 4), ("cols", 16))),
        x=("in", (4, 16)),
        t=("temp", (4, 1), "e8m15"),
        y=("out", (4, 16)),
    )
    assert np.array_equal(interpret(g, {"x": x})["y"], half(np.broadcast_to(16 * x.max(1, keepdims=True), (4, 16))))


# -------------------------------------------------------------------------------------------------------- parts


def parts(*windows: Window, read: bool = False, order: tuple[int, ...] | None = None) -> Graph:
    """y [8][6] written in parts, each the negative of an input, then read as a whole."""
    ops = [Op("neg", (f"x{i}",), f"p{i}") for i in (order or range(len(windows)))]
    values: dict[str, Any] = {f"x{i}": ("in", (w.blocks * w.rows, w.cols)) for i, w in enumerate(windows)}
    values |= {"y": ("out", (8, 6))} | {f"p{i}": part("y", w) for i, w in enumerate(windows)}
    if read:
        ops.append(Op("neg", ("y",), "z"))
        values["z"] = ("out", (8, 6))
    return graph(*ops, **values)


QUARTERS = (Window(2, 0, 1, 0, 6), Window(2, 1, 3, 0, 4), Window(2, 1, 3, 4, 2))


def test_parts_make_up_their_buffer() -> None:
    """Blocks, rows and columns, in any order; the whole is read when the last part is there."""
    arrays = {f"x{i}": rand(w.blocks * w.rows, w.cols, seed=i) for i, w in enumerate(QUARTERS)}
    want = np.zeros((2, 4, 6))
    for i, w in enumerate(QUARTERS):
        want[:, w.row : w.row + w.rows, w.col : w.col + w.cols] = -arrays[f"x{i}"].reshape(w.blocks, w.rows, w.cols)
    for order in ((0, 1, 2), (2, 0, 1)):
        got = interpret(parts(*QUARTERS, read=True, order=order), arrays)
        assert set(got) == {"y", "z"}
        assert np.array_equal(got["y"], want.reshape(8, 6))
        assert np.array_equal(got["z"], -want.reshape(8, 6))


def test_requests_carry_parts_and_parents() -> None:
    g = parts(*QUARTERS, read=True)
    made = requests(g)
    stored = [r for q in made if isinstance(q, Elementwise) for r in q.results]
    assert [(r.name, r.of, r.window) for r in stored][:2] == [("p0", "y", QUARTERS[0]), ("p1", "y", QUARTERS[1])]
    assert [(o.name, o.shape, o.of) for o in buffers(g)] == [("y", (8, 6), "")]
    last = made[-1]
    assert isinstance(last, Elementwise)
    assert [o.name for o in last.operands] == ["y"]


HALVES = (Window(1, 0, 4, 0, 6), Window(1, 4, 4, 0, 6))


def changed(name: str, value: Any, *ops: Op) -> Graph:
    """Halves of y with one value exchanged and more ops behind."""
    g = parts(*HALVES)
    g.values[name] = Value(name, **{"dtype": "fp16", **value})
    g.ops += ops
    return g


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (parts(QUARTERS[0], QUARTERS[1]), r"y\[1, 4\] is written by no part; the parts of a buffer cover it exactly"),
        (parts(*HALVES, Window(1, 3, 1, 5, 1)), r"y\[3, 5\] is written by more than one part"),
        (changed("p1", part("y", Window(1, 5, 4, 0, 6))), r"part p1: \[5:9, 0:6\] lies outside y"),
        (changed("p1", part("y", Window(3, 0, 1, 0, 6))), "part p1: 8 rows of y are no 3 equal blocks"),
        (changed("p1", part("q", HALVES[1])), "part p1 of q: q was never declared"),
        (changed("p1", part("x0", HALVES[1])), "part p1 of x0, in fp16; only buffers are written"),
        (changed("p1", part("p0", HALVES[1])), "p0, which is itself a part of y; name y"),
        (changed("p1", part("y", HALVES[1], "temp")), "part p1 is temp fp16, its buffer out fp16; they agree"),
        (
            changed("p1", {**part("y", HALVES[1]), "shape": (3, 6)}),
            r"p1 is stated as \(3, 6\), its window gives \(4, 6\)",
        ),
        (changed("p1", {**part("y", HALVES[1]), "window": None}), "part p1 of y has no window"),
        (changed("z", {"shape": (4, 6), "role": "out", "window": HALVES[0]}), r"z has window .* of no buffer"),
        (changed("p2", part("y", HALVES[1])), "part p2 of y is never written"),
        (
            changed("z", {"shape": (4, 6), "role": "out"}, Op("neg", ("p0",), "z")),
            "p0 is a part of y; read y",
        ),
        (changed("z", {"shape": (8, 6), "role": "out"}, Op("neg", ("x0",), "p0")), "p0 is assigned a second time"),
        (changed("w", {"shape": (8, 6), "role": "in"}, Op("neg", ("w",), "y")), "value y is assigned a second time"),
    ],
)
def test_parts_refused(made: Graph, message: str) -> None:
    """One condition each; the halves by themselves are sound."""
    verify(parts(*HALVES))
    with pytest.raises(CompileError, match=message):
        verify(made)


def test_a_buffer_is_read_after_its_last_part() -> None:
    g = parts(*HALVES, read=True)
    g.ops.insert(1, g.ops.pop())
    with pytest.raises(CompileError, match="y is read before its part p1 is written"):
        verify(g)


def test_a_parent_is_written_in_parts_only() -> None:
    g = parts(*HALVES)
    g.ops.insert(0, Op("neg", ("w",), "y"))
    g.value(Value("w", "fp16", (8, 6), "in"))
    with pytest.raises(CompileError, match="y is written in parts; write a part of it"):
        verify(g)


# ------------------------------------------------------------------------------------------- placement, printing


def placed(*groups: tuple[str, ...], tier: str = "l2") -> Graph:
    """Two results beside one another, one of them with a tier."""
    return graph(
        Op("neg", ("x",), "t"),
        Op("exp2", ("t",), "y"),
        Op("exp2", ("x",), "z"),
        adjacent=groups,
        x=("in", (4, 8)),
        t=("temp", (4, 8), "e8m15"),
        y={"role": "out", "shape": (4, 8), "tier": tier},
        z=("out", (4, 8)),
    )


def test_groups_and_tiers_print_and_reach_the_schedule() -> None:
    g = placed(("y", "z"))
    verify(g)
    assert "out y: fp16[4, 8] tier=l2" in g.text()
    assert "adjacent y z" in g.text()
    (made,) = requests(g)
    assert isinstance(made, Elementwise)
    assert [r.tier for r in made.results] == ["l2", ""]


def test_reads_print() -> None:
    g = contract((("batch", 2),), (Window(2, 0, 4, 0, 64), None))
    assert "c = contract(a[2*0:4, 0:64], b) batch=2" in g.text()
    assert "y = add(x, z(4+8x1+8))" in add(Spread(4, 8, 1, 8)).text()
    assert "out p0: fp16[4, 6] of y[0:4, 0:6]" in parts(*HALVES).text()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (placed(("y",)), "adjacent group y: a group is two values or more"),
        (placed(("y", "q")), "value q was never declared"),
        (placed(("y", "t")), "t is no buffer and has no place of its own"),
        (placed(("y", "z"), ("z", "x")), "z has a place already; a value is in one group, once"),
        (placed(tier="l3"), "y asks for tier 'l3'; known"),
    ],
)
def test_placement_refused(made: Graph, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        verify(made)


def test_a_part_has_no_place_in_a_group() -> None:
    g = parts(*HALVES)
    g.adjacent.append(("p0", "p1"))
    with pytest.raises(CompileError, match="p0 is a part of y and has no place of its own"):
        verify(g)


# ------------------------------------------------------------------------------------------------------- passes


def test_contraction_requests_keep_everything() -> None:
    g = contract((("batch", 2), ("split", 2), ("route", "peer")), (Window(2, 0, 4, 0, 64), None))
    (made,) = requests(g)
    assert isinstance(made, Contraction)
    assert (made.batch, made.join, made.split, made.route) == (2, 1, 2, "peer")
    assert (made.a_window, made.b_window, made.tiling) == (Window(2, 0, 4, 0, 64), None, None)
    assert made.extents == (4, 4, 64)


def test_results_of_one_shape_that_read_nothing_stored_are_one_pass() -> None:
    """The running state of attention: four results, the register values read, not the stored ones."""
    m, n = 4, 32
    names = ("weights", "corr", "total1", "top1")
    g = graph(
        Op("row_max", ("s",), "peak"),
        Op("maximum", ("top0", "peak"), "m2"),
        Op("sub", ("s", "m2"), "d"),
        Op("exp2", ("d",), "p"),
        Op("exp2", ("d",), "weights"),
        Op("sub", ("top0", "m2"), "e"),
        Op("exp2", ("e",), "c"),
        Op("exp2", ("e",), "corr"),
        Op("mul", ("total0", "c"), "u"),
        Op("row_sum", ("p",), "w"),
        Op("add", ("u", "w"), "total1"),
        Op("maximum", ("top0", "peak"), "top1"),
        Op("mul", ("weights", "corr"), "late"),
        **dict.fromkeys(("s", "top0", "total0"), ("in", (m, n))),
        **dict.fromkeys(("peak", "w"), ("temp", (m, 1), "e8m15")),
        **dict.fromkeys(("m2", "d", "p", "e", "c", "u"), ("temp", (m, n), "e8m15")),
        **dict.fromkeys((*names, "late"), ("out", (m, n))),
    )
    first, second = requests(g)
    assert isinstance(first, Elementwise)
    assert isinstance(second, Elementwise)
    assert tuple(r.name for r in first.results) == names
    assert {o.name for o in first.operands} == {"s", "top0", "total0"}
    assert sum(node.op == "row_max" for node in first.chain.nodes) == 1
    assert sum(node.op == "exp2" for node in first.chain.nodes) == 2
    assert [r.name for r in second.results] == ["late"]


def test_what_ends_a_pass() -> None:
    """Another shape, a stored value, a fold beside none, and a read of a buffer whose part the pass stores."""

    def count(*ops: Op, **more: Any) -> int:
        shapes = {"x": ("in", (4, 8)), "y": ("out", (4, 8)), "z": ("out", (4, 8))}
        return len(requests(graph(*ops, **{**shapes, **more})))

    assert count(Op("neg", ("x",), "y"), Op("exp2", ("x",), "z")) == 1
    assert count(Op("neg", ("x",), "y"), Op("exp2", ("y",), "z")) == 2
    assert count(Op("row_max", ("x",), "y"), Op("row_sum", ("x",), "z")) == 1
    assert count(Op("row_max", ("x",), "y"), Op("neg", ("x",), "z")) == 2
    assert count(Op("neg", ("x",), "y"), Op("row_max", ("x",), "z")) == 2
    narrow = Spread(0, 16, 1, 16)
    assert count(Op("neg", ("x",), "y"), Op("neg", ("x",), "z", (), (narrow,)), z=("out", (2, 8))) == 2
    whole = Window(1, 0, 4, 0, 8)
    assert count(Op("neg", ("x",), "p"), Op("exp2", ("y",), "z"), p=part("y", whole)) == 2
    assert count(Op("neg", ("x",), "p"), Op("exp2", ("x",), "z"), p=part("y", whole)) == 1


def test_a_pass_reduces_rows_of_its_own_width() -> None:
    fold = Op("row_sum", ("x",), "t", (("rows", 4), ("cols", 8)), (Spread(0, 32, 1, 32),))
    values = {"x": ("in", (2, 16)), "t": ("temp", (4, 1), "e8m15"), "b": ("in", (1, 16)), "y": ("out", (4, 16))}
    g = graph(fold, Op("add", ("t", "b"), "y"), **values)
    with pytest.raises(CompileError, match="rows of 8 elements are reduced in a pass over rows of 16"):
        requests(g)
