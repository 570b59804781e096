// SPDX-License-Identifier: Apache-2.0
// link_afifo: one link direction from one clock domain to another,
// docs/spec/fabric.md 9, margins 2.3.
//
// Latency    a flit stored on a wr_clk edge is offered after the third rd_clk
//            edge behind it, the fourth if it came too close to an edge.
// Throughput one flit per cycle of the slower clock for DEPTH >= 16; with equal
//            clocks a slot returns after 6 to 9 cycles. A smaller DEPTH costs
//            throughput only.
// in_busy    full seen from wr_clk: DEPTH flits stored and not known to be
//            handed over; or reset. out_valid: a flit is there, and no reset.
//
// Reset of either side empties the FIFO; flits in it are lost. Each side sends
// the other a request that stays until it is acknowledged, so a reset of one
// cycle is enough at any clock ratio. A side clears its pointer only while the
// other one is known to stand still, so nobody ever follows a pointer that jumps.
// The read side may withdraw an offered flit when the write side is reset: for
// properties L1 and L2 the link is in reset then. At power-up both resets last
// for 16 cycles of the slower clock.
//
// DEPTH a power of two >= 4, PRIM as in ram_sdp_2clk.
`default_nettype none
`include "ktpu_defs.vh"

module link_afifo #(
    parameter DEPTH = 16,
    parameter PRIM  = "distributed"
) (
    input  wire                  wr_clk,
    input  wire                  wr_rst_n,
    input  wire                  in_valid,
    input  wire [`KT_FLIT_W-1:0] in_data,
    output wire                  in_busy,

    input  wire                  rd_clk,
    input  wire                  rd_rst_n,
    output wire                  out_valid,
    output wire [`KT_FLIT_W-1:0] out_data,
    input  wire                  out_busy
);

    localparam AW = $clog2(DEPTH);

    generate
        if (DEPTH < 4 || (DEPTH & (DEPTH - 1)) != 0) begin : g_illegal
            link_afifo_illegal_parameters u_stop ();
        end
    endgenerate

    // One bit more than an address, so full and empty differ.
    function [AW:0] gray(input [AW:0] b);
        gray = b ^ (b >> 1);
    endfunction

    reg          wr_req_q, wr_ack_q, wr_live_q;
    reg          rd_req_q, rd_ack_q, rd_live_q;
    reg  [AW:0]  wr_bin_q, wr_gray_q;
    reg  [AW:0]  rd_bin_q, rd_gray_q;
    reg          rd_valid_q;

    // ---- what each side sees of the other one
    wire         wr_far_req, wr_far_ack, rd_far_req, rd_far_ack;
    wire [AW:0]  wr_far_gray, rd_far_gray;

    sync_2ff #(.WIDTH(1))    u_wr_req  (.clk(wr_clk), .d(rd_req_q),  .q(wr_far_req));
    sync_2ff #(.WIDTH(1))    u_wr_ack  (.clk(wr_clk), .d(rd_ack_q),  .q(wr_far_ack));
    sync_2ff #(.WIDTH(AW+1)) u_wr_gray (.clk(wr_clk), .d(rd_gray_q), .q(wr_far_gray));
    sync_2ff #(.WIDTH(1))    u_rd_req  (.clk(rd_clk), .d(wr_req_q),  .q(rd_far_req));
    sync_2ff #(.WIDTH(1))    u_rd_ack  (.clk(rd_clk), .d(wr_ack_q),  .q(rd_far_ack));
    sync_2ff #(.WIDTH(AW+1)) u_rd_gray (.clk(rd_clk), .d(wr_gray_q), .q(rd_far_gray));

    // ---- reset, four phases: request, acknowledge, request gone, acknowledge
    // gone. req and live are opposites from the first edge in reset on; ack = 1
    // says that this side stands still until the request goes. A request starts
    // only when the last acknowledge is gone, or an old one would answer it.
    wire wr_live_d = !wr_req_q && !wr_far_req && !wr_far_ack;
    wire rd_live_d = !rd_req_q && !rd_far_req && !rd_far_ack;

    always @(posedge wr_clk) begin
        if (!wr_rst_n) begin
            wr_live_q <= 1'b0;
            if (!wr_far_ack) wr_req_q <= 1'b1;
        end else begin
            wr_live_q <= wr_live_d;
            if (wr_far_ack) wr_req_q <= 1'b0;
        end
        wr_ack_q <= wr_far_req;
    end

    always @(posedge rd_clk) begin
        if (!rd_rst_n) begin
            rd_live_q <= 1'b0;
            if (!rd_far_ack) rd_req_q <= 1'b1;
        end else begin
            rd_live_q <= rd_live_d;
            if (rd_far_ack) rd_req_q <= 1'b0;
        end
        rd_ack_q <= rd_far_req;
    end

`ifndef SYNTHESIS
    // Hardware leaves any power-up state, since ack follows req; X does not.
    initial begin
        wr_req_q = 1'b0;
        rd_req_q = 1'b0;
    end
`endif

    // ---- write side. Gray code is linear: a distance of DEPTH is one mask.
    wire         full     = wr_gray_q == (wr_far_gray ^ gray({1'b1, {AW{1'b0}}}));
    wire         push     = in_valid && !in_busy && wr_rst_n;    // no transfer at an edge in reset
    wire [AW:0]  wr_bin_d = wr_bin_q + {{AW{1'b0}}, 1'b1};

    assign in_busy = !wr_live_q || full;

    always @(posedge wr_clk) begin
        if (wr_far_req || wr_far_ack) begin
            wr_bin_q  <= {(AW+1){1'b0}};
            wr_gray_q <= {(AW+1){1'b0}};
        end else if (push) begin
            wr_bin_q  <= wr_bin_d;
            wr_gray_q <= gray(wr_bin_d);
        end
    end

    // ---- read side. The RAM's register is the head of the FIFO: it is loaded
    // when it is free or becomes free, and its slot counts until it is handed over.
    wire         pop      = rd_valid_q && !out_busy && rd_rst_n;
    wire [AW:0]  rd_bin_d = rd_bin_q + {{AW{1'b0}}, pop};
    wire         fetch    = rd_live_q && (!rd_valid_q || pop) && rd_far_gray != gray(rd_bin_d);

    always @(posedge rd_clk) begin
        if (rd_far_req || rd_far_ack) begin
            rd_bin_q  <= {(AW+1){1'b0}};
            rd_gray_q <= {(AW+1){1'b0}};
        end else if (pop) begin
            rd_bin_q  <= rd_bin_d;
            rd_gray_q <= gray(rd_bin_d);
        end
        rd_valid_q <= rd_rst_n && rd_live_d && (fetch || (rd_valid_q && !pop));
    end

    assign out_valid = rd_valid_q;

    ram_sdp_2clk #(
        .WIDTH (`KT_FLIT_W),
        .DEPTH (DEPTH),
        .PRIM  (PRIM)
    ) u_ram (
        .wr_clk  (wr_clk),
        .wr_en   (push),
        .wr_addr (wr_bin_q[AW-1:0]),
        .wr_data (in_data),
        .rd_clk  (rd_clk),
        .rd_en   (fetch),
        .rd_addr (rd_bin_d[AW-1:0]),
        .rd_data (out_data)
    );

endmodule

`default_nettype wire
