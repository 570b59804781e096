# SPDX-License-Identifier: Apache-2.0
"""Byte orders against packers that place one element at a time (docs/spec/compiler.md 6)."""

from __future__ import annotations

import random

import numpy as np
import numpy.typing as npt
import pytest

from kohakutpu.errors import CompileError
from kohakutpu.schedule.layout import Entry, Flat, MxEntry, Tile, from_key

pytestmark = pytest.mark.unit

F16 = npt.NDArray[np.float16]
SHAPES = 200


def shapes(seed: int) -> list[tuple[int, int]]:
    """Random extents, multiples of 4 and 32 and their neighbours among them."""
    rng = random.Random(seed)

    def extent(top: int, step: int) -> int:
        return max(
            1, rng.choice([rng.randint(1, top), step * rng.randint(1, top // step) + rng.choice([-1, 0, 1])])
        )

    return [(extent(40, 4), extent(100, 32)) for _ in range(SHAPES)]


def values(rows: int, cols: int, seed: int = 0) -> F16:
    """Random bit patterns, infinities, NaNs, subnormals and -0 among them."""
    bits = np.random.default_rng([seed, rows, cols]).integers(0, 1 << 16, (rows, cols), dtype=np.uint16)
    return bits.view(np.float16)


def entry_offset(shape: tuple[int, int], g: int, b: int, r: int, c: int) -> int:
    """The formula of 6, one element."""
    chunks = -(-shape[1] // (32 * b))
    t, group, lane = r // (4 * g), (r % (4 * g)) // 4, r % 4
    u, block, k = c // (32 * b), (c % (32 * b)) // 32, c % 32
    return 256 * (((t * chunks + u) * g + group) * b + block) + 64 * lane + 2 * k


def tile_offset(order: Tile, r: int, c: int) -> int:
    """The formula of 6, one element."""
    i, group = r // (4 * order.gm), (r % (4 * order.gm)) // 4
    j, h = c // (4 * order.gn), (c % (4 * order.gn)) // 4
    word = ((i * order.gj + j) * order.gm + group) * order.gn + h
    return 32 * word + 8 * (r % 4) + 2 * (c % 4)


def loop_packed(array: F16, nbytes: int, offset: object) -> bytes:
    out = bytearray(nbytes)
    for (r, c), code in np.ndenumerate(array.view(np.uint16)):
        at = offset(r, c)  # type: ignore[operator]
        out[at : at + 2] = int(code).to_bytes(2, "little")
    return bytes(out)


def up(value: int, step: int) -> int:
    return value + -value % step


@pytest.mark.parametrize("kind", ["flat", "entry", "tile"])
def test_pack_unpack(kind: str) -> None:
    """200 random shapes: every byte where the formula puts it, size exact, unpacking gives the bits back."""
    rng = random.Random(kind)
    for rows, cols in shapes(3):
        array = values(rows, cols)
        g, b = rng.choice([1, 2, 3, 8]), rng.choice([1, 2, 4])
        if kind == "flat":
            order, size = Flat(), 2 * rows * cols
            want = loop_packed(array, size, lambda r, c, w=cols: 2 * (r * w + c))
        elif kind == "entry":
            order, size = Entry(g, b), 2 * up(rows, 4 * g) * up(cols, 32 * b)
            want = loop_packed(
                array, size, lambda r, c, s=(rows, cols), g=g, b=b: entry_offset(s, g, b, r, c)
            )
        else:
            order = Tile.of((rows, cols), g, b)
            size = up(rows, 4 * g) * up(cols, 4 * b) * 2
            want = loop_packed(array, size, lambda r, c, o=order: tile_offset(o, r, c))
        assert order.nbytes((rows, cols)) == size
        packed = order.pack(array)
        assert packed == want, (order.key, rows, cols)
        assert np.array_equal(order.unpack(packed, (rows, cols)).view(np.uint16), array.view(np.uint16))
        assert from_key(order.key) == order


@pytest.mark.parametrize("kind", ["flat", "entry", "tile"])
def test_size_is_exact(kind: str) -> None:
    """A byte more or less than the buffer is refused with layout and sizes."""
    order = {"flat": Flat(), "entry": Entry(2, 1), "tile": Tile.of((12, 40), 2, 4)}[kind]
    raw = order.pack(values(12, 40))
    for wrong in (raw[:-2], raw + bytes(32)):
        with pytest.raises(CompileError, match=f"{order.key}: {len(wrong)} bytes"):
            order.unpack(wrong, (12, 40))


def test_tile_of_another_shape() -> None:
    with pytest.raises(CompileError, match="grid of another size"):
        Tile.of((12, 40), 2, 4).pack(values(17, 40))


def test_tile_words_are_found_again() -> None:
    """``word_index`` and ``locate`` are inverse views of the offset formula."""
    order = Tile.of((77, 50), 3, 5)
    for r, c in [(0, 0), (12, 20), (24, 40), (76, 49), (75, 3)]:
        word = tile_offset(order, r, c) // 32
        assert order.locate(word) == (r - r % 4, c - c % 4)
    assert order.word_index(2, 1) == tile_offset(order, 2 * 12, 1 * 20) // 32


ANSWERS = {
    "a": [
        "973a955b373064973a955b3730649332854af6efe2973a955b37306479818589",
        "cfaf772ebe7e00cfaf772ebe7e00cdab771ebe7e00cfaf772ebe7e0079818589",
        "081c58e2454c9c081c58e2454c9c081c58f2458d1e081c58e2454c9c79818589",
        "40913ab5cc9ab940913ab5cc9ab942954ac60d1bbb40913ab5cc9ab979818589",
    ],
    "b": [
        "972e4cb9d3a64ea54a852ab56a55b366bd9b972ddcc182fe0c99316479818589",
        "cf9f367d7af56bddbb76ee5cb8f2ebd7af5f3e7cf9f9f3e7c000000079818589",
        "08102040e1c387162c58b1c3878e24489122a54b153264d193870f1c79818589",
        "40810a048912a44e9d4a756ad62b5cb982e64c9a326ad5bb572e5db979818589",
    ],
}


@pytest.mark.parametrize("side", ["a", "b"])
def test_known_answer_entry(side: str) -> None:
    """The words of docs/spec/memory.md 13.1, element k of lane l = (k - 15) * 0.125 * (l + 1)."""
    lane, k = np.arange(4)[:, None], np.arange(32)[None, :]
    array = ((k - 15) * 0.125 * (lane + 1)).astype(np.float16)
    raw = MxEntry(1, 1, side).pack(array)
    assert [raw[32 * w : 32 * w + 32][::-1].hex() for w in range(4)] == ANSWERS[side]


@pytest.mark.parametrize("side", ["a", "b"])
def test_mx_entries_are_those_of_the_source_order(side: str) -> None:
    """Entry e of the MXFP7 form is entry e of the FP16 form, quantised; 8 bits an element."""
    rng = random.Random(side)
    for rows, cols in shapes(4)[:40]:
        g, b = rng.choice([1, 2, 8]), rng.choice([1, 2])
        array = np.random.default_rng(rows).standard_normal((rows, cols)).astype(np.float16)
        order = MxEntry(g, b, side)
        raw = order.pack(array)
        assert len(raw) == order.nbytes((rows, cols)) == up(rows, 4 * g) * up(cols, 32 * b)
        chunks = -(-cols // (32 * b))
        for _ in range(5):
            r, c = rng.randrange(rows), rng.randrange(cols)
            e = entry_offset((rows, cols), g, b, r, c) // 256
            tile, chunk = r // (4 * g), c // (32 * b)
            assert (
                order.entry_index(tile, chunk, chunks) <= e < order.entry_index(tile, chunk, chunks) + g * b
            )
            lanes = np.zeros((4, 32), np.float16)
            part = array[r - r % 4 : r - r % 4 + 4, c - c % 32 : c - c % 32 + 32]
            lanes[: part.shape[0], : part.shape[1]] = part
            assert raw[128 * e : 128 * e + 128] == MxEntry(1, 1, side).pack(lanes)


def test_mxfp7_is_never_read_back() -> None:
    with pytest.raises(CompileError, match="mx:2x1:a: MXFP7 has no way back"):
        MxEntry(2, 1, "a").unpack(bytes(256), (8, 32))


@pytest.mark.parametrize("key", ["", "flat ", "entry:0x", "mx:1x1:c", "tile:1x1", "rows:1x1:1x1:4"])
def test_unknown_layout(key: str) -> None:
    with pytest.raises(CompileError, match="known forms"):
        from_key(key)
