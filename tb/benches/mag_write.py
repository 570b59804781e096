# SPDX-License-Identifier: Apache-2.0
"""Memory agent, writes (docs/spec/memory.md 5, 6)."""

import itertools

import cocotb

from kohakubench import Bench, checks, scale
from kohakubench.mag_model import M_BUS, M_FRAME, WORD, read_request, write_flits
from kohakubench.mag_tb import DRAMCNT, PUBLIC, SOURCES, UNITS, MagTb, Step, interleave

BENCH = Bench(
    name="mag_write",
    top="tb_mag",
    sources=SOURCES,
    slow_variants=("single",),
    variants={"slots32": {"WR_SLOTS": 32}, "single": {"SINGLE": 1}},
    public=PUBLIC,
    mutations={
        "source_match": (
            "rtl/memory/mag_slots.v",
            "open_q[s] && src_q[8*s +: 8] == h_src",
            "open_q[s] && src_q[8*s +: 4] == h_src[3:0]",
        ),
        "length_limit": ("rtl/memory/mag_slots.v", "h_len > 8'd7 ", "h_len > 8'd8 "),
        "frame_late": (
            "rtl/memory/mag_slots.v",
            "wire       misfit  = h_last != full;",
            "wire       misfit  = h_last && !full;",
        ),
        "ack_order": (
            "rtl/memory/mag_write.v",
            "wire          shortcut  = next_q && refused && !older",
            "wire          shortcut  = next_q && refused",
        ),
        "split_error": ("rtl/memory/mag_write.v", "got_err || (half_q && half_err_q)", "got_err"),
        "page_split": ("rtl/memory/mag_write.v", "to_page[2:0] <= n_len", "to_page[2:0] < n_len"),
        "cut_keeps": (
            "rtl/memory/mag_slots.v",
            "assign in_ready   = alloc || data",
            "assign in_ready   = alloc || cut || data",
        ),
        "early_free": (
            "rtl/memory/mag_write.v",
            "assign free_en   = a_put;",
            "assign free_en   = start || shortcut;",
        ),
        "margin": (
            "rtl/memory/mag_intake.v",
            "wr_level >= LIMIT[LW-1:0];",
            "wr_level > LIMIT[LW-1:0] + 7'd6;",
        ),
        "ack_turn": (
            "rtl/memory/mag_port.v",
            "ack_valid && !(resp_valid && was_ack_q)",
            "ack_valid && !resp_valid",
        ),
    },
    mutation_tests={
        "source_match": ["interleaved"],
        "length_limit": ["too_long"],
        "frame_late": ["framing"],
        "ack_order": ["ack_order"],
        "split_error": ["bus_errors"],
        "page_split": ["lengths"],
        "cut_keeps": ["framing"],
        "early_free": ["slots_full"],
        "margin": ["slots_full"],
        "ack_turn": ["random_traffic"],
    },
    wall_s=300,
)


def _words(tb, n):
    return [tb.rng.getrandbits(256) for _ in range(n)]


def _write(tb, src, txn, addr, n, **kw):
    return write_flits(src, txn, tb.own(addr), _words(tb, n), port=tb.port, **kw)


def _random_writes(tb, src, n, lo, hi):
    """Flits of ``n`` legal writes of ``src`` inside [lo, hi)."""
    out = []
    for k in range(n):
        length = tb.rng.randrange(1, 9)
        addr = lo + tb.rng.randrange((hi - lo) // WORD - length) * WORD
        out += _write(tb, src, k & 255, addr, length)
    return out


@cocotb.test()
async def lengths(dut):
    """len 0 to 7 at every alignment to the page end; neighbours unchanged, words counted."""
    tb = await MagTb.start(dut)
    before = await tb.register(DRAMCNT)
    total = 0
    for n in range(1, 9):
        flits = []
        for k, off in enumerate(range(-8, 1)):
            flits += _write(tb, UNITS[k % 6], 16 * n + k, 0x1000 * (1 + k) + off * WORD, n)
            total += n
        await tb.play(flits)
    after = await tb.register(DRAMCNT)
    checks.equal("words written", (after >> 32) - (before >> 32), total)


@cocotb.test()
async def too_long(dut):
    """len 8 and 255: all data swallowed, one error ack, memory untouched; the next write works."""
    tb = await MagTb.start(dut)
    for n in (9, 10, 256):
        flits = _write(tb, UNITS[0], 1, 0x100, n) + _write(tb, UNITS[0], 2, 0x800, 8)
        await tb.play(interleave(tb.rng, [flits, _random_writes(tb, UNITS[1], 4, 0x10000, 0x12000)]))
        checks.equal("orphans", tb.model.orphans, 0)
    await tb.play(_write(tb, UNITS[0], 3, tb.bytes - 7 * WORD, 8))
    checks.equal("past the end", [f[0] for f in tb.model.faults], [5])


@cocotb.test()
async def interleaved(dut):
    """Two sources flit by flit, 24+ writes each, B delayed 12 to 100 cycles: every word right."""
    tb = await MagTb.start(dut, lat_min=12, lat_max=100)
    for _ in range(scale(2, 30)):
        a = _random_writes(tb, UNITS[0], 28, 0, 0x8000)
        b = _random_writes(tb, UNITS[1], 28, 0x8000, 0x10000)
        # The coordinates share a nibble with each other and with a third source.
        c = _random_writes(tb, UNITS[2], 10, 0x10000, 0x18000)
        alternating = [f for pair in itertools.zip_longest(a, b) for f in pair if f is not None]
        await tb.play(alternating)
        await tb.play(interleave(tb.rng, [a, b, c], (0, 0, 2, 9)))


@cocotb.test()
async def issue_order(dut):
    """Saturating writes with reads between: slots issue exactly in the order they became ready."""
    tb = await MagTb.start(dut)
    dut.busy_pct.value = 20
    for _ in range(scale(2, 20)):
        streams = [_random_writes(tb, src, 24, 0x4000 * k, 0x4000 * (k + 1)) for k, src in enumerate(UNITS[:4])]
        reads = [read_request(UNITS[4], k, tb.own(0x20000 + 64 * k), 24, port=tb.port) for k in range(24)]
        await tb.play(interleave(tb.rng, [*streams, reads]), limit=200_000)
        starts = [a for write, _, _, a in tb.bus if write]
        it = iter(starts)
        checks.true("issue order", all(a in it for a in tb.model.issued), "a ready write was overtaken")
        words = sum(length + 1 for write, _, length, _ in tb.bus if write)
        checks.equal("no other write", words, sum(f >> 268 & 15 == 4 for s in streams for f in s))


@cocotb.test()
async def same_address(dut):
    """Two writes of one source to one address, random delays: the second value remains."""
    tb = await MagTb.start(dut, lat_min=1, lat_max=200)
    for _ in range(scale(4, 40)):
        flits = []
        for k in range(12):
            addr, n = tb.rng.randrange(8) * 0x200, tb.rng.randrange(1, 9)
            flits += _write(tb, UNITS[0], 2 * k, addr, n) + _write(tb, UNITS[0], 2 * k + 1, addr, n)
        await tb.play(interleave(tb.rng, [flits], (0, 0, 3)))


def _framing(tb, src):
    """One flit list per row of the framing table, each followed by a good write."""

    def lasts(*ones, n):
        return [int(k in ones) for k in range(n)]

    a = 0x2000 + 0x400 * (src & 15)
    good = lambda: _write(tb, src, 0xEE, a + 0x200, 3)  # noqa: E731
    yield "early last", _write(tb, src, 1, a, 3, length=4, lasts=lasts(2, n=3)) + good()
    yield "early last, more data", _write(tb, src, 2, a, 5, length=4, lasts=lasts(2, n=5)) + good()
    yield "no last", _write(tb, src, 3, a, 4, lasts=lasts(n=4)) + good()
    yield "no last, more data", _write(tb, src, 4, a, 6, length=3, lasts=lasts(5, n=6)) + good()
    yield "new descriptor at once", _write(tb, src, 5, a, 0, length=3) + good()
    yield "new descriptor inside", _write(tb, src, 6, a, 2, length=3, lasts=[0, 0]) + good()
    yield "orphan", _write(tb, src, 7, a, 2)[1:] + good()
    yield "refused and cut", _write(tb, src, 8, a | 4, 2, length=3, lasts=[0, 0]) + good()
    yield "refused, early last", _write(tb, src, 9, tb.bytes, 2, length=3, lasts=[0, 1]) + good()
    yield "long and cut", _write(tb, src, 10, a, 20, length=200, lasts=[0] * 20) + good()


@cocotb.test()
async def framing(dut):
    """Each row of the framing table: one error ack, nothing written, the next write works."""
    tb = await MagTb.start(dut)
    for name, flits in _framing(tb, UNITS[0]):
        await tb.clear()
        await tb.play(flits)
        dut._log.info(f"{name}: {tb.model.faults}")
        checks.true(name, any(f[0] in (1, 5, 6, M_FRAME, 11) for f in tb.model.faults))
        await tb.compare_events()
    # All rows of several sources interleaved.
    for _ in range(scale(2, 20)):
        streams = []
        for src in UNITS[:4]:
            rows = [f for _, f in _framing(tb, src)]
            tb.rng.shuffle(rows)
            streams.append([f for r in rows for f in r])
        await tb.clear()
        await tb.play(interleave(tb.rng, streams))
        await tb.compare_events()


@cocotb.test()
async def ack_order(dut):
    """Refused, badly framed and ordinary writes in every order, responses 1,000 cycles late."""
    tb = await MagTb.start(dut, ideal=1, lat_min=1000)
    a, b, c = UNITS[:3]
    kinds = {
        "ordinary": lambda t: _write(tb, a, t, 0x400 * t, 4),
        "refused": lambda t: _write(tb, a, t, tb.bytes, 4),
        "framed": lambda t: _write(tb, a, t, 0x400 * t, 2, length=3, lasts=[0, 1]),
    }
    for order in itertools.permutations(kinds):
        mine = [f for t, kind in enumerate(order) for f in kinds[kind](t)]
        await tb.play(mine + _write(tb, b, 9, tb.bytes, 1) + _write(tb, c, 10, 0x9000, 1))
        when = {(f.dst, f.txn): cycle for cycle, f in tb.captured}
        fed = int(dut.last_in.value)
        checks.true("refused write of another source", when[b, 9] - fed < 40, f"{when[b, 9] - fed} cycles")
        took = when[c, 10] - fed
        if not int(dut.SINGLE.value):  # a memory that takes one write at a time delays everybody
            checks.true("ordinary write of another source", took < 1060, f"{took} cycles")
        first_ordinary = order.index("ordinary")
        for t in range(3):
            late = when[a, t] - fed > 900
            checks.equal(f"{order}: ack {t} waits for the memory", late, t >= first_ordinary)


@cocotb.test()
async def bus_errors(dut):
    """A page-crossing write with an error on the first, the second and both halves; acks carry M_BUS."""
    tb = await MagTb.start(dut, lat_max=30)
    for resp in (2, 3):
        for lo, hi in ((0x1FC0, 0x2000), (0x2000, 0x2020), (0x1FC0, 0x2040), (0, 0)):
            tb.dram.configure(err_wr=1, err_lo=lo, err_hi=hi, err_resp=resp)
            tb.model.write_errors = (lo, hi)
            await tb.clear()
            writes = [_write(tb, UNITS[k % 3], k, 0x1F00 + 64 * k, 5) for k in range(6)]
            await tb.play([f for w in writes for f in w])
            checks.equal("M_BUS", any(f[0] == M_BUS for f in tb.model.faults), hi > 0)
            await tb.compare_events()


@cocotb.test()
async def slots_full(dut):
    """All slots full behind a slow memory, the intake at its margin, then drained: nothing lost."""
    tb = await MagTb.start(dut, ideal=1, lat_min=300 if int(dut.SINGLE.value) else 3000)
    streams = [_random_writes(tb, src, 12, 0x4000 * k, 0x4000 * (k + 1)) for k, src in enumerate(UNITS)]
    reads = [read_request(UNITS[0], k, tb.own(0x20000 + 32 * k), 2, port=tb.port) for k in range(70)]
    await tb.play(interleave(tb.rng, streams) + [Step(f) for f in reads], limit=200_000)
    checks.true("the link was held", int(dut.n_held.value) > 500)
    dut.busy_pct.value = 100
    await cocotb.triggers.Timer(1, unit="us")
    dut.busy_pct.value = 90
    await tb.play(interleave(tb.rng, [*streams, reads]), limit=400_000)


@cocotb.test()
async def throughput(dut):
    """8 words per 9 flits from one source and from four, ideal memory of latency 40."""
    tb = await MagTb.start(dut, ideal=1, lat_min=40)
    one = [f for k in range(64) for f in _write(tb, UNITS[0], k, 0x100 * k, 8)]
    four = [f for k in range(64) for f in _write(tb, UNITS[k % 4], k, 0x100 * k, 8)]
    for flits in (one, four):
        await tb.play(flits)
        took = int(dut.last_in.value) - int(dut.first_in.value) + 1
        dut._log.info(f"{len(flits)} flits taken in {took} cycles")
        if not int(dut.SINGLE.value):
            checks.equal("every cycle a flit", took, len(flits))


@cocotb.test()
async def random_traffic(dut):
    """Reads and writes of six sources, good and bad, random back-pressure and memory."""
    tb = await MagTb.start(dut)
    for _ in range(scale(4, 100)):
        dut.busy_pct.value = tb.rng.choice((0, 30, 70))
        await tb.clear()
        streams = []
        for k, src in enumerate(UNITS):
            flits = _random_writes(tb, src, 8, 0x4000 * k, 0x4000 * (k + 1))
            rows = list(_framing(tb, src))
            flits += tb.rng.choice(rows)[1] + _random_writes(tb, src, 3, 0x4000 * k, 0x4000 * (k + 1))
            streams.append(flits)
        # Reads stay in a region that nobody writes.
        reads = [
            read_request(
                tb.rng.choice(UNITS),
                k,
                tb.own(0x20000 + 32 * tb.rng.randrange(2000)),
                port=tb.port,
                ew=tb.rng.randrange(5),
                count=tb.rng.randrange(9),
                peers=UNITS[: tb.rng.randrange(4)],
            )
            for k in range(24)
        ]
        await tb.play(interleave(tb.rng, [*streams, reads], (0, 0, 0, 5)), limit=400_000)
        await tb.compare_events()
