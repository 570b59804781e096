# SPDX-License-Identifier: Apache-2.0
"""A network in tinygrad, and hand-written kernels in place of what tinygrad lowers (docs/spec/compiler.md 13.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tinygrad", reason="tinygrad is not installed; fix: make setup")

from tinygrad import Tensor, nn
from tinygrad.helpers import Context

import ktpu
import ktpu_tinygrad
from kohakutpu.errors import CompileError
from ktpu.language import In, Out, dims, kernel, loop, maximum, tile, units
from ktpu.library import rmsnorm
from ktpu_tinygrad import substitution

pytestmark = pytest.mark.unit

M, N, K = dims("M, N, K")


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu_tinygrad.KTPUDevice]:
    """The default model."""
    with ktpu_tinygrad.use() as opened, Context(PARALLEL=0):
        yield opened


class Perceptron:
    """Two linear layers with a norm between them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(5)
        self.first, self.norm, self.second = nn.Linear(64, 96), nn.LayerNorm(96), nn.Linear(96, 10)
        for layer in (self.first, self.second):
            layer.weight = Tensor((rng.standard_normal(layer.weight.shape) / 8).astype(np.float16))
            layer.bias = Tensor(rng.standard_normal(layer.bias.shape).astype(np.float16))

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.norm(self.first(x).gelu())).softmax()

    def exact(self, x: np.ndarray) -> np.ndarray:
        """The same in float64."""

        def layer(v: np.ndarray, part: Any) -> np.ndarray:
            return v @ part.weight.numpy().astype(np.float64).T + part.bias.numpy().astype(np.float64)

        h = layer(x, self.first)
        h = h / (1 + np.exp(-2 * np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
        h = (h - h.mean(1, keepdims=True)) / np.sqrt(h.var(1, keepdims=True) + 1e-5)
        e = np.exp(layer(h, self.second))
        return e / e.sum(1, keepdims=True)


def test_network(device: ktpu_tinygrad.KTPUDevice) -> None:
    """Both products and the norm run on the device; the softmax of ten does not; probabilities are near float64."""
    net = Perceptron()
    x = np.random.default_rng(6).standard_normal((32, 64)).astype(np.float16)
    for part in (net.first, net.norm, net.second):
        Tensor.realize(part.weight, part.bias)
    device.schedule.clear()
    got = net(Tensor(x)).numpy().astype(np.float64)
    print(*device.schedule, sep="\n")
    stats = device.stats()
    print(f"{stats['device_ops']} kernels on the device, {stats['host_ops']} on the host")
    exact = net.exact(x.astype(np.float64))
    np.testing.assert_allclose(got, exact, atol=0.03)
    assert (got.argmax(1) == exact.argmax(1)).mean() > 0.9
    assert stats["device_kernels"]["linear_bias_gelu"] == 1
    assert stats["device_kernels"]["linear_bias"] == 1
    assert stats["device_ops"] >= 4
    assert stats["device_ops"] + stats["host_ops"] == len(device.schedule)


# ---------------------------------------------------------------------- substitution


@kernel
def twice_relu(x: Any = In(..., M, K), w: Any = In(N, K), y: Any = Out(..., M, N), *, factor: Any = 2.0) -> None:
    """y = relu(x w^T) * factor, with a tiling of its own."""
    for i, j in units(x.tiles(2), w.tiles(2)):
        acc = tile(2, 2, 1)
        for k in loop(x.chunks32(1)):
            acc += x[i, k] @ w[j, k]
        y[i, j] <<= maximum(acc, 0.0) * factor


def pattern(x: Tensor, w: Tensor) -> Tensor:
    """What twice_relu replaces."""
    return (x @ w.T).relu() * 2


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Standard normal values in half precision."""
    rng = np.random.default_rng(3)
    return [rng.standard_normal(s).astype(np.float16) for s in shapes]


def last(device: ktpu_tinygrad.KTPUDevice) -> str:
    """Name of the kernel that ran last."""
    return " + ".join(device.schedule[-1].steps)


def test_substitute(device: ktpu_tinygrad.KTPUDevice) -> None:
    """The kernel runs for its pattern at its shapes, gives its own bits, and nothing else changes."""
    x, w = arrays((16, 64), (32, 64))
    with ktpu_tinygrad.substitute(pattern, twice_relu, [(16, 64), (32, 64)]):
        got = pattern(Tensor(x), Tensor(w)).numpy()
        assert last(device) == "twice_relu"
        ((other),) = ktpu.run(ktpu.call(twice_relu, x, w), device.arrays).values()
        np.testing.assert_array_equal(got.view(np.uint16), other.view(np.uint16))
        ((Tensor(x) @ Tensor(w).T).relu() * 3).realize()
        assert last(device) == "linear_chain"
        pattern(Tensor(x[:8].copy()), Tensor(w)).realize()
        assert last(device) == "linear_chain"
    pattern(Tensor(x), Tensor(w)).realize()
    assert last(device) == "linear_chain"


def test_substitute_several_shapes_and_a_knob(device: ktpu_tinygrad.KTPUDevice) -> None:
    """One registration, two shapes; a knob reaches the kernel."""
    shapes = [[(8, 32), (16, 32)], [(4, 64), (16, 64)]]
    with ktpu_tinygrad.substitute(pattern, twice_relu, *shapes, factor=4.0) as made:
        assert len(made.keys) == 2
        for one in shapes:
            x, w = arrays(*one)
            got = pattern(Tensor(x), Tensor(w)).numpy()
            assert last(device) == "twice_relu"
            (want,) = ktpu.run(ktpu.call(twice_relu, x, w, factor=4.0), device.arrays).values()
            np.testing.assert_array_equal(got, want)


def test_substitute_keeps_the_order_of_operands(device: ktpu_tinygrad.KTPUDevice) -> None:
    """Operands of one shape reach the ports they belong to, whichever the pattern reads first."""

    @kernel
    def less_twice(x: Any = In(M, N), r: Any = In(M, N), y: Any = Out(M, N)) -> None:
        """y = r - 2 x, then 8 more as a mark."""
        y <<= r - x * 2.0 + 8.0

    x, r = arrays((4, 16), (4, 16))
    with ktpu_tinygrad.substitute(lambda x, r: r - x * 2, less_twice, [(4, 16), (4, 16)]):
        got = (Tensor(r) - Tensor(x) * 2).numpy()
    assert last(device) == "less_twice"
    np.testing.assert_allclose(got, r.astype(np.float64) - 2 * x.astype(np.float64) + 8, atol=0.01)


def test_substitute_for_what_has_no_match(device: ktpu_tinygrad.KTPUDevice) -> None:
    """A nest the matcher refuses, here for a sine, can have a kernel too."""

    @kernel
    def small_sine(x: Any = In(M, N), y: Any = Out(M, N)) -> None:
        """y = x - x^3 / 6 + x^5 / 120."""
        square = x * x
        y <<= x * ((square * (1 / 120) - 1 / 6) * square + 1.0)

    x = np.random.default_rng(4).uniform(-1, 1, (4, 32)).astype(np.float16)
    Tensor(x).sin().realize()
    assert device.schedule[-1].where == "host"
    with ktpu_tinygrad.substitute(lambda x: x.sin(), small_sine, [(4, 32)]):
        got = Tensor(x).sin().numpy()
    assert last(device) == "small_sine"
    np.testing.assert_allclose(got, np.sin(x.astype(np.float64)), atol=1e-3)


@pytest.mark.parametrize(
    ("function", "shapes", "message"),
    [
        (lambda x, w: x.softmax() @ w.T, [(16, 32), (16, 32)], "lowers it to [0-9] kernels"),
        (lambda x, w: x * 2, [(16, 32), (16, 32)], "operand 1 is not read"),
        (lambda x, w: x[:, 1:] + w[:, 1:], [(16, 32), (16, 32)], "a constant offset of 1"),
    ],
)
def test_substitute_refuses(
    function: Any, shapes: list[tuple[int, int]], message: str, device: ktpu_tinygrad.KTPUDevice
) -> None:
    """A pattern that is no single kernel it can read is an error, and registers nothing."""
    before = substitution.generation()
    with pytest.raises(CompileError, match=message):
        ktpu_tinygrad.substitute(function, rmsnorm(32), shapes)
    assert substitution.generation() == before
