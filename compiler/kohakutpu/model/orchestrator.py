# SPDX-License-Identifier: Apache-2.0
"""Orchestrator: registers, staging RAM, dispatch with credit, status mirror, mailbox (docs/spec/fabric.md 6).

A dispatch runs to its end inside the write that kicks it, unless it is out of credit; it then waits for a
signal or a new seed, as the hardware would.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from enum import IntEnum
from typing import Protocol

from kohakutpu.isa import generated as g
from kohakutpu.isa import message, registers
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import MessageType, Signal
from kohakutpu.model.agent import MemoryAgent
from kohakutpu.model.description import MachineDescription, Node
from kohakutpu.model.messages import Flit

LAYER = "L0"

MASK64 = (1 << 64) - 1
_MOD16 = 0xFFFF


class Err(IntEnum):
    """Bits of ERR_STAT."""

    KICK_BUSY = 0
    KICK_LEN0 = 1
    STAGE_RANGE = 2
    CRED_RANGE = 3
    DST_BAD = 4
    TXKICK_DROP = 5
    RX_DROP = 6
    NODE_FAULT = 7
    DATA_REJECT = 8
    MESH_LOST = 9
    AXI_BAD = 10
    AUX_ABSENT = 11


class AuxClient(Protocol):
    """Clients of the AUX window: the memory mover at 0x00..0x7F, the interlink above."""

    def owns(self, offset: int) -> bool:
        """True if a client stands behind the window offset."""

    def write(self, offset: int, data: int) -> None:
        """A 64-bit beat at window offset 0..0xF8."""

    def status(self, offset: int) -> int:
        """Status register at orchestrator offset 0x78..0xF8."""


def merge(old: int, data: int, strobe: int) -> int:
    """`old` with the bytes of `data` whose strobe bit is set."""
    if strobe == 0xFF:
        return data
    mask = sum(0xFF << 8 * n for n in range(8) if strobe >> n & 1)
    return old & ~mask | data & mask


class Orchestrator:
    """The control endpoint at `desc.orch`; `nodes` are the coordinates a kick may name."""

    def __init__(
        self,
        desc: MachineDescription,
        deliver: Callable[[int], None],
        agent: MemoryAgent,
        nodes: Collection[Node],
    ) -> None:
        self.desc = desc
        self.aux: AuxClient | None = None
        self.err_stat = 0
        self.sig_done = 0
        self.run = False
        self.left = 0
        self.credit = 0
        self.rx: deque[int] = deque()
        self.status = [0] * 256
        self._ceiling = 0
        self._deliver = deliver
        self._agent = agent
        self._nodes = frozenset(nodes)
        self._registers = dict.fromkeys(("CTRL", "IRQ_EN", "PROG_DST", "PROG_LEN", "PROG_BASE"), 0)
        self._masks = {"PROG_DST": 0xFF, "PROG_LEN": _MOD16, "PROG_BASE": _MOD16}
        self._tx = [0] * g.FLIT_WORDS
        self._stage = [[0] * g.FLIT_WORDS for _ in range(desc.stage_flits)]
        self._target: Node = (0, 0)
        self._slot = 0
        self._pumping = False
        self._overflow = False
        self._events = 0
        self._first_event: tuple[Node, int, int] | None = None
        self._aux_shadow: tuple[int, int] | None = None
        self._by_offset = {
            registers.offset(name): name for name in g.REGISTERS if g.REGISTERS[name][0] == "orch"
        }

    # ------------------------------------------------------------ mesh side

    def take(self, flit: Flit) -> None:
        """A flit from the mesh: signals are summarised, everything else goes to the mailbox."""
        if flit.type == MessageType.CU_SIGNAL:
            self._signal(flit)
        elif len(self.rx) < g.RX_DEPTH:
            self.rx.append(flit.value)
        else:
            self._overflow = True
            self._raise(Err.RX_DROP)
            self._agent.drop_control(1)

    def lost(self) -> None:
        """A flit was discarded somewhere on the mesh."""
        self._raise(Err.MESH_LOST)

    def _raise(self, bit: Err) -> None:
        self.err_stat |= 1 << bit

    def _signal(self, flit: Flit) -> None:
        f = codec("CU_SIGNAL").decode(flit.payload)
        code, arg = f["code"], f["arg"]
        index = flit.src[1] << 4 | flit.src[0]
        count = (self.signal_count(flit.src) + 1) & _MOD16
        self.status[index] = registers.encode("NODE_STATUS", code=code, arg=arg, signal_count=count, valid=1)
        self.sig_done = (self.sig_done + 1) & _MOD16
        fault = code == Signal.FAULT
        if fault or (code == Signal.DATA_RECEIVED and arg >> 31):
            if self._first_event is None:
                self._first_event = (flit.src, code, arg)
            self._events = min(self._events + 1, _MOD16)
            self._raise(Err.NODE_FAULT if fault else Err.DATA_REJECT)
        if fault or code == Signal.INST_COMPLETE:
            self.credit = min(self.credit + 1, self._ceiling)
            self._pump()

    def signal_count(self, node: Node) -> int:
        """Signals received from `node`, modulo 2**16."""
        return codec("NODE_STATUS").get(self.status[node[1] << 4 | node[0]], "signal_count")

    # ------------------------------------------------------------ dispatch

    def _kick(self) -> None:
        base, length = self._registers["PROG_BASE"], self._registers["PROG_LEN"]
        dst = self._registers["PROG_DST"]
        target = (dst & 15, dst >> 4)
        if self.run:
            self._raise(Err.KICK_BUSY)
        elif length == 0:
            self._raise(Err.KICK_LEN0)
        elif base + length > self.desc.stage_flits:
            self._raise(Err.STAGE_RANGE)
        elif target not in self._nodes:
            self._raise(Err.DST_BAD)
        else:
            self._target, self._slot, self.left, self.run = target, base, length, True
            self._pump()

    def _pump(self) -> None:
        """Dispatch while there is credit; a signal that arrives meanwhile only adds credit."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while self.run and self.credit:
                self.credit -= 1
                words = self._stage[self._slot]
                self._slot += 1
                self.left -= 1
                if self.left == 0:
                    self.run = False
                self._deliver(self._stamped(message.from_words(words)))
        finally:
            self._pumping = False

    def _stamped(self, flit: int) -> int:
        """The staged flit with destination and source of this dispatch."""
        x, y = self._target
        route = x << 12 | y << 8 | self.desc.orch[0] << 4 | self.desc.orch[1]
        return flit & (1 << 272) - 1 | route << 272

    # ------------------------------------------------------------ register side

    def write(self, offset: int, data: int, strobe: int = 0xFF) -> bool:
        """One 64-bit write beat. False: answered with SLVERR."""
        offset &= ~7
        good = self._mapped_write(offset, data & MASK64, strobe) if strobe else self._is_mapped(offset)
        if not good:
            self._raise(Err.AXI_BAD)
        return good

    def read(self, offset: int) -> tuple[int, bool]:
        """One 64-bit read beat: (value, answered OKAY)."""
        value = self._read(offset & ~7)
        if value is None:
            self._raise(Err.AXI_BAD)
            return 0, False
        return value, True

    def _is_mapped(self, offset: int) -> bool:
        return self._read(offset) is not None

    def _name(self, offset: int) -> tuple[str, int] | None:
        """Register and element at a window offset, None if unmapped."""
        name = self._by_offset.get(offset)
        if name is not None and g.REGISTERS[name][4] == 1:
            return name, 0
        for name in ("NODE_STATUS", "STAGE", "AUX_CFG", "AUX_STATW", "TX_FLIT", "RX_FLIT", "MEM_BLOCK"):
            _, base, _, _, count, stride = g.REGISTERS[name]
            if name == "STAGE":
                count = g.FLIT_WORDS * self.desc.stage_flits
            if base <= offset < base + count * stride:
                return name, (offset - base) // stride
        return None

    def _mapped_write(self, offset: int, data: int, strobe: int) -> bool:
        place = self._name(offset)
        if place is None:
            return False
        name, index = place
        match name:
            case "CTRL" | "IRQ_EN" | "PROG_DST" | "PROG_LEN" | "PROG_BASE":
                value = merge(self._registers[name], data, strobe)
                self._registers[name] = value & self._masks.get(name, MASK64)
            case "ERR_STAT":
                self.err_stat &= ~merge(0, data, strobe)
                if not self.err_stat & (1 << Err.NODE_FAULT | 1 << Err.DATA_REJECT):
                    self._first_event, self._events = None, 0
            case "PROG_KICK":
                self._kick()
            case "PROG_ABORT":
                self.run = False
            case "PROG_CRED":
                if strobe & 3:
                    self._seed(merge(0, data, strobe) & _MOD16)
            case "SIG_DONE":
                self.sig_done = 0
            case "TX_FLIT":
                self._tx[index] = merge(self._tx[index], data, strobe)
            case "TX_KICK":
                if self.run:
                    self._raise(Err.TXKICK_DROP)
                else:
                    self._deliver(message.from_words(self._tx))
            case "RX_POP":
                if self.rx:
                    self.rx.popleft()
            case "RX_STATUS":
                if merge(0, data, strobe) >> 17 & 1:
                    self._overflow = False
            case "STAGE":
                slot, word = divmod(index, g.FLIT_WORDS)
                self._stage[slot][word] = merge(self._stage[slot][word], data, strobe)
            case "AUX_CFG":
                self._aux_write(8 * index, data, strobe)
            case "MEM_BLOCK":
                return self._agent.register_write(offset)
        return True

    def _seed(self, value: int) -> None:
        if value > self.desc.credit_max:
            self._raise(Err.CRED_RANGE)
        self.credit = self._ceiling = min(value, self.desc.credit_max)
        self._pump()

    def _aux_write(self, offset: int, data: int, strobe: int) -> None:
        if self.aux is None or not self.aux.owns(offset):
            self._raise(Err.AUX_ABSENT)
            return
        shadow = self._aux_shadow
        merged = merge(shadow[1] if shadow and shadow[0] == offset else 0, data, strobe)
        self._aux_shadow = (offset, merged)
        self.aux.write(offset, merged)

    def _read(self, offset: int) -> int | None:
        place = self._name(offset)
        if place is None:
            return None
        name, index = place
        desc = self.desc
        match name:
            case "CTRL" | "IRQ_EN" | "PROG_DST" | "PROG_LEN" | "PROG_BASE":
                return self._registers[name]
            case "STATUS":
                return 4 | int(self.err_stat != 0) << 1 | int(self.run)
            case "CAPS":
                return registers.encode(
                    "CAPS", grid_hi=max(desc.nx, desc.ny), grid_lo=1, pos_width=4, flit_width=g.FLIT_W
                )
            case "CAPS2":
                return registers.encode(
                    "CAPS2",
                    magic=0x4F52,
                    revision=1,
                    stage_flits=desc.stage_flits,
                    orc_y=desc.orch[1],
                    orc_x=desc.orch[0],
                    grid_y_hi=desc.ny,
                    grid_x_hi=desc.nx,
                )
            case "ERR_STAT":
                return self.err_stat
            case "ERR_INFO":
                return self._error_info()
            case "PROG_STAT":
                return registers.encode("PROG_STAT", credit=self.credit, left=self.left, run=int(self.run))
            case "PROG_CRED":
                return self.credit
            case "SIG_DONE":
                return self.sig_done
            case "AUX_STAT" | "AUX_STATW":
                return self.aux.status(offset) if self.aux is not None else 0
            case "RX_FLIT":
                return message.to_words(self.rx[0])[index] if self.rx else 0
            case "RX_STATUS":
                return int(self._overflow) << 17 | int(not self.rx) << 16
            case "NODE_STATUS":
                return self.status[index]
            case "MEM_BLOCK":
                return self._agent.register_read(offset)
        return 0  # write-only registers, IRQ_STAT and TX_STATUS of an empty FIFO

    def _error_info(self) -> int:
        if self._first_event is None:
            return 0
        (x, y), code, arg = self._first_event
        return registers.encode("ERR_INFO", events=self._events, arg=arg, code=code, node_y=y, node_x=x)
