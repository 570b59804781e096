// SPDX-License-Identifier: Apache-2.0
// E8M15 to FP16: nearest, ties to even, subnormals produced; a finite value beyond the range becomes
// +-65504 with `clamped` = 1. Combinational.
// Specification: docs/spec/numerics.md 7 and 13 (FP16_SAT), docs/spec/vector.md 12.5.
`default_nettype none

module vc_e8_to_f16 (
    input  wire [23:0] code,
    output wire [15:0] half,
    output wire        clamped
);
    // {clamped, magnitude}
    function automatic [15:0] convert(input [7:0] e, input [14:0] m);
        reg        normal;
        reg [3:0]  down;                                   // a subnormal's distance from the normal range
        reg [27:0] fixed;                                  // 11 integer bits, 17 below
        reg [11:0] sig;
        reg [14:0] r;
        begin
            normal = e >= 8'd113;
            down   = normal ? 4'd0 : (e <= 8'd101) ? 4'd12 : 4'd1 - e[3:0];     // 113 - e
            fixed  = {1'b1, m, 12'd0} >> down;
            sig    = {1'b0, fixed[27:17]} + {11'd0, fixed[16] && (fixed[15:0] != 16'd0 || fixed[17])};
            // The hidden bit of `sig` adds one to the exponent field.
            r      = {3'd0, sig} + (normal ? {e[4:0] - 5'd17, 10'd0} : 15'd0);  // e - 113
            if (e == 8'd0)                          convert = 16'd0;
            else if (e == 8'd255)                   convert = {1'b0, 5'd31, m != 15'd0, (m != 15'd0) ? m[13:5] : 9'd0};
            else if (e >= 8'd143 || r == 15'h7C00)  convert = {1'b1, 15'h7BFF};
            else                                    convert = {1'b0, r};
        end
    endfunction

    wire [15:0] result = convert(code[22:15], code[14:0]);
    assign half    = {code[23], result[14:0]};
    assign clamped = result[15];
endmodule

`default_nettype wire
