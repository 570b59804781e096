// SPDX-License-Identifier: Apache-2.0
// mg_cluster: matmul cluster endpoint: the shell and the matmul unit on one mesh
// link pair (docs/spec/cluster.md, docs/spec/fabric.md 5).
//
// C[4g+i][4h+j] += sum_k A[4g+i][k] * B[k][4h+j] on MXFP7 operands, FP16 out,
// 512 MAC per cycle. Latencies: cluster.md 10.1.
//
// CU_X, CU_Y    own coordinate            MEM_X, MEM_Y  memory port of this unit
// TILES         power of two 16..4096     GA, GB        powers of two 32..512
// ACC_MW        10, 11, 12, 14, 16        TILE_BANKS    1, 2
// L1_LAT        1..2                      TILE_LAT      1..2
// INST_DEPTH, RECV_DEPTH  powers of two   MAX_INFLIGHT  1..8
// ACKQ_DEPTH    power of two >= TILES/4   EMIT_BUF      power of two >= TILES
// FILL_OUT      1..4                      FILL_WDOG, PEER_WDOG  cycles, 0 = off
// ROWMAJOR      0, 1: the optional row-major drain
// MODEL         1 portable, 0 packed DSP form
// With MAX_INFLIGHT > 1 the unit still takes one instruction at a time.
`default_nettype none
`include "ktpu_defs.vh"

module mg_cluster #(
    parameter CU_X         = 2,
    parameter CU_Y         = 1,
    parameter MEM_X        = 0,
    parameter MEM_Y        = 1,
    parameter CU_VERSION   = `KT_CU_VERSION,
    parameter TILES        = 512,
    parameter GA           = 512,
    parameter GB           = 512,
    parameter ACC_MW       = 14,
    parameter INST_DEPTH   = 32,
    parameter RECV_DEPTH   = 64,
    parameter MAX_INFLIGHT = 1,
    parameter ACKQ_DEPTH   = (TILES / 4 < 16) ? 16 : TILES / 4,
    parameter L1_PRIM      = "block",
    parameter L1_LAT       = 1,
    parameter TILE_PRIM    = "block",
    parameter TILE_LAT     = 2,
    parameter TILE_BANKS   = 2,
    parameter FILL_OUT     = 4,
    parameter EMIT_BUF     = TILES,
    parameter FILL_WDOG    = 1048576,
    parameter PEER_WDOG    = 65536,
    parameter ROWMAJOR     = 0,
    parameter MODEL        = 1
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy,

    output wire [15:0]  dbg_fills,
    output wire [15:0]  dbg_gemms,
    output wire [15:0]  dbg_drains
);

    generate
        if (MEM_X < 0 || MEM_X > 15 || MEM_Y < 0 || MEM_Y > 15
            || GA < 32 || GA > 512 || (GA & (GA - 1)) != 0
            || GB < 32 || GB > 512 || (GB & (GB - 1)) != 0
            || EMIT_BUF < TILES || (EMIT_BUF & (EMIT_BUF - 1)) != 0
            || ACKQ_DEPTH < TILES / 4 || L1_LAT < 1 || L1_LAT > 2
            || FILL_OUT < 1 || FILL_OUT > 4 || ROWMAJOR < 0 || ROWMAJOR > 1
            || PEER_WDOG > 16777215) begin : g_illegal
            mg_cluster_illegal_parameters u_stop ();
        end
    endgenerate

    wire [287:0] inst_flit, send_flit, recv_flit;
    wire         inst_valid, inst_ready, send_valid, send_ready, recv_valid, recv_ready;
    wire         exec_done, exec_fault, exec_cover, busy_unused;
    wire [31:0]  exec_result;
    wire [63:0]  dbg_ctr;
    wire [7:0]   unit_err;
    wire [15:0]  inst_space_unused;

    cu_base #(
        .POS_X        (CU_X),
        .POS_Y        (CU_Y),
        .CU_TYPE      (`KT_MG_CU_TYPE),
        .CU_VERSION   (CU_VERSION),
        .N_BUFFERS    (`KT_MG_N_BUFFERS),
        .INST_DEPTH   (INST_DEPTH),
        .RECV_DEPTH   (RECV_DEPTH),
        .MAX_INFLIGHT (MAX_INFLIGHT),
        .ACK_FENCE    (1),
        .RD_ERR_FAULT (0),
        .FEATURES     (ROWMAJOR)
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
        .exec_cover    (exec_cover),
        .send_flit     (send_flit),
        .send_valid    (send_valid),
        .send_ready    (send_ready),
        .recv_flit     (recv_flit),
        .recv_valid    (recv_valid),
        .recv_ready    (recv_ready),
        .dbg_ctr       (dbg_ctr),
        .unit_err      (unit_err),
        .inst_space    (inst_space_unused),
        .busy          (busy_unused)
    );

    mg_unit #(
        .CU_X       (CU_X[3:0]),
        .CU_Y       (CU_Y[3:0]),
        .MEM_X      (MEM_X[3:0]),
        .MEM_Y      (MEM_Y[3:0]),
        .TILES      (TILES),
        .GA         (GA),
        .GB         (GB),
        .ACC_MW     (ACC_MW),
        .ACKQ_DEPTH (ACKQ_DEPTH),
        .L1_PRIM    (L1_PRIM),
        .L1_LAT     (L1_LAT),
        .TILE_PRIM  (TILE_PRIM),
        .TILE_LAT   (TILE_LAT),
        .TILE_BANKS (TILE_BANKS),
        .EMIT_BUF   (EMIT_BUF),
        .FILL_WDOG  (FILL_WDOG),
        .PEER_WDOG  (PEER_WDOG),
        .ROWMAJOR   (ROWMAJOR),
        .MODEL      (MODEL)
    ) u_unit (
        .clk         (clk),
        .rst_n       (rst_n),
        .inst_flit   (inst_flit),
        .inst_valid  (inst_valid),
        .inst_ready  (inst_ready),
        .exec_done   (exec_done),
        .exec_fault  (exec_fault),
        .exec_result (exec_result),
        .exec_cover  (exec_cover),
        .send_flit   (send_flit),
        .send_valid  (send_valid),
        .send_ready  (send_ready),
        .recv_flit   (recv_flit),
        .recv_valid  (recv_valid),
        .recv_ready  (recv_ready),
        .dbg_ctr     (dbg_ctr),
        .unit_err    (unit_err),
        .dbg_fills   (dbg_fills),
        .dbg_gemms   (dbg_gemms),
        .dbg_drains  (dbg_drains)
    );

endmodule

`default_nettype wire
