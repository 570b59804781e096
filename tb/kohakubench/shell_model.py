# SPDX-License-Identifier: Apache-2.0
"""Reference of the shell in front of a compute unit, written from docs/spec/fabric.md 5.

Two views of the same rules. :func:`completions` knows instructions only: it says which
signals a program returns, in order, whatever the timing. :class:`Shell` is driven by the
events at the shell's ports, cycle by cycle where something happens, and says what every
port shows. Counters are unbounded integers here; the page's 16-bit differences must not
be distinguishable from them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

MEM_RD_REQ, MEM_WR_REQ, MEM_RD_RESP, MEM_WR_ACK, MEM_WR_DATA = range(5)
CU_INST, CU_SIGNAL, CU_CTRL, CU_DATA = range(5, 9)
INST_COMPLETE, BATCH_COMPLETE, DATA_RECEIVED, FAULT = 0, 1, 3, 4
MISROUTED, WR_DROP, RD_ERR = 1, 2, 3
OP_READ, OP_WRITE, OP_VALUE, OP_REFUSED = 0, 1, 2, 3
SIGNALS, REQUESTS = 16, 4

LEVELS = ("inst_valid", "recv_valid", "send_valid", "send_stall", "out_valid", "out_stall", "busy", "in_busy")

Node = tuple[int, int]


def flit(
    dst: Node, src: Node, kind: int, txn: int = 0, last: int = 0, rsvd: int = 0, payload: int = 0
) -> int:
    """A 288-bit flit (fabric 1.1)."""
    nodes = dst[0] << 12 | dst[1] << 8 | src[0] << 4 | src[1]
    return (nodes << 16 | kind << 12 | txn << 4 | last << 3 | rsvd) << 256 | payload


def signal(dst: Node, src: Node, txn: int, code: int, arg: int) -> int:
    """A CU_SIGNAL flit (fabric 1.3)."""
    return flit(dst, src, CU_SIGNAL, txn, 1, 0, code << 248 | arg << 216)


def control(
    dst: Node, src: Node, txn: int, op: int, index: int, value: int = 0
) -> int:
    """A CU_CTRL request or reply."""
    return flit(dst, src, CU_CTRL, txn, 1, 0, op << 248 | index << 240 | value << 176)


def fault_arg(code: int, detail: int = 0) -> int:
    """FAULT_ARG of a fault that the shell itself reports (fabric 1.6)."""
    return 0xFAB0 << 16 | detail << 8 | code


def kind_of(word: int) -> int:
    """Message type of a flit."""
    return word >> 268 & 15


@dataclass(frozen=True)
class Head:
    """Header fields of a flit."""

    dst: Node
    src: Node
    kind: int
    txn: int
    last: int
    rsvd: int

    @classmethod
    def of(cls, word: int) -> Head:
        h = word >> 256
        dst, src = (h >> 28 & 15, h >> 24 & 15), (h >> 20 & 15, h >> 16 & 15)
        return cls(dst, src, h >> 12 & 15, h >> 4 & 255, h >> 3 & 1, h & 7)


@dataclass(frozen=True)
class Config:
    """Parameters of fabric 5.1."""

    pos: Node
    cu_type: int = 0x4D47
    version: int = 5
    n_buffers: int = 3
    inst_depth: int = 32
    recv_depth: int = 16
    max_inflight: int = 1
    ack_fence: bool = True
    rd_err_fault: bool = True
    features: int = 0
    recv_types: int = 0x0104


@dataclass
class Instruction:
    """One instruction as the stand-in unit executes it.

    ``drops`` lists up to two (write index, memory fault code) pairs. ``dst`` other than
    the shell's own coordinate makes the instruction a misrouted one.
    """

    src: Node
    txn: int
    last: int = 0
    dst: Node | None = None
    work: int = 0
    writes: int = 0
    beats: int = 1
    cover: bool = True
    fault: bool = False
    batch: bool = False
    bare: bool = False  # descriptors without data: counted by the shell, seen by nobody else
    result: int = 0
    drops: list[tuple[int, int]] = field(default_factory=list)

    def word(self, own: Node) -> int:
        """The CU_INST flit."""
        p = self.work | self.writes << 16 | (self.beats - 1) << 32 | self.cover << 35
        p |= self.fault << 36 | self.batch << 37 | self.bare << 84 | self.result << 96
        for i, (index, code) in enumerate(self.drops):
            p |= 1 << (38 + i) | index << (40, 64)[i] | code << (56, 80)[i]
        return flit(self.dst or own, self.src, CU_INST, self.txn, self.last, 0, p)


def completions(program: list[Instruction], own: Node) -> list[int]:
    """Completion flits of ``program``, in order (fabric 5.3, 5.4).

    Instruction level: holds for every timing and every MAX_INFLIGHT.
    """
    out = []
    unowned: list[int] = []  # codes of failed writes without an owner yet, descriptor order
    for ins in program:
        if ins.dst is not None and ins.dst != own:
            out.append(signal(ins.src, own, ins.txn, FAULT, fault_arg(MISROUTED)))
            continue
        unowned += [code for _, code in sorted(ins.drops)]
        code, arg = INST_COMPLETE, ins.result
        if ins.fault:
            code = FAULT
        elif ins.last:
            code, arg = BATCH_COMPLETE, ins.txn
        if ins.cover:
            if unowned and code != FAULT:
                code, arg = FAULT, fault_arg(WR_DROP, unowned[0])
            unowned = []
        out.append(signal(ins.src, own, ins.txn, code, arg))
    return out


@dataclass
class Entry:
    """One entry of the signal queue (fabric 5.3)."""

    dst: Node
    txn: int
    code: int
    arg: int
    snapshot: int
    err: bool
    ecode: int


@dataclass
class Inputs:
    """What the ports of the shell saw in one cycle; None means no transfer."""

    arrived: int | None = None
    accepted: int | None = None
    done: tuple[bool, bool, int] | None = None  # cover, fault, result
    sent: int | None = None
    received: int | None = None
    left: int | None = None
    out_stall: bool = False
    send_valid: bool = False
    unit_err: int = 0
    dbg_ctr: int = 0
    any: bool = False  # some transfer, or exec_done


class MismatchError(AssertionError):
    """The design showed something the page does not allow."""


class Shell:
    """The shell at its ports.

    Call :meth:`step` once per cycle. It raises :class:`MismatchError` if a transfer carries
    something else than the page says and returns whether any state moved.
    """

    def __init__(self, config: Config) -> None:
        self.c = config
        self.inst: deque[int] = deque()
        self.recv: deque[int] = deque()
        self.context: deque[Head] = deque()
        self.signals: deque[Entry] = deque()
        self.requests: deque[int] = deque()
        self.out: int | None = None
        self.issued = self.acked = self.covered = 0
        self.pend_err, self.pend_code = False, 0
        self.rd_pending = False
        self.err, self.first_hdr = 0, 0
        self.retired = self.busy_cycles = 0
        self.starting = True
        self.max_outstanding = 0
        self.sent_signals: list[int] = []
        self.replies: list[int] = []

    # ------------------------------------------------------------- levels
    def _mine(self, word: int) -> bool:
        return (word >> 284, word >> 280 & 15) == self.c.pos

    def _may_issue(self) -> bool:
        return (
            bool(self.inst)
            and len(self.context) < self.c.max_inflight
            and len(self.signals) + len(self.context) < SIGNALS
        )

    def _eligible(self) -> bool:
        return bool(self.signals) and (not self.c.ack_fence or self.acked >= self.signals[0].snapshot)

    @property
    def busy(self) -> bool:
        return bool(self.context or self.inst or self.signals)

    def levels(self, i: Inputs) -> int:
        """Every level the log carries, packed as ``LEVELS`` above 16 bits of inst_space."""
        c, inst, recv, out = self.c, len(self.inst), len(self.recv), self.out is not None
        v = c.inst_depth - inst
        if inst and self._may_issue() and self._mine(self.inst[0]):
            v |= 1 << 23
        if recv:
            v |= 1 << 22
        if i.send_valid:
            v |= 1 << 21
            if (out and i.out_stall) or self.requests or self._eligible():
                v |= 1 << 20
        if out:
            v |= 1 << 19 | i.out_stall << 18
        if self.busy:
            v |= 1 << 17
        if inst == c.inst_depth or recv == c.recv_depth or self.starting:
            v |= 1 << 16
        return v

    # --------------------------------------------------------------- cycle
    def step(self, i: Inputs) -> bool:
        """One clock edge."""
        moved = self.starting or i.any
        self.starting = False
        requests_waiting = len(self.requests)
        rd_pending = self.rd_pending
        may_issue, idle = self._may_issue(), not self.context
        if self.busy:
            self.busy_cycles += 1
        count = self.busy_cycles - int(self.busy)  # register value during this cycle

        clear, loaded = self._outbound(i, count)
        events, flit_event = i.unit_err << 8, False

        if i.sent is not None and kind_of(i.sent) == MEM_WR_REQ:
            self.issued += 1
            self.max_outstanding = max(self.max_outstanding, self.issued - self.acked)

        retired = self._retire(i, may_issue, idle, rd_pending)
        if i.done is not None and not retired:
            events |= 1 << 4
        if i.received is not None:
            self._same("recv_flit", i.received, self.recv.popleft() if self.recv else None)
        if i.arrived is not None:
            bits = self._arrive(i.arrived, requests_waiting)
            events |= bits
            flit_event = bits != 0

        if clear:
            self.err, self.first_hdr = 0, 0
        if not self.err and events:
            self.first_hdr = i.arrived >> 256 if flit_event and i.arrived is not None else 0
        moved |= (self.err | events) != self.err
        self.err |= events
        return bool(moved or loaded or retired)

    def _outbound(self, i: Inputs, busy_count: int) -> tuple[bool, bool]:
        if i.left is not None:
            self._same("noc_out_data", i.left, self.out)
        free = self.out is None or i.left is not None
        if not free:
            if i.sent is not None:
                raise MismatchError("send_ready while the output register is held")
            return False, False
        self.out = None
        if self._eligible():
            e = self.signals.popleft()
            code, arg = e.code, e.arg
            if e.err:
                code, arg = FAULT, arg if code == FAULT else fault_arg(WR_DROP, e.ecode)
            self.out = signal(e.dst, self.c.pos, e.txn, code, arg)
            self.sent_signals.append(self.out)
        elif self.requests:
            return self._reply(i, busy_count), True
        elif i.sent is not None:
            self.out = i.sent
            return False, True
        if i.sent is not None:
            raise MismatchError("send_ready while a signal or a reply goes first")
        return False, self.out is not None

    def _reply(self, i: Inputs, busy_count: int) -> bool:
        if i.sent is not None:
            raise MismatchError("send_ready while a CU_CTRL request is queued")
        req = self.requests.popleft()
        op, index = req >> 248 & 255, req >> 240 & 255
        value = self.register(index, i.dbg_ctr, busy_count)
        refused = op == OP_WRITE and index != 4
        h = Head.of(req)
        self.out = control(h.src, self.c.pos, h.txn, OP_REFUSED if refused else OP_VALUE, index, value)
        self.replies.append(self.out)
        return op == OP_WRITE and index == 4

    def register(self, index: int, dbg_ctr: int, busy_count: int) -> int:
        """Value of a discovery register (fabric 5.5)."""
        c = self.c
        space = c.inst_depth - len(self.inst)
        return {
            0: c.cu_type << 48
            | c.version << 40
            | c.n_buffers << 36
            | c.inst_depth << 20
            | c.max_inflight << 16
            | c.features << 8,
            1: int(self.busy) << 63 | int(self.err != 0) << 62 | space << 32,
            2: self.retired % 2**32 << 32 | busy_count % 2**32,
            3: dbg_ctr,
            4: self.first_hdr << 16 | self.err,
        }.get(index, 0)

    def _retire(self, i: Inputs, may_issue: bool, idle: bool, rd_pending: bool) -> bool:
        if i.accepted is not None:
            if not (may_issue and self._mine(self.inst[0])):
                raise MismatchError("an instruction was issued that the page holds back")
            self._same("inst_flit", i.accepted, self.inst.popleft())
            self.context.append(Head.of(i.accepted))
        elif may_issue and idle and not self._mine(self.inst[0]):
            h = Head.of(self.inst.popleft())
            self._push(h, FAULT, fault_arg(MISROUTED), False)
            return True
        if i.done is None or not self.context:
            return False
        cover, fault, result = i.done
        h = self.context.popleft()
        if fault:
            self._push(h, FAULT, result, cover)
        elif self.c.rd_err_fault and rd_pending:
            self._push(h, FAULT, fault_arg(RD_ERR), cover)
        elif h.last:
            self._push(h, BATCH_COMPLETE, h.txn, cover)
        else:
            self._push(h, INST_COMPLETE, result, cover)
        return True

    def _push(self, h: Head, code: int, arg: int, cover: bool) -> None:
        if cover:
            self.covered = self.issued
        err = cover and self.pend_err
        self.signals.append(Entry(h.src, h.txn, code, arg, self.covered, err, self.pend_code))
        if cover:
            self.pend_err = False
        self.rd_pending = False
        self.retired += 1

    def _arrive(self, word: int, requests_waiting: int) -> int:
        """Sort an arriving flit (fabric 5.2); returns the bits of CU_ERR it sets."""
        h = Head.of(word)
        if h.dst != self.c.pos:
            if h.kind == CU_INST:
                self.inst.append(word)
            return 1 << 0
        if h.kind == CU_INST:
            self.inst.append(word)
            return 0
        if h.kind == CU_CTRL:
            if requests_waiting == REQUESTS:
                return 1 << 6
            self.requests.append(word)
            return 0
        if h.kind == MEM_WR_ACK and self.c.ack_fence:
            return self._ack(word & 1, word >> 4 & 15)
        if self.c.recv_types >> h.kind & 1:
            self.recv.append(word)
            if h.kind == MEM_RD_RESP and h.rsvd & 4:
                self.rd_pending = True
                return 1 << 3
            return 1 << 2 if h.kind == MEM_WR_ACK and word & 1 else 0
        return 0 if h.kind == CU_SIGNAL else 1 << 1

    def _ack(self, drop: int, code: int) -> int:
        if self.acked == self.issued:
            return 1 << 5
        self.acked += 1
        if not drop:
            return 0
        owner = next((e for e in self.signals if e.snapshot >= self.acked), None)
        if owner is not None:
            if not owner.err:
                owner.err, owner.ecode = True, code
        elif not self.pend_err:
            self.pend_err, self.pend_code = True, code
        return 1 << 2

    @staticmethod
    def _same(what: str, got: int, expected: int | None) -> None:
        if got != expected:
            shown = "nothing" if expected is None else f"{expected:072x}"
            raise MismatchError(f"{what}: got {got:072x}, expected {shown}")
