# SPDX-License-Identifier: Apache-2.0
"""Bands to unit work: the address of every operand chunk, result tile and walk, one list a unit."""

from __future__ import annotations

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Move, Sweep, TileWork, UnitProgram, unit_program, vector_program
from kohakutpu.program.relayout import relayout_program
from kohakutpu.schedule.blocks import entries
from kohakutpu.schedule.ir import AnyBand, Band, Product, Schedule, VectorBand
from kohakutpu.schedule.lanes import work_of
from kohakutpu.schedule.layout import MxEntry, Tile, from_key
from kohakutpu.schedule.relayout import RelayoutBand
from kohakutpu.schedule.requantise import Region, ToRows, moves

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
        rows = _region(schedule, c.rows) if c.rows else None
        value = _region(schedule, c.value)
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
        moved = band.work(tuple(number for number, _ in instances), source, target)
        return relayout_program(unit, moved, machine, schedule.pass_budget)
    if isinstance(band, VectorBand):
        numbers = [number for number, _ in instances]
        runs = tuple(_bases(band, schedule, i) for i in numbers)
        shifts = tuple(band.shifts[i] for i in numbers) if band.shifts else ()
        work = work_of(band, runs, shifts, ends=numbers[-1] == len(band.offsets) - 1)
        return vector_program(unit, work, machine, schedule.pass_budget)
    return unit_program(band.engine, unit, _sweep(band, schedule, machine, instances), machine, schedule.pass_budget)


def _bases(band: VectorBand, schedule: Schedule, instance: int) -> tuple[int, ...]:
    """Address of every fill and drain of one instance."""
    moved = [s.name for s in band.streams if s.fill is not None] + [s.name for s in band.stores]
    offsets = band.offsets[instance]
    return tuple(schedule.buffers[name].address + at for name, at in zip(moved, offsets, strict=True))


def _sweep(band: Band, schedule: Schedule, machine: MachineSpec, instances: list[Instance]) -> Sweep:
    tiles = [_tile(band, schedule, machine, key, slot) for key in instances for slot in range(len(band.products))]
    t = band.tiling
    resident = len(band.products) == 1 and band.products[0].b in band.resident
    return Sweep(t.gm, t.gn, t.nk, tuple(tiles), resident, band.emit_fuse)


def _tile(band: Band, schedule: Schedule, machine: MachineSpec, key: Instance, slot: int) -> TileWork:
    """One tile of one product; ``slot`` counts the products of an instance."""
    product = band.products[slot]
    a, b = (schedule.buffers[n] for n in (product.a, product.b))
    if not all(isinstance(from_key(buffer.layout), MxEntry) for buffer in (a, b)):
        raise CompileError(f"a product reads mx entries, got {a.name} {a.layout}, {b.name} {b.layout}")
    result, to = _result(band, schedule, machine, product, key, slot)
    first = tuple(entries(band, product, (a.shape, b.shape), key))
    return TileWork(
        a=tuple(a.address + machine.mx_entry_bytes * at for at, _ in first),
        b=tuple(b.address + machine.mx_entry_bytes * at for _, at in first),
        result=result,
        to=to,
    )


def _result(
    band: Band, schedule: Schedule, machine: MachineSpec, product: Product, key: Instance, slot: int
) -> tuple[int, str]:
    """Where a tile goes: (byte address, "") in memory, or (byte offset, unit)."""
    mo, no, *ko = key
    if band.delivery is not None:
        receiver = band.delivery.cores[no * band.grid[0] + mo]
        return machine.word_bytes * band.delivery.span * slot, f"VC{receiver}"
    c = schedule.buffers[product.partials[ko[0]] if ko else product.c]
    order = from_key(c.layout)
    if not isinstance(order, Tile):
        raise CompileError(f"a product writes tiles, got {c.name} {c.layout}")
    return c.address + machine.word_bytes * order.word_index(mo, no), ""
