# SPDX-License-Identifier: Apache-2.0
"""Accumulator streams between two clusters."""

from __future__ import annotations

import cocotb
import numpy as np

from kohakuabi import Artifact, Image, Output
from kohakuabi.steps import Await, Barrier, Kick, Seed
from kohakubench import checks, clocks, seed
from kohakubench.duo import (
    CTRL,
    EP0,
    EP1,
    MACHINE,
    WORD,
    A,
    B,
    Endpoint,
    await_signals,
    burst,
    drain_into,
    mailbox_read,
    operand,
    program,
    words_of,
)
from kohakubench.insim import drive, start
from kohakubench.mesh_paths import Mailbox
from kohakudriver import Device
from kohakutpu.isa import cluster
from kohakutpu.isa.generated import ControlIndex, RejectReason
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.messages import bursts
from kohakutpu.model.numerics import Layout, TileStore, acc_add, emit_words, send_granules, unpack_words
from kohakutpu.model.transport import ModelTransport
from ktpu.replay import replay

PRESSURE = {"lat_min": 10, "lat_max": 80, "ar_pct": 70, "aw_pct": 70, "w_pct": 70, "r_pct": 80, "b_pct": 70}
A_AT, B_AT, OUT = 0x10000, 0x20000, 0x40000
REJECTED = 1 << 31 | RejectReason.NOT_READY << 24 | 2
WDOG = 4096
SWEPT = 800
"""A GEMM retires when its sweep starts; 512 sub-tiles are written well within this."""
A_NOTREADY = 0x4D47_0386


def acc(tile, peer):
    """ADD_PEER: the resident tile first (docs/spec/cluster.md 6.4)."""
    return acc_add(tile, peer)


def partial(a: bytes, b: bytes, gm: int, gn: int, nk: int):
    """Codes (gm*gn, 16) of the product of two operand images."""
    store = TileStore(gm * gn)
    sides = []
    for data, groups, side in ((a, gm, Layout.A), (b, gn, Layout.B)):
        q, scale = unpack_words(np.frombuffer(data, np.uint8).reshape(-1, 4, WORD), side)
        sides.append((q.reshape(groups, nk, 4, 32), scale.reshape(groups, nk, 4)))
    store.sweep(sides[0], sides[1], False)
    return store.codes


def fill_and_multiply(gm: int, gn: int, nk: int, a: int, b: int) -> list[int]:
    """The instructions that open gm*gn sub-tiles with a product."""
    return [
        cluster.encode("FILL", n=gm * nk, addr=a),
        cluster.encode("FILL", sel=1, n=gn * nk, addr=b),
        cluster.encode("GEMM", gm=gm, gn=gn, nk=nk),
    ]


class Pair:
    """Both clusters with gm*gn open sub-tiles of different products."""

    def __init__(self, dut, sim, gm: int, gn: int) -> None:
        self.sim = sim
        self.box = Mailbox(sim)
        self.eps = {A: Endpoint(dut.u_ep0, EP0), B: Endpoint(dut.u_ep1, EP1)}
        self.gm, self.gn = gm, gn
        self.codes: dict = {}
        self._done = {A: 0, B: 0}
        self._before = len(sim._signals)  # of earlier tests of this simulation

    async def run(self, node, payloads: list[int], code: int = 1, arg: int = 5) -> None:
        """One program through the node's own endpoint; returns when it has completed, as stated."""
        self._done[node] += len(payloads)
        ep, want = self.eps[node], self._done[node]
        await ep.send(program(node, ep.pos, 5, payloads))
        await ep.until(f"completions of {node}", lambda: len(ep.signals) >= want)
        last = ep.signals[-1]
        got = (last.src, last.payload >> 248, last.payload >> 216 & 0xFFFF_FFFF)
        checks.equal(f"last completion of {node}", got, (node, code, arg))

    async def open(self) -> None:
        for i, node in enumerate((A, B)):
            rng = np.random.default_rng([seed(), i, self.gm])
            a, b = operand(rng, self.gm, 1, Layout.A), operand(rng, self.gn, 1, Layout.B)
            at = (A_AT + 0x4000 * i, B_AT + 0x4000 * i)
            await self.sim.dram.load(at[0], a)
            await self.sim.dram.load(at[1], b)
            self.codes[node] = partial(a, b, self.gm, self.gn, 1)
            await self.run(node, fill_and_multiply(self.gm, self.gn, 1, *at))
        await clocks.cycles(SWEPT)

    async def tiles(self, node, n: int):
        """The node's first ``n`` sub-tiles in accumulator form."""
        ep = self.eps[node]
        await self.run(node, [drain_into(node, n, ep.pos, ack=False)])
        return await ep.tiles(n)

    async def acks(self, node) -> list[int]:
        """Arguments of the node's DATA_RECEIVED at the orchestrator, in order."""
        flits = (await self.sim._signals_async())[self._before :]
        return [f >> 216 & 0xFFFF_FFFF for f in flits if (f >> 276 & 15, f >> 272 & 15) == node]


async def _exchange(pair: Pair, n: int, granule: int, skew: int) -> None:
    """Both clusters SEND ``n`` sub-tiles into each other, B ``skew`` cycles after A."""

    async def later() -> None:
        await clocks.cycles(1 + max(skew, 0))
        await pair.run(B, [drain_into(B, n, A, granule)])

    other = cocotb.start_soon(later())
    await clocks.cycles(1 + max(-skew, 0))
    await pair.run(A, [drain_into(A, n, B, granule)])
    await other
    for node in (A, B):
        await await_signals(pair.box, node, bursts("send", n))


def _outcomes(own, peer, n: int, got: dict, acks: dict) -> tuple[int, ...]:
    """Count the sub-tiles of each allowed outcome; a sub-tile with none fails.

    Allowed for one sub-tile, with + the accumulator's addition, resident value first:
    0  both sent before they received: A+B and B+A;
    1  A sent first, B added it before it sent: A+(B+A) and B+A;
    2  the reverse: A+B and B+(A+B);
    3  an addition left out, only where that side's burst was rejected with reason 6.
    Both sent after they received is impossible: each value would need the other one.
    """
    first, second = acc(own, peer), acc(peer, own)
    late = [np.repeat(np.array(acks[node]) == REJECTED, 4)[:n, None] for node in (A, B)]
    cases = [
        (got[A] == first) & (got[B] == second),
        (got[A] == acc(own, second)) & (got[B] == second),
        (got[A] == first) & (got[B] == acc(peer, first)),
        ((got[A] == own) & late[0] & ((got[B] == second) | ((got[B] == peer) & late[1])))
        | ((got[B] == peer) & late[1] & (got[A] == first)),
    ]
    whole = [c.all(axis=1) for c in cases]
    left = np.ones(n, bool)
    counts = []
    for c in whole:
        counts.append(int((c & left).sum()))
        left &= ~c
    checks.equal("sub-tiles with an outcome that is not allowed", int(left.sum()), 0, n=n)
    return tuple(counts)


@cocotb.test()
@cocotb.parametrize(n=[4, 64, 512], skew=[0, 90, -400])
async def crossed_peer_streams(dut, n: int, skew: int):
    """Both clusters send accumulators into each other at once; see :func:`_outcomes` for what may result."""
    sim = await start(dut, MACHINE, seed=seed() + n, **PRESSURE)
    pair = Pair(dut, sim, 16, 32)
    await pair.open()
    await _exchange(pair, n, 0, skew)
    acks = {node: await pair.acks(node) for node in (A, B)}
    for node in (A, B):
        checks.true(f"acknowledgements of {node}", set(acks[node]) <= {2, REJECTED}, str(acks[node]))
    got = {node: await pair.tiles(node, 512) for node in (A, B)}
    counts = _outcomes(pair.codes[A][:n], pair.codes[B][:n], n, {k: v[:n] for k, v in got.items()}, acks)
    dut._log.info("outcomes of %d sub-tiles, skew %d: %s", n, skew, counts)
    for node in (A, B):
        checks.arrays(f"untouched sub-tiles of {node}", got[node][n:], pair.codes[node][n:])


@cocotb.test()
@cocotb.parametrize(skew=[0, 150])
async def crossed_disjoint_streams(dut, skew: int):
    """Each half of one store goes to the other half of the other: nothing depends on time."""
    sim = await start(dut, MACHINE, seed=seed(), **PRESSURE)
    pair = Pair(dut, sim, 16, 32)
    await pair.open()
    n = 256
    await _exchange(pair, n, 2 * n, skew)
    for node, peer in ((A, B), (B, A)):
        checks.equal(f"acknowledgements of {node}", await pair.acks(node), [2] * bursts("send", n))
        want = pair.codes[node].copy()
        want[n:] = acc(want[n:], pair.codes[peer][:n])
        checks.arrays(f"sub-tiles of {node}", await pair.tiles(node, 512), want)


@cocotb.test()
async def stalled_peer_stream(dut):
    """An open stream that falls silent holds sweeps and drains for the watchdog's time and no longer.

    The burst counts as rejected from the watchdog on, so the cluster's own SEND, which waited for
    it, reports A_NOTREADY; the burst ends with reason 6 when its late flits come.
    """
    sim = await start(dut, MACHINE, seed=seed(), **PRESSURE)
    pair = Pair(dut, sim, 8, 8)
    await pair.open()
    ep = pair.eps[B]
    peer = send_granules(pair.codes[B][:4])
    late = burst(A, ep.pos, 3, 2, 0, words_of(peer.tobytes()), CTRL)
    await ep.send(late[:4])  # one sub-tile and the low half of the next
    before = clocks.now()
    await pair.run(A, [drain_into(A, 64, B)], 4, A_NOTREADY)
    waited = clocks.now() - before
    checks.true("the drain waited for the watchdog", WDOG - 500 < waited < WDOG + 2000, f"{waited} cycles")
    await await_signals(pair.box, B, bursts("send", 64))
    await ep.send(late[4:])
    await await_signals(pair.box, A, 1)
    checks.equal("the late burst", await pair.acks(A), [REJECTED])
    err = await mailbox_read(pair.box, A, ControlIndex.CU_ERR, 1)
    checks.equal("unit_err: rejected burst, peer watchdog", err >> 8 & 0xFF, 0b10010)
    want = pair.codes[A].copy()
    want[:1] = acc(want[:1], pair.codes[B][:1])
    checks.arrays("tiles of A, reported once", await pair.tiles(A, 64), want)
    checks.arrays("tiles of B", await pair.tiles(B, 64), acc(pair.codes[B], want))


def reduction(spec: MachineSpec, gm: int, gn: int, nk: int, operands: list[bytes]) -> Artifact:
    """K split over both clusters: B's partial sums go to A, which adds and drains them."""
    n = gm * gn
    at = [A_AT, B_AT, A_AT + 0x8000, B_AT + 0x8000]
    first = fill_and_multiply(gm, gn, nk, at[0], at[1])
    second = [*fill_and_multiply(gm, gn, nk, at[2], at[3]), drain_into(B, n, A)]
    steps = [
        Seed(spec.credit), Kick(*A, 0, 3), Await(*A, 3), Barrier(),
        Seed(spec.credit), Kick(*B, 0, 4), Await(*B, 4), Barrier(),
        Await(*A, bursts("send", n)), Barrier(),
        Seed(spec.credit), Kick(*A, 0, 1), Await(*A, 1),
    ]  # fmt: skip
    return Artifact(
        machine=MACHINE,
        machine_hash=spec.digest(),
        payloads=(*first, *second, cluster.encode("DRAIN", n=n, addr=OUT)),
        images=tuple(Image(a, data, f"operand{i}") for i, (a, data) in enumerate(zip(at, operands, strict=True))),
        steps=tuple(steps),
        outputs=(Output("c", OUT, WORD * n, f"tile:1x1:{gm}x{gn}", (4 * gm, 4 * gn)),),
        limits={"stage_flits": spec.stage_flits, "ncmd": spec.ncmd, "credit_max": spec.credit_max},
        meta={"acknowledging": [list(A)]},
    )


@cocotb.test()
@cocotb.parametrize(shape=[(2, 2, 3), (8, 8, 4), (16, 32, 7)])
async def peer_reduction(dut, shape: tuple[int, int, int]):
    """A's partial product plus B's, in that order, acknowledged at the orchestrator before A drains."""
    gm, gn, nk = shape
    sim = await start(dut, MACHINE, seed=seed() + gm, **PRESSURE)
    spec = MachineSpec.from_description(sim.description)
    rng = np.random.default_rng([seed(), gm, gn, nk])
    operands = [operand(rng, g, nk, s) for _ in range(2) for g, s in ((gm, Layout.A), (gn, Layout.B))]
    artifact = reduction(spec, gm, gn, nk, operands)
    report = await drive(lambda: replay(artifact, Device(ModelTransport(sim.description)), Device(sim)))
    checks.equal("findings", [f.text() for f in report.findings()], [], n=report.compared)
    checks.equal("rounds without a problem", (len(report.rounds), report.problems), (4, []))
    own, peer = (partial(*operands[i : i + 2], gm, gn, nk) for i in (0, 2))
    want = emit_words(acc(own, peer))
    got = np.frombuffer(await sim.dram.read(OUT, WORD * gm * gn), np.uint8).reshape(-1, WORD)
    checks.arrays("own plus peer", got, want)
