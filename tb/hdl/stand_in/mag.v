// SPDX-License-Identifier: Apache-2.0
// mag: bench stand-in with the ports of the real module and a traffic_node
// on the link of every port; the DRAM side stays idle.
`default_nettype none

module mag #(
    parameter PORTS = 1,
    parameter MESH_ID = 0,
    parameter PORT0_X = 0,
    parameter PORT0_Y = 1,
    parameter PORT1_X = 0,
    parameter PORT1_Y = 3,
    parameter PORT2_X = 0,
    parameter PORT2_Y = 4,
    parameter PORT3_X = 0,
    parameter PORT3_Y = 5,
    parameter WR_SLOTS = 16,
    parameter DRAM_BYTES_LOG2 = 32,
    parameter STAGE = 0,
    parameter STAGE_ENTRIES = 16384,
    parameter HOST = 0,
    parameter MOVER = 0
) (
    input  wire                 clk,
    input  wire                 rst_n,
    input  wire [PORTS-1:0]     noc_in_valid,
    input  wire [288*PORTS-1:0] noc_in_data,
    output wire [PORTS-1:0]     noc_in_busy,
    output wire [PORTS-1:0]     noc_out_valid,
    output wire [288*PORTS-1:0] noc_out_data,
    input  wire [PORTS-1:0]     noc_out_busy,
    output wire [3:0]   m_axi_dram_awid,
    output wire [39:0]  m_axi_dram_awaddr,
    output wire [7:0]   m_axi_dram_awlen,
    output wire [2:0]   m_axi_dram_awsize,
    output wire [1:0]   m_axi_dram_awburst,
    output wire         m_axi_dram_awlock,
    output wire [3:0]   m_axi_dram_awcache,
    output wire [2:0]   m_axi_dram_awprot,
    output wire [3:0]   m_axi_dram_awqos,
    output wire [3:0]   m_axi_dram_awregion,
    output wire         m_axi_dram_awvalid,
    input  wire         m_axi_dram_awready,
    output wire [255:0] m_axi_dram_wdata,
    output wire [31:0]  m_axi_dram_wstrb,
    output wire         m_axi_dram_wlast,
    output wire         m_axi_dram_wvalid,
    input  wire         m_axi_dram_wready,
    input  wire [3:0]   m_axi_dram_bid,
    input  wire [1:0]   m_axi_dram_bresp,
    input  wire         m_axi_dram_bvalid,
    output wire         m_axi_dram_bready,
    output wire [3:0]   m_axi_dram_arid,
    output wire [39:0]  m_axi_dram_araddr,
    output wire [7:0]   m_axi_dram_arlen,
    output wire [2:0]   m_axi_dram_arsize,
    output wire [1:0]   m_axi_dram_arburst,
    output wire         m_axi_dram_arlock,
    output wire [3:0]   m_axi_dram_arcache,
    output wire [2:0]   m_axi_dram_arprot,
    output wire [3:0]   m_axi_dram_arqos,
    output wire [3:0]   m_axi_dram_arregion,
    output wire         m_axi_dram_arvalid,
    input  wire         m_axi_dram_arready,
    input  wire [3:0]   m_axi_dram_rid,
    input  wire [255:0] m_axi_dram_rdata,
    input  wire [1:0]   m_axi_dram_rresp,
    input  wire         m_axi_dram_rlast,
    input  wire         m_axi_dram_rvalid,
    output wire         m_axi_dram_rready,
    input  wire [3:0]   s_axi_mem_awid,
    input  wire [39:0]  s_axi_mem_awaddr,
    input  wire [7:0]   s_axi_mem_awlen,
    input  wire [2:0]   s_axi_mem_awsize,
    input  wire [1:0]   s_axi_mem_awburst,
    input  wire         s_axi_mem_awvalid,
    output wire         s_axi_mem_awready,
    input  wire [255:0] s_axi_mem_wdata,
    input  wire [31:0]  s_axi_mem_wstrb,
    input  wire         s_axi_mem_wlast,
    input  wire         s_axi_mem_wvalid,
    output wire         s_axi_mem_wready,
    output wire [3:0]   s_axi_mem_bid,
    output wire [1:0]   s_axi_mem_bresp,
    output wire         s_axi_mem_bvalid,
    input  wire         s_axi_mem_bready,
    input  wire [3:0]   s_axi_mem_arid,
    input  wire [39:0]  s_axi_mem_araddr,
    input  wire [7:0]   s_axi_mem_arlen,
    input  wire [2:0]   s_axi_mem_arsize,
    input  wire [1:0]   s_axi_mem_arburst,
    input  wire         s_axi_mem_arvalid,
    output wire         s_axi_mem_arready,
    output wire [3:0]   s_axi_mem_rid,
    output wire [255:0] s_axi_mem_rdata,
    output wire [1:0]   s_axi_mem_rresp,
    output wire         s_axi_mem_rlast,
    output wire         s_axi_mem_rvalid,
    input  wire         s_axi_mem_rready,
    input  wire         aux_valid,
    input  wire [7:0]   aux_addr,
    input  wire [63:0]  aux_data,
    input  wire [3:0]   aux_stat_sel,
    output wire         aux_ready,
    output wire         aux_present,
    output wire [63:0]  aux_stat,
    output wire [63:0]  aux_stat_q,
    input  wire         mreg_en,
    input  wire         mreg_we,
    input  wire [6:0]   mreg_addr,
    input  wire [63:0]  mreg_wdata,
    output wire         mreg_present,
    output wire [63:0]  mreg_rdata,
    output wire         mreg_err,
    input  wire         ctrl_drop_in,
    input  wire         remote_drop_in,
    output wire         lost
);

    localparam [15:0] POS = {PORT3_X[3:0], PORT2_X[3:0], PORT1_X[3:0], PORT0_X[3:0]};
    localparam [15:0] ROW = {PORT3_Y[3:0], PORT2_Y[3:0], PORT1_Y[3:0], PORT0_Y[3:0]};

    genvar p;
    generate
        for (p = 0; p < PORTS; p = p + 1) begin : g_port
            traffic_node #(
                .POS_X ({28'd0, POS[4*p +: 4]}),
                .POS_Y ({28'd0, ROW[4*p +: 4]}),
                .TYPES (16'h000C)
            ) u_node (
                .clk           (clk),
                .rst_n         (rst_n),
                .noc_in_valid  (noc_in_valid[p]),
                .noc_in_data   (noc_in_data[288*p +: 288]),
                .noc_in_busy   (noc_in_busy[p]),
                .noc_out_valid (noc_out_valid[p]),
                .noc_out_data  (noc_out_data[288*p +: 288]),
                .noc_out_busy  (noc_out_busy[p])
            );
        end
    endgenerate

    assign m_axi_dram_awid = 4'd0;
    assign m_axi_dram_awaddr = 40'd0;
    assign m_axi_dram_awlen = 8'd0;
    assign m_axi_dram_awsize = 3'd0;
    assign m_axi_dram_awburst = 2'd0;
    assign m_axi_dram_awlock = 1'd0;
    assign m_axi_dram_awcache = 4'd0;
    assign m_axi_dram_awprot = 3'd0;
    assign m_axi_dram_awqos = 4'd0;
    assign m_axi_dram_awregion = 4'd0;
    assign m_axi_dram_awvalid = 1'd0;
    assign m_axi_dram_wdata = 256'd0;
    assign m_axi_dram_wstrb = 32'd0;
    assign m_axi_dram_wlast = 1'd0;
    assign m_axi_dram_wvalid = 1'd0;
    assign m_axi_dram_bready = 1'd0;
    assign m_axi_dram_arid = 4'd0;
    assign m_axi_dram_araddr = 40'd0;
    assign m_axi_dram_arlen = 8'd0;
    assign m_axi_dram_arsize = 3'd0;
    assign m_axi_dram_arburst = 2'd0;
    assign m_axi_dram_arlock = 1'd0;
    assign m_axi_dram_arcache = 4'd0;
    assign m_axi_dram_arprot = 3'd0;
    assign m_axi_dram_arqos = 4'd0;
    assign m_axi_dram_arregion = 4'd0;
    assign m_axi_dram_arvalid = 1'd0;
    assign m_axi_dram_rready = 1'd0;
    assign s_axi_mem_awready = 1'b0;
    assign s_axi_mem_wready = 1'b0;
    assign s_axi_mem_bid = 4'd0;
    assign s_axi_mem_bresp = 2'd0;
    assign s_axi_mem_bvalid = 1'b0;
    assign s_axi_mem_arready = 1'b0;
    assign s_axi_mem_rid = 4'd0;
    assign s_axi_mem_rdata = 256'd0;
    assign s_axi_mem_rresp = 2'd0;
    assign s_axi_mem_rlast = 1'b0;
    assign s_axi_mem_rvalid = 1'b0;
    assign aux_ready = 1'b0;
    assign aux_present = 1'b0;
    assign aux_stat = 64'd0;
    assign aux_stat_q = 64'd0;
    assign mreg_present = 1'b1;
    assign mreg_rdata = 64'd0;
    assign mreg_err = 1'b0;
    assign lost = 1'b0;
    wire unused = &{1'b0, m_axi_dram_awready, m_axi_dram_wready, m_axi_dram_bid,
        m_axi_dram_bresp, m_axi_dram_bvalid, m_axi_dram_arready, m_axi_dram_rid,
        m_axi_dram_rdata, m_axi_dram_rresp, m_axi_dram_rlast, m_axi_dram_rvalid, mreg_en,
        mreg_we, mreg_addr, mreg_wdata, ctrl_drop_in, remote_drop_in, s_axi_mem_awid, s_axi_mem_awaddr,
        s_axi_mem_awlen, s_axi_mem_awsize, s_axi_mem_awburst, s_axi_mem_awvalid, s_axi_mem_wdata,
        s_axi_mem_wstrb, s_axi_mem_wlast, s_axi_mem_wvalid, s_axi_mem_bready, s_axi_mem_arid,
        s_axi_mem_araddr, s_axi_mem_arlen, s_axi_mem_arsize, s_axi_mem_arburst, s_axi_mem_arvalid,
        s_axi_mem_rready, aux_valid, aux_addr, aux_data, aux_stat_sel};

endmodule

`default_nettype wire
