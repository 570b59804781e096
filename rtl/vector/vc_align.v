// SPDX-License-Identifier: Apache-2.0
// Addend of the multiply-add placed into the 49-bit window over the product: window_q = (sig << 33) >> down,
// lost_q = 1 if a set bit left at the bottom. down: 0..49.
// Latency 1 cycle with `en`, one a cycle.
// Specification: docs/spec/numerics.md 8, docs/spec/vector.md 12.3.
`default_nettype none

module vc_align (
    input  wire        clk,
    input  wire        en,
    input  wire [15:0] sig,
    input  wire [5:0]  down,
    output reg  [48:0] window_q,
    output reg         lost_q
);
    always @(posedge clk) if (en) begin : align
        reg [15:0] below;                                  // bits of sig that leave: 49 - down positions stay
        below     = (down > 6'd33) ? 16'hFFFF >> (4'd1 - down[3:0]) : 16'd0;
        window_q <= {sig, 33'd0} >> down;
        lost_q   <= (sig & below) != 16'd0;
    end
endmodule

`default_nettype wire
