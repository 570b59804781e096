# SPDX-License-Identifier: Apache-2.0
"""Vector bands: what an instance covers, where it lies in L1, how much one RUN does (docs/spec/compiler.md 9.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kohakutpu.errors import CannotFuse, CompileError, EncodeError
from kohakutpu.ints import cdiv, up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import LaneWork, Store, Stream, Walk, acknowledgements, check_footprint, run_cost
from kohakutpu.schedule.cover import check_intervals
from kohakutpu.schedule.ir import Elementwise, VectorBand
from kohakutpu.schedule.layout import Tile

LAYER = "L2"

_PAYLOAD_CYCLES = 24
"""Cycles to stage, dispatch and retire one payload (25 measured on mm_mesh, most of them the host's), and ..."""
_RUN_CYCLES = 128
"""... of a RUN beside its kernel: the round trip of its fills and the acknowledgement of its drains."""
_BATCH_WORDS = 64
"""A RUN moves at least 1,024 elements of an operand if there are as many."""


@dataclass(frozen=True)
class LaneOptions:
    """Choices that change no result: alternating steps (0 = as many as fit) and words of a chain group."""

    interleave: int = 0
    group: int = 1


def work_of(band: VectorBand, runs: tuple[tuple[int, ...], ...], shifts: tuple[int, ...] = ()) -> LaneWork:
    """The band as work of one core, with the addresses of every RUN and how far its moving streams are."""
    return LaneWork(band.chain, band.vl, band.streams, band.stores, runs, band.interleave, band.group, shifts)


def cost_of(band: VectorBand, machine: MachineSpec, cores: int) -> int:
    """Modelled cycles of dispatch and of the busiest core; only differences between divisions count.

    Raises:
        CompileError: a limit of the core the band breaks.
    """
    furthest = (max(band.shifts),) if band.shifts else ()
    before, cycles = run_cost(work_of(band, (tuple(0 for _ in band.offsets[0]),), furthest), machine)
    runs = len(band.offsets)
    used = min(runs, cores)
    payloads = used * before + runs * (1 + len(band.offsets[0]) + len(furthest))
    return _PAYLOAD_CYCLES * payloads + cdiv(runs, used) * (cycles + _RUN_CYCLES)


def _best(candidates: Iterable[VectorBand], machine: MachineSpec, cores: int, name: str) -> VectorBand:
    """The cheapest band that fits.

    Raises:
        CompileError: none does; the reason of the last, smallest one.
    """
    reason = f"{name}: it has no legal division"
    found: list[tuple[int, VectorBand]] = []
    for band in candidates:
        try:
            found.append((cost_of(band, machine, cores), band))
        except EncodeError:
            raise
        except CompileError as err:
            reason = f"{name}: {err}"
    if not found:
        raise CompileError(reason)
    band = min(found, key=lambda f: f[0])[1]
    covered(band, machine)
    return band


def covered(band: VectorBand, machine: MachineSpec) -> None:
    """Require that the instances write every word of every result exactly once.

    Raises:
        CoverageError: naming the result and the first word.
    """
    for k, store in enumerate(band.stores):
        starts = [o[k - len(band.stores)] // machine.word_bytes for o in band.offsets]
        check_intervals(store.name, band.words, [(s, store.drain.words) for s in starts])


def _name(e: Elementwise) -> str:
    return f"elementwise pass into {', '.join(r.name for r in e.results)}"


def _place(
    e: Elementwise, fills: list[tuple[int, tuple[int, ...], Walk]], out: tuple[int, tuple[int, ...], Walk]
) -> tuple[tuple[Stream, ...], tuple[Store, ...]]:
    """Regions one after another: operands, then results. ``fills`` are (words, step offsets, walk)."""
    at = 0
    streams = []
    for operand, (words, offsets, walk) in zip(e.operands, fills, strict=True):
        streams.append(Stream(operand.name, at, words, offsets, walk))
        at += words
    stores = []
    for result in e.results:
        words, offsets, walk = out
        stores.append(Store(result.name, at, words, offsets, walk))
        at += words
    return tuple(streams), tuple(stores)


# -------------------------------------------------------------------- contiguous images


def _divisions(total: int, batch: int) -> Iterator[tuple[int, int]]:
    """(steps a RUN, RUNs) that divide ``total`` steps evenly, the fewest RUNs first; no RUN below a batch."""
    last = 0
    for runs in range(1, max(1, total // batch) + 1):
        steps = cdiv(total, runs)
        if steps != last:
            yield steps, cdiv(total, steps)
        last = steps


def flat_band(e: Elementwise, words: int, machine: MachineSpec, cores: int, options: LaneOptions) -> VectorBand:
    """A pass over a contiguous image of ``words`` words that every operand and result shares, in steps of vlmax.

    Steps are divided evenly over RUNs, and the image is padded to whole RUNs.

    Raises:
        CompileError: a chain that does not fit a core.
    """
    step = machine.vlmax // machine.slices
    total = cdiv(words, step)

    def bands(batch: int) -> Iterator[VectorBand]:
        for steps, runs in _divisions(total, batch):
            if steps * step <= machine.vc_walk_max:
                yield _flat(e, steps, runs, step, machine, options)

    return _roomy(bands, _BATCH_WORDS // step, machine, cores, _name(e))


def _roomy(
    bands: Callable[[int], Iterator[VectorBand]], batch: int, machine: MachineSpec, cores: int, name: str
) -> VectorBand:
    """The best division with whole batches a RUN, or if none fits the best with any number of steps."""
    try:
        return _best(bands(batch), machine, cores, name)
    except EncodeError:
        raise
    except CompileError:
        return _best(bands(1), machine, cores, name)


def _flat(e: Elementwise, steps: int, runs: int, step: int, machine: MachineSpec, options: LaneOptions) -> VectorBand:
    bw = steps * step
    offsets = tuple(step * s for s in range(steps))
    walk = Walk.run(bw, machine.word_bytes)
    streams, stores = _place(e, [(bw, offsets, walk)] * len(e.operands), (bw, offsets, walk))
    moved = len(e.operands) + len(e.results)
    return VectorBand(
        chain=e.chain,
        form="flat",
        extents=e.shape,
        vl=machine.vlmax,
        reads=tuple(o.name for o in e.operands),
        writes=tuple(r.name for r in e.results),
        streams=streams,
        stores=stores,
        offsets=tuple((machine.word_bytes * bw * r,) * moved for r in range(runs)),
        words=runs * bw,
        interleave=options.interleave,
        group=options.group,
    )


def row_band(e: Elementwise, machine: MachineSpec, cores: int, options: LaneOptions) -> VectorBand:
    """A pass over rows: rows are reduced, or an operand has one row that all rows read.

    Raises:
        CompileError: rows that are no whole words, that are too long to reduce, or a chain that does not fit.
    """
    m, n = e.shape
    if n % machine.slices:
        raise CompileError(
            f"{_name(e)}: rows of {n} elements; a row that is reduced or shares an operand has a multiple of "
            f"{machine.slices}, pad it"
        )
    if e.chain.folds and n > machine.vlmax:
        raise CompileError(
            f"{_name(e)}: rows of {n} elements are reduced; one reduction takes at most {machine.vlmax}, "
            "reduce rows of a divisor first"
        )
    row = n // machine.slices
    longest = machine.vlmax // machine.slices
    step = max(d for d in range(1, longest + 1) if row % d == 0)

    def bands(batch: int) -> Iterator[VectorBand]:
        for rows, runs in _divisions(m, batch):
            if rows * row <= machine.vc_walk_max:
                yield _rows(e, rows, runs, row, step, machine, options)
        for parts in range(2, row // step + 1):
            if (row // step) % parts == 0 and not e.chain.folds:
                yield _row_parts(e, m, row, row // parts, step, machine, options)

    return _roomy(bands, cdiv(_BATCH_WORDS, row), machine, cores, _name(e))


def _rows(
    e: Elementwise, rows: int, runs: int, row: int, step: int, machine: MachineSpec, options: LaneOptions
) -> VectorBand:
    bw = rows * row
    offsets = tuple(step * s for s in range(bw // step))
    shared = tuple(o % row for o in offsets)
    full = (bw, offsets, Walk.run(bw, machine.word_bytes))
    channel = (row, shared, Walk.run(row, machine.word_bytes))
    places = [channel if e.channel(o) else full for o in e.operands]
    streams, stores = _place(e, places, full)
    moves = [not e.channel(o) for o in e.operands] + [True] * len(e.results)
    starts = [tuple(machine.word_bytes * bw * r * moved for moved in moves) for r in range(runs)]
    return _row_band(e, (streams, stores), step, starts, runs * bw, machine, options)


def _row_parts(
    e: Elementwise, m: int, row: int, bw: int, step: int, machine: MachineSpec, options: LaneOptions
) -> VectorBand:
    offsets = tuple(step * s for s in range(bw // step))
    full = (bw, offsets, Walk.run(bw, machine.word_bytes))
    streams, stores = _place(e, [full] * len(e.operands), full)
    starts = [
        tuple(machine.word_bytes * (w % row if e.channel(o) else w) for o in e.operands)
        + (machine.word_bytes * w,) * len(e.results)
        for w in range(0, m * row, bw)
    ]
    return _row_band(e, (streams, stores), step, starts, m * row, machine, options)


def _row_band(
    e: Elementwise,
    regions: tuple[tuple[Stream, ...], tuple[Store, ...]],
    step: int,
    starts: Sequence[tuple[int, ...]],
    words: int,
    machine: MachineSpec,
    options: LaneOptions,
) -> VectorBand:
    return VectorBand(
        chain=e.chain,
        form="rows",
        extents=e.shape,
        vl=step * machine.slices,
        reads=tuple(o.name for o in e.operands),
        writes=tuple(r.name for r in e.results),
        streams=regions[0],
        stores=regions[1],
        offsets=tuple(starts),
        words=words,
        interleave=options.interleave,
        group=options.group,
    )


# -------------------------------------------------------------------- results of products


def tile_band(e: Elementwise, tile: Tile, machine: MachineSpec, cores: int, options: LaneOptions) -> VectorBand:
    """A pass over results in tile order, through memory; an instance is a block of whole tiles or of rows of one.

    Raises:
        CompileError: rows to reduce, or a chain that does not fit a core.
    """
    _refuse_folds(e)
    words = tile.gi * tile.gj * tile.gm * tile.gn
    if not any(e.channel(o) for o in e.operands):
        return flat_band(e, words, machine, cores, options)
    return _best(
        (_blocks(e, tile, tiles, rows, machine, options) for tiles, rows in _tile_blocks(tile, machine)),
        machine,
        cores,
        _name(e),
    )


def _tile_blocks(tile: Tile, machine: MachineSpec) -> Iterator[tuple[int, int]]:
    """(tiles, sub-tile rows of each) of a block."""
    for tiles in range(tile.gj, 0, -1):
        if tile.gj % tiles == 0 and tiles * tile.gm * tile.gn <= machine.vc_walk_max:
            yield tiles, tile.gm
    for rows in range(tile.gm - 1, 0, -1):
        if tile.gm % rows == 0 and rows * tile.gn <= machine.vc_walk_max:
            yield 1, rows


def _blocks(
    e: Elementwise, tile: Tile, tiles: int, rows: int, machine: MachineSpec, options: LaneOptions
) -> VectorBand:
    step = machine.vlmax // machine.slices
    word = machine.word_bytes
    bw = tiles * rows * tile.gn
    span = up(bw, step)
    offsets = tuple(range(0, span, step))
    full = (span, offsets, Walk.run(bw, word))
    walk = Walk(((word, tile.gn), (0, rows), (word * tile.gn, tiles)))
    streams, stores = _place(e, [(span, offsets, walk) if e.channel(o) else full for o in e.operands], full)
    total = tile.gi * tile.gj * tile.gm * tile.gn
    size = tile.gm * tile.gn

    def channel_at(first: int) -> int:
        return word * tile.gn * (first // size % tile.gj)

    return VectorBand(
        chain=e.chain,
        form="tiles",
        extents=e.shape,
        vl=machine.vlmax,
        reads=tuple(o.name for o in e.operands),
        writes=tuple(r.name for r in e.results),
        streams=streams,
        stores=stores,
        offsets=tuple(
            tuple(channel_at(w) if e.channel(o) else word * w for o in e.operands) + (word * w,) * len(e.results)
            for w in range(0, total, bw)
        ),
        words=total,
        interleave=options.interleave,
        group=options.group,
    )


def _refuse_folds(e: Elementwise) -> None:
    if e.chain.folds:
        raise CompileError(
            f"{_name(e)}: rows of a product are reduced, but its result lies in tiles; bringing it into rows is a "
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
    best = min(found, key=lambda f: f[0])[1]
    covered(best, machine)
    return best


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
    span, part = up(tile.gm * tile.gn, step), tile.gm * tile.gn // parts
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
    return VectorBand(
        chain=e.chain,
        form="resident",
        extents=e.shape,
        vl=machine.vlmax,
        reads=tuple(o.name for o in e.operands),
        writes=tuple(r.name for r in e.results),
        streams=tuple(streams),
        stores=stores,
        offsets=tuple(starts),
        words=tile.gi * tile.gj * tile.gm * tile.gn,
        nodes=tuple(u for u in receivers for _ in range(parts)),
        acks=len(arriving) * acknowledgements(tile.gm * tile.gn),
        interleave=options.interleave,
        group=options.group,
        shifts=tuple(p * part for _ in receivers for p in range(parts)) if parts > 1 else (),
    )


def cannot_fuse(e: Elementwise, reason: str) -> CannotFuse:
    """The refusal of a fused epilogue, with both ways out."""
    return CannotFuse(
        f"epilogue into {', '.join(r.name for r in e.results)}: {reason}; choose another tile, or two stages "
        'with the tile in memory (fuse="auto")'
    )
