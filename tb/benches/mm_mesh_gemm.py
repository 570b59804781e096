# SPDX-License-Identifier: Apache-2.0
"""Compiled matrix products on the whole machine, replayed against the reference bit for bit.

DRAM answers after a random 10 to 80 cycles and every AXI channel refuses at random; every
link carries a checker.
"""

import random

import cocotb
import numpy as np

import ktpu
from kohakubench import checks, seed
from kohakubench.insim import drive, start
from kohakubench.machines import machine_bench
from kohakudriver import Device
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.numerics import fp16_codes, product
from kohakutpu.model.transport import ModelTransport
from ktpu.replay import replay

MACHINE = "mm_mesh"
BENCH = machine_bench(
    "mm_mesh_gemm",
    MACHINE,
    timeout_cycles=4_000_000,
    wall_s=900,
    mutations={"ties_away_from_zero": ("rtl/matmul/mg_to_fp16.v", "(st || padded[MW-8])", "(st || 1'b1)")},
)

PRESSURE = {"lat_min": 10, "lat_max": 80, "ar_pct": 70, "aw_pct": 70, "w_pct": 70, "r_pct": 80, "b_pct": 70}
SHAPES = [(64, 64, 64), (32, 32, 128), (300, 77, 100), (256, 256, 256)]


def random_operands(m: int, n: int, k: int, number: int):
    """Normal values; weights scaled so that results stay near one."""
    rng = np.random.default_rng([seed(), number, m, n, k])
    return rng.standard_normal((m, k)), rng.standard_normal((n, k)) / np.sqrt(k)


def real_operands(m: int, n: int, k: int):
    """Pixels of handwritten digits, repeated to the shape, as both operands."""
    from sklearn.datasets import load_digits

    pixels = load_digits().data / 16.0
    flat = np.resize(pixels, (m + n) * k)
    return flat[: m * k].reshape(m, k), flat[m * k :].reshape(n, k) - 0.3


def replayed(sim, compiled) -> None:
    """Replay on the running simulation and on the model; every bit has to agree."""
    model, rtl = Device(ModelTransport(sim.description)), Device(sim)
    report = replay(compiled.artifact, model, rtl)
    found = "\n".join(["", *(f.text() for f in report.findings()), *report.problems])
    checks.equal(f"findings of {compiled.call.trace.extents}", found, "\n".join([""]), n=max(1, report.compared))
    checks.true("something was compared", report.agree)
    (out,) = compiled.artifact.outputs
    got = ktpu.read_output(out, rtl.read(out.address, out.nbytes)).view(np.uint16)
    a, b = (padded(compiled.call.operands[x]) for x in ("a", "b"))
    _, whole = product(a, b)
    checks.arrays("result against the whole product", got, whole[: got.shape[0], : got.shape[1]])


def padded(values):
    """FP16 codes, rows padded to 4 and K to 32 with zeros."""
    rows, cols = values.shape
    return fp16_codes(np.pad(values.astype(np.float64), ((0, -rows % 4), (0, -cols % 32))))


async def _shape(dut, m: int, n: int, k: int, operands, number: int, **knobs: int) -> None:
    sim = await start(dut, MACHINE, seed=seed() + number, **PRESSURE)
    machine = MachineSpec.from_description(sim.description)
    compiled = ktpu.compile(ktpu.matmul(*operands, **knobs), machine)
    await drive(replayed, sim, compiled)


@cocotb.test()
@cocotb.parametrize(shape=range(len(SHAPES)), run=range(2))
async def random_values(dut, shape: int, run: int):
    """Random operands, two memory seeds."""
    m, n, k = SHAPES[shape]
    await _shape(dut, m, n, k, random_operands(m, n, k, run), 10 * shape + run)


@cocotb.test()
@cocotb.parametrize(shape=range(len(SHAPES)), run=range(2))
async def real_values(dut, shape: int, run: int):
    """Digits as operands, two memory seeds."""
    m, n, k = SHAPES[shape]
    await _shape(dut, m, n, k, real_operands(m, n, k), 100 + 10 * shape + run)


@cocotb.test()
async def several_rounds(dut):
    """The 256-cube with small tiles fills more than one round's staging slots."""
    m = n = k = 256
    sim = await start(dut, MACHINE, seed=seed() + 7, **PRESSURE)
    machine = MachineSpec.from_description(sim.description)
    compiled = ktpu.compile(ktpu.matmul(*random_operands(m, n, k, 7), gm=8, gn=8, nk=2), machine)
    checks.true("several rounds", compiled.artifact.meta["counters"]["rounds"] >= 3)
    await drive(replayed, sim, compiled)


@cocotb.test()
async def separate_drains(dut):
    """Explicit read-outs give the same bits as results emitted with the last sweep."""
    sim = await start(dut, MACHINE, seed=seed() + 8, **PRESSURE)
    machine = MachineSpec.from_description(sim.description)
    operands = random_operands(96, 96, 96, 8)
    compiled = ktpu.compile(ktpu.matmul(*operands, gm=8, gn=8, nk=1), machine, emit_fuse=False)
    await drive(replayed, sim, compiled)


@cocotb.test()
async def at_the_credit_limit(dut):
    """As many programs in one round as the credit allows: one fewer than the FIFO holds."""
    sim = await start(dut, MACHINE, seed=seed() + 9, **PRESSURE)
    machine = MachineSpec.from_description(sim.description)
    # one program a tile, four flits each: 31 tiles of 4x4 results
    compiled = ktpu.compile(ktpu.matmul(*random_operands(4 * 31, 4, 32, 9), gm=1, gn=1, nk=1), machine, pass_budget=4)
    checks.equal("programs of the round", len(kicks(compiled)), machine.credit - 1)
    await drive(replayed, sim, compiled)


@cocotb.test()
async def at_the_staging_limit(dut):
    """A round whose payloads fill the staging slots to the last one."""
    sim = await start(dut, MACHINE, seed=seed() + 10, **PRESSURE)
    machine = MachineSpec.from_description(sim.description)
    compiled = ktpu.compile(ktpu.matmul(*random_operands(32, 32, 32 * 43, 10), gm=8, gn=8, nk=1), machine)
    first = next(compiled.artifact.rounds())
    checks.equal("slots used", len(first.payloads), machine.stage_flits)
    await drive(replayed, sim, compiled)


@cocotb.test()
async def at_the_command_limit(dut):
    """Rounds of a machine with few command slots are cut by the command limit alone."""
    sim = await start(dut, MACHINE, seed=seed() + 11, **PRESSURE)
    machine = MachineSpec.from_description(sim.description)
    narrow = machine.with_(ncmd=random.Random(seed()).randrange(40, 60))
    compiled = ktpu.compile(ktpu.matmul(*random_operands(4 * 40, 4, 32, 11), gm=1, gn=1, nk=1), narrow, pass_budget=4)
    from kohakuabi import command_count

    sizes = [command_count(r.steps) for r in compiled.artifact.rounds()]
    checks.true("a round at the limit", max(sizes) > narrow.ncmd - 5 and max(sizes) <= narrow.ncmd, str(sizes))
    await drive(replayed, sim, compiled)


def kicks(compiled) -> list:
    """Kicks of the first round."""
    from kohakuabi import Kick

    return [s for s in next(compiled.artifact.rounds()).steps if isinstance(s, Kick)]
