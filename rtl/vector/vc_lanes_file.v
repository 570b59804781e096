// SPDX-License-Identifier: Apache-2.0
// vc_lanes_file: the vector registers: per lane three copies of 128 words, one
// read port each, written together (docs/spec/vector.md 1.3, 3).
//
// Latency    read one cycle; the data stay until the next read of the port.
// A read of the address written in the same cycle returns the old word.
`default_nettype none

module vc_lanes_file (
    input  wire         clk,
    input  wire         rd_a,
    input  wire         rd_b,
    input  wire         rd_c,
    input  wire [6:0]   addr_a,         // {register, chunk}
    input  wire [6:0]   addr_b,
    input  wire [6:0]   addr_c,
    output wire [383:0] a,
    output wire [383:0] b,
    output wire [383:0] c,
    input  wire [15:0]  we,             // by lane
    input  wire [6:0]   waddr,
    input  wire [383:0] wdata
);

    genvar l;
    generate
        for (l = 0; l < 16; l = l + 1) begin : g_lane
            ram_sdp #(.WIDTH(24), .DEPTH(128), .PRIM("distributed")) u_a (
                .clk(clk), .wr_en(we[l]), .wr_addr(waddr), .wr_data(wdata[24*l +: 24]),
                .rd_en(rd_a), .rd_addr(addr_a), .rd_data(a[24*l +: 24]));
            ram_sdp #(.WIDTH(24), .DEPTH(128), .PRIM("distributed")) u_b (
                .clk(clk), .wr_en(we[l]), .wr_addr(waddr), .wr_data(wdata[24*l +: 24]),
                .rd_en(rd_b), .rd_addr(addr_b), .rd_data(b[24*l +: 24]));
            ram_sdp #(.WIDTH(24), .DEPTH(128), .PRIM("distributed")) u_c (
                .clk(clk), .wr_en(we[l]), .wr_addr(waddr), .wr_data(wdata[24*l +: 24]),
                .rd_en(rd_c), .rd_addr(addr_c), .rd_data(c[24*l +: 24]));
        end
    endgenerate

endmodule

`default_nettype wire
