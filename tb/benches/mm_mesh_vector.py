# SPDX-License-Identifier: Apache-2.0
"""Compiled vector kernels on the whole machine, replayed against the reference bit for bit.

Fused epilogues, the same through memory, row kernels and elementwise chains; DRAM and AXI channels as in
``mm_mesh_gemm``, a checker on every link.
"""

from dataclasses import replace

import cocotb
import numpy as np

import ktpu
from kohakuabi import Image, Output
from kohakubench import checks, seed
from kohakubench.chains import evaluate
from kohakubench.insim import drive, start
from kohakubench.machines import machine_bench
from kohakudriver import Device
from kohakutpu.chain import ChainBuilder
from kohakutpu.dispatch import link
from kohakutpu.graph import requests
from kohakutpu.isa import vector
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.numerics import fp16_codes, product
from kohakutpu.model.transport import ModelTransport
from kohakutpu.program import LaneWork, Store, Stream, Walk, assemble, vector_program
from kohakutpu.schedule import Contraction
from ktpu.disassembly import explain
from ktpu.replay import replay

MACHINE = "mm_mesh"
BENCH = machine_bench(
    "mm_mesh_vector",
    MACHINE,
    timeout_cycles=6_000_000,
    wall_s=1800,
    mutations={
        "burst_word_of_eight_bits": (
            "rtl/vector/vc_mem_recv.v",
            "assign wr_word = wr_granule[8:0];",
            "assign wr_word = {1'b0, wr_granule[7:0]};",
        ),
        "maximum_starts_at_zero": ("rtl/vector/vc_lanes_red.v", "? 24'hFF8000 :", "? 24'h000000 :"),
        "second_dimension_is_one": (
            "rtl/vector/vc_mem_walk.v",
            "c1_q <= bound[31:16];",
            "c1_q <= 16'd1;",
        ),
        "no_hazard_between_steps": (
            "rtl/vector/vc_seq.v",
            "(is_st || (is_move && !from_s)) && src_busy[src]",
            "(is_st || (is_move && !from_s)) && 1'b0",
        ),
    },
    mutation_tests={
        "burst_word_of_eight_bits": ["tiles_beyond_word_256"],
        "maximum_starts_at_zero": ["softmax"],
        "second_dimension_is_one": ["channel_operand_at_odd_widths"],
        "no_hazard_between_steps": ["chains"],
    },
)

PRESSURE = {"lat_min": 10, "lat_max": 80, "ar_pct": 70, "aw_pct": 70, "w_pct": 70, "r_pct": 80, "b_pct": 70}
TILE = {"gm": 8, "gn": 8, "nk": 2}
OPERAND, RESULT = 0x1_0000, 0x1_2000


def half(*shape: int, number: int = 0, scale: float = 1.0):
    """Normal values rounded to FP16."""
    return (np.random.default_rng([seed(), number, *shape]).standard_normal(shape) * scale).astype(np.float16)


def operands(m: int, n: int, k: int):
    """x, two weights, two per-channel operands and a full-shape one."""
    weights = [half(n, k, number=i, scale=k**-0.5) for i in (1, 2)]
    return half(m, k), *weights, half(n, number=3), half(n, number=4), half(m, n, number=5)


def expected(compiled) -> np.ndarray:
    """FP16 bits of the result from whole arrays, without tiles or registers."""
    values = {name: v.view(np.uint16) for name, v in compiled.call.operands.items()}
    for r in requests(compiled.call.trace.graph):
        if isinstance(r, Contraction):
            _, whole = product(*(padded(values[v.name]) for v in (r.a, r.b)))
            values[r.c.name] = whole[: r.c.shape[0], : r.c.shape[1]]
        else:
            got = evaluate(r.chain, [values[o.name] for o in r.operands], r.shape)
            values |= {o.name: bits for o, bits in zip(r.results, got, strict=True)}
    return values[compiled.artifact.outputs[0].name]


def padded(bits):
    """FP16 codes, rows padded to 4 and K to 32 with zeros."""
    rows, cols = bits.shape
    return fp16_codes(np.pad(bits.view(np.float16).astype(np.float64), ((0, -rows % 4), (0, -cols % 32))))


def replayed(sim, compiled, bits: np.ndarray) -> bytes:
    """Replay on the running simulation and on the model; every bit has to agree, and the result with ``bits``."""
    model, rtl = Device(ModelTransport(sim.description)), Device(sim, None, explain)
    report = replay(compiled.artifact, model, rtl)
    found = "\n".join(["", *(f.text() for f in report.findings()), *report.problems])
    checks.equal(f"findings of {compiled.summary()}", found, "\n".join([""]), n=max(1, report.compared))
    checks.true("something was compared", report.agree)
    (out,) = compiled.artifact.outputs
    raw = rtl.read(out.address, out.nbytes)
    got = ktpu.read_output(out, raw).view(np.uint16)
    checks.arrays("result against whole arrays", got, bits)
    return raw


async def _kernel(dut, call, number: int, **options) -> bytes:
    sim = await start(dut, MACHINE, seed=seed() + number, **PRESSURE)
    compiled = ktpu.compile(call, MachineSpec.from_description(sim.description), **options)
    return await drive(replayed, sim, compiled, expected(compiled))


EPILOGUES = ("silu", "relu", "gelu", "bias", "bias_silu", "add", "bias_add_silu", "geglu", "geglu_biases", "swiglu")


def epilogue(name: str, shape, **tile):
    """A product with an epilogue by name."""
    x, w, u, b, c, r = operands(*shape)
    match name:
        case "geglu":
            return ktpu.geglu(x, w, u, **tile)
        case "geglu_biases":
            return ktpu.geglu(x, w, u, gate_bias=b, up_bias=c, **tile)
        case "swiglu":
            return ktpu.geglu(x, w, u, activation="silu", **tile)
    parts = name.split("_")
    activation = parts[-1] if parts[-1] in ("silu", "relu", "gelu") else ""
    return ktpu.linear(
        x, w, bias=b if "bias" in parts else None, add=r if "add" in parts else None, activation=activation, **tile
    )


@cocotb.test()
@cocotb.parametrize(name=EPILOGUES)
async def fused_equals_staged(dut, name: str):
    """An epilogue on the tile where it arrives and the same through memory: 0 differing bits, equal results."""
    call = epilogue(name, (32, 32, 64), **TILE)
    number = EPILOGUES.index(name)
    fused = await _kernel(dut, call, number, fuse="require")
    staged = await _kernel(dut, call, 50 + number, fuse="never")
    checks.true("fused and staged results are equal", fused == staged)


@cocotb.test()
@cocotb.parametrize(gn=[1, 3, 7, 12])
async def channel_operand_at_odd_widths(dut, gn: int):
    """Per-channel words are read from any phase."""
    call = epilogue("bias", (8, 4 * gn, 32), gm=2, gn=gn, nk=1)
    await _kernel(dut, call, 100 + gn, fuse="require")


@cocotb.test()
@cocotb.parametrize(size=[(1, 1), (1, 7), (1, 8), (3, 3), (10, 16)])
async def burst_counts(dut, size: tuple[int, int]):
    """1, 7, 8, 9 and 160 sub-tiles: partial, whole and several bursts, each acknowledged and awaited."""
    gm, gn = size
    await _kernel(dut, epilogue("silu", (4 * gm, 4 * gn, 32), gm=gm, gn=gn, nk=1), 110 + gm * gn, fuse="require")


@cocotb.test()
async def whole_l1(dut):
    """256 sub-tiles and their results fill the core's L1 to the last word; 32 bursts acknowledged."""
    await _kernel(dut, epilogue("silu", (64, 64, 32), gm=16, gn=16, nk=1), 120, fuse="require")


@cocotb.test()
async def tiles_beyond_word_256(dut):
    """Two tiles of 160 sub-tiles and their result: the second arrives across L1 word 256."""
    await _kernel(dut, epilogue("geglu", (40, 64, 32), gm=10, gn=16, nk=1), 125, fuse="require")


@cocotb.test()
@cocotb.parametrize(first=[8, 136, 264, 392])
async def footprints(dut, first: int):
    """Every L1 footprint in steps of 8 words up to 512, every word of it filled or stored, every result right."""
    sim = await start(dut, MACHINE, seed=seed() + first, **PRESSURE)
    machine = MachineSpec.from_description(sim.description)
    sizes = range(first, first + 128, 8)
    await drive(_footprints, sim, machine, sizes)


def _footprints(sim, machine, sizes) -> None:
    b = ChainBuilder()
    chain = b.chain([b.op("fma", b.operand(0), b.const(0.5), b.const(1.0))])
    data = {size: half(size // 2, 16, number=size).view(np.uint16) for size in sizes}
    places = {size: (OPERAND + 0x4000 * i, RESULT + 0x4000 * i) for i, size in enumerate(sizes)}
    work = [[_footprint(machine, chain, size, *places[size])] for size in sizes]
    images = [Image(places[size][0], data[size].tobytes(), f"x{size}") for size in sizes]
    outputs = [Output(f"y{size}", places[size][1], 16 * size, "flat", (size // 2, 16)) for size in sizes]
    artifact = link(machine, [assemble(w, machine) for w in work], images, outputs)
    rtl = Device(sim, None, explain)
    report = replay(artifact, Device(ModelTransport(sim.description)), rtl)
    checks.equal("findings", [f.text() for f in report.findings()], [], n=max(1, report.compared))
    for size in sizes:
        got = np.frombuffer(rtl.read(places[size][1], 16 * size), np.uint16).reshape(-1, 16)
        checks.arrays(f"result of footprint {size}", got, evaluate(chain, [data[size]], got.shape)[0])


def _footprint(machine, chain, size: int, operand: int, result: int):
    """A pass whose operand takes the lower half of ``size`` L1 words and its result the upper half."""
    words = size // 2
    offsets = tuple(range(0, words, 4))
    walk = Walk.run(words, 32)
    streams = (Stream("x", 0, words, offsets, walk),)
    work = LaneWork(chain, 64, streams, (Store("y", words, words, offsets, walk),), ((operand, result),))
    return vector_program(0, work, machine, machine.stage_flits)


@cocotb.test()
async def staged_over_several_tiles(dut):
    """A padded grid of tiles through memory with per-channel and full-shape operands."""
    await _kernel(dut, epilogue("bias_add_silu", (50, 77, 40), gm=4, gn=4, nk=1), 130)


@cocotb.test()
@cocotb.parametrize(rows=[1, 64], width=[16, 128])
async def softmax(dut, rows: int, width: int):
    """Reductions along rows of negative values, several RUNs."""
    x = (half(rows, width).astype(np.float32) - 8).astype(np.float16)
    await _kernel(dut, ktpu.softmax(x), 200 + rows + width)


@cocotb.test()
async def softmax_keys(dut):
    """Masked columns are exactly zero."""
    await _kernel(dut, ktpu.softmax(half(16, 80), (np.arange(80) < 77).astype(np.float16)), 230)


@cocotb.test()
async def dependent_reductions(dut):
    """1,000 narrow rows one at a time on one core, all latency: the round ends before its polls do."""
    await _kernel(dut, ktpu.softmax(half(1000, 16)), 235, cores=1, interleave=1)


@cocotb.test()
async def layernorm(dut):
    """64x128, the row sums and the steady operands."""
    await _kernel(dut, ktpu.layernorm(half(64, 128), half(128, number=1), half(128, number=2)), 240)


STEPS = [
    ("add", ("a", "b")), ("mul", ("_", 0.5)), ("exp2", ("_",)), ("add", ("_", 1.0)), ("recip", ("_",)),
    ("mul", ("_", "a")), ("maximum", ("_", "b")), ("sub", ("_", 0.25)), ("absolute", ("_",)),
]  # fmt: skip
LENGTHS = (1, 2, 4, 9)


FAULTS = {
    "reserved_reduction": ("F_ENC", "VRED.reserved"),
    "descriptor_field": ("F_ENV", "DESC A1 field 7"),
    "unreadable": ("F_MEM_RD", "VBAR"),
    "unwritable": ("WR_DROP", "RUN 0"),
}


def broken(artifact, kind: str):
    """The artifact with one payload changed so that an instruction of the core faults."""
    payloads = list(artifact.payloads)
    decoded = [vector.decode_envelope(p)[1] for p in payloads]
    if kind == "reserved_reduction":
        loads = [i for i, f in enumerate(decoded) if "word" in f]
        at = next(i for i in loads if vector.disasm(decoded[i]["word"]).startswith("VRED"))
        payloads[at] |= 8 << 5
    elif kind == "descriptor_field":
        at = next(i for i, f in enumerate(decoded) if f.get("ad") == 1)
        payloads[at] |= 7 << 246
    else:
        ad = 1 if kind == "unreadable" else 2
        at = next(i for i, f in enumerate(decoded) if f.get("ad") == ad and not f["fld"])
        payloads[at] |= 1 << 67  # address bit 38, which no memory answers to
    return replace(artifact, payloads=tuple(payloads))


@cocotb.test()
@cocotb.parametrize(kind=list(FAULTS))
async def faults(dut, kind: str):
    """The same instruction faults with the same code on both, and the driver names it with its disassembly."""
    sim = await start(dut, MACHINE, seed=seed() + 600, **PRESSURE)
    compiled = ktpu.compile(ktpu.softmax(half(8, 64)), MachineSpec.from_description(sim.description))
    code, shown = FAULTS[kind]
    await drive(_faulted, sim, broken(compiled.artifact, kind), code, shown)


def _faulted(sim, artifact, code: str, shown: str) -> None:
    rtl = Device(sim, None, explain)
    report = replay(artifact, Device(ModelTransport(sim.description)), rtl)
    checks.equal("findings", [f.text() for f in report.findings()], [], n=max(1, report.compared))
    checks.true("the round failed", report.rounds[-1].failed)
    again = rtl.run(artifact)
    problems = [p for p in again.problems() if "ended in" in p]
    checks.equal("faults reported", len(problems), 1)
    checks.true(f"{code} is named", f" fault {code} " in problems[0], problems[0])
    checks.true(f"{shown!r} is shown", shown in problems[0], problems[0])


@cocotb.test()
@cocotb.parametrize(length=LENGTHS, n=[16, 1000, 4096])
async def chains(dut, length: int, n: int):
    """One to nine operations over up to 4,096 elements."""
    call = ktpu.elementwise({"a": half(n), "b": half(n, number=1)}, STEPS[:length])
    await _kernel(dut, call, 300 + LENGTHS.index(length) + n)


@cocotb.test()
@cocotb.parametrize(length=[1, 9])
async def long_chains(dut, length: int):
    """65,536 elements: many RUNs over several rounds."""
    n = 65_536
    call = ktpu.elementwise({"a": half(n), "b": half(n, number=1)}, STEPS[:length])
    await _kernel(dut, call, 400 + length)


@cocotb.test()
@cocotb.parametrize(group=[2, 4], interleave=[0, 1])
async def chain_groups(dut, group: int, interleave: int):
    """D2 and D4 groups, alternating steps or one at a time: the bits of FLAT."""
    await _kernel(dut, ktpu.gelu(half(3000)), 500 + group, group=group, interleave=interleave)
