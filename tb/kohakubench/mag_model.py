# SPDX-License-Identifier: Apache-2.0
"""Reference memory agent for benches, one mesh port, no cycles (docs/spec/memory.md 1 to 7).

Flits go in, in their order on the link; out come the response flits in order, the
acknowledgements per source in order, the fault events, the drop counters and the
memory images. Nodes are bytes {y, x}.
"""

from __future__ import annotations

from dataclasses import dataclass, field

WORD = 32
RD_REQ, WR_REQ, RD_RESP, WR_ACK, WR_DATA, CU_DATA = 0, 1, 2, 3, 4, 8
STREAM = 1 << 6
APERTURE = 1 << 39  # address bit of the staging store
(M_NONE, M_ALIGN, M_RSVD, M_MESH, M_APER, M_RANGE, M_LEN, M_TAG, M_FRAME, M_BUS, M_REMOTE, M_ORPHAN) = range(
    12
)


def flit(
    *, dst: int, src: int, kind: int, txn: int = 0, last: int = 0, rsvd: int = 0, payload: int = 0
) -> int:
    """One 288-bit flit."""
    header = (dst & 15) << 28 | (dst >> 4) << 24 | (src & 15) << 20 | (src >> 4) << 16
    return (header | kind << 12 | txn << 4 | last << 3 | rsvd) << 256 | payload


@dataclass(frozen=True)
class Flit:
    """Fields of a received flit."""

    dst: int
    src: int
    kind: int
    txn: int
    last: int
    rsvd: int
    payload: int

    @classmethod
    def of(cls, raw: int) -> Flit:
        h = raw >> 256
        node = [(h >> s & 15) | (h >> (s - 4) & 15) << 4 for s in (28, 20)]
        return cls(node[0], node[1], h >> 12 & 15, h >> 4 & 255, h >> 3 & 1, h & 7, raw & (1 << 256) - 1)


def read_request(
    src: int,
    txn: int,
    addr: int,
    n: int = 1,
    *,
    port: int = 0x10,
    ew: int | None = None,
    count: int = 0,
    peers: tuple[int, ...] = (),
    noise: int = 0,
    rsvd: int = 0,
) -> int:
    """MEM_RD_REQ: plain read of ``n`` words, or a streaming read when ``ew`` is given (raw field values).

    ``noise`` sets the fields and flag bits that the agent has to ignore in this form.
    """
    p = addr << 216
    if ew is None:
        p |= (n - 1) << 208 | (noise & 0xBF) << 200 | (noise * 0x9E3779B97F4A7C15 & (1 << 42) - 1) << 158
    else:
        p |= (
            (noise & 0xFF) << 208
            | (STREAM | noise & 0xBF) << 200
            | count << 192
            | len(peers) << 166
            | ew << 158
        )
        for k in range(3):
            p |= (peers[k] if k < len(peers) else noise & 0xFF) << (168 + 8 * k)
    p |= noise * 0x1234567 & (1 << 158) - 1
    return flit(dst=port, src=src, kind=RD_REQ, txn=txn, last=1, rsvd=rsvd, payload=p)


def write_flits(
    src: int,
    txn: int,
    addr: int,
    words: list[int],
    *,
    port: int = 0x10,
    length: int | None = None,
    lasts: list[int] | None = None,
    rsvd: int = 0,
) -> list[int]:
    """Descriptor and data flits of one write; ``length`` and ``lasts`` override for broken ones."""
    n = len(words) - 1 if length is None else length
    out = [flit(dst=port, src=src, kind=WR_REQ, txn=txn, rsvd=rsvd, payload=addr << 216 | n << 208)]
    for k, word in enumerate(words):
        last = int(k == len(words) - 1) if lasts is None else lasts[k]
        out.append(flit(dst=port, src=src, kind=WR_DATA, txn=txn ^ 0x55, last=last, rsvd=rsvd, payload=word))
    return out


@dataclass
class _Write:
    txn: int
    addr: int
    length: int
    code: int
    words: list[int] = field(default_factory=list)


class MagModel:
    """Reference agent.

    Args:
        dram_bytes: size behind the mesh's window; also the size of ``memory``.
        mesh: own mesh id.
        port: node byte of the port.
        stage_bytes: size of the staging store ``stage``, 0 if none is built.
    """

    def __init__(self, dram_bytes: int, *, mesh: int = 0, port: int = 0x10, stage_bytes: int = 0) -> None:
        self.mesh, self.port, self.dram_bytes, self.stage_bytes = mesh, port, dram_bytes, stage_bytes
        self.memory = bytearray(dram_bytes)
        self.stage = bytearray(stage_bytes)
        self.read_errors: tuple[int, int] = (0, 0)  # byte window [lo, hi) that fails on the bus
        self.write_errors: tuple[int, int] = (0, 0)
        self.undefined: set[int] = set()  # word addresses of writes that failed on the bus
        self.words_read = self.words_written = 0
        self.stage_read = self.stage_written = 0
        self._open: dict[int, _Write] = {}
        self.start()

    def start(self) -> None:
        """Forget outputs and events; memory and open writes stay."""
        self.responses: list[int] = []
        self.acks: dict[int, list[int]] = {}
        self.faults: list[tuple[int, int, int, int]] = []  # code, source, txn, address
        self.orphans = self.drops = self.lost = 0
        self.issued: list[int] = []  # addresses of writes in the order they became ready

    # ------------------------------------------------------------ address
    def classify(self, addr: int, n: int) -> int:
        """Memory fault code of an aligned-only access of ``n`` bytes, 0 when it is served."""
        if addr >> 38 & 1:
            return M_RSVD
        if addr >> 36 & 3 != self.mesh:
            return M_MESH
        if addr & APERTURE and (addr >> 32 & 15 or not self.stage_bytes):
            return M_APER
        if addr & 31:
            return M_ALIGN
        if addr & APERTURE:
            return M_RANGE if (addr & (1 << 32) - 1) + n > self.stage_bytes else M_NONE
        return M_RANGE if (addr & (1 << 36) - 1) + n > self.dram_bytes else M_NONE

    # ------------------------------------------------------------ flits
    def feed(self, raw: int) -> None:
        """Take one inbound flit."""
        f = Flit.of(raw)
        if f.kind == RD_REQ:
            self._read(f)
        elif f.kind == WR_REQ:
            self._descriptor(f)
        elif f.kind == WR_DATA:
            self._data(f)
        elif f.kind == CU_DATA and f.rsvd & 4:
            self.faults.append((M_REMOTE, f.src, f.txn, 0))
            self.lost += 1
        else:
            self.drops += 1
            self.lost += 1

    def _read(self, f: Flit) -> None:
        p = f.payload
        addr, stream = p >> 216, p >> 206 & 1
        if stream:
            raw_ew = p >> 158 & 255
            ew = raw_ew if 1 <= raw_ew <= 4 else 4
            count = (p >> 192 & 255) or 1
            dests = [f.src] + [p >> (168 + 8 * k) & 255 for k in range(p >> 166 & 3)]
        else:
            ew, count, dests = (p >> 208 & 255) + 1, 1, [f.src]
        code = M_REMOTE if f.rsvd & 4 else self.classify(addr, count * ew * WORD)
        if code == M_NONE and stream and f.txn + count - 1 > 255:
            code = M_TAG
        if code:
            self.faults.append((code, f.src, f.txn, addr))
        elif addr & APERTURE:
            self.stage_read += count * ew
        else:
            self.words_read += count * ew
        base = addr & (1 << 36) - 1
        bus = not addr & APERTURE
        store = self.memory if bus else self.stage
        failed = False
        for i in range(count):
            for dest in dests:
                for w in range(ew):
                    at = base + (i * ew + w) * WORD
                    err = bool(code) or (bus and self.read_errors[0] <= at < self.read_errors[1])
                    failed |= err
                    word = 0 if err else int.from_bytes(store[at : at + WORD], "little")
                    self.responses.append(
                        flit(
                            dst=dest,
                            src=self.port,
                            kind=RD_RESP,
                            txn=(f.txn + i) & 255,
                            last=int(w == ew - 1),
                            rsvd=err << 2 | (w if stream else 0),
                            payload=word,
                        )
                    )
        if failed and not code:
            self.faults.append((M_BUS, f.src, f.txn, addr))

    def _descriptor(self, f: Flit) -> None:
        if f.src in self._open:
            self._close(f.src, M_FRAME)
        addr, length = f.payload >> 216, f.payload >> 208 & 255
        code = M_REMOTE if f.rsvd & 4 else self.classify(addr, (length + 1) * WORD)
        if code == M_NONE and length > 7:
            code = M_LEN
        self._open[f.src] = _Write(f.txn, addr, length, code)

    def _data(self, f: Flit) -> None:
        write = self._open.get(f.src)
        if write is None:
            self.orphans += 1
            self.faults.append((M_ORPHAN, f.src, f.txn, 0))
            return
        write.words.append(f.payload)
        if f.rsvd & 4 and not write.code:
            write.code = M_REMOTE
        full = len(write.words) == write.length + 1
        if full or f.last:
            self._close(f.src, M_NONE if full and f.last else M_FRAME)

    def _close(self, src: int, code: int) -> None:
        write = self._open.pop(src)
        code = write.code or code
        if not code:
            base = write.addr & (1 << 36) - 1
            bus = not write.addr & APERTURE
            store = self.memory if bus else self.stage
            if bus:
                self.issued.append(base)
                self.words_written += len(write.words)
            else:
                self.stage_written += len(write.words)
            for k, word in enumerate(write.words):
                at = base + k * WORD
                if bus and self.write_errors[0] <= at < self.write_errors[1]:
                    code = M_BUS
                store[at : at + WORD] = word.to_bytes(WORD, "little")
            if code:
                self.undefined |= {base + k * WORD for k in range(len(write.words))}
        if code:
            self.faults.append((code, src, write.txn, write.addr))
        ack = flit(
            dst=src, src=self.port, kind=WR_ACK, txn=write.txn, last=1, payload=code << 4 | int(bool(code))
        )
        self.acks.setdefault(src, []).append(ack)

    @property
    def fault_count(self) -> int:
        """MEM_DROP.faults caused since :meth:`start`."""
        return sum(f[0] != M_ORPHAN for f in self.faults)

    @property
    def flits_out(self) -> int:
        """Outbound flits caused since :meth:`start`."""
        return len(self.responses) + sum(len(a) for a in self.acks.values())
