# SPDX-License-Identifier: Apache-2.0
"""Byte orders with a pitch: drained rows, and batches of blocks (docs/spec/compiler.md 6)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv, up
from kohakutpu.schedule.layout import ByteOrder

LAYER = "L2"

F16 = npt.NDArray[np.float16]
Shape = tuple[int, int]

_WORD = 32
_WORD_ELEMENTS = 16
_BATCH_ALIGN = 2048


@dataclass(frozen=True)
class Rows:
    """Rows of a result as rows, ``pitch`` words apart, written by gi x gj tiles of gm x gn sub-tiles.

    Raises:
        CompileError: gn that is no multiple of 4, or a pitch below the padded row.
    """

    gi: int
    gj: int
    gm: int
    gn: int
    pitch: int

    def __post_init__(self) -> None:
        if self.gn % 4:
            raise CompileError(f"{self.key}: gn = {self.gn}; a row-major drain takes a multiple of 4")
        least = self.gj * self.gn * 4 // _WORD_ELEMENTS
        if self.pitch < least:
            raise CompileError(
                f"{self.key}: pitch {self.pitch} words, a padded row has {least}; "
                "the last column tile would write into the next row"
            )

    @classmethod
    def of(cls, shape: Shape, gm: int, gn: int, pitch: int | None = None) -> Rows:
        """For a [M][N] result; ``pitch`` defaults to the padded row."""
        gi, gj = cdiv(shape[0], 4 * gm), cdiv(shape[1], 4 * gn)
        return cls(gi, gj, gm, gn, gj * gn * 4 // _WORD_ELEMENTS if pitch is None else pitch)

    @property
    def key(self) -> str:
        return f"rows:{self.gi}x{self.gj}:{self.gm}x{self.gn}:{self.pitch}"

    def nbytes(self, shape: Shape) -> int:
        """Bytes of all padded rows.

        Raises:
            CompileError: a shape that does not have this many tiles.
        """
        if (cdiv(shape[0], 4 * self.gm), cdiv(shape[1], 4 * self.gn)) != (self.gi, self.gj):
            raise CompileError(f"{self.key}: shape {shape} needs a grid of another size")
        return _WORD * self.pitch * self.gi * 4 * self.gm

    def pack(self, array: F16) -> bytes:
        """Bytes of a [M][N] array; padding is zero."""
        rows = self.nbytes((array.shape[0], array.shape[1])) // (_WORD * self.pitch)
        full = np.zeros((rows, self.pitch * _WORD_ELEMENTS), dtype="<f2")
        full[: array.shape[0], : array.shape[1]] = array
        return full.tobytes()

    def unpack(self, raw: bytes, shape: Shape) -> F16:
        """The [M][N] array of a buffer.

        Raises:
            CompileError: a buffer of another size.
        """
        if len(raw) != self.nbytes(shape):
            raise CompileError(f"{self.key}: {len(raw)} bytes, a buffer of shape {shape} has {self.nbytes(shape)}")
        full = np.frombuffer(raw, dtype="<f2").reshape(-1, self.pitch * _WORD_ELEMENTS)
        return full[: shape[0], : shape[1]].astype(np.float16)


@dataclass(frozen=True)
class Batched:
    """``count`` blocks of shape ``block``, each in order ``inner``.

    The distance of two blocks is the larger of the block and ``pad`` bytes, rounded up to the arena granule, so
    that every block starts where a buffer could. ``pad`` is the largest block over every order the buffer ever
    holds.
    """

    inner: ByteOrder
    count: int
    block: Shape
    pad: int = 0

    @property
    def key(self) -> str:
        return f"batch{self.count}:{self.inner.key}"

    @property
    def stride(self) -> int:
        """Bytes from one block to the next."""
        return up(max(self.inner.nbytes(self.block), self.pad), _BATCH_ALIGN)

    def nbytes(self, shape: tuple[int, int, int]) -> int:
        """Bytes of the batch.

        Raises:
            CompileError: another number or shape of blocks.
        """
        if shape != (self.count, *self.block):
            raise CompileError(f"{self.key}: shape {shape}, the batch is {self.count} blocks of {self.block}")
        return self.count * self.stride

    def pack(self, array: F16) -> bytes:
        """Bytes of a [count][rows][columns] array; the gaps are zero."""
        self.nbytes((array.shape[0], array.shape[1], array.shape[2]))
        return b"".join(self.inner.pack(one).ljust(self.stride, b"\0") for one in array)

    def unpack(self, raw: bytes, shape: tuple[int, int, int]) -> F16:
        """The [count][rows][columns] array of a buffer.

        Raises:
            CompileError: a buffer of another size.
        """
        if len(raw) != self.nbytes(shape):
            raise CompileError(f"{self.key}: {len(raw)} bytes, {self.nbytes(shape)} are expected")
        size = self.inner.nbytes(self.block)
        starts = range(0, len(raw), self.stride)
        return np.stack([self.inner.unpack(raw[at : at + size], self.block) for at in starts])
