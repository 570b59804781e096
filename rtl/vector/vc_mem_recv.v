// SPDX-License-Identifier: Apache-2.0
// vc_mem_recv: inbound side of the memory unit: one flit per cycle from the shell
// into a register, then a fill response or a burst word to L1
// (docs/spec/vector.md 9.2, 10).
//
// Latency    a flit taken in cycle k is written to L1 in k+1.
// Throughput one flit per cycle. Only a burst end that finds the acknowledgement
// queue full holds the receive path. Other types are taken and dropped.
//
// ACKQ_DEPTH power of two >= 64: DATA_RECEIVED signals queued.
`default_nettype none
`include "ktpu_defs.vh"

module vc_mem_recv #(
    parameter CU_X       = 1,
    parameter CU_Y       = 1,
    parameter ACKQ_DEPTH = 64
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         enable,

    input  wire [287:0] recv_flit,
    input  wire         recv_valid,
    output wire         recv_ready,

    output wire         rsp_valid,
    output wire [7:0]   rsp_tag,
    output wire         rsp_err,

    output wire         wr_valid,       // a word of an accepted burst
    output wire [8:0]   wr_word,
    output wire [255:0] data,           // of the response or the burst word

    output wire         sig_valid,
    input  wire         sig_ready,
    output wire [287:0] sig_flit,

    output wire         third,          // flit of a third sender
    output wire         rejected        // a rejected burst ends
);

    reg          valid_q;
    reg  [287:0] flit_q;

    wire         is_data = flit_q[`KT_FLIT_TYPE] == `KT_TYPE_CU_DATA;
    wire         data_ready;
    wire         leaves  = !is_data || data_ready;
    wire         take    = recv_valid && recv_ready;

    assign recv_ready = enable && (!valid_q || leaves);

    always @(posedge clk) begin
        if (!rst_n) valid_q <= 1'b0;
        else if (!valid_q || leaves) valid_q <= take;
        if (take) flit_q <= recv_flit;
    end

    assign rsp_valid = valid_q && (flit_q[`KT_FLIT_TYPE] == `KT_TYPE_MEM_RD_RESP);
    assign rsp_tag   = flit_q[`KT_FLIT_TXN];
    assign rsp_err   = flit_q[`KT_FLIT_RSVD_FLAG];
    assign data      = flit_q[`KT_FLIT_PAYLOAD];

    wire        desc_unused, open_unused, end_unused, last_unused;
    wire [7:0]  desc_buf, desc_len, wr_buf_unused;
    wire [15:0] desc_off, wr_granule;
    wire [16:0] top = {1'b0, desc_off} + {9'd0, desc_len};
    wire [255:0] wr_data_unused;

    cud_rx #(.POS_X(CU_X), .POS_Y(CU_Y), .ACKQ_DEPTH(ACKQ_DEPTH)) u_cud_rx (
        .clk         (clk),
        .rst_n       (rst_n),
        .in_flit     (flit_q),
        .in_valid    (valid_q && is_data),
        .in_ready    (data_ready),
        .desc_valid  (desc_unused),
        .desc_buf    (desc_buf),
        .desc_off    (desc_off),
        .desc_len    (desc_len),
        .desc_reason ((desc_buf != 8'd0)     ? `KT_REJ_UNKNOWN_BUF
                      : (top[16:9] != 8'd0)  ? `KT_REJ_RANGE : `KT_REJ_NONE),
        .wr_valid    (wr_valid),
        .wr_ready    (1'b1),
        .wr_buf      (wr_buf_unused),
        .wr_granule  (wr_granule),
        .wr_data     (wr_data_unused),
        .wr_last     (last_unused),
        .sig_valid   (sig_valid),
        .sig_ready   (sig_ready),
        .sig_flit    (sig_flit),
        .abort       (1'b0),
        .open        (open_unused),
        .burst_end   (end_unused),
        .err         ({rejected, third})
    );

    assign wr_word = wr_granule[8:0];

    // The range check bounds the granule of an accepted burst.
    wire unused = &{1'b0, wr_granule[15:9], top};

endmodule

`default_nettype wire
