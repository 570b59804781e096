# SPDX-License-Identifier: Apache-2.0
"""Second memory mover, one word at a time in plain integers, read off docs/spec/memory.md 12 and 13.

It shares no table and no code with ``kohakutpu``; tests compare the two, and benches may use it as a reference.

Interface: ``MoverWitness(...)`` with the same registers as the machine, ``write(register, value)`` where register
is the offset of 12.1. Memory is ``memory``, a dict from 40-bit word address to a 256-bit integer, absent words
being 0. ``moves``, ``fault``, ``sticky``, ``nonfinite`` are the fields of AUX_STAT, ``recorded`` the (code, address)
pairs of MEM_FAULT, ``reads`` and ``writes`` the traffic per tier ("dram", "stage"), ``touched`` the addresses written
until the caller clears it. ``bad_reads`` and ``bad_writes``
are word addresses that fail on the bus.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

from kohakubench.witness_numerics import pack_entry, quantise_lane

LAYER = "L0"

F_IDXLEN, F_RANGE, F_AXI, F_MODE, F_EWIDTH, F_ALIGN, F_XPAD, F_XFORM = 1, 2, 3, 4, 5, 6, 7, 8
F_WALK = 10
M_RSVD, M_MESH, M_APER, M_RANGE, M_BUS = 2, 3, 4, 5, 9
_WORD = 32
_ONES = (1 << 256) - 1


class _MoveEnd(Exception):  # noqa: N818  (not an error of the program)
    """End of a move: fault, memory code (0 for none) and address."""

    def __init__(self, fault: int, code: int = 0, address: int = 0) -> None:
        super().__init__(fault, code, address)
        self.fault, self.code, self.address = fault, code, address


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) & 1 else value


@dataclass
class _Walker:
    base: int = 0
    ndim: int = 1
    count: list[int] = field(default_factory=lambda: [0] * 6)
    stride: list[int] = field(default_factory=lambda: [0] * 6)
    axis: list[int] = field(default_factory=lambda: [0] * 6)
    step: list[int] = field(default_factory=lambda: [0] * 6)
    axis_base: list[int] = field(default_factory=lambda: [0, 0])
    extent: list[int] = field(default_factory=lambda: [0, 0])
    marked: bool = False

    def walk(self) -> Iterator[tuple[int, bool]]:
        """(address, valid) of every element in order."""
        dims = range(self.ndim)
        for i in product(*(range(self.count[d] or 1) for d in dims)):
            address = self.base + sum(i[d] * self.stride[d] for d in dims)
            valid = True
            for a in (0, 1):
                at = self.axis_base[a] + sum(i[d] * self.step[d] for d in dims if self.axis[d] == a + 1)
                valid = valid and (self.extent[a] == 0 or 0 <= at < self.extent[a])
            yield address, valid


def philox_word(seed: int, address: int) -> int:
    """Word of GENERATE, 12.4."""
    wa = address >> 5
    word = 0
    for h in (0, 1):
        c = [wa & 0xFFFFFFFF, (wa >> 32) << 1 | h, 0, 0]
        k = [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [p1 >> 32 ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, p0 >> 32 ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
            k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
        word |= sum(part << (128 * h + 32 * n) for n, part in enumerate(c))
    return word


def quantise_words(source: list[int], b_packing: bool) -> tuple[list[int], bool]:
    """(four output words, an infinity or NaN was met) of eight source words, 13.1."""
    codes = [word >> 16 * j & 0xFFFF for word in source for j in range(16)]
    lanes = [quantise_lane(codes[32 * lane : 32 * lane + 32]) for lane in range(4)]
    words, _ = pack_entry([q for q, _ in lanes], [scale for _, scale in lanes], b_packing)
    return words, any(code >> 10 & 31 == 31 for code in codes)


def granule_words(source: list[int]) -> list[int]:
    """Granule transpose of four words, 13."""
    cell = [[word >> 64 * i & (1 << 64) - 1 for i in range(4)] for word in source]
    return [sum(cell[j][i] << 64 * j for j in range(4)) for i in range(4)]


@dataclass
class MoverWitness:
    """The mover of mesh `mesh`; sizes in bytes, `stage_bytes` 0 without a staging store."""

    mesh: int = 0
    dram_bytes: int = 1 << 32
    stage_bytes: int = 2 << 20
    granule: bool = False
    bank: bool = True
    memory: dict[int, int] = field(default_factory=dict)
    bad_reads: set[int] = field(default_factory=set)
    bad_writes: set[int] = field(default_factory=set)
    moves: int = 0
    fault: int = 0
    sticky: int = 0
    nonfinite: int = 0
    recorded: list[tuple[int, int]] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.walkers = [_Walker(), _Walker()]
        self.reads = {"dram": 0, "stage": 0}
        self.writes = {"dram": 0, "stage": 0}
        self._named = 0
        self._dim = 0
        self._xform = (0, 0)
        self._index = self._seed = self._imm = 0
        self._gather = 1 << 32
        self._mode, self._ewidth = 0, 1

    # ------------------------------------------------------------ registers

    def write(self, register: int, value: int) -> None:
        """A register write of 12.1."""
        which, register = value & 1, register & ~7
        if register == 0x00:
            self._mode, self._ewidth = value & 7, value >> 3 & 3
            if value >> 16 & 1:
                self._move()
        elif register == 0x08:
            self.sticky &= ~value & 1
            self.nonfinite &= ~(value >> 1) & 1
        elif register == 0x10:
            self._named = which
            w = self.walkers[which]
            w.base, w.ndim, w.marked = value >> 4 & (1 << 40) - 1, value >> 44 & 7, False
            if not which:
                self._xform = (value >> 47 & 15, value >> 55 & 15)
        elif register == 0x18:
            self._named, self._dim = which, value
        elif register == 0x20:
            w, d = self.walkers[self._named], self._dim >> 1 & 7
            if d >= 6:
                w.marked = True
            else:
                w.count[d], w.stride[d] = self._dim >> 4 & 0xFFFF, _signed(self._dim >> 20 & 0xFFFFFFFF, 32)
                w.axis[d], w.step[d] = value & 3, _signed(value >> 2 & 0xFFFF, 16)
        elif register == 0x28:
            self._named, a = which, value >> 1 & 1
            w = self.walkers[which]
            w.axis_base[a], w.extent[a] = _signed(value >> 2 & 0xFFFF, 16), value >> 18 & 0xFFFF
        elif register == 0x30:
            self._index = value
        elif register == 0x38:
            self._seed = value
        elif register == 0x40:
            self._imm = value & 0xFFFFFFFF
        elif register == 0x50:
            self._gather = value

    # ------------------------------------------------------------ accesses

    def _judge(self, address: int, n: int) -> None:
        """Alignment, then class of an access."""
        if address % _WORD:
            raise _MoveEnd(F_ALIGN)
        if not 0 <= address < 1 << 40:
            raise _MoveEnd(F_RANGE, M_RANGE, address % (1 << 40))
        staged = address >> 39
        offset = address % (1 << 32) if staged else address % (1 << 36)
        code = 0
        if address >> 38 & 1:
            code = M_RSVD
        elif address >> 36 & 3 != self.mesh:
            code = M_MESH
        elif staged and (address >> 32 & 15 or not self.stage_bytes):
            code = M_APER
        elif offset + n > (self.stage_bytes if staged else self.dram_bytes):
            code = M_RANGE
        if code:
            raise _MoveEnd(F_RANGE, code, address)

    def _read(self, address: int) -> int:
        if address in self.bad_reads:
            raise _MoveEnd(F_AXI, M_BUS, address)
        self.reads["stage" if address >> 39 else "dram"] += 1
        return self.memory.get(address, 0)

    def _put(self, address: int, word: int) -> None:
        if address in self.bad_writes:
            raise _MoveEnd(F_AXI, M_BUS, address)
        self.writes["stage" if address >> 39 else "dram"] += 1
        self.memory[address] = word
        self.touched.add(address)

    @property
    def _pattern(self) -> int:
        bits = 8 << self._ewidth
        element = self._imm & (1 << bits) - 1
        return sum(element << at for at in range(0, 256, bits))

    # ------------------------------------------------------------ moves

    def _move(self) -> None:
        try:
            self._before()
            (self._copy, self._never, self._gathered, self._plain, self._plain, self._transformed)[self._mode]()
        except _MoveEnd as stop:
            self.fault, self.sticky = stop.fault, 1
            if stop.code:
                self.recorded.append((stop.code, stop.address))
            return
        self.fault = 0
        self.moves = (self.moves + 1) % (1 << 24)

    def _never(self) -> None:
        raise AssertionError("mode 1 is refused before it starts")

    def _before(self) -> None:
        if self._ewidth == 3:
            raise _MoveEnd(F_EWIDTH)
        if self._mode in (1, 6, 7) or (self._mode == 5 and not self.bank):
            raise _MoveEnd(F_MODE)
        if self._mode == 5 and self._xform[0] > (2 if self.granule else 1):
            raise _MoveEnd(F_XFORM)
        used = self.walkers if self._mode in (0, 5) else self.walkers[1:]
        if any(w.ndim in (0, 7) or w.marked for w in used):
            raise _MoveEnd(F_WALK)
        if self._mode == 2 and not self._gather >> 32 & 0xFFFF:
            raise _MoveEnd(F_WALK)
        if self._mode == 2 and not 1 <= self._index >> 40 & 0xFFFF <= 2048:
            raise _MoveEnd(F_IDXLEN)

    def _copy(self) -> None:
        source = self.walkers[0].walk()
        for to, wanted in self.walkers[1].walk():
            element = next(source, None)
            if element is None:
                raise _MoveEnd(F_WALK)
            if not wanted:
                continue
            self._judge(to, _WORD)
            at, there = element
            word = self._pattern
            if there:
                self._judge(at, _WORD)
                word = self._read(at)
            self._put(to, word)

    def _plain(self) -> None:
        for to, wanted in self.walkers[1].walk():
            if wanted:
                self._judge(to, _WORD)
                self._put(to, philox_word(self._seed, to) if self._mode == 3 else self._pattern)

    def _gathered(self) -> None:
        address, count = self._index & (1 << 40) - 1, self._index >> 40 & 0xFFFF
        places = [address + _WORD * n for n in range((count + 7) // 8)]
        for at in places:
            self._judge(at, _WORD)
        vector = [self._read(at) for at in places]
        index = [word >> 32 * j & 0xFFFFFFFF for word in vector for j in range(8)][:count]
        pitch, words = self._gather & 0xFFFFFFFF, self._gather >> 32 & 0xFFFF
        for e, (to, wanted) in enumerate(self.walkers[1].walk()):
            if not wanted:
                continue
            self._judge(to, _WORD)
            row, k = divmod(e, words)
            if row >= count:
                raise _MoveEnd(F_IDXLEN)
            at = self.walkers[0].base + index[row] * pitch + _WORD * k
            self._judge(at, _WORD)
            self._put(to, self._read(at))

    def _transformed(self) -> None:
        occupant, mode = self._xform
        take = 8 if occupant == 1 else 4
        apart = occupant == 2 and mode & 1
        source, destination = list(self.walkers[0].walk()), self.walkers[1].walk()
        for first in range(0, len(source), take):
            places = []
            for _ in range(4 if apart else 1):
                place = next(destination, None)
                if place is None:
                    raise _MoveEnd(F_WALK)
                if not place[1]:
                    raise _MoveEnd(F_XPAD)
                self._judge(place[0], _WORD if apart else 4 * _WORD)
                places.append(place[0])
            if not apart:
                places = [places[0] + _WORD * w for w in range(4)]
            for n in range(take):
                if first + n >= len(source):
                    raise _MoveEnd(F_WALK)
                if not source[first + n][1]:
                    raise _MoveEnd(F_XPAD)
                self._judge(source[first + n][0], _WORD)
            words = [self._read(at) for at, _ in source[first : first + take]]
            special = False
            if occupant == 1:
                words, special = quantise_words(words, bool(mode & 1))
            elif occupant == 2:
                words = granule_words(words)
            for to in places:
                if to in self.bad_writes:
                    raise _MoveEnd(F_AXI, M_BUS, to)
            for to, word in zip(places, words, strict=True):
                self._put(to, word & _ONES)
            self.nonfinite |= special
