# SPDX-License-Identifier: Apache-2.0
"""Memory agent, faults, dropped flits and the register block (docs/spec/memory.md 2.2, 7)."""

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge

from kohakubench import Bench, checks, clocks, scale
from kohakubench.mag_model import CU_DATA, flit, read_request, write_flits
from kohakubench.mag_tb import (
    CAPS,
    DRAMCNT,
    DROP,
    FAULT,
    PUBLIC,
    SOURCES,
    STGCNT,
    UNITS,
    MagTb,
    Step,
    interleave,
)

BENCH = Bench(
    name="mag_fault",
    top="tb_mag",
    sources=SOURCES,
    slow_variants=("mesh3",),
    variants={"mesh3": {"MESH_ID": 3, "PORT_X": 0, "PORT_Y": 5, "WR_SLOTS": 8}},
    public=PUBLIC,
    mutations={
        "mesh": ("rtl/memory/mag_classify.v", "addr[37:36] != MESH", "addr[37:36] != MESH && !addr[39]"),
        "order": (
            "rtl/memory/mag_slots.v",
            "h_far                   ? `KT_M_REMOTE\n                          : addr_code",
            "h_len > 8'd7            ? `KT_M_LEN\n                          : addr_code",
        ),
        "keeps_first": ("rtl/memory/mag_regs.v", "(any && fault_kept[3:0] == 4'd0)", "any"),
        "clear_race": ("rtl/memory/mag_regs.v", "clear_drop ? 16'd0 : drops_q;", "drops_q;"),
        "word_error": (
            "rtl/memory/mag_read.v",
            "!bad_q && ring_data[256]",
            "!bad_q && ring_data[256] && w_out_q == 2'd0",
        ),
        "count_once": ("rtl/memory/mag_read.v", "valid_q && word_err && !seen_q", "valid_q && word_err"),
        "err_payload": ("rtl/memory/mag_read.v", "err ? 256'd0 : ring_data", "bad_q ? 256'd0 : ring_data"),
        "tag_limit": ("rtl/memory/mag_read.v", "entries_q > 9'd256", "entries_q > 9'd257"),
        "unit_data": (
            "rtl/memory/mag_intake.v",
            "kind == `KT_TYPE_CU_DATA && marked",
            "kind == `KT_TYPE_CU_DATA",
        ),
        "saturate": ("rtl/memory/mag_regs.v", "sum[16] ? 16'hFFFF : sum[15:0]", "sum[15:0]"),
    },
    mutation_tests={
        "mesh": ["every_code"],
        "order": ["precedence"],
        "keeps_first": ["first_fault_only"],
        "clear_race": ["counters_saturate"],
        "word_error": ["bus_error_on_one_word"],
        "count_once": ["bus_error_on_one_word"],
        "err_payload": ["bus_error_on_one_word"],
        "tag_limit": ["every_code"],
        "unit_data": ["dropped_flits"],
        "saturate": ["counters_saturate"],
    },
    wall_s=300,
)


def _bad_addresses(tb):
    """(code, address) for an access of one to eight words, each breaking one rule."""
    other = (tb.mesh + 1) & 3
    return [
        (1, tb.own(0x104)),
        (1, tb.own(0x11F)),
        (2, tb.own(1 << 38)),
        (3, other << 36 | 0x40),
        (3, 1 << 39 | other << 36),
        (4, 1 << 39 | tb.own(0x40)),
        (4, 1 << 39 | tb.own(0xF << 32)),
        (5, tb.own(tb.bytes)),
        (5, tb.own((1 << 36) - 32)),
    ]


def _write(tb, src, txn, addr, n, **kw):
    return write_flits(src, txn, addr, [tb.rng.getrandbits(256) for _ in range(n)], port=tb.port, **kw)


async def _one(tb, name, steps, code):
    await tb.clear()
    await tb.play(steps)
    checks.equal(f"{name}: model", [f[0] for f in tb.model.faults], [code])
    await tb.compare_events()
    for source in UNITS[:2]:  # the next program is right, whoever sends it
        addr = tb.own(0x2000)
        good = [Step(f) for f in _write(tb, source, 77, addr, 8)]
        await tb.play([*good, Step(read_request(source, 78, addr, 8, port=tb.port), acks=1)])
        checks.equal(f"{name}: faults of good requests", tb.model.faults, [])


@cocotb.test()
async def every_code(dut):
    """Each code a port can raise, alone: by plain read, stream, write; register, counter, clear."""
    tb = await MagTb.start(dut, lat_max=20)
    for txn, (code, addr) in enumerate(_bad_addresses(tb)):
        await _one(tb, "plain", [read_request(UNITS[0], txn, addr, 3, port=tb.port)], code)
        await _one(tb, "stream", [read_request(UNITS[1], txn, addr, port=tb.port, ew=2, count=3)], code)
        await _one(tb, "write", _write(tb, UNITS[2], txn, addr, 4), code)
    a = tb.own(0x400)
    await _one(tb, "length", _write(tb, UNITS[3], 1, a, 9), 6)
    await _one(tb, "tag", [read_request(UNITS[0], 255, a, port=tb.port, ew=1, count=2)], 7)
    await _one(tb, "tag", [read_request(UNITS[0], 2, a, port=tb.port, ew=4, count=255)], 7)
    await _one(tb, "frame", _write(tb, UNITS[0], 3, a, 2, lasts=[1, 1])[:2], 8)
    await _one(tb, "remote read", [read_request(UNITS[0], 4, a, 2, port=tb.port, rsvd=4)], 10)
    await _one(tb, "remote stream", [read_request(UNITS[0], 4, a, port=tb.port, ew=3, count=2, rsvd=7)], 10)
    await _one(tb, "remote write", _write(tb, UNITS[0], 5, a, 3, rsvd=4), 10)
    mixed = _write(tb, UNITS[0], 5, a, 3)
    mixed[2] |= 1 << 258  # a marked data flit spoils its write
    await _one(tb, "remote data", mixed, 10)
    await _one(tb, "orphan", _write(tb, UNITS[0], 6, a, 1)[1:], 11)
    await _one(tb, "unit data", [flit(dst=tb.port, src=UNITS[1], kind=CU_DATA, txn=0x21, rsvd=5, payload=1)], 10)
    tb.dram.configure(err_rd=1, err_wr=1, err_lo=0x400, err_hi=0x420)
    tb.model.read_errors = tb.model.write_errors = (0x400, 0x420)
    await _one(tb, "bus read", [read_request(UNITS[0], 7, tb.own(0x3C0), 4, port=tb.port)], 9)
    await _one(tb, "bus write", _write(tb, UNITS[0], 8, tb.own(0x3E0), 2), 9)


@cocotb.test()
async def precedence(dut):
    """Several rules broken at once: M_REMOTE, then the order of classify, then M_LEN and M_TAG."""
    tb = await MagTb.start(dut, lat_max=10)
    for _ in range(scale(60, 1000)):
        addr = tb.own(tb.rng.randrange(tb.bytes // 32) * 32)
        for bit in tb.rng.sample((0, 4, 20, 35, 36, 37, 38, 39, 32), tb.rng.randrange(4)):
            addr ^= 1 << bit
        rsvd = tb.rng.choice((0, 0, 0, 4))
        if tb.rng.randrange(2):
            steps = _write(tb, UNITS[0], 1, addr, tb.rng.choice((1, 8, 9, 20)), rsvd=rsvd)
        else:
            steps = [
                read_request(
                    UNITS[0],
                    tb.rng.choice((0, 250, 255)),
                    addr,
                    port=tb.port,
                    ew=tb.rng.randrange(5),
                    count=tb.rng.randrange(10),
                    rsvd=rsvd,
                )
            ]
        await tb.clear()
        await tb.play(steps, compare=False)
        tb.compare_flits()
        await tb.compare_events()
    await tb.compare_memory()


@cocotb.test()
async def first_fault_only(dut):
    """MEM_FAULT keeps the first fault until cleared; counts go on; a good request changes nothing."""
    tb = await MagTb.start(dut)
    await tb.play([read_request(UNITS[0], 1, tb.own(0x41), 1, port=tb.port)])
    first = await tb.register(FAULT)
    checks.equal("first", first, tb.own(0x41) << 24 | 1 << 16 | UNITS[0] << 8 | 1)
    await tb.play(_write(tb, UNITS[1], 2, tb.own(tb.bytes), 2) + _write(tb, UNITS[1], 3, tb.own(0), 2))
    checks.equal("kept", await tb.register(FAULT), first)
    checks.equal("counted", await tb.register(DROP), 2)
    await tb.register(FAULT, write=True)
    checks.equal("cleared", await tb.register(FAULT), 0)
    checks.equal("the other register is its own", await tb.register(DROP), 2)
    await tb.register(DROP, write=True)
    checks.equal("cleared", await tb.register(DROP), 0)
    await tb.play(_write(tb, UNITS[1], 4, tb.own(tb.bytes), 2))
    await tb.compare_events()


@cocotb.test()
async def error_stream_to_peers(dut):
    """A faulting STREAM with three peers: count x ew x 4 ERR flits with their tags."""
    tb = await MagTb.start(dut)
    dut.busy_pct.value = 30
    before = await tb.register(DRAMCNT)
    for ew, count in ((1, 1), (4, 6), (3, 255), (0, 2)):
        for code, addr in _bad_addresses(tb):
            await tb.play(
                [read_request(UNITS[0], 0, addr, port=tb.port, ew=ew, count=count, peers=UNITS[1:4])],
                limit=200_000,
            )
            checks.equal(f"code {code}", len(tb.captured), count * (ew or 4) * 4)
            checks.equal("ERR", {f.rsvd >> 2 for _, f in tb.captured}, {1}, n=len(tb.captured))
    tag = [read_request(UNITS[0], 250, tb.own(0), port=tb.port, ew=2, count=9, peers=UNITS[1:4])]
    await tb.play(tag)  # the tags wrap, but every flit comes
    checks.equal("nothing was read", await tb.register(DRAMCNT), before)


@cocotb.test()
async def bus_error_on_one_word(dut):
    """RRESP error on word 2 of a 4-word entry: only that word is ERR, at every destination."""
    tb = await MagTb.start(dut)
    for resp in (1, 2, 3):
        tb.dram.configure(err_rd=1, err_lo=0x2040, err_hi=0x2060, err_resp=resp)
        tb.model.read_errors = (0x2040, 0x2060)
        await tb.clear()
        await tb.play([read_request(UNITS[0], 9, tb.own(0x1F80), port=tb.port, ew=4, count=5, peers=UNITS[1:3])])
        bad = [(f.dst, f.txn, f.rsvd) for _, f in tb.captured if f.rsvd & 4]
        checks.equal("failed words", bad, [(u, 10, 6) for u in UNITS[:3]])
        await tb.compare_events()
    # Several failing requests between good ones: each counts once.
    await tb.clear()
    tb.model.read_errors = (0x2000, 0x2100)
    tb.dram.configure(err_lo=0x2000, err_hi=0x2100)
    await tb.play([read_request(UNITS[k % 4], k, tb.own(0x1E00 + 0x40 * k), 9, port=tb.port) for k in range(14)])
    await tb.compare_events()


@cocotb.test()
async def dropped_flits(dut):
    """Every type in traffic: what no engine takes is dropped and counted, memory keeps moving."""
    tb = await MagTb.start(dut)
    others = [k for k in range(16) if k not in (0, 1, 4)]
    control = [flit(dst=tb.port, src=UNITS[0], kind=k, txn=k, rsvd=r, payload=k) for k in others for r in (0, 4)]
    tb.rng.shuffle(control)
    reads = [read_request(UNITS[1], k, tb.own(64 * k), 5, port=tb.port) for k in range(20)]
    writes = [f for k in range(10) for f in _write(tb, UNITS[2], k, tb.own(0x8000 + 0x100 * k), 8)]
    await tb.clear()
    dut.busy_pct.value = 40
    await tb.play(interleave(tb.rng, [control, reads, writes]))
    await tb.compare_events()
    # Flits that a full mailbox and a hub lose are counted in the same register.
    await tb.clear()
    for name in ("ctrl_drop_in", "remote_drop_in"):
        await FallingEdge(dut.clk)
        getattr(dut, name).value = 1
        for _ in range(4):
            await FallingEdge(dut.clk)
        getattr(dut, name).value = 0
    got = await tb.register(DROP)
    checks.equal("mailbox and hub drops", (got >> 32, got & 0xFFFF), (4, 4))
    checks.equal("hub drop is M_REMOTE", await tb.register(FAULT), 10)


@cocotb.test()
async def counters_saturate(dut):
    """MEM_DROP fields stop at 65,535; a clear in the cycle of an event keeps the event."""
    tb = await MagTb.start(dut)
    await FallingEdge(dut.clk)
    dut.ctrl_drop_in.value = 1
    dut.remote_drop_in.value = 1
    await clocks.cycles(65_534)
    await FallingEdge(dut.clk)
    low = (await tb.register(DROP)) & 0xFFFF
    await clocks.cycles(10)
    got = await tb.register(DROP)
    checks.equal("saturated", got, 0xFFFF_0000_FFFF)
    checks.true("not before", low >= 0xFFFE)
    await tb.register(DROP, write=True)  # the drops go on meanwhile
    got = await tb.register(DROP)
    checks.equal("clear and event", got, 0x2_0000_0002)
    dut.ctrl_drop_in.value = 0
    dut.remote_drop_in.value = 0


@cocotb.test()
async def registers(dut):
    """MEM_CAPS, read-only registers, offsets MAG does not have, DRAM word counters."""
    tb = await MagTb.start(dut)
    caps = 1 << 56 | int(dut.WR_SLOTS.value) << 48 | 8 << 44 | 1 << 40 | int(dut.DRAM_LOG2.value) << 32
    checks.equal("present", int(dut.mreg_present.value), 1)
    for addr in range(0, 0x80, 8):
        await tb.register(addr, write=True)
        value = await tb.register(addr + tb.rng.randrange(8))
        checks.equal(f"offset {addr:#x} unmapped", tb.register_error, int(addr > DRAMCNT))
        checks.equal(f"offset {addr:#x} after a write", value, caps if addr == CAPS else 0)
    n = 5
    await tb.play(
        [
            *_write(tb, UNITS[0], 0, tb.own(4064), 8),
            Step(read_request(UNITS[0], 0, tb.own(0), n, port=tb.port), acks=1),
        ]
    )
    for _ in range(2):
        checks.equal("words", await tb.register(DRAMCNT), 8 << 32 | n)
        await tb.register(DRAMCNT, write=True)
    checks.equal("staging words", await tb.register(STGCNT), 0)


@cocotb.test()
async def reset_in_traffic(dut):
    """Reset clears queues, slots, counters and faults; memory keeps what was acknowledged."""
    tb = await MagTb.start(dut, ideal=1, lat_min=500)
    await tb.play(_write(tb, UNITS[0], 1, tb.own(0x100), 8) + _write(tb, UNITS[0], 2, tb.own(1), 1))
    tb.model.memory[:] = await tb.dram.read(0, tb.bytes)
    # Open writes, refused requests and queued reads are under way when reset comes.
    busy = [f for k, u in enumerate(UNITS) for f in _write(tb, u, k, tb.own(0x4000), 8)[: 2 + k]]
    reads = [read_request(UNITS[0], k, tb.own(0), 64, port=tb.port) for k in range(20)]
    (tb.dir / "stim.hex").write_text("".join(f"{f:080x}\n" for f in busy + reads))
    dut.n_play.value = len(busy + reads)
    dut.goal.value = 1 << 30
    dut.play.value = 1
    await clocks.cycles(300)
    dut.play.value = 0
    await clocks.reset(dut)
    await RisingEdge(dut.clk)
    await clocks.cycles(10)
    for addr in (FAULT, DROP, DRAMCNT):
        checks.equal(f"register {addr:#x}", await tb.register(addr), 0)
    good = [f for k, u in enumerate(UNITS) for f in _write(tb, u, k, tb.own(0x8000 + 0x100 * k), 8)]
    await tb.play(good + reads)
    await tb.compare_events()
