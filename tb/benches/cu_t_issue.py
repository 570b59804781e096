# SPDX-License-Identifier: Apache-2.0
"""Shell: registers, inbound sorting, issue and retirement, docs/spec/fabric.md 5.2, 5.3, 5.5."""

import cocotb

from kohakubench import checks, clocks
from kohakubench.shell_model import (
    CU_CTRL,
    CU_DATA,
    CU_INST,
    CU_SIGNAL,
    FAULT,
    MEM_RD_RESP,
    MEM_WR_ACK,
    OP_READ,
    OP_REFUSED,
    OP_VALUE,
    OP_WRITE,
    RD_ERR,
    Head,
    Instruction,
    completions,
    control,
    fault_arg,
    flit,
    signal,
)
from kohakubench.shell_stage import CONTROLLERS, ELSEWHERE, Stage, same_flits

HOST, OTHER = CONTROLLERS
PEER = (1, 2)
MEMORY = (0, 1)


# ------------------------------------------------------------- registers


@cocotb.test()
async def registers(dut):
    """Every index with every op; replies go back to whoever asked, with the same txn."""
    s = await Stage(dut).begin(dbg_ctr=0x0123456789ABCDEF)
    asked = []
    for index in (0, 1, 2, 3, 4, 5, 0xDF, 0xE0, 0xFF):
        for op in (0, 1, 2, 0xFF):
            src, txn = CONTROLLERS[len(asked) % 2], (len(asked) * 37 + 5) % 256
            asked.append((index, op, src, txn))
            await s.read(index, op, src, txn)
    r = await s.check()
    c = s.config
    caps = c.cu_type << 48 | 5 << 40 | c.n_buffers << 36 | c.inst_depth << 20 | c.max_inflight << 16 | c.features << 8
    value = {0: caps, 1: c.inst_depth << 32, 2: 0, 3: 0x0123456789ABCDEF}
    for (index, op, src, txn), got in zip(asked, r.replies(), strict=True):
        reply = OP_REFUSED if op == OP_WRITE and index != 4 else OP_VALUE
        expected = control(src, s.own, txn, reply, index, value.get(index, 0))
        checks.equal(f"reply to index {index:#x} op {op}", got, expected)


@cocotb.test()
async def request_queue(dut):
    """1 to 6 back-to-back requests of two controllers with the link blocked."""
    s = await Stage(dut).begin()
    expected = []
    for n in range(1, 7):
        s.set(out_mode=1)
        await s.pulse("aux_go")
        await s.until("out_waiting", 1)
        before = int(dut.out_flits.value)
        await s.play([control(s.own, CONTROLLERS[k % 2], 16 * n + k, OP_READ, k % 4) for k in range(n)])
        await clocks.cycles(10)
        checks.equal("nothing left", int(dut.out_flits.value), before)
        s.set(out_mode=0)
        await s.until("out_flits", before + 1 + min(n, 4))
        expected += [16 * n + k for k in range(min(n, 4))]
        await s.read(4, OP_WRITE, txn=255)
        expected.append(255)
    r = await s.check()
    checks.equal("txn of replies", [Head.of(w).txn for w in r.replies()], expected)
    errors = [w >> 176 & 0xFF for w in r.replies() if Head.of(w).txn == 255]
    checks.equal("ctrl_ovf", errors, [0, 0, 0, 0, 0x40, 0x40])


@cocotb.test()
async def reply_while_stuck(dut):
    """Registers answer while the datapath never takes or finishes an instruction."""
    s = await Stage(dut).begin(inst_mode=1)
    n = min(2, s.config.inst_depth - 1)
    await s.instructions([Instruction(HOST, k) for k in range(n)])
    await s.read(1)
    s.set(inst_mode=0, hold_exec=1)
    await s.until("accepted", min(n, s.config.max_inflight))
    for index in range(5):
        await s.read(index)
    s.set(hold_exec=0)
    await s.until("completions", n)
    await s.read(2)
    r = await s.finish()
    status = r.replies()[0] >> 176
    checks.equal("busy, space", (status >> 63 & 1, status >> 32 & 0xFFFF), (1, s.config.inst_depth - n))
    checks.equal("retired", r.replies()[-1] >> 208 & 0xFFFFFFFF, n)


def error_bits(c, kind, mine, rsvd, payload):
    """CU_ERR bits that one arriving flit sets on an idle shell (fabric 5.2)."""
    if not mine:
        return 1
    if kind in (CU_INST, CU_CTRL):
        return 0
    if kind == MEM_WR_ACK and c.ack_fence:
        return 0x20
    if c.recv_types >> kind & 1:
        return 8 if kind == MEM_RD_RESP and rsvd & 4 else 4 if kind == MEM_WR_ACK and payload & 1 else 0
    return 0 if kind == CU_SIGNAL else 2


@cocotb.test()
async def every_type(dut):
    """Types 0x0 to 0xF, own and foreign destination: delivered, counted or discarded and flagged."""
    s = await Stage(dut).begin()
    errors = []
    for kind in range(16):
        for mine in (True, False):
            for rsvd in (0, 4):
                payload = 0x51 if kind == MEM_WR_ACK else 0
                word = flit(s.own if mine else ELSEWHERE, PEER, kind, kind, 0, rsvd, payload)
                before = int(dut.out_flits.value)
                await s.play([word, word] if kind == CU_DATA else [word])
                await s.until("out_flits", before + int(kind in (CU_INST, CU_CTRL) and (mine or kind == CU_INST)))
                await clocks.cycles(8)
                await s.read(4, OP_WRITE, txn=200)
                bits = error_bits(s.config, kind, mine, rsvd, payload)
                errors.append(((word >> 256) << 16 if bits else 0) | bits)
    r = await s.check()
    got = [w >> 176 & (2**64 - 1) for w in r.replies() if Head.of(w).txn == 200]
    for k, (g, e) in enumerate(zip(got, errors, strict=True)):
        checks.equal(f"CU_ERR after type {k // 4:#x}, case {k % 4}", g, e)


@cocotb.test()
async def error_register(dut):
    """Sticky bits, first_hdr of the first event only, clear by write, events that race the clear."""
    s = await Stage(dut).begin()
    bad = [flit(s.own, PEER, 9 + k % 7, k) for k in range(8)]
    wrong = [flit(ELSEWHERE, PEER, 2, k) for k in range(8)]
    for lead in range(6):
        # requests and errors back to back: every distance between a clear and an event occurs
        await s.play([wrong[lead], *bad[:lead], control(s.own, HOST, lead, OP_WRITE, 4), bad[0], wrong[1]])
        await clocks.cycles(4)
        s.set(unit_err=1 << lead)
        await clocks.cycles(1)
        await s.read(4, OP_WRITE, txn=100 + lead)
        s.set(unit_err=0)
        await s.pulse("spurious")
        await s.read(4)
        await s.play([bad[1], control(s.own, HOST, 9, OP_WRITE, 4)])
        await s.read(1)
        await s.read(4, OP_WRITE)
    r = await s.check()
    checks.true("clears replayed", len(r.replies()) == 36, f"{len(r.replies())} replies")


# ------------------------------------------------- issue and retirement


@cocotb.test()
async def link_blocked(dut):
    """With the link blocked 16 signals queue, issue stops, none escapes; then all leave in order."""
    for mode, level in ((0, 0), (2, 200), (3, 30)):
        s = await Stage(dut).begin(out_mode=1, credit=0)
        n = 17 + min(10, s.config.inst_depth)
        await s.instructions([Instruction(HOST, k, k % 5 // 4, result=k * 3) for k in range(n)])
        await clocks.cycles(200)
        # one signal waits in the output register, sixteen in the queue
        checks.equal("accepted", int(dut.accepted.value), 17)
        checks.equal("escaped", int(dut.out_flits.value), 0)
        checks.equal("space", int(dut.inst_space.value), s.config.inst_depth - (n - 17))
        s.set(out_mode=mode, out_level=level)
        await s.finish()


@cocotb.test()
async def spacing(dut):
    """exec_done in the acceptance cycle, one cycle later and much later; faults on last and others."""
    s = await Stage(dut).begin()
    program = []
    for k, work in enumerate((0, 0, 0, 1, 1, 1, 0, 1, 2, 3, 50, 0, 0, 7)):
        for last in (0, 1):
            for fault in (False, True):
                program.append(Instruction(HOST, k, last, work=work, fault=fault, result=0xABC00000 | k))
    await s.instructions(program)
    await s.finish()
    s = await Stage(dut).begin()
    await s.instructions(program, gap=9)
    r = await s.finish()
    zero = {c for c, _ in r.accepted} & set(r.done)
    checks.true("retired in the acceptance cycle", len(zero) > 5, f"{len(zero)} times")


@cocotb.test()
async def spurious_done(dut):
    """exec_done with nothing in flight: no signal, spur_done, and the next program is not disturbed."""
    s = await Stage(dut).begin()
    await s.pulse("spurious")
    await s.read(4)
    await s.read(2)
    await s.instructions([Instruction(HOST, 3, 1), Instruction(OTHER, 4, result=9)])
    r = await s.finish()
    checks.equal("CU_ERR", r.replies()[0] >> 176 & 0xFFFFFFFFFFFF, 0x10)
    checks.equal("retired", r.replies()[1] >> 208 & 0xFFFFFFFF, 0)


@cocotb.test()
async def in_flight(dut):
    """Issue stops at MAX_INFLIGHT; work finished out of order retires in order."""
    s = await Stage(dut).begin(hold_exec=1, credit=0)
    limit = s.config.max_inflight
    await s.instructions(
        [Instruction(HOST, k, work=(40 * k + 20) % 61, writes=k % 2, result=k) for k in range(limit + 2)]
    )
    await clocks.cycles(100)
    checks.equal("accepted", int(dut.accepted.value), limit)
    s.set(hold_exec=0)
    await s.finish()
    # a link blocked from the start: signals and instructions in flight share the 16 entries
    s = await Stage(dut).begin(out_mode=1, credit=0)
    fast = [Instruction(HOST, k) for k in range(14)]
    await s.instructions([*fast, *(Instruction(HOST, 20 + k, work=400) for k in range(s.config.inst_depth))])
    await clocks.cycles(300)
    expected = 14 + min(limit, 3, s.config.inst_depth)  # one signal is in the output register
    checks.equal("accepted", int(dut.accepted.value), expected)
    s.set(out_mode=0)
    await s.finish()


@cocotb.test()
async def misrouted(dut):
    """A foreign instruction is not shown, waits for those before it, and returns FAULT to its sender."""
    s = await Stage(dut).begin()
    program = []
    for k in range(30):
        dst = ELSEWHERE if k % 5 == 3 or k in (0, 9, 29) else None
        program.append(Instruction(CONTROLLERS[k % 2], k, int(k % 7 == 0), dst, work=(11 * k) % 23, writes=k % 3))
    await s.instructions(program)
    r = await s.finish()
    checks.equal("shown", len(r.accepted), sum(i.dst is None for i in program))
    checks.equal("misroute", r.shell.err & 1, 1)


@cocotb.test()
async def read_error(dut):
    """A read error faults the next retirement, once; an own fault goes first; none without RD_ERR_FAULT."""
    s = await Stage(dut).begin(hold_exec=1)
    bad = flit(s.own, MEMORY, MEM_RD_RESP, 7, 1, 4)
    own = s.own
    plain = [Instruction(HOST, k, int(k == 2), fault=k == 4, result=k) for k in range(7)]
    await s.play([plain[0].word(own), bad, bad])
    await clocks.cycles(5)
    s.set(hold_exec=0)
    await s.until("completions", 1)
    await s.play([plain[1].word(own), bad, (20, plain[2].word(own)), plain[3].word(own)])
    await s.until("completions", 4)
    await s.play([bad, (20, plain[4].word(own)), plain[5].word(own), bad, plain[6].word(own)])
    await s.until("completions", 7)
    r = await s.check()
    expected = completions(plain, own)
    if s.config.rd_err_fault:
        # an error in the cycle of a retirement belongs to the next one: 1 and 5 are spared
        for k in (0, 2, 6):
            expected[k] = signal(HOST, own, k, FAULT, fault_arg(RD_ERR))
    same_flits("completions", r.completions(), expected)
    checks.equal("rd_err", r.shell.err & 8, 8)


@cocotb.test()
async def priority(dut):
    """Signal, then reply, then unit, when all three wait for one register."""
    s = await Stage(dut).begin(out_mode=1, aux_go=1)
    await s.until("out_waiting", 1)
    await s.instructions([Instruction(HOST, 8)])
    await s.play([control(s.own, HOST, 3, OP_READ, 0)])
    await clocks.cycles(5)
    s.set(aux_go=0, out_mode=0)
    r = await s.finish()
    kinds = [(Head.of(w).kind, w >> 248 & 255) for _, w in r.left]
    checks.equal("order on the link", kinds[:4], [(6, 0x40), (6, 0), (7, OP_VALUE), (6, 0x40)])


@cocotb.test()
async def latency(dut):
    """One cycle from the link to inst_* and recv_*, one from send_* to the link."""
    s = await Stage(dut).begin()
    await s.instructions([Instruction(HOST, 1)])
    await s.pulse("aux_go")
    await s.finish()
    s = await Stage(dut).begin()
    await s.instructions([Instruction(HOST, 1)])
    r = await s.finish()
    checks.equal("link to inst", r.accepted[0][0] - r.arrived[0][0], 1)
    checks.equal("exec_done to completion on the link", r.left[0][0] - r.done[0], 2)
