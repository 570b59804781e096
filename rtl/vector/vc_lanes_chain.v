// SPDX-License-Identifier: Apache-2.0
// vc_lanes_chain: what the later stages of a chain do, by group
// (docs/spec/vector.md 7.3, 13.1).
//
// Each stage has a table of the groups in flight, written as their words are
// decoded and read when the first beat of a group reaches the stage, so beats
// of the group before still find theirs. With at least D beats a group fewer
// than 16 groups are between decode and their last stage.
`default_nettype none

module vc_lanes_chain (
    input  wire         clk,
    input  wire         rst_n,
    input  wire [3:1]   we,
    input  wire [3:0]   slot,
    input  wire [79:0]  wdata,
    input  wire [3:1]   rd,             // a group begins at the stage in the next cycle
    output wire [239:0] ctl             // stage j at [80*(j-1) +: 80]
);

    genvar j;
    generate
        for (j = 1; j < 4; j = j + 1) begin : g_stage
            reg [3:0] next_q;
            always @(posedge clk) begin
                if (!rst_n) next_q <= 4'd0;
                else if (rd[j]) next_q <= next_q + 4'd1;
            end
            ram_sdp #(.WIDTH(80), .DEPTH(16), .PRIM("distributed")) u_table (
                .clk     (clk),
                .wr_en   (we[j]),
                .wr_addr (slot),
                .wr_data (wdata),
                .rd_en   (rd[j]),
                .rd_addr (next_q),
                .rd_data (ctl[80*(j-1) +: 80])
            );
        end
    endgenerate

endmodule

`default_nettype wire
