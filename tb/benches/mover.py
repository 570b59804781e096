# SPDX-License-Identifier: Apache-2.0
"""Memory mover behind the memory agent, against the reference mover (docs/spec/memory.md 12)."""

from benches.mover_t_faults import *  # noqa: F403
from benches.mover_t_flow import *  # noqa: F403
from benches.mover_t_modes import *  # noqa: F403
from kohakubench import Bench
from kohakubench.mag_tb import MOVER_SOURCES, PUBLIC, SOURCES

BENCH = Bench(
    name="mover",
    top="tb_mag",
    sources=[*SOURCES, *MOVER_SOURCES],
    params={"MOVER": 1, "STAGE": 1, "STAGE_ENTRIES": 512, "DRAM_LOG2": 17},
    slow_variants=("mesh2",),
    variants={"mesh2": {"MESH_ID": 2, "STAGE_PIPE": 0, "RD_OUT": 1}},
    public=PUBLIC,
    mutations={
        "short_sum": ("rtl/memory/mov_walk.v", "sum + {{24{stride[31]}}, stride}", "sum + {24'd0, stride}"),
        "axis_sign": (
            "rtl/memory/mov_walk.v",
            "{{20{jump[15]}}, jump};\n        if (axis == 2'd2)",
            "{20'd0, jump};\n        if (axis == 2'd2)",
        ),
        "outer_first": (
            "rtl/memory/mov_walk.v",
            "from_q[56*e +: 56]  <= sum;",
            "from_q[56*e +: 56]  <= e == {29'd0, who} ? sum : from_q[56*e +: 56];",
        ),
        "extent_zero": ("rtl/memory/mov_walk.v", "windows[31:16] == 16'd0 || (axis0", "(axis0"),
        "pad_lost": ("rtl/memory/mov_steps.v", "is_gather || (is_copy && s_valid);", "is_gather || is_copy;"),
        "source_unchecked": (
            "rtl/memory/mov_steps.v",
            "s_far  = asking ? index_q[40] : is_gather ? g_addr[65:40] != 26'd0 : w_addr[55:40] != 16'd0;",
            "s_far  = 1'b0;",
        ),
        "row_order": ("rtl/memory/mov_gather.v", "word[32*row_q[2:0] +: 32]", "word[32*(3'd7 - row_q[2:0]) +: 32]"),
        "pitch_signed": (
            "rtl/memory/mov_gather.v",
            "{32'd0, index_q} * {32'd0, pitch}",
            "{32'd0, index_q} * {{32{pitch[31]}}, pitch}",
        ),
        "philox_key": ("rtl/memory/mov_prng.v", "b_key_q[63:32] + `KT_MEM_PHILOX_W1", "b_key_q[63:32]"),
        "page_read": ("rtl/memory/mov_read.v", "run_next_q[6:0] != 7'd0 && ", ""),
        "cap_ignored": (
            "rtl/memory/mov_write.v",
            "run_next_q[6:0] != 7'd0 && run_len_q < cap;",
            "run_next_q[6:0] != 7'd0;",
        ),
        "coalesce_always": ("rtl/memory/mov_write.v", "joins  = coalesce && word", "joins  = word"),
        "busy_early": ("rtl/memory/mov_write.v", "assign idle = !out_valid && !wr_valid", "assign idle = !wr_valid"),
        "queue_runs_on": (
            "rtl/memory/mov_regs.v",
            "assign take            = q_valid && !run_q;",
            "assign take            = q_valid && (!run_q || q_reg == IMM);",
        ),
        "sticky_lost": (
            "rtl/memory/mov_engine.v",
            "if (over && fault != `KT_MV_F_NONE) sticky_q <= 1'b1;",
            "if (go) sticky_q <= 1'b0;\n            else if (over && fault != `KT_MV_F_NONE) sticky_q <= 1'b1;",
        ),
        "bus_error_lost": ("rtl/memory/mov_read.v", "else if (rsp_valid && rsp_err) bad <= 1'b1;", ""),
        "write_error_lost": ("rtl/memory/mov_write.v", "else if (done_valid && done_err) bad <= 1'b1;", ""),
    },
    mutation_tests={
        "short_sum": ["copy_shapes"],
        "axis_sign": ["padding"],
        "outer_first": ["copy_shapes"],
        "extent_zero": ["copy_shapes"],
        "pad_lost": ["padding"],
        "source_unchecked": ["every_fault"],
        "row_order": ["gather"],
        "pitch_signed": ["gather"],
        "philox_key": ["generate"],
        "page_read": ["copy_shapes"],
        "cap_ignored": ["caps"],
        "coalesce_always": ["caps"],
        "busy_early": ["visible_when_idle"],
        "queue_runs_on": ["queued"],
        "sticky_lost": ["every_fault"],
        "bus_error_lost": ["bus_errors"],
        "write_error_lost": ["bus_errors"],
    },
    wall_s=400,
)
