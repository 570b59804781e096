# SPDX-License-Identifier: Apache-2.0
"""Conversions between byte orders of FP16 buffers on the vector cores (docs/spec/compiler.md 6.1, 7.2, 7.3).

``relayout_band(from, order, to, order, shape, machine, cores)`` plans one conversion, out of place, as a band of its
own. What a planner has to know of it:

* It goes into ``Schedule.bands`` where a VectorBand would go, is dealt like one (``instances()``), and ends in a
  barrier like one. ``reads`` and ``writes`` name one buffer each; they must not overlap.
* Both buffers have ``order.nbytes(shape)`` bytes at ``schedule.buffers[name].address``; a Flat buffer with a pitch has
  2 * pitch * rows. Words between the rows, the halo of an image, and rows or columns the source holds beyond the
  target are not touched.
* The target's padding comes from the source, so a source has to hold it: ``CompileError`` says how to allocate it.
  Rows that take a whole tile have the tile's padded extents, as for the mover (schedule/conversion.py).
* Infinities, quiet NaNs, -0 and subnormals keep their bits. Granules pass through registers, where a signalling NaN
  becomes quiet, and where a machine without ``vshuf_pred`` also loses the sign of a zero and the payload of a NaN
  (``exact`` is False); a permutation of words touches no bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from kohakutpu.errors import CompileError, CoverageError
from kohakutpu.ints import cdiv, up
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Walk, check_footprint
from kohakutpu.program.relayout import GROUP, RelayoutWork, footprint, relayout_cost
from kohakutpu.schedule.layout import ByteOrder, Entry, Flat, MxEntry, Shape, Tile
from kohakutpu.schedule.layout_conv import ConvEntry, Image
from kohakutpu.schedule.relayout_walks import I64, LANES, Matrix, Side, divisors, walk
from kohakutpu.walks import WORD_BYTES

LAYER = "L2"

_PAYLOAD_CYCLES = 24
_RUN_CYCLES = 128
"""As for every other vector pass (schedule/lanes_choice.py): dispatch of a payload, and of a RUN beside its kernel."""


@dataclass(frozen=True)
class RelayoutBand:
    """A conversion of one buffer by the vector cores; an instance is one RUN over a rectangle of the matrix.

    Args:
        granules: the 4x4 granules of every four words are transposed (7.3); else whole words move (7.2).
        exact: every code but a signalling NaN keeps its bits.
        source, target: keys of the two byte orders.
        extents: rows and columns that are moved.
        reads, writes: the two buffers.
        fill, drain: walks of a RUN over source and target, common to all instances.
        offsets: per instance, the byte offset of its fill and of its drain in their buffers.
    """

    granules: bool
    exact: bool
    source: str
    target: str
    extents: Shape
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    fill: Walk
    drain: Walk
    offsets: tuple[tuple[int, int], ...]
    nodes: tuple[int, ...] = ()
    acks: int = 0
    engine: str = "VC"
    role: str = "relayout"

    @property
    def words(self) -> int:
        """Words all instances write."""
        return len(self.offsets) * self.drain.words

    def instances(self) -> Iterator[tuple[int, ...]]:
        """(number, 0) in order."""
        yield from ((i, 0) for i in range(len(self.offsets)))

    def work(self, instances: tuple[int, ...], source: int, target: int) -> RelayoutWork:
        """Some instances as work of one core, the buffers at two byte addresses."""
        runs = tuple((source + self.offsets[i][0], target + self.offsets[i][1]) for i in instances)
        return RelayoutWork(self.granules, self.fill, self.drain, runs)

    def text(self) -> str:
        """One printed line."""
        m, n = self.extents
        kind = "granules" if self.granules else "words"
        return (
            f"band {self.engine} {self.source} -> {self.target} {m}x{n} form={kind} instances={len(self.offsets)} "
            f"words={self.drain.words} fill={_dims(self.fill)} drain={_dims(self.drain)} reads={','.join(self.reads)} "
            f"writes={','.join(self.writes)} role={self.role}" + ("" if self.exact else " merge=select")
        )


def _dims(walk: Walk) -> str:
    return ",".join(f"{bound}*{stride}" for stride, bound in walk.dims)


def relayout_band(
    name_from: str,
    order_from: ByteOrder | ConvEntry,
    name_to: str,
    order_to: ByteOrder | ConvEntry,
    shape: Shape,
    machine: MachineSpec,
    cores: int,
    *,
    pitch_from: int = 0,
    pitch_to: int = 0,
    image: Image = (0, 0, 0),
    run_words: int = 0,
) -> RelayoutBand:
    """The band that rewrites a matrix of ``shape`` in another byte order.

    Args:
        cores: vector cores it is dealt over; only the division into RUNs depends on it.
        pitch_from, pitch_to: elements from row to row of a Flat buffer, 0 for its columns.
        image: height, width, channels where an order is a ConvEntry.
        run_words: at most so many words a RUN; 0 for the limits of the core.

    Raises:
        CompileError: naming both orders and the reason: an order no core reads or writes, padding the source does not
            hold, rows that are no whole words, or no walk of four dimensions.
    """
    sides = []
    for order, pitch in ((order_from, pitch_from), (order_to, pitch_to)):
        if not isinstance(order, Flat | Entry | Tile | ConvEntry):
            mx = isinstance(order, MxEntry)
            reason = "MXFP7 is quantised by a move and never read back" if mx else "no core rewrites this order"
            raise _refused(order_from, order_to, f"{order.key}: {reason}; convert the FP16 buffer before it")
        sides.append(Matrix(order, shape, pitch, image))
    source, target = sides
    try:
        source.check()
        target.check()
    except CompileError as err:
        raise _refused(order_from, order_to, str(err)) from err
    granules = source.tiled != target.tiled
    extents = _extents(source, target, granules)
    found = _best(source, target, extents, granules, machine, cores, run_words)
    if found is None:
        raise _refused(
            order_from,
            order_to,
            f"no walk of {machine.vc_dims} dimensions covers equal rectangles of {extents[0]}x{extents[1]}; choose a "
            "tiling whose sub-tiles or entries nest",
        )
    fill, drain, offsets = found
    band = RelayoutBand(
        granules=granules,
        exact=not granules or "vshuf_pred" in machine.features,
        source=order_from.key,
        target=order_to.key,
        extents=extents,
        reads=(name_from,),
        writes=(name_to,),
        fill=fill,
        drain=drain,
        offsets=offsets,
    )
    covered(band, Side.of(target, extents, granules))
    return band


def _refused(a: ByteOrder | ConvEntry, b: ByteOrder | ConvEntry, reason: str) -> CompileError:
    return CompileError(f"{a.key} -> {b.key}: {reason}")


def _extents(source: Matrix, target: Matrix, granules: bool) -> Shape:
    """What is moved: everything the target holds.

    Raises:
        CompileError: the source does not hold it, or it ends inside a word or a granule array.
    """
    need, have = target.held, source.held
    if need[0] > have[0] or need[1] > have[1]:
        raise _refused(
            source.order,
            target.order,
            f"the target holds {need[0]}x{need[1]} with its padding, the source {have[0]}x{have[1]}; allocate the "
            "source padded and zeroed",
        )
    rows = GROUP if source.tiled or target.tiled else 1
    cols = GROUP if source.tiled and target.tiled else LANES
    if need[0] % rows or need[1] % cols:
        what = "granules are transposed in arrays of" if granules else "words hold"
        raise _refused(
            source.order,
            target.order,
            f"{need[0]}x{need[1]} elements; {what} {rows}x{cols}, allocate {up(need[0], rows)}x{up(need[1], cols)}",
        )
    return need


def _best(
    source: Matrix, target: Matrix, extents: Shape, granules: bool, machine: MachineSpec, cores: int, most: int
) -> tuple[Walk, Walk, tuple[tuple[int, int], ...]] | None:
    """Walks and offsets of the cheapest division into equal rectangles."""
    a, b = (Side.of(m, extents, granules) for m in (source, target))
    unit = GROUP if granules else 1
    limit = min(most or machine.vc_walk_max, machine.vc_walk_max) // unit
    units = len(a.rows), len(a.cols)
    shapes = [(r, c) for r in divisors(units[0], limit) for c in divisors(units[1], limit // r)]
    prices = {
        size: _price(unit * size, units[0] * units[1] // size, granules, machine, cores)
        for size in {r * c for r, c in shapes}
        if _fits(unit * size, granules, machine)
    }
    priced = sorted((prices[r * c], -r * c, r, c) for r, c in shapes if r * c in prices)
    for _, same in groupby(priced, key=lambda p: p[0]):
        found = [w for _, _, r, c in same for w in _walks(a, b, r, c, machine)]
        if found:
            fill, drain, (r, c) = min(found, key=lambda f: (_jumps(f[0]) + _jumps(f[1]), len(f[0].dims + f[1].dims)))
            return fill, drain, tuple(zip(a.starts(r, c), b.starts(r, c), strict=True))
    return None


def _walks(a: Side, b: Side, rows: int, cols: int, machine: MachineSpec) -> Iterator[tuple[Walk, Walk, Shape]]:
    """Fill, drain and the rectangle, for both orders of its units, where a descriptor can make both."""
    if a.repeats(rows, cols) and b.repeats(rows, cols):
        for by_rows in (True, False):
            fill, drain = (walk(s.words(rows, cols, by_rows), machine) for s in (a, b))
            if fill is not None and drain is not None:
                yield fill, drain, (rows, cols)


def _jumps(walk: Walk) -> int:
    """Places where the walk does not go on to the next word, each the start of another burst."""
    stride, bound = walk.dims[0]
    return walk.words // bound if stride == WORD_BYTES else walk.words


def _fits(words: int, granules: bool, machine: MachineSpec) -> bool:
    try:
        check_footprint(footprint(words, granules, machine), machine)
    except CompileError:
        return False
    return True


def _price(words: int, runs: int, granules: bool, machine: MachineSpec, cores: int) -> int:
    """Modelled cycles of dispatch and of the busiest core; only differences between divisions count."""
    plain = Walk.run(words, machine.word_bytes)
    before, first, later = relayout_cost(RelayoutWork(granules, plain, plain, ()), machine)
    used = min(runs, cores)
    busiest = cdiv(runs, used)
    return _PAYLOAD_CYCLES * (used * before + 3 * runs) + first + (busiest - 1) * later + busiest * _RUN_CYCLES


def covered(band: RelayoutBand, target: Side) -> None:
    """Require that the instances write every word of the matrix in the target exactly once (5.2).

    Raises:
        CoverageError: naming the buffer and the first word.
    """
    (name,) = band.writes
    every = (target.rows[:, None, :, None] + target.cols[None, :, None, :]).reshape(-1)
    want: I64 = np.sort(every)
    at: I64 = np.zeros(1, dtype=np.int64)
    for stride, bound in band.drain.dims:
        at = (np.arange(bound, dtype=np.int64)[:, None] * stride + at[None, :]).reshape(-1)
    starts = np.array([o[1] for o in band.offsets], dtype=np.int64)
    got: I64 = np.sort((starts[:, None] + at[None, :]).reshape(-1))
    if (np.diff(got) == 0).any():
        raise CoverageError(f"OVERLAP: {name} byte {int(got[:-1][np.diff(got) == 0][0])} is written twice")
    if not np.array_equal(got, want):
        missing = np.setxor1d(got, want)
        raise CoverageError(f"GAP: {name} byte {int(missing[0])} is written outside the matrix or never")
