// SPDX-License-Identifier: Apache-2.0
// ctl_flit_feed: flit source for benches. Each edge of `push` queues `flit`; an edge of `blast`
// sends blast_n CU_SIGNAL flits, blast_rep from one node, then the next node from blast_node on.
`default_nettype none

module ctl_flit_feed (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         hold,           // offer nothing new
    input  wire         push,
    input  wire [287:0] flit,
    input  wire         blast,
    input  wire [31:0]  blast_n,
    input  wire [31:0]  blast_rep,
    input  wire [7:0]   blast_node,
    input  wire [7:0]   blast_code,
    output reg          idle,
    output reg          valid,
    output reg  [287:0] data,
    input  wire         busy
);
    reg [287:0] mem [0:1023];
    reg [9:0]   wr, rd;
    reg         push_q, blast_q;
    reg [31:0]  left, rep;
    reg [7:0]   node;

    always @(posedge clk) begin
        push_q  <= push;
        blast_q <= blast;
        idle    <= (wr == rd) && (left == 32'd0) && !valid && (push == push_q) && (blast == blast_q);
        if (!rst_n) begin
            wr    <= 10'd0;
            rd    <= 10'd0;
            left  <= 32'd0;
            valid <= 1'b0;
        end else begin
            if (push != push_q) begin
                mem[wr] <= flit;
                wr      <= wr + 10'd1;
            end
            if (blast != blast_q) begin
                left <= blast_n;
                rep  <= blast_rep;
                node <= blast_node;
            end
            if (!valid || !busy) begin
                valid <= 1'b0;
                if (!hold) begin
                    if (wr != rd) begin
                        valid <= 1'b1;
                        data  <= mem[rd];
                        rd    <= rd + 10'd1;
                    end else if (left != 32'd0) begin
                        valid <= 1'b1;
                        data  <= {8'h11, node[3:0], node[7:4], 4'h6, 8'd0, 4'h8,
                                  blast_code, left, 216'd0};
                        left  <= left - 32'd1;
                        rep   <= (rep == 32'd1) ? blast_rep : rep - 32'd1;
                        if (rep == 32'd1) node <= node + 8'd1;
                    end
                end
            end
        end
    end
endmodule

`default_nettype wire
