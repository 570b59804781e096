# SPDX-License-Identifier: Apache-2.0
"""Vector core without its memory unit: envelope, sequencer, lanes; against the model."""

import cocotb

from benches.vc_seq_rig import Rig, codes
from benches.vc_seq_t_control import *  # noqa: F403
from benches.vc_seq_t_perf import *  # noqa: F403
from benches.vc_seq_t_vectors import *  # noqa: F403
from kohakubench import Bench, checks

SCORE, TIME, WB = (f"rtl/vector/vc_lanes_{part}.v" for part in ("score", "time", "wb"))
LANES, MOVE, RED = "rtl/vector/vc_lanes.v", "rtl/vector/vc_lanes_move.v", "rtl/vector/vc_lanes_red.v"
SEQ, CHECK, FETCH = (f"rtl/vector/vc_seq{part}.v" for part in ("", "_check", "_fetch"))
ENV = "rtl/vector/vc_env.v"

BENCH = Bench(
    name="vc_seq",
    top="tb_vc_seq",
    sources=[
        "rtl/common/ram_sdp.v",
        "rtl/common/fifo_sync.v",
        *(f"rtl/vector/vc_{p}.v" for p in ("stage", "seed_rom", "seed_prep", "prep", "scale", "poly", "product")),
        *(f"rtl/vector/vc_{p}.v" for p in ("align", "sum", "round", "alu", "f16_to_e8", "e8_to_f16")),
        "rtl/vector/vc_env.v",
        "rtl/vector/vc_seq*.v",
        "rtl/vector/vc_lanes*.v",
        "tb/hdl/vc_seq_mem.v",
        "tb/hdl/tb_vc_seq.v",
    ],
    params={"ALAT": 14},
    variants={"alat12": {"ALAT": 12}, "alat18": {"ALAT": 18}},
    slow_variants=("alat12", "alat18"),
    timeout_cycles=30_000_000,
    wall_s=2400,
    mutations={
        "no_raw": (SCORE, "fresh_q <= 1'b1;", "fresh_q <= 1'b0;"),
        "older_writer": (SCORE, "rel_reg == r && id_q == rel_id", "rel_reg == r"),
        "predicate_early": (
            SCORE,
            "else if (p_last_q && p_last_reg_q == r && id_q",
            "else if (p_last_reg_q == r && id_q",
        ),
        "deep_is_fast": (
            LANES,
            "? v_busy : v_fresh;\n    wire        reg_wait",
            "? v_fresh : v_fresh;\n    wire        reg_wait",
        ),
        "meets_d2": (TIME, "in4 || |v2_q[S-1:1] ||", "in4 ||"),
        "meets_d4": (TIME, "assign hold_d2   = in4 || |v4_q[2*S-1:1];", "assign hold_d2   = 1'b0;"),
        "frozen_marks": (TIME, "f_q  <= {f_q", "if (in2 || in4 || any2 || any4) f_q <= {f_q"),
        "second_pass": (TIME, "t_q[4*S+1] && !fin_top", "t_q[4*S+1]"),
        "one_read": ("rtl/vector/vc_lanes_issue.v", "beat_q ? v_q", "(beat_q && phase_q == 2'd0) ? v_q"),
        "gap": ("rtl/vector/vc_lanes_issue.v", "assign free    = !beat_q || last;", "assign free    = !beat_q;"),
        "control_stays": (SEQ, "slot_q <= slot_q + 4'd1;", "slot_q <= slot_q;"),
        "tail": (WB, ": below(vl_q[3:0]);", ": 16'hFFFF;"),
        "predicate_mode": (WB, "(pm_q == `KT_VC_PM_CLEAR) ? ~pbits", "(pm_q == `KT_VC_PM_CLEAR) ? pbits"),
        "compare_tail": (WB, "(pbits & ~lanes)", "16'd0"),
        "any_beyond": (WB, "|(red_p & in_vl)", "|red_p"),
        "identity": (RED, "24'hFF8000", "24'h808000"),
        "accumulator": (RED, "k_q <= k_q + 4'd1;", "k_q <= k_q + {3'd0, !half};"),
        "rotation": (MOVE, "rot_q[3] ? twice[743:192]", "rot_q[3] ? twice[551:0]"),
        "shuffle_mask": (MOVE, "(pm_q == `KT_VC_PM_SET) ? p_bits", "(pm_q == `KT_VC_PM_SET) ? 16'hFFFF"),
        "half_chunk": (MOVE, "{8{ld_half[1]}}, {8{ld_half[0]}}", "16'hFFFF"),
        "clamp_tail": (MOVE, "|(clamped & live)", "|clamped"),
        "move_overtakes": (LANES, "free && move_idle && !reg_wait", "free && !reg_wait"),
        "source_wait": (SEQ, "&& src_busy[src];", "&& 1'b0;"),
        "target_wait": (SEQ, "&& dst_busy[vd];", "&& 1'b0;"),
        "pred_wait": (SEQ, "(pred_use && pred_busy[pr])", "1'b0"),
        "halt_early": (SEQ, "!is_halt || (!g_valid_q && lanes_empty)", "1'b1"),
        "fault_early": (SEQ, "state_q == S_FAULT && !g_valid_q && lanes_empty", "state_q == S_FAULT"),
        "k3": (SEQ, "k_all = {k3_q,", "k_all = {24'd0,"),
        "length_wraps": (SEQ, "sa > 24'd128", "sa[7:0] > 8'd128"),
        "immediate_top": (SEQ, "(word[31:24] != 8'd0) ? `KT_VC_F_ENC : 8'd0", "8'd0"),
        "across_the_end": (SEQ, "else if (more && w_at_end) ", "else if (1'b0)              "),
        "unread_k": (CHECK, "(reads[1] && sb == `KT_VC_SRC_K", "(sb == `KT_VC_SRC_K"),
        "unread_c": (CHECK, "any_c = sa == `KT_VC_SRC_C || sb == `KT_VC_SRC_C ||", "any_c = sa == `KT_VC_SRC_C ||"),
        "check_order": (CHECK, "else if (tree && !vl_whole) code = `KT_VC_F_REDVL;", ""),
        "pass_too_many": (FETCH, "lp_left_q != 24'd1", "lp_left_q != 24'd0"),
        "wraps": (FETCH, "past    = addr == END_PC;", "past    = 1'b0;"),
        "last_event": (ENV, "if (reports || event_q == 8'd0)", "if (reports || event_new != 8'd0)"),
        "event_stays": (ENV, "if (reports || event_q == 8'd0)", "if (event_q == 8'd0)"),
        "field": (ENV, "is_desc && fld <= 3'd4", "is_desc"),
        "counts_done": (ENV, "cycles_q <= 32'd1;", "cycles_q <= 32'd2;"),
    },
    mutation_tests={
        "no_raw": ["chains"],
        "older_writer": ["hazards"],
        "predicate_early": ["predicates"],
        "deep_is_fast": ["chains"],
        "meets_d2": ["chains"],
        "meets_d4": ["chains"],
        "frozen_marks": ["chains"],
        "second_pass": ["known_reductions"],
        "one_read": ["chains"],
        "gap": ["gapless"],
        "control_stays": ["chains"],
        "tail": ["flat"],
        "predicate_mode": ["flat"],
        "compare_tail": ["flat"],
        "any_beyond": ["any_all"],
        "identity": ["reductions"],
        "accumulator": ["known_reductions"],
        "rotation": ["moves"],
        "shuffle_mask": ["moves"],
        "half_chunk": ["memory_faults"],
        "clamp_tail": ["moves"],
        "move_overtakes": ["hazards"],
        "source_wait": ["hazards"],
        "target_wait": ["hazards"],
        "pred_wait": ["predicates"],
        "halt_early": ["smoke"],
        "fault_early": ["faults"],
        "k3": ["flat"],
        "length_wraps": ["faults"],
        "immediate_top": ["faults"],
        "across_the_end": ["faults"],
        "unread_k": ["faults"],
        "unread_c": ["faults"],
        "check_order": ["faults"],
        "pass_too_many": ["loops"],
        "wraps": ["program_end"],
        "last_event": ["events"],
        "event_stays": ["events"],
        "field": ["envelope"],
        "counts_done": ["smoke"],
    },
)


@cocotb.test()
async def smoke(dut):
    """Registers in, one addition, registers out; the clearing walk in its limit."""
    rig = await Rig(dut).start()
    rig.registers(codes(rig.rng, (16, 128)))
    rig.kernel("VADD v2, v0, v1")
    rig.dump()
    await rig.play("smoke")
    checks.true("clearing walk", int(dut.clear_cycles.value) <= 600, str(int(dut.clear_cycles.value)))
