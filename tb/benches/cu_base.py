# SPDX-License-Identifier: Apache-2.0
"""The shell in front of a compute unit, docs/spec/fabric.md 5.

Every test ends in a replay: each cycle of the run is compared with the reference shell
(``kohakubench.shell_model``), so what a test states itself is only what the page
promises in words.
"""

import random

import cocotb
from kohakubench import Bench, checks, clocks, scale, seed, slow
from kohakubench.shell_model import (
    CU_CTRL,
    CU_DATA,
    CU_INST,
    CU_SIGNAL,
    DATA_RECEIVED,
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
from kohakubench.shell_stage import CONTROLLERS, ELSEWHERE, Stage, random_program, same_flits

HOST, OTHER = CONTROLLERS
PEER = (1, 2)
MEMORY = (0, 1)

_RTL = "rtl/control/"
BENCH = Bench(
    name="cu_base",
    top="tb_cu_base",
    sources=[
        "rtl/common/ram_sdp.v",
        "rtl/common/fifo_sync.v",
        "rtl/control/cu_fence.v",
        "rtl/control/cu_regs.v",
        "rtl/control/cu_base.v",
        "rtl/control/cu_base_sva.sv",
        "rtl/control/cud_rx.v",
        "rtl/control/cud_rx_sva.sv",
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/flit_player.v",
        "tb/hdl/stall_gen.v",
        "tb/hdl/ack_memory.v",
        "tb/hdl/unit_standin.v",
        "tb/hdl/tb_cu_base.v",
        "tb/hdl/tb_cu_base_links.sv",
    ],
    params={"MAX_INFLIGHT": 4, "RD_ERR_FAULT": 0},
    variants={
        "inflight1": {"MAX_INFLIGHT": 1, "RD_ERR_FAULT": 1},
        "inflight2": {"MAX_INFLIGHT": 2, "RD_ERR_FAULT": 0},
        "inflight8": {"MAX_INFLIGHT": 8, "RD_ERR_FAULT": 0},
        "nofence": {"MAX_INFLIGHT": 1, "RD_ERR_FAULT": 1, "ACK_FENCE": 0, "RECV_TYPES": 0x010C, "RECV_DEPTH": 64},
        "small": {"INST_DEPTH": 2, "RECV_DEPTH": 2, "RECV_TYPES": 0xFFFF, "MAX_INFLIGHT": 3, "RD_ERR_FAULT": 0},
    },
    timeout_cycles=1_000_000,
    mutations={
        "fence_off_by_one": (
            _RTL + "cu_fence.v",
            "$signed(acked_q - snap_q[15:0]) >= 16'sd0",
            "$signed(acked_q - snap_q[15:0]) >= -16'sd1",
        ),
        "wrong_owner": (
            _RTL + "cu_fence.v",
            "$signed(snap_q[16*i +: 16] - acked_d) >= 16'sd0",
            "$signed(snap_q[16*i +: 16] - acked_q) >= 16'sd0",
        ),
        "last_failure_wins": (_RTL + "cu_fence.v", "owner[i] && !err_q[i]", "owner[i]"),
        "pending_failure_kept": (_RTL + "cu_fence.v", "else if (covering) pend_err_q <= 1'b0;", ""),
        "unsigned_fence": (
            _RTL + "cu_fence.v",
            "$signed(acked_q - snap_q[15:0]) >= 16'sd0",
            "acked_q >= snap_q[15:0]",
        ),
        "dropped_ack": (_RTL + "cu_base.v", ".ack          (to_fence)", ".ack          (to_fence && !accept)"),
        "priority_swap": (
            _RTL + "cu_base.v",
            "&& rsp_valid;\n    assign send_ready = loadable && !sig_valid && !rsp_valid;",
            "&& rsp_valid && !send_valid;\n    assign send_ready = loadable && !sig_valid;",
        ),
        "fence_holds_sends": (
            _RTL + "cu_base.v",
            "assign send_ready = loadable && !sig_valid && !rsp_valid;",
            "assign send_ready = loadable && queued == 5'd0 && !rsp_valid;",
        ),
        "seventeen_signals": (_RTL + "cu_base.v", "reserved < SIGNALS;", "reserved <= SIGNALS;"),
        "misrouted_overtakes": (_RTL + "cu_base.v", "may_issue && !head_mine && idle", "may_issue && !head_mine"),
        "clear_loses_event": (_RTL + "cu_regs.v", "sticky_q <= kept | events;",
                              "sticky_q <= clear ? 15'd0 : (kept | events);"),
        "deep_request_queue": (_RTL + "cu_regs.v", ".DEPTH (`KT_CTRLQ_DEPTH)", ".DEPTH (8)"),
        "same_cycle_retire_lost": (_RTL + "cu_base.v", "exec_done && (!idle || accept)", "exec_done && !idle"),
    },
    mutation_tests={
        "fence_off_by_one": ["fence_two_wait"],
        "wrong_owner": ["fence_blame"],
        "last_failure_wins": ["fence_blame"],
        "pending_failure_kept": ["fence_batch"],
        "unsigned_fence": ["fence_wrap"],
        "dropped_ack": ["fence_delays", "random_program_stream"],
        "priority_swap": ["priority", "random_program_stream"],
        "fence_holds_sends": ["fence_blocks_nothing"],
        "seventeen_signals": ["link_blocked"],
        "misrouted_overtakes": ["misrouted"],
        "clear_loses_event": ["error_register"],
        "deep_request_queue": ["request_queue"],
        "same_cycle_retire_lost": ["spacing"],
    },
)


def burst(src, own, n, *, ack=(0, 0), want=1, buf=0, txn=0):
    """Flits of a CU_DATA burst of ``n`` granules."""
    p = buf << 248 | (n - 1) << 224 | want << 216 | ack[1] << 212 | ack[0] << 208
    data = [flit(own, src, CU_DATA, txn, int(k == n - 1), 0, (k + 1) * 0x1111) for k in range(n)]
    return [flit(own, src, CU_DATA, txn, 0, 0, p), *data]


async def read(s, index, op=OP_READ, src=HOST, txn=0):
    """One control request; returns nothing, the replay holds the reply."""
    before = int(s.dut.out_flits.value)
    await s.play([control(s.own, src, txn, op, index, 0x1234)])
    await s.until("out_flits", before + 1)


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
            await read(s, index, op, src, txn)
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
        await read(s, 4, OP_WRITE, txn=255)
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
    await read(s, 1)
    s.set(inst_mode=0, hold_exec=1)
    await s.until("accepted", min(n, s.config.max_inflight))
    for index in range(5):
        await read(s, index)
    s.set(hold_exec=0)
    await s.until("completions", n)
    await read(s, 2)
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
                await read(s, 4, OP_WRITE, txn=200)
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
        await read(s, 4, OP_WRITE, txn=100 + lead)
        s.set(unit_err=0)
        await s.pulse("spurious")
        await read(s, 4)
        await s.play([bad[1], control(s.own, HOST, 9, OP_WRITE, 4)])
        await read(s, 1)
        await read(s, 4, OP_WRITE)
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
    await read(s, 4)
    await read(s, 2)
    await s.instructions([Instruction(HOST, 3, 1), Instruction(OTHER, 4, result=9)])
    r = await s.finish()
    checks.equal("CU_ERR", r.replies()[0] >> 176 & 0xFFFFFFFFFFFF, 0x10)
    checks.equal("retired", r.replies()[1] >> 208 & 0xFFFFFFFF, 0)


@cocotb.test()
async def in_flight(dut):
    """Issue stops at MAX_INFLIGHT; work finished out of order retires in order."""
    s = await Stage(dut).begin(hold_exec=1, credit=0)
    limit = s.config.max_inflight
    await s.instructions([Instruction(HOST, k, work=(40 * k + 20) % 61, writes=k % 2, result=k)
                          for k in range(limit + 2)])
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
    """A read error faults the next retirement, once; an own fault goes first; nothing without RD_ERR_FAULT."""
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
        for k in (0, 2):
            expected[k] = signal(HOST, own, k, FAULT, fault_arg(RD_ERR))
        # the last error races a retirement; the replay decides which one it meets
        expected[5:] = r.completions()[5:]
        struck = [w for w in r.completions()[5:] if w >> 216 & 0xFFFFFFFF == fault_arg(RD_ERR)]
        checks.equal("the last error strikes at most once", len(struck) <= 1, True)
    same_flits("completions", r.completions(), expected)
    checks.equal("rd_err", r.shell.err & 8, 8)


# ----------------------------------------------------------------- fence


@cocotb.test()
async def fence_delays(dut):
    """0, 1 and 300 writes per instruction, acknowledgements late by 0 to 2,000 cycles."""
    for lag, span in ((0, 0), (0, 40), (2000, 0), (0, 2001)):
        s = await Stage(dut).begin(ack_min=lag, ack_span=span)
        writes = (1, 0, 2, 1, 0, 0, 5, 300, 1)
        await s.instructions([Instruction(HOST, k, int(k == 8), writes=w, beats=1 + k % 8) for k, w in enumerate(writes)])
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
    for lag in (0, 6, 25, 700):
        s = await Stage(dut).begin(ack_min=lag)
        program = []
        for k, drops in enumerate((
            [(0, 3)], [], [(6, 4)], [(12, 5)], [(12, 6), (0, 7)], [(5, 8), (6, 9)], [], [(0, 1)],
        )):
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
        held = [Instruction(HOST, k, writes=2047, bare=True, drops=[(2046, 9)] if k % 5 == round_ else [])
                for k in range(16)]
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
    await read(s, 4)
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
        await read(s, index)
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
    words = [w for k in range(n) for w in burst(PEER, s.own, 1, ack=HOST, txn=k)]
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
    await s.play([*burst(PEER, s.own, 4, ack=OTHER, txn=9), control(s.own, OTHER, 5, OP_READ, 1)])
    await s.until("out_flits", before + 2)
    checks.equal("completed", int(dut.completions.value), 0 if s.config.ack_fence else n)
    s.set(ack_hold=0)
    r = await s.finish()
    same_flits("DATA_RECEIVED", r.signals(DATA_RECEIVED), [signal(OTHER, s.own, 9, DATA_RECEIVED, 0)])


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
            out_mode=noise.choice((0, 2, 3)), out_level=noise.choice((30, 128, 230)),
            inst_mode=noise.choice((0, 2, 3)), inst_level=noise.choice((20, 100)),
            recv_mode=noise.choice((0, 2, 3)), recv_level=noise.choice((20, 128)),
            ack_min=noise.choice((0, 5, 50)), ack_span=noise.choice((0, 9, 300)),
            aux_go=noise.randrange(2),
        )
        words = []
        for k, ins in enumerate(program):
            gap = noise.choice((0, 0, 0, 1, 7, 30))
            words.append((gap, ins.word(s.own)))
            if noise.random() < 0.15:
                words += burst(PEER, s.own, noise.randint(1, 9), ack=HOST, want=noise.randrange(2), txn=k % 256)
            if noise.random() < 0.15:
                words.append(control(s.own, OTHER, k % 256, noise.randrange(3), noise.choice((0, 1, 2, 3, 4, 9))))
            if noise.random() < 0.1:
                kind = noise.choice((CU_SIGNAL, MEM_RD_RESP, 12))
                words.append(flit(noise.choice((s.own, ELSEWHERE)), PEER, kind, k % 256))
        s.program = program
        await s.play(words)
        s.set(aux_go=0)
        await s.finish()
