# SPDX-License-Identifier: Apache-2.0
"""The L2 adapter in front of the cluster: what the cluster re-reads stands in its window, with the bits of DRAM.

The driver programs BASE and ENABLE through the mailbox; memory behaves as in ``mm_mesh_stage``.
"""

from __future__ import annotations

from typing import Any

import cocotb
import numpy as np

from benches.store_rig import MACHINE, MG, opened, pair, program
from kohakuabi import Artifact, Await, Barrier, Image, Kick, Output, Seed
from kohakubench import checks, seed
from kohakubench.insim import drive
from kohakubench.machines import machine_bench
from kohakudriver import Device, RunResult
from kohakudriver.generated import AdapterIndex
from kohakudriver.registers import fields
from kohakutpu.isa import cluster
from kohakutpu.isa.address import adapter, staging
from kohakutpu.isa.generated import MemFault

BENCH = machine_bench(
    "mm_mesh_l2",
    MACHINE,
    timeout_cycles=6_000_000,
    wall_s=1800,
    mutations={
        "window_open_when_disabled": (
            "rtl/memory/mag_ad_window.v",
            "wire        touches = enable && tag_0 <= tag",
            "wire        touches = (enable || 1'b1) && tag_0 <= tag",
        ),
        "a_run_may_leave_the_window": (
            "rtl/memory/mag_ad_window.v",
            "mine && (tag_0 != tag || tag_1 != tag);",
            "mine && tag_0 != tag;",
        ),
    },
    mutation_tests={
        "window_open_when_disabled": ["disabled"],
        "a_run_may_leave_the_window": ["refused"],
    },
)
A, B, ELSEWHERE, RESULT = 0x1_0000, 0x2_0000, 0x4_0000, 0x8_0000
LINES = 512
SIZE = 32 * LINES
NEAR = adapter(0)
ROWS, COLS, REPEATS = 8, 4, 3
"""Entries of A and B of a product, and how often the drained words are read back."""

TILES = ROWS * ROWS
"""Sub-tiles of the first product; each is a word, four are an entry of the operand that is read back."""


def images() -> list[Image]:
    """Entries of A and B: random bytes."""
    rng = np.random.default_rng([seed(), 9])
    return [Image(at, rng.integers(0, 256, (ROWS, 128), dtype=np.uint8).tobytes(), n) for at, n in ((A, "a"), (B, "b"))]


def reread(spec: Any, at: int) -> Artifact:
    """A product drained to ``at``; its words are entries that ``REPEATS`` products read from there."""
    payloads = [
        cluster.encode("FILL", n=ROWS, addr=A),
        cluster.encode("FILL", n=ROWS, addr=B, sel=1),
        cluster.encode("GEMM", gm=ROWS, gn=ROWS),
        cluster.encode("DRAIN", n=TILES, addr=at),
    ]
    first = len(payloads)
    for i in range(REPEATS):
        part = TILES // 4
        payloads += [
            cluster.encode("FILL", n=part, addr=at, eoff=ROWS),
            cluster.encode("FILL", n=COLS, addr=B + 128 * i, sel=1, eoff=ROWS),
            cluster.encode("GEMM", gm=part, gn=COLS, aoff=ROWS, boff=ROWS),
            cluster.encode("DRAIN", n=part * COLS, addr=RESULT + 32 * part * COLS * i),
        ]
    total = len(payloads)
    steps = (
        *(Seed(32), Kick(*MG, 0, first), Await(*MG, first), Barrier()),
        *(Seed(32), Kick(*MG, 0, total - first), Await(*MG, total - first), Barrier()),
    )
    size = 32 * (TILES // 4) * COLS * REPEATS
    return program(spec, payloads, steps, images(), [Output("y", RESULT, size, "flat", (size // 32, 16))])


READ_BACK = REPEATS * TILES
"""Words read back by the fills."""

ACKS = TILES // 8
"""Bursts of the drain."""


def registers(device: Device) -> dict[str, int]:
    """Every register of the adapter by name."""
    return {i.name: device.control_read(MG, i) for i in AdapterIndex}


def count(device: Device) -> tuple[int, int]:
    """COUNT: (responses produced, in-window requests forwarded)."""
    value = fields("AD_COUNT", registers(device)["COUNT"])
    return value["local"], value["fwd"]


def ran(model: Device, rtl: Device, artifact: Artifact, base: int = NEAR, enable: int = 1) -> RunResult:
    """Load, program the window, run on both; signals, faults, counters, outputs and registers have to be equal."""
    for device in (model, rtl):
        device.load(artifact)
        checks.equal("window the driver opens", [registers(device)[n] for n in ("BASE", "ENABLE")], [NEAR, 1])
        checks.equal("BASE after the write", device.control_write(MG, AdapterIndex.BASE, base + SIZE - 32), base)
        checks.equal("ENABLE after the write", device.control_write(MG, AdapterIndex.ENABLE, enable), enable)
    want, got = (device.run(artifact, load=False) for device in (model, rtl))
    checks.equal("rounds", len(got.rounds), len(want.rounds))
    for w, g in zip(want.rounds, got.rounds, strict=True):
        for name in ("eng_ctrl", "eng_pc", "eng_code", "err_stat", "err_info", "sig_done", "mem_fault", "mem_drop"):
            checks.equal(f"{name} of round {w.index}", getattr(g, name), getattr(w, name))
        for name in ("dram_words", "stage_words") if not w.failed else ():
            checks.equal(f"{name} of round {w.index}", getattr(g, name), getattr(w, name))
        for a, b in zip(w.nodes, g.nodes, strict=True):
            checks.equal(f"signals of {a.node}", b.completions, a.completions, n=max(1, len(a.completions or ())))
            checks.equal(f"retired, CU_ERR of {a.node}", (b.retired, b.err_bits), (a.retired, a.err_bits), n=2)
    for out in artifact.outputs:
        one, other = (device.read(out.address, out.nbytes) for device in (model, rtl))
        checks.equal(f"bytes of {out.name}", other, one, n=out.nbytes // 32)
    checks.equal("registers", registers(rtl), registers(model), n=len(AdapterIndex))
    return got


def traffic(done: RunResult) -> tuple[int, int]:
    """Words of DRAM (read, written)."""
    return sum(r.dram_words[0] for r in done.rounds), sum(r.dram_words[1] for r in done.rounds)


# ------------------------------------------------------------------ operands in the window


def _placed(sim: Any, spec: Any, at: int, base: int) -> tuple[bytes, tuple[int, int]]:
    """The program with its words at ``at`` and the window at ``base``: (result, words of DRAM)."""
    model, rtl = pair(sim)
    marks = bytes(range(256)) * (32 * TILES // 256)
    if at < NEAR:
        for device in (model, rtl):
            device.write(at, marks)
    artifact = reread(spec, at)
    done = ran(model, rtl, artifact, base)
    checks.equal("problems", done.problems(), [])
    near = base <= at < base + SIZE
    checks.equal("COUNT", count(rtl), (READ_BACK + ACKS if near else 0, 0))
    checks.equal("STATUS", registers(rtl)["STATUS"], 0)
    if at < NEAR:
        checks.true("memory behind the window is untouched", (rtl.read(at, len(marks)) == marks) == near)
    (out,) = artifact.outputs
    return rtl.read(out.address, out.nbytes), traffic(done)


@cocotb.test()
@cocotb.parametrize(run=range(2))
async def reread_operand(dut, run: int):
    """In DRAM, at both ends of the window, in a window elsewhere and in one over DRAM: equal bits, less traffic."""
    got = []
    places = [
        (ELSEWHERE, NEAR),
        (NEAR, NEAR),
        (NEAR + SIZE - 32 * TILES, NEAR),
        (NEAR + 7 * SIZE + 4096, NEAR + 7 * SIZE),
        (ELSEWHERE, ELSEWHERE),
        (staging(0x1_0000), NEAR),
    ]
    for at, base in places:
        sim, spec = await opened(dut, 10 * run + len(got))
        got.append(await drive(_placed, sim, spec, at, base))
    bits, words = got[0]
    checks.true("values differ", len(np.unique(np.frombuffer(bits, np.uint16))) > 50)
    for other, less in got[1:]:
        checks.equal("result against DRAM placement", other, bits, n=len(bits) // 32)
        checks.equal("words of DRAM saved", (words[0] - less[0], words[1] - less[1]), (READ_BACK, TILES))


# ------------------------------------------------------------------ forwarded and refused


def edges(spec: Any, *, store: bool) -> Artifact:
    """One entry at either end of the window, written from products if ``store``, then read into a product."""
    payloads = []
    if store:
        for i, at in enumerate((NEAR, NEAR + SIZE - 128)):
            payloads += [
                cluster.encode("FILL", n=2, addr=A + 256 * i),
                cluster.encode("FILL", n=2, addr=B, sel=1),
                cluster.encode("GEMM", gm=2, gn=2),
                cluster.encode("DRAIN", n=4, addr=at),
            ]
    payloads += [
        cluster.encode("FILL", n=1, addr=NEAR, eoff=8),
        cluster.encode("FILL", n=1, addr=NEAR + SIZE - 128, eoff=9),
        cluster.encode("FILL", n=2, addr=B, sel=1, eoff=8),
        cluster.encode("GEMM", gm=2, gn=2, aoff=8, boff=8),
        cluster.encode("DRAIN", n=4, addr=RESULT),
    ]
    total = len(payloads)
    steps = (Seed(32), Kick(*MG, 0, total), Await(*MG, total), Barrier())
    return program(spec, payloads, steps, images(), [Output("y", RESULT, 128, "flat", (4, 16))])


def access(spec: Any, *, reads: bool, at: int, n: int) -> Artifact:
    """One fill of ``n`` entries from ``at``, or a product whose ``n`` words are drained to it."""
    if reads:
        payloads = [cluster.encode("FILL", n=n, addr=at)]
    else:
        payloads = [
            cluster.encode("FILL", n=2, addr=A),
            cluster.encode("FILL", n=2, addr=B, sel=1),
            cluster.encode("GEMM", gm=2, gn=2),
            cluster.encode("DRAIN", n=n, addr=at),
        ]
    total = len(payloads)
    steps = (Seed(32), Kick(*MG, 0, total), Await(*MG, total), Barrier())
    return program(spec, payloads, steps, images(), [Output("y", RESULT, 128, "flat", (4, 16))])


def _ends_in(done: RunResult, reads: bool, code: MemFault) -> None:
    """The access ended in the fault of the cluster that ``code`` becomes."""
    checks.true("the round failed", done.failed)
    name = " F_MEM_RD " if reads else " WR_DROP "
    found = [p for p in done.problems() if name in p and "ended in" in p]
    checks.equal(f"{name} in {done.problems()}", len(found), 1)
    if not reads:
        checks.true("code of the memory", f"detail {int(code)}" in found[0], found[0])


def _filled(model: Device, rtl: Device, spec: Any, *, store: bool) -> bytes:
    artifact = edges(spec, store=store)
    done = ran(model, rtl, artifact)
    checks.equal("problems", done.problems(), [])
    (out,) = artifact.outputs
    return rtl.read(out.address, out.nbytes)


def _disabled(sim: Any, spec: Any, reads: bool) -> None:
    model, rtl = pair(sim)
    before = _filled(model, rtl, spec, store=True)
    counted = count(rtl)
    done = ran(model, rtl, access(spec, reads=reads, at=NEAR, n=2), enable=0)
    _ends_in(done, reads, MemFault.M_APER)
    seen = fields("MEM_FAULT", done.rounds[-1].mem_fault)
    checks.equal("code and address at the agent", (seen["code"], seen["addr"]), (int(MemFault.M_APER), NEAR))
    checks.equal("node", (seen["node"] & 15, seen["node"] >> 4), MG)
    checks.equal("COUNT, STATUS", (count(rtl), registers(rtl)["STATUS"]), (counted, 0))
    checks.equal("contents once it is enabled again", _filled(model, rtl, spec, store=False), before, n=4)
    checks.true("values", len(np.unique(np.frombuffer(before, np.uint16))) > 8)


@cocotb.test()
@cocotb.parametrize(reads=[True, False])
async def disabled(dut, reads: bool):
    """Forwarded to an aperture nobody serves: M_APER, nothing counted; the contents stay."""
    sim, spec = await opened(dut, 100)
    await drive(_disabled, sim, spec, reads)


def _over_dram(sim: Any, spec: Any) -> None:
    model, rtl = pair(sim)
    artifact = reread(spec, ELSEWHERE)
    (out,) = artifact.outputs
    plain = ran(model, rtl, artifact, NEAR)
    want = rtl.read(out.address, out.nbytes)
    closed = ran(model, rtl, artifact, ELSEWHERE, enable=0)
    checks.equal("result", rtl.read(out.address, out.nbytes), want, n=out.nbytes // 32)
    checks.equal("words of DRAM", traffic(closed), traffic(plain))
    checks.equal("COUNT, STATUS", (count(rtl), registers(rtl)["STATUS"]), ((0, 0), 0))


@cocotb.test()
async def disabled_over_dram(dut):
    """A closed window over DRAM forwards everything: the run is that without one."""
    sim, spec = await opened(dut, 110)
    await drive(_over_dram, sim, spec)


CASES = {
    "read_leaves": (True, NEAR + SIZE - 128, 2),
    "read_enters": (True, NEAR - 128, 2),
    "read_spans": (True, NEAR - 128, 200),
    "write_leaves": (False, NEAR + SIZE - 64, 4),
    "write_enters": (False, NEAR - 64, 4),
}


def _refused(sim: Any, spec: Any, case: str) -> None:
    reads, at, n = CASES[case]
    model, rtl = pair(sim)
    before = _filled(model, rtl, spec, store=True)
    local, _ = count(rtl)
    done = ran(model, rtl, access(spec, reads=reads, at=at, n=n))
    _ends_in(done, reads, MemFault.M_RANGE)
    checks.equal("faults at the agent", (done.rounds[-1].mem_fault, done.rounds[-1].mem_drop), (0, 0))
    checks.equal("COUNT", count(rtl), (local + (4 * n if reads else 1), 0))
    checks.equal("STATUS", registers(rtl)["STATUS"], 1)
    for device in (model, rtl):
        checks.equal("STATUS answers the value before", device.control_write(MG, AdapterIndex.STATUS, 0), 1)
    checks.equal("STATUS cleared", registers(rtl)["STATUS"], 0)
    checks.equal("contents", _filled(model, rtl, spec, store=False), before, n=4)
    checks.true("values", len(np.unique(np.frombuffer(before, np.uint16))) > 8)


@cocotb.test()
@cocotb.parametrize(case=list(CASES))
async def refused(dut, case: str):
    """A run over an edge of the window: M_RANGE from the adapter itself, counted, marked, nothing stored."""
    sim, spec = await opened(dut, 120)
    await drive(_refused, sim, spec, case)
