# SPDX-License-Identifier: Apache-2.0
"""Passes over elements: on arriving tiles, in tile order, or over rows (docs/spec/compiler.md 5.7, 7.1, 12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kohakutpu.errors import CannotFuse
from kohakutpu.ints import up
from kohakutpu.schedule.drained_rows import in_rows
from kohakutpu.schedule.ir import Contraction, Delivery, Elementwise, Operand, VectorBand
from kohakutpu.schedule.lanes import cannot_fuse, lane_band, resident_band, tile_band
from kohakutpu.schedule.layout import ByteOrder, ChannelBias, Flat, Tile
from kohakutpu.schedule.mx_drains import drained_entries
from kohakutpu.schedule.partials import (
    made_partials,
    partials_of,
    receivers_of,
    send_partials,
    send_sums,
    with_sums,
)
from kohakutpu.schedule.planner import Planner
from kohakutpu.schedule.products import alike, products, tile_of
from kohakutpu.schedule.split import product, routed

LAYER = "L2"


@dataclass
class Passes:
    """Places every pass; products wait for the pass that reads them.

    Args:
        readers: how often each value is read by a request.
    """

    planner: Planner
    readers: dict[str, int]
    waiting: dict[str, Contraction] = field(default_factory=dict)

    def contraction(self, c: Contraction, *, awaited: bool) -> None:
        """A product; ``awaited`` if a later pass reads it."""
        for name in (c.a.name, c.b.name):
            self.flush(name)
        c = routed(self.planner, c)
        if awaited and not c.c.of:
            self.waiting[c.c.name] = c
        else:
            product(self.planner, c)

    def flush(self, name: str) -> None:
        """Bring a waiting product to memory."""
        if name in self.waiting:
            product(self.planner, self.waiting.pop(name))

    def elementwise(self, e: Elementwise) -> None:
        """One pass, :func:`~kohakutpu.schedule.lanes.plain`, with the products it waits for."""
        group = [self.waiting[o.name] for o in e.operands if o.name in self.waiting]
        tile = self._tile(e, group)
        if tile is None:
            if group and not e.over_rows and not self._only_rows(e, group):
                self._relax(cannot_fuse(e, "its operands have no common tile order, so they meet in rows"))
            for c in group:
                self.flush(c.c.name)
            self._rows(e)
            return
        for c in group:
            del self.waiting[c.c.name]
        if group:
            self._epilogue(e, group, tile)
        else:
            self._tiles(e, tile)

    def _tile(self, e: Elementwise, group: Sequence[Contraction]) -> Tile | None:
        """The one tile order every operand of the shape of the pass has or can take, None for rows."""
        if e.over_rows:
            return None
        if any(c.c.shape != e.shape for c in group):
            return None
        if group and self._only_rows(e, group):
            return None
        orders: list[ByteOrder | None] = [tile_of(self.planner, c) for c in group]
        for o in e.operands:
            if o.name not in self.waiting:
                order = self.planner.order_of(o.name)
                if e.channel(o):
                    if order is not None and not isinstance(order, ChannelBias):
                        return None
                else:
                    orders.append(order)
        found = {order for order in orders if order is not None}
        if not found and self._ragged(e):
            return Tile.of(e.shape, 4, 4)
        if len(found) != 1:
            return None
        order = found.pop()
        return order if isinstance(order, Tile) else None

    def _ragged(self, e: Elementwise) -> bool:
        """True for an operand of a product whose columns are whole sub-tiles but no whole words.

        The mover takes such columns from tiles and not from rows (docs/spec/compiler.md 7.1).
        """
        swept = any(r.name in self.planner.swept for r in e.results)
        return swept and e.shape[1] % self.planner.machine.slices != 0 and e.shape[1] % 4 == 0

    def _only_rows(self, e: Elementwise, group: Sequence[Contraction]) -> bool:
        """True if the products are drained as rows because all that reads ``e`` needs rows."""
        planner = self.planner
        return all(r.name in planner.rowwise for r in e.results) and all(in_rows(planner, c) for c in group)

    # ---------------------------------------------------------------- tile order

    def _epilogue(self, e: Elementwise, group: Sequence[Contraction], tile: Tile) -> None:
        """A pass that reads results of products: on the arriving tiles if it can, else through memory."""
        self.planner.rowwise -= {c.c.name for c in group}
        if self.planner.options.fuse != "never":
            try:
                self._fused(e, group, tile)
                return
            except CannotFuse as err:
                self._relax(err)
        if alike(group) and group[0].split == 1:
            products(self.planner, group)
        else:
            for c in group:
                product(self.planner, c)
        self._tiles(e, tile)

    def _relax(self, reason: CannotFuse) -> None:
        """Record that an epilogue goes through memory.

        Raises:
            CannotFuse: the author required it on the arriving tile.
        """
        if self.planner.options.fuse == "require":
            raise reason
        if self.planner.options.fuse == "auto":
            self.planner.relaxed.append(str(reason))

    def _fused(self, e: Elementwise, group: Sequence[Contraction], tile: Tile) -> None:
        machine, options = self.planner.machine, self.planner.options
        first = group[0]
        if not all(c.c.role == "temp" and self.readers[c.c.name] == 1 for c in group):
            raise cannot_fuse(e, "the product is also read elsewhere, so it needs a place in memory")
        if not alike(group):
            raise cannot_fuse(e, "its products do not share M, N and K, so no instance computes them all")
        if first.route == "memory":
            raise cannot_fuse(e, "partial products are added in memory by route memory")
        receivers = receivers_of(e, tile, self.planner)
        arriving = tuple(c.c.name for c in group)
        if first.route == "core":
            e = with_sums(e, group)
            arriving = tuple(p.name for c in group for p in partials_of(c))
        band = resident_band(e, tile, arriving, receivers, machine, options.lanes)
        if not self._deliver(group, receivers, up(tile.gm * tile.gn, 8)):
            band = replace(band, acks=0)
        self._add(e, band, tile, arriving)

    def _deliver(self, group: Sequence[Contraction], receivers: tuple[int, ...], span: int) -> bool:
        """Tiles or partials into the cores; True if the epilogue has to wait for all of their bursts."""
        if group[0].split == 1:
            products(self.planner, group, Delivery(receivers, span))
            return True
        made = [made_partials(self.planner, c) for c in group]
        if group[0].route == "core":
            return send_partials(self.planner, group, made, receivers, span)
        for slot, (c, m) in enumerate(zip(group, made, strict=True)):
            send_sums(self.planner, c, m, receivers, slot)
        return False

    def _tiles(self, e: Elementwise, tile: Tile) -> None:
        options = self.planner.options
        self._add(e, tile_band(e, tile, self.planner.machine, options.cores, options.lanes), tile)

    def _add(self, e: Elementwise, band: VectorBand, tile: Tile, delivered: Sequence[str] = ()) -> None:
        """Append a pass in tile order; a value a column is read in the order of its tiles."""
        padded = self.planner.machine.word_bytes * band.words
        for o in e.operands:
            if o.name in delivered:
                continue
            if e.channel(o):
                self.planner.hold(o, ChannelBias(tile.gn))
            else:
                self.planner.hold(o, tile, padded)
        for r in e.results:
            self.planner.store(r, tile, padded)
        self.planner.bands.append(band)

    # ---------------------------------------------------------------- rows

    def _rows(self, e: Elementwise) -> None:
        """A pass over rows; what lies in tiles is converted first."""
        planner, options = self.planner, self.planner.options
        operands = tuple(replace(o, name=planner.rows(o)) for o in e.operands)
        e = replace(e, operands=operands)
        parents = {r.of: planner.parent(r).shape for r in e.results if r.of}
        word = planner.machine.word_bytes
        drained = drained_entries(planner, e, parents)
        if drained:
            e, orders, band = drained
        else:
            orders = (None,) * len(e.results)
            band = lane_band(e, planner.machine, options.cores, options.lanes, parents)
        for o, reach in zip(e.operands, band.reach, strict=True):
            planner.hold(o, Flat(), word * reach)
        for r, order in zip(e.results, orders, strict=True):
            if order:
                planner.entries(r, order)
            else:
                self._result(r, word * band.words)
        planner.bands.append(band)

    def _result(self, result: Operand, padded: int) -> None:
        if result.of:
            self.planner.store(self.planner.parent(result), Flat())
        else:
            self.planner.store(result, Flat(), padded)
