# SPDX-License-Identifier: Apache-2.0
"""Batches, joined heads and windows of products in the kernel language (docs/spec/compiler.md 4, 11)."""

from __future__ import annotations

import numpy as np
import pytest

from kohakutpu.errors import TraceError
from kohakutpu.graph import interpret, requests
from kohakutpu.kernels.language import (
    In,
    Kernel,
    Out,
    kernel,
    loop,
    region,
    temp,
    tile,
    units,
)
from kohakutpu.kernels.language.lower import lower
from kohakutpu.schedule import Contraction, Elementwise
from kohakutpu.views import Spread, Window
from language_forms import OPEN, D, F, K, Knobs, L, M, N, V, close, contraction, rand, run, traced

pytestmark = pytest.mark.unit

# ------------------------------------------------------------------------------------------------- batched products


@kernel
def matmul(a=In(..., M, K), b=In(..., N, K), c=Out(..., M, N), *, gm=None, gn=None, nk=None):  # type: ignore[no-untyped-def]
    for i, j in units(a.tiles(gm), b.tiles(gn)):
        acc = tile(gm, gn, nk)
        for k in loop(a.chunks32(nk)):
            acc += a[i, k] @ b[j, k]
        c[i, j] <<= acc


@pytest.mark.parametrize("knobs", [OPEN, {"gm": 2, "gn": 4, "nk": 2}])
def test_batch_on_either_side(knobs: Knobs) -> None:
    """Both batched, or one of them shared; a shared b makes the batch more rows."""
    a, b = rand(3, 10, 70), rand(3, 22, 70) / 8
    close(run(matmul, {"a": a, "b": b}, **knobs)["c"], a @ b.transpose(0, 2, 1))
    close(run(matmul, {"a": a[0], "b": b}, **knobs)["c"], a[0] @ b.transpose(0, 2, 1))
    close(run(matmul, {"a": a, "b": b[0]}, **knobs)["c"], a @ b[0].T)
    op = contraction(traced(matmul, {"a": a, "b": b}, **knobs))
    assert (op.attr("batch"), op.reads) == (3, (Window(3, 0, 10, 0, 70), Window(3, 0, 22, 0, 70)))
    op = contraction(traced(matmul, {"a": a[0], "b": b}, **knobs))
    assert (op.attr("batch"), op.reads) == (3, (None, Window(3, 0, 22, 0, 70)))
    op = contraction(traced(matmul, {"a": a, "b": b[0]}, **knobs))
    assert (op.attr("batch"), op.reads) == (None, ())


def test_temps_and_side_operands_follow_the_batch() -> None:
    @kernel
    def two(  # type: ignore[no-untyped-def]
        a=In(..., M, K), w=In(N, K), s=In(M, N), b=In(..., N), u=In(..., D, N), y=Out(..., M, D), *, gm=2, gn=2, nk=1
    ):
        t = temp(M, N, tier="l2")
        for i, j in units(a.tiles(gm), w.tiles(gn)):
            acc = tile(gm, gn, nk)
            for k in loop(a.chunks32(nk)):
                acc += a[i, k] @ w[j, k]
            t[i, j] <<= acc * s[i, j] + b[j]
        for i, j in units(t.tiles(gm), u.tiles(gn)):
            acc = tile(gm, gn, nk)
            for k in loop(t.chunks32(nk)):
                acc += t[i, k] @ u[j, k]
            y[i, j] <<= acc

    arrays = {"a": rand(2, 8, 64), "w": rand(16, 64) / 8, "s": rand(8, 16), "b": rand(2, 16), "u": rand(2, 12, 16) / 4}
    t = arrays["a"] @ arrays["w"].T * arrays["s"] + arrays["b"][:, None]
    close(run(two, arrays)["y"], t @ arrays["u"].transpose(0, 2, 1))
    trace = traced(two, arrays)
    assert trace.graph.values["t0"].tier == "l2"
    made = next(r for r in requests(trace.graph) if isinstance(r, Elementwise))
    assert dict(zip([o.name for o in made.operands], made.reads, strict=True)) == {
        "z0": None,
        "s": Spread(0, 128, 2, 0),
        "b": Spread(0, 16, 8, 16),
    }


# --------------------------------------------------------------------------------------------------------- windows


@kernel
def attn_out(  # type: ignore[no-untyped-def]
    o=In(L * 3, V), w=In(D, V * 3), r=In(L, D), b=In(D), y=Out(L, D), *, gm=None, gn=None, nk=None
):
    rows, chunks = r.tiles(gm), o.chunks32(nk)
    for i, j in units(rows, w.tiles(gn)):
        acc = tile(gm, gn, nk)
        for s in loop(chunks * 3):
            acc += o[(s // chunks) * rows + i, s % chunks] @ w[j, s]
        y[i, j] <<= acc + b[j] + r[i, j]


@pytest.mark.parametrize("knobs", [OPEN, {"gm": 2, "gn": 3, "nk": 2}])
def test_head_join(knobs: Knobs) -> None:
    arrays = {"o": rand(3 * 16, 64), "w": rand(20, 192) / 12, "r": rand(16, 20), "b": rand(20)}
    joined = np.concatenate(arrays["o"].reshape(3, 16, 64), axis=1)
    close(run(attn_out, arrays, **knobs)["y"], joined @ arrays["w"].T + arrays["b"] + arrays["r"])
    op = contraction(traced(attn_out, arrays, **knobs))
    assert (op.attr("join"), op.attr("batch")) == (3, None)
    assert op.reads == (Window(3, 0, 16, 0, 64), None)


@pytest.mark.parametrize(
    ("rows", "width", "knobs", "message"),
    [
        (18, 64, OPEN, "heads joined in one sweep lie under one another and fill the 54 rows of o"),
        (24, 64, {"gm": 4, "gn": 1, "nk": 1}, "fill the 72 rows of o"),
        (16, 48, OPEN, "a head of 48 columns is no whole number of chunks"),
        (16, 96, {"gm": 1, "gn": 1, "nk": 2}, "choose nk so that 32 nk divides 96"),
    ],
)
def test_heads_that_no_tile_or_chunk_divides(rows: int, width: int, knobs: Knobs, message: str) -> None:
    arrays = {"o": rand(3 * rows, width), "w": rand(8, 3 * width), "r": rand(rows, 8), "b": rand(8)}
    with pytest.raises(TraceError, match=message):
        traced(attn_out, arrays, **knobs)


def chunked(spelling: str) -> Kernel:
    """y = (x w[:F]^T + b[:F]) * (x w[F:]^T + b[F:]), the second half by a view or by index arithmetic."""

    @kernel
    def halves(x=In(..., M, K), w=In(F * 2, K), b=In(F * 2), y=Out(..., M, F), *, gm=2, gn=2, nk=1):  # type: ignore[no-untyped-def]
        first = w.tiles(gn) // 2
        for i, j in units(x.tiles(gm), first):
            h, g = tile(gm, gn, nk), tile(gm, gn, nk)
            for k in loop(x.chunks32(nk)):
                h += x[i, k] @ w[j, k]
            for k in loop(x.chunks32(nk)):
                g += x[i, k] @ (w.rows_from(F)[j, k] if spelling == "view" else w[j + first, k])
            y[i, j] <<= (h + b.rows_from(0)[j]) * (g + b.rows_from(F)[j])

    return halves


@pytest.mark.parametrize("spelling", ["view", "index"])
def test_two_halves_of_one_weight(spelling: str) -> None:
    x, w, b = rand(2, 12, 64), rand(48, 64) / 8, rand(48)
    k = chunked(spelling)
    shapes = {"x": x.shape, "w": w.shape, "b": b.shape}
    trace = lower(k.trace().extents(shapes, {"F": 24}))
    got = interpret(trace.graph, {"x": x.reshape(24, 64), "w": w, "b": b.reshape(1, 48)})["y"]
    z = x @ w.T + b
    close(got.reshape(2, 12, 24), z[..., :24] * z[..., 24:])
    assert [contraction(trace, n).reads[1] for n in (0, 1)] == [Window(1, 0, 24, 0, 64), Window(1, 24, 24, 0, 64)]
    made = next(r for r in requests(trace.graph) if isinstance(r, Elementwise))
    assert set(made.reads) == {None, Spread(0, 24, 24, 0), Spread(24, 24, 24, 0)}


def test_part_of_k_of_one_side() -> None:
    """The columns of b that belong to each block of keys; both operands are read again in the next product."""

    @kernel
    def blocks(a=In(M, K), b=In(N, K * 2), c=Out(M, N), d=Out(M, N), *, gm=2, gn=2, nk=1):  # type: ignore[no-untyped-def]
        chunks = a.chunks32(nk)
        for out, half in ((c, 0), (d, 1)):
            for i, j in units(a.tiles(gm), b.tiles(gn)):
                acc = tile(gm, gn, nk)
                for s in loop(chunks):
                    acc += a[i, s] @ b[j, s + chunks * half]
                out[i, j] <<= acc

    a, b = rand(8, 64), rand(12, 128) / 8
    got = run(blocks, {"a": a, "b": b})
    close(got["c"], a @ b[:, :64].T)
    close(got["d"], a @ b[:, 64:].T)


@pytest.mark.parametrize("first", [0, 4])
def test_some_rows_of_every_block_with_a_shared_operand(first: int) -> None:
    """The batch is more rows only when no rows lie between the blocks."""

    @kernel
    def some(a=In(..., 12, K), b=In(N, K), c=Out(..., 8, N), *, gm=1, gn=2, nk=2):  # type: ignore[no-untyped-def]
        rows = a.rows_from(first)
        for i, j in units(c.tiles(gm), b.tiles(gn)):
            acc = tile(gm, gn, nk)
            acc += rows[i, 0] @ b[j, 0]
            c[i, j] <<= acc

    a, b = rand(3, 12, 64), rand(16, 64) / 8
    close(run(some, {"a": a, "b": b})["c"], a[:, first : first + 8] @ b.T)


def test_operands_of_a_tile_may_be_longer() -> None:
    """A tile reads its own rows and columns; a shorter operand is refused."""

    @kernel
    def tiles(  # type: ignore[no-untyped-def]
        a=In(M, K), b=In(N, K), r=In(L, N), s=In(D), c=Out(M, N), *, gm=2, gn=2, nk=2
    ):
        for i, j in units(a.tiles(gm), b.tiles(gn)):
            acc = tile(gm, gn, nk)
            acc += a[i, 0] @ b[j, 0]
            c[i, j] <<= acc + r[i, j] + s.rows_from(1)[j]

    a, b, r, s = rand(8, 64), rand(16, 64) / 8, rand(12, 16), rand(20)
    close(run(tiles, {"a": a, "b": b, "r": r, "s": s})["c"], a @ b.T + r[:8] + s[1:17])
    with pytest.raises(TraceError, match=r"covers 8x16 elements, r\[i0, i1\] 6x16"):
        traced(tiles, {"a": a, "b": b, "r": r[:6], "s": s})
    with pytest.raises(TraceError, match=r"covers 8x16 elements, s.rows_from\(1\)\[i1\] 1x16"):
        traced(tiles, {"a": a, "b": b, "r": r, "s": s[:16]})


def test_split_and_route_reach_the_request() -> None:
    @kernel
    def partial(a=In(M, K), b=In(N, K), c=Out(M, N), *, split=1, route=""):  # type: ignore[no-untyped-def]
        for i, j in units(a.tiles(2), b.tiles(2)):
            acc = tile(2, 2, 1, split=split, route=route)
            for k in loop(a.chunks32(1)):
                acc += a[i, k] @ b[j, k]
            c[i, j] <<= acc

    arrays = {"a": rand(8, 128), "b": rand(8, 128)}
    (made,) = requests(traced(partial, arrays, split=4, route="core").graph)
    assert isinstance(made, Contraction)
    assert (made.split, made.route) == (4, "core")
    (made,) = requests(traced(partial, arrays).graph)
    assert isinstance(made, Contraction)
    assert (made.split, made.route) == (1, "")


def test_a_region_filled_twice_holds_what_was_filled_last() -> None:
    @kernel
    def regions(a=In(M, K), u=In(M, K), b=In(N, K), c=Out(M, N), d=Out(M, N), *, gm=2, gn=2, nk=2):  # type: ignore[no-untyped-def]
        for i, j in units(a.tiles(gm), b.tiles(gn)):
            left = region(gm, nk)
            for out, source in ((c, a), (d, u)):
                acc = tile(gm, gn, nk)
                left <<= source[i, 0]
                acc += left @ b[j, 0]
                out[i, j] <<= acc

    a, u, b = rand(8, 64), rand(8, 64) + 1, rand(8, 64) / 8
    got = run(regions, {"a": a, "u": u, "b": b})
    close(got["c"], a @ b.T)
    close(got["d"], u @ b.T)
