# SPDX-License-Identifier: Apache-2.0
"""Random views, chains and reductions: wherever they run, they are what numpy says (docs/spec/compiler.md 13.2).

A match that ignores a stride, an offset, a condition or a loop gives other values; nothing is asserted about where a
kernel runs but that both places are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tinygrad", reason="tinygrad is not installed; fix: make setup")

from tinygrad import Tensor
from tinygrad.helpers import Context

import ktpu_tinygrad

pytestmark = pytest.mark.unit

SIZE = 16
Pair = tuple[Any, np.ndarray]
"""A tensor and what it holds in float64."""


@pytest.fixture(scope="module")
def device() -> Iterator[ktpu_tinygrad.KTPUDevice]:
    """The default model."""
    with ktpu_tinygrad.use() as opened, Context(PARALLEL=0):
        yield opened


def view(rng: np.random.Generator, pair: Pair) -> Pair:
    """A view of [16][16] that stays [16][16]."""
    t, a = pair
    kind = rng.integers(24)
    if kind == 0:
        return t.T, a.T
    if kind == 1:
        return t.flip(1), a[:, ::-1]
    if kind == 2:
        n = int(rng.integers(1, SIZE))
        return t[:, n : n + 1].expand(SIZE, SIZE), a[:, n : n + 1].repeat(SIZE, 1)
    if kind == 3:
        return t[:1].expand(SIZE, SIZE), a[:1].repeat(SIZE, 0)
    if kind == 4:
        return t.reshape(8, 32)[:, :16].repeat(2, 1), np.tile(a.reshape(8, 32)[:, :16], (2, 1))
    if kind == 5:
        return t.roll(3, 0), np.roll(a, 3, 0)
    if kind == 6:
        return t[:, ::2].pad(((0, 0), (4, 4))), np.pad(a[:, ::2], ((0, 0), (4, 4)))
    if kind == 7:
        return t.reshape(4, 4, SIZE).permute(1, 0, 2).reshape(SIZE, SIZE), a.reshape(4, 4, SIZE).swapaxes(0, 1).reshape(
            SIZE, SIZE
        )
    return pair


JOINS: list[Callable[[Any, Any], Any]] = [lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b]
ENDS: list[tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = [
    (lambda t: t, lambda a: a),
    (lambda t: t.relu(), lambda a: np.maximum(a, 0)),
    (lambda t: t.sum(1), lambda a: a.sum(1)),
    (lambda t: t.max(1), lambda a: a.max(1)),
    (lambda t: t.sum(0), lambda a: a.sum(0)),
    (lambda t: t.exp(), np.exp),
]


@pytest.mark.parametrize("seed", range(40))
def test_random_nests(seed: int, device: ktpu_tinygrad.KTPUDevice) -> None:
    """Views of two arrays joined elementwise or as a product, then an end."""
    rng = np.random.default_rng(seed)
    arrays = [rng.uniform(-1, 1, (SIZE, SIZE)).astype(np.float16) for _ in range(3)]
    x, w, r = ((Tensor(a), a.astype(np.float64)) for a in arrays)
    x, w, r = view(rng, x), view(rng, w), view(rng, r)
    product = rng.integers(2)
    join, tail, (end, exact_end) = JOINS[rng.integers(3)], JOINS[rng.integers(3)], ENDS[rng.integers(len(ENDS))]
    first = (x[0] @ w[0].T, x[1] @ w[1].T) if product else (join(x[0], w[0]), join(x[1], w[1]))
    begin = len(device.schedule)
    got = end(tail(first[0], r[0])).numpy()
    print(*device.schedule[begin:], sep="\n")
    exact = exact_end(tail(first[1], r[1]))
    size = float(np.abs(exact).max())
    # a product of 16 values below 1 in MXFP7 is off by less than 16 * 2 * 0.521 / 55
    np.testing.assert_allclose(got, exact, rtol=0.02, atol=0.02 * size + (0.3 if product else 0.01))


def test_both_places_are_used(device: ktpu_tinygrad.KTPUDevice) -> None:
    """The nests above would find a false match, and a match at all."""
    for seed in range(12):
        test_random_nests(seed, device)
    assert {r.where for r in device.schedule} == {"host", "device"}
