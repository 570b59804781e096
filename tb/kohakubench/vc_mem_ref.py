# SPDX-License-Identifier: Apache-2.0
"""What the memory unit of the vector core does, written from docs/spec/vector.md 7.5 to 10.

No cycles: commands act one after the other. Words are numpy rows of 32 bytes, registers rows of 16
lanes of 24 bits (``regs[8 * v + chunk]``), flits integers.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

VLD, VST, VFILL, VDRAIN, VBAR, VHALT, QUIESCE = range(7)
F_DTYPE, F_LEN, F_ENC, F_L1RANGE, F_ALIGN, F_ADDR, F_PEER, F_MEM_RD, F_WDOG = (
    0x01, 0x05, 0x0A, 0x0B, 0x0C, 0x0D, 0x0F, 0x10, 0x11,
)  # fmt: skip
OWN, PORT = (1, 0), (0, 1)
Bytes = NDArray[np.uint8]
Lanes = NDArray[np.uint32]


def flit(dst: tuple[int, int], src: tuple[int, int], kind: int, txn: int, last: int, rsvd: int, payload: int) -> int:
    """A 288-bit flit."""
    header = dst[0] << 28 | dst[1] << 24 | src[0] << 20 | src[1] << 16 | kind << 12 | txn << 4 | last << 3 | rsvd
    return header << 256 | payload


def f16_to_e8(half: NDArray[np.uint16]) -> Lanes:
    """Exact; infinity and NaN keep their bits."""
    h = half.astype(np.uint32)
    exact = half.view(np.float16).astype(np.float32).view(np.uint32) >> 8
    special = (h >> 10 & 31) == 31
    return np.where(special, (h >> 15) << 23 | 255 << 15 | (h & 0x3FF) << 5, exact).astype(np.uint32)


def e8_to_f16(code: Lanes) -> tuple[NDArray[np.uint16], NDArray[np.bool_]]:
    """Nearest even; (halves, which finite values were limited to +-65504)."""
    c = np.where((code >> 15 & 255) == 0, code & 0x800000, code).astype(np.uint32)
    with np.errstate(over="ignore", invalid="ignore"):
        half = (c << 8).view(np.float32).astype(np.float16).view(np.uint16)
    special = (c >> 15 & 255) == 255
    limited = ~special & ((half & 0x7FFF) == 0x7C00)
    sign = (c >> 8 & 0x8000).astype(np.uint16)
    half = np.where(limited, sign | 0x7BFF, half)
    nan = special & ((c & 0x7FFF) != 0)
    return np.where(nan, sign | 0x7E00 | (c >> 5 & 0x1FF), half).astype(np.uint16), limited


def f32_to_e8(word: NDArray[np.uint32]) -> Lanes:
    """The low 8 bits rounded to nearest even; subnormals become zeros, NaNs quiet."""
    w = word.astype(np.uint64)
    low, up = w & 0xFF, w >> 8
    near = up + ((low > 128) | ((low == 128) & (up & 1 == 1)))
    sign, e = w >> 31 << 23, w >> 23 & 255
    nan = (e == 255) & (w & 0x7FFFFF != 0)
    out = np.where(e == 0, sign, near)
    out = np.where(nan, sign | 255 << 15 | 1 << 14 | (w >> 8 & 0x3FFF), out)
    return out.astype(np.uint32)


def e8_to_f32(code: Lanes) -> NDArray[np.uint32]:
    """Exact; exponent 0 becomes a signed zero."""
    return np.where((code >> 15 & 255) == 0, (code >> 23) << 31, code << 8).astype(np.uint32)


@dataclass
class Descriptor:
    base: int = 0
    stride: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    bound: list[int] = field(default_factory=lambda: [0, 0, 0, 0])

    @property
    def bounds(self) -> list[int]:
        return [b or 1 for b in self.bound]

    @property
    def total(self) -> int:
        b = self.bounds
        return b[0] * b[1] * b[2] * b[3]

    def walk(self, off: int, count: int) -> list[int]:
        """The addresses of section 8."""
        out, total, b = [], self.total, self.bounds
        for k in range(count):
            t = min(k, total - 1)
            addr = self.base + off
            for d in range(4):
                addr += t % b[d] * self.stride[d]
                t //= b[d]
            out.append(addr)
        return out


class VcMemRef:
    """State and expected traffic.

    Args:
        memory: (words, 32) bytes; addresses are taken modulo its size.
        regs, l1: contents at the start.
        rd_bad: half-open range of memory word numbers whose read fails.
        limit: words the memory answers in all; later ones run into the watchdog.
    """

    def __init__(
        self, memory: Bytes, regs: Lanes, l1: Bytes, rd_bad: tuple[int, int] = (0, 0), limit: int = 1 << 31
    ) -> None:
        self.memory, self.regs, self.l1 = memory, regs, l1
        self.rd_bad, self.limit, self.asked = rd_bad, limit, 0
        self.desc = [Descriptor() for _ in range(8)]
        self.bad = np.zeros(512, np.uint8)
        self.codes: list[int] = []
        self.reads: list[tuple[int, int]] = []  # tag, address
        self.writes: list[int] = []
        self.node: list[int] = []
        self.received: list[int] = []
        self.limited = 0
        self.rejected = 0

    # ---- commands
    def command(self, op: int, word: int, vl: int) -> int:
        """Execute; the fault code, 0 = none."""
        if op in (VLD, VST):
            code = self._ldst(op == VST, word, vl)
        elif op in (VFILL, VDRAIN):
            code = self._move(op == VFILL, word)
        else:
            codes = set(self.bad.tolist()) - {0}
            code = 0 if op == QUIESCE or not codes else max(codes)
            if op != VBAR:
                self.bad[:] = 0
        self.codes.append(code)
        return code

    def _ldst(self, store: bool, word: int, vl: int) -> int:
        dtype, v = word >> 24 & 7, word >> 17 & 15
        off = (word & 0x3FFF) - (word << 1 & 0x4000)
        if dtype not in (1, 2):
            return F_DTYPE
        wide = dtype == 2
        chunks = -(-vl // 16)
        for k, addr in enumerate(self.desc[word >> 21 & 7].walk(off, chunks * (1 + wide))):
            if not 0 <= addr < 512:
                return F_L1RANGE
            if self.bad[addr]:
                return int(self.bad[addr])
            row = 8 * v + (k // 2 if wide else k)
            half = slice(8 * (k % 2), 8 * (k % 2) + 8) if wide else slice(0, 16)
            raw = self.l1[addr]
            if store and wide:
                self.l1[addr] = e8_to_f32(self.regs[row, half]).view(np.uint8)
            elif store:
                halves, limited = e8_to_f16(self.regs[row])
                self.l1[addr] = halves.view(np.uint8)
                self.limited += bool(limited[: max(0, vl - 16 * k)].any())
            elif wide:
                self.regs[row, half] = f32_to_e8(raw.view(np.uint32))
            else:
                self.regs[row] = f16_to_e8(raw.view(np.uint16))
        return 0

    def _move(self, fill: bool, word: int) -> int:
        d = self.desc[word >> 21 & 7]
        l1 = word & (0x3FFF if fill else 0x1FF)
        node, buf, signal = word >> 24 & 1, word >> 9 & 15, word >> 25 & 1
        dst = (word >> 17 & 15, word >> 13 & 15)
        if not fill and (word >> 26 & 1 or (not node and (any(dst) or signal or buf))):
            return F_ENC
        n = d.total
        if n > 256:
            return F_LEN
        if not fill and node:
            if self._bad_peer(d, dst, n):
                return F_PEER
        elif d.base % 32 or any(b > 1 and s % 32 for b, s in zip(d.bounds, d.stride, strict=True)):
            return F_ALIGN
        if l1 + n > 512:
            return F_L1RANGE
        marks = [int(c) for c in self.bad[l1 : l1 + n] if c]
        if marks:
            return marks[0]
        if not fill and node:
            self._peer(d, dst, buf, signal, l1, n)
            return 0
        walk = list(itertools.takewhile(lambda a: 0 <= a < 1 << 40, d.walk(0, n)))
        if fill:
            self._fill(l1, walk)
        else:
            self._drain(l1, walk)
        return 0 if len(walk) == n else F_ADDR

    def _at(self, addr: int) -> int:
        return addr // 32 % len(self.memory)

    def _fill(self, l1: int, walk: list[int]) -> None:
        code = 0
        for k, addr in enumerate(walk):
            self.reads.append(((l1 + k) & 255, addr))
            self.l1[l1 + k] = self.memory[self._at(addr)]
            self.asked += 1
            if self.asked > self.limit:
                code = F_WDOG
            elif self.rd_bad[0] <= addr // 32 % (1 << 32) < self.rd_bad[1]:
                code = max(code, F_MEM_RD)
        if code:
            self.bad[l1 : l1 + len(walk)] = code

    def _drain(self, l1: int, walk: list[int]) -> None:
        k = 0
        while k < len(walk):
            m = 1
            while m < 8 and k + m < len(walk) and walk[k + m] == walk[k + m - 1] + 32:
                m += 1
            self.writes.append(flit(PORT, OWN, 1, 1, 0, 0, walk[k] << 216 | (m - 1) << 208))
            for i in range(m):
                word = self.l1[l1 + k + i]
                self.memory[self._at(walk[k + i])] = word
                self.writes.append(flit(PORT, OWN, 4, 1, int(i == m - 1), 0, int.from_bytes(word.tobytes(), "little")))
            k += m

    def _bad_peer(self, d: Descriptor, dst: tuple[int, int], n: int) -> bool:
        b, fin, ack = d.bounds, d.base >> 26 & 255, d.base >> 16 & 255
        return (
            not any(dst)
            or b[1:] != [1, 1, 1]
            or (b[0] > 1 and d.stride[0] != 1)
            or (d.base & 0xFFFF) + n > 65536
            or (fin != 0 and ack == 0)
        )

    def _peer(self, d: Descriptor, dst: tuple[int, int], buf: int, signal: int, l1: int, n: int) -> None:
        fin = d.base >> 26 & 255
        rsvd = 4 | d.base >> 24 & 3 if fin else 0
        ack = (d.base >> 20 & 15) << 4 | d.base >> 16 & 15
        head = buf << 40 | (d.base & 0xFFFF) << 24 | (n - 1) << 16 | signal << 8 | ack
        self.node.append(flit(dst, OWN, 8, fin, 0, rsvd, head << 208))
        for k in range(n):
            value = int.from_bytes(self.l1[l1 + k].tobytes(), "little")
            self.node.append(flit(dst, OWN, 8, fin, int(k == n - 1), rsvd, value))

    # ---- bursts
    def burst(
        self, buf: int, off: int, data: Bytes, src: tuple[int, int], ack: tuple[int, int], signal: int, txn: int,
        reason: int = 0,
    ) -> None:  # fmt: skip
        """A burst from another unit; ``reason`` 4, 5 are seen by its framing and said by the caller."""
        if not reason:
            reason = 1 if buf else 2 if off + len(data) > 512 else 0
        if not reason:
            self.l1[off : off + len(data)] = data
        else:
            self.rejected += 1
        if signal:
            arg = buf | (1 << 31 | reason << 24 if reason else 0)
            to = ack if any(ack) else src
            self.received.append(flit(to, OWN, 6, txn, 1, 0, 3 << 248 | arg << 216))
