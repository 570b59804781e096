# SPDX-License-Identifier: Apache-2.0
"""Bands to sweeps: the address of every operand chunk and result tile, one list a unit."""

from __future__ import annotations

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Sweep, TileWork, UnitProgram, unit_program
from kohakutpu.schedule.ir import Band, Schedule
from kohakutpu.schedule.layout import MxEntry, Tile, from_key

LAYER = "L2"


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
        units: dict[int, list[tuple[int, int]]] = {}
        for instance, unit in dealt:
            units.setdefault(unit, []).append(instance)
        bands.append(
            [
                unit_program(
                    band.engine,
                    unit,
                    _sweep(band, schedule, machine, units[unit]),
                    machine,
                    schedule.pass_budget,
                )
                for unit in sorted(units)
            ]
        )
    return bands


def _sweep(band: Band, schedule: Schedule, machine: MachineSpec, instances: list[tuple[int, int]]) -> Sweep:
    a, b, c = (schedule.buffers[n] for n in (*band.reads, *band.writes))
    a_order, b_order, c_order = (from_key(buffer.layout) for buffer in (a, b, c))
    if not isinstance(a_order, MxEntry) or not isinstance(b_order, MxEntry) or not isinstance(c_order, Tile):
        raise CompileError(
            f"a product reads mx entries and writes tiles, got {a.name} {a.layout}, {b.name} {b.layout}, "
            f"{c.name} {c.layout}"
        )
    tiles = []
    for mo, no in instances:
        chunks = range(band.chunks)
        tiles.append(
            TileWork(
                a=tuple(
                    a.address + machine.mx_entry_bytes * a_order.entry_index(mo, s, band.chunks)
                    for s in chunks
                ),
                b=tuple(
                    b.address + machine.mx_entry_bytes * b_order.entry_index(no, s, band.chunks)
                    for s in chunks
                ),
                result=c.address + machine.word_bytes * c_order.word_index(mo, no),
            )
        )
    t = band.tiling
    return Sweep(t.gm, t.gn, t.nk, tuple(tiles), b.name in band.resident, band.emit_fuse)
