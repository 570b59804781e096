# SPDX-License-Identifier: Apache-2.0
"""Image byte orders: every tap of every output pixel (docs/spec/compiler.md 6)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from kohakutpu.errors import CompileError
from kohakutpu.model.numerics import Layout as Side
from kohakutpu.model.numerics import quantise_entries
from kohakutpu.schedule.layout_conv import ConvEntry, Image, MxConv

pytestmark = pytest.mark.unit

SIZES = [(8, 8), (9, 7), (12, 10), (16, 16), (32, 32), (128, 128)]
TAPS = [(dy, dx) for dy in range(3) for dx in range(3)]


def image(h: int, w: int, c: int) -> npt.NDArray[np.float16]:
    """Random bit patterns; NaN payloads and -0 have to survive a round trip."""
    bits = np.random.default_rng([h, w, c]).integers(0, 1 << 16, (h, w, c), dtype=np.uint16)
    return bits.view(np.float16)


def pixel(array: npt.NDArray[np.uint16], y: int, x: int) -> npt.NDArray[np.uint16]:
    """All channels of a pixel; zero outside the image."""
    inside = 0 <= y < array.shape[0] and 0 <= x < array.shape[1]
    return array[y, x] if inside else np.zeros(array.shape[2], np.uint16)


def loop_packed(order: ConvEntry, array: npt.NDArray[np.float16]) -> bytes:
    """The offset formula of the page, one element at a time."""
    h, w, c = array.shape
    s, pad = order.step, order.pad
    hs, ws = -(-h // s), -(-w // s)
    wp = ws + 2 * pad
    sub = -(-((hs + 2 * pad) * wp) // 4) * 4
    plane = s * s * sub
    out = bytearray(order.nbytes((h, w, c)))
    for (y, x, k), code in np.ndenumerate(array.view(np.uint16)):
        where = (y % s * s + x % s) * sub + (y // s + pad) * wp + (x // s + pad)
        at = 64 * (k // 32 * plane + where) + 2 * (k % 32)
        out[at : at + 2] = int(code).to_bytes(2, "little")
    return bytes(out)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES[:4], ids=str)
def test_bytes_against_the_formula(size: tuple[int, int], step: int) -> None:
    order = ConvEntry(1, 2, step)
    array = image(*size, 64)
    assert order.pack(array) == loop_packed(order, array)


@pytest.mark.parametrize("gm", [1, 8])
@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_tap_reads_the_right_pixel(size: tuple[int, int], step: int, gm: int) -> None:
    order = ConvEntry(1, gm, step)
    shape: Image = (*size, 32)
    array = image(*shape)
    raw = order.pack(array)
    back = order.unpack(raw, shape)
    assert back.tobytes() == array.tobytes()
    lanes = np.frombuffer(raw, np.uint16).reshape(-1, 32)
    rows = order.result_rows(shape)
    hs, ws = rows.shape
    padded = np.zeros((hs * step + 3, ws * step + 3, 32), np.uint16)
    padded[1 : 1 + size[0], 1 : 1 + size[1]] = array.view(np.uint16)
    for dy, dx in TAPS:
        tap = order.tap(shape, dy, dx)
        # the whole sweep, discarded rows included, stays inside body, tail and guard
        assert tap + order.swept(shape) <= len(lanes)
        want = padded[dy : dy + hs * step : step, dx : dx + ws * step : step]
        assert np.array_equal(lanes[rows + tap], want)
    assert rows.max() < order.swept(shape)


def test_tail_is_needed_and_is_enough() -> None:
    """The last tap of the last tile ends within the tail, and somewhere it needs all of it."""
    used = set()
    for h in range(1, 20):
        for gm in (1, 2, 4, 16):
            order, shape = ConvEntry(1, gm), (h, 5, 32)
            beyond = order.swept(shape) + order.tap(shape, 2, 2) - order.plane(shape)
            assert beyond <= 4 * order.tail(shape)
            used.add(beyond > 4 * order.tail(shape) - 4 and order.tail(shape) > 0)
    assert used == {True, False}


def test_centre_tap_and_overheads_of_the_page() -> None:
    for step in (1, 2, 3):
        order, shape = ConvEntry(1, 8, step), (32, 32, 32)
        assert order.tap(shape, 1, 1) == order.extents(shape)[2] + 1
    for edge, plane, swept in ((128, 3.15, 1.56), (64, 6.35, 3.12), (32, 12.9, 6.25)):
        order, shape = ConvEntry(1, 1), (edge, edge, 32)
        pixels = edge * edge
        assert 100 * (order.plane(shape) / pixels - 1) == pytest.approx(plane, abs=0.02)
        assert 100 * ((edge * order.extents(shape)[2]) / pixels - 1) == pytest.approx(swept, abs=0.01)


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("size", [(8, 8), (9, 7), (12, 10)], ids=str)
def test_tapped_fill_equals_quantising_the_pixels(size: tuple[int, int], step: int) -> None:
    shape: Image = (*size, 64)
    array = np.random.default_rng(7).standard_normal(shape).astype(np.float16)
    order = ConvEntry(1, 2, step)
    mx = MxConv.of(order, shape, TAPS)
    stored = np.frombuffer(mx.pack(array), np.uint8).reshape(-1, 128)
    assert len(stored) * 128 == mx.nbytes(shape)
    bits = array.view(np.uint16)
    _, _, wp = order.extents(shape)
    hs, ws = order.result_rows(shape).shape
    compared = 0
    for dy, dx in TAPS:
        tap = order.tap(shape, dy, dx)
        for tile in range(order.swept(shape) // 8):
            for block in range(2):
                first = mx.fill_entry(shape, tile, block, tap)
                for group in range(2):
                    source = np.zeros((4, 32), np.uint16)
                    real = True
                    for lane in range(4):
                        y, x = divmod(8 * tile + 4 * group + lane, wp)
                        real &= y < hs and x < ws
                        source[lane] = pixel(bits, y * step + dy - 1, x * step + dx - 1)[32 * block :][:32]
                    if not real:
                        continue  # a discarded row is in this entry: its bytes are not defined by a pixel
                    want = quantise_entries(source.view(np.uint8).reshape(1, 256), Side.A)[0]
                    assert np.array_equal(stored[first + group], want)
                    compared += 1
    assert compared >= 36


def test_phases() -> None:
    """Three when the pitch is a multiple of 4 and all taps are used, never more than four."""
    assert MxConv.of(ConvEntry(1, 8), (32, 30, 32), TAPS).phases == 3
    assert MxConv.of(ConvEntry(1, 8), (32, 32, 32), TAPS).phases <= 4
    assert MxConv.of(ConvEntry(1, 8), (32, 30, 32), [(0, 0)]).phases == 1


CONCATENATIONS = (
    (32, 1280, 1280),
    (32, 1280, 640),
    (64, 1280, 640),
    (64, 640, 640),
    (64, 640, 320),
    (128, 640, 320),
    (128, 320, 320),
    (8, 32, 64),
)
"""Edge, channels of the first and of the second image (docs/spec/kernels.md 1.3)."""


@pytest.mark.parametrize("gm", [8, 32])
def test_channel_concatenation_is_byte_identical(gm: int) -> None:
    """Body of the first, then the second with its tail: the bytes of the joined image."""
    for edge, first, second in CONCATENATIONS:
        order = ConvEntry(1, gm)
        joined = image(edge, edge, first + second)
        a, b = joined[:, :, :first], joined[:, :, first:]
        head = order.pack(a)[: order.body_bytes((edge, edge, first))]
        assert head + order.pack(b) == order.pack(joined)


def test_refusals() -> None:
    with pytest.raises(CompileError, match="40 channels; they come in blocks of 32"):
        ConvEntry(1, 8).nbytes((8, 8, 40))
    with pytest.raises(CompileError, match=r"tap \(3, 0\) is outside"):
        ConvEntry(1, 8).tap((8, 8, 32), 3, 0)
    with pytest.raises(CompileError, match="step 0"):
        ConvEntry(1, 8, 0)
    with pytest.raises(CompileError, match="5 phases"):
        MxConv(ConvEntry(1, 8), 5)
    with pytest.raises(CompileError, match="reads phase 2; 1 phases were built"):
        MxConv(ConvEntry(1, 8), 1).fill_entry((8, 8, 32), 0, 0, 2)
    with pytest.raises(CompileError, match="10 bytes, a buffer of shape"):
        ConvEntry(1, 8).unpack(b"0123456789", (8, 8, 32))
