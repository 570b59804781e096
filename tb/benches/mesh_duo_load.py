# SPDX-License-Identifier: Apache-2.0
"""A memory agent with a full intake: floods of both endpoints, both clusters filling and emitting.

Everything completes (docs/spec/README.md 7), and all data, completions and acknowledgements
are those of the reference model, which takes the same flits in one legal order.
"""

from __future__ import annotations

from random import Random

import cocotb
import numpy as np

from kohakubench import checks, clocks, scale, seed
from kohakubench.duo import (
    CTRL,
    EP0,
    EP1,
    MACHINE,
    WORD,
    A,
    B,
    Endpoint,
    Flood,
    Node,
    Twin,
    await_signals,
    burst,
    compare_memory,
    mailbox_read,
    operand,
    program,
    signal_count,
    words_of,
)
from kohakubench.insim import start
from kohakubench.mesh_paths import Mailbox
from kohakutpu.isa import cluster
from kohakutpu.isa.generated import ControlIndex
from kohakutpu.model.numerics import Layout

SLOW_MEMORY = {"lat_min": 150, "lat_max": 400, "ar_pct": 30, "aw_pct": 20, "w_pct": 15, "r_pct": 40, "b_pct": 30}
SOURCE, A_AT, B_AT = 0x10000, 0x20000, 0x30000
OUT = {A: 0x100000, B: 0x140000}
FLOOD = {EP0: 0x200000, EP1: 0x280000}
TILE = 64 * WORD
REGION = 32
"""Entries of one operand region; region r starts at entry 32 r of bank 0 or 1."""


def sweeps(node: Node) -> list[int]:
    """Fill both sides, sweep, emit and drain; every entry is only ever filled with one content."""
    out = OUT[node]
    gemm = {"gm": 8, "gn": 8, "nk": 4}
    return [
        cluster.encode("FILL", n=REGION, addr=A_AT),
        cluster.encode("FILL", sel=1, n=REGION, addr=B_AT),
        cluster.encode("GEMM", **gemm, emit=1, addr=out),
        cluster.encode("FILL", n=REGION, eoff=REGION, addr=A_AT + 0x1000),
        cluster.encode("DRAIN", fuse=1, n=64),
        cluster.encode("GEMM", **gemm, aoff=REGION, emit=1, acc=1, addr=out + TILE),
        cluster.encode("FILL", sel=1, n=REGION, eoff=REGION, addr=B_AT + 0x1000),
        cluster.encode("DRAIN", n=64, addr=out + 2 * TILE),
        cluster.encode("GEMM", **gemm, boff=REGION),
        cluster.encode("FILL", n=REGION, addr=A_AT),
        cluster.encode("GEMM", **gemm, aoff=REGION, boff=REGION, acc=1, emit=1, addr=out + 3 * TILE),
        cluster.encode("DRAIN", fuse=1, n=64),
    ]


class Load:
    """The machine under load and the model beside it."""

    def __init__(self, dut, sim) -> None:
        self.dut, self.sim = dut, sim
        self.twin = Twin(sim.description)
        self.box = Mailbox(sim)
        self.eps = {EP0: Endpoint(dut.u_ep0, EP0), EP1: Endpoint(dut.u_ep1, EP1)}
        self.floods: dict[Node, Flood] = {}
        self.expected = {A: 0, B: 0}
        self.full = self.samples = 0
        self.images: dict[str, bytes] = {}
        self._txn = 0
        self._reads = 0
        self._before = len(sim._signals)  # of earlier tests of this simulation

    async def prepare(self) -> None:
        """Operands in memory, floods ready, endpoints that refuse some flits."""
        rng = np.random.default_rng([seed(), 77])
        self.images = {
            "source": operand(rng, 64, 1, Layout.A),
            "a": operand(rng, 16, 4, Layout.A),
            "b": operand(rng, 16, 4, Layout.B),
        }
        for at, name in ((SOURCE, "source"), (A_AT, "a"), (B_AT, "b")):
            await self.sim.dram.load(at, self.images[name])
            self.twin.machine.write_mem(at, self.images[name])
        for pos, ep in self.eps.items():
            ep.port.pressure(20)
            random = Random(seed() * 16 + pos[0])
            self.floods[pos] = Flood(ep, FLOOD[pos], SOURCE, self.images["source"], random)
        cocotb.start_soon(self._watch_intake())

    async def _watch_intake(self) -> None:
        """How often the memory agent refuses, looked at every 25 cycles."""
        while True:
            await clocks.cycles(25)
            self.samples += 1
            self.full += int(self.dut.t_mem_0_1_in.busy.value)

    async def kick(self, node: Node, payloads: list[int]) -> None:
        """Send a program through the mailbox; the model runs it at once."""
        self._txn += 1
        flits = program(node, CTRL, self._txn, payloads)
        for flit in flits:
            await self.box.send(flit)
        self.twin.deliver(flits)
        self.expected[node] += len(flits)

    async def settle(self) -> None:
        """Everything expected has arrived, and nothing else."""
        for node, count in self.expected.items():
            await await_signals(self.box, node, count)

    async def done(self) -> bool:
        """All signals of both clusters are in."""
        return all([await signal_count(self.box, n) == c for n, c in self.expected.items()])

    async def compare(self) -> None:
        """Memory, signals and error bits against the model."""
        self.twin.compare_signals((await self.sim._signals_async())[self._before :])
        for node in (A, B):
            await compare_memory(self.sim, self.twin, OUT[node], 8 * TILE)
            got = await mailbox_read(self.box, node, ControlIndex.CU_ERR, 0xEE)
            checks.equal(f"CU_ERR of {node}", got, self.twin.machine.shells[node].register(ControlIndex.CU_ERR))
        for flood in self.floods.values():
            await flood.check(self.sim)

    def intake_was_full(self) -> None:
        """The load was one: the agent refused in a good part of the time."""
        self.dut._log.info("intake full in %d of %d samples", self.full, self.samples)
        checks.true("the intake was full", self.full > self.samples // 4, f"{self.full} of {self.samples} samples")

    async def poll(self, node: Node, index: int, read) -> None:
        """One control read, compared where the model knows the value."""
        self._reads = (self._reads + 1) & 0x7F
        value = await read(node, index, self._reads)
        if index in (ControlIndex.CU_CAPS, 5, 0xE0):
            checks.equal(f"control register {index} of {node}", value, self.twin.machine.shells[node].register(index))


async def _begin(dut) -> Load:
    load = Load(dut, await start(dut, MACHINE, seed=seed(), **SLOW_MEMORY))
    await load.prepare()
    return load


def _flood(load: Load, n: int) -> list:
    return [cocotb.start_soon(f.run(n)) for f in load.floods.values()]


async def _programs(load: Load, rounds: int) -> None:
    for _ in range(rounds):
        for node in (A, B):
            await load.kick(node, sweeps(node))
        await load.settle()


@cocotb.test()
async def intake_full(dut):
    """Floods, fills and drains at once over a slow memory: all of it completes with the right data."""
    load = await _begin(dut)
    tasks = _flood(load, scale(250, 1500))
    await _programs(load, scale(2, 20))
    for t in tasks:
        await t
    load.intake_was_full()
    await load.compare()


async def _ask(load: Load, ep: Endpoint) -> int:
    """Control reads of one endpoint until its flood is over; their number."""
    count = 0
    while not load.floods[ep.pos].done:
        for node in (A, B):
            for index in (ControlIndex.CU_CAPS, ControlIndex.CU_STATUS, ControlIndex.CU_ERR, 5, 0xE0):
                await load.poll(node, index, ep.control_read)
                count += 1
    return count


async def _ask_by_mailbox(load: Load) -> int:
    """Control reads of the orchestrator until both clusters have completed; their number."""
    count = 0

    async def read(node: Node, index: int, txn: int) -> int:
        return await mailbox_read(load.box, node, index, txn)

    while not await load.done():
        for node in (A, B):
            for index in (ControlIndex.CU_CAPS, ControlIndex.CU_COUNTERS, ControlIndex.CU_DBG):
                await load.poll(node, index, read)
                count += 1
    return count


@cocotb.test()
async def control_reads_under_load(dut):
    """Both clusters answer the mailbox and an endpoint while the memory agent refuses flits."""
    load = await _begin(dut)
    tasks = _flood(load, scale(250, 1500))
    asking = cocotb.start_soon(_ask(load, load.eps[EP0]))
    answered = 0
    for _ in range(scale(2, 20)):
        for node in (A, B):
            await load.kick(node, sweeps(node))
        answered += await _ask_by_mailbox(load)
    await load.settle()
    for t in tasks:
        await t
    checks.true("reads of the endpoint", await asking > 40)
    checks.true("reads of the mailbox", answered > 20, str(answered))
    load.intake_was_full()
    await load.compare()


async def _bursts(load: Load, ep: Endpoint, node: Node, n: int) -> int:
    """Operand bursts of one endpoint into one cluster, one after the other; acknowledged to the orchestrator.

    Odd ones bring the content an entry of the running sweep has anyway, into the region in use;
    even ones new content into bank 1. Returns their number.
    """
    rng = Random(seed() + node[0])
    for i in range(n):
        side = i // 2 % 2
        image = words_of(load.images["ab"[side]])
        granules = rng.choice([4, 8, 16, 64])
        at = 4 * rng.randrange((2 * REGION * 4 - granules) // 4 + 1)
        if i % 2:
            place, words = at, image[at : at + granules]
        else:
            place, words = 1024 + at, [rng.getrandbits(256) & ~(0x60606060) | 0x80808080 for _ in range(granules)]
        ack = CTRL if i % 4 < 2 else None
        flits = burst(node, ep.pos, i & 255, side, place, words, ack)
        await ep.send(flits)
        load.twin.deliver(flits)
        if ack:
            load.expected[node] += 1
    return n


@cocotb.test()
async def bursts_with_acks_under_load(dut):
    """Operand bursts into both sides of sweeping clusters, control reads and floods together.

    A burst into the running sweep's region is held until that region was read; it brings the bytes
    that are there, so the sweep's result does not depend on the order. What went to bank 1 is
    multiplied afterwards and has to equal the model's bits.
    """
    load = await _begin(dut)
    n = scale(40, 400)
    for node in (A, B):
        await load.kick(node, sweeps(node))
    await load.settle()
    tasks = _flood(load, scale(250, 1500))
    sending = [cocotb.start_soon(_bursts(load, load.eps[e], c, n)) for e, c in ((EP0, A), (EP1, B))]
    asking = cocotb.start_soon(_ask(load, load.eps[EP1]))
    answered = 0
    for _ in range(scale(2, 20)):
        for node in (A, B):
            await load.kick(node, sweeps(node))
        answered += await _ask_by_mailbox(load)
    for t in (*tasks, *sending):
        await t
    await load.settle()
    checks.true("reads of the endpoint", await asking > 20)
    checks.true("reads of the mailbox", answered > 20, str(answered))
    load.intake_was_full()
    for ep, node in ((load.eps[EP0], A), (load.eps[EP1], B)):
        count = n // 2
        await ep.until("burst acknowledgements", lambda e=ep, c=count: len(e.signals) >= c)
        got = [(s.src, s.payload >> 248, s.payload >> 216 & 0xFFFF_FFFF) for s in ep.signals]
        want = [(node, 3, i // 2 % 2) for i in range(n) if i % 4 >= 2]
        checks.equal(f"acknowledgements at {ep.pos}", got, want, n=count)
    for node in (A, B):
        last = {"gm": 16, "gn": 16, "nk": 4, "abank": 1, "bbank": 1}
        drain = cluster.encode("DRAIN", n=256, addr=OUT[node] + 4 * TILE)
        await load.kick(node, [cluster.encode("GEMM", **last), drain])
    await load.settle()
    await load.compare()
