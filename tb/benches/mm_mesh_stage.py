# SPDX-License-Identifier: Apache-2.0
"""Programs whose temporaries stand in the staging store: the bits of DRAM placement, less DRAM traffic by what moved.

The machine has the granule transpose, without which a product is not read back. DRAM answers after 10 to 80 cycles,
every AXI channel refuses at random, every link carries a checker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np

import ktpu
from benches.store_rig import (
    MACHINE,
    MG,
    VC,
    activated,
    agreed,
    filled,
    half,
    opened,
    pair,
    placed,
    program,
    with_temps,
)
from kohakuabi import Await, Barrier, Image, Kick, Move, Output, Seed
from kohakubench import checks
from kohakubench.chains import evaluate
from kohakubench.insim import drive
from kohakubench.machines import machine_bench
from kohakubench.programs import reference
from kohakubench.two_layers import FIRST, SECOND, STAGE, STAGE_BYTES, call, expected
from kohakudriver import RunResult
from kohakudriver.registers import fields
from kohakutpu.chain import ChainBuilder
from kohakutpu.dispatch import link
from kohakutpu.isa import cluster
from kohakutpu.isa.generated import MemFault
from kohakutpu.program import LaneWork, Store, Stream, Walk, assemble, vector_program
from kohakutpu.program.moves import Move as Pass
from kohakutpu.program.moves import encode
from kohakutpu.schedule import from_key
from kohakutpu.walks import contiguous

BENCH = machine_bench(
    "mm_mesh_stage",
    MACHINE,
    timeout_cycles=6_000_000,
    wall_s=1800,
    mutations={
        "staging_writes_counted_as_dram": (
            "rtl/memory/mag_path.v",
            "assign write_beat        = m_axi_dram_wvalid && m_axi_dram_wready;",
            "assign write_beat        = (m_axi_dram_wvalid && m_axi_dram_wready) || stage_write_beat;",
        ),
        "store_ends_where_dram_ends": (
            "rtl/memory/mag_classify.v",
            "addr[39] ? STAGE_TOP : DRAM_TOP",
            "addr[38] ? STAGE_TOP : DRAM_TOP",
        ),
    },
    mutation_tests={
        "staging_writes_counted_as_dram": ["two_layers"],
        "store_ends_where_dram_ends": ["beyond_the_store"],
    },
)
END = STAGE + STAGE_BYTES
OPERAND, RESULT = 0x1_0000, 0x8_0000


@dataclass(frozen=True)
class Outcome:
    """Result bits, words (read, written) of DRAM and of the store, and the words on the DRAM bus."""

    bits: np.ndarray
    dram: tuple[int, int]
    stage: tuple[int, int]
    bus: tuple[int, int]


def words(done: RunResult, counter: str) -> tuple[int, int]:
    """(read, written) of a counter over all rounds."""
    read, written = zip(*(getattr(r, counter) for r in done.rounds), strict=True)
    return sum(read), sum(written)


def _ran(sim: Any, compiled: ktpu.Compiled) -> tuple[Any, ...]:
    """Replay beside the model, temporaries too; then once more from end to end without the host."""
    model, rtl = pair(sim)
    agreed(with_temps(compiled), model, rtl)
    rtl.load(compiled.artifact)
    before = sim.beats()
    sim.touched.clear()
    done = rtl.run(compiled.artifact, load=False)
    checks.equal("accesses of the host during the run", sim.touched, [])
    checks.equal("problems", done.problems(), [])
    bus = tuple(b - a for a, b in zip(before, sim.beats(), strict=True))
    (out,) = compiled.artifact.outputs
    bits = ktpu.read_output(out, rtl.read(out.address, out.nbytes)).view(np.uint16)
    return bits, words(done, "dram_words"), words(done, "stage_words"), bus


def drained(compiled: ktpu.Compiled) -> int:
    """Words that clusters and cores write to the staging store: results that a conversion reads."""
    buffers = compiled.schedule.buffers
    there = [buffers[name] for band in compiled.schedule.bands for name in band.writes]
    return sum(from_key(b.layout).nbytes(b.shape) // 32 for b in there if b.address >= STAGE)


async def _placements(dut: Any, kernel: Any, want: np.ndarray, number: int, **options: Any) -> None:
    """The three placements of ``kernel``: 0 differing bits, and traffic that only changes its place."""
    seen: dict[str, Outcome] = {}
    for place in ("dram", "proposed", "all"):
        sim, spec = await opened(dut, number)
        compiled = placed(kernel, spec, place, **options)
        o = seen[place] = Outcome(*await drive(_ran, sim, compiled))
        checks.arrays(f"result with temporaries placed {place}", o.bits, want)
        checks.equal(f"{place}: MEM_DRAMCNT and the words on the bus", o.dram, o.bus)
        moves = [m for before in compiled.moves for m in before]
        read = sum(m.traffic[0] for m in moves if m.source and m.source.base >= STAGE)
        written = sum(m.traffic[1] for m in moves if m.target.base >= STAGE)
        fills = filled(compiled.artifact)
        (out,) = compiled.artifact.outputs
        if place == "dram":
            checks.equal("words staged", o.stage, (0, 0))
        elif place == "proposed":
            checks.equal("words staged", o.stage, (read + fills[True], written + drained(compiled)))
        else:
            checks.equal("words of DRAM left", o.dram, (fills[False], out.nbytes // 32))
        total = tuple(a + b for a, b in zip(o.dram, o.stage, strict=True))
        checks.equal(f"{place}: words of both", total, seen["dram"].dram)
        checks.true(f"{place}: traffic", place == "dram" or min(o.stage) > 0)


@cocotb.test()
@cocotb.parametrize(run=range(2))
async def two_layers(dut, run: int):
    """A product, its quantising moves and the product that reads it."""
    mlp = call(first=FIRST, second=SECOND, seed=run)
    await _placements(dut, mlp, expected(mlp), run)


@cocotb.test()
async def odd_extents(dut):
    """Padding in every direction: the rows are cleared where they stand."""
    mlp = call(45, 60, 64, 30, first={"gm": 2, "gn": 4, "nk": 1}, second={"gm": 3, "gn": 1, "nk": 2}, seed=3)
    await _placements(dut, mlp, expected(mlp), 10)


@cocotb.test()
async def a_pass_between(dut):
    """Product, vector core, moves, product: the core fills from the store and drains to it."""
    mlp = activated()
    sim, spec = await opened(dut, 20)
    alone = ktpu.compile(ktpu.linear_silu(mlp.operands["x"], mlp.operands["w1"], **FIRST), spec, fuse="never")
    hidden, *_ = await drive(_ran, sim, alone)
    await _placements(dut, mlp, reference(hidden.view(np.float16), mlp.operands["w2"]), 20, fuse="never")


def _core(sim: Any, spec: Any, source: int, target: int, size: int) -> None:
    """``size`` words from ``source`` through the vector core to ``target``."""
    b = ChainBuilder()
    chain = b.chain([b.op("fma", b.operand(0), b.const(0.5), b.const(1.0))])
    data = half(size, 16, number=size)
    steps = tuple(range(0, size, 4))
    walk = Walk.run(size, 32)
    work = LaneWork(
        chain, 64, (Stream("x", 0, size, steps, walk),), (Store("y", size, size, steps, walk),), ((source, target),)
    )
    units = [[vector_program(0, work, spec, spec.stage_flits)]]
    images = [Image(source, data.tobytes(), "x")]
    outputs = [Output("y", target, 32 * size, "flat", data.shape)]
    artifact = link(spec, [assemble(u, spec) for u in units], images, outputs)
    model, rtl = pair(sim)
    agreed(artifact, model, rtl)
    got = np.frombuffer(rtl.read(target, 32 * size), np.uint16).reshape(data.shape)
    checks.arrays("result", got, evaluate(chain, [data], data.shape)[0])
    rtl.load(artifact)
    done = rtl.run(artifact, load=False)
    staged = (size * (source >= STAGE), size * (target >= STAGE))
    checks.equal("words staged", words(done, "stage_words"), staged)
    checks.equal("words of DRAM", words(done, "dram_words"), (size - staged[0], size - staged[1]))


@cocotb.test()
@cocotb.parametrize(size=[4, 8, 128, 256])
async def vector_core(dut, size: int):
    """Fills and drains between both memories, from the first word of the store to its last."""
    for number, (source, target) in enumerate(
        [(STAGE, RESULT), (OPERAND, END - 32 * size), (END - 32 * size, STAGE), (STAGE + 0x2_0000, STAGE + 0x4_0000)]
    ):
        sim, spec = await opened(dut, 100 + size + number)
        await drive(_core, sim, spec, source, target, size)


def _vector(spec: Any, source: int, target: int) -> Any:
    b = ChainBuilder()
    chain = b.chain([b.op("fma", b.operand(0), b.const(0.5), b.const(1.0))])
    walk = Walk.run(8, 32)
    work = LaneWork(
        chain, 64, (Stream("x", 0, 8, (0, 4), walk),), (Store("y", 8, 8, (0, 4), walk),), ((source, target),)
    )
    outputs = [Output("y", RESULT, 256, "flat", (8, 16))]
    return link(spec, [assemble([vector_program(0, work, spec, spec.stage_flits)], spec)], [], outputs)


def _cluster(spec: Any, source: int, target: int) -> Any:
    payloads = (
        cluster.encode("FILL", n=2, addr=source),
        cluster.encode("FILL", n=2, addr=OPERAND, sel=1),
        cluster.encode("GEMM", gm=2, gn=2),
        cluster.encode("DRAIN", n=4, addr=target),
    )
    steps = (Seed(32), Kick(*MG, 0, 4), Await(*MG, 4), Barrier())
    return program(spec, payloads, steps, [], [Output("y", RESULT, 256, "flat", (8, 16))])


def _mover(spec: Any, source: int, target: int) -> Any:
    steps = (Move(encode(Pass("copy", contiguous(source, 8), contiguous(target, 8)))), Barrier())
    return program(spec, (), steps, [], [Output("y", RESULT, 256, "flat", (8, 16))])


BUILDERS = {"cluster": _cluster, "vector": _vector, "mover": _mover}
NAMED = {"cluster": ("F_MEM_RD", "WR_DROP"), "vector": ("F_MEM_RD", "WR_DROP"), "mover": ("F_RANGE", "F_RANGE")}


def _fault(sim: Any, spec: Any, unit: str, reads: bool, address: int) -> None:
    artifact = BUILDERS[unit](spec, *((address, RESULT) if reads else (OPERAND, address)))
    model, rtl = pair(sim)
    pattern = half(256, 16, number=1).tobytes()
    for device in (model, rtl):
        device.write(END - len(pattern), pattern)
        device.write(OPERAND, pattern)
    report = agreed(artifact, model, rtl)
    checks.true("the round failed", report.rounds[-1].failed)
    name = NAMED[unit][0 if reads else 1]
    checks.true(f"{name} is named", any(f" {name} " in p for p in report.problems), "\n".join(report.problems))
    tail = [d.read(END - len(pattern), len(pattern)) for d in (model, rtl)]
    checks.equal("end of the store", tail[1], tail[0], n=256)
    checks.true("no access that faults stores", reads or unit == "mover" or tail[1] == pattern)
    done = rtl.run(artifact).rounds[-1]
    seen = fields("MEM_FAULT", done.mem_fault)
    checks.equal("code", seen["code"], int(MemFault.M_RANGE))
    checks.true("address", END - 256 <= seen["addr"] <= END + 256, hex(seen["addr"]))
    node = {"cluster": MG, "vector": VC}.get(unit, (0, 0))
    checks.equal("node", (seen["node"] & 15, seen["node"] >> 4), node)


@cocotb.test()
@cocotb.parametrize(unit=list(BUILDERS), reads=[True, False], inside=[0, 2])
async def beyond_the_store(dut, unit: str, reads: bool, inside: int):
    """A run that starts behind the last word, or crosses it, ends in M_RANGE and stores nothing."""
    sim, spec = await opened(dut, 200 + inside)
    await drive(_fault, sim, spec, unit, reads, END - 32 * inside)
