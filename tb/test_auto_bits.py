# SPDX-License-Identifier: Apache-2.0
"""Rewrites that keep bits or bytes, measured on the reference model (docs/spec/compiler.md 13.3)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest

import ktpu
import rewrite_cases as rc
from kohakutpu.rewrite import BY_NAME, Equality, Expr, array, inputs, ops, without
from kohakutpu.rewrite.planes import ChannelConcat
from kohakutpu.schedule.layout_conv import ConvEntry

pytestmark = pytest.mark.unit

F16 = npt.NDArray[np.float16]


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu.TensorDevice]:
    with ktpu.open("model:mm_store") as opened:
        yield opened


def _drawn(e: Expr, seed: int) -> dict[str, F16]:
    rng = np.random.default_rng(seed)
    return {i.name: rng.standard_normal(i.extents).astype(np.float16) for i in inputs(e)}


def _heads(axes: tuple[int, int, int]) -> Expr:
    return ops.transpose(ops.reshape(array("x", 16, 64) @ array("w", 128, 64), 16, 2, 64), *axes)


def _joined() -> Expr:
    o = array("o", 4, 16, 64)
    return ops.reshape(ops.transpose(o, 1, 0, 2), 16, 256) @ array("w", 32, 256)


def _half(second: bool) -> Expr:
    x, w = array("x", 16, 64), array("w", 64, 64)
    return ops.take(x @ w, -1, 32, 64) if second else ops.take(x @ w, -1, 0, 32)


BITS: dict[str, Callable[[], Expr]] = {
    f"{rc.SPLIT}, [heads, L, d]": lambda: _heads((1, 0, 2)),
    f"{rc.SPLIT}, [heads, d, L]": lambda: _heads((1, 2, 0)),
    f"{rc.JOIN}, four heads": _joined,
    f"{rc.TRANSPOSE}, matrix": lambda: ops.transpose(array("x", 20, 96) @ array("w", 36, 96)),
    f"{rc.TRANSPOSE}, batch": lambda: ops.transpose(array("a", 2, 16, 64) @ array("b", 2, 8, 64)),
}


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("label", BITS)
def test_bit_identical(label: str, seed: int, device: ktpu.TensorDevice) -> None:
    """The rewritten program gives the bits of the product as written, moved on the host."""
    name = label.partition(",")[0]
    assert BY_NAME[name].equality is Equality.BIT
    e = BITS[label]()
    values = list(_drawn(e, seed).values())
    plain = ktpu.auto(e, *values, catalogue=without(name, *([rc.TRANSPOSE] if name == rc.SPLIT else [])))
    done = ktpu.auto(e, *values)
    assert plain.host_steps > 0
    assert done.host_steps == 0
    assert [a.rewrite for a in done.rewritten.applied] == [name]
    want, got = plain.run(device).numpy(), done.run(device).numpy()
    assert len(np.unique(want)) > 10
    assert np.array_equal(got.view(np.uint16), want.view(np.uint16))


@pytest.mark.parametrize("bias", [False, True])
def test_halves_of_a_gate(bias: bool, device: ktpu.TensorDevice) -> None:
    """A half of the columns and the product with that half of the weight are the same bits."""
    x, w, b = array("x", 16, 64), array("w", 64, 64), array("b", 64)
    whole = x @ w + b if bias else x @ w
    values = _drawn(whole, 3)
    given = list(values.values())
    want = ktpu.auto(whole, *given).run(device).numpy()
    for first in (0, 32):
        half = x @ ops.take(w, -2, first, first + 32)
        half = half + ops.take(b, -1, first, first + 32) if bias else half
        got = ktpu.auto(half, *given).run(device).numpy()
        assert np.array_equal(got.view(np.uint16), want[:, first : first + 32].view(np.uint16))


def test_gate_of_halves_is_the_gate_of_two_products(device: ktpu.TensorDevice) -> None:
    """One weight read in place and two weights give the same bits."""
    rng = np.random.default_rng(3)
    x, w = rng.standard_normal((16, 64)).astype(np.float16), rng.standard_normal((64, 64)).astype(np.float16) / 8

    def gate(x: Expr, w: Expr) -> Expr:
        h, g = ops.chunk(x @ w)
        return h * ops.gelu(g)

    one = ktpu.auto(gate, x, w)
    two = ktpu.auto(lambda x, wg, wu: (x @ wu) * ops.gelu(x @ wg), x, w[32:], w[:32])
    assert [a.rewrite for a in one.rewritten.applied] == [rc.GATE]
    assert len(one.chosen.steps) == 1
    assert np.array_equal(one.run(device).numpy().view(np.uint16), two.run(device).numpy().view(np.uint16))


def test_point_convolution_is_the_product_of_its_pixels(device: ktpu.TensorDevice) -> None:
    """The rows of ``ktpu.matmul``, bit for bit."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((4, 5, 64)).astype(np.float16)
    w = (rng.standard_normal((12, 1, 1, 64)) / 8).astype(np.float16)
    done = ktpu.auto(ops.conv2d, x, w)
    assert done.host_steps == 0
    got = done.run(device).numpy()
    want = ktpu.run(ktpu.matmul(x.reshape(20, 64), w.reshape(12, 64)), device)["c"]
    assert got.shape == (4, 5, 12)
    assert np.array_equal(got.reshape(20, 12).view(np.uint16), want.view(np.uint16))


ORDER = ConvEntry(1, 8)


def _whole_blocks(a: F16) -> F16:
    return np.pad(a, ((0, 0), (0, 0), (0, -a.shape[2] % 32)))


def _image(a: F16) -> bytes:
    """A plane in memory, channels in blocks of 32."""
    return ORDER.pack(_whole_blocks(a))


def _body(a: F16) -> int:
    """Bytes of its blocks."""
    shape = _whole_blocks(a).shape
    return ORDER.body_bytes((shape[0], shape[1], shape[2]))


CONCATS = ((32, 1280, 1280), (32, 1280, 640), (64, 640, 320), (8, 32, 64), (6, 32, 20))
"""Side of the plane and channels of both members (docs/spec/kernels.md 1.3)."""


@pytest.mark.parametrize(("side", "first", "second"), CONCATS)
def test_adjacent_planes_are_the_concatenation(side: int, first: int, second: int) -> None:
    """The image of the concatenation is the image of the first member followed by that of the second."""
    assert BY_NAME[rc.CONCAT].equality is Equality.BYTE
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((side, side, c)).astype(np.float16) for c in (first, second))
    e = ops.concat(array("a", *a.shape), array("b", *b.shape))
    assert ChannelConcat().attempt(e).result is not None
    assert _image(np.concatenate([a, b], axis=-1)) == _image(a)[: _body(a)] + _image(b)


def test_a_tail_between_planes_is_no_concatenation() -> None:
    """20 channels before 32: the bytes differ, and the entry refuses."""
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal((8, 8, c)).astype(np.float16) for c in (20, 32))
    e = ops.concat(array("a", *a.shape), array("b", *b.shape))
    assert "20 channels" in ChannelConcat().attempt(e).reason
    assert _image(np.concatenate([a, b], axis=-1)) != _image(a)[: _body(a)] + _image(b)
