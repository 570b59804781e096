# SPDX-License-Identifier: Apache-2.0
"""Passes over results of products, in tile order: through memory or on the arriving tile (docs/spec/compiler.md 12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from kohakutpu.errors import CannotFuse, CompileError, EncodeError
from kohakutpu.ints import cdiv, up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Store, Stream, Walk, acknowledgements, check_footprint
from kohakutpu.schedule.ir import Elementwise, VectorBand
from kohakutpu.schedule.lanes_choice import (
    Division,
    LaneOptions,
    Region,
    band_of,
    best,
    cost_of,
    finished,
    name_of,
    place,
    require_whole,
)
from kohakutpu.schedule.lanes_flat import flat_band
from kohakutpu.schedule.lanes_nest import plain
from kohakutpu.schedule.layout import Tile

LAYER = "L2"


def tile_band(e: Elementwise, tile: Tile, machine: MachineSpec, cores: int, options: LaneOptions) -> VectorBand:
    """A pass over results in tile order, through memory; an instance is a block of whole tiles or of rows of one.

    Raises:
        CompileError: rows to reduce, or a chain that does not fit a core.
    """
    e = plain(e)
    require_whole(e)
    _refuse_folds(e)
    words = tile.gi * tile.gj * tile.gm * tile.gn
    if not any(e.channel(o) for o in e.operands):
        return flat_band(e, words, machine, cores, options)
    step = machine.vlmax // machine.slices

    def divide() -> Iterator[Division]:
        for tiles, rows in _tile_blocks(tile, machine):
            size = tiles * rows * tile.gn
            make = partial(_blocks, e, tile, tiles, rows, machine, options)
            yield Division(cdiv(words, size), cdiv(size, step), step, len(e.operands), make)

    return best(divide(), e, machine, cores, ("tiles", options, tile))


def _tile_blocks(tile: Tile, machine: MachineSpec) -> Iterator[tuple[int, int]]:
    """(tiles, sub-tile rows of each) of a block."""
    for tiles in range(tile.gj, 0, -1):
        if tile.gj % tiles == 0 and tiles * tile.gm * tile.gn <= machine.vc_walk_max:
            yield tiles, tile.gm
    for rows in range(tile.gm - 1, 0, -1):
        if tile.gm % rows == 0 and rows * tile.gn <= machine.vc_walk_max:
            yield 1, rows


def _blocks(
    e: Elementwise, tile: Tile, tiles: int, rows: int, machine: MachineSpec, options: LaneOptions, runs: int
) -> VectorBand:
    step = machine.vlmax // machine.slices
    word = machine.word_bytes
    bw = tiles * rows * tile.gn
    span = up(bw, step)
    offsets = tuple(range(0, span, step))
    full = Region(span, offsets, Walk.run(bw, word))
    walk = Walk(((word, tile.gn), (0, rows), (word * tile.gn, tiles)))
    repeated = Region(span, offsets, walk)
    fills = [repeated if e.channel(o) else full for o in e.operands]
    streams, stores = place(e, fills, [full] * len(e.results))
    total = tile.gi * tile.gj * tile.gm * tile.gn
    size = tile.gm * tile.gn

    def channel_at(first: int) -> int:
        return word * tile.gn * (first // size % tile.gj)

    starts = [
        tuple(channel_at(w) if e.channel(o) else word * w for o in e.operands) + (word * w,) * len(e.results)
        for w in range(0, total, bw)[:runs]
    ]
    return band_of(e, "tiles", (streams, stores), machine.vlmax, starts, total, options)


def _refuse_folds(e: Elementwise) -> None:
    if e.chain.folds:
        raise CompileError(
            f"{name_of(e)}: rows of a product are reduced, but its result lies in tiles; bringing it into rows is a "
            "pass the compiler does not emit, reduce on another call"
        )


def resident_band(
    e: Elementwise,
    tile: Tile,
    arriving: tuple[str, ...],
    receivers: tuple[int, ...],
    machine: MachineSpec,
    options: LaneOptions,
) -> VectorBand:
    """The epilogue of tiles that clusters send into the cores (docs/spec/compiler.md 12.5).

    Args:
        arriving: results of products that are delivered, in slot order.
        receivers: core of every instance in loop order (column band outermost).

    Raises:
        CannotFuse: every limit of docs/spec/compiler.md 12.7, with both ways out.
    """
    e = plain(e)
    try:
        require_whole(e)
    except CompileError as err:
        raise cannot_fuse(e, str(err)) from err
    _refuse_folds(e)
    size = tile.gm * tile.gn
    acks = len(arriving) * acknowledgements(size)
    queue = machine.ackq.get("VC", 0)
    if acks > queue:
        raise cannot_fuse(e, f"{acks} bursts arrive at a core, it queues {queue} acknowledgements")
    if size > machine.vc_walk_max:
        raise cannot_fuse(e, f"gm*gn = {size} sub-tiles; a core takes {machine.vc_walk_max}")
    found: list[tuple[int, VectorBand]] = []
    reason = ""
    for parts in _parts(e, tile, machine):
        band = _resident(e, tile, arriving, receivers, parts, machine, options)
        try:
            check_footprint(
                max(*(r.l1 + r.words for r in band.streams), *(r.l1 + r.words for r in band.stores)), machine
            )
            found.append((cost_of(band, machine, len(receivers)), band))
        except EncodeError:
            raise
        except CompileError as err:
            reason = str(err)
    if not found:
        raise cannot_fuse(e, reason)
    return finished(min(found, key=lambda f: f[0])[1], machine)


def _parts(e: Elementwise, tile: Tile, machine: MachineSpec) -> Iterator[int]:
    """Numbers of RUNs a tile can be divided into: equal parts of whole steps that start at column group 0."""
    size, step = tile.gm * tile.gn, machine.vlmax // machine.slices
    yield 1
    for parts in range(2, size // step + 1):
        aligned = size // parts % tile.gn == 0 or not any(e.channel(o) for o in e.operands)
        if size % (parts * step) == 0 and aligned:
            yield parts


def _resident(
    e: Elementwise,
    tile: Tile,
    arriving: tuple[str, ...],
    receivers: tuple[int, ...],
    parts: int,
    machine: MachineSpec,
    options: LaneOptions,
) -> VectorBand:
    """The epilogue of whole tiles, each in ``parts`` RUNs: the tile moves past them, the result region stays."""
    word, step = machine.word_bytes, machine.vlmax // machine.slices
    size = tile.gm * tile.gn
    span, part = up(size, step), size // parts
    room = up(part, step)
    repeat = 1 if tile.gn % step == 0 else cdiv(tile.gn + step - 1, tile.gn)
    offsets = tuple(range(0, room, step))
    at = {name: k * span for k, name in enumerate(arriving)}
    results = len(arriving) * span
    free = results + len(e.results) * room
    for channel in (True, False):
        for o in e.operands:
            if o.name not in at and e.channel(o) == channel:
                at[o.name] = free
                free += repeat * tile.gn if channel else room
    streams = []
    for o in e.operands:
        if o.name in arriving:
            streams.append(Stream(o.name, at[o.name], span, offsets, None, moves=parts > 1))
        elif e.channel(o):
            phases = tuple(w % tile.gn for w in offsets)
            walk = Walk(((word, tile.gn), (0, repeat)))
            streams.append(Stream(o.name, at[o.name], repeat * tile.gn, phases, walk))
        else:
            streams.append(Stream(o.name, at[o.name], room, offsets, Walk.run(part, word)))
    stores = tuple(
        Store(r.name, results + k * room, room, offsets, Walk.run(part, word)) for k, r in enumerate(e.results)
    )
    sides = [o for o in e.operands if o.name not in arriving]
    starts = []
    for no in range(tile.gj):
        for mo in range(tile.gi):
            for p in range(parts):
                first = word * (tile.word_index(mo, no) + p * part)
                moved = tuple(word * tile.gn * no if e.channel(o) else first for o in sides)
                starts.append((*moved, *(first for _ in e.results)))
    band = band_of(e, "resident", (tuple(streams), stores), machine.vlmax, starts, tile.gi * tile.gj * size, options)
    return replace(
        band,
        nodes=tuple(u for u in receivers for _ in range(parts)),
        acks=len(arriving) * acknowledgements(size),
        shifts=tuple(p * part for _ in receivers for p in range(parts)) if parts > 1 else (),
    )


def cannot_fuse(e: Elementwise, reason: str) -> CannotFuse:
    """The refusal of a fused epilogue, with both ways out."""
    return CannotFuse(
        f"epilogue into {', '.join(r.name for r in e.results)}: {reason}; choose another tile, or two stages "
        'with the tile in memory (fuse="auto")',
        reason,
    )
