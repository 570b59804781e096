# SPDX-License-Identifier: Apache-2.0
"""Control of the vector core: every fault of the sequencer, loops, the envelope, events, random words."""

import cocotb
import numpy as np

from benches.vc_seq_gen import DEPTH, group
from benches.vc_seq_rig import Rig, asm, codes, seti
from benches.vc_seq_t_vectors import filled, length
from kohakubench import checks, scale
from kohakutpu.isa import generated as g
from kohakutpu.isa import vector as isa
from kohakutpu.isa.generated import VectorFault as F

K0 = {"sa": 3, "sb": 3, "sc": 3}
"""A chain word needs constants in the slots it does not read."""


def word(op, **fields):
    """Word with reserved values allowed."""
    return isa.encode(op, raw=True, **fields)


def illegal():
    """(name, words, code): every row of the sequencer's fault table; the first word faults, or the one named."""
    flat, d2, d4, tree = ([isa.parse(f"VSETMODE {m}")] for m in ("FLAT", "D2", "D4", "TREE"))
    add, head, tail = word("VADD"), word("VADD", sb=3), word("VMUL", **K0 | {"sa": 2})
    rows = []
    for slot in "abc":
        for op in ("VMOV", "VADD", "VMUL", "VFMA", "VEXP2"):
            rows.append((f"{op} C in slot {slot}", [*flat, word(op, **{f"s{slot}": 2})], F.F_CHAIN))
            rows.append((f"{op} head C in slot {slot}", [*d2, word(op, **{f"s{slot}": 2}), tail], F.F_CHAIN))
            rows.append((f"{op} V in slot {slot}", [*d2, head, word(op, **(K0 | {f"s{slot}": 0}))], F.F_VSRC))
            rows.append(
                (f"{op} V in slot {slot}, last", [*d4, head, tail, tail, word(op, **(K0 | {f"s{slot}": 0}))], F.F_VSRC)
            )
    for number in (4, 7, 8, 15):
        rows.append((f"K{number} in a", [*flat, word("VADD", sa=3, va=number)], F.F_ENC))
        rows.append((f"K{number} in b", [*flat, word("VMUL", sb=3, vb=number)], F.F_ENC))
        rows.append((f"K{number} in c", [*flat, word("VSUB", sc=3, vc=number)], F.F_ENC))
        rows.append((f"K{number} in a slot not read", [*flat, word("VMOV", sb=3, vb=number, sc=3, vc=number)], None))
    for at in range(4):
        rows.append(
            (
                f"pm in chain word {at}",
                [
                    *d4,
                    *[tail if k else head for k in range(at)],
                    word("VADD", **(K0 if at else {}), pm=1),
                    *([tail] * (3 - at)),
                ],
                None if at == 3 else F.F_ENC,
            )
        )
    rows += [
        ("arithmetic in TREE", [*tree, add], F.F_OPCODE),
        ("seed in TREE", [*tree, word("VINV", pm=3)], F.F_OPCODE),
        ("move inside a group", [*d2, head, isa.parse("VCVT.FP16 v1, v2")], F.F_OPCODE),
        ("VHALT inside a group", [*d4, head, tail, tail, isa.parse("VHALT")], F.F_OPCODE),
        ("VSETI inside a group", [*d2, head, isa.parse("VSETI S1")], F.F_OPCODE),
        ("pm 3", [*flat, word("VADD", pm=3)], F.F_ENC),
        ("pm 3 before C", [*flat, word("VADD", pm=3, sa=2)], F.F_ENC),
        ("compare with pm 1", [*flat, word("VCMPEQ", pm=1)], F.F_ENC),
        ("compare with pm 2, last of a group", [*d2, head, word("VCMPLT", **K0, pm=2)], F.F_ENC),
        ("VSHUF pm 3", [*flat, word("VSHUF", pm=3)], F.F_ENC),
        ("VBCAST from C", [*flat, word("VBCAST", sa=2)], F.F_ENC),
        ("VBCAST from K", [*flat, word("VBCAST", sa=3)], F.F_ENC),
        ("VSETI sel 1", [*flat, word("VSETI", sel=1), 5], F.F_ENC),
        ("VSETI sel 2", [*flat, word("VSETI", sel=2), 5], F.F_ENC),
        ("immediate with a top byte", [*flat, word("VSETI", sd=1), 16777221], F.F_ENC),
        ("immediate with bit 31", [*flat, word("VSETI", sd=1), 2147483653], F.F_ENC),
        ("immediate like VLOOP", [*flat, word("VSETI", sd=1), isa.parse("VLOOP S1, 3")], F.F_ENC),
        ("SUMSQ of two registers", [*tree, word("VRED", kind=3, va=1, vb=2)], F.F_ENC),
        ("tree reduction in FLAT", [*flat, isa.parse("VRED.SUM S1, v0")], F.F_OPCODE),
        ("tree reduction in D4", [*d4, isa.parse("VRED.EXPSUM S1, v0 -> v1")], F.F_OPCODE),
        ("ANY in D4", [*d4, isa.parse("VRED.ANY S1, P0")], None),
        ("VL 40 in TREE", length(40) + tree + [isa.parse("VRED.SUM S1, v0")], F.F_REDVL),
        ("VL 40 in FLAT", length(40) + flat + [isa.parse("VRED.MAX S1, v0")], F.F_REDVL),
        ("VL 40, pm", length(40) + flat + [word("VRED", kind=1, pm=1)], F.F_ENC),
        ("VL 0", asm(seti("S1", 0), "VSETVL S1"), F.F_VL),
        ("VL 129", asm(seti("S1", 129), "VSETVL S1"), F.F_VL),
        ("VL with a high bit", asm(seti("S1", 0x800080), "VSETVL S1"), F.F_VL),
        ("loop count 0", asm(seti("S1", 0), "VLOOP S1, 1", "VBAR"), F.F_LOOP),
        ("loop body 0", asm(seti("S1", 2), "VLOOP S1, 0", "VBAR"), F.F_LOOP),
        ("nested", asm(seti("S1", 2), "VLOOP S1, 3", "VBAR", "VLOOP S1, 1", "VBAR"), F.F_LOOP),
        ("nested as the last word", asm(seti("S1", 2), "VLOOP S1, 2", "VBAR", "VLOOP S1, 1", "VBAR"), F.F_LOOP),
        ("VSETI across the end", asm(seti("S1", 2), "VLOOP S1, 2", "VBAR", seti("S2", 1)), F.F_LOOP),
        ("sel before the loop end", asm(seti("S1", 2), "VLOOP S1, 1", word("VSETI", sel=1), 1), F.F_ENC),
        ("group across the end", d2 + asm(seti("S1", 2), "VLOOP S1, 1", head, tail), F.F_LOOP),
        ("D4 across the end", d4 + asm(seti("S1", 2), "VLOOP S1, 3", head, tail, tail, tail), F.F_LOOP),
        ("word 1 before the loop end", d4 + asm(seti("S1", 2), "VLOOP S1, 2", head, add, tail, tail), F.F_VSRC),
    ]
    rows += [(f"VSETMODE {n}", [*flat, word("VSETMODE", mode=n)], F.F_ENC) for n in range(4, 16)]
    rows += [(f"VRED kind {n}", [*flat, word("VRED", kind=n)], F.F_ENC) for n in range(8, 16)]
    rows += [
        (f"VRED kind {n} pm {pm}", [*tree, word("VRED", kind=n, pm=pm)], F.F_ENC) for n in range(8) for pm in (1, 2, 3)
    ]
    for dtype in (0, 3, 4, 5, 6, 7):
        rows += [(f"{op} dtype {dtype}", [*flat, word(op, dtype=dtype)], F.F_DTYPE) for op in ("VCVT", "VLD", "VST")]
    return rows


@cocotb.test()
async def faults(dut):
    """Every illegal word: code, address, nothing written, everything before it done, the next RUN works."""
    rig = await filled(dut)
    rows = illegal()
    for first in range(0, len(rows), 8):
        runs = []
        for n, (name, words, code) in enumerate(rows[first : first + 8]):
            at = int(rig.rng.integers(0, 300))
            rig.delay(int(rig.rng.choice((0, 5))))
            work = asm("VSETMODE FLAT", length(128), f"VADD v4, v{n % 4}, v5", "VCMPLT P1, v4, v6", "VMUL v5, v4, v4")
            runs.append((name, code, rig.kernel(work, words, at=at, faults=True)))
        rig.dump()
        got = await rig.play(f"faults from {runs[0][0]}")
        for name, code, at in runs:
            checks.equal(f"{name}: code", got[at]["result"] & 0xFF if got[at]["fault"] else 0, int(code or 0))
            if code:
                checks.equal(f"{name}: tag", got[at]["result"] >> 8, 0x564303)


@cocotb.test()
async def program_end(dut):
    """F_PC after 511, with a pair or a group at 511; RUN at 0 and 511; VHALT at 511; two kernels in one image."""
    rig = await filled(dut)
    tail = word("VMUL", **K0 | {"sa": 2})
    cases = [
        (asm("VMOV v1, v2"), "FLAT", F.F_PC),
        (asm("VSETI S1"), "FLAT", F.F_PC),
        (asm("VADD v1, v2, v3"), "D2", F.F_PC),
        ([word("VADD", sb=3), tail, tail], "D4", F.F_PC),
        ([word("VADD", sb=3), word("VADD")], "D4", F.F_VSRC),
        (asm("VHALT"), "FLAT", None),
    ]
    runs = []
    for words, mode, code in cases:
        rig.kernel(f"VSETMODE {mode}")
        rig.load(512 - len(words), words)
        runs.append((rig.run(512 - len(words)), code))
        rig.dump()
    rig.kernel("VSETMODE FLAT")
    # A loop that ends at 511, and one that would end behind it.
    rig.load(506, asm(seti("S1", 3), "VLOOP S1, 3", "VADD v1, v1, K1", "VADD v2, v2, K1", "VADD v3, v3, K1"))
    runs.append((rig.run(506), F.F_PC))
    rig.load(508, asm("VLOOP S1, 4"))
    runs.append((rig.run(506), F.F_LOOP))
    rig.load(511, asm("VLOOP S1, 1"))
    runs.append((rig.run(511), F.F_LOOP))
    rig.load(0, asm("VADD v1, v1, v2", "VHALT"))
    rig.load(100, asm("VADD v2, v2, v1", "VHALT"))
    runs += [(rig.run(0), None), (rig.run(100), None), (rig.run(0), None)]
    rig.dump()
    got = await rig.play("end of the program")
    for at, code in runs:
        checks.equal("code", got[at]["result"] & 0xFF if got[at]["fault"] else 0, int(code or 0))


@cocotb.test()
async def loops(dut):
    """Counts 1, 2, 2^24-1 with VHALT inside, every body length, loops in a row, pairs and groups at the end."""
    rig = await filled(dut)
    for body in range(1, 16):
        for count in (1, 2, 3, 7):
            words = [f"VADD v{n % 3}, v{n % 3}, K1" for n in range(body)]
            rig.kernel(length(16), seti("S1", count), f"VLOOP S1, {body}", words, "VADD v3, v0, v1")
        rig.dump()
    for mode, depth in DEPTH.items():
        inside = [group(rig.rng, mode) for _ in range(8 // depth)]
        rig.kernel(f"VSETMODE {mode}", seti("S1", 5), "VLOOP S1, 8", inside, "VSETMODE FLAT", "VADD v1, v2, v3")
        rig.dump()
    rig.kernel(
        seti("S1", 4), seti("S2", 2), "VLOOP S1, 3", "VADD v1, v1, S2", seti("S2", 0x404000),
        "VLOOP S1, 1", "VADD v2, v2, S2", "VLOOP S1, 2", seti("S1", 1), "VLOOP S1, 1", "VMUL v3, v3, v2",
    )  # fmt: skip
    rig.kernel(seti("S1", 0xFFFFFF), "VLOOP S1, 2", "VADD v4, v4, K1", "VHALT")
    rig.kernel("VLOOP S1, 1", "VHALT")
    rig.kernel("VADD v5, v5, K1")
    rig.dump()
    await rig.play("loops")


@cocotb.test()
async def loop_rate(dut):
    """Closing a loop costs no instruction: a pass of the body takes what its words take."""
    rig = await filled(dut)
    runs = []
    for body in (1, 2, 3, 4, 15):
        words = [f"VADD v{4 + n % 8}, v0, v1" for n in range(body)]
        runs.append(
            [rig.kernel(length(128), seti("S1", count), f"VLOOP S1, {body}", words) for count in (10, 30)] + [body]
        )
    got = await rig.play("loop rate")
    for few, many, body in runs:
        checks.equal(f"cycles of a pass of {body}", got[many]["result"] - got[few]["result"], 20 * 8 * body)


@cocotb.test()
async def envelope(dut):
    """IMEM 0 and 511, every descriptor field, F_ENV for the rest and nothing written; state kept across RUNs."""
    rig = await filled(dut)
    for at in (0, 511, 255, 256):
        rig.inst(isa.load_word(at, isa.parse("VHALT")))
        rig.run(at)
    bad = []
    for op in (0, *range(4, 16)):
        bad.append(rig.inst(op << 252 | int(rig.rng.integers(1 << 62))))
    for ad in range(8):
        for fld in (5, 6, 7):
            bad.append(rig.inst(isa.encode_envelope("DESC", ad=ad, fld=fld, value=12345)))
    for ad in range(4):
        rig.inst(isa.set_base(ad, int(rig.rng.integers(0, 64))))
        for dim in range(4):
            rig.inst(isa.set_dimension(ad, dim, int(rig.rng.integers(-3, 4)), int(rig.rng.integers(0, 4))))
        rig.kernel(f"VLD.FP16 v{ad}, A{ad}+40", f"VLD.FP32 v{4 + ad}, A{ad}+70")
    for ad in range(4):
        rig.inst(isa.set_base(ad, 0))
        for dim in range(4):
            rig.inst(isa.set_dimension(ad, dim, 1, 1 if dim else 16))
    # Reserved payload bits are ignored.
    rig.inst(isa.load_word(9, isa.parse("VHALT")) | 1 << 200 | 1 << 40)
    rig.inst(isa.run(9) | (1 << 200) - 1)
    rig.dump()
    got = await rig.play("envelope")
    for at in bad:
        checks.equal("F_ENV", got[at]["result"] & 0xFF, int(F.F_ENV))


@cocotb.test()
async def retire_time(dut):
    """IMEM and DESC retire within six cycles; a RUN reports the cycles between acceptance and completion."""
    rig = await filled(dut)
    first = rig.kernel("VMOV v1, v2")
    second = rig.kernel("VMOV v1, v2", "VMOV v3, v4", "VMOV v5, v6")
    got = await rig.play("retire")
    checks.equal("two more words of 8 beats", got[second]["result"] - got[first]["result"], 16)
    checks.true("kernel of one word", got[first]["result"] <= 8 + 14 + 16, str(got[first]["result"]))


@cocotb.test()
async def events(dut):
    """The first event is kept and ends the next RUN before its first word; IMEM and DESC never report it."""
    rig = await filled(dut)
    rig.load(0, asm("VADD v1, v1, K1", "VHALT"))
    runs = []
    for codes_ in ((F.F_CUDATA,), (F.A_RESP,), (F.A_RESP, F.F_CUDATA)):
        rig.event(*codes_) if len(codes_) == 1 else [rig.event(c) for c in codes_]
        rig.inst(isa.load_word(3, 7))
        rig.inst(isa.set_base(5, 1234))
        runs.append((rig.run(0), codes_[0]))
        runs.append((rig.run(0), None))
    rig.event(F.F_CUDATA, F.A_RESP)
    runs.append((rig.run(0), F.F_CUDATA))
    rig.inst(0)
    rig.event(F.A_RESP)
    rig.inst(0)
    runs.append((rig.run(0), F.A_RESP))
    rig.dump()
    got = await rig.play("events")
    for at, code in runs:
        checks.equal("event", got[at]["result"] & 0xFF if got[at]["fault"] else 0, int(code or 0))


@cocotb.test()
async def memory_faults(dut):
    """A fault of each memory instruction ends the RUN there; state and later RUNs as the model has them."""
    rig = await filled(dut)
    lines = {
        "VLD": "VLD.FP16 v1, A0", "VST": "VST.FP16 v1, A0+3", "VFILL": "VFILL A0, L1 3",
        "VDRAIN": "VDRAIN A0, L1 3", "VBAR": "VBAR", "VHALT": "VHALT",
    }  # fmt: skip
    runs = []
    for name, line in lines.items():
        for code in (F.F_MEM_RD, F.F_WDOG, F.F_L1RANGE, F.F_PEER):
            rig.inject(name, code)
            rig.delay(int(rig.rng.choice((0, 9))))
            after = [] if name == "VHALT" else ["VADD v2, v2, K1"]
            runs.append((rig.kernel("VADD v3, v3, K1", "VMUL v1, v1, K2", line, after, faults=True), code))
            runs.append((rig.kernel("VADD v4, v4, K1"), None))
        rig.dump()
    # A walk that leaves L1 at its first, a middle and no word; what came before has taken effect.
    for off, vl in ((-1, 128), (497, 128), (504, 128), (505, 112), (496, 128)):
        for dtype in ("FP16", "FP32"):
            for op in ("VLD", "VST"):
                rig.kernel(length(vl), f"{op}.{dtype} v{1 + vl % 7}, A0{off:+d}", faults=True)
        rig.dump()
    got = await rig.play("memory faults")
    for at, code in runs[:48]:
        checks.equal("code", got[at]["result"] & 0xFF if got[at]["fault"] else 0, int(code or 0))


@cocotb.test()
async def random_words(dut):
    """Random 32-bit words in random modes: each RUN ends once, as in the model, and the next one works."""
    rig = await filled(dut)
    rng = rig.rng
    total = scale(600, 12_500)
    ops = np.array(list(g.VectorOp))
    for n in range(total):
        words = []
        for _ in range(8):
            value = int(rng.integers(1 << 32))
            if rng.random() < 0.7:  # fields random, selectors mostly legal
                op = int(rng.choice(ops))
                value = op << 27 | value & 0x07FFFFFF
                if op <= 0x11 and rng.random() < 0.8:
                    value &= ~0b110
                    value = value & ~(0x3F << 21) | int(rng.choice((0, 0x15, 0x3F, 0x2A))) << 21
            op = value >> 27
            if op == g.VectorOp.VLOOP:
                value = value & ~(0xF << 13) | 13 << 13
            elif op in (g.VectorOp.VRED, g.VectorOp.VBCAST, g.VectorOp.VSETI) and (value >> 17 & 15) == 13:
                value ^= 1 << 17
            words.append(value)
        if n % 10 == 0:
            rig.registers(codes(rng, (16, 128)))
            rig.delay(int(rng.choice((0, 4))))
        mode = str(rng.choice(("FLAT", "D2", "D4", "TREE")))
        at = int(rng.integers(40))
        rig.kernel(seti("S13", int(rng.integers(64))), f"VSETMODE {mode}", words, at=at, faults=True)
        if n % 10 == 9:
            rig.dump()
        if n % 100 == 99:
            await rig.play(f"random words to {n}")


@cocotb.test()
async def reset_again(dut):
    """A second reset clears registers, predicates, scalars, lengths and instruction memory."""
    rig = await filled(dut)
    rig.kernel(length(17), "VSETMODE D4", [group(rig.rng, "D4") for _ in range(4)])
    await rig.play("before reset")
    again = await Rig(dut).start()
    again.dump()
    again.run(505)
    got = await again.play("after reset")
    checks.equal("cleared memory has no VHALT", got[-1]["result"] & 0xFF, int(F.F_PC))
