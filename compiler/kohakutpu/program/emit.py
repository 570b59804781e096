# SPDX-License-Identifier: Apache-2.0
"""Emission of a matrix product in order O3 (docs/spec/compiler.md 9.1).

``F F G .. F F G(emit 0) | F F .. F F D(fuse 0) G(emit 1) | .. | D(fuse, last tile)``
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kohakutpu.errors import CompileError
from kohakutpu.ints import cdiv
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.messages import bursts
from kohakutpu.program.hazard import check_hazards
from kohakutpu.program.instructions import Drain, Fill, Gemm, Instruction, Pass, UnitProgram

LAYER = "L1"


@dataclass(frozen=True)
class TileWork:
    """One result tile: byte address of every K chunk of A and B, and of the result.

    With a receiver ``to`` the result is a byte address in that unit's buffer. With a ``pitch``, in words, the tile is
    drained as rows so far apart.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    result: int
    to: str = ""
    pitch: int = 0


@dataclass(frozen=True)
class Sweep:
    """The tiles of one unit in order.

    Args:
        gm, gn, nk: sub-tiles of a tile and K blocks of a chunk.
        resident_b: B keeps a place of its own for every chunk while the row tiles change.
        emit_fuse: results leave with the last sweep of a tile instead of a separate DRAIN.
        kept: the only tile stays in the tile store.
    """

    gm: int
    gn: int
    nk: int
    tiles: tuple[TileWork, ...]
    resident_b: bool = False
    emit_fuse: bool = True
    kept: bool = False


@dataclass(frozen=True)
class Place:
    """Where a chunk sits in one side of L1: half, and offset inside it."""

    half: int
    off: int


@dataclass
class _Side:
    """One operand side: its places with the chunk they hold, and the half the last GEMM read."""

    name: str
    entries: int
    size: int
    resident: bool = False
    downward: bool = False
    held: dict[Place, int] = field(default_factory=dict)
    last_half: int | None = None

    def find(self, at: int) -> Place | None:
        """The place that still holds the chunk at ``at``."""
        return next((p for p, content in self.held.items() if content == at), None)

    def claim(self, chunk: int, at: int, halves: int) -> Place:
        """A place for a chunk: its own if resident, else in the half the last GEMM does not read."""
        if self.resident:
            slot, half = divmod(chunk, halves)
        else:
            slot, half = 0, 0 if self.last_half is None else (self.last_half + 1) % halves
        off = self.size - (slot + 1) * self.entries if self.downward else slot * self.entries
        place = Place(half, off)
        self.held[place] = at
        return place


class PassEmitter:
    """Emits tiles into one pass; a pass finds nothing in L1."""

    def __init__(self, sweep: Sweep, machine: MachineSpec) -> None:
        self.sweep = sweep
        self.machine = machine
        self.out: list[Instruction] = []
        self._pending: Drain | None = None
        size_a, size_b = machine.bank_entries
        chunks = len(sweep.tiles[0].b) if sweep.tiles else 0
        # with several instructions in flight the tags of A and B fills have to differ to overlap
        apart = machine.max_inflight.get("MG", 1) > 1
        self._a = _Side("a", sweep.gm * sweep.nk, size_a)
        # a single chunk needs no place of its own: alternating leaves room for the next column
        self._b = _Side("b", sweep.gn * sweep.nk, size_b, sweep.resident_b and chunks > 1, apart)

    def tile(self, work: TileWork) -> None:
        """Append one tile."""
        s = self.sweep
        last = len(work.a) - 1
        emitting = s.emit_fuse and not s.kept
        for step, (a_at, b_at) in enumerate(zip(work.a, work.b, strict=True)):
            a = self._operand(self._a, step, a_at)
            b = self._operand(self._b, step, b_at)
            if step == (last if emitting else 0):
                self._close()
            emits = emitting and step == last
            abank, aoff = self._entry(self._a, a)
            bbank, boff = self._entry(self._b, b)
            at, to = (work.result, work.to) if emits else (0, "")
            self.out.append(
                Gemm(s.gm, s.gn, s.nk, int(step > 0), abank, aoff, bbank, boff, int(emits), at, to=to)
            )
            self._a.last_half, self._b.last_half = a.half, b.half
        if s.kept:
            return
        n = s.gm * s.gn
        if s.emit_fuse:
            self._pending = Drain(n, fuse=1)
        elif work.pitch:
            self._pending = Drain(n, work.result, gn=s.gn, pitch=work.pitch)
        else:
            self._pending = Drain(n, work.result, to=work.to)

    def finished(self) -> list[Instruction]:
        """The pass so far with the barrier of its last tile."""
        return self.out + ([self._pending] if self._pending is not None else [])

    def _close(self) -> None:
        if self._pending is not None:
            self.out.append(self._pending)
            self._pending = None

    def _operand(self, side: _Side, chunk: int, at: int) -> Place:
        place = side.find(at)
        if place is not None:
            return place
        place = side.claim(chunk, at, self.machine.banks)
        bank, off = self._entry(side, place)
        for lo, count in split(side.entries, self.machine.fill_max):
            self.out.append(Fill(side.name, bank, off + lo, count, at + self.machine.mx_entry_bytes * lo))
        return place

    def _entry(self, side: _Side, place: Place) -> tuple[int, int]:
        """(bank, offset) of a place: a small L1 has both halves in bank 0 (docs/spec/cluster.md 3.1)."""
        return divmod(place.half * side.size + place.off, self.machine.l1_off_span)


def acknowledgements(subtiles: int, *, wide: bool = False) -> int:
    """Burst acknowledgements of one delivered tile (docs/spec/cluster.md 5.7).

    Args:
        wide: in accumulator width instead of FP16.
    """
    return bursts("send" if wide else "emit", subtiles)


def split(entries: int, limit: int) -> list[tuple[int, int]]:
    """(start, count) of the FILLs of a chunk; equal parts, none above the limit."""
    size = cdiv(entries, cdiv(entries, limit))
    return [(lo, min(size, entries - lo)) for lo in range(0, entries, size)]


def unit_program(engine: str, unit: int, sweep: Sweep, machine: MachineSpec, budget: int) -> UnitProgram:
    """Program of one unit, cut into passes of at most ``budget`` instructions.

    A tile that alone needs more is cut into windows, which keep L1 and tile store.

    Raises:
        CompileError: tiles whose operands do not have the same number of chunks, or several tiles to be kept.
        HazardError: the emitter broke its own rule.
    """
    counts = {len(side) for t in sweep.tiles for side in (t.a, t.b)}
    if len(counts) != 1 or 0 in counts:
        raise CompileError(
            f"unit {engine}{unit}: tiles with {sorted(counts)} chunks; every tile needs the same number"
        )
    if sweep.kept and len(sweep.tiles) > 1:
        raise CompileError(f"unit {engine}{unit}: {len(sweep.tiles)} tiles to be kept; a tile store holds one")
    passes: list[list[Instruction]] = []
    emitter = PassEmitter(sweep, machine)
    whole: list[Instruction] = []
    for work in sweep.tiles:
        emitter.tile(work)
        if whole and len(emitter.finished()) > budget:
            passes.append(whole)
            emitter = PassEmitter(sweep, machine)
            emitter.tile(work)
        whole = emitter.finished()
    passes.append(whole)
    for p in passes:
        check_hazards(p)
    windows = [p[i : i + budget] for p in passes for i in range(0, len(p), budget)]
    return UnitProgram(engine, unit, tuple(Pass(tuple(w)) for w in windows))
