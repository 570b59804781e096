# SPDX-License-Identifier: Apache-2.0
"""Memory agent, reads (docs/spec/memory.md 4, 6, 8)."""

import cocotb

from kohakubench import Bench, checks, scale
from kohakubench.mag_model import WORD, read_request, write_flits
from kohakubench.mag_tb import DRAMCNT, PUBLIC, SOURCES, UNITS, MagTb, Step, interleave

BENCH = Bench(
    name="mag",
    top="tb_mag",
    sources=SOURCES,
    slow_variants=("rd16", "single", "mesh2"),
    variants={
        "rd1": {"RD_OUT": 1},
        "rd16": {"RD_OUT": 16},
        "single": {"SINGLE": 1},
        "mesh2": {"MESH_ID": 2, "PORT_X": 3, "PORT_Y": 4},
    },
    public=PUBLIC,
    mutations={
        "page_split": ("rtl/memory/mag_read.v", "8'd128 - {1'b0, word_q[6:0]}", "8'd128"),
        "plain_last": ("rtl/memory/mag_read.v", "job_strm ? last_w : last_e", "last_w"),
        "stream_tag": ("rtl/memory/mag_read.v", "job_txn + entry_q[7:0] : job_txn", "job_txn : job_txn"),
        "entry_words": ("rtl/memory/mag_read.v", "raw_ew == 8'd0 || raw_ew > 8'd4", "raw_ew > 8'd4"),
        "peer_order": (
            "rtl/memory/mag_read.v",
            "dest_q == 2'd1 ? job_peers[7:0]",
            "dest_q == 2'd3 ? job_peers[7:0]",
        ),
        "range_edge": ("rtl/memory/mag_classify.v", "last > top", "last >= top"),
        "ring_leak": (
            "rtl/memory/mag_read.v",
            "assign release_entry = entry_done && !job_bad;",
            "assign release_entry = entry_done;",
        ),
        "one_in_flight": (
            "rtl/memory/mag_path.v",
            "localparam [4:0] RD_MAX = RD_OUT[4:0];",
            "localparam [4:0] RD_MAX = 5'd2;",
        ),
    },
    mutation_tests={
        "page_split": ["boundaries"],
        "plain_last": ["plain"],
        "stream_tag": ["multicast"],
        "entry_words": ["stream_shapes"],
        "peer_order": ["multicast"],
        "range_edge": ["boundaries"],
        "ring_leak": ["boundaries"],
        "one_in_flight": ["throughput"],
    },
    wall_s=300,
)


def _reads(tb, n, *, noise=False):
    """Random legal requests of up to four sources."""
    rng = tb.rng
    out = []
    for _ in range(n):
        src, extra = rng.choice(UNITS[:4]), rng.getrandbits(40) if noise else 0
        if rng.randrange(2):
            words = rng.choice((1, 1, 2, 3, 8, 17, 40))
            addr = rng.randrange(tb.bytes // WORD - words) * WORD
            out.append(read_request(src, rng.randrange(256), tb.own(addr), words, port=tb.port, noise=extra))
            continue
        ew, count = rng.choice((0, 1, 2, 3, 4, 9)), rng.choice((0, 1, 2, 3, 7, 12))
        words = (ew if 1 <= ew <= 4 else 4) * (count or 1)
        addr = rng.randrange(tb.bytes // WORD - words) * WORD
        txn = rng.randrange(256 - (count or 1) + 1)
        peers = tuple(rng.choice(UNITS) for _ in range(rng.randrange(4)))
        out.append(read_request(src, txn, tb.own(addr), port=tb.port, ew=ew, count=count, peers=peers, noise=extra))
    return out


def _words_of(before, after):
    return (after - before) & 0xFFFFFFFF


@cocotb.test()
async def plain(dut):
    """1, 2, 8 and 256 words: ascending, txn echoed, rsvd 0, last on the final one only."""
    tb = await MagTb.start(dut)
    shapes = [(1, 0), (2, 0x40), (8, 0x1000), (256, 0x2000), (3, tb.bytes - 96), (256, 0xE20)]
    await tb.play([read_request(UNITS[k % 4], 0x80 + k, tb.own(a), n, port=tb.port) for k, (n, a) in enumerate(shapes)])
    checks.equal("rsvd", {f.rsvd for _, f in tb.captured}, {0}, n=len(tb.captured))
    # Peers, counts and entry sizes mean nothing in a plain read.
    await tb.play(
        [
            read_request(UNITS[0], k, tb.own(0x400), n, port=tb.port, noise=2**41 - 1 - k)
            for k, n in enumerate((1, 5, 64))
        ]
    )


@cocotb.test()
async def stream_shapes(dut):
    """Every entry size (raw 0, 5, 255 act as 4) with counts 0, 1, 2, 255; first and last tags."""
    tb = await MagTb.start(dut, lat_max=20)
    steps = []
    for ew in (1, 2, 3, 4, 0, 5, 255):
        for count in (0, 1, 2, 255):
            eff = count or 1
            for txn in (0, 256 - eff):
                room = tb.bytes - eff * 4 * WORD
                addr = tb.own(tb.rng.randrange(room // WORD) * WORD)
                steps.append(read_request(tb.rng.choice(UNITS), txn, addr, port=tb.port, ew=ew, count=count))
    await tb.play(steps)
    checks.equal("no fault", tb.model.faults, [])


@cocotb.test()
async def multicast(dut):
    """0 to 3 peers: exact flit order, identical copies, one memory read per word."""
    tb = await MagTb.start(dut)
    dut.busy_pct.value = 30
    for n_peer in range(4):
        before = await tb.register(DRAMCNT)
        words = 0
        steps = []
        for ew in (1, 2, 3, 4):
            for count in (1, 2, 9):
                peers = tuple(tb.rng.sample(UNITS[1:], n_peer))
                addr = tb.own(tb.rng.randrange(tb.bytes // WORD - 64) * WORD)
                steps.append(read_request(UNITS[0], ew, addr, port=tb.port, ew=ew, count=count, peers=peers))
                words += ew * count
        await tb.play(steps)
        after = await tb.register(DRAMCNT)
        checks.equal(f"words read with {n_peer} peers", _words_of(before, after), words)
        checks.equal("flits", len(tb.captured), words * (1 + n_peer))
    # The requester may list itself, and a peer twice.
    await tb.play(
        [read_request(UNITS[0], 3, tb.own(0x80), port=tb.port, ew=3, count=4, peers=(UNITS[0], UNITS[2], UNITS[2]))]
    )


@cocotb.test()
async def ignored_bits(dut):
    """flags[4], flags[5] and every other reserved bit change nothing."""
    tb = await MagTb.start(dut)
    base = [
        read_request(UNITS[0], 7, tb.own(0x1F80), 9, port=tb.port),
        read_request(UNITS[1], 9, tb.own(0x2FC0), port=tb.port, ew=3, count=5, peers=(UNITS[2],)),
    ]
    await tb.play(base)
    quiet = list(tb.raw)
    payload = [(b, 0) for b in (200, 201, 202, 203, 204, 205, 207)] + [(b, 0) for b in range(0, 158, 13)]
    header = [(256, 1), (257, 1), (259, 1)]  # rsvd[1:0] and last are not read either
    for bit, _ in payload + header:
        await tb.play([f ^ (1 << bit) for f in base])
        checks.equal(f"bit {bit}", tb.raw, quiet, n=len(quiet))
    ignored = [*(b for b, _ in header), *range(158), *range(200, 206), 207]
    masks = [sum(1 << b for b in ignored)] + [sum(tb.rng.randrange(2) << b for b in ignored) for _ in range(8)]
    for mask in masks:
        await tb.play([f ^ mask for f in base])
        checks.equal(f"bits {mask:#x}", tb.raw, quiet, n=len(quiet))


@cocotb.test()
async def boundaries(dut):
    """Runs ending at and one word past DRAM_BYTES; runs over 1, 2 and 3 page boundaries."""
    tb = await MagTb.start(dut)
    end = tb.bytes
    await tb.play(
        [
            read_request(UNITS[0], 0, tb.own(end - 32), 1, port=tb.port),
            read_request(UNITS[0], 1, tb.own(end - 32), 2, port=tb.port),
            read_request(UNITS[1], 2, tb.own(end - 256 * 32), 256, port=tb.port),
            read_request(UNITS[1], 3, tb.own(end - 255 * 32), 256, port=tb.port),
            read_request(UNITS[2], 0, tb.own(end - 1020 * 32), port=tb.port, ew=4, count=255),
            read_request(UNITS[2], 1, tb.own(end - 1019 * 32), port=tb.port, ew=4, count=255),
            read_request(UNITS[3], 4, tb.own(end), 1, port=tb.port),
            read_request(UNITS[3], 5, tb.own((1 << 36) - 32), 2, port=tb.port),
        ]
    )
    checks.equal("faults", [(c, t) for c, _, t, _ in tb.model.faults], [(5, 1), (5, 3), (5, 1), (5, 4), (5, 5)], n=5)
    for pages in (1, 2, 3):
        for back in (32, 96, 480, 512):
            addr = 0x3000 - back
            n = (back + 4096 * (pages - 1) + 64) // 32
            await tb.play([read_request(UNITS[0], 0, tb.own(addr), port=tb.port, ew=1, count=min(n, 255))])
            _check_bursts(tb, addr, min(n, 255))


def _check_bursts(tb, addr, n):
    """The bus saw the run once, in order, in pieces of at most 16 words within a page."""
    at = addr
    for write, _, length, a in tb.bus:
        checks.equal("burst start", (write, a), (0, at))
        checks.true("burst", length < 16 and (a % 4096) // 32 + length < 128, f"{length + 1} words at {a:#x}")
        at += (length + 1) * 32
    checks.equal("run end", at, addr + n * 32)
    pages = [min(p + 4096, addr + n * 32) - max(p, addr) for p in range(addr & ~4095, addr + n * 32, 4096)]
    whole = sum(-(-size // 512) for size in pages)
    checks.true("merged", len(tb.bus) <= whole, f"{len(tb.bus)} bursts, {whole} would do")


@cocotb.test()
async def queued(dut):
    """64 and more queued reads of 4 sources, random output back-pressure: order and content exact."""
    tb = await MagTb.start(dut)
    for busy in (0, 40, 85):
        dut.busy_pct.value = busy
        for _ in range(scale(1, 30)):
            await tb.play(_reads(tb, 64 if busy < 85 else 96), limit=400_000)
    checks.true("requests really queued", int(dut.n_held.value) > 0, "the intake never filled")


@cocotb.test()
async def random_reads(dut):
    """Random requests with noise in every ignored field and gaps between the flits."""
    tb = await MagTb.start(dut)
    for _ in range(scale(2, 40)):
        dut.busy_pct.value = tb.rng.choice((0, 20, 60))
        streams = [_reads(tb, 12, noise=True) for _ in range(4)]
        await tb.play(interleave(tb.rng, streams, (0, 0, 1, 30)), limit=400_000)


@cocotb.test()
async def read_after_ack(dut):
    """A read that enters after the acknowledgement left returns the acknowledged data."""
    tb = await MagTb.start(dut, lat_min=1, lat_max=300)
    for _ in range(scale(6, 60)):
        addr = tb.own(tb.rng.randrange(tb.bytes // WORD - 8) * WORD)
        n = tb.rng.randrange(1, 9)
        steps = [
            Step(f) for f in write_flits(UNITS[0], 1, addr, [tb.rng.getrandbits(256) for _ in range(n)], port=tb.port)
        ]
        await tb.play([*steps, Step(read_request(UNITS[1], 2, addr, n, port=tb.port), acks=1)])


@cocotb.test()
async def throughput(dut):
    """One word per cycle from an ideal memory of latency 40, and RD_OUT is never exceeded."""
    tb = await MagTb.start(dut, ideal=1, lat_min=40)
    runs = {
        "stream": [read_request(UNITS[0], 0, tb.own(0x20), port=tb.port, ew=4, count=255)],
        "plain": [read_request(UNITS[k], 0, tb.own(0x2000 * k), 256, port=tb.port) for k in range(4)],
        "multicast": [read_request(UNITS[0], 0, tb.own(0), port=tb.port, ew=4, count=60, peers=UNITS[1:4])],
    }
    for name, steps in runs.items():
        await tb.play(steps)
        cycles = tb.captured[-1][0] - tb.captured[0][0] + 1
        dut._log.info(
            f"{name}: {len(tb.captured)} flits in {cycles} cycles, first after "
            f"{tb.captured[0][0] - int(dut.first_in.value)}"
        )
        if int(dut.RD_OUT.value) >= 4 and not int(dut.SINGLE.value):
            checks.true(
                f"{name} rate",
                cycles <= len(tb.captured) + 4,
                f"{cycles} cycles for {len(tb.captured)} flits",
            )
    limit = 1 if int(dut.SINGLE.value) else int(dut.RD_OUT.value)
    checks.true("outstanding", tb.dram.count("rd_out_max") <= limit)
