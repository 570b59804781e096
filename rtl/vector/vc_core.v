// SPDX-License-Identifier: Apache-2.0
// vc_core: vector core endpoint: the shell, the sequencer with its lanes and the
// memory unit on one mesh link pair (docs/spec/vector.md, docs/spec/fabric.md 5).
//
// Kernels of 32-bit words over 16 vector registers of up to 128 elements, 16
// lanes of one fused multiply-add each; FP16 and FP32 in memory, E8M15 inside.
// Latencies and cycle counts: vector.md 16.2.
//
// CU_X, CU_Y    own coordinate            MEM_X, MEM_Y  memory port of this unit
// INST_DEPTH, RECV_DEPTH  powers of two   ACKQ_DEPTH    power of two >= 64
// L1_PRIM       "distributed", "block", "ultra"         L1_LAT 1..2
// ALAT          12..18                    FILL_WDOG     cycles, 0 = off
// MX_STORE      0, 1: VDRAIN can quantise to MXFP7 (vector.md 15)
// MODEL         1 (the form of DSP primitives is not part of this build)
`default_nettype none
`include "ktpu_defs.vh"

module vc_core #(
    parameter CU_X       = 1,
    parameter CU_Y       = 0,
    parameter MEM_X      = 0,
    parameter MEM_Y      = 1,
    parameter CU_VERSION = `KT_CU_VERSION,
    parameter INST_DEPTH = `KT_VC_INST_DEPTH,
    parameter RECV_DEPTH = `KT_VC_RECV_DEPTH,
    parameter ACKQ_DEPTH = `KT_VC_ACKQ_DEPTH_MIN,
    parameter L1_PRIM    = "block",
    parameter L1_LAT     = 1,
    parameter ALAT       = `KT_VC_ALAT,
    parameter FILL_WDOG  = `KT_VC_FILL_WDOG_DEFAULT,
    parameter MX_STORE   = `KT_VC_MX_STORE_DEFAULT,
    parameter MODEL      = 1
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy
);

    generate
        if ((MX_STORE != 0 && MX_STORE != 1) || MODEL != 1) begin : g_illegal
            vc_core_illegal_parameters u_stop ();
        end
    endgenerate

    wire [287:0] inst_flit, send_flit, recv_flit;
    wire         inst_valid, inst_ready, send_valid, send_ready, recv_valid, recv_ready;
    wire         exec_done, exec_fault, busy_unused;
    wire [31:0]  exec_result;
    wire [63:0]  dbg_ctr;
    wire [7:0]   mem_err;
    wire         clamp;
    wire [15:0]  inst_space_unused;

    cu_base #(
        .POS_X        (CU_X),
        .POS_Y        (CU_Y),
        .CU_TYPE      (`KT_VC_CU_TYPE),
        .CU_VERSION   (CU_VERSION),
        .N_BUFFERS    (`KT_VC_N_BUFFERS),
        .INST_DEPTH   (INST_DEPTH),
        .RECV_DEPTH   (RECV_DEPTH),
        .MAX_INFLIGHT (`KT_VC_MAX_INFLIGHT),
        .ACK_FENCE    (1),
        .RD_ERR_FAULT (0),
        .FEATURES     (MX_STORE)
    ) u_shell (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (noc_in_valid),
        .noc_in_data   (noc_in_data),
        .noc_in_busy   (noc_in_busy),
        .noc_out_valid (noc_out_valid),
        .noc_out_data  (noc_out_data),
        .noc_out_busy  (noc_out_busy),
        .inst_flit     (inst_flit),
        .inst_valid    (inst_valid),
        .inst_ready    (inst_ready),
        .exec_done     (exec_done),
        .exec_fault    (exec_fault),
        .exec_result   (exec_result),
        .exec_cover    (1'b1),
        .send_flit     (send_flit),
        .send_valid    (send_valid),
        .send_ready    (send_ready),
        .recv_flit     (recv_flit),
        .recv_valid    (recv_valid),
        .recv_ready    (recv_ready),
        .dbg_ctr       (dbg_ctr),
        .unit_err      (mem_err | {4'd0, clamp, 3'd0}),
        .inst_space    (inst_space_unused),
        .busy          (busy_unused)
    );

    wire         mem_clear_done, ready, desc_we, ev_cudata, ev_aresp;
    wire [2:0]   desc_ad, desc_fld;
    wire [39:0]  desc_value;
    wire         cmd_valid, cmd_ready, rsp_valid, ld_valid, st_rd;
    wire [2:0]   cmd_op, ld_chunk, st_chunk;
    wire [31:0]  cmd_word;
    wire [7:0]   cmd_vl, rsp_fault;
    wire [1:0]   ld_half;
    wire [383:0] ld_data, st_data;

    vc_seq_top #(.ALAT(ALAT)) u_seq (
        .clk            (clk),
        .rst_n          (rst_n),
        .inst_flit      (inst_flit),
        .inst_valid     (inst_valid),
        .inst_ready     (inst_ready),
        .exec_done      (exec_done),
        .exec_fault     (exec_fault),
        .exec_result    (exec_result),
        .dbg_ctr        (dbg_ctr),
        .mem_clear_done (mem_clear_done),
        .ready          (ready),
        .desc_we        (desc_we),
        .desc_ad        (desc_ad),
        .desc_fld       (desc_fld),
        .desc_value     (desc_value),
        .ev_cudata      (ev_cudata),
        .ev_aresp       (ev_aresp),
        .clamp          (clamp),
        .cmd_valid      (cmd_valid),
        .cmd_ready      (cmd_ready),
        .cmd_op         (cmd_op),
        .cmd_word       (cmd_word),
        .cmd_vl         (cmd_vl),
        .rsp_valid      (rsp_valid),
        .rsp_fault      (rsp_fault),
        .ld_valid       (ld_valid),
        .ld_chunk       (ld_chunk),
        .ld_half        (ld_half),
        .ld_data        (ld_data),
        .st_rd          (st_rd),
        .st_chunk       (st_chunk),
        .st_data        (st_data)
    );

    wire [31:0] port_stalls_unused, fill_words_unused, drain_words_unused;

    vc_mem #(
        .CU_X       (CU_X),
        .CU_Y       (CU_Y),
        .MEM_X      (MEM_X),
        .MEM_Y      (MEM_Y),
        .L1_PRIM    (L1_PRIM),
        .L1_LAT     (L1_LAT),
        .FILL_WDOG  (FILL_WDOG),
        .ACKQ_DEPTH (ACKQ_DEPTH),
        .MX_STORE   (MX_STORE)
    ) u_mem (
        .clk              (clk),
        .rst_n            (rst_n),
        .all_clear        (ready),
        .clear_done       (mem_clear_done),
        .cmd_valid        (cmd_valid),
        .cmd_ready        (cmd_ready),
        .cmd_op           (cmd_op),
        .cmd_word         (cmd_word),
        .cmd_vl           (cmd_vl),
        .rsp_valid        (rsp_valid),
        .rsp_fault        (rsp_fault),
        .ld_valid         (ld_valid),
        .ld_chunk         (ld_chunk),
        .ld_half          (ld_half),
        .ld_data          (ld_data),
        .st_rd            (st_rd),
        .st_chunk         (st_chunk),
        .st_data          (st_data),
        .desc_we          (desc_we),
        .desc_ad          (desc_ad),
        .desc_fld         (desc_fld),
        .desc_value       (desc_value),
        .recv_flit        (recv_flit),
        .recv_valid       (recv_valid),
        .recv_ready       (recv_ready),
        .send_flit        (send_flit),
        .send_valid       (send_valid),
        .send_ready       (send_ready),
        .ev_cudata        (ev_cudata),
        .ev_aresp         (ev_aresp),
        .unit_err         (mem_err),
        .stat_port_stalls (port_stalls_unused),
        .stat_fill_words  (fill_words_unused),
        .stat_drain_words (drain_words_unused)
    );

endmodule

`default_nettype wire
