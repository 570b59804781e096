# SPDX-License-Identifier: Apache-2.0
"""Vector kernels compiled and run on the model: bit for bit against whole arrays, and against float64."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import numpy as np
import pytest

import ktpu
from kohakubench.chains import evaluate
from kohakubench.programs import description, device, run, spec
from kohakutpu.errors import CompileError, CoverageError
from kohakutpu.graph import Graph, Op, Value, interpret, requests, verify
from kohakutpu.kernels import Trace
from kohakutpu.model.numerics import error_metrics
from kohakutpu.schedule import Elementwise, VectorBand, plan
from kohakutpu.schedule.cover import check_intervals
from kohakutpu.schedule.layout import from_key
from kohakutpu.tensor import Call

pytestmark = pytest.mark.unit

ONE, FOUR = description(cores=1), description(4, cores=4)
SIZES = [16, 17, 100, 128, 1000, 1024, 4096, 10_000, 65_536]
COUNT = int(os.environ.get("KOHAKU_PRODUCTS", "200"))


def half(*shape: int, seed: int = 3, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float16)


def bits(call: Call, body: dict, **options: object) -> tuple[ktpu.Compiled, np.ndarray]:
    """Compile, run, and compare every bit with the whole-array evaluation of the same chain."""
    compiled = ktpu.compile(call, spec(body), **options)
    got = run(body, compiled)
    (e,) = requests(call.trace.graph)
    assert isinstance(e, Elementwise)
    operands = [call.operands[o.name].view(np.uint16) for o in e.operands]
    assert np.array_equal(got, evaluate(e.chain, operands, e.shape)[0])
    return compiled, got


def within(got: np.ndarray, want: np.ndarray, p50: float, p99: float, worst: float) -> None:
    """Inside a class of docs/spec/kernels.md 0."""
    m = error_metrics(got.view(np.float16).astype(np.float64), want)
    print(f"p50 {m.p50:.1e} p99 {m.p99:.1e} max {m.max:.1e}")
    assert m.p50 <= p50
    assert m.p99 <= p99
    assert m.max <= worst
    assert m.non_finite == 0


CLASS_V = (1e-4, 5e-4, 1.5e-3)
F = Callable[[np.ndarray], np.ndarray]
ACTIVATIONS: dict[str, F] = {
    "silu": lambda v: v / (1 + np.exp(-v)),
    "gelu": lambda v: v / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))),
    "gelu_sigmoid": lambda v: v / (1 + np.exp(-1.702 * v)),
    "relu": lambda v: np.maximum(v, 0),
    "exp": np.exp,
}


# -- elementwise --


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("body", [ONE, FOUR], ids=["one", "four"])
def test_sizes(n: int, body: dict) -> None:
    """16 to 65,536 elements on one core and on four: every bit, padding included in the coverage check."""
    x = half(n)
    compiled, got = bits(ktpu.silu(x), body)
    within(got, ACTIVATIONS["silu"](x.astype(np.float64))[None], *CLASS_V)
    (band,) = compiled.schedule.bands
    assert isinstance(band, VectorBand)
    assert band.words * 16 >= n


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    """Each against its own formula in float64, class V."""
    x = half(4096)
    _, got = bits(ktpu.elementwise({"x": x}, [(name, ("x",))]), ONE)
    within(got, ACTIVATIONS[name](x.astype(np.float64))[None], *CLASS_V)


STEPS = [
    ("add", ("a", "b")), ("mul", ("_", 0.5)), ("exp2", ("_",)), ("add", ("_", 1.0)), ("recip", ("_",)),
    ("mul", ("_", "a")), ("maximum", ("_", "b")), ("sub", ("_", 0.25)), ("absolute", ("_",)),
]  # fmt: skip


@pytest.mark.parametrize("length", [1, 2, 4, 9])
@pytest.mark.parametrize("n", [16, 1000, 65_536])
def test_chains(length: int, n: int) -> None:
    """One to nine operations in one pass."""
    call = ktpu.elementwise({"a": half(n), "b": half(n, seed=4)}, STEPS[:length])
    compiled, got = bits(call, ONE)
    within(got, interpret(call.trace.graph, call.operands)["y"], *CLASS_V)
    assert compiled.artifact.meta["counters"]["dispatches"] == 1


@pytest.mark.parametrize("op", ["add", "sub", "mul", "maximum", "minimum", "div"])
def test_binary(op: str) -> None:
    a, b = half(700), half(700, seed=5)
    b = np.where(np.abs(b) < 0.1, np.float16(0.5), b)
    call = ktpu.elementwise({"a": a, "b": b}, [(op, ("a", "b"))])
    _, got = bits(call, ONE)
    within(got, interpret(call.trace.graph, call.operands)["y"], *CLASS_V)


@pytest.mark.parametrize("op", ["neg", "absolute", "exp2", "log2", "recip", "rsqrt"])
def test_unary(op: str) -> None:
    x = np.abs(half(700)) + np.float16(0.25)
    call = ktpu.elementwise({"x": x}, [(op, ("x",))])
    _, got = bits(call, ONE)
    within(got, interpret(call.trace.graph, call.operands)["y"], *CLASS_V)


def test_ternary_and_residual() -> None:
    """fma and where; a residual add is the exact rounding of the FP16 sum up to the step through E8M15."""
    a, b, c = half(300), half(300, seed=1), half(300, seed=2)
    ops = {"a": a, "b": b, "c": c}
    for steps in ([("fma", ("a", "b", "c"))], [("where", ("a", "b", "c"))]):
        call = ktpu.elementwise(ops, steps)
        _, got = bits(call, ONE)
        within(got, interpret(call.trace.graph, call.operands)["y"], *CLASS_V)
    bits(ktpu.add(a, b), ONE)


def test_zero_constants_of_both_signs() -> None:
    """-0.0 is a constant of its own, alone and in a chain with 0.0."""
    x = np.array([0.0, -0.0, 1.0, -1.0] * 8, np.float16)
    for zero in (0.0, -0.0):
        _, got = bits(ktpu.elementwise({"x": x}, [("add", ("x", zero))]), ONE)
        assert got.view(np.uint16)[0, 1] == (0x8000 if np.signbit(zero) else 0)
    _, got = bits(ktpu.elementwise({"x": x}, [("maximum", ("x", 0.0)), ("add", ("_", -0.0))]), ONE)
    assert got.view(np.uint16)[0, :4].tolist() == [0x8000, 0x8000, 0x3C00, 0x8000]


def test_special_values() -> None:
    """Infinity, zero of both signs and the largest values go through as the lane says."""
    x = np.array([0.0, -0.0, 65504, -65504, 6e-8, -6e-8, 1.0, -1.0] * 4)
    for call in (ktpu.exp(x), ktpu.relu(x), ktpu.mul(x, x), ktpu.elementwise({"x": x}, [("recip", ("x",))])):
        bits(call, ONE)


@pytest.mark.parametrize("shape", [(5, 16), (64, 144), (30, 320), (3, 4096), (2, 8192), (1, 64)])
def test_one_row_for_every_row(shape: tuple[int, int]) -> None:
    """An operand of one row: whole rows a RUN, or parts of a row where a row is too long."""
    a, r = half(*shape), half(shape[1], seed=9)
    compiled, _ = bits(ktpu.elementwise({"a": a, "r": r}, [("mul", ("a", "r")), ("add", ("_", 1.0))]), ONE)
    assert compiled.schedule.buffers["r"].nbytes in (2 * shape[1], 2 * -(-shape[1] // 128) * 128)


@pytest.mark.parametrize("length", [2048, 65_536])
def test_table_for_any_number_of_instances(length: int) -> None:
    """A 512-element table against 2,048 and 65,536 elements: no pass for the broadcast, every element written."""
    a, table = half(length // 512, 512), half(512, seed=1)
    compiled, got = bits(ktpu.elementwise({"a": a, "t": table}, [("add", ("a", "t"))]), FOUR)
    within(got, a.astype(np.float64) + table.astype(np.float64), *CLASS_V)
    assert compiled.artifact.meta["counters"]["dispatches"] == 1


# -- rows --


@pytest.mark.parametrize("width", [16, 48, 64, 128])
@pytest.mark.parametrize("rows", [1, 7, 64, 65])
def test_softmax(width: int, rows: int) -> None:
    """Class V, rows sum to one."""
    x = half(rows, width)
    _, got = bits(ktpu.softmax(x), ONE)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    within(got, e / e.sum(axis=1, keepdims=True), *CLASS_V)
    assert np.abs(got.view(np.float16).astype(np.float64).sum(axis=1) - 1).max() < 1e-3


@pytest.mark.parametrize("shift", [0.0, -10.0, -100.0])
def test_softmax_keys(shift: float) -> None:
    """Masked columns are exactly 0, whatever the shift of the rest."""
    x = (half(32, 80).astype(np.float64) + shift).astype(np.float16)
    mask = (np.arange(80) < 77).astype(np.float16)
    _, got = bits(ktpu.softmax(x, mask), ONE)
    assert not got[:, 77:].any()
    e = np.exp(x[:, :77].astype(np.float64) - x[:, :77].max(axis=1, keepdims=True))
    within(got[:, :77], e / e.sum(axis=1, keepdims=True), *CLASS_V)


@pytest.mark.parametrize("body", [ONE, FOUR], ids=["one", "four"])
def test_layernorm(body: dict) -> None:
    """64x128, class V, one dispatch."""
    x = half(64, 128)
    w, b = (1 + half(128, seed=1, scale=0.2)).astype(np.float16), half(128, seed=2, scale=0.2)
    compiled, got = bits(ktpu.layernorm(x, w, b), body)
    v = x.astype(np.float64)
    d = v - v.mean(axis=1, keepdims=True)
    want = d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5) * w.astype(np.float64) + b.astype(np.float64)
    within(got, want, *CLASS_V)
    assert compiled.artifact.meta["counters"]["dispatches"] == 1


def test_rmsnorm() -> None:
    x, w = half(33, 128), half(128, seed=1)
    _, got = bits(ktpu.rmsnorm(x, w), ONE)
    v = x.astype(np.float64)
    want = v / np.sqrt((v * v).mean(axis=1, keepdims=True) + 1e-5) * w.astype(np.float64)
    within(got, want, *CLASS_V)


def test_rows_far_from_zero() -> None:
    """A mean of 64 sigma: the variance is taken about the mean and survives."""
    x = (half(16, 128).astype(np.float64) + 64).astype(np.float16)
    one, zero = np.ones(128), np.zeros(128)
    _, got = bits(ktpu.layernorm(x, one, zero), ONE)
    v = x.astype(np.float64)
    d = v - v.mean(axis=1, keepdims=True)
    within(got, d / np.sqrt((d * d).mean(axis=1, keepdims=True) + 1e-5), 2e-3, 1e-2, 2e-2)


# -- choices that change no bit --


@pytest.mark.parametrize("options", [{"interleave": 1}, {"group": 2}, {"group": 4}, {"cores": 2}, {"pass_budget": 9}])
def test_choices_change_no_bit(options: dict) -> None:
    for call in (ktpu.gelu(half(3000)), ktpu.softmax(half(20, 128)), ktpu.layernorm(half(9, 64), half(64), half(64))):
        _, plain = bits(call, FOUR)
        _, other = bits(call, FOUR, **options)
        assert np.array_equal(plain, other)


def random_elementwise(seed: int) -> None:
    """A random chain of named operations over a random size, machine and option."""
    rng = random.Random(seed)
    n = int(2 ** rng.uniform(0, 13))
    rows = rng.choice([1, 1, 2, 5])
    steps = [("add", ("a", "b"))]
    for _ in range(rng.randint(0, 8)):
        kind = rng.choice(["mul", "add", "sub", "maximum", "minimum", "absolute", "neg", "exp2", "silu", "relu"])
        unary = kind in ("absolute", "neg", "exp2", "silu", "relu")
        steps.append((kind, ("_",) if unary else ("_", rng.choice(["a", "b", 0.5, -1.0, 0.0]))))
        if kind == "exp2":
            steps.append(("minimum", ("_", 8.0)))
    call = ktpu.elementwise({"a": half(rows, n, seed=seed), "b": half(rows, n, seed=seed + 1)}, steps)
    bits(call, rng.choice([ONE, FOUR]), interleave=rng.choice([0, 1]), group=rng.choice([1, 2, 4]))


@pytest.mark.parametrize("seed", range(15))
def test_random_elementwise(seed: int) -> None:
    random_elementwise(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + COUNT))
def test_random_elementwise_long(seed: int) -> None:
    random_elementwise(seed)


# -- printed levels --


def test_printed_levels() -> None:
    """Graph and schedule print; the schedule is the text that tests compare."""
    compiled = ktpu.compile(ktpu.layernorm(half(64, 128), half(128), half(128)), spec(ONE))
    assert compiled.schedule.text() == (
        "schedule for hand1, pass budget 128\n"
        "in x: flat 64x128 at 0x0, 16384 bytes\n"
        "in w: flat 1x128 at 0x4000, 256 bytes\n"
        "in b: flat 1x128 at 0x4800, 256 bytes\n"
        "out y: flat 64x128 at 0x5000, 16384 bytes\n"
        "band VC add(mul(mul(sub(x0, mul(row_sum(x0), 0.0078125)), rsqrt(add(row_sum(mul(mul(sub(x0, "
        "mul(row_sum(x0), 0.0078125)), 0.0078125), sub(x0, mul(row_sum(x0), 0.0078125)))), 1e-05))), x1), x2) "
        "64x128 form=rows instances=8 steps=8 vl=128 l1=144 reads=x,w,b writes=y role=compute\n"
        "  dealt unit 0: 8\n"
        "note: y: FP16, bound unknown, saturates at 65504"
    )
    assert "const k1: e8m15[1, 1] = 1e-05" in compiled.text()
    assert "y = add(" in compiled.text()
    assert compiled.summary().startswith("layernorm M=64: 1 dispatches, ")


def test_formats_have_places_of_their_own() -> None:
    """Padding of an image is zero, and the padded part belongs to the buffer."""
    compiled = ktpu.compile(ktpu.silu(half(1000)), spec(ONE))
    (image,) = compiled.artifact.images
    assert len(image.data) == compiled.schedule.buffers["x"].nbytes == 2048
    assert not any(image.data[2000:])
    (out,) = compiled.artifact.outputs
    assert out.nbytes == 2016
    assert from_key(out.layout).nbytes((1, 1000)) == 2000


# -- refusals --


def graph_of(*ops: Op, **made: tuple[str, tuple[int, int], str]) -> Graph:
    graph = Graph()
    for name, (dtype, shape, role) in made.items():
        graph.value(Value(name, dtype, shape, role))  # type: ignore[arg-type]
    graph.ops += ops
    return graph


X, Y = ("fp16", (4, 32), "in"), ("fp16", (4, 32), "out")
T = ("e8m15", (4, 32), "temp")
GRAPHS = [
    (graph_of(Op("mul", ("x",), "y"), x=X, y=Y), "mul takes 2 operands, got 1"),
    (graph_of(Op("neg", ("x",), "y", (("gm", 1),)), x=X, y=Y), r"neg: unknown attributes \['gm'\]"),
    (graph_of(Op("neg", ("x",), "y"), x=("fp32", (4, 32), "in"), y=Y), "operand x is fp32; the vector core reads fp16"),
    (graph_of(Op("neg", ("x",), "y"), x=X, y=("acc14", (4, 32), "out")), "result y is acc14"),
    (
        graph_of(Op("neg", ("x",), "y"), x=X, y=("e8m15", (4, 32), "out")),
        "out y is e8m15, which has no words in memory",
    ),
    (graph_of(Op("neg", ("x",), "y"), x=X, y=("fp16", (4, 16), "out")), r"y is stated as \(4, 16\), operands give"),
    (
        graph_of(Op("add", ("x", "z"), "y"), x=X, z=("fp16", (3, 32), "in"), y=Y),
        r"add: x \(4, 32\), z \(3, 32\) do not fit; an extent is equal or 1",
    ),
    (graph_of(Op("less", ("x", "x"), "y"), x=X, y=Y), "y is stored; a comparison only decides a where"),
    (
        graph_of(Op("less", ("x", "x"), "t"), Op("add", ("t", "x"), "y"), x=X, t=T, y=Y),
        "t is a comparison, which only decides a where",
    ),
    (graph_of(Op("row_max", ("x",), "y"), x=X, y=("fp16", (3, 32), "out")), r"y is stated as \(3, 32\), operands give"),
]


@pytest.mark.parametrize(("graph", "message"), GRAPHS, ids=[m[:40] for _, m in GRAPHS])
def test_graph_refusals(graph: Graph, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        verify(graph)


def test_lowering() -> None:
    """Values in registers belong to the pass that stores them; a stored value starts another pass."""
    graph = graph_of(
        Op("neg", ("x",), "t"),
        Op("exp2", ("t",), "z"),
        Op("add", ("z", "t"), "y"),
        x=X,
        t=T,
        z=("fp16", (4, 32), "temp"),
        y=Y,
    )
    first, second = requests(graph)
    assert isinstance(first, Elementwise)
    assert isinstance(second, Elementwise)
    assert (first.chain.text(), second.chain.text()) == ("exp2(neg(x0))", "add(x0, neg(x1))")
    assert [o.name for o in second.operands] == ["z", "x"]
    both = graph_of(Op("neg", ("x",), "y"), Op("exp2", ("x",), "z"), x=X, y=Y, z=("fp16", (4, 32), "out"))
    (only,) = requests(both)
    assert isinstance(only, Elementwise)
    assert only.chain.text() == "neg(x0); exp2(x0)"


def test_two_results_and_a_stored_temp_run() -> None:
    """Two passes with a temp between them, and one pass with two results, on the machine."""
    x = half(40, 32)
    graph = graph_of(
        Op("mul", ("x", "x"), "z"),
        Op("add", ("z", "x"), "y"),
        Op("sub", ("z", "x"), "w"),
        x=("fp16", (40, 32), "in"),
        z=("fp16", (40, 32), "temp"),
        y=("fp16", (40, 32), "out"),
        w=("fp16", (40, 32), "out"),
    )

    compiled = ktpu.compile(Call(Trace("two", graph, {}), {"x": x}), spec(ONE))
    dev = device(ONE)
    done = dev.run(compiled.artifact)
    assert not done.failed, done.problems()
    want = interpret(graph, {"x": x})
    for out in compiled.artifact.outputs:
        got = ktpu.read_output(out, dev.read(out.address, out.nbytes))
        within(got.view(np.uint16), want[out.name], *CLASS_V)
    assert len(compiled.schedule.bands) == 2


REFUSED: list[tuple[Callable[[], object], str]] = [
    (lambda: ktpu.softmax(half(4, 130)), "130 elements.* pad it"),
    (lambda: ktpu.elementwise({"a": half(4, 20), "b": half(20)}, [("add", ("a", "b"))]), "rows of 20 elements"),
    (lambda: ktpu.layernorm(half(4, 64), half(32), half(64)), "weight has 32 values; one for each of 64 columns"),
    (lambda: ktpu.softmax(half(64)), "x has 1 axes"),
    (lambda: ktpu.elementwise({}, [("neg", ("x",))]), "elementwise: no operand"),
    (lambda: ktpu.elementwise({"x": half(4)}, []), "elementwise: no operation"),
    (lambda: ktpu.elementwise({"x": half(4)}, [("neg", ("_",))]), "the first step, neg, has no result before it"),
    (lambda: ktpu.elementwise({"x": half(4)}, [("sin", ("x",))]), "sin with 1 operands; known operations: .*silu"),
    (lambda: ktpu.elementwise({"x": half(4)}, [("add", ("x",))]), "add with 1 operands"),
    (lambda: ktpu.elementwise({"x": half(4)}, [("less", ("x", "x"))]), "less with 2 operands"),
    (lambda: ktpu.elementwise({"x": half(4), "y": half(4)}, [("neg", ("x",))]), "input y is never read"),
    (lambda: ktpu.elementwise({"x": half(4), "y": half(6)}, [("add", ("x", "y"))]), "N is 4 by x and 6 by y; they"),
    (lambda: ktpu.elementwise({"x": half(4, 1)}, [("row_max", ("x",))]), "row_max with 1 operands"),
    (lambda: ktpu.elementwise({"x": half(4, 32), "c": half(4, 1)}, [("add", ("x", "c"))]), "N is 32 by x and 1 by c"),
    (
        lambda: Call(
            Trace("column", graph_of(Op("add", ("x", "c"), "y"), x=X, c=("fp16", (4, 1), "in"), y=Y), {}),
            {"x": half(4, 32), "c": half(4, 1)},
        ),
        "reads a value of shape .4, 1. from memory, one value a row",
    ),
    (
        lambda: ktpu.elementwise(
            {n: half(64) for n in "abcdefgh"}, [("add", ("a", "b"))] + [("add", ("_", n)) for n in "cdefgh"]
        ),
        "8 operands .* a band reads at most 7",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[m[:40] for _, m in REFUSED])
def test_kernel_refusals(make: Callable[[], object], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        ktpu.compile(make(), spec(ONE))  # type: ignore[arg-type]


def test_options_out_of_range() -> None:
    call = ktpu.silu(half(64))
    for options, message in (
        ({"cores": 2}, "cores = 2; machine hand1 has 1, use 1..1"),
        ({"cores": 0}, "cores = 0"),
        ({"fuse": "maybe"}, "fuse = 'maybe'; it is one of auto, require, never"),
        ({"group": 3}, "chain groups of 3 words"),
    ):
        with pytest.raises(CompileError, match=message):
            ktpu.compile(call, spec(ONE), **options)
    with pytest.raises(ValueError, match="mesh 0 has no unit of type VC"):
        ktpu.compile(call, spec(description()))


@pytest.mark.parametrize(
    ("intervals", "message"),
    [
        ([(0, 8), (16, 8)], "GAP: y word 8 is never written"),
        ([(0, 8), (8, 8)], "GAP: y word 16 is never written"),
        ([(8, 8), (16, 8)], "GAP: y word 0 is never written"),
        ([(0, 16), (8, 16)], "OVERLAP: y word 8 is written twice"),
        ([(0, 16), (16, 16)], "OVERSHOOT: y words 16..31 leave the image of 24"),
        ([(-8, 8), (0, 24)], "OVERSHOOT: y words -8..-1"),
    ],
)
def test_coverage_of_a_padded_image(intervals: list[tuple[int, int]], message: str) -> None:
    """A missing, doubled or stray instance is an error that names the first word."""
    with pytest.raises(CoverageError, match=message):
        check_intervals("y", 24, intervals)
    check_intervals("y", 24, [(16, 8), (0, 16)])


def test_planned_bands_are_covered() -> None:
    """Random sizes: the intervals of every planned band cover its image exactly once."""
    rng = random.Random(5)
    for _ in range(60):
        n, m = rng.randint(1, 5000), rng.choice([1, 3, 16])
        call = ktpu.mul(half(m, n), half(m, n))
        schedule = plan(requests(call.trace.graph), spec(FOUR), cores=rng.randint(1, 4))
        (band,) = schedule.bands
        assert isinstance(band, VectorBand)
        counts = np.zeros(band.words, int)
        for offsets in band.offsets:
            first = offsets[-1] // 32
            counts[first : first + band.stores[0].drain.words] += 1
        assert (counts == 1).all()
        assert schedule.buffers["y"].nbytes == 32 * band.words >= 2 * m * n
