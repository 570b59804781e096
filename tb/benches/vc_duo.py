# SPDX-License-Identifier: Apache-2.0
"""Two vector cores behind one router that drain into each other at once (docs/spec/vector.md 9.4, 10)."""

from __future__ import annotations

import cocotb
import numpy as np

from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench.duo import burst
from kohakubench.machines import PORT_PUBLIC
from kohakubench.mesh_paths import BURST, SIGNAL, WORD, Seen
from kohakubench.ports import Port
from kohakutpu.isa import message
from kohakutpu.isa import vector as isa
from kohakutpu.program.vector_words import Halt, Imm, Loop, Seti, Word, encode_word

BENCH = Bench(
    name="vc_duo",
    top="tb_vc_duo",
    sources=[
        "rtl/common/*.v",
        "rtl/noc/*.v",
        "rtl/noc/link_checker_sva.sv",
        "rtl/control/cu_*.v",
        "rtl/control/cud_rx.v",
        "rtl/vector/*.v",
        "tb/hdl/flit_port.v",
        "tb/hdl/tb_vc_duo.v",
    ],
    public=[*PORT_PUBLIC, "tb_vc_duo.lost"],
    mutations={
        "lower_half": ("rtl/vector/vc_mem_recv.v", "wr_word = wr_granule[8:0];", "wr_word = {1'b0, wr_granule[7:0]};"),
        "no_ahead_room": ("rtl/vector/vc_mem_drain.v", "(held_q != 3'd4)", "1'b1"),
        "receive_waits": (
            "rtl/vector/vc_core.v",
            ".recv_ready    (recv_ready)",
            ".recv_ready    (recv_ready && !send_valid)",
        ),
    },
)
A, B, HOST = (1, 0), (2, 1), (1, 1)
HALF = 256


class Pair:
    """Both cores and the bench's port; what arrives is sorted by sender."""

    def __init__(self, port: Port) -> None:
        self.port = port
        self.acks: dict[tuple[int, int], list[int]] = {A: [], B: []}
        self.done: dict[tuple[int, int], list[int]] = {A: [], B: []}
        self.words: dict[tuple[int, int], list[int]] = {A: [], B: []}
        self.sent: dict[tuple[int, int], int] = {A: 0, B: 0}

    async def fill(self, node: tuple[int, int], words: list[int]) -> None:
        """L1 words 0 and up of a core."""
        for f in burst(node, HOST, 3, 0, 0, words, HOST):
            await self.port.send(f)
        await self.until(lambda: self.acks[node])
        checks.equal("acknowledged", self.acks[node].pop(), 0)

    async def start(self, node: tuple[int, int], words: list[Word | int], base: int, n: int) -> None:
        """Load and start a kernel whose descriptor 0 is a peer record."""
        bits = [w if isinstance(w, int) else encode_word(w) for w in words]
        payloads = [isa.load_word(i, b) for i, b in enumerate(bits)]
        payloads += [isa.set_base(0, base), isa.set_dimension(0, 0, 1, n), isa.run(0)]
        for p in payloads:
            await self.port.send(message.encode("CU_INST", dst=node, src=HOST, txn=1, last=0) | p)
        self.sent[node] += len(payloads)

    async def take(self) -> None:
        seen = Seen.of(await self.port.receive(500_000))
        if seen.kind == BURST:
            self.words[seen.src].append(seen.payload)
        else:
            checks.equal("type", seen.kind, SIGNAL)
            code, arg = seen.payload >> 248, seen.payload >> 216 & 0xFFFF_FFFF
            (self.acks if code == 3 else self.done)[seen.src].append(arg if code == 3 else code)

    async def until(self, ready) -> None:
        while not ready():
            await self.take()

    async def finished(self) -> None:
        """Every instruction sent so far has completed without a fault."""
        await self.until(lambda: all(len(self.done[n]) >= self.sent[n] for n in (A, B)))
        for node in (A, B):
            checks.equal(f"completions of {node}", self.done[node], [0] * self.sent[node])

    async def read(self, node: tuple[int, int], l1: int, n: int) -> list[int]:
        """L1 words of a core, drained to the bench."""
        self.words[node].clear()
        await self.start(node, [drain(HOST, l1, 0), Halt()], isa.peer_base(off=0), n)
        await self.until(lambda: len(self.words[node]) >= n + 1)
        await self.finished()
        return self.words[node][1:]


def drain(dst: tuple[int, int], l1: int, signal: int) -> int:
    """VDRAIN of descriptor 0 to a peer."""
    return isa.encode("VDRAIN", node=1, signal=signal, ad=0, dst_x=dst[0], dst_y=dst[1], buf=0, l1=l1)


async def opened(dut, busy: int) -> Pair:
    clocks.start(dut.clk)
    await clocks.reset(dut)
    port = Port(dut.u_host)
    port.pressure(busy)
    return Pair(port)


@cocotb.test()
@cocotb.parametrize(n=[1, 37, 256], busy=[0, 60])
async def crossed_drains(dut, n: int, busy: int):
    """Both cores drain n words into each other 100 times at once, every burst acknowledged to the bench."""
    pair = await opened(dut, busy)
    rng = np.random.default_rng([seed(), n])
    data = {node: [int.from_bytes(rng.bytes(WORD), "little") for _ in range(HALF)] for node in (A, B)}
    times = scale(100, 1000) if n < HALF else 100
    for node in (A, B):
        await pair.fill(node, data[node])
    kernels = {
        node: [Seti("S0"), Imm(times), Loop(0, 1), drain(peer, HALF - n, 1), Halt()] for node, peer in ((A, B), (B, A))
    }
    base = isa.peer_base(off=HALF, ack_x=HOST[0], ack_y=HOST[1])
    for node in (A, B):
        await pair.start(node, kernels[node], base, n)
    await pair.finished()
    await pair.until(lambda: all(len(pair.acks[node]) >= times for node in (A, B)))
    for node, peer in ((A, B), (B, A)):
        checks.equal(f"acknowledgements of {node}", pair.acks[node], [0] * times, n=times)
        checks.equal(f"L1 of {node}", await pair.read(node, HALF, n), data[peer][HALF - n :], n=n)
        checks.equal(f"own half of {node}", await pair.read(node, 0, HALF), data[node], n=HALF)
    checks.equal("flits lost", int(dut.lost.value), 0)


@cocotb.test()
async def to_itself(dut):
    """A burst to the own coordinate, 100 times: it comes back through the router."""
    pair = await opened(dut, 30)
    rng = np.random.default_rng(seed())
    data = [int.from_bytes(rng.bytes(WORD), "little") for _ in range(HALF)]
    await pair.fill(A, data)
    words = [Seti("S0"), Imm(100), Loop(0, 1), drain(A, 0, 1), Halt()]
    await pair.start(A, words, isa.peer_base(off=HALF, ack_x=HOST[0], ack_y=HOST[1]), HALF)
    await pair.finished()
    await pair.until(lambda: len(pair.acks[A]) >= 100)
    checks.equal("L1", await pair.read(A, HALF, HALF), data, n=HALF)
