# SPDX-License-Identifier: Apache-2.0
"""Shell: write fence, freedom from deadlock, random programs, docs/spec/fabric.md 5.4, 5.6."""

import random

import cocotb

from kohakubench import checks, clocks, scale, seed, slow
from kohakubench.burst_model import burst
from kohakubench.shell_model import (
    CU_SIGNAL,
    DATA_RECEIVED,
    MEM_RD_RESP,
    MEM_WR_ACK,
    OP_READ,
    Head,
    Instruction,
    control,
    flit,
    signal,
)
from kohakubench.shell_stage import CONTROLLERS, ELSEWHERE, Stage, random_program, same_flits

HOST, OTHER = CONTROLLERS
PEER = (1, 2)
MEMORY = (0, 1)


# ----------------------------------------------------------------- fence


@cocotb.test()
async def fence_delays(dut):
    """0, 1 and 300 writes per instruction, acknowledgements late by 0 to 2,000 cycles."""
    for lag, span in ((0, 0), (0, 40), (2000, 0), (0, 2001)):
        s = await Stage(dut).begin(ack_min=lag, ack_span=span)
        writes = (1, 0, 2, 1, 0, 0, 5, 300, 1)
        await s.instructions(
            [Instruction(HOST, k, int(k == 8), writes=w, beats=1 + k % 8) for k, w in enumerate(writes)]
        )
        r = await s.finish()
        checks.equal("acknowledged", r.shell.acked, 310 if s.config.ack_fence else 0)


@cocotb.test()
async def fence_two_wait(dut):
    """Several completions wait at once; each leaves when its own writes are acknowledged."""
    s = await Stage(dut).begin(ack_hold=1, credit=0)
    await s.instructions([Instruction(HOST, k, writes=2 * (k % 2) + 1, beats=2) for k in range(5)], wait=False)
    await s.until("retired", 5)
    await clocks.cycles(50)
    checks.equal("completed", int(dut.completions.value), 0 if s.config.ack_fence else 5)
    s.set(ack_hold=0, ack_min=0, ack_span=30)
    await s.finish()


@cocotb.test()
async def fence_blame(dut):
    """A failed write faults exactly its owner with the code of the first failure."""
    if not Stage(dut).config.ack_fence:
        return
    # a blocked link keeps acknowledged completions in the queue beside those that still wait
    for lag, mode in ((0, 0), (6, 0), (25, 3), (25, 2), (700, 0), (700, 3)):
        s = await Stage(dut).begin(ack_min=lag, out_mode=mode, out_level=(0, 0, 180, 40)[mode])
        program = []
        for k, drops in enumerate(
            (
                [(0, 3)],
                [],
                [(6, 4)],
                [(12, 5)],
                [(12, 6), (0, 7)],
                [(5, 8), (6, 9)],
                [],
                [(0, 1)],
            )
        ):
            program.append(Instruction(HOST, k, int(k in (3, 7)), writes=13, beats=1 + k % 3, drops=drops, result=k))
            program.append(Instruction(HOST, 100 + k, cover=bool(k % 2)))
        program.append(Instruction(OTHER, 50, writes=3, fault=True, drops=[(1, 2)], result=0xDEAD))
        await s.instructions(program)
        await s.finish()


@cocotb.test()
async def fence_batch(dut):
    """An emitted batch belongs to the next covering retirement, whatever retires between."""
    if not Stage(dut).config.ack_fence:
        return
    for lag in (0, 3, 60, 900):
        s = await Stage(dut).begin(ack_min=lag)
        program = []
        for k, drops in enumerate(([(0, 2)], [(9, 3)], [(19, 4)], [(3, 5), (11, 6)], [])):
            program.append(Instruction(HOST, 10 * k, writes=20, batch=True, cover=False, drops=drops))
            program += [Instruction(HOST, 10 * k + 1 + j, cover=False, work=4 * j) for j in range(3)]
            if k % 2:
                program.append(Instruction(HOST, 10 * k + 5, writes=4, batch=True, cover=False, drops=[(0, 7)]))
            program.append(Instruction(HOST, 10 * k + 6, int(k == 4), writes=k, drops=[(0, 8)] if k == 3 else []))
            program.append(Instruction(HOST, 10 * k + 7, writes=1))
        await s.instructions(program)
        await s.finish()


@cocotb.test()
async def fence_wrap(dut):
    """The 16-bit counters wrap with 32,752 writes outstanding and keep their order."""
    c = Stage(dut).config
    if not c.ack_fence or (c.max_inflight != 4 and not slow()):
        return
    s = await Stage(dut).begin(credit=0)
    total = 0
    for round_ in range(scale(1, 5)):
        flow = [Instruction(HOST, k, writes=2047, bare=True) for k in range(20)]
        await s.instructions(flow, wait=False)
        await s.until("completions", total + 20)
        s.set(ack_hold=1)
        held = [
            Instruction(HOST, k, writes=2047, bare=True, drops=[(2046, 9)] if k % 5 == round_ else [])
            for k in range(16)
        ]
        await s.instructions(held, wait=False)
        await s.until("retired", total + 36)
        await clocks.cycles(20)
        checks.equal("completed", int(dut.completions.value), total + 20)
        s.set(ack_hold=0)
        total += 36
        await s.until("completions", total)
    r = await s.finish()
    checks.true("counters wrapped", r.shell.issued > 65_536, f"{r.shell.issued} writes")
    checks.equal("outstanding", r.shell.max_outstanding, 16 * 2047)


@cocotb.test()
async def spurious_ack(dut):
    """An acknowledgement without a write is ignored and flagged; later writes are not disturbed."""
    if not Stage(dut).config.ack_fence:
        return
    s = await Stage(dut).begin()
    await s.play([flit(s.own, MEMORY, MEM_WR_ACK, 1, 1, 0, 0x31), flit(s.own, MEMORY, MEM_WR_ACK, 2, 1)])
    await s.read(4)
    await s.instructions([Instruction(HOST, k, writes=2) for k in range(3)])
    r = await s.finish()
    checks.equal("CU_ERR bits", r.replies()[0] >> 176 & 0xFFFF, 0x20)


# -------------------------------------------------------------- deadlock


@cocotb.test()
async def fence_blocks_nothing(dut):
    """While a completion waits for acknowledgements, requests are answered and the unit sends."""
    s = await Stage(dut).begin(ack_hold=1)
    await s.instructions([Instruction(HOST, 1, writes=2)])
    await s.until("retired", 1)
    for index in range(5):
        await s.read(index)
    before = int(dut.out_flits.value)
    await s.pulse("aux_go")
    await s.until("out_flits", before + 1)
    checks.equal("completed", int(dut.completions.value), 0 if s.config.ack_fence else 1)
    s.set(ack_hold=0)
    r = await s.finish()
    checks.equal("replies", len(r.replies()), 5)


@cocotb.test()
async def receive_full(dut):
    """Receive FIFO full behind a burst end whose DATA_RECEIVED waits for the send path."""
    s = await Stage(dut).begin(ack_hold=1)
    await s.instructions([Instruction(HOST, 1, writes=3)])
    await s.until("retired", 1)
    await clocks.cycles(20)
    s.set(out_mode=1)
    n = 20 + s.config.recv_depth // 2
    words = [w for k in range(n) for w in burst(s.own, PEER, list(range(1)), ack=HOST, txn=k)]
    await s.play([*words, control(s.own, HOST, 77, OP_READ, 1)], wait=False)
    await s.until("in_busy", 1)
    await clocks.cycles(50)
    checks.equal("link held", (int(dut.in_busy.value), int(dut.acks_waiting.value)), (1, 1))
    before = int(dut.out_flits.value)
    s.set(out_mode=0)
    await s.until("out_flits", before + n + 1 + (not s.config.ack_fence and before == 6))
    checks.equal("completed", int(dut.completions.value), 0 if s.config.ack_fence else 1)
    s.set(ack_hold=0)
    r = await s.finish()
    received = r.signals(DATA_RECEIVED)
    same_flits("DATA_RECEIVED", received, [signal(HOST, s.own, k, DATA_RECEIVED, 0) for k in range(n)])
    checks.equal("reply", [Head.of(w).txn for w in r.replies()], [77])


@cocotb.test()
async def all_outstanding(dut):
    """A full credit of instructions waits for acknowledgements; requests and bursts still go through."""
    s = await Stage(dut).begin(ack_hold=1)
    n = s.config.inst_depth
    await s.instructions([Instruction(HOST, k, writes=1) for k in range(n)])
    await clocks.cycles(300)
    before = int(dut.out_flits.value)
    await s.play([*burst(s.own, PEER, list(range(4)), ack=OTHER, txn=9), control(s.own, OTHER, 5, OP_READ, 1)])
    await s.until("out_flits", before + 2)
    checks.equal("completed", int(dut.completions.value), 0 if s.config.ack_fence else n)
    s.set(ack_hold=0)
    r = await s.finish()
    same_flits("DATA_RECEIVED", r.signals(DATA_RECEIVED), [signal(OTHER, s.own, 9, DATA_RECEIVED, 0)])


# ---------------------------------------------------------------- random


@cocotb.test()
async def random_program_stream(dut):
    """One program per seed, whatever MAX_INFLIGHT: identical completions under random stalls."""
    rng = random.Random(seed())
    fence = Stage(dut).config.ack_fence
    for _ in range(scale(4, 60)):
        program = random_program(rng, scale(150, 400), drops=fence)
        noise = random.Random(rng.getrandbits(32))
        s = await Stage(dut).begin(
            out_mode=noise.choice((0, 2, 3)),
            out_level=noise.choice((30, 128, 230)),
            inst_mode=noise.choice((0, 2, 3)),
            inst_level=noise.choice((20, 100)),
            recv_mode=noise.choice((0, 2, 3)),
            recv_level=noise.choice((20, 128)),
            ack_min=noise.choice((0, 5, 50)),
            ack_span=noise.choice((0, 9, 300)),
            aux_go=noise.randrange(2),
        )
        words = []
        for k, ins in enumerate(program):
            gap = noise.choice((0, 0, 0, 1, 7, 30))
            words.append((gap, ins.word(s.own)))
            if noise.random() < 0.15:
                words += burst(
                    s.own,
                    PEER,
                    list(range(noise.randint(1, 9))),
                    ack=HOST,
                    want=noise.randrange(2),
                    txn=k % 256,
                )
            if noise.random() < 0.15:
                words.append(control(s.own, OTHER, k % 256, noise.randrange(3), noise.choice((0, 1, 2, 3, 4, 9))))
            if noise.random() < 0.1:
                kind = noise.choice((CU_SIGNAL, MEM_RD_RESP, 12))
                words.append(flit(noise.choice((s.own, ELSEWHERE)), PEER, kind, k % 256))
        s.program = program
        await s.play(words)
        s.set(aux_go=0)
        await s.finish()
