# SPDX-License-Identifier: Apache-2.0
"""Cluster datapath: array, accumulator, tile store, EMIT/SEND/ADD_PEER, interlock; against the model."""

from itertools import product

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, RisingEdge

from kohakubench import Bench, checks, clocks, memfile, scale
from kohakubench.mg_player import Datapath, codes24
from kohakubench.mg_stimulus import ADD_PEER, EMIT, SEND, Pool, Stream, columns, random_pool, space

BENCH = Bench(
    name="mg_datapath",
    top="tb_mg_datapath",
    sources=[
        "rtl/common/ram_sdp.v",
        "rtl/common/fifo_sync.v",
        "rtl/matmul/mg_mac.v",
        "rtl/matmul/mg_skew.v",
        "rtl/matmul/mg_array_packed.v",
        "rtl/matmul/mg_array_plain.v",
        "rtl/matmul/mg_array.v",
        "rtl/matmul/mg_normalize.v",
        "rtl/matmul/mg_round.v",
        "rtl/matmul/mg_norm.v",
        "rtl/matmul/mg_acc_add.v",
        "rtl/matmul/mg_to_fp16.v",
        "rtl/matmul/mg_lane.v",
        "rtl/matmul/mg_tile_store.v",
        "rtl/matmul/mg_reuse_guard.v",
        "rtl/matmul/mg_datapath.v",
        "rtl/matmul/mg_datapath_sva.sv",
        "tb/hdl/mg_player.v",
        "tb/hdl/tb_mg_datapath.v",
    ],
    params={"TILES": 512, "ACC_MW": 14, "TILE_LAT": 2, "TILE_BANKS": 2, "MODEL": 1},
    variants={
        "packed": {"MODEL": 0},
        "mw10_onebank": {"ACC_MW": 10, "TILE_BANKS": 1},
        "mw12_lat1": {"ACC_MW": 12, "TILE_LAT": 1},
        "mw16_small": {"ACC_MW": 16, "TILES": 16},
    },
    mutations={
        "no_forward": ("rtl/matmul/mg_tile_store.v", "fwd[TILE_LAT] ? fwd_data : ram_data", "ram_data"),
        "forward_any": ("rtl/matmul/mg_tile_store.v", " && rd_addr == wr_addr;", ";"),
        "guard_short": (
            "rtl/matmul/mg_datapath.v",
            ".past_valid(xv[PAST:1]), ",
            ".past_valid(xv[PAST:1] >> 1), ",
        ),
        "guard_near": ("rtl/matmul/mg_datapath.v", "v[SLOT-TILE_LAT-2 +: NEAR]", "v[SLOT +: PAST+1] << PAST"),
        "port": ("rtl/matmul/mg_datapath.v", "!port_taken && (x_op", "(x_op"),
        "emit_order": ("rtl/matmul/mg_datapath.v", "|| emit_count_q == 6'd0);", "|| 1'b1);"),
        "lane_scale": ("rtl/matmul/mg_datapath.v", "32 + 8*(s%4)", "32 + 8*(s/4)"),
        "load_adds": ("rtl/matmul/mg_lane.v", "load ? {(ACC_MW+8){1'b0}} : tile", "tile"),
        "peer_lost": ("rtl/matmul/mg_lane.v", "use_peer ? peer : block", "block"),
        "ring": ("rtl/matmul/mg_array_plain.v", "if (vld[16]) rd_ptr_q", "if (vld[15]) rd_ptr_q"),
        "sign": ("rtl/matmul/mg_array_plain.v", "{25{in_a[7*n+6]}}", "{25{1'b0}}"),
        "bank": ("rtl/matmul/mg_tile_store.v", "wr_bank  == (b == 1)", "1'b1"),
        "inflight": (
            "rtl/matmul/mg_datapath.v",
            "arr_done  = v[LAST] && !last_peer;",
            "arr_done  = v[LAST-1] && !cmd[CW*(LAST-1) + KW + 2];",
        ),
    },
    mutation_tests={
        "no_forward": ["reuse_minimum"],
        "forward_any": ["drain_beside_sweep"],
        "guard_short": ["interlock_random"],
        "guard_near": ["interlock_random"],
        "port": ["interlock_random"],
        "emit_order": ["interlock_random"],
        "lane_scale": ["scale_bytes_and_anchors"],
        "load_adds": ["emit_equals_drain"],
        "peer_lost": ["send_and_add_peer"],
        "ring": ["dot_extremes"],
        "sign": ["dot_extremes"],
        "bank": ["random_bubbles"],
        "inflight": ["latencies"],
    },
    timeout_cycles=20_000_000,
    wall_s=600,
)


def _pool(qa, qb, scale_byte=0xA0):
    qa, qb = np.asarray(qa, dtype=np.int8), np.asarray(qb, dtype=np.int8)
    s = np.full((len(qa), 4), scale_byte, dtype=np.uint8)
    return Pool(qa, s, qb, s)


async def _each_entry(dp, name, pool, anchor=40):
    """LOAD with emit of entry pair n on sub-tile n, one a cycle."""
    s = Stream(pool)
    n = np.arange(len(pool.qa))
    s.issue(n % dp.tiles, n, n, load=1, emit=1, anchor=anchor)
    return await dp.play(name, s)


@cocotb.test()
async def dot_extremes(dut):
    """All -64, all +63, -64 by +63, alternating signs; known sums."""
    dp = await Datapath(dut).start()
    full = [np.full((4, 32), v) for v in (-64, 63, -63)]
    alt = np.where(np.arange(32) % 2, 63, -64) * np.ones((4, 1), dtype=int)
    rows = np.where(np.arange(4) % 2, 63, -64)[:, None] * np.ones((1, 32), dtype=int)
    kinds = [*full, alt, -alt.clip(-63, 64), rows, -rows.clip(-63, 64)]
    qa, qb = zip(*product(kinds, kinds), strict=True)
    exp = await _each_entry(dp, "extremes", _pool(qa, qb))
    checks.equal("all -64", int(exp.sums[0, 0]), 131072)
    checks.equal("+63 by -64", int(exp.sums[len(kinds), 0]), -129024)


@cocotb.test()
async def dot_single_nonzero(dut):
    """One nonzero product at every (i, k, j); one nonzero element of A against full B, and back."""
    dp = await Datapath(dut).start()
    index = list(product(range(4), range(32), range(4)))
    qa, qb = np.zeros((2, len(index), 4, 32), dtype=int)
    for n, (i, k, j) in enumerate(index):
        qa[n, i, k], qb[n, j, k] = (-64, 63, 1, -1)[n % 4], (63, -64, -1, 1)[(n // 4) % 4]
    await _each_entry(dp, "single product", _pool(qa, qb))
    dense = dp.rng.integers(-64, 64, (256, 4, 32))
    lone = np.zeros((256, 4, 32), dtype=int)
    for n in range(256):
        lone[n, (n // 32) % 4, n % 32] = 63 if n < 128 else -64
    await _each_entry(dp, "single element of A", _pool(lone, dense))
    await _each_entry(dp, "single element of B", _pool(dense, lone))


@cocotb.test()
async def dot_borrow(dut):
    """Low field negative, zero and positive under a negative, zero and positive high field, every chain."""
    dp = await Datapath(dut).start()
    qa, qb = [], []
    for p, j, low, high in product(range(2), range(4), (-64, -1, 0, 1, 63), (-64, -1, 0, 1, 63)):
        for depth in (1, 8, 32):  # first stage only, one unit, all four units
            a, b = np.zeros((4, 32), dtype=int), np.zeros((4, 32), dtype=int)
            a[2 * p, :depth], a[2 * p + 1, :depth], b[j, :depth] = low, high, 63
            qa.append(a)
            qb.append(b)
    await _each_entry(dp, "borrow", _pool(qa, qb))


@cocotb.test()
async def dot_random(dut):
    """>= 5,000 random entry pairs, a new sub-tile every cycle, FP16 of every one handed out."""
    dp = await Datapath(dut).start()
    for _ in range(scale(2, 20)):
        pool = random_pool(dp.rng, 4096)
        s = Stream(pool)
        n = np.arange(4096)
        s.issue(dp.tile_list(4096), n, dp.rng.permutation(n), load=1, emit=1)
        await dp.play("random tiles", s)
        checks.equal("one issue a cycle", int(np.ptp(dp.iss_time)), 4095)


@cocotb.test()
async def scale_bytes_and_anchors(dut):
    """All 256 scale bytes on both sides, different per lane and block; the anchors of the page."""
    dp = await Datapath(dut).start()
    byte = np.arange(256)
    sa = np.stack([(byte + 64 * lane) % 256 for lane in range(4)], axis=1).astype(np.uint8)
    sb = np.stack([(37 * byte + 11 + 96 * lane) % 256 for lane in range(4)], axis=1).astype(np.uint8)
    q = dp.rng.integers(-64, 64, (2, 256, 4, 32)).astype(np.int8)
    for anchor in (0, 16, 17, 40, 62, 63, 255):
        await _each_entry(dp, f"anchor {anchor}", Pool(q[0], sa, q[1], sb), anchor)
    s = Stream(Pool(q[0], sa, q[1], sb))
    n = np.arange(256)
    s.issue(n % dp.tiles, n, n, load=1, anchor=dp.rng.integers(0, 256, 256))
    s.issue(n % dp.tiles, n[::-1], n, emit=1, anchor=dp.rng.integers(0, 256, 256))
    await dp.play("anchor changes every cycle", s)


@cocotb.test()
async def random_bubbles(dut):
    """LOAD, ADD and emit on few and many sub-tiles of both banks, random gaps, spacing at its minimum."""
    dp = await Datapath(dut).start()
    pool = random_pool(dp.rng, 1024)
    for span, longest in ((1, 0), (2, 0), (5, 0), (8, 3), (dp.tiles, 2), (dp.tiles, 0)):
        n = scale(3000, 60000)
        addr, bank = dp.rng.integers(0, span, n), dp.rng.integers(0, dp.banks, n)
        gap = dp.rng.integers(0, longest + 1, n) * dp.rng.integers(0, 2, n)
        s = Stream(pool)
        s.issue(
            addr,
            dp.rng.integers(0, 1024, n),
            dp.rng.integers(0, 1024, n),
            load=dp.rng.integers(0, 8, n) == 0,
            emit=dp.rng.integers(0, 3, n) == 0,
            bank=bank,
            gap=space(addr, bank, gap, dp.reuse_min),
        )
        dp.dump(s, 1)
        await dp.play(f"bubbles over {span}", s)


@cocotb.test()
async def reuse_minimum(dut):
    """One sub-tile every REUSE_MIN cycles exactly, and REUSE_MIN sub-tiles in turn without a gap."""
    dp = await Datapath(dut).start()
    pool, n = random_pool(dp.rng, 256), 512
    s = Stream(pool)
    pick = dp.rng.integers(0, 256, (4, n))
    s.issue(3, pick[0], pick[1], emit=1, gap=dp.reuse_min - 1)
    s.issue(np.arange(n) % dp.reuse_min, pick[2], pick[3], emit=np.arange(n) >= n - 40, phase=1)
    dp.dump(s, 2)
    await dp.play("reuse", s)
    checks.equal("spacing", int(dp.iss_time[1] - dp.iss_time[0]), dp.reuse_min)


@cocotb.test()
async def matrix_products(dut):
    """nk = 1, 2, 32, 64; zero-mean, non-negative, saturating and flushing operands; K whole and chunked."""
    dp = await Datapath(dut).start()
    kinds = {
        "zero mean": (-63, 63, 120, 180),
        "non-negative": (0, 63, 120, 180),
        "large": (40, 63, 250, 255),
        "tiny": (-8, 8, 0, 12),
    }
    for name, (lo, hi, slo, shi) in kinds.items():
        for nk in (1, 2, 32, 64):
            pool = random_pool(dp.rng, 4 * nk, lo, hi, (slo, shi))
            anchor = {"large": 0, "tiny": 63}.get(name, 40)
            images = []
            for chunks in (1, 2):
                s = Stream(pool)
                for kb, g, h in product(range(nk), range(4), range(4)):
                    phase = kb * chunks // nk
                    s.issue(
                        4 * g + h,
                        g * nk + kb,
                        h * nk + kb,
                        load=kb == 0,
                        emit=kb == nk - 1,
                        anchor=anchor,
                        phase=phase,
                    )
                exp = await dp.play(f"{name}, nk {nk}, {chunks} chunks", s)
                images.append(exp.emit_half)
            checks.arrays(f"{name}, nk {nk}: chunked", images[1], images[0])


@cocotb.test()
async def emit_equals_drain(dut):
    """ADD with emit against ADD followed by EMIT; LOAD of a zero block; LOAD with emit; EMIT twice."""
    dp = await Datapath(dut).start()
    pool = random_pool(dp.rng, 256, scale=(0, 255))
    pool.qa[:32] = 0  # zero blocks
    t = dp.tile_list(256) if dp.tiles >= 256 else np.arange(dp.tiles)
    for load in (0, 1, 0):  # a LOAD right after reads: what the tile store still holds must not count
        s = Stream(pool)
        s.issue(t, t, t, load=load, emit=1)
        s.command(EMIT, t, phase=1)
        s.command(EMIT, t, phase=2)
        exp = await dp.play(f"emit and drain, load {load}", s)
        half = exp.emit_half.reshape(3, -1, 16)
        checks.arrays("drain equals emit", half[1], half[0])
        checks.arrays("second drain", half[2], half[0])


@cocotb.test()
async def send_and_add_peer(dut):
    """SEND replayed as ADD_PEER doubles every tile; other bank; zero tile plus 1.0; odd peer codes."""
    dp = await Datapath(dut).start()
    mw, n = dp.mw, min(dp.tiles, 256)
    s, t = Stream(random_pool(dp.rng, 64, scale=(120, 180))), np.arange(n)
    s.issue(t, t % 64, (7 * t) % 64, load=1)
    s.command(SEND, t, phase=1)
    codes = (await dp.play("send", s)).send_codes
    s = Stream(s.pool, peers=codes)
    s.command(ADD_PEER, t, peer=t)
    s.command(SEND, t, phase=1)
    doubled = (await dp.play("doubled", s)).send_codes
    exact = np.where((codes >> mw) & 127, codes + (1 << mw), 0)
    checks.arrays("doubled exactly", doubled, exact.astype(np.uint32))

    s = Stream(s.pool, peers=codes)
    s.command(ADD_PEER, t, peer=t[::-1], bank=dp.banks - 1)
    s.command(EMIT, t, bank=dp.banks - 1, phase=1)
    await dp.play("into a second accumulator", s)

    odd = dp.rng.integers(0, 1 << (mw + 8), (512, 16)).astype(np.uint32)
    odd[::3] &= np.uint32(~(127 << mw) & 0xFFFFFFFF)  # exponent 0 with sign and fraction set
    one = np.full((1, 16), 63 << mw, dtype=np.uint32)
    zeros = _pool(np.zeros((1, 4, 32)), np.zeros((1, 4, 32)))
    s = Stream(zeros, peers=np.concatenate([odd, one]))
    s.issue(t, 0, 0, load=1)
    s.command(ADD_PEER, t, peer=512, phase=1)
    s.command(EMIT, t, phase=2)
    s.command(ADD_PEER, np.tile(t, 2), peer=dp.rng.integers(0, 512, 2 * n), phase=3)
    dp.dump(s, 4)
    exp = await dp.play("peer codes", s)
    checks.arrays("zero plus one", exp.emit_half, np.full((n, 16), 0x3C00))


@cocotb.test()
async def drain_beside_sweep(dut):
    """Second bank: EMIT or SEND every cycle beside an ADD sweep in the other bank, both at full rate."""
    dp = await Datapath(dut).start()
    if dp.banks == 1:
        checks.true("one bank: nothing to overlap", dp.banks == 1)
        return
    n = 2000
    for op, sweep in product((EMIT, SEND), (0, 1)):
        s = Stream(random_pool(dp.rng, 512))
        t, a, b = dp.tile_list(n), dp.rng.integers(0, 512, n), dp.rng.integers(0, 512, n)
        s.issue(t, a, b, bank=sweep)
        s.command(op, t, bank=1 - sweep)
        dp.dump(s, 1)
        await dp.play(f"op {op} beside bank {sweep}", s)
        checks.equal("sweep at full rate", int(np.ptp(dp.iss_time)), n - 1)
        checks.equal("drain at full rate", int(np.ptp(dp.x_time[:n])), n - 1)


@cocotb.test()
async def interlock_random(dut):
    """EMIT, SEND and ADD_PEER of random sub-tiles between random issues: x_ready keeps the order safe."""
    dp = await Datapath(dut).start()
    pool = random_pool(dp.rng, 512)
    peers = dp.rng.integers(0, 1 << (dp.mw + 8), (1024, 16)).astype(np.uint32)
    for span, duty, x_gap in (
        (1, 12, 9),
        (3, 2, 3),
        (8, 1, 2),
        (16, 1, 0),
        (dp.tiles, 0, 1),
        (dp.tiles, 3, 0),
    ):
        n = scale(4000, 60000)
        s = Stream(pool, peers)
        addr, bank = dp.rng.integers(0, span, n), dp.rng.integers(0, dp.banks, n)
        gap = space(addr, bank, dp.rng.integers(0, duty + 1, n), dp.reuse_min)
        s.issue(
            addr,
            dp.rng.integers(0, 512, n),
            dp.rng.integers(0, 512, n),
            bank=bank,
            gap=gap,
            load=dp.rng.integers(0, 3, n) == 0,
            emit=dp.rng.integers(0, 40, n) == 0,
        )
        m = n // 2
        s.command(
            dp.rng.choice([EMIT, SEND, ADD_PEER], m),
            dp.rng.integers(0, span, m),
            bank=dp.rng.integers(0, dp.banks, m),
            peer=dp.rng.integers(0, 1024, m),
            gap=dp.rng.integers(0, x_gap + 1, m),
        )
        dp.dump(s, 1)
        await dp.play(f"interlock over {span}", s)


@cocotb.test()
async def latencies(dut):
    """The page's reference values: 17 cycles to the sums and 7 more to the tile write."""
    dp = await Datapath(dut).start()
    s = Stream(random_pool(dp.rng, 4))
    s.issue(1, 0, 0, load=1, emit=1)
    s.command(EMIT, 1, phase=1)
    await dp.play("single commands", s)
    pulses = await _single_issue_cycles(dp, s)
    checks.equal("arr_inflight cycles (issue to tile write)", pulses, 17 + 7)


async def _single_issue_cycles(dp, stream):
    """Cycles for which arr_inflight stays up after one issue."""
    task = cocotb.start_soon(_pulse(dp.dut.arr_inflight))
    await dp.play("one issue", Stream(stream.pool, iss=stream.iss))
    return await task


async def _pulse(signal):
    await RisingEdge(signal)
    begin = clocks.now()
    await FallingEdge(signal)
    return clocks.now() - begin


@cocotb.test()
async def reset_in_the_middle(dut):
    """Reset with the pipeline full: nothing comes out afterwards and the next stream is right."""
    dp = await Datapath(dut).start()
    s = Stream(random_pool(dp.rng, 64))
    t = dp.tile_list(4000)
    s.issue(t, t % 64, t % 64, emit=1)
    for key in ("a", "b"):
        memfile.write(f"{key}_900.hex", s.pool.words(key))
    memfile.write("p_900.hex", codes24(s.peers))
    for wait in (5, 17, 23, 40):
        dut.run_id.value, dut.n_iss.value, dut.n_x.value = 900, 4000, 0
        dut.n_pool.value, dut.n_peer.value = 64, 1
        iss = columns(s.iss)
        memfile.write(
            "iss_900.hex",
            memfile.pack(80, (40, 8), (iss["addr"], 16), (2, 8), (iss["a"] | iss["b"] << 12, 24), (0, 24)),
        )
        dut.go.value = 1
        await clocks.cycles(wait)
        dut.go.value = 0
        await clocks.reset(dut)
        await clocks.cycles(40)
        checks.equal("no word after reset", int(dut.n_emit.value), 0)
        checks.equal("nothing in flight", int(dut.inflight.value) | int(dut.arr_inflight.value), 0)
    again = Stream(s.pool)
    for bank in range(dp.banks):
        again.issue(np.arange(dp.tiles), np.arange(dp.tiles) % 64, np.arange(dp.tiles) % 64, load=1, bank=bank)
    dp.dump(again, 1)
    await dp.play("after reset", again)


@cocotb.test()
async def million_cases(dut):
    """>= 10^6 results (norm, add, to_fp16 in sixteen lanes) through the whole pipeline."""
    dp = await Datapath(dut).start()
    done = 0
    while done < scale(1 << 20, 1 << 24):
        pool = random_pool(dp.rng, 4096, scale=(60, 255) if done % 3 else (0, 255))
        s = Stream(pool)
        n = 1 << 15
        addr = dp.tile_list(n)
        s.issue(
            addr,
            dp.rng.integers(0, 4096, n),
            dp.rng.integers(0, 4096, n),
            emit=1,
            load=dp.rng.integers(0, 4, n) == 0,
            bank=dp.rng.integers(0, dp.banks, n),
        )
        await dp.play("random accumulation", s)
        done += 16 * n
