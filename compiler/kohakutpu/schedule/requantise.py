# SPDX-License-Identifier: Apache-2.0
"""Values made on the machine in another order: FP16 rows, MXFP7 entries (docs/spec/compiler.md 6.1, 7.1).

The value keeps its FP16 buffer; its rows, and its MXFP7 form of half the size, are further ones. What the target
pads and the value does not hold goes through a scratch of rows that is zero there.
"""

from __future__ import annotations

from dataclasses import dataclass

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.moves import Move
from kohakutpu.schedule.conversion import Placed, conversion
from kohakutpu.schedule.layout import ByteOrder, Entry, Flat, MxEntry, Shape, Tile, from_key
from kohakutpu.views import Strided, Window
from kohakutpu.walks import WORD_BYTES, Dim, Walk, contiguous

LAYER = "L2"

Moves = tuple[Move, ...]
_LANES = 16
"""FP16 elements of a word."""


@dataclass(frozen=True)
class Requantise:
    """One conversion before band ``band``; names of buffers, ``rows`` empty if no scratch of rows is needed."""

    band: int
    value: str
    rows: str
    operand: str

    def text(self) -> str:
        """One printed line."""
        through = f" through {self.rows}" if self.rows else ""
        return f"quantise before band {self.band}: {self.value} -> {self.operand}{through}"

    def steps(self) -> list[tuple[str, str]]:
        """(read, written) of each part, in order."""
        return _through(self.value, self.rows, self.operand)


@dataclass(frozen=True)
class ToRows:
    """A value in tiles becomes rows, or part ``window`` of a buffer of rows, before band ``band``."""

    band: int
    value: str
    rows: str
    target: str
    window: Window | None = None

    def text(self) -> str:
        """One printed line."""
        through = f" through {self.rows}" if self.rows else ""
        part = "" if self.window is None else self.window.text()
        return f"relayout before band {self.band}: {self.value} -> {self.target}{part}{through}"

    def steps(self) -> list[tuple[str, str]]:
        """(read, written) of each part, in order."""
        return _through(self.value, self.rows, self.target)


@dataclass(frozen=True)
class Blank:
    """Zeros behind the columns of a value in tiles, before band ``band``: whole sub-tiles that nothing else reads."""

    band: int
    value: str

    def text(self) -> str:
        """One printed line."""
        return f"zeros before band {self.band}: behind the columns of {self.value}"

    def steps(self) -> list[tuple[str, str]]:
        """The value is read and written."""
        return [(self.value, self.value)]


@dataclass(frozen=True)
class Rearranged:
    """The elements ``read`` gives of the rows ``value`` become the rows ``target``, before band ``band``."""

    band: int
    value: str
    target: str
    read: Strided

    def text(self) -> str:
        """One printed line."""
        return f"move before band {self.band}: {self.value}{self.read.text()} -> {self.target}"

    def steps(self) -> list[tuple[str, str]]:
        """(read, written) of each part, in order."""
        return [(self.value, self.target)]


Conversion = Requantise | ToRows | Blank | Rearranged


def _through(value: str, rows: str, target: str) -> list[tuple[str, str]]:
    """Parts of a conversion, through a scratch of rows if it has one."""
    return [(value, rows), (rows, target)] if rows else [(value, target)]


@dataclass(frozen=True)
class Region:
    """Address, byte order and shape of a placed buffer, as far as a conversion needs them."""

    address: int
    layout: str
    shape: Shape


def scratch_shape(order: ByteOrder, shape: Shape, target: MxEntry, machine: MachineSpec) -> Shape | None:
    """Rows and columns of the scratch a value in ``order`` needs, None if it stands in rows already.

    Args:
        shape: of the value; of rows, with the columns that are stored behind its own.

    Raises:
        CompileError: no move gives the operand; says why and what to do.
    """
    padded = Entry(target.g, target.b).padded(shape)
    if isinstance(order, Flat):
        if padded != shape and shape[1] % _LANES:
            raise CompileError(
                f"its rows {shape} are not padded to {padded} and do not end on a word; use a multiple of {_LANES} "
                "columns"
            )
        return None if padded == shape else padded
    if not isinstance(order, Tile):
        raise CompileError(f"it is in {order.key}, which no move of the memory mover rewrites as {target.key}")
    granules(order, machine)
    rows, cols = tile_extents(order)
    return max(rows, padded[0]), max(cols, padded[1])


def needs_blank(order: Tile, shape: Shape, *, clean: bool) -> bool:
    """True if an operand needs zeros behind the columns of a value in tiles, and only its tiles can take them.

    Columns that end on a word are followed by zeros in the rows made of the tiles.

    Args:
        clean: the padding of the tiles is zero.

    Raises:
        CompileError: columns that end inside a sub-tile.
    """
    if clean or shape[1] % _LANES == 0:
        return False
    if shape[1] % 4:
        raise CompileError(
            f"its {shape[1]} columns end inside a sub-tile and what stands behind them is not zero; use a multiple of "
            f"{_LANES} columns"
        )
    return shape[1] != tile_extents(order)[1]


def blank(value: Region) -> Moves:
    """The move that writes zeros into the sub-tiles behind the columns of a value in tiles."""
    order = from_key(value.layout)
    assert isinstance(order, Tile)
    first = value.shape[1] // 4 - (order.gj - 1) * order.gn
    base = value.address + WORD_BYTES * order.word_index(0, order.gj - 1) + WORD_BYTES * first
    tall = WORD_BYTES * order.gm * order.gn
    dims = (Dim(order.gi, order.gj * tall), Dim(order.gm, WORD_BYTES * order.gn), Dim(order.gn - first, WORD_BYTES))
    return (Move("fill", None, Walk(base, dims)),)


def granules(order: Tile, machine: MachineSpec) -> None:
    """Require that the mover can bring tiles of ``order`` into rows.

    Raises:
        CompileError: a machine without the transpose, or tiles it does not take.
    """
    if "xform_granule" not in machine.features:
        raise CompileError(
            f"reading it back needs the granule transpose of the memory mover, which machine {machine.name} does not "
            "have (feature xform_granule)"
        )
    if order.gn % 4:
        raise CompileError(f"it is in {order.key}; a tiling whose gn is a multiple of 4 can be read back")


def tile_extents(order: Tile) -> Shape:
    """Rows and columns of all tiles, padding included."""
    return 4 * order.gi * order.gm, 4 * order.gj * order.gn


def flat_scratch(order: Tile, shape: Shape) -> Shape | None:
    """Extents of the scratch between tiles and rows of ``shape``, None if the tiles have exactly these columns.

    Raises:
        CompileError: rows that do not end on a word.
    """
    rows, cols = tile_extents(order)
    if cols == shape[1]:
        return None
    if shape[1] % _LANES:
        raise CompileError(f"its rows of {shape[1]} elements do not end on a word; use a multiple of {_LANES} columns")
    return rows, cols


def moves(
    value: Region, rows: Region | None, target: Region, machine: MachineSpec, window: Window | None = None
) -> Moves:
    """The moves of one conversion between placed buffers, into part ``window`` of the target."""
    order, to = from_key(value.layout), from_key(target.layout)
    if isinstance(order, Tile) and isinstance(to, Flat):
        if window is not None:
            return _into_part(value, order, target, window, machine)
        return _into_rows(value, order, rows, target, machine)
    if isinstance(to, MxEntry) and isinstance(order, Tile | Flat):
        return _quantised(value, order, rows, target, to, machine)
    raise CompileError(f"{value.layout} -> {target.layout}: no moves make this conversion")


def _quantised(
    value: Region, order: Tile | Flat, rows: Region | None, operand: Region, target: MxEntry, machine: MachineSpec
) -> Moves:
    padded = Entry(target.g, target.b).padded(operand.shape)
    if rows is None:
        source = Placed(order, value.address, padded, value.shape[1])
        return conversion(source, Placed(target, operand.address, padded), machine)
    pitch = rows.shape[1]
    filled = tile_extents(order) if isinstance(order, Tile) else value.shape
    out: list[Move] = [] if filled == rows.shape else [_zeros(rows, 0)]
    if isinstance(order, Tile):
        onto = Placed(Flat(), rows.address, filled, pitch)
        out += conversion(Placed(order, value.address, filled), onto, machine)
    else:
        out.append(_copy(value.address, filled[1], rows.address, pitch, filled))
    cols = operand.shape[1]
    if cols < min(filled[1], padded[1]) and cols % _LANES == 0:
        out.append(_zeros(rows, cols))
    source = Placed(Flat(), rows.address, padded, pitch)
    return (*out, *conversion(source, Placed(target, operand.address, padded), machine))


def _zeros(rows: Region, first: int) -> Move:
    """Zeros in the columns from ``first`` on."""
    count, cols = rows.shape
    words = Dim((cols - first) * 2 // WORD_BYTES, WORD_BYTES)
    return Move("fill", None, Walk(rows.address + 2 * first, (Dim(count, 2 * cols), words)))


def _into_rows(value: Region, order: Tile, rows: Region | None, target: Region, machine: MachineSpec) -> Moves:
    tiles, at = tile_extents(order), target.address if rows is None else rows.address
    first = conversion(Placed(order, value.address, tiles), Placed(Flat(), at, tiles), machine)
    if rows is None:
        return first
    return (*first, _copy(rows.address, tiles[1], target.address, target.shape[1], target.shape))


def _copy(at: int, pitch: int, to: int, pitch_to: int, shape: Shape) -> Move:
    """Rows of ``shape`` from one pitch in elements to another."""
    rows, words = shape[0], Dim(shape[1] // _LANES, WORD_BYTES)
    return Move("copy", Walk(at, (Dim(rows, 2 * pitch), words)), Walk(to, (Dim(rows, 2 * pitch_to), words)))


def _into_part(value: Region, order: Tile, target: Region, window: Window, machine: MachineSpec) -> Moves:
    """Tiles that divide the window exactly: one move, the blocks outermost."""
    height, pitch = target.shape[0] // window.blocks, target.shape[1]
    block = Tile(order.gi // window.blocks, order.gj, order.gm, order.gn)
    if tile_extents(block) != (window.rows, window.cols):
        raise CompileError(f"{order.key}: tiles do not divide part {window.text()}; use a tiling that does")
    if pitch % _LANES or window.col % _LANES:
        raise CompileError(
            f"part {window.text()} of rows of {pitch} elements does not start and end on words; use multiples of "
            f"{_LANES}"
        )
    at = target.address + 2 * (window.row * pitch + window.col)
    place = Placed(Flat(), at, (window.rows, window.cols), pitch)
    (one,) = conversion(Placed(block, value.address, (window.rows, window.cols)), place, machine)
    dims = one.target.dims if window.blocks == 1 else (Dim(window.blocks, 2 * height * pitch), *one.target.dims)
    words = contiguous(value.address, window.blocks * window.rows * window.cols // _LANES)
    return (Move("granule", words, Walk(at, dims)),)
