# SPDX-License-Identifier: Apache-2.0
"""Which division of a pass into RUNs is taken, and what every form of band shares (docs/spec/compiler.md 9.4)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError, CoverageError, EncodeError
from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import MX_WORDS, LaneWork, Runs, Store, Stream, Walk, run_cost, shortened
from kohakutpu.program.vector_registers import order_of
from kohakutpu.schedule.cover import check_intervals
from kohakutpu.schedule.ir import Elementwise, Target, VectorBand

LAYER = "L2"

BATCH_WORDS = 64
"""A RUN moves at least 1,024 elements of an operand if there are as many."""

_PAYLOAD_CYCLES = 24
"""Cycles to stage, dispatch and retire one payload (25 measured on mm_mesh, most of them the host's), and ..."""
_RUN_CYCLES = 128
"""... of a RUN beside its kernel: the round trip of its fills and the acknowledgement of its drains."""


@dataclass(frozen=True)
class LaneOptions:
    """Choices that change no result: alternating steps (0 = as many as fit) and words of a chain group."""

    interleave: int = 0
    group: int = 1


@dataclass(frozen=True)
class Region:
    """A region of L1 before it has a place: its words, the word every step starts at, and the walk of a RUN."""

    words: int
    offsets: tuple[int, ...]
    walk: Walk


def name_of(e: Elementwise) -> str:
    """How messages call a pass."""
    return f"elementwise pass into {', '.join(r.name for r in e.results)}"


def require_whole(e: Elementwise) -> None:
    """Refuse what only a pass over words in memory can have: periodic reads, and results that are parts.

    Raises:
        CompileError: naming the first of them.
    """
    odd = [f"{o.name} is read as {s.text()}" for o, s in zip(e.operands, e.reads, strict=False) if s]
    odd += [f"{r.name} is a part of {r.of}" for r in e.results if r.of]
    if odd:
        raise CompileError(
            f"{name_of(e)}: {odd[0]}, but the pass runs over whole buffers or tiles of a product; store the product "
            "and give the periodic read or the part a pass of its own"
        )


# -------------------------------------------------------------------- bands


def work_of(
    band: VectorBand, runs: Runs, shifts: tuple[int, ...] = (), *, ends: bool = False
) -> LaneWork:
    """The band as work of one core, with the addresses of every RUN and how far its moving streams are.

    Args:
        ends: the last of ``runs`` is the last instance of the band, which may be shorter.
    """
    short = band.short if ends else ()
    kept = band.interleave, band.group
    return LaneWork(band.chain, band.vl, band.streams, band.stores, runs, *kept, shifts, short, band.stride)


def place(
    e: Elementwise, fills: Sequence[Region], drains: Sequence[Region], targets: Sequence[str] = ()
) -> tuple[tuple[Stream, ...], tuple[Store, ...]]:
    """Regions one after another: operands, then results; ``targets`` are the buffers results go to."""
    at = 0
    streams = []
    for operand, r in zip(e.operands, fills, strict=True):
        streams.append(Stream(operand.name, at, r.words, r.offsets, r.walk))
        at += r.words
    stores = []
    for name, r in zip(targets or [result.name for result in e.results], drains, strict=True):
        stores.append(Store(name, at, r.words, r.offsets, r.walk))
        at += r.words
    return tuple(streams), tuple(stores)


def band_of(
    e: Elementwise,
    form: str,
    regions: tuple[tuple[Stream, ...], tuple[Store, ...]],
    vl: int,
    starts: npt.ArrayLike,
    words: int,
    options: LaneOptions,
    short: tuple[Walk, ...] = (),
    targets: tuple[Target | None, ...] = (),
) -> VectorBand:
    """A band of ``form``; ``starts`` are the byte offsets of every fill and drain, an instance each."""
    return VectorBand(
        chain=e.chain,
        form=form,
        extents=e.shape,
        vl=vl,
        reads=tuple(o.name for o in e.operands),
        writes=tuple(s.name for s in regions[1]),
        streams=regions[0],
        stores=regions[1],
        offsets=np.asarray(starts, dtype=np.int64),
        words=words,
        interleave=options.interleave,
        group=options.group,
        short=short,
        targets=targets,
    )


def finished(band: VectorBand, machine: MachineSpec) -> VectorBand:
    """The band, proven to write its results exactly once, with the reach of its operands.

    Raises:
        CoverageError: see :func:`covered`.
    """
    covered(band, machine)
    return replace(band, reach=_reach(band, machine))


def _reach(band: VectorBand, machine: MachineSpec) -> tuple[int, ...]:
    out = []
    column = 0
    for s in band.streams:
        if s.fill is None:
            out.append(0)
            continue
        ends = band.offsets[:, column] + s.fill.span
        if band.short:
            ends[-1] = band.offsets[-1, column] + band.short[column].span
        out.append(int(ends.max()) // machine.word_bytes + 1)
        column += 1
    return tuple(out)


def covered(band: VectorBand, machine: MachineSpec) -> None:
    """Require that the instances write every word of every result exactly once, and of a parent only the part.

    A result that is quantised is counted in entries.

    Raises:
        CoverageError: naming the result and the first word or entry.
    """
    for k, store in enumerate(band.stores):
        column = k - len(band.stores)
        starts = band.offsets[:, column]
        walks = [store.drain] * len(starts)
        if band.short:
            walks[-1] = band.short[column]
        target = band.targets[k] if band.targets else None
        unit, what = (machine.mx_entry_bytes, "entry") if store.mx else (machine.word_bytes, "word")
        units = band.words // MX_WORDS if store.mx else band.words
        if target is None and all(w.contiguous(unit) for w in walks[-2:]):
            counts = np.full_like(starts, store.drain.words)
            counts[-1] = walks[-1].words
            check_intervals(store.name, units, np.stack([starts // unit, counts], axis=1))
            continue
        written = np.concatenate([s + w.places() for s, w in zip(starts, walks, strict=True)]) // unit
        wanted = np.arange(units) if target is None else target.words(machine.slices)
        _same_words(store.name, written, wanted, what)


def _same_words(name: str, written: npt.NDArray[np.int64], wanted: npt.NDArray[np.int64], what: str) -> None:
    words, times = np.unique(written, return_counts=True)
    foreign = np.setdiff1d(words, wanted)
    if foreign.size:
        raise CoverageError(f"OVERSHOOT: {name} {what} {foreign[0]} is no part of the result")
    if (times > 1).any():
        raise CoverageError(f"OVERLAP: {name} {what} {words[times > 1][0]} is written twice")
    missing = np.setdiff1d(wanted, words)
    if missing.size:
        raise CoverageError(f"GAP: {name} {what} {missing[0]} is never written")


# -------------------------------------------------------------------- choice


def cost_of(band: VectorBand, machine: MachineSpec, cores: int, runs: int = 0) -> int:
    """Modelled cycles of dispatch and of the busiest core; only differences between divisions count.

    Args:
        runs: RUNs of the whole band, where ``band`` has only some of them.

    Raises:
        CompileError: a limit of the core the band breaks.
    """
    furthest = (max(band.shifts),) if band.shifts else ()
    one = (tuple(0 for _ in band.offsets[0]),)
    work = work_of(band, one, furthest, ends=True)
    before, cycles = run_cost(work, machine)
    runs = runs or len(band.offsets)
    used = min(runs, cores)
    payloads = used * before + runs * (1 + len(band.offsets[0]) + len(furthest))
    payloads += sum(1 for _ in shortened(work, machine))
    return _PAYLOAD_CYCLES * payloads + cdiv(runs, used) * (cycles + _RUN_CYCLES)


@dataclass(frozen=True)
class Division:
    """One way to divide a pass into RUNs.

    Args:
        runs, steps: RUNs of the band, steps of a RUN.
        chunks: chunks of a step.
        loads: operands that every step loads, at the least.
        make: builds the band with so many of its RUNs.
    """

    runs: int
    steps: int
    chunks: int
    loads: int
    make: Callable[[int], VectorBand]

    def at_least(self, e: Elementwise, machine: MachineSpec, cores: int) -> int:
        """What :func:`cost_of` cannot be below: constants, changes of mode and single loads are left out."""
        moved = len(e.operands) + len(e.results)
        body = self.steps * (len(order_of(e.chain)) + len(e.results) + self.loads)
        around = 7 + moved + machine.vc_dims * moved
        used = min(self.runs, cores)
        payloads = used * (body + around) + self.runs * (1 + moved)
        return _PAYLOAD_CYCLES * payloads + cdiv(self.runs, used) * (self.chunks * body + _RUN_CYCLES)


_CHOSEN: dict[Hashable, int] = {}
"""Number of the division that was taken, by everything but names that the choice depends on."""
_CHOSEN_MAX = 4096


def best(
    candidates: Iterable[Division], e: Elementwise, machine: MachineSpec, cores: int, kind: Hashable
) -> VectorBand:
    """The cheapest band that fits, the first of equals.

    Divisions are priced in the order of their lower bounds until none can be cheaper. A pass like an earlier one takes
    the division of that one.

    Args:
        kind: the form of the pass, and whatever else ``make`` depends on beside ``e`` and the numbers of a division.

    Raises:
        CompileError: none does; the reason of the last, smallest one.
    """
    offered = list(candidates)
    numbers = tuple((d.runs, d.steps, d.chunks, d.loads) for d in offered)
    results = tuple((r.shape, r.window) for r in e.results)
    operands = tuple(o.shape for o in e.operands)
    # equal chains may differ in the sign of a zero, their texts do not
    key = (machine.digest(), cores, kind, e.chain.text(), e.chain, operands, results, e.reads, numbers)
    if key not in _CHOSEN:
        if len(_CHOSEN) >= _CHOSEN_MAX:
            _CHOSEN.clear()
        _CHOSEN[key] = _cheapest(offered, e, machine, cores)
    division = offered[_CHOSEN[key]]
    return finished(division.make(division.runs), machine)


def _cheapest(offered: Sequence[Division], e: Elementwise, machine: MachineSpec, cores: int) -> int:
    ranked = sorted((d.at_least(e, machine, cores), number) for number, d in enumerate(offered))
    found: tuple[int, int] | None = None
    refused: dict[int, str] = {}
    for least, number in ranked:
        if found and least > found[0]:
            break
        division = offered[number]
        try:
            cost = cost_of(division.make(1), machine, cores, division.runs)
        except EncodeError:
            raise
        except CompileError as err:
            refused[number] = str(err)
            continue
        found = (cost, number) if found is None else min(found, (cost, number))
    if found is None:
        raise CompileError(f"{name_of(e)}: {refused[max(refused)] if refused else 'it has no legal division'}")
    return found[1]


def roomy(
    divide: Callable[[int], Iterator[Division]],
    batch: int,
    e: Elementwise,
    machine: MachineSpec,
    cores: int,
    kind: Hashable,
) -> VectorBand:
    """The best division with whole batches a RUN, or if none fits the best with any number of steps."""
    try:
        return best(divide(batch), e, machine, cores, kind)
    except (CoverageError, EncodeError):
        raise
    except CompileError:
        return best(divide(1), e, machine, cores, kind)


def divisions(total: int, batch: int) -> Iterator[tuple[int, int]]:
    """(steps a RUN, RUNs) that divide ``total`` steps evenly, the fewest RUNs first; no RUN below a batch."""
    last = 0
    for runs in range(1, max(1, total // batch) + 1):
        steps = cdiv(total, runs)
        if steps != last:
            yield steps, cdiv(total, steps)
        last = steps
