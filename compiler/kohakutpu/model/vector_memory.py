# SPDX-License-Identifier: Apache-2.0
"""L1 of the vector core, its descriptors, and the instructions that use them (docs/spec/vector.md 7.5 to 9).

`VectorMemory` executes VLD, VST, VFILL, VDRAIN and the waits of VBAR and VHALT, each to its end. It stands alone:
a bench of the memory unit needs this file, a `Link` and decoded words only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod
from typing import Protocol

import numpy as np

from kohakutpu.isa import generated as g
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import VectorDtype, VectorError
from kohakutpu.isa.generated import VectorFault as F
from kohakutpu.model.description import Node
from kohakutpu.model.memory import WORD
from kohakutpu.model.messages import DataBurst
from kohakutpu.model.numerics import Layout, NumericEvents, quantise_entries
from kohakutpu.model.numerics.bits import U8, U32
from kohakutpu.model.numerics.convert import e8m15_to_fp16, e8m15_to_fp32, fp16_to_e8m15, fp32_to_e8m15

LAYER = "L0"

WRITE_TXN = 1
_ADDRESSES = 1 << g.VC_ADDR_BITS
_MX_WORDS_IN, _MX_WORDS_OUT = 8, 4


class Link(Protocol):
    """What the core needs from the shell and the mesh."""

    pos: Node

    def read(self, l1: int, address: int, n: int) -> tuple[U8, U8]:
        """n words from a byte address for L1 words l1..: (uint8 (n, 32), uint8 (n,) fault codes, 0 = good)."""

    def write(self, address: int, words: U8) -> None:
        """One write burst, uint8 (1..8, 32)."""

    def send_burst(self, burst: DataBurst) -> None:
        """One CU_DATA burst."""

    def acknowledge(self, flit: int) -> None:
        """One DATA_RECEIVED flit."""

    def unit_error(self, bit: VectorError) -> None:
        """Raise `unit_err[bit]`."""


@dataclass
class Descriptor:
    """One address descriptor: 40-bit base, four dimensions, the first fastest."""

    base: int = 0
    strides: list[int] = field(default_factory=lambda: [0] * g.VC_DIMS)
    bounds: list[int] = field(default_factory=lambda: [1] * g.VC_DIMS)

    @property
    def extents(self) -> list[int]:
        """Bounds with 0 read as 1."""
        return [bound or 1 for bound in self.bounds]

    @property
    def total(self) -> int:
        """Addresses of a full walk."""
        return prod(self.extents)

    @property
    def aligned(self) -> bool:
        """True if base and every stride in use are multiples of a word."""
        used = [s for s, n in zip(self.strides, self.extents, strict=True) if n > 1]
        return all(v % WORD == 0 for v in (self.base, *used))

    def walk(self, off: int, count: int) -> Iterator[int]:
        """`count` addresses; the last one repeats once the walk is over (section 8)."""
        last = self.total - 1
        for k in range(count):
            t = min(k, last)
            address = self.base + off
            for stride, n in zip(self.strides, self.extents, strict=True):
                t, index = divmod(t, n)
                address += index * stride
            yield address


class VectorMemory:
    """L1 and descriptors behind `link`, as after reset.

    `l1` is uint8 (512, 32). `bad[w]` is the fault code of the failed VFILL that covers word w, 0 for none, until
    the RUN ends. `undefined[w]` marks words whose contents the page leaves open because their fill failed.
    """

    def __init__(self, link: Link, mx_store: bool = False) -> None:
        self.link = link
        self.mx_store = mx_store
        self.l1 = np.zeros((g.VC_L1_WORDS, WORD), dtype=np.uint8)
        self.bad = np.zeros(g.VC_L1_WORDS, dtype=np.uint8)
        self.undefined = np.zeros(g.VC_L1_WORDS, dtype=bool)
        self.descriptors = [Descriptor() for _ in range(g.VC_DESCRIPTORS)]

    # ------------------------------------------------------------ descriptors

    def set_field(self, ad: int, fld: int, value: int, value_hi: int = 0) -> None:
        """DESC: field 0 is the base, 1..4 a dimension; the envelope has refused others."""
        d = self.descriptors[ad]
        if fld == 0:
            layout = codec("VC_DESC").fields["value"]
            d.base = value_hi << layout.width | value
            return
        stride = value >> g.VC_BOUND_BITS & (1 << g.VC_STRIDE_BITS) - 1
        sign = 1 << (g.VC_STRIDE_BITS - 1)
        d.strides[fld - 1] = (stride ^ sign) - sign
        d.bounds[fld - 1] = value & (1 << g.VC_BOUND_BITS) - 1

    # ------------------------------------------------------------ VLD, VST

    def _reachable(self, ad: int, off: int, count: int) -> tuple[list[int], F | None]:
        """L1 words of a VLD or VST up to the first that faults, and its fault."""
        words: list[int] = []
        for w in self.descriptors[ad].walk(off, count):
            if not 0 <= w < g.VC_L1_WORDS:
                return words, F.F_L1RANGE
            if self.bad[w]:
                return words, F(self.bad[w])
            words.append(w)
        return words, None

    def load(self, dtype: int, ad: int, off: int, vl: int) -> tuple[U32, F | None]:
        """VLD: (E8M15 codes of the elements loaded, from element 0 on; fault after them)."""
        if dtype not in list(VectorDtype):
            return np.zeros(0, dtype=np.uint32), F.F_DTYPE
        wide = dtype == VectorDtype.FP32
        words, fault = self._reachable(ad, off, _chunks(vl) << wide)
        raw = self.l1[words].reshape(-1)
        elements = fp32_to_e8m15(raw.view("<u4")) if wide else fp16_to_e8m15(raw.view("<u2"))
        return elements, fault

    def store(self, dtype: int, ad: int, off: int, vl: int, elements: U32) -> F | None:
        """VST of E8M15 codes, uint32 (128,)."""
        if dtype not in list(VectorDtype):
            return F.F_DTYPE
        wide = dtype == VectorDtype.FP32
        words, fault = self._reachable(ad, off, _chunks(vl) << wide)
        n = len(words) * (8 if wide else 16)
        if wide:
            rows = e8m15_to_fp32(elements[:n]).astype("<u4")
        else:
            rows = e8m15_to_fp16(elements[:n]).astype("<u2")
            self.watch_clamp(elements[: min(n, vl)])
        for w, data in zip(words, rows.view(np.uint8).reshape(-1, WORD), strict=True):
            self._put(w, data)
        return fault

    def watch_clamp(self, elements: U32) -> None:
        """Raise `unit_err[3]` if one of these values does not fit FP16."""
        events = NumericEvents()
        e8m15_to_fp16(elements, events)
        if events.fp16_sat:
            self.link.unit_error(VectorError.CLAMP)

    def _put(self, word: int, data: U8) -> None:
        self.l1[word] = data
        self.undefined[word] = False

    def receive(self, granule: int, words: U8) -> None:
        """Words of an accepted CU_DATA burst, uint8 (n, 32)."""
        self.l1[granule : granule + len(words)] = words
        self.undefined[granule : granule + len(words)] = False

    # ------------------------------------------------------------ VFILL

    def fill(self, ad: int, l1: int) -> F | None:
        """VFILL with its responses; their failures show at the next instruction that looks (section 7.8)."""
        d = self.descriptors[ad]
        n = d.total
        if n > g.VC_WALK_MAX:
            return F.F_LEN
        if not d.aligned:
            return F.F_ALIGN
        if l1 + n > g.VC_L1_WORDS:
            return F.F_L1RANGE
        fault = self._bad_in(l1, n)
        if fault:
            return fault
        addresses = list(d.walk(0, n))
        reach = _reach(addresses)
        codes = np.zeros(reach, dtype=np.uint8)
        for start, end in _cut(addresses[:reach], g.VC_STREAM_MAX, l1):
            words, codes[start:end] = self.link.read((l1 + start) & 255, addresses[start], end - start)
            self.l1[l1 + start : l1 + end] = words
        worst = int(codes.max(initial=0))
        self.bad[l1 : l1 + reach] = worst
        self.undefined[l1 : l1 + reach] = worst != 0
        if worst == F.F_WDOG:
            self.link.unit_error(VectorError.FILL_WDOG)
        return None if reach == n else F.F_ADDR

    def _bad_in(self, l1: int, n: int) -> F | None:
        """Code of the first bad word of l1..l1+n-1."""
        marks = self.bad[l1 : l1 + n]
        return F(marks[(marks != 0).argmax()]) if marks.any() else None

    def barrier(self) -> F | None:
        """VBAR and VHALT: a failed fill nobody has touched."""
        worst = int(self.bad.max())
        return F(worst) if worst else None

    def retire(self) -> None:
        """End of a RUN."""
        self.bad[:] = 0

    # ------------------------------------------------------------ VDRAIN

    def drain(self, ad: int, l1: int, node: int, dst: Node, buf: int, signal: int, mx: int = 0) -> F | None:
        """VDRAIN to memory (node = 0) or to the unit at `dst`."""
        d = self.descriptors[ad]
        if mx and not self.mx_store:
            return F.F_ENC
        if not node and (dst != (0, 0) or signal or buf > (1 if mx else 0)):
            return F.F_ENC
        count = d.total
        n = count * (_MX_WORDS_IN if mx else 1)
        sent = count * (_MX_WORDS_OUT if mx else 1)
        if n > g.VC_WALK_MAX:
            return F.F_LEN
        if node and _bad_peer(d, dst, sent, mx, buf):
            return F.F_PEER
        if not node and not d.aligned:
            return F.F_ALIGN
        if l1 + n > g.VC_L1_WORDS:
            return F.F_L1RANGE
        fault = self._bad_in(l1, n)
        if fault:
            return fault
        words = self.l1[l1 : l1 + n].copy()
        if node:
            self._send(d, dst, buf, signal, self._quantised(words, Layout(buf)) if mx else words)
            return None
        repeat = sent // count
        addresses = [x + WORD * w for x in d.walk(0, count) for w in range(repeat)]
        reach = _reach(addresses)
        if mx:  # an entry none of whose words is written raises nothing
            words = self._quantised(words[: -(-reach // repeat) * _MX_WORDS_IN], Layout(buf))
        for start, end in _cut(addresses[:reach], g.VC_WBURST_MAX):
            self.link.write(addresses[start], words[start:end])
        return None if reach == sent else F.F_ADDR

    def _quantised(self, words: U8, layout: Layout) -> U8:
        events = NumericEvents()
        packed = quantise_entries(words.reshape(-1, _MX_WORDS_IN * WORD), layout, events)
        if events.q_special:
            self.link.unit_error(VectorError.CLAMP)
        return packed.reshape(-1, WORD)

    def _send(self, d: Descriptor, dst: Node, buf: int, signal: int, words: U8) -> None:
        f = codec("VC_PEER_BASE").decode(d.base)
        remote = f["fin_x"] or f["fin_y"]
        self.link.send_burst(
            DataBurst(
                dst=dst,
                src=self.link.pos,
                txn=f["fin_y"] << 4 | f["fin_x"],
                rsvd=4 | f["mesh"] if remote else 0,
                buf=buf,
                offset=f["off"],
                flags=signal,
                ack=(f["ack_x"], f["ack_y"]),
                words=words,
            )
        )


def _chunks(vl: int) -> int:
    return -(-vl // g.VC_LANES)


def _bad_peer(d: Descriptor, dst: Node, granules: int, mx: int, buf: int) -> bool:
    """F_PEER rows of section 9.4."""
    f = codec("VC_PEER_BASE").decode(d.base)
    first, *others = d.extents
    return (
        dst == (0, 0)
        or any(n != 1 for n in others)
        or (first > 1 and d.strides[0] != 1)
        or f["off"] + granules > 1 << codec("VC_PEER_BASE").fields["off"].width
        or ((f["fin_x"], f["fin_y"]) != (0, 0) and (f["ack_x"], f["ack_y"]) == (0, 0))
        or (mx != 0 and buf > 1)
    )


def _reach(addresses: list[int]) -> int:
    """How many addresses come before the first outside memory."""
    return next((k for k, x in enumerate(addresses) if not 0 <= x < _ADDRESSES), len(addresses))


def _cut(addresses: list[int], limit: int, l1: int | None = None) -> Iterator[tuple[int, int]]:
    """Greedy runs [start, end) of consecutive words, at most `limit` long.

    With `l1` a run also ends where the L1 word that goes with it is a multiple of 256: tags would wrap.
    """
    breaks = [k + 1 for k, (x, y) in enumerate(pairwise(addresses)) if y != x + WORD]
    if l1 is not None and 0 < (-l1) % 256 < len(addresses):
        breaks.append((-l1) % 256)
    edges = sorted({0, *breaks, len(addresses)})
    for low, high in pairwise(edges):
        for start in range(low, high, limit):
            yield start, min(start + limit, high)
