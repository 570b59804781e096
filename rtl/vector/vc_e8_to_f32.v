// SPDX-License-Identifier: Apache-2.0
// E8M15 to FP32, exact; exponent 0 becomes a signed zero. Combinational.
// Specification: docs/spec/numerics.md 7, docs/spec/vector.md 12.5.
`default_nettype none

module vc_e8_to_f32 (
    input  wire [23:0] code,
    output wire [31:0] word
);
    assign word = (code[22:15] == 8'd0) ? {code[23], 31'd0} : {code, 8'd0};
endmodule

`default_nettype wire
