# SPDX-License-Identifier: Apache-2.0
"""Random programs and the directed kernels on the whole core."""

from __future__ import annotations

import random

import cocotb
import numpy as np

from benches.vc_core_rig import CLAMP, Rig, play_random
from kohakubench import checks, clocks, scale, seed
from kohakubench import vector_kernels as kernels
from kohakubench.vector_kernels import DESCRIPTORS, assemble
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import VectorOp


@cocotb.test()
async def directed_kernels(dut):
    """Every directed kernel in turn; the state is drained after each that computes and after one in six others."""
    clocks.start(dut.clk)
    stride = scale(6, 1)
    rig = Rig(dut, seed())
    rig.install_dump()
    for n, kernel in enumerate(kernels.KERNELS):
        rig.kernel(kernel)
        if kernel.at + len(kernel.words) > 380:
            rig.install_dump()
        if n % stride == 0 or kernel in kernels.VECTORS:
            rig.dump()
    rig.dump()
    await rig.run()


@cocotb.test()
async def random_programs(dut):
    """Random programs on one core that keeps its state; after two of three the whole state is drained."""
    clocks.start(dut.clk)
    for block in range(scale(2, 200)):
        await play_random(dut, block)


@cocotb.test()
async def group_addresses(dut):
    """CU_DBG names the first word of a faulting group or pair, the pc of a RUN an event ended, 0 for F_ENV."""
    clocks.start(dut.clk)
    third = "VMOV v1, v0; VMOV v1, C {sb=3 sc=3}; VMOV v1, C {sb=3 sc=3}; VHALT"
    for text, at in (
        (f"VSETMODE D4; {third}", 0),
        (f"VSETMODE D4; {third}", 301),
        ("VSETMODE FLAT; VMOV v1, C", 17),
        ("VBAR; VBAR; VSETI S1; .imm 0x1000000", 40),
        ("VSETMODE FLAT; VMOV v1, K1", 510),
        ("VFILL A0, L1 3; VBAR; VDRAIN A0, L1 4 {buf=1}", 9),
    ):
        rig = Rig(dut, seed())
        rig.load(assemble(text), at)
        rig.go(at)
        await rig.run()
    rig = Rig(dut, seed())
    rig.load(assemble("VHALT"), 77)
    rig.burst(0, rig.words(1), buf=1)
    rig.go(77)
    await rig.run()
    rig.word(0)
    await rig.run()


@cocotb.test()
async def clamp_flag(dut):
    """unit_err[3] of VCVT and VST, each alone: raised below VL, not by the tail."""
    clocks.start(dut.clk)
    seen = 0
    for kernel in kernels.KERNELS:
        if "clamp" in kernel.name:
            rig = Rig(dut, seed())
            rig.kernel(kernel)
            await rig.run()
            seen += rig.shell.sticky == CLAMP
            checks.equal(kernel.name, rig.shell.sticky, 0 if kernel.name.startswith("no_") else CLAMP)
    checks.equal("kernels that clamp", seen, 3)


@cocotb.test()
async def envelope(dut):
    """IMEM and DESC at every edge, unknown opcodes and fields, RUN at 0 and 511, `last` with and without a fault."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    halt = isa.encode("VHALT")
    for addr in (0, 1, 255, 256, 511):
        rig.load([halt], addr)
        rig.go(addr, last=addr & 1)
    for op in (0, *range(4, 16)):
        rig.word(op << 252 | rig.rng.getrandbits(252), last=op & 1)
    for fld in range(8):
        for ad in range(8):
            rig.word(isa.encode_envelope("DESC", ad=ad, fld=fld, value=rig.rng.getrandbits(34), value_hi=ad))
    # what the fields hold shows in the addresses a fill asks for
    for bit in (33, 34, 39):
        rig.descriptors.clear()
        for ad in range(8):
            rig.describe(ad, 1 << bit | 0x1_0000 + 32 * ad, (32, 2), (-64, 2), (0x1FFE0, 2), (-0x20000, 2))
            rig.text(f"VFILL A{ad}, L1 {16 * ad}; VBAR")
            rig.go()
    reserved = rig.rng.getrandbits(211 - 69) << 69 | rig.rng.getrandbits(63)
    rig.word(isa.set_base(0, 0x1_0400) | reserved)
    rig.word(isa.load_word(0, isa.encode("VFILL", ad=0, l1=5)) | rig.rng.getrandbits(200) << 32)
    rig.word(isa.run(0) | rig.rng.getrandbits(243))
    rig.word(isa.run(0) | rig.rng.getrandbits(243), last=1)
    rig.runs += [len(rig.inst) - 2]
    await rig.run()


@cocotb.test()
async def two_kernels_and_persistence(dut):
    """Two kernels in one image, re-run with one base rewritten; a kernel that relies on registers of the one before."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.install_dump()
    rig.burst(0, rig.words(256))
    rig.text("VSETMODE FLAT; S0 = 100; VSETVL S0; VLD.FP16 v0, A0; K3 = 0x404000; VCMPLT P2, v0, K0")
    rig.text("VMUL v1, v0, K3 where P2; VADD v2, v1, S0; VST.FP16 v1, A0+100", 100)
    rig.text("VSETMODE reserved5", 120)
    for n in range(4):
        rig.describe(0, 20 * n, (1, 16))
        rig.go(0)
        rig.go(120)
        rig.go(100)
        rig.go(120)
        rig.go(100)
    rig.dump()
    await rig.run()


@cocotb.test()
async def random_words(dut):
    """Random 32-bit words in random modes, loop counts below 64: one completion each, and the next RUN works."""
    clocks.start(dut.clk)
    rng = random.Random(seed())
    writers = (VectorOp.VSETI, VectorOp.VBCAST, VectorOp.VRED)
    scalars = "".join(f"S{n} = {{}}\n" for n in range(16))
    for _ in range(scale(1, 160)):
        rig = Rig(dut, rng.getrandbits(30), cfg_lat=10)
        rig.install_dump()
        for ad, descriptor in DESCRIPTORS.items():
            base, strides, bounds = descriptor
            rig.describe(ad, base, *zip(strides, bounds, strict=True))
        for n in range(80):
            words = [harmless(rng.getrandbits(32)) for _ in range(8)]
            if any(word >> 27 == VectorOp.VLOOP for word in words):
                words = [word for word in words if word >> 27 not in writers]
            head = assemble(scalars.format(*(rng.randrange(64) for _ in range(16)))) if n % 8 == 0 else []
            rig.load([*head, isa.encode("VSETMODE", mode=n % 4), *words, isa.encode("VHALT")])
            rig.go()
            if n % 8 == 7:
                rig.dump()
                rig.descriptors.clear()
                for ad, (base, strides, bounds) in DESCRIPTORS.items():
                    rig.describe(ad, base, *zip(strides, bounds, strict=True))
        rig.dump()
        await rig.run()


def harmless(word: int) -> int:
    """A drain must not write where a fill reads, and must not send to the core itself."""
    if word >> 27 == VectorOp.VDRAIN:
        if word >> 24 & 1:
            return word & ~(0xFF << 13) | (3 << 17 | 1 << 13 if word >> 13 & 0xFF else 0)
        return word & ~(7 << 21) | (5 + (word >> 21 & 1)) << 21
    if word >> 27 == VectorOp.VFILL:
        return word & ~(7 << 21) | (3 + (word >> 21 & 1)) << 21
    return word


@cocotb.test()
async def reduction_specials(dut):
    """NaN, infinity and a lone one in every leaf position of every reduction; signed zeros."""
    clocks.start(dut.clk)
    for special in (0x7E00, 0xFC00, 0x7C00, 0x3C00):
        rig = Rig(dut, seed())
        kinds = ("SUM S1, v0", "MAX S2, v0", "MIN S3, v0", "SUMSQ S4, v0", "DOT S5, v0, v1", "EXPSUM S6, v0 -> v2")
        text = "VSETMODE TREE; S0 = 128; VSETVL S0; VLD.FP16 v0, A0; VLD.FP16 v1, A0+8\n"
        text += "".join(f"VRED.{kind}\n" for kind in kinds) + "VST.FP16 v2, A0+40\nVSETMODE FLAT; S0 = 16; VSETVL S0\n"
        text += "".join(f"VBCAST v3, S{n + 1}; VST.FP32 v3, A0+{16 + 2 * n}\n" for n in range(len(kinds)))
        rig.text(text + "VDRAIN A1, L1 0")
        rig.describe(0, 0, (1, 16))
        rig.describe(1, 0x8_0000, (32, 48))
        for e in range(0, 128, scale(9, 1)):
            codes = rig.np_rng.integers(0, 2, 128) << 15
            if special != 0x3C00:
                codes |= rig.np_rng.integers(8, 18, 128) << 10 | rig.np_rng.integers(0, 1024, 128)
            codes[e] = special
            other = rig.np_rng.integers(0, 2, 128) << 15 | 0x3C00
            rig.burst(0, np.concatenate([codes, other]).astype("<u2").view(np.uint8).reshape(16, 32))
            rig.go()
        await rig.run()
