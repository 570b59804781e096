# SPDX-License-Identifier: Apache-2.0
"""Scenarios on the two product machines: every path of docs/spec/fabric.md 4.3, by both controllers.

In ``mm_mesh`` the controller is the orchestrator, reached through its mailbox; in
``mm_mesh_ext`` the bench itself sits at (1,1). A scenario only sees a :class:`Controller`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kohakubench import checks
from kohakubench.insim import InSim
from kohakubench.ports import Port
from kohakudriver.registers import address, fields
from kohakutpu.isa import cluster, message
from kohakutpu.model.numerics import Layout, fp16_codes, product, quantise_entries
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


async def discovery(ctl: Controller, vc: Port) -> None:
    """Controller to cluster and back; controller to the vector core's place."""
    await ctl.send(message.encode("CU_CTRL_REQ", dst=MG, src=CTRL, txn=0x31, index=0))
    seen = await ctl.reply()
    checks.equal("source of the reply", seen.src, MG)
    checks.equal("type and tag", (seen.kind, seen.txn), (CONTROL, 0x31))
    checks.equal("CU_CAPS.cu_type", seen.payload >> 176 + 48 & 0xFFFF, 0x4D47)
    request = message.encode("CU_CTRL_REQ", dst=VC, src=CTRL, txn=0x32, index=0)
    await ctl.send(request)
    checks.equal("request at the vector core's place", await vc.receive(), request)


async def memory_round_trip(ctl: Controller, vc: Port, sim: InSim, from_controller: bool) -> None:
    """A write burst and a read from an endpoint to memory and back."""
    base = 0x8000 if from_controller else 0x9000
    src = CTRL if from_controller else VC
    words = [int.from_bytes(np.random.default_rng([base, i]).bytes(WORD), "little") for i in range(8)]

    async def send(flit: int) -> None:
        await (ctl.send(flit) if from_controller else vc.send(flit))

    async def take() -> Seen:
        return await ctl.reply() if from_controller else Seen.of(await vc.receive())

    await send(message.encode("MEM_WR_REQ", dst=MEM, src=src, txn=0x11, last=0, addr=base, len=7))
    for i, w in enumerate(words):
        await send(message.encode("MEM_WR_DATA", dst=MEM, src=src, txn=0x11, last=int(i == 7)) | w)
    ack = await take()
    checks.equal("write acknowledged", (ack.kind, ack.src, ack.txn, ack.payload), (ACK, MEM, 0x11, 0))
    stored = await sim.dram.read(base, 8 * WORD)
    checks.equal("stored bytes", stored, b"".join(w.to_bytes(WORD, "little") for w in words), n=8)
    await send(message.encode("MEM_RD_REQ", dst=MEM, src=src, txn=0x21, addr=base, flags=0x40, count=2))
    for i in range(8):
        got = await take()
        checks.equal(
            f"response word {i}",
            (got.kind, got.src, got.txn, got.last, got.rsvd, got.payload),
            (RESPONSE, MEM, 0x21 + i // 4, int(i % 4 == 3), i % 4, words[i]),
        )


async def full_mailbox(vc: Port, sim: InSim) -> None:
    """Control flits to the shared memory port beyond what the mailbox holds, reads and signals between them."""
    base, flits, room = 0xA000, 24, 16
    words = [int.from_bytes(np.random.default_rng([base, i]).bytes(WORD), "little") for i in range(flits)]
    await sim.dram.load(base, b"".join(w.to_bytes(WORD, "little") for w in words))
    for n in range(flits):
        await vc.send(message.encode("CU_CTRL_REQ", dst=MEM, src=VC, txn=n, index=n))
        await vc.send(message.encode("MEM_RD_REQ", dst=MEM, src=VC, txn=n, addr=base + WORD * n, len=0))
        await vc.send(message.encode("CU_SIGNAL", dst=MEM, src=VC, txn=n, code=0x40, arg=n))
    for n, word in enumerate(words):
        got = Seen.of(await vc.receive())
        checks.equal(f"read {n}", (got.kind, got.src, got.txn, got.payload), (RESPONSE, MEM, n, word))
    mailbox, drops, status = await sim.host.read(
        [address("RX_STATUS"), address("MEM_DROP"), address("NODE_STATUS", VC[1] << 4 | VC[0])]
    )
    checks.equal("mailbox overflow", fields("RX_STATUS", mailbox)["overflow"], 1)
    checks.equal("control flits counted as dropped", drops >> 32 & 0xFFFF, flits - room)
    seen = fields("NODE_STATUS", status)
    checks.equal("signals", (seen["signal_count"], seen["arg"]), (flits, flits - 1))
    for n in range(room):
        flit = await Mailbox(sim).reply()
        checks.equal(f"mailbox flit {n}", (flit.kind, flit.src, flit.txn), (CONTROL, VC, n))


async def signals_to_controller(ctl: Controller, vc: Port) -> None:
    """Vector core's place to controller: a signal of its own code."""
    await vc.send(message.encode("CU_SIGNAL", dst=CTRL, src=VC, code=0x40, arg=0x1234))
    checks.equal("signal of the vector core's place", await ctl.signals(VC, 1), (0x40, 0x1234))


async def burst_into_cluster(ctl: Controller, vc: Port, operands: tuple[Any, Any], sim: InSim) -> None:
    """Vector core's place to cluster: an operand delivered as a burst computes like a filled one."""
    a, b = operands
    await _load(sim, a, b)
    entries = quantise_entries(Entry(1, 1).entries(a), Layout.A).tobytes()
    await vc.send(message.encode("CU_DATA_DESC", dst=MG, src=VC, txn=0x55, last=0, buf_id=0, offset=0, len=3, flags=1))
    for i in range(4):
        word = int.from_bytes(entries[WORD * i : WORD * (i + 1)], "little")
        await vc.send(message.encode("CU_DATA_DATA", dst=MG, src=VC, txn=0x55, last=int(i == 3)) | word)
    ack = Seen.of(await vc.receive())
    checks.equal("burst acknowledged to its source", (ack.kind, ack.src, ack.payload >> 248), (SIGNAL, MG, 3))
    checks.equal("argument", ack.payload >> 216 & 0xFFFF_FFFF, 0)
    program = [
        cluster.encode("FILL", sel=1, n=1, addr=B_ADDR),
        cluster.encode("GEMM", gm=1, gn=1, nk=1),
        cluster.encode("DRAIN", n=1, addr=0x7000),
    ]
    await run(ctl, program)
    code, _ = await ctl.signals(MG, len(program))
    checks.equal("program completed", code, 1)
    _, expected = product(fp16_codes(a.astype(np.float64)), fp16_codes(b.astype(np.float64)))
    got = np.frombuffer(await sim.dram.read(0x7000, WORD), "<u2").reshape(4, 4)
    checks.arrays("sub-tile", got, expected)


A_ADDR, B_ADDR, C_ADDR = 0x1000, 0x4000, 0x10000


async def _load(sim: InSim, a: Any, b: Any) -> None:
    for at, values, groups, side in ((A_ADDR, a, a.shape[0] // 4, Layout.A), (B_ADDR, b, b.shape[0] // 4, Layout.B)):
        await sim.dram.load(at, quantise_entries(Entry(groups, 1).entries(values), side).tobytes())


async def run(ctl: Controller, program: list[int]) -> None:
    """Send a program instruction by instruction; the last one ends it."""
    for i, payload in enumerate(program):
        last = int(i == len(program) - 1)
        await ctl.send(message.encode("CU_INST", dst=MG, src=CTRL, txn=9, last=last) | payload)


async def peer_transfer(ctl: Controller, vc: Port, sim: InSim, n: int, signals: int) -> None:
    """The same ``n`` resident sub-tiles drained to memory and into the vector core's place.

    Args:
        signals: signals the cluster has sent before.
    """
    rng = np.random.default_rng(n)
    gm = gn = 8
    a = rng.standard_normal((4 * gm, 32)).astype(np.float16)
    b = rng.standard_normal((4 * gn, 32)).astype(np.float16)
    await _load(sim, a, b)
    bursts = -(-n // 8)
    program = [
        cluster.encode("FILL", sel=0, n=gm, addr=A_ADDR),
        cluster.encode("FILL", sel=1, n=gn, addr=B_ADDR),
        cluster.encode("GEMM", gm=gm, gn=gn, nk=1),
        cluster.encode("DRAIN", n=n, addr=C_ADDR),
        cluster.encode(
            "DRAIN", n=n, addr=0, dnode=1, dst_x=VC[0], dst_y=VC[1], dbuf=0, dflags=1, dack_x=CTRL[0], dack_y=CTRL[1]
        ),
    ]
    await run(ctl, program)
    image: dict[int, int] = {}
    for burst in range(bursts):
        head = Seen.of(await vc.receive())
        length = (head.payload >> 224 & 255) + 1
        offset = head.payload >> 232 & 0xFFFF
        checks.equal(
            f"descriptor {burst}",
            (head.kind, head.src, head.payload >> 248, offset, length, head.payload >> 208 & 255, head.last),
            (BURST, MG, 0, 8 * burst, min(8, n - 8 * burst), CTRL[1] << 4 | CTRL[0], 0),
        )
        for i in range(length):
            data = Seen.of(await vc.receive())
            checks.equal("last of the burst", data.last, int(i == length - 1))
            image[offset + i] = data.payload
        await vc.send(message.encode("CU_SIGNAL", dst=CTRL, src=VC, txn=head.txn, code=3, arg=0))
    code, _ = await ctl.signals(MG, signals + len(program))
    checks.equal("cluster program completed", code, 1)
    got = b"".join(image[i].to_bytes(WORD, "little") for i in range(n))
    stored = await sim.dram.read(C_ADDR, n * WORD)
    checks.equal("node image equals the memory image", got, stored, n=n)
    _, expected = product(fp16_codes(a.astype(np.float64)), fp16_codes(b.astype(np.float64)))
    whole = Tile(1, 1, gm, gn).pack(expected.view(np.float16))
    checks.equal("memory image equals the reference", stored, whole[: n * WORD], n=n)


def operands(seed: int) -> tuple[Any, Any]:
    """A 4x32 and a 4x32 operand."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((4, 32)).astype(np.float16), rng.standard_normal((4, 32)).astype(np.float16)
