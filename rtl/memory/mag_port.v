// SPDX-License-Identifier: Apache-2.0
// mag_port: one memory port of the agent: intake, read engine, write engine and
// the output register they share.
//
// Latency    as in mag_read and mag_write, plus 1 cycle of output register.
// Throughput one flit per cycle in each direction.
// Output     responses and acknowledgements alternate while both wait, so a ready
//            acknowledgement leaves after at most one further response.
// Spec       docs/spec/memory.md 2
`default_nettype none
`include "ktpu_defs.vh"

module mag_port #(
    parameter PORT_X           = 0,
    parameter PORT_Y           = 1,
    parameter MESH_ID          = 0,
    parameter DRAM_BYTES_LOG2  = 32,
    parameter STAGE            = 0,
    parameter STAGE_BYTES_LOG2 = 21,
    parameter WR_SLOTS         = 16,
    parameter Q_DEPTH          = 64,
    parameter Q_MARGIN         = 4,
    parameter RING             = 128
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy,

    // requester of the converged path (mag_path)
    output wire         rd_valid,
    input  wire         rd_ready,
    output wire [31:0]  rd_word,
    output wire [7:0]   rd_len,
    input  wire         rsp_valid,
    input  wire [255:0] rsp_data,
    input  wire         rsp_err,
    output wire         wr_valid,
    input  wire         wr_ready,
    output wire [31:0]  wr_word,
    output wire [7:0]   wr_len,
    output wire         wd_valid,
    input  wire         wd_ready,
    output wire [255:0] wd_data,
    output wire         wd_last,
    input  wire         done_valid,
    input  wire         done_err,

    // events for the register block: {read refused, bus error on a read, write
    // failed, unit data marked remote} with {code, source, txn, address} each
    output wire [3:0]   bad_valid,
    output wire [239:0] bad_info,
    output wire         orphan_valid,
    output wire [59:0]  orphan_info,
    output wire         drop_ctrl,
    output wire         served,         // one read request or streamed entry answered
    output wire         issued          // one write burst issued
);

    wire         rq_valid, rq_ready, wq_valid, wq_ready;
    wire [114:0] rq_data;
    wire [274:0] wq_data;
    wire [7:0]   drop_src, drop_txn;

    mag_intake #(
        .Q_DEPTH  (Q_DEPTH),
        .Q_MARGIN (Q_MARGIN)
    ) u_intake (
        .clk          (clk),
        .rst_n        (rst_n),
        .noc_in_valid (noc_in_valid),
        .noc_in_data  (noc_in_data),
        .noc_in_busy  (noc_in_busy),
        .rd_valid     (rq_valid),
        .rd_ready     (rq_ready),
        .rd_data      (rq_data),
        .wr_valid     (wq_valid),
        .wr_ready     (wq_ready),
        .wr_data      (wq_data),
        .drop_ctrl    (drop_ctrl),
        .drop_remote  (bad_valid[0]),
        .drop_src     (drop_src),
        .drop_txn     (drop_txn)
    );
    assign bad_info[59:0] = {`KT_M_REMOTE, drop_src, drop_txn, 40'd0};

    wire         resp_valid, resp_ready, ack_valid, ack_ready;
    wire [287:0] resp_flit, ack_flit;

    mag_read #(
        .PORT_X           (PORT_X),
        .PORT_Y           (PORT_Y),
        .MESH_ID          (MESH_ID),
        .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2),
        .RING             (RING)
    ) u_read (
        .clk       (clk),
        .rst_n     (rst_n),
        .req_valid (rq_valid),
        .req_ready (rq_ready),
        .req_data  (rq_data),
        .rd_valid  (rd_valid),
        .rd_ready  (rd_ready),
        .rd_word   (rd_word),
        .rd_len    (rd_len),
        .rsp_valid (rsp_valid),
        .rsp_data  (rsp_data),
        .rsp_err   (rsp_err),
        .out_valid (resp_valid),
        .out_ready (resp_ready),
        .out_flit  (resp_flit),
        .bad_valid (bad_valid[3]),
        .bad_info  (bad_info[239:180]),
        .bus_valid (bad_valid[2]),
        .bus_info  (bad_info[179:120]),
        .served    (served)
    );

    mag_write #(
        .PORT_X           (PORT_X),
        .PORT_Y           (PORT_Y),
        .MESH_ID          (MESH_ID),
        .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2),
        .WR_SLOTS         (WR_SLOTS)
    ) u_write (
        .clk          (clk),
        .rst_n        (rst_n),
        .in_valid     (wq_valid),
        .in_ready     (wq_ready),
        .in_data      (wq_data),
        .wr_valid     (wr_valid),
        .wr_ready     (wr_ready),
        .wr_word      (wr_word),
        .wr_len       (wr_len),
        .wd_valid     (wd_valid),
        .wd_ready     (wd_ready),
        .wd_data      (wd_data),
        .wd_last      (wd_last),
        .done_valid   (done_valid),
        .done_err     (done_err),
        .ack_valid    (ack_valid),
        .ack_ready    (ack_ready),
        .ack_flit     (ack_flit),
        .bad_valid    (bad_valid[1]),
        .bad_info     (bad_info[119:60]),
        .orphan_valid (orphan_valid),
        .orphan_info  (orphan_info),
        .issued       (issued)
    );

    reg          valid_q, was_ack_q;
    reg  [287:0] flit_q;
    wire         load    = !valid_q || !noc_out_busy;
    wire         use_ack = ack_valid && !(resp_valid && was_ack_q);

    assign ack_ready     = load && use_ack;
    assign resp_ready    = load && !use_ack;
    assign noc_out_valid = valid_q;
    assign noc_out_data  = flit_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            valid_q   <= 1'b0;
            was_ack_q <= 1'b0;
        end else if (load) begin
            valid_q   <= ack_valid || resp_valid;
            was_ack_q <= use_ack;
        end
        if (load && (ack_valid || resp_valid)) flit_q <= use_ack ? ack_flit : resp_flit;
    end

endmodule

`default_nettype wire
