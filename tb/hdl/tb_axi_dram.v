// SPDX-License-Identifier: Apache-2.0
// Bench top of axi_dram_model: every channel reaches Python.
`default_nettype none
module tb_axi_dram #(
    parameter WORDS  = 4096,
    parameter BASE   = 0,
    parameter SINGLE = 0
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire [3:0]   axi_awid,
    input  wire [39:0]  axi_awaddr,
    input  wire [7:0]   axi_awlen,
    input  wire [2:0]   axi_awsize,
    input  wire [1:0]   axi_awburst,
    input  wire         axi_awvalid,
    output wire         axi_awready,
    input  wire [255:0] axi_wdata,
    input  wire [31:0]  axi_wstrb,
    input  wire         axi_wlast,
    input  wire         axi_wvalid,
    output wire         axi_wready,
    output wire [3:0]   axi_bid,
    output wire [1:0]   axi_bresp,
    output wire         axi_bvalid,
    input  wire         axi_bready,
    input  wire [3:0]   axi_arid,
    input  wire [39:0]  axi_araddr,
    input  wire [7:0]   axi_arlen,
    input  wire [2:0]   axi_arsize,
    input  wire [1:0]   axi_arburst,
    input  wire         axi_arvalid,
    output wire         axi_arready,
    output wire [3:0]   axi_rid,
    output wire [255:0] axi_rdata,
    output wire [1:0]   axi_rresp,
    output wire         axi_rlast,
    output wire         axi_rvalid,
    input  wire         axi_rready
);
    axi_dram_model #(
        .WORDS  (WORDS),
        .BASE   (BASE),
        .SINGLE (SINGLE)
    ) u_dram (
        .clk           (clk),
        .rst_n         (rst_n),
        .s_axi_awid    (axi_awid),
        .s_axi_awaddr  (axi_awaddr),
        .s_axi_awlen   (axi_awlen),
        .s_axi_awsize  (axi_awsize),
        .s_axi_awburst (axi_awburst),
        .s_axi_awvalid (axi_awvalid),
        .s_axi_awready (axi_awready),
        .s_axi_wdata   (axi_wdata),
        .s_axi_wstrb   (axi_wstrb),
        .s_axi_wlast   (axi_wlast),
        .s_axi_wvalid  (axi_wvalid),
        .s_axi_wready  (axi_wready),
        .s_axi_bid     (axi_bid),
        .s_axi_bresp   (axi_bresp),
        .s_axi_bvalid  (axi_bvalid),
        .s_axi_bready  (axi_bready),
        .s_axi_arid    (axi_arid),
        .s_axi_araddr  (axi_araddr),
        .s_axi_arlen   (axi_arlen),
        .s_axi_arsize  (axi_arsize),
        .s_axi_arburst (axi_arburst),
        .s_axi_arvalid (axi_arvalid),
        .s_axi_arready (axi_arready),
        .s_axi_rid     (axi_rid),
        .s_axi_rdata   (axi_rdata),
        .s_axi_rresp   (axi_rresp),
        .s_axi_rlast   (axi_rlast),
        .s_axi_rvalid  (axi_rvalid),
        .s_axi_rready  (axi_rready)
    );
endmodule
`default_nettype wire
