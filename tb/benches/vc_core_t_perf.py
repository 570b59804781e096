# SPDX-License-Identifier: Apache-2.0
"""Cycle counts of kernels against docs/spec/vector.md 16.2, with L = 40 and one flit a cycle."""

from __future__ import annotations

import cocotb

from benches.vc_core_rig import Rig, Trace
from kohakubench import checks, clocks, figures, seed
from kohakubench.vector_programs import SOURCE, TARGET

START = "VSETMODE FLAT; S0 = 128; VSETVL S0\n"
SILU = "VMUL v1, v0, K3; VEXP2 v1, v1; VADD v1, v1, K1; VINV v1, v1; VMUL v1, v0, v1\n"


def elements(rig: Rig) -> None:
    """1,024 FP16 elements: 64 words in, 64 words out."""
    rig.describe(0, SOURCE, (32, 64))
    rig.describe(1, 0, (1, 8))
    rig.describe(2, TARGET, (32, 64))


def copy_kernel(between: str, inner: str = "v0") -> str:
    """The kernel of the second table: fill, eight times (load, arithmetic, store), drain."""
    text = START + "K3 = 0xbfb8aa\nVFILL A0, L1 0; VBAR\n"
    for c in range(8):
        text += f"VLD.FP16 v0, A1+{8 * c}\n{between}VST.FP16 {inner}, A1+{64 + 8 * c}\n"
    return text + "VDRAIN A2, L1 64"


def pairs_kernel() -> str:
    """silu on two chunks at a time, their operations interleaved."""
    text = START + "K3 = 0xbfb8aa\nVFILL A0, L1 0; VBAR\n"
    for c in range(0, 8, 2):
        text += f"VLD.FP16 v0, A1+{8 * c}; VLD.FP16 v2, A1+{8 * c + 8}\n"
        for step in ("VMUL {1}, {0}, K3", "VEXP2 {1}, {1}", "VADD {1}, {1}, K1", "VINV {1}, {1}", "VMUL {1}, {0}, {1}"):
            text += step.format("v0", "v1") + "; " + step.format("v2", "v3") + "\n"
        text += f"VST.FP16 v1, A1+{64 + 8 * c}; VST.FP16 v3, A1+{72 + 8 * c}\n"
    return text + "VDRAIN A2, L1 64"


def latency(t: Trace) -> int:
    """L: cycles from a request accepted on send_* to its response on recv_*."""
    return t.responses[0] - t.requests[0]


async def measure(dut, text: str) -> tuple[int, Trace]:
    """Cycles of one RUN of a kernel on 1,024 elements."""
    rig = Rig(dut, seed())
    elements(rig)
    rig.text(text)
    index = rig.go()
    t = await rig.run()
    return t.cycles(index), t


@cocotb.test()
async def kernels_of_the_table(dut):
    """The kernels of section 16.2 within their bounds and goals."""
    clocks.start(dut.clk)
    measured, stalls = [], {}
    for name, text, operations, bound, goal in (
        ("copy", copy_kernel("VMOV v0, v0\n"), 1, 1819, 650),
        ("silu", copy_kernel(SILU, "v1"), 5, 2619, 1450),
        ("silu in pairs", pairs_kernel(), 5, 2619, 950),
    ):
        spent, t = await measure(dut, text)
        checks.equal("L", latency(t), 40)
        dut._log.info("%s: %d cycles, bound %d, goal %d", name, spent, bound, goal)
        checks.true(f"{name}: {spent} cycles within {bound}", spent <= bound)
        checks.true(f"{name}: {spent} cycles within the goal {goal}", spent <= goal)
        beats = operations * 64
        counted = t.counted(-1)
        dut._log.info("%s: %s", name, counted)
        seen = {"lane beats": beats, "L1-port stalls": 0, "fill words": len(t.responses), "drain words": len(t.of(4))}
        checks.equal(f"{name}: counts", {key: counted[key] for key in seen}, seen, n=len(seen))
        stalls[name] = counted["hazard stalls"]
        measured.append({"name": name, "cycles": spent, "bound": bound, "goal": goal, "beats": beats})
    # each of the four operations that read the one before waits ALAT + 3 cycles less its own 8 beats
    waited = 8 * 4 * (int(dut.ALAT.value) + 3 - 8)
    checks.equal("hazard stalls of silu beyond those of copy", stalls["silu"] - stalls["copy"], waited)
    figures.write("kernels", measured)


def chain_kernel(depth: int, operations: int, alat: int) -> tuple[str, int]:
    """Eight times (load, operations each reading the one before, store) between a fill and a drain, and its bound.

    Whole groups run in the mode of ``depth``, the rest in FLAT; without a rest the mode stays. The bound is the sum of
    those of the instructions; VST and every VSETMODE wait for the lanes.
    """
    mode = {1: "FLAT", 2: "D2", 4: "D4"}[depth]
    groups = operations // depth if depth > 1 else 0
    rest = operations - groups * depth
    lines = ["VLD.FP16 v0, A1{load:+d}"]
    step = ("VADD v0, {0}, K1 {{sb=3}}", "VMUL v0, {0}, K3 {{sc=3}}")
    changes = bool(groups and rest)
    lines += [f"VSETMODE {mode}"] * changes
    for g in range(groups):
        lines += [step[(g * depth + i) % 2].replace("{0}", "C" if i else "v0") for i in range(depth)]
    lines += ["VSETMODE FLAT"] * changes
    lines += [step[i % 2].replace("{0}", "v0") for i in range(groups * depth, operations)]
    body = "\n".join([*lines, "VST.FP16 v0, A1{store:+d}"]) + "\n"
    text = START if rest else START.replace("FLAT", mode)
    text += "K3 = 0xbfb8aa\nVFILL A0, L1 0; VBAR\n"
    text += "".join(body.format(load=8 * c, store=64 + 8 * c) for c in range(8))
    wait = 5 * (alat + 1) + 1
    lanes = groups * (8 * depth + depth * (alat + 1) + 2) + rest * (8 + alat + 3) + wait
    switches = 2 * (4 + wait) * changes
    return text + "VDRAIN A2, L1 64", (3 * 64 + 50) + (5 * 64 + 8) + 22 + 8 * (37 + 29 + lanes + switches)


@cocotb.test()
async def chains_by_mode(dut):
    """1, 2, 4 and 9 operations over 1,024 elements, each reading the one before, in FLAT, D2 and D4."""
    clocks.start(dut.clk)
    alat, measured = int(dut.ALAT.value), []
    for depth in (1, 2, 4):
        for operations in (1, 2, 4, 9):
            if operations < depth:
                continue
            text, bound = chain_kernel(depth, operations, alat)
            spent, _ = await measure(dut, text)
            checks.true(f"D{depth}, {operations} operations: {spent} cycles within {bound}", spent <= bound)
            measured.append({"depth": depth, "operations": operations, "cycles": spent, "bound": bound})
    figures.write("chains", measured)


@cocotb.test()
async def fills_and_drains(dut):
    """VFILL with VBAR, and VDRAIN to memory, for 1 to 256 words, against an empty kernel."""
    clocks.start(dut.clk)
    sizes = (1, 2, 8, 9, 64, 255, 256)
    rig = Rig(dut, seed())
    rig.text("VBAR")
    rig.text("VFILL A0, L1 0; VBAR", 20)
    rig.text("VDRAIN A1, L1 0", 40)
    empty = rig.go()
    marks = []
    for n in sizes:
        rig.describe(0, SOURCE, (32, n))
        rig.describe(1, TARGET, (32, n))
        marks.append((n, rig.go(20), rig.go(40)))
    t = await rig.run()
    base, lat = t.cycles(empty), latency(t)
    measured = []
    for n, fill, drain in marks:
        spent = t.cycles(fill) - base
        checks.true(f"VFILL {n}: {spent}", spent <= 3 * n + lat + 10)
        checks.true(f"VFILL {n}: {spent}, goal", spent <= n + lat + 16)
        row = {"name": "VFILL and VBAR", "n": n, "cycles": spent, "bound": 3 * n + lat + 10, "goal": n + lat + 16}
        measured.append(row)
        spent = t.cycles(drain) - base
        checks.true(f"VDRAIN {n}: {spent}", spent <= 5 * n + 8)
        checks.true(f"VDRAIN {n}: {spent}, goal", spent <= n + -(-n // 8) + 12)
        row = {"name": "VDRAIN", "n": n, "cycles": spent, "bound": 5 * n + 8, "goal": n + -(-n // 8) + 12}
        measured.append(row)
    figures.write("moves", measured)


@cocotb.test()
async def double_buffering(dut):
    """Six batches, each filled during the arithmetic of the one before: at most the longer of both, plus a tenth."""
    clocks.start(dut.clk)
    batches = 6

    def kernel(fill: bool, rest: bool) -> str:
        text = START + "K3 = 0xbfb8aa\n"
        for i in range(batches):
            half = 64 * (i % 2)
            if fill and i == 0:
                text += f"VFILL A0, L1 {half}\n"
            if fill and i < batches - 1:
                text += f"VFILL A0, L1 {64 - half}\n" if rest else f"VBAR; VFILL A0, L1 {64 - half}\n"
            if rest:
                for c in range(half, half + 64, 8):
                    text += f"VLD.FP16 v0, A1+{c}\n{SILU}VST.FP16 v1, A1+{c}\n"
                text += f"VDRAIN A2, L1 {half}\n"
        return text

    spent = {}
    for fill, rest in ((True, True), (True, False), (False, True)):
        rig = Rig(dut, seed(), cfg_lat=197)
        elements(rig)
        rig.text(kernel(fill, rest))
        index = rig.go()
        t = await rig.run()
        if fill:
            checks.equal("L", latency(t), 200)
        spent[fill, rest] = t.cycles(index)
    both, fills, others = spent[True, True], spent[True, False], spent[False, True]
    dut._log.info("both %d, fills %d, rest %d", both, fills, others)
    figures.write("double_buffering", [{"both": both, "fills": fills, "rest": others, "batches": batches}])
    checks.true(f"{both} against {fills} and {others}", both <= 1.1 * max(fills, others))


ALU = "VADD v{d}, v{a}, v15"
CHAIN = {1: ALU, 2: ALU + "; VMUL v{d}, C, K1 {{sc=3}}"}
CHAIN[4] = CHAIN[2] + "; VADD v{d}, C, K1 {{sb=3}}; VMUL v{d}, C, K1 {{sc=3}}"


def group(depth: int, target: int, source: int) -> str:
    """One group of the mode with that depth."""
    return CHAIN[depth].format(d=target, a=source)


def steps(dut, n: int) -> list[tuple[str, str, list[str], int, int]]:
    """(name, mode, instructions of which each step takes one, bound, goal) of section 16.2 for N chunks."""
    alat = int(dut.ALAT.value)
    rows: list[tuple[str, str, list[str], int, int]] = []
    for mode, depth in (("FLAT", 1), ("D2", 2), ("D4", 4)):
        free = [group(depth, 1 + k, 0) for k in range(10)]
        chained = [group(depth, k % 2, (k + 1) % 2) for k in range(10)]
        own = n * depth + 4 * depth + 1 if depth > 1 else n + 5
        follow = n * depth + depth * (alat + 1) + 2 if depth > 1 else n + alat + 3
        rows.append((f"{mode} independent", mode, free, own, n * depth + 1))
        rows.append((f"{mode} dependent", mode, chained, follow, follow))
    for form, wide in (("FP16", 1), ("FP32", 2)):
        loads = [f"VLD.{form} v{k}, A0" for k in range(10)]
        rows.append((f"VLD {form}", "FLAT", loads, 4 * wide * n + 5, wide * n + 4))
        stores = [f"VST.{form} v{k}, A0" for k in range(10)]
        rows.append((f"VST {form}", "FLAT", stores, (3 if wide == 1 else 4) * n + 5, wide * n + 4))
    moves = {"VCVT": "VCVT.FP16 v{0}, v15", "VSHUF": "VSHUF v{0}, v15, S1", "VBCAST": "VBCAST v{0}, S1"}
    for name, text in moves.items():
        rows.append((name, "FLAT", [text.format(k) for k in range(10)], 3 * n + 5, n + 4))
    rows.append(("VBCAST to S", "FLAT", [f"VBCAST S{k}, v15" for k in range(10)], 8, 4))
    full = n + 9 * (alat + 1) + 10
    rows.append(("VRED full rate", "TREE", [f"VRED.SUM S{k}, v15" for k in range(10)], full, full))
    rows.append(("VRED half rate", "TREE", [f"VRED.DOT S{k}, v14, v15" for k in range(10)], full + n, full + n))
    rows.append(("VRED ANY", "FLAT", [f"VRED.ANY S{k}, P1" for k in range(10)], 4 * (alat + 1) + 10, alat + 8))
    rows.append(("VSETI", "FLAT", [f"S{k} = 5" for k in range(10)], 6, 2))
    rows.append(("VSETVL", "FLAT", ["VSETVL S15"] * 10, 4, 2))
    rows.append(("VSETMODE", "FLAT", ["VSETMODE FLAT"] * 10, 4, 2))
    return rows


@cocotb.test()
async def instruction_bounds(dut):
    """Cycles of every instruction class for N = 1..8, from the difference of ten and two of them in a kernel."""
    clocks.start(dut.clk)
    late = []
    for n in range(1, 9):
        rig = Rig(dut, seed())
        rig.describe(0, 0, (1, 16))
        rows = steps(dut, n)
        marks = []
        for _, mode, parts, _, _ in rows:
            pair = []
            for count in (2, 10):
                rig.text(f"S15 = {16 * n}; VSETVL S15; S1 = 3; VSETMODE {mode}\n" + "\n".join(parts[:count]))
                pair.append(rig.go())
            marks.append(pair)
        t = await rig.run()
        for (name, _, _, bound, goal), (two, ten) in zip(rows, marks, strict=True):
            spent = (t.cycles(ten) - t.cycles(two)) / 8
            checks.true(f"{name}, N = {n}: {spent} cycles, bound {bound}", spent <= bound)
            if spent > goal:
                late.append(f"{name} N={n}: {spent}, goal {goal}")
    dut._log.info("above their goal: %s", late)
    checks.equal("instructions above their goal", late, [])
