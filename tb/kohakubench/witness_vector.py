# SPDX-License-Identifier: Apache-2.0
"""Scalar witness of the vector core: docs/spec/vector.md read sentence by sentence, one element at a time.

It decodes words by the table of section 5, keeps registers as lists of ints, and shares nothing with the model.
L1 is a list of 512 integers of 256 bits, memory a dictionary from byte address to such a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from kohakubench import witness_e8m15 as lane
from kohakubench import witness_numerics as convert

ONE = 0x3F8000
Walk = tuple[int, list[int], list[int]]


class Stop(Exception):  # noqa: N818
    """The RUN ends with this fault name, or with None at VHALT."""

    def __init__(self, fault: str | None) -> None:
        self.fault = fault


@dataclass
class Burst:
    """A peer burst."""

    dst: tuple[int, int]
    txn: int
    rsvd: int
    buf: int
    offset: int
    signal: int
    ack: tuple[int, int]
    words: list[int]


@dataclass
class WitnessCore:
    """State after reset; `run` executes a kernel."""

    memory: dict[int, int] = field(default_factory=dict)
    read_errors: set[int] = field(default_factory=set)
    v: list[list[int]] = field(default_factory=lambda: [[0] * 128 for _ in range(16)])
    s: list[int] = field(default_factory=lambda: [0] * 16)
    k: list[int] = field(default_factory=lambda: [0, ONE, 0xBF8000, 0])
    p: list[list[int]] = field(default_factory=lambda: [[0] * 128 for _ in range(4)])
    vl: int = 128
    mode: int = 0
    a: list[Walk] = field(default_factory=lambda: [(0, [0] * 4, [1] * 4) for _ in range(8)])
    l1: list[int] = field(default_factory=lambda: [0] * 512)
    imem: list[int] = field(default_factory=lambda: [0] * 512)
    clamped: bool = False
    writes: list[tuple[int, list[int]]] = field(default_factory=list)
    bursts: list[Burst] = field(default_factory=list)

    def run(self, pc: int) -> tuple[str | None, int]:
        """(fault name or None, address of the faulting or halting instruction)."""
        self.failed: set[int] = set()
        self.loop: tuple[int, int, int] | None = None
        self.at = pc
        first = pc
        try:
            while True:
                first = self.at
                self.step(self.fetch())
                if self.loop and self.at == self.loop[1] + 1:
                    top, end, left = self.loop
                    if left > 1:
                        self.at, self.loop = top, (top, end, left - 1)
                    else:
                        self.loop = None
        except Stop as stop:
            return stop.fault, first % 512

    def fetch(self) -> int:
        if self.loop and self.at > self.loop[1]:
            raise Stop("F_LOOP")
        if self.at > 511:
            raise Stop("F_PC")
        self.at += 1
        return self.imem[self.at - 1]

    # ------------------------------------------------------------ one instruction

    def step(self, word: int) -> None:
        op = bits(word, 31, 27)
        if op <= 0x11:
            self.arithmetic(word)
        elif op == 0x12:
            self.vcvt(word)
        elif op == 0x13:
            self.vred(word)
        elif op in (0x14, 0x15):
            self.load_store(word, op == 0x15)
        elif op == 0x16:
            self.vbcast(word)
        elif op == 0x17:
            self.vshuf(word)
        elif op == 0x18:
            length = self.s[bits(word, 16, 13)]
            if not 1 <= length <= 128:
                raise Stop("F_VL")
            self.vl = length
        elif op == 0x19:
            if bits(word, 16, 13) > 3:
                raise Stop("F_ENC")
            self.mode = bits(word, 16, 13)
        elif op == 0x1A:
            self.vseti(word)
        elif op == 0x1B:
            self.vloop(word)
        elif op == 0x1D:
            self.vfill(word)
        elif op == 0x1E:
            self.vdrain(word)
        else:  # VBAR, VHALT
            if self.failed:
                raise Stop("F_MEM_RD")
            if op == 0x1F:
                raise Stop(None)

    def arithmetic(self, word: int) -> None:
        depth = {0: 1, 1: 2, 2: 4, 3: 1}[self.mode]
        group = [word]
        check_alu(word, self.mode, 0, depth)
        for n in range(1, depth):
            group.append(self.fetch())
            check_alu(group[n], self.mode, n, depth)
        for e in range(self.vl):
            chained = 0
            result = []
            for w in group:
                operands = []
                for sel_low, reg_low in ((25, 13), (23, 9), (21, 5)):
                    sel, reg = bits(w, sel_low + 1, sel_low), bits(w, reg_low + 3, reg_low)
                    value = (self.v[reg][e], self.s[reg], chained, self.k[reg % 4])[sel]
                    operands.append(value)
                chained = lane.lane(bits(w, 31, 27), *operands)
                result.append(chained)
            last = group[-1]
            if bits(last, 31, 27) in (0x0B, 0x0C, 0x0D):
                # a compare reads no predicate, so its bit may be written at once
                self.p[bits(last, 4, 3)][e] = int(result[-1] == ONE)
            elif self.allowed(last, e):
                self.v[bits(last, 20, 17)][e] = result[-1]

    def allowed(self, word: int, e: int) -> bool:
        pm, bit = bits(word, 2, 1), self.p[bits(word, 4, 3)][e]
        return pm == 0 or (bit == 1 if pm == 1 else bit == 0)

    @property
    def whole(self) -> int:
        """Elements of chunks 0..N-1."""
        return (self.vl + 15) // 16 * 16

    def vcvt(self, word: int) -> None:
        dtype, vd, va = bits(word, 26, 24), bits(word, 20, 17), bits(word, 16, 13)
        if dtype not in (1, 2):
            raise Stop("F_DTYPE")
        for e in range(self.whole):
            x = self.v[va][e]
            if dtype == 1:
                self.clamped |= e < self.vl and lane.clamps(x)
                x = convert.fp16_to_e8m15(convert.e8m15_to_fp16(x))
            self.v[vd][e] = x

    def vred(self, word: int) -> None:
        sd, va, vb = bits(word, 20, 17), bits(word, 16, 13), bits(word, 12, 9)
        kind, pr, pm = bits(word, 8, 5), bits(word, 4, 3), bits(word, 2, 1)
        if kind > 7 or pm or (kind == 3 and vb != va):
            raise Stop("F_ENC")
        if kind >= 6:
            active = self.p[pr][: self.vl]
            self.s[sd] = ONE if (any(active) if kind == 6 else all(active)) else 0
            return
        if self.vl % 16:
            raise Stop("F_REDVL")
        if self.mode != 3:
            raise Stop("F_OPCODE")
        self.s[sd], leaves = lane.reduce(kind, self.v[va][: self.vl], self.v[vb][: self.vl])
        if kind == 5:
            self.v[vb][: self.vl] = leaves

    def load_store(self, word: int, store: bool) -> None:
        dtype, ad, reg = bits(word, 26, 24), bits(word, 23, 21), bits(word, 20, 17)
        off = bits(word, 13, 0) - (1 << 14 if word >> 13 & 1 else 0)
        if dtype not in (1, 2):
            raise Stop("F_DTYPE")
        each = 16 if dtype == 1 else 8
        width = 256 // each
        for n, w in enumerate(walk(self.a[ad], off, self.whole // each)):
            if not 0 <= w <= 511:
                raise Stop("F_L1RANGE")
            if w in self.failed:
                raise Stop("F_MEM_RD")
            if store:
                self.l1[w] = 0
            for i in range(each):
                e = each * n + i
                if store:
                    x = self.v[reg][e]
                    self.clamped |= dtype == 1 and e < self.vl and lane.clamps(x)
                    code = convert.e8m15_to_fp16(x) if dtype == 1 else convert.e8m15_to_fp32(x)
                    self.l1[w] |= code << (width * i)
                else:
                    code = self.l1[w] >> (width * i) & ((1 << width) - 1)
                    self.v[reg][e] = convert.fp16_to_e8m15(code) if dtype == 1 else convert.fp32_to_e8m15(code)

    def vbcast(self, word: int) -> None:
        sa, d, a = bits(word, 26, 25), bits(word, 20, 17), bits(word, 16, 13)
        if sa > 1:
            raise Stop("F_ENC")
        if sa == 0:
            self.s[d] = self.v[a][0]
            return
        for e in range(self.whole):
            self.v[d][e] = self.s[a]

    def vshuf(self, word: int) -> None:
        vd, va, k = bits(word, 20, 17), bits(word, 16, 13), self.s[bits(word, 12, 9)] & 15
        if bits(word, 2, 1) == 3:
            raise Stop("F_ENC")
        before = list(self.v[va])
        for e in range(self.whole):
            if self.allowed(word, e):
                self.v[vd][e] = before[e // 16 * 16 + (e % 16 + k) % 16]

    def vseti(self, word: int) -> None:
        sel, sd = bits(word, 26, 25), bits(word, 20, 17)
        if sel in (1, 2):
            raise Stop("F_ENC")
        imm = self.fetch()
        if imm >> 24:
            raise Stop("F_ENC")
        if sel == 0:
            self.s[sd] = imm
        else:
            self.k[3] = imm

    def vloop(self, word: int) -> None:
        count, body = self.s[bits(word, 16, 13)], bits(word, 12, 9)
        p = self.at - 1
        if self.loop or count == 0 or body == 0 or p + body > 511:
            raise Stop("F_LOOP")
        self.loop = (p + 1, p + body, count)

    # ------------------------------------------------------------ memory

    def vfill(self, word: int) -> None:
        desc, l1 = self.a[bits(word, 23, 21)], bits(word, 13, 0)
        n = self.transfer(desc, l1)
        target = set(range(l1, l1 + n))
        if target & self.failed:
            raise Stop("F_MEM_RD")
        done: list[int] = []
        failed = False
        for k, address in enumerate(walk(desc, 0, n)):
            if not 0 <= address < 1 << 40:
                break
            failed |= address in self.read_errors
            self.l1[l1 + k] = self.memory.get(address, 0)
            done.append(l1 + k)
        if failed:
            self.failed |= set(done)
        if len(done) < n:
            raise Stop("F_ADDR")

    def transfer(self, desc: Walk, l1: int) -> int:
        """Length, alignment and range of a memory transfer, in the order of the checks."""
        n = length(desc)
        if n > 256:
            raise Stop("F_LEN")
        base, strides, bounds = desc
        if base % 32 or any(s % 32 for s, b in zip(strides, bounds, strict=True) if b > 1):
            raise Stop("F_ALIGN")
        if l1 + n > 512:
            raise Stop("F_L1RANGE")
        return n

    def vdrain(self, word: int) -> None:
        if bits(word, 26, 26):
            raise Stop("F_ENC")
        signal, node, desc = bits(word, 25, 25), bits(word, 24, 24), self.a[bits(word, 23, 21)]
        dst, buf, l1 = (bits(word, 20, 17), bits(word, 16, 13)), bits(word, 12, 9), bits(word, 8, 0)
        if node == 0:
            if dst != (0, 0) or signal or buf:
                raise Stop("F_ENC")
            n = self.transfer(desc, l1)
        else:
            n = self.peer_length(desc, dst, l1)
        if set(range(l1, l1 + n)) & self.failed:
            raise Stop("F_MEM_RD")
        words = self.l1[l1 : l1 + n]
        if node:
            base = desc[0]
            fin = base >> 26 & 0xFF
            ack = (base >> 16 & 15, base >> 20 & 15)
            rsvd = 4 | base >> 24 & 3 if fin else 0
            self.bursts.append(Burst(dst, fin, rsvd, buf, base & 0xFFFF, signal, ack, words))
            return
        burst: list[int] = []
        start = following = 0
        for address, data in zip(walk(desc, 0, n), words, strict=True):
            outside = not 0 <= address < 1 << 40
            if burst and (outside or len(burst) == 8 or address != following):
                self.writes.append((start, burst))
                burst = []
            if outside:
                raise Stop("F_ADDR")
            if not burst:
                start = address
            burst.append(data)
            following = address + 32
            self.memory[address] = data
        self.writes.append((start, burst))

    def peer_length(self, desc: Walk, dst: tuple[int, int], l1: int) -> int:
        n = length(desc)
        if n > 256:
            raise Stop("F_LEN")
        base, strides, bounds = desc
        if dst == (0, 0) or any(b > 1 for b in bounds[1:]) or (bounds[0] > 1 and strides[0] != 1):
            raise Stop("F_PEER")
        if (base & 0xFFFF) + n > 65536 or (base >> 26 & 0xFF and not base >> 16 & 0xFF):
            raise Stop("F_PEER")
        if l1 + n > 512:
            raise Stop("F_L1RANGE")
        return n


def bits(word: int, high: int, low: int) -> int:
    return word >> low & ((1 << (high - low + 1)) - 1)


def length(desc: Walk) -> int:
    n = 1
    for b in desc[2]:
        n *= b if b else 1
    return n


def walk(desc: Walk, off: int, count: int) -> Iterator[int]:
    """Four nested counters; at the end they stay where they are."""
    base, strides, bounds = desc
    index = [0, 0, 0, 0]
    for _ in range(count):
        yield base + off + sum(i * s for i, s in zip(index, strides, strict=True))
        following = list(index)
        for d in range(4):
            following[d] += 1
            if following[d] < max(bounds[d], 1):
                index = following
                break
            following[d] = 0


def check_alu(word: int, mode: int, n: int, depth: int) -> None:
    """Checks of one word of a group, in the order of section 11.2."""
    op = bits(word, 31, 27)
    if op > 0x11 or mode == 3:
        raise Stop("F_OPCODE")
    pm = bits(word, 2, 1)
    if pm == 3 or (pm and (n < depth - 1 or op in (0x0B, 0x0C, 0x0D))):
        raise Stop("F_ENC")
    read_b = op in (0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D)
    read_c = op in (0x03, 0x04, 0x06, 0x07, 0x0A)
    slots = ((25, 13, True), (23, 9, read_b), (21, 5, read_c))
    selectors = [bits(word, low + 1, low) for low, _, _ in slots]
    for sel, (_, low, read) in zip(selectors, slots, strict=True):
        if read and sel == 3 and bits(word, low + 3, low) > 3:
            raise Stop("F_ENC")
    if n == 0 and 2 in selectors:
        raise Stop("F_CHAIN")
    if n > 0 and 0 in selectors:
        raise Stop("F_VSRC")
