// SPDX-License-Identifier: Apache-2.0
//
// host_arb: host and engine share the orchestrator port (docs/spec/fabric.md 7.1): one arbiter for
// writes and one for reads, whole transactions, round robin.
//
// The host side (h_) is AXI4, the engine side (e_) is AXI4-Lite. A grant is held from the address to
// the last response beat. Latency: 1 cycle for the grant, then combinational.

`default_nettype none

module host_arb (
    input  wire        clk,
    input  wire        rst_n,

    input  wire [3:0]  h_awid,
    input  wire [15:0] h_awaddr,
    input  wire [7:0]  h_awlen,
    input  wire [2:0]  h_awsize,
    input  wire [1:0]  h_awburst,
    input  wire        h_awvalid,
    output wire        h_awready,
    input  wire [63:0] h_wdata,
    input  wire [7:0]  h_wstrb,
    input  wire        h_wlast,
    input  wire        h_wvalid,
    output wire        h_wready,
    output wire        h_bvalid,
    input  wire        h_bready,
    input  wire [3:0]  h_arid,
    input  wire [15:0] h_araddr,
    input  wire [7:0]  h_arlen,
    input  wire [2:0]  h_arsize,
    input  wire [1:0]  h_arburst,
    input  wire        h_arvalid,
    output wire        h_arready,
    output wire        h_rvalid,
    input  wire        h_rready,

    input  wire [15:0] e_awaddr,
    input  wire        e_awvalid,
    output wire        e_awready,
    input  wire [63:0] e_wdata,
    input  wire        e_wvalid,
    output wire        e_wready,
    output wire        e_bvalid,
    input  wire        e_bready,
    input  wire [15:0] e_araddr,
    input  wire        e_arvalid,
    output wire        e_arready,
    output wire        e_rvalid,
    input  wire        e_rready,

    output wire [3:0]  m_axi_awid,
    output wire [15:0] m_axi_awaddr,
    output wire [7:0]  m_axi_awlen,
    output wire [2:0]  m_axi_awsize,
    output wire [1:0]  m_axi_awburst,
    output wire        m_axi_awvalid,
    input  wire        m_axi_awready,
    output wire [63:0] m_axi_wdata,
    output wire [7:0]  m_axi_wstrb,
    output wire        m_axi_wlast,
    output wire        m_axi_wvalid,
    input  wire        m_axi_wready,
    input  wire        m_axi_bvalid,
    output wire        m_axi_bready,
    output wire [3:0]  m_axi_arid,
    output wire [15:0] m_axi_araddr,
    output wire [7:0]  m_axi_arlen,
    output wire [2:0]  m_axi_arsize,
    output wire [1:0]  m_axi_arburst,
    output wire        m_axi_arvalid,
    input  wire        m_axi_arready,
    input  wire        m_axi_rlast,
    input  wire        m_axi_rvalid,
    output wire        m_axi_rready
);
    localparam [1:0] INCR = 2'b01;
    localparam [2:0] FULL = 3'd3;

    // ---- writes: grant, then the address must pass once, data and response follow ---------------------
    reg  w_busy_q, w_eng_q, w_addr_done_q;
    wire w_pick_eng = e_awvalid && (!h_awvalid || !w_eng_q);   // w_eng_q: the previous owner
    wire w_host = w_busy_q && !w_eng_q;
    wire w_eng  = w_busy_q && w_eng_q;
    wire w_end  = m_axi_bvalid && m_axi_bready;

    assign m_axi_awvalid = !w_addr_done_q && ((w_host && h_awvalid) || (w_eng && e_awvalid));
    assign m_axi_awid    = w_eng_q ? 4'd0     : h_awid;
    assign m_axi_awaddr  = w_eng_q ? e_awaddr : h_awaddr;
    assign m_axi_awlen   = w_eng_q ? 8'd0     : h_awlen;
    assign m_axi_awsize  = w_eng_q ? FULL     : h_awsize;
    assign m_axi_awburst = w_eng_q ? INCR     : h_awburst;
    assign m_axi_wvalid  = (w_host && h_wvalid) || (w_eng && e_wvalid);
    assign m_axi_wdata   = w_eng_q ? e_wdata : h_wdata;
    assign m_axi_wstrb   = w_eng_q ? 8'hFF   : h_wstrb;
    assign m_axi_wlast   = w_eng_q ? 1'b1    : h_wlast;
    assign m_axi_bready  = (w_host && h_bready) || (w_eng && e_bready);
    assign h_awready     = w_host && !w_addr_done_q && m_axi_awready;
    assign e_awready     = w_eng && !w_addr_done_q && m_axi_awready;
    assign h_wready      = w_host && m_axi_wready;
    assign e_wready      = w_eng && m_axi_wready;
    assign h_bvalid      = w_host && m_axi_bvalid;
    assign e_bvalid      = w_eng && m_axi_bvalid;

    always @(posedge clk) begin
        if (!rst_n) begin
            w_busy_q      <= 1'b0;
            w_eng_q       <= 1'b0;
            w_addr_done_q <= 1'b0;
        end else if (!w_busy_q) begin
            if (h_awvalid || e_awvalid) begin
                w_busy_q <= 1'b1;
                w_eng_q  <= w_pick_eng;
            end
            w_addr_done_q <= 1'b0;
        end else begin
            if (m_axi_awvalid && m_axi_awready) w_addr_done_q <= 1'b1;
            if (w_end) w_busy_q <= 1'b0;
        end
    end

    // ---- reads ------------------------------------------------------------------------------------
    reg  r_busy_q, r_eng_q, r_addr_done_q;
    wire r_pick_eng = e_arvalid && (!h_arvalid || !r_eng_q);
    wire r_host = r_busy_q && !r_eng_q;
    wire r_eng  = r_busy_q && r_eng_q;
    wire r_end  = m_axi_rvalid && m_axi_rready && m_axi_rlast;

    assign m_axi_arvalid = !r_addr_done_q && ((r_host && h_arvalid) || (r_eng && e_arvalid));
    assign m_axi_arid    = r_eng_q ? 4'd0     : h_arid;
    assign m_axi_araddr  = r_eng_q ? e_araddr : h_araddr;
    assign m_axi_arlen   = r_eng_q ? 8'd0     : h_arlen;
    assign m_axi_arsize  = r_eng_q ? FULL     : h_arsize;
    assign m_axi_arburst = r_eng_q ? INCR     : h_arburst;
    assign m_axi_rready  = (r_host && h_rready) || (r_eng && e_rready);
    assign h_arready     = r_host && !r_addr_done_q && m_axi_arready;
    assign e_arready     = r_eng && !r_addr_done_q && m_axi_arready;
    assign h_rvalid      = r_host && m_axi_rvalid;
    assign e_rvalid      = r_eng && m_axi_rvalid;

    always @(posedge clk) begin
        if (!rst_n) begin
            r_busy_q      <= 1'b0;
            r_eng_q       <= 1'b0;
            r_addr_done_q <= 1'b0;
        end else if (!r_busy_q) begin
            if (h_arvalid || e_arvalid) begin
                r_busy_q <= 1'b1;
                r_eng_q  <= r_pick_eng;
            end
            r_addr_done_q <= 1'b0;
        end else begin
            if (m_axi_arvalid && m_axi_arready) r_addr_done_q <= 1'b1;
            if (r_end) r_busy_q <= 1'b0;
        end
    end
endmodule

`default_nettype wire
