// SPDX-License-Identifier: Apache-2.0
//
// ctl_engine: host port of one mesh's control plane and control-program engine
// (docs/spec/fabric.md 7). The host reaches the engine window at ENGINE_BASE and the orchestrator
// window at CTRL_BASE, 64 KiB each; anything else answers DECERR. The engine runs its command list
// through the same orchestrator port. `irq` = ENG_CTRL.done.
//
// Latency: 3 cycles from a host address to the orchestrator, 2 from a response to the next command.
// Parameters: NCMD 2..128, POLL_IVL 0..65535, ENGINE_BASE, CTRL_BASE multiples of 64 KiB.

`default_nettype none

module ctl_engine #(
    parameter        NCMD        = 128,
    parameter        POLL_IVL    = 31,
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
    input  wire [3:0]  m_axi_bid,
    input  wire [1:0]  m_axi_bresp,
    input  wire        m_axi_bvalid,
    output wire        m_axi_bready,
    output wire [3:0]  m_axi_arid,
    output wire [15:0] m_axi_araddr,
    output wire [7:0]  m_axi_arlen,
    output wire [2:0]  m_axi_arsize,
    output wire [1:0]  m_axi_arburst,
    output wire        m_axi_arvalid,
    input  wire        m_axi_arready,
    input  wire [3:0]  m_axi_rid,
    input  wire [63:0] m_axi_rdata,
    input  wire [1:0]  m_axi_rresp,
    input  wire        m_axi_rlast,
    input  wire        m_axi_rvalid,
    output wire        m_axi_rready,

    output wire        irq
);
    localparam SLOT_W = $clog2(NCMD);

    // Host transactions after the address map; t_ is shared by both windows.
    wire [3:0]  t_awid, t_arid;
    wire [15:0] t_awaddr, t_araddr;
    wire [7:0]  t_awlen, t_arlen, t_wstrb;
    wire [2:0]  t_awsize, t_arsize;
    wire [1:0]  t_awburst, t_arburst;
    wire [63:0] t_wdata;
    wire        t_wlast;

    // Engine window.
    wire        w_awvalid, w_awready, w_wvalid, w_wready, w_bvalid, w_bready;
    wire        w_arvalid, w_arready, w_rvalid, w_rready, w_rlast;
    wire [1:0]  w_bresp, w_rresp;
    wire [3:0]  w_bid, w_rid;
    wire [63:0] w_rdata;
    wire        wb_valid, wb_ready, wb_err, rb_valid, rb_ready, rb_err, slverr;
    wire [15:3] wb_word, rb_word;
    wire [63:0] wb_data, rb_data;
    wire [7:0]  wb_strb;

    // Orchestrator window, host side.
    wire        o_awvalid, o_awready, o_wvalid, o_wready, o_bvalid, o_bready;
    wire        o_arvalid, o_arready, o_rvalid, o_rready;

    // Orchestrator window, engine side.
    wire        c_awvalid, c_awready, c_wvalid, c_wready, c_bvalid, c_bready;
    wire        c_arvalid, c_arready, c_rvalid, c_rready;
    wire [15:0] c_awaddr, c_araddr;
    wire [63:0] c_wdata;

    // Engine state and commands.
    wire              go, stop, busy, done, err, fetch_en;
    wire [31:0]       poll_limit, polls, err_addr;
    wire [3:0]        err_code;
    wire [SLOT_W-1:0] pc, fetch_slot;
    wire [63:0]       code, cmd_op, cmd_addr, cmd_data, cmd_mask;

    assign irq = done;

    // IDs are kept in host_map; the window's own SLVERR needs no event here.
    wire unused_ok = &{1'b0, m_axi_bid, m_axi_rid, w_bid, w_rid, w_rlast, rb_valid, slverr};

    host_map #(
        .ENGINE_BASE(ENGINE_BASE), .CTRL_BASE(CTRL_BASE)
    ) u_map (
        .clk          (clk),
        .rst_n        (rst_n),
        .s_axi_awid   (s_axi_awid),
        .s_axi_awaddr (s_axi_awaddr),
        .s_axi_awlen  (s_axi_awlen),
        .s_axi_awsize (s_axi_awsize),
        .s_axi_awburst(s_axi_awburst),
        .s_axi_awvalid(s_axi_awvalid),
        .s_axi_awready(s_axi_awready),
        .s_axi_wdata  (s_axi_wdata),
        .s_axi_wstrb  (s_axi_wstrb),
        .s_axi_wlast  (s_axi_wlast),
        .s_axi_wvalid (s_axi_wvalid),
        .s_axi_wready (s_axi_wready),
        .s_axi_bid    (s_axi_bid),
        .s_axi_bresp  (s_axi_bresp),
        .s_axi_bvalid (s_axi_bvalid),
        .s_axi_bready (s_axi_bready),
        .s_axi_arid   (s_axi_arid),
        .s_axi_araddr (s_axi_araddr),
        .s_axi_arlen  (s_axi_arlen),
        .s_axi_arsize (s_axi_arsize),
        .s_axi_arburst(s_axi_arburst),
        .s_axi_arvalid(s_axi_arvalid),
        .s_axi_arready(s_axi_arready),
        .s_axi_rid    (s_axi_rid),
        .s_axi_rdata  (s_axi_rdata),
        .s_axi_rresp  (s_axi_rresp),
        .s_axi_rlast  (s_axi_rlast),
        .s_axi_rvalid (s_axi_rvalid),
        .s_axi_rready (s_axi_rready),
        .t_awid       (t_awid),
        .t_awaddr     (t_awaddr),
        .t_awlen      (t_awlen),
        .t_awsize     (t_awsize),
        .t_awburst    (t_awburst),
        .t_wdata      (t_wdata),
        .t_wstrb      (t_wstrb),
        .t_wlast      (t_wlast),
        .t_arid       (t_arid),
        .t_araddr     (t_araddr),
        .t_arlen      (t_arlen),
        .t_arsize     (t_arsize),
        .t_arburst    (t_arburst),
        .e_awvalid    (w_awvalid),
        .e_awready    (w_awready),
        .e_wvalid     (w_wvalid),
        .e_wready     (w_wready),
        .e_bvalid     (w_bvalid),
        .e_bready     (w_bready),
        .e_arvalid    (w_arvalid),
        .e_arready    (w_arready),
        .e_rvalid     (w_rvalid),
        .e_rready     (w_rready),
        .e_bresp      (w_bresp),
        .e_rdata      (w_rdata),
        .e_rresp      (w_rresp),
        .o_awvalid    (o_awvalid),
        .o_awready    (o_awready),
        .o_wvalid     (o_wvalid),
        .o_wready     (o_wready),
        .o_bvalid     (o_bvalid),
        .o_bready     (o_bready),
        .o_arvalid    (o_arvalid),
        .o_arready    (o_arready),
        .o_rvalid     (o_rvalid),
        .o_rready     (o_rready),
        .o_bresp      (m_axi_bresp),
        .o_rdata      (m_axi_rdata),
        .o_rresp      (m_axi_rresp)
    );

    axi_beats #(
        .ADDR_W(16), .ID_W(4)
    ) u_window (
        .clk          (clk),
        .rst_n        (rst_n),
        .s_axi_awid   (t_awid),
        .s_axi_awaddr (t_awaddr),
        .s_axi_awlen  (t_awlen),
        .s_axi_awsize (t_awsize),
        .s_axi_awburst(t_awburst),
        .s_axi_awvalid(w_awvalid),
        .s_axi_awready(w_awready),
        .s_axi_wdata  (t_wdata),
        .s_axi_wstrb  (t_wstrb),
        .s_axi_wlast  (t_wlast),
        .s_axi_wvalid (w_wvalid),
        .s_axi_wready (w_wready),
        .s_axi_bid    (w_bid),
        .s_axi_bresp  (w_bresp),
        .s_axi_bvalid (w_bvalid),
        .s_axi_bready (w_bready),
        .s_axi_arid   (t_arid),
        .s_axi_araddr (t_araddr),
        .s_axi_arlen  (t_arlen),
        .s_axi_arsize (t_arsize),
        .s_axi_arburst(t_arburst),
        .s_axi_arvalid(w_arvalid),
        .s_axi_arready(w_arready),
        .s_axi_rid    (w_rid),
        .s_axi_rdata  (w_rdata),
        .s_axi_rresp  (w_rresp),
        .s_axi_rlast  (w_rlast),
        .s_axi_rvalid (w_rvalid),
        .s_axi_rready (w_rready),
        .wb_valid     (wb_valid),
        .wb_word      (wb_word),
        .wb_data      (wb_data),
        .wb_strb      (wb_strb),
        .wb_ready     (wb_ready),
        .wb_err       (wb_err),
        .rb_valid     (rb_valid),
        .rb_word      (rb_word),
        .rb_ready     (rb_ready),
        .rb_data      (rb_data),
        .rb_err       (rb_err),
        .slverr       (slverr)
    );

    eng_regs #(
        .NCMD(NCMD), .POLL_IVL(POLL_IVL)
    ) u_regs (
        .clk       (clk),
        .rst_n     (rst_n),
        .wb_valid  (wb_valid),
        .wb_word   (wb_word),
        .wb_data   (wb_data),
        .wb_strb   (wb_strb),
        .wb_ready  (wb_ready),
        .wb_err    (wb_err),
        .rb_word   (rb_word),
        .rb_ready  (rb_ready),
        .rb_data   (rb_data),
        .rb_err    (rb_err),
        .go        (go),
        .stop      (stop),
        .poll_limit(poll_limit),
        .busy      (busy),
        .done      (done),
        .err       (err),
        .err_code  (err_code),
        .pc        (pc),
        .code      (code),
        .polls     (polls),
        .err_addr  (err_addr),
        .fetch_en  (fetch_en),
        .fetch_slot(fetch_slot),
        .cmd_op    (cmd_op),
        .cmd_addr  (cmd_addr),
        .cmd_data  (cmd_data),
        .cmd_mask  (cmd_mask)
    );

    eng_core #(
        .NCMD(NCMD), .POLL_IVL(POLL_IVL), .CTRL_BASE(CTRL_BASE)
    ) u_core (
        .clk       (clk),
        .rst_n     (rst_n),
        .go        (go),
        .stop      (stop),
        .poll_limit(poll_limit),
        .busy      (busy),
        .done      (done),
        .err       (err),
        .err_code  (err_code),
        .pc        (pc),
        .code      (code),
        .polls     (polls),
        .err_addr  (err_addr),
        .fetch_en  (fetch_en),
        .fetch_slot(fetch_slot),
        .cmd_op    (cmd_op),
        .cmd_addr  (cmd_addr),
        .cmd_data  (cmd_data),
        .cmd_mask  (cmd_mask),
        .awaddr    (c_awaddr),
        .awvalid   (c_awvalid),
        .awready   (c_awready),
        .wdata     (c_wdata),
        .wvalid    (c_wvalid),
        .wready    (c_wready),
        .bvalid    (c_bvalid),
        .bready    (c_bready),
        .bresp     (m_axi_bresp),
        .araddr    (c_araddr),
        .arvalid   (c_arvalid),
        .arready   (c_arready),
        .rvalid    (c_rvalid),
        .rready    (c_rready),
        .rdata     (m_axi_rdata),
        .rresp     (m_axi_rresp)
    );

    host_arb u_arb (
        .clk          (clk),
        .rst_n        (rst_n),
        .h_awid       (t_awid),
        .h_awaddr     (t_awaddr),
        .h_awlen      (t_awlen),
        .h_awsize     (t_awsize),
        .h_awburst    (t_awburst),
        .h_awvalid    (o_awvalid),
        .h_awready    (o_awready),
        .h_wdata      (t_wdata),
        .h_wstrb      (t_wstrb),
        .h_wlast      (t_wlast),
        .h_wvalid     (o_wvalid),
        .h_wready     (o_wready),
        .h_bvalid     (o_bvalid),
        .h_bready     (o_bready),
        .h_arid       (t_arid),
        .h_araddr     (t_araddr),
        .h_arlen      (t_arlen),
        .h_arsize     (t_arsize),
        .h_arburst    (t_arburst),
        .h_arvalid    (o_arvalid),
        .h_arready    (o_arready),
        .h_rvalid     (o_rvalid),
        .h_rready     (o_rready),
        .e_awaddr     (c_awaddr),
        .e_awvalid    (c_awvalid),
        .e_awready    (c_awready),
        .e_wdata      (c_wdata),
        .e_wvalid     (c_wvalid),
        .e_wready     (c_wready),
        .e_bvalid     (c_bvalid),
        .e_bready     (c_bready),
        .e_araddr     (c_araddr),
        .e_arvalid    (c_arvalid),
        .e_arready    (c_arready),
        .e_rvalid     (c_rvalid),
        .e_rready     (c_rready),
        .m_axi_awid   (m_axi_awid),
        .m_axi_awaddr (m_axi_awaddr),
        .m_axi_awlen  (m_axi_awlen),
        .m_axi_awsize (m_axi_awsize),
        .m_axi_awburst(m_axi_awburst),
        .m_axi_awvalid(m_axi_awvalid),
        .m_axi_awready(m_axi_awready),
        .m_axi_wdata  (m_axi_wdata),
        .m_axi_wstrb  (m_axi_wstrb),
        .m_axi_wlast  (m_axi_wlast),
        .m_axi_wvalid (m_axi_wvalid),
        .m_axi_wready (m_axi_wready),
        .m_axi_bvalid (m_axi_bvalid),
        .m_axi_bready (m_axi_bready),
        .m_axi_arid   (m_axi_arid),
        .m_axi_araddr (m_axi_araddr),
        .m_axi_arlen  (m_axi_arlen),
        .m_axi_arsize (m_axi_arsize),
        .m_axi_arburst(m_axi_arburst),
        .m_axi_arvalid(m_axi_arvalid),
        .m_axi_arready(m_axi_arready),
        .m_axi_rlast  (m_axi_rlast),
        .m_axi_rvalid (m_axi_rvalid),
        .m_axi_rready (m_axi_rready)
    );

endmodule

`default_nettype wire
