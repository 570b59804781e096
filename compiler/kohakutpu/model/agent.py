# SPDX-License-Identifier: Apache-2.0
"""Memory agent: reads, writes, faults, counters (docs/spec/memory.md sections 2 to 10).

Every requester ends here: mesh ports with `read`, `write` and flits, the host with `host_read`, `host_write`,
the mover with `check_words`, `first_failing`, `read_words`, `write_words`. All ask the same `classify`, and
`record` keeps what MEM_FAULT and MEM_DROP show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from kohakutpu.isa import generated as g
from kohakutpu.isa import message, registers
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import MemFault, MessageType, RequesterClass
from kohakutpu.model.description import MachineDescription, Node
from kohakutpu.model.memory import ADDR_MASK, WORD, Image, classify, classify_words
from kohakutpu.model.messages import DataBurst, Flit, word_to_int
from kohakutpu.model.numerics.bits import U8

LAYER = "L0"

_SATURATED = 0xFFFF
_MOD16 = 0xFFFF
_MOD32 = 0xFFFF_FFFF
Bool = npt.NDArray[np.bool_]
I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class MemFaultEvent:
    """One entry of the fault log; MEM_FAULT holds the first since it was cleared."""

    code: MemFault
    cls: RequesterClass
    node: Node
    txn: int
    addr: int

    def register(self) -> int:
        """The event as a MEM_FAULT value."""
        node = self.node[1] << 4 | self.node[0]
        return registers.encode(
            "MEM_FAULT", code=self.code, cls=self.cls, node=node, txn=self.txn, addr=self.addr
        )


class MemoryPath(Protocol):
    """Where a unit's reads and writes go: the agent, or an adapter in front of it."""

    def read(
        self, src: Node, txn: int, addr: int, words: int, fault: MemFault = ..., *, entries: int = 1
    ) -> tuple[U8, Bool]:
        """Read a run: (uint8 (words, 32), failed (words,))."""

    def write(self, src: Node, txn: int, addr: int, words: U8) -> MemFault:
        """One write burst, uint8 (n, 32); the code of its acknowledgement."""


@dataclass
class _Collecting:
    """A write burst whose data is still arriving."""

    port: Node
    txn: int
    addr: int
    left: int
    fault: MemFault
    words: list[U8] = field(default_factory=list)


class MemoryAgent:
    """The memory endpoint(s) of one mesh with DRAM and the optional staging store.

    `deliver` sends a flit into the mesh, `control` takes the flits meant for an orchestrator that shares
    port 0 (None: it has its own endpoint), `lost` reports a discarded flit.
    """

    def __init__(
        self,
        desc: MachineDescription,
        deliver: Callable[[int], None],
        control: Callable[[Flit], None] | None,
        lost: Callable[[int], None],
    ) -> None:
        self.desc = desc
        self.dram = Image(desc.dram_bytes)
        self.stage = Image(desc.stage_bytes)
        self.faults: list[MemFaultEvent] = []
        self.fault_count = 0
        self.orphans = 0
        self.control_drops = 0
        self.counts = {"dram": [0, 0], "stage": [0, 0]}
        self.port_reads = 0
        self.port_writes = 0
        self.bus_errors: list[tuple[int, int]] = []
        self._deliver = deliver
        self._control = control
        self._lost = lost
        self._collecting: dict[Node, _Collecting] = {}

    # ------------------------------------------------------------ checks and plain access

    def check(self, addr: int, n: int, aligned: bool = True) -> tuple[MemFault, Image, int]:
        """`classify` for this mesh: (fault, image, offset)."""
        fault, tier, offset = classify(
            addr,
            n,
            mesh=self.desc.mesh_id,
            dram_bytes=self.desc.dram_bytes,
            stage_bytes=self.desc.stage_bytes,
            aligned=aligned,
        )
        return fault, self.stage if tier == "stage" else self.dram, offset

    def fail_bus(self, offset: int, n: int) -> None:
        """Make the DRAM bus answer accesses to n bytes from `offset` with an error, for tests."""
        self.bus_errors.append((offset, offset + n))

    def _bus_failed(self, image: Image, offset: int, n: int) -> Bool | None:
        """Mask of the words of an access that fail on the bus, None if none does."""
        if image is not self.dram or not self.bus_errors:
            return None
        first = offset // WORD * WORD + WORD * np.arange(n // WORD)
        mask = np.zeros(len(first), dtype=bool)
        for low, high in self.bus_errors:
            mask |= (first < high) & (first + WORD > low)
        return mask if mask.any() else None

    def _count(self, image: Image, write: bool, words: int) -> None:
        pair = self.counts["stage" if image is self.stage else "dram"]
        pair[write] = (pair[write] + words) & _MOD32

    def record(
        self, code: MemFault, cls: RequesterClass, node: Node = (0, 0), txn: int = 0, addr: int = 0
    ) -> None:
        """Log a fault; an orphan has a counter of its own."""
        self.faults.append(MemFaultEvent(code, cls, node, txn, addr))
        if code == MemFault.M_ORPHAN:
            self.orphans = min(self.orphans + 1, _SATURATED)
        else:
            self.fault_count = min(self.fault_count + 1, _SATURATED)

    # ------------------------------------------------------------ requests of units

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
        """Read a run for a port requester: (uint8 (words, 32), failed (words,)); failed words are 0.

        `fault` is a reason found before the address check (M_REMOTE) or after it (M_TAG); `entries` is what
        AUX_STAT counts the run as.
        """
        found, image, offset = self.check(addr, words * WORD)
        code = fault if fault == MemFault.M_REMOTE else found or fault
        if code:
            self.record(code, RequesterClass.PORT, src, txn, addr)
            return np.zeros((words, WORD), dtype=np.uint8), np.ones(words, dtype=bool)
        self._count(image, False, words)
        self.port_reads = (self.port_reads + entries) & _MOD16
        data = image.read(offset, words * WORD).reshape(words, WORD)
        failed = self._bus_failed(image, offset, words * WORD)
        if failed is None:
            return data, np.zeros(words, dtype=bool)
        self.record(MemFault.M_BUS, RequesterClass.PORT, src, txn, addr)
        data[failed] = 0
        return data, failed

    def write(self, src: Node, txn: int, addr: int, words: U8, fault: MemFault = MemFault.M_NONE) -> MemFault:
        """One write burst of a port requester, uint8 (n, 32). Returns the code of its acknowledgement."""
        found, image, offset = self.check(addr, max(len(words), 1) * WORD)
        code = fault or found
        if not code:
            self.port_writes = (self.port_writes + 1) & _MOD16
            if self._bus_failed(image, offset, len(words) * WORD) is None:
                self._count(image, True, len(words))
                image.write(offset, words.reshape(-1))
                return MemFault.M_NONE
            code = MemFault.M_BUS
        self.record(code, RequesterClass.PORT, src, txn, addr)
        return code

    # ------------------------------------------------------------ flits

    def take(self, flit: Flit, port: Node) -> None:
        """A flit that arrived at the memory port `port` (section 2.2)."""
        if flit.type == MessageType.CU_DATA and flit.rsvd & 4:
            self.record(MemFault.M_REMOTE, RequesterClass.PORT, flit.src, flit.txn)
        elif flit.type == MessageType.MEM_RD_REQ:
            self._read_request(flit, port)
        elif flit.type == MessageType.MEM_WR_REQ:
            self._write_request(flit, port)
        elif flit.type == MessageType.MEM_WR_DATA:
            self._write_data(flit)
        elif self._control is not None:
            self._control(flit)
        else:
            self.drop_control(1)
            self._lost(flit.value)

    def take_burst(self, burst: DataBurst, port: Node) -> None:
        """A CU_DATA burst that was sent to a memory port."""
        for value in burst.flits():
            self.take(Flit(value), port)

    def drop_control(self, n: int) -> None:
        """Count n control flits nobody could take."""
        self.control_drops = min(self.control_drops + n, _SATURATED)

    def _read_request(self, flit: Flit, port: Node) -> None:
        f = codec("MEM_RD_REQ").decode(flit.payload)
        fault = MemFault.M_REMOTE if flit.rsvd & 4 else MemFault.M_NONE
        targets = [flit.src]
        if f["flag_stream"]:
            entry = f["entry_words"] if 1 <= f["entry_words"] <= 4 else 4
            count = f["count"] or 1
            if flit.txn + count - 1 > 255:
                fault = fault or MemFault.M_TAG
            peers = (f["peer0"], f["peer1"], f["peer2"])[: f["n_peer"]]
            targets += [(p & 15, p >> 4) for p in peers]
        else:
            entry, count = f["len"] + 1, 1
        data, failed = self.read(flit.src, flit.txn, f["addr"], entry * count, fault, entries=count)
        for i in range(count):
            for target in targets:
                for w in range(entry):
                    index = i * entry + w
                    head = message.encode(
                        "MEM_RD_RESP",
                        dst=target,
                        src=port,
                        txn=(flit.txn + i) & 255,
                        last=int(w == entry - 1),
                        rsvd=(w if f["flag_stream"] else 0) | int(failed[index]) << 2,
                    )
                    self._deliver(head | word_to_int(data[index]))

    def _write_request(self, flit: Flit, port: Node) -> None:
        old = self._collecting.pop(flit.src, None)
        if old is not None:
            self._finish(flit.src, old, MemFault.M_FRAME)
        f = codec("MEM_WR_REQ").decode(flit.payload)
        fault = MemFault.M_REMOTE if flit.rsvd & 4 else MemFault.M_NONE
        if not fault:
            fault = self.check(f["addr"], (f["len"] + 1) * WORD)[0]
        if not fault and f["len"] >= g.MEM_WBURST:
            fault = MemFault.M_LEN
        self._collecting[flit.src] = _Collecting(port, flit.txn, f["addr"], f["len"] + 1, fault)

    def _write_data(self, flit: Flit) -> None:
        slot = self._collecting.get(flit.src)
        if slot is None:
            self.record(MemFault.M_ORPHAN, RequesterClass.PORT, flit.src, flit.txn)
            return
        slot.words.append(flit.word)
        if flit.rsvd & 4:
            slot.fault = slot.fault or MemFault.M_REMOTE
        slot.left -= 1
        if slot.left == 0 or flit.last:
            del self._collecting[flit.src]
            good = slot.left == 0 and flit.last
            self._finish(flit.src, slot, MemFault.M_NONE if good else MemFault.M_FRAME)

    def _finish(self, src: Node, slot: _Collecting, framing: MemFault) -> None:
        """Perform or refuse a collected write and acknowledge it."""
        words = np.array(slot.words, dtype=np.uint8).reshape(-1, WORD)
        code = self.write(src, slot.txn, slot.addr, words, slot.fault or framing)
        self._deliver(write_ack(src, slot.port, slot.txn, code))

    # ------------------------------------------------------------ accesses of the mover

    def check_words(self, addresses: I64, n: int | I64) -> tuple[I64, Bool, I64]:
        """`classify` of n bytes at every exact, aligned address: (fault codes, staged, offsets)."""
        return classify_words(
            addresses,
            n,
            mesh=self.desc.mesh_id,
            dram_bytes=self.desc.dram_bytes,
            stage_bytes=self.desc.stage_bytes,
        )

    def first_failing(self, addresses: I64) -> int:
        """Index of the first word at checked addresses (k,) that fails on the bus, k if none does."""
        _, staged, offsets = self.check_words(addresses, WORD)
        for low, high in self.bus_errors:
            bad = ~staged & (offsets < high) & (offsets + WORD > low)
            if bad.any():
                first = int(bad.argmax())
                staged, offsets = staged[:first], offsets[:first]
        return len(offsets)

    def read_words(self, addresses: I64) -> U8:
        """Words at checked addresses (k,): uint8 (k, 32)."""
        out = np.zeros((len(addresses), WORD), dtype=np.uint8)
        _, staged, offsets = self.check_words(addresses, WORD)
        for image, here in ((self.dram, ~staged), (self.stage, staged)):
            out[here] = image.gather(offsets[here])
            self._count(image, False, int(here.sum()))
        return out

    def write_words(self, addresses: I64, words: U8) -> None:
        """Store uint8 (k, 32) at checked addresses (k,) in order."""
        _, staged, offsets = self.check_words(addresses, WORD)
        for image, here in ((self.dram, ~staged), (self.stage, staged)):
            image.scatter(offsets[here], words[here])
            self._count(image, True, int(here.sum()))

    # ------------------------------------------------------------ host window and registers

    def host_write(
        self, addr: int, data: bytes, strobe: bytes | None = None, supported: bool = True
    ) -> MemFault:
        """One burst of `S_AXI_MEM` (section 9): bytes land as sent, strobe byte 0 keeps the old one.

        `supported` False stands for a burst type or size the window refuses.
        """
        fault, image, offset, words = self._host_span(addr, len(data), supported)
        if fault:
            return fault
        new = np.frombuffer(data, dtype=np.uint8)
        if strobe is not None:
            keep = np.frombuffer(strobe, dtype=np.uint8) == 0
            new = np.where(keep, image.read(offset, len(data)), new)
        self._count(image, True, words)
        image.write(offset, new)
        return MemFault.M_NONE

    def host_read(self, addr: int, n: int, supported: bool = True) -> tuple[MemFault, bytes]:
        """One read burst of `S_AXI_MEM`; zeros with a fault, of M_BUS only in the words that failed."""
        fault, image, offset, words = self._host_span(addr, n, supported)
        if fault not in (MemFault.M_NONE, MemFault.M_BUS):
            return fault, bytes(n)
        self._count(image, False, words)
        data = image.read(offset - offset % WORD, words * WORD).reshape(words, WORD)
        failed = self._bus_failed(image, offset, words * WORD)
        if failed is not None:
            data[failed] = 0
        return fault, data.tobytes()[offset % WORD :][:n]

    def _host_span(self, addr: int, n: int, supported: bool) -> tuple[MemFault, Image, int, int]:
        """Check the words around n bytes at `addr`: (fault, image, byte offset, words touched)."""
        base = addr // WORD * WORD
        words = -(-(addr - base + n) // WORD)
        fault, image, offset = self.check(base, words * WORD, aligned=False)
        if not supported:
            fault = MemFault.M_HOSTX
        elif not fault and self._bus_failed(image, offset, words * WORD) is not None:
            fault = MemFault.M_BUS
        if fault:
            self.record(fault, RequesterClass.HOST, addr=addr & ADDR_MASK)
        return fault, image, offset + addr - base, words

    def register_read(self, offset: int) -> int | None:
        """MEM_BLOCK register at a window offset, None if the agent has none there."""
        match offset:
            case 0x200:
                return registers.encode(
                    "MEM_CAPS",
                    version=1,
                    wr_slots=self.desc.wr_slots,
                    wburst=g.MEM_WBURST,
                    ports=len(self.desc.mem_ports),
                    dram_log2=self.desc.dram_bytes.bit_length() - 1,
                    stage_bytes=self.desc.stage_bytes,
                )
            case 0x208:
                return self.faults[0].register() if self.faults else 0
            case 0x210:
                return self.control_drops << 32 | self.orphans << 16 | self.fault_count
            case 0x218:
                return self.counts["stage"][1] << 32 | self.counts["stage"][0]
            case 0x220:
                return self.counts["dram"][1] << 32 | self.counts["dram"][0]
        return None

    def register_write(self, offset: int) -> bool:
        """A strobed write: clears MEM_FAULT or MEM_DROP, ignored elsewhere; False if unmapped."""
        if offset == 0x208:
            self.faults.clear()
        elif offset == 0x210:
            self.fault_count = self.orphans = self.control_drops = 0
        return self.register_read(offset) is not None


def write_ack(dst: Node, port: Node, txn: int, code: MemFault) -> int:
    """MEM_WR_ACK flit."""
    return message.encode("MEM_WR_ACK", dst=dst, src=port, txn=txn, drop=int(code != 0), fault_code=code)


def fault_set(events: Iterable[MemFaultEvent]) -> frozenset[MemFaultEvent]:
    """The events without their order, for the membership test of the determinism contract."""
    return frozenset(events)
