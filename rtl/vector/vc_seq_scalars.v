// SPDX-License-Identifier: Apache-2.0
// vc_seq_scalars: the 16 scalar registers, one write port, three read ports
// (docs/spec/vector.md 3). Reads are combinational.
`default_nettype none

module vc_seq_scalars (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        we,
    input  wire [3:0]  waddr,
    input  wire [23:0] wdata,
    input  wire [3:0]  ra, rb, rc,
    output wire [23:0] da, db, dc
);

    reg [23:0] s_q [0:15];
    integer i;

    always @(posedge clk) begin
        if (!rst_n) begin
            for (i = 0; i < 16; i = i + 1) s_q[i] <= 24'd0;
        end else if (we) begin
            s_q[waddr] <= wdata;
        end
    end

    assign da = s_q[ra];
    assign db = s_q[rb];
    assign dc = s_q[rc];

endmodule

`default_nettype wire
