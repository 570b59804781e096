// SPDX-License-Identifier: Apache-2.0
// tb_ctl_engine: host port and engine in front of tb_orch, a real orchestrator among stand-ins.
`default_nettype none

module tb_ctl_engine #(
    parameter NCMD        = 128,
    parameter POLL_IVL    = 31,
    parameter STAGE_FLITS = 128,
    parameter CREDIT_MAX  = 32
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         w_go,
    input  wire [31:0]  w_addr,
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
    input  wire [31:0]  r_addr,
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
    output wire         irq,
    input  wire [9:0]   bus_sel,
    output wire [79:0]  bus_data,
    output wire [31:0]  bus_count,
    output wire [31:0]  bus_reads,
    input  wire         b_hold,
    output reg  [15:0]  ties_w,         // cycles in which both sides asked a free port
    output reg  [15:0]  ties_r,
    output reg  [15:0]  unfair          // ties won by the side that was served last
);

    wire [3:0] h_awid;
    wire [31:0] h_awaddr;
    wire [7:0] h_awlen;
    wire [2:0] h_awsize;
    wire [1:0] h_awburst;
    wire h_awvalid;
    wire h_awready;
    wire [63:0] h_wdata;
    wire [7:0] h_wstrb;
    wire h_wlast;
    wire h_wvalid;
    wire h_wready;
    wire [3:0] h_bid;
    wire [1:0] h_bresp;
    wire h_bvalid;
    wire h_bready;
    wire [3:0] h_arid;
    wire [31:0] h_araddr;
    wire [7:0] h_arlen;
    wire [2:0] h_arsize;
    wire [1:0] h_arburst;
    wire h_arvalid;
    wire h_arready;
    wire [3:0] h_rid;
    wire [63:0] h_rdata;
    wire [1:0] h_rresp;
    wire h_rlast;
    wire h_rvalid;
    wire h_rready;
    wire [3:0] o_awid;
    wire [15:0] o_awaddr;
    wire [7:0] o_awlen;
    wire [2:0] o_awsize;
    wire [1:0] o_awburst;
    wire o_awvalid;
    wire o_awready;
    wire [63:0] o_wdata;
    wire [7:0] o_wstrb;
    wire o_wlast;
    wire o_wvalid;
    wire o_wready;
    wire [3:0] o_bid;
    wire [1:0] o_bresp;
    wire o_bvalid;
    wire o_bready;
    wire [3:0] o_arid;
    wire [15:0] o_araddr;
    wire [7:0] o_arlen;
    wire [2:0] o_arsize;
    wire [1:0] o_arburst;
    wire o_arvalid;
    wire o_arready;
    wire [3:0] o_rid;
    wire [63:0] o_rdata;
    wire [1:0] o_rresp;
    wire o_rlast;
    wire o_rvalid;
    wire o_rready;
    ctl_axi_master #(.ADDR_W(32)) u_master (
        .clk(clk), .rst_n(rst_n), .stall(stall),
        .w_go(w_go), .w_addr(w_addr), .w_len(w_len),
        .w_size(w_size), .w_burst(w_burst), .w_id(w_id),
        .w_data(w_data), .w_strb(w_strb), .fill(fill),
        .fill_at(fill_at), .w_done(w_done), .w_resp(w_resp),
        .w_bid(w_bid), .r_go(r_go), .r_addr(r_addr),
        .r_len(r_len), .r_size(r_size), .r_burst(r_burst),
        .r_id(r_id), .r_sel(r_sel), .r_done(r_done),
        .r_data(r_data), .r_resp(r_resp), .r_framing(r_framing),
        .m_awid(h_awid), .m_awaddr(h_awaddr), .m_awlen(h_awlen),
        .m_awsize(h_awsize), .m_awburst(h_awburst), .m_awvalid(h_awvalid),
        .m_awready(h_awready), .m_wdata(h_wdata), .m_wstrb(h_wstrb),
        .m_wlast(h_wlast), .m_wvalid(h_wvalid), .m_wready(h_wready),
        .m_bid(h_bid), .m_bresp(h_bresp), .m_bvalid(h_bvalid),
        .m_bready(h_bready), .m_arid(h_arid), .m_araddr(h_araddr),
        .m_arlen(h_arlen), .m_arsize(h_arsize), .m_arburst(h_arburst),
        .m_arvalid(h_arvalid), .m_arready(h_arready), .m_rid(h_rid),
        .m_rdata(h_rdata), .m_rresp(h_rresp), .m_rlast(h_rlast),
        .m_rvalid(h_rvalid), .m_rready(h_rready)
    );
    ctl_engine #(.NCMD(NCMD), .POLL_IVL(POLL_IVL)) dut (
        .clk(clk), .rst_n(rst_n), .s_axi_awid(h_awid),
        .s_axi_awaddr(h_awaddr), .s_axi_awlen(h_awlen), .s_axi_awsize(h_awsize),
        .s_axi_awburst(h_awburst), .s_axi_awvalid(h_awvalid), .s_axi_awready(h_awready),
        .s_axi_wdata(h_wdata), .s_axi_wstrb(h_wstrb), .s_axi_wlast(h_wlast),
        .s_axi_wvalid(h_wvalid), .s_axi_wready(h_wready), .s_axi_bid(h_bid),
        .s_axi_bresp(h_bresp), .s_axi_bvalid(h_bvalid), .s_axi_bready(h_bready),
        .s_axi_arid(h_arid), .s_axi_araddr(h_araddr), .s_axi_arlen(h_arlen),
        .s_axi_arsize(h_arsize), .s_axi_arburst(h_arburst), .s_axi_arvalid(h_arvalid),
        .s_axi_arready(h_arready), .s_axi_rid(h_rid), .s_axi_rdata(h_rdata),
        .s_axi_rresp(h_rresp), .s_axi_rlast(h_rlast), .s_axi_rvalid(h_rvalid),
        .s_axi_rready(h_rready), .m_axi_awid(o_awid), .m_axi_awaddr(o_awaddr),
        .m_axi_awlen(o_awlen), .m_axi_awsize(o_awsize), .m_axi_awburst(o_awburst),
        .m_axi_awvalid(o_awvalid), .m_axi_awready(o_awready), .m_axi_wdata(o_wdata),
        .m_axi_wstrb(o_wstrb), .m_axi_wlast(o_wlast), .m_axi_wvalid(o_wvalid),
        .m_axi_wready(o_wready), .m_axi_bid(o_bid), .m_axi_bresp(o_bresp),
        .m_axi_bvalid(o_bvalid), .m_axi_bready(o_bready), .m_axi_arid(o_arid),
        .m_axi_araddr(o_araddr), .m_axi_arlen(o_arlen), .m_axi_arsize(o_arsize),
        .m_axi_arburst(o_arburst), .m_axi_arvalid(o_arvalid), .m_axi_arready(o_arready),
        .m_axi_rid(o_rid), .m_axi_rdata(o_rdata), .m_axi_rresp(o_rresp),
        .m_axi_rlast(o_rlast), .m_axi_rvalid(o_rvalid), .m_axi_rready(o_rready),
        .irq(irq)
    );

    // A held write response keeps a command of the engine in flight.
    wire b_valid;
    wire b_ready = o_bready && !b_hold;
    assign o_bvalid = b_valid && !b_hold;

    // The orchestrator with its mesh side and clients; its own AXI master stays idle.
    tb_orch #(.STAGE_FLITS(STAGE_FLITS), .CREDIT_MAX(CREDIT_MAX)) u_behind (
        .clk(clk), .rst_n(rst_n), .ext(1'b1), .s_axi_awid(o_awid), .s_axi_awaddr(o_awaddr),
        .s_axi_awlen(o_awlen), .s_axi_awsize(o_awsize), .s_axi_awburst(o_awburst), .s_axi_awvalid(o_awvalid),
        .s_axi_awready(o_awready), .s_axi_wdata(o_wdata), .s_axi_wstrb(o_wstrb), .s_axi_wlast(o_wlast),
        .s_axi_wvalid(o_wvalid), .s_axi_wready(o_wready), .s_axi_bid(o_bid), .s_axi_bresp(o_bresp),
        .s_axi_bvalid(b_valid), .s_axi_bready(b_ready), .s_axi_arid(o_arid), .s_axi_araddr(o_araddr),
        .s_axi_arlen(o_arlen), .s_axi_arsize(o_arsize), .s_axi_arburst(o_arburst), .s_axi_arvalid(o_arvalid),
        .s_axi_arready(o_arready), .s_axi_rid(o_rid), .s_axi_rdata(o_rdata), .s_axi_rresp(o_rresp),
        .s_axi_rlast(o_rlast), .s_axi_rvalid(o_rvalid), .s_axi_rready(o_rready), .push(push), .flit(flit),
        .blast(blast), .blast_n(blast_n), .blast_rep(blast_rep), .blast_node(blast_node),
        .blast_code(blast_code), .feed_idle(feed_idle), .echo_en(echo_en), .echo_delay(echo_delay),
        .echo_fault_at(echo_fault_at), .echo_seen(echo_seen), .echo_open(echo_open),
        .echo_open_max(echo_open_max), .out_mode(out_mode), .out_level(out_level), .seed(seed),
        .tap_sel(tap_sel), .tap_data(tap_data), .tap_count(tap_count), .tap_gap_max(tap_gap_max),
        .aux_present(aux_present), .aux_hold(aux_hold), .aux_stall(aux_stall), .aux_stat(aux_stat),
        .log_sel(log_sel), .log_data(log_data), .log_count(log_count), .mreg_present(mreg_present),
        .mreg_count(mreg_count), .mesh_lost_in(mesh_lost_in), .stall(1'b0), .w_go(1'b0), .w_addr(16'd0),
        .w_len(8'd0), .w_size(3'd0), .w_burst(2'd0), .w_id(4'd0), .w_data(64'd0), .w_strb(8'd0), .fill(1'b0),
        .fill_at(8'd0), .w_done(), .w_resp(), .w_bid(), .r_go(1'b0), .r_addr(16'd0), .r_len(8'd0),
        .r_size(3'd0), .r_burst(2'd0), .r_id(4'd0), .r_sel(8'd0), .r_done(), .r_data(), .r_resp(),
        .r_framing(), .drops(), .done_races(), .err_races(), .ready_after()
    );

    // Address valid of the engine itself, for the poll interval.
    wire dut_e_arvalid = dut.c_arvalid;

    // ---- round robin: who was served last must lose a tie
    reg  last_w, last_r, tie_w_q, tie_r_q;
    wire tie_w = !dut.u_arb.w_busy_q && dut.o_awvalid && dut.c_awvalid;
    wire tie_r = !dut.u_arb.r_busy_q && dut.o_arvalid && dut.c_arvalid;
    always @(posedge clk) begin
        if (!rst_n) begin
            last_w  <= 1'b0;
            last_r  <= 1'b0;
            tie_w_q <= 1'b0;
            tie_r_q <= 1'b0;
            ties_w  <= 16'd0;
            ties_r  <= 16'd0;
            unfair  <= 16'd0;
        end else begin
            if (dut.c_bvalid && dut.c_bready) last_w <= 1'b1;
            if (dut.o_bvalid && dut.o_bready) last_w <= 1'b0;
            if (dut.c_rvalid && dut.c_rready) last_r <= 1'b1;
            if (dut.o_rvalid && dut.o_rready) last_r <= 1'b0;
            tie_w_q <= tie_w;
            tie_r_q <= tie_r;
            if (tie_w) ties_w <= ties_w + 16'd1;
            if (tie_r) ties_r <= ties_r + 16'd1;
            if ((tie_w_q && dut.u_arb.w_eng_q == last_w) || (tie_r_q && dut.u_arb.r_eng_q == last_r))
                unfair <= unfair + 16'd1;
        end
    end

    // ---- log of every write beat and number of read bursts that reach the orchestrator
    reg [79:0] bus [0:1023];
    reg [15:0] at_q;
    reg [31:0] bus_count_q, bus_reads_q;
    assign bus_data  = bus[bus_sel];
    assign bus_count = bus_count_q;
    assign bus_reads = bus_reads_q;
    always @(posedge clk) begin
        if (!rst_n) begin
            bus_count_q <= 32'd0;
            bus_reads_q <= 32'd0;
        end else begin
            if (o_awvalid && o_awready) at_q <= o_awaddr;
            if (o_wvalid && o_wready) begin
                bus[bus_count_q[9:0]] <= {at_q, o_wdata};
                bus_count_q           <= bus_count_q + 32'd1;
                at_q                  <= at_q + 16'd8;
            end
            if (o_arvalid && o_arready) bus_reads_q <= bus_reads_q + 32'd1;
        end
    end
endmodule

`default_nettype wire
