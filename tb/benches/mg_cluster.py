# SPDX-License-Identifier: Apache-2.0
"""Matmul cluster alone: one endpoint, a memory agent at its link, two stimulus streams."""

import cocotb

from benches.mg_ref import DRAIN, FILL, GEMM
from benches.mg_rig import Rig, operand_words
from benches.mg_t_data import *  # noqa: F403
from benches.mg_t_drain import *  # noqa: F403
from benches.mg_t_encode import *  # noqa: F403
from benches.mg_t_fill import *  # noqa: F403
from benches.mg_t_gemm import *  # noqa: F403
from benches.mg_t_perf import *  # noqa: F403
from benches.mg_t_system import *  # noqa: F403
from kohakubench import Bench, checks, clocks, seed

BENCH = Bench(
    name="mg_cluster",
    top="tb_mg_cluster",
    sources=[
        "rtl/common/*.v",
        "rtl/control/cu_*.v",
        "rtl/control/cud_rx.v",
        "rtl/matmul/*.v",
        "rtl/matmul/mg_datapath_sva.sv",
        "rtl/matmul/mg_unit_sva.sv",
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/mg_mem_agent.v",
        "tb/hdl/tb_mg_cluster.v",
        "tb/hdl/tb_mg_cluster_links.sv",
    ],
    variants={
        "one_bank": {"TILE_BANKS": 1},
        "latencies": {"TILE_LAT": 1, "L1_LAT": 2, "MAX_INFLIGHT": 4},
        "inflight8": {"MAX_INFLIGHT": 8},
        "rowmajor": {"ROWMAJOR": 1},
    },
    slow_variants=("one_bank", "latencies", "inflight8", "rowmajor"),
    mutations={
        "read_error": (
            "rtl/matmul/mg_fill.v",
            "if (ours && bad_word) err_q <= 1'b1;",
            "if (1'b0) err_q <= 1'b1;",
        ),
        "duplicate_word": ("rtl/matmul/mg_fill.v", "&& ((mask_q & bit_of) == 4'd0));", "&& 1'b1);"),
        "placement": ("rtl/matmul/mg_l1.v", "223 - 7*(4*e + l) -: 7", "223 - 7*(8*l + e) -: 7"),
        "war": ("rtl/matmul/mg_hazard.v", "|| (run && ({1'b0, fill_lo}", "|| (1'b0 && ({1'b0, fill_lo}"),
        "recv_hold": ("rtl/matmul/mg_hazard.v", "assign recv_hold = run &&", "assign recv_hold = 1'b0 &&"),
        "node_end": ("rtl/matmul/mg_decode.v", "node_end > 17'd65536", "node_end >= 17'd65536"),
        "short_product": ("rtl/matmul/mg_decode.v", "{8'd0, gm} * {8'd0, gn}", "{8'd0, gm * gn}"),
        "partition": ("rtl/matmul/mg_burst.v", "c_last || (c_pos_q == 3'd7)", "c_last || (c_pos_q == 3'd6)"),
        "last_waits": ("rtl/matmul/mg_retire.v", "&& (!last || burst_idle)", "&& (!last || 1'b1)"),
        "owner": ("rtl/matmul/mg_retire.v", "last || (is_drain && !refused)", "last"),
        "report_once": ("rtl/matmul/mg_retire.v", "else if (retire && !own_fault) pend_q <= 1'b0;", ""),
        "reuse": ("rtl/matmul/mg_sweep.v", "hist_v_q[i] && (", "1'b0 && ("),
        "emit_block": ("rtl/matmul/mg_sweep.v", "emit_q && last_k", "emit_q && (k_q == 8'd0)"),
        "offer_kept": ("rtl/control/cu_send.v", "lock_q <= send_valid && !send_ready", "lock_q <= 1'b0"),
        "stream_order": (
            "rtl/matmul/mg_peer.v",
            "drain_all || ({1'b0, t} < drain_t)",
            "1'b1 || ({1'b0, t} < drain_t)",
        ),
        "context": ("rtl/matmul/mg_unit.v", "&& (!armed_emit || ctx_free)", "&& 1'b1"),
    },
    mutation_tests={
        "read_error": ["fill_errors"],
        "duplicate_word": ["fill_stray_words"],
        "placement": ["smoke"],
        "war": ["fill_under_sweep"],
        "recv_hold": ["burst_under_sweep"],
        "node_end": ["limits"],
        "short_product": ["limits"],
        "partition": ["memory_sizes"],
        "last_waits": ["emit_batches"],
        "owner": ["refused_writes"],
        "report_once": ["async_reports"],
        "reuse": ["shapes"],
        "emit_block": ["shapes"],
        "offer_kept": ["random_busy"],
        "stream_order": ["peer_order"],
        "context": ["emit_batches"],
    },
)


@cocotb.test()
async def smoke(dut):
    """FILL both sides, one GEMM, DRAIN to memory: bits as computed."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.memory[:1024] = operand_words(rig.rng, 1024)
    rig.op(FILL, 0x0000, n=8)
    rig.op(FILL, 0x4000, n=6, sel=1)
    rig.op(GEMM, gm=4, gn=3, nk=2)
    rig.op(DRAIN, 0x10000, n=12, last=1)
    t = await rig.run()
    checks.equal("reads", len(t.reads), 2)
