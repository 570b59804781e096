// SPDX-License-Identifier: Apache-2.0
// One accumulator lane (i,j): block conversion, adder, FP16 converter.
//   cycle 0      d, sa, sb, anchor            (en[0])
//   cycle 4      tile, peer, load, use_peer   (en[4])   operands of the adder
//   cycle 7      result valid: value to write (after en[6])
//   conv_en      half/clamp one cycle later; input is `result`, or `read` with conv_read (drain path)
// Throughput: one command a cycle. en[s] enables stage s. ACC_MW: 10, 11, 12, 14, 16.
// Specification: docs/spec/cluster.md 6, docs/spec/numerics.md 5.
`default_nettype none

module mg_lane #(
    parameter ACC_MW = 14
) (
    input  wire                clk,
    input  wire [6:0]          en,
    input  wire signed [18:0]  d,
    input  wire [7:0]          sa,
    input  wire [7:0]          sb,
    input  wire [7:0]          anchor,
    input  wire                load,
    input  wire                use_peer,
    input  wire [ACC_MW+7:0]   tile,
    input  wire [ACC_MW+7:0]   peer,
    input  wire                conv_en,
    input  wire                conv_read,
    input  wire [ACC_MW+7:0]   read,
    output wire [ACC_MW+7:0]   result,
    output wire [15:0]         half,
    output wire                clamp
);
    // Kept as a module of its own: the compiled model shrinks and builds in 60 % of the time.
    /* verilator no_inline_module */
    wire [ACC_MW+7:0] block;

    mg_norm #(.ACC_MW(ACC_MW)) u_norm (
        .clk(clk), .en(en[3:0]), .d(d), .sa(sa), .sb(sb), .anchor(anchor), .code(block)
    );

    // LOAD is an addition to zero: the block code passes unchanged.
    mg_acc_add #(.ACC_MW(ACC_MW)) u_add (
        .clk(clk), .en(en[6:4]),
        .x  (load ? {(ACC_MW+8){1'b0}} : tile),
        .y  (use_peer ? peer : block),
        .code(result)
    );

    mg_to_fp16 #(.ACC_MW(ACC_MW)) u_to_fp16 (
        .clk(clk), .en(conv_en), .code(conv_read ? read : result), .half_q(half), .clamp_q(clamp)
    );
endmodule

`default_nettype wire
