# SPDX-License-Identifier: Apache-2.0
"""Requests to a schedule: tile choice, residency, byte orders, fusion, placement (docs/spec/compiler.md 5 to 8, 12)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from kohakutpu.errors import CompileError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.schedule.blocks import check_blocks
from kohakutpu.schedule.deal import deal
from kohakutpu.schedule.drained_rows import rowwise
from kohakutpu.schedule.drains import DrainBand
from kohakutpu.schedule.fills import fill_bytes
from kohakutpu.schedule.ir import AnyBand, Band, Contraction, Elementwise, Operand, Rearrange, Schedule, VectorBand
from kohakutpu.schedule.lanes import LaneOptions, plain
from kohakutpu.schedule.layout import from_key
from kohakutpu.schedule.mx_drains import readings
from kohakutpu.schedule.passes import Passes
from kohakutpu.schedule.placement import place, steps_of
from kohakutpu.schedule.planner import CONVERT, HOST_ROLES, Options, Planner, full_shapes
from kohakutpu.schedule.rearrange import rearrange
from kohakutpu.schedule.sharing import tilings
from kohakutpu.schedule.tiles import Tiling

LAYER = "L2"

Request = Contraction | Elementwise | Rearrange
FUSE = ("auto", "require", "never")


def plan(
    requests: Sequence[Request],
    machine: MachineSpec,
    *,
    clusters: int | None = None,
    cores: int | None = None,
    occupancy: bool = True,
    emit_fuse: bool = True,
    fuse: str = "auto",
    convert: str = "auto",
    lanes: LaneOptions | None = None,
    pass_budget: int | None = None,
    adjacent: Sequence[tuple[str, ...]] = (),
    buffers: Sequence[Operand] = (),
    reuse_temps: bool = True,
    stage_operands: bool = True,
) -> Schedule:
    """Schedule every request on the units of mesh 0.

    Args:
        clusters, cores: use only the first so many clusters or vector cores.
        occupancy: include the occupancy factor in the tile choice.
        emit_fuse: hand results out with the last sweep; off gives separate drains.
        fuse: epilogues on the arriving tile: "auto" if they fit, "require", or "never".
        convert: what brings tiles into rows: "mover", "cores", or "auto" for the mover where it can.
        lanes: choices of the vector kernels that change no result.
        pass_budget: instructions a program; by default the staging slots shared by the units.
        adjacent: groups of values that lie one after another.
        buffers: values with their full shape that requests name only parts of.
        reuse_temps: temps that are never alive together may share bytes.
        stage_operands: operands that products read again may be placed in the staging store.

    Raises:
        CannotFuse: fuse="require" and an epilogue that does not fit.
        CompileError: an option out of range, or what tile choice, coverage check or arena refuse.
    """
    for name, value, known in (("fuse", fuse, FUSE), ("convert", convert, CONVERT)):
        if value not in known:
            raise CompileError(f"{name} = {value!r}; it is one of {', '.join(known)}")
    # a read that is no periodic one does not make a pass one over rows
    requests = [plain(r) if isinstance(r, Elementwise) else r for r in requests]
    used = _units("clusters", clusters, "MG", machine) if any(isinstance(r, Contraction) for r in requests) else 0
    lanes_used = machine.meshes[0].units.get("VC") or _lanes_needed(requests)
    busy = _units("cores", cores, "VC", machine) if lanes_used else 0
    options = Options(used, busy, emit_fuse, fuse, convert, lanes or LaneOptions())
    planner = Planner(machine, options, known=full_shapes([*buffers, *_operands(requests)]))
    planner.swept = {o.name for r in requests if isinstance(r, Contraction) for o in (r.a, r.b)}
    planner.rowwise = rowwise(requests, machine, fuse=fuse)
    planner.tilings = _tilings(requests, machine, used if occupancy else None, planner.rowwise)
    planner.readings = readings(requests, planner.tilings, machine)
    _walk(planner, requests)
    bands = tuple(planner.bands)
    dealt = tuple(_dealt(b, used, busy) for b in bands)
    active = max((len({u for _, u in d}) for d in dealt), default=1)
    budget = max(1, machine.stage_flits // active) if pass_budget is None else pass_budget
    if not 1 <= budget <= machine.stage_flits:
        raise CompileError(f"pass budget {budget} is not in 1..{machine.stage_flits} (staging slots)")
    steps = steps_of(bands, planner.conversions, planner.needs)
    fills = fill_bytes(bands, dealt, machine) if stage_operands else None
    placement = place(planner.needs, steps, machine, adjacent=adjacent, reuse=reuse_temps, fills=fills)
    return Schedule(
        machine.name,
        placement.buffers,
        bands,
        dealt,
        budget,
        tuple(dict.fromkeys(planner.notes)),
        tuple(planner.relaxed),
        tuple(planner.conversions),
        placement.staging_full,
        placement.lives,
    )


def _operands(requests: Sequence[Request]) -> list[Operand]:
    out: list[Operand] = []
    for r in requests:
        out += [r.a, r.b, r.c] if isinstance(r, Contraction) else [*r.operands, *r.results]
    return out


def _lanes_needed(requests: Sequence[Request]) -> bool:
    return any(
        r.route in ("core", "memory") if isinstance(r, Contraction) else isinstance(r, Elementwise) for r in requests
    )


def _readers(requests: Sequence[Request]) -> dict[str, int]:
    """How often each value is read."""
    out: dict[str, int] = {}
    for r in requests:
        for o in (r.a, r.b) if isinstance(r, Contraction) else r.operands:
            out[o.name] = out.get(o.name, 0) + 1
    return out


def _tilings(
    requests: Sequence[Request], machine: MachineSpec, clusters: int | None, drained: Collection[str]
) -> dict[str, Tiling]:
    """Tilings of all products; those of one pass share theirs, tiles of ``drained`` ones end with their rows."""
    loose = {r.c.name: r for r in requests if isinstance(r, Contraction)}
    for c in loose.values():
        check_blocks(c)
    rows = {c.c.name for c in loose.values() if c.c.of}
    rows |= {o.name for r in requests if isinstance(r, Contraction) for o in (r.a, r.b)}
    rows |= {r.source.name for r in requests if isinstance(r, Rearrange)}
    groups: list[list[Contraction]] = []
    for r in requests:
        if isinstance(r, Elementwise):
            if r.over_rows:
                rows |= {o.name for o in r.operands}
            group = [loose.pop(o.name) for o in r.operands if o.name in loose and o.shape == r.shape]
            # tilings of their authors that differ meet in rows
            agree = len({c.tiling for c in group if c.tiling}) <= 1
            groups += [group] if agree else [[c] for c in group]
    for r in reversed(requests):
        # a pass leaves its result in the tiles of its operands
        if isinstance(r, Elementwise) and rows & {result.name for result in r.results}:
            rows |= {o.name for o in r.operands}
    groups += [[c] for c in loose.values()]
    return tilings([g for g in groups if g], machine, clusters, rows, drained)


def _walk(planner: Planner, requests: Sequence[Request]) -> None:
    """Products wait for the pass that reads them; everything else goes in order."""
    passes = Passes(planner, _readers(requests))
    awaited = {o.name for r in requests if isinstance(r, Elementwise) for o in r.operands}
    for r in requests:
        if isinstance(r, Contraction):
            passes.contraction(r, awaited=r.c.name in awaited)
        elif isinstance(r, Rearrange):
            passes.flush(r.source.name)
            rearrange(planner, r)
        else:
            passes.elementwise(r)


def _units(what: str, asked: int | None, kind: str, machine: MachineSpec) -> int:
    available = len(machine.units(kind))
    if asked is not None and not 1 <= asked <= available:
        raise CompileError(f"{what} = {asked}; machine {machine.name} has {available}, use 1..{available}")
    return available if asked is None else asked


def _dealt(band: AnyBand, clusters: int, cores: int) -> tuple[tuple[tuple[int, ...], int], ...]:
    instances = list(band.instances())
    if isinstance(band, VectorBand | DrainBand) and band.nodes:
        return tuple(zip(instances, band.nodes, strict=True))
    if isinstance(band, Band) and band.split > 1 and band.delivery is not None:
        # a core has one open stream, so all partials of its tile come from one cluster
        place = deal(band.tiles(), range(clusters))
        return tuple((key, place[key[0], key[1]]) for key in instances)
    return tuple(deal(instances, range(clusters if band.engine == "MG" else cores)).items())


def pack_operands(schedule: Schedule, operands: Mapping[str, npt.NDArray[np.float16]]) -> dict[str, bytes]:
    """Bytes of every buffer the host fills, in its byte order, padded with zeros to the buffer's size.

    Raises:
        CompileError: an operand that is missing, has another shape or dtype, or that nothing reads.
    """
    wanted = {b.name: b for b in schedule.buffers.values() if b.role in HOST_ROLES}
    stray = sorted(set(operands) - {b.source or b.name for b in wanted.values()})
    if stray:
        raise CompileError(f"operands {stray} are read by nothing; the schedule reads {sorted(wanted)}")
    out: dict[str, bytes] = {}
    for name, buffer in wanted.items():
        source = buffer.source or name
        if source not in operands:
            raise CompileError(f"operand {source} {buffer.shape} was not given")
        array = operands[source]
        if array.shape != buffer.shape or array.dtype != np.float16:
            raise CompileError(f"operand {source} is {array.dtype} {array.shape}, expected float16 {buffer.shape}")
        out[name] = from_key(buffer.layout).pack(array).ljust(buffer.nbytes, b"\0")
    return out
