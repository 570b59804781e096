# SPDX-License-Identifier: Apache-2.0
"""Arrays of a device in another byte order, rewritten on the device (docs/spec/compiler.md 7.4).

Rows (``flat``), tiles and MXFP7 entries; out of place, padding written as zero. Copies of the memory mover permute
words and clip to what the array holds. A granule transpose turns four sub-tiles side by side into four rows, and back:
by the mover if it has the feature ``xform_granule``, else by the vector cores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import lcm

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv, up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Move
from kohakutpu.schedule.conversion import Placed, conversion
from kohakutpu.schedule.layout import ByteOrder, ChannelBias, Entry, Flat, MxEntry, Shape, Tile
from kohakutpu.schedule.relayout import relayout_band
from kohakutpu.schedule.relayout_walks import LANES
from kohakutpu.walks import WORD_BYTES, Dim, Walk
from ktpu.prelude import Relayout, Step

Scratch = Callable[[int, str], int]
"""Address of so many bytes that live until the steps have run."""

_STRETCH = 1 << 15
"""Words of one dimension of a contiguous walk."""


@dataclass
class Rewrite:
    """The steps of one array to one order.

    Args:
        name: of the array, for messages.
        shape: its extents.
        machine: where it is.
        scratch: gives room for what is between.
        clean: the padding of its tiles is zero.
    """

    name: str
    shape: Shape
    machine: MachineSpec
    scratch: Scratch
    clean: bool = False
    steps: list[Step] = field(default_factory=list)

    def to(self, order: ByteOrder, at: int, target: ByteOrder, to: int, nbytes: int) -> list[Step]:
        """Steps from ``order`` at address ``at`` to ``target`` at ``to``, ``nbytes`` of it defined.

        Raises:
            CompileError: an order nothing makes; names array, both orders, and the way out.
        """
        if order.key == target.key:
            self._words(at, to, cdiv(order.nbytes(self.shape), WORD_BYTES), nbytes)
        elif isinstance(order, Flat | Tile) and isinstance(target, Flat):
            self._need_words(order, target)
            self._rows(order, at, to, (up(self.shape[0], 4), self.shape[1]), nbytes)
        elif isinstance(order, Flat | Tile) and isinstance(target, MxEntry):
            self._entries(order, at, target, to, nbytes)
        elif isinstance(order, Flat | Tile) and isinstance(target, Tile):
            self._tiles(order, at, target, to, nbytes)
        elif isinstance(order, Flat | Tile) and isinstance(target, ChannelBias):
            self._channels(order, at, target, to, nbytes)
        else:
            raise self._refused(order, target, "nothing on the machine makes it")
        return self.steps

    def _refused(self, a: ByteOrder, b: ByteOrder, reason: str) -> CompileError:
        return CompileError(f"{self.name} {self.shape} from {a.key} to {b.key}: {reason}")

    def _need_words(self, a: ByteOrder, b: ByteOrder) -> None:
        if self.shape[1] % LANES:
            wanted = up(self.shape[1], LANES)
            reason = f"rows of {self.shape[1]} elements do not end on a word; pad the last axis to {wanted}"
            raise self._refused(a, b, reason)

    # ------------------------------------------------------------------ single moves

    def _clear(self, at: int, words: int) -> None:
        self.steps += [Move("fill", None, walk) for _, walk in _stretches(at, words)]

    def _words(self, at: int, to: int, words: int, nbytes: int) -> None:
        """The same words elsewhere, cleared behind them."""
        for first, walk in _stretches(to, words):
            self.steps.append(Move("copy", Walk(at + WORD_BYTES * first, walk.dims), walk))
        self._clear(to + WORD_BYTES * words, nbytes // WORD_BYTES - words)

    def _clip(self, at: int, to: int, extents: Shape) -> None:
        """Rows of whole words from ``at`` into rows of ``extents``, zero where the array has none."""
        rows, cols = self.shape
        dims = (Dim(extents[0], 2 * cols, 1, 1), Dim(extents[1] // LANES, WORD_BYTES, 2, 1))
        places = (Dim(extents[0], 2 * extents[1]), Dim(extents[1] // LANES, WORD_BYTES))
        self.steps.append(Move("copy", Walk(at, dims, ((0, rows), (0, cols // LANES))), Walk(to, places)))

    def _retile(self, a: Tile, at: int, b: Tile, to: int) -> None:
        """Sub-tiles from one grid into another, zero where the array has none."""
        rows, cols = cdiv(self.shape[0], 4), cdiv(self.shape[1], 4)
        extents = up(b.gi * b.gm, lcm(a.gm, b.gm)), up(b.gj * b.gn, lcm(a.gn, b.gn))
        source = _subtiles(a, at, extents, (rows, cols))
        self.steps.append(Move("copy", source, _subtiles(b, to, extents, (b.gi * b.gm, b.gj * b.gn))))

    def _untile(self, a: Tile, at: int, to: int) -> None:
        """Tiles, sub-tile columns in fours, into rows of the tiles' extents."""
        shape = 4 * a.gi * a.gm, 4 * a.gj * a.gn
        if self._by_mover(a, Flat()):
            self.steps += conversion(Placed(a, at, shape), Placed(Flat(), to, shape), self.machine)
        else:
            self._by_cores(a, at, Flat(), to, shape)

    def _entile(self, at: int, shape: Shape) -> tuple[Tile, int]:
        """Rows of ``shape`` (multiples of 4 and 16) into one tile; the tile and its address."""
        rows, cols = shape
        grid = Tile(1, 1, rows // 4, cols // 4)
        to = self.scratch(2 * rows * cols, f"{self.name} in one tile")
        if self._by_mover(Flat(), grid):
            source = Walk(at, (Dim(rows // 4, 8 * cols), Dim(cols // LANES, WORD_BYTES), Dim(4, 2 * cols)))
            words = Walk(to, (Dim(rows // 4, 8 * cols), Dim(cols // 4, WORD_BYTES)))
            self.steps.append(Move("granule", source, words))
        else:
            self._by_cores(Flat(), at, grid, to, shape)
        return grid, to

    def _by_mover(self, a: ByteOrder, b: ByteOrder) -> bool:
        if "xform_granule" in self.machine.features:
            return True
        if not self.machine.meshes[0].units.get("VC"):
            reason = f"machine {self.machine.name} has neither the granule transpose in its mover nor a vector core"
            raise self._refused(a, b, f"{reason}; read it with numpy() and make a new tensor")
        return False

    def _by_cores(self, a: Flat | Tile, at: int, b: Flat | Tile, to: int, shape: Shape) -> None:
        cores = len(self.machine.units("VC"))
        band = relayout_band(self.name, a, f"{self.name} in {b.key}", b, shape, self.machine, cores)
        self.steps.append(Relayout(band, at, to))

    # ------------------------------------------------------------------ routes

    def _rows(self, order: Flat | Tile, at: int, to: int, extents: Shape, nbytes: int = 0) -> None:
        """Rows of ``extents`` (multiples of 4 and 16) at ``to``; what lies behind them up to ``nbytes`` is cleared."""
        if isinstance(order, Flat):
            self._clip(at, to, extents)
        else:
            whole = 4 * order.gi * order.gm, 4 * order.gj * order.gn
            exact = whole == extents and (self.clean or self.shape[1] == extents[1])
            if not exact or order.gn % 4:
                grid = Tile(1, 1, extents[0] // 4, extents[1] // 4)
                between = self.scratch(2 * extents[0] * extents[1], f"{self.name} in one tile")
                self._retile(order, at, grid, between)
                order, at = grid, between
            self._untile(order, at, to)
        done = 2 * extents[0] * extents[1] // WORD_BYTES
        self._clear(to + WORD_BYTES * done, nbytes // WORD_BYTES - done)

    def _entries(self, order: Flat | Tile, at: int, target: MxEntry, to: int, nbytes: int) -> None:
        extents = Entry(target.g, target.b).padded(self.shape)
        if isinstance(order, Flat):
            self._need_words(order, target)
        elif self.shape[1] % 4 and not self.clean:
            reason = f"what stands behind its {self.shape[1]} columns is not zero; pad the last axis to a multiple of 4"
            raise self._refused(order, target, reason)
        if not (isinstance(order, Flat) and extents == self.shape):
            rows = self.scratch(2 * extents[0] * extents[1], f"{self.name} in rows")
            self._rows(order, at, rows, extents)
            at = rows
        self.steps += conversion(Placed(Flat(), at, extents), Placed(target, to, extents), self.machine)
        done = target.nbytes(self.shape) // WORD_BYTES
        self._clear(to + WORD_BYTES * done, nbytes // WORD_BYTES - done)

    def _tiles(self, order: Flat | Tile, at: int, target: Tile, to: int, nbytes: int) -> None:
        if isinstance(order, Flat):
            self._need_words(order, target)
            extents = up(self.shape[0], 4), self.shape[1]
            if extents != self.shape:
                between = self.scratch(2 * extents[0] * extents[1], f"{self.name} in whole rows")
                self._clip(at, between, extents)
                at = between
            order, at = self._entile(at, extents)
        self._retile(order, at, target, to)
        done = target.nbytes(self.shape) // WORD_BYTES
        self._clear(to + WORD_BYTES * done, nbytes // WORD_BYTES - done)

    def _channels(self, order: Flat | Tile, at: int, target: ChannelBias, to: int, nbytes: int) -> None:
        """Four equal rows, brought into one tile, are one value a column in each of a word's four rows."""
        if self.shape[0] != 1:
            raise self._refused(order, target, "one value a column is a single row")
        self._need_words(order, target)
        cols = self.shape[1]
        if isinstance(order, Tile):
            rows = self.scratch(8 * cols, f"{self.name} in rows")
            self._rows(order, at, rows, (4, cols))
            at = rows
        fourfold = self.scratch(8 * cols, f"{self.name} four times")
        source = Walk(at, (Dim(4, 0), Dim(cols // LANES, WORD_BYTES)))
        self.steps.append(Move("copy", source, Walk(fourfold, (Dim(4, 2 * cols), Dim(cols // LANES, WORD_BYTES)))))
        _, tile = self._entile(fourfold, (4, cols))
        self._words(tile, to, cols // 4, nbytes)


def _stretches(at: int, words: int) -> list[tuple[int, Walk]]:
    """(first word, walk) of the contiguous walks that cover ``words``: whole stretches, then the rest."""
    whole, rest = divmod(max(0, words), _STRETCH)
    out = []
    if whole:
        out.append((0, Walk(at, (Dim(whole, WORD_BYTES * _STRETCH), Dim(_STRETCH, WORD_BYTES)))))
    if rest:
        out.append((_STRETCH * whole, Walk(at + WORD_BYTES * _STRETCH * whole, (Dim(rest, WORD_BYTES),))))
    return out


def _subtiles(tile: Tile, at: int, extents: Shape, bound: Shape) -> Walk:
    """Sub-tile rows of ``extents``, row by row, valid inside ``bound``; both in sub-tiles."""
    block = WORD_BYTES * tile.gm * tile.gn
    dims = (
        Dim(extents[0] // tile.gm, block * tile.gj, 1, tile.gm),
        Dim(tile.gm, WORD_BYTES * tile.gn, 1, 1),
        Dim(extents[1] // tile.gn, block, 2, tile.gn),
        Dim(tile.gn, WORD_BYTES, 2, 1),
    )
    return Walk(at, dims, ((0, bound[0]), (0, bound[1])))
