# SPDX-License-Identifier: Apache-2.0
"""Converged path with three requesters (docs/spec/memory.md 8)."""

import os
import random
from pathlib import Path

import cocotb
from cocotb.triggers import RisingEdge, Timer, with_timeout

from kohakubench import Bench, checks, clocks, scale, seed
from kohakubench.dram import DRAM_PUBLIC, Dram

WORDS = 8192
BENCH = Bench(
    name="mag_path",
    top="tb_mag_path",
    sources=[
        "rtl/common/ram_sdp.v",
        "rtl/common/fifo_sync.v",
        "rtl/common/skid2.v",
        "rtl/memory/mag_path.v",
        "rtl/memory/mag_path_sva.sv",
        "tb/hdl/axi_dram_model.v",
        "tb/hdl/path_player.v",
        "tb/hdl/tb_mag_path.v",
    ],
    params={"WORDS": WORDS},
    variants={"rd1": {"RD_OUT": 1}},
    public=DRAM_PUBLIC,
    mutations={
        "w_owner": ("rtl/memory/mag_path.v", "if (own == wm[2:0]) begin", "if (wr_last_q == wm[2:0]) begin"),
        "r_owner": ("rtl/memory/mag_path.v", "m_axi_dram_rid == ID;", "m_axi_dram_rid[0] == ID[0];"),
        "unfair": ("rtl/memory/mag_path.v", "if (|rd_ready) rd_last_q <= rd_index;", "rd_last_q <= 3'd0;"),
        "too_many": ("rtl/memory/mag_path.v", "&& wr_out_q != WR_MAX", ""),
        "strobes": (
            "rtl/memory/mag_path.v",
            "w_strb_mux = wd_strb[32*wm +: 32]",
            "w_strb_mux = {32{own_valid}}",
        ),
    },
    wall_s=200,
)


class _Script:
    """Random requests of one requester: reads below, writes in its own region above."""

    def __init__(self, rng, index, n, image):
        self.reads, self.writes, self.data, self.expected = [], [], [], []
        for _ in range(n):
            length = rng.choice((1, 2, 8, 16, 60))
            page = rng.randrange(WORDS // 256) * 128  # the lower half is only read
            first = page + rng.randrange(129 - length)
            self.reads.append((length, first))
            self.expected += [image[32 * w : 32 * w + 32] for w in range(first, first + length)]
            length = rng.choice((1, 3, 8))
            page = WORDS // 2 + (index * 8 + rng.randrange(8)) * 128
            first = page + rng.randrange(129 - length)
            self.writes.append((length, first))
            for w in range(first, first + length):
                word, strb = rng.getrandbits(256), rng.choice((0xFFFFFFFF, rng.getrandbits(32), 0))
                self.data.append(strb << 256 | word)
                for k in range(32):
                    if strb >> k & 1:
                        image[32 * w + k] = word >> 8 * k & 255

    def store(self, directory, index):
        for name, rows in (("reads", self.reads), ("writes", self.writes)):
            text = "".join(f"{(n - 1) << 32 | first:010x}\n" for n, first in rows)
            (directory / f"{name}{index}.hex").write_text(text)
        (directory / f"data{index}.hex").write_text("".join(f"{d:072x}\n" for d in self.data))


async def _run(dut, *, idle, n, **controls):
    rng = random.Random(seed())
    directory = Path(os.environ["KOHAKU_RUN_DIR"])
    for name in ("play", "dump", "n_reads", "n_writes", "n_words"):
        getattr(dut, name).value = 0
    dut.idle.value = idle
    clocks.start(dut.clk)
    dram = Dram(dut.u_dram, words=WORDS)
    await clocks.reset(dut)
    dram.configure(ideal=0, fatal=1, reorder=1, interleave=1, lat_min=1, lat_max=80, err_wr=0, err_rd=0)
    dram.configure(**{f"{c}_pct": 70 for c in ("ar", "aw", "w", "r", "b")})
    dram.configure(**controls)
    image = bytearray(rng.randbytes(WORDS * 32))
    await dram.load(0, bytes(image))
    scripts = [_Script(rng, k, n, image) for k in range(3)]
    for k, script in enumerate(scripts):
        script.store(directory, k)
    pack = lambda values: sum(v << 16 * k for k, v in enumerate(values))  # noqa: E731
    dut.n_reads.value = dut.n_writes.value = pack([n] * 3)
    dut.n_words.value = pack([len(s.expected) for s in scripts])
    dut.play.value = 1
    await with_timeout(RisingEdge(dut.done), 200_000 * clocks.PERIOD_NS, "ns")
    await clocks.cycles(100)
    dut.dump.value = 1
    await Timer(1, unit="ps")
    dut.dump.value = 0
    words = []
    for k, script in enumerate(scripts):
        lines = [t for t in (directory / f"cap{k}.hex").read_text().split() if len(t) == 65]
        got = [(int(t[0], 16), bytes.fromhex(t[1:])[::-1]) for t in lines]
        checks.equal(f"words of requester {k}", len(got), len(script.expected))
        words.append((got, script.expected))
    counted = (int(dut.read_beats.value), int(dut.write_beats.value))
    checks.equal("beats", counted, (sum(len(s.expected) for s in scripts), sum(len(s.data) for s in scripts)))
    dut.play.value = 0
    return dram, image, words


@cocotb.test()
async def all_active(dut):
    """Three requesters, R interleaved between IDs, B out of order: every byte, every requester's order."""
    for idle in (0, 200):
        dram, image, words = await _run(dut, idle=idle, n=scale(150, 1000))
        for k, (got, exp) in enumerate(words):
            checks.true(f"no error at {k}", not any(e for e, _ in got))
            checks.equal(f"data of {k}", [w for _, w in got], [bytes(w) for w in exp], n=len(exp))
        checks.equal("image", await dram.read(0, WORDS * 32), bytes(image), n=WORDS)
        checks.equal("AXI violations", dram.count("err_count"), 0)
    limit = 3 * int(dut.RD_OUT.value)
    checks.true("reads outstanding", dram.count("rd_out_max") <= limit)
    checks.true("writes outstanding", 8 < dram.count("wr_out_max") <= 16)


@cocotb.test()
async def errors_reach_their_requester(dut):
    """RRESP and BRESP errors come back to the requester that asked, on the failing words only."""
    lo, hi = 0x4000, 0x6000
    dram, _, words = await _run(dut, idle=60, n=100, err_rd=1, err_lo=lo, err_hi=hi, err_resp=3)
    image = await dram.read(0, WORDS * 32)
    failed = 0
    for k, (got, exp) in enumerate(words):
        bad = [bytes(e) in _window_words(image, lo, hi) for e in exp]
        checks.equal(f"errors at {k}", [bool(e) for e, _ in got], bad, n=len(bad))
        failed += sum(bad)
    checks.true("some failed", failed > 20)
    checks.equal("no write error", int(dut.n_errors.value), 0)
    lo = (WORDS // 2 + 8 * 128) * 32  # the write region of requester 1
    await _run(dut, idle=60, n=100, err_rd=0, err_wr=1, err_lo=lo, err_hi=lo + 8 * 4096, err_resp=2)
    errors = int(dut.n_errors.value)
    checks.equal("write errors", [errors >> 16 * k & 0xFFFF for k in range(3)], [0, 100, 0], n=3)


def _window_words(image, lo, hi):
    return {image[a : a + 32] for a in range(lo, hi, 32)}
