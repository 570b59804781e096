# SPDX-License-Identifier: Apache-2.0
"""Faults of the mover and of its bus: what is written, recorded and goes on (docs/spec/memory.md 12.6)."""

import itertools

import cocotb

from kohakubench import checks
from kohakubench.mag_model import WORD
from kohakubench.mover_tb import CLEAR, CTRL, DIM, GATHER, GO, HALF, INDEX, Dim, MoverTb, Walk, copy, line, move
from kohakutpu.isa.generated import MoverFault, MoverMode


def _faults(m):
    """(name, writes) of a move for every fault code and place."""
    own, top = m.own, m.tb.bytes
    to = lambda k, n=8: line(own(HALF + 0x400 * k), n)  # noqa: E731
    src = line(own(0x2000), 8)
    far = 1 + m.tb.mesh & 3
    yield "ewidth", copy(src, to(0), ewidth=3)
    yield "ewidth before mode", move(MoverMode.TRANSPOSE, src, to(0), ewidth=3)
    for mode in (1, 6, 7):
        yield f"mode {mode}", move(mode, src, to(1))
    for ident in (3, 9, 15):
        yield f"xform {ident}", move(MoverMode.XFORM, src, to(2), xform=(ident, 0))
    for n in (0, 7):
        yield f"ndim {n}", src.writes(0) + to(3).writes(1, ndim=n) + [(CTRL, GO | 8)]
        yield f"source ndim {n}", src.writes(0, ndim=n) + to(3).writes(1) + [(CTRL, GO | 8)]
        yield "unused source", src.writes(0, ndim=n) + move(MoverMode.FILL, None, to(4))
    for index in (6, 7):
        bad = [(DIM, 1 | index << 1 | 3 << 4), (32, 0)]
        yield "dimension index", src.writes(0) + to(3).writes(1) + bad + [(CTRL, GO | 8)]
        yield "still marked", [(CTRL, GO | 8)]
        yield "cleared by HDR", copy(src, to(5))
    yield "words 0", [(INDEX, own(0) | 1 << 40), (GATHER, 32), *move(MoverMode.GATHER, src, to(6))]
    for count in (0, 2049, 65535):
        yield f"count {count}", [(INDEX, own(0) | count << 40), (GATHER, 1 << 32), *move(MoverMode.GATHER, src, to(6))]
    yield "words before count", [(INDEX, own(0)), (GATHER, 0), *move(MoverMode.GATHER, src, to(6))]
    yield "index unaligned", [(INDEX, own(4) | 1 << 40), (GATHER, 1 << 32), *move(MoverMode.GATHER, src, to(6))]
    yield "index range", [(INDEX, own(top - 32) | 9 << 40), *move(MoverMode.GATHER, src, to(6))]
    yield "index mesh", [(INDEX, far << 36 | 9 << 40), *move(MoverMode.GATHER, src, to(6))]
    yield "index top", [(INDEX, (1 << 40) - 32 | 9 << 40), *move(MoverMode.GATHER, src, to(6))]
    yield "short source", copy(line(own(0x2000), 5), to(7))
    yield (
        "short source, skipped",
        copy(line(own(0x2000), 5), Walk(own(HALF + 0x3000), [Dim(9, WORD, 1, 1)], ((0, 5), (0, 0)))),
    )
    for name, place in (("DRAM", own(top - 3 * WORD)), ("staging", m.staged(m.tb.stage_bytes - 3 * WORD))):
        yield f"target over {name}", copy(src, line(place, 8))
        yield f"source over {name}", copy(line(place, 8), to(8))
        yield f"filled over {name}", move(MoverMode.FILL, None, line(place, 8))
    yield "below zero", copy(Walk(own(0x40), [Dim(8, -WORD)]), to(9))
    yield "above 40 bits", copy(src, Walk((1 << 40) - 32, [Dim(8, WORD)]))
    yield "far above", copy(Walk(own(0), [Dim(3, 0x7FFFFFE0), Dim(60000, 0x7FFFFFE0)]), to(9))
    yield "target mesh", copy(src, line(far << 36 | HALF, 8))
    yield "source mesh", copy(line(far << 36, 8), to(10))
    yield "reserved bit", copy(line(1 << 38 | own(0), 8), to(10))
    yield "aperture", copy(src, line(m.staged(0) | 3 << 32, 8))
    yield "target unaligned", copy(src, Walk(own(HALF + 0x4000), [Dim(2, 0x100), Dim(3, 0x30)]))
    yield "source unaligned", copy(Walk(own(0x2000), [Dim(4, 0x21)]), to(11, 4))
    yield "unaligned before range", copy(src, line(1 << 38 | 4, 8))
    yield "target before source", copy(line(1 << 38, 8), line(own(HALF) + 1, 8))
    yield "broken but skipped", copy(line(1 << 38, 8), Walk(own(HALF) + 1, [Dim(8, WORD, 1, 1)], ((20, 4), (0, 0))))


@cocotb.test()
async def every_fault(dut):
    """Every fault code: earlier elements written, later not; status, sticky flag, MEM_FAULT; the next move runs."""
    m = await MoverTb.start(dut)
    seen = set()
    for k, (name, script) in enumerate(_faults(m)):
        m.dut._log.info(name)
        await m.run(script)
        seen.add(m.mover.fault)
        checks.equal(f"{name}: sticky", int(dut.aux_stat.value) >> 1 & 1, int(m.mover.sticky))
        if k % 8 == 7:
            await m.memories()
        await m.faults()
        await m.run(copy(line(m.own(0x20 * k), 3), line(m.own(HALF + 0x8000 + 0x80 * k), 3)))
        if k % 5 == 4:
            await m.run([(CLEAR, m.rng.choice((1, 3)))])
    await m.memories()
    expected = {MoverFault(c) for c in (0, 1, 2, 4, 5, 6, 8, 10)}
    checks.equal("codes", seen, expected, n=len(expected))


@cocotb.test()
async def bus_errors(dut):
    """A failing read or write ends the move with F_AXI and its address; the next move runs."""
    m = await MoverTb.start(dut)
    t = m.tb.dram
    for resp, k in itertools.product((2, 3), (0, 1, 40, 99)):
        for write in (0, 1):
            at = (HALF if write else 0x3000) + WORD * k
            t.configure(err_rd=1 - write, err_wr=write, err_lo=at, err_hi=at + WORD, err_resp=resp)
            m.agent.bus_errors[:] = [(at, at + WORD)]
            cap = 1 if write else m.rng.randrange(8)  # one word a burst: the burst names the word
            await m.run(copy(line(m.own(0x3000), 100), line(m.own(HALF), 100), cap=cap))
            checks.equal("fault", m.mover.fault, MoverFault.F_AXI)
            await m.faults()
            t.configure(err_rd=0, err_wr=0)
            m.agent.bus_errors.clear()
            await m.run(copy(line(m.own(0x3000), 100), line(m.own(HALF), 100)))  # defines the bytes again
            await m.memories()
    at = 0x5000
    t.configure(err_rd=1, err_lo=at + 64, err_hi=at + 96, err_resp=2)  # in the index vector
    m.agent.bus_errors[:] = [(at + 64, at + 96)]
    await m.run(
        [(INDEX, m.own(at) | 40 << 40), (GATHER, 1 << 32 | 32), *move(MoverMode.GATHER, None, line(m.own(HALF), 9))]
    )
    await m.faults()
    t.configure(err_rd=0)
    m.agent.bus_errors.clear()
    # An error in front of a fault of the walk wins: its element comes first.
    t.configure(err_rd=1, err_lo=0x3000, err_hi=0x3020)
    m.agent.bus_errors[:] = [(0x3000, 0x3020)]
    await m.run(copy(line(m.own(0x3000), 3), line(m.own(HALF), 9)))
    await m.faults()
    t.configure(err_rd=0)
    m.agent.bus_errors.clear()
    await m.run(copy(line(m.own(0x3000), 100), line(m.own(HALF), 100)))
    await m.memories()
