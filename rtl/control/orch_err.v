// SPDX-License-Identifier: Apache-2.0
//
// orch_err: ERR_STAT and ERR_INFO of `orch` (docs/spec/fabric.md 6.2, 6.5).
//
// An error that arrives in the cycle its bit is cleared stays set. ERR_INFO latches the first
// node_fault or data_reject event while both bits are 0, counts all of them (saturating) and is
// cleared when both bits have been cleared.

`default_nettype none
`include "ktpu_defs.vh"

module orch_err (
    input  wire        clk,
    input  wire        rst_n,
    input  wire [11:0] set,            // by ERR_STAT bit, node_fault and data_reject included
    input  wire [11:0] clear,          // write-one-to-clear bits of this cycle
    input  wire [7:0]  evt_code,
    input  wire [31:0] evt_arg,
    input  wire [7:0]  evt_node,
    output wire [11:0] stat,
    output wire [63:0] info
);
    localparam [11:0] EVENT_BITS = (12'd1 << `KT_ERR_STAT_NODE_FAULT) |
                                   (12'd1 << `KT_ERR_STAT_DATA_REJECT);

    reg  [11:0] stat_q;
    reg  [15:0] events_q;
    reg  [31:0] arg_q;
    reg  [7:0]  code_q, node_q;

    wire [11:0] kept  = stat_q & ~clear;
    wire        fresh = ((kept & EVENT_BITS) == 12'd0);
    wire        evt   = ((set & EVENT_BITS) != 12'd0);

    always @(posedge clk) begin
        if (!rst_n) begin
            stat_q   <= 12'd0;
            events_q <= 16'd0;
            arg_q    <= 32'd0;
            code_q   <= 8'd0;
            node_q   <= 8'd0;
        end else begin
            stat_q <= kept | set;
            if (fresh) begin
                events_q <= {15'd0, evt};
                arg_q    <= evt ? evt_arg : 32'd0;
                code_q   <= evt ? evt_code : 8'd0;
                node_q   <= evt ? evt_node : 8'd0;
            end else if (evt && (events_q != 16'hFFFF)) begin
                events_q <= events_q + 16'd1;
            end
        end
    end

    assign stat = stat_q;
    assign info = {events_q, arg_q, code_q, node_q};
endmodule

`default_nettype wire
