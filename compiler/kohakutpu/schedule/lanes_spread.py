# SPDX-License-Identifier: Apache-2.0
"""Passes with periodic reads and results that are parts of a buffer (docs/spec/compiler.md 9.4 and 11, Spread)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import gcd

import numpy as np

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Walk
from kohakutpu.schedule.ir import Elementwise, Target, VectorBand
from kohakutpu.schedule.lanes_choice import BATCH_WORDS, Division, LaneOptions, band_of, name_of, place, roomy
from kohakutpu.schedule.lanes_nest import Nest, operand_nest, region, result_nest, walk

LAYER = "L2"


@dataclass(frozen=True)
class _Pass:
    """A pass in words: its length, the words of a row it folds (0: none), and where every operand and result lies."""

    e: Elementwise
    total: int
    row: int
    reads: tuple[Nest, ...]
    writes: tuple[Nest, ...]
    targets: tuple[Target | None, ...]

    @property
    def nests(self) -> tuple[Nest, ...]:
        """All of them, operands first."""
        return self.reads + self.writes


def spread_band(
    e: Elementwise,
    machine: MachineSpec,
    cores: int,
    options: LaneOptions,
    parents: Mapping[str, tuple[int, int]] | None = None,
) -> VectorBand:
    """A pass over values in memory that reads and writes exactly the words it states.

    Every RUN but the last covers equally many words, whole periods of each periodic read or a part of one. The last
    one may be shorter; its walks are.

    Args:
        parents: shapes of the buffers that results are parts of.

    Raises:
        CompileError: a read or part that no division of the pass fits, naming it, or a chain that does not fit.
    """
    given = parents or {}
    m, n = e.shape
    row = _row(e, machine) if e.chain.folds else 0
    results = [result_nest(e, r, given.get(r.of), machine) for r in e.results]
    reads = tuple(operand_nest(e, k, machine) for k in range(len(e.operands)))
    work = _Pass(
        e, cdiv(m * n, machine.slices), row, reads, tuple(nest for nest, _ in results), tuple(t for _, t in results)
    )

    loads = sum(nest.dims == ((work.total, 1),) for nest in reads)

    def divide(batch: int) -> Iterator[Division]:
        for words, step in _sizes(work, batch, machine):
            make = partial(_divided, work, words, step, machine, options)
            yield Division(cdiv(work.total, words), cdiv(words, step), step, loads, make)

    return roomy(divide, min(BATCH_WORDS, work.total), e, machine, cores, ("spread", options, work.targets))


def _row(e: Elementwise, machine: MachineSpec) -> int:
    """Words of a row that is reduced."""
    n = e.shape[1]
    if n % machine.slices or n > machine.vlmax:
        raise CompileError(
            f"{name_of(e)}: rows of {n} elements are reduced; one reduction takes a multiple of {machine.slices} and "
            f"at most {machine.vlmax}, pad the row or reduce rows of a divisor first"
        )
    return n // machine.slices


def _sizes(work: _Pass, batch: int, machine: MachineSpec) -> Iterator[tuple[int, int]]:
    """(words of a RUN, words of a step) to try, the fewest RUNs first; for a number of RUNs the fewest words."""
    longest = machine.vlmax // machine.slices
    inner = gcd(*(nest.dims[0][0] for nest in work.nests), work.total)
    steps = {work.row} if work.row else {longest, max(d for d in range(1, longest + 1) if inner % d == 0)}
    for step in sorted(steps, reverse=True):
        fewest: dict[int, int] = {}
        for words in range(batch, min(machine.vc_walk_max, work.total) + 1):
            ragged = words % step and words != work.total and (work.row or batch > 1)
            if not ragged and _fits(work, words):
                fewest.setdefault(cdiv(work.total, words), words)
        yield from ((words, step) for words in sorted(fewest.values(), reverse=True))


def _fits(work: _Pass, words: int) -> bool:
    """True if every nest has one shape for all RUNs, and one for the rest."""
    rest = work.total % words
    return all(n.cut(words) is not None and (not rest or n.head(rest) is not None) for n in work.nests)


def _divided(
    work: _Pass, words: int, step: int, machine: MachineSpec, options: LaneOptions, runs: int
) -> VectorBand:
    """The first ``runs`` RUNs of ``words`` words."""
    rest = work.total % words
    cuts = [n.cut(words) or () for n in work.nests]
    regions = [region(cut, step, machine) for cut in cuts]
    fills, drains = regions[: len(work.reads)], regions[len(work.reads) :]
    names = [r.of or r.name for r in work.e.results]
    starts = np.stack([machine.word_bytes * n.at(np.arange(runs) * words) for n in work.nests], axis=1)
    short: tuple[Walk, ...] = ()
    if rest:
        heads = [n.head(rest) or () for n in work.nests]
        # where a region holds repeated words once, its walk leaves the repetitions out
        kept = [
            tuple(d for d in head if d[1]) if r.walk.words < words else head
            for head, r in zip(heads, regions, strict=True)
        ]
        short = tuple(walk(dims, machine) for dims in kept)
    return band_of(
        work.e,
        "spread",
        place(work.e, fills, drains, names),
        step * machine.slices,
        starts,
        work.total,
        options,
        short,
        work.targets if any(work.targets) else (),
    )
