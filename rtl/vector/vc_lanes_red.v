// SPDX-License-Identifier: Apache-2.0
// vc_lanes_red: accumulators and final pass of a tree reduction
// (docs/spec/vector.md 7.4, 13.1).
//
// A reduction has at most 16 beats and beat k belongs to accumulator k, so each
// accumulator is used once and its operand is always the identity; the sixteen
// values then pass the tree once more.
// Latency    last accumulator result -> `done` 1 + 4*(ALAT+1) cycles.
`default_nettype none
`include "ktpu_defs.vh"

module vc_lanes_red (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         start,
    input  wire [3:0]   kind,           // of the group accepted with start
    input  wire [3:0]   n,              // chunks

    input  wire         acc_wr,
    input  wire         ld_top,         // the final result is on the root
    input  wire [23:0]  acc_value,
    input  wire [23:0]  root_value,

    output wire         half,           // two beats a chunk
    output wire [4:0]   leaf_op,        // of the beats
    output wire [4:0]   comb_op,
    output wire [23:0]  ident,
    output wire         fin,            // accumulators enter the leaves
    output wire         fin_top,        // their pass is in the tree
    output wire [383:0] acc,
    output wire         done,
    output wire [23:0]  value,
    output wire         idle
);

    localparam [1:0] S_IDLE = 2'd0;
    localparam [1:0] S_ACC  = 2'd1;
    localparam [1:0] S_FIN  = 2'd2;
    localparam [1:0] S_ROOT = 2'd3;

    reg  [1:0] state_q;
    reg  [3:0] kind_q, k_q, top_q;      // top: the last accumulator used

    function [23:0] identity;
        input [3:0] k;
        identity = (k == `KT_VC_RED_MAX) ? 24'hFF8000 : (k == `KT_VC_RED_MIN) ? 24'h7F8000 : 24'h000000;
    endfunction

    wire       two   = kind >= `KT_VC_RED_SUMSQ;
    wire [4:0] beats = two ? {n, 1'b0} : {1'b0, n};

    assign half    = kind_q >= `KT_VC_RED_SUMSQ;
    assign comb_op = (kind_q == `KT_VC_RED_MAX) ? `KT_VC_LANE_VMAX
                   : (kind_q == `KT_VC_RED_MIN) ? `KT_VC_LANE_VMIN : `KT_VC_LANE_VADD;
    assign leaf_op = !half ? comb_op
                   : (kind_q == `KT_VC_RED_EXPSUM) ? `KT_VC_LANE_VEXP2 : `KT_VC_LANE_VMUL;
    assign ident   = identity(kind_q);
    assign fin     = state_q == S_FIN;
    assign fin_top = state_q == S_ROOT;
    assign done    = fin_top && ld_top;
    assign value   = root_value;
    assign idle    = state_q == S_IDLE;

    always @(posedge clk) begin
        if (!rst_n) begin
            state_q <= S_IDLE;
        end else begin
            case (state_q)
                S_IDLE:  if (start) state_q <= S_ACC;
                S_ACC:   if (acc_wr && k_q == top_q) state_q <= S_FIN;
                S_FIN:   state_q <= S_ROOT;
                default: if (ld_top) state_q <= S_IDLE;
            endcase
        end
        if (start) begin
            kind_q <= kind;
            k_q    <= 4'd0;
            top_q  <= beats[3:0] - 4'd1;
        end else if (acc_wr) begin
            k_q <= k_q + 4'd1;
        end
    end

    genvar i;
    generate
        for (i = 0; i < 16; i = i + 1) begin : g_acc
            reg [23:0] acc_q;
            always @(posedge clk) begin
                if (start) acc_q <= identity(kind);
                else if (acc_wr && state_q == S_ACC && k_q == i) acc_q <= acc_value;
            end
            assign acc[24*i +: 24] = acc_q;
        end
    endgenerate

    wire unused = &{1'b0, beats};

endmodule

`default_nettype wire
