// SPDX-License-Identifier: Apache-2.0
// Range reduction of the four seeds: row of the table, 12-bit position u inside the segment, integer addend
// of the polynomial and exponent of the result. fsel: 0 exp2, 1 log2, 2 inv, 3 rsqrt.
//   ext    added to the polynomial's value, in units of 1
//   top    biased exponent of bit 48 of a window that holds the polynomial's value from bit 0 on
// Operands outside the evaluated range (infinities, NaN, zero for log2, ...) give meaningless outputs.
// Latency 2 cycles, one a cycle. en[s] enables stage s.
// Specification: docs/spec/numerics.md 10.2, docs/spec/vector.md 12.4.
`default_nettype none

module vc_seed_prep (
    input  wire              clk,
    input  wire [1:0]        en,
    input  wire [1:0]        fsel,
    input  wire [23:0]       a,
    output reg  [7:0]        row_q,
    output reg  [11:0]       u_q,
    output reg signed [8:0]  ext_q,
    output reg signed [9:0]  top_q,
    output reg               sign_q
);
    localparam [1:0] EXP2 = 2'd0, LOG2 = 2'd1, INV = 2'd2;

    // ------------------------------------------- stage 0: abs(a) * 2^18, truncated (exp2)
    reg [1:0]  fsel0_q;
    reg [23:0] a0_q;
    reg [25:0] fixed0_q;

    always @(posedge clk) if (en[0]) begin : reduce
        reg [4:0] down;                                    // min(134 - exponent, 26)
        down     = (a[22:15] <= 8'd108) ? 5'd26 : 5'd6 - a[19:15];
        fsel0_q  <= fsel;
        a0_q     <= a;
        fixed0_q <= {1'b1, a[14:0], 10'd0} >> down;
    end

    // ------------------------------------------- stage 1: half rounds up in magnitude, then the sign
    always @(posedge clk) if (en[1]) begin : split
        reg        s;
        reg [7:0]  e;
        reg [14:0] m;
        reg [24:0] fixed;                                  // 8 integer and 17 fraction bits
        reg [8:0]  half;
        s      = a0_q[23];
        e      = a0_q[22:15];
        m      = a0_q[14:0];
        fixed  = (fixed0_q[25:1] ^ {25{s}}) + {24'd0, s ^ fixed0_q[0]};
        half   = ({1'b0, e} + 9'd1) >> 1;                  // floor((e - 127) / 2) + 64
        sign_q <= s && fsel0_q == INV;
        if (fsel0_q == EXP2) begin
            row_q <= {3'd0, fixed[16:12]};
            u_q   <= fixed[11:0];
            ext_q <= 9'sd1;
            top_q <= 10'sd155 + $signed({{2{fixed[24]}}, fixed[24:17]});
        end else begin
            row_q <= {1'b0, fsel0_q, m[14:10]} + {2'd0, fsel0_q == 2'd3 && !e[0], 5'd0};
            u_q   <= {m[9:0], 2'd0};
            ext_q <= (fsel0_q == LOG2) ? $signed({1'b0, e}) - 9'sd127 : 9'sd0;
            top_q <= (fsel0_q == LOG2) ? 10'sd155
                   : (fsel0_q == INV)  ? 10'sd282 - $signed({2'd0, e})
                   :                     10'sd219 - $signed({1'b0, half});
        end
    end
endmodule

`default_nettype wire
