# SPDX-License-Identifier: Apache-2.0
"""Byte orders of images for convolutions as contractions (docs/spec/compiler.md 6).

A ``ConvEntry`` buffer holds the pixels of an image [H][W][C] by channel block and residue, with a halo, so that
the operand of every filter tap is the same buffer read from another position. ``MxConv`` is its MXFP7 form: up
to four copies, shifted by one position each, because an entry interleaves its four lanes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv, up
from kohakutpu.model.numerics import Layout as Side
from kohakutpu.model.numerics import NumericEvents, quantise_entries

LAYER = "L2"

F16 = npt.NDArray[np.float16]
Image = tuple[int, int, int]
"""Height, width, channels."""

_POSITION = 64
_ENTRY = 256
_MX_ENTRY = 128
_BLOCK = 32
_TAPS = 3


@dataclass(frozen=True)
class ConvEntry:
    """FP16 image with halo ``pad``, swept by tiles of ``gm`` lane groups, strided by ``step``.

    Raises:
        CompileError: pad below 0, gm or step below 1.
    """

    pad: int
    gm: int
    step: int = 1

    def __post_init__(self) -> None:
        if self.pad < 0 or self.gm < 1 or self.step < 1:
            raise CompileError(
                f"conv order with pad {self.pad}, gm {self.gm}, step {self.step}; pad is at least 0, the others 1"
            )

    @property
    def key(self) -> str:
        return f"conv:{self.pad}:{self.gm}" + (f":s{self.step}" if self.step > 1 else "")

    def extents(self, shape: Image) -> tuple[int, int, int]:
        """(Hs, Ws, wp): rows and columns of one residue plane, and its pitch with the halo."""
        h, w, _ = shape
        hs, ws = cdiv(h, self.step), cdiv(w, self.step)
        return hs, ws, ws + 2 * self.pad

    def sub(self, shape: Image) -> int:
        """Positions of one residue plane."""
        hs, _, wp = self.extents(shape)
        return up((hs + 2 * self.pad) * wp, 4)

    def plane(self, shape: Image) -> int:
        """Positions of one channel block."""
        return self.step * self.step * self.sub(shape)

    def tap(self, shape: Image, dy: int, dx: int) -> int:
        """Position offset of filter tap (dy, dx), 0..2 each.

        Raises:
            CompileError: a tap outside the 3x3 filter.
        """
        if not (0 <= dy < _TAPS and 0 <= dx < _TAPS):
            raise CompileError(f"{self.key}: tap ({dy}, {dx}) is outside the 3x3 filter")
        _, _, wp = self.extents(shape)
        s = self.step
        qy, ry = divmod(dy - self.pad, s)
        qx, rx = divmod(dx - self.pad, s)
        return (ry * s + rx) * self.sub(shape) + (qy + self.pad) * wp + (qx + self.pad)

    def swept(self, shape: Image) -> int:
        """Positions a sweep over the result covers."""
        hs, ws, wp = self.extents(shape)
        return up((hs - 1) * wp + ws, 4 * self.gm)

    def tail(self, shape: Image) -> int:
        """Entries of zeros behind the last channel block, for the taps of the last tile."""
        return max(0, cdiv(self.swept(shape) + self.tap(shape, 2, 2) - self.plane(shape), 4))

    def positions(self, shape: Image) -> int:
        """Positions of the body and the tail, without the guard entry."""
        return shape[2] // _BLOCK * self.plane(shape) + 4 * self.tail(shape)

    def body_bytes(self, shape: Image) -> int:
        """Bytes without tail and guard; what a first member of a channel concatenation takes."""
        self._check(shape)
        return _POSITION * (shape[2] // _BLOCK) * self.plane(shape)

    def nbytes(self, shape: Image) -> int:
        """Bytes with tail and guard entry."""
        self._check(shape)
        return _POSITION * self.positions(shape) + _ENTRY

    def _check(self, shape: Image) -> None:
        if shape[2] % _BLOCK or min(shape) < 1:
            raise CompileError(
                f"{self.key}: image {shape} has {shape[2]} channels; they come in blocks of {_BLOCK}, pad with zeros"
            )

    def position(self, shape: Image) -> npt.NDArray[np.int64]:
        """int64 (H, W): position of each pixel within its channel block."""
        _, _, wp = self.extents(shape)
        s = self.step
        y, x = np.arange(shape[0])[:, None], np.arange(shape[1])[None, :]
        residue = (y % s * s + x % s) * self.sub(shape)
        place: npt.NDArray[np.int64] = (residue + (y // s + self.pad) * wp + (x // s + self.pad)).astype(np.int64)
        return place

    def lanes(self, array: F16) -> npt.NDArray[np.uint16]:
        """uint16 (positions + 4, 32): every position in address order, guard included."""
        shape = (array.shape[0], array.shape[1], array.shape[2])
        self._check(shape)
        out = np.zeros((self.nbytes(shape) // _POSITION, _BLOCK), dtype="<u2")
        where, plane = self.position(shape), self.plane(shape)
        bits = np.ascontiguousarray(array, dtype="<f2").view("<u2")
        for block in range(shape[2] // _BLOCK):
            out[block * plane + where] = bits[:, :, block * _BLOCK : (block + 1) * _BLOCK]
        return out

    def pack(self, array: F16) -> bytes:
        """Bytes of an image [H][W][C]."""
        return self.lanes(array).tobytes()

    def unpack(self, raw: bytes, shape: Image) -> F16:
        """The image [H][W][C] of a buffer.

        Raises:
            CompileError: a buffer of another size.
        """
        if len(raw) != self.nbytes(shape):
            raise CompileError(f"{self.key}: {len(raw)} bytes, a buffer of shape {shape} has {self.nbytes(shape)}")
        lanes = np.frombuffer(raw, dtype="<u2").reshape(-1, _BLOCK)
        where, plane = self.position(shape), self.plane(shape)
        blocks = [lanes[block * plane + where] for block in range(shape[2] // _BLOCK)]
        return np.ascontiguousarray(np.concatenate(blocks, axis=2)).view("<f2").astype(np.float16)

    def result_rows(self, shape: Image) -> npt.NDArray[np.int64]:
        """int64 (Hs, Ws): row of a sweep's result that holds output pixel (y, x)."""
        hs, ws, wp = self.extents(shape)
        rows: npt.NDArray[np.int64] = (np.arange(hs)[:, None] * wp + np.arange(ws)[None, :]).astype(np.int64)
        return rows


@dataclass(frozen=True)
class MxConv:
    """MXFP7 form of a ``ConvEntry`` buffer: ``phases`` copies, copy p from position p on, A packing.

    Raises:
        CompileError: not 1..4 phases.
    """

    order: ConvEntry
    phases: int

    def __post_init__(self) -> None:
        if not 1 <= self.phases <= 4:
            raise CompileError(f"{self.order.key}: {self.phases} phases; an entry has four lanes, so 1..4")

    @classmethod
    def of(cls, order: ConvEntry, shape: Image, taps: list[tuple[int, int]]) -> MxConv:
        """With the phases that ``taps`` of an image need."""
        return cls(order, 1 + max(order.tap(shape, dy, dx) % 4 for dy, dx in taps))

    @property
    def key(self) -> str:
        return f"mxconv:<{self.order.key}>:{self.phases}"

    def entries(self, shape: Image) -> int:
        """Entries of one phase."""
        return self.order.positions(shape) // 4

    def nbytes(self, shape: Image) -> int:
        return _MX_ENTRY * self.phases * self.entries(shape)

    def pack(self, array: F16, events: NumericEvents | None = None) -> bytes:
        """Quantise an image [H][W][C]: entry e of phase p holds positions 4e+p .. 4e+p+3."""
        shape = (array.shape[0], array.shape[1], array.shape[2])
        lanes = self.order.lanes(array)
        count = self.entries(shape)
        parts = []
        for phase in range(self.phases):
            window = np.ascontiguousarray(lanes[phase : phase + 4 * count])
            parts.append(quantise_entries(window.view(np.uint8).reshape(-1, _ENTRY), Side.A, events).tobytes())
        return b"".join(parts)

    def fill_entry(self, shape: Image, tile: int, block: int, tap: int) -> int:
        """First entry of a tapped fill: ``tile`` of the sweep, channel ``block``, position offset ``tap``.

        Raises:
            CompileError: a tap whose phase was not built.
        """
        if tap % 4 >= self.phases:
            raise CompileError(f"{self.key}: tap {tap} reads phase {tap % 4}; {self.phases} phases were built")
        start = block * self.order.plane(shape) // 4 + tile * self.order.gm + tap // 4
        return tap % 4 * self.entries(shape) + start
