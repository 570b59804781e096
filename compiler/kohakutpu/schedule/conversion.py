# SPDX-License-Identifier: Apache-2.0
"""Conversions between byte orders as moves of the memory mover (docs/spec/compiler.md 6.1).

``conversion(source, target, ...)`` gives the moves of one conversion, or refuses it naming both keys. A word
permutation walks both buffers over the matrix row by row, each in its own six dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv, up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.moves import Move
from kohakutpu.schedule.layout import Entry, Flat, MxEntry, Shape, Tile
from kohakutpu.schedule.layout_conv import ConvEntry, Image, MxConv
from kohakutpu.walks import COUNT_MAX, WORD_BYTES, Dim, Walk, contiguous

LAYER = "L2"

Order = Flat | Entry | MxEntry | Tile
_LANES = 16
"""FP16 elements of a word."""
_MX_BYTES = 128


@dataclass(frozen=True)
class Placed:
    """A buffer to convert from or to: its byte order, its address and its logical shape.

    ``pitch`` is the distance of two rows of a Flat buffer in elements, 0 for the number of columns.
    """

    order: Order
    address: int
    shape: Shape
    pitch: int = 0

    @property
    def row_bytes(self) -> int:
        """Bytes from one row of a Flat buffer to the next."""
        return 2 * (self.pitch or self.shape[1])


def conversion(source: Placed, target: Placed, machine: MachineSpec) -> tuple[Move, ...]:
    """The moves that rewrite ``source`` in the order of ``target``; none if the bytes already agree.

    A tile becomes rows through the granule transpose; its rows and columns of padding come along, so the target's
    shape may be the padded one.

    Raises:
        CompileError: a conversion no move makes; names both orders, the reason and the way out.
    """
    a, b = source.order, target.order
    if a == b and source.shape == target.shape and source.row_bytes == target.row_bytes:
        return ()
    if isinstance(a, MxEntry):
        raise _refused(a, b, "MXFP7 is never read back; keep the FP16 buffer")
    if isinstance(b, Tile):
        raise _refused(a, b, "only a drain writes tiles")
    if isinstance(a, Tile):
        if not isinstance(b, Flat):
            raise _refused(a, b, "a tile becomes rows first; convert to flat, then from there")
        return (_tile_to_flat(source, a, target, machine),)
    if isinstance(b, MxEntry):
        return (_quantise(source, a, target, b),)
    return (_permute(source, a, target, b),)


def conv_quantise(order: ConvEntry, at: int, target: MxConv, to: int, shape: Image) -> tuple[Move, ...]:
    """The quantised phases at ``to`` of an image buffer at ``at``: one move, two when the count has no factors.

    Raises:
        CompileError: a target of another image order.
    """
    if target.order != order:
        raise CompileError(f"{order.key} -> {target.key}: the phases belong to another order of the image")
    count = target.entries(shape)
    moves = []
    for first, n in _parts(count):
        words = contiguous(at + 256 * first, 8 * n)
        source = Walk(words.base, (Dim(target.phases, 64), *words.dims))
        entries = contiguous(to + _MX_BYTES * first, n, _MX_BYTES)
        place = Walk(entries.base, (Dim(target.phases, _MX_BYTES * count), *entries.dims))
        moves.append(Move("quantise", source, place, side="a"))
    return tuple(moves)


def _parts(entries: int) -> list[tuple[int, int]]:
    """(first, count) of the moves whose 8 * count words factor into counts the mover has."""
    try:
        contiguous(0, 8 * entries)
        contiguous(0, entries)
    except ValueError:
        body = entries // (COUNT_MAX // 8) * (COUNT_MAX // 8)
        return [(0, body), (body, entries - body)]
    return [(0, entries)]


def _refused(a: Order, b: Order, reason: str) -> CompileError:
    return CompileError(f"{a.key} -> {b.key}: {reason}")


def _whole_words(order: Order, shape: Shape) -> None:
    if shape[1] % _LANES:
        raise CompileError(
            f"{order.key}: rows of {shape[1]} elements do not end on a word; allocate the buffer with rows of "
            f"{up(shape[1], _LANES)}"
        )


def _quantise(source: Placed, a: Flat | Entry, target: Placed, b: MxEntry) -> Move:
    """One XFORM move; its walk has no bounded axis, so the padding has to be there."""
    entry = Entry(b.g, b.b)
    if isinstance(a, Entry):
        if a != entry:
            raise _refused(a, b, f"entries are quantised where they stand; copy to {entry.key} first")
        count = entry.nbytes(source.shape) // 256
        places = contiguous(target.address, count, _MX_BYTES)
        return Move("quantise", contiguous(source.address, 8 * count), places, b.side)
    rows, cols = source.shape
    if entry.padded(source.shape) != source.shape:
        raise _refused(
            a, b, f"{rows}x{cols} is not padded to {entry.padded(source.shape)}; allocate it padded and zeroed"
        )
    pitch = source.row_bytes
    dims = (
        Dim(rows // (4 * b.g), 4 * b.g * pitch),
        Dim(cols // (32 * b.b), 64 * b.b),
        Dim(b.g, 4 * pitch),
        Dim(b.b, 64),
        Dim(4, pitch),
        Dim(2, WORD_BYTES),
    )
    entries = contiguous(target.address, rows * cols // 128, _MX_BYTES)
    return Move("quantise", Walk(source.address, dims), entries, b.side)


def _unit(order: Flat | Entry) -> Shape:
    """Rows and elements that a walk over ``order`` takes as a whole."""
    return (4 * order.g, 32 * order.b) if isinstance(order, Entry) else (1, _LANES)


def _rows(order: Flat | Entry, placed: Placed, extents: Shape, bound: Shape) -> Walk:
    """Row by row, word by word over ``extents`` (whole units) of a buffer, valid inside ``bound``."""
    rows, cols = extents
    windows = ((0, bound[0]), (0, bound[1] // _LANES))
    if isinstance(order, Flat):
        pitch = placed.row_bytes
        return Walk(placed.address, (Dim(rows, pitch, 1, 1), Dim(cols // _LANES, WORD_BYTES, 2, 1)), windows)
    g, b = order.g, order.b
    dims = (
        Dim(rows // (4 * g), 8 * g * order.padded(placed.shape)[1], 1, 4 * g),
        Dim(g, 256 * b, 1, 4),
        Dim(4, 64, 1, 1),
        Dim(cols // (32 * b), 256 * g * b, 2, 2 * b),
        Dim(b, 256, 2, 2),
        Dim(2, WORD_BYTES, 2, 1),
    )
    return Walk(placed.address, dims, windows)


def _permute(source: Placed, a: Flat | Entry, target: Placed, b: Flat | Entry) -> Move:
    """One COPY in row order; what the source does not hold is written as zero.

    Both walks cover whole units of both orders and are bounded to what their buffer holds.
    """
    if source.shape != target.shape:
        raise _refused(a, b, f"shapes {source.shape} and {target.shape} differ")
    for order in (a, b):
        _whole_words(order, source.shape)
    have = b.padded(target.shape) if isinstance(b, Entry) else target.shape
    (ra, ca), (rb, cb) = _unit(a), _unit(b)
    extents = up(have[0], lcm(ra, rb)), up(have[1], lcm(ca, cb))
    return Move("copy", _rows(a, source, extents, source.shape), _rows(b, target, extents, have))


def _tile_to_flat(source: Placed, a: Tile, target: Placed, machine: MachineSpec) -> Move:
    """Four sub-tiles side by side become four rows of 16 elements."""
    if "xform_granule" not in machine.features:
        raise _refused(
            a, target.order, f"machine {machine.name} lacks xform_granule; drain rows or relayout on a vector core"
        )
    if a.gn % 4:
        raise _refused(a, target.order, f"gn = {a.gn}; rows of whole words need a multiple of 4 sub-tiles")
    rows, cols = 4 * a.gi * a.gm, 4 * a.gj * a.gn
    if target.shape != (rows, cols):
        raise _refused(a, target.order, f"the target holds {target.shape}; allocate it as {(rows, cols)}")
    pitch = target.row_bytes
    dims = (
        Dim(a.gi, 4 * a.gm * pitch),
        Dim(a.gj, 8 * a.gn),
        Dim(a.gm, 4 * pitch),
        Dim(a.gn // 4, WORD_BYTES),
        Dim(4, pitch),
    )
    words = contiguous(source.address, cdiv(rows * cols, _LANES))
    return Move("granule", words, Walk(target.address, dims))
