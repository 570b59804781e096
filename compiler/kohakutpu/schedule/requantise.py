# SPDX-License-Identifier: Apache-2.0
"""Values computed on the machine that a product reads: FP16 rows, then MXFP7 entries (docs/spec/compiler.md 6.1, 7.1).

The value keeps its FP16 buffer; its MXFP7 form is a second one of half the size. A value in tiles takes a scratch of
rows between.
"""

from __future__ import annotations

from dataclasses import dataclass

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.moves import Move
from kohakutpu.schedule.conversion import Placed, conversion
from kohakutpu.schedule.layout import ByteOrder, Entry, Flat, MxEntry, Shape, Tile, from_key
from kohakutpu.walks import WORD_BYTES, Dim, Walk

LAYER = "L2"


@dataclass(frozen=True)
class Requantise:
    """One conversion before band ``band``; names of buffers, ``rows`` empty if the value stands in rows already."""

    band: int
    value: str
    rows: str
    operand: str

    def text(self) -> str:
        """One printed line."""
        through = f" through {self.rows}" if self.rows else ""
        return f"quantise before band {self.band}: {self.value} -> {self.operand}{through}"


@dataclass(frozen=True)
class Region:
    """Address, byte order and shape of a placed buffer, as far as a conversion needs them."""

    address: int
    layout: str
    shape: Shape


def scratch_shape(
    order: ByteOrder, shape: Shape, target: MxEntry, machine: MachineSpec, *, clean: bool
) -> Shape | None:
    """Rows and columns of the scratch a value in ``order`` needs, None if it stands in rows already.

    Args:
        clean: the padding of the value's tiles is zero.

    Raises:
        CompileError: no move gives the operand; says why and what to do.
    """
    padded = Entry(target.g, target.b).padded(shape)
    if isinstance(order, Flat):
        if padded != shape:
            raise CompileError(f"its rows {shape} are not padded to {padded}; use extents that need no padding")
        return None
    if not isinstance(order, Tile):
        raise CompileError(f"it is in {order.key}, which no move of the memory mover rewrites as {target.key}")
    if "xform_granule" not in machine.features:
        raise CompileError(
            f"reading it back needs the granule transpose of the memory mover, which machine {machine.name} does not "
            "have (feature xform_granule)"
        )
    if order.gn % 4:
        raise CompileError(f"it is in {order.key}; a tiling whose gn is a multiple of 4 can be read back")
    if padded[1] != shape[1] and not clean:
        raise CompileError(
            f"its {shape[1]} columns end inside an entry of {32 * target.b} and what stands behind them is not zero; "
            f"use a multiple of {32 * target.b} columns"
        )
    rows, cols = _tiles(order)
    return max(rows, padded[0]), max(cols, padded[1])


def _tiles(order: Tile) -> Shape:
    return 4 * order.gi * order.gm, 4 * order.gj * order.gn


def moves(value: Region, rows: Region | None, operand: Region, machine: MachineSpec) -> tuple[Move, ...]:
    """The moves of one conversion between placed buffers."""
    order, target = from_key(value.layout), from_key(operand.layout)
    if not isinstance(target, MxEntry) or not isinstance(order, Tile | Flat):
        raise CompileError(f"{value.layout} -> {operand.layout}: this is no requantising")
    padded = Entry(target.g, target.b).padded(operand.shape)
    out: list[Move] = []
    source = Placed(order, value.address, padded)
    if isinstance(order, Tile):
        assert rows is not None, "a value in tiles has a scratch of rows"
        tiles, pitch = _tiles(order), rows.shape[1]
        if tiles != rows.shape:
            every = Walk(rows.address, (Dim(rows.shape[0], 2 * pitch), Dim(2 * pitch // WORD_BYTES, WORD_BYTES)))
            out.append(Move("fill", None, every))
        onto = Placed(Flat(), rows.address, tiles, pitch)
        out += conversion(Placed(order, value.address, tiles), onto, machine)
        source = Placed(Flat(), rows.address, padded, pitch)
    return (*out, *conversion(source, Placed(target, operand.address, padded), machine))
