# SPDX-License-Identifier: Apache-2.0
"""Passes over contiguous images and over rows (docs/spec/compiler.md 9.4)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Walk
from kohakutpu.schedule.ir import Elementwise, VectorBand
from kohakutpu.schedule.lanes_choice import (
    BATCH_WORDS,
    Division,
    LaneOptions,
    Region,
    band_of,
    divisions,
    name_of,
    place,
    require_whole,
    roomy,
)

LAYER = "L2"


def flat_band(e: Elementwise, words: int, machine: MachineSpec, cores: int, options: LaneOptions) -> VectorBand:
    """A pass over a contiguous image of ``words`` words that every operand and result shares, in steps of vlmax.

    Steps are divided evenly over RUNs, and the image is padded to whole RUNs.

    Raises:
        CompileError: a chain that does not fit a core.
    """
    require_whole(e)
    step = machine.vlmax // machine.slices
    total = cdiv(words, step)

    def divide(batch: int) -> Iterator[Division]:
        for steps, runs in divisions(total, batch):
            if steps * step <= machine.vc_walk_max:
                make = partial(_flat, e, steps, step, machine, options)
                yield Division(runs, steps, step, len(e.operands), make)

    return roomy(divide, BATCH_WORDS // step, e, machine, cores, ("flat", options))


def _flat(e: Elementwise, steps: int, step: int, machine: MachineSpec, options: LaneOptions, runs: int) -> VectorBand:
    bw = steps * step
    offsets = tuple(step * s for s in range(steps))
    region = Region(bw, offsets, Walk.run(bw, machine.word_bytes))
    streams, stores = place(e, [region] * len(e.operands), [region] * len(e.results))
    moved = len(e.operands) + len(e.results)
    starts = [(machine.word_bytes * bw * r,) * moved for r in range(runs)]
    return band_of(e, "flat", (streams, stores), machine.vlmax, starts, runs * bw, options)


def row_band(e: Elementwise, machine: MachineSpec, cores: int, options: LaneOptions) -> VectorBand:
    """A pass over rows: rows are reduced, or an operand has one row that all rows read.

    Raises:
        CompileError: rows that are no whole words, that are too long to reduce, or a chain that does not fit.
    """
    require_whole(e)
    m, n = e.shape
    if n % machine.slices:
        raise CompileError(
            f"{name_of(e)}: rows of {n} elements; a row that is reduced or shares an operand has a multiple of "
            f"{machine.slices}, pad it"
        )
    if e.chain.folds and n > machine.vlmax:
        raise CompileError(
            f"{name_of(e)}: rows of {n} elements are reduced; one reduction takes at most {machine.vlmax}, "
            "reduce rows of a divisor first"
        )
    row = n // machine.slices
    longest = machine.vlmax // machine.slices
    step = max(d for d in range(1, longest + 1) if row % d == 0)
    loads = sum(not e.channel(o) for o in e.operands)

    def divide(batch: int) -> Iterator[Division]:
        for rows, runs in divisions(m, batch):
            if rows * row <= machine.vc_walk_max:
                make = partial(_rows, e, rows, row, step, machine, options)
                yield Division(runs, rows * row // step, step, loads, make)
        for parts in range(2, row // step + 1):
            if (row // step) % parts == 0 and not e.chain.folds:
                make = partial(_row_parts, e, m, row, row // parts, step, machine, options)
                yield Division(m * parts, row // parts // step, step, loads, make)

    return roomy(divide, cdiv(BATCH_WORDS, row), e, machine, cores, ("rows", options))


def _rows(
    e: Elementwise, rows: int, row: int, step: int, machine: MachineSpec, options: LaneOptions, runs: int
) -> VectorBand:
    bw = rows * row
    offsets = tuple(step * s for s in range(bw // step))
    shared = tuple(o % row for o in offsets)
    full = Region(bw, offsets, Walk.run(bw, machine.word_bytes))
    channel = Region(row, shared, Walk.run(row, machine.word_bytes))
    places = [channel if e.channel(o) else full for o in e.operands]
    streams, stores = place(e, places, [full] * len(e.results))
    moves = [not e.channel(o) for o in e.operands] + [True] * len(e.results)
    starts = [tuple(machine.word_bytes * bw * r * moved for moved in moves) for r in range(runs)]
    return band_of(e, "rows", (streams, stores), step * machine.slices, starts, runs * bw, options)


def _row_parts(
    e: Elementwise, m: int, row: int, bw: int, step: int, machine: MachineSpec, options: LaneOptions, runs: int
) -> VectorBand:
    offsets = tuple(step * s for s in range(bw // step))
    full = Region(bw, offsets, Walk.run(bw, machine.word_bytes))
    streams, stores = place(e, [full] * len(e.operands), [full] * len(e.results))
    starts = [
        tuple(machine.word_bytes * (w % row if e.channel(o) else w) for o in e.operands)
        + (machine.word_bytes * w,) * len(e.results)
        for w in range(0, runs * bw, bw)
    ]
    return band_of(e, "rows", (streams, stores), step * machine.slices, starts, m * row, options)
