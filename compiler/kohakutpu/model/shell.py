# SPDX-License-Identifier: Apache-2.0
"""The common shell of a compute unit at instruction level (docs/spec/fabric.md section 5).

Instructions execute one after the other, each to its end; reads, writes and acknowledgements happen inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kohakutpu.isa import generated as g
from kohakutpu.isa import message, registers
from kohakutpu.isa.codec import codec
from kohakutpu.isa.faults import fault_arg
from kohakutpu.isa.generated import ControlIndex, MemFault, MessageType, ShellFault, Signal
from kohakutpu.model.agent import MemoryPath, write_ack
from kohakutpu.model.description import Node
from kohakutpu.model.messages import DataBurst, Flit, ReadRequest, WriteBurst
from kohakutpu.model.numerics.bits import U8

LAYER = "L0"

MISROUTE, BAD_TYPE, WR_DROP, RD_ERR, SPUR_DONE, SPUR_ACK, CTRL_OVF = range(7)
"""Sticky bits of CU_ERR; unit_err bit n is sticky bit 8 + n."""


@dataclass(frozen=True)
class Retirement:
    """What a unit reports at `exec_done`: fault flag, 32-bit result, fence mark."""

    fault: bool
    result: int
    cover: bool


@dataclass(frozen=True)
class Completion:
    """One completion signal of a unit."""

    code: Signal
    arg: int
    txn: int


class Unit(Protocol):
    """The compute unit behind a shell."""

    cu_type: int
    n_buffers: int
    features: int

    def execute(self, payload: int, last: bool) -> Retirement:
        """Run one instruction to its end."""

    def receive(self, flit: Flit) -> None:
        """A MEM_RD_RESP or CU_DATA flit for the unit."""

    def receive_burst(self, burst: DataBurst) -> None:
        """A whole CU_DATA burst for the unit."""

    def debug(self) -> int:
        """CU_DBG; 0 in a model without cycles."""


class Network(Protocol):
    """What an endpoint needs from the mesh."""

    def deliver(self, value: int) -> None:
        """Route one flit to its endpoint."""

    def deliver_burst(self, burst: DataBurst) -> None:
        """Route one well-framed CU_DATA burst."""

    def observe(self, node: Node, event: object) -> None:
        """Report something a unit sent, for lock-step comparison."""


@dataclass(frozen=True)
class ShellParams:
    """Build values a shell publishes."""

    inst_depth: int = g.INST_DEPTH
    max_inflight: int = g.MAX_INFLIGHT
    version: int = g.CU_VERSION


class Shell:
    """`cu_base` of one unit at `pos`, bound to the memory port `port`."""

    def __init__(
        self, pos: Node, port: Node, net: Network, agent: MemoryPath, params: ShellParams | None = None
    ) -> None:
        self.pos = pos
        self.port = port
        self.params = params or ShellParams()
        self.retired = 0
        self.completions: list[Completion] = []
        self.acks: list[int] = []
        self.sticky = 0
        self.first_hdr = 0
        self._net = net
        self._agent = agent
        self._unit: Unit | None = None
        self._pending = MemFault.M_NONE

    def attach(self, unit: Unit) -> None:
        """Connect the unit; once, before the first flit."""
        self._unit = unit

    @property
    def unit(self) -> Unit:
        """The attached unit."""
        assert self._unit is not None, f"no unit attached at {self.pos}"
        return self._unit

    # ------------------------------------------------------------ inbound

    def take(self, flit: Flit) -> None:
        """One flit from the mesh (section 5.2)."""
        if flit.dst != self.pos:
            self._flag(MISROUTE, flit.value)
            if flit.type == MessageType.CU_INST:
                arg = fault_arg(g.FAULT_MAGIC, 0, ShellFault.MISROUTED)
                self._signal(flit, Completion(Signal.FAULT, arg, flit.txn))
        elif flit.type == MessageType.CU_INST:
            self._execute(flit)
        elif flit.type == MessageType.CU_CTRL:
            self._control(flit)
        elif flit.type == MessageType.MEM_WR_ACK:
            # every write of the unit was acknowledged when it was issued
            self._flag(SPUR_ACK, flit.value)
        elif flit.type == MessageType.MEM_RD_RESP:
            if flit.rsvd & 4:
                self._flag(RD_ERR, flit.value)
            self.unit.receive(flit)
        elif flit.type == MessageType.CU_DATA:
            self.unit.receive(flit)
        elif flit.type != MessageType.CU_SIGNAL:
            self._flag(BAD_TYPE, flit.value)

    def take_burst(self, burst: DataBurst) -> None:
        """A well-framed CU_DATA burst from the mesh."""
        if burst.dst == self.pos:
            self.unit.receive_burst(burst)
        else:
            for value in burst.flits():
                self.take(Flit(value))

    def _execute(self, flit: Flit) -> None:
        done = self.unit.execute(flit.payload, bool(flit.last))
        if done.fault:
            code, arg = Signal.FAULT, done.result
        elif flit.last:
            code, arg = Signal.BATCH_COMPLETE, flit.txn
        else:
            code, arg = Signal.INST_COMPLETE, done.result
        if done.cover:
            failed, self._pending = self._pending, MemFault.M_NONE
            if failed:
                if code != Signal.FAULT:
                    arg = fault_arg(g.FAULT_MAGIC, failed, ShellFault.WR_DROP)
                code = Signal.FAULT
        self._signal(flit, Completion(code, arg, flit.txn))

    def _signal(self, instruction: Flit, done: Completion) -> None:
        """Count a retirement and send its completion to the sender of the instruction."""
        self.retired = (self.retired + 1) & 0xFFFF_FFFF
        self.completions.append(done)
        flit = message.encode(
            "CU_SIGNAL", dst=instruction.src, src=self.pos, txn=done.txn, code=done.code, arg=done.arg
        )
        self._net.observe(self.pos, done)
        self._net.deliver(flit)

    # ------------------------------------------------------------ services for the unit

    def read(
        self, txn: int, addr: int, entries: int, entry_words: int = g.MG_ENTRY_WORDS
    ) -> tuple[U8, npt.NDArray[np.bool_]]:
        """Streaming read of n-word entries: (uint8 (entries, n, 32), failed (entries, n))."""
        self._net.observe(self.pos, ReadRequest(self.port, self.pos, txn, addr, entries, entry_words))
        words, failed = self._agent.read(self.pos, txn, addr, entry_words * entries, entries=entries)
        if failed.any():
            index = int(failed.argmax())
            header = message.encode(
                "MEM_RD_RESP",
                dst=self.pos,
                src=self.port,
                txn=(txn + index // entry_words) & 255,
                last=int(index % entry_words == entry_words - 1),
                rsvd=4 | index % entry_words,
            )
            self._flag(RD_ERR, header)
        return words.reshape(entries, entry_words, 32), failed.reshape(entries, entry_words)

    def write(self, txn: int, addr: int, words: U8) -> None:
        """One write burst; its acknowledgement goes to the fence."""
        self._net.observe(self.pos, WriteBurst(self.port, self.pos, txn, addr, words))
        code = self._agent.write(self.pos, txn, addr, words)
        if code:
            self._flag(WR_DROP, write_ack(self.pos, self.port, txn, code))
            self._pending = self._pending or code

    def send_burst(self, burst: DataBurst) -> None:
        """Send one CU_DATA burst."""
        self._net.observe(self.pos, burst)
        self._net.deliver_burst(burst)

    def acknowledge(self, flit: int) -> None:
        """Send a DATA_RECEIVED signal of the unit."""
        self.acks.append(codec("CU_SIGNAL").get(Flit(flit).payload, "arg"))
        self._net.observe(self.pos, Flit(flit))
        self._net.deliver(flit)

    def unit_error(self, bit: int) -> None:
        """Raise `unit_err[bit]`."""
        self._flag(8 + bit, 0)

    # ------------------------------------------------------------ discovery

    def _flag(self, bit: int, flit: int) -> None:
        if not self.sticky:
            self.first_hdr = flit >> g.PAYLOAD_W & 0xFFFF_FFFF
        self.sticky |= 1 << bit

    def register(self, index: int) -> int:
        """Discovery register `index` (section 5.5); cycle counts read 0."""
        match index:
            case ControlIndex.CU_CAPS:
                return registers.encode(
                    "CU_CAPS",
                    cu_type=self.unit.cu_type,
                    cu_version=self.params.version,
                    n_buffers=self.unit.n_buffers,
                    inst_depth=self.params.inst_depth,
                    max_inflight=self.params.max_inflight,
                    features=self.unit.features,
                )
            case ControlIndex.CU_STATUS:
                return registers.encode(
                    "CU_STATUS", error=int(self.sticky != 0), inst_space=self.params.inst_depth
                )
            case ControlIndex.CU_COUNTERS:
                return self.retired << 32
            case ControlIndex.CU_DBG:
                return self.unit.debug()
            case ControlIndex.CU_ERR:
                return self.first_hdr << 16 | self.sticky
        return 0

    def _control(self, flit: Flit) -> None:
        f = codec("CU_CTRL_REQ").decode(flit.payload)
        write = f["op"] == g.CTRL_OP_WRITE
        value = self.register(f["index"])
        clears = write and f["index"] == ControlIndex.CU_ERR
        if clears:
            self.sticky = self.first_hdr = 0
        reply = message.encode(
            "CU_CTRL_RSP",
            dst=flit.src,
            src=self.pos,
            txn=flit.txn,
            op=g.CTRL_OP_REFUSED if write and not clears else g.CTRL_OP_RSP,
            index=f["index"],
            value=value,
        )
        self._net.deliver(reply)
