# SPDX-License-Identifier: Apache-2.0
"""Buffers a schedule asks for, in which byte order, and the conversions between them (docs/spec/compiler.md 7.1).

A value keeps one FP16 buffer in the order its writer pinned. A reader of another order reads a second buffer, made
once before the first band that needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kohakutpu.errors import CompileError
from kohakutpu.ints import up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.ir import AnyBand, Operand
from kohakutpu.schedule.lanes import LaneOptions
from kohakutpu.schedule.layout import ByteOrder, Flat, MxEntry, Tile
from kohakutpu.schedule.relayout import RelayoutBand, relayout_band
from kohakutpu.schedule.requantise import (
    Blank,
    Conversion,
    Requantise,
    ToRows,
    flat_scratch,
    granules,
    needs_blank,
    scratch_shape,
    tile_extents,
)
from kohakutpu.schedule.tiles import Tiling
from kohakutpu.views import Window

LAYER = "L2"

HOST_ROLES = ("in", "const", "table")
CONVERT = ("auto", "mover", "cores")


@dataclass(frozen=True)
class Options:
    """Choices of a plan that are asked for in several places.

    Args:
        clusters, cores: how many of each are used.
        emit_fuse: hand results out with the last sweep.
        fuse: epilogues on the arriving tile: "auto", "require" or "never".
        convert: what brings tiles into rows: "mover", "cores", or "auto" for the mover if it can.
        lanes: choices of the vector kernels.
    """

    clusters: int
    cores: int
    emit_fuse: bool = True
    fuse: str = "auto"
    convert: str = "auto"
    lanes: LaneOptions = field(default_factory=LaneOptions)


@dataclass(frozen=True)
class Reading:
    """What products read of a value: entries of these orders; ``kept`` if something reads its FP16 form, too."""

    orders: tuple[MxEntry, ...]
    kept: bool


@dataclass
class Need:
    """A buffer still without a place: its value, byte order and size, padding included.

    ``source`` is the operand a copy is filled from; ``converted`` counts the conversions that read or make it.
    """

    value: Operand
    order: ByteOrder
    nbytes: int
    source: str = ""
    converted: int = 0


@dataclass
class Planner:
    """Bands and buffers collected so far; places are given at the end.

    Args:
        tilings: of every product, by the name of its result.
        known: operands by name, for parents that no request names with their full shape.
        rowwise: values every reader of which needs rows, on a machine that drains rows.
        readings: results of passes that products read, on a machine whose cores drain MXFP7.
        undrained: why such a result is not drained as entries.
    """

    machine: MachineSpec
    options: Options
    tilings: dict[str, Tiling] = field(default_factory=dict)
    known: dict[str, Operand] = field(default_factory=dict)
    needs: dict[str, Need] = field(default_factory=dict)
    bands: list[AnyBand] = field(default_factory=list)
    relaxed: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    conversions: list[Conversion] = field(default_factory=list)
    clean: set[str] = field(default_factory=set)
    blank: set[str] = field(default_factory=set)
    swept: set[str] = field(default_factory=set)
    rowwise: set[str] = field(default_factory=set)
    readings: dict[str, Reading] = field(default_factory=dict)
    undrained: dict[str, str] = field(default_factory=dict)

    # ---------------------------------------------------------------- buffers

    def hold(self, value: Operand, order: ByteOrder, nbytes: int = 0) -> None:
        """Ask for a buffer; a second byte order for one name is refused."""
        size = max(nbytes, order.nbytes(value.shape))
        have = self.needs.get(value.name)
        if have is None:
            self.needs[value.name] = Need(value, order, size)
            return
        if have.order.key != order.key:
            raise CompileError(
                f"{value.name} is needed as {have.order.key} and as {order.key}; one buffer holds one byte "
                "order, give the kernel a second copy"
            )
        have.nbytes = max(have.nbytes, size)
        if value.tier and not have.value.tier:
            have.value = replace(have.value, tier=value.tier)

    def store(self, value: Operand, order: ByteOrder, nbytes: int = 0) -> None:
        """Ask for a result's buffer and note that FP16 may saturate."""
        self.hold(value, order, nbytes)
        if value.role != "in":
            self.notes.append(f"{value.name}: FP16, bound unknown, saturates at 65504")

    def entries(self, value: Operand, order: MxEntry) -> None:
        """Ask for a buffer that the drain of a pass fills with the entries of ``value``."""
        self._made(value, order)
        self.notes.append(f"{value.name.partition(':')[0]}: FP16, bound unknown, saturates at 65504")

    def order_of(self, name: str) -> ByteOrder | None:
        """The order a value has so far."""
        have = self.needs.get(name)
        return None if have is None else have.order

    def parent(self, part: Operand) -> Operand:
        """The buffer ``part`` belongs to.

        Raises:
            CompileError: a parent whose shape nothing states.
        """
        if part.of not in self.known:
            raise CompileError(f"{part.name} is a part of {part.of}, whose shape is not known; pass it in buffers")
        return self.known[part.of]

    # ---------------------------------------------------------------- conversions

    def operand(self, value: Operand, order: MxEntry) -> str:
        """Name of the buffer a product reads ``value`` from: its own, or its MXFP7 form made by the mover."""
        if value.role in HOST_ROLES:
            return self._host_operand(value, order)
        have = self.needs.get(value.name)
        if have is None:
            raise CompileError(f"operand {value.name} is computed on the machine and never stored; store it first")
        if have.order == order:
            return value.name
        name = f"{value.name}:{order.key}"
        if name in self.needs:
            return name
        self._note_move(value, have.order)
        try:
            source, shape = self._scratch(value, order)
        except CompileError as err:
            raise CompileError(f"operand {value.name} is computed on the machine; {err}") from err
        rows = "" if shape is None else f"{value.name}:rows:{shape[0]}x{shape[1]}"
        made = Operand(name, "temp", value.shape)
        if shape is not None:
            self._made(Operand(rows, "temp", shape), Flat())
        self._made(made, order)
        self.conversions.append(Requantise(len(self.bands), source, rows, name))
        self.needs[source].converted += 1
        if value.name in self.clean:
            self.clean.add(name)
        return name

    def _note_move(self, value: Operand, order: ByteOrder) -> None:
        """Say why a value is quantised by a move on a machine whose cores drain MXFP7."""
        if "vec_mx_store" not in self.machine.features:
            return
        where = "it lies in tiles" if isinstance(order, Tile) else "it is no whole result of a pass over rows"
        self.notes.append(f"{value.name}: quantised by a move; {self.undrained.get(value.name, where)}")

    def _host_operand(self, value: Operand, order: MxEntry) -> str:
        """A second tiling of one side gives a copy with a name of its own (docs/spec/compiler.md 5.6)."""
        have = self.needs.get(value.name)
        taken = have is not None and isinstance(have.order, MxEntry) and have.order != order
        same_side = have is not None and isinstance(have.order, MxEntry) and have.order.side == order.side
        name = f"{value.name}:{order.key}" if taken and same_side else value.name
        self.hold(replace(value, name=name), order)
        if name != value.name:
            self.needs[name].source = value.name
        self.clean.add(name)
        return name

    def _scratch(self, value: Operand, order: MxEntry) -> tuple[str, tuple[int, int] | None]:
        """What is quantised, and the extents of a scratch of rows."""
        have = self.needs[value.name].order
        if not isinstance(have, Tile):
            return value.name, scratch_shape(have, value.shape, order, self.machine)
        if needs_blank(have, value.shape, clean=value.name in self.clean) and value.name not in self.blank:
            self.conversions.append(Blank(len(self.bands), value.name))
            self.blank.add(value.name)
        if f"{value.name}:flat" in self.needs or not self.by_mover(have):
            wide = self.rows(value) if value.shape[1] % self.machine.slices == 0 else self._wide(value, have)
            return wide, scratch_shape(Flat(), self.needs[wide].value.shape, order, self.machine)
        return value.name, scratch_shape(have, value.shape, order, self.machine)

    def _wide(self, value: Operand, order: Tile) -> str:
        """Name of the rows of a value whose own rows are no whole words: all columns of its tiles."""
        name, cols = f"{value.name}:wide", tile_extents(order)[1]
        if cols % self.machine.slices:
            raise CompileError(
                f"its rows of {value.shape[1]} elements and its tiles of {cols} columns do not end on a word; use a "
                f"multiple of {self.machine.slices} columns"
            )
        if name not in self.needs:
            self._cores_to_rows(value, order, Operand(name, "temp", (value.shape[0], cols)))
            self.needs[value.name].converted += 1
        return name

    def rows(self, value: Operand, nbytes: int = 0) -> str:
        """Name of a buffer that holds ``value`` in rows, made from its tiles if it has no other."""
        have = self.needs.get(value.name)
        if have is None or not isinstance(have.order, Tile):
            self.hold(value, Flat(), nbytes)
            return value.name
        name = f"{value.name}:flat"
        if name not in self.needs:
            try:
                self._to_rows(value, have.order, name)
            except CompileError as err:
                raise CompileError(f"{value.name} is read in rows; {err}") from err
            self.needs[value.name].converted += 1
        self.needs[name].nbytes = max(self.needs[name].nbytes, nbytes)
        return name

    def _to_rows(self, value: Operand, order: Tile, name: str) -> None:
        target = Operand(name, "temp", value.shape)
        if value.shape[1] % self.machine.slices:
            raise CompileError(
                f"its rows of {value.shape[1]} elements do not end on a word; use a multiple of {self.machine.slices} "
                "columns"
            )
        if not self.by_mover(order):
            self._cores_to_rows(value, order, target)
            return
        granules(order, self.machine)
        scratch = flat_scratch(order, value.shape)
        rows = "" if scratch is None else f"{value.name}:rows:{scratch[0]}x{scratch[1]}"
        if scratch is not None:
            self._made(Operand(rows, "temp", scratch), Flat())
        self._made(target, Flat(), 8 * order.gi * order.gm * value.shape[1])
        self.conversions.append(ToRows(len(self.bands), value.name, rows, name))

    def into_part(self, value: Operand, part: Operand) -> None:
        """Bring tiles into the part ``part`` of its buffer of rows.

        Raises:
            CompileError: a part that is not made of words, or tiles the engine does not bring into rows.
        """
        have = self.needs[value.name].order
        w = part.window
        assert isinstance(have, Tile)
        assert w is not None
        parent, slices = self.parent(part), self.machine.slices
        if any(size % slices for size in (w.col, w.cols, parent.shape[1])):
            rows, cols = parent.shape
            raise CompileError(
                f"{part.name} is the part {w.text()} of {parent.name} {rows}x{cols}; a part is made of whole words of "
                f"{slices} elements, pad the columns"
            )
        self.store(parent, Flat())
        if not self.by_mover(have):
            self._cores_to_rows(value, have, parent, part)
        else:
            try:
                granules(have, self.machine)
            except CompileError as err:
                raise CompileError(f"{part.name} is a part of {parent.name}; {err}") from err
            self.conversions.append(ToRows(len(self.bands), value.name, "", parent.name, part.window))
        self.needs[value.name].converted += 1

    def by_mover(self, order: Tile) -> bool:
        """True if the mover brings tiles of ``order`` into rows, and not the vector cores."""
        if self.options.convert != "auto":
            return self.options.convert == "mover"
        able = "xform_granule" in self.machine.features and order.gn % 4 == 0
        return able or not self.machine.meshes[0].units.get("VC")

    def _cores_to_rows(self, value: Operand, order: Tile, target: Operand, part: Operand | None = None) -> None:
        """A band of granule transposes; whole sub-tiles move, so the target has rows for them."""
        if not self.machine.meshes[0].units.get("VC"):
            raise CompileError(f"machine {self.machine.name} has no vector core to bring tiles into rows; drain rows")
        window = part.window if part else None
        blocks = window.blocks if window else 1
        block = Tile(order.gi // blocks, order.gj, order.gm, order.gn)
        cols = value.shape[1] if window else target.shape[1]
        shape = (up(value.shape[0] // blocks, 4), cols)
        made = relayout_band(
            value.name, block, target.name, Flat(), shape, self.machine, self.options.cores, pitch_to=target.shape[1]
        )
        if window is None:
            self._made(target, Flat(), 2 * shape[0] * shape[1])
        else:
            made = replace(made, offsets=_part_offsets(made, order, window, target.shape))
        self.bands.append(made)

    def _made(self, value: Operand, order: ByteOrder, nbytes: int = 0) -> None:
        self.hold(value, order, nbytes)
        self.needs[value.name].converted += 1


def _part_offsets(
    band: RelayoutBand, order: Tile, window: Window, shape: tuple[int, int]
) -> tuple[tuple[int, int], ...]:
    """The runs of one block for every block of a part of a buffer of rows of ``shape``."""
    tiles = 32 * order.word_index(order.gi // window.blocks, 0)
    rows = 2 * shape[0] // window.blocks * shape[1]
    first = 2 * (window.row * shape[1] + window.col)
    return tuple(
        (source + z * tiles, first + z * rows + target) for z in range(window.blocks) for source, target in band.offsets
    )


def full_shapes(operands: Sequence[Operand]) -> dict[str, Operand]:
    """Operands by name; parts are left out."""
    out: dict[str, Operand] = {}
    for o in operands:
        if not o.of:
            out.setdefault(o.name, o)
    return out
