# SPDX-License-Identifier: Apache-2.0
"""Passes whose results leave as MXFP7 entries, quantised by the drain (docs/spec/compiler.md 9.4, vector.md 15).

An entry is four rows of two words, and its eight words lie one after another in L1. All regions of such a pass have
the words of a RUN in that order: fills and drains of rows permute them by their walks. A step is an entry, or a row
where rows are reduced, which loads and stores then walk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Store, Stream, Walk
from kohakutpu.schedule.ir import Elementwise, Target, VectorBand
from kohakutpu.schedule.lanes_choice import BATCH_WORDS, Division, LaneOptions, Region, band_of, name_of, place, roomy
from kohakutpu.schedule.lanes_nest import Nest, operand_nest, result_nest
from kohakutpu.schedule.layout import Entry, MxEntry

LAYER = "L2"

Words = npt.NDArray[np.int64]

ROWS = 4
"""Rows of an entry."""
PAIR = 2
"""Words of a row of an entry."""
ENTRY = ROWS * PAIR


@dataclass(frozen=True)
class _Pass:
    """A pass in words: extents of the padded image (rows, words of a row), and where operands and results lie.

    Args:
        orders: per result, the entries it is quantised to; None for words.
    """

    e: Elementwise
    rows: int
    row: int
    reads: tuple[Nest, ...]
    writes: tuple[Nest, ...]
    targets: tuple[Target | None, ...]
    orders: tuple[MxEntry | None, ...]


def entry_band(
    e: Elementwise,
    orders: tuple[MxEntry | None, ...],
    machine: MachineSpec,
    cores: int,
    options: LaneOptions,
    parents: Mapping[str, tuple[int, int]] | None = None,
) -> VectorBand:
    """A pass over rows, results of which are quantised by their drains.

    Args:
        orders: per result, the entries it is drained to; None for rows of FP16. Results of one value share a region.
        parents: shapes of the buffers that results are parts of.

    Raises:
        CompileError: rows or columns that do not fill the entries, a read or part without a walk of the dimensions a
            descriptor has, or a chain that does not fit.
    """
    given = parents or {}
    m, n = e.shape
    _check(e, orders, machine)
    results = [result_nest(e, r, given.get(r.of), machine) for r in e.results]
    reads = tuple(operand_nest(e, k, machine) for k in range(len(e.operands)))
    writes, targets = tuple(nest for nest, _ in results), tuple(t for _, t in results)
    work = _Pass(e, m, n // machine.slices, reads, writes, targets, orders)

    loads = sum(not e.channel(o) and not e.spread(k) for k, o in enumerate(e.operands))

    def divide(batch: int) -> Iterator[Division]:
        step = work.row if e.chain.folds else ENTRY
        for rows, cols in _sizes(work, batch, machine):
            if not _regular(work, rows, cols, machine):
                continue
            make = partial(_divided, work, rows, cols, machine, options)
            yield Division(cdiv(m, rows) * (work.row // cols), rows * cols // step, step, loads, make)

    return roomy(divide, min(BATCH_WORDS, m * work.row), e, machine, cores, ("entries", options, orders, targets))


def _check(e: Elementwise, orders: tuple[MxEntry | None, ...], machine: MachineSpec) -> None:
    m, n = e.shape
    for result, order in zip(e.results, orders, strict=True):
        if order is None:
            continue
        padded = Entry(order.g, order.b).padded(e.shape)
        if padded != e.shape:
            raise CompileError(
                f"{result.name} is {m}x{n}, its entries {order.key} are {padded[0]}x{padded[1]} with their padding; a "
                "drain quantises what the pass computes and no padding"
            )
        if result.of:
            raise CompileError(f"{result.name} is a part of {result.of}; a part is stored in rows")
    if e.chain.folds and n > machine.vlmax:
        raise CompileError(
            f"{name_of(e)}: rows of {n} elements are reduced; one reduction takes at most {machine.vlmax}, reduce rows "
            "of a divisor first"
        )


# -------------------------------------------------------------------- order of words


def entry_order(rows: int, cols: int, pitch: int) -> Words:
    """Words of ``rows`` x ``cols`` words of an image with rows of ``pitch`` words, as L1 holds them.

    >>> entry_order(4, 4, 4).tolist()
    [0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]
    """
    at = np.arange(rows, dtype=np.int64)[:, None] * pitch + np.arange(cols, dtype=np.int64)
    return at.reshape(rows // ROWS, ROWS, cols // PAIR, PAIR).transpose(0, 2, 1, 3).reshape(-1)


def entry_number(order: MxEntry, chunks: int) -> Callable[[Words], Words]:
    """Where entry w of a value, counted along its rows, lies in ``order``.

    Args:
        chunks: K blocks of a row.

    >>> entry_number(MxEntry(2, 1, "a"), 2)(np.arange(8)).tolist()
    [0, 2, 1, 3, 4, 6, 5, 7]
    """

    def at(numbers: Words) -> Words:
        group, block = numbers // chunks, numbers % chunks
        tile = group // order.g * (chunks // order.b) + block // order.b
        return (tile * order.g + group % order.g) * order.b + block % order.b

    return at


def fitted(places: Words, unit: int, machine: MachineSpec) -> Walk | None:
    """The walk over ``places`` of ``unit`` bytes each, None if a descriptor has too few dimensions."""
    dims: list[tuple[int, int]] = []
    rest = places - places[0]
    while len(rest) > 1:
        stride = int(rest[1])
        differs = np.flatnonzero(rest != stride * np.arange(len(rest)))
        number = int(differs[0]) if len(differs) else len(rest)
        if len(rest) % number:
            return None
        table = rest.reshape(-1, number)
        if (table != table[:, :1] + stride * np.arange(number)).any():
            return None
        dims.append((unit * stride, number))
        rest = table[:, 0]
    return Walk(tuple(dims) or ((unit, 1),)) if len(dims) <= machine.vc_dims else None


# -------------------------------------------------------------------- division


@dataclass(frozen=True)
class _Box:
    """``rows`` x ``cols`` words, the words of one RUN, of an image with rows of ``row`` words.

    Args:
        runs: RUNs in order, along the rows first.
        rest: rows of the last RUN of the band, 0 for as many as the others.
        last: the last of ``runs`` is the last RUN of the band.
    """

    rows: int
    cols: int
    row: int
    runs: int
    rest: int
    last: bool

    @property
    def heads(self) -> tuple[Words, Words]:
        """First row and first word of a row of every RUN."""
        number, across = np.arange(self.runs, dtype=np.int64), self.row // self.cols
        return number // across * self.rows, number % across * self.cols

    def words(self) -> tuple[Words, Words]:
        """First word of every RUN, and the words of a RUN relative to it as L1 holds them."""
        rows, cols = self.heads
        return rows * self.row + cols, entry_order(self.rows, self.cols, self.row)

    def entries(self) -> tuple[Words, Words]:
        """The same in entries, counted along the rows."""
        rows, cols = self.heads
        pitch = self.row // PAIR
        inside = np.arange(self.rows // ROWS, dtype=np.int64)[:, None] * pitch + np.arange(self.cols // PAIR)
        return rows // ROWS * pitch + cols // PAIR, inside.reshape(-1)


@dataclass(frozen=True)
class _Laid:
    """A region of L1, the byte every RUN starts at, and the walk of a last RUN of fewer rows."""

    region: Region
    starts: Words
    short: Walk


def _sizes(work: _Pass, batch: int, machine: MachineSpec) -> Iterator[tuple[int, int]]:
    """(rows, words of a row) of a RUN to try: whole rows, and where none are reduced parts of them."""
    fewest: dict[int, int] = {}
    for rows in range(ROWS, work.rows + 1, ROWS):
        if batch <= rows * work.row <= machine.vc_walk_max:
            fewest.setdefault(cdiv(work.rows, rows), rows)
    yield from ((rows, work.row) for rows in sorted(fewest.values(), reverse=True))
    if work.e.chain.folds:
        return
    tall = [rows for rows in range(ROWS, min(work.rows, machine.vc_walk_max) + 1, ROWS) if work.rows % rows == 0]
    for cols in range(work.row - PAIR, 0, -PAIR):
        if work.row % cols == 0:
            yield from ((rows, cols) for rows in tall if batch <= rows * cols <= machine.vc_walk_max)


def _regular(work: _Pass, rows: int, cols: int, machine: MachineSpec) -> bool:
    """True if every RUN finds its words and entries in one order."""
    groups, blocks = rows // ROWS, cols // PAIR
    for order in work.orders:
        if order and any(s % size and size % s for s, size in ((groups, order.g), (blocks, order.b))):
            return False
    box = _Box(rows, cols, work.row, cdiv(work.rows, rows) * (work.row // cols), work.rows % rows, True)
    odd = [(o, n.at) for k, (o, n) in enumerate(zip(work.e.operands, work.reads, strict=True)) if work.e.spread(k)]
    odd += [(r, n.at) for r, n in zip(work.e.results, work.writes, strict=True) if r.of]
    try:
        for o, at in odd:
            _laid(work.e, o.name, at, box, machine, drained=bool(o.of))
    except CompileError:
        return False
    return True


def _divided(work: _Pass, rows: int, cols: int, machine: MachineSpec, options: LaneOptions, runs: int) -> VectorBand:
    """The first ``runs`` RUNs of ``rows`` x ``cols`` words."""
    total = cdiv(work.rows, rows) * (work.row // cols)
    box = _Box(rows, cols, work.row, runs, work.rows % rows, runs == total)
    fills = [
        _laid(work.e, o.name, nest.at, box, machine) for o, nest in zip(work.e.operands, work.reads, strict=True)
    ]
    drains = []
    for r, nest, order in zip(work.e.results, work.writes, work.orders, strict=True):
        at = nest.at if order is None else entry_number(order, work.row // PAIR)
        drains.append(_laid(work.e, r.name, at, box, machine, drained=True, entries=order is not None))
    laid = [*fills, *drains]
    band = band_of(
        work.e,
        "entries",
        _regions(work, [f.region for f in fills], [d.region for d in drains]),
        (work.row if work.e.chain.folds else ENTRY) * machine.slices,
        np.stack([one.starts for one in laid], axis=1),
        work.rows * work.row,
        options,
        tuple(one.short for one in laid) if box.rest else (),
        work.targets if any(work.targets) else (),
    )
    return replace(band, stride=((1, PAIR), (ENTRY, cols // PAIR)) if work.e.chain.folds and cols > PAIR else ())


def _steps(e: Elementwise, box: _Box) -> Words:
    """The word every step starts at: an entry, or a row where rows are reduced."""
    if not e.chain.folds:
        return np.arange(0, box.rows * box.cols, ENTRY, dtype=np.int64)
    rows = np.arange(box.rows, dtype=np.int64)
    return rows // ROWS * ROWS * box.cols + PAIR * (rows % ROWS)


def _laid(
    e: Elementwise,
    name: str,
    at: Callable[[Words], Words],
    box: _Box,
    machine: MachineSpec,
    *,
    drained: bool = False,
    entries: bool = False,
) -> _Laid:
    """How RUNs move what ``at`` says of their words or entries; an operand that row groups share lies in L1 once.

    Raises:
        CompileError: RUNs that differ, or more dimensions than a descriptor has.
    """
    heads, inside = box.entries() if entries else box.words()
    unit = machine.mx_entry_bytes if entries else machine.word_bytes
    places = at(heads[:, None] + inside)
    relative = places - places[:, :1]
    rest = len(inside) * box.rest // box.rows
    whole = relative[:-1] if rest and box.last else relative
    if (whole != relative[0]).any() or (rest and box.last and (relative[-1, :rest] != relative[0, :rest]).any()):
        raise _shapeless(e, name, box, "runs find its words in different orders")
    group = ROWS * box.cols
    pattern, offsets, words = relative[0], _steps(e, box), box.rows * box.cols
    if not drained and (pattern.reshape(-1, group) == pattern[:group]).all():
        pattern, offsets, words, rest = pattern[:group], offsets % group, group, 0
    usual = fitted(pattern, unit, machine)
    short = fitted(pattern[:rest], unit, machine) if rest else usual
    if usual is None or short is None:
        raise _shapeless(e, name, box, f"its walk has more than {machine.vc_dims} dimensions")
    return _Laid(Region(words, tuple(offsets.tolist()), usual), unit * places[:, 0], short)


def _shapeless(e: Elementwise, name: str, box: _Box, why: str) -> CompileError:
    return CompileError(
        f"{name_of(e)}: {name} in entries, {box.rows} rows of {box.cols} words a run: {why}; store the pass in rows"
    )


def _regions(
    work: _Pass, fills: list[Region], drains: list[Region]
) -> tuple[tuple[Stream, ...], tuple[Store, ...]]:
    """Regions one after another; what is drained again keeps the region of the first."""
    streams, stores = place(work.e, fills, drains, [r.of or r.name for r in work.e.results])
    at = stores[0].l1
    first: dict[int, int] = {}
    made = []
    for store, node, order in zip(stores, work.e.chain.results, work.orders, strict=True):
        again = node in first
        if not again:
            first[node] = at
            at += store.words
        made.append(replace(store, l1=first[node], mx=order.side if order else "", again=again))
    return streams, tuple(made)
