# SPDX-License-Identifier: Apache-2.0
"""The machine ``mesh_duo`` as a bench sees it: endpoints that speak for themselves, a twin model, floods."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import Event, Lock, with_timeout

from kohakubench import checks, clocks
from kohakubench.insim import InSim
from kohakubench.mesh_paths import ACK, BURST, CONTROL, RESPONSE, SIGNAL, WORD, Mailbox, Seen
from kohakubench.ports import Port
from kohakudriver.registers import address, fields
from kohakutpu.isa import cluster, message
from kohakutpu.model.numerics import Layout, quantise_entries, receive_granules
from kohakutpu.model.transport import ModelTransport
from kohakutpu.schedule.layout import Entry

MACHINE = "mesh_duo"
A, B = (2, 1), (1, 2)
EP0, EP1 = (1, 0), (3, 2)
CTRL, MEM = (1, 1), (0, 1)
RECEIVED = 3
FOREVER = 1 << 40

Node = tuple[int, int]


def operand(rng: np.random.Generator, groups: int, nk: int, side: Layout) -> bytes:
    """Memory image of random operand entries: group major, K blocks inside."""
    values = rng.standard_normal((4 * groups, 32 * nk)).astype(np.float16)
    return quantise_entries(Entry(groups, nk).entries(values), side).tobytes()


def words_of(data: bytes) -> list[int]:
    """32-byte words as integers."""
    return [int.from_bytes(data[i : i + WORD], "little") for i in range(0, len(data), WORD)]


def program(dst: Node, src: Node, txn: int, payloads: Sequence[int]) -> list[int]:
    """Instruction flits of one program."""
    final = len(payloads) - 1
    return [
        message.encode("CU_INST", dst=dst, src=src, txn=txn, last=int(i == final)) | p for i, p in enumerate(payloads)
    ]


def burst(
    dst: Node, src: Node, txn: int, buf: int, offset: int, words: Sequence[int], ack: Node | None = None
) -> list[int]:
    """CU_DATA burst that asks for an acknowledgement, to its source if ``ack`` is None."""
    x, y = ack or (0, 0)
    n = len(words)
    route: dict[str, Any] = {"dst": dst, "src": src, "txn": txn}
    place: dict[str, Any] = {"buf_id": buf, "offset": offset, "len": n - 1, "flags": 1, "ack_x": x, "ack_y": y}
    head = message.encode("CU_DATA_DESC", **route, last=0, **place)
    data = [message.encode("CU_DATA_DATA", **route, last=int(i == n - 1)) | w for i, w in enumerate(words)]
    return [head, *data]


class Endpoint:
    """An external endpoint: takes everything, sorts it by type, checks read data on arrival."""

    def __init__(self, handle: Any, pos: Node) -> None:
        self.pos = pos
        self.port = Port(handle)
        self.acks: list[Seen] = []
        self.signals: list[Seen] = []
        self.replies: list[Seen] = []
        self.granules: dict[int, int] = {}
        self.expected: dict[int, deque[tuple[int, int, int]]] = {}
        self._left = self._next = 0
        self._lock = Lock()
        self._news = Event()
        cocotb.start_soon(self._receive())

    async def send(self, flits: Sequence[int]) -> None:
        """Transfer flits in order; two senders of one endpoint interleave flit by flit."""
        for flit in flits:
            async with self._lock:
                await self.port.send(flit)

    async def until(self, what: str, done: Callable[[], bool], limit: int = 100_000) -> None:
        """Wait for arrivals until ``done()``."""
        while not done():
            self._news.clear()
            try:
                await with_timeout(self._news.wait(), limit * clocks.PERIOD_NS, "ns")
            except TimeoutError as err:
                raise AssertionError(f"endpoint {self.pos}: {what} did not come within {limit} cycles") from err

    async def control_read(self, node: Node, index: int, txn: int) -> int:
        """A discovery register of a unit; this endpoint asks nothing else meanwhile."""
        seen = len(self.replies)
        await self.send([message.encode("CU_CTRL_REQ", dst=node, src=self.pos, txn=txn, index=index)])
        await self.until(f"reply of {node}", lambda: len(self.replies) > seen)
        return reply_value(self.replies[-1], node, index, txn)

    async def _receive(self) -> None:
        while True:
            seen = Seen.of(await self.port.receive(FOREVER))
            if seen.kind == RESPONSE:
                self._response(seen)
            elif seen.kind == BURST:
                self._data(seen)
            else:
                {ACK: self.acks, SIGNAL: self.signals, CONTROL: self.replies}[seen.kind].append(seen)
            self._news.set()

    def _response(self, seen: Seen) -> None:
        queue = self.expected[seen.txn >> 3]
        txn, word, payload = queue.popleft()
        checks.equal(
            f"response at {self.pos}",
            (seen.txn, seen.rsvd, seen.last, seen.payload),
            (txn, word, int(word == 3), payload),
        )

    def _data(self, seen: Seen) -> None:
        if not self._left:
            self._left = (seen.payload >> 224 & 255) + 1
            self._next = seen.payload >> 232 & 0xFFFF
            return
        self.granules[self._next] = seen.payload
        self._next += 1
        self._left -= 1

    async def tiles(self, n: int) -> Any:
        """The ``n`` sub-tiles a cluster sends here in accumulator form, as codes (n, 16)."""
        await self.until("accumulator image", lambda: len(self.granules) >= 2 * n)
        raw = b"".join(self.granules[g].to_bytes(WORD, "little") for g in range(2 * n))
        self.granules.clear()
        return receive_granules(np.frombuffer(raw, np.uint8).reshape(-1, WORD))


def reply_value(seen: Seen, node: Node, index: int, txn: int) -> int:
    """Register value of a control reply whose every other field is checked."""
    checks.equal(
        "control reply",
        (seen.kind, seen.src, seen.txn, seen.payload >> 248, seen.payload >> 240 & 255),
        (CONTROL, node, txn, 2, index),
    )
    return seen.payload >> 176 & (1 << 64) - 1


async def mailbox_read(box: Mailbox, node: Node, index: int, txn: int) -> int:
    """A discovery register of a unit, asked through the orchestrator's mailbox."""
    await box.send(message.encode("CU_CTRL_REQ", dst=node, src=CTRL, txn=txn, index=index))
    return reply_value(await box.reply(), node, index, txn)


async def signal_count(box: Mailbox, node: Node) -> int:
    """Signals the orchestrator has taken from ``node``."""
    (value,) = await box.host.read([address("NODE_STATUS", node[1] << 4 | node[0])])
    return fields("NODE_STATUS", value)["signal_count"]


async def await_signals(box: Mailbox, node: Node, count: int, tries: int = 2000) -> None:
    """Poll until exactly ``count`` signals of ``node`` are in."""
    got = 0
    for _ in range(tries):
        got = await signal_count(box, node)
        if got >= count:
            break
    checks.equal(f"signals of {node}", got, count)


class Twin:
    """The reference model of the machine, fed with the same flits in one legal order."""

    def __init__(self, description: dict[str, Any]) -> None:
        self.transport = ModelTransport(description)
        self.machine = self.transport.machine

    def deliver(self, flits: Sequence[int]) -> None:
        """Send flits into the model's mesh."""
        for flit in flits:
            self.machine.deliver(flit)

    def compare_signals(self, taken: Sequence[int]) -> None:
        """Completions and acknowledgements of each cluster, each as a sequence (docs/spec/README.md 8)."""
        for node in (A, B):
            for received in (False, True):
                want, have = (_sequence(s, node, received) for s in (self.machine.signals, taken))
                what = "DATA_RECEIVED" if received else "completions"
                checks.equal(f"{what} of {node} at the orchestrator", have, want, n=max(1, len(want)))


def _sequence(signals: Sequence[int], node: Node, received: bool) -> list[tuple[int, int, int]]:
    found = []
    for seen in map(Seen.of, signals):
        code, arg = seen.payload >> 248, seen.payload >> 216 & 0xFFFF_FFFF
        if seen.src == node and (code == RECEIVED) == received:
            found.append((code, arg, seen.txn))
    return found


async def compare_memory(sim: InSim, twin: Twin, base: int, n: int) -> None:
    """``n`` bytes of memory against the model."""
    got, want = await sim.dram.read(base, n), twin.machine.read_mem(base, n)
    arrays = (np.frombuffer(d, np.uint8).reshape(-1, WORD) for d in (got, want))
    checks.arrays(f"memory at {base:#x}", *arrays)


class Flood:
    """Writes and streaming reads of one endpoint, as fast as the mesh takes them."""

    ENTRIES = 8
    OUTSTANDING = 4

    def __init__(self, ep: Endpoint, base: int, source: int, data: bytes, rng: Random) -> None:
        self.ep = ep
        self.base = base
        self.image = bytearray()
        self.done = False
        self._source, self._data, self._rng = source, words_of(data), rng

    async def run(self, n: int) -> None:
        """``n`` writes and a quarter as many reads; returns when every one is answered."""

        async def reads() -> None:
            for i in range(n // 4):
                await self._read(i % self.OUTSTANDING)

        # writes do not wait for anything, so they are what fills the agent's intake
        reading = cocotb.start_soon(reads())
        for _ in range(n):
            await self._write()
        await reading
        await self.ep.until("last answers", lambda: len(self.ep.acks) >= n and not any(self.ep.expected.values()))
        checks.equal("writes acknowledged", [a.payload for a in self.ep.acks], [0] * n, n=n)
        self.done = True

    async def _read(self, slot: int) -> None:
        queue = self.ep.expected.setdefault(slot, deque())
        await self.ep.until("an earlier read", lambda: not queue)
        n, txn = self._rng.randint(1, self.ENTRIES), slot << 3
        first = self._rng.randrange(len(self._data) // 4 - n)
        queue.extend((txn + e, w, self._data[4 * (first + e) + w]) for e in range(n) for w in range(4))
        at = self._source + 4 * WORD * first
        await self.ep.send(
            [message.encode("MEM_RD_REQ", dst=MEM, src=self.ep.pos, txn=txn, addr=at, flags=0x40, count=n)]
        )

    async def _write(self) -> None:
        n = self._rng.choice([1, 3, 8, 8, 8, 8])
        at = self.base + len(self.image)
        words = [self._rng.getrandbits(256) for _ in range(n)]
        head: dict[str, Any] = {"dst": MEM, "src": self.ep.pos, "txn": 0x77}
        flits = [message.encode("MEM_WR_REQ", **head, last=0, addr=at, len=n - 1)]
        flits += [message.encode("MEM_WR_DATA", **head, last=int(i == n - 1)) | w for i, w in enumerate(words)]
        for w in words:
            self.image += w.to_bytes(WORD, "little")
        await self.ep.send(flits)

    async def check(self, sim: InSim) -> None:
        """Every written word stands in memory."""
        got = await sim.dram.read(self.base, len(self.image))
        checks.equal(f"words written by {self.ep.pos}", got, bytes(self.image), n=len(self.image) // WORD)


def drain_into(node: Node, n: int, dst: Node, granule: int = 0, *, ack: bool = True) -> int:
    """SEND of ``n`` sub-tiles from ``node`` into the accumulator buffer of ``dst``."""
    x, y = CTRL if ack else (0, 0)
    assert node != dst
    place: dict[str, Any] = {"dnode": 1, "dst_x": dst[0], "dst_y": dst[1], "dbuf": 2, "addr": WORD * granule}
    return cluster.encode("DRAIN", n=n, **place, dflags=int(ack), dack_x=x, dack_y=y)
