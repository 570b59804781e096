// SPDX-License-Identifier: Apache-2.0
//
// ram_bytes: one write port with byte enables, one read port (docs/spec/fabric.md 6.3, 7.2).
//
// One ram_sdp of one byte per lane. Read data is valid one cycle after `rd_en` and held while
// rd_en = 0; a read of an address written in the same cycle returns the old data.
// Parameters: BYTES >= 1, DEPTH >= 2, PRIM as ram_sdp.

`default_nettype none

module ram_bytes #(
    parameter BYTES = 8,
    parameter DEPTH = 128,
    parameter PRIM  = "block",
    parameter AW    = $clog2(DEPTH)
) (
    input  wire               clk,
    input  wire [BYTES-1:0]   wr_strb,
    input  wire [AW-1:0]      wr_addr,
    input  wire [8*BYTES-1:0] wr_data,
    input  wire               rd_en,
    input  wire [AW-1:0]      rd_addr,
    output wire [8*BYTES-1:0] rd_data
);
    genvar b;
    generate
        for (b = 0; b < BYTES; b = b + 1) begin : g_lane
            ram_sdp #(
                .WIDTH(8), .DEPTH(DEPTH), .PRIM(PRIM), .READ_LAT(1)
            ) u_ram (
                .clk    (clk),
                .wr_en  (wr_strb[b]),
                .wr_addr(wr_addr),
                .wr_data(wr_data[8*b +: 8]),
                .rd_en  (rd_en),
                .rd_addr(rd_addr),
                .rd_data(rd_data[8*b +: 8])
            );
        end
    endgenerate
endmodule

`default_nettype wire
