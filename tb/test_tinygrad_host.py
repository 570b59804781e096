# SPDX-License-Identifier: Apache-2.0
"""Kernels on the host agree with tinygrad's own PYTHON device, its definition of every operation
(docs/spec/compiler.md 13.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tinygrad", reason="tinygrad is not installed; fix: make setup")

from tinygrad import Tensor, Variable, dtypes
from tinygrad.helpers import Context

import ktpu_tinygrad
from ktpu_tinygrad import host
from ktpu_tinygrad.listing import Line, Listing

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu_tinygrad.KTPUDevice]:
    """The default model."""
    with ktpu_tinygrad.use() as opened, Context(PARALLEL=0):
        yield opened


FLOATS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("arithmetic", lambda a, b: (a + b) * a - b / (a * a + 1)),
    ("functions", lambda a, b: a.exp2() + (b * b + 1).log2() + (a * a).sqrt() + b.sin()),
    ("compare", lambda a, b: (a < b) | (a == b) & (a != 0)),
    ("choice", lambda a, b: (a < b).where(a, b * 2)),
    ("round", lambda a, b: (a * 5).trunc() + (b * 5).floor() + (a * 3).ceil()),
    ("to_int", lambda a, b: (a * 100).int() + (b * 100).cast(dtypes.int8)),
    ("sums", lambda a, b: (a * b).sum(0) + a.max(1).sum()),
    ("product", lambda a, b: a @ b.T),
    ("convolution", lambda a, b: a.reshape(1, 1, 6, 6).conv2d(b.reshape(1, 1, 6, 6)[:, :, :3, :3], padding=1)),
    ("pool", lambda a, b: a.reshape(1, 1, 6, 6).max_pool2d((2, 2)) + b[:3, :3]),
    ("softmax", lambda a, b: a.softmax(0) + b.log_softmax(1)),
    ("running", lambda a, b: a.cumsum(1) + b.cummax(0)[0]),
    ("largest", lambda a, b: a.argmax(1) + b.argmin(0)),
    ("look_up", lambda a, b: a[b[:, 0].abs().int() % 6]),
    ("triangle", lambda a, b: a.tril() + b.triu(1)),
    ("sorted", lambda a, b: a.sort(1)[0]),
    ("bits", lambda a, b: a.bitcast(dtypes.int32) ^ b.bitcast(dtypes.int32)),
    ("variance", lambda a, b: a.var(1) + b.std(0)),
    ("views", lambda a, b: a.T.flip(0).pad(((1, 0), (0, 2))) + b.roll(2, 1).pad(((0, 1), (2, 0)))),
]
INTEGERS: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("arithmetic", lambda a, b: a * b + a - b),
    ("floor", lambda a, b: a // (b.abs() + 1) + a % (b.abs() + 1)),
    (
        "towards_zero",
        lambda a, b: a.idiv(b.abs() + 1) if hasattr(a, "idiv") else a.div(b.abs() + 1, rounding_mode="trunc"),
    ),
    ("bits", lambda a, b: (a & b) | (a ^ 5)),
    ("shifts", lambda a, b: (a << 2) + (b >> 1)),
    ("narrow", lambda a, b: a.cast(dtypes.int8) * b.cast(dtypes.uint8).cast(dtypes.int8)),
    ("wide", lambda a, b: a.cast(dtypes.int64) * 1000003 + b.cast(dtypes.uint32)),
    ("sums", lambda a, b: a.sum() + b.max(1)),
    ("to_float", lambda a, b: a.float() / 7 + b.float()),
    ("one_hot", lambda a, b: (a % 6)[0].one_hot(6) + b),
]


def both(function: Callable[..., Any], *arrays: np.ndarray, **context: int) -> tuple[np.ndarray, np.ndarray]:
    """The result on the device and on PYTHON."""
    with Context(**context):
        mine = function(*(Tensor(a, device="KTPU") for a in arrays)).numpy()
    with Context(DEV="PYTHON", DEFAULT_FLOAT="float32"):
        reference = function(*(Tensor(a, device="PYTHON") for a in arrays)).numpy()
    return mine, reference


@pytest.mark.parametrize(("name", "function"), FLOATS, ids=[n for n, _ in FLOATS])
def test_single_precision(name: str, function: Callable[..., Any], device: ktpu_tinygrad.KTPUDevice) -> None:
    """float32 arrays: every element within two roundings, integers and conditions equal."""
    rng = np.random.default_rng(len(name))
    arrays = [rng.standard_normal((6, 6)).astype(np.float32) for _ in range(2)]
    with Context(DEFAULT_FLOAT="float32"):
        mine, reference = both(function, *arrays)
    assert mine.dtype == reference.dtype
    exact = {"rtol": 0, "atol": 0} if mine.dtype.kind != "f" else {"rtol": 3e-6, "atol": 3e-6}
    np.testing.assert_allclose(mine, reference, **exact)


@pytest.mark.parametrize(("name", "function"), INTEGERS, ids=[n for n, _ in INTEGERS])
def test_integers(name: str, function: Callable[..., Any], device: ktpu_tinygrad.KTPUDevice) -> None:
    """int32 arrays, wrapped and divided as tinygrad does."""
    rng = np.random.default_rng(len(name))
    arrays = [rng.integers(-1000, 1000, (6, 6)).astype(np.int32) for _ in range(2)]
    with Context(DEFAULT_FLOAT="float32"):
        mine, reference = both(function, *arrays)
    assert mine.dtype == reference.dtype
    np.testing.assert_allclose(mine, reference, rtol=1e-6 if mine.dtype.kind == "f" else 0)


@pytest.mark.parametrize("name", ["product", "sums", "convolution", "softmax", "views", "sorted"])
def test_nests_tinygrad_optimised(name: str, device: ktpu_tinygrad.KTPUDevice) -> None:
    """Unrolled loops and arrays of registers are right too."""
    function = dict(FLOATS)[name]
    arrays = [np.random.default_rng(n).standard_normal((6, 6)).astype(np.float32) for n in (1, 2)]
    with Context(DEFAULT_FLOAT="float32"):
        mine, reference = both(function, *arrays, NOOPT=0)
    np.testing.assert_allclose(mine, reference, rtol=3e-6, atol=3e-6)


def test_random_numbers(device: ktpu_tinygrad.KTPUDevice) -> None:
    """tinygrad's generator of random bits gives the same numbers."""

    def numbers() -> np.ndarray:
        Tensor.manual_seed(7)
        return Tensor.rand(40, dtype=dtypes.float32).numpy()

    mine = numbers()
    with Context(DEV="PYTHON"):
        np.testing.assert_array_equal(mine, numbers())
    assert len(set(mine.tolist())) > 30


def test_half_rounds_every_operation(device: ktpu_tinygrad.KTPUDevice) -> None:
    """A half operation rounds to half, as numpy's does; here one operand is not read densely."""
    a, b = (np.random.default_rng(n).standard_normal((8, 32)).astype(np.float16) for n in (1, 2))
    got = ((Tensor(a)[:, ::2] * Tensor(b)[:, ::2] + Tensor(a)[:, ::2]) * 3).numpy()
    assert device.schedule[-1].where == "host"
    expected = (a[:, ::2] * b[:, ::2] + a[:, ::2]) * np.float16(3)
    np.testing.assert_array_equal(got.view(np.uint16), expected.view(np.uint16))


def test_variable(device: ktpu_tinygrad.KTPUDevice) -> None:
    """A length known only at the call."""
    x = Tensor(np.arange(40, dtype=np.float32).reshape(10, 4)).realize()
    for length in (3, 7):
        n = Variable("n", 1, 10).bind(length)
        assert x[:n].sum(0).numpy().tolist() == np.arange(40).reshape(10, 4)[:length].sum(0).tolist()


def test_assignment_in_place(device: ktpu_tinygrad.KTPUDevice) -> None:
    """Part of a buffer changes, the rest stays."""
    x = Tensor(np.arange(64, dtype=np.float16).reshape(4, 16)).realize()
    (x + 0).realize()
    x[1:3] = x[1:3] * 2
    want = np.arange(64, dtype=np.float16).reshape(4, 16)
    want[1:3] *= 2
    np.testing.assert_array_equal(x.numpy(), want)
    x.assign(x + 1).realize()
    np.testing.assert_array_equal(x.numpy(), want + 1)


# ---------------------------------------------------------------------- listings


def listing(*lines: Line) -> Listing:
    """A kernel."""
    return Listing("made", lines)


COPY_NEXT = (
    Line("param", "int", value=0, size=8),
    Line("const", "int", value=7),
    Line("const", "int", value=1),
    Line("range", "int", (1,), kind="parallel"),
    Line("index", "int", (0, 3)),
    Line("load", "int", (4,), size=1),
    Line("add", "int", (3, 2)),
    Line("index", "int", (0, 6)),
    Line("store", "", (7, 5)),
    Line("end", "", (3,)),
)


def test_loop_whose_order_matters() -> None:
    """Each turn reads what the one before it stored: the loop is not spread over an array."""
    values = np.arange(5, 13, dtype=np.int32)
    host.run(listing(*COPY_NEXT), {0: memoryview(values).cast("B")})
    assert values.tolist() == [5] * 8


def test_access_outside_a_buffer() -> None:
    """Named, not wrapped around."""
    short = np.zeros(6, np.int32)
    with pytest.raises(IndexError, match="buffer of 6"):
        host.run(listing(*COPY_NEXT), {0: memoryview(short).cast("B")})


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ((Line("const", "half", value=1.0), Line("tan", "half", (0,))), "tan is no operation of the host"),
        ((Line("const", "float8_e4m3", value=1.0),), "elements of type float8_e4m3"),
    ],
)
def test_what_the_host_does_not_know(lines: tuple[Line, ...], message: str) -> None:
    """An error names it."""
    with pytest.raises(host.HostError, match=message):
        host.run(listing(*lines), {})


def test_condition_on_a_store() -> None:
    """Only elements whose condition holds change."""
    lines = (
        Line("param", "int", value=0, size=6),
        Line("const", "int", value=6),
        Line("const", "int", value=3),
        Line("range", "int", (1,), kind="parallel"),
        Line("cmplt", "bool", (3, 2)),
        Line("index", "int", (0, 3)),
        Line("if", "", (4,)),
        Line("store", "", (5, 2)),
        Line("endif", "", ()),
        Line("end", "", (3,)),
    )
    values = np.zeros(6, np.int32)
    host.run(listing(*lines), {0: memoryview(values).cast("B")})
    assert values.tolist() == [3, 3, 3, 0, 0, 0]
