// SPDX-License-Identifier: Apache-2.0
// The multiplier of a lane: significand product, or the outer half of a seed polynomial.
//   poly = 0: p_q = x * y, 0 with `none`      poly = 1: p_q = slope*u + (constant << 16) + 2^15
// Latency 3 cycles (operands; multiply; add), one a cycle. en[s] enables stage s.
// Specification: docs/spec/numerics.md 8 and 10.2, docs/spec/vector.md 12.3 and 12.4.
`default_nettype none

module vc_product (
    input  wire                clk,
    input  wire [2:0]          en,
    input  wire                poly,
    input  wire                none,
    input  wire [15:0]         x,
    input  wire [15:0]         y,
    input  wire signed [22:0]  slope,
    input  wire [11:0]         u,
    input  wire signed [29:0]  constant,
    output reg  signed [46:0]  p_q
);
    reg signed [22:0] a_q;
    reg signed [16:0] b_q;
    reg signed [46:0] c_q;
    reg signed [39:0] product_q;
    reg signed [46:0] c_1_q;

    always @(posedge clk) begin
        if (en[0]) begin
            a_q <= poly ? slope : none ? 23'sd0 : $signed({7'd0, x});
            b_q <= poly ? $signed({5'd0, u}) : $signed({1'b0, y});
            c_q <= poly ? {constant[29], constant, 16'h8000} : 47'sd0;
        end
        if (en[1]) begin
            product_q <= a_q * b_q;
            c_1_q     <= c_q;
        end
        if (en[2]) p_q <= {{7{product_q[39]}}, product_q} + c_1_q;
    end
endmodule

`default_nettype wire
