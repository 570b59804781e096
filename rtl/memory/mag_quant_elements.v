// SPDX-License-Identifier: Apache-2.0
// Converts 16 FP16 elements of a lane with a known scale to 7-bit integers.
//   q = sign * round(significand * R(mantissa) / 2^(16 + t)), t = exponent + 1 - exponent of the element
// The scale comes from the largest element, so t is never negative and no result exceeds 63.
// Latency 2 cycles plus the rounding after en[1] (combinational output); one word a cycle. en[s] enables stage s.
// Specification: docs/spec/numerics.md 3.2, docs/spec/memory.md 13.1.
`default_nettype none

module mag_quant_elements (
    input  wire         clk,
    input  wire [1:0]   en,
    input  wire [255:0] in_data,
    input  wire [4:0]   exponent,
    input  wire [2:0]   mantissa,
    output wire [111:0] q
);
    // nearest integer to 32768/m8, one less for 13
    function automatic [11:0] reciprocal(input [2:0] m);
        case (m)
            3'd0:    reciprocal = 12'd0;                   // 4096, see `whole`
            3'd1:    reciprocal = 12'd3641;
            3'd2:    reciprocal = 12'd3277;
            3'd3:    reciprocal = 12'd2979;
            3'd4:    reciprocal = 12'd2731;
            3'd5:    reciprocal = 12'd2520;
            3'd6:    reciprocal = 12'd2341;
            default: reciprocal = 12'd2185;
        endcase
    endfunction

    wire [12:0] factor = {mantissa == 3'd0, reciprocal(mantissa)};

    genvar n;
    generate
        for (n = 0; n < 16; n = n + 1) begin : g_element
            wire [15:0] half = in_data[16*n +: 16];

            // ------------------------------------------- operands
            reg        sign0_q;
            reg [10:0] sig0_q;
            reg [12:0] factor0_q;
            reg [2:0]  down0_q;
            always @(posedge clk) if (en[0]) begin : operands
                reg [4:0] e;
                reg [5:0] t;
                e         = (half[14:10] == 5'd0) ? 5'd1 : half[14:10];
                t         = {1'b0, exponent} + 6'd1 - {1'b0, e};
                sign0_q   <= half[15];
                sig0_q    <= (t >= 6'd8) ? 11'd0 : {half[14:10] != 5'd0, half[9:0]};
                factor0_q <= factor;
                down0_q   <= t[2:0];
            end

            // ------------------------------------------- product
            reg       sign1_q;
            reg [7:0] fixed1_q;                            // one fraction bit at t = 0
            reg [2:0] down1_q;
            always @(posedge clk) if (en[1]) begin : multiply
                /* verilator lint_off UNUSEDSIGNAL */
                reg [22:0] product;
                /* verilator lint_on UNUSEDSIGNAL */
                product   = sig0_q * factor0_q;
                sign1_q  <= sign0_q;
                fixed1_q <= product[22:15];
                down1_q  <= down0_q;
            end

            // ------------------------------------------- half away from zero: (x + 1)/2, its negative is ~((x - 1)/2)
            wire [7:0] x       = fixed1_q >> down1_q;
            wire [6:0] rounded = x[7:1] + (sign1_q ? {7{!x[0]}} : {6'd0, x[0]});
            assign q[7*n +: 7] = rounded ^ {7{sign1_q}};
        end
    endgenerate
endmodule

`default_nettype wire
