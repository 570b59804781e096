# SPDX-License-Identifier: Apache-2.0
"""Byte orders of a buffer (docs/spec/compiler.md 6).

A layout is ``key``, ``nbytes(shape)``, ``pack(array) -> bytes``, ``unpack(bytes, shape)``.
Equal keys mean interchangeable bytes. Arrays are float16, two-dimensional.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv, up
from kohakutpu.model.numerics import Layout as Side
from kohakutpu.model.numerics import NumericEvents, quantise_entries

LAYER = "L2"

F16 = npt.NDArray[np.float16]
Shape = tuple[int, int]

_ENTRY = 256
_MX_ENTRY = 128


def _exact(order: ByteOrder, raw: bytes, shape: Shape) -> bytes:
    """``raw`` if it has the size of the buffer.

    Raises:
        CompileError: naming layout, size and expected size.
    """
    if len(raw) != order.nbytes(shape):
        raise CompileError(
            f"{order.key}: {len(raw)} bytes, a buffer of shape {shape} has {order.nbytes(shape)}"
        )
    return raw


class ByteOrder(Protocol):
    """What a schedule needs of a layout."""

    @property
    def key(self) -> str: ...

    def nbytes(self, shape: Shape) -> int: ...

    def pack(self, array: F16) -> bytes: ...

    def unpack(self, raw: bytes, shape: Shape) -> F16: ...


@dataclass(frozen=True)
class Flat:
    """Row-major, no padding."""

    @property
    def key(self) -> str:
        return "flat"

    def nbytes(self, shape: Shape) -> int:
        return 2 * shape[0] * shape[1]

    def pack(self, array: F16) -> bytes:
        return np.ascontiguousarray(array, dtype="<f2").tobytes()

    def unpack(self, raw: bytes, shape: Shape) -> F16:
        return np.frombuffer(_exact(self, raw, shape), dtype="<f2").reshape(shape).astype(np.float16)


@dataclass(frozen=True)
class Entry:
    """FP16 source entries: rows in groups of 4G, K in chunks of 32B."""

    g: int
    b: int

    @property
    def key(self) -> str:
        return f"entry:{self.g}x{self.b}"

    def padded(self, shape: Shape) -> Shape:
        """Extents with padding: rows to 4G, columns to 32B."""
        return up(shape[0], 4 * self.g), up(shape[1], 32 * self.b)

    def nbytes(self, shape: Shape) -> int:
        rows, cols = self.padded(shape)
        return 2 * rows * cols

    def entries(self, array: F16) -> npt.NDArray[np.uint8]:
        """uint8 (E, 256): the entries of ``array`` in order, padding zero."""
        rows, cols = self.padded((array.shape[0], array.shape[1]))
        full = np.zeros((rows, cols), dtype="<f2")
        full[: array.shape[0], : array.shape[1]] = array
        split = full.reshape(rows // (4 * self.g), self.g, 4, cols // (32 * self.b), self.b, 32)
        ordered = np.ascontiguousarray(split.transpose(0, 3, 1, 4, 2, 5))
        return ordered.view(np.uint8).reshape(-1, _ENTRY)

    def pack(self, array: F16) -> bytes:
        return self.entries(array).tobytes()

    def unpack(self, raw: bytes, shape: Shape) -> F16:
        rows, cols = self.padded(shape)
        split = np.frombuffer(_exact(self, raw, shape), dtype="<f2").reshape(
            rows // (4 * self.g), cols // (32 * self.b), self.g, self.b, 4, 32
        )
        full = split.transpose(0, 2, 4, 1, 3, 5).reshape(rows, cols)
        return full[: shape[0], : shape[1]].astype(np.float16)


@dataclass(frozen=True)
class MxEntry:
    """Entries as the quantiser writes them, 128 bytes each; ``side`` is "a" or "b"."""

    g: int
    b: int
    side: str

    @property
    def key(self) -> str:
        return f"mx:{self.g}x{self.b}:{self.side}"

    def nbytes(self, shape: Shape) -> int:
        return Entry(self.g, self.b).nbytes(shape) // 2

    def pack(self, array: F16, events: NumericEvents | None = None) -> bytes:
        """Quantise and pack ``array`` [rows][K]."""
        side = Side.A if self.side == "a" else Side.B
        return quantise_entries(Entry(self.g, self.b).entries(array), side, events).tobytes()

    def unpack(self, raw: bytes, shape: Shape) -> F16:
        """Refused: MXFP7 is never read back by a kernel.

        Raises:
            CompileError: always.
        """
        raise CompileError(
            f"{self.key}: MXFP7 has no way back to FP16; keep the FP16 buffer of shape {shape}"
        )

    def entry_index(self, tile: int, chunk: int, chunks: int) -> int:
        """Index of the first entry of (row tile, K chunk) in a buffer of ``chunks`` chunks."""
        return (tile * chunks + chunk) * self.g * self.b


@dataclass(frozen=True)
class Tile:
    """What a drain writes: gi x gj tiles of gm x gn sub-tiles, row-major 4x4 each."""

    gi: int
    gj: int
    gm: int
    gn: int

    @property
    def key(self) -> str:
        return f"tile:{self.gi}x{self.gj}:{self.gm}x{self.gn}"

    @classmethod
    def of(cls, shape: Shape, gm: int, gn: int) -> Tile:
        """The tile order of a [M][N] result computed with gm x gn sub-tiles an instance."""
        return cls(cdiv(shape[0], 4 * gm), cdiv(shape[1], 4 * gn), gm, gn)

    def nbytes(self, shape: Shape) -> int:
        """Bytes of the whole grid.

        Raises:
            CompileError: a shape that does not have this many tiles.
        """
        if Tile.of(shape, self.gm, self.gn) != self:
            raise CompileError(f"{self.key}: shape {shape} needs a grid of another size")
        return self.gi * self.gj * self.gm * self.gn * 32

    def pack(self, array: F16) -> bytes:
        self.nbytes((array.shape[0], array.shape[1]))
        full = np.zeros((self.gi * self.gm * 4, self.gj * self.gn * 4), dtype="<f2")
        full[: array.shape[0], : array.shape[1]] = array
        split = full.reshape(self.gi, self.gm, 4, self.gj, self.gn, 4)
        return np.ascontiguousarray(split.transpose(0, 3, 1, 4, 2, 5)).tobytes()

    def unpack(self, raw: bytes, shape: Shape) -> F16:
        split = np.frombuffer(_exact(self, raw, shape), dtype="<f2").reshape(
            self.gi, self.gj, self.gm, self.gn, 4, 4
        )
        full = split.transpose(0, 2, 4, 1, 3, 5).reshape(self.gi * self.gm * 4, self.gj * self.gn * 4)
        return full[: shape[0], : shape[1]].astype(np.float16)

    def word_index(self, i: int, j: int) -> int:
        """First word of tile (i, j)."""
        return (i * self.gj + j) * self.gm * self.gn

    def locate(self, word: int) -> tuple[int, int]:
        """(row, column) of element (0, 0) of the sub-tile in ``word``; for diagnosis."""
        tile, sub = divmod(word, self.gm * self.gn)
        i, j = divmod(tile, self.gj)
        g, h = divmod(sub, self.gn)
        return 4 * (i * self.gm + g), 4 * (j * self.gn + h)


@dataclass(frozen=True)
class ChannelBias:
    """One value a column, as an epilogue reads it: word c holds columns 4c..4c+3 in each of its four rows."""

    gn: int

    @property
    def key(self) -> str:
        return f"bias:{self.gn}"

    def nbytes(self, shape: Shape) -> int:
        """Bytes of all column groups.

        Raises:
            CompileError: more than one row.
        """
        if shape[0] != 1:
            raise CompileError(f"{self.key}: shape {shape}; one value a column is a single row")
        return 8 * up(shape[1], 4 * self.gn)

    def pack(self, array: F16) -> bytes:
        columns = self.nbytes((array.shape[0], array.shape[1])) // 8
        full = np.zeros((columns // 4, 4), dtype="<f2")
        full.reshape(-1)[: array.shape[1]] = array[0]
        return np.repeat(full[:, None, :], 4, axis=1).tobytes()

    def unpack(self, raw: bytes, shape: Shape) -> F16:
        words = np.frombuffer(_exact(self, raw, shape), dtype="<f2").reshape(-1, 4, 4)
        return words[:, 0, :].reshape(1, -1)[:, : shape[1]].astype(np.float16)


_FORMS: list[tuple[str, type]] = [
    (r"flat", Flat),
    (r"entry:(\d+)x(\d+)", Entry),
    (r"mx:(\d+)x(\d+):([ab])", MxEntry),
    (r"tile:(\d+)x(\d+):(\d+)x(\d+)", Tile),
    (r"bias:(\d+)", ChannelBias),
]


def from_key(key: str) -> ByteOrder:
    """The layout of a key, as stored in artifacts.

    Raises:
        CompileError: an unknown key.
    """
    for pattern, form in _FORMS:
        match = re.fullmatch(pattern, key)
        if match:
            made: ByteOrder = form(*(int(v) if v.isdigit() else v for v in match.groups()))
            return made
    raise CompileError(
        f"layout key {key!r} is unknown; known forms: flat, entry:GxB, mx:GxB:a|b, tile:IxJ:MxN, "
        "bias:N"
    )
