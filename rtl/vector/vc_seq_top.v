// SPDX-License-Identifier: Apache-2.0
// vc_seq_top: the vector core without its memory unit: envelope, sequencer and
// lanes (docs/spec/vector.md 1.1).
//
// ALAT: 12..18.
`default_nettype none
`include "ktpu_defs.vh"

module vc_seq_top #(
    parameter ALAT = 14
) (
    input  wire         clk,
    input  wire         rst_n,

    // shell
    input  wire [287:0] inst_flit,
    input  wire         inst_valid,
    output wire         inst_ready,
    output wire         exec_done,
    output wire         exec_fault,
    output wire [31:0]  exec_result,
    output wire [63:0]  dbg_ctr,

    input  wire         mem_clear_done,
    output wire         ready,          // every clearing walk has ended

    output wire         desc_we,
    output wire [2:0]   desc_ad,
    output wire [2:0]   desc_fld,
    output wire [39:0]  desc_value,

    input  wire         ev_cudata,
    input  wire         ev_aresp,
    output wire         clamp,          // of VCVT

    // memory unit
    output wire         cmd_valid,
    input  wire         cmd_ready,
    output wire [2:0]   cmd_op,
    output wire [31:0]  cmd_word,
    output wire [7:0]   cmd_vl,
    input  wire         rsp_valid,
    input  wire [7:0]   rsp_fault,
    input  wire         ld_valid,
    input  wire [2:0]   ld_chunk,
    input  wire [1:0]   ld_half,        // lanes 0..7, 8..15
    input  wire [383:0] ld_data,
    input  wire         st_rd,
    input  wire [2:0]   st_chunk,
    output wire [383:0] st_data
);

    wire        imem_we, run_start, run_done, beat, seq_stall, lane_stall, lanes_clear;
    wire [8:0]  imem_addr, run_pc, run_fault_pc;
    wire [31:0] imem_word;
    wire [7:0]  run_fault;

    vc_env u_env (
        .clk          (clk),
        .rst_n        (rst_n),
        .cleared      (mem_clear_done && lanes_clear),
        .ready        (ready),
        .inst_flit    (inst_flit),
        .inst_valid   (inst_valid),
        .inst_ready   (inst_ready),
        .exec_done    (exec_done),
        .exec_fault   (exec_fault),
        .exec_result  (exec_result),
        .dbg_ctr      (dbg_ctr),
        .imem_we      (imem_we),
        .imem_addr    (imem_addr),
        .imem_word    (imem_word),
        .desc_we      (desc_we),
        .desc_ad      (desc_ad),
        .desc_fld     (desc_fld),
        .desc_value   (desc_value),
        .run_start    (run_start),
        .run_pc       (run_pc),
        .run_done     (run_done),
        .run_fault    (run_fault),
        .run_fault_pc (run_fault_pc),
        .ev_cudata    (ev_cudata),
        .ev_aresp     (ev_aresp),
        .beat         (beat),
        .stall        (seq_stall || lane_stall)
    );

    wire        g_valid, g_accept, g_red, g_cmp;
    wire [4:0]  g_op;
    wire [1:0]  g_mode, g_pr, g_pm;
    wire [3:0]  g_kind, g_n, g_vd, g_slot;
    wire [2:0]  g_v;
    wire [11:0] g_vr;
    wire [71:0] g_k;
    wire [7:0]  g_vl;
    wire [3:1]  t_we;
    wire [79:0] t_ctl;
    wire        mv_start, mv_cvt, mv_from_s, mv_to_s, mv_done;
    wire [3:0]  mv_rot;
    wire [23:0] mv_s, mv_value, red_value;
    wire        read_free, move_idle, lanes_empty, red_done, pred_any, pred_all;
    wire [15:0] src_busy, dst_busy;
    wire [3:0]  pred_busy, cmd_n;

    vc_seq u_seq (
        .clk          (clk),
        .rst_n        (rst_n),
        .imem_we      (imem_we),
        .imem_addr    (imem_addr),
        .imem_word    (imem_word),
        .run_start    (run_start),
        .run_pc       (run_pc),
        .run_done     (run_done),
        .run_fault    (run_fault),
        .run_fault_pc (run_fault_pc),
        .stall        (seq_stall),
        .g_valid      (g_valid),
        .g_accept     (g_accept),
        .g_op         (g_op),
        .g_mode       (g_mode),
        .g_red        (g_red),
        .g_kind       (g_kind),
        .g_v          (g_v),
        .g_vr         (g_vr),
        .g_k          (g_k),
        .g_vl         (g_vl),
        .g_n          (g_n),
        .g_vd         (g_vd),
        .g_pr         (g_pr),
        .g_pm         (g_pm),
        .g_cmp        (g_cmp),
        .g_slot       (g_slot),
        .t_we         (t_we),
        .t_ctl        (t_ctl),
        .mv_start     (mv_start),
        .mv_cvt       (mv_cvt),
        .mv_from_s    (mv_from_s),
        .mv_to_s      (mv_to_s),
        .mv_rot       (mv_rot),
        .mv_s         (mv_s),
        .mv_done      (mv_done),
        .mv_value     (mv_value),
        .read_free    (read_free),
        .move_idle    (move_idle),
        .lanes_empty  (lanes_empty),
        .src_busy     (src_busy),
        .dst_busy     (dst_busy),
        .pred_busy    (pred_busy),
        .red_done     (red_done),
        .red_value    (red_value),
        .pred_any     (pred_any),
        .pred_all     (pred_all),
        .cmd_valid    (cmd_valid),
        .cmd_ready    (cmd_ready),
        .cmd_op       (cmd_op),
        .cmd_word     (cmd_word),
        .cmd_vl       (cmd_vl),
        .cmd_n        (cmd_n),
        .rsp_valid    (rsp_valid),
        .rsp_fault    (rsp_fault)
    );

    wire is_shuf = cmd_word[`KT_VC_SHUF_OP] == `KT_VC_OP_VSHUF;

    vc_lanes #(.ALAT(ALAT)) u_lanes (
        .clk        (clk),
        .rst_n      (rst_n),
        .clear_done (lanes_clear),
        .beat       (beat),
        .stall      (lane_stall),
        .clamp      (clamp),
        .g_valid    (g_valid),
        .g_accept   (g_accept),
        .g_op       (g_op),
        .g_mode     (g_mode),
        .g_red      (g_red),
        .g_kind     (g_kind),
        .g_v        (g_v),
        .g_vr       (g_vr),
        .g_k        (g_k),
        .g_vl       (g_vl),
        .g_n        (g_n),
        .g_vd       (g_vd),
        .g_pr       (g_pr),
        .g_pm       (g_pm),
        .g_cmp      (g_cmp),
        .g_slot     (g_slot),
        .t_we       (t_we),
        .t_ctl      (t_ctl),
        .mv_start   (mv_start),
        .mv_cvt     (mv_cvt),
        .mv_from_s  (mv_from_s),
        .mv_to_s    (mv_to_s),
        .mv_rot     (mv_rot),
        .mv_s       (mv_s),
        .w_vd       (cmd_word[`KT_VC_LDST_VD]),
        .w_va       (cmd_word[`KT_VC_CVT_VA]),
        .w_pr       (cmd_word[`KT_VC_SHUF_PR]),
        .w_pm       (is_shuf ? cmd_word[`KT_VC_SHUF_PM] : 2'd0),
        .w_vl       (cmd_vl),
        .w_n        (cmd_n),
        .mv_done    (mv_done),
        .mv_value   (mv_value),
        .read_free  (read_free),
        .move_idle  (move_idle),
        .empty      (lanes_empty),
        .src_busy   (src_busy),
        .dst_busy   (dst_busy),
        .pred_busy  (pred_busy),
        .red_done   (red_done),
        .red_value  (red_value),
        .pred_any   (pred_any),
        .pred_all   (pred_all),
        .ld_valid   (ld_valid),
        .ld_chunk   (ld_chunk),
        .ld_half    (ld_half),
        .ld_data    (ld_data),
        .st_rd      (st_rd),
        .st_chunk   (st_chunk),
        .st_data    (st_data)
    );

endmodule

`default_nettype wire
