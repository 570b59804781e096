# SPDX-License-Identifier: Apache-2.0
"""Fills, drains and their failures on the whole core (docs/spec/vector.md 7.8 to 7.10, 9)."""

from __future__ import annotations

import cocotb

from benches.vc_core_rig import BAD_READ, BAD_WRITE, Rig
from kohakubench import checks, clocks, scale, seed, slow
from kohakubench.vector_programs import SOURCE, TARGET

START = "VSETMODE FLAT; S0 = 128; VSETVL S0\n"
USES = {
    "load": "VLD.FP16 v1, A1",
    "load_wide": "VLD.FP32 v1, A1",
    "store": "VST.FP16 v1, A1",
    "drain": "VDRAIN A2, L1 20",
    "peer": "VDRAIN A3, L1 24 -> node (3,1) buf 0",
    "fill": "VFILL A4, L1 27",
    "bar": "VBAR",
    "halt": "VHALT",
}


@cocotb.test()
async def read_errors(dut):
    """A failed word at each place of a fill, every kind of first use, responses in order, reversed and mixed, soon and
    late: the same faulting instruction and the same state each time.
    """
    clocks.start(dut.clk)
    for order in range(3):
        rig = Rig(dut, seed(), cfg_order=order, cfg_lat=(3, 300, 40)[order], cfg_gap=(0, 0, 150)[order])
        rig.install_dump()
        for place in (0, 3, 7):
            for name, use in USES.items():
                rig.describe(0, 32 * (BAD_READ - place), (32, 8))
                rig.describe(1, 16, (1, 16))
                rig.describe(2, TARGET, (32, 8))
                rig.describe(3, 0x11_0000, (1, 8))
                rig.describe(4, SOURCE, (32, 4))
                rig.text(f"{START}VMOV v1, K1; VFILL A4, L1 60; VFILL A0, L1 20; VADD v2, v1, v1; {use}; VMOV v2, K2")
                index = rig.go()
                checks.equal(f"fault of {name}", rig.network.signals[-1] >> 216 & 0xFF, 0x10)
                checks.true("one completion", index + 1 == len(rig.network.signals) - rig.received)
                if name in ("load", "store", "halt") or place == 3:
                    rig.dump()
        await rig.run()


@cocotb.test()
async def missing_barriers(dut):
    """Loads, stores and drains of outstanding words wait; a fill over outstanding words too; no VBAR anywhere."""
    clocks.start(dut.clk)
    for block in range(scale(3, 12)):
        rig = Rig(
            dut, seed() + block, cfg_order=block % 3, cfg_lat=(200, 60, 10)[block % 3], cfg_gap=(0, 100, 230)[block % 3]
        )
        rig.install_dump()
        for n in range(6):
            rig.describe(0, SOURCE + 0x400 * n, (32, 40))
            rig.describe(1, 100, (1, 16))
            rig.describe(2, TARGET + 0x2000 * n, (32, 40))
            rig.describe(3, SOURCE + 0x200 * n, (32, 40))
            text = START + "VFILL A0, L1 100\n"
            text += (
                "VLD.FP16 v1, A1; VST.FP32 v1, A1+24; VDRAIN A2, L1 100",
                "VST.FP16 v3, A1+32; VFILL A3, L1 110; VLD.FP32 v2, A1+8; VDRAIN A2, L1 100",
                "VFILL A3, L1 100; VDRAIN A2, L1 100; VFILL A0, L1 356; VLD.FP16 v5, A1",
            )[n % 3]
            rig.text(text)
            rig.go()
            rig.dump()
        await rig.run()


def adding_kernel(total: int) -> str:
    """Two operands and their sum in the first ``total`` words of L1, every word of the sum computed and stored.

    Of one word the sum replaces the operand, of two both operands are one. A result longer than its operands reads
    on into what follows them.
    """
    n = max(1, total // 3)
    second, result = (n, 2 * n) if total > 2 else (0, total - 1)
    out = total - result
    text = f"VSETMODE FLAT; VFILL A0, L1 0; VFILL A1, L1 {second}; VBAR\n"
    for c in range(0, out, 8):
        if c == 0 or out - c < 8:
            text += f"S0 = {16 * min(8, out - c)}; VSETVL S0\n"
        text += f"VLD.FP16 v0, A5{c:+d}; VLD.FP16 v1, A5{second + c:+d}; VADD v2, v0, v1\n"
        text += f"VST.FP16 v2, A5{result + c:+d}\n"
    return text + f"VDRAIN A2, L1 {result}"


@cocotb.test()
async def footprints(dut):
    """Two operands and their sum in a total footprint of 1 to 512 words, responses in any order."""
    clocks.start(dut.clk)
    totals = range(1, 513) if slow() else (*range(1, 10), *range(16, 513, 31), 511, 512)
    for order in range(3):
        rig = Rig(dut, seed() + order, cfg_order=order, cfg_lat=20)
        rig.install_dump()
        rig.describe(5, 0, (1, 512))
        for total in totals:
            n = max(1, total // 3)
            rig.describe(0, SOURCE + 32 * (total % 64), (32, n))
            rig.describe(1, SOURCE + 0x2000 - 32 * (total % 32), (32, n))
            rig.describe(2, TARGET + 0x2000 * (total % 8), (32, total - 2 * n if total > 2 else 1))
            rig.text(adding_kernel(total))
            rig.go()
        rig.dump()
        await rig.run(20_000_000)


@cocotb.test()
async def refused_writes(dut):
    """A refused burst inside a VDRAIN: it alone is missing, the RUN ends with WR_DROP, the next one is good."""
    clocks.start(dut.clk)
    for lat in (1, 60, 600):
        rig = Rig(dut, seed(), cfg_ack=lat)
        rig.install_dump()
        rig.burst(0, rig.words(256))
        for place in (0, 5, 9, 15, 24):
            rig.describe(0, 32 * (BAD_WRITE - place), (32, 25))
            rig.describe(1, TARGET, (32, 25))
            rig.text("VDRAIN A0, L1 3")
            rig.go()
            checks.equal("WR_DROP", rig.network.signals[-1] >> 216 & 0xFFFFFFFF, 0xFAB0_0902)
            rig.text("VDRAIN A1, L1 3; VDRAIN A0, L1 30; VSETMODE reserved9")
            rig.go()
            rig.text("VDRAIN A1, L1 40")
            rig.go()
        rig.dump()
        await rig.run()


@cocotb.test()
async def completion_follows_the_acknowledgement(dut):
    """With slow acknowledgements no RUN completes before its last write is acknowledged."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_ack=400)
    rig.describe(0, TARGET, (32, 20))
    rig.text("VDRAIN A0, L1 0")
    index = [rig.go(last=n) for n in (0, 0, 1)]
    t = await rig.run()
    ends = [c for c, f in t.out if f >> 268 & 15 == 4 and f >> 259 & 1]
    left = [c for c, f in t.out if f >> 268 & 15 == 6]
    for n, i in enumerate(index):
        checks.true(f"RUN {n}", left[i] > ends[3 * n + 2] + 400, f"{left[i]} after {ends[3 * n + 2]}")


@cocotb.test()
async def blocked_link(dut):
    """The output link stalls once, at every flit position in turn, for 1 to 500 cycles."""
    clocks.start(dut.clk)
    text = START + "VFILL A0, L1 0; VLD.FP16 v1, A1; VADD v2, v1, v1; VST.FP16 v2, A1+20; VFILL A3, L1 60\n"
    text += "VDRAIN A2, L1 20; VDRAIN A4, L1 20 -> node (3,1) buf 0; VBAR; VLD.FP32 v3, A1+60"
    positions = scale(6, 110)
    for n in range(positions):
        rig = Rig(dut, seed() + n, block_len=(500, 60, 7, 2, 1)[n % 5], cfg_lat=10)
        rig.describe(0, SOURCE, (32, 10))
        rig.describe(1, 0, (1, 16))
        rig.describe(2, TARGET, (32, 10), (640, 2))
        rig.describe(3, SOURCE + 0x800, (64, 10))
        rig.describe(4, 0x11_0000, (1, 9))
        rig.text(text)
        index = rig.go()
        rig.config["block_flit"] = index + (n if positions > 100 else 13 * n)
        rig.go()
        rig.install_dump()
        rig.dump()
        await rig.run()


@cocotb.test()
async def watchdog(dut):
    """Memory stops answering in the middle of a fill: F_WDOG where F_MEM_RD would stand, and the core goes on."""
    clocks.start(dut.clk)
    for answered, use in ((0, "VBAR"), (5, "VLD.FP16 v1, A1"), (39, "VHALT"), (7, "VDRAIN A2, L1 20")):
        rig = Rig(dut, seed(), cfg_limit=answered, cfg_lat=10)
        rig.describe(0, SOURCE, (32, 40))
        rig.describe(1, 16, (1, 16))
        rig.describe(2, TARGET, (32, 8))
        rig.text(f"{START}VMOV v1, K1; VFILL A0, L1 20; VADD v2, v1, v1; {use}; VMOV v2, K2")
        rig.go()
        checks.equal("fault", rig.network.signals[-1] >> 216 & 0xFF, 0x11)
        rig.install_dump()
        rig.dump()
        rig.text("VDRAIN A2, L1 100")
        rig.go()
        await rig.run()


@cocotb.test()
async def drains_of_any_shape(dut):
    """Strided, reversed and multi-dimensional drains of 1 to 256 words; both ends of the address space."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=25)
    rig.install_dump()
    rig.burst(0, rig.words(256))
    rig.burst(256, rig.words(256))
    shapes = [
        ((32, 1),), ((32, 255),), ((32, 256),), ((-32, 20),), ((64, 9),), ((0, 5),), ((32, 8), (256, 4)),
        ((32, 5), (320, 3), (2240, 2), (-32, 2)), ((1024, 3), (32, 8)), ((32, 7), (-224, 3)),
    ]  # fmt: skip
    for shape in shapes:
        n = 1
        for _, bound in shape:
            n *= bound
        rig.describe(0, TARGET + 0x8000, *shape)
        rig.text(
            f"VDRAIN A0, L1 {512 - n}; VFILL A0, L1 {rig.rng.randrange(513 - n)}" if n < 200 else "VDRAIN A0, L1 0"
        )
        rig.go()
    for base, stride in (((1 << 40) - 96, 32), (96, -32)):
        rig.describe(0, base, (stride, 12))
        rig.text("VDRAIN A0, L1 7")
        rig.go()
        rig.text("VFILL A0, L1 7")
        rig.go()
    rig.dump()
    await rig.run()
