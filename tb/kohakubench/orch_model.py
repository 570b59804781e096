# SPDX-License-Identifier: Apache-2.0
"""Event-level reference of orchestrator, control-program engine and host map.

Written from docs/spec/fabric.md 6 and 7. Every call is one event (a register beat, an inbound flit, a free
outbound link); the model then runs until nothing can move. There is no time in it: a bench lets the machine
settle before it compares.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

OKAY, SLVERR, DECERR = 0, 2, 3
FIXED, INCR = 0, 1
MASK64 = (1 << 64) - 1

ERR = {
    "kick_busy": 1 << 0,
    "kick_len0": 1 << 1,
    "stage_range": 1 << 2,
    "cred_range": 1 << 3,
    "dst_bad": 1 << 4,
    "txkick_drop": 1 << 5,
    "rx_drop": 1 << 6,
    "node_fault": 1 << 7,
    "data_reject": 1 << 8,
    "mesh_lost": 1 << 9,
    "axi_bad": 1 << 10,
    "aux_absent": 1 << 11,
}
EVENTS = ERR["node_fault"] | ERR["data_reject"]

CTRL, STATUS, CAPS, IRQ_STAT, IRQ_EN, CAPS2, ERR_STAT, ERR_INFO = range(0, 0x40, 8)
PROG_DST, PROG_LEN, PROG_KICK, PROG_STAT, PROG_CRED, PROG_BASE, SIG_DONE, AUX_STAT = range(0x40, 0x80, 8)
AUX_STATW, TX_FLIT, TX_KICK, TX_STATUS, PROG_ABORT = 0x80, 0x100, 0x140, 0x148, 0x150
RX_FLIT, RX_POP, RX_STATUS, MEM_BLOCK, AUX_CFG = 0x180, 0x1C0, 0x1C8, 0x200, 0x800
NODE_STATUS, STAGE = 0x1000, 0x2000

TYPE_CU_INST, TYPE_CU_SIGNAL = 5, 6


def merge(old: int, new: int, strobes: int) -> int:
    """Replace the strobed bytes of a 64-bit word."""
    for byte in range(8):
        if strobes >> byte & 1:
            old = old & ~(0xFF << 8 * byte) | new & (0xFF << 8 * byte)
    return old


def _place(node: int) -> int:
    """Header order {x, y} of a packed coordinate {y, x}."""
    return (node & 15) << 4 | node >> 4


def header(dst: int, src: int, kind: int, txn: int = 0, *, last: int = 0, rsvd: int = 0) -> int:
    """32-bit flit header; ``dst`` and ``src`` are packed coordinates {y, x}."""
    return _place(dst) << 24 | _place(src) << 16 | kind << 12 | txn << 4 | last << 3 | rsvd


def signal(node: int, code: int, arg: int, dst: int = 0x11, txn: int = 0) -> int:
    """CU_SIGNAL flit of ``node`` ({y, x})."""
    return header(dst, node, TYPE_CU_SIGNAL, txn, last=1) << 256 | code << 248 | arg << 216


class MemClient(Protocol):
    """Register client behind MEM_BLOCK."""

    def read(self, offset: int) -> tuple[int, bool]:
        """Value and error of a read."""

    def write(self, offset: int, value: int) -> bool:
        """Error of a write."""


@dataclass
class Orch:
    """The orchestrator at ``pos`` ({y, x})."""

    pos: int = 0x11
    stage_flits: int = 128
    credit_max: int = 32
    nodes: frozenset[int] = frozenset()
    grid: tuple[int, int] = (2, 1)
    tx_depth: int = 16
    rx_depth: int = 16
    aux_present: bool = True
    aux_stat: int = 0
    aux_word: Callable[[int], int] = lambda index: 0
    mem: MemClient | None = None
    link_open: bool = True

    regs: dict[int, int] = field(default_factory=lambda: dict.fromkeys((CTRL, IRQ_EN), 0))
    prog: dict[int, int] = field(default_factory=lambda: dict.fromkeys((PROG_DST, PROG_LEN, PROG_BASE), 0))
    stage: dict[int, int] = field(default_factory=dict)
    node: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    aux_log: list[tuple[int, int]] = field(default_factory=list)
    err: int = 0
    info: tuple[int, int, int, int] = (0, 0, 0, 0)
    run: bool = False
    left: int = 0
    credit: int = 0
    ceiling: int = 0
    done: int = 0
    overflow: bool = False
    drops: int = 0

    def __post_init__(self) -> None:
        self.tx: deque[int] = deque()
        self.rx: deque[int] = deque()
        self.tx_flit = [0] * 5
        self.shadow: tuple[int, int] | None = None
        self.latched = (0, 0)

    # ---- beats ----------------------------------------------------------------------------------
    def mapped(self, offset: int) -> bool:
        """Is the 8-byte word at ``offset`` in the register map?"""
        o = offset & 0xFFF8
        return (
            o < 0x100
            or TX_FLIT <= o < 0x128
            or o in (TX_KICK, TX_STATUS, PROG_ABORT, RX_POP, RX_STATUS)
            or RX_FLIT <= o < 0x1A8
            or MEM_BLOCK <= o < 0x280
            or AUX_CFG <= o < 0x900
            or NODE_STATUS <= o < 0x1800
            or STAGE <= o < STAGE + 40 * self.stage_flits
        )

    def read(self, offset: int) -> tuple[int, int]:
        """(data, response) of one read beat."""
        o = offset & 0xFFF8
        if not self.mapped(o):
            return self._bad()
        if MEM_BLOCK <= o < 0x280:
            value, bad = self.mem.read(o - MEM_BLOCK) if self.mem else (0, True)
            return self._bad() if bad else (value, OKAY)
        return self._value(o), OKAY

    def _bad(self) -> tuple[int, int]:
        self.err |= ERR["axi_bad"]
        return 0, SLVERR

    def _value(self, o: int) -> int:
        if o in self.regs:
            return self.regs[o]
        if o in self.prog:
            return self.prog[o]
        if NODE_STATUS <= o < 0x1800:
            entry = self.node.get((o - NODE_STATUS) // 8)
            return entry[0] << 56 | entry[1] << 24 | entry[2] << 8 | 1 if entry else 0
        if RX_FLIT <= o < 0x1A8:
            return (self.rx[0] if self.rx else 0) >> 8 * (o - RX_FLIT) & MASK64
        if AUX_STATW <= o < 0x100:
            return self.aux_word((o - AUX_STATW) // 8) if self.aux_present else 0
        nx, ny = self.grid
        count, arg, code, node = self.info
        simple = {
            STATUS: 4 | bool(self.err) << 1 | (self.run or bool(self.tx)),
            CAPS: max(nx, ny) << 32 | 1 << 24 | 4 << 16 | 288,
            CAPS2: 0x4F52 << 48 | 1 << 40 | self.stage_flits << 24 | self.pos << 16 | ny << 8 | nx,
            ERR_STAT: self.err,
            ERR_INFO: count << 48 | arg << 16 | code << 8 | node,
            PROG_STAT: self.credit << 17 | self.left << 1 | self.run,
            PROG_CRED: self.credit,
            SIG_DONE: self.done,
            AUX_STAT: self.aux_stat if self.aux_present else 0,
            TX_STATUS: (len(self.tx) == self.tx_depth) << 16,
            RX_STATUS: self.overflow << 17 | (not self.rx) << 16,
        }
        return simple.get(o, 0)

    def write(self, offset: int, data: int, strobes: int = 0xFF) -> int:
        """Response of one write beat."""
        o = offset & 0xFFF8
        in_mem = MEM_BLOCK <= o < 0x280
        if not self.mapped(o) or (in_mem and self.mem is None):
            return self._bad()[1]
        if not strobes:
            return OKAY
        if in_mem:
            assert self.mem is not None
            return self._bad()[1] if self.mem.write(o - MEM_BLOCK, merge(0, data, strobes)) else OKAY
        self._effect(o, data, strobes)
        self.settle()
        return OKAY

    def _effect(self, o: int, data: int, strobes: int) -> None:
        if o in self.regs:
            self.regs[o] = merge(self.regs[o], data, strobes)
        elif o in self.prog:
            self.prog[o] = merge(self.prog[o], data, strobes) & (0xFF if o == PROG_DST else 0xFFFF)
        elif o == ERR_STAT:
            self.err &= ~merge(0, data, strobes)
            if not self.err & EVENTS:
                self.info = (0, 0, 0, 0)
        elif o == PROG_KICK:
            self._kick()
        elif o == PROG_ABORT:
            self.run = False
        elif o == PROG_CRED and strobes & 3:
            seed = merge(0, data, strobes) & 0xFFFF
            if seed > self.credit_max:
                self.err |= ERR["cred_range"]
            self.credit = self.ceiling = min(seed, self.credit_max)
        elif o == SIG_DONE:
            self.done = 0
        elif TX_FLIT <= o < 0x128:
            word = (o - TX_FLIT) // 8
            self.tx_flit[word] = merge(self.tx_flit[word], data, strobes)
        elif o == TX_KICK:
            if self.run or len(self.tx) == self.tx_depth:
                self.err |= ERR["txkick_drop"]
            else:
                flit = sum(w << 64 * i for i, w in enumerate(self.tx_flit))
                self.tx.append(flit & (1 << 288) - 1)
        elif o == RX_POP:
            if self.rx:
                self.rx.popleft()
        elif o == RX_STATUS and merge(0, data, strobes) >> 17 & 1:
            self.overflow = False
        elif AUX_CFG <= o < 0x900:
            self._aux(o - AUX_CFG, data, strobes)
        elif o >= STAGE:
            word = (o - STAGE) // 8
            self.stage[word] = merge(self.stage.get(word, 0), data, strobes)

    def _aux(self, address: int, data: int, strobes: int) -> None:
        if not self.aux_present:
            self.err |= ERR["aux_absent"]
            return
        base = self.shadow[1] if self.shadow and self.shadow[0] == address else 0
        self.shadow = (address, merge(base, data, strobes))
        self.aux_log.append(self.shadow)

    # ---- bursts ---------------------------------------------------------------------------------
    def write_burst(
        self, address: int, beats: Iterable[tuple[int, int]], size: int = 3, burst: int = INCR
    ) -> int:
        """Response of a write burst of (data, strobes) beats."""
        beats = list(beats)
        if len(beats) > 1 and (size < 3 or burst != INCR):
            return self._bad()[1]
        return max(self.write(address + 8 * n, d, s) for n, (d, s) in enumerate(beats))

    def read_burst(self, address: int, n: int, size: int = 3, burst: int = INCR) -> list[tuple[int, int]]:
        """(data, response) of every beat of a read burst."""
        if n > 1 and (size < 3 or burst != INCR):
            return [self._bad() for _ in range(n)]
        return [self.read(address + 8 * i) for i in range(n)]

    # ---- mesh -----------------------------------------------------------------------------------
    def receive(self, flit: int) -> None:
        """A flit arrives from the mesh."""
        if flit >> 268 & 15 != TYPE_CU_SIGNAL:
            if len(self.rx) == self.rx_depth:
                self.overflow = True
                self.err |= ERR["rx_drop"]
                self.drops += 1
            else:
                self.rx.append(flit)
            return
        node = (flit >> 272 & 15) << 4 | flit >> 276 & 15
        code, arg = flit >> 248 & 0xFF, flit >> 216 & 0xFFFFFFFF
        count = self.node.get(node, (0, 0, 0))[2]
        self.node[node] = (code, arg, count + 1 & 0xFFFF)
        self.done = self.done + 1 & 0xFFFF
        if code == 4 or (code == 3 and arg >> 31):
            first = not self.err & EVENTS
            self.info = (1, arg, code, node) if first else (min(self.info[0] + 1, 0xFFFF), *self.info[1:])
            self.err |= ERR["node_fault"] if code == 4 else ERR["data_reject"]
        if code in (0, 4):
            self.credit = min(self.credit + 1, self.ceiling)
        self.settle()

    def mesh_lost(self) -> None:
        """A component of the mesh reports a discarded flit."""
        self.err |= ERR["mesh_lost"]

    # ---- dispatch -------------------------------------------------------------------------------
    def _kick(self) -> None:
        dst, length, base = self.prog[PROG_DST], self.prog[PROG_LEN], self.prog[PROG_BASE]
        if self.run:
            self.err |= ERR["kick_busy"]
        elif length == 0:
            self.err |= ERR["kick_len0"]
        elif base + length > self.stage_flits:
            self.err |= ERR["stage_range"]
        elif dst not in self.nodes:
            self.err |= ERR["dst_bad"]
        else:
            self.run, self.left, self.latched = True, length, (dst, base)

    def settle(self) -> None:
        """Dispatch and send until nothing can move."""
        while True:
            if self.link_open:
                self.sent.extend(self.tx)
                self.tx.clear()
            if not (self.run and self.credit and len(self.tx) < self.tx_depth):
                return
            dst, slot = self.latched
            words = [self.stage.get(5 * slot + w, 0) for w in range(5)]
            head = words[4] & 0xFFFF | header(dst, self.pos, 0)
            self.tx.append(head << 256 | sum(w << 64 * i for i, w in enumerate(words[:4])))
            self.credit -= 1
            self.left -= 1
            self.latched = (dst, slot + 1)
            self.run = self.left > 0


class Bus(Protocol):
    """What a control program reaches: 32-bit host addresses."""

    def read(self, address: int) -> tuple[int, int]:
        """(data, response)."""

    def write(self, address: int, data: int, strobes: int = 0xFF) -> int:
        """Response."""


@dataclass
class Window:
    """The orchestrator window on the host map; everything else answers DECERR."""

    orch: Orch
    base: int = 0x1000_0000

    def read(self, address: int) -> tuple[int, int]:
        """(data, response) of one beat."""
        return self.orch.read(address & 0xFFFF) if address >> 16 == self.base >> 16 else (0, DECERR)

    def write(self, address: int, data: int, strobes: int = 0xFF) -> int:
        """Response of one beat."""
        return (
            self.orch.write(address & 0xFFFF, data, strobes) if address >> 16 == self.base >> 16 else DECERR
        )


@dataclass
class Engine:
    """Register window and execution of the control-program engine."""

    bus: Bus
    ncmd: int = 128
    poll_ivl: int = 31
    idle: Callable[[], bool] = lambda: False
    """Called after a poll that did not match; False: nothing will change, the program would poll for ever."""

    cmd: dict[int, int] = field(default_factory=dict)
    busy: bool = False
    done: bool = False
    err_code: int = 0
    pc: int = 0
    code: int = 0
    polls: int = 0
    limit: int = 0
    err_addr: int = 0

    def read(self, offset: int) -> tuple[int, int]:
        """(data, response) of one beat of the engine window."""
        o = offset & 0xFFF8
        if 0x1000 <= o < 0x1000 + 32 * self.ncmd:
            return 0, OKAY
        values = [
            self.err_code << 4 | bool(self.err_code) << 2 | self.done << 1 | self.busy,
            self.pc,
            self.code,
            self.polls,
            0x4345 << 48 | self.poll_ivl << 16 | self.ncmd,
            self.limit,
            self.err_addr,
        ]
        return (values[o // 8], OKAY) if o <= 0x30 else (0, SLVERR)

    def write(self, offset: int, data: int, strobes: int = 0xFF) -> int:
        """Response of one beat; GO only marks the engine busy, :meth:`execute` runs the program."""
        o = offset & 0xFFF8
        if 0x1000 <= o < 0x1000 + 32 * self.ncmd:
            if self.busy:
                return SLVERR
            index = (o - 0x1000) // 8
            self.cmd[index] = merge(self.cmd.get(index, 0), data, strobes)
            return OKAY
        if o == 0 and strobes & data & 1 and not self.busy:
            self.busy, self.done, self.err_code, self.pc, self.polls = True, False, 0, 0, 0
        if o == 0x28:
            self.limit = merge(self.limit, data, strobes) & 0xFFFFFFFF
        return OKAY if o <= 0x30 else SLVERR

    def _stop(self, code: int, address: int) -> None:
        self.busy, self.done, self.err_code, self.err_addr = False, True, code, address & 0xFFFFFFFF

    def abort(self) -> None:
        """ABORT between two transactions."""
        if self.busy:
            self._stop(6, self.cmd.get(4 * self.pc + 1, 0))

    def execute(self) -> None:
        """Run until the program ends or waits for something outside the model."""
        while self.busy:
            op, address, data, mask = (self.cmd.get(4 * self.pc + f, 0) for f in range(4))
            if op == 3:
                self.busy, self.done, self.code = False, True, data
                return
            if op == 1:
                if self.bus.write(address, data) != OKAY:
                    return self._stop(3, address)
            elif op == 2:
                failed = self._poll(address, data, mask)
                if failed is None:
                    return None
                if failed:
                    return self._stop(failed, address)
            else:
                return self._stop(1, address)
            if self.pc == self.ncmd - 1:
                return self._stop(2, address)
            self.pc += 1

    def _poll(self, address: int, want: int, mask: int) -> int | None:
        tries = 0
        while True:
            value, response = self.bus.read(address)
            tries += 1
            self.polls = self.polls + 1 & 0xFFFFFFFF
            if response != OKAY:
                return 4
            if value & mask == want:
                return 0
            if self.limit and tries >= self.limit:
                return 5
            if not self.limit and not self.idle():
                return None
