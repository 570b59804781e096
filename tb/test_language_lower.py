# SPDX-License-Identifier: Apache-2.0
"""Kernels of the language as graphs: meaning against numpy, and forms that are refused (docs/spec/compiler.md 11)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from kohakutpu.errors import TraceError
from kohakutpu.graph import interpret
from kohakutpu.kernels.language import (
    In,
    Kernel,
    Out,
    dims,
    exp2,
    kernel,
    loop,
    maximum,
    recip,
    region,
    row_max,
    row_sum,
    temp,
    tile,
    units,
    where,
)
from kohakutpu.kernels.language.lower import lower

pytestmark = pytest.mark.unit

M, N, K = dims("M, N, K")
LOG2E = math.log2(math.e)
F64 = npt.NDArray[np.float64]


def rand(*shape: int) -> F64:
    """Values FP16 holds."""
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float16).astype(np.float64)


def run(k: Kernel, **arrays: F64) -> dict[str, F64]:
    """Interpret a kernel; arrays take the matrix shape the graph gives them."""
    trace = lower(k.trace().extents({n: a.shape for n, a in arrays.items()}))
    values = trace.graph.values
    return interpret(trace.graph, {n: a.reshape(values[n].shape) for n, a in arrays.items()})


def close(got: F64, want: F64) -> None:
    assert np.abs(got.reshape(want.shape) - want).max() <= 2e-3 * max(1.0, np.abs(want).max())


@kernel
def gated(x=In(..., M, K), wg=In(N, K), wu=In(N, K), b=In(N), r=In(..., M, N), y=Out(..., M, N), *, gm=2, gn=2, nk=1):  # type: ignore[no-untyped-def]
    for i, j in units(x.tiles(gm), wg.tiles(gn)):
        g = tile(gm, gn, nk)
        for k in loop(x.chunks32(nk)):
            g += x[i, k] @ wg[j, k]
        u = tile(gm, gn, nk)
        for k in loop(x.chunks32(nk)):
            u += x[i, k] @ wu[j, k]
        v = g + b[j]
        y[i, j] <<= v * recip(exp2(-v * LOG2E) + 1) * u + r[i, j]


def test_two_accumulators_bias_and_residual() -> None:
    x, wg, wu, b, r = rand(2, 12, 64), rand(20, 64) / 8, rand(20, 64) / 8, rand(20), rand(2, 12, 20)
    got = run(gated, x=x, wg=wg, wu=wu, b=b, r=r)["y"]
    v = x @ wg.T + b
    close(got, v / (1 + np.exp(-v)) * (x @ wu.T) + r)


def test_printed_graph_builds_a_repeated_subexpression_once() -> None:
    shapes = {"x": (8, 32), "wg": (8, 32), "wu": (8, 32), "b": (8,), "r": (8, 8)}
    text = lower(gated.trace().extents(shapes)).graph.text()
    assert text.count("= add(z0, b)") == 1
    assert "z0 = contract(x, wg) gm=2 gn=2 nk=1" in text


def test_softmax_over_rows_of_a_block_of_any_rank() -> None:
    @kernel
    def softmax(x=In(...), y=Out(...), *, part=8192):  # type: ignore[no-untyped-def]
        v, o = x.as_rows(64), y.as_rows(64)
        for e in units(x.parts(part)):
            ex = exp2((v[e] - row_max(v[e])) * LOG2E)
            o[e] <<= ex / row_sum(ex)

    x = rand(3, 4, 128)
    got = run(softmax, x=x)["y"]
    rows = np.exp(x.reshape(-1, 64) - x.reshape(-1, 64).max(axis=1, keepdims=True))
    close(got, (rows / rows.sum(axis=1, keepdims=True)).reshape(x.shape))


def test_temps_tables_views_and_whole_statements() -> None:
    @kernel
    def chain(x=In(M, N), b=In(N), y=Out(M, N), z=Out(M, N)):  # type: ignore[no-untyped-def]
        t = temp(M, N)
        t <<= maximum(x, 0) + b.repeated()
        y <<= where(t, t / 4.0, x)
        z <<= t

    x, b = rand(6, 16), rand(16)
    got = run(chain, x=x, b=b)
    t = np.maximum(x, 0) + b
    close(got["y"], np.where(t != 0, t / 4, x))
    close(got["z"], t)


def test_region_spelling_gives_the_same_graph() -> None:
    def body(spelling: str) -> Kernel:
        def product(a=In(M, K), b=In(N, K), c=Out(M, N), *, gm=2, gn=4, nk=1):  # type: ignore[no-untyped-def]
            for i, j in units(a.tiles(gm), b.tiles(gn)):
                acc = tile(gm, gn, nk)
                for k in loop(a.chunks32(nk)):
                    if spelling == "tile":
                        acc += a[i, k] @ b[j, k]
                    else:
                        ra, rb = region(gm, nk), region(gn, nk)
                        ra <<= a[i, k]
                        rb <<= b[j, k]
                        acc += ra @ rb
                c[i, j] <<= acc

        return kernel(product)

    shapes = {"a": (40, 96), "b": (24, 96)}
    texts = {lower(body(s).trace().extents(shapes)).graph.text() for s in ("tile", "region")}
    assert len(texts) == 1


def test_single_chunk_without_a_loop() -> None:
    @kernel
    def short(a=In(M, K), b=In(N, K), c=Out(M, N), *, gm=2, gn=4, nk=2):  # type: ignore[no-untyped-def]
        for i, j in units(a.tiles(gm), b.tiles(gn)):
            acc = tile(gm, gn, nk)
            acc += a[i, 0] @ b[j, 0]
            c[i, j] <<= acc

    a, b = rand(8, 64), rand(16, 64)
    close(run(short, a=a, b=b)["c"], a @ b.T)
    with pytest.raises(TraceError, match=r"a\[i0, 0\] does not sweep all of K; write for k in loop"):
        run(short, a=rand(8, 96), b=rand(16, 96))


# ---------------------------------------------------------------------------------------------------- refused forms


def refuse(message: str, body: object, **shapes: tuple[int, ...]) -> None:
    k = kernel(body)  # type: ignore[arg-type]
    with pytest.raises(TraceError, match=message):
        lower(k.trace().extents(shapes))


def test_vector_forms_refused() -> None:
    def lengths(x=In(M, N), b=In(N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x + b

    refuse(r"covers 4x8 elements, b 1x8; .* as b.repeated\(\)", lengths, x=(4, 8), b=(8,))

    def two_widths(x=In(...), z=In(...), y=Out(...)):  # type: ignore[no-untyped-def]
        y_rows = y.as_rows(16)
        y_rows <<= x.as_rows(16) - row_max(z.as_rows(8))

    refuse("rows of 16 and 8|rows of 8 and 16", two_widths, x=(4, 16), z=(4, 16))

    def one_buffer_two_widths(x=In(...), y=Out(...)):  # type: ignore[no-untyped-def]
        y <<= x.as_rows(16) - row_max(x.as_rows(8))

    refuse("y <<= ... mixes rows of 8 and 16", one_buffer_two_widths, x=(4, 16))

    def ragged(x=In(...), y=Out(...)):  # type: ignore[no-untyped-def]
        y <<= x.as_rows(24) - row_max(x.as_rows(24))

    refuse("x has 64 elements, no whole number of rows of 24", ragged, x=(4, 16))

    def short_grid(x=In(M, N), z=In(N), y=Out(M, N), *, part=16):  # type: ignore[no-untyped-def]
        for e in units(z.parts(part)):
            y[e] <<= x[e] + z.repeated()[e]

    refuse("the grid covers 8 elements, y has 32", short_grid, x=(4, 8), z=(8,))

    def shifted(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x.rows_from(1) + x

    refuse(r"x.rows_from\(1\): the statement covers 32 elements and reads element 39 of 32", shifted, x=(4, 8))


def test_a_tier_the_graph_cannot_carry_is_refused() -> None:
    """Rather than forgotten."""

    def near(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        t = temp(M, N, tier="near")
        t <<= x + 1
        y <<= t + 1

    refuse("temp t0 asks for tier 'near'; a graph knows 'dram' and 'l2'", near, x=(4, 8))


def test_contraction_forms_refused() -> None:
    def other_grid(a=In(M, K), b=In(N, K), c=Out(M, N), *, gm=2, gn=2, nk=1):  # type: ignore[no-untyped-def]
        for i, j in units(b.tiles(gm), b.tiles(gn)):
            acc = tile(gm, gn, nk)
            for k in loop(a.chunks32(nk)):
                acc += a[i, k] @ b[j, k]
            c[i, j] <<= acc

    refuse(r"a\[i0, s0\] in a grid of cdiv\(N, 8\) instances", other_grid, a=(8, 32), b=(16, 32))

    def swapped_target(a=In(M, K), b=In(N, K), c=Out(M, N), *, gm=2, gn=2, nk=1):  # type: ignore[no-untyped-def]
        for i, j in units(a.tiles(gm), b.tiles(gn)):
            acc = tile(gm, gn, nk)
            for k in loop(a.chunks32(nk)):
                acc += a[i, k] @ b[j, k]
            c[j, i] <<= acc

    refuse(r"tile \(i0, i1\) goes to c\[i0, i1\]", swapped_target, a=(8, 32), b=(8, 32))

    def twice(a=In(M, K), b=In(N, K), c=Out(M, N), *, gm=2, gn=2, nk=1):  # type: ignore[no-untyped-def]
        for i, j in units(a.tiles(gm), b.tiles(gn)):
            acc = tile(gm, gn, nk)
            for k in loop(a.chunks32(nk)):
                acc += a[i, k] @ b[j, k]
            for k in loop(a.chunks32(nk)):
                acc += a[i, k] @ b[j, k]
            c[i, j] <<= acc

    refuse("acc0 is swept by two statements", twice, a=(8, 32), b=(8, 32))
