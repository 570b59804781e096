# SPDX-License-Identifier: Apache-2.0
"""Host map and control-program engine in front of a real orchestrator (docs/spec/fabric.md 7, 8.1, 12)."""

import random

import cocotb
from cocotb.triggers import FallingEdge

from benches.control import HDL, answered, fresh, model_echo, stage_program
from benches.control_engine import BASE, DONE, POLL, READS, WR, Machine, round_of, run_on_host
from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench import orch_model as om

_CORE = "rtl/control/eng_core.v"
_REGS = "rtl/control/eng_regs.v"
_MAP = "rtl/control/host_map.v"
_ARB = "rtl/control/host_arb.v"

BENCH = Bench(
    name="ctl_engine",
    top="tb_ctl_engine",
    sources=[
        *HDL,
        "rtl/control/eng_*.v",
        "rtl/control/host_*.v",
        "rtl/control/ctl_engine.v",
        "rtl/control/ctl_engine_sva.sv",
        "tb/hdl/tb_orch.v",
        "tb/hdl/tb_ctl_engine.v",
    ],
    variants={"small": {"NCMD": 8, "POLL_IVL": 0}},
    timeout_cycles=5_000_000,
    wall_s=900,
    mutations={
        "poll_interval_short": (
            _CORE,
            "if (state_q == READ) pause_q <= IVL;",
            "if (state_q == READ) pause_q <= IVL >> 1;",
        ),
        "poll_limit_off_by_one": (_CORE, "(tries_q >= poll_limit)", "(tries_q > poll_limit)"),
        "poll_ignores_mask": (_CORE, "((rdata & cmd_mask) == cmd_data)", "(rdata == cmd_data)"),
        "write_error_ignored": (_CORE, "if (bresp != 2'b00) begin", "if (bresp == 2'b01) begin"),
        "read_error_ignored": (_CORE, "if (rresp != 2'b00) begin", "if (rresp == 2'b01) begin"),
        "last_slot_wraps": (_CORE, "if (pc_q == LAST_SLOT[SLOT_W-1:0]) begin", "if (1'b0) begin"),
        "op_low_byte_only": (_CORE, "else if (cmd_op == OP_DONE)", "else if (cmd_op[7:0] == 8'd3)"),
        "high_address_ignored": (
            _CORE,
            "(cmd_addr[63:16] == {32'd0, CTRL_BASE[31:16]})",
            "(cmd_addr[31:16] == CTRL_BASE[31:16])",
        ),
        "abort_forgotten": (_CORE, "(state_q != IDLE) && (state_d != IDLE) && stopping", "1'b0"),
        "code_on_error": (
            _CORE,
            "                err_addr_q <= cmd_addr[31:0];",
            "                err_addr_q <= cmd_addr[31:0];\n                code_q <= cmd_data;",
        ),
        "go_keeps_error": (
            _CORE,
            "                err_q      <= 1'b0;",
            "                err_q      <= err_q;",
        ),
        "cmd_writable_while_busy": (
            _REGS,
            "assign wb_err   = !is_mapped(wa) || (w_cmd && busy);",
            "assign wb_err   = !is_mapped(wa);",
        ),
        "cmd_changed_while_busy": (_REGS, "cmd_we   = fire && w_cmd && !busy;", "cmd_we   = fire && w_cmd;"),
        "cmd_not_cleared": (_REGS, ".wr_strb(cleared ? cmd_strb : 32'hFFFF_FFFF)", ".wr_strb(cmd_strb)"),
        "limit_ignores_strobes": (_REGS, "if (wb_strb[i]) limit_q", "limit_q"),
        "window_aliases": (
            _MAP,
            "w_orc_q  <= (s_axi_awaddr[31:16] == CTRL_BASE[31:16]);",
            "w_orc_q  <= (s_axi_awaddr[31:24] == CTRL_BASE[31:24]);",
        ),
        "decerr_is_slverr": (_MAP, "localparam [1:0] DECERR = 2'b11;", "localparam [1:0] DECERR = 2'b10;"),
        "id_not_echoed": (_MAP, "assign s_axi_rid     = r_id_q;", "assign s_axi_rid     = 4'd0;"),
        "engine_starves_host": (
            _ARB,
            "wire w_pick_eng = e_awvalid && (!h_awvalid || !w_eng_q);",
            "wire w_pick_eng = e_awvalid;",
        ),
        "host_starves_engine": (
            _ARB,
            "wire r_pick_eng = e_arvalid && (!h_arvalid || !r_eng_q);",
            "wire r_pick_eng = e_arvalid && !h_arvalid;",
        ),
        "engine_narrow_strobes": (
            _ARB,
            "m_axi_wstrb   = w_eng_q ? 8'hFF   : h_wstrb;",
            "m_axi_wstrb   = w_eng_q ? 8'h0F   : h_wstrb;",
        ),
    },
    mutation_tests={
        "poll_interval_short": ["poll_interval"],
        "poll_limit_off_by_one": ["ops_and_errors"],
        "poll_ignores_mask": ["ops_and_errors"],
        "write_error_ignored": ["ops_and_errors"],
        "read_error_ignored": ["ops_and_errors"],
        "last_slot_wraps": ["full_programs"],
        "op_low_byte_only": ["ops_and_errors"],
        "high_address_ignored": ["ops_and_errors"],
        "abort_forgotten": ["abort"],
        "code_on_error": ["ops_and_errors"],
        "go_keeps_error": ["ops_and_errors"],
        "cmd_writable_while_busy": ["busy_refusals"],
        "cmd_changed_while_busy": ["busy_refusals"],
        "cmd_not_cleared": ["never_written_slots"],
        "limit_ignores_strobes": ["registers"],
        "window_aliases": ["host_map"],
        "decerr_is_slverr": ["host_map"],
        "id_not_echoed": ["host_map"],
        "engine_starves_host": ["arbiter_fair"],
        "host_starves_engine": ["arbiter_fair"],
        "engine_narrow_strobes": ["ops_and_errors"],
    },
)


async def begin(dut, *, clock=True):
    """Reset, clears over."""
    await fresh(dut, "b_hold", "bus_sel", clock=clock)
    pair = Machine(dut)
    await clocks.cycles(300)
    await FallingEdge(dut.clk)
    return pair, random.Random(seed())


@cocotb.test()
async def registers(dut):
    """Reset values; every engine offset with every strobe and none; unlisted offsets; commands read 0."""
    pair, rng = await begin(dut)
    await pair.engine_state()
    end = 0x1000 + 32 * pair.eng.ncmd
    offsets = {*range(0, 0x80, 8), 0xFF8, 0x1000, 0x1008, end - 8, end, 0x2000, 0xFFF8}
    for offset in sorted(offsets | {rng.randrange(0x1000) & ~7 for _ in range(scale(20, 500))}):
        for strobes in (0, *(1 << b for b in range(8)), 0xFF):
            await pair.write(offset, rng.getrandbits(64) & ~3 if offset < 8 else rng.getrandbits(64), strobes)
            await pair.read(offset)
    await pair.engine_state()
    for strobes in (0, 2, 4, 0x80):  # GO sits in byte 0
        await pair.write(0, 1, strobes)
        await pair.engine_state()


@cocotb.test()
async def host_map(dut):
    """Windows, DECERR elsewhere with the full number of beats, IDs, burst rules of the engine window."""
    pair, rng = await begin(dut)
    for address in (0x10000, 0x0FFF_FFF8, 0x1001_0000, 0x1010_0000, 0x2000_0000, 0xFFFF_FFF8, 0x8000_0000):
        await pair.write(address, 1)
        await pair.read(address)
        ident = rng.randrange(16)
        beats = [(rng.getrandbits(64), 0xFF)] * 7
        checks.equal("write burst", await pair.axi.write_burst(address, beats, ident=ident), om.DECERR)
        checks.equal("read burst", await pair.axi.read_burst(address, 9, ident=ident), [(0, om.DECERR)] * 9)
    checks.equal("nothing reached the orchestrator", int(dut.bus_count.value), 0)
    for stall in (0, 1):
        dut.stall.value = stall
        for burst, size, n in ((1, 3, 4), (0, 3, 4), (2, 3, 2), (1, 2, 2), (1, 2, 1)):
            beats = [(rng.getrandbits(64), 0xFF) for _ in range(n)]
            good = n == 1 or (burst, size) == (1, 3)
            got = await pair.axi.write_burst(0x1000, beats, size, burst)
            checks.equal(f"engine window {burst} {size} {n}", got, om.OKAY if good else om.SLVERR)
            got = await pair.axi.read_burst(0x28, n, size, burst)
            exp = [pair.eng.read(0x28 + 8 * k) if good else (0, om.SLVERR) for k in range(n)]
            checks.equal(f"engine window read {burst} {size} {n}", got, exp)
            start = rng.choice((0, 0x2000, 0x120, 0x17F8))
            got = await pair.axi.write_burst(BASE + start, beats, size, burst)
            checks.equal("orchestrator window", got, pair.orch.write_burst(start, beats, size, burst))
            got = await pair.axi.read_burst(BASE + start, n, size, burst)
            checks.equal("orchestrator window", got, pair.orch.read_burst(start, n, size, burst))
            await pair.quiet(10)
            await pair.state(0x30, 0x0, 0x20)
            await pair.write(BASE + 0x30, 0xFFF)


@cocotb.test()
async def ops_and_errors(dut):
    """All ops and err codes 0 to 5, each with pc, code, polls, error address and irq."""
    pair, rng = await begin(dut)
    nop = (WR, BASE, 0x5555)
    programs = {
        "done": [(DONE, 0, 0xFEED_0000_0000_BEEF)],
        "write done": [nop, (WR, BASE + 0x20, rng.getrandbits(64)), (DONE, 0, 2)],
        "op 0": [nop, (0, 0x1234_5678_9ABC, 1)],
        "op 4": [(4, 7)],
        "op 1 in the upper half": [nop, (1 << 32 | 1, BASE, 9)],
        "op 3 with bit 8": [(0x103, BASE + 8, 9)],
        "op 2 with bit 63": [(1 << 63 | 2, BASE, 0)],
        "write unmapped": [nop, nop, (WR, BASE + 0x1800, 1), (DONE, 0, 3)],
        "write nowhere": [(WR, 0x2000_0000, 1)],
        "write own window": [(WR, 0x28, 7), (DONE, 0, 3)],
        "write memory window": [nop, (WR, 1 << 40 | BASE, 1)],
        "write other mesh": [(WR, BASE + 0x10000, 1)],
        "poll unmapped": [nop, (POLL, BASE + 0x1F00, 0, 0), (DONE, 0, 3)],
        "poll nowhere": [(POLL, 0x4000_0000, 0, 0)],
        "poll own window": [(POLL, 0, 1, 1)],
        "poll mask 0": [(POLL, BASE, 0, 0), (DONE, 0, 5)],
        "poll masked": [nop, (POLL, BASE, 0x50, 0xF0), (DONE, 0, 6)],
        "poll low address bits": [(WR, BASE + 7, 0x77), (POLL, BASE + 3, 0x77, 0xFF), (DONE, 0, 7)],
    }
    await pair.write(0x28, 6)
    programs["poll limit"] = [nop, (POLL, BASE, 1, 0xF), (DONE, 0, 1)]
    programs["poll value outside the mask"] = [(POLL, BASE, 0x155, 0xFF)]
    programs["limit is per poll"] = [
        (WR, READS, 0),
        *((POLL, READS, 5 * k, ~0 & om.MASK64) for k in (1, 2, 3)),
    ]
    programs["limit is per poll"].append((DONE, 0, 15))
    for name, program in programs.items():
        if len(program) > pair.eng.ncmd:
            continue
        before = int(dut.bus_count.value)
        known = len(pair.orch.aux_log)
        await pair.load(program)
        await pair.go()
        await pair.wait()
        expected = [a & 0xFFF8 for op, a, *_ in program[: pair.eng.pc + 1] if op == WR and a >> 16 == BASE >> 16]
        checks.equal(f"writes of {name}", [a & 0xFFF8 for a, _ in await pair.log(before)], expected)
        checks.equal("aux", len(pair.orch.aux_log), known)
        await pair.state(0, 0x20, 0x30)
        await pair.write(BASE + 0x30, 0xFFF)


@cocotb.test()
async def never_written_slots(dut):
    """Slots not written since reset hold op 0, also after an earlier life of the machine."""
    pair, _ = await begin(dut)
    n = pair.eng.ncmd
    await pair.load([(WR, BASE, k) for k in range(n - 1)] + [(DONE, 0, 1)])
    await pair.go()
    await pair.wait()
    dut.rst_n.value = 0
    await clocks.cycles(20)
    await FallingEdge(dut.clk)
    dut.rst_n.value = 1
    checks.equal("GO waits for the clear", await pair.axi.write(0, 1), 0)
    fresh_pair = Machine(dut)
    fresh_pair.eng.write(0, 1)
    fresh_pair.eng.execute()
    await fresh_pair.wait()
    await clocks.cycles(300)
    await FallingEdge(dut.clk)
    for _ in range(2):  # one strobed byte of an op makes exactly that op
        await fresh_pair.write(0x1000 + 32, DONE, 0x01)
        await fresh_pair.write(0x1000, WR, 0x03)
        await fresh_pair.write(0x1008, BASE, 0x0F)
        await fresh_pair.go()
        await fresh_pair.wait()


@cocotb.test()
async def full_programs(dut):
    """NCMD - 1 and NCMD commands, with and without DONE in the last place."""
    pair, rng = await begin(dut)
    n = pair.eng.ncmd
    for length, done in ((n - 1, True), (n, True), (n, False), (n - 1, False)):
        body = [(WR, BASE + 0x20, rng.getrandbits(64)) for _ in range(length)]
        if done:
            body[-1] = (DONE, 0, length)
        await pair.load(body + [(0,)] * (n - length))
        before = int(dut.bus_count.value)
        await pair.go()
        await pair.wait()
        got = await pair.log(before)
        checks.equal("writes", got, [(0x20, d) for _, _, d in body if _ == BASE + 0x20])
        code = 0 if done else (2 if length == n else 1)
        checks.equal("err_code", (await pair.axi.read(0))[0] >> 4, code)
        checks.equal("pc", (await pair.axi.read(8))[0], length - 1 if done or length == n else length)
    # A poll in the last slot that matches, and one that does not.
    for want, limit in ((1, 9), (99, 3)):
        await pair.write(0x28, limit)
        await pair.load([(WR, READS, 0)] * (n - 1) + [(POLL, READS, want, om.MASK64)])
        await pair.go()
        await pair.wait()


@cocotb.test()
async def poll_counts(dut):
    """A poll that matches on read 1 and on read 1,000; the interval between reads is POLL_IVL + 1 cycles."""
    pair, _ = await begin(dut)
    for want in (1, 2, 1000):
        for limit in (0, want, want - 1):
            await pair.write(0x28, limit)
            await pair.load([(WR, READS, 0), (POLL, READS, want, om.MASK64), (DONE, 0, want)])
            pair.eng.idle = lambda: True
            reads = int(dut.bus_reads.value)
            await pair.go()
            start = clocks.now()
            await pair.wait(2_000_000)
            expected = want if limit in (0, want) else limit
            checks.equal("reads on the bus", int(dut.bus_reads.value) - reads, expected)
            if want == 1000 and limit == 0:
                each = (clocks.now() - start) / want
                low = pair.eng.poll_ivl + 1 + 4
                checks.true("cycles per poll", low <= each <= low + 8, f"{each}")


@cocotb.test()
async def poll_interval(dut):
    """From a response that does not match to the next address: POLL_IVL + 1 cycles of waiting."""
    pair, _ = await begin(dut)
    await pair.load([(POLL, BASE, 1, 1), (DONE, 0, 0)])
    await pair.write(BASE, 0)
    await pair.axi.write(0, 1)
    gaps = []
    for _ in range(4):
        while not (int(dut.o_rvalid.value) and int(dut.o_rready.value)):
            await FallingEdge(dut.clk)
        at = clocks.now()
        while not int(dut.dut_e_arvalid.value) or clocks.now() == at:
            await FallingEdge(dut.clk)
        gaps.append(clocks.now() - at)
    checks.equal("cycles from response to address", gaps, [pair.eng.poll_ivl + 2] * 4)
    pair.eng.write(0, 1)
    await pair.write(BASE, 1)
    pair.eng.execute()
    await clocks.cycles(600)
    pair.eng.polls = (await pair.axi.read(0x18))[0]
    await pair.wait()


@cocotb.test()
async def busy_refusals(dut):
    """While busy: GO is ignored, CMD writes answer SLVERR and change nothing, other registers work."""
    pair, _ = await begin(dut)
    await pair.load([(POLL, BASE, 1, 1), (WR, BASE + 0x20, 0xAA), (DONE, 0, 77)])
    await pair.write(BASE, 0)
    await pair.axi.write(0, 1)
    pair.eng.write(0, 1)
    for offset, value in ((0x1020, 3), (0x1028, 5), (0x1000, 0), (0x1000 + 32 * pair.eng.ncmd - 8, 1)):
        checks.equal("refused", await pair.axi.write(offset, value), om.SLVERR)
        checks.equal("refused in the reference", pair.eng.write(offset, value), om.SLVERR)
        checks.equal("reads go on", await pair.axi.read(offset), (0, 0))
    polls = (await pair.axi.read(0x18))[0]
    checks.equal("GO ignored", await pair.axi.write(0, 1), 0)
    checks.equal("busy", await pair.axi.read(0), (1, 0))
    checks.true("polls not restarted", (await pair.axi.read(0x18))[0] >= polls)
    await pair.write(0x28, 0)
    await pair.write(BASE, 1)
    pair.eng.execute()
    await clocks.cycles(600)
    pair.eng.polls = (await pair.axi.read(0x18))[0]
    await pair.wait()
    await pair.state(0, 0x20)
    await pair.write(0x1020, WR)
    checks.equal("writable again", pair.eng.cmd[4], WR)


@cocotb.test()
async def abort(dut):
    """ABORT while idle, while a poll waits, during a write: err_code 6 between transactions."""
    pair, _ = await begin(dut)
    await pair.write(0, 2)
    await pair.engine_state()
    await pair.write(0x28, 0)
    await pair.load([(WR, BASE, 0), (POLL, BASE, 1, 1), (WR, BASE + 0x20, 9), (DONE, 0, 77)])
    for delay in range(0, 60, 7):
        await pair.axi.write(0, 1)
        pair.eng.write(0, 1)
        pair.eng.execute()
        await clocks.cycles(60 + delay)
        checks.equal("busy", (await pair.axi.read(0))[0], 1)
        await pair.axi.write(0, 2)
        pair.eng.abort()
        await clocks.cycles(60)
        pair.eng.polls = (await pair.axi.read(0x18))[0]
        await pair.wait()
    # During a write: the transaction ends, the program stops before the next command.
    await pair.load([(WR, BASE + 0x20, 0x11), (WR, BASE + 0x20, 0x22), (DONE, 0, 77)])
    dut.b_hold.value = 1
    await pair.axi.write(0, 1)
    await clocks.cycles(20)
    await pair.axi.write(0, 2)
    await clocks.cycles(50)
    checks.equal("still busy", (await pair.axi.read(0))[0], 1)
    dut.b_hold.value = 0
    pair.orch.write(0x20, 0x11)
    pair.eng.write(0, 1)
    pair.eng.pc = 1
    pair.eng.abort()
    await pair.wait()
    await pair.state(0x20)
    # GO and ABORT in one write: nothing runs that could be aborted.
    await pair.write(0, 3)
    pair.eng.execute()
    await pair.wait()
    await pair.state(0x20)


@cocotb.test()
async def engine_equals_host(dut):
    """One command list by engine and by host: identical writes, flits and final state."""
    traces = []
    for runner in ("engine", "host"):
        pair, _ = await begin(dut, clock=not traces)
        rng = random.Random(seed() + 100)
        dut.echo_en.value, dut.echo_delay.value = 1, 25
        await stage_program(pair, rng, 0, 3)
        await stage_program(pair, rng, 3, 4)
        await stage_program(pair, rng, 7, 2)
        commands = round_of(rng, 4)
        before = int(dut.bus_count.value)
        if runner == "engine":
            if len(commands) > pair.eng.ncmd:
                commands = [c for c in commands if c[0] != POLL][: pair.eng.ncmd - 1] + commands[-1:]
            await pair.load(commands)
            await pair.axi.write(0, 1)
            while not int(dut.irq.value):
                await clocks.cycles(50)
            code = (await pair.axi.read(0x10))[0]
            checks.equal("no error", (await pair.axi.read(0))[0], 2)
        else:
            if len(commands) > pair.eng.ncmd:
                commands = [c for c in commands if c[0] != POLL][: pair.eng.ncmd - 1] + commands[-1:]
            code = await run_on_host(pair, commands)
        await answered(dut, pair)
        writes = await pair.log(before)
        known = 0
        for op, address, *rest in commands:
            if op == WR:
                pair.bus.write(address, rest[0])
                known = model_echo(pair.orch, known)
        checks.equal(f"writes of {runner}", writes, [(a & 0xFFFF, r[0]) for op, a, *r in commands if op == WR])
        checks.equal("code", code, commands[-1][2])
        state = [await pair.read(BASE + o) for o in (*range(0, 0x80, 8), 0x148, 0x1C8, 0x1008, 0x1090)]
        traces.append((writes, [*pair.orch.sent], state))
        flits = []
        for n in range(int(dut.tap_count.value)):
            dut.tap_sel.value = n
            await FallingEdge(dut.clk)
            flits.append(int(dut.tap_data.value))
        checks.equal("flits", flits, pair.orch.sent, n=len(flits))
    checks.equal("engine and host", traces[0], traces[1])


@cocotb.test()
async def arbiter(dut):
    """Host traffic beside a running program: whole transactions, right data, no starvation."""
    pair, rng = await begin(dut)
    n = min(pair.eng.ncmd, 100)
    body = [(WR, BASE + 0x20, k) for k in range(n - 1)]
    await pair.load([*body, (DONE, 0, 1)])
    await pair.axi.write(0, 1)
    pair.eng.write(0, 1)
    host = []
    before = int(dut.bus_count.value)
    while not int(dut.irq.value):
        beats = [(rng.getrandbits(64), 0xFF) for _ in range(rng.choice((1, 3)))]
        checks.equal("host burst", await pair.axi.write_burst(BASE + 0x2000, beats), 0)
        host.append([d for d, _ in beats])
    pair.eng.execute()
    await pair.wait()
    writes = await pair.log(before)
    staged = [d for a, d in writes if a >= 0x2000]
    checks.equal("host beats in order", staged, [d for beats in host for d in beats], n=len(staged))
    # Bursts stay whole: a beat at 0x2008 or 0x2010 follows its predecessor directly.
    whole = all(writes[k - 1][0] == a - 8 for k, (a, _) in enumerate(writes) if a > 0x2000)
    checks.true("whole transactions", whole)
    # Reads: a poll that never matches and a host that reads without a pause both get through.
    await pair.write(0x28, 40)
    await pair.load([(POLL, BASE, ~0 & om.MASK64, om.MASK64), (DONE, 0, 0)])
    await pair.axi.write(0, 1)
    pair.eng.write(0, 1)
    pair.eng.execute()
    reads = 0
    while not int(dut.irq.value) and reads < 2000:
        checks.equal("host read", (await pair.axi.read(BASE + 0x10))[1], 0)
        reads += 1
    checks.true("both progress", 10 < reads < 2000, str(reads))
    await pair.wait()


@cocotb.test()
async def arbiter_fair(dut):
    """Round robin: a tie is never won by the side that was served last, for writes and for reads."""
    pair, _ = await begin(dut)
    await pair.write(0x28, 30)
    last = pair.eng.ncmd - 1
    program = [(WR, BASE + 0x20, k) for k in range(last)]
    for commands in (program, [(POLL, BASE, ~0 & om.MASK64, om.MASK64)]):
        await pair.load([*commands, (DONE, 0, 0)])
        for shift in range(scale(8, 40) * (128 // pair.eng.ncmd)):
            dut.stall.value = shift & 1
            await pair.axi.write(0, 1)
            await clocks.cycles(1 + shift % 40)
            while not int(dut.irq.value):
                await pair.axi.write(BASE, 0)
                await pair.axi.read(BASE + 0x10)
    checks.equal("ties won by the side served last", int(dut.unfair.value), 0)
    checks.true("ties of writes", int(dut.ties_w.value) > 5, str(int(dut.ties_w.value)))
    checks.true("ties of reads", int(dut.ties_r.value) > 5, str(int(dut.ties_r.value)))
