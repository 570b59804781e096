# SPDX-License-Identifier: Apache-2.0
"""L2 adapter in front of one endpoint (docs/spec/memory.md section 11).

Two ways in, one set of rules (`Adapter.judge`):

* flits: ``from_endpoint(flit)`` and ``from_router(flit)`` take one flit each and hand on what follows through
  the callables `to_router` and `to_endpoint`, in order and without time. Control replies, served reads and
  acknowledgements come out at once; a local acknowledgement waits for those of writes forwarded before it.
* requests: ``read`` and ``write`` have the shape of the agent's and stand between a unit's shell and the agent.

State for comparison: ``registers()`` (index -> value), ``store`` (the lines as bytes), ``order`` (descriptors
not acknowledged yet), ``stalled`` (flits the endpoint face holds back).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from kohakutpu.isa import generated as g
from kohakutpu.isa import message, registers
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import AdapterIndex, MemFault, MessageType
from kohakutpu.model.agent import MemoryAgent, write_ack
from kohakutpu.model.description import Node
from kohakutpu.model.memory import WORD, Image
from kohakutpu.model.messages import Flit, word_to_int
from kohakutpu.model.numerics.bits import U8
from kohakutpu.model.walker import Bool

LAYER = "L0"

_MOD32 = 0xFFFF_FFFF
STRADDLE, MULTICAST, WR_PROTO, CTRL_LOST = (1 << n for n in range(4))
"""Bits of STATUS."""


class Route(Enum):
    """What happens to a request."""

    FORWARD = 0
    SERVE = 1
    REFUSE = 2


@dataclass
class _Order:
    """One write descriptor that has no acknowledgement yet; `ack` is set when a local one is done."""

    local: bool
    ack: int | None = None


@dataclass
class _Open:
    """A write whose data is still to come; `head` is its descriptor."""

    entry: _Order
    head: Flit
    line: int
    words: int
    code: MemFault
    done: int = 0


@dataclass
class Adapter:
    """Adapter of the endpoint at `pos` with `depth` lines of 32 bytes, just after reset, lines zero."""

    pos: Node
    agent: MemoryAgent
    to_router: Callable[[int], None]
    to_endpoint: Callable[[int], None]
    depth: int = g.MEM_ADAPTER_DEPTH
    base: int = g.AD_REGISTERS["AD_BASE"][2]
    enabled: bool = False
    local: int = 0
    forwarded: int = 0
    status: int = 0
    order: deque[_Order] = field(default_factory=deque)
    stalled: deque[Flit] = field(default_factory=deque)
    _open: _Open | None = None

    def __post_init__(self) -> None:
        if self.depth < 512 or self.depth & (self.depth - 1):
            raise ValueError(f"adapter at {self.pos}: depth = {self.depth}: a power of two >= 512 is needed")
        self.store = Image(self.depth * WORD)
        self.base &= -self.size

    @property
    def size(self) -> int:
        """Bytes of the window."""
        return self.depth * WORD

    # ------------------------------------------------------------ rules

    def judge(self, addr: int, lines: int, tags: int = 0, peers: int = 0) -> tuple[Route, MemFault]:
        """Route of a request for `lines` words at `addr`; of a refusal also its code.

        tags: `txn + count - 1` of a streaming read; peers: its `n_peer`. Counts forwarded multicasts and
        sets STATUS.
        """
        end = addr + WORD * lines
        if not self.enabled or end <= self.base or addr >= self.base + self.size:
            return Route.FORWARD, MemFault.M_NONE
        if peers:
            self.forwarded = (self.forwarded + 1) & _MOD32
            self.status |= MULTICAST
            return Route.FORWARD, MemFault.M_NONE
        crosses = addr < self.base or end > self.base + self.size
        if crosses:
            self.status |= STRADDLE
        if addr % WORD:
            return Route.REFUSE, MemFault.M_ALIGN
        if crosses:
            return Route.REFUSE, MemFault.M_RANGE
        if tags > 255:
            return Route.REFUSE, MemFault.M_TAG
        return Route.SERVE, MemFault.M_NONE

    def _count(self, responses: int) -> None:
        self.local = (self.local + responses) & _MOD32

    # ------------------------------------------------------------ requests of a shell

    def read(
        self,
        src: Node,
        txn: int,
        addr: int,
        words: int,
        fault: MemFault = MemFault.M_NONE,
        *,
        entries: int = 1,
    ) -> tuple[U8, Bool]:
        """As :meth:`kohakutpu.model.agent.MemoryAgent.read`, for a run without peers."""
        route, code = self.judge(addr, words, txn + entries - 1)
        if route == Route.FORWARD:
            return self.agent.read(src, txn, addr, words, fault, entries=entries)
        self._count(words)
        if code:
            return np.zeros((words, WORD), dtype=np.uint8), np.ones(words, dtype=bool)
        data = self.store.read(addr - self.base, words * WORD).reshape(words, WORD)
        return data, np.zeros(words, dtype=bool)

    def write(self, src: Node, txn: int, addr: int, words: U8) -> MemFault:
        """As :meth:`kohakutpu.model.agent.MemoryAgent.write`."""
        route, code = self.judge(addr, len(words))
        if route == Route.FORWARD:
            return self.agent.write(src, txn, addr, words)
        self._count(1)
        if not code:
            self.store.write(addr - self.base, words.reshape(-1))
        return code

    # ------------------------------------------------------------ flits of the endpoint

    def from_endpoint(self, flit: Flit) -> None:
        """A flit the endpoint sends; behind a descriptor that waits for the order list everything waits."""
        self.stalled.append(flit)
        self._advance()

    def _advance(self) -> None:
        while self.stalled:
            flit = self.stalled[0]
            if flit.type == MessageType.MEM_WR_REQ:
                if not self._descriptor(flit):
                    return
            elif flit.type == MessageType.MEM_RD_REQ and not flit.rsvd & 4:
                self._read(flit)
            elif flit.type == MessageType.MEM_WR_DATA and self._open is not None:
                self._data(self._open, flit)
            else:
                self.to_router(flit.value)
            self.stalled.popleft()

    def _read(self, flit: Flit) -> None:
        f = codec("MEM_RD_REQ").decode(flit.payload)
        stream = bool(f["flag_stream"])
        count, words = 1, f["len"] + 1
        if stream:
            count, words = f["count"] or 1, f["entry_words"] if 1 <= f["entry_words"] <= 4 else 4
        tags = flit.txn + count - 1 if stream else 0
        route, code = self.judge(f["addr"], count * words, tags, f["n_peer"] if stream else 0)
        if route == Route.FORWARD:
            self.to_router(flit.value)
            return
        self._count(count * words)
        lines = np.zeros((count * words, WORD), dtype=np.uint8)
        if not code:
            lines = self.store.read(f["addr"] - self.base, count * words * WORD).reshape(-1, WORD)
        for i in range(count * words):
            entry, w = divmod(i, words)
            head = message.encode(
                "MEM_RD_RESP",
                dst=flit.src,
                src=flit.dst,
                txn=(flit.txn + entry) & 255,
                last=int(w == words - 1),
                rsvd=(w if stream else 0) | (4 if code else 0),
            )
            self.to_endpoint(head | word_to_int(lines[i]))

    def _descriptor(self, flit: Flit) -> bool:
        """Take a write descriptor; False if it waits for a place in the order list."""
        old = self._open
        if old is not None and old.entry.local:
            self._close(old, MemFault.M_FRAME)
        if len(self.order) >= g.MEM_ADAPTER_ORDER:
            return False
        f = codec("MEM_WR_REQ").decode(flit.payload)
        words = f["len"] + 1
        route, code = Route.FORWARD, MemFault.M_NONE
        if not flit.rsvd & 4:
            route, code = self.judge(f["addr"], words)
        entry = _Order(route != Route.FORWARD)
        self.order.append(entry)
        if not entry.local:
            self.to_router(flit.value)
        elif old is not None and not old.entry.local:
            # the agent does not see this descriptor, so a data flit with a wrong mark ends its write
            self.status |= WR_PROTO
            last = int(old.done + 1 < old.words)
            head = old.head
            self.to_router(message.encode("MEM_WR_DATA", dst=head.dst, src=head.src, txn=head.txn, last=last))
        self._open = _Open(entry, flit, (f["addr"] - self.base) // WORD, words, code)
        return True

    def _data(self, write: _Open, flit: Flit) -> None:
        if write.entry.local and flit.rsvd & 4:
            self.to_router(flit.value)
            return
        if not write.entry.local:
            self.to_router(flit.value)
        elif not write.code:
            self.store.write(WORD * (write.line + write.done), flit.word)
        write.done += 1
        full = write.done == write.words
        if not (full or flit.last):
            return
        if write.entry.local:
            self._close(write, MemFault.M_NONE if full and flit.last else MemFault.M_FRAME)
        else:
            self._open = None

    def _close(self, write: _Open, framing: MemFault) -> None:
        """End a local write with its acknowledgement."""
        self._open = None
        self._count(1)
        if framing:
            self.status |= WR_PROTO
        head = write.head
        write.entry.ack = write_ack(head.src, head.dst, head.txn, write.code or framing)
        self._release()

    def _release(self) -> None:
        """Deliver the local acknowledgements that wait for nothing any more."""
        while self.order and self.order[0].ack is not None:
            ack = self.order.popleft().ack
            assert ack is not None
            self.to_endpoint(ack)

    # ------------------------------------------------------------ flits of the router

    def from_router(self, flit: Flit) -> None:
        """A flit for the endpoint; control requests of the adapter's indices end here."""
        if flit.type == MessageType.CU_CTRL and flit.dst == self.pos and not flit.rsvd & 4:
            f = codec("CU_CTRL_REQ").decode(flit.payload)
            if g.MEM_ADAPTER_INDEX_LO <= f["index"] <= g.MEM_ADAPTER_INDEX_HI:
                self.to_router(self._control(flit, f["op"] == g.CTRL_OP_WRITE, f["index"], f["value"]))
                return
        self.to_endpoint(flit.value)
        if flit.type == MessageType.MEM_WR_ACK and self.order and not self.order[0].local:
            self.order.popleft()
            self._release()
            self._advance()

    def registers(self) -> dict[int, int]:
        """Value of every control register."""
        indices = range(g.MEM_ADAPTER_INDEX_LO, g.MEM_ADAPTER_INDEX_HI + 1)
        return {index: self._value(index) for index in indices}

    def _value(self, index: int) -> int:
        match index:
            case AdapterIndex.CAPS:
                return registers.encode(
                    "AD_CAPS",
                    kind=g.MEM_ADAPTER_KIND,
                    version=g.MEM_ADAPTER_VERSION,
                    l2_bits=self.size.bit_length() - 1,
                    depth=self.depth,
                )
            case AdapterIndex.BASE:
                return self.base
            case AdapterIndex.ENABLE:
                return int(self.enabled)
            case AdapterIndex.COUNT:
                return registers.encode("AD_COUNT", local=self.local, fwd=self.forwarded)
            case AdapterIndex.STATUS:
                return self.status
        return 0

    def _control(self, flit: Flit, write: bool, index: int, value: int) -> int:
        """Answer one control request; the reply flit."""
        op, answer = g.CTRL_OP_RSP, self._value(index)
        if write:
            match index:
                case AdapterIndex.BASE:
                    answer = self.base = codec("AD_BASE").get(value, "base") & -self.size
                case AdapterIndex.ENABLE:
                    answer = codec("AD_ENABLE").get(value, "l2_en")
                    self.enabled = bool(answer)
                case AdapterIndex.STATUS:
                    self.status = 0
                case _:
                    op = g.CTRL_OP_REFUSED
        return message.encode("CU_CTRL_RSP", dst=flit.src, src=flit.dst, txn=flit.txn, op=op, index=index, value=answer)
