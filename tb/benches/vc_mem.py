# SPDX-License-Identifier: Apache-2.0
"""Memory unit of the vector core alone: commands from a player, memory and register models around it."""

import random

import cocotb

from benches.vc_mem_rig import Rig
from benches.vc_mem_t_burst import *  # noqa: F403
from benches.vc_mem_t_drain import *  # noqa: F403
from benches.vc_mem_t_fill import *  # noqa: F403
from benches.vc_mem_t_ldst import *  # noqa: F403
from benches.vc_mem_t_perf import *  # noqa: F403
from kohakubench import Bench, checks, clocks, scale, seed

BENCH = Bench(
    name="vc_mem",
    top="tb_vc_mem",
    sources=[
        "rtl/common/*.v",
        "rtl/control/cu_send.v",
        "rtl/control/cud_rx.v",
        "rtl/vector/vc_mem*.v",
        "rtl/vector/vc_*_to_*.v",
        "tb/hdl/vc_mem_agent.v",
        "tb/hdl/tb_vc_mem.v",
    ],
    variants={"latency2": {"L1_LAT": 2}, "single": {"MERGE": 0}},
    slow_variants=("latency2",),
    mutations={
        "ninth_bit": (
            "rtl/vector/vc_mem_slots.v",
            "assign word[s]   = lo_q + {1'b0, idx};",
            "assign word[s]   = {lo_q[8], rsp_tag};",
        ),
        "tag_share": ("rtl/vector/vc_mem_ctl.v", "!slot_room || tags_busy)", "!slot_room || range_busy)"),
        "no_wait": ("rtl/vector/vc_mem_slots.v", "assign w_busy[s] = busy_q &&", "assign w_busy[s] = 1'b0 &&"),
        "drain_wait": ("rtl/vector/vc_mem_slots.v", "assign r_busy[s] = busy_q &&", "assign r_busy[s] = 1'b0 &&"),
        "read_error": (
            "rtl/vector/vc_mem_slots.v",
            "if (here && rsp_err) err_q <= 1'b1;",
            "if (1'b0) err_q <= 1'b1;",
        ),
        "bad_word_only": (
            "rtl/vector/vc_mem_slots.v",
            "mark_k_q + 9'd1 == mark_n",
            "mark_k_q + 9'd2 >= mark_n",
        ),
        "marks_stay": ("rtl/vector/vc_mem_ctl.v", "halting && any_bad;", "1'b0 && any_bad;"),
        "duplicate": (
            "rtl/vector/vc_mem_slots.v",
            "if (take) out_q[rsp_tag] <= 1'b0;",
            "if (1'b0) out_q[rsp_tag] <= 1'b0;",
        ),
        "watchdog": ("rtl/vector/vc_mem_slots.v", "if (!rst_n || expired) begin", "if (!rst_n) begin"),
        "short_burst": ("rtl/vector/vc_mem_drain.v", "full    = cnt_q == 4'd8;", "full    = cnt_q == 4'd7;"),
        "jump": ("rtl/vector/vc_mem_drain.v", "addr[39:0] == next_q", "addr[13:0] == next_q[13:0]"),
        "edge": ("rtl/vector/vc_mem_desc.v", "|| (base[39:25] == 15'h7FFF)", ""),
        "write_split": ("rtl/control/cu_send.v", "open ? 2'd2 : sig_valid", "sig_valid"),
        "offer_kept": ("rtl/control/cu_send.v", "lock_q <= send_valid && !send_ready", "lock_q <= 1'b0"),
        "signal_last": (
            "rtl/control/cu_send.v",
            "sig_valid ? 2'd0 : req_valid ? 2'd1 : 2'd2;",
            "drain_valid ? 2'd2 : sig_valid ? 2'd0 : 2'd1;",
        ),
        "clamp_end": ("rtl/vector/vc_mem_walk.v", "step && !final_step", "step"),
        "store_first": ("rtl/vector/vc_mem.v", ".wr_ready  (!in_write)", ".wr_ready  (1'b1)"),
        "limit_tail": ("rtl/vector/vc_mem_ldst.v", "over && (e0 + i[7:0] < vl)", "over"),
        "half": ("rtl/vector/vc_mem_ldst.v", "kd[0] ? 2'b10 : 2'b01", "kd[0] ? 2'b11 : 2'b01"),
        "range_18": ("rtl/vector/vc_mem_ldst.v", "addr[41:9] != 33'd0", "addr[17:9] != 9'd0"),
        "peer_end": ("rtl/vector/vc_mem_ctl.v", "(peer_end[16] && (peer_end[15:0] != 16'd0))", "peer_end[16]"),
        "burst_range": ("rtl/vector/vc_mem_recv.v", "(top[16:9] != 8'd0)", "(top[15:9] != 7'd0)"),
        "saturate": ("rtl/vector/vc_mem_desc.v", "(big[1:0] != 2'd0) || (p01 > MAX)", "(p01 > MAX)"),
        "align_unused": ("rtl/vector/vc_mem_desc.v", "used[d] && (field[20:16] != 5'd0)", "(field[20:16] != 5'd0)"),
    },
    mutation_tests={
        "ninth_bit": ["split_footprints"],
        "tag_share": ["waiting"],
        "no_wait": ["waiting"],
        "drain_wait": ["waiting"],
        "read_error": ["read_errors"],
        "bad_word_only": ["read_errors"],
        "marks_stay": ["read_errors"],
        "duplicate": ["stray_responses"],
        "watchdog": ["watchdog"],
        "short_burst": ["greedy_bursts"],
        "jump": ["greedy_bursts"],
        "edge": ["address_space"],
        "write_split": ["bursts_beside_commands"],
        "offer_kept": ["bursts_beside_commands"],
        "signal_last": ["send_order"],
        "clamp_end": ["load_walks"],
        "store_first": ["store_against_bursts"],
        "limit_tail": ["limit_flag"],
        "half": ["load_walks"],
        "range_18": ["load_walks"],
        "peer_end": ["refusals"],
        "burst_range": ["burst_ranges"],
        "saturate": ["limits"],
        "align_unused": ["limits"],
    },
)


@cocotb.test()
async def smoke(dut):
    """VFILL, VBAR, VLD, VST, VDRAIN to memory and to a peer, a burst: bytes as computed."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.desc(0, 0x1000, (32, 16))
    rig.desc(1, 0, (1, 8))
    rig.desc(2, 100, (1, 16))
    rig.desc(3, 0x20000, (64, 5), (1024, 3))
    rig.desc(4, 0x00110000 | 7, (1, 9))
    rig.vfill(0, 0)
    rig.vbar()
    rig.vld(0, 1)
    rig.vst(3, 2)
    rig.vld(1, 2, dtype=2)
    rig.vst(1, 2, 60, dtype=2)
    rig.vdrain(3, 100)
    rig.peer(4, 100, (2, 1), 1, 1)
    rig.vhalt()
    rig.burst(300, rig.words(20))
    t = await rig.run()
    checks.equal("answers", len(t.answers), 9)


@cocotb.test()
async def soak(dut):
    """Random programs of every command with random surroundings: answers, flits, L1, registers, memory."""
    clocks.start(dut.clk)
    for part in range(scale(4, 60)):
        rng = random.Random(100 * seed() + part)
        config = {
            "cfg_order": rng.randrange(3),
            "cfg_lat": rng.choice((0, 3, 40, 90)),
            "cfg_gap": rng.choice((0, 40, 200)),
            "cfg_busy": rng.choice((0, 30, 200)),
            "cfg_mix": rng.randrange(256),
            "rd_bad_lo": 0x2000,
            "rd_bad_hi": 0x2000 + rng.choice((0, 3)),
        }
        rig = Rig(dut, 100 * seed() + part, **config)
        for _ in range(scale(250, 600)):
            random_command(rig, rng)
        for _ in range(rng.choice((0, 40))):
            n = rng.randrange(1, 20)
            rig.burst(
                rng.randrange(400, 513 - n), rig.words(n), buf=rng.choice((0, 0, 0, 1)), gap=rng.choice((0, 0, 7))
            )
        rig.vhalt()
        await rig.run(data=rig.config["rd_bad_hi"] == 0x2000)


def random_command(rig: Rig, rng: random.Random) -> None:
    """One command below L1 word 400 (bursts land above), with a fresh descriptor."""
    ad, what = rng.randrange(8), rng.randrange(12)
    if what < 5:
        dims = [(rng.randrange(-9, 30), rng.randrange(0, 6)) for _ in range(rng.randrange(1, 5))]
        rig.desc(ad, rng.randrange(0, 100), *dims)
        reach = rig.ref.desc[ad].walk(0, 16)
        if max(reach) >= 400:
            rig.desc(ad, rng.randrange(0, 300), (rng.randrange(0, 6), 16))
        if what < 3:
            rig.vld(rng.randrange(16), ad, vl=rng.randrange(1, 129), dtype=rng.choice((1, 1, 2, 2, 3)))
        else:
            rig.vst(rng.randrange(16), ad, vl=rng.randrange(1, 129), dtype=rng.choice((1, 1, 2, 2, 0)))
    elif what < 11:
        dims = [(32 * rng.choice((1, 1, 2, -1)), rng.randrange(1, 7)) for _ in range(rng.randrange(1, 4))]
        n, base = rng.randrange(1, 257), 32 * rng.randrange(0x1F00, 0x2100)
        rig.desc(ad, base if what < 8 else 0x100000 + base, *(dims if rng.random() < 0.5 else [(32, n)]))
        total = rig.ref.desc[ad].total
        l1 = rng.randrange(0, max(1, 401 - total))
        if what < 8:
            rig.vfill(ad, l1)
        elif what < 10:
            rig.vdrain(ad, l1)
        else:
            rig.desc(ad, rng.randrange(0, 65000), (1, n))
            rig.peer(ad, rng.randrange(0, 401 - n) if n < 400 else 0, (2, 1), rng.randrange(3), rng.randrange(2))
    elif rng.random() < 0.5:
        rig.vbar()
    else:
        rig.quiesce()
