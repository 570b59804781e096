# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, predicates, moves and reductions of the vector core: every register after every kernel."""

import cocotb
import numpy as np

from benches.vc_seq_gen import ARITH, COMPARES, DEPTH, LENGTHS, Kernels, arith, group
from benches.vc_seq_rig import SPECIAL, Rig, asm, codes, seti
from kohakubench import checks, scale
from kohakutpu.isa import vector as isa

KINDS = ("SUM", "MAX", "MIN", "SUMSQ", "DOT", "EXPSUM")


async def filled(dut):
    """Random vectors, scalars, K3 and predicates."""
    rig = await Rig(dut).start()
    rig.registers(codes(rig.rng, (16, 128)))
    rig.kernel(
        [seti(f"S{n}", int(codes(rig.rng, ()))) for n in range(12)],
        seti("K3", int(codes(rig.rng, (), 0))),
        [f"VCMPLT P{p}, v{p}, v{p + 4}" for p in range(4)],
    )
    return rig


def length(vl):
    """Sets VL."""
    return asm(seti("S15", vl), "VSETVL S15")


async def _opcodes(dut, mode):
    rig = await filled(dut)
    rig.dump()
    depth = DEPTH[mode]
    for vl in LENGTHS:
        cases = [(op, at) for op in ARITH for at in range(depth)]
        rig.rng.shuffle(cases)
        for first in range(0, len(cases), 8):
            words = []
            for n, (op, at) in enumerate(cases[first : first + 8]):
                words += [
                    arith(
                        rig.rng,
                        op if k == int(at) else str(rig.rng.choice(ARITH)),
                        k,
                        depth,
                        8,
                        **({"vd": 8 + n} if k == depth - 1 else {}),
                    )
                    for k in range(depth)
                ]
            rig.registers(codes(rig.rng, (16, 128)))
            rig.kernel(f"VSETMODE {mode}", length(vl), words)
            rig.dump()
        await rig.play(f"{mode} VL {vl}")


@cocotb.test()
async def flat(dut):
    """Every opcode in FLAT, all selectors in every slot, masks and tails exact."""
    await _opcodes(dut, "FLAT")


@cocotb.test()
async def d2(dut):
    """Every opcode in both places of a D2 group."""
    await _opcodes(dut, "D2")


@cocotb.test()
async def d4(dut):
    """Every opcode in all four places of a D4 group."""
    await _opcodes(dut, "D4")


@cocotb.test()
async def predicates(dut):
    """Compare to use with 0, 1, 2 words between; compare last and inside a chain; four predicates; ANY, ALL."""
    rig = await filled(dut)
    for mode in DEPTH:
        for vl in LENGTHS:
            words = []
            for p in range(4):
                op = COMPARES[p % 3]
                depth = DEPTH[mode]
                compare = [arith(rig.rng, str(rig.rng.choice(ARITH)), k, depth) for k in range(depth - 1)]
                compare += [arith(rig.rng, op, depth - 1, depth, pr=p)]
                words += compare
                for _ in range(p % 3):
                    words += group(rig.rng, mode, pm=0)
                words += group(rig.rng, mode, pr=p, pm=1 + p % 2)
                words += asm(f"VRED.{('ANY', 'ALL')[p % 2]} S{p}, P{p}", f"VSHUF v{p}, v{p + 4}, S{p} where P{p}")
            rig.kernel(f"VSETMODE {mode}", length(vl), words)
            rig.dump()
        await rig.play(f"predicates {mode}")


@cocotb.test()
async def any_all(dut):
    """ANY and ALL of all-set, all-clear and single-bit predicates at every length; bits behind VL do not count."""
    rig = await filled(dut)
    rig.registers(np.broadcast_to(np.arange(128, dtype=np.uint32) << 1, (16, 128)))
    for vl in (1, 2, 15, 16, 17, 100, 127, 128):
        for lone in {0, vl - 1, min(vl, 127)}:
            rig.kernel(
                length(128),
                seti("S0", int(lone) << 1),
                ["VSETMODE FLAT", "VCMPEQ P0, v0, S0", "VCMPEQ P1, v0, v0", "VCMPLT P2, v0, v0"],
                "VCMPGT P3, S0, v0",
                length(vl),
                [f"VRED.{kind} S{4 * n + p + 1}, P{p}" for n, kind in enumerate(("ANY", "ALL")) for p in range(4)],
            )
            rig.dump()
    await rig.play("ANY and ALL")


@cocotb.test()
async def moves(dut):
    """VSHUF every rotation, masks, in place, high bits of S; VCVT both, clamp flag by VL; VBCAST both."""
    rig = await filled(dut)
    for vl in LENGTHS:
        rig.registers(codes(rig.rng, (16, 128), 0.3))
        words = []
        for k in range(16):
            words += asm(seti(f"S{k % 4}", k | int(rig.rng.integers(1 << 20)) << 4))
            where = ("", f" where P{k % 4}", f" where not P{k % 4}")[k % 3]
            words += asm(f"VSHUF v{k}, v{(k * 5) % 16 if k % 4 else k}, S{k % 4}{where}")
        rig.kernel(length(vl), words)
        rig.dump()
        rig.kernel("VCVT.FP16 v3, v4", "VCVT.FP16 v5, v5", "VCVT.FP32 v6, v7", "VBCAST S4, v3", "VBCAST v8, S4")
        rig.kernel("VBCAST S5, v12", "VBCAST v12, S4", "VADD v9, v12, v3")
        rig.dump()
        await rig.play(f"moves VL {vl}")
    big = np.full((16, 128), 0x3F8000, dtype=np.uint32)
    for e in (0, 15, 16, 100, 126):
        big[1] = 0x3F8000
        big[1, e + 1] = 0x7F0000
        rig.registers(big)
        rig.kernel(length(e + 1), "VCVT.FP16 v2, v1")
        rig.kernel(length(e + 2), "VCVT.FP16 v2, v1")
    got = await rig.play("clamp")
    checks.true("some clamps", any(r["clamp"] for r in got) and not all(r["clamp"] for r in got))


@cocotb.test()
async def transpose(dut):
    """Four words transposed by rotations and predicated merges, bit for bit, infinity and NaN included."""
    rig = await filled(dut)
    data = codes(rig.rng, (16, 128), 0.5)
    lane = np.arange(128) % 4
    for r in range(4):
        data[8 + r] = np.where(lane == r, 0x3F8000, 0)
    rig.registers(data)
    rig.kernel(
        length(64),
        [seti(f"S{k}", k) for k in range(16)],
        [f"VCMPGT P{r}, v{8 + r}, K0" for r in range(4)],
        # Row r of each 4x4 block moves to column r: element 4i+j of register r takes element 4j+r of register i.
        [f"VSHUF v{12 + r}, v0, S{(r + 0) % 16} where P0" for r in range(4)],
        [[f"VSHUF v{12 + r}, v{j}, S{(r - j) % 16} where P{j}" for r in range(4)] for j in range(1, 4)],
    )
    rig.dump()
    await rig.play("transpose")
    v = rig.core.v
    for r in range(4):
        for j in range(4):
            at = np.arange(64).reshape(4, 16)[:, j::4]
            source = np.arange(64).reshape(4, 16)[:, r::4]
            checks.arrays(f"row {r} column {j}", v[12 + r][at], data[j][source])


@cocotb.test()
async def reductions(dut):
    """Every kind at N = 1..8, special values at every place, DOT operands, EXPSUM in place, leaf by leaf."""
    rig = await filled(dut)
    for n in range(1, 9):
        rig.registers(codes(rig.rng, (16, 128), 0.02 if n % 2 else 0.2))
        rig.kernel(
            length(16 * n),
            ["VSETMODE FLAT", "VMOV v3, v4 where P1", "VSETMODE TREE"],
            [
                f"VRED.{kind} S{k}, v{k}" + {"DOT": ", v9", "EXPSUM": " -> v10"}.get(kind, "")
                for k, kind in enumerate(KINDS)
            ],
            ["VRED.EXPSUM S6, v11 -> v11", "VRED.DOT S7, v2, v2", "VRED.SUM S8, v11"],
        )
        rig.dump()
    # One sign only: the identities must not win.
    for n in (1, 2, 8):
        data = codes(rig.rng, (16, 128), 0.02) & 0x7FFFFF
        data[::2] |= 0x800000
        rig.registers(data)
        rig.kernel(
            length(16 * n),
            "VSETMODE TREE",
            [f"VRED.{kind} S{v}, v{v}" for v, kind in enumerate(("MAX", "MIN", "MIN", "MAX"))],
        )
        rig.dump()
    await rig.play("reductions")
    ones = np.full((16, 128), 0x3F8000, dtype=np.uint32)
    always = [0x7FC000, 0x7F8000, 0xFF8000]
    places = [(int(value), e) for e in range(32) for value in [*always, *SPECIAL[: scale(0, 20)]]]
    for value, e in places:
        ones[:8] = 0x3F8000
        ones[:8, e] = value
        rig.registers(ones)
        rig.kernel(
            length(32),
            "VSETMODE TREE",
            [f"VRED.{k} S{n}, v{n}" for n, k in enumerate(("SUM", "MAX", "MIN"))],
            "VRED.SUMSQ S3, v3",
            "VRED.DOT S4, v0, v9",
            "VRED.EXPSUM S5, v0 -> v12",
        )
        rig.dump()
        if len(rig._snaps) > 100:
            await rig.play("special values in reductions")
    zeros = np.where(rig.rng.integers(0, 2, (16, 128)), 0x800000, 0).astype(np.uint32)
    rig.registers(zeros)
    rig.kernel(
        length(128), "VSETMODE TREE", [f"VRED.{k} S{n}, v{n}" for n, k in enumerate(("SUM", "MAX", "MIN", "SUMSQ"))]
    )
    rig.dump()
    await rig.play("signed zeros in reductions")


@cocotb.test()
async def known_reductions(dut):
    """The reduction answers of the page."""
    rig = await Rig(dut).start()
    e = np.arange(128)
    exact = ((37 * e % 101) - 50) / 8
    bits = exact.astype(np.float32).view(np.uint32) >> 8
    names = ("SUM", "MAX", "MIN", "SUMSQ", "EXPSUM")
    want = {
        128: (0xC11E00, 0x40C800, 0xC0C800, 0x44D4DE, 0x448B76),
        48: (0xC0D800, 0x40C800, 0xC0C800, 0x4422BE, 0x43D07A),
    }
    for vl, answers in want.items():
        rig.registers(np.broadcast_to(bits.astype(np.uint32), (16, 128)))
        rig.kernel(
            length(vl), "VSETMODE TREE",
            [f"VRED.{k} S{n}, v{n}" + (" -> v9" if k == "EXPSUM" else "") for n, k in enumerate(names)],
        )  # fmt: skip
        for n, answer in enumerate(answers):
            checks.equal(f"{names[n]} of {vl}", int(rig.core.s[n]), answer)
        rig.dump()
    await rig.play("known reductions")


@cocotb.test()
async def hazards(dut):
    """Random kernels on few registers: RAW, WAW, WAR on V, S, P, K, VL and the mode, loops, loads and stores."""
    rig = await filled(dut)
    total = scale(60, 10_000)
    mode, vl = "FLAT", 128
    for n in range(total):
        if n % 10 == 0:
            rig.registers(codes(rig.rng, (16, 128)))
            mode, vl = "FLAT", 128
        kernels = Kernels(rig.rng, mode, vl, regs=int(rig.rng.choice((2, 3, 5, 16))))
        rig.delay(int(rig.rng.choice((0, 0, 3, 12))))
        rig.kernel(kernels.make(int(rig.rng.integers(4, 60))))
        rig.dump()
        mode, vl = "FLAT", 16
        if n % 20 == 19 or n == total - 1:
            await rig.play(f"random kernels to {n}")


@cocotb.test()
async def chains(dut):
    """Dependent and independent groups of depth 1, 2, 4 at N = 1..8, mode changes between them without a pause."""
    rig = await filled(dut)
    for n in range(1, 9):
        for pattern in range(scale(3, 30)):
            words = length(16 * n - int(rig.rng.integers(16)))
            for _ in range(12):
                mode = str(rig.rng.choice(list(DEPTH)))
                words += asm(f"VSETMODE {mode}")
                for _ in range(int(rig.rng.integers(1, 4))):
                    words += group(rig.rng, mode, 3 if pattern % 2 else 16)
            rig.registers(codes(rig.rng, (16, 128)))
            rig.kernel(words)
            rig.dump()
        await rig.play(f"chains N = {n}")


@cocotb.test()
async def sequences(dut):
    """One to six groups, each reading the one before or none of them, in every mode at N = 1..8."""
    rig = await filled(dut)
    values = codes(rig.rng, (16, 128))
    for n in range(1, 9):
        for mode, depth in DEPTH.items():
            rig.registers(values)
            words = []
            for count in range(1, 7):
                for step in range(count):
                    # v8 + count: a running value; v1 + step: written once, read by nobody.
                    link = arith(rig.rng, "VFMA", 0, depth, 8, sa=0, va=8 + count, vd=8 + count, pm=0)
                    lone = arith(rig.rng, "VFNMA", 0, depth, 1, vd=1 + step, pm=0)
                    rest = [arith(rig.rng, "VSUB", k, depth, vd=8 + count, pm=0) for k in range(1, depth)]
                    free = [arith(rig.rng, "VADD", k, depth, vd=1 + step, pm=0) for k in range(1, depth)]
                    words += [link, *rest] if count % 2 else [link, *rest, lone, *free]
            rig.kernel(length(16 * n), f"VSETMODE {mode}", words)
            rig.dump()
    await rig.play("sequences")


@cocotb.test()
async def beats(dut):
    """Lane beats are N per operation in every mode, counted by the core."""
    rig = await filled(dut)
    runs = []
    for n in range(1, 9):
        for mode, depth in DEPTH.items():
            words = [group(rig.rng, mode) for _ in range(5)]
            runs.append((rig.kernel(length(16 * n), f"VSETMODE {mode}", words), 5 * n * depth))
    got = await rig.play("beats")
    for at, want in runs:
        checks.equal("lane beats", got[at]["beats"], want)
    checks.true("interlock seen", any(r["stalls"] for r in got))
    checks.equal("VMOV v0, v0", isa.parse("VMOV v0, v0"), 0)
