# SPDX-License-Identifier: Apache-2.0
"""Periodic reads, loops, parts and attention in the kernel language (docs/spec/compiler.md 4, 11)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kohakutpu.errors import CompileError, TraceError
from kohakutpu.graph import requests
from kohakutpu.kernels.language import (
    In,
    Kernel,
    Out,
    adjacent,
    exp2,
    kernel,
    loop,
    maximum,
    row_max,
    row_sum,
    table,
    temp,
    tile,
    units,
)
from kohakutpu.kernels.language.integers import cdiv, integer
from kohakutpu.kernels.language.lower import lower
from kohakutpu.schedule import Elementwise
from kohakutpu.views import Window
from language_forms import OPEN, D, K, Knobs, L, M, N, V, close, contraction, rand, run, traced

pytestmark = pytest.mark.unit

# --------------------------------------------------------------------------------------------------------- spreads


def test_row_repeat_and_repeated() -> None:
    @kernel
    def repeat(x=In(M, 32), c=In(M, 16), t=In(48), y=Out(M, 32)):  # type: ignore[no-untyped-def]
        for e in units(x.parts(1024)):
            y[e] <<= x[e] * c.row_repeat(2)[e] + t.repeated()[e]

    x, c, t = rand(6, 32), rand(6, 16), rand(48)
    close(run(repeat, {"x": x, "c": c, "t": t})["y"], x * np.tile(c, 2) + np.resize(t, (6, 32)))
    with pytest.raises(TraceError, match="repeats every 48 elements, the statement covers 160"):
        traced(repeat, {"x": rand(5, 32), "c": rand(5, 16), "t": t})


def test_per_group_and_the_wide_fold() -> None:
    """Means of groups of three rows: a shorter temp, read back by the whole group."""

    @kernel
    def centred(x=In(...), y=Out(...), *, part=384):  # type: ignore[no-untyped-def]
        v, o = x.as_rows(16), y.as_rows(16)
        first = v.rows - 2
        sums, pair, mean = temp(v.rows, 16), temp(first, 16), temp(first, 16)
        for e in units(v.parts(part)):
            sums[e] <<= row_sum(v[e] / 16)
        for e in units(pair.parts(part)):
            pair[e] <<= sums.rows_from(0)[e] * 0.5 + sums.rows_from(1)[e] * 0.5
        for e in units(mean.parts(part)):
            mean[e] <<= pair[e] * (2 / 3) + sums.rows_from(2)[e] * (1 / 3)
        for e in units(v.parts(part)):
            o[e] <<= v[e] - mean.per_group(3)[e]

    x = rand(4, 96)
    rows = x.reshape(-1, 48)
    close(run(centred, {"x": x})["y"], (rows - rows.mean(axis=1, keepdims=True)).reshape(x.shape))


def test_views_follow_one_another() -> None:
    @kernel
    def chain(x=In(...), y=Out(...), z=Out(4, 8)):  # type: ignore[no-untyped-def]
        y <<= x * 2
        for e in units(z.parts(32)):
            z[e] <<= x.as_rows(8).rows_from(1).per_group(2).rows_from(2)[e] + x.as_rows(4).rows_from(3)[e]

    x = rand(80)
    rows = x.reshape(-1, 8)
    want = np.repeat(rows[[3, 5]], 2, axis=0) + x[12:44].reshape(4, 8)
    close(run(chain, {"x": x})["z"], want)


def test_views_by_block_of_a_batch() -> None:
    """A start inside every block, a table that all blocks share, and a repeat inside a block."""

    @kernel
    def batched(x=In(..., M, 16), c=In(..., 8, 16), r=In(..., 32), y=Out(..., 4, 16)):  # type: ignore[no-untyped-def]
        t = table(np.arange(64.0).reshape(4, 16))
        for e in units(y.parts(64)):
            y[e] <<= x.rows_from(3)[e] + t.repeated()[e] * c.rows_from(4)[e] + r.repeated()[e]

    x, c, r = rand(2, 9, 16), rand(2, 8, 16), rand(2, 32)
    want = x[:, 3:7] + np.arange(64.0).reshape(4, 16) * c[:, 4:] + np.tile(r.reshape(2, 2, 16), (1, 2, 1))
    close(run(batched, {"x": x, "c": c, "r": r})["y"], want)


def test_views_refused() -> None:
    def refuse(body: Any, message: str, **shapes: tuple[int, ...]) -> None:
        with pytest.raises(TraceError, match=message):
            lower(kernel(body).trace().extents(shapes))

    def twice(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x.per_group(2).per_group(2) + x

    refuse(twice, r"per_group\(\) of a view that repeats already; copy the view to a temp", x=(4, 16))

    def inside(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x.per_group(2).rows_from(1) + x

    refuse(inside, "row 1 is not where the view repeats, every 2 rows", x=(4, 16))

    def no_width(x=In(...), y=Out(...)):  # type: ignore[no-untyped-def]
        y <<= x.rows_from(1) + x

    refuse(no_width, r"say as_rows\(width\) before rows_from\(r\)", x=(64,))

    def gap(x=In(..., M, 16), y=Out(..., 4, 16)):  # type: ignore[no-untyped-def]
        for e in units(y.parts(64)):
            y[e] <<= x.per_group(2)[e]

    refuse(gap, "a batch has no gaps between blocks", x=(2, 6, 16))

    def shared_result(x=In(..., M, 16), y=Out(M, 16)):  # type: ignore[no-untyped-def]
        y <<= x + 1

    refuse(shared_result, r"y <<= ... reads x of 2 blocks; a result without batch axes is one block", x=(2, 4, 16))

    def longer(x=In(M, N), z=In(D, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x + z

    refuse(longer, r"covers 4x16 elements, z 5x16; .* from a row on as z.rows_from\(r\)", x=(4, 16), z=(5, 16))


# -------------------------------------------------------------------------------------------------------- versions


def test_loop_carried_values() -> None:
    """Every round writes the buffer anew; the last version is the result, each round reads the one before."""

    @kernel
    def power(x=In(M, N), y=Out(M, N), z=Out(M, N), *, rounds=3):  # type: ignore[no-untyped-def]
        t = temp(M, N)
        y <<= x
        for _ in loop(rounds):
            for e in units(x.parts(64)):
                t[e] <<= y[e] * 0.5
            for e in units(x.parts(64)):
                y[e] <<= t[e] * x[e]
        z <<= y + t

    x = rand(4, 16)
    got = run(power, {"x": x})
    close(got["y"], x**4 / 8)
    close(got["z"], x**4 / 8 + x**3 / 8)
    values = traced(power, {"x": x}).graph.values
    assert [n for n in values if n.startswith("y")] == ["y.0", "y.1", "y.2", "y"]
    assert [values[n].role for n in ("y.2", "y", "t0.1", "t0")] == ["temp", "out", "temp", "temp"]


def test_loop_bounds_and_indices_may_use_outer_indices() -> None:
    """A triangle of rows: block i adds blocks 0..i-1, none for the first."""

    @kernel
    def triangle(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        t = temp(4, N)
        for i in loop(M // 4):
            rows = y.rows_from(i * 4)
            for e in units(t.parts(64)):
                t[e] <<= x.rows_from(i * 4)[e]
            for j in loop(i):
                for e in units(t.parts(64)):
                    t[e] <<= t[e] + x.rows_from(j * 4)[e]
            for e in units(t.parts(64)):
                rows[e] <<= t[e]

    x = rand(12, 16)
    close(run(triangle, {"x": x})["y"], np.cumsum(x.reshape(3, 4, 16), axis=0).reshape(12, 16), 4e-3)


def test_an_expression_means_the_value_it_was_written_down_with() -> None:
    """Also after the buffer was written: the old one, in full width; a new reading gives the stored one."""

    @kernel
    def order(x=In(M, N), y=Out(M, N), z=Out(M, N), u=Out(M, N)):  # type: ignore[no-untyped-def]
        t = temp(M, N)
        t <<= x * 2
        for e in units(x.parts(64)):
            old = t[e] * 1.0009765625
            t[e] <<= old * old
            y[e] <<= old * old * 1024.0
            z[e] <<= old
            u[e] <<= t[e]

    x = rand(4, 16)
    got, old = run(order, {"x": x}), x * 2 * 1.0009765625
    close(got["y"] / 1024, old * old, 1e-3)
    close(got["z"], old, 1e-3)
    close(got["u"], old * old, 1e-3)
    assert not np.array_equal(got["u"] * 1024, got["y"])


def test_results_of_one_grid_are_adjacent_and_one_pass() -> None:
    """The running maximum and sum: three results a round that stand together, apart from the first versions."""

    @kernel
    def running(x=In(M, 32), top=Out(8, 32), total=Out(8, 32)):  # type: ignore[no-untyped-def]
        weights = temp(8, 32)
        adjacent(weights, total, top)
        for e in units(top.parts(256)):
            top[e] <<= -60000.0
            total[e] <<= 0.0
        for j in loop(M // 8):
            for e in units(top.parts(256)):
                s = x.rows_from(j * 8)[e]
                highest = maximum(top[e], row_max(s))
                p = exp2(s - highest)
                total[e] <<= total[e] * exp2(top[e] - highest) + row_sum(p)
                weights[e] <<= p
                top[e] <<= highest

    x = rand(24, 32)
    got, rows = run(running, {"x": x}), x.reshape(3, 8, 32).transpose(1, 0, 2).reshape(8, 96)
    peak = rows.max(axis=1, keepdims=True)
    close(got["top"], np.broadcast_to(peak, (8, 32)))
    close(got["total"], np.broadcast_to(np.exp2(rows - peak).sum(axis=1, keepdims=True), (8, 32)), 4e-3)
    graph = traced(running, {"x": x}).graph
    assert graph.adjacent == [("t0.0", "total.1", "top.1"), ("t0.1", "total.2", "top.2"), ("t0", "total", "top")]
    made = [r for r in requests(graph) if isinstance(r, Elementwise)]
    assert [[o.name for o in r.results] for r in made] == [
        ["top.0", "total.0"],
        ["total.1", "t0.0", "top.1"],
        ["total.2", "t0.1", "top.2"],
        ["total", "t0", "top"],
    ]


def test_adjacent_results_of_different_grids() -> None:
    @kernel
    def group(x=In(M, N), y=Out(M, N), z=Out(M, N)):  # type: ignore[no-untyped-def]
        adjacent(y, z)
        y <<= x + 1
        z <<= x + 2

    assert traced(group, {"x": rand(4, 16)}).graph.adjacent == [("y", "z")]


# ----------------------------------------------------------------------------------------------------------- parts


def parts(*starts: int) -> Kernel:
    """y written in blocks of 4 rows from these rows on, then read as a whole."""

    @kernel
    def rows(x=In(..., 4, N), y=Out(..., 12, N), z=Out(..., 12, N)):  # type: ignore[no-untyped-def]
        for number, start in enumerate(starts):
            block = y.rows_from(start)
            for e in units(x.parts(64)):
                block[e] <<= x[e] + float(number)
        z <<= y * 2

    return rows


def test_parts_of_a_result() -> None:
    """In every block of a batch, in any order of the statements."""
    x = rand(2, 4, 16)
    got = run(parts(4, 0, 8), {"x": x})
    want = np.concatenate([x + 1, x, x + 2], axis=1)
    close(got["y"], want)
    close(got["z"], 2 * want, 4e-3)
    values = traced(parts(4, 0, 8), {"x": x}).graph.values
    assert (values["y.p0"].of, values["y.p0"].window) == ("y", Window(2, 4, 4, 0, 16))


@pytest.mark.parametrize(
    ("starts", "message"),
    [
        ((0, 4), "y: statements write 128 of its 192 elements; the parts cover all of it"),
        ((0, 4, 9), r"writes 64 elements from element 144; y has 192"),
        ((0, 2, 8), r"y\[2, 0\] is written by more than one part|y\[6, 0\] is written by no part"),
    ],
)
def test_parts_that_do_not_make_up_a_result(starts: tuple[int, ...], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        traced(parts(*starts), {"x": rand(1, 4, 16)})


def test_a_buffer_is_read_when_all_of_it_is_written() -> None:
    def early(x=In(4, N), y=Out(8, N), z=Out(4, N)):  # type: ignore[no-untyped-def]
        for start in (0, 4):
            block = y.rows_from(start)
            for e in units(x.parts(64)):
                block[e] <<= x[e]
            for e in units(z.parts(64)):
                z[e] <<= y.rows_from(0)[e]

    with pytest.raises(TraceError, match=r"y.rows_from\(0\)\[i1\]: y is read before all of it is written"):
        traced(kernel(early), {"x": rand(4, 16)})

    def half_new(x=In(8, N), y=Out(8, N), z=Out(8, N)):  # type: ignore[no-untyped-def]
        y <<= x
        for start in (0, 4):
            block = y.rows_from(start)
            for e in units(x.rows_from(4).parts(64)):
                block[e] <<= x.rows_from(start)[e] * 2
            z <<= y * 1.5

    with pytest.raises(TraceError, match="y is read before all of it is written"):
        traced(kernel(half_new), {"x": rand(8, 16)})

    def never(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        t = temp(M, N)
        y <<= x + t

    with pytest.raises(TraceError, match="t0 is read before all of it is written"):
        traced(kernel(never), {"x": rand(4, 16)})


def test_products_write_parts_of_rows_and_columns() -> None:
    @kernel
    def quarters(a=In(M, K), b=In(N, K), c=Out(M * 2, N * 2), *, gm=2, gn=2, nk=2):  # type: ignore[no-untyped-def]
        rows, cols = a.tiles(gm), b.tiles(gn)
        for down in loop(2):
            for right in loop(2):
                for i, j in units(rows, cols):
                    acc = tile(gm, gn, nk)
                    acc += a[i, 0] @ b[j, 0]
                    c[i + down * rows, j + right * cols] <<= acc

    a, b = rand(8, 64), rand(16, 64) / 8
    close(run(quarters, {"a": a, "b": b})["c"], np.tile(a @ b.T, (2, 2)))


# ------------------------------------------------------------------------------------------------------- attention


@kernel
def attention(  # type: ignore[no-untyped-def]
    q=In(..., L, K), k=In(..., N, K), v=In(..., V, N), o=Out(..., L, V), *, block=32, span=8, gm=None, gn=None, nk=None
):
    top, total, corr, scores, weights = (temp(span, block) for _ in range(5))
    part, acc_o = temp(span, V), temp(span, V)
    adjacent(weights, corr, total, top)
    for i in loop(L // span):
        for e in units(top.parts(256)):
            top[e] <<= -60000.0
            total[e] <<= 0.0
        for e in units(acc_o.parts(256)):
            acc_o[e] <<= 0.0
        for j in loop(N // block):
            keys = k.rows_from(j * block)
            for m, n in units(scores.tiles(gm), cdiv(block, integer(gn) * 4)):
                acc = tile(gm, gn, nk)
                for c in loop(q.chunks32(nk)):
                    acc += q.rows_from(i * span)[m, c] @ keys[n, c]
                scores[m, n] <<= acc
            for e in units(scores.parts(256)):
                highest = maximum(top[e], row_max(scores[e]))
                fade, p = exp2(top[e] - highest), exp2(scores[e] - highest)
                weights[e] <<= p
                total[e] <<= total[e] * fade + row_sum(p)
                corr[e] <<= fade
                top[e] <<= highest
            for m, n in units(weights.tiles(gm), v.tiles(gn)):
                acc = tile(gm, gn, nk)
                chunks = weights.chunks32(nk)
                for c in loop(chunks):
                    acc += weights[m, c] @ v[n, c + chunks * j]
                part[m, n] <<= acc
            for e in units(acc_o.parts(256)):
                acc_o[e] <<= acc_o[e] * corr.row_repeat(V // block)[e] + part[e]
        rows = o.rows_from(i * span)
        for e in units(acc_o.parts(256)):
            rows[e] <<= acc_o[e] / total.row_repeat(V // block)[e]


@pytest.mark.parametrize("knobs", [OPEN, {"gm": 2, "gn": 2, "nk": 1}])
def test_attention_over_two_blocks_of_keys(knobs: Knobs) -> None:
    """Two blocks of queries stored as parts, heads as a batch, values twice as wide as a block of keys."""
    q, k, v = rand(2, 16, 64) / 8, rand(2, 64, 64), rand(2, 64, 64)
    scores = q @ k.transpose(0, 2, 1)
    weights = np.exp2(scores - scores.max(axis=2, keepdims=True))
    want = weights / weights.sum(axis=2, keepdims=True) @ v.transpose(0, 2, 1)
    arrays = {"q": q, "k": k, "v": v}
    close(run(attention, arrays, **knobs)["o"], want, 4e-3)
    trace = traced(attention, arrays, **knobs)
    assert [contraction(trace, n).reads for n in (2, 3)] == [
        (Window(2, 0, 8, 0, 64), Window(2, 32, 32, 0, 64)),
        (Window(2, 0, 8, 0, 32), Window(2, 0, 64, 32, 32)),
    ]
    made = requests(trace.graph)
    assert len(made) == 2 * (2 + 2 * 4 + 1)
    assert [len(r.results) for r in made if isinstance(r, Elementwise)][:4] == [2, 1, 4, 1]
    assert trace.graph.values["o.p1"].window == Window(2, 8, 8, 0, 64)
