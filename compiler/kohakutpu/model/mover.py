# SPDX-License-Identifier: Apache-2.0
"""Memory mover: command registers, moves, faults, status (docs/spec/memory.md 12 and 13).

Interface:

* ``Mover(agent, granule=False, bank=True)`` with an agent such as ``MemoryAgent(MachineDescription(...), sink, None,
  sink)``; commands go to ``write(offset, data)``, offset 0x00..0x78 of the mover's registers. A CTRL write with GO
  runs the whole move before it returns: without time the queue is always empty and busy reads 0.
* ``status(0x78)`` is AUX_STAT. ``fault``, ``sticky``, ``nonfinite``, ``moves`` are its fields.
* ``last`` is the move that ran last: its fault, the address it names, elements written.

Memory is reached through the agent, which counts traffic and records F_RANGE and F_AXI with class 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kohakutpu.isa import generated as g
from kohakutpu.isa import registers
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import MemFault, MoverMode, MoverOffset, MoverTransform, RequesterClass
from kohakutpu.isa.generated import MoverFault as F
from kohakutpu.model import prng, transform
from kohakutpu.model.agent import MemoryAgent
from kohakutpu.model.memory import ADDR_MASK, WORD
from kohakutpu.model.mover_registers import DESTINATION, SOURCE, MoverRegisters
from kohakutpu.model.numerics.bits import U8
from kohakutpu.model.walker import I64, Bool

LAYER = "L0"

CHUNK = 1 << 14
"""Elements looked at together; no result depends on it."""

_STATUS = registers.offset("AUX_STAT")
_MOVES = (1 << 24) - 1


class Check(NamedTuple):
    """One test of every position of a stretch: where it fails, with which fault and which memory codes."""

    bad: Bool
    fault: F
    address: I64 | None = None
    codes: I64 | None = None


@dataclass
class Move:
    """One move: `fault` and `address` of what ended it, `elements` written (entries in mode 5)."""

    mode: int
    fault: F = F.F_NONE
    code: MemFault = MemFault.M_NONE
    address: int = 0
    elements: int = 0


class Mover(MoverRegisters):
    """The mover of one mesh. `granule`: the granule transpose is built; `bank`: a transform bank is."""

    def __init__(self, agent: MemoryAgent, granule: bool = False, bank: bool = True) -> None:
        super().__init__()
        self.agent = agent
        self.moves = 0
        self.fault = F.F_NONE
        self.sticky = False
        self.nonfinite = False
        self.last: Move | None = None
        self._occupants = transform.occupants(granule) if bank else frozenset[int]()

    # ------------------------------------------------------------ registers

    def owns(self, offset: int) -> bool:
        """True for the offsets of the AUX window that belong to the mover."""
        return 0 <= offset < g.MEM_MOVER_WINDOW

    def write(self, offset: int, data: int) -> None:
        """A 64-bit register write; unlisted offsets are ignored."""
        if offset & ~7 == MoverOffset.CLEAR:
            f = codec("MV_CLEAR").decode(data)
            self.sticky = self.sticky and not f["fault"]
            self.nonfinite = self.nonfinite and not f["nonfinite"]
        elif self.apply(offset, data):
            self._go()

    def status(self, offset: int) -> int:
        """AUX_STAT at 0x78; the status words behind it belong to the interlink and read 0."""
        if offset != _STATUS:
            return 0
        return registers.encode(
            "MV_STAT",
            moves=self.moves,
            reads=self.agent.port_reads,
            writes=self.agent.port_writes,
            fault=self.fault,
            nonfinite=int(self.nonfinite),
            sticky=int(self.sticky),
        )

    # ------------------------------------------------------------ a move

    def _go(self) -> None:
        move = self.last = Move(self.field("MV_CTRL", "mode"))
        move.fault = self._at_go(move.mode)
        if not move.fault:
            self._run(move)
        self.fault = move.fault
        if not move.fault:
            self.moves = (self.moves + 1) & _MOVES
            return
        self.sticky = True
        if move.code:
            self.agent.record(move.code, RequesterClass.MOVER, addr=move.address & ADDR_MASK)

    def _at_go(self, mode: int) -> F:
        """Checks before any access, in the order of `MV_CHECK_ORDER`."""
        known = (MoverMode.COPY, MoverMode.GATHER, MoverMode.GENERATE, MoverMode.FILL, MoverMode.XFORM)
        if self.field("MV_CTRL", "ewidth") == 3:
            return F.F_EWIDTH
        if mode not in known or (mode == MoverMode.XFORM and not self._occupants):
            return F.F_MODE
        if mode == MoverMode.XFORM and self.xform[0] not in self._occupants:
            return F.F_XFORM
        used = self.walkers if mode in (MoverMode.COPY, MoverMode.XFORM) else self.walkers[DESTINATION:]
        gather = mode == MoverMode.GATHER
        if not all(w.legal for w in used) or (gather and not self.field("MV_GATHER", "words")):
            return F.F_WALK
        if gather and not 1 <= self.field("MV_INDEX", "count") <= g.MEM_MOVER_INDEX_MAX:
            return F.F_IDXLEN
        return F.F_NONE

    def _run(self, move: Move) -> None:
        if move.mode == MoverMode.XFORM:
            self._transform(move)
            return
        indices = self._indices(move) if move.mode == MoverMode.GATHER else None
        destination = self.walkers[DESTINATION]
        total = destination.length()
        for first in range(0, total, CHUNK):
            if move.fault:
                return
            n = min(CHUNK, total - first)
            address, valid = destination.part(first, n)
            match move.mode:
                case MoverMode.COPY:
                    self._copy(move, first, address, valid)
                case MoverMode.GATHER:
                    assert indices is not None
                    self._gather(move, first, address, valid, indices)
                case MoverMode.GENERATE:
                    self._constant(move, address, valid, prng.words(self.field("MV_SEED", "seed"), address & ADDR_MASK))
                case MoverMode.FILL:
                    self._constant(move, address, valid, np.tile(self._pattern(), (n, 1)))

    def _pattern(self) -> U8:
        """The immediate word, uint8 (32,)."""
        width = 1 << self.field("MV_CTRL", "ewidth")
        element = self.field("MV_IMM", "imm").to_bytes(4, "little")[:width]
        return np.frombuffer(element * (WORD // width), dtype=np.uint8)

    def _copy(self, move: Move, first: int, address: I64, valid: Bool) -> None:
        n = len(address)
        source = self.walkers[SOURCE]
        taken, present = source.part(first, n)
        ended = Check(np.arange(n) >= min(n, source.length() - first), F.F_WALK)
        self._elements(move, address, valid, [ended, *self._checks(address, valid)], taken, valid & present)

    def _gather(self, move: Move, first: int, address: I64, valid: Bool, indices: I64) -> None:
        words = self.field("MV_GATHER", "words")
        row, k = np.divmod(first + np.arange(len(address), dtype=np.int64), words)
        index = indices[np.minimum(row, len(indices) - 1)].astype(np.uint64)
        far = index * np.uint64(self.field("MV_GATHER", "pitch"))  # below 2**64, exact
        near = (far & np.uint64(ADDR_MASK)).astype(np.int64) + self.walkers[SOURCE].base + WORD * k
        # beyond 40 bits only the low 40 bits and the fact itself matter
        taken = np.where(far > np.uint64(ADDR_MASK), near & ADDR_MASK | ADDR_MASK + 1, near)
        missing = Check(valid & (row >= len(indices)), F.F_IDXLEN)
        self._elements(move, address, valid, [*self._checks(address, valid), missing], taken, valid)

    def _constant(self, move: Move, address: I64, valid: Bool, words: U8) -> None:
        stop = _judge(move, self._checks(address, valid))
        self._store(move, address[:stop], valid[:stop], words[:stop])

    def _elements(self, move: Move, address: I64, valid: Bool, checks: list[Check], taken: I64, used: Bool) -> None:
        """Copy words where the destination is valid; an unused source gives the immediate pattern."""
        stop = _judge(move, [*checks, *self._checks(taken, used)])
        live = np.flatnonzero(used[:stop])
        good = self.agent.first_failing(taken[live])
        if good < len(live):
            stop = int(live[good])
            _bus(move, int(taken[stop]))
            live = live[:good]
        words = np.tile(self._pattern(), (stop, 1))
        words[live] = self.agent.read_words(taken[live])
        self._store(move, address[:stop], valid[:stop], words)

    def _checks(self, address: I64, used: Bool, n: int | I64 = WORD) -> list[Check]:
        """Alignment and class of the used addresses, as accesses of n bytes."""
        codes = self.agent.check_words(address, n)[0]
        bad = used & (codes != MemFault.M_NONE)
        return [Check(used & (address % WORD != 0), F.F_ALIGN), Check(bad, F.F_RANGE, address, codes)]

    def _store(self, move: Move, address: I64, valid: Bool, words: U8) -> None:
        """Write the valid ones of (k,) words in order, up to the first that fails on the bus."""
        live = np.flatnonzero(valid)
        good = self.agent.first_failing(address[live])
        if good < len(live):
            _bus(move, int(address[live[good]]))
        live = live[:good]
        self.agent.write_words(address[live], words[live])
        move.elements += good

    def _indices(self, move: Move) -> I64:
        """The index vector of a GATHER; a fault ends the move before its first element."""
        count = self.field("MV_INDEX", "count")
        words = -(-count // (WORD // 4))
        address = self.field("MV_INDEX", "addr") + WORD * np.arange(words, dtype=np.int64)
        good = _judge(move, self._checks(address, np.ones(words, dtype=bool)))
        failing = self.agent.first_failing(address[:good])
        if failing < good:
            _bus(move, int(address[failing]))
        data = self.agent.read_words(address[:failing])
        return data.reshape(-1).view("<u4")[:count].astype(np.int64)

    # ------------------------------------------------------------ mode 5

    def _transform(self, move: Move) -> None:
        occupant, mode = self.xform
        take, give = g.MV_XFORM_WORDS[occupant]
        source, destination = self.walkers
        # the granule transpose may address each output word by itself
        apart = give if occupant == MoverTransform.GRANULE and mode & 1 else 1
        have, places = source.length(), destination.length()
        # one row per entry: its destinations, then its source words, as they are checked
        size = np.array([WORD * give // apart] * apart + [WORD] * take)
        entries = -(-have // take)
        for first in range(0, entries, CHUNK // take):
            if move.fault:
                return
            n = min(CHUNK // take, entries - first)
            address = np.zeros((n, apart + take), dtype=np.int64)
            good, ended = np.zeros(address.shape, dtype=bool), np.zeros(address.shape, dtype=bool)
            for part, walker, total, per in (
                (slice(0, apart), destination, places, apart),
                (slice(apart, None), source, have, take),
            ):
                at, valid = walker.part(first * per, n * per)
                address[:, part], good[:, part] = at.reshape(n, per), valid.reshape(n, per)
                ended[:, part] = (np.arange(n * per) >= min(n * per, total - first * per)).reshape(n, per)
            every = np.ones(address.size, dtype=bool)
            checks = [Check(ended.reshape(-1), F.F_WALK), Check(~good.reshape(-1), F.F_XPAD)]
            checks += self._checks(address.reshape(-1), every, np.tile(size, n))
            stop = _judge(move, checks) // (apart + take)
            self._convert(move, address[:stop, :apart], address[:stop, apart:])

    def _convert(self, move: Move, target: I64, taken: I64) -> None:
        """Read, convert and write whole entries; target (n, 1 or out) addresses, taken (n, in)."""
        occupant, mode = self.xform
        take, give = g.MV_XFORM_WORDS[occupant]
        place = target if target.shape[1] == give else target + WORD * np.arange(give, dtype=np.int64)
        n = len(taken)
        for address, per in ((taken.reshape(-1), take), (place.reshape(-1), give)):
            failing = self.agent.first_failing(address[: n * per])
            if failing < n * per:
                n = failing // per
                _bus(move, int(address[failing]))
        data = self.agent.read_words(taken[:n].reshape(-1))
        words, special = transform.convert(occupant, mode, data.reshape(n, take, WORD))
        self.agent.write_words(place[:n].reshape(-1), words.reshape(-1, WORD))
        self.nonfinite |= bool(special.any())
        move.elements += n


def _judge(move: Move, checks: list[Check]) -> int:
    """Position of the first failing check, the number of positions if none fails; notes the fault.

    Checks stand in their order at one position.
    """
    length = len(checks[0].bad)
    stop, index = min((int(c.bad.argmax()) if c.bad.any() else length, i) for i, c in enumerate(checks))
    if stop == length:
        return length
    failed = checks[index]
    move.fault = failed.fault
    if failed.address is not None and failed.codes is not None:
        move.address, move.code = int(failed.address[stop]), MemFault(int(failed.codes[stop]))
    return stop


def _bus(move: Move, address: int) -> None:
    """End a move at an address whose access failed on the bus."""
    move.fault, move.code, move.address = F.F_AXI, MemFault.M_BUS, address
