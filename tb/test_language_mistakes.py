# SPDX-License-Identifier: Apache-2.0
"""What a first kernel gets wrong: numpy and Python operators on elements (docs/spec/compiler.md 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ktpu
from kohakutpu.errors import TraceError
from ktpu.language import In, Kernel, Out, kernel, maximum

pytestmark = pytest.mark.unit

X = np.arange(64.0).reshape(4, 16) - 20.0


def elementwise(f: Callable[[Any], object]) -> Kernel:
    """A kernel of one statement."""

    def body(x=In(...), y=Out(...)):  # type: ignore[no-untyped-def]
        y <<= f(x)

    return kernel(body)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (np.exp, r"np\.exp of an element; numpy does not compute on the machine, use ktpu\.language"),
        (lambda x: np.maximum(maximum(x, 1), 0), r"np\.maximum of an element"),
        (lambda x: x**2, r"a power of an element; write x \* x"),
        (lambda x: x if x > 0 else 0.0, r"a comparison of elements; write where\(greater\(a, b\), c, d\)"),
        (lambda x: x if x < 0 else 0.0, "a comparison of elements"),
        (lambda x: x if x >= 0 else 0.0, "a comparison of elements"),
        (lambda x: x if x <= 0 else 0.0, "a comparison of elements"),
        (lambda x: np.ones(3) * x, "of type ndarray cannot be an operand"),
        (lambda x: x * np.float32("inf"), "inf is no finite constant"),
    ],
)
def test_operators_refused(f: Callable[[Any], object], message: str) -> None:
    """The message says what to write."""
    with pytest.raises(TraceError, match=message):
        elementwise(f).trace()


@pytest.mark.parametrize(
    ("f", "want"),
    [
        (lambda x: np.float64(0.5) * x + np.float32(1), 0.5 * X + 1),
        (lambda x: np.int64(3) - x, 3 - X),
        (lambda x: np.float64(3.0) / maximum(x, 1), 3.0 / np.maximum(X, 1)),
        (lambda x: x - np.float64(3.0), X - 3.0),
        (lambda x: np.float32(2) + x, 2 + X),
    ],
)
def test_numbers_of_numpy_are_constants(f: Callable[[Any], object], want: np.ndarray) -> None:
    """On either side, of any width."""
    device = ktpu.open("model:mm_mesh")
    got = ktpu.run(ktpu.call(elementwise(f), X), device)["y"]
    assert np.allclose(got, want, rtol=1e-3)


def test_a_knob_is_checked_although_an_equal_one_was_traced() -> None:
    """4.0 equals 4, but it is refused before and after 4 was traced."""
    x = np.ones((16, 32))
    for _ in range(2):
        with pytest.raises(ValueError, match=r"gm = 4.0; .* give an integer"):
            ktpu.matmul(x, x, gm=4.0, gn=4, nk=1)
        ktpu.matmul(x, x, gm=4, gn=4, nk=1)


def test_knobs_of_numpy_and_zeros_of_both_signs() -> None:
    """A number of numpy is the Python number; 0.0 and -0.0 are two knobs."""

    @kernel
    def moved(x=In(...), y=Out(...), *, by=0.0):  # type: ignore[no-untyped-def]
        y <<= x + by

    assert moved.trace(by=np.float32(0.5)) is moved.trace(by=0.5)
    assert moved.trace(by=-0.0) is not moved.trace(by=0.0)
    call = ktpu.matmul(np.ones((16, 32)), np.ones((16, 32)), gm=np.int64(4), gn=4, nk=1)
    assert '"gm": 4' in ktpu.compile(call, ktpu.machine("mm_mesh")).artifact.to_json()
