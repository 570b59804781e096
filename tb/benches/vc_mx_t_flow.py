# SPDX-License-Identifier: Apache-2.0
"""A quantising VDRAIN among everything else: blocked links, other commands, reset, cycles, random programs."""

from __future__ import annotations

import cocotb

from benches.vc_core_rig import BAD_WRITE, Rig, play_random
from benches.vc_mx_rig import ENTRY, IN, OUT, drain, halves, peer
from kohakubench import checks, clocks, figures, scale, seed
from kohakubench.vector_programs import SOURCE, TARGET

START = "VSETMODE FLAT; S0 = 128; VSETVL S0\n"


def mixture(rig: Rig) -> str:
    """Drains of all kinds one after the other; descriptors written."""
    rig.describe(0, TARGET, (ENTRY, 5))
    rig.describe(1, 0x110100, (1, 3))
    rig.describe(2, TARGET + 0x1000, (32, 9))
    rig.describe(3, TARGET + 0x2000, (2 * ENTRY, 3))
    rig.describe(4, SOURCE, (32, 12))
    return f"VFILL A4, L1 60\n{drain(0, 0)}{peer(1, 16, 1)}VDRAIN A2, L1 90\n{drain(1, 40, 3)}{drain(0, 90)}"


@cocotb.test()
async def blocked_link(dut):
    """The output link stalls once, at flit positions one after the other, for 1 to 500 cycles, and at random."""
    clocks.start(dut.clk)
    step = scale(5, 1)
    for n in range(0, 90, step):
        rig = Rig(dut, seed() + n, block_len=(60, 23, 11, 500, 8, 5, 3, 2, 1)[n // step % 9], cfg_lat=10)
        halves(rig, 256)
        rig.text(mixture(rig))
        rig.config["block_flit"] = rig.received + rig.go() + n
        rig.go()
        await rig.run()
    for n in range(scale(4, 60)):
        rig = Rig(dut, seed() + n, cfg_busy=(128, 240, 20, 200, 250, 100)[n % 6])
        halves(rig, 256)
        rig.text(mixture(rig))
        for _ in range(4):
            rig.go()
        await rig.run()


@cocotb.test()
async def words_of_the_moment(dut):
    """The words are read before a later store or fill changes them, however long the link is blocked."""
    clocks.start(dut.clk)
    for busy in (0, 120, 230):
        rig = Rig(dut, seed(), cfg_busy=busy, cfg_lat=2)
        rig.install_dump()
        halves(rig, 512)
        for n in range(scale(4, 40)):
            rig.describe(0, TARGET + 0x800 * n, (ENTRY, 4))
            rig.describe(1, 0x110000, (1, 4))
            rig.describe(2, 0, (1, 16))
            rig.describe(4, SOURCE + 0x400 * n, (32, 32))
            text = START + "VLD.FP16 v0, A2+64; VADD v1, v0, v0\n" + drain(0) + "VST.FP16 v1, A2; VST.FP16 v0, A2+24\n"
            text += peer(1, 0, 1) + "VFILL A4, L1 0; VMUL v2, v1, v0\n" + drain(1) + "VST.FP16 v2, A2+8\n" + drain(0)
            rig.text(text)
            rig.go()
        rig.dump()
        await rig.run()


@cocotb.test()
async def beside_fills_and_bursts(dut):
    """Computed words drained while the next batch is filled and bursts of other units arrive."""
    clocks.start(dut.clk)
    for block in range(scale(3, 20)):
        gap, busy = ((0, 0), (120, 60), (60, 0))[block % 3]
        rig = Rig(dut, seed() + block, cfg_order=block % 3, cfg_gap=gap, cfg_busy=busy)
        rig.install_dump()
        rig.describe(0, 0, (1, 8))
        text = START
        for step in range(4):
            half = 64 * (step % 2)
            text += f"VFILL A{4 + step % 2}, L1 {half}; VLD.FP16 v0, A0+{64 - half}; VMUL v1, v0, v0\n"
            text += f"VST.FP16 v1, A0+{128 + 16 * step}; VST.FP16 v0, A0+{136 + 16 * step}\n"
            text += drain(step % 2, 128 + 16 * step, 1) + f"VDRAIN A3, L1 {128 + 8 * step}\n"
        rig.text(text + peer(1, 128, 2))
        rig.describe(2, 0x110040, (1, 8))
        rig.describe(4, SOURCE, (32, 64))
        rig.describe(5, SOURCE + 0x1000, (32, 64))
        for n in range(scale(3, 12)):
            rig.describe(1, TARGET + 0x1000 * n, (ENTRY, 2))
            rig.describe(3, TARGET + 0x8000 + 0x1000 * n, (32, 16))
            rig.describe(0, 0, (1, 8))
            rig.go()
            accepted, at = len(rig.inst), 260
            for k in range(rig.rng.randrange(1, 6)):
                length = rig.rng.choice((1, 8, 40))
                rig.burst(at, rig.words(length), gap=k % 4, delay=rig.rng.randrange(400), accepted=accepted)
                at += length
            rig.dump()
            for ad in (2, 4):
                rig.descriptors.pop(ad)
            rig.describe(2, 0x110040, (1, 8))
            rig.describe(4, SOURCE, (32, 64))
        await rig.run()


@cocotb.test()
async def refused_writes(dut):
    """A refused burst inside a quantising drain: it alone is missing and the RUN ends with WR_DROP."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_ack=60)
    halves(rig, 256)
    for place in (0, 5, 8, 17, 35):
        rig.describe(0, 32 * (BAD_WRITE - place), (ENTRY, 9))
        rig.describe(1, TARGET + 0x1000 * place, (ENTRY, 9))
        rig.text(drain(0, 3))
        rig.go()
        checks.equal("WR_DROP", rig.network.signals[-1] >> 216 & 0xFFFFFFFF, 0xFAB0_0902)
        rig.text(drain(1, 40, 1))
        rig.go()
    await rig.run()


@cocotb.test()
async def reset_in_the_middle(dut):
    """Reset in any cycle of a quantising drain, the link free or blocked: the next script runs as on a fresh core."""
    clocks.start(dut.clk)
    early = late = 0
    count = scale(12, 200)
    for n in range(count):
        busy = (0, 200)[n % 2]
        rig = Rig(dut, seed() + n, cfg_busy=busy)
        rig.text(drain(0) + peer(1, 0, 1))
        rig.describe(0, TARGET, (ENTRY, 8))
        rig.describe(1, 0, (1, 8))
        index = rig.go()
        sent = await rig.cut(570 + 300 * n // count * (2 if busy else 1))
        early, late = early + (sent == index), late + (sent > index)
        rig = Rig(dut, seed() + n)
        halves(rig, 72)
        rig.describe(0, TARGET, (ENTRY, 9))
        rig.describe(1, 0x110000, (1, 9))
        rig.text(drain(1) + peer(0, 0, 1))
        rig.go()
        await rig.run()
    checks.true("before the first flit and after it", early > 0 and late > 3, f"{early} and {late}")


@cocotb.test()
async def cycles_of_a_drain(dut):
    """Cycles of E = 1..32 entries to memory and to a peer against an empty kernel, and where the flits stand."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    halves(rig, 512)
    rig.text("VBAR")
    rig.text(drain(0), 20)
    rig.text(peer(1, 0, 1), 40)
    empty = rig.go()
    sizes = (1, 2, 3, 7, 8, 31, 32)
    marks = []
    for n in sizes:
        rig.describe(0, TARGET, (ENTRY, n))
        rig.describe(1, 0, (1, n))
        marks.append((n, rig.go(20), rig.go(40)))
    t = await rig.run()
    base, lat, measured = t.cycles(empty), int(dut.L1_LAT.value), []
    for n, to_memory, to_peer in marks:
        for name, index in (("memory", to_memory), ("peer", to_peer)):
            spent, goal = t.cycles(index) - base, IN * n + 17 + lat
            checks.true(f"{n} entries to {name}: {spent} cycles within {goal}", spent <= goal)
            measured.append({"name": f"VDRAIN MX to {name}", "n": n, "cycles": spent, "bound": goal, "goal": goal})
    figures.write("mx_drains", measured)
    # a descriptor leaves with its first word behind it
    heads = [k for k, (_, f) in enumerate(t.out) if f >> 268 & 15 == 1]
    gaps = {t.out[k + 1][0] - t.out[k][0] for k in heads}
    checks.equal("cycles from a write descriptor to its first word", gaps, {1}, n=len(heads))
    words = [c for c, f in t.out if f >> 268 & 15 == 4][-OUT * sizes[-1] :]
    checks.equal("cycles of the last drain", words[-1] - words[0], IN * (sizes[-1] - 1) + OUT - 2)


@cocotb.test()
async def random_programs(dut):
    """Random programs with quantising drains on one core that keeps its state; after two of three all is drained."""
    clocks.start(dut.clk)
    for block in range(scale(2, 100)):
        await play_random(dut, block, quantising=True)
