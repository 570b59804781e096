# SPDX-License-Identifier: Apache-2.0
"""Order, pressure and protocol errors of the L2 adapter (docs/spec/memory.md 11.4)."""

import cocotb

from benches.mag_adapter_rig import EP, ORCH, WINDOW, AdapterTb, wired
from kohakubench import adapter_model as am
from kohakubench import checks, clocks, scale
from kohakubench.mag_model import CU_DATA, WORD, flit


@cocotb.test()
async def ack_order(dut):
    """Local and forwarded writes alternate with agent acknowledgements 1,000 cycles late; 64 and one more."""
    if wired(dut):
        return
    tb = await AdapterTb.start(dut, lat_min=1000, lat_max=1400)
    for mix in (lambda k: k % 2, lambda k: k % 5 == 0, lambda k: k in (0, 64), lambda k: tb.rng.randrange(2)):
        script = []
        for k in range(70):
            at = tb.rng.randrange(64) * WORD
            script += tb.write(at if mix(k) else WINDOW + at, 1, txn=k)
        await tb.play(script)
    far = [f for k in range(66) for f in tb.write(WORD * k, 1, txn=k)]
    await tb.play([*far, *tb.write(WINDOW, 4, txn=99), tb.read(WINDOW, 4, txn=1)])
    bad = [
        tb.write(WINDOW + 3, 2, txn=1),
        tb.write(WINDOW - WORD, 2, txn=2),
        tb.write(0, 2, txn=3),
        tb.write(WINDOW, 2, txn=4),
    ]
    for _ in range(6):
        await tb.play([f for w in tb.rng.sample(bad, 4) for f in w])
    await tb.registers()


@cocotb.test()
async def control_blocked(dut):
    """Replies blocked by a jammed router face with 1 to 6 requests: data still reaches the endpoint."""
    if wired(dut):
        return
    tb = await AdapterTb.start(dut)
    await tb.fill()
    for n in range(1, 7):
        dut.rt_mode.value = 1
        jam = [flit(dst=0x11, src=EP, kind=CU_DATA, txn=k, payload=k) for k in range(3)]
        reads = [tb.read(WINDOW + 96, 20, txn=4)]
        ct = [(am.control(EP, ORCH, 0x50 + k, am.CAPS), 40 * (k == 0)) for k in range(n)]
        inward = [(flit(dst=EP, src=0x21, kind=CU_DATA, txn=k, payload=tb.word()), 0) for k in range(20)]
        await tb.load([*reads, *jam], ct + inward if n < 5 else [*ct[:4], *ct[4:]], discarded=max(0, n - 4))
        await clocks.cycles(400)
        checks.equal("router face jammed", int(dut.n_rt_cap.value), 0)
        checks.equal("data passed", int(dut.n_ep_cap.value), 20 + (20 if n < 5 else 0))
        dut.rt_mode.value = 0
        await tb.finish()
        checks.equal("STATUS", await tb.setup(am.STATUS), am.CTRL_LOST if n > 4 else 0)
        await tb.setup(am.STATUS, 0)


@cocotb.test()
async def stalls(dut):
    """Endpoint stalled or router face jammed during a run, runs back to back, writes and control inside a run."""
    if wired(dut):
        return
    tb = await AdapterTb.start(dut)
    await tb.fill()
    runs = [tb.read(WINDOW, 256, txn=1), tb.read(WINDOW + WORD * 8, txn=2, ew=3, count=60)]
    dut.ep_mode.value = 1
    await tb.load(runs)
    await clocks.cycles(300)
    checks.equal("nothing taken", int(dut.n_ep_cap.value), 0)
    dut.ep_mode.value = 0
    await tb.finish()
    dut.rt_mode.value = 1
    await tb.load([*runs, tb.read(0, 8, txn=200), flit(dst=0x11, src=EP, kind=CU_DATA)])
    await clocks.cycles(1000)
    checks.equal("served behind a jammed face", int(dut.n_ep_cap.value), len(tb.model.responses))
    dut.rt_mode.value = 0
    await tb.finish()
    for ep_mode, rt_mode in ((0, 0), (2, 2), (3, 3), (3, 2)):
        dut.ep_mode.value, dut.rt_mode.value, dut.ep_level.value, dut.rt_level.value = ep_mode, rt_mode, 120, 60
        await tb.play(
            [*runs, *tb.write(WINDOW + 400 * WORD, 8, txn=5), *runs[::-1], tb.read(0, 100, txn=180)],
            [(am.control(EP, ORCH, k, am.BASE), tb.rng.randrange(30)) for k in range(4)],
            limit=200_000,
        )
    await tb.registers()


@cocotb.test()
async def protocol_errors(dut):
    """Second descriptor while open, wrong `last`, unaligned, tag overflow; the next write works."""
    if wired(dut):
        return
    tb = await AdapterTb.start(dut)
    await tb.fill()
    here, there, bad = WINDOW + 0x400, 0x400, WINDOW + 0x401
    kinds = {"here": here, "there": there, "refused": bad}
    for first in kinds.values():
        for second in kinds.values():
            for sent in (0, 1, 3):
                await tb.play(
                    [
                        *tb.write(first, 4, txn=1)[: 1 + sent],
                        *tb.write(second + 0x400, 2, txn=2),
                        *tb.write(here, 1, txn=3),
                    ]
                )
                await tb.play([tb.read(here, 8, txn=4), tb.read(there, 8, txn=200)])
                await tb.registers()
    for at in kinds.values():
        for lasts in ([0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 1]):
            await tb.play([*tb.write(at, 4, txn=1, lasts=lasts), *tb.write(at + 0x400, 2, txn=2), tb.read(here, 6)])
            await tb.registers()
            await tb.setup(am.STATUS, 0)
    await tb.play(
        [tb.read(here + 5, 4), tb.read(here, txn=254, ew=2, count=3), tb.read(here + 1, txn=255, ew=1, count=2)]
    )
    await tb.play([tb.write(here, 3)[1], tb.read(here, txn=253, ew=2, count=3)])
    checks.equal("orphan at the agent", tb.agent.orphans, 1)
    await tb.registers()
    await tb.setup(am.ENABLE, 0)
    await tb.play(tb.write(there, 2))
    await tb.play([tb.read(there, 2, txn=200)])


@cocotb.test()
async def random_traffic(dut):
    """Random requests in and around the window, local tags below 128, random stalls on both faces."""
    if wired(dut):
        return
    tb = await AdapterTb.start(dut)
    await tb.fill()
    for _ in range(scale(4, 60)):
        script = []
        for _ in range(60):
            mine = tb.rng.random() < 0.6
            ew, count, n = tb.rng.randrange(6), tb.rng.randrange(6), tb.rng.randrange(1, 9)
            span = tb.lines if mine else tb.agent.dram_bytes // WORD
            at = tb.rng.randrange(span // 2 - 30) * WORD + (WINDOW if mine else 0)
            txn = tb.rng.randrange(120) + (0 if mine else 128)
            kind = tb.rng.randrange(5)
            if kind < 2:  # reads never meet a write in flight: they use the lower half
                script.append(tb.read(at, n, txn=txn) if kind else tb.read(at, txn=txn, ew=ew, count=count))
            elif kind == 2:
                script.append(flit(dst=0x11, src=EP, kind=CU_DATA, txn=txn, payload=tb.word()))
            else:
                script += tb.write(at + span // 2 * WORD, n, txn=txn)
        dut.ep_mode.value, dut.rt_mode.value = tb.rng.randrange(0, 4) & 2, tb.rng.choice((0, 2, 3))
        dut.ep_level.value, dut.rt_level.value = tb.rng.randrange(200), tb.rng.randrange(120)
        ct = [(am.control(EP, ORCH, k, am.BASE), tb.rng.randrange(200)) for k in range(3)]
        ct += [(flit(dst=EP, src=0x21, kind=CU_DATA, txn=k, payload=tb.word()), tb.rng.randrange(9)) for k in range(30)]
        await tb.play([(f, tb.rng.choice((0, 0, 2))) for f in script], ct, limit=200_000)
    dut.ep_mode.value = dut.rt_mode.value = 0
    await tb.play([tb.read(WINDOW + k * WORD, 256) for k in range(0, tb.lines, 256)])
    got = await tb.dram.read(0, tb.agent.dram_bytes)
    checks.equal("DRAM", got, bytes(tb.agent.memory), n=len(got) // WORD)
    await tb.registers()
