// SPDX-License-Identifier: Apache-2.0
// FP16 to E8M15, exact; infinity and NaN keep their bits. Combinational.
// Specification: docs/spec/numerics.md 7, docs/spec/vector.md 12.5.
`default_nettype none

module vc_f16_to_e8 (
    input  wire [15:0] half,
    output wire [23:0] code
);
    // {exponent step, fraction} of a subnormal: the leading one moves out at the top
    function automatic [13:0] normalize(input [9:0] m);
        reg [9:0] v;
        reg [3:0] n;
        begin
            v    = m;
            n[3] = v[9:2] == 8'd0;  if (n[3]) v = {v[1:0], 8'd0};
            n[2] = v[9:6] == 4'd0;  if (n[2]) v = {v[5:0], 4'd0};
            n[1] = v[9:8] == 2'd0;  if (n[1]) v = {v[7:0], 2'd0};
            n[0] = !v[9];           if (n[0]) v = {v[8:0], 1'b0};
            normalize = {n, v[8:0], 1'b0};
        end
    endfunction

    function automatic [22:0] convert(input [14:0] h);
        reg [13:0] sub;
        begin
            sub = normalize(h[9:0]);
            if (h[14:10] == 5'd31)     convert = {8'd255, h[9:0], 5'd0};
            else if (h[14:10] != 5'd0) convert = {{3'd0, h[14:10]} + 8'd112, h[9:0], 5'd0};
            else if (h[9:0] == 10'd0)  convert = 23'd0;
            else                       convert = {8'd112 - {4'd0, sub[13:10]}, sub[9:0], 5'd0};
        end
    endfunction

    assign code = {half[15], convert(half[14:0])};
endmodule

`default_nettype wire
