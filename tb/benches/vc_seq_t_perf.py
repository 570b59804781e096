# SPDX-License-Identifier: Apache-2.0
"""Cycle counts of the vector core's sequencer and lanes against docs/spec/vector.md 16.2."""

import cocotb

from benches.vc_seq_rig import asm, seti
from benches.vc_seq_t_vectors import filled, length
from kohakubench import checks, figures
from kohakutpu.isa import vector as isa

COPIES = 8
ADD2 = isa.encode("VADD", sa=2, sb=3, sc=3, vc=1)


def _chain(depth, vd, va):
    """One group of VADDs from `va` to `vd`."""
    words = [isa.encode("VADD", va=va, sc=3, vc=1)] + [isa.encode("VADD", sa=2, sb=3, sc=3, vc=1)] * (depth - 1)
    words[-1] |= vd << 17
    return words


def rows(n, alat):
    """(name, mode, words of copy i, bound, goal) at N = n."""
    s = alat + 1
    out = [
        ("FLAT independent", "FLAT", lambda i: [f"VADD v{4 + i % 8}, v0, v1"], n + 5, n + 1),
        ("FLAT one destination", "FLAT", lambda i: ["VADD v4, v0, v1"], n + 5, n + 1),
        ("FLAT dependent", "FLAT", lambda i: ["VADD v4, v4, v1"], n + alat + 3, n + alat + 3),
        ("seed dependent", "FLAT", lambda i: ["VEXP2 v4, v4"], n + alat + 3, n + alat + 3),
        ("predicated after its compare", "FLAT", lambda i: ["VCMPLT P0, v0, v1", f"VMOV v{4 + i % 8}, v2 where P0"],
         2 * (n + 5), 2 * (n + 1)),
        ("VCVT", "FLAT", lambda i: ["VCVT.FP16 v4, v5"], 3 * n + 5, n + 4),
        ("VCVT in place", "FLAT", lambda i: ["VCVT.FP32 v4, v4"], 3 * n + 5, n + 4),
        ("VSHUF", "FLAT", lambda i: ["VSHUF v4, v5, S1 where P1"], 3 * n + 5, n + 4),
        ("VBCAST to V", "FLAT", lambda i: [f"VBCAST v{4 + i % 8}, S1"], 3 * n + 5, n + 4),
        ("VBCAST to S", "FLAT", lambda i: ["VBCAST S1, v4"], 8, 4),
        ("VSETI", "FLAT", lambda i: seti("S1", i), 6, 2),
        ("VSETI K3", "FLAT", lambda i: seti("K3", i), 6, 2),
        ("VSETVL", "FLAT", lambda i: ["VSETVL S15"], 4, 2),
        ("VSETMODE", "FLAT", lambda i: ["VSETMODE FLAT"], 4, 2),
        ("VRED ANY", "FLAT", lambda i: ["VRED.ANY S1, P0"], 4 * s + 10, alat + 8),
        ("VRED ALL after its compare", "FLAT", lambda i: ["VCMPLT P0, v0, v1", "VRED.ALL S1, P0"],
         n + 5 + 4 * s + 10, n + 1 + alat + 8),
        ("VLD FP16 dependent VADD", "FLAT", lambda i: ["VLD.FP16 v4, A0", "VADD v5, v4, v1"],
         4 * n + 5 + n + alat + 3, None),
        ("VADD, VST FP16 of its result", "FLAT", lambda i: ["VADD v5, v4, v1", "VST.FP16 v5, A0+400"],
         3 * n + 5 + n + alat + 3, None),
        ("VLD FP16, ideal memory unit", "FLAT", lambda i: ["VLD.FP16 v4, A0"], 4 * n + 5, n + 4),
        ("VLD FP32, ideal memory unit", "FLAT", lambda i: ["VLD.FP32 v4, A0"], 8 * n + 5, 2 * n + 4),
        ("D4, VSETMODE, FLAT, VSETMODE", "D4",
         lambda i: [_chain(4, 4 + i % 4, 0), "VSETMODE FLAT", "VADD v9, v0, v1", "VSETMODE D4"],
         4 * n + 17 + 5 * s + 1 + n + 5 + 8, None),
    ]  # fmt: skip
    for kind in ("SUM", "MAX", "MIN"):
        out.append((f"VRED {kind}", "TREE", lambda i, k=kind: [f"VRED.{k} S1, v0"], n + 9 * s + 10, n + 9 * s + 10))
    for text in ("SUMSQ S1, v0", "DOT S1, v0, v1", "EXPSUM S1, v0 -> v4"):
        out.append((f"VRED {text}", "TREE", lambda i, t=text: [f"VRED.{t}"], 2 * n + 9 * s + 10, 2 * n + 9 * s + 10))
    for mode, d in (("D2", 2), ("D4", 4)):
        out.append((f"{mode} independent", mode, lambda i, d=d: _chain(d, 4 + i % 8, 0), n * d + 4 * d + 1, n * d + 1))
        out.append((f"{mode} dependent", mode, lambda i, d=d: _chain(d, 4, 4), n * d + d * s + 2, n * d + d * s + 2))
    return out


@cocotb.test()
async def cycles(dut):
    """Every row at N = 1..8: never above the bound; the goal where the sequencer and the lanes decide it."""
    rig = await filled(dut)
    alat = int(dut.ALAT.value)
    table, measured = {}, []
    for n in range(1, 9):
        runs = []
        for name, mode, copy, bound, goal in rows(n, alat):
            pair = []
            for count in (COPIES, 2 * COPIES):
                words = [copy(i) for i in range(count)]
                pair.append(rig.kernel(length(16 * n), seti("S1", 3), f"VSETMODE {mode}", words))
            runs.append((name, *pair, bound, goal))
        got = await rig.play(f"N = {n}")
        for name, one, two, bound, goal in runs:
            for at in (one, two):
                checks.equal(f"{name} runs", got[at]["fault"], 0)
            spent = (got[two]["result"] - got[one]["result"]) / COPIES
            table.setdefault(name, []).append((spent, bound, goal))
            measured.append({"name": name, "n": n, "cycles": spent, "bound": bound, "goal": goal})
            waited = (got[two]["stalls"] - got[one]["stalls"]) / COPIES
            if name.startswith("FLAT"):  # the wait between the last beat and the first result
                due = alat + 3 - n if name == "FLAT dependent" else 0
                checks.equal(f"{name} at N = {n}: hazard stalls", waited, due)
            checks.true(f"{name} at N = {n}", spent <= bound, f"{spent} cycles, bound {bound}")
            if goal is not None:
                checks.true(f"{name} at N = {n}", spent <= goal, f"{spent} cycles, goal {goal}")
    figures.write("sequencer", measured)
    for name, line in table.items():
        spent = " ".join(f"{value:g}" for value, _, _ in line)
        dut._log.info(f"{name:32s} N=1..8: {spent}; at N=8 bound {line[-1][1]}, goal {line[-1][2]}")


@cocotb.test()
async def gapless(dut):
    """Beats of consecutive independent instructions follow without a gap, in each mode and across depths."""
    rig = await filled(dut)
    runs = []
    for mode, depth in (("FLAT", 1), ("D2", 2), ("D4", 4)):
        for count in (4, 12):
            words = [_chain(depth, 4 + i % 8, 0) for i in range(count)]
            runs.append(rig.kernel(length(128), f"VSETMODE {mode}", words))
    deeper = [
        asm(f"VSETMODE {m}", [_chain(d, 4 + i, 0) for i in range(3)]) for m, d in (("FLAT", 1), ("D2", 2), ("D4", 4))
    ]
    runs.append(rig.kernel(length(128), deeper))
    got = await rig.play("gapless")
    for at, depth in zip((0, 2, 4), (1, 2, 4), strict=True):
        few, many = runs[at], runs[at + 1]
        checks.equal(f"depth {depth}", got[many]["result"] - got[few]["result"], 8 * 8 * depth)
    checks.equal("beats of rising depth", got[runs[-1]]["beats"], 3 * 8 * 7)
    alat = int(dut.ALAT.value)
    checks.true(
        "rising depth", got[runs[-1]]["result"] <= 3 * 8 * 7 + 4 * (alat + 1) + 24, str(got[runs[-1]]["result"])
    )
