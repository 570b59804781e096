// SPDX-License-Identifier: Apache-2.0
// Inner half of the seed polynomial: the table row and slope = (c2*u + (c1 << 16) + 2^15) >> 16.
//   row, ext   from the range reduction, with en[0]; `constant` answers in the same cycle: c0 + ext in
//              units of 2^-20
//   u          segment position, one stage later, with en[1]
//   slope_q    weight 2^-24, after en[2]
// Latency 3 cycles (table; multiply; add), one a cycle. en[s] enables stage s.
// Specification: docs/spec/numerics.md 10.2, docs/spec/vector.md 12.4.
`default_nettype none

module vc_poly (
    input  wire                clk,
    input  wire [2:0]          en,
    input  wire [7:0]          row,
    input  wire signed [8:0]   ext,
    output wire signed [29:0]  constant,
    input  wire [11:0]         u,
    output reg  signed [22:0]  slope_q
);
    wire [21:0] c0;
    wire [21:0] c1;
    wire [21:0] c2;
    vc_seed_rom u_rom (.row(row), .c0(c0), .c1(c1), .c2(c2));

    // The exact points (powers of two) need no special case: rows 0, 32 and 96 start with the exact value, and
    // row 64 with one unit less, which rounds to it.
    assign constant = $signed({{8{c0[21]}}, c0}) + $signed({ext[8], ext, 20'd0});

    reg signed [21:0] c2_q;
    reg signed [21:0] c1_q;
    reg signed [21:0] c1_1_q;
    reg signed [34:0] product_q;
    /* verilator lint_off UNUSEDSIGNAL */
    wire signed [38:0] sum = {{4{product_q[34]}}, product_q} + $signed({c1_1_q[21], c1_1_q, 16'h8000});
    /* verilator lint_on UNUSEDSIGNAL */

    always @(posedge clk) begin
        if (en[0]) begin
            c1_q <= c1;
            c2_q <= c2;
        end
        if (en[1]) begin
            product_q <= c2_q * $signed({1'b0, u});
            c1_1_q    <= c1_q;
        end
        if (en[2]) slope_q <= sum[38:16];
    end
endmodule

`default_nettype wire
