# SPDX-License-Identifier: Apache-2.0
"""Cluster to vector core on the whole machine: tiles delivered as bursts, epilogues computed on them.

The same resident tile goes to memory and into the core, which writes its L1 back (mm_mesh_ext_paths: to the bench
too); epilogues run on the delivered tile (fused) and on the tile read back from memory (staged). The negative cases
of docs/spec/fabric.md 1.7 and docs/spec/vector.md 10, 11.3 follow.
"""

import cocotb
import numpy as np

from kohakuabi import Image
from kohakuabi.steps import Await
from kohakubench import checks, seed
from kohakubench import vector_peer as vp
from kohakubench.duo import burst
from kohakubench.insim import drive, start
from kohakubench.machines import machine_bench
from kohakubench.mesh_paths import CTRL, MG, VC, WORD, Mailbox
from kohakudriver import Device
from kohakudriver import generated as g
from kohakudriver.registers import fields
from kohakutpu.isa import cluster, message
from kohakutpu.isa import vector as isa
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.transport import ModelTransport
from kohakutpu.program.vector_words import Halt, Vdrain
from ktpu.replay import replay

MACHINE = "mm_mesh"
BENCH = machine_bench(
    "mm_mesh_peer",
    MACHINE,
    timeout_cycles=4_000_000,
    wall_s=1800,
    mutations={
        "burst_place": (
            "rtl/vector/vc_mem_recv.v",
            "assign wr_word = wr_granule[8:0];",
            "assign wr_word = {wr_granule[8:4], 1'b0, wr_granule[2:0]};",
        ),
        "store_place": (
            "rtl/vector/vc_mem.v",
            "wr_in ? wr_in_word : st_word",
            "wr_in ? wr_in_word : {1'b0, st_word[7:0]}",
        ),
        "event_lost": ("rtl/vector/vc_mem.v", "assign ev_cudata = rejected;", "assign ev_cudata = 1'b0;"),
        "range": ("rtl/vector/vc_mem_recv.v", "(top[16:9] != 8'd0)", "(top[16:10] != 7'd0)"),
        "ack_to_source": ("rtl/control/cud_rx.v", "(in_named != 8'd0) ? in_named : in_src", "in_src"),
        "sender_unseen": ("rtl/control/cud_rx.v", "is_data  = open_q && in_src == src_q", "is_data  = open_q"),
    },
    mutation_tests={
        "burst_place": ["delivered"],
        "store_place": ["epilogue"],
        "event_lost": ["unknown_buffer"],
        "range": ["past_the_end"],
        "ack_to_source": ["delivered"],
        "sender_unseen": ["two_senders"],
    },
)
PRESSURE = {"lat_min": 10, "lat_max": 80, "ar_pct": 70, "aw_pct": 70, "w_pct": 70, "r_pct": 80, "b_pct": 70}
SIZES = {1: (1, 1), 8: (8, 8), 9: (8, 8), 64: (8, 8), 160: (16, 10), 256: (16, 16)}
"""Sub-tiles drained, and the tile that holds them."""
DATA_RECEIVED = 3


async def opened(dut, number: int, **dram: int):
    """The machine after reset; signals of earlier tests of this simulation are not looked at."""
    sim = await start(dut, MACHINE, seed=seed() + number, **dram)
    sim.before = len(await sim._signals_async())
    return sim, MachineSpec.from_description(sim.description)


async def acknowledgements(sim) -> list[int]:
    """Arguments of the core's DATA_RECEIVED at the orchestrator, in order."""
    flits = (await sim._signals_async())[sim.before :]
    mine = [f for f in flits if (f >> 276 & 15, f >> 272 & 15) == VC and f >> 248 & 255 == DATA_RECEIVED]
    return [f >> 216 & 0xFFFF_FFFF for f in mine]


async def replayed(sim, artifact, *, agree: bool = True) -> None:
    """Run on the machine and on the model: every completion, result and image has to agree."""
    report = await drive(lambda: replay(artifact, Device(ModelTransport(sim.description)), Device(sim)))
    checks.equal("findings", [f.text() for f in report.findings()], [], n=max(1, report.compared))
    checks.equal("problems", report.problems, [])
    checks.equal("agree", report.agree, agree)


def write_back(n: int, word: int, out: int) -> list[int]:
    """A kernel that drains n words of L1 to memory."""
    return [*vp.image([Vdrain(0, word), Halt()]), *vp.describe(0, out, 32, n), isa.run(0)]


@cocotb.test()
@cocotb.parametrize(n=list(SIZES))
async def delivered(dut, n: int):
    """One resident tile to memory, and into the core and back; 1, 1, 2, 8, 20, 32 acknowledgements."""
    sim, spec = await opened(dut, n, **PRESSURE)
    gm, gn = SIZES[n]
    word = 512 - 8 * vp.bursts(n)
    drains = [cluster.encode("DRAIN", n=n, addr=vp.TILE_AT), vp.node_drain(n, word)]
    program = vp.Program(spec)
    program.round(MG, [*vp.multiply(0, gm, gn), *drains])
    program.round(VC, write_back(n, word, vp.OUT_AT), first=[Await(*VC, vp.bursts(n))])
    outputs = [vp.words_output("tile", vp.TILE_AT, n), vp.words_output("core", vp.OUT_AT, n)]
    artifact = program.artifact(vp.operand_images(np.random.default_rng([seed(), n]), 1, gm, gn), outputs)
    await replayed(sim, artifact)
    checks.equal("acknowledgements", await acknowledgements(sim), [0] * vp.bursts(n))
    tile = await sim.dram.read(vp.TILE_AT, WORD * n)
    checks.equal("image through the core", await sim.dram.read(vp.OUT_AT, WORD * n), tile, n=n)
    checks.equal("image at the host", await drive(lambda: Device(sim).read(vp.OUT_AT, WORD * n)), tile, n=n)
    checks.true("a tile", len(set(np.frombuffer(tile, np.uint16).tolist())) > 8)


CASES = (
    [(vp.SILU, n) for n in SIZES] + [(vp.BIAS_SILU, n) for n in (9, 64, 160)] + [(vp.GEGLU, n) for n in (8, 64, 160)]
)


@cocotb.test()
@cocotb.parametrize(case=range(len(CASES)))
async def epilogue(dut, case: int):
    """silu, bias + silu, geglu on delivered tiles: the reference's bits, and the staged form's."""
    e, n = CASES[case]
    sim, spec = await opened(dut, case, **PRESSURE)
    gm, gn = SIZES[n]
    rng = np.random.default_rng([seed(), case])
    bias = np.tile(rng.standard_normal((8, 1, 4)).astype(np.float16), (1, 4, 1)).tobytes()
    span = 8 * vp.bursts(n)
    program = vp.Program(spec)
    tiles = []
    for r in range(e.tiles):
        tiles += [
            *vp.multiply(r, gm, gn),
            cluster.encode("DRAIN", n=n, addr=vp.TILE_AT + vp.TILE_STEP * r),
            vp.node_drain(n, r * span),
        ]
    program.round(MG, tiles)
    program.round(VC, vp.kernel(e, n, vp.OUT_AT, None), first=[Await(*VC, e.tiles * vp.bursts(n))])
    program.round(VC, vp.kernel(e, n, vp.OUT_AT + vp.TILE_STEP, vp.TILE_AT))
    outputs = [vp.words_output("fused", vp.OUT_AT, n), vp.words_output("staged", vp.OUT_AT + vp.TILE_STEP, n)]
    images = [*vp.operand_images(rng, e.tiles, gm, gn), Image(vp.BIAS_AT, bias, "bias")]
    await replayed(sim, program.artifact(images, outputs))
    checks.equal("acknowledgements", await acknowledgements(sim), [0] * (e.tiles * vp.bursts(n)))
    memory = [await sim.dram.read(vp.TILE_AT + vp.TILE_STEP * r, WORD * n) for r in range(e.tiles)]
    fused, staged = [await sim.dram.read(o.address, WORD * n) for o in outputs]
    checks.equal("fused and staged", fused, staged, n=n)
    got = np.frombuffer(fused, np.uint16).reshape(n, 16)
    checks.arrays("epilogue", got, vp.expected(e, memory, n, bias))


async def _run(sim, program: vp.Program, images=(), outputs=()):
    """Run alone, without the model."""
    return await drive(lambda: Device(sim).run(program.artifact(images, outputs)))


def _one_tile(spec: MachineSpec, drains: list[int], n: int = 64) -> tuple[vp.Program, list[Image]]:
    gm, gn = SIZES[n]
    program = vp.Program(spec)
    program.round(MG, [*vp.multiply(0, gm, gn), cluster.encode("DRAIN", n=n, addr=vp.TILE_AT), *drains])
    return program, vp.operand_images(np.random.default_rng([seed(), 77]), 1, gm, gn)


@cocotb.test()
async def missing_acknowledgement(dut):
    """A RUN sent before the last burst: the core computes on what is there; only the comparison finds it."""
    sim, spec = await opened(dut, 0, **PRESSURE)
    program, images = _one_tile(spec, [vp.node_drain(8, 0)], 9)
    program.round(VC, vp.kernel(vp.COPY, 9, vp.OUT_AT, None))
    done = await _run(sim, program, images)
    checks.equal("problems", done.problems(), [])
    tile, got = [await sim.dram.read(at, WORD * 9) for at in (vp.TILE_AT, vp.OUT_AT)]
    checks.equal("delivered sub-tiles", got[: 8 * WORD], tile[: 8 * WORD], n=8)
    checks.true("the missing sub-tile differs", got[8 * WORD :] != tile[8 * WORD :])


@cocotb.test()
async def no_named_receiver(dut):
    """dack = 0: the sender drops the acknowledgements; the data arrive, an await ends at the poll limit."""
    sim, spec = await opened(dut, 0, **PRESSURE)
    program, images = _one_tile(spec, [vp.node_drain(9, 0, ack=(0, 0))], 9)
    program.wait(VC, 2)
    done = await _run(sim, program, images)
    checks.equal("engine", fields("ENG_CTRL", done.rounds[-1].eng_ctrl)["err_code"], g.EngineError.POLL_LIMIT)
    checks.equal("acknowledgements", await acknowledgements(sim), [])
    back = vp.Program(spec)
    back.round(VC, write_back(9, 0, vp.OUT_AT))
    done = await _run(sim, back)
    checks.equal("problems", done.problems(), [])
    tile = await sim.dram.read(vp.TILE_AT, WORD * 9)
    checks.equal("data", await sim.dram.read(vp.OUT_AT, WORD * 9), tile, n=9)


async def _rejected(dut, drains: list[int], acks: list[int], survivors: dict[int, int]) -> None:
    """A rejected burst: acknowledged with its reason, reported once by the next RUN, L1 untouched by it.

    Args:
        acks: arguments of the acknowledgements in order.
        survivors: L1 word -> sub-tile that has to be there; 64 words from 448 are looked at.
    """
    sim, spec = await opened(dut, 0, **PRESSURE)
    program, images = _one_tile(spec, drains)
    program.wait(VC, len(acks))
    done = await _run(sim, program, images)
    checks.equal("rejected at the orchestrator", ["ERR_STAT.data_reject" in p for p in done.problems()][:1], [True])
    checks.equal("acknowledgements", await acknowledgements(sim), acks)
    back = write_back(64, 448, vp.OUT_AT)
    first = vp.Program(spec)
    first.round(VC, back)
    done = await _run(sim, first)
    named = [p for p in done.problems() if f"instruction {len(back) - 1} ended in VC fault F_CUDATA" in p]
    checks.equal("reported by the RUN", len(named), 1)
    again = vp.Program(spec)
    again.round(VC, back)
    done = await _run(sim, again)
    checks.equal("reported once", done.problems(), [])
    tile = await sim.dram.read(vp.TILE_AT, WORD * 64)
    got = await sim.dram.read(vp.OUT_AT, WORD * 64)
    want = b"".join(
        tile[WORD * survivors[w] : WORD * survivors[w] + WORD] if w in survivors else bytes(WORD)
        for w in range(448, 512)
    )
    checks.equal("L1", got, want, n=64)


@cocotb.test()
async def unknown_buffer(dut):
    """Buffer 1: reason 1 for every burst."""
    bad = 1 << 31 | 1 << 24 | 1
    await _rejected(dut, [vp.node_drain(9, 448, buf=1)], [bad, bad], {})


@cocotb.test()
async def past_the_end(dut):
    """A range one granule too long: its last burst is refused, the ones before are stored."""
    bad = 1 << 31 | 2 << 24
    await _rejected(dut, [vp.node_drain(16, 497)], [0, bad], {497 + i: i for i in range(8)})


@cocotb.test()
async def up_to_the_end(dut):
    """The same with one granule less fits."""
    sim, spec = await opened(dut, 0, **PRESSURE)
    program, images = _one_tile(spec, [vp.node_drain(16, 496)])
    program.round(VC, write_back(16, 496, vp.OUT_AT), first=[Await(*VC, 2)])
    await replayed(sim, program.artifact(images, [vp.words_output("core", vp.OUT_AT, 16)]))
    tile = await sim.dram.read(vp.TILE_AT, WORD * 16)
    checks.equal("L1", await sim.dram.read(vp.OUT_AT, WORD * 16), tile, n=16)


def _words(rng: np.random.Generator, n: int) -> list[int]:
    return [int.from_bytes(rng.bytes(WORD), "little") for _ in range(n)]


async def _l1(sim, spec: MachineSpec, word: int, n: int) -> bytes:
    """L1 words, through a kernel of the core."""
    back = vp.Program(spec)
    back.round(VC, write_back(n, word, vp.OUT_AT))
    done = await _run(sim, back)
    checks.equal("write back", done.problems(), [])
    return bytes(await sim.dram.read(vp.OUT_AT, WORD * n))


@cocotb.test()
async def two_senders(dut):
    """A burst of the controller is open when the cluster's come: those get reason 4, the open one is whole."""
    sim, spec = await opened(dut, 0, **PRESSURE)
    box = Mailbox(sim)
    mine = _words(np.random.default_rng(seed()), 5)
    flits = burst(VC, CTRL, 7, 0, 300, mine, CTRL)
    for f in flits[:3]:
        await box.send(f)
    program, images = _one_tile(spec, [vp.node_drain(16, 64)])
    program.wait(VC, 2)
    done = await _run(sim, program, images)
    checks.equal("rejected at the orchestrator", ["ERR_STAT.data_reject" in p for p in done.problems()][:1], [True])
    for f in flits[3:]:
        await box.send(f)
    await box.signals(VC, 3)
    bad = 1 << 31 | 4 << 24
    checks.equal("acknowledgements", await acknowledgements(sim), [bad, bad, 0])
    clear = vp.Program(spec)
    clear.round(VC, [isa.run(0)])
    done = await _run(sim, clear)
    checks.true("F_CUDATA", any("F_CUDATA" in p for p in done.problems()), str(done.problems()))
    checks.equal("open burst", await _l1(sim, spec, 300, 5), b"".join(w.to_bytes(WORD, "little") for w in mine), n=5)
    checks.equal("second sender's words", await _l1(sim, spec, 64, 16), bytes(16 * WORD), n=16)


@cocotb.test()
async def cut_short(dut):
    """`last` before the count: reason 5 when the count ends. A burst that stops for good is never acknowledged."""
    sim, spec = await opened(dut, 0, **PRESSURE)
    box = Mailbox(sim)
    mine = _words(np.random.default_rng(seed() + 1), 4)
    flits = burst(VC, CTRL, 7, 0, 200, mine, CTRL)
    flits[2] |= 1 << 259
    for f in flits:
        await box.send(f)
    await box.signals(VC, 1)
    checks.equal("acknowledgement", await acknowledgements(sim), [1 << 31 | 5 << 24])
    clear = vp.Program(spec)
    clear.round(VC, [isa.run(0)])
    done = await _run(sim, clear)
    checks.true("F_CUDATA", any("F_CUDATA" in p for p in done.problems()), str(done.problems()))
    want = b"".join(w.to_bytes(WORD, "little") for w in mine[:2]) + bytes(2 * WORD)
    checks.equal("words up to the wrong one", await _l1(sim, spec, 200, 4), want, n=4)
    for f in burst(VC, CTRL, 7, 0, 240, mine, CTRL)[:3]:
        await box.send(f)
    wait = vp.Program(spec)
    wait.wait(VC, 1)
    done = await _run(sim, wait)
    checks.equal("engine", fields("ENG_CTRL", done.rounds[-1].eng_ctrl)["err_code"], g.EngineError.POLL_LIMIT)
    checks.equal("acknowledgements", len(await acknowledgements(sim)), 1)


@cocotb.test()
async def discovery(dut):
    """The core answers at its place with its type, one buffer and its version."""
    sim, _ = await opened(dut, 0)
    box = Mailbox(sim)
    await box.send(message.encode("CU_CTRL_REQ", dst=VC, src=CTRL, txn=0x32, index=0))
    seen = await box.reply()
    checks.equal("source", (seen.src, seen.txn), (VC, 0x32))
    caps = seen.payload >> 176 & (1 << 64) - 1
    checks.equal("cu_type", caps >> 48, 0x5643)
    checks.equal("n_buffers", caps >> 36 & 15, 1)
    checks.equal("inst_depth", caps >> 20 & 0xFFFF, 32)
    checks.equal("max_inflight", caps >> 16 & 15, 1)
