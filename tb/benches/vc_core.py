# SPDX-License-Identifier: Apache-2.0
"""The whole vector core at its link against the functional model: kernels, traffic, bursts, faults, cycles."""

import cocotb

from benches.vc_core_rig import Rig
from benches.vc_core_t_bursts import *  # noqa: F403
from benches.vc_core_t_memory import *  # noqa: F403
from benches.vc_core_t_perf import *  # noqa: F403
from benches.vc_core_t_programs import *  # noqa: F403
from benches.vc_core_t_relayout import *  # noqa: F403
from kohakubench import Bench, checks, clocks, seed
from kohakubench.vector_programs import SOURCE, TARGET

BENCH = Bench(
    name="vc_core",
    top="tb_vc_core",
    sources=[
        "rtl/common/*.v",
        "rtl/control/cu_*.v",
        "rtl/control/cud_rx.v",
        "rtl/vector/*.v",
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/vc_mem_agent.v",
        "tb/hdl/tb_vc_core.v",
        "tb/hdl/tb_vc_core_links.sv",
    ],
    variants={"latencies": {"L1_LAT": 2, "ALAT": 18}, "short_alu": {"ALAT": 12}},
    slow_variants=("latencies", "short_alu"),
    timeout_cycles=50_000_000,
    wall_s=5400,
    mutations={
        "busy_ends_early": (
            "rtl/vector/vc_lanes_score.v",
            "if (last && mine) busy_q <= 1'b0;",
            "if (first && mine) busy_q <= 1'b0;",
        ),
        "stale_predicate": ("rtl/vector/vc_lanes_score.v", "assign p_busy[r] = busy_q;", "assign p_busy[r] = 1'b0;"),
        "no_tail": ("rtl/vector/vc_lanes_wb.v", "16'hFFFF : below(vl_q[3:0]);", "16'hFFFF : 16'hFFFF;"),
        "move_raw": (
            "rtl/vector/vc_seq.v",
            "(is_st || (is_move && !from_s)) && src_busy[src]",
            "(is_st || (is_move && !from_s)) && 1'b0",
        ),
        "move_waw": ("rtl/vector/vc_seq.v", "(is_move && !to_s)) && dst_busy[vd]", "(is_move && !to_s)) && 1'b0"),
        "loop_room": ("rtl/vector/vc_seq.v", "word[`KT_VC_LOOP_BODY] == 4'd0 || loop_end[9]", "1'b0"),
        "group_pc": ("rtl/vector/vc_seq.v", "(state_q == S_IMM || follows) ? head_pc_q : w_pc", "w_pc"),
        "constants": (
            "rtl/vector/vc_seq_check.v",
            "sb == `KT_VC_SRC_K && |word[12:11]",
            "sb == `KT_VC_SRC_K && word[12]",
        ),
        "event_once": (
            "rtl/vector/vc_env.v",
            "if (reports || event_q == 8'd0) event_q <= event_new;",
            "if (event_q == 8'd0) event_q <= event_new;",
        ),
        "first_event": (
            "rtl/vector/vc_env.v",
            "if (reports || event_q == 8'd0) event_q <= event_new;",
            "if (reports || event_new != 8'd0) event_q <= event_new;",
        ),
        "cycle_count": (
            "rtl/vector/vc_env.v",
            "if (open && is_run) cycles_q <= 32'd1;",
            "if (open && is_run) cycles_q <= 32'd0;",
        ),
        "clamp_tail": ("rtl/vector/vc_lanes_move.v", "|(clamped & live)", "|clamped"),
        "clamp_lost": ("rtl/vector/vc_core.v", "mem_err | {4'd0, clamp, 3'd0}", "mem_err"),
        "half_chunk": (
            "rtl/vector/vc_lanes_move.v",
            "{{8{ld_half[1]}}, {8{ld_half[0]}}",
            "{{8{ld_half[1]}}, {8{1'b1}}",
        ),
        "memory_place": ("rtl/vector/vc_core.v", ".MEM_X      (MEM_X)", ".MEM_X      (MEM_X + 1)"),
    },
    mutation_tests={
        "busy_ends_early": ["random_programs"],
        "stale_predicate": ["directed_kernels"],
        "no_tail": ["random_programs"],
        "move_raw": ["random_programs"],
        "move_waw": ["random_programs"],
        "loop_room": ["directed_kernels"],
        "group_pc": ["group_addresses"],
        "constants": ["directed_kernels"],
        "event_once": ["rejects"],
        "first_event": ["unmatched_responses"],
        "cycle_count": ["smoke"],
        "clamp_tail": ["clamp_flag"],
        "clamp_lost": ["clamp_flag"],
        "half_chunk": ["directed_kernels"],
        "memory_place": ["smoke"],
    },
)

ADD = """VSETMODE FLAT
S0 = 128
VSETVL S0
VFILL A0, L1 0
VBAR
VLD.FP16 v0, A1
VLD.FP16 v1, A2
VADD v2, v0, v1
VST.FP16 v2, A3
VDRAIN A4, L1 16"""


@cocotb.test()
async def smoke(dut):
    """The kernel of section 7.11: two operands from memory, their sum back."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.text(ADD)
    rig.describe(0, SOURCE, (32, 16))
    for ad, base in ((1, 0), (2, 8), (3, 16)):
        rig.describe(ad, base, (1, 8))
    rig.describe(4, TARGET, (32, 8))
    rig.go()
    rig.go(last=1)
    t = await rig.run()
    checks.equal("written words", len(t.of(4)), 16)
