# SPDX-License-Identifier: Apache-2.0
"""Registers and window of the L2 adapter: what it serves, refuses and passes (docs/spec/memory.md 11.2, 11.3)."""

import json

import cocotb

from benches.mag_adapter_rig import EP, ORCH, WINDOW, AdapterTb, wired
from kohakubench import adapter_model as am
from kohakubench import checks
from kohakubench.bench import ROOT
from kohakubench.mag_model import CU_DATA, M_APER, RD_RESP, WORD, Flit, flit


@cocotb.test()
async def reset_state(dut):
    """Disabled after reset; register values and replies; neighbours of the index range reach the endpoint."""
    if wired(dut):
        return
    tb = await AdapterTb.start(dut, on=False)
    caps = 2 << 48 | 1 << 40 | (tb.lines * WORD).bit_length() - 1 << 32 | tb.lines
    checks.equal("CAPS", await tb.setup(am.CAPS), caps)
    low = 0xF000_0000 // (tb.lines * WORD) * tb.lines * WORD
    checks.equal("reset values", [await tb.setup(k) for k in range(0xE1, 0xE8)], [low, 0, 0, 0, 0, 0, 0], n=7)
    for base in (0, 0x40, 0xF000_0000, 0xF000_0000 - WORD):  # in-window traffic of a disabled adapter
        await tb.play([*tb.write(base % 2**18, 8), *tb.write(base, 8)])
        await tb.play([tb.read(base % 2**18, 8), tb.read(base, 8)])
    everything = [am.control(EP, ORCH, k, k) for k in range(256)]
    await tb.play([], everything)
    ones = (1 << 64) - 1
    await tb.play([], [am.control(EP, ORCH, k, k, ones) for k in range(0xDC, 0xEC)])
    checks.equal("BASE", await tb.setup(am.BASE), (1 << 40) - tb.lines * WORD)
    checks.equal("ENABLE", await tb.setup(am.ENABLE), 1)
    odd = flit(dst=EP, src=ORCH, kind=am.CU_CTRL, last=1, payload=7 << 248 | am.ENABLE << 240)
    await tb.play([], [odd, am.control(EP, ORCH, 5, am.ENABLE, 0)])
    examples = json.loads((ROOT / "spec" / "memory.json").read_text())["adapter"]["mailbox_examples"]
    flits = [sum(int(w, 16) << 64 * k for k, w in enumerate(x["words"])) for x in examples]
    await tb.play([], flits[:3])
    if tb.lines == 8192:
        checks.equal("example reply", tb.rt[-1], flits[3])


@cocotb.test()
async def shapes(dut):
    """8 + 8 lines written, then STREAM 4x4, plain 4, entries of 1 to 3; 256 lines; the last line."""
    if wired(dut):
        return
    tb = await AdapterTb.start(dut)
    await tb.play([*tb.write(WINDOW, 8, txn=1), *tb.write(WINDOW + 256, 8, txn=2)])
    await tb.play([tb.read(WINDOW, txn=4, ew=4, count=4), tb.read(WINDOW + 64, 4, txn=9)])
    for ew in (1, 2, 3, 4, 0, 5, 255):
        await tb.play(
            [tb.read(WINDOW + 32 * ew % 96, txn=20, ew=ew, count=c, noise=tb.rng.getrandbits(40)) for c in (0, 1, 3)]
        )
    await tb.fill()
    await tb.play(
        [tb.read(WINDOW + 64 * WORD, 256, txn=3), tb.read(WINDOW, txn=0, ew=1, count=255), tb.read(tb.end - WORD)]
    )
    cycles = tb.ep_cycles
    checks.true("a line a cycle", cycles[255] - cycles[0] <= 258, f"{cycles[255] - cycles[0]}")
    await tb.play(
        [
            *tb.write(tb.end - WORD, txn=8),
            tb.read(tb.end - WORD, txn=9),
            tb.read(tb.end - 5 * WORD, txn=1, ew=5, count=1, rsvd=0),
        ]
    )
    await tb.registers()


@cocotb.test()
async def edges(dut):
    """Runs that end at, cross, enter and span the window; a refused access leaves every line alone."""
    if wired(dut):
        return
    tb = await AdapterTb.start(dut)
    await tb.fill()
    for n in (1, 2, 8):
        for at in (WINDOW - n * WORD, WINDOW - WORD, WINDOW, tb.end - n * WORD, tb.end - WORD, tb.end):
            await tb.play([*tb.write(at, n, txn=n), tb.read(at, n, txn=n + 1)])
            await tb.play([tb.read(at, txn=30, ew=1, count=n), tb.read(at, txn=40, ew=2, count=(n + 1) // 2)])
    await tb.play([tb.read(WINDOW - 64, txn=0, ew=4, count=255), tb.read(WINDOW - 64, txn=0, ew=3, count=200)])
    await tb.play([*tb.write(WINDOW - 64, 256, txn=3), *tb.write(tb.end - 64, 256, txn=4), *tb.write(WINDOW, 256)])
    await tb.registers()
    await tb.setup(am.BASE, (1 << 40) - 1)  # the top of the address space: nothing wraps to 0
    top = (1 << 40) - WORD
    await tb.play(
        [tb.read(top, 1), tb.read(top, 2, txn=1), *tb.write(top, 2, txn=5), tb.read(0, 2, txn=9), *tb.write(0x4000, 2)]
    )
    await tb.registers()


@cocotb.test()
async def elsewhere(dut):
    """Another mesh misses, multicast is forwarded and counted, ignored flags, foreign flits in order."""
    if wired(dut):
        return
    tb = await AdapterTb.start(dut)
    for mesh in (1, 2, 3):
        at = WINDOW | mesh << 36
        await tb.play([*tb.write(at, 3), tb.read(at, 3, txn=200)])
    peers = [tb.read(WINDOW + 64, txn=200, ew=2, count=3, peers=(0x11,) * n) for n in (1, 2, 3)]
    await tb.play([*peers, tb.read(WINDOW - 64, txn=200, ew=2, count=3, peers=(0x11,))])
    await tb.registers()
    marked = [tb.read(WINDOW, 2, txn=210, rsvd=4), tb.read(WINDOW, 2, txn=3), *tb.write(WINDOW, 2, rsvd=4)]
    await tb.play(marked)
    plain = tb.read(WINDOW, txn=4, ew=2, count=4)
    await tb.play([plain ^ 1 << 204, plain ^ 1 << 205, plain])
    other = [flit(dst=0x21, src=EP, kind=k, txn=t, payload=tb.word()) for t in range(5) for k in (6, 7, 8)]
    other += [flit(dst=0x11, src=EP, kind=CU_DATA, rsvd=5, payload=tb.word())]
    await tb.play(tb.rng.sample(other, len(other)))
    inward = [flit(dst=EP, src=0x21, kind=k, txn=k, rsvd=r, payload=tb.word()) for k in (5, 6, 7, 8, 2) for r in (0, 2)]
    keep = [f for f in inward if Flit.of(f).kind not in (RD_RESP,)]
    await tb.play([], keep)
    await tb.setup(am.ENABLE, 0)
    await tb.play([*tb.write(WINDOW, 2), tb.read(WINDOW, 2, txn=255)])
    checks.equal("disabled", {c for c, *_ in tb.agent.faults}, {M_APER}, n=2)


@cocotb.test()
async def wires(dut):
    """PASS = 1: both faces are equal in every cycle."""
    if not wired(dut):
        return
    tb = await AdapterTb.start(dut, on=False)
    dut.rt_mode.value = 2
    dut.rt_level.value = 90
    script = [f for k in range(40) for f in tb.write(k * 256, 8, txn=k)] + [tb.read(0x20, 200, txn=3)]
    await tb.play(script, [flit(dst=EP, src=0x21, kind=CU_DATA, txn=k, payload=tb.word()) for k in range(50)])
    checks.equal("cycles in which the faces differ", int(dut.unlike.value), 0)
