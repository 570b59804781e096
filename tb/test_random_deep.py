# SPDX-License-Identifier: Apache-2.0
"""Random programs of several layers, compiled in several ways (docs/spec/compiler.md 4, 7.1, 8.2, 8.3, 17).

A failure names the command that repeats the one program, see :mod:`random_kernels`; the smallest form of what such
programs have found stands here.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import ktpu
from kohakubench.bench import ROOT
from kohakubench.programs import description, device, spec
from kohakutpu.errors import CompileError
from kohakutpu.graph import Graph, Op, Value, verify
from kohakutpu.kernels import Trace
from kohakutpu.schedule.relayout import RelayoutBand
from kohakutpu.schedule.requantise import Blank
from kohakutpu.tensor import Call
from kohakutpu.views import Spread, Window
from ktpu.numerics_reference import exact_bits
from random_deep import FORMS, deep, in_pieces
from random_kernels import CHUNK, Outcome, check, merged, read_back, summary, variants

pytestmark = pytest.mark.unit

CHUNKS = 20
"""Chunks of the nightly run."""

SAMPLE = 40
"""Programs of the normal run."""

MOVER = description(1, cores=2, features=("emit_fuse", "vshuf_pred", "xform_granule"))
CORES = description(1, cores=2, features=("emit_fuse", "vshuf_pred"))


@pytest.fixture(scope="module")
def sample() -> list[Outcome]:
    """The first programs, every tenth of them compiled in other ways too."""
    return [check(seed, deep, others=seed % 10 == 0) for seed in range(SAMPLE)]


def test_sample(sample: list[Outcome]) -> None:
    """Programs with every form run; most compile, and whatever else compiles gives the same bits."""
    print(summary(sample))
    ran = [o for o in sample if not o.refused]
    assert {f for o in ran for f in o.forms} == set(FORMS)
    assert len(ran) >= 0.7 * SAMPLE
    assert sum(o.same for o in sample) >= 0.3 * SAMPLE


@pytest.mark.slow
@pytest.mark.parametrize("chunk", range(1, CHUNKS))
def test_chunks(chunk: int) -> None:
    """A chunk, every tenth program of it in other ways too."""
    seeds = range(CHUNK * chunk, CHUNK * (chunk + 1))
    print(summary([check(seed, deep, others=seed % 10 == 0) for seed in seeds]))


def test_a_seed_is_one_program() -> None:
    """Graph, operands, machine and options depend on the seed alone; the command of a failure runs it."""
    for seed in range(8):
        a, b = deep(seed), deep(seed)
        assert a.call.trace.graph.text() == b.call.trace.graph.text()
        assert all(np.array_equal(v, b.call.operands[n], equal_nan=True) for n, v in a.call.operands.items())
        assert (a.options, a.body, a.forms) == (b.options, b.body, b.forms)
    words = deep(3).repeat.split()
    done = subprocess.run([sys.executable, *words[2:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("1 kernels {'deep")


def test_variants_differ() -> None:
    """Every other way is another set of options or another tier."""
    for seed in range(4):
        ways = {(str(v.options), v.call.trace.graph.text()) for v in variants(deep(seed))}
        assert len(ways) >= 5


# ------------------------------------------------------------------ what programs found


def graph_of(*ops: Op, **values: tuple[str, tuple[int, int]]) -> Graph:
    """Values by name as (role, shape), numbers as role "const 0.5"."""
    graph = Graph()
    for name, (role, shape) in values.items():
        number = float(role.split()[1]) if role.startswith("const") else None
        dtype = "e8m15" if number is not None or role == "register" else "fp16"
        kind: Any = {"register": "temp"}.get(role, role.split()[0])
        graph.value(Value(name, dtype, shape, kind, number))
    graph.ops += ops
    return graph


def same(graph: Graph, body: dict[str, Any], **options: Any) -> ktpu.Compiled:
    """Compile, run and compare with the reference arithmetic."""
    rng = np.random.default_rng(7)
    shapes = {v.name: v.shape for v in graph.values.values() if v.role == "in"}
    operands = {n: (rng.standard_normal(s) / np.sqrt(s[1])).astype(np.float16) for n, s in shapes.items()}
    compiled = ktpu.compile(Call(Trace("found", graph, {}), operands), spec(body), **options)
    dev = device(body)
    done = dev.run(compiled.artifact)
    assert not done.failed, done.problems()
    want = exact_bits(in_pieces(graph), operands)
    for name, bits in read_back(dev, compiled).items():
        assert np.array_equal(bits, want[name]), name
    return compiled


def test_an_operand_of_a_dead_op() -> None:
    """An op that leads to nothing stored is never run, so it does not count as a reader."""
    graph = graph_of(
        Op("neg", ("x1",), "t"),
        Op("mul", ("x0", "k"), "y"),
        x0=("in", (1, 16)),
        x1=("in", (1, 16)),
        k=("const 0.5", (1, 1)),
        t=("register", (1, 16)),
        y=("out", (1, 16)),
    )
    with pytest.raises(CompileError, match=r"input x1 is read only by t = neg\(x1\), which leads to no stored value"):
        verify(graph)
    graph.ops.append(Op("add", ("t", "y"), "z"))
    graph.value(Value("z", "fp16", (1, 16), "out"))
    same(graph, CORES)


def test_one_value_read_whole_in_two_ways() -> None:
    """A spread that is all of a product is that product, which the pass waits for once."""
    graph = graph_of(
        Op("contract", ("x", "w"), "p"),
        Op("maximum", ("p", "p"), "y", (), (Spread(0, 64, 1, 64), None)),
        x=("in", (4, 32)),
        w=("in", (16, 32)),
        p=("temp", (4, 16)),
        y=("out", (4, 16)),
    )
    compiled = same(graph, CORES)
    assert compiled.schedule.bands[-1].reads == ("p",)


def layers(hidden: int, *, inverted: bool = True, rows: int = 12, **knobs: int) -> Graph:
    """Two products with ``hidden`` columns between; ``inverted`` makes 1/p of p, so that padding is infinite."""
    attrs = tuple(sorted(knobs.items()))
    graph = graph_of(
        Op("contract", ("x", "w"), "p", attrs),
        *([Op("recip", ("p",), "h")] if inverted else []),
        Op("contract", ("h" if inverted else "p", "u"), "y"),
        x=("in", (rows, 32)),
        w=("in", (hidden, 32)),
        u=("in", (16, hidden)),
        p=("temp", (rows, hidden)),
        y=("out", (rows, 16)),
    )
    if inverted:
        graph.value(Value("h", "fp16", (rows, hidden), "temp"))
    return graph


@pytest.mark.parametrize("hidden", [4, 12, 20, 36, 60, 72, 100])
@pytest.mark.parametrize("body", [MOVER, CORES], ids=["mover", "cores"])
@pytest.mark.parametrize("knobs", [{}, {"gm": 2, "gn": 4, "nk": 1}, {"gm": 1, "gn": 8, "nk": 1}])
def test_columns_that_end_inside_a_word(hidden: int, body: dict[str, Any], knobs: dict[str, int]) -> None:
    """Whole sub-tiles behind the columns of a value between two products become zeros in its tiles."""
    compiled = same(layers(hidden, **knobs), body)
    blanks = [c for c in compiled.schedule.conversions if isinstance(c, Blank)]
    tiles = 4 * knobs.get("gn", 4)
    assert len(blanks) == (hidden % tiles != 0)


@pytest.mark.parametrize("columns", [4, 20, 60, 72])
@pytest.mark.parametrize("body", [MOVER, CORES], ids=["mover", "cores"])
def test_a_pass_over_operands_of_the_host(columns: int, body: dict[str, Any]) -> None:
    """Rows that are no whole words come from the host in tiles where a product reads what becomes of them."""
    graph = graph_of(
        Op("add", ("x", "b"), "t"),
        Op("exp2", ("t",), "h"),
        Op("contract", ("h", "u"), "y"),
        x=("in", (6, columns)),
        b=("in", (1, columns)),
        u=("in", (16, columns)),
        t=("register", (6, columns)),
        h=("temp", (6, columns)),
        y=("out", (6, 16)),
    )
    compiled = same(graph, body)
    assert compiled.schedule.buffers["x"].layout.startswith("tile:")


@pytest.mark.parametrize("rows", [1, 12])
@pytest.mark.parametrize("hidden", [4, 18, 27, 50, 72])
@pytest.mark.parametrize("body", [MOVER, CORES], ids=["mover", "cores"])
def test_columns_with_zeros_behind_them(rows: int, hidden: int, body: dict[str, Any]) -> None:
    """A product of host operands has zeros there already, whatever its columns."""
    compiled = same(layers(hidden, inverted=False, rows=rows), body)
    assert not any(isinstance(c, Blank) for c in compiled.schedule.conversions)
    assert any(isinstance(b, RelayoutBand) for b in compiled.schedule.bands) == (body is CORES)


def test_columns_that_end_inside_a_sub_tile() -> None:
    """Elements of one word cannot be told apart; the message names the fix."""
    for body in (MOVER, CORES):
        with pytest.raises(CompileError, match=r"its 18 columns end inside a sub-tile .* use a multiple of 16 columns"):
            same(layers(18), body)
    with pytest.raises(CompileError, match=r"tiles of 20 columns do not end on a word; use a multiple of 16 columns"):
        same(layers(20, gm=1, gn=1, nk=1), CORES)


def test_ragged_rows_read_as_rows() -> None:
    """Rows of a product that no pass can read name the fix, whatever brings them into rows."""
    graph = layers(20, gm=1, gn=4, nk=1)
    graph.ops[1] = Op("add", ("p", "p"), "h", (), (Spread(20, 20, 12, 0), None))
    for body in (MOVER, CORES):
        with pytest.raises(CompileError, match=r"p is read in rows; .* use a multiple of 16 columns"):
            same(graph, body)


def test_blocks_that_leave_no_gn_of_whole_words() -> None:
    """B starts at row 4, so tiles have one column of sub-tiles; the cores bring those into rows too."""
    graph = graph_of(
        Op("contract", ("x", "w"), "p", (), (None, Window(1, 4, 32, 0, 32))),
        Op("row_max", ("p",), "t"),
        Op("sub", ("p", "t"), "y"),
        x=("in", (8, 32)),
        w=("in", (36, 32)),
        p=("temp", (8, 32)),
        t=("register", (8, 1)),
        y=("out", (8, 32)),
    )
    for body in (MOVER, CORES):
        compiled = same(graph, body)
        assert any(isinstance(b, RelayoutBand) for b in compiled.schedule.bands)


def test_programs_that_may_lose_the_sign_of_a_zero() -> None:
    """Without a predicated shuffle, rows made by cores are compared only where no -0 and no NaN is about."""
    for body, odd in ((description(1, cores=2, features=("emit_fuse",)), True), (CORES, False)):
        compiled = same(layers(32), body)
        k = replace(deep(0), call=compiled.call)
        assert not merged(k, compiled)
        compiled.call.operands["x"][0, 0] = -0.0
        assert merged(k, compiled) == odd
