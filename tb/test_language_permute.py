# SPDX-License-Identifier: Apache-2.0
"""Permuted and sliced views: moves of whole words, or periodic reads (docs/spec/compiler.md 4, 11)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ktpu
from kohakudriver import Device
from kohakutpu.graph import interpret
from ktpu.language import In, Out, dims, kernel, loop, row_max, temp, tile, units
from ktpu.numerics_reference import exact_bits

pytestmark = pytest.mark.unit

A, B, M, N, K, F = dims("A, B, M, N, K, F")
MACHINES = ("mm_mesh", "mm_store", "mm_mx")
Bits = npt.NDArray[np.float16]


@pytest.fixture(scope="module", params=MACHINES)
def device(request: pytest.FixtureRequest) -> Iterator[Device]:
    """Models whose products leave as tiles, and one that drains rows and MXFP7 entries."""
    opened = ktpu.open(f"model:{request.param}")
    yield opened
    opened.close()


def halves(*shape: int, seed: int = 0) -> Bits:
    """Random bit patterns of every kind but NaN, whose payload numpy may change."""
    bits = np.random.default_rng(seed).integers(0, 1 << 16, shape, dtype=np.uint16).view(np.float16)
    return np.where(np.isnan(bits), np.float16(-0.0), bits)


def normal(*shape: int, seed: int = 0) -> Bits:
    """Random numbers of a few units."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def same(got: npt.ArrayLike, want: npt.ArrayLike) -> None:
    """Equal shapes and bits."""
    a, b = np.asarray(got, np.float16), np.asarray(want, np.float16)
    assert a.shape == b.shape
    assert a.tobytes() == np.ascontiguousarray(b).tobytes()


def counters(call: Any, device: Device) -> tuple[int, int, int]:
    """Moves, dispatches and relayouts of a compiled call."""
    made = ktpu.compile(call, ktpu.machine(device.description["name"])).artifact.meta["counters"]
    return made["moves"], made["dispatches"], made["relayouts_device"]


@kernel
def swapped(x=In(B, M, N), y=Out(M, B, N)):  # type: ignore[no-untyped-def]
    y <<= x.permute(1, 0, 2)


@kernel
def turned(x=In(A, B, M, N), y=Out(M, A, B, N)):  # type: ignore[no-untyped-def]
    y <<= x.permute(2, 0, 1, 3)


@kernel
def inner(x=In(..., B, M, N), y=Out(..., M, B, N)):  # type: ignore[no-untyped-def]
    y <<= x.permute(1, 0, -1)


@kernel
def every_second(x=In(M, N), y=Out(F, N)):  # type: ignore[no-untyped-def]
    y <<= x.slice(0, 1, F, 2)


@kernel
def columns(x=In(..., M, N), y=Out(..., M, F), *, first=16):  # type: ignore[no-untyped-def]
    y <<= x.slice(-1, first, F)


@kernel
def chained(x=In(A, M, N), y=Out(F, A, K)):  # type: ignore[no-untyped-def]
    y <<= x.slice(1, 0, F, 3).permute(1, 0, 2).slice(2, 32, K)


def test_permute_is_one_move(device: Device) -> None:
    """[B, M, N] to [M, B, N] moves bits unchanged, without a dispatch or a relayout."""
    x = halves(3, 5, 32)
    call = ktpu.call(swapped, x)
    same(ktpu.run(call, device)["y"], x.transpose(1, 0, 2))
    assert counters(call, device) == (1, 0, 0)


def test_permute_of_four_axes(device: Device) -> None:
    """Three outer axes in another order, rows of one word and of several."""
    for width in (16, 48):
        x = halves(2, 3, 4, width, seed=width)
        same(ktpu.run(ktpu.call(turned, x), device)["y"], x.transpose(2, 0, 1, 3))


def test_permute_inside_a_batch(device: Device) -> None:
    """Batch axes stay outermost; the axes of a view count without them."""
    x = halves(2, 2, 3, 4, 16)
    call = ktpu.call(inner, x)
    same(ktpu.run(call, device)["y"], x.transpose(0, 1, 3, 2, 4))
    assert counters(call, device)[:2] == (1, 0)


def test_rows_below_a_word_that_stay_together(device: Device) -> None:
    """Rows of 8 elements move if the axes inside the permuted ones make whole words together."""

    @kernel
    def swap(x=In(A, B, M, N), y=Out(B, A, M, N)):  # type: ignore[no-untyped-def]
        y <<= x.permute(1, 0, 2, 3)

    x = halves(3, 5, 4, 8)
    same(ktpu.run(ktpu.call(swap, x), device)["y"], x.transpose(1, 0, 2, 3))


@pytest.mark.parametrize("count", [16, 32])
def test_slices(count: int, device: Device) -> None:
    """Every second row from row 1, and columns 16.. of 64, in a batch too."""
    x = halves(9, 64)
    call = ktpu.call(every_second, x, extents={"F": 4})
    same(ktpu.run(call, device)["y"], x[1::2])
    assert counters(call, device)[:2] == (1, 0)
    same(ktpu.run(ktpu.call(columns, x, extents={"F": count}), device)["y"], x[:, 16 : 16 + count])
    batch = halves(2, 3, 64)
    same(ktpu.run(ktpu.call(columns, batch, first=32, extents={"F": count}), device)["y"], batch[..., 32 : 32 + count])


def test_slices_and_permute_in_one_move(device: Device) -> None:
    """Steps of one view are one walk."""
    x = halves(3, 8, 64)
    call = ktpu.call(chained, x, extents={"F": 3, "K": 16})
    same(ktpu.run(call, device)["y"], x[:, 0:9:3].transpose(1, 0, 2)[..., 32:48])
    assert counters(call, device)[:2] == (1, 0)


def test_elementwise_reads_a_permuted_view(device: Device) -> None:
    """A permuted view inside an expression is moved to a temp once, however often it is read."""

    @kernel
    def squares(x=In(B, M, N), z=In(M, B, N), y=Out(M, B, N), *, part=64):  # type: ignore[no-untyped-def]
        for e in units(y.parts(part)):
            v = x.permute(1, 0, 2)[e]
            y[e] <<= v * x.permute(1, 0, 2)[e] + z[e]

    x, z = normal(3, 4, 32), normal(4, 3, 32, seed=1)
    call = ktpu.call(squares, x, z)
    turned_x = x.transpose(1, 0, 2).astype(np.float64)
    got = ktpu.run(call, device)["y"]
    np.testing.assert_allclose(got, turned_x**2 + z, rtol=2e-3, atol=2e-3)
    assert counters(call, device)[:2] == (1, 1)
    # the same through a temp of the author
    same(got, ktpu.run(ktpu.call(through_temp, x, z), device)["y"])


@kernel
def through_temp(x=In(B, M, N), z=In(M, B, N), y=Out(M, B, N)):  # type: ignore[no-untyped-def]
    t = temp(M, B, N)
    t <<= x.permute(1, 0, 2)
    y <<= t * t + z


IN_PLACE = [(0, 1, 4, 2), (0, 3, 4, 1), (1, 16, 32, 1), (1, 48, 16, 1)]


@pytest.mark.parametrize(("axis", "first", "count", "step"), IN_PLACE)
def test_elementwise_reads_a_slice_in_place(axis: int, first: int, count: int, step: int, device: Device) -> None:
    """A slice that is a periodic read needs no move."""

    @kernel
    def doubled(x=In(M, N), y=Out(A, F)):  # type: ignore[no-untyped-def]
        y <<= x.slice(axis, first, count, step) * 2

    x = normal(9, 64)
    want = x[first : first + count * step : step] if axis == 0 else x[:, first : first + count]
    call = ktpu.call(doubled, x, extents={"A": want.shape[0], "F": want.shape[1]})
    same(ktpu.run(call, device)["y"], want * 2)
    assert counters(call, device)[:2] == (0, 1)


def test_part_of_a_buffer_from_a_view(device: Device) -> None:
    """Two views are stored under one another; the moved one goes through a temp."""

    @kernel
    def stacked(x=In(B, M, N), y=Out(F, N), *, part=64):  # type: ignore[no-untyped-def]
        top = y.rows_from(0)
        for e in units(x.parts(part)):
            top[e] <<= x.permute(1, 0, 2)[e]
        half = y.rows_from(B * M)
        for e in units(half.parts(part)):
            half[e] <<= x.slice(0, 0, 4, 2)[e]

    x = normal(8, 4, 16)
    want = [x.transpose(1, 0, 2).reshape(32, 16), x[0:8:2].reshape(16, 16)]
    same(ktpu.run(ktpu.call(stacked, x, extents={"F": 48}), device)["y"], np.concatenate(want))


@kernel
def product_of_views(x=In(B, M, K), w=In(N, K), y=Out(F, N), *, gm=None, gn=None, nk=None):  # type: ignore[no-untyped-def]
    t = temp(F, K)
    t <<= x.permute(1, 0, 2)
    for i, j in units(t.tiles(gm), w.tiles(gn)):
        acc = tile(gm, gn, nk)
        for k in loop(t.chunks32(nk)):
            acc += t[i, k] @ w[j, k]
        y[i, j] <<= acc


@kernel
def plain_product(t=In(F, K), w=In(N, K), y=Out(F, N), *, gm=None, gn=None, nk=None):  # type: ignore[no-untyped-def]
    for i, j in units(t.tiles(gm), w.tiles(gn)):
        acc = tile(gm, gn, nk)
        for k in loop(t.chunks32(nk)):
            acc += t[i, k] @ w[j, k]
        y[i, j] <<= acc


def test_product_of_a_permuted_operand(device: Device) -> None:
    """The bits of the product of an operand the host permuted."""
    x, w = normal(4, 8, 64), normal(48, 64, seed=1)
    got = ktpu.run(ktpu.call(product_of_views, x, w, extents={"F": 32}), device)["y"]
    host = np.ascontiguousarray(x.transpose(1, 0, 2)).reshape(32, 64)
    same(got, ktpu.run(ktpu.call(plain_product, host, w), device)["y"])


@kernel
def halves_of_a_product(x=In(M, K), w=In(N, K), y=Out(M, F), u=Out(M, F), *, gm=None, gn=None, nk=None):  # type: ignore[no-untyped-def]
    z = temp(M, N)
    for i, j in units(x.tiles(gm), w.tiles(gn)):
        acc = tile(gm, gn, nk)
        for k in loop(x.chunks32(nk)):
            acc += x[i, k] @ w[j, k]
        z[i, j] <<= acc
    y <<= z.slice(1, 0, F) + z.slice(1, F, F)
    u <<= z.slice(1, F, F)


def test_slices_of_a_product(device: Device) -> None:
    """A computed value is sliced from its rows, however it was drained."""
    x, w = normal(24, 64), normal(64, 64, seed=1)
    made = ktpu.run(ktpu.call(halves_of_a_product, x, w, extents={"F": 32}), device)
    z = ktpu.run(ktpu.call(plain_product, x, w), device)["y"]
    same(made["u"], z[:, 32:])
    want = z[:, :32].astype(np.float64) + z[:, 32:]
    same(made["y"], want.astype(np.float16))


def test_a_pass_that_a_product_and_a_move_read(device: Device) -> None:
    """Its rows stay in memory although a product reads it as entries."""

    @kernel
    def both(x=In(M, K), w=In(N, K), y=Out(M, N), u=Out(A, K), *, gm=None, gn=None, nk=None):  # type: ignore[no-untyped-def]
        t = temp(M, K)
        t <<= x * 2
        for i, j in units(t.tiles(gm), w.tiles(gn)):
            acc = tile(gm, gn, nk)
            for k in loop(t.chunks32(nk)):
                acc += t[i, k] @ w[j, k]
            y[i, j] <<= acc
        u <<= t.slice(0, 1, A, 2)

    x, w = normal(16, 64), normal(32, 64, seed=1)
    made = ktpu.run(ktpu.call(both, x, w, extents={"A": 8}), device)
    same(made["u"], x[1::2] * 2)
    same(made["y"], ktpu.run(ktpu.call(plain_product, x * 2, w), device)["y"])


def product_of(x: Any, w: Any, knobs: tuple[Any, Any, Any]) -> Any:
    """A temp with the product of two ports."""
    gm, gn, nk = knobs
    z = temp(M, N)
    for i, j in units(x.tiles(gm), w.tiles(gn)):
        acc = tile(gm, gn, nk)
        for k in loop(x.chunks32(nk)):
            acc += x[i, k] @ w[j, k]
        z[i, j] <<= acc
    return z


@kernel
def moved_then_passed(  # type: ignore[no-untyped-def]
    x=In(M, K), w=In(N, K), v=In(B, A, N), y=Out(M, N), u=Out(M, F), *, gm=None, gn=None, nk=None
):
    z, t = product_of(x, w, (gm, gn, nk)), temp(M, N)
    u <<= z.slice(1, 16, F)
    t <<= v.permute(1, 0, 2)
    y <<= z + t


@kernel
def met_in_rows(  # type: ignore[no-untyped-def]
    x=In(M, K), w=In(N, K), v=In(B, A, N), y=Out(M, N), *, gm=None, gn=None, nk=None
):
    z, t = product_of(x, w, (gm, gn, nk)), temp(M, N)
    t <<= v.permute(1, 0, 2)
    y <<= z + t


@pytest.mark.parametrize("n", [48, 80])
def test_a_product_that_a_move_and_a_pass_read(n: int, device: Device) -> None:
    """The product is in memory before the move; a machine that drains rows needs no relayout for either reader."""
    # few bits, so that a sum is rounded once
    x, w, v = (np.round(a * 2) / 2 for a in (normal(8, 64), normal(n, 64, seed=1), normal(2, 4, n, seed=2)))
    z = ktpu.run(ktpu.call(plain_product, x, w), device)["y"]
    want = (z.astype(np.float64) + v.transpose(1, 0, 2).reshape(8, n)).astype(np.float16)
    call = ktpu.call(moved_then_passed, x, w, v, extents={"F": 32})
    made = ktpu.run(call, device)
    same(made["u"], z[:, 16:48])
    same(made["y"], want)
    met = ktpu.call(met_in_rows, x, w, v)
    same(ktpu.run(met, device)["y"], want)
    if "drain_rowmajor" in ktpu.machine(device.description["name"]).features:
        assert counters(call, device) == (2, 2, 0)
        assert counters(met, device) == (1, 2, 0)


def test_slices_of_a_loop(device: Device) -> None:
    """Bounds may use the index of a loop around whole stages."""

    @kernel
    def total(x=In(B, M, N), y=Out(M, N)):  # type: ignore[no-untyped-def]
        acc = temp(M, N)
        acc <<= x.slice(0, 0, 1)
        for i in loop(B - 1):
            acc <<= acc + x.slice(0, i + 1, 1)
        y <<= acc * 2

    x = np.round(normal(4, 5, 16) * 4) / 4
    same(ktpu.run(ktpu.call(total, x), device)["y"], x.sum(axis=0) * 2)


def test_a_view_shared_by_a_batch(device: Device) -> None:
    """Every block of the batch reads the same view."""

    @kernel
    def shared(x=In(B, M, N), z=In(..., M, B, N), y=Out(..., M, B, N)):  # type: ignore[no-untyped-def]
        y <<= x.permute(1, 0, 2) + z

    x, z = normal(3, 4, 16), normal(2, 4, 3, 16, seed=1)
    want = x.transpose(1, 0, 2).astype(np.float64) + z
    same(ktpu.run(ktpu.call(shared, x, z), device)["y"], want.astype(np.float16))


def test_rows_of_a_view_are_folded(device: Device) -> None:
    """A view names the rows of the blocks of any rank beside it."""

    @kernel
    def peaks(x=In(B, M, N), z=In(...), y=Out(...)):  # type: ignore[no-untyped-def]
        y <<= row_max(x.permute(1, 0, 2)) - z

    x, z = normal(3, 4, 32), normal(4, 3, 32, seed=1)
    want = x.transpose(1, 0, 2).max(axis=2, keepdims=True).astype(np.float64) - z
    same(ktpu.run(ktpu.call(peaks, x, z), device)["y"], want.astype(np.float16))


def test_operands_on_the_device(device: Device) -> None:
    """An array a product left in tiles is brought into rows first."""
    x, w = normal(12, 64), normal(32, 64, seed=1)
    z = plain_product(device.tensor(x), device.tensor(w))
    got = every_second(z, F=6)
    same(got.numpy(), z.numpy()[1::2])


def test_a_view_means_the_version_it_was_written_down_at(device: Device) -> None:
    """A temp written again leaves what was read of its first version."""

    @kernel
    def twice(x=In(B, M, N), y=Out(M, B, N), u=Out(M, B, N)):  # type: ignore[no-untyped-def]
        t = temp(B, M, N)
        t <<= x * 2
        y <<= t.permute(1, 0, 2)
        t <<= x * 4
        u <<= t.permute(1, 0, 2)

    x = normal(2, 3, 16)
    made = ktpu.run(ktpu.call(twice, x), device)
    same(made["y"], x.transpose(1, 0, 2) * 2)
    same(made["u"], x.transpose(1, 0, 2) * 4)


@pytest.mark.parametrize("seed", range(6))
def test_random_views(seed: int, device: Device) -> None:
    """Random slices and permutations of four axes, against numpy and against the graph's meaning."""
    rng = np.random.default_rng(seed)
    shape = (*(int(n) for n in rng.integers(1, 6, 3)), 16 * int(rng.integers(1, 4)))
    axes = (*(int(a) for a in rng.permutation(3)), 3)
    x = halves(*shape, seed=seed)
    cuts = []
    for extent in (shape[a] for a in axes[:3]):
        first, step = int(rng.integers(0, extent)), int(rng.integers(1, 3))
        cuts.append((first, int(rng.integers(1, (extent - 1 - first) // step + 2)), step))
    words = shape[3] // 16
    first = int(rng.integers(0, words))
    cuts.append((16 * first, 16 * int(rng.integers(1, words - first + 1)), 1))

    @kernel
    def cut(x=In(A, B, M, N), y=Out(*(c for _, c, _ in cuts))):  # type: ignore[no-untyped-def]
        v = x.permute(*axes)
        for axis, (start, count, step) in enumerate(cuts):
            v = v.slice(axis, start, count, step)
        y <<= v

    want = x.transpose(axes)[tuple(slice(f, f + c * s, s) for f, c, s in cuts)]
    call = ktpu.call(cut, x)
    same(ktpu.run(call, device)["y"], want)
    given = np.nan_to_num(x.astype(np.float64), posinf=7, neginf=-7)
    meant = interpret(call.trace.graph, {"x": given.reshape(-1, shape[3])})["y"]
    codes = exact_bits(call.trace.graph, {"x": x.reshape(-1, shape[3])})["y"]
    assert codes.tobytes() == np.ascontiguousarray(want).tobytes()
    wanted = given.transpose(axes)[tuple(slice(f, f + c * s, s) for f, c, s in cuts)]
    assert (meant.reshape(wanted.shape) == wanted).all()
