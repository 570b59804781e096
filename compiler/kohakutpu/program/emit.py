# SPDX-License-Identifier: Apache-2.0
"""Emission of a matrix-product band in order O3 (docs/spec/compiler.md 9.1).

``F F G .. F F G(emit 0) | F F .. F F D(fuse 0) G(emit 1) | .. | D(fuse, last tile)``
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program.hazard import check_hazards
from kohakutpu.program.instructions import Drain, Fill, Gemm, Instruction, Pass, UnitProgram
from kohakutpu.schedule.ir import Band, Schedule
from kohakutpu.schedule.layout import MxEntry, Tile, from_key
from kohakutpu.schedule.tiles import banks

LAYER = "L1"


@dataclass(frozen=True)
class Place:
    """Where a chunk sits in L1."""

    bank: int
    off: int


@dataclass
class SideState:
    """One operand side: what its places hold, and the bank the last GEMM read."""

    held: dict[Place, tuple[int, int]] = field(default_factory=dict)
    last_bank: int | None = None


class TileEmitter:
    """Emits tiles of one unit into one pass; a pass is self-contained."""

    def __init__(self, band: Band, schedule: Schedule, machine: MachineSpec) -> None:
        self.band = band
        self.machine = machine
        self.bases = [schedule.buffers[n].address for n in (*band.reads, *band.writes)]
        orders = [from_key(schedule.buffers[n].layout) for n in (*band.reads, *band.writes)]
        a, b, c = orders
        if not isinstance(a, MxEntry) or not isinstance(b, MxEntry) or not isinstance(c, Tile):
            raise CompileError(f"a product reads mx entries and writes tiles, got {[o.key for o in orders]}")
        self.a_order, self.b_order, self.c_order = a, b, c
        self.bank_entries = banks(machine)
        self.reset()

    def reset(self) -> None:
        """Start a new pass: nothing is known to be in L1."""
        self.out: list[Instruction] = []
        self.sides = {"a": SideState(), "b": SideState()}
        self.pending: Drain | None = None

    def tile(self, mo: int, no: int) -> None:
        """Append one instance."""
        band, t = self.band, self.band.tiling
        chunks = band.chunks
        address = self.bases[2] + self.machine.word_bytes * self.c_order.word_index(mo, no)
        for s in range(chunks):
            a = self._operand("a", mo, s, t.gm * t.nk)
            b = self._operand("b", no, s, t.gn * t.nk)
            final = s == chunks - 1
            barrier_here = final if band.emit_fuse else s == 0
            if self.pending is not None and barrier_here:
                self.out.append(self.pending)
                self.pending = None
            emits = final and band.emit_fuse
            self.out.append(
                Gemm(t.gm, t.gn, t.nk, int(s > 0), a.bank, a.off, b.bank, b.off, int(emits), address if emits else 0)
            )
            self.sides["a"].last_bank, self.sides["b"].last_bank = a.bank, b.bank
        n = t.gm * t.gn
        self.pending = Drain(n, fuse=1) if band.emit_fuse else Drain(n, address)

    def _operand(self, side: str, tile: int, chunk: int, entries: int) -> Place:
        order = self.a_order if side == "a" else self.b_order
        base = self.bases[0 if side == "a" else 1]
        at = base + self.machine.mx_entry_bytes * order.entry_index(tile, chunk, self.band.chunks)
        state = self.sides[side]
        for place, content in state.held.items():
            if content == (at, entries):
                return place
        place = self._place(side, chunk, entries)
        state.held = {
            p: c for p, c in state.held.items()
            if p.bank != place.bank or p.off >= place.off + entries or place.off >= p.off + c[1]
        }
        state.held[place] = (at, entries)
        for lo, count in _split(entries, self.machine.fill_max):
            self.out.append(
                Fill(side, place.bank, place.off + lo, count, at + self.machine.mx_entry_bytes * lo)
            )
        return place

    def _place(self, side: str, chunk: int, entries: int) -> Place:
        name = self.band.reads[0 if side == "a" else 1]
        if name in self.band.resident and self.band.chunks > 1:
            per_bank = self.bank_entries[0 if side == "a" else 1] // entries
            bank, slot = divmod(chunk, per_bank)
            return Place(bank, slot * entries)
        last = self.sides[side].last_bank
        bank = 0 if last is None else (last + 1) % self.machine.banks
        return Place(bank, self._offset(side, entries))

    def _offset(self, side: str, entries: int) -> int:
        """With several instructions in flight the tag ranges of A and B fills stay apart."""
        if self.machine.max_inflight.get("MG", 1) > 1 and side == "b":
            return self.bank_entries[1] - entries
        return 0

    def finish(self) -> list[Instruction]:
        """The pass so far with its closing barrier."""
        return self.out + ([self.pending] if self.pending is not None else [])


def _split(entries: int, limit: int) -> list[tuple[int, int]]:
    """(start, count) of the FILLs of a chunk; equal parts, none above the limit."""
    parts = cdiv(entries, limit)
    size = cdiv(entries, parts)
    return [(lo, min(size, entries - lo)) for lo in range(0, entries, size)]


def emit(schedule: Schedule, machine: MachineSpec) -> list[list[UnitProgram]]:
    """Unit programs of every band.

    Returns:
        per band, one program a unit that has work.

    Raises:
        HazardError: the emitter broke its own rule.
    """
    return [
        [_unit(band, schedule, machine, unit, [i for i, u in dealt if u == unit]) for unit in sorted({u for _, u in dealt})]
        for band, dealt in zip(schedule.bands, schedule.dealt, strict=True)
    ]


def _unit(
    band: Band, schedule: Schedule, machine: MachineSpec, unit: int, tiles: list[tuple[int, int]]
) -> UnitProgram:
    budget = schedule.pass_budget
    emitter = TileEmitter(band, schedule, machine)
    passes: list[list[Instruction]] = []
    whole: list[Instruction] = []
    for mo, no in tiles:
        emitter.tile(mo, no)
        grown = emitter.finish()
        if whole and len(grown) > budget:
            passes.append(whole)
            emitter.reset()
            emitter.tile(mo, no)
            grown = emitter.finish()
        whole = grown
    passes.append(whole)
    for p in passes:
        check_hazards(p)
    windows = [p[i : i + budget] for p in passes for i in range(0, len(p), budget)]
    return UnitProgram(band.engine, unit, tuple(Pass(tuple(w)) for w in windows))
