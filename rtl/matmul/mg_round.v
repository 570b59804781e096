// SPDX-License-Identifier: Apache-2.0
// Rounds a normalised 32-bit magnitude to an accumulator code: nearest, ties to even, exponent bounds.
//   value = mag * 2^(exp - 63 - 31), leading one at bit 31; mag = 0 gives the all-zero code.
//   sticky: nonzero residue below mag. keep: mag is an operand passed through unchanged, so exponent
//   127 is an ordinary binade and is not saturated.
// Latency 1 cycle with `en`; one a cycle. ACC_MW: 10, 11, 12, 14, 16.
// Specification: docs/spec/numerics.md 5.1, 5.2, 5.3.
`default_nettype none

module mg_round #(
    parameter ACC_MW = 14
) (
    input  wire                clk,
    input  wire                en,
    input  wire [31:0]         mag,
    input  wire                sticky,
    input  wire                sign,
    input  wire signed [9:0]   exp,
    input  wire                keep,
    output reg  [ACC_MW+7:0]   code_q
);
    localparam MW = ACC_MW;

    function automatic [MW+7:0] round_code(
        input [31:0]       m,
        input              st_in,
        input              s,
        input signed [9:0] e_in,
        input              pass
    );
        reg                guard;
        reg                st;
        reg [MW+1:0]       sig;                            // one bit more for the carry
        reg signed [9:0]   e;
        begin
            guard = m[30-MW];
            st    = st_in || (m[29-MW:0] != {(30-MW){1'b0}});
            sig   = {1'b0, m[31 -: MW+1]} + {{(MW+1){1'b0}}, guard && (st || m[31-MW])};
            e     = e_in + {9'd0, sig[MW+1]};              // a carry leaves a zero fraction
            if (!m[31] || e <= 10'sd0)             round_code = {(MW+8){1'b0}};
            else if (e >= 10'sd127 && !pass)       round_code = {s, {(MW+7){1'b1}}};
            else                                   round_code = {s, e[6:0], sig[MW-1:0]};
        end
    endfunction

    always @(posedge clk) if (en) code_q <= round_code(mag, sticky, sign, exp, keep);
endmodule

`default_nettype wire
