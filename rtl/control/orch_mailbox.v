// SPDX-License-Identifier: Apache-2.0
//
// orch_mailbox: transmit and receive FIFO of `orch` and the TX_FLIT register (docs/spec/fabric.md 6.4).
//
// The dispatcher pushes through `disp_*` and is never refused while `tx_ready` = 1: the mailbox does
// not push while `disp_run` = 1. A received flit that finds the receive FIFO full is discarded and
// reported (`rx_drop` pulse, sticky overflow).
// Latency: as fifo_sync. Throughput: one flit per cycle in each direction.
// Parameters: TX_DEPTH, RX_DEPTH powers of two >= 2.

`default_nettype none
`include "ktpu_defs.vh"

module orch_mailbox #(
    parameter TX_DEPTH = 16,
    parameter RX_DEPTH = 16
) (
    input  wire         clk,
    input  wire         rst_n,

    // registers
    input  wire [4:0]   tx_we,          // one bit per TX_FLIT word
    input  wire [63:0]  tx_wdata,
    input  wire [7:0]   tx_wstrb,
    input  wire         tx_kick,
    output wire         tx_refused,     // pulse: TX_KICK without effect
    output wire         tx_full,
    output wire         tx_idle,        // transmit FIFO empty
    output wire         rx_empty,
    output wire [287:0] rx_head,        // 0 when empty
    input  wire         rx_pop,
    input  wire         ovf_clear,
    output wire         overflow,
    output wire         rx_drop,        // pulse

    // dispatcher
    input  wire         disp_run,
    input  wire         disp_push,
    input  wire [287:0] disp_flit,
    output wire         tx_ready,

    // mesh
    input  wire         rx_push,
    input  wire [287:0] rx_flit,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy
);
    // ---- TX_FLIT --------------------------------------------------------------------------------
    reg [319:0] tx_q;
    integer w, b;
    always @(posedge clk) begin
        if (!rst_n) begin
            tx_q <= 320'd0;
        end else if (tx_we != 5'd0) begin
            for (w = 0; w < 5; w = w + 1)
                for (b = 0; b < 8; b = b + 1)
                    if (tx_we[w] && tx_wstrb[b]) tx_q[64*w + 8*b +: 8] <= tx_wdata[8*b +: 8];
        end
    end
    wire unused_ok = &{1'b0, tx_q[319:288]};

    // ---- transmit -------------------------------------------------------------------------------
    localparam TX_LW = $clog2(TX_DEPTH) + 1;
    wire             tx_in_ready;
    wire [TX_LW-1:0] tx_level;
    wire             mail_push = tx_kick && !disp_run && tx_in_ready;

    assign tx_ready   = tx_in_ready;
    assign tx_full    = !tx_in_ready;
    assign tx_idle    = (tx_level == {TX_LW{1'b0}});
    assign tx_refused = tx_kick && !mail_push;

    fifo_sync #(.WIDTH(288), .DEPTH(TX_DEPTH)) u_tx (
        .clk      (clk),
        .rst_n    (rst_n),
        .in_valid (disp_push || mail_push),
        .in_ready (tx_in_ready),
        .in_data  (disp_push ? disp_flit : tx_q[287:0]),
        .out_valid(noc_out_valid),
        .out_ready(!noc_out_busy),
        .out_data (noc_out_data),
        .level    (tx_level)
    );

    // ---- receive --------------------------------------------------------------------------------
    localparam RX_LW = $clog2(RX_DEPTH) + 1;
    wire             rx_in_ready;
    wire             rx_out_valid;
    wire [287:0]     rx_out_data;
    wire [RX_LW-1:0] rx_level;
    reg              overflow_q;

    assign rx_drop  = rx_push && !rx_in_ready;
    assign rx_empty = !rx_out_valid;
    assign rx_head  = rx_out_valid ? rx_out_data : 288'd0;
    assign overflow = overflow_q;

    fifo_sync #(.WIDTH(288), .DEPTH(RX_DEPTH)) u_rx (
        .clk      (clk),
        .rst_n    (rst_n),
        .in_valid (rx_push),
        .in_ready (rx_in_ready),
        .in_data  (rx_flit),
        .out_valid(rx_out_valid),
        .out_ready(rx_pop),
        .out_data (rx_out_data),
        .level    (rx_level)
    );
    wire unused_level = &{1'b0, rx_level};

    always @(posedge clk) begin
        if (!rst_n)         overflow_q <= 1'b0;
        else if (rx_drop)   overflow_q <= 1'b1;
        else if (ovf_clear) overflow_q <= 1'b0;
    end
endmodule

`default_nettype wire
