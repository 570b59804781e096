# SPDX-License-Identifier: Apache-2.0
"""Drained rows and batches (docs/spec/compiler.md 6)."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from kohakutpu.errors import CompileError
from kohakutpu.schedule.layout import Entry, Flat, Tile
from kohakutpu.schedule.layout_batch import Batched, Rows

pytestmark = pytest.mark.unit


def values(*shape: int) -> npt.NDArray[np.float16]:
    return np.random.default_rng(shape).integers(0, 1 << 16, shape, dtype=np.uint16).view(np.float16)


def test_rows_against_the_formula() -> None:
    rng = random.Random(3)
    for _ in range(200):
        shape = rng.randint(1, 50), rng.randint(1, 90)
        gm, gn = rng.choice([1, 2, 3, 4]), rng.choice([4, 8])
        least = Rows.of(shape, gm, gn).pitch
        order = Rows.of(shape, gm, gn, least + rng.randint(0, 2))
        array = values(*shape)
        raw = order.pack(array)
        assert len(raw) == order.nbytes(shape) == 32 * order.pitch * (-(-shape[0] // (4 * gm)) * 4 * gm)
        want = bytearray(len(raw))
        for (r, c), code in np.ndenumerate(array.view(np.uint16)):
            at = 32 * order.pitch * r + 2 * c
            want[at : at + 2] = int(code).to_bytes(2, "little")
        assert raw == bytes(want)
        assert order.unpack(raw, shape).tobytes() == array.tobytes()


def test_rows_equal_flat_where_nothing_is_padded() -> None:
    array = values(32, 64)
    order = Rows.of((32, 64), 4, 8)
    assert order.pitch == 4
    assert order.pack(array) == Flat().pack(array)


@pytest.mark.parametrize("inner", [Flat(), Entry(2, 1), Tile.of((20, 40), 2, 4)], ids=lambda o: o.key)
@pytest.mark.parametrize("pad", [0, 5000])
def test_batches(inner: Flat | Entry | Tile, pad: int) -> None:
    array = values(3, 20, 40)
    order = Batched(inner, 3, (20, 40), pad)
    raw = order.pack(array)
    size = inner.nbytes((20, 40))
    assert order.stride % 2048 == 0
    assert order.stride >= max(size, pad) > order.stride - 2048
    for i in range(3):
        assert raw[i * order.stride :][:size] == inner.pack(array[i])
        assert not any(raw[i * order.stride + size : (i + 1) * order.stride])
    assert order.unpack(raw, (3, 20, 40)).tobytes() == array.tobytes()
    assert order.key == f"batch3:{inner.key}"


def test_refusals() -> None:
    with pytest.raises(CompileError, match="pitch 3 words, a padded row has 4"):
        Rows.of((32, 64), 4, 8, 3)
    with pytest.raises(CompileError, match="gn = 6"):
        Rows.of((32, 64), 4, 6)
    with pytest.raises(CompileError, match="needs a grid of another size"):
        Rows.of((32, 64), 4, 8).nbytes((64, 64))
    with pytest.raises(CompileError, match="3 bytes, a buffer of shape"):
        Rows.of((32, 64), 4, 8).unpack(b"123", (32, 64))
    with pytest.raises(CompileError, match=r"shape \(2, 20, 40\), the batch is 3 blocks"):
        Batched(Flat(), 3, (20, 40)).pack(values(2, 20, 40))
    with pytest.raises(CompileError, match="3 bytes, 6144 are expected"):
        Batched(Flat(), 3, (20, 40)).unpack(b"123", (3, 20, 40))
