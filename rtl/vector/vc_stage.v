// SPDX-License-Identifier: Apache-2.0
// Register of a pipeline that a build may leave out: q is d one enabled cycle later (ON = 1) or d itself (ON = 0).
// Latency ON cycles. W >= 1, ON 0 or 1.
`default_nettype none

module vc_stage #(
    parameter W  = 1,
    parameter ON = 1
) (
    input  wire         clk,
    input  wire         en,
    input  wire [W-1:0] d,
    output wire [W-1:0] q
);
    generate
        if (ON != 0) begin : g_register
            reg [W-1:0] value_q;
            always @(posedge clk) if (en) value_q <= d;
            assign q = value_q;
        end else begin : g_wire
            /* verilator lint_off UNUSEDSIGNAL */
            wire unused = clk ^ en;
            /* verilator lint_on UNUSEDSIGNAL */
            assign q = d;
        end
    endgenerate
endmodule

`default_nettype wire
