# SPDX-License-Identifier: Apache-2.0
"""L2 adapter between a scripted endpoint and the memory agent (docs/spec/memory.md 11)."""

from benches.mag_adapter_t_flow import *  # noqa: F403
from benches.mag_adapter_t_window import *  # noqa: F403
from kohakubench import Bench
from kohakubench.dram import DRAM_PUBLIC
from kohakubench.mag_tb import SOURCES

BENCH = Bench(
    name="mag_adapter",
    top="tb_mag_adapter",
    sources=[
        *[s for s in SOURCES if not s.startswith("tb/")],
        "rtl/memory/mag_ad_window.v",
        "rtl/memory/mag_ad_regs.v",
        "rtl/memory/mag_ad_store.v",
        "rtl/memory/mag_adapter.v",
        "tb/hdl/flit_player.v",
        "tb/hdl/stall_gen.v",
        "tb/hdl/axi_dram_model.v",
        "tb/hdl/tb_mag_adapter.v",
        "tb/hdl/tb_mag_adapter_links.sv",
    ],
    slow_variants=("full",),
    variants={"full": {"DEPTH": 8192}, "pass": {"PASS": 1}},
    public=DRAM_PUBLIC,
    mutations={
        "always_on": ("rtl/memory/mag_ad_window.v", "touches = enable && tag_0", "touches = tag_0"),
        "straddle_served": ("rtl/memory/mag_ad_window.v", "(tag_0 != tag || tag_1 != tag)", "(tag_0 != tag)"),
        "last_line": (
            "rtl/memory/mag_ad_window.v",
            "{25'd0, lines, 5'd0} - 41'd1;",
            "{25'd0, lines, 5'd0};",
        ),
        "mesh_ignored": ("rtl/memory/mag_ad_regs.v", "q_value & BASE_MASK", "q_value & BASE_MASK & 40'hCFFFFFFFFF"),
        "ack_overtakes": (
            "rtl/memory/mag_adapter.v",
            "wire         ack_local = ord_valid && !ord_far;",
            "wire         ack_local = ord_valid && (!ord_far || ord_code != 4'd0 || resp_valid);",
        ),
        "pops_early": ("rtl/memory/mag_adapter.v", "(is_ack && quiet));", "is_ack);"),
        "old_value": (
            "rtl/memory/mag_ad_regs.v",
            "ENABLE:  value = {63'd0, enable_d};",
            "ENABLE:  value = {63'd0, enable_q};",
        ),
        "lost_unseen": ("rtl/memory/mag_ad_regs.v", "{req_valid && !room, status_event}", "{1'b0, status_event}"),
        "face_held": (
            "rtl/memory/mag_adapter.v",
            "assign r_take      = is_ctrl ||",
            "assign r_take      = (is_ctrl && to_rt_room) ||",
        ),
        "cut_unseen": (
            "rtl/memory/mag_adapter.v",
            "assign e_take = start_own ||",
            "assign e_take = cut || start_own ||",
        ),
        "far_left_open": (
            "rtl/memory/mag_adapter.v",
            "cut_far = wr_hit && open_q == PASSED;",
            "cut_far = 1'b0 && wr_hit && open_q == PASSED;",
        ),
        "credits": ("rtl/memory/mag_ad_store.v", "launch = run_q && flying_q != CREDITS;", "launch = run_q;"),
        "stream_tag": ("rtl/memory/mag_ad_store.v", "if (last_w) txn_q <= txn_q + 8'd1;", ""),
    },
    mutation_tests={
        "always_on": ["reset_state"],
        "straddle_served": ["edges"],
        "last_line": ["edges"],
        "mesh_ignored": ["reset_state"],
        "ack_overtakes": ["ack_order"],
        "pops_early": ["random_traffic"],
        "old_value": ["reset_state"],
        "lost_unseen": ["control_blocked"],
        "face_held": ["control_blocked"],
        "cut_unseen": ["protocol_errors"],
        "far_left_open": ["protocol_errors"],
        "credits": ["stalls"],
        "stream_tag": ["shapes"],
    },
    wall_s=300,
)
