# SPDX-License-Identifier: Apache-2.0
"""Artifacts on the model and on the machine: compiled products, illegal instructions, recovery.

The tests of illegal programs never reset: one pair of machines runs all of them, so every
program starts from what the faults before it have left behind.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import cocotb
import numpy as np

import ktpu
from kohakuabi import Artifact, Image, Output
from kohakuabi.steps import Await, Kick, Seed, Step
from kohakubench import checks, scale, seed
from kohakubench.duo import EP0, EP1, MACHINE, WORD, A, B, Node, operand
from kohakubench.insim import drive, start
from kohakubench.machines import DRAM_WORDS
from kohakudriver import Device
from kohakudriver.registers import address, fields
from kohakutpu.isa import cluster
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.model.numerics import Layout, fp16_codes, product
from kohakutpu.model.transport import ModelTransport
from ktpu.replay import replay

PRESSURE = {"lat_min": 10, "lat_max": 80, "ar_pct": 70, "aw_pct": 70, "w_pct": 70, "r_pct": 80, "b_pct": 70}
SHAPES = [((160, 96, 128), {}), ((300, 77, 100), {}), ((256, 256, 128), {"gm": 8, "gn": 8, "nk": 2})]
INPUT, AREA = 0x10000, 0x40000
AREA_BYTES = 0x8000
"""Memory one cluster may write: a start within 128 words and at most 512 words from there."""


class Kept(ModelTransport):
    """A model that keeps its state between programs, as the machine in a running bench does."""

    def reset(self) -> None:
        """Neither side is reset."""


def devices(sim, transport) -> tuple[Device, Device]:
    """The model and the running machine."""
    return Device(transport), Device(sim)


def random_product(spec: MachineSpec, shape: tuple[int, int, int], number: int, **options):
    """A compiled product of random operands, results near one."""
    m, n, k = shape
    rng = np.random.default_rng([seed(), number, m, n, k])
    clusters = options.pop("clusters", None)
    call = ktpu.matmul(rng.standard_normal((m, k)), rng.standard_normal((n, k)) / np.sqrt(k), **options)
    # random programs of this simulation read the staging store, of which the model knows nothing an earlier test left
    return ktpu.compile(call, spec, clusters=clusters, stage_operands=False)


def padded(values):
    """FP16 codes, rows padded to 4 and K to 32 with zeros."""
    rows, cols = values.shape
    return fp16_codes(np.pad(values.astype(np.float64), ((0, -rows % 4), (0, -cols % 32))))


def agree(artifact: Artifact, model: Device, rtl: Device, name: str):
    """Replay on both; every finding is an error."""
    report = replay(artifact, model, rtl)
    found = "\n".join(["", *(f.text() for f in report.findings())])
    checks.equal(f"findings of {name}", found, "\n".join([""]), n=max(1, report.compared))
    checks.true(f"{name} compared something", report.agree)
    return report


def right_result(compiled, model: Device, rtl: Device, name: str) -> None:
    """A good program: both agree, no round fails, and the result is the whole product's."""
    report = agree(compiled.artifact, model, rtl, name)
    checks.equal(f"problems of {name}", report.problems, [])
    (out,) = compiled.artifact.outputs
    got = ktpu.read_output(out, rtl.read(out.address, out.nbytes)).view(np.uint16)
    _, whole = product(*(padded(compiled.call.operands[x]) for x in ("a", "b")))
    checks.arrays(f"result of {name}", got, whole[: got.shape[0], : got.shape[1]])


@cocotb.test()
@cocotb.parametrize(shape=range(len(SHAPES)), run=range(2))
async def two_cluster_gemm(dut, shape: int, run: int):
    """Products dealt over both clusters; the third fills several rounds."""
    size, knobs = SHAPES[shape]
    weak = Random(seed() + 10 * shape + run)
    pressure = {k: v if k.startswith("lat") else weak.randint(25, 90) for k, v in PRESSURE.items()}
    sim = await start(dut, MACHINE, seed=seed() + 10 * shape + run, **pressure)
    spec = MachineSpec.from_description(sim.description)
    compiled = random_product(spec, size, run, **knobs)
    kicked = {(s.x, s.y) for s in compiled.artifact.steps if isinstance(s, Kick)}
    checks.equal("clusters used", kicked, {A, B})
    if shape == 2:
        checks.true("several rounds", compiled.artifact.meta["counters"]["rounds"] >= 3)
    model, rtl = await drive(devices, sim, ModelTransport(sim.description))
    await drive(right_result, compiled, model, rtl, f"{size}")


ILLEGAL = {
    "opcode": cluster.encode(9, raw=True),
    "fill_n": cluster.encode("FILL", n=256),
    "fill_range": cluster.encode("FILL", n=200, eoff=57, fbank=1),
    "gemm_a": cluster.encode("GEMM", gm=16, gn=1, nk=17),
    "gemm_b": cluster.encode("GEMM", gm=1, gn=2, nk=100, boff=57),
    "tiles": cluster.encode("GEMM", gm=32, gn=32, nk=1),
    "drain_tiles": cluster.encode("DRAIN", n=513),
    "dst": cluster.encode("DRAIN", n=1, dnode=1, dst_x=A[0], dst_y=A[1]),
    "node_off": cluster.encode("DRAIN", n=1, dnode=1, dst_x=1, dst_y=2, addr=16),
    "remote": cluster.encode("DRAIN", n=1, dfin=0x12),
    "fuse": cluster.encode("DRAIN", fuse=1, n=512),
    "peers": cluster.encode("FILL", n=1, npeer=1),
    "fill_address": cluster.encode("FILL", n=1, addr=1 << 38),
    "drain_address": cluster.encode("DRAIN", n=1, addr=1 << 36),
}


def faulty(compiled, position: int, payload: int, model: Device, rtl: Device, name: str) -> None:
    """One instruction replaced: the round fails by its own counts, alike on both."""
    payloads = list(compiled.artifact.payloads)
    payloads[position] = payload
    report = agree(replace(compiled.artifact, payloads=tuple(payloads)), model, rtl, name)
    checks.true(f"{name} failed", report.rounds[-1].failed)
    names = ("ENG_CTRL", "ERR_STAT", "ERR_INFO")
    want, have = (d.transport.read64([address(n) for n in names]) for d in (model, rtl))
    checks.equal(f"{name}: {names}", have, want, n=3)
    engine = fields("ENG_CTRL", have[0])
    checks.equal(f"{name}: the engine ended by itself", (engine["done"], engine["err"], engine["err_code"]), (1, 0, 0))
    checks.true(f"{name}: a fault is reported", fields("ERR_STAT", have[1])["node_fault"])


@cocotb.test()
async def fault_at_every_position(dut):
    """A compiled program with each instruction replaced in turn, a good program after each."""
    sim = await start(dut, MACHINE, seed=seed(), **PRESSURE)
    spec = MachineSpec.from_description(sim.description)
    model, rtl = await drive(devices, sim, Kept(sim.description))
    # one cluster only: the first event is the same whatever the timing
    compiled = random_product(spec, (32, 32, 128), 3, clusters=1, gm=8, gn=8, nk=1)
    good = random_product(spec, (32, 32, 64), 4)
    count = len(compiled.artifact.payloads)
    checks.equal("instructions", count, 13)
    kinds = list(ILLEGAL.items())
    turns = scale(1, len(kinds))
    await drive(right_result, compiled, model, rtl, "the whole program")
    for position in range(count):
        for turn in range(turns):
            kind, payload = kinds[(position + seed() + turn) % len(kinds)]
            name = f"position {position} {kind}"
            await drive(faulty, compiled, position, payload, model, rtl, name)
            await drive(right_result, good, model, rtl, f"good program after {name}")


class Generator:
    """Random programs without races: reads from one region, writes to one region per cluster.

    A third of the fields is drawn wide, so instructions are illegal by range, by state and by
    what memory refuses; the model says which.
    """

    def __init__(self, spec: MachineSpec, rng: Random) -> None:
        self.spec, self.rng = spec, rng
        data = np.random.default_rng([seed(), 5])
        # the longest fill starts 80 words in and reads 255 entries
        self.image = Image(INPUT, operand(data, 275, 1, Layout.A), "input")

    def _small(self, small: int, wide: int) -> int:
        return self.rng.randint(0, wide if self.rng.random() < 0.06 else small)

    def _target(self, node: Node) -> dict[str, int]:
        """Memory of the node, an endpoint, or something no transfer may name."""
        r = self.rng
        kind = r.random()
        if kind < 0.7:
            return {"addr": AREA + AREA_BYTES * (node == B) + WORD * r.randrange(128)}
        if kind < 0.76:
            return {"addr": r.choice([AREA + 8, 1 << 36, 1 << 38, 1 << 39, 0xF_FFFF_FFE0])}
        dst = r.choice([EP0, EP1, EP0, EP1, node, (0, 0)])
        buf = r.choice([0, 0, 2, 2, 5])
        extra = {"dfin": 0x12} if r.random() < 0.05 else {}
        addr = WORD * r.choice([0, 2, 6, 7, 0xFFF8]) + (1 << r.choice([4, 21, 30]) if r.random() < 0.1 else 0)
        return {"dnode": 1, "dst_x": dst[0], "dst_y": dst[1], "dbuf": buf, "addr": addr, **extra}

    def instruction(self, node: Node) -> int:
        """One payload."""
        r = self.rng
        bank = {k: r.randrange(2) for k in ("abank", "bbank")}
        match r.choices(["FILL", "GEMM", "DRAIN", "fuse", "junk"], [30, 35, 22, 8, 5])[0]:
            case "FILL":
                bad = r.random() < 0.08
                at = r.choice([INPUT + 4, 1 << 37, 1 << 38, 1 << 39]) if bad else INPUT + WORD * r.randrange(80)
                return cluster.encode(
                    "FILL",
                    sel=r.randrange(2), fbank=r.randrange(2), eoff=self._small(40, 255),
                    n=self._small(12, 400), addr=at, npeer=int(r.random() < 0.04),
                )  # fmt: skip
            case "GEMM":
                emit = {"emit": 1, **self._target(node)} if r.random() < 0.4 else {}
                return cluster.encode(
                    "GEMM",
                    gm=self._small(5, 200), gn=self._small(5, 200), nk=self._small(4, 90),
                    aoff=self._small(30, 255), boff=self._small(30, 255), acc=int(r.random() < 0.4),
                    anchor=r.choice([40, 40, 40, 36, 44, 5]), **bank, **emit,
                )  # fmt: skip
            case "DRAIN":
                return cluster.encode("DRAIN", n=self._small(20, 600), **self._target(node))
            case "fuse":
                return cluster.encode("DRAIN", fuse=1, n=self._small(12, 300))
        return cluster.encode(r.choice([0, 4, 15]), raw=True, gm=r.randrange(256), n=r.randrange(65536))

    def artifact(self) -> Artifact:
        """One round: a program for one of the clusters, or one for each."""
        nodes = self.rng.choice([[A], [B], [A, B]])
        payloads: list[int] = []
        kicks: list[Step] = []
        for node in nodes:
            body = [self.instruction(node) for _ in range(self.rng.randint(4, 8))]
            kicks.append(Kick(*node, len(payloads), len(body)))
            payloads += body
        waits = [Await(k.x, k.y, k.n) for k in kicks if isinstance(k, Kick)]
        s = self.spec
        return Artifact(
            machine=MACHINE,
            machine_hash=s.digest(),
            payloads=tuple(payloads),
            images=(self.image,),
            steps=(Seed(s.credit), *kicks, *waits),
            outputs=(Output("area", AREA, 2 * AREA_BYTES, "flat", (AREA_BYTES,)),),
            limits={"stage_flits": s.stage_flits, "ncmd": s.ncmd, "credit_max": s.credit_max},
        )


@cocotb.test()
async def random_illegal_programs(dut):
    """Legal and illegal instructions mixed, program after program without a reset."""
    sim = await start(dut, MACHINE, seed=seed() + 3, **PRESSURE)
    # random fills read anywhere, and a reset leaves what earlier tests put into memory
    await sim.dram.load(0, bytes(32 * DRAM_WORDS))
    spec = MachineSpec.from_description(sim.description)
    transport = Kept(sim.description)
    model, rtl = await drive(devices, sim, transport)
    generator = Generator(spec, Random(seed() + 3))
    for number in range(scale(60, 2000)):
        artifact = generator.artifact()
        await drive(agree, artifact, model, rtl, f"program {number}")
    done = [c for shell in transport.machine.shells.values() for c in shell.completions]
    faults = [c.arg & 0xFF for c in done if c.code == 4]
    dut._log.info("%d instructions, %d faults, codes %s", len(done), len(faults), sorted(set(faults)))
    checks.true("legal and illegal", len(faults) > len(done) // 10 and len(faults) < len(done) // 2, str(len(faults)))
    checks.true("many kinds of fault", len(set(faults)) >= 10, str(sorted(set(faults))))
