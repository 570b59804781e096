# SPDX-License-Identifier: Apache-2.0
"""Compiled products on the model against the whole product and against float64."""

from __future__ import annotations

import itertools
import os
import random

import numpy as np
import pytest

import ktpu
from kohakubench.programs import description, operands, reference, run, spec
from kohakutpu.errors import CompileError
from kohakutpu.graph import Graph, Op, Value, interpret, verify
from kohakutpu.model.numerics import error_metrics
from kohakutpu.schedule import Contraction, Operand, pack_operands, plan

pytestmark = pytest.mark.unit

COUNT = int(os.environ.get("KOHAKU_PRODUCTS", "200"))
FIXED = [(64, 64, 64), (32, 128, 32), (1, 1, 1), (5, 7, 33), *itertools.permutations((300, 100, 77))]


@pytest.mark.parametrize("shape", FIXED, ids=lambda s: "x".join(map(str, s)))
def test_products(shape: tuple[int, int, int]) -> None:
    """Every bit equals the reference product of whole matrices, for every size of padding."""
    body = description()
    a, b = operands(*shape)
    compiled = ktpu.compile(ktpu.matmul(a, b), spec(body))
    assert np.array_equal(run(body, compiled), reference(a, b))


def random_product(rng: random.Random) -> None:
    """A random shape, tiling, machine and option; compared with the reference bit for bit."""
    m, n, k = (1 + int(2 ** rng.uniform(0, 6.5)) for _ in range(3))
    size = rng.choice([32, 64, 128, 256, 512])
    body = description(
        rng.choice([1, 1, 2, 5]),
        MG_GA=size,
        MG_GB=rng.choice([32, size, 512]),
        MG_TILES=rng.choice([16, 512]),
        max_inflight={"MG": rng.choice([1, 4])},
        features=rng.choice([("emit_fuse",), ()]),
    )
    machine = spec(body)
    a, b = operands(m, n, k, rng.randrange(1000))
    knobs = {}
    if rng.random() < 0.5:
        half_a, half_b = machine.bank_entries
        gm, gn = rng.randint(1, min(4, machine.tiles)), rng.randint(1, 4)
        knobs = {"gm": gm, "gn": gn, "nk": rng.randint(1, min(3, half_a // gm, half_b // gn))}
    budget = rng.choice([None, None, 1, 5, 128])
    compiled = ktpu.compile(ktpu.matmul(a, b, **knobs), machine, pass_budget=budget)
    assert np.array_equal(run(body, compiled), reference(a, b)), (m, n, k, body["params"], knobs, budget)


@pytest.mark.parametrize("seed", range(12))
def test_random_products(seed: int) -> None:
    """Shapes, tilings, L1 sizes, clusters, features and pass budgets at random."""
    random_product(random.Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + COUNT))
def test_random_products_long(seed: int) -> None:
    random_product(random.Random(seed))


@pytest.mark.parametrize("k", [256, 1024])
def test_error_against_float64(k: int) -> None:
    """Within the acceptance bound of docs/spec/numerics.md 12 for 128x128 outputs."""
    body = description()
    a, b = operands(128, 128, k, 7)
    compiled = ktpu.compile(ktpu.matmul(a, b), spec(body))
    got = run(body, compiled).view(np.float16).astype(np.float64)
    x, y = (v.astype(np.float16).astype(np.float64) for v in (a, b))
    m = error_metrics(got, x @ y.T)
    print(f"K={k}: p50 {m.p50:.2e} p99 {m.p99:.2e} max {m.max:.2e} over 1 % {m.over_1_percent:.2%}")
    assert m.p50 <= 4e-3
    assert m.p99 <= 1.5e-2
    assert m.max <= 3e-2
    assert m.non_finite == 0


def test_special_values() -> None:
    """Zeros, subnormals, the largest values and a result that saturates."""
    body = description()
    a = np.array([[0.0] * 32, [6e-8] * 32, [65504.0] * 32, [1.0, -0.0] * 16])
    b = np.array([[1.0] * 32, [65504.0] * 32, [6e-8] * 32])
    compiled = ktpu.compile(ktpu.matmul(a, b), spec(body))
    got = run(body, compiled)
    assert np.array_equal(got, reference(a, b))
    assert got.view(np.float16)[2, 1] == 65504
    assert not got[0].any()


def test_printed_levels() -> None:
    """Every level prints; the schedule is the text that tests compare."""
    compiled = ktpu.compile(ktpu.matmul(*operands(64, 64, 64)), spec(description()))
    assert compiled.schedule.text() == (
        "schedule for hand1, pass budget 128\n"
        "in a: mx:16x2:a 64x64 at 0x0, 4096 bytes\n"
        "in b: mx:16x2:b 64x64 at 0x1000, 4096 bytes\n"
        "out c: tile:1x1:16x16 64x64 at 0x2000, 8192 bytes\n"
        "band MG contract 64x64x64 grid=1x1x1 tile=gm16,gn16,nk2 chunks=1 reads=a,b writes=c "
        "resident=- double=a,b tier=dram role=compute out=emit\n"
        "  dealt unit 0: 1\n"
        "note: c: FP16, bound unknown, saturates at 65504"
    )
    assert "c = contract(a, b)" in compiled.text()
    assert "gemm gm=16 gn=16 nk=2 acc=0 emit=1 at=0x2000" in compiled.text()


def test_interpreter_is_exact_then_rounded() -> None:
    """The graph's meaning: float64 product, one rounding, saturation at 65504."""
    graph = ktpu.matmul(np.ones((2, 3)), np.ones((4, 3))).trace.graph
    out = interpret(graph, {"a": np.full((2, 3), 300.0), "b": np.full((4, 3), 300.0)})["c"]
    assert out.shape == (2, 4)
    assert (out == 65504).all()
    third = interpret(graph, {"a": np.full((2, 3), 1.0), "b": np.full((4, 3), 1 / 9)})["c"]
    assert (third == np.float64(np.float16(1 / 3))).all()
    with pytest.raises(CompileError, match=r"input b \(4, 3\) was not given"):
        interpret(graph, {"a": np.ones((2, 3))})
    with pytest.raises(CompileError, match=r"input a has shape \(3, 2\)"):
        interpret(graph, {"a": np.ones((3, 2)), "b": np.ones((4, 3))})


# -- refusals of the upper levels --


@pytest.mark.parametrize(
    ("a", "b", "knobs", "message"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), {}, "K must agree"),
        (np.ones(3), np.ones((2, 3)), {}, "a has 1 axes"),
        (np.ones((2, 3)), np.ones((1, 2, 3)), {}, "b has 3 axes"),
        (np.ones((2, 3)), np.ones((2, 3)), {"gm": 1}, "named alone"),
        (np.ones((0, 3)), np.ones((2, 3)), {}, "at least 1"),
        (np.ones((2, 3)) * 1j, np.ones((2, 3)), {}, "a is complex128"),
        (np.array([["x"]]), np.ones((2, 1)), {}, "a is <U1"),
        (np.full((2, 3), 1e9), np.ones((2, 3)), {}, "a holds 6 values beyond 65504"),
        (np.ones((2, 3)), np.full((2, 3), np.nan), {}, "b holds 6 values"),
    ],
)
def test_tensor_refusals(a: np.ndarray, b: np.ndarray, knobs: dict[str, int], message: str) -> None:
    """Operands that are no matrices of finite FP16 values are refused by name."""
    with pytest.raises(CompileError, match=message):
        ktpu.matmul(a, b, **knobs)


X = np.ones((4, 16))
WRONG = {
    "machine by name": (lambda: ktpu.compile(ktpu.silu(X), "mm_mesh"), "a machine is needed, .* got str 'mm_mesh'"),
    "array for a call": (lambda: ktpu.compile(X, ktpu.machine("mm_mesh")), "a call is needed, .* got ndarray"),
    "device by name": (lambda: ktpu.run(ktpu.silu(X), "model:mm_mesh"), "a device is needed, .* got str"),
    "plain function": (lambda: ktpu.call(abs, X), "abs> is no kernel; decorate it"),
    "tiling of floats": (lambda: ktpu.matmul(X, X, gm=4.0, gn=4, nk=1), "gm = 4.0; .* give an integer"),
    "step as a word": (lambda: ktpu.elementwise({"x": X}, ["silu"]), "step 'silu'; a step is an operation and"),
    "operands as a word": (lambda: ktpu.elementwise({"x": X}, [("silu", "x")]), "a step is an operation and"),
    "unknown operand": (lambda: ktpu.elementwise({"x": X}, [("add", ("x", "b"))]), "add reads 'b'; the operands are x"),
    "one axis": (lambda: ktpu.softmax(X[0]), "x has 1 axes; it takes 2"),
    "three axes": (lambda: ktpu.silu(X[None]), "x has 3 axes; it takes 1 to 2"),
    "eps as a name": (lambda: ktpu.rmsnorm(X, X[0], eps="x"), "could not convert string to float"),
    "scale as a name": (lambda: ktpu.linear(X, X, scale="x"), "could not convert string to float"),
    "unknown option": (lambda: ktpu.run(ktpu.silu(X), ktpu.open("model"), fuze=1), "no compile option fuze; there"),
    "option of the RTL": (lambda: ktpu.open("rtl:mm_mesh", wave=True), "no option wave; there are: waves, "),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_use(name: str) -> None:
    """What a newcomer gets wrong is answered with what was meant to be there."""
    use, message = WRONG[name]
    with pytest.raises(ValueError, match=message):
        use()


def graph_of(*ops: Op, **values: tuple[str, tuple[int, int], str]) -> Graph:
    graph = Graph()
    for name, (dtype, shape, role) in values.items():
        graph.value(Value(name, dtype, shape, role))  # type: ignore[arg-type]
    graph.ops += ops
    return graph


A, B, C = ("fp16", (4, 8), "in"), ("fp16", (6, 8), "in"), ("fp16", (4, 6), "out")
DOT = Op("contract", ("a", "b"), "c")
GRAPHS = [
    (graph_of(Op("fold", ("a", "b"), "c"), a=A, b=B, c=C), "op kind 'fold' is unknown"),
    (graph_of(Op("contract", ("a",), "c"), a=A, c=C), "takes 2 operands, got 1"),
    (graph_of(Op("contract", ("a", "b"), "c", (("gk", 1),)), a=A, b=B, c=C), "unknown attributes \\['gk'\\]"),
    (graph_of(Op("contract", ("a", "b"), "c", (("gm", 1),)), a=A, b=B, c=C), "names gm alone"),
    (graph_of(DOT, a=A, c=C), "value b was never declared"),
    (graph_of(DOT, a=A, b=("fp16", (6, 8), "temp"), c=C), "b is used before it is defined"),
    (graph_of(DOT, DOT, a=A, b=B, c=C), "c is assigned a second time"),
    (graph_of(DOT, a=A, b=("fp32", (6, 8), "in"), c=C), "operand b is fp32"),
    (graph_of(DOT, a=A, b=B, c=("acc", (4, 6), "out")), "result c is acc"),
    (graph_of(DOT, a=A, b=("fp16", (6, 9), "in"), c=C), "a has K = 8, b has K = 9"),
    (graph_of(DOT, a=A, b=B, c=("fp16", (6, 4), "out")), r"c is stated as \(6, 4\), operands give \(4, 6\)"),
    (graph_of(a=A, b=B, c=C), "output c is never written"),
    (graph_of(DOT, a=A, b=B, c=C, d=A), "input d is never read"),
]


@pytest.mark.parametrize(("graph", "message"), GRAPHS, ids=[m for _, m in GRAPHS])
def test_graph_refusals(graph: Graph, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        verify(graph)


def test_value_refusals() -> None:
    graph = graph_of(a=A)
    with pytest.raises(CompileError, match="a is bound twice"):
        graph.value(Value("a", "fp16", (1, 1), "in"))
    with pytest.raises(CompileError, match="every extent must be at least 1"):
        graph.value(Value("z", "fp16", (0, 1), "in"))


def test_two_products_of_one_graph() -> None:
    """Two bands share an operand in one role; a second byte order for it is refused."""
    machine = spec(description())
    a, b, d = (Operand(n, "in", (32, 32)) for n in "abd")
    c, e = (Operand(n, "out", (32, 32)) for n in "ce")
    both = plan([Contraction(a, b, c), Contraction(a, d, e)], machine)
    assert len(both.bands) == 2
    assert set(both.buffers) == set("abcde")
    with pytest.raises(CompileError, match="a is needed as mx:8x1:a and as mx:8x1:b; one buffer holds one"):
        plan([Contraction(a, b, c), Contraction(d, a, e)], machine)
    with pytest.raises(CompileError, match="operand c is computed on the machine"):
        plan([Contraction(a, b, c), Contraction(Operand("c", "out", (32, 32)), d, e)], machine)


def test_memory_that_is_too_small() -> None:
    """The buffer that does not fit is named."""
    machine = spec(description(), dram_bytes=1 << 14)
    with pytest.raises(CompileError, match="c: 8192 bytes do not fit; the largest free span is 4096"):
        ktpu.compile(ktpu.matmul(*operands(64, 64, 96)), machine)


@pytest.mark.parametrize("budget", [0, 129, -1])
def test_budget_out_of_range(budget: int) -> None:
    with pytest.raises(CompileError, match=f"pass budget {budget} is not in 1..128"):
        ktpu.compile(ktpu.matmul(*operands(4, 4, 4)), spec(description()), pass_budget=budget)


def test_operands_are_checked() -> None:
    schedule = plan(
        [Contraction(Operand("a", "in", (4, 8)), Operand("b", "in", (4, 8)), Operand("c", "out", (4, 4)))],
        spec(description()),
    )
    half = np.ones((4, 8), np.float16)
    for given, message in (
        ({"a": half}, r"operand b \(4, 8\) was not given"),
        ({"a": half, "b": half.T}, r"operand b is float16 \(8, 4\), expected float16 \(4, 8\)"),
        ({"a": half, "b": half.astype(np.float32)}, "operand b is float32"),
        ({"a": half, "b": half, "bias": half}, r"operands \['bias'\] are read by nothing"),
    ):
        with pytest.raises(CompileError, match=message):
            pack_operands(schedule, given)
