# SPDX-License-Identifier: Apache-2.0
"""Which kernels the automatic path chooses, what it refuses, and how its calls become programs.

docs/spec/compiler.md 13.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import ktpu
from kohakutpu.errors import CompileError
from kohakutpu.kernels import library
from kohakutpu.rewrite import CATALOGUE, Expr, array, inputs, interpret, ops, rewrite, without
from kohakutpu.rewrite.expr import make
from kohakutpu.rewrite.select import CHAIN_OPERANDS, SIDE_OPERANDS, select

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu.TensorDevice]:
    with ktpu.open("model:mm_store") as opened:
        yield opened


def chosen(e: Expr) -> list[str]:
    """How each step is done, and by which kernel."""
    steps = select(rewrite(e, CATALOGUE).result).steps
    return [f"{s.how} {s.kernel.name if s.kernel else s.result.op}" for s in steps]


X, W = array("x", 64, 128), array("w", 64, 128)


@pytest.mark.parametrize(
    ("e", "steps"),
    [
        (lambda: X @ W, ["product auto_product"]),
        (lambda: ops.gelu((X @ W) + array("r", 64, 64)), ["product auto_product"]),
        (lambda: ops.silu(X @ W) @ array("d", 32, 64), ["product auto_product"] * 2),
        (lambda: ops.softmax(X), ["library softmax"]),
        (lambda: ops.softmax(X * 0.5), ["chain auto_rows"]),
        (lambda: ops.softmax(array("y", 16, 1280)), ["library softmax_wide"]),
        (lambda: ops.softmax(array("y", 16, 1280) * 0.5), ["chain auto_chain", "library softmax_wide"]),
        (lambda: ops.silu(ops.softmax(array("y", 16, 1280))), ["library softmax_wide", "chain auto_chain"]),
        (lambda: ops.layernorm(X, array("g", 128), array("b", 128)), ["library layernorm"]),
        (lambda: ops.layernorm(X, array("g", 64, 128), array("b", 64, 128)), ["library group_norm"]),
        (lambda: ops.layernorm(X, array("g", 1, 128), array("b", 1, 128)), ["library layernorm"]),
        (lambda: ops.rmsnorm(X, array("g", 128)), ["library rmsnorm"]),
        (lambda: ops.rmsnorm(X, array("g", 1, 128)), ["library rmsnorm"]),
        (lambda: ops.silu(ops.rmsnorm(X, array("g", 128))), ["chain auto_rows"]),
        (lambda: ops.transpose(X), ["host transpose"]),
        (
            lambda: ops.row_sum(array("y", 16, 1280)) * array("y", 16, 1280),
            ["host reduce_sum", "host broadcast", "chain auto_chain"],
        ),
        (
            lambda: ops.softmax(X, axis=-2),
            ["host reduce_max", "chain auto_chain", "host reduce_sum", "chain auto_chain"],
        ),
    ],
)
def test_choice(e: Callable[[], Expr], steps: list[str]) -> None:
    """Library kernel, product, chain or host, in that order of attempts."""
    assert chosen(e()) == steps


@pytest.mark.parametrize("count", range(1, 9))
def test_no_chain_has_more_operands_than_allowed(count: int, device: ktpu.TensorDevice) -> None:
    """A sum of products of ``count`` pairs: every pass reads at most three arrays, and the result is right."""
    rng = np.random.default_rng(count)
    values = [rng.standard_normal((8, 32)).astype(np.float16) for _ in range(2 * count)]
    names = [array(f"a{i}", 8, 32) for i in range(2 * count)]
    e = names[0] * names[1]
    for a, b in zip(names[2::2], names[3::2], strict=True):
        e = e + a * b
    program = ktpu.auto(e, *values)
    for step in program.chosen.steps:
        assert step.how == "chain"
        assert 1 <= len(step.operands) <= CHAIN_OPERANDS
    want = interpret(e, {f"a{i}": v for i, v in enumerate(values)})
    got = program.run(device).numpy().astype(np.float64)
    assert np.abs(got - want).max() <= 2e-3 * np.abs(want).max()


def test_side_operands_of_a_product_are_limited() -> None:
    """Five additions behind a product: three go along, the others are passes."""
    e = X @ W
    for i in range(5):
        e = e + array(f"r{i}", 64, 64)
    steps = select(rewrite(e, CATALOGUE).result).steps
    product = next(s for s in steps if s.how == "product")
    assert len(product.operands) <= 2 + SIDE_OPERANDS
    assert len(steps) == 2


def test_a_value_of_a_row_that_is_read_twice(device: ktpu.TensorDevice) -> None:
    """Two passes read one maximum: it is stored to the whole row by a pass of its own."""
    x, b, c, g = (array(n, 8, 32) for n in "xbcg")
    top = ops.row_max(x)
    values = {n: np.random.default_rng(3).standard_normal((8, 32)).astype(np.float16) for n in "xbcg"}
    e = ((x - top) * b + g) * ops.silu((x - top * 0.5) * c)
    program = ktpu.auto(e, *(values[i.name] for i in inputs(e)))
    assert program.chosen.steps[0].result.op == "broadcast"
    want = interpret(e, values)
    assert np.abs(program.run(device).numpy() - want).max() <= 2e-3 * np.abs(want).max()


def test_a_product_read_twice_is_computed_once() -> None:
    """Its result is stored when another step than its epilogue reads it."""
    e = (X @ W) + ops.silu((X @ W) @ array("v", 64, 64))
    first, second = select(rewrite(e, CATALOGUE).result).steps
    assert [a.name for a, _ in first.operands] == ["x", "w"]
    assert sorted(a.name for a, _ in second.operands) == ["", "", "v"]


def test_identity_variance_is_never_emitted() -> None:
    """Without its rewrite the form is refused, by name; with it nothing of it is left."""
    x = array("x", 8, 64)
    e = ops.row_mean(x * x) - ops.row_mean(x) * ops.row_mean(x) + x
    with pytest.raises(CompileError, match="never emitted; leave the rewrite \"two-pass variance\""):
        ktpu.auto(e, (8, 64), catalogue=without("two-pass variance"))
    assert ktpu.auto(e, (8, 64)).host_steps == 0


def test_variance_far_from_zero_on_the_model(device: ktpu.TensorDevice) -> None:
    """A mean of 64 sigma: the automatic result is within a few roundings of the variance."""
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((8, 64)) + 64.0).astype(np.float16)
    program = ktpu.auto(lambda x: ops.row_mean(x * x) - ops.row_mean(x) * ops.row_mean(x) + x * 0.0, x)
    want = x.astype(np.float64).var(axis=-1, keepdims=True)
    assert np.abs(program.run(device).numpy() - want).max() < 0.01 * want.max()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: ktpu.auto(X @ W, (64, 128)), r"reads x \(64, 128\), w \(64, 128\); given: \(64, 128\)"),
        (lambda: ktpu.auto(lambda x, w: x @ w, (64, 128)), "takes x, w; 1 arrays given"),
        (lambda: ktpu.auto(lambda x: 3, (64, 128)), "gave int"),
        (lambda: ktpu.auto(ops.silu, (64, 128)).run(), "made for shapes"),
        (lambda: ktpu.auto(ops.silu, np.zeros((4, 16))).run(), "no array lives on a device"),
        (lambda: ktpu.auto(ops.silu, np.full((4, 16), 1e6)), "beyond 65504"),
    ],
)  # fmt: skip
def test_refusals(made: Callable[[], object], message: str) -> None:
    """The message names the object and what is needed."""
    with pytest.raises(CompileError, match=message):
        made()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: make("cosine", X), "operation 'cosine' is unknown"),
        (lambda: make("add", X), "add takes 2 operands, got 1"),
        (lambda: make("reduce_sum", X), r"reduce_sum has attributes \['axis'\], got \[\]"),
        (lambda: X + array("y", 64, 64), r"operands of \(64, 128\) and \(64, 64\) do not fit"),
        (lambda: X @ array("y", 64, 64), "both contract their last axis"),
        (lambda: ops.row_sum(X, 0), "axes count from the last one"),
        (lambda: ops.reshape(X, 64, 64), "8192 elements stay 8192"),
        (lambda: ops.transpose(X, 0, 0), "name every axis once"),
        (lambda: ops.take(X, -1, 64, 200), "slice 64:200:1 along axis -1"),
        (lambda: ops.chunk(X, 3), "128 elements are no 3 equal parts"),
        (lambda: ops.concat(X, array("y", 64, 64), axis=-2), "the other extents agree"),
        (lambda: ops.conv2d(X, W), r"it takes \[H, W, C\] and \[N, kh, kw, C\]"),
        (lambda: X + float("nan"), "nan is no operand"),
        (lambda: ops.online_attention(X, X, X, 128, 64), "Lkv whole blocks"),
        (lambda: interpret(X @ W, {"x": np.zeros((64, 128))}), "input w has no value"),
        (lambda: interpret(ops.silu(X), {"x": np.zeros((4, 4))}), r"input x is \(64, 128\), its value is \(4, 4\)"),
    ],
)
def test_ill_formed_expressions(made: Callable[[], object], message: str) -> None:
    """Refused where they are made."""
    with pytest.raises(CompileError, match=message):
        made()


def test_steps_are_one_program_where_they_can_be(device: ktpu.TensorDevice) -> None:
    """Two products with an activation between them dispatch as the kernel that is written by hand."""
    rng = np.random.default_rng(3)
    x, up, down = (rng.standard_normal(s).astype(np.float16) for s in ((64, 128), (64, 128), (32, 64)))
    program = ktpu.auto(lambda x, up, down: ops.silu(x @ up) @ down, x, up, down)
    assert len(program.chosen.steps) == 2
    (section,) = program.sections(device.machine)
    assert section.call is not None
    kernel = ktpu.call(library.mlp("silu"), x, up, down)
    mine = ktpu.compile(section.call, device.machine).artifact.meta["counters"]
    theirs = ktpu.compile(kernel, device.machine).artifact.meta["counters"]
    assert mine == theirs
    want = ktpu.run(kernel, device)["y"]
    assert np.array_equal(program.run(device).numpy().view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: x @ w + x,
        lambda x, w: x @ x + w,
        lambda x, w: (x @ w) @ x + x,
        lambda x, w: ops.silu(x @ w) * (w @ x) + w * x,
    ],
)
def test_an_input_read_in_several_ways(f: Callable[[Expr, Expr], Expr], device: ktpu.TensorDevice) -> None:
    """As a left and a right operand and element by element: one program, class M2."""
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((64, 64)).astype(np.float16), (rng.standard_normal((64, 64)) / 8).astype(np.float16)
    program = ktpu.auto(f, x, w)
    assert len(program.sections(device.machine)) == 1
    want = interpret(program.expression, {"x": x, "w": w})
    error = np.abs(program.run(device).numpy() - want) / np.abs(want).max()
    assert np.median(error) <= 6e-3
    assert error.max() <= 4e-2


def test_results_that_a_later_program_reads(device: ktpu.TensorDevice) -> None:
    """Two products before a step of the host and one behind it, all of which are read again."""
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((32, 32)).astype(np.float16), (rng.standard_normal((32, 32)) / 6).astype(np.float16)

    def f(x: Expr, w: Expr) -> Expr:
        a = ops.silu(x @ w)
        b = ops.relu(w @ a)
        return ops.transpose(a + b) * b + a

    program = ktpu.auto(f, x, w)
    assert program.host_steps == 1
    want = interpret(program.expression, {"x": x, "w": w})
    error = np.abs(program.run(device).numpy() - want) / np.abs(want).max()
    assert error.max() <= 4e-2


def _split(rows: int, heads: int, d: int) -> Callable[..., Expr]:
    return lambda x, w: ops.transpose(ops.reshape(x @ w, rows, heads, d), 1, 0, 2)


def _join(heads: int, rows: int, d: int) -> Callable[..., Expr]:
    return lambda o, w: ops.reshape(ops.transpose(o, 1, 0, 2), rows, heads * d) @ w


def _gated(product: Expr) -> Expr:
    h, g = ops.chunk(product)
    return h * ops.silu(g)


def _gate(x: Expr, w: Expr) -> Expr:
    return _gated(x @ w)


def _gate_bias(x: Expr, w: Expr, b: Expr) -> Expr:
    return _gated(x @ w + b)


def _keys(keys: int) -> Callable[..., Expr]:
    def attention(q: Expr, k: Expr, v: Expr) -> Expr:
        return ops.softmax((q @ ops.take(k, -2, 0, keys)) * 0.125) @ ops.take(v, -1, 0, keys)

    return attention


SHAPES: tuple[tuple[str, Callable[..., Expr], tuple[tuple[int, ...], ...], bool], ...] = (
    ("heads of 4", _split(16, 3, 4), ((16, 64), (12, 64)), False),
    ("heads of 6", _split(16, 3, 6), ((16, 64), (18, 64)), True),
    ("10 rows", _split(10, 3, 8), ((10, 64), (24, 64)), True),
    ("joined heads of 32", _join(3, 16, 32), ((3, 16, 32), (24, 96)), False),
    ("joined heads of 48", _join(3, 16, 48), ((3, 16, 48), (24, 144)), True),
    ("18 joined rows", _join(3, 18, 32), ((3, 18, 32), (24, 96)), True),
    ("halves of 4", _gate, ((16, 64), (8, 64)), False),
    ("halves of 6", _gate, ((16, 64), (12, 64)), True),
    ("biased halves of 16", _gate_bias, ((16, 64), (32, 64), (32,)), False),
    ("biased halves of 20", _gate_bias, ((16, 64), (40, 64), (40,)), True),
    ("7 queries", _keys(64), ((1, 7, 64), (1, 64, 64), (1, 64, 64)), False),
    ("18 queries of two heads", _keys(64), ((2, 18, 64), (2, 64, 64), (2, 64, 64)), True),
    ("77 keys", _keys(77), ((1, 96, 64), (1, 128, 64), (1, 64, 128)), False),
    ("77 keys, 40 queries", _keys(77), ((1, 40, 64), (1, 128, 64), (1, 64, 128)), True),
    ("odd product", lambda x, w, b: ops.silu(x @ w + b), ((7, 50), (9, 50), (9,)), False),
    ("odd batch", lambda x, w: x @ w, ((3, 7, 50), (3, 9, 50)), True),
    ("rows of 20", ops.softmax, ((5, 20),), True),
    ("one row", lambda x, g: ops.softmax(x) * g, ((5, 32), (32,)), False),
    ("one column", lambda x, c: x * c, ((5, 32), (5, 1)), True),
)
"""Extents at and beyond the preconditions; True where the host has to do a part."""


@pytest.mark.parametrize(("f", "shapes", "host"), [pytest.param(*s[1:], id=s[0]) for s in SHAPES])
def test_extents_at_the_limits(
    f: Callable[..., Expr], shapes: tuple[tuple[int, ...], ...], host: bool, device: ktpu.TensorDevice
) -> None:
    """What an entry or a kernel does not take is left to another way, and the result is right."""
    rng = np.random.default_rng(3)
    values = [(rng.standard_normal(s) / 3).astype(np.float16) for s in shapes]
    program = ktpu.auto(f, *values)
    assert (program.host_steps > 0) == host, program.text()
    want = interpret(program.expression, dict(zip(program.values, values, strict=True)))
    assert np.abs(program.run(device).numpy() - want).max() <= 6e-2 * np.abs(want).max()


def test_host_step_between_two_programs(device: ktpu.TensorDevice) -> None:
    """A transpose no rewrite removes splits the program; it is listed, counted and computed."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((16, 32)).astype(np.float16)
    program = ktpu.auto(lambda x: ops.relu(ops.transpose(ops.relu(x - 0.5)) - 0.25), x)
    assert [s.how for s in program.chosen.steps] == ["chain", "host", "chain"]
    assert "host transpose" in program.text()
    assert program.host_steps == 1
    assert [s.call is None for s in program.sections(device.machine)] == [False, True, False]
    want = np.maximum(np.maximum(x.astype(np.float64) - 0.5, 0).T - 0.25, 0)
    assert np.abs(program.run(device).numpy() - want).max() < 4e-3


def test_arrays_of_a_device_stay_there(device: ktpu.TensorDevice) -> None:
    """Without a named device the program runs where its arrays live, views included."""
    x = ktpu.tensor(np.arange(64 * 32).reshape(64, 32) % 7, device)
    program = ktpu.auto(lambda x: ops.reshape(ops.reshape(x, 4, 16, 32) + 1.0, 64, 32), x)
    assert np.array_equal(program.run().numpy(), x.numpy() + 1)


def test_other_arrays_of_the_same_shapes(device: ktpu.TensorDevice) -> None:
    """The choice is kept, and the device compiles nothing again."""
    program = ktpu.auto(lambda x: ops.relu(x - 0.5), np.zeros((8, 32)))
    program.run(device)
    before = device.stats()["compiled"]
    x = np.linspace(-1, 1, 8 * 32).reshape(8, 32)
    got = program.of(x).run(device).numpy()
    assert np.abs(got - np.maximum(x - 0.5, 0)).max() < 1e-3
    assert device.stats()["compiled"] == before
    assert ktpu.auto(ops.relu, (8, 32)).of(x).run(device).shape == (8, 32)
    with pytest.raises(CompileError, match=r"takes x \(8, 32\); given: \(8, 16\)"):
        program.of(np.zeros((8, 16)))


def test_a_view_alone_is_no_program(device: ktpu.TensorDevice) -> None:
    """A reshape of an input runs nothing."""
    program = ktpu.auto(lambda x: ops.reshape(x, 8, 16), np.ones((4, 32)))
    assert not program.chosen.steps
    assert program.run(device).shape == (8, 16)


def test_whole_transformer_attention(device: ktpu.TensorDevice) -> None:
    """Projections, attention, join and residual from one input: one program of five steps, class A."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((64, 128)).astype(np.float16)
    weights = [(rng.standard_normal((128, 128)) / 12).astype(np.float16) for _ in range(4)]

    def block(x: Expr, wq: Expr, wk: Expr, wv: Expr, wo: Expr) -> Expr:
        q, k, v = (ops.transpose(ops.reshape(x @ w, 64, 2, 64), 1, 0, 2) for w in (wq, wk, wv))
        o = ops.softmax((q @ k) * 0.125) @ ops.transpose(v)
        return ops.reshape(ops.transpose(o, 1, 0, 2), 64, 128) @ wo + x

    program = ktpu.auto(block, x, *weights)
    assert [s.how for s in program.chosen.steps] == ["product", "product", "product", "library", "product"]
    assert program.host_steps == 0
    assert len(program.sections(device.machine)) == 1
    want = interpret(program.expression, dict(zip(("x", "wq", "wk", "wv", "wo"), (x, *weights), strict=True)))
    error = np.abs(program.run(device).numpy() - want) / np.abs(want).max()
    assert np.median(error) <= 5e-3
    assert error.max() <= 6e-2
