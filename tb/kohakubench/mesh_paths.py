# SPDX-License-Identifier: Apache-2.0
"""Scenarios on the two product machines: every path of docs/spec/fabric.md 4.3, by both controllers.

In ``mm_mesh`` the controller is the orchestrator, reached through its mailbox; in
``mm_mesh_ext`` the bench itself sits at (1,1). A scenario only sees a :class:`Controller`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kohakubench import checks
from kohakubench.insim import InSim
from kohakubench.ports import Port
from kohakudriver.registers import address, fields
from kohakutpu.isa import cluster, message
from kohakutpu.isa import vector as isa
from kohakutpu.model.numerics import Layout, fp16_codes, product, quantise_entries
from kohakutpu.program.vector_words import Halt, Vdrain, Vfill, Word, encode_word
from kohakutpu.schedule.layout import Entry, Tile

VC, MG, MEM, CTRL = (1, 0), (2, 1), (0, 1), (1, 1)
WORD = 32
FLIT_WORDS = 5
MASK64 = (1 << 64) - 1
SIGNAL, ACK, RESPONSE, DATA, CONTROL, BURST = 6, 3, 2, 4, 7, 8


@dataclass(frozen=True)
class Seen:
    """Header fields the scenarios look at, and the payload."""

    kind: int
    src: tuple[int, int]
    txn: int
    last: int
    rsvd: int
    payload: int

    @classmethod
    def of(cls, flit: int) -> Seen:
        return cls(
            flit >> 268 & 15,
            (flit >> 276 & 15, flit >> 272 & 15),
            flit >> 260 & 255,
            flit >> 259 & 1,
            flit >> 256 & 7,
            flit & (1 << 256) - 1,
        )


class Controller(Protocol):
    """Sends instructions and control requests, and sees what comes back to it."""

    async def send(self, flit: int) -> None: ...

    async def reply(self) -> Seen:
        """The next flit for the controller that is no signal."""

    async def signals(self, node: tuple[int, int], count: int) -> tuple[int, int]:
        """(code, argument) of the latest signal once ``count`` signals of ``node`` are in."""


class Mailbox:
    """The orchestrator as controller, through its registers."""

    def __init__(self, sim: InSim) -> None:
        self.host = sim.host

    async def send(self, flit: int) -> None:
        words = [flit >> 64 * w & MASK64 for w in range(FLIT_WORDS)]
        await self.host.write([(address("TX_FLIT", w), v) for w, v in enumerate(words)] + [(address("TX_KICK"), 1)])

    async def reply(self) -> Seen:
        for _ in range(400):
            (status,) = await self.host.read([address("RX_STATUS")])
            if not fields("RX_STATUS", status)["empty"]:
                words = await self.host.read([address("RX_FLIT", w) for w in range(FLIT_WORDS)])
                await self.host.write([(address("RX_POP"), 1)])
                return Seen.of(sum(v << 64 * w for w, v in enumerate(words)))
        raise AssertionError("the mailbox stayed empty")

    async def signals(self, node: tuple[int, int], count: int) -> tuple[int, int]:
        for _ in range(2000):
            (value,) = await self.host.read([address("NODE_STATUS", node[1] << 4 | node[0])])
            status = fields("NODE_STATUS", value)
            if status["signal_count"] == count & 0xFFFF and status["valid"]:
                return status["code"], status["arg"]
        raise AssertionError(f"node {node}: {status['signal_count']} signals, {count} expected")


class Bench:
    """An external endpoint as controller."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self._signals: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self._others: list[Seen] = []

    async def send(self, flit: int) -> None:
        await self.port.send(flit)

    async def _take(self) -> None:
        seen = Seen.of(await self.port.receive())
        if seen.kind == SIGNAL:
            self._signals.setdefault(seen.src, []).append((seen.payload >> 248, seen.payload >> 216 & 0xFFFF_FFFF))
        else:
            self._others.append(seen)

    async def reply(self) -> Seen:
        while not self._others:
            await self._take()
        return self._others.pop(0)

    async def signals(self, node: tuple[int, int], count: int) -> tuple[int, int]:
        while len(self._signals.get(node, [])) < count:
            await self._take()
        checks.equal(f"signals of {node}", len(self._signals[node]), count)
        return self._signals[node][-1]


async def discovery(ctl: Controller) -> None:
    """Controller to each unit and back: both answer at their places with their types."""
    for txn, node, cu_type in ((0x31, MG, 0x4D47), (0x32, VC, 0x5643)):
        await ctl.send(message.encode("CU_CTRL_REQ", dst=node, src=CTRL, txn=txn, index=0))
        seen = await ctl.reply()
        checks.equal("source of the reply", seen.src, node)
        checks.equal("type and tag", (seen.kind, seen.txn), (CONTROL, txn))
        checks.equal("CU_CAPS.cu_type", seen.payload >> 176 + 48 & 0xFFFF, cu_type)


async def memory_round_trip(ctl: Controller, sim: InSim) -> None:
    """A write burst and a read from the controller to memory and back."""
    base = 0x8000
    words = [int.from_bytes(np.random.default_rng([base, i]).bytes(WORD), "little") for i in range(8)]
    await ctl.send(message.encode("MEM_WR_REQ", dst=MEM, src=CTRL, txn=0x11, last=0, addr=base, len=7))
    for i, w in enumerate(words):
        await ctl.send(message.encode("MEM_WR_DATA", dst=MEM, src=CTRL, txn=0x11, last=int(i == 7)) | w)
    ack = await ctl.reply()
    checks.equal("write acknowledged", (ack.kind, ack.src, ack.txn, ack.payload), (ACK, MEM, 0x11, 0))
    stored = await sim.dram.read(base, 8 * WORD)
    checks.equal("stored bytes", stored, b"".join(w.to_bytes(WORD, "little") for w in words), n=8)
    await ctl.send(message.encode("MEM_RD_REQ", dst=MEM, src=CTRL, txn=0x21, addr=base, flags=0x40, count=2))
    for i in range(8):
        got = await ctl.reply()
        checks.equal(
            f"response word {i}",
            (got.kind, got.src, got.txn, got.last, got.rsvd, got.payload),
            (RESPONSE, MEM, 0x21 + i // 4, int(i % 4 == 3), i % 4, words[i]),
        )


async def memory_through_the_core(ctl: Controller, sim: InSim) -> None:
    """Vector core to memory and back: a kernel copies 40 words and completes at the controller."""
    data = np.random.default_rng(40).bytes(40 * WORD)
    await sim.dram.load(0x9000, data)
    program = kernel([Vfill(0, 100), Vdrain(1, 100), Halt()], {0: (0x9000, 32, 40), 1: (0xC000, 32, 40)})
    await run(ctl, program, VC)
    code, _ = await ctl.signals(VC, len(program))
    checks.equal("program completed", code, 1)
    checks.equal("copied bytes", await sim.dram.read(0xC000, 40 * WORD), data, n=40)


async def full_mailbox(port: Port, sim: InSim) -> None:
    """Control flits to the shared memory port beyond what the mailbox holds, reads and signals between them."""
    base, flits, room = 0xA000, 24, 16
    words = [int.from_bytes(np.random.default_rng([base, i]).bytes(WORD), "little") for i in range(flits)]
    await sim.dram.load(base, b"".join(w.to_bytes(WORD, "little") for w in words))
    for n in range(flits):
        await port.send(message.encode("CU_CTRL_REQ", dst=MEM, src=CTRL, txn=n, index=n))
        await port.send(message.encode("MEM_RD_REQ", dst=MEM, src=CTRL, txn=n, addr=base + WORD * n, len=0))
        await port.send(message.encode("CU_SIGNAL", dst=MEM, src=CTRL, txn=n, code=0x40, arg=n))
    for n, word in enumerate(words):
        got = Seen.of(await port.receive())
        checks.equal(f"read {n}", (got.kind, got.src, got.txn, got.payload), (RESPONSE, MEM, n, word))
    mailbox, drops, status = await sim.host.read(
        [address("RX_STATUS"), address("MEM_DROP"), address("NODE_STATUS", CTRL[1] << 4 | CTRL[0])]
    )
    checks.equal("mailbox overflow", fields("RX_STATUS", mailbox)["overflow"], 1)
    checks.equal("control flits counted as dropped", drops >> 32 & 0xFFFF, flits - room)
    seen = fields("NODE_STATUS", status)
    checks.equal("signals", (seen["signal_count"], seen["arg"]), (flits, flits - 1))
    for n in range(room):
        flit = await Mailbox(sim).reply()
        checks.equal(f"mailbox flit {n}", (flit.kind, flit.src, flit.txn), (CONTROL, CTRL, n))


async def burst_into_core(ctl: Controller) -> None:
    """Controller to vector core and back: a burst, acknowledged where it says."""
    route: dict[str, Any] = {"dst": VC, "src": CTRL, "txn": 0x44}
    place: dict[str, Any] = {"buf_id": 0, "offset": 510, "len": 1, "flags": 1, "ack_x": CTRL[0], "ack_y": CTRL[1]}
    await ctl.send(message.encode("CU_DATA_DESC", **route, last=0, **place))
    for i in range(2):
        await ctl.send(message.encode("CU_DATA_DATA", **route, last=i) | i)
    checks.equal("acknowledgement of the core", await ctl.signals(VC, 1), (3, 0))


async def burst_into_cluster(ctl: Controller, operands: tuple[Any, Any], sim: InSim) -> None:
    """Vector core to cluster: an operand delivered as a burst computes like a filled one."""
    a, b = operands
    await _load(sim, a, b)
    words: list[Word | int] = [
        Vfill(0, 9),
        isa.encode("VDRAIN", node=1, signal=1, ad=1, dst_x=MG[0], dst_y=MG[1], buf=0, l1=9),
        Halt(),
    ]
    ack = isa.peer_base(off=0, ack_x=CTRL[0], ack_y=CTRL[1])
    await run(ctl, kernel(words, {0: (A_ADDR, 32, 4), 1: (ack, 1, 4)}), VC)
    checks.equal("burst acknowledged by the cluster", await ctl.signals(MG, 1), (3, 0))
    program = [
        cluster.encode("FILL", sel=1, n=1, addr=B_ADDR),
        cluster.encode("GEMM", gm=1, gn=1, nk=1),
        cluster.encode("DRAIN", n=1, addr=0x7000),
    ]
    await run(ctl, program)
    code, _ = await ctl.signals(MG, 1 + len(program))
    checks.equal("program completed", code, 1)
    _, expected = product(fp16_codes(a.astype(np.float64)), fp16_codes(b.astype(np.float64)))
    got = np.frombuffer(await sim.dram.read(0x7000, WORD), "<u2").reshape(4, 4)
    checks.arrays("sub-tile", got, expected)


A_ADDR, B_ADDR, C_ADDR, D_ADDR = 0x1000, 0x4000, 0x10000, 0x20000


async def _load(sim: InSim, a: Any, b: Any) -> None:
    for at, values, groups, side in ((A_ADDR, a, a.shape[0] // 4, Layout.A), (B_ADDR, b, b.shape[0] // 4, Layout.B)):
        await sim.dram.load(at, quantise_entries(Entry(groups, 1).entries(values), side).tobytes())


def kernel(words: Sequence[Word | int], walks: dict[int, tuple[int, int, int]]) -> list[int]:
    """Payloads that load a kernel, write (base, stride, bound) of one-dimensional walks and run it."""
    bits = [w if isinstance(w, int) else encode_word(w) for w in words]
    payloads = [isa.load_word(i, b) for i, b in enumerate(bits)]
    for ad, (base, stride, bound) in walks.items():
        payloads += [isa.set_base(ad, base), isa.set_dimension(ad, 0, stride, bound)]
    return [*payloads, isa.run(0)]


async def run(ctl: Controller, program: list[int], node: tuple[int, int] = MG) -> None:
    """Send a program instruction by instruction; the last one ends it."""
    for i, payload in enumerate(program):
        last = int(i == len(program) - 1)
        await ctl.send(message.encode("CU_INST", dst=node, src=CTRL, txn=9, last=last) | payload)


async def peer_transfer(ctl: Controller, sim: InSim, n: int) -> None:
    """The same ``n`` resident sub-tiles drained to memory, into the core, and to a controller that is an endpoint.

    The core acknowledges each burst to the controller, then a kernel writes its L1 back.
    """
    rng = np.random.default_rng(n)
    gm, gn = (8, 8) if n <= 64 else (16, 10)
    a = rng.standard_normal((4 * gm, 32)).astype(np.float16)
    b = rng.standard_normal((4 * gn, 32)).astype(np.float16)
    await _load(sim, a, b)
    bursts = -(-n // 8)
    node: dict[str, Any] = {"n": n, "addr": 0, "dnode": 1, "dbuf": 0}
    ack: dict[str, Any] = {"dflags": 1, "dack_x": CTRL[0], "dack_y": CTRL[1]}
    program = [
        cluster.encode("FILL", sel=0, n=gm, addr=A_ADDR),
        cluster.encode("FILL", sel=1, n=gn, addr=B_ADDR),
        cluster.encode("GEMM", gm=gm, gn=gn, nk=1),
        cluster.encode("DRAIN", n=n, addr=C_ADDR),
        cluster.encode("DRAIN", **node, dst_x=VC[0], dst_y=VC[1], **ack),
    ]
    if isinstance(ctl, Bench):
        program.append(cluster.encode("DRAIN", **node, dst_x=CTRL[0], dst_y=CTRL[1]))
    await run(ctl, program)
    code, _ = await ctl.signals(MG, len(program))
    checks.equal("cluster program completed", code, 1)
    checks.equal("acknowledgements", await ctl.signals(VC, bursts), (3, 0))
    back = kernel([Vdrain(0, 0), Halt()], {0: (D_ADDR, 32, n)})
    await run(ctl, back, VC)
    code, _ = await ctl.signals(VC, bursts + len(back))
    checks.equal("core program completed", code, 1)
    stored = await sim.dram.read(C_ADDR, n * WORD)
    checks.equal("image through the core", await sim.dram.read(D_ADDR, n * WORD), stored, n=n)
    if isinstance(ctl, Bench):
        checks.equal("image at the endpoint", await _node_image(ctl, n), stored, n=n)
    _, expected = product(fp16_codes(a.astype(np.float64)), fp16_codes(b.astype(np.float64)))
    whole = Tile(1, 1, gm, gn).pack(expected.view(np.float16))
    checks.equal("memory image equals the reference", stored, whole[: n * WORD], n=n)


async def _node_image(ctl: Bench, n: int) -> bytes:
    """What the cluster sent to the controller, framed as bursts of 8."""
    image: dict[int, int] = {}
    for burst in range(-(-n // 8)):
        head = await ctl.reply()
        length = (head.payload >> 224 & 255) + 1
        offset = head.payload >> 232 & 0xFFFF
        checks.equal(
            f"descriptor {burst}",
            (head.kind, head.src, head.payload >> 248, offset, length, head.payload >> 208 & 0xFFFF, head.last),
            (BURST, MG, 0, 8 * burst, min(8, n - 8 * burst), 0, 0),
        )
        for i in range(length):
            data = await ctl.reply()
            checks.equal("last of the burst", data.last, int(i == length - 1))
            image[offset + i] = data.payload
    return b"".join(image[i].to_bytes(WORD, "little") for i in range(n))


def operands(seed: int) -> tuple[Any, Any]:
    """A 4x32 and a 4x32 operand."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((4, 32)).astype(np.float16), rng.standard_normal((4, 32)).astype(np.float16)
