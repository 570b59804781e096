# SPDX-License-Identifier: Apache-2.0
"""What permuted and sliced views refuse, and the limits of a move (docs/spec/compiler.md 4, 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ktpu
from kohakutpu.errors import CompileError, TraceError
from kohakutpu.graph import Graph, Op, Value, verify
from kohakutpu.schedule.rearrange import walks
from kohakutpu.views import Strided
from ktpu.language import In, Out, dims, kernel, loop, tile, units

pytestmark = pytest.mark.unit

A, B, M, N, K, F = dims("A, B, M, N, K, F")


def last_moved(x: Any) -> Any:
    return x.permute(0, 2, 1)


def no_permutation(x: Any) -> Any:
    return x.permute(0, 0, 2)


def too_many(x: Any) -> Any:
    return x.permute(0, 1, 2, 3)


def no_axis(x: Any) -> Any:
    return x.slice(3, 0, 1)


def stepped_columns(x: Any) -> Any:
    return x.slice(2, 0, 16, 2)


def after_rows_from(x: Any) -> Any:
    return x.rows_from(1).permute(1, 0, 2)


def before_repeated(x: Any) -> Any:
    return x.permute(1, 0, 2).repeated()


def outside(x: Any) -> Any:
    return x.slice(1, 2, 3, 2)


def none_at_all(x: Any) -> Any:
    return x.slice(1, 0, 0)


def short_run(x: Any) -> Any:
    return x.slice(2, 16, 8)


def off_a_word(x: Any) -> Any:
    return x.slice(2, 8, 16)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (last_moved, r"x\.permute\(0, 2, 1\) puts axis 1 innermost; .* axis 2 stays last: swap the operands"),
        (no_permutation, r"x\.permute\(0, 0, 2\) is no permutation of its 3 axes"),
        (too_many, r"x\.permute\(\.\.\.\) names axis 3; the view has axes 0\.\.2"),
        (no_axis, r"x\.slice\(\.\.\.\) names axis 3"),
        (stepped_columns, r"x\.slice\(2, \.\.\.\) has step 2 along the last axis"),
        (after_rows_from, r"x\.rows_from\(1\)\.permute\(\.\.\.\): .* write the view to a temp first"),
        (before_repeated, r"x\.permute\(1, 0, 2\)\.repeated\(\.\.\.\): .* write the view to a temp first"),
        (outside, r"the slice reaches 6 along axis 1, which has 5; take fewer or start earlier"),
        (none_at_all, r"axis 1 from 0, 0 by 1; first is at least 0, count and step 1"),
        (short_run, r"y is read from x .* its innermost run is 8 elements, .* words of 16; pad the last axis"),
        (off_a_word, r"y is read from x .* it starts at element 8, .* words of 16; use multiples of 16"),
    ],
)
def test_refused(view: Callable[[Any], Any], message: str) -> None:
    """Every refusal names the view, the limit and the fix."""
    x = np.ones((2, 5, 32), np.float16)
    shape = {short_run: (2, 5, 8), off_a_word: (2, 5, 16)}.get(view, (2, 5, 32))

    @kernel
    def one(x=In(B, M, N), y=Out(*shape)):  # type: ignore[no-untyped-def]
        y <<= view(x)

    with pytest.raises(CompileError, match=message):
        ktpu.compile(ktpu.call(one, x), ktpu.machine("mm_mesh"))


def test_refused_statements() -> None:
    """Views are not written, not swept, not read in a grid of tiles, and have as many elements as the statement."""

    @kernel
    def written(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        v = y.slice(0, 0, 1)
        v <<= x

    @kernel
    def swept(x=In(M, K), w=In(N, K), y=Out(M, N), *, gm=1, gn=1, nk=1):  # type: ignore[no-untyped-def]
        for i, j in units(x.tiles(gm), w.tiles(gn)):
            acc = tile(gm, gn, nk)
            for k in loop(x.chunks32(nk)):
                acc += x.slice(0, 0, M)[i, k] @ w[j, k]
            y[i, j] <<= acc

    @kernel
    def tiled(x=In(M, K), w=In(N, K), b=In(N), y=Out(M, N), *, gm=1, gn=1, nk=1):  # type: ignore[no-untyped-def]
        for i, j in units(x.tiles(gm), w.tiles(gn)):
            acc = tile(gm, gn, nk)
            for k in loop(x.chunks32(nk)):
                acc += x[i, k] @ w[j, k]
            y[i, j] <<= acc + b.slice(0, 0, N)[j]

    @kernel
    def shorter(x=In(M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        y <<= x + x.slice(0, 0, 1)

    @kernel
    def shifted(x=In(M, N), y=Out(M, N), *, part=64):  # type: ignore[no-untyped-def]
        for e in units(y.parts(part)):
            y[e] <<= x.slice(0, e, M)[e] + 1

    with pytest.raises(TraceError, match=r"x.slice\(0, i0, M, 1\): .* a view is the same in every instance of a grid"):
        ktpu.call(shifted, np.ones((4, 32), np.float16))
    with pytest.raises(TraceError, match="writing through a permuted or sliced view"):
        written.trace()
    with pytest.raises(TraceError, match="a slice view cannot be indexed by the cluster"):
        swept.trace()
    with pytest.raises(TraceError, match=r"reads b.slice\(0, 0, N, 1\)\[i1\] in a grid of tiles; write the view"):
        tiled.trace()
    with pytest.raises(TraceError, match=r"covers 128 elements, x.slice\(0, 0, 1, 1\) has 32"):
        ktpu.call(shorter, np.ones((4, 32), np.float16))


def test_walks_of_the_mover() -> None:
    """At most six dimensions; a count above 65,535 becomes several, unless nothing divides it."""
    assert [d.count for d in walks(Strided(0, ((1 << 17, 64), (16, 1))), 0, 0)[0].dims] == [4, 1 << 15]
    six = Strided(0, ((2, 4096), (2, 1024), (2, 272), (2, 112), (2, 48), (32, 1)))
    source, target = walks(six, 64, 128)
    assert (len(source.dims), source.base, target.base, source.elements) == (6, 64, 128, target.elements)
    with pytest.raises(CompileError, match="it walks 7 dimensions, the mover has 6; move in two steps"):
        walks(Strided(0, ((2, 9008), *six.dims)), 0, 0)
    with pytest.raises(CompileError, match="one dimension has 65537 steps"):
        walks(Strided(0, ((65537, 64), (16, 1))), 0, 0)
    with pytest.raises(CompileError, match="it has a stride of 24"):
        walks(Strided(0, ((2, 24), (16, 1))), 0, 0)


def graph_of(read: Any, shape: tuple[int, int] = (2, 16), **source: Any) -> Graph:
    """A graph of one move."""
    graph = Graph()
    graph.value(Value(**{"name": "x", "dtype": "fp16", "shape": (4, 16), "role": "in", **source}))
    graph.value(Value("y", "fp16", shape, "out"))
    graph.ops.append(Op("rearrange", ("x",), "y", reads=(read,)))
    return graph


def test_the_verifier() -> None:
    """A move states a strided read of a buffer that fits both values."""
    good = Strided(0, ((2, 32), (16, 1)))
    verify(graph_of(good))
    with pytest.raises(CompileError, match=r"gives 32 elements, y .* has 48"):
        verify(graph_of(good, (3, 16)))
    with pytest.raises(CompileError, match="reaches element 79 of x, which has 64"):
        verify(graph_of(Strided(0, ((2, 64), (16, 1)))))
    with pytest.raises(CompileError, match="states no strided read"):
        verify(graph_of(None))
    with pytest.raises(CompileError, match="x is mxfp7; only fp16 buffers are moved"):
        verify(graph_of(good, dtype="mxfp7"))
    with pytest.raises(CompileError, match="strides >= 0 and counts >= 1"):
        verify(graph_of(Strided(0, ((2, -32), (16, 1)))))
