# SPDX-License-Identifier: Apache-2.0
"""Bands to unit work: the address of every operand chunk, result tile and walk, one list a unit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import (
    TILE_BUFFER,
    Drain,
    Move,
    Pass,
    Sweep,
    TileWork,
    UnitProgram,
    unit_program,
    vector_program,
)
from kohakutpu.program.relayout import relayout_program
from kohakutpu.schedule.blocks import entries
from kohakutpu.schedule.drained_rows import row_place
from kohakutpu.schedule.drains import DrainBand
from kohakutpu.schedule.ir import AnyBand, Band, Product, Schedule, VectorBand
from kohakutpu.schedule.lanes import work_of
from kohakutpu.schedule.layout import MxEntry, Tile, from_key
from kohakutpu.schedule.rearrange import moved
from kohakutpu.schedule.relayout import RelayoutBand
from kohakutpu.schedule.requantise import Blank, Rearranged, Region, ToRows, blank, moves

LAYER = "L2"

Instance = tuple[int, ...]


def emit(schedule: Schedule, machine: MachineSpec) -> list[list[UnitProgram]]:
    """Unit programs of every band.

    Returns:
        per band, one program a unit that has work, in unit order.

    Raises:
        CompileError: a buffer whose byte order the cluster cannot read or write.
        HazardError: the emitter broke its own rule.
    """
    bands = []
    for band, dealt in zip(schedule.bands, schedule.dealt, strict=True):
        units: dict[int, list[Instance]] = {}
        for instance, unit in dealt:
            units.setdefault(unit, []).append(instance)
        bands.append([_program(band, schedule, machine, unit, units[unit]) for unit in sorted(units)])
    return bands


def emit_moves(schedule: Schedule, machine: MachineSpec) -> list[list[Move]]:
    """Mover passes before every band, in order, and behind the last one."""
    out: list[list[Move]] = [[] for _ in (*schedule.bands, None)]
    for c in schedule.conversions:
        value = _region(schedule, c.value)
        if isinstance(c, Blank):
            out[c.band] += blank(value)
            continue
        if isinstance(c, Rearranged):
            out[c.band].append(moved(value, _region(schedule, c.target), c.read))
            continue
        rows = _region(schedule, c.rows) if c.rows else None
        if isinstance(c, ToRows):
            out[c.band] += moves(value, rows, _region(schedule, c.target), machine, c.window)
        else:
            out[c.band] += moves(value, rows, _region(schedule, c.operand), machine)
    return out


def _region(schedule: Schedule, name: str) -> Region:
    b = schedule.buffers[name]
    return Region(b.address, b.layout, b.shape)


def _program(
    band: AnyBand, schedule: Schedule, machine: MachineSpec, unit: int, instances: list[Instance]
) -> UnitProgram:
    if isinstance(band, RelayoutBand):
        source, target = (schedule.buffers[n].address for n in (*band.reads, *band.writes))
        relaid = band.work(tuple(number for number, _ in instances), source, target)
        return relayout_program(unit, relaid, machine, schedule.pass_budget)
    if isinstance(band, DrainBand):
        drains = tuple(_drain(band, schedule, machine, key) for key in instances)
        return UnitProgram(band.engine, unit, (Pass(drains),))
    if isinstance(band, VectorBand):
        numbers = [number for number, _ in instances]
        runs = _bases(band, schedule, numbers)
        shifts = tuple(band.shifts[i] for i in numbers) if band.shifts else ()
        work = work_of(band, runs, shifts, ends=numbers[-1] == len(band.offsets) - 1)
        return vector_program(unit, work, machine, schedule.pass_budget)
    return unit_program(band.engine, unit, _sweep(band, schedule, machine, instances), machine, schedule.pass_budget)


def _bases(band: VectorBand, schedule: Schedule, instances: Sequence[int]) -> npt.NDArray[np.int64]:
    """Address of every fill and drain, an instance each."""
    moved = [s.name for s in band.streams if s.fill is not None] + [s.name for s in band.stores]
    first = np.array([schedule.buffers[name].address for name in moved], dtype=np.int64)
    return first + band.offsets[list(instances)]


def _sweep(band: Band, schedule: Schedule, machine: MachineSpec, instances: list[Instance]) -> Sweep:
    tiles = [_tile(band, schedule, machine, key, slot) for key in instances for slot in range(len(band.products))]
    t = band.tiling
    resident = len(band.products) == 1 and band.products[0].b in band.resident
    return Sweep(t.gm, t.gn, t.nk, tuple(tiles), resident, band.emit_fuse, bool(band.kept))


def _tile(band: Band, schedule: Schedule, machine: MachineSpec, key: Instance, slot: int) -> TileWork:
    """One tile of one product; ``slot`` counts the products of an instance."""
    product = band.products[slot]
    a, b = (schedule.buffers[n] for n in (product.a, product.b))
    if not all(isinstance(from_key(buffer.layout), MxEntry) for buffer in (a, b)):
        raise CompileError(f"a product reads mx entries, got {a.name} {a.layout}, {b.name} {b.layout}")
    pitch = 0
    if band.rows:
        result, pitch = row_place(schedule.buffers[product.c], product.c_window, band.tiling, key[0], key[1])
        to = ""
    else:
        result, to = _result(band, schedule, machine, product, key, slot)
    first = tuple(entries(band, product, (a.shape, b.shape), key))
    return TileWork(
        a=tuple(a.address + machine.mx_entry_bytes * at for at, _ in first),
        b=tuple(b.address + machine.mx_entry_bytes * at for _, at in first),
        result=result,
        to=to,
        pitch=pitch,
    )


def _result(
    band: Band, schedule: Schedule, machine: MachineSpec, product: Product, key: Instance, slot: int
) -> tuple[int, str]:
    """Where a tile goes: (byte address, "") in memory, or (byte offset, unit)."""
    mo, no, *ko = key
    if band.kept:
        return 0, ""
    if band.delivery is not None:
        receiver = band.delivery.cores[no * band.grid[0] + mo]
        slot = slot * band.split + (ko[0] if ko else 0)
        return machine.word_bytes * band.delivery.span * slot, f"VC{receiver}"
    return _place(schedule, machine, product.partials[ko[0]] if ko else product.c, mo, no), ""


def _place(schedule: Schedule, machine: MachineSpec, name: str, mo: int, no: int) -> int:
    """Byte address of a tile of a buffer."""
    buffer = schedule.buffers[name]
    order = from_key(buffer.layout)
    if not isinstance(order, Tile):
        raise CompileError(f"a product writes tiles, got {buffer.name} {buffer.layout}")
    return buffer.address + machine.word_bytes * order.word_index(mo, no)


def _drain(band: DrainBand, schedule: Schedule, machine: MachineSpec, key: Instance) -> Drain:
    """How a kept tile leaves its cluster."""
    if not band.to:
        return Drain(band.subtiles, _place(schedule, machine, band.writes[0], key[0], key[1]))
    to = band.to[band.keys.index((key[0], key[1], key[2]))]
    if band.adds:
        return Drain(band.subtiles, to=to, buf=TILE_BUFFER)
    return Drain(band.subtiles, machine.word_bytes * band.span * band.slot, to=to)


def arrivals(schedule: Schedule) -> list[dict[tuple[str, int], int]]:
    """Per band, the burst acknowledgements of each receiver its first round waits for (docs/spec/fabric.md 8.1)."""
    out: list[dict[tuple[str, int], int]] = []
    before: AnyBand | None = None
    for band in schedule.bands:
        waits = dict(before.receipts) if isinstance(before, DrainBand) else {}
        if isinstance(band, VectorBand) and band.acks:
            waits |= {("VC", unit): band.acks for unit in band.nodes}
        out.append(waits)
        before = band
    return out
