// SPDX-License-Identifier: Apache-2.0
// Normalising shifter: moves the leading one of `in` to bit 31 and counts the shift.
// out_q = in << lz_q; in = 0 gives out_q = 0 (lz_q is then 31 and meaningless).
// Latency 1 cycle with `en`; one a cycle. Used by block conversion and addition of the accumulator.
// Specification: docs/spec/numerics.md 1 (round_rne), 5.2, 5.3.
`default_nettype none

module mg_normalize (
    input  wire        clk,
    input  wire        en,
    input  wire [31:0] in,
    output wire [31:0] out_q,
    output wire [4:0]  lz_q
);
    // {shift count, shifted value}
    function automatic [36:0] normalize(input [31:0] value);
        reg [31:0] v;
        reg [4:0]  n;
        begin
            v = value;
            n[4] = v[31:16] == 16'd0;  if (n[4]) v = {v[15:0], 16'd0};
            n[3] = v[31:24] == 8'd0;   if (n[3]) v = {v[23:0], 8'd0};
            n[2] = v[31:28] == 4'd0;   if (n[2]) v = {v[27:0], 4'd0};
            n[1] = v[31:30] == 2'd0;   if (n[1]) v = {v[29:0], 2'd0};
            n[0] = !v[31];             if (n[0]) v = {v[30:0], 1'b0};
            normalize = {n, v};
        end
    endfunction

    // One register for the whole result: a split target would make a simulator evaluate the function per part.
    reg [36:0] result_q;
    always @(posedge clk) if (en) result_q <= normalize(in);
    assign {lz_q, out_q} = result_q;
endmodule

`default_nettype wire
