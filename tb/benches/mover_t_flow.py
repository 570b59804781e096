# SPDX-License-Identifier: Apache-2.0
"""Bursts, queue, completion and speed of the mover beside other traffic (docs/spec/memory.md 12.1, 12.5)."""

import itertools

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, with_timeout

from kohakubench import checks, clocks, scale
from kohakubench.mag_model import WORD, read_request, write_flits
from kohakubench.mag_tb import UNITS
from kohakubench.mover_tb import HALF, IMM, SEED, MoverTb, copy, line, move
from kohakutpu.isa.generated import MoverMode


@cocotb.test()
async def caps(dut):
    """Burst caps 1 to 128 with and without coalescing: same bytes, bursts within cap and page, joined if asked."""
    m = await MoverTb.start(dut)
    for cap, coalesce in itertools.product(range(8), (True, False)):
        most = 128 if cap == 0 else 1 << cap - 1
        n, at = 200, HALF + 0x1000 - 0x60
        await m.tb.play(
            [read_request(UNITS[0], 0, m.own(0), 1, port=m.tb.port)], compare=False
        )  # restarts the bus record
        await m.run(copy(line(m.own(0xFA0), n), line(m.own(at), n), cap=cap, coalesce=coalesce))
        await m.tb._collect()
        bursts = [(w, length + 1, a) for w, _, length, a in m.tb.bus if a >= HALF or a >= 0xFA0]
        checks.true("cap", all(length <= most for _, length, _ in bursts))
        checks.true("page", all((a % 4096) // WORD + length <= 128 for _, length, a in bursts))
        writes = [length for w, length, _ in bursts if w]
        checks.equal("words", sum(writes), n)
        joined = -(-3 // most) + -(-128 // most) + -(-69 // most) if coalesce else n
        checks.equal("write bursts", len(writes), joined)
        await m.memories()


@cocotb.test()
async def queued(dut):
    """Registers and GO written while a move runs, three moves queued, a full queue: nothing lost or mixed."""
    m = await MoverTb.start(dut, lat_min=20, lat_max=60)
    spots = [m.own(HALF + 0x2000 * k) for k in range(3)]
    script = copy(line(m.own(0), 120), spots and line(spots[0], 120))
    script += [(IMM, 0x1234), *move(MoverMode.FILL, None, line(spots[1], 90), ewidth=1)]
    script += [(IMM, 0x77), (SEED, 5), *move(MoverMode.GENERATE, None, line(spots[2], 30))]
    await m.run(script)
    await m.memories()
    chain = copy(line(m.own(0x100), 100), line(m.staged(0), 100))
    chain += copy(line(m.staged(0), 100), line(m.staged(0x2000), 100), cap=4)
    chain += copy(line(m.staged(0x2000), 100), line(m.own(HALF + 0x4000), 100), coalesce=False)
    await m.run(chain)
    checks.equal("carried over", m.read(m.own(HALF + 0x4000), 100), m.read(m.own(0x100), 100), n=100)
    await m.memories()
    # A long move, and behind it more writes than the queue holds.
    script = copy(line(m.own(0), 400), line(m.own(HALF), 400), cap=1, coalesce=False)
    for k in range(100):
        script += [(IMM, k), (72, k), (0x58 + 8 * (k % 4), k), (0x80, k)]
    script += move(MoverMode.FILL, None, line(m.own(HALF + 0x6000), 8))
    await m.run(script)
    checks.true("queue filled", int(dut.aux_held.value) > 100, f"{int(dut.aux_held.value)} cycles held")
    await m.memories()


@cocotb.test()
async def visible_when_idle(dut):
    """Busy holds until the last write has its response: then a unit and the memory itself see the bytes."""
    m = await MoverTb.start(dut, lat_min=300, lat_max=500)
    for k in range(scale(4, 30)):
        target = line(m.own(HALF + 0x800 * k), 24)
        script = copy(line(m.own(0x200 * k), 24), target)
        for offset, data in script:
            m.mover.write(offset, data)
        (m.tb.dir / "aux.hex").write_text("\n".join(f"{o << 64 | v:020x}" for o, v in script) + "\n")
        dut.n_aux.value = len(script)
        dut.aux_play.value = 1
        await with_timeout(RisingEdge(dut.aux_done), 50_000 * clocks.PERIOD_NS, "ns")
        dut.aux_play.value = 0
        got = await m.tb.dram.read(HALF + 0x800 * k, 24 * WORD)
        checks.equal("bytes when idle", got, m.agent.dram.read(HALF + 0x800 * k, 24 * WORD).tobytes())
        await clocks.cycles(3)
    m.tb.model.memory[:] = m.agent.dram.read(0, m.tb.bytes).tobytes()
    await m.tb.play([read_request(UNITS[1], 3, m.own(HALF), 24, port=m.tb.port)])


@cocotb.test()
async def beside_the_port(dut):
    """A move and a busy mesh port share both memories: bytes exact, both finish; port counters of AUX_STAT."""
    m = await MoverTb.start(dut)
    before = int(dut.aux_stat.value)
    steps, n_reads, n_writes = [], 0, 0
    for k in range(60):
        if k % 2:
            steps += write_flits(
                UNITS[1], k, m.staged(0x8000 + 256 * (k % 30)), [m.rng.getrandbits(256)] * 8, port=m.tb.port
            )
            n_writes += 1
        else:
            steps.append(read_request(UNITS[0], k, m.own(0x40 * k), port=m.tb.port, ew=2, count=7))
            n_reads += 7
    steps.append(read_request(UNITS[0], 0, m.own(0), 30, port=m.tb.port))
    steps.append(read_request(UNITS[0], 0, m.own(m.tb.bytes), 30, port=m.tb.port))
    play = cocotb.start_soon(m.tb.play(steps, compare=False))
    await m.run(copy(line(m.own(0x1000), 400), line(m.staged(0), 400)))
    await m.run(copy(line(m.staged(0), 400), line(m.own(HALF), 400)))
    await play
    m.tb.compare_flits()
    m.agent.stage.write(0x8000, np.frombuffer(bytes(m.tb.model.stage[0x8000:]), dtype=np.uint8))
    await m.memories()
    after = int(dut.aux_stat.value)
    after -= (m.tb.stage_bytes // WORD // 256) << 24  # the comparison's own reads
    counts = [(after >> s & 0xFFFF) - (before >> s & 0xFFFF) & 0xFFFF for s in (24, 8)]
    checks.equal("reads served, writes issued", counts, [n_reads + 1, n_writes], n=2)


@cocotb.test()
async def slow_writes(dut):
    """Reads run ahead of writes that the memory hardly takes: no word that came back is lost."""
    m = await MoverTb.start(dut, lat_min=2, lat_max=4, w_pct=4, aw_pct=20, r_pct=100, ar_pct=100)
    await m.run(copy(line(m.own(0), 900), line(m.own(HALF), 900)))
    await m.memories()


@cocotb.test()
async def throughput(dut):
    """A copy runs at one word a cycle on an ideal memory; PRNG, rows of GATHER and single words as documented."""
    m = await MoverTb.start(dut, ideal=1, lat_min=20)
    n = 1000

    async def cycles(script):
        start = cocotb.utils.get_sim_time("ns")
        await m.run(script)
        return (cocotb.utils.get_sim_time("ns") - start) / clocks.PERIOD_NS

    took = {
        "copy": await cycles(copy(line(m.own(0), n), line(m.own(HALF), n))),
        "copy to staging": await cycles(copy(line(m.own(0), n), line(m.staged(0), n))),
        "single words": await cycles(copy(line(m.own(0), n), line(m.own(HALF), n), coalesce=False)),
        "fill": await cycles(move(MoverMode.FILL, None, line(m.own(HALF), n))),
        "generate": await cycles(move(MoverMode.GENERATE, None, line(m.own(HALF), n))),
    }
    dut._log.info(f"cycles for {n} words: {took}")
    if int(dut.RD_OUT.value) >= 4:
        checks.true("copy", took["copy"] < n + 500, f"{took['copy']}")
        checks.true("fill", took["fill"] < n + 400, f"{took['fill']}")
        checks.true("generate", took["generate"] < 10 * n + 300, f"{took['generate']}")
    await m.memories()
