// SPDX-License-Identifier: Apache-2.0
// vc_lanes_time: where the beats in flight are (docs/spec/vector.md 13.1).
//
// A beat issued in cycle t loads the operands of its first ALU at the end of
// t+1, of stage j at the end of t + 1 + j*(ALAT+1), and is written in
// t + 1 + D*(ALAT+1), D = chain depth. One bit a beat and depth is all that
// moves; what the beat is, is counted again where it arrives, because beats of
// one depth never overtake.
//
// ALAT: 12..18.
`default_nettype none
`include "ktpu_defs.vh"

module vc_lanes_time #(
    parameter ALAT = 14
) (
    input  wire       clk,
    input  wire       rst_n,
    input  wire       beat,
    input  wire       first,            // of its group
    input  wire [1:0] mode,
    input  wire       writes,           // to a vector or predicate register
    input  wire       fin,              // the accumulators enter the leaves in this cycle
    input  wire       fin_top,          // what reaches the root is their pass

    output wire       x_valid,          // operands of the first ALU are loaded in this cycle
    output wire       ld1_d2,           // stage 1 of D2
    output wire [3:1] ld_d4,
    output wire [3:1] table_rd,         // a group begins at stage j in the next cycle
    output wire [4:1] ld_tree,          // tree levels above the leaves
    output wire       acc_wr,           // an accumulator result is on its ALU
    output wire       pre_wb,           // a beat is written in the next cycle

    output wire       hold_flat,        // a FLAT or TREE group would meet a deeper one
    output wire       hold_d2,
    output wire       deep2,            // D2 beats before their write
    output wire       deep4,
    output wire       empty
);

    localparam S  = ALAT + 1;           // from one stage to the next
    localparam L1 = S;                  // index of pre_wb, by depth
    localparam L2 = 2*S;
    localparam L4 = 4*S;

    reg        x_q;
    reg [L1:1] v1_q;
    reg [L2:1] v2_q;
    reg [L4:1] v4_q;
    reg [3*S:1] f_q;
    reg [5*S+1:1] t_q;

    wire is_d2   = {2'd0, mode} == `KT_VC_MODE_D2;
    wire is_d4   = {2'd0, mode} == `KT_VC_MODE_D4;
    wire is_tree = {2'd0, mode} == `KT_VC_MODE_TREE;

    wire any2 = |v2_q;
    wire any4 = |v4_q;
    wire in2  = beat && is_d2;
    wire in4  = beat && is_d4;

    always @(posedge clk) begin
        if (!rst_n) begin
            x_q  <= 1'b0;
            v1_q <= {L1{1'b0}};
            v2_q <= {L2{1'b0}};
            v4_q <= {L4{1'b0}};
            f_q  <= {(3*S){1'b0}};
            t_q  <= {(5*S+1){1'b0}};
        end else begin
            x_q  <= beat;
            v1_q <= {v1_q[L1-1:1], beat && writes && !is_d2 && !is_d4};
            if (in2 || any2) v2_q <= {v2_q[L2-1:1], in2};
            if (in4 || any4) v4_q <= {v4_q[L4-1:1], in4};
            f_q  <= {f_q[3*S-1:1], (in2 || in4) && first};
            // The final pass joins where the beats of a reduction load their leaves and ends at the root.
            t_q <= {t_q[5*S:4*S+2], t_q[4*S+1] && !fin_top, t_q[4*S:2], t_q[1] || fin, beat && is_tree};
        end
    end

    assign x_valid   = x_q;
    assign ld1_d2    = v2_q[S+1];
    assign ld_d4     = {v4_q[3*S+1], v4_q[2*S+1], v4_q[S+1]};
    assign table_rd  = {f_q[3*S], f_q[2*S], f_q[S]};
    assign ld_tree   = {t_q[4*S+1], t_q[3*S+1], t_q[2*S+1], t_q[S+1]};
    assign acc_wr    = t_q[5*S+1];
    assign pre_wb    = v1_q[L1] || v2_q[L2] || v4_q[L4];

    // A group of depth d accepted now issues its first beat in the next cycle;
    // an earlier beat of depth D > d must by then be D-d stages ahead.
    assign hold_flat = in2 || in4 || |v2_q[S-1:1] || |v4_q[3*S-1:1];
    assign hold_d2   = in4 || |v4_q[2*S-1:1];
    assign deep2     = in2 || any2;
    assign deep4     = in4 || any4;
    assign empty     = !beat && !x_q && v1_q == {L1{1'b0}} && !any2 && !any4;

endmodule

`default_nettype wire
