// SPDX-License-Identifier: Apache-2.0
// tb_orch: the orchestrator between an AXI master and stand-ins for mesh, units and clients.
`default_nettype none

module tb_orch #(
    parameter STAGE_FLITS = 128,
    parameter CREDIT_MAX  = 32
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         w_go,
    input  wire [15:0]  w_addr,
    input  wire [7:0]   w_len,
    input  wire [2:0]   w_size,
    input  wire [1:0]   w_burst,
    input  wire [3:0]   w_id,
    input  wire [63:0]  w_data,
    input  wire [7:0]   w_strb,
    input  wire         fill,
    input  wire [7:0]   fill_at,
    output wire         w_done,
    output wire [1:0]   w_resp,
    output wire [3:0]   w_bid,
    input  wire         r_go,
    input  wire [15:0]  r_addr,
    input  wire [7:0]   r_len,
    input  wire [2:0]   r_size,
    input  wire [1:0]   r_burst,
    input  wire [3:0]   r_id,
    input  wire [7:0]   r_sel,
    output wire         r_done,
    output wire [63:0]  r_data,
    output wire [1:0]   r_resp,
    output wire         r_framing,
    input  wire         stall,
    input  wire         push,
    input  wire [287:0] flit,
    input  wire         blast,
    input  wire [31:0]  blast_n,
    input  wire [31:0]  blast_rep,
    input  wire [7:0]   blast_node,
    input  wire [7:0]   blast_code,
    output wire         feed_idle,
    input  wire         echo_en,
    input  wire [15:0]  echo_delay,
    input  wire [15:0]  echo_fault_at,
    output wire [15:0]  echo_seen,
    output wire [15:0]  echo_open,
    output wire [15:0]  echo_open_max,
    input  wire [1:0]   out_mode,
    input  wire [7:0]   out_level,
    input  wire [31:0]  seed,
    input  wire [9:0]   tap_sel,
    output wire [287:0] tap_data,
    output wire [31:0]  tap_count,
    output wire [31:0]  tap_gap_max,
    input  wire         aux_present,
    input  wire         aux_hold,
    input  wire         aux_stall,
    input  wire [63:0]  aux_stat,
    input  wire [7:0]   log_sel,
    output wire [71:0]  log_data,
    output wire [31:0]  log_count,
    input  wire         mreg_present,
    output wire [31:0]  mreg_count,
    input  wire         mesh_lost_in,
    output wire [31:0]  drops,
    output reg  [15:0]  done_races,     // cycles with a signal and a SIG_DONE clear
    output reg  [15:0]  err_races,      // cycles with an error and the clear of its bit
    output wire [31:0]  ready_after,
    // AXI4 of cocotbext-axi, used when ext = 1
    input  wire         ext,
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
    input  wire         s_axi_rready
);

    wire [3:0] m_awid;
    wire [15:0] m_awaddr;
    wire [7:0] m_awlen;
    wire [2:0] m_awsize;
    wire [1:0] m_awburst;
    wire m_awvalid;
    wire m_awready;
    wire [63:0] m_wdata;
    wire [7:0] m_wstrb;
    wire m_wlast;
    wire m_wvalid;
    wire m_wready;
    wire [3:0] m_bid;
    wire [1:0] m_bresp;
    wire m_bvalid;
    wire m_bready;
    wire [3:0] m_arid;
    wire [15:0] m_araddr;
    wire [7:0] m_arlen;
    wire [2:0] m_arsize;
    wire [1:0] m_arburst;
    wire m_arvalid;
    wire m_arready;
    wire [3:0] m_rid;
    wire [63:0] m_rdata;
    wire [1:0] m_rresp;
    wire m_rlast;
    wire m_rvalid;
    wire m_rready;
    wire [3:0] d_awid;
    wire [15:0] d_awaddr;
    wire [7:0] d_awlen;
    wire [2:0] d_awsize;
    wire [1:0] d_awburst;
    wire d_awvalid;
    wire d_awready;
    wire [63:0] d_wdata;
    wire [7:0] d_wstrb;
    wire d_wlast;
    wire d_wvalid;
    wire d_wready;
    wire [3:0] d_bid;
    wire [1:0] d_bresp;
    wire d_bvalid;
    wire d_bready;
    wire [3:0] d_arid;
    wire [15:0] d_araddr;
    wire [7:0] d_arlen;
    wire [2:0] d_arsize;
    wire [1:0] d_arburst;
    wire d_arvalid;
    wire d_arready;
    wire [3:0] d_rid;
    wire [63:0] d_rdata;
    wire [1:0] d_rresp;
    wire d_rlast;
    wire d_rvalid;
    wire d_rready;
    ctl_axi_master #(.ADDR_W(16)) u_master (
        .clk(clk), .rst_n(rst_n), .stall(stall),
        .w_go(w_go), .w_addr(w_addr), .w_len(w_len),
        .w_size(w_size), .w_burst(w_burst), .w_id(w_id),
        .w_data(w_data), .w_strb(w_strb), .fill(fill),
        .fill_at(fill_at), .w_done(w_done), .w_resp(w_resp),
        .w_bid(w_bid), .r_go(r_go), .r_addr(r_addr),
        .r_len(r_len), .r_size(r_size), .r_burst(r_burst),
        .r_id(r_id), .r_sel(r_sel), .r_done(r_done),
        .r_data(r_data), .r_resp(r_resp), .r_framing(r_framing),
        .m_awid(m_awid), .m_awaddr(m_awaddr), .m_awlen(m_awlen),
        .m_awsize(m_awsize), .m_awburst(m_awburst), .m_awvalid(m_awvalid),
        .m_awready(m_awready), .m_wdata(m_wdata), .m_wstrb(m_wstrb),
        .m_wlast(m_wlast), .m_wvalid(m_wvalid), .m_wready(m_wready),
        .m_bid(m_bid), .m_bresp(m_bresp), .m_bvalid(m_bvalid),
        .m_bready(m_bready), .m_arid(m_arid), .m_araddr(m_araddr),
        .m_arlen(m_arlen), .m_arsize(m_arsize), .m_arburst(m_arburst),
        .m_arvalid(m_arvalid), .m_arready(m_arready), .m_rid(m_rid),
        .m_rdata(m_rdata), .m_rresp(m_rresp), .m_rlast(m_rlast),
        .m_rvalid(m_rvalid), .m_rready(m_rready)
    );
    assign d_awid = ext ? s_axi_awid : m_awid;
    assign d_awaddr = ext ? s_axi_awaddr : m_awaddr;
    assign d_awlen = ext ? s_axi_awlen : m_awlen;
    assign d_awsize = ext ? s_axi_awsize : m_awsize;
    assign d_awburst = ext ? s_axi_awburst : m_awburst;
    assign d_awvalid = ext ? s_axi_awvalid : m_awvalid;
    assign m_awready = d_awready && !ext;
    assign s_axi_awready = d_awready && ext;
    assign d_wdata = ext ? s_axi_wdata : m_wdata;
    assign d_wstrb = ext ? s_axi_wstrb : m_wstrb;
    assign d_wlast = ext ? s_axi_wlast : m_wlast;
    assign d_wvalid = ext ? s_axi_wvalid : m_wvalid;
    assign m_wready = d_wready && !ext;
    assign s_axi_wready = d_wready && ext;
    assign m_bid = d_bid;
    assign s_axi_bid = d_bid;
    assign m_bresp = d_bresp;
    assign s_axi_bresp = d_bresp;
    assign m_bvalid = d_bvalid && !ext;
    assign s_axi_bvalid = d_bvalid && ext;
    assign d_bready = ext ? s_axi_bready : m_bready;
    assign d_arid = ext ? s_axi_arid : m_arid;
    assign d_araddr = ext ? s_axi_araddr : m_araddr;
    assign d_arlen = ext ? s_axi_arlen : m_arlen;
    assign d_arsize = ext ? s_axi_arsize : m_arsize;
    assign d_arburst = ext ? s_axi_arburst : m_arburst;
    assign d_arvalid = ext ? s_axi_arvalid : m_arvalid;
    assign m_arready = d_arready && !ext;
    assign s_axi_arready = d_arready && ext;
    assign m_rid = d_rid;
    assign s_axi_rid = d_rid;
    assign m_rdata = d_rdata;
    assign s_axi_rdata = d_rdata;
    assign m_rresp = d_rresp;
    assign s_axi_rresp = d_rresp;
    assign m_rlast = d_rlast;
    assign s_axi_rlast = d_rlast;
    assign m_rvalid = d_rvalid && !ext;
    assign s_axi_rvalid = d_rvalid && ext;
    assign d_rready = ext ? s_axi_rready : m_rready;

    wire         noc_in_valid, noc_in_busy, noc_out_valid, noc_out_busy, rx_drop;
    wire [287:0] noc_in_data, noc_out_data;

    // ---- mesh side: Python's flits before the echo of the units, through a register slice
    wire         feed_valid, echo_valid, mix_ready;
    wire [287:0] feed_data, echo_data;
    wire         out_stall;
    wire         sent = noc_out_valid && !noc_out_busy;
    ctl_flit_feed u_feed (
        .clk(clk), .rst_n(rst_n), .hold(1'b0), .push(push), .flit(flit), .blast(blast),
        .blast_n(blast_n), .blast_rep(blast_rep), .blast_node(blast_node), .blast_code(blast_code),
        .idle(feed_idle), .valid(feed_valid), .data(feed_data), .busy(!mix_ready)
    );
    ctl_unit_echo u_echo (
        .clk(clk), .rst_n(rst_n), .enable(echo_en), .delay(echo_delay), .fault_at(echo_fault_at),
        .see_valid(sent), .see_data(noc_out_data), .valid(echo_valid), .data(echo_data),
        .taken(mix_ready && !feed_valid && echo_valid),
        .seen(echo_seen), .open(echo_open), .open_max(echo_open_max)
    );
    skid2 #(.WIDTH(288)) u_mix (
        .clk(clk), .rst_n(rst_n), .in_valid(feed_valid || echo_valid), .in_ready(mix_ready),
        .in_data(feed_valid ? feed_data : echo_data),
        .out_valid(noc_in_valid), .out_ready(!noc_in_busy), .out_data(noc_in_data)
    );
    stall_gen u_stall (
        .clk(clk), .rst_n(rst_n), .seed(seed), .mode(out_mode), .level(out_level), .stall(out_stall)
    );
    assign noc_out_busy = out_stall || !rst_n;
    ctl_flit_tap u_tap (
        .clk(clk), .rst_n(rst_n), .valid(noc_out_valid), .busy(noc_out_busy), .data(noc_out_data),
        .sel(tap_sel), .sel_data(tap_data), .count(tap_count), .gap_max(tap_gap_max)
    );
`ifndef KT_ICARUS
    link_checker #(.ROLE(4)) u_check_in (
        .clk(clk), .rst_n(rst_n), .valid(noc_in_valid), .busy(noc_in_busy), .data(noc_in_data)
    );
    link_checker #(.ROLE(4), .MAX_BUSY(0)) u_check_out (
        .clk(clk), .rst_n(rst_n), .valid(noc_out_valid), .busy(noc_out_busy), .data(noc_out_data)
    );
`endif

    // ---- clients
    wire        aux_valid, aux_ready, mreg_en, mreg_we, mreg_err;
    wire [7:0]  aux_addr;
    wire [63:0] aux_data, aux_stat_q, mreg_wdata, mreg_rdata;
    wire [3:0]  aux_stat_sel;
    wire [6:0]  mreg_addr;
    ctl_clients u_clients (
        .clk(clk), .rst_n(rst_n), .aux_hold(aux_hold), .aux_stall(aux_stall),
        .aux_valid(aux_valid), .aux_addr(aux_addr), .aux_data(aux_data), .aux_stat_sel(aux_stat_sel),
        .aux_ready(aux_ready), .aux_stat_q(aux_stat_q),
        .log_sel(log_sel), .log_data(log_data), .log_count(log_count),
        .mreg_en(mreg_en), .mreg_we(mreg_we), .mreg_addr(mreg_addr), .mreg_wdata(mreg_wdata),
        .mreg_rdata(mreg_rdata), .mreg_err(mreg_err), .mreg_count(mreg_count)
    );
    orch #(
        .ORC_X(4'd1), .ORC_Y(4'd1), .STAGE_FLITS(STAGE_FLITS), .CREDIT_MAX(CREDIT_MAX),
        .NODE_MAP((256'd1 << 8'h01) | (256'd1 << 8'h12) | (256'd1 << 8'h33)), .GRID_X_HI(8'd2), .GRID_Y_HI(8'd1)
    ) dut (
        .clk(clk), .rst_n(rst_n), .s_axi_awid(d_awid),
        .s_axi_awaddr(d_awaddr), .s_axi_awlen(d_awlen), .s_axi_awsize(d_awsize),
        .s_axi_awburst(d_awburst), .s_axi_awvalid(d_awvalid), .s_axi_awready(d_awready),
        .s_axi_wdata(d_wdata), .s_axi_wstrb(d_wstrb), .s_axi_wlast(d_wlast),
        .s_axi_wvalid(d_wvalid), .s_axi_wready(d_wready), .s_axi_bid(d_bid),
        .s_axi_bresp(d_bresp), .s_axi_bvalid(d_bvalid), .s_axi_bready(d_bready),
        .s_axi_arid(d_arid), .s_axi_araddr(d_araddr), .s_axi_arlen(d_arlen),
        .s_axi_arsize(d_arsize), .s_axi_arburst(d_arburst), .s_axi_arvalid(d_arvalid),
        .s_axi_arready(d_arready), .s_axi_rid(d_rid), .s_axi_rdata(d_rdata),
        .s_axi_rresp(d_rresp), .s_axi_rlast(d_rlast), .s_axi_rvalid(d_rvalid),
        .s_axi_rready(d_rready), .noc_in_valid(noc_in_valid), .noc_in_data(noc_in_data),
        .noc_in_busy(noc_in_busy), .noc_out_valid(noc_out_valid), .noc_out_data(noc_out_data),
        .noc_out_busy(noc_out_busy), .mesh_lost_in(mesh_lost_in), .rx_drop(rx_drop),
        .aux_valid(aux_valid), .aux_addr(aux_addr), .aux_data(aux_data),
        .aux_stat_sel(aux_stat_sel), .aux_ready(aux_ready), .aux_present(aux_present),
        .aux_stat(aux_stat), .aux_stat_q(aux_stat_q), .mreg_en(mreg_en),
        .mreg_we(mreg_we), .mreg_addr(mreg_addr), .mreg_wdata(mreg_wdata),
        .mreg_present(mreg_present), .mreg_rdata(mreg_rdata), .mreg_err(mreg_err)
    );

    // cycles from reset release to a free inbound link, discarded mailbox flits
    reg [31:0] drops_q, ready_q;
    always @(posedge clk) begin
        if (!rst_n) begin
            drops_q    <= 32'd0;
            ready_q    <= 32'd0;
            done_races <= 16'd0;
            err_races  <= 16'd0;
        end else begin
            if (rx_drop) drops_q <= drops_q + 32'd1;
            if (noc_in_busy) ready_q <= ready_q + 32'd1;
            if (dut.done_clear && dut.u_mirror.s1_valid_q) done_races <= done_races + 16'd1;
            if ((dut.err_set & dut.err_clear) != 12'd0) err_races <= err_races + 16'd1;
        end
    end
    assign drops       = drops_q;
    assign ready_after = ready_q;
endmodule

`default_nettype wire
