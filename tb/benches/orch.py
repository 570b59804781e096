# SPDX-License-Identifier: Apache-2.0
"""Orchestrator: register map, AXI rules, mailbox, errors, clients (docs/spec/fabric.md 6.1-6.4, 6.6, 12)."""

import cocotb
from cocotb.triggers import FallingEdge

from benches.control import HDL, begin, build, clears_beside, kick, ready, stage_program
from kohakubench import Bench, checks, clocks, scale, slow
from kohakubench import orch_model as om

_AXI = "rtl/control/axi_beats.v"
_REGS = "rtl/control/orch_regs.v"
_MIRR = "rtl/control/orch_mirror.v"
_MAIL = "rtl/control/orch_mailbox.v"
_ERR = "rtl/control/orch_err.v"
_CLI = "rtl/control/orch_client.v"

BENCH = Bench(
    name="orch",
    top="tb_orch",
    sources=[*HDL, "tb/hdl/tb_orch.v"],
    variants={"small": {"STAGE_FLITS": 20, "CREDIT_MAX": 5}},
    timeout_cycles=30_000_000,
    wall_s=900,
    mutations={
        "mirror_not_cleared": (_MIRR, "wr_en   = !ready || s1_valid_q", "wr_en   = s1_valid_q"),
        "beat_address_stuck": (_AXI, "w_word_q <= w_word_q + 1'b1;", "w_word_q <= w_word_q;"),
        "fixed_burst_taken": (_AXI, "w_beat_q <= !w_bad_q;", "w_beat_q <= 1'b1;"),
        "read_error_lost": (_AXI, "r_err_q <= r_bad_q || rb_err;", "r_err_q <= r_bad_q;"),
        "write_error_of_last_beat_only": (
            _AXI,
            "if (beat_fire && wb_err) w_err_q <= 1'b1;",
            "if (beat_fire) w_err_q <= w_bad_q || wb_err;",
        ),
        "stage_one_too_long": (_REGS, "(a < STAGE_END)", "(a <= STAGE_END)"),
        "seed_high_byte_unstrobed": (_REGS, "{wb_strb[1] ? wb_data[15:8] : 8'd0,", "{wb_data[15:8],"),
        "kick_needs_data": (
            _REGS,
            "fire && (wa == `KT_REG_PROG_KICK);",
            "fire && wb_data[0] && (wa == `KT_REG_PROG_KICK);",
        ),
        "overflow_sticks": (
            _MAIL,
            "else if (ovf_clear) overflow_q <= 1'b0;",
            "else if (1'b0) overflow_q <= 1'b0;",
        ),
        "tx_word_order": (
            _MAIL,
            "tx_q[64*w + 8*b +: 8] <= tx_wdata[8*b +: 8]",
            "tx_q[64*w + 8*b +: 8] <= tx_wdata[8*(7-b) +: 8]",
        ),
        "info_not_cleared": (
            _ERR,
            "code_q   <= evt ? evt_code : 8'd0;",
            "code_q   <= evt ? evt_code : code_q;",
        ),
        "clear_loses_new_error": (_ERR, "stat_q <= kept | set;", "stat_q <= (stat_q | set) & ~clear;"),
        "info_latches_later_event": (
            _ERR,
            "wire        fresh = ((kept & EVENT_BITS) == 12'd0);",
            "wire        fresh = ((kept & set & EVENT_BITS) == 12'd0);",
        ),
        "aux_shadow_any_address": (
            _CLI,
            "shadow_valid_q && (shadow_word_q == aux_wr_word)",
            "shadow_valid_q",
        ),
        "mem_error_hidden": (_CLI, "mem_bad     = !mreg_present || mreg_err", "mem_bad     = !mreg_present"),
    },
    mutation_tests={
        "mirror_not_cleared": ["reset_values"],
        "beat_address_stuck": ["refused_bursts", "bursts"],
        "fixed_burst_taken": ["refused_bursts"],
        "read_error_lost": ["mem_window"],
        "write_error_of_last_beat_only": ["bursts"],
        "stage_one_too_long": ["every_offset_every_strobe"],
        "seed_high_byte_unstrobed": ["every_offset_every_strobe"],
        "kick_needs_data": ["event_registers_any_strobe"],
        "overflow_sticks": ["mailbox"],
        "tx_word_order": ["mailbox"],
        "info_not_cleared": ["err_info"],
        "clear_loses_new_error": ["err_info"],
        "info_latches_later_event": ["err_info"],
        "aux_shadow_any_address": ["aux_window"],
        "mem_error_hidden": ["mem_window"],
    },
)


@cocotb.test()
async def reset_values(dut):
    """Reset values of every register; link free within 300 cycles; a reset clears the mirror."""
    pair, _ = await begin(dut)
    checks.true("busy after reset", 256 <= int(dut.ready_after.value) <= 300, str(int(dut.ready_after.value)))
    await pair.state()
    for offset in (*range(0x80, 0x128, 8), *range(0x140, 0x158, 8), *range(0x180, 0x1A8, 8), 0x1C0, 0x1C8):
        await pair.read(offset)
    await pair.receive(*(om.signal(n, 4, n) for n in range(256)))
    await pair.write(0, 0x1234)
    await pair.write(0x60, 3)
    await pair.state()
    await pair.read(0x1000)
    dut.rst_n.value = 0
    await clocks.cycles(20)
    await FallingEdge(dut.clk)
    dut.rst_n.value = 1
    await clocks.cycles(30)  # inside the clear: the host already sees an empty mirror
    got = await pair.axi.read_burst(0x1000 + 8 * 0xF0, 16)
    checks.equal("mirror during the clear", got, [(0, 0)] * 16)
    checks.equal("mesh_ready during the clear", (await pair.axi.read(8))[0], 0)
    pair.ref = build(dut)
    await ready(dut, pair)
    await pair.state()
    for half in (0, 128):
        checks.equal("mirror", await pair.axi.read_burst(0x1000 + 8 * half, 128), [(0, 0)] * 128)


STROBES = (0, *(1 << b for b in range(8)), 0xFF)


@cocotb.test()
async def every_offset_every_strobe(dut):
    """Every register offset, samples of the others (slow: every offset): each strobe and none."""
    pair, rng = await begin(dut)
    end = 0x2000 + 40 * pair.ref.stage_flits
    busy = {
        *range(0, 0x300, 8),
        *range(0x7F8, 0x910, 8),
        *range(end - 16, end + 32, 8),
        0xFFF8,
        0x1FF8,
        0x2000,
    }
    rare = {rng.randrange(0x300, 0x10000) & ~7 for _ in range(60)}
    if slow():
        rare = set(range(0x300, 0x10000, 8))
    rare |= {0x1000, 0x17F8, 0x1800, 0x8000}
    for offset in sorted(busy | rare):
        for strobes in STROBES:
            seed_bits = ~0xE0 if offset == 0x60 else ~0  # a seed that is not always limited
            await pair.write(offset, rng.getrandbits(64) & seed_bits, strobes)
            if offset in (0x50, 0x150, 0x30):
                await pair.state(0x30, 0x38, 0x58)
            if offset in (0x60, 0x140):
                await pair.quiet(10)
                await pair.state(0x58, 0x60, 0x30)
            await pair.read(offset + rng.choice((0, 0, 4, 7)))
        await pair.write(0x30, 0xFFF)
    await pair.quiet()
    await pair.sent()
    await pair.state()
    checks.equal("auxiliary transfers", int(dut.log_count.value), len(pair.ref.aux_log))


@cocotb.test()
async def event_registers_any_strobe(dut):
    """PROG_KICK, PROG_ABORT, TX_KICK, RX_POP, SIG_DONE fire on any strobe and any data, never without one."""
    pair, rng = await begin(dut)
    await stage_program(pair, rng, 0, 2)
    await pair.write(0x40, 0x12)
    await pair.write(0x48, 1)
    for strobes in STROBES:
        await pair.write(0x60, 1)
        await pair.write(0x50, 0, strobes)
        await pair.quiet()
        await pair.sent()
        await pair.state(0x30, 0x58)
        await pair.write(0x140, 0, strobes)
        await pair.quiet()
        await pair.sent()
        await pair.receive(om.signal(1, 1, 7), om.header(0x11, 1, 7) << 256 | 99, om.header(0x11, 1, 7) << 256 | 98)
        await pair.write(0x70, 0, strobes)
        await pair.write(0x1C0, 0, strobes)
        await pair.state(0x70, 0x180, 0x1C8)
        while not await pair.read(0x1C8) >> 16 & 1:
            await pair.write(0x1C0, 1)
        await pair.write(0x60, 0)
        await pair.write(0x50, 1)
        await pair.state(0x58)
        await pair.write(0x150, 0, strobes)
        await pair.quiet(5)
        await pair.state(0x58)
        await pair.write(0x150, 1)
        await pair.quiet(5)


@cocotb.test()
async def bursts(dut):
    """INCR bursts of 1 to 256 beats across registers, staging and unmapped ranges, with idle cycles."""
    pair, rng = await begin(dut)
    end = 0x2000 + 40 * pair.ref.stage_flits
    starts = [0x0, 0x20, 0xF8, 0x120, 0x140, 0x178, 0x1F8, 0x270, 0x7F0, 0x8F8, 0xFF0, 0x1700, 0x17F8, 0x1FF0]
    starts += [0x2000, end - 16, end - 8, end, 0xFFF0]
    for stall in (0, 1):
        dut.stall.value = stall
        for start in starts:
            n = rng.choice((2, 3, 5, 17, 256 if start >= 0x1700 else 40))
            beats = [(rng.getrandbits(64), rng.choice((0xFF, 0xFF, 0, rng.getrandbits(8)))) for _ in range(n)]
            got = await pair.axi.write_burst(start, beats)
            checks.equal(f"response of {n} beats at {start:#x}", got, pair.ref.write_burst(start, beats))
            await pair.quiet()
            got = await pair.axi.read_burst(start, n)
            checks.equal(f"read of {n} beats at {start:#x}", got, pair.ref.read_burst(start, n), n=n)
            await pair.write(0x30, 0xFFF)
            await pair.state(0x30, 0x58)
    await pair.sent()


@cocotb.test()
async def refused_bursts(dut):
    """A burst that is not INCR or not 8 bytes wide has no effect; a single narrow beat is legal."""
    pair, rng = await begin(dut)
    await pair.write(0, 0x1111)
    for burst in (0, 1, 2, 3):
        for size in (0, 1, 2, 3):
            for n in (1, 2, 9):
                beats = [(rng.getrandbits(64), 0xFF) for _ in range(n)]
                got = await pair.axi.write_burst(0, beats, size, burst)
                checks.equal(f"write {burst} {size} {n}", got, pair.ref.write_burst(0, beats, size, burst))
                got = await pair.axi.read_burst(0, n, size, burst)
                checks.equal(f"read {burst} {size} {n}", got, pair.ref.read_burst(0, n, size, burst))
                await pair.state(0x30)
                await pair.write(0x30, 0xFFFF)
                await pair.state(0, 0x20, 0x30)
    await pair.sent()


@cocotb.test()
async def axi_cocotbext(dut):
    """The slave against the AXI4 master of cocotbext-axi: unaligned, narrow, long, paused."""
    from cocotbext.axi import AxiBus, AxiMaster, AxiResp

    pair, rng = await begin(dut)
    dut.ext.value = 1
    master = AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst_n, reset_active_level=False)
    pause = lambda: iter(lambda: rng.random() < 0.4, None)  # noqa: E731
    ref = pair.ref
    for round_ in range(2):
        if round_:
            for channel in (master.write_if.w_channel, master.write_if.b_channel, master.read_if.r_channel):
                channel.set_pause_generator(pause())
        for start, n in (
            (0x0, 8),
            (0x2, 3),
            (0x21, 7),
            (0x104, 4),
            (0x100, 36),
            (0x2000, 40 * 3),
            (0x1000, 64),
        ):
            data = rng.randbytes(n)
            done = await master.write(start, data)
            checks.equal(f"cocotbext write {start:#x}", done.resp, AxiResp.OKAY)
            for word in range(start & ~7, start + n, 8):
                lanes = [k for k in range(8) if start <= word + k < start + n]
                ref.write(word, sum(data[word + k - start] << 8 * k for k in lanes), sum(1 << k for k in lanes))
            got = await master.read(start & ~7, 64)
            exp = b"".join(ref.read((start & ~7) + 8 * k)[0].to_bytes(8, "little") for k in range(8))
            checks.equal(f"cocotbext read {start:#x}", got.data, exp)
        done = await master.write(0x1800, bytes(8))
        checks.equal("cocotbext unmapped", done.resp, AxiResp.SLVERR)
        ref.write(0x1800, 0)
    await clocks.cycles(5)
    dut.ext.value = 0
    await pair.state(0, 0x20, 0x30)


@cocotb.test()
async def mailbox(dut):
    """TX_FLIT leaves unchanged; 16 unread flits plus 1; signals count with RX full; RX_POP; overflow."""
    pair, rng = await begin(dut)
    dut.out_mode.value, dut.out_level.value = 2, 128
    for _ in range(10):
        for word in range(5):
            await pair.write(0x100 + 8 * word, rng.getrandbits(64), rng.choice((0xFF, rng.getrandbits(8))))
        for _ in range(rng.randint(1, 3)):
            await pair.write(0x140, 0)
        await pair.quiet()
        await pair.sent()
    flits = [
        om.header(0x11, 0x12, rng.choice((0, 1, 2, 3, 4, 5, 7, 8, 9, 15)), k) << 256 | rng.getrandbits(256)
        for k in range(18)
    ]
    await pair.receive(*flits[:16])
    await pair.state(0x1C8, 0x30)
    await pair.receive(om.signal(0x12, 0, 5))
    await pair.state(0x1C8, 0x30, 0x70, 0x1000 + 8 * 0x12)
    await pair.receive(*flits[16:])
    await pair.state(0x1C8, 0x30)
    checks.equal("rx_drop pulses", int(dut.drops.value), 2)
    await pair.write(0x1C8, 1 << 17, 0x01)
    await pair.state(0x1C8)
    await pair.write(0x1C8, ~(1 << 17) & om.MASK64)
    await pair.state(0x1C8)
    await pair.write(0x1C8, 1 << 17, 0x04)
    await pair.state(0x1C8)
    await pair.receive(om.signal(0x12, 1, 6), om.signal(0x12, 0x99, 7))
    await pair.state(0x70, 0x1000 + 8 * 0x12)
    for _ in range(18):
        for word in range(5):
            await pair.read(0x180 + 8 * word)
        await pair.write(0x1C0, 0, 0x80)
        await pair.state(0x1C8)
    got = await pair.axi.read_burst(0x180, 5)
    checks.equal("empty head", got, [(0, 0)] * 5)


@cocotb.test()
async def err_stat_alone(dut):
    """Each ERR_STAT bit: set by its own cause alone, kept, cleared by W1C with its byte strobe."""
    pair, rng = await begin(dut)
    await stage_program(pair, rng, 0, 2)

    async def kick_busy():
        await pair.write(0x60, 0)
        await kick(pair, 0x12, 0, 2)
        await pair.write(0x50, 1)

    async def lost():
        dut.mesh_lost_in.value = 1
        await FallingEdge(dut.clk)
        dut.mesh_lost_in.value = 0
        pair.ref.mesh_lost()

    async def rx_full():
        await pair.receive(*(om.header(0x11, 1, 7, k) << 256 for k in range(17)))

    async def absent():
        dut.aux_present.value = 0
        pair.ref.aux_present = False
        await pair.write(0x808, 5, 0)
        await pair.state(0x30)
        await pair.write(0x808, 5, 0x10)
        await pair.state(0x78, 0x80)
        dut.aux_present.value = 1
        pair.ref.aux_present = True

    async def txkick():
        await kick_busy()
        await pair.write(0x30, 1)
        await pair.write(0x140, 1)

    causes = {
        "kick_busy": kick_busy,
        "kick_len0": lambda: kick(pair, 0x12, 0, 0),
        "stage_range": lambda: kick(pair, 0x12, pair.ref.stage_flits, 1),
        "cred_range": lambda: pair.write(0x60, pair.ref.credit_max + 1),
        "dst_bad": lambda: kick(pair, 0x02, 0, 1),
        "txkick_drop": txkick,
        "rx_drop": rx_full,
        "node_fault": lambda: pair.receive(om.signal(0x12, 4, 0x4D470102)),
        "data_reject": lambda: pair.receive(om.signal(0x01, 3, 0x82000001)),
        "mesh_lost": lost,
        "axi_bad": lambda: pair.read(0x1800),
        "aux_absent": absent,
    }
    checks.equal("causes", list(causes), list(om.ERR))
    for name, cause in causes.items():
        checks.equal(f"clean before {name}", await pair.read(0x30), 0)
        await cause()
        await pair.quiet(10)
        checks.equal(name, await pair.read(0x30), om.ERR[name])
        await pair.state(0x08, 0x38, 0x58)
        await pair.write(0x30, ~om.ERR[name] & om.MASK64)
        checks.equal(f"{name} kept", await pair.read(0x30), om.ERR[name])
        wrong = 0x01 if om.ERR[name] > 0xFF else 0x02
        await pair.write(0x30, om.ERR[name], wrong | 0xFC)
        checks.equal(f"{name} other strobe", await pair.read(0x30), om.ERR[name])
        await pair.write(0x30, om.ERR[name], wrong ^ 3)
        await pair.state(0x30, 0x38, 0x08)
        await pair.write(0x150, 1)
        await pair.quiet(10)
        while not (await pair.axi.read(0x1C8))[0] >> 16 & 1:
            await pair.write(0x1C0, 1)
        await pair.write(0x1C8, 1 << 17)


@cocotb.test()
async def err_info(dut):
    """The first event is kept, all are counted, both bits must go before a new first; saturation."""
    pair, rng = await begin(dut)
    for _ in range(40):
        kind = rng.choice(("fault", "reject", "accept", "clear7", "clear8", "clear"))
        if kind == "fault":
            await pair.receive(om.signal(rng.getrandbits(8), 4, rng.getrandbits(32)))
        elif kind == "reject":
            await pair.receive(om.signal(rng.getrandbits(8), 3, 1 << 31 | rng.getrandbits(31)))
        elif kind == "accept":
            await pair.receive(om.signal(rng.getrandbits(8), 3, rng.getrandbits(31)))
        else:
            await pair.write(0x30, {"clear7": 0x80, "clear8": 0x100, "clear": 0x180}[kind])
        await pair.state(0x30, 0x38)
    await pair.write(0x30, 0xFFF)
    dut.blast_n.value, dut.blast_rep.value, dut.blast_node.value, dut.blast_code.value = 65_600, 65_600, 9, 4
    dut.blast.value = int(dut.blast.value) ^ 1
    await FallingEdge(dut.feed_idle)
    await pair.quiet()
    checks.equal("saturated", (await pair.axi.read(0x38))[0], 0xFFFF << 48 | 65_600 << 16 | 4 << 8 | 9)
    # A clear in the cycle of an event never loses the event.
    outcomes = []
    races = int(dut.err_races.value)
    for delay in range(-8, 9):
        await pair.axi.write(0x30, 0xFFF)
        await pair.push(om.signal(1, 4, 1))
        await pair.quiet(4)
        await clears_beside(pair, 0x30, 0xFFF, om.signal(2, 4, 2), delay)
        await pair.quiet()
        stat, info = (await pair.axi.read(0x30))[0], (await pair.axi.read(0x38))[0]
        allowed = {(0, 0), (0x80, 1 << 48 | 2 << 16 | 4 << 8 | 2)}
        checks.true("clear against event", (stat, info) in allowed, f"{stat:#x} {info:#x}")
        outcomes.append(stat)
        if int(dut.err_races.value) != races:
            races = int(dut.err_races.value)
            checks.equal("node_fault after a fault in the cycle of the clear", stat, 0x80)
            outcomes.append("race")
    checks.equal("races met", outcomes.count("race"), 1)
    outcomes.remove("race")
    checks.equal("one edge", outcomes, sorted(outcomes))
    checks.true("both sides seen", len(set(outcomes)) == 2)


@cocotb.test()
async def aux_window(dut):
    """AUX_CFG: address, merging over the shadow, a held beat stops the bus, status words."""
    pair, rng = await begin(dut)
    dut.aux_stall.value = 1
    for _ in range(scale(150, 1000)):
        offset = 0x800 + 8 * rng.choice((0, 0, 1, 31, rng.randrange(32)))
        await pair.write(offset, rng.getrandbits(64), rng.choice((0xFF, 0, 1 << rng.randrange(8), rng.getrandbits(8))))
    beats = [(rng.getrandbits(64), rng.choice((0xFF, rng.getrandbits(8)))) for _ in range(32)]
    checks.equal("burst", await pair.axi.write_burst(0x800, beats), pair.ref.write_burst(0x800, beats))
    count = int(dut.log_count.value)
    checks.equal("transfers", count, len(pair.ref.aux_log))
    for n in range(max(0, count - 256), count):
        dut.log_sel.value = n & 255
        await FallingEdge(dut.clk)
        got = int(dut.log_data.value)
        checks.equal(f"transfer {n}", (got >> 64, got & om.MASK64), pair.ref.aux_log[n])
    for offset in (0x78, *range(0x80, 0x100, 8), *range(0x800, 0x900, 8)):
        await pair.read(offset)
    dut.aux_hold.value = 1
    held = cocotb.start_soon(pair.axi.write(0x820, 1))
    await clocks.cycles(50)
    checks.equal("held", held.done(), False)
    await pair.read(0x08)  # reads go on
    dut.aux_hold.value = 0
    checks.equal("released", await held, 0)


@cocotb.test()
async def mem_window(dut):
    """MEM_BLOCK: one pulse per strobed write or read beat, error and absence make the beat unmapped."""
    pair, rng = await begin(dut)
    for _ in range(scale(120, 1000)):
        offset = 0x200 + 8 * rng.choice((0, 1, 2, 2, 3, 5, 15))
        await pair.write(offset, rng.getrandbits(64), rng.choice((0xFF, 0, rng.getrandbits(8))))
        await pair.read(0x200 + 8 * rng.choice((0, 1, 2, 3, 15)))
        await pair.state(0x30)
        await pair.write(0x30, 0xFFF)
    before = int(dut.mreg_count.value)
    await pair.write(0x210, 5, 0)
    checks.equal("no pulse without strobe", int(dut.mreg_count.value), before)
    for _ in range(40):  # read and write beats at once
        reader = cocotb.start_soon(pair.axi.read_burst(0x200, 3))
        for _ in range(rng.randrange(6)):
            await FallingEdge(dut.clk)
        value = rng.getrandbits(64)
        checks.equal("write beside read", await pair.axi.write(0x210, value), 0)
        checks.equal("read beside write", [r for _, r in await reader], [0, 0, 0])
        checks.equal("stored", (await pair.axi.read(0x210))[0], value)
    dut.mreg_present.value = 0
    pair.ref.mem = None
    for offset in (0x200, 0x210, 0x278):
        await pair.write(offset, 1)
        await pair.write(offset, 1, 0)
        await pair.read(offset)
        await pair.state(0x30)
