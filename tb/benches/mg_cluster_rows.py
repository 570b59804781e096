# SPDX-License-Identifier: Apache-2.0
"""Matmul cluster with the optional row-major DRAIN (docs/spec/cluster.md 5.6)."""

from benches.mg_cluster import BENCH as PLAIN
from benches.mg_t_drain import blocked_link, memory_sizes, node_forms, random_busy, sweep_never_waits  # noqa: F401
from benches.mg_t_rows import *  # noqa: F403
from kohakubench import Bench

BENCH = Bench(
    name="mg_cluster_rows",
    top="tb_mg_cluster",
    sources=list(PLAIN.sources),
    params={"ROWMAJOR": 1},
    variants={
        "one_bank": {"TILE_BANKS": 1, "TILE_LAT": 1, "L1_LAT": 2},
        "inflight8": {"MAX_INFLIGHT": 8},
        "tiles16": {"TILES": 16},
        "tiles4096": {"TILES": 4096},
    },
    slow_variants=("one_bank", "inflight8", "tiles16", "tiles4096"),
    mutations={
        "rotate_in": (
            "rtl/matmul/mg_row_queue.v",
            "{in_data[191:0], in_data[255:192], at2, at1, at0, at3}",
            "{in_data, at3, at2, at1, at0}",
        ),
        "rotate_out": ("rtl/matmul/mg_row_queue.v", "if (read) rot_q <= row_q;", "if (read) rot_q <= 2'd0;"),
        "group_step": ("rtl/matmul/mg_row_queue.v", "(group ? step3 : ", "(1'b0 ? step3 : "),
        "early_read": ("rtl/matmul/mg_row_queue.v", "(!rows || (m_q == 2'd3))", "(!rows || (m_q == 2'd2))"),
        "word_kept": ("rtl/matmul/mg_row_queue.v", "(!valid_q || out_ready);", "1'b1;"),
        "word_reset": ("rtl/matmul/mg_row_queue.v", "valid_q   <= 1'b0;", "valid_q   <= valid_q;"),
        "row_end": ("rtl/matmul/mg_burst.v", "(c_pos_q == 3'd7) || row_ends", "(c_pos_q == 3'd7)"),
        "pitch": ("rtl/matmul/mg_row_runs.v", "next_q + {13'd0, pitch_q, 5'd0}", "next_q + {13'd0, pitch_q, 5'd1}"),
        "high_address": (
            "rtl/matmul/mg_row_runs.v",
            "next_q + {13'd0, pitch_q, 5'd0}",
            "{next_q[39:33], next_q[32:0] + {6'd0, pitch_q, 5'd0}}",
        ),
        "apart": ("rtl/matmul/mg_burst.v", "(rows && (pitch != {16'd0, quads}))", "(rows)"),
        "overlap": ("rtl/matmul/mg_row_check.v", "pitch < {16'd0, quads}", "1'b0"),
        "remainder": ("rtl/matmul/mg_row_check.v", "|| (rem_q != 6'd0)", ""),
        "reserved": ("rtl/matmul/mg_row_check.v", "(reserved != 40'd0)", "(reserved[38:0] != 39'd0)"),
        "last_granule": ("rtl/matmul/mg_row_check.v", "> LIMIT;", ">= LIMIT;"),
        "send_form": ("rtl/matmul/mg_decode.v", "(rows_bad || is_send)", "(rows_bad)"),
        "wait_check": ("rtl/matmul/mg_decode.v", "!rows || rows_done;", "1'b1;"),
    },
    mutation_tests={
        "rotate_in": ["row_shapes"],
        "rotate_out": ["row_shapes"],
        "group_step": ["row_shapes"],
        "early_read": ["row_random"],
        "word_kept": ["row_full"],
        "word_reset": ["row_reset"],
        "row_end": ["row_shapes"],
        "pitch": ["row_shapes"],
        "high_address": ["row_addresses"],
        "apart": ["row_shapes"],
        "overlap": ["row_violations"],
        "remainder": ["row_violations"],
        "reserved": ["row_violations"],
        "last_granule": ["row_violations"],
        "send_form": ["row_violations"],
        "wait_check": ["row_violations"],
    },
)
