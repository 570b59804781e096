// SPDX-License-Identifier: Apache-2.0
// orch: bench stand-in with the ports of the real module and a traffic_node on its link;
// it counts the pulses of mesh_lost_in.
`default_nettype none

module orch #(
    parameter [3:0] ORC_X = 4'd1,
    parameter [3:0] ORC_Y = 4'd1,
    parameter STAGE_FLITS = 128,
    parameter CREDIT_MAX = 32,
    parameter [255:0] NODE_MAP = 256'd0,
    parameter [7:0] GRID_X_HI = 8'd2,
    parameter [7:0] GRID_Y_HI = 8'd1,
    parameter INTERLINK = 1
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy,
    input  wire [3:0]   s_axi_awid,
    input  wire [15:0]  s_axi_awaddr,
    input  wire [7:0]   s_axi_awlen,
    input  wire [2:0]   s_axi_awsize,
    input  wire [1:0]   s_axi_awburst,
    input  wire         s_axi_awvalid,
    output wire         s_axi_awready,
    input  wire [63:0]  s_axi_wdata,
    input  wire [7:0]   s_axi_wstrb,
    input  wire         s_axi_wlast,
    input  wire         s_axi_wvalid,
    output wire         s_axi_wready,
    output wire [3:0]   s_axi_bid,
    output wire [1:0]   s_axi_bresp,
    output wire         s_axi_bvalid,
    input  wire         s_axi_bready,
    input  wire [3:0]   s_axi_arid,
    input  wire [15:0]  s_axi_araddr,
    input  wire [7:0]   s_axi_arlen,
    input  wire [2:0]   s_axi_arsize,
    input  wire [1:0]   s_axi_arburst,
    input  wire         s_axi_arvalid,
    output wire         s_axi_arready,
    output wire [3:0]   s_axi_rid,
    output wire [63:0]  s_axi_rdata,
    output wire [1:0]   s_axi_rresp,
    output wire         s_axi_rlast,
    output wire         s_axi_rvalid,
    input  wire         s_axi_rready,
    input  wire         mesh_lost_in,
    output wire         rx_drop,
    output wire         aux_valid,
    output wire [7:0]   aux_addr,
    output wire [63:0]  aux_data,
    output wire [3:0]   aux_stat_sel,
    output wire         mreg_en,
    output wire         mreg_we,
    output wire [6:0]   mreg_addr,
    output wire [63:0]  mreg_wdata,
    input  wire         aux_ready,
    input  wire         aux_present,
    input  wire [63:0]  aux_stat,
    input  wire [63:0]  aux_stat_q,
    input  wire         mreg_present,
    input  wire [63:0]  mreg_rdata,
    input  wire         mreg_err
);

    reg [31:0] mesh_lost /*verilator public_flat_rd*/;

    always @(posedge clk) begin
        if (!rst_n) mesh_lost <= 0;
        else        mesh_lost <= mesh_lost + {31'd0, mesh_lost_in};
    end

    traffic_node #(.POS_X({28'd0, ORC_X}), .POS_Y({28'd0, ORC_Y}), .TYPES(16'hFFFF)) u_node (
        .clk(clk), .rst_n(rst_n),
        .noc_in_valid(noc_in_valid), .noc_in_data(noc_in_data), .noc_in_busy(noc_in_busy),
        .noc_out_valid(noc_out_valid), .noc_out_data(noc_out_data), .noc_out_busy(noc_out_busy));

    assign s_axi_awready = 1'd0;
    assign s_axi_wready = 1'd0;
    assign s_axi_bid = 4'd0;
    assign s_axi_bresp = 2'd0;
    assign s_axi_bvalid = 1'd0;
    assign s_axi_arready = 1'd0;
    assign s_axi_rid = 4'd0;
    assign s_axi_rdata = 64'd0;
    assign s_axi_rresp = 2'd0;
    assign s_axi_rlast = 1'd0;
    assign s_axi_rvalid = 1'd0;
    assign rx_drop = 1'b0;
    assign aux_valid = 1'd0;
    assign aux_addr = 8'd0;
    assign aux_data = 64'd0;
    assign aux_stat_sel = 4'd0;
    assign mreg_en = 1'd0;
    assign mreg_we = 1'd0;
    assign mreg_addr = 7'd0;
    assign mreg_wdata = 64'd0;
    wire unused = &{1'b0, s_axi_awid, s_axi_awaddr, s_axi_awlen, s_axi_awsize, s_axi_awburst,
        s_axi_awvalid, s_axi_wdata, s_axi_wstrb, s_axi_wlast, s_axi_wvalid, s_axi_bready,
        s_axi_arid, s_axi_araddr, s_axi_arlen, s_axi_arsize, s_axi_arburst, s_axi_arvalid,
        s_axi_rready, aux_ready, aux_present, aux_stat, aux_stat_q, mreg_present, mreg_rdata,
        mreg_err};

endmodule

`default_nettype wire
