# SPDX-License-Identifier: Apache-2.0
"""Reference L2 adapter for benches, no cycles, in front of the reference agent (docs/spec/memory.md 11)."""

from __future__ import annotations

from dataclasses import dataclass

from kohakubench.mag_model import (
    M_ALIGN,
    M_FRAME,
    M_NONE,
    M_RANGE,
    M_TAG,
    RD_REQ,
    RD_RESP,
    WORD,
    WR_ACK,
    WR_DATA,
    WR_REQ,
    Flit,
    MagModel,
    flit,
)

CU_CTRL = 7
CAPS, BASE, ENABLE, COUNT, STATUS = range(0xE0, 0xE5)
STRADDLE, MULTICAST, WR_PROTO, CTRL_LOST = 1, 2, 4, 8


def control(dst: int, src: int, txn: int, index: int, value: int | None = None) -> int:
    """CU_CTRL request: a read, or a write of ``value``. Nodes are bytes {y, x}."""
    payload = (value is not None) << 248 | index << 240 | (value or 0) << 176
    return flit(dst=dst, src=src, kind=CU_CTRL, txn=txn, last=1, payload=payload)


@dataclass
class _Open:
    """The write whose data the endpoint is sending."""

    mine: bool
    line: int
    left: int
    code: int
    head: Flit


class AdapterModel:
    """Reference adapter.

    Args:
        lines: DEPTH.
        agent: reference agent behind the router; it gets what is forwarded.
    """

    def __init__(self, lines: int, agent: MagModel) -> None:
        self.lines, self.agent = lines, agent
        self.bits = (lines * WORD).bit_length() - 1
        self.store = bytearray(lines * WORD)
        self.base, self.enable = 0xF000_0000 >> self.bits << self.bits, False
        self.local = self.fwd = self.status = 0
        self._open: _Open | None = None
        self.start()

    def start(self) -> None:
        """Forget outputs; registers, lines and the open write stay."""
        self.agent.start()
        self.forwarded: list[int] = []
        self.responses: list[int] = []  # answered here, in order
        self._order: list[int | None] = []  # acknowledgements in descriptor order, None: the agent's

    # ------------------------------------------------------------ registers
    def control(self, raw: int) -> int | None:
        """A control flit from the router face: the reply, None if the endpoint gets it."""
        f = Flit.of(raw)
        op, index, value = f.payload >> 248, f.payload >> 240 & 255, f.payload >> 176 & (1 << 64) - 1
        if f.kind != CU_CTRL or index >> 3 != 0x1C or f.rsvd & 4:
            return None
        answer, now = 2, self._register(index)
        if op == 1 and index == BASE:
            self.base = now = (value & (1 << 40) - 1) >> self.bits << self.bits
        elif op == 1 and index == ENABLE:
            self.enable = bool(value & 1)
            now = int(self.enable)
        elif op == 1 and index == STATUS:
            self.status = 0
        elif op == 1:
            answer = 3
        payload = answer << 248 | index << 240 | now << 176
        return flit(dst=f.src, src=f.dst, kind=CU_CTRL, txn=f.txn, last=1, payload=payload)

    def _register(self, index: int) -> int:
        return {
            CAPS: 2 << 48 | 1 << 40 | self.bits << 32 | self.lines,
            BASE: self.base,
            ENABLE: int(self.enable),
            COUNT: self.local << 32 | self.fwd,
            STATUS: self.status,
        }.get(index, 0)

    # ------------------------------------------------------------ endpoint
    def feed(self, raw: int) -> None:
        """Take one flit of the endpoint."""
        f = Flit.of(raw)
        if f.kind == RD_REQ and not f.rsvd & 4:
            self._read(raw, f)
        elif f.kind == WR_REQ:
            self._descriptor(raw, f)
        elif f.kind == WR_DATA and not f.rsvd & 4 and self._open:
            self._data(raw, f, self._open)
        else:
            self._forward(raw)

    def _forward(self, raw: int) -> None:
        self.forwarded.append(raw)
        self.agent.feed(raw)

    def _window(self, addr: int, lines: int) -> tuple[bool, bool]:
        """(some byte lies in the window, all do)."""
        low, high = self.base, self.base + self.lines * WORD
        end = addr + lines * WORD
        return self.enable and addr < high and end > low, self.enable and addr >= low and end <= high

    def _read(self, raw: int, f: Flit) -> None:
        p = f.payload
        addr, stream = p >> 216, p >> 206 & 1
        ew, count = (p >> 208 & 255) + 1, 1
        if stream:
            ew, count = p >> 158 & 255, (p >> 192 & 255) or 1
            ew = ew if 1 <= ew <= 4 else 4
        touched, inside = self._window(addr, ew * count)
        if not touched:
            return self._forward(raw)
        if stream and p >> 166 & 3:
            self.fwd, self.status = self.fwd + 1, self.status | MULTICAST
            return self._forward(raw)
        code = self._refusal(addr, inside) or (M_TAG if stream and f.txn + count > 256 else M_NONE)
        line = addr // WORD
        for i in range(count):
            for w in range(ew):
                at = (line + i * ew + w) % self.lines * WORD
                word = 0 if code else int.from_bytes(self.store[at : at + WORD], "little")
                self.responses.append(
                    flit(
                        dst=f.src,
                        src=f.dst,
                        kind=RD_RESP,
                        txn=f.txn + i & 255,
                        last=int(w == ew - 1),
                        rsvd=bool(code) << 2 | (w if stream else 0),
                        payload=word,
                    )
                )
        self.local += ew * count
        return None

    def _refusal(self, addr: int, inside: bool) -> int:
        if not inside:
            self.status |= STRADDLE
        return M_ALIGN if addr % WORD else M_NONE if inside else M_RANGE

    def _descriptor(self, raw: int, f: Flit) -> None:
        addr, n = f.payload >> 216, (f.payload >> 208 & 255) + 1
        touched, inside = self._window(addr, n)
        mine = touched and not f.rsvd & 4
        old = self._open
        if old and old.mine:
            self._close(old, M_FRAME)
        elif old and mine:  # the agent does not see this descriptor: a last flit that cannot be right
            self.status |= WR_PROTO
            last = int(old.left > 1)
            h = old.head
            self._forward(flit(dst=h.dst, src=h.src, kind=WR_DATA, txn=h.txn, last=last))
        code = self._refusal(addr, inside) if mine else M_NONE
        self._open = _Open(mine, addr // WORD, n, code, f)
        if not mine:
            self._order.append(None)
            self._forward(raw)

    def _data(self, raw: int, f: Flit, write: _Open) -> None:
        write.left -= 1
        over = not write.left or f.last
        if not write.mine:
            if over:
                self._open = None
            return self._forward(raw)
        if not write.code:
            at = write.line % self.lines * WORD
            self.store[at : at + WORD] = f.payload.to_bytes(WORD, "little")
            write.line += 1
        if over:
            self._close(write, M_NONE if f.last and not write.left else M_FRAME)
        return None

    def _close(self, write: _Open, framing: int) -> None:
        if framing:
            self.status |= WR_PROTO
        code, h = write.code or framing, write.head
        payload = code << 4 | int(bool(code))
        self._order.append(flit(dst=h.src, src=h.dst, kind=WR_ACK, txn=h.txn, last=1, payload=payload))
        self.local += 1
        self._open = None

    # ------------------------------------------------------------ what the endpoint gets
    @property
    def acks(self) -> list[int]:
        """Acknowledgements in the order they reach the endpoint."""
        theirs = iter([a for acks in self.agent.acks.values() for a in acks])
        return [next(theirs) if a is None else a for a in self._order]
