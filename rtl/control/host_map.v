// SPDX-License-Identifier: Apache-2.0
//
// host_map: splits the host's 32-bit AXI4 port into engine window, orchestrator window and nothing
// (docs/spec/fabric.md 7.1). The first address of a burst selects; what lies in no window answers
// DECERR with the full number of beats.
//
// One write and one read transaction at a time. Both targets see the same payload buses `t_*` and
// their own valid signals (e_ engine window, o_ orchestrator window). Target addresses are the 16
// low bits. IDs are kept here and echoed.
// Latency: 1 cycle from AW/AR to the target; W, B and R pass through combinationally.
// Parameters: ENGINE_BASE, CTRL_BASE multiples of 64 KiB, different.

`default_nettype none

module host_map #(
    parameter [31:0] ENGINE_BASE = 32'h0000_0000,
    parameter [31:0] CTRL_BASE   = 32'h1000_0000
) (
    input  wire        clk,
    input  wire        rst_n,

    input  wire [3:0]  s_axi_awid,
    input  wire [31:0] s_axi_awaddr,
    input  wire [7:0]  s_axi_awlen,
    input  wire [2:0]  s_axi_awsize,
    input  wire [1:0]  s_axi_awburst,
    input  wire        s_axi_awvalid,
    output wire        s_axi_awready,
    input  wire [63:0] s_axi_wdata,
    input  wire [7:0]  s_axi_wstrb,
    input  wire        s_axi_wlast,
    input  wire        s_axi_wvalid,
    output wire        s_axi_wready,
    output wire [3:0]  s_axi_bid,
    output wire [1:0]  s_axi_bresp,
    output wire        s_axi_bvalid,
    input  wire        s_axi_bready,
    input  wire [3:0]  s_axi_arid,
    input  wire [31:0] s_axi_araddr,
    input  wire [7:0]  s_axi_arlen,
    input  wire [2:0]  s_axi_arsize,
    input  wire [1:0]  s_axi_arburst,
    input  wire        s_axi_arvalid,
    output wire        s_axi_arready,
    output wire [3:0]  s_axi_rid,
    output wire [63:0] s_axi_rdata,
    output wire [1:0]  s_axi_rresp,
    output wire        s_axi_rlast,
    output wire        s_axi_rvalid,
    input  wire        s_axi_rready,

    output wire [3:0]  t_awid,
    output wire [15:0] t_awaddr,
    output wire [7:0]  t_awlen,
    output wire [2:0]  t_awsize,
    output wire [1:0]  t_awburst,
    output wire [63:0] t_wdata,
    output wire [7:0]  t_wstrb,
    output wire        t_wlast,
    output wire [3:0]  t_arid,
    output wire [15:0] t_araddr,
    output wire [7:0]  t_arlen,
    output wire [2:0]  t_arsize,
    output wire [1:0]  t_arburst,

    output wire        e_awvalid,
    input  wire        e_awready,
    output wire        e_wvalid,
    input  wire        e_wready,
    input  wire        e_bvalid,
    output wire        e_bready,
    input  wire [1:0]  e_bresp,
    output wire        e_arvalid,
    input  wire        e_arready,
    input  wire        e_rvalid,
    output wire        e_rready,
    input  wire [63:0] e_rdata,
    input  wire [1:0]  e_rresp,

    output wire        o_awvalid,
    input  wire        o_awready,
    output wire        o_wvalid,
    input  wire        o_wready,
    input  wire        o_bvalid,
    output wire        o_bready,
    input  wire [1:0]  o_bresp,
    output wire        o_arvalid,
    input  wire        o_arready,
    input  wire        o_rvalid,
    output wire        o_rready,
    input  wire [63:0] o_rdata,
    input  wire [1:0]  o_rresp
);
    localparam [1:0] DECERR = 2'b11;
    localparam [1:0] RESET = 2'd0, IDLE = 2'd1, ADDR = 2'd2, BODY = 2'd3;

    generate
        if (ENGINE_BASE[15:0] != 16'd0 || CTRL_BASE[15:0] != 16'd0 || ENGINE_BASE == CTRL_BASE)
        begin : g_illegal
            host_map_illegal_parameters u_stop ();
        end
    endgenerate

    wire unused_ok = &{1'b0, s_axi_wlast};

    // ---- write ----------------------------------------------------------------------------------
    reg  [1:0]  w_state_q, w_state_d;
    reg  [3:0]  w_id_q;
    reg  [15:0] w_addr_q;
    reg  [7:0]  w_len_q;
    reg  [2:0]  w_size_q;
    reg  [1:0]  w_burst_q;
    reg         w_eng_q, w_orc_q;
    reg  [8:0]  w_left_q;

    wire aw_fire = s_axi_awvalid && s_axi_awready;
    wire w_fire  = s_axi_wvalid && s_axi_wready;
    wire w_none  = !w_eng_q && !w_orc_q;
    wire w_body  = (w_state_q == BODY) && (w_left_q != 9'd0);
    wire w_resp  = (w_state_q == BODY) && (w_left_q == 9'd0);

    assign s_axi_awready = (w_state_q == IDLE);
    assign s_axi_wready  = w_body && (w_none || (w_eng_q && e_wready) || (w_orc_q && o_wready));
    assign s_axi_bvalid  = w_resp && (w_none || (w_eng_q && e_bvalid) || (w_orc_q && o_bvalid));
    assign s_axi_bresp   = w_none ? DECERR : (w_eng_q ? e_bresp : o_bresp);
    assign s_axi_bid     = w_id_q;

    assign t_awid    = w_id_q;
    assign t_awaddr  = w_addr_q;
    assign t_awlen   = w_len_q;
    assign t_awsize  = w_size_q;
    assign t_awburst = w_burst_q;
    assign t_wdata   = s_axi_wdata;
    assign t_wstrb   = s_axi_wstrb;
    assign t_wlast   = (w_left_q == 9'd1);
    assign e_awvalid = (w_state_q == ADDR) && w_eng_q;
    assign o_awvalid = (w_state_q == ADDR) && w_orc_q;
    assign e_wvalid  = w_body && w_eng_q && s_axi_wvalid;
    assign o_wvalid  = w_body && w_orc_q && s_axi_wvalid;
    assign e_bready  = w_resp && w_eng_q && s_axi_bready;
    assign o_bready  = w_resp && w_orc_q && s_axi_bready;

    always @* begin
        w_state_d = w_state_q;
        case (w_state_q)
            RESET:   w_state_d = IDLE;
            IDLE:    if (s_axi_awvalid) w_state_d = ADDR;
            ADDR:    if (w_none || (e_awvalid && e_awready) || (o_awvalid && o_awready))
                         w_state_d = BODY;
            default: if (s_axi_bvalid && s_axi_bready) w_state_d = IDLE;
        endcase
    end

    always @(posedge clk) begin
        if (!rst_n) begin
            w_state_q <= RESET;
            w_left_q  <= 9'd0;
            w_eng_q   <= 1'b0;
            w_orc_q   <= 1'b0;
        end else begin
            w_state_q <= w_state_d;
            if (aw_fire) begin
                w_left_q <= {1'b0, s_axi_awlen} + 9'd1;
                w_eng_q  <= (s_axi_awaddr[31:16] == ENGINE_BASE[31:16]);
                w_orc_q  <= (s_axi_awaddr[31:16] == CTRL_BASE[31:16]);
            end else if (w_fire) begin
                w_left_q <= w_left_q - 9'd1;
            end
        end
        if (aw_fire) begin
            w_id_q    <= s_axi_awid;
            w_addr_q  <= s_axi_awaddr[15:0];
            w_len_q   <= s_axi_awlen;
            w_size_q  <= s_axi_awsize;
            w_burst_q <= s_axi_awburst;
        end
    end

    // ---- read -----------------------------------------------------------------------------------
    reg  [1:0]  r_state_q, r_state_d;
    reg  [3:0]  r_id_q;
    reg  [15:0] r_addr_q;
    reg  [7:0]  r_len_q, r_left_q;
    reg  [2:0]  r_size_q;
    reg  [1:0]  r_burst_q;
    reg         r_eng_q, r_orc_q;

    wire ar_fire = s_axi_arvalid && s_axi_arready;
    wire r_fire  = s_axi_rvalid && s_axi_rready;
    wire r_none  = !r_eng_q && !r_orc_q;
    wire r_body  = (r_state_q == BODY);

    assign s_axi_arready = (r_state_q == IDLE);
    assign s_axi_rvalid  = r_body && (r_none || (r_eng_q && e_rvalid) || (r_orc_q && o_rvalid));
    assign s_axi_rdata   = r_none ? 64'd0 : (r_eng_q ? e_rdata : o_rdata);
    assign s_axi_rresp   = r_none ? DECERR : (r_eng_q ? e_rresp : o_rresp);
    assign s_axi_rlast   = (r_left_q == 8'd0);
    assign s_axi_rid     = r_id_q;

    assign t_arid    = r_id_q;
    assign t_araddr  = r_addr_q;
    assign t_arlen   = r_len_q;
    assign t_arsize  = r_size_q;
    assign t_arburst = r_burst_q;
    assign e_arvalid = (r_state_q == ADDR) && r_eng_q;
    assign o_arvalid = (r_state_q == ADDR) && r_orc_q;
    assign e_rready  = r_body && r_eng_q && s_axi_rready;
    assign o_rready  = r_body && r_orc_q && s_axi_rready;

    always @* begin
        r_state_d = r_state_q;
        case (r_state_q)
            RESET:   r_state_d = IDLE;
            IDLE:    if (s_axi_arvalid) r_state_d = ADDR;
            ADDR:    if (r_none || (e_arvalid && e_arready) || (o_arvalid && o_arready))
                         r_state_d = BODY;
            default: if (r_fire && s_axi_rlast) r_state_d = IDLE;
        endcase
    end

    always @(posedge clk) begin
        if (!rst_n) begin
            r_state_q <= RESET;
            r_eng_q   <= 1'b0;
            r_orc_q   <= 1'b0;
        end else begin
            r_state_q <= r_state_d;
            if (ar_fire) begin
                r_eng_q <= (s_axi_araddr[31:16] == ENGINE_BASE[31:16]);
                r_orc_q <= (s_axi_araddr[31:16] == CTRL_BASE[31:16]);
            end
        end
        if (ar_fire) begin
            r_id_q    <= s_axi_arid;
            r_addr_q  <= s_axi_araddr[15:0];
            r_len_q   <= s_axi_arlen;
            r_left_q  <= s_axi_arlen;
            r_size_q  <= s_axi_arsize;
            r_burst_q <= s_axi_arburst;
        end else if (r_fire) begin
            r_left_q <= r_left_q - 8'd1;
        end
    end
endmodule

`default_nettype wire
