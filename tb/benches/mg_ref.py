# SPDX-License-Identifier: Apache-2.0
"""Sequential expectation of one cluster: what docs/spec/cluster.md says, instruction by instruction.

Arithmetic comes from ``kohakutpu.model.numerics``; decode, fence and flits are
written here from the page, so that the bench does not share them with anybody.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kohakutpu.model.numerics.accumulator import receive_granules
from kohakutpu.model.numerics.mxfp7 import Layout, unpack_words
from kohakutpu.model.numerics.tiles import TileStore

UNIT = (2, 1)
MEM = (0, 1)
CTRL = (3, 1)
MEM_WORDS = 32768

# field -> (lowest bit, width); docs/spec/cluster.md 2
FIELDS = {
    "op": (252, 4), "n": (202, 16), "sel": (201, 1), "acc": (200, 1), "gm": (192, 8), "gn": (184, 8),
    "nk": (176, 8), "anchor": (168, 8), "peers": (144, 24), "npeer": (142, 2), "rsv141": (141, 1),
    "eoff": (133, 8), "aoff": (125, 8), "boff": (117, 8), "emit": (116, 1), "fuse": (115, 1),
    "abank": (114, 1), "bbank": (113, 1), "fbank": (112, 1), "dnode": (111, 1), "dst_x": (107, 4),
    "dst_y": (103, 4), "dbuf": (95, 8), "dflags": (87, 8), "dack_y": (83, 4), "dack_x": (79, 4),
    "dmesh": (77, 2), "dfin": (69, 8), "rowmajor": (62, 1), "tail": (0, 62),
}  # fmt: skip
FILL, GEMM, DRAIN = 1, 2, 3


def pack(op: int, addr: int = 0, **fields: int) -> int:
    """Payload of an instruction; fields not given are 0 (anchor 40, nk 1)."""
    values = {"nk": 1, "anchor": 40, **fields, "op": op}
    word = ((addr & (2**34 - 1)) << 218) | ((addr >> 34) << 63)
    for name, value in values.items():
        low, width = FIELDS[name]
        assert 0 <= value < 1 << width, (name, value)
        word |= value << low
    return word


def unpack(word: int) -> dict[str, int]:
    """Fields of a payload, the address joined."""
    out = {name: (word >> low) & ((1 << width) - 1) for name, (low, width) in FIELDS.items()}
    out["addr"] = ((word >> 218) & (2**34 - 1)) | ((word >> 63) & 63) << 34
    return out


def flit(dst: tuple[int, int], src: tuple[int, int], kind: int, txn: int, last: int, rsvd: int, payload: int) -> int:
    """One 288-bit flit."""
    head = dst[0] << 28 | dst[1] << 24 | src[0] << 20 | src[1] << 16 | kind << 12 | txn << 4 | last << 3 | rsvd
    return head << 256 | payload


def bursts(form: str, n: int, gn: int = 0, pitch: int = 0) -> int:
    """Number of bursts of a transfer (docs/spec/cluster.md 5.7)."""
    if form == "rowmajor" and pitch > gn // 4:
        return 4 * (n // gn) * -(-gn // 32)
    return -(-(2 * n if form == "send" else n) // 8)


def row_places(n: int, gn: int, pitch: int) -> list[int]:
    """Destination word of every word of a row-major DRAIN, relative to its base (5.6)."""
    return [(4 * g + i) * pitch + q for g in range(n // gn) for i in range(4) for q in range(gn // 4)]


@dataclass
class Ref:
    """State of a cluster and what it has sent so far."""

    memory: np.ndarray
    tiles: int = 512
    ga: int = 512
    gb: int = 512
    rd_bad: tuple[int, int] = (0, 0)
    wr_bad: tuple[int, int] = (0, 0)
    rowmajor: int = 0
    open: int = 0
    batch: int = 0
    count: int = 0
    completions: list[tuple[int, int, int]] = field(default_factory=list)  # code, arg, txn
    reads: list[int] = field(default_factory=list)
    writes: list[int] = field(default_factory=list)
    node: list[int] = field(default_factory=list)
    received: list[tuple[tuple[int, int], int]] = field(default_factory=list)  # node, argument
    pending: int = 0
    refused: list[int] = field(default_factory=list)  # codes of writes no completion has owned yet

    def __post_init__(self) -> None:
        self.l1 = [np.zeros((512, 4, 32), np.uint8), np.zeros((512, 4, 32), np.uint8)]
        self.store = TileStore(self.tiles)
        self.partial: list[int] = []  # side, entry, next word of an operand burst
        self.words: list[np.ndarray] = []

    # ---- instructions
    def execute(self, word: int, last: int, txn: int, force: int = 0) -> None:
        """One instruction, to its end; ``force`` is the fault of a FILL whose answers never came."""
        f = unpack(word)
        code = self.check(f)
        op = f["op"]
        if code == 0:
            if op == FILL:
                code = self.fill(f)
                code = force or code
            elif op == GEMM:
                self.gemm(f)
            elif not f["fuse"]:
                self.drain(f)
            cover = last or op == DRAIN
        else:
            cover = last
        own = code
        if own == 0:
            self.count = (self.count + 1) & 0xFFFF
            code, self.pending = self.pending, 0
        drop = self.refused[0] if cover and self.refused else 0
        if cover:
            self.refused = []
        if code:
            self.completions.append((4, 0x4D470000 | op << 8 | code, txn))
        elif drop:
            self.completions.append((4, 0xFAB00000 | drop << 8 | 2, txn))
        elif last:
            self.completions.append((1, txn, txn))
        else:
            self.completions.append((0, self.count, txn))

    def check(self, f: dict[str, int]) -> int:
        """First failing row of 2.1, 0 if none."""
        op = f["op"]
        n, gm, gn, nk = (max(f[k], 1) for k in ("n", "gm", "gn", "nk"))
        size = {0: self.ga, 1: self.gb}
        if op == FILL:
            if n > 255:
                return 0x02
            if f["eoff"] + n > 256 or 256 * f["fbank"] + f["eoff"] + n > size[f["sel"]]:
                return 0x03
            return 0x04 if f["npeer"] else 0
        if op == GEMM:
            if f["aoff"] + gm * nk > 256 or 256 * f["abank"] + f["aoff"] + gm * nk > self.ga:
                return 0x05
            if f["boff"] + gn * nk > 256 or 256 * f["bbank"] + f["boff"] + gn * nk > self.gb:
                return 0x06
            if gm * gn > self.tiles:
                return 0x07
            if f["acc"] and gm * gn > self.open:
                return 0x08
            if not f["emit"]:
                return 0
            if f["dnode"] and f["dbuf"] == 2:
                return 0x09
            return self.check_dest(f, gm * gn)
        if op == DRAIN:
            if n > self.tiles:
                return 0x07
            if f["fuse"]:
                return 0x0A if n > self.batch else 0
            if n > self.open:
                return 0x08
            send = f["dnode"] and f["dbuf"] == 2
            if f["rowmajor"]:
                gn, pitch = f["gn"], f["tail"] >> 40
                if not self.rowmajor or send or gn == 0 or gn % 4 or n % gn:
                    return 0x0E
                if pitch < gn // 4 or f["tail"] % (1 << 40):
                    return 0x0E
                return self.check_dest(f, 1 + max(row_places(n, gn, pitch)))
            return self.check_dest(f, 2 * n if send else n)
        return 0x01

    def check_dest(self, f: dict[str, int], granules: int) -> int:
        if f["dfin"] and (not f["dnode"] or not (f["dack_x"] or f["dack_y"])):
            return 0x0B
        if not f["dnode"]:
            return 0
        dst = (f["dst_x"], f["dst_y"])
        if not f["dfin"] and dst in ((0, 0), UNIT):
            return 0x0C
        a = f["addr"]
        bad = a % 32 or a >> 21 or (a >> 5) + granules > 65536 or (f["dbuf"] == 2 and (a >> 5) & 1)
        return 0x0D if bad else 0

    def fill(self, f: dict[str, int]) -> int:
        n = max(f["n"], 1)
        payload = f["addr"] << 216 | 3 << 208 | 0x40 << 200 | n << 192
        self.reads.append(flit(MEM, UNIT, 0, f["eoff"], 1, 0, payload))
        first = f["addr"] >> 5
        words = np.zeros((4 * n, 32), np.uint8)
        bad = bool(f["addr"] % 32 or f["addr"] >> 36 or first + 4 * n > MEM_WORDS)
        if not bad:
            words[:] = self.memory[first : first + 4 * n]
            at = np.arange(first, first + 4 * n)
            hit = (at >= self.rd_bad[0]) & (at < self.rd_bad[1])
            words[hit] = 0
            bad = bool(hit.any())
        base = 256 * f["fbank"] + f["eoff"]
        self.l1[f["sel"]][base : base + n] = words.reshape(n, 4, 32)
        return 0x10 if bad else 0

    def gemm(self, f: dict[str, int]) -> None:
        gm, gn, nk = (max(f[k], 1) for k in ("gm", "gn", "nk"))
        operands = []
        for side, groups, bank, off, layout in (
            (0, gm, f["abank"], f["aoff"], Layout.A),
            (1, gn, f["bbank"], f["boff"], Layout.B),
        ):
            base = 256 * bank + off
            entries = self.l1[side][base : base + groups * nk]
            q, s = unpack_words(entries, layout)
            operands.append((q.reshape(groups, nk, 4, 32), s.reshape(groups, nk, 4)))
        self.store.sweep(operands[0], operands[1], bool(f["acc"]), f["anchor"])
        if not f["acc"]:
            self.open = max(self.open, gm * gn)
        if f["emit"]:
            self.batch = gm * gn
            self.transfer(f, self.store.emit(gm * gn))

    def drain(self, f: dict[str, int]) -> None:
        n = max(f["n"], 1)
        self.batch = 0
        send = f["dnode"] and f["dbuf"] == 2
        granules = self.store.send(n) if send else self.store.emit(n)
        if not f["rowmajor"]:
            self.transfer(f, granules)
            return
        gn, halves = f["gn"], granules.view("<u2").reshape(-1, 4, 4)
        rows = [
            halves[g * gn + 4 * q : g * gn + 4 * q + 4, i].reshape(-1).view(np.uint8)
            for g in range(n // gn)
            for i in range(4)
            for q in range(gn // 4)
        ]
        self.transfer(f, np.stack(rows), row_places(n, gn, f["tail"] >> 40))

    def transfer(self, f: dict[str, int], granules: np.ndarray, places: list[int] | None = None) -> None:
        """Bursts of at most eight consecutive words in the order given, memory or node form."""
        remote = f["dnode"] and f["dfin"]
        txn, rsvd = (f["dfin"], 4 | f["dmesh"]) if remote else (2, 0)
        dst = (f["dst_x"], f["dst_y"]) if f["dnode"] else MEM
        places = list(range(len(granules))) if places is None else places
        at = 0
        while at < len(granules):
            end = at + 1
            while end < len(granules) and end - at < 8 and places[end] == places[end - 1] + 1:
                end += 1
            part, b, at = granules[at:end], places[at], end
            if f["dnode"]:
                head = f["dbuf"] << 40 | ((f["addr"] >> 5 & 0xFFFF) + b) << 24 | (len(part) - 1) << 16
                head |= f["dflags"] << 8 | f["dack_y"] << 4 | f["dack_x"]
                kinds, out = (8, 8), self.node
            else:
                place = (f["addr"] + 32 * b) % (1 << 40)
                head = place << 8 | (len(part) - 1)
                kinds, out = (1, 4), self.writes
                self.write(place, part)
            out.append(flit(dst, UNIT, kinds[0], txn, 0, rsvd, head << 208))
            for i, g in enumerate(part):
                end = int(i == len(part) - 1)
                out.append(flit(dst, UNIT, kinds[1], txn, end, rsvd, int.from_bytes(g.tobytes(), "little")))

    def write(self, addr: int, part: np.ndarray) -> None:
        """One memory burst; a refused one leaves its code for the owner."""
        first = addr >> 5
        if addr % 32:
            code = 1
        elif addr >> 38 & 1:
            code = 2
        elif addr >> 36 & 3:
            code = 3
        elif addr >> 39:
            code = 4
        elif first + len(part) > MEM_WORDS:
            code = 5
        elif self.wr_bad[0] <= first < self.wr_bad[1]:
            code = 9
        else:
            code = 0
            self.memory[first : first + len(part)] = part
        if code:
            self.refused.append(code)

    # ---- CU_DATA
    def reason(self, buf: int, off: int, length: int) -> int:
        """Reject reason of a descriptor, ``length`` = data flits minus 1."""
        if buf > 2:
            return 1
        cap = (4 * self.ga, 4 * self.gb, 2 * self.tiles)[buf]
        if off + length >= cap:
            return 2
        if buf == 2 and (off % 2 or length % 2 == 0):
            return 3
        return 6 if buf == 2 and (off + length) // 2 >= self.open else 0

    def burst(
        self,
        buf: int,
        off: int,
        data: np.ndarray,
        signal: bool,
        ack: tuple[int, int],
        reason: int | None = None,
    ) -> None:
        """A whole burst; ``reason`` forces a rejection the descriptor does not show."""
        why = self.reason(buf, off, len(data) - 1) if reason is None else reason
        if signal:
            self.received.append((ack, buf | (1 << 31 | why << 24 if why else 0)))
        if why:
            codes = {1: 0x81, 2: 0x82, 3: 0x83, 4: 0x84, 5: 0x85, 6: 0x86}
            self.event(codes[why])
            return
        if buf == 2:
            self.store.add(off // 2, receive_granules(np.ascontiguousarray(data)))
            return
        for i, word in enumerate(data):
            at, w = divmod(off + i, 4)
            if w == 0:
                if self.partial:
                    self.event(0x89)
                self.partial, self.words = [buf, at, 0], []
            elif self.partial != [buf, at, w]:
                self.event(0x89)
                self.partial = []
                continue
            self.words.append(word)
            self.partial[2] += 1
            if w == 3:
                self.l1[buf][at] = np.stack(self.words)
                self.partial = []

    def event(self, code: int) -> None:
        self.pending = self.pending or code
