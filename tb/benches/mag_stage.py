# SPDX-License-Identifier: Apache-2.0
"""Staging store behind a mesh port (docs/spec/memory.md 1.2, 10)."""

import cocotb

from kohakubench import Bench, checks, scale
from kohakubench.mag_model import M_APER, M_MESH, M_NONE, M_RANGE, WORD, WR_ACK, read_request, write_flits
from kohakubench.mag_tb import CAPS, DRAMCNT, PUBLIC, SOURCES, STGCNT, UNITS, MagTb, Step, interleave

BENCH = Bench(
    name="mag_stage",
    top="tb_mag",
    sources=SOURCES,
    params={"STAGE": 1},
    slow_variants=("mesh2",),
    variants={
        "mesh2": {"MESH_ID": 2, "STAGE_ENTRIES": 256, "STAGE_PIPE": 0},
        "slots64": {"WR_SLOTS": 64, "STAGE_ENTRIES": 64},
    },
    public=PUBLIC,
    mutations={
        "stage_wraps": (
            "rtl/memory/mag_classify.v",
            "wire [36:0] top  = addr[39] ? STAGE_TOP : DRAM_TOP;",
            "wire [36:0] top  = addr[39] ? 37'h10_0000_0000 : DRAM_TOP;",
        ),
        "any_aperture": (
            "rtl/memory/mag_classify.v",
            "(STAGE == 0 || addr[35:32] != 4'd0)",
            "(STAGE == 0)",
        ),
        "read_from_dram": (
            "rtl/memory/mag_classify.v",
            "assign word = {addr[39],",
            "assign word = {1'b0,",
        ),
        "write_to_dram": ("rtl/memory/mag_write.v", "n_word = {n_addr[39],", "n_word = {1'b0,"),
        "row_shift": (
            "rtl/memory/mag_stage.v",
            "{op_word[WW-1:BW+2], op_word[1:0]};",
            "{op_word[WW-1:BW+2], op_word[0], op_word[0]};",
        ),
        "half_store": ("rtl/memory/mag.v", "$clog2(STAGE_ENTRIES) + 7;", "$clog2(STAGE_ENTRIES) + 6;"),
        "caps": ("rtl/memory/mag.v", "STAGE_ENTRIES * 128 : 0", "STAGE_ENTRIES * 64 : 0"),
        "counters_swapped": (
            "rtl/memory/mag_regs.v",
            "{stage_writes_q, stage_reads_q}",
            "{stage_reads_q, stage_writes_q}",
        ),
    },
    mutation_tests={
        "stage_wraps": ["edges"],
        "any_aperture": ["edges"],
        "read_from_dram": ["not_dram"],
        "write_to_dram": ["not_dram"],
        "row_shift": ["every_word"],
        "half_store": ["edges"],
        "caps": ["registers"],
        "counters_swapped": ["registers"],
    },
    wall_s=300,
)


def _fill(tb, first, last, data):
    """Writes of 8 words that cover the store from ``first`` to ``last``, four sources in turn."""
    streams = [[] for _ in range(4)]
    for k, at in enumerate(range(first, last, 8 * WORD)):
        words = [data(at + WORD * w) for w in range(8)]
        streams[k % 4] += write_flits(UNITS[k % 4], k & 255, tb.staged(at), words, port=tb.port)
    return interleave(tb.rng, streams)


@cocotb.test()
async def every_word(dut):
    """Bank and row sweep: every word of the store holds its own value."""
    tb = await MagTb.start(dut)
    step = 1024 * 7 * WORD  # fits the script
    for first in range(0, tb.stage_bytes, step):
        last = min(first + step, tb.stage_bytes)
        await tb.play(_fill(tb, first, last, lambda at: at // WORD * (2**224 + 2**112 + 1)), limit=400_000)
    await tb.compare_stage()
    checks.true("words differ", len(set(tb.raw)) == len(tb.raw))


@cocotb.test()
async def edges(dut):
    """First and last word; the end of the store, a burst over it, other apertures and meshes."""
    tb = await MagTb.start(dut)
    end = tb.stage_bytes
    await tb.play(_fill(tb, 0, min(end, 4096), lambda _: tb.rng.getrandbits(256)))
    await tb.play(_fill(tb, max(0, end - 4096), end, lambda _: tb.rng.getrandbits(256)))
    cases = [
        (0, 1, M_NONE),
        (end - WORD, 1, M_NONE),
        (end - 8 * WORD, 8, M_NONE),
        (end - 7 * WORD, 8, M_RANGE),
        (end, 1, M_RANGE),
        ((1 << 32) - WORD, 1, M_RANGE),
        ((1 << 32) - WORD, 2, M_RANGE),
        *((a << 32 | 64, 1, M_APER) for a in (1, 2, 8, 15)),
    ]
    steps = []
    for k, (at, n, _) in enumerate(cases):
        words = [tb.rng.getrandbits(256) for _ in range(n)]
        steps += write_flits(UNITS[0], k, tb.staged(at), words, port=tb.port)
        steps.append(read_request(UNITS[1], k, tb.staged(at), n, port=tb.port))
    for mesh in range(4):
        addr = 1 << 39 | mesh << 36 | 32
        steps.append(read_request(UNITS[2], mesh, addr, 1, port=tb.port))
    # Reads must not meet the writes that change what they see: writes first, then reads.
    await tb.play([s for s in steps if s >> 268 & 15 != 0])
    await tb.play([s for s in steps if s >> 268 & 15 == 0])
    expected = [code for _, _, code in cases if code] + [M_MESH] * 3
    checks.equal("codes", sorted(c for c, *_ in tb.model.faults), sorted(expected), n=len(expected))
    count = min(255, end // (4 * WORD))
    run = end - 4 * count * WORD
    await tb.play([read_request(UNITS[1], 0, tb.staged(run), port=tb.port, ew=4, count=count)])
    await tb.play([read_request(UNITS[1], 0, tb.staged(run + WORD), port=tb.port, ew=4, count=count)])
    checks.equal("run over the top", [c for c, *_ in tb.model.faults], [M_RANGE])
    await tb.compare_stage()


@cocotb.test()
async def not_dram(dut):
    """Different bytes at the aliasing DRAM addresses: neither memory ever sees the other's accesses."""
    tb = await MagTb.start(dut)
    top = min(tb.stage_bytes, tb.bytes)
    before = await tb.register(DRAMCNT)
    await tb.play(_fill(tb, 0, min(top, 8192), lambda _: tb.rng.getrandbits(256)))
    await tb.play(
        [
            read_request(UNITS[k], 9 * k, tb.staged(2048 * k), port=tb.port, ew=1 + k, count=16, peers=UNITS[4:6])
            for k in range(4)
        ]
    )
    checks.equal("MEM_DRAMCNT", await tb.register(DRAMCNT), before)
    checks.equal("bus requests", len(tb.bus), 0)
    await tb.compare_stage()


@cocotb.test()
async def alternating(dut):
    """Each source alternates DRAM and staging, writes unacknowledged, DRAM slow: acks in order, bytes exact."""
    tb = await MagTb.start(dut, lat_min=100, lat_max=400)
    for _ in range(scale(2, 12)):
        streams = []
        for source in range(3):
            stream = []
            for k in range(40):
                n = tb.rng.choice((1, 2, 8))
                at = (source * 16 + k % 8) * 8 * WORD  # places are written again
                addr = tb.staged(at) if k % 2 else tb.own(at)
                words = [tb.rng.getrandbits(256) for _ in range(n)]
                stream += write_flits(UNITS[source], k, addr, words, port=tb.port)
            streams.append(stream)
        await tb.play(streams[0] if _ % 2 else interleave(tb.rng, streams), limit=400_000)
        await tb.compare_stage()


@cocotb.test()
async def handover(dut):
    """A tile written by one unit is read by another as soon as its acknowledgement left."""
    tb = await MagTb.start(dut)
    for k in range(scale(20, 200)):
        at = tb.staged(tb.rng.randrange(tb.stage_bytes // WORD - 8) * WORD)
        words = [tb.rng.getrandbits(256) for _ in range(8)]
        steps = [Step(f) for f in write_flits(UNITS[0], k & 255, at, words, port=tb.port)]
        take = read_request(UNITS[1], 7, at, port=tb.port, ew=4, count=2, peers=(UNITS[2],))
        await tb.play([*steps, Step(take, acks=1)])
        acked = next(c for c, f in tb.captured if f.kind == WR_ACK)
        checks.true("read after the ack", all(c > acked for c, f in tb.captured if f.kind != WR_ACK))


@cocotb.test()
async def registers(dut):
    """MEM_CAPS names the size, MEM_STGCNT counts every staging word, refused accesses count nothing."""
    tb = await MagTb.start(dut)
    checks.equal("MEM_CAPS.stage_bytes", await tb.register(CAPS) & 0xFFFFFFFF, tb.stage_bytes)
    before = await tb.register(STGCNT)
    words = [tb.rng.getrandbits(256) for _ in range(8)]
    steps = write_flits(UNITS[0], 0, tb.staged(0), words, port=tb.port)
    steps += write_flits(UNITS[0], 1, tb.staged(64), words[:3], port=tb.port)
    steps += write_flits(UNITS[0], 2, tb.staged(tb.stage_bytes), words, port=tb.port)
    await tb.play(steps)
    await tb.play([read_request(UNITS[1], 0, tb.staged(32), 5, port=tb.port)])
    await tb.play([read_request(UNITS[1], 0, tb.staged(tb.stage_bytes - 32), 5, port=tb.port)])
    after = await tb.register(STGCNT)
    checks.equal("words written, read", (after - before) >> 32, tb.model.stage_written)
    checks.equal("words read", (after - before) & 0xFFFFFFFF, tb.model.stage_read)
    checks.equal("by hand", (tb.model.stage_written, tb.model.stage_read), (11, 5))


@cocotb.test()
async def random_mix(dut):
    """Reads and writes of both memories by all sources, random DRAM, random back-pressure."""
    tb = await MagTb.start(dut)
    half = {0: tb.bytes // 2, 1: tb.stage_bytes // 2}
    for _ in range(scale(3, 60)):
        dut.busy_pct.value = tb.rng.choice((0, 30, 70))
        streams = []
        for source in UNITS[:4]:
            stream = []
            for _ in range(16):
                tier = tb.rng.randrange(2)
                place = tb.staged if tier else tb.own
                if tb.rng.randrange(2):
                    n = tb.rng.choice((1, 4, 30))
                    at = tb.rng.randrange(half[tier] // WORD - n) * WORD
                    stream.append(read_request(source, tb.rng.randrange(256), place(at), n, port=tb.port))
                    continue
                n, part = tb.rng.randrange(1, 9), half[tier] // 4
                at = half[tier] + UNITS.index(source) * part + tb.rng.randrange(part // WORD - n) * WORD
                words = [tb.rng.getrandbits(256) for _ in range(n)]
                stream += write_flits(source, tb.rng.randrange(256), place(at), words, port=tb.port)
            streams.append(stream)
        await tb.play(interleave(tb.rng, streams, (0, 0, 3)), limit=400_000)
    await tb.compare_stage()
