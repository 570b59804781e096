// SPDX-License-Identifier: Apache-2.0
// FP32 to E8M15: the low 8 bits rounded to nearest, ties to even, infinity past the top; subnormals become
// signed zeros, NaNs quiet. Combinational.
// Specification: docs/spec/numerics.md 7, docs/spec/vector.md 12.5.
`default_nettype none

module vc_f32_to_e8 (
    input  wire [31:0] word,
    output wire [23:0] code
);
    wire        up      = word[7] && (word[6:0] != 7'd0 || word[8]);
    wire [22:0] rounded = word[30:8] + {22'd0, up};        // 254 and all ones carries into infinity
    wire        special = word[30:23] == 8'd255;
    wire        nan     = special && word[22:0] != 23'd0;

    assign code = {word[31],
                   (word[30:23] == 8'd0) ? 23'd0
                   : nan                 ? {8'd255, 1'b1, word[21:8]}
                   : special             ? {8'd255, 15'd0}
                   :                       rounded};
endmodule

`default_nettype wire
