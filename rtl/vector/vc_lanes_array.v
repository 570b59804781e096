// SPDX-License-Identifier: Apache-2.0
// vc_lanes_array: the sixteen ALUs and the paths between them and the register
// file in each mode (docs/spec/vector.md 13.1).
//
// FLAT: ALU i works on lane i. D2: group g is ALUs 2g, 2g+1 and takes lane
// 8p + g in phase p. D4: group g is ALUs 4g..4g+3, lane 4p + g. TREE: leaves
// 0..7, nodes 8..11, 12..13, root 14, accumulator 15.
// A beat on the registers (x_*) is on the ALU inputs in the next cycle.
//
// ALAT: 12..18.
`default_nettype none
`include "ktpu_defs.vh"

module vc_lanes_array #(
    parameter ALAT = 14
) (
    input  wire         clk,

    // a beat whose registers have been read
    input  wire         x_valid,
    input  wire [1:0]   x_mode,
    input  wire [1:0]   x_phase,
    input  wire [4:0]   x_op,
    input  wire [2:0]   x_v,
    input  wire [71:0]  x_k,
    input  wire [383:0] ra,
    input  wire [383:0] rb,
    input  wire [383:0] rc,

    // later stages of chains
    input  wire         ld1_d2,
    input  wire [3:1]   ld_d4,
    input  wire [239:0] ctl,

    // tree
    input  wire [4:1]   ld_tree,
    input  wire         half,
    input  wire [4:0]   comb_op,
    input  wire [23:0]  ident,
    input  wire         fin,
    input  wire [383:0] acc,

    output wire [383:0] y
);

    wire flat = {2'd0, x_mode} == `KT_VC_MODE_FLAT;
    wire d2   = {2'd0, x_mode} == `KT_VC_MODE_D2;
    wire d4   = {2'd0, x_mode} == `KT_VC_MODE_D4;
    wire tree = {2'd0, x_mode} == `KT_VC_MODE_TREE;

    genvar i;
    generate
        for (i = 0; i < 16; i = i + 1) begin : g_alu
            // -------------------------------------------- heads and leaves
            wire [23:0] a, b, c;
            wire        ld_head;
            if (i % 2 == 0) begin : g_even
                localparam G2 = i / 2;
                localparam G4 = i / 4;
                wire [23:0] va, vb, vc;
                vc_lanes_pick #(.FLAT(i), .G2(G2), .G4(G4), .D4(i % 4 == 0)) u_a (
                    .d2(d2), .d4(d4), .phase(x_phase), .r(ra), .x(va));
                vc_lanes_pick #(.FLAT(i), .G2(G2), .G4(G4), .D4(i % 4 == 0)) u_b (
                    .d2(d2), .d4(d4), .phase(x_phase), .r(rb), .x(vb));
                vc_lanes_pick #(.FLAT(i), .G2(G2), .G4(G4), .D4(i % 4 == 0)) u_c (
                    .d2(d2), .d4(d4), .phase(x_phase), .r(rc), .x(vc));
                assign a = va;
                assign b = vb;
                assign c = vc;
            end else begin : g_odd
                assign a = ra[24*i +: 24];
                assign b = rb[24*i +: 24];
                assign c = rc[24*i +: 24];
            end

            wire [23:0] ha, hb, hc;
            if (i < 8) begin : g_leaf
                // Two elements of one chunk, one element of each operand, or two accumulators.
                wire [23:0] ta = half ? (x_phase[0] ? ra[24*(8+i) +: 24] : ra[24*i +: 24]) : ra[48*i +: 24];
                wire [23:0] tb = half ? (x_phase[0] ? rb[24*(8+i) +: 24] : rb[24*i +: 24]) : ra[48*i+24 +: 24];
                wire [23:0] second = fin ? acc[48*i+24 +: 24] : tb;
                assign ha = fin ? acc[48*i +: 24] : tree ? ta : x_v[0] ? a : x_k[23:0];
                assign hb = (fin || tree) ? second : x_v[1] ? b : x_k[47:24];
                assign hc = (fin || tree) ? second : x_v[2] ? c : x_k[71:48];
                assign ld_head = fin || (x_valid && (flat || tree || (d2 && i % 2 == 0) || (d4 && i % 4 == 0)));
            end else begin : g_upper
                assign ha = x_v[0] ? a : x_k[23:0];
                assign hb = x_v[1] ? b : x_k[47:24];
                assign hc = x_v[2] ? c : x_k[71:48];
                assign ld_head = x_valid && (flat || (d2 && i % 2 == 0) || (d4 && i % 4 == 0));
            end

            // ------------------------------------------------------- chain
            wire         ld_chain;
            wire [79:0]  chain_ctl;
            wire [23:0]  prev;
            if (i % 4 == 1) begin : g_one
                assign ld_chain  = ld1_d2 || ld_d4[1];
                assign chain_ctl = ctl[79:0];
            end else if (i % 4 == 2) begin : g_two
                assign ld_chain  = ld_d4[2];
                assign chain_ctl = ctl[159:80];
            end else if (i % 4 == 3) begin : g_three
                assign ld_chain  = ld1_d2 || ld_d4[3];
                assign chain_ctl = ld1_d2 ? ctl[79:0] : ctl[239:160];
            end else begin : g_none
                assign ld_chain  = 1'b0;
                assign chain_ctl = 80'd0;
            end
            if (i % 4 == 0) begin : g_first
                assign prev = 24'd0;
            end else begin : g_behind
                assign prev = y[24*(i-1) +: 24];
            end

            // -------------------------------------------------------- tree
            wire        ld_node;
            wire [23:0] tx, ty;
            if (i >= 8 && i < 12) begin : g_level1
                assign ld_node = ld_tree[1];
                assign tx = y[48*(i-8) +: 24];
                assign ty = y[48*(i-8)+24 +: 24];
            end else if (i == 12 || i == 13) begin : g_level2
                assign ld_node = ld_tree[2];
                assign tx = y[192+48*(i-12) +: 24];
                assign ty = y[192+48*(i-12)+24 +: 24];
            end else if (i == 14) begin : g_level3
                assign ld_node = ld_tree[3];
                assign tx = y[24*12 +: 24];
                assign ty = y[24*13 +: 24];
            end else if (i == 15) begin : g_level4
                assign ld_node = ld_tree[4];
                assign tx = y[24*14 +: 24];
                assign ty = ident;
            end else begin : g_leaf_only
                assign ld_node = 1'b0;
                assign tx = 24'd0;
                assign ty = 24'd0;
            end

            vc_lanes_alu #(.I(i), .ALAT(ALAT)) u_alu (
                .clk       (clk),
                .ld_head   (ld_head),
                .h_op      (fin ? comb_op : x_op),
                .h_a       (ha),
                .h_b       (hb),
                .h_c       (hc),
                .ld_chain  (ld_chain),
                .chain_ctl (chain_ctl),
                .prev    (prev),
                .ld_tree   (ld_node),
                .comb_op   (comb_op),
                .tree_x    (tx),
                .tree_y    (ty),
                .y         (y[24*i +: 24])
            );
        end
    endgenerate

endmodule

`default_nettype wire
