// SPDX-License-Identifier: Apache-2.0
// vc_lanes_alu: one ALU with its operand register and the sources of its place
// (docs/spec/vector.md 13.1): the registers in FLAT, heads of chain groups and
// tree leaves; the ALU before it in a chain; two ALUs below it in the tree.
//
// Latency    `ld_*` -> y ALAT + 1 cycles.
//
// I: 0..15, place of the ALU. ALAT: 12..18.
`default_nettype none
`include "ktpu_defs.vh"

module vc_lanes_alu #(
    parameter I    = 0,
    parameter ALAT = 14
) (
    input  wire        clk,

    // heads and leaves
    input  wire        ld_head,
    input  wire [4:0]  h_op,
    input  wire [23:0] h_a,
    input  wire [23:0] h_b,
    input  wire [23:0] h_c,
    // chain stage 1 (of D2 or D4), or the D4 stage of this place
    input  wire        ld_chain,
    input  wire [79:0] chain_ctl,
    input  wire [23:0] prev,
    // tree
    input  wire        ld_tree,
    input  wire [4:0]  comb_op,
    input  wire [23:0] tree_x,
    input  wire [23:0] tree_y,

    output wire [23:0] y
);

    localparam CHAINED = (I % 4 != 0);
    localparam NODE    = (I >= 8);

    reg         en_q;
    reg  [4:0]  op_q;
    reg  [23:0] a_q, b_q, c_q;

    wire        chain = CHAINED && ld_chain;
    wire        tree  = NODE && ld_tree;

    always @(posedge clk) begin
        en_q <= ld_head || chain || tree;
        if (ld_head || chain || tree) begin
            op_q <= chain ? chain_ctl[79:75] : tree ? comb_op : h_op;
            a_q  <= chain ? (chain_ctl[72] ? prev : chain_ctl[23:0]) : tree ? tree_x : h_a;
            b_q  <= chain ? (chain_ctl[73] ? prev : chain_ctl[47:24]) : tree ? tree_y : h_b;
            c_q  <= chain ? (chain_ctl[74] ? prev : chain_ctl[71:48]) : tree ? tree_y : h_c;
        end
    end

    vc_alu #(.ALAT(ALAT)) u_alu (
        .clk (clk),
        .en  (en_q),
        .op  (op_q),
        .a   (a_q),
        .b   (b_q),
        .c   (c_q),
        .y   (y)
    );

    // Not every place has every source.
    wire unused = &{1'b0, ld_chain, chain_ctl, prev, ld_tree, comb_op, tree_x, tree_y};

endmodule

`default_nettype wire
