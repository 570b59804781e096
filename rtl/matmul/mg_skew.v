// SPDX-License-Identifier: Apache-2.0
// Operand skew of the packed array: a plain shift line of DEPTH stages (DEPTH = 0 is a wire).
// Written so that synthesis extracts shift-register primitives: no reset, one common enable.
// Latency DEPTH cycles while `en` = 1. Specification: docs/spec/cluster.md 4.2.
`default_nettype none

module mg_skew #(
    parameter WIDTH = 56,
    parameter DEPTH = 1
) (
    input  wire             clk,
    input  wire             en,
    input  wire [WIDTH-1:0] in,
    output wire [WIDTH-1:0] out
);
    generate
        if (DEPTH == 0) begin : g_wire
            wire unused_ctl = &{1'b0, clk, en};
            assign out = in;
        end else if (DEPTH == 1) begin : g_one
            reg [WIDTH-1:0] line_q;
            always @(posedge clk) if (en) line_q <= in;
            assign out = line_q;
        end else begin : g_line
            reg [WIDTH*DEPTH-1:0] line_q;
            always @(posedge clk) if (en) line_q <= {line_q[WIDTH*(DEPTH-1)-1:0], in};
            assign out = line_q[WIDTH*DEPTH-1 -: WIDTH];
        end
    endgenerate
endmodule

`default_nettype wire
