# SPDX-License-Identifier: Apache-2.0
"""Random kernels through compiler and model against the reference arithmetic and float64 (docs/spec/compiler.md 17).

A failure names the command that repeats the one kernel, see :mod:`random_kernels`.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from kohakubench.bench import ROOT
from kohakubench.programs import device
from kohakutpu.errors import CannotFuse, CompileError
from kohakutpu.graph import Graph, Op, Value, interpret
from kohakutpu.model.numerics import dequantise, quantise
from ktpu.numerics_bounds import bounds, quantisation_error
from ktpu.numerics_graph import evaluate
from ktpu.numerics_reference import Codes, exact_bits, quantised, real
from random_kernels import CHUNK, KINDS, Outcome, build, check, check_results, kernel, read_back, refusal, summary

pytestmark = pytest.mark.unit

CHUNKS = 100
"""Chunks of the nightly run: 10,000 kernels with the one of the normal run."""


@pytest.fixture(scope="module")
def sample() -> list[Outcome]:
    """The kernels of chunk 0."""
    return [check(seed) for seed in range(CHUNK)]


def test_sample(sample: list[Outcome]) -> None:
    """A chunk of kernels of every kind; most compile, and the bounds say something about most elements."""
    print(summary(sample))
    ran = [o for o in sample if not o.refused]
    assert {o.kind for o in ran} == set(KINDS)
    assert len(ran) >= 0.75 * CHUNK
    assert sum(o.bounded for o in ran) >= 0.8 * sum(o.elements for o in ran)
    assert np.median([o.width for o in ran if o.bounded]) < 1e-2


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(1, CHUNKS))
def test_chunks(chunk: int) -> None:
    print(summary([check(seed) for seed in range(CHUNK * chunk, CHUNK * (chunk + 1))]))


# ------------------------------------------------------------------ the checks themselves


def runs(seed: int = 0) -> tuple[int, dict[str, np.ndarray]]:
    """The first kernel from ``seed`` that compiles, and its result's bits."""
    while isinstance(compiled := build(k := kernel(seed)), str):
        seed += 1
    dev = device(k.body)
    assert not dev.run(compiled.artifact).failed
    return seed, read_back(dev, compiled)


@pytest.mark.parametrize("seed", [0, 10, 20])
def test_one_wrong_bit_is_noticed(seed: int) -> None:
    """The last bit of one element of the result."""
    seed, got = runs(seed)
    check_results(kernel(seed), got)
    name = next(iter(got))
    got[name] = got[name].copy()
    got[name][-1, -1] ^= 1
    with pytest.raises(AssertionError, match=f"{name}: 1 of .* differ, first at"):
        check_results(kernel(seed), got)


def test_a_wrong_operand_is_outside_the_bounds() -> None:
    """An element that every result of its row depends on, tripled: the bounds alone tell."""
    graph = product_graph(16, 16, 64)
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype(np.float16) for s in ((16, 64), (16, 64)))
    low, high = bounds(graph, {"x": x, "w": w})["y"]
    x[3, 5] += 4
    got = interpret(graph, {"x": x, "w": w})["y"]
    outside = (got < low) | (got > high)
    assert outside[3].sum() > 8
    assert not np.delete(outside, 3, axis=0).any()


def product_graph(m: int, n: int, k: int) -> Graph:
    graph = Graph()
    for name, shape, role in (("x", (m, k), "in"), ("w", (n, k), "in"), ("y", (m, n), "out")):
        graph.value(Value(name, "fp16", shape, role))  # type: ignore[arg-type]
    graph.ops.append(Op("contract", ("x", "w"), "y"))
    return graph


def test_refusals_are_a_closed_list() -> None:
    k = kernel(0)
    with pytest.raises(AssertionError, match="not in the list: CompileError: the moon is full"):
        refusal(CompileError("the moon is full"), k)
    fused = CannotFuse("epilogue into y: 3 tiles for 2 vector cores")
    assert refusal(fused, replace(k, options={"fuse": "require"})) == "cannot fuse"
    with pytest.raises(AssertionError, match="not in the list: CannotFuse"):
        refusal(fused, replace(k, options={"fuse": "auto"}))


def test_a_seed_is_one_kernel() -> None:
    """Graph, operands, machine and options depend on the seed alone; the command of a failure runs it."""
    for seed in range(8):
        a, b = kernel(seed), kernel(seed)
        assert a.call.trace.graph.text() == b.call.trace.graph.text()
        assert all(np.array_equal(v, b.call.operands[n], equal_nan=True) for n, v in a.call.operands.items())
        assert (a.options, a.body) == (b.options, b.body)
    words = kernel(3).repeat.split()
    assert words[1] == "python"
    done = subprocess.run([sys.executable, *words[2:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("1 kernels")


def test_quantiser_stays_within_its_bound() -> None:
    """Every binade of a block's peak, subnormal peaks included, and lone elements: 200,000 elements."""
    rng = np.random.default_rng(2)
    values = rng.standard_normal((6400, 32)) * 2.0 ** rng.uniform(-26, 15, (6400, 1)) * 2.0 ** rng.uniform(-9, 0)
    values[::7, 1:] = 0
    half = np.clip(values, -65504, 65504).astype(np.float16)
    exact = half.astype(np.float64)
    off = np.abs(dequantise(*quantise(half.view(np.uint16))) - exact)
    limit = quantisation_error(exact)
    assert (off <= limit).all()
    assert (off > 0.8 * limit).any()
    assert np.array_equal(quantised(exact[:8]), dequantise(*quantise(half[:8].view(np.uint16))))


# ------------------------------------------------------------------ the references


def test_references_of_a_product() -> None:
    """As written is float64; behind the quantiser the format shows; the machine's bits are those of mx, rounded."""
    rng = np.random.default_rng(3)
    graph = product_graph(32, 24, 96)
    x, w = (rng.standard_normal(s).astype(np.float16) for s in ((32, 96), (24, 96)))
    operands = {"x": x, "w": w}
    plain, mx = real(graph, operands)["y"], real(graph, operands, mx=True)["y"]
    assert np.array_equal(plain, x.astype(np.float64) @ w.astype(np.float64).T)
    peak = np.abs(plain).max()
    assert 1e-3 < np.abs(mx - plain).max() / peak < 3e-2
    bits = exact_bits(graph, operands)["y"].view(np.float16).astype(np.float64)
    assert np.abs(bits - mx).max() / peak < 1e-3


def test_reference_of_a_stored_value() -> None:
    """A stored value is read back rounded by the machine's arithmetic, not by float64."""
    graph = Graph()
    for name, role in (("x", "in"), ("t", "temp"), ("y", "out")):
        graph.value(Value(name, "fp16", (1, 16), role))  # type: ignore[arg-type]
    graph.value(Value("k", "e8m15", (1, 1), "const", 1 / 3))
    graph.ops += [Op("mul", ("x", "k"), "t"), Op("sub", ("t", "x"), "y")]
    x = np.linspace(1, 2, 16).astype(np.float16)[None]
    third = (x.astype(np.float64) * np.float64(21845.5 / 65536)).astype(np.float16)
    env = evaluate(graph, {"x": x}, Codes())
    assert set(env) == {"x", "k", "t", "y"}
    exact = exact_bits(graph, {"x": x})["y"].view(np.float16)
    assert np.array_equal(exact, (third.astype(np.float64) - x).astype(np.float16))
    assert np.abs(real(graph, {"x": x})["y"] + x.astype(np.float64) * 2 / 3).max() < 1e-15
