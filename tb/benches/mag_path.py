# SPDX-License-Identifier: Apache-2.0
"""Converged path with three requesters, DRAM and staging store (docs/spec/memory.md 8, 10)."""

import itertools
import os
import random
from pathlib import Path

import cocotb
from cocotb.triggers import RisingEdge, Timer, with_timeout

from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench.dram import DRAM_PUBLIC, Dram

WORDS = 8192
STAGE = 1 << 31  # bit of a word index that names the staging store
BENCH = Bench(
    name="mag_path",
    top="tb_mag_path",
    sources=[
        "rtl/common/ram_sdp.v",
        "rtl/common/fifo_sync.v",
        "rtl/common/skid2.v",
        "rtl/memory/mag_stage.v",
        "rtl/memory/mag_path.v",
        "rtl/memory/mag_path_sva.sv",
        "tb/hdl/axi_dram_model.v",
        "tb/hdl/path_player.v",
        "tb/hdl/tb_mag_path.v",
    ],
    params={"WORDS": WORDS},
    slow_variants=("plain", "banks2"),
    variants={
        "rd1": {"RD_OUT": 1, "STAGE_PIPE": 0},
        "plain": {"STAGE": 0},
        "banks2": {"STAGE_BANKS": 2, "STAGE_ENTRIES": 512, "RD_OUT": 16},
    },
    public=DRAM_PUBLIC,
    mutations={
        "w_owner": ("rtl/memory/mag_path.v", "if (own == wm[2:0]) begin", "if (wr_last_q == wm[2:0]) begin"),
        "r_owner": (
            "rtl/memory/mag_path.v",
            "m_axi_dram_rid == ID) ||",
            "m_axi_dram_rid[0] == ID[0]) ||",
        ),
        "unfair": ("rtl/memory/mag_path.v", "if (|rd_go) rd_last_q <= rd_index;", "rd_last_q <= 3'd0;"),
        "too_many": ("rtl/memory/mag_path.v", "&& wr_out_q != WR_MAX", ""),
        "strobes": (
            "rtl/memory/mag_path.v",
            "w_strb_mux = wd_strb[32*wm +: 32]",
            "w_strb_mux = {32{own_valid}}",
        ),
        "claim_overtakes_reads": (
            "rtl/memory/mag_path.v",
            "rd_word[32*c + 31] && rd_out_q[5*c +: 5] == 5'd0;",
            "rd_word[32*c + 31];",
        ),
        "claim_overtakes_writes": (
            "rtl/memory/mag_path.v",
            "wr_word[32*c + 31] && wr_own_q[5*c +: 5] == 5'd0;",
            "wr_word[32*c + 31];",
        ),
        "dram_overtakes_claim": (
            "rtl/memory/mag_path.v",
            "!rd_word[32*c + 31] && !st_rd_busy[c];",
            "!rd_word[32*c + 31];",
        ),
        "claim_unfair": ("rtl/memory/mag_stage.v", "last_q <= place;\n", "last_q <= 4'd15;\n"),
        "merge_lost": (
            "rtl/memory/mag_stage.v",
            "(partial && !w_strb[g]) ? old_data[8*g +: 8] : w_data",
            "(partial && !w_strb[g ^ 1]) ? old_data[8*g +: 8] : w_data",
        ),
        "bank_mix": ("rtl/memory/mag_stage.v", "if (op_rd) bank_q <= bank;", "if (op_rd) bank_q <= ~bank;"),
        "no_strobe_stored": (
            "rtl/memory/mag_stage.v",
            "wr_q <= store && w_strb != 32'd0;",
            "wr_q <= store;",
        ),
    },
    mutation_tests={
        "claim_overtakes_reads": ["staging"],
        "claim_overtakes_writes": ["staging"],
        "dram_overtakes_claim": ["staging"],
        "claim_unfair": ["staging"],
        "merge_lost": ["staging"],
        "bank_mix": ["staging"],
        "no_strobe_stored": ["staging"],
    },
    wall_s=200,
)


class _Script:
    """Requests of one requester and the words its reads have to return."""

    def __init__(self):
        self.reads, self.writes, self.data, self.expected = [], [], [], []

    def read(self, image, first, length, flag=0):
        self.reads.append((length, first | flag))
        self.expected += [bytes(image[32 * w : 32 * w + 32]) for w in range(first, first + length)]

    def write(self, image, first, words, flag=0):
        """``words``: (data, strobes) each."""
        self.writes.append((len(words), first | flag))
        for w, (word, strb) in enumerate(words, first):
            self.data.append(strb << 256 | word)
            if strb == 0xFFFFFFFF:
                image[32 * w : 32 * w + 32] = word.to_bytes(32, "little")
                continue
            for k in range(32):
                if strb >> k & 1:
                    image[32 * w + k] = word >> 8 * k & 255

    def store(self, directory, index):
        for name, rows in (("reads", self.reads), ("writes", self.writes)):
            text = "".join(f"{(n - 1) << 32 | first:010x}\n" for n, first in rows)
            (directory / f"{name}{index}.hex").write_text(text)
        (directory / f"data{index}.hex").write_text("".join(f"{d:072x}\n" for d in self.data))


def _random_script(rng, index, n, tiers):
    """Reads of the lower half of a memory, which nobody writes; writes to this requester's part above."""
    script = _Script()
    for _ in range(n):
        flag, image = rng.choice(tiers)
        pages = len(image) // 4096
        length = rng.choice((1, 2, 8, 16, 60))
        script.read(image, rng.randrange(pages // 2) * 128 + rng.randrange(129 - length), length, flag)
        flag, image = rng.choice(tiers)
        pages = len(image) // 4096
        length = rng.choice((1, 3, 8))
        mine = pages // 2 + index * (pages // 8) + rng.randrange(pages // 8)
        strobes = [rng.choice((0xFFFFFFFF, 0xFFFFFFFF, rng.getrandbits(32), 0)) for _ in range(length)]
        words = [(rng.getrandbits(256), s) for s in strobes]
        script.write(image, mine * 128 + rng.randrange(129 - length), words, flag)
    return script


async def _start(dut, *, idle, **controls):
    for name in ("play", "dump", "n_reads", "n_writes", "n_words"):
        getattr(dut, name).value = 0
    dut.idle.value = idle
    clocks.start(dut.clk)
    dram = Dram(dut.u_dram, words=WORDS)
    await clocks.reset(dut)
    dram.configure(ideal=0, fatal=1, reorder=1, interleave=1, lat_min=1, lat_max=80, err_wr=0, err_rd=0)
    dram.configure(**{f"{c}_pct": 70 for c in ("ar", "aw", "w", "r", "b")})
    dram.configure(**controls)
    return dram


def _load(dut, scripts):
    """Give every requester its script."""
    directory = Path(os.environ["KOHAKU_RUN_DIR"])
    for k, script in enumerate(scripts):
        script.store(directory, k)
    pack = lambda values: sum(v << 16 * k for k, v in enumerate(values))  # noqa: E731
    dut.n_reads.value = pack([len(s.reads) for s in scripts])
    dut.n_writes.value = pack([len(s.writes) for s in scripts])
    dut.n_words.value = pack([len(s.expected) for s in scripts])
    dut.play.value = 1


async def _finish(dut, scripts):
    """Wait for the end of all scripts; returns (error, word) of every word each got."""
    directory = Path(os.environ["KOHAKU_RUN_DIR"])
    await with_timeout(RisingEdge(dut.done), 200_000 * clocks.PERIOD_NS, "ns")
    await clocks.cycles(100)
    dut.dump.value = 1
    await Timer(1, unit="ps")
    dut.dump.value = 0
    dut.play.value = 0
    await clocks.cycles(4)
    words = []
    for k, script in enumerate(scripts):
        lines = [t for t in (directory / f"cap{k}.hex").read_text().split() if len(t) == 65]
        got = [(int(t[0], 16), bytes.fromhex(t[1:])[::-1]) for t in lines][: len(script.expected)]
        checks.equal(f"words of requester {k}", len(got), len(script.expected))
        words.append(got)
    return words


async def _play(dut, scripts):
    """Run one script per requester; returns (error, word) of every word each got."""
    _load(dut, scripts)
    return await _finish(dut, scripts)


def _check(scripts, words):
    for k, (script, got) in enumerate(zip(scripts, words, strict=True)):
        checks.true(f"no error at {k}", not any(e for e, _ in got))
        checks.equal(f"data of {k}", [w for _, w in got], script.expected, n=max(1, len(got)))


def _beats(dut):
    return [int(getattr(dut, n).value) for n in ("read_beats", "write_beats", "stage_reads", "stage_writes")]


async def _run(dut, *, idle, n, **controls):
    """Random traffic to DRAM alone."""
    rng = random.Random(seed())
    dram = await _start(dut, idle=idle, **controls)
    image = bytearray(rng.randbytes(WORDS * 32))
    await dram.load(0, bytes(image))
    scripts = [_random_script(rng, k, n, [(0, image)]) for k in range(3)]
    words = await _play(dut, scripts)
    expected = [sum(len(s.expected) for s in scripts), sum(len(s.data) for s in scripts), 0, 0]
    checks.equal("beats", _beats(dut), expected)
    return dram, image, scripts, words


@cocotb.test()
async def all_active(dut):
    """Three requesters, R interleaved between IDs, B out of order: every byte, every requester's order."""
    for idle in (0, 200):
        dram, image, scripts, words = await _run(dut, idle=idle, n=scale(150, 1000))
        _check(scripts, words)
        await _same(dram, image)
    limit = 3 * int(dut.RD_OUT.value)
    checks.true("reads outstanding", dram.count("rd_out_max") <= limit)
    checks.true("writes outstanding", 8 < dram.count("wr_out_max") <= 16)


@cocotb.test()
async def errors_reach_their_requester(dut):
    """RRESP and BRESP errors come back to the requester that asked, on the failing words only."""
    lo, hi = 0x4000, 0x6000
    dram, _, scripts, words = await _run(dut, idle=60, n=100, err_rd=1, err_lo=lo, err_hi=hi, err_resp=3)
    image = await dram.read(0, WORDS * 32)
    window = {image[a : a + 32] for a in range(lo, hi, 32)}
    failed = 0
    for k, (script, got) in enumerate(zip(scripts, words, strict=True)):
        bad = [e in window for e in script.expected]
        checks.equal(f"errors at {k}", [bool(e) for e, _ in got], bad, n=len(bad))
        failed += sum(bad)
    checks.true("some failed", failed > 20)
    checks.equal("no write error", int(dut.n_errors.value), 0)
    lo = (WORDS // 2 + WORDS // 8) * 32  # the write region of requester 1
    await _run(dut, idle=60, n=100, err_rd=0, err_wr=1, err_lo=lo, err_hi=lo + WORDS * 4, err_resp=2)
    errors = int(dut.n_errors.value)
    checks.equal("write errors", [errors >> 16 * k & 0xFFFF for k in range(3)], [0, 100, 0], n=3)


def _words(rng, n):
    return [(rng.getrandbits(256), 0xFFFFFFFF) for _ in range(n)]


async def _same(dram, image):
    checks.equal("image", await dram.read(0, WORDS * 32), bytes(image), n=WORDS)
    checks.equal("AXI violations", dram.count("err_count"), 0)


@cocotb.test()
async def ends_at_a_page(dut):
    """Bursts of 1 to 128 words that end with a page or start one, written and read back by every requester."""
    rng = random.Random(seed() + 3)
    dram = await _start(dut, idle=0)
    image = bytearray(rng.randbytes(WORDS * 32))
    await dram.load(0, bytes(image))
    there, back = [_Script() for _ in range(3)], [_Script() for _ in range(3)]
    pages = itertools.count()
    for n, requester in itertools.product((1, 2, 31, 32, 33, 64, 127, 128), range(3)):
        for first in (128 * next(pages) + 128 - n, 128 * next(pages)):
            there[requester].write(image, first, _words(rng, n))
            back[requester].read(image, first, n)
    _check(there, await _play(dut, there))
    _check(back, await _play(dut, back))
    await _same(dram, image)


@cocotb.test()
async def b_held_back(dut):
    """While no B comes every read returns and 16 writes are outstanding, not one more; then all end."""
    rng = random.Random(seed() + 4)
    dram = await _start(dut, idle=0, b_pct=0)
    image = bytearray(rng.randbytes(WORDS * 32))
    await dram.load(0, bytes(image))
    scripts = [_random_script(rng, k, 60, [(0, image)]) for k in range(3)]
    _load(dut, scripts)
    total = sum(len(s.expected) for s in scripts)
    for _ in range(200):
        await clocks.cycles(200)
        if int(dut.read_beats.value) == total:
            break
    checks.equal("words read", int(dut.read_beats.value), total)
    checks.equal("writes outstanding", dram.count("wr_out_max"), 16)
    checks.equal("over", int(dut.done.value), 0)
    dram.configure(b_pct=100)
    _check(scripts, await _finish(dut, scripts))
    await _same(dram, image)


@cocotb.test()
async def each_channel_slow(dut):
    """AR, AW, W, R and B in turn move in one cycle of 25 while the others run free: every byte."""
    for channel in ("ar", "aw", "w", "r", "b"):
        rates = {f"{c}_pct": 4 if c == channel else 100 for c in ("ar", "aw", "w", "r", "b")}
        dram, image, scripts, words = await _run(dut, idle=0, n=scale(40, 400), **rates)
        _check(scripts, words)
        await _same(dram, image)


@cocotb.test()
async def errors_on_any_beat(dut):
    """A bus error of either kind on the first, a middle and the last beat of a burst of each requester."""
    rng = random.Random(seed() + 5)
    n, at = 20, [256 * k for k in range(1, 4)]
    dram = await _start(dut, idle=0)
    image = bytearray(rng.randbytes(WORDS * 32))
    await dram.load(0, bytes(image))
    for who, bad, resp in itertools.product(range(3), (0, 7, n - 1), (2, 3)):
        lo = 32 * (at[who] + bad)
        dram.configure(err_rd=1, err_wr=0, err_lo=lo, err_hi=lo + 32, err_resp=resp)
        scripts = [_Script() for _ in at]
        for script, first in zip(scripts, at, strict=True):
            script.read(image, first, n)
        for k, (script, got) in enumerate(zip(scripts, await _play(dut, scripts), strict=True)):
            failed = [k == who and i == bad for i in range(n)]
            checks.equal(f"errors at {k}", [bool(e) for e, _ in got], failed, n=n)
            good = [w for (_, w), f in zip(got, failed, strict=True) if not f]
            checks.equal(f"data of {k}", good, [w for w, f in zip(script.expected, failed, strict=True) if not f], n=n)
        dram.configure(err_rd=0, err_wr=1)
        scripts = [_Script() for _ in at]
        for script, first in zip(scripts, at, strict=True):
            script.write(image, first, _words(rng, n))
        await _play(dut, scripts)
        errors = int(dut.n_errors.value)
        checks.equal("write errors", [errors >> 16 * k & 0xFFFF for k in range(3)], [int(k == who) for k in range(3)])
        dram.configure(err_wr=0)
        scripts = [_Script() for _ in at]  # the words of a failed burst are undefined: define them
        for script, first in zip(scripts, at, strict=True):
            script.write(image, first, _words(rng, n))
        _check(scripts, await _play(dut, scripts))
        await _same(dram, image)


@cocotb.test()
async def request_as_reset_falls(dut):
    """Reset in the middle of all bursts with the requests still on offer: each is served once afterwards."""
    rng = random.Random(seed() + 6)
    for cycles in (1, 30, 90, 200):
        dram = await _start(dut, idle=0)
        image = bytearray(rng.randbytes(WORDS * 32))
        await dram.load(0, bytes(image))
        scripts = [_random_script(rng, k, 40, [(0, image)]) for k in range(3)]
        _load(dut, scripts)
        await clocks.cycles(cycles)
        dut.rst_n.value = 0
        await clocks.cycles(20)
        dut.rst_n.value = 1
        _check(scripts, await _finish(dut, scripts))
        expected = [sum(len(s.expected) for s in scripts), sum(len(s.data) for s in scripts), 0, 0]
        checks.equal("beats", _beats(dut), expected, n=4)
        await _same(dram, image)


@cocotb.test()
async def staging(dut):
    """DRAM and staging mixed by every requester, all strobe patterns: bytes, order, counters, no leak to DRAM."""
    if not int(dut.STAGE.value):
        return
    rng = random.Random(seed() + 1)
    size = int(dut.STAGE_ENTRIES.value) * 128
    pages = size // 4096
    for idle in (0, 100):
        dram = await _start(dut, idle=idle, lat_max=rng.choice((8, 80)))
        image, store = bytearray(rng.randbytes(WORDS * 32)), bytearray(size)
        await dram.load(0, bytes(image))
        load = [_Script() for _ in range(3)]
        for page in range(pages):  # one requester each third, so nothing races
            words = [(rng.getrandbits(256), 0xFFFFFFFF) for _ in range(128)]
            load[page % 3].write(store, page * 128, words, STAGE)
        _check(load, await _play(dut, load))
        mixed = [
            _random_script(rng, k, scale(150, 800), [(0, image), (STAGE, store), (STAGE, store)]) for k in range(3)
        ]
        _check(mixed, await _play(dut, mixed))
        back = [_Script() for _ in range(3)]
        for page in range(pages):
            back[page % 3].read(store, page * 128, 128, STAGE)
        _check(back, await _play(dut, back))
        checks.equal("DRAM", await dram.read(0, WORDS * 32), bytes(image), n=WORDS)
        reads = [w for s in mixed for length, first in s.reads for w in [first & STAGE] * length]
        writes = [w for s in mixed for length, first in s.writes for w in [first & STAGE] * length]
        whole = size // 32
        expected = [reads.count(0), writes.count(0), reads.count(STAGE) + whole, writes.count(STAGE) + whole]
        checks.equal("beats", _beats(dut), expected, n=4)
        dut._log.info(f"{whole} staging words read back in {int(dut.cycles.value)} cycles")
        if idle == 0:
            checks.true("one word a cycle", int(dut.cycles.value) < whole * 1.05 + 300)


@cocotb.test()
async def one_requester_alternates(dut):
    """One requester alternates DRAM and staging, 40 accesses of each direction in a row: in order, exact."""
    if not int(dut.STAGE.value):
        return
    rng = random.Random(seed() + 2)
    dram = await _start(dut, idle=0, lat_min=20, lat_max=120)
    image, store = bytearray(rng.randbytes(WORDS * 32)), bytearray(int(dut.STAGE_ENTRIES.value) * 128)
    await dram.load(0, bytes(image))
    for _ in range(scale(2, 20)):
        script = _Script()
        for k in range(40):
            flag, memory = ((0, image), (STAGE, store))[k % 2]
            script.write(memory, 3 * k, [(rng.getrandbits(256), 0xFFFFFFFF) for _ in range(3)], flag)
        _check([script, _Script(), _Script()], await _play(dut, [script, _Script(), _Script()]))
        script = _Script()
        for k in range(40):
            flag, memory = ((0, image), (STAGE, store))[k % 2]
            script.read(memory, 3 * k, 3, flag)
        _check([script, _Script(), _Script()], await _play(dut, [script, _Script(), _Script()]))
