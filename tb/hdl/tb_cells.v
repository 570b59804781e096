// SPDX-License-Identifier: Apache-2.0
// tb_cells: fifo_sync (three depths) and skid2 between a pattern source and a
// checking sink, and ram_sdp at read latencies 1..3 with open ports.
`default_nettype none

module tb_cells #(
    parameter PRIM = "distributed"
) (
    input  wire        clk,
    input  wire        rst_n,

    // Source and sink, common to all lanes: chances of 256 per cycle.
    input  wire [8:0]  push_rate,
    input  wire [8:0]  pop_rate,
    input  wire [31:0] seed,
    input  wire [31:0] limit,
    output wire [3:0]  lane_done,
    output wire [3:0]  lane_bad,
    output wire [3:0]  hit_full,
    output wire [3:0]  hit_drained,
    output wire [127:0] popped,

    // RAM ports
    input  wire        wr_en,
    input  wire [4:0]  wr_addr,
    input  wire [39:0] wr_data,
    input  wire        rd_en,
    input  wire [4:0]  rd_addr,
    output wire [39:0] rd_data1,
    output wire [39:0] rd_data2,
    output wire [39:0] rd_data3
);

    genvar g;
    generate
        for (g = 0; g < 4; g = g + 1) begin : g_lane
            localparam DEPTH = (g == 0) ? 2 : (g == 1) ? 4 : (g == 2) ? 32 : 2;
            wire        in_valid, in_ready, out_valid, out_ready;
            wire [39:0] in_data, out_data;
            wire [$clog2(DEPTH):0] level;

            if (g < 3) begin : g_fifo
                fifo_sync #(.WIDTH(40), .DEPTH(DEPTH), .PRIM(PRIM)) u_fifo (
                    .clk(clk), .rst_n(rst_n),
                    .in_valid(in_valid), .in_ready(in_ready), .in_data(in_data),
                    .out_valid(out_valid), .out_ready(out_ready), .out_data(out_data),
                    .level(level));
            end else begin : g_skid
                assign level = {($clog2(DEPTH)+1){1'b0}};
                skid2 #(.WIDTH(40)) u_skid (
                    .clk(clk), .rst_n(rst_n),
                    .in_valid(in_valid), .in_ready(in_ready), .in_data(in_data),
                    .out_valid(out_valid), .out_ready(out_ready), .out_data(out_data));
            end

            cell_exerciser #(.DEPTH(DEPTH), .HAS_LEVEL(g < 3), .SALT(g)) u_exercise (
                .clk(clk), .rst_n(rst_n), .push_rate(push_rate), .pop_rate(pop_rate),
                .seed(seed), .limit(limit),
                .in_valid(in_valid), .in_ready(in_ready), .in_data(in_data),
                .out_valid(out_valid), .out_ready(out_ready), .out_data(out_data),
                .level({{(31-$clog2(DEPTH)){1'b0}}, level}),
                .done(lane_done[g]), .bad(lane_bad[g]), .hit_full(hit_full[g]),
                .hit_drained(hit_drained[g]), .popped(popped[32*g +: 32]));
        end
    endgenerate

    ram_sdp #(.WIDTH(40), .DEPTH(32), .PRIM(PRIM), .READ_LAT(1)) u_ram1 (
        .clk(clk), .wr_en(wr_en), .wr_addr(wr_addr), .wr_data(wr_data),
        .rd_en(rd_en), .rd_addr(rd_addr), .rd_data(rd_data1));
    ram_sdp #(.WIDTH(40), .DEPTH(32), .PRIM(PRIM), .READ_LAT(2)) u_ram2 (
        .clk(clk), .wr_en(wr_en), .wr_addr(wr_addr), .wr_data(wr_data),
        .rd_en(rd_en), .rd_addr(rd_addr), .rd_data(rd_data2));
    ram_sdp #(.WIDTH(40), .DEPTH(32), .PRIM(PRIM), .READ_LAT(3)) u_ram3 (
        .clk(clk), .wr_en(wr_en), .wr_addr(wr_addr), .wr_data(wr_data),
        .rd_en(rd_en), .rd_addr(rd_addr), .rd_data(rd_data3));

endmodule

`default_nettype wire
