// SPDX-License-Identifier: Apache-2.0
// Accumulator code of one lane to FP16: nearest, ties to even; below the smallest normal a signed zero,
// above 65504 the value +-65504 with `clamp_q` = 1. Latency 1 cycle with `en`; one a cycle.
// ACC_MW: 10, 11, 12, 14, 16. Specification: docs/spec/numerics.md 5.6, docs/spec/cluster.md 6.3.
`default_nettype none

module mg_to_fp16 #(
    parameter ACC_MW = 14
) (
    input  wire              clk,
    input  wire              en,
    input  wire [ACC_MW+7:0] code,
    output wire [15:0]       half_q,
    output wire              clamp_q
);
    localparam MW = ACC_MW;

    // {clamp, half}
    function automatic [16:0] convert(input [MW+7:0] v);
        reg [MW+1:0]       padded;                         // so that MW = 10 has bits to drop too
        reg                guard;
        reg                st;
        reg [10:0]         f;                              // one bit more for the carry
        reg signed [8:0]   q;
        begin
            padded = {v[MW-1:0], 2'd0};
            guard  = padded[MW-9];
            st     = padded[MW-10:0] != {(MW-9){1'b0}};
            f      = {1'b0, padded[MW+1 -: 10]} + {10'd0, guard && (st || padded[MW-8])};
            q      = $signed({2'd0, v[MW+6:MW]}) - 9'sd48 + $signed({8'd0, f[10]});
            if (v[MW+6:MW] == 7'd0 || q <= 9'sd0) convert = {1'b0, v[MW+7], 15'd0};
            else if (q >= 9'sd31)                 convert = {1'b1, v[MW+7], 15'h7BFF};
            else                                  convert = {1'b0, v[MW+7], q[4:0], f[9:0]};
        end
    endfunction

    reg [16:0] result_q;
    always @(posedge clk) if (en) result_q <= convert(code);
    assign {clamp_q, half_q} = result_q;
endmodule

`default_nettype wire
