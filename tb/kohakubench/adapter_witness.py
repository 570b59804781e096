# SPDX-License-Identifier: Apache-2.0
"""Second L2 adapter, flit by flit in plain integers, read off docs/spec/memory.md 11.

It shares no code with ``kohakutpu``. ``feed_endpoint(flit)`` and ``feed_router(flit)`` take one 288-bit flit each;
``to_router`` and ``to_endpoint`` collect what leaves, in order and without time. Nodes are bytes {y, x}.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kohakubench.mag_model import RD_REQ, RD_RESP, STREAM, WR_ACK, WR_DATA, WR_REQ, Flit, flit

LAYER = "L0"

CU_CTRL = 7
M_ALIGN, M_RANGE, M_TAG, M_FRAME = 1, 5, 7, 8
_ORDER = 64


@dataclass
class _Write:
    """A write descriptor; `line` is None for a forwarded one, `code` of a refused one is not 0."""

    head: Flit
    line: int | None
    length: int = 0
    code: int = 0
    data: int = 0
    answer: int | None = None


@dataclass
class AdapterWitness:
    """Adapter of node `node` with `depth` lines."""

    node: int
    depth: int = 8192
    to_router: list[int] = field(default_factory=list)
    to_endpoint: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bits = 5 + self.depth.bit_length() - 1
        self.base, self.enabled = 0xF000_0000 >> self.bits << self.bits, 0
        self.local = self.fwd = self.status = 0
        self.lines = [0] * self.depth
        self.waiting: list[int] = []
        self.writes: list[_Write] = []
        self.open: _Write | None = None

    # ------------------------------------------------------------ endpoint face

    def feed_endpoint(self, raw: int) -> None:
        """A flit the endpoint sends."""
        self.waiting.append(raw)
        self._go_on()

    def _go_on(self) -> None:
        while self.waiting and self._step(self.waiting[0]):
            del self.waiting[0]

    def _step(self, raw: int) -> bool:
        """Take one flit; False if it has to wait."""
        f = Flit.of(raw)
        if f.kind == WR_REQ:
            return self._descriptor(raw, f)
        if f.rsvd < 4 and f.kind == RD_REQ:
            self._read(raw, f)
        elif f.rsvd < 4 and f.kind == WR_DATA and self.open and self.open.line is not None:
            self._data(self.open, f)
        else:
            if f.kind == WR_DATA and self.open and self.open.line is None:
                self.open.data += 1
                if f.last or self.open.data == self.open.length:
                    self.open = None
            self.to_router.append(raw)
        return True

    def _verdict(self, addr: int, n: int, peers: int, tag: int) -> int | None:
        """None to forward, 0 to serve, else the code of the refusal."""
        low, high = self.base, self.base + 32 * self.depth
        first, final = addr, addr + 32 * n - 1
        if not self.enabled or final < low or first >= high:
            return None
        if peers:
            self.fwd = (self.fwd + 1) % (1 << 32)
            self.status |= 2
            return None
        inside = [low <= at < high for at in (first, final)]
        self.status |= int(not all(inside))
        reasons = [(addr % 32 != 0, M_ALIGN), (not all(inside), M_RANGE), (tag > 255, M_TAG)]
        return next((code for bad, code in reasons if bad), 0)

    def _read(self, raw: int, f: Flit) -> None:
        p = f.payload
        stream = bool(p >> 200 & STREAM)
        ew, count, peers, tag = (p >> 208 & 255) + 1, 1, 0, 0
        if stream:
            ew = p >> 158 & 255
            ew = ew if ew in (1, 2, 3, 4) else 4
            count, peers = p >> 192 & 255 or 1, p >> 166 & 3
            tag = f.txn + count - 1
        addr = p >> 216
        verdict = self._verdict(addr, ew * count, peers, tag)
        if verdict is None:
            self.to_router.append(raw)
            return
        at = (addr - self.base) // 32
        for i in range(count):
            for w in range(ew):
                self.to_endpoint.append(
                    flit(
                        dst=f.src,
                        src=f.dst,
                        kind=RD_RESP,
                        txn=(f.txn + i) % 256,
                        last=int(w == ew - 1),
                        rsvd=(4 if verdict else 0) | (w if stream else 0),
                        payload=0 if verdict else self.lines[at + i * ew + w],
                    )
                )
                self.local = (self.local + 1) % (1 << 32)

    def _descriptor(self, raw: int, f: Flit) -> bool:
        if self.open and self.open.line is not None:
            self.status |= 4
            self._finish(self.open, M_FRAME)
        if len(self.writes) == _ORDER:
            return False
        addr, n = f.payload >> 216, (f.payload >> 208 & 255) + 1
        verdict = None if f.rsvd & 4 else self._verdict(addr, n, 0, 0)
        if verdict is None:
            self.to_router.append(raw)
            new = _Write(f, None, n)
        else:
            if self.open:
                self.status |= 4
                h, wrong = self.open.head, int(self.open.data + 1 != self.open.length)
                self.to_router.append(flit(dst=h.dst, src=h.src, kind=WR_DATA, txn=h.txn, last=wrong))
            new = _Write(f, (addr - self.base) // 32, n, verdict)
        self.open = new
        self.writes.append(new)
        return True

    def _data(self, write: _Write, f: Flit) -> None:
        if not write.code and write.line is not None:
            self.lines[write.line + write.data] = f.payload
        write.data += 1
        if write.data == write.length or f.last:
            fits = write.data == write.length and f.last
            self.status |= 0 if fits else 4
            self._finish(write, 0 if fits else M_FRAME)

    def _finish(self, write: _Write, framing: int) -> None:
        code = write.code or framing
        h = write.head
        write.answer = flit(dst=h.src, src=h.dst, kind=WR_ACK, txn=h.txn, last=1, payload=code << 4 | int(code > 0))
        self.local = (self.local + 1) % (1 << 32)
        self.open = None
        self._answer()

    def _answer(self) -> None:
        while self.writes and self.writes[0].answer is not None:
            answer = self.writes.pop(0).answer
            assert answer is not None
            self.to_endpoint.append(answer)

    # ------------------------------------------------------------ router face

    def feed_router(self, raw: int) -> None:
        """A flit for the endpoint."""
        f = Flit.of(raw)
        index = f.payload >> 240 & 255
        if f.kind == CU_CTRL and f.dst == self.node and f.rsvd < 4 and index >> 3 == 0xE0 >> 3:
            self._control(f, index)
            return
        self.to_endpoint.append(raw)
        if f.kind == WR_ACK and self.writes and self.writes[0].line is None:
            self.writes.pop(0)
            self._answer()
            self._go_on()

    def _control(self, f: Flit, index: int) -> None:
        write, value = f.payload >> 248 == 1, f.payload >> 176 & (1 << 64) - 1
        op = 2
        answer = self.registers()[index - 0xE0]
        if write and index == 0xE1:
            answer = self.base = (value % (1 << 40)) >> self.bits << self.bits
        elif write and index == 0xE2:
            answer = self.enabled = value & 1
        elif write and index == 0xE4:
            self.status = 0
        elif write:
            op = 3
        payload = op << 248 | index << 240 | answer << 176
        self.to_router.append(flit(dst=f.src, src=f.dst, kind=CU_CTRL, txn=f.txn, last=1, payload=payload))

    def registers(self) -> list[int]:
        """Values of 0xE0..0xE7."""
        caps = 2 << 48 | 1 << 40 | self.bits << 32 | self.depth
        return [caps, self.base, self.enabled, self.local << 32 | self.fwd, self.status, 0, 0, 0]
