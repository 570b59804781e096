# SPDX-License-Identifier: Apache-2.0
"""CU_DATA into the whole core, asynchronous events, peer bursts (docs/spec/vector.md 9.4, 10, 11.3)."""

from __future__ import annotations

import cocotb

from benches.vc_core_rig import OWN, Rig
from benches.vc_mem_rig import burst_flits
from kohakubench import checks, clocks, scale, seed
from kohakutpu.isa import message
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import VectorError

RANGES = [(0, 1), (0, 256), (256, 256), (511, 1), (504, 8), (17, 100)]
BAD = [(511, 2, 0), (512, 1, 0), (257, 256, 0), (65535, 256, 0), (0, 1, 1), (5, 3, 2), (5, 3, 3), (5, 3, 255)]


@cocotb.test()
async def bursts_land(dut):
    """Bursts of every size at both ends of L1, acknowledged to the sender or to a third place."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=40)
    rig.install_dump()
    for n, (off, length) in enumerate(RANGES):
        rig.burst(off, rig.words(length), ack=(0, 0) if n % 2 else (3, 1), txn=0x40 + n, gap=n % 3)
        rig.dump()
    # without a signal nothing is acknowledged; the next one that signals shows it has arrived
    rig.burst(40, rig.words(4), signal=0)
    rig.burst(50, rig.words(4))
    rig.dump()
    t = await rig.run()
    checks.equal("acknowledgements", rig.received, len(RANGES) + 1)
    checks.true("drained", len(t.of(4)) > 512 * len(RANGES))


@cocotb.test()
async def rejects(dut):
    """Every reason, acknowledged once; L1 unchanged; F_CUDATA exactly once, at the next RUN; IMEM and DESC go on."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=30)
    rig.install_dump()
    rig.text("VMOV v1, K1")
    rig.burst(0, rig.words(256))
    rig.dump()
    for n, (off, length, buf) in enumerate(BAD):
        rig.burst(off, rig.words(length), buf=buf, ack=(0, 0) if n % 2 else (2, 1))
        rig.load([isa.encode("VHALT")], 300)
        rig.describe(7, 32 * n, (32, 3))
        rig.go()
        rig.go()
    # last in the wrong place, early and missing: what came with or before it stays
    for early in (True, False):
        flits = burst_flits(0, 100, rig.words(6), (2, 1), (1, 1), 1, 9)
        if early:
            flits[3] |= 1 << 259
        else:
            flits[-1] &= ~(1 << 259)
        rig.burst(100, rig.words(6), flits=flits)
        rig.go()
        rig.dump()
    # the first of two events is the one reported
    rig.burst(0, rig.words(1), buf=7)
    rig.burst(512, rig.words(1))
    rig.go()
    rig.go()
    await rig.run()
    checks.equal("rejects", rig.shell.sticky >> 8, 1 << VectorError.REJECT)


@cocotb.test()
async def second_and_third_sender(dut):
    """A second sender in every phase of an open burst is rejected, a third dropped, the first unaffected."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.install_dump()
    rig.text("VMOV v1, K1")
    size = 4
    for enter in range(1, size + 1):
        for second in (1, 3):
            first = burst_flits(0, 60, rig.words(size), (2, 1), (2, 1), 1, 1)
            other = burst_flits(0, 90, rig.words(second), (3, 1), (3, 1), 1, 2)
            third = burst_flits(0, 120, rig.words(1), (0, 2), (0, 2), 1, 3)[:1]
            mixed = first[:enter] + other[:1] + (third if enter < size else []) + first[enter:] + other[1:]
            rig.burst(60, rig.words(1), flits=mixed)
            # the third sender's lost descriptor is not remembered
            rig.go()
            rig.dump()
    await rig.run()
    checks.equal("errors", rig.shell.sticky >> 8, 1 << VectorError.THIRD | 1 << VectorError.REJECT)


@cocotb.test()
async def bursts_beside_a_kernel(dut):
    """Bursts to words that a busy kernel leaves alone; rejects wait for the next RUN."""
    clocks.start(dut.clk)
    for block in range(scale(2, 20)):
        rig = Rig(dut, 100 * seed() + block, cfg_gap=100, cfg_busy=(0, 60)[block % 2], cfg_order=block % 3)
        rig.install_dump()
        work = "VSETMODE FLAT; S0 = 128; VSETVL S0; VFILL A1, L1 0; VBAR; VLD.FP16 v0, A0; VLD.FP32 v1, A0+16\n"
        work += "VFMA v2, v0, v1, v0; VST.FP16 v2, A0+40; VST.FP32 v2, A0+64; VSETMODE TREE; VRED.EXPSUM S3, v0 -> v4\n"
        work += "VRED.SUM S4, v1; VDRAIN A2, L1 32; VSETMODE FLAT; S1 = 12; VLOOP S1, 2\n"
        work += "VADD v5, v5, S3; VST.FP16 v5, A0+80"
        rig.text(work)
        for n in range(scale(6, 20)):
            rig.describe(0, 0, (1, 16))
            rig.describe(1, 0x1_0000, (32, 100))
            rig.describe(2, 0x8_0000, (32, 64))
            # sent from the moment the RUN has been accepted
            rig.go()
            accepted = len(rig.inst)
            at = 200
            for k in range(rig.rng.randrange(1, 6)):
                length = rig.rng.choice((1, 8, 60))
                rig.burst(
                    at, rig.words(length), gap=rig.rng.randrange(4), delay=rig.rng.randrange(300), src=(2 + k % 2, 1),
                    accepted=accepted,
                )  # fmt: skip
                at += length
            if n % 3 == 2:
                rig.burst(5, rig.words(2), buf=4, accepted=accepted, delay=50)
            rig.dump()
        await rig.run()


@cocotb.test()
async def sixty_four_acknowledgements(dut):
    """64 bursts that signal while the link is blocked: all are stored, fills go on, every one is acknowledged."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), block_len=1500)
    rig.install_dump()
    # a fill whose request is the last flit before the link blocks
    rig.describe(1, 0x1_0000, (32, 64))
    rig.text("VFILL A1, L1 0; VBAR; VMOV v1, K1")
    index = rig.go()
    rig.config["block_flit"] = index + 1
    for n in range(64):
        rig.burst(128 + 4 * n, rig.words(4), txn=n, reads=1)
    rig.dump()
    t = await rig.run()
    checks.equal("acknowledgements", rig.received, 64)
    gone = [c for c, f in t.out if f >> 268 & 15 == 6 and f >> 248 & 255 == 3]
    came = [c for c, f in t.entered if f >> 268 & 15 == 8]
    checks.true("all bursts came before the first acknowledgement left", came[-1] < gone[0], f"{came[-1]}, {gone[0]}")


@cocotb.test()
async def unmatched_responses(dut):
    """A response nobody asked for becomes A_RESP at the next RUN and changes nothing."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.install_dump()
    rig.text("VMOV v1, K1")
    response = message.encode("MEM_RD_RESP", dst=OWN, src=(0, 1), txn=33, last=1) | 0x1234
    for value in (response, response | 4 << 256, response | 200 << 260):
        rig.flit(value)
        rig.load([0], 301)
        rig.go()
        rig.dump()
    # of two events the first is reported, by the next RUN alone
    for response_first in (True, False):
        for is_response in (response_first, not response_first):
            if is_response:
                rig.flit(response)
            else:
                rig.burst(0, rig.words(1), buf=9, signal=0)
        rig.go()
        checks.equal("event", rig.network.signals[-1] >> 216 & 0xFF, 0x88 if response_first else 0x09)
        rig.go()
    await rig.run()
    checks.equal("errors", rig.shell.sticky, 1 << 8 + VectorError.RESP | 1 << 8 + VectorError.REJECT | 1 << 3)


@cocotb.test()
async def peers(dut):
    """Bursts to a peer of every size; to the core itself; local and remote forms, field by field."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=50)
    rig.install_dump()
    rig.burst(0, rig.words(256))
    rig.burst(256, rig.words(256))
    cases = [(n, base) for n in (1, 2, 8, 255, 256) for base in (0, 0x11_0010, 0xFF00)]
    cases += [(4, isa.peer_base(off=9, ack_x=1, ack_y=1, mesh=m, fin_x=m + 1, fin_y=m)) for m in range(4)]
    for bit in range(40):
        base = 1 << bit
        cases.append((1, base | (0x11 << 16 if base >> 26 & 0xFF else 0)))
    for n, base in cases:
        rig.describe(0, base, (1, n))
        buf = n % 16
        rig.text(f"VDRAIN A0, L1 {512 - n} -> node (3,1) buf {buf}, signal")
        rig.go()
    t = await rig.run()
    checks.equal("peer flits", len(t.of(8)), sum(n + 1 for n, _ in cases))


@cocotb.test()
async def bursts_to_itself(dut):
    """The core drains into its own L1: acknowledged to itself or elsewhere, rejected for the next RUN only."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed(), cfg_busy=40)
    rig.install_dump()
    rig.burst(0, rig.words(256))
    cases = [(1, 300, 0), (8, 504, 0), (200, 256, 0), (9, 508, 0), (4, 300, 1), (250, 262, 0)]
    for n, (length, offset, buf) in enumerate(cases * scale(1, 10)):
        ack = 0x11 if n % 2 else 0
        rig.describe(0, ack << 16 | offset, (1, length))
        rig.describe(1, 0x1_0000, (32, 5))
        rig.text(f"VDRAIN A0, L1 0 -> node ({OWN[0]},{OWN[1]}) buf {buf}, signal; VFILL A1, L1 250; VBAR; VMOV v1, K1")
        rig.go()
        rig.await_recv = rig.received
        rig.dump()
        rig.dump()
    await rig.run()
    checks.true("some were rejected", rig.shell.sticky >> 8 & 1 << VectorError.REJECT)
