# SPDX-License-Identifier: Apache-2.0
"""Orchestrator: staged dispatch, credit, status mirror (docs/spec/fabric.md 6.3, 6.5, 12)."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from benches.control import HDL, answered, begin, clears_beside, kick, model_echo, stage_program
from kohakubench import Bench, checks, clocks, scale
from kohakubench import orch_model as om

_DISP = "rtl/control/orch_dispatch.v"
_MIRR = "rtl/control/orch_mirror.v"
_MAIL = "rtl/control/orch_mailbox.v"

BENCH = Bench(
    name="orch_flow",
    top="tb_orch",
    sources=[*HDL, "tb/hdl/tb_orch.v"],
    variants={"small": {"STAGE_FLITS": 20, "CREDIT_MAX": 5}},
    timeout_cycles=30_000_000,
    wall_s=900,
    mutations={
        "mailbox_during_dispatch": (_MAIL, "tx_kick && !disp_run && tx_in_ready", "tx_kick && tx_in_ready"),
        "end_off_by_one": (_DISP, "(kick_end > STAGE_MAX)", "(kick_end >= STAGE_MAX)"),
        "src_not_rewritten": (_DISP, "ORC_X, ORC_Y, rd_data[15:0]", "rd_data[31:16] & 8'hFF, rd_data[15:0]"),
        "dst_swapped": (_DISP, "{dst_q[3:0], dst_q[7:4], ORC_X", "{dst_q[7:4], dst_q[3:0], ORC_X"),
        "dst_live": (_DISP, "{dst_q[3:0], dst_q[7:4]", "{prog_dst[3:0], prog_dst[7:4]"),
        "credit_both_adds": (
            _DISP,
            "else if (!reserve && cred_return && (credit_q < ceil_q))",
            "else if (cred_return && (credit_q < ceil_q))",
        ),
        "credit_both_subtracts": (_DISP, "else if (reserve && !cred_return)", "else if (reserve)"),
        "credit_over_ceiling": (_DISP, "cred_return && (credit_q < ceil_q)", "cred_return"),
        "credit_not_taken": (_DISP, "credit_q <= credit_q - 16'd1;", "credit_q <= credit_q;"),
        "seed_not_limited": (_DISP, "over ? CRED_MAX : cred_seed", "cred_seed"),
        "abort_drops_flit": (_DISP, "if (finish || (waiting && stop))", "if (finish || stop)"),
        "no_forward": (_MIRR, "fwd_valid_q && (fwd_node_q == s1_node_q)", "fwd_valid_q && 1'b0"),
        "clear_swallows_signal": (_MIRR, "done_q <= {15'd0, s1_valid_q};", "done_q <= 16'd0;"),
        "fault_returns_no_credit": (
            _MIRR,
            "((s1_code_q == `KT_SIG_INST_COMPLETE) || is_fault)",
            "(s1_code_q == `KT_SIG_INST_COMPLETE)",
        ),
        "reject_ignores_bit31": (
            _MIRR,
            "(s1_code_q == `KT_SIG_DATA_RECEIVED) && s1_arg_q[31]",
            "(s1_code_q == `KT_SIG_DATA_RECEIVED)",
        ),
    },
    mutation_tests={
        "mailbox_during_dispatch": ["mailbox_and_dispatch"],
        "end_off_by_one": ["stage_bounds"],
        "src_not_rewritten": ["stage_bounds"],
        "dst_swapped": ["stage_bounds"],
        "dst_live": ["latched_at_the_kick"],
        "credit_both_adds": ["credit_return_meets_reservation"],
        "credit_both_subtracts": ["credit_return_meets_reservation"],
        "credit_over_ceiling": ["credit_seed_limits"],
        "credit_not_taken": ["credit_storm"],
        "seed_not_limited": ["credit_seed_limits"],
        "abort_drops_flit": ["abort_in_every_cycle"],
        "no_forward": ["mirror_random"],
        "clear_swallows_signal": ["sig_done_race"],
        "fault_returns_no_credit": ["credit_fault_positions"],
        "reject_ignores_bit31": ["mirror_random"],
    },
)


@cocotb.test()
async def replay_bit_exact(dut):
    """Random staged flits leave bit exact: header rewrite, word order, upper half of word 4."""
    pair, rng = await begin(dut)
    dut.out_mode.value, dut.out_level.value = 2, 100
    total = pair.ref.stage_flits
    dut.echo_en.value = 0
    for n in range(total):
        await stage_program(pair, rng, n, 1, code=rng.randrange(16), txn=rng.getrandbits(8))
    for _ in range(scale(12, 60)):
        n = rng.randint(1, min(10, pair.ref.credit_max))
        base = rng.randrange(total - n + 1)
        await pair.write(0x60, pair.ref.credit_max)
        await kick(pair, rng.choice((0x01, 0x12, 0x33)), base, n)
        await pair.quiet(200)
        await pair.sent()
        await pair.state(0x30, 0x58, 0x08)
        slot = rng.randrange(total)
        await pair.write(0x2000 + 40 * slot + 8 * rng.randrange(5), rng.getrandbits(64), rng.getrandbits(8))


@cocotb.test()
async def stage_bounds(dut):
    """First and last slot; BASE+LEN equal to the capacity and one more; 16-bit operands do not wrap."""
    pair, rng = await begin(dut)
    top = pair.ref.stage_flits
    for slot in (0, top - 1):
        await stage_program(pair, rng, slot, 1)
    await stage_program(pair, rng, top - 3, 3)
    for base, n in (
        (0, 1),
        (top - 1, 1),
        (top - 3, 3),
        (top - 3, 4),
        (top, 1),
        (top - 1, 2),
        (0xFFFF, 1),
        (1, 0xFFFF),
    ):
        await pair.write(0x60, 5)
        await kick(pair, 0x12, base, n)
        await pair.quiet(60)
        await pair.sent()
        await pair.state(0x30, 0x58)
        await pair.write(0x30, 0xFFF)


@cocotb.test()
async def latched_at_the_kick(dut):
    """PROG_DST, PROG_LEN, PROG_BASE and staged slots already sent may be rewritten while a dispatch runs."""
    pair, rng = await begin(dut)
    await stage_program(pair, rng, 2, 4)
    await pair.write(0x60, 1)
    await kick(pair, 0x01, 2, 4)
    await pair.quiet()
    for offset, value in ((0x40, 0x33), (0x48, 9), (0x68, 0)):
        await pair.write(offset, value)
    await stage_program(pair, rng, 2, 1)  # already read
    for _ in range(3):
        await pair.write(0x60, 1)
        await pair.quiet()
    await pair.sent()
    await pair.state()


@cocotb.test()
async def dispatch_rate(dut):
    """At least one flit per 8 cycles when credit and link allow."""
    pair, rng = await begin(dut)
    n = pair.ref.credit_max
    await stage_program(pair, rng, 0, min(n, 20))
    await pair.write(0x60, n)
    await kick(pair, 0x12, 0, min(n, 20))
    await pair.quiet(300)
    checks.equal("flits", len(await pair.sent()), min(n, 20))
    checks.true("cycles between flits", int(dut.tap_gap_max.value) <= 8, str(int(dut.tap_gap_max.value)))


@cocotb.test()
async def credit_programs(dut):
    """P programs: C = P completes, C = P - 1 stops and recovers by re-seed or abort."""
    pair, rng = await begin(dut)
    dut.echo_en.value = 1
    known = 0
    for short, recover in ((0, None), (1, "seed"), (1, "abort")):
        dut.echo_delay.value = rng.choice((0, 3, 40))
        programs = [(rng.choice((0x01, 0x12, 0x33)), 4 * p, rng.randint(1, 4)) for p in range(4)]
        for _, base, n in programs:
            await stage_program(pair, rng, base, n)
        await pair.write(0x60, len(programs) - short)
        for dst, base, n in programs:
            await kick(pair, dst, base, n)
            known = model_echo(pair.ref, known)
            await answered(dut, pair)
        await pair.sent()
        await pair.state()
        stat = await pair.read(0x58)
        checks.equal("run", stat & 1, short)
        if short:
            checks.true("stopped with credit 0 and flits left", stat >> 17 == 0 and stat >> 1 & 0xFFFF > 0)
        if recover == "seed":
            await pair.write(0x60, 4)
            known = model_echo(pair.ref, known)
            await answered(dut, pair)
            checks.equal("recovered", await pair.read(0x58) & 1, 0)
        elif recover == "abort":
            await pair.write(0x150, 1)
            await pair.quiet(10)
            stat = await pair.read(0x58)
            checks.true("aborted with left kept", not stat & 1 and stat >> 1 & 0xFFFF > 0)
            await pair.write(0x60, 1)
            await kick(pair, 0x12, 0, 1)
            known = model_echo(pair.ref, known)
            await answered(dut, pair)
        await pair.sent()
        await pair.state()


@cocotb.test()
async def credit_fault_positions(dut):
    """A FAULT on the first, a middle or the last instruction returns its credit."""
    pair, rng = await begin(dut)
    dut.echo_en.value = 1
    known = 0
    await stage_program(pair, rng, 0, 12)
    for credit in (1, 2, 5):
        for position in (0, 6, 11, None):
            dut.echo_delay.value = rng.choice((0, 1, 5, 60))
            fault_at = None if position is None else int(dut.echo_seen.value) + position
            dut.echo_fault_at.value = 0xFFFF if fault_at is None else fault_at
            await pair.write(0x60, credit)
            await kick(pair, 0x12, 0, 12)
            known = model_echo(pair.ref, known, fault_at)
            await pair.quiet(1000)
            await answered(dut, pair)
            await pair.sent()
            await pair.state()
            await pair.write(0x30, 0xFFF)
            await pair.state(0x30, 0x38)
        checks.true("outstanding", int(dut.echo_open_max.value) <= credit, str(int(dut.echo_open_max.value)))


@cocotb.test()
async def credit_return_meets_reservation(dut):
    """Signals in every phase of the loop: return with reservation leaves credit unchanged."""
    pair, rng = await begin(dut)
    await stage_program(pair, rng, 0, 8)
    for phase in range(14):
        for code in (0, 4, 1, 3, 0x40):
            await pair.write(0x60, 4)
            await kick(pair, 0x12, 0, 8)  # sends four, waits
            await pair.quiet(40)
            for _ in range(phase):
                await FallingEdge(dut.clk)
            for flit in (
                om.signal(1, 0, 1),
                om.signal(2, code, 2),
                om.signal(2, 0, 2),
                om.signal(1, code, 3),
            ):
                await pair.push(flit)
                for _ in range(phase):
                    await FallingEdge(dut.clk)
                pair.ref.receive(flit)
            await pair.quiet(60)
            await pair.sent()
            await pair.state(0x30, 0x58, 0x60)
            await pair.write(0x150, 1)
            await pair.quiet(12)
            await pair.write(0x30, 0xFFF)


@cocotb.test()
async def credit_storm(dut):
    """Random seeds, kicks and delays with an answering mesh: the outstanding bound holds in every cycle."""
    pair, rng = await begin(dut)
    dut.echo_en.value = 1
    dut.out_mode.value, dut.out_level.value = 3, 6
    known = 0
    top = pair.ref.stage_flits
    await stage_program(pair, rng, 0, min(top, 40))
    for _ in range(scale(25, 400)):
        dut.echo_delay.value = rng.choice((0, 0, 1, 2, 3, 7, 50))
        n = rng.randint(1, min(top, 40))
        await pair.write(0x60, rng.randint(1, pair.ref.credit_max))
        await kick(pair, rng.choice((0x01, 0x12)), 0, n)
        known = model_echo(pair.ref, known)
        while await pair.axi.read(0x58) != await pair.axi.read(0x58) or (await pair.axi.read(0x58))[0] & 1:
            await clocks.cycles(100)
        await pair.quiet(600)
        await answered(dut, pair)
        await pair.sent()
        await pair.state(0x58, 0x60, 0x70)


@cocotb.test()
async def credit_seed_limits(dut):
    """0, CREDIT_MAX, CREDIT_MAX+1, 65,535; returns stop at the ceiling; re-seed while running; strobes."""
    pair, rng = await begin(dut)
    top = pair.ref.credit_max
    for value in (0, 1, top - 1, top, top + 1, 0xFFFF, 0):
        await pair.write(0x60, value)
        await pair.state(0x60, 0x58, 0x30)
        await pair.receive(om.signal(1, 0, 0), om.signal(1, 4, 0))
        await pair.state(0x60)
        await pair.write(0x30, 0xFFF)
    for strobes in (1, 2, 3, 4, 0x80):
        await pair.write(0x60, 0x0003, strobes)
        await pair.state(0x60)
        await pair.write(0x60, 0xFFFF_FFFF_FFFF_0102, strobes)
        await pair.state(0x60, 0x30)
        await pair.write(0x30, 0xFFF)
    await stage_program(pair, rng, 0, 6)
    await pair.write(0x60, 2)
    await kick(pair, 0x12, 0, 6)
    await pair.quiet()
    await pair.state(0x58)
    for value in (0, 1, 3):
        await pair.write(0x60, value)
        await pair.quiet()
        await pair.state(0x58, 0x60)
    await pair.sent()


@cocotb.test()
async def abort_in_every_cycle(dut):
    """PROG_ABORT at any point of the loop: whole flits only, `left` keeps its value, the next kick works."""
    pair, rng = await begin(dut)
    await stage_program(pair, rng, 0, 5)
    for delay in range(40):
        await pair.write(0x60, 5)
        for offset, value in ((0x40, 0x12), (0x68, 0), (0x48, 5)):
            await pair.write(offset, value)
        before = len(pair.ref.sent)
        cocotb.start_soon(pair.axi.write(0x50, 1))
        await dut.w_done.value_change
        for _ in range(delay):
            await FallingEdge(dut.clk)
        await pair.axi.write(0x150, 1)
        await pair.quiet(30)
        # The number that got out depends on the cycle; everything else follows from it.
        sent = int(dut.tap_count.value) - before
        pair.ref.credit, pair.ref.ceiling = sent, 5
        pair.ref.write(0x50, 1)
        pair.ref.write(0x150, 1)
        pair.ref.credit = 5 - sent
        await pair.sent()
        await pair.state(0x30, 0x58, 0x60)
        if sent == 5:
            break
    checks.true("reached the end", sent == 5)


@cocotb.test()
async def mailbox_and_dispatch(dut):
    """TX_KICK is refused while a dispatch runs and while the transmit FIFO is full; nothing overtakes."""
    pair, rng = await begin(dut)
    await stage_program(pair, rng, 0, 3)
    for word in range(5):
        await pair.write(0x100 + 8 * word, rng.getrandbits(64))
    await pair.write(0x60, 1)
    await kick(pair, 0x12, 0, 3)
    await pair.quiet()
    await pair.write(0x140, 1)
    await pair.state(0x30, 0x08)
    await pair.write(0x30, 0xFFF)
    await pair.write(0x60, 3)
    await pair.quiet()
    await pair.sent()
    dut.out_mode.value = 1
    pair.ref.link_open = False
    for k in range(18):
        await pair.write(0x100, k)
        await pair.write(0x140, 1)
        await pair.state(0x148, 0x08, 0x30)
    await pair.write(0x60, 2)
    await kick(pair, 0x01, 0, 2)  # waits for a free entry without taking credit
    await pair.quiet()
    await pair.state(0x58, 0x60, 0x08)
    dut.out_mode.value = 0
    pair.ref.link_open = True
    pair.ref.settle()
    await pair.quiet()
    await pair.sent()
    await pair.state()


@cocotb.test()
async def mirror_random(dut):
    """Dense random signals of few nodes, read bursts meanwhile: every word whole, every count right."""
    pair, rng = await begin(dut)
    for _ in range(scale(6, 60)):
        pool = [rng.randrange(256) for _ in range(rng.choice((1, 2, 3, 200)))]
        flits = [
            om.signal(rng.choice(pool), rng.choice((0, 1, 2, 3, 4, 5, 0x40, 0xFF)), rng.getrandbits(32))
            for _ in range(150)
        ]
        before = {n: pair.ref.node.get(n, (0, 0, 0)) for n in pool}
        dut.rst_n.value = 1
        allowed = {n: {before[n]} for n in pool}
        for flit in flits:
            pair.ref.receive(flit)
            n = (flit >> 272 & 15) << 4 | flit >> 276 & 15
            allowed[n].add(pair.ref.node[n])
        feeder = cocotb.start_soon(feed(pair, flits))
        for _ in range(3):
            for n, (data, _) in zip(pool[:8], [await pair.axi.read(0x1000 + 8 * n) for n in pool[:8]], strict=True):
                entry = (data >> 56, data >> 24 & 0xFFFFFFFF, data >> 8 & 0xFFFF)
                checks.true("word whole", entry in allowed[n] and (data & 0xFF) == (1 if entry[2] else 0), hex(data))
        await feeder
        await pair.quiet()
        for half in (0, 128):
            got = await pair.axi.read_burst(0x1000 + 8 * half, 128)
            checks.equal("mirror", got, pair.ref.read_burst(0x1000 + 8 * half, 128), n=128)
        await pair.state(0x70, 0x30, 0x38)


async def feed(pair, flits):
    """Queue flits one per cycle."""
    for flit in flits:
        await pair.push(flit)


@cocotb.test()
async def mirror_wrap(dut):
    """signal_count and SIG_DONE wrap 65,535 -> 0, every cycle and interleaved (slow: all 256)."""
    pair, _ = await begin(dut)
    nodes = scale(6, 256)

    async def blast(n, rep, first, code):
        dut.blast_n.value, dut.blast_rep.value = n, rep
        dut.blast_node.value, dut.blast_code.value = first, code
        dut.blast.value = int(dut.blast.value) ^ 1
        await FallingEdge(dut.feed_idle)
        await dut.feed_idle.value_change
        await clocks.cycles(10)
        await FallingEdge(dut.clk)

    first = 256 - nodes if nodes < 256 else 0
    await blast(nodes * 65_535, 65_535, first, 1)  # one node after another, every cycle
    total = nodes * 65_535
    for k in range(nodes):
        data, _ = await pair.axi.read(0x1000 + 8 * (first + k))
        checks.equal(f"count of {first + k:#x}", data >> 8 & 0xFFFF, 65_535)
        checks.equal("argument", data >> 24 & 0xFFFFFFFF, nodes * 65_535 - 65_535 * (k + 1) + 1)
    checks.equal("SIG_DONE", (await pair.axi.read(0x70))[0], total & 0xFFFF)
    for n in range(1, 3):
        await blast(nodes, 1, first, 0x40 + n)  # every node in turn
        for k in range(nodes):
            data, _ = await pair.axi.read(0x1000 + 8 * (first + k))
            checks.equal(f"wrapped {first + k:#x}", (data >> 56, data >> 8 & 0xFFFF, data & 1), (0x40 + n, n - 1, 1))
    checks.equal("SIG_DONE", (await pair.axi.read(0x70))[0], (total + 2 * nodes) & 0xFFFF)


@cocotb.test()
async def sig_done_race(dut):
    """A signal in the very cycle of the clear counts: the result is 1, never 0; no signal is lost."""
    pair, _ = await begin(dut)
    results = set()
    races = 0
    for delay in range(-8, 9):
        await pair.receive(om.signal(5, 1, 1), om.signal(5, 1, 1), om.signal(5, 1, 1))
        await clears_beside(pair, 0x70, 0, om.signal(6, 1, 2), delay)
        await pair.quiet()
        got = (await pair.axi.read(0x70))[0]
        results.add((delay, got))
        if int(dut.done_races.value) != races:
            races = int(dut.done_races.value)
            checks.equal("SIG_DONE after a signal in the cycle of the clear", got, 1)
        checks.true("SIG_DONE", got in (0, 1), str(got))
        pair.ref.receive(om.signal(6, 1, 2))
        await pair.read(0x1000 + 8 * 6)
        await pair.write(0x70, 0)
    counts = [got for _, got in sorted(results)]
    checks.equal("one edge", counts, sorted(counts))
    checks.true("both sides seen", 0 in counts and 1 in counts)
    checks.equal("races met", races, 1)
    # Exactly in the cycle: the clear takes effect when the beat is executed.
    checks.equal("a burst of signals over a clear", await _burst_clear(dut, pair), True)


async def _burst_clear(dut, pair):
    """Signals in every cycle around the clear: what is left equals what came from the clear on."""
    await pair.write(0x70, 0)
    dut.blast_n.value, dut.blast_rep.value, dut.blast_node.value, dut.blast_code.value = 200, 200, 7, 1
    dut.blast.value = int(dut.blast.value) ^ 1
    await clocks.cycles(20)
    await FallingEdge(dut.clk)
    await pair.axi.write(0x70, 0)
    seen = (await pair.axi.read(0x1000 + 8 * 7))[0] >> 8 & 0xFFFF
    since = (await pair.axi.read(0x70))[0]
    await pair.quiet()
    total = (await pair.axi.read(0x1000 + 8 * 7))[0] >> 8 & 0xFFFF
    rest = (await pair.axi.read(0x70))[0]
    checks.equal("all counted in the mirror", total, 200)
    # Count at the clear is the same seen from both readings: total - rest signals came before it.
    checks.true("clear point", 0 < total - rest < seen, f"{total} {rest} {seen} {since}")
    return 0 < since <= rest


@cocotb.test()
async def busy_never_rises(dut):
    """After the clear the inbound link takes a flit every cycle, mailbox full or not."""
    pair, rng = await begin(dut)
    flits = [
        om.signal(rng.getrandbits(8), 1, 0) if rng.random() < 0.5 else om.header(0x11, 1, 7) << 256 for _ in range(400)
    ]
    risen = cocotb.start_soon(_rise(dut))
    for flit in flits:
        await pair.push(flit)
        pair.ref.receive(flit)
    await pair.quiet()
    checks.equal("busy rose", risen.done(), False)
    checks.equal("drops", int(dut.drops.value), pair.ref.drops)
    await pair.state()


async def _rise(dut):
    await RisingEdge(dut.noc_in_busy)
