// SPDX-License-Identifier: Apache-2.0
//
// orch: orchestrator (docs/spec/fabric.md 6). AXI4 slave of 64 KiB towards the host, endpoint
// (ORC_X, ORC_Y) towards the mesh: staged dispatch with credit, mailbox, status mirror, client
// windows of the memory agent.
//
// Inbound link: busy only in reset and for the 256 cycles of the mirror clear, then one flit per
// cycle, always. Outbound link: one flit per cycle from the transmit FIFO; dispatch fills it with
// one flit per 6 cycles. Register accesses: see orch_regs.
// Parameters: ORC_X, ORC_Y 0..15; TX_DEPTH, RX_DEPTH powers of two >= 2; STAGE_FLITS 1..1433;
// CREDIT_MAX 0..65535 = smallest INST_DEPTH of the mesh; NODE_MAP bit {y,x} = a unit sits there;
// GRID_X_HI, GRID_Y_HI = NX, NY (1..14); INTERLINK 0: the auxiliary client is a mover alone, the
// upper half of AUX_CFG has no client.

`default_nettype none
`include "ktpu_defs.vh"

module orch #(
    parameter [3:0]   ORC_X       = 4'd1,
    parameter [3:0]   ORC_Y       = 4'd1,
    parameter         TX_DEPTH    = 16,
    parameter         RX_DEPTH    = 16,
    parameter         STAGE_FLITS = 128,
    parameter         CREDIT_MAX  = 32,
    parameter [255:0] NODE_MAP    = 256'd0,
    parameter [7:0]   GRID_X_HI   = 8'd2,
    parameter [7:0]   GRID_Y_HI   = 8'd1,
    parameter         INTERLINK   = 1
) (
    input  wire         clk,
    input  wire         rst_n,

    // host
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

    // mesh
    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy,
    input  wire         mesh_lost_in,
    output wire         rx_drop,

    // auxiliary client (mover, interlink)
    output wire         aux_valid,
    output wire [7:0]   aux_addr,
    output wire [63:0]  aux_data,
    output wire [3:0]   aux_stat_sel,
    input  wire         aux_ready,
    input  wire         aux_present,
    input  wire [63:0]  aux_stat,
    input  wire [63:0]  aux_stat_q,

    // register client (memory agent)
    output wire         mreg_en,
    output wire         mreg_we,
    output wire [6:0]   mreg_addr,
    output wire [63:0]  mreg_wdata,
    input  wire         mreg_present,
    input  wire [63:0]  mreg_rdata,
    input  wire         mreg_err
);
    localparam WORD_AW = $clog2(5 * STAGE_FLITS);

    wire               wb_valid, wb_ready, wb_err, rb_valid, rb_ready, rb_err, slverr;
    wire [15:3]        wb_word, rb_word;
    wire [63:0]        wb_data, rb_data;
    wire [7:0]         wb_strb;
    wire [7:0]         prog_dst;
    wire [15:0]        prog_len, prog_base, cred_seed, left, credit, done_count;
    wire               kick, cancel, cred_we, done_clear, tx_kick, rx_pop, ovf_clear;
    wire [4:0]         tx_we;
    wire [11:0]        err_set, err_clear, err_stat;
    wire [63:0]        err_info, node_rd_data;
    wire [7:0]         stage_strb, node_rd_node;
    wire [WORD_AW-1:0] stage_word;
    wire               ready, run, tx_full, tx_idle, tx_ready, rx_empty, overflow, tx_refused;
    wire [287:0]       rx_head, push_flit;
    wire               node_rd_en, push;
    wire               aux_wr, aux_wr_ready, aux_absent;
    wire               mem_wr, mem_wr_done, mem_rd, mem_rd_done, mem_bad;
    wire               evt_return, evt_fault, evt_reject;
    wire [7:0]         evt_code, evt_node;
    wire [31:0]        evt_arg;
    wire               e_busy, e_len0, e_range, e_dst, e_cred;

    wire in_fire   = noc_in_valid && !noc_in_busy;
    wire in_signal = (noc_in_data[`KT_FLIT_TYPE] == `KT_TYPE_CU_SIGNAL);
    assign noc_in_busy = !ready;

    axi_beats #(.ADDR_W(16), .ID_W(4)) u_axi (
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

    orch_regs #(
        .ORC_X(ORC_X), .ORC_Y(ORC_Y), .STAGE_FLITS(STAGE_FLITS),
        .GRID_X_HI(GRID_X_HI), .GRID_Y_HI(GRID_Y_HI)
    ) u_regs (
        .clk         (clk),
        .rst_n       (rst_n),
        .wb_valid    (wb_valid),
        .wb_word     (wb_word),
        .wb_data     (wb_data),
        .wb_strb     (wb_strb),
        .wb_ready    (wb_ready),
        .wb_err      (wb_err),
        .rb_valid    (rb_valid),
        .rb_word     (rb_word),
        .rb_ready    (rb_ready),
        .rb_data     (rb_data),
        .rb_err      (rb_err),
        .prog_dst    (prog_dst),
        .prog_len    (prog_len),
        .prog_base   (prog_base),
        .kick        (kick),
        .cancel      (cancel),
        .cred_we     (cred_we),
        .cred_seed   (cred_seed),
        .done_clear  (done_clear),
        .tx_we       (tx_we),
        .tx_kick     (tx_kick),
        .rx_pop      (rx_pop),
        .ovf_clear   (ovf_clear),
        .err_clear   (err_clear),
        .stage_strb  (stage_strb),
        .stage_word  (stage_word),
        .ready       (ready),
        .busy        (run || !tx_idle),
        .err_stat    (err_stat),
        .err_info    (err_info),
        .run         (run),
        .left        (left),
        .credit      (credit),
        .done_count  (done_count),
        .tx_full     (tx_full),
        .rx_empty    (rx_empty),
        .overflow    (overflow),
        .rx_head     (rx_head),
        .node_rd_en  (node_rd_en),
        .node_rd_node(node_rd_node),
        .node_rd_data(node_rd_data),
        .aux_wr      (aux_wr),
        .aux_wr_ready(aux_wr_ready),
        .aux_stat_sel(aux_stat_sel),
        .aux_present (aux_present),
        .aux_stat    (aux_stat),
        .aux_stat_q  (aux_stat_q),
        .mem_wr      (mem_wr),
        .mem_wr_done (mem_wr_done),
        .mem_rd      (mem_rd),
        .mem_rd_done (mem_rd_done),
        .mem_present (mreg_present),
        .mem_bad     (mem_bad),
        .mem_rdata   (mreg_rdata)
    );

    wire aux_here = aux_present && (INTERLINK != 0 || !wb_word[7]);

    orch_client u_client (
        .clk         (clk),
        .rst_n       (rst_n),
        .aux_wr      (aux_wr),
        .aux_wr_word (wb_word[7:3]),
        .wr_data     (wb_data),
        .wr_strb     (wb_strb),
        .aux_wr_ready(aux_wr_ready),
        .aux_absent  (aux_absent),
        .mem_wr      (mem_wr),
        .mem_wr_word (wb_word[6:3]),
        .mem_wr_done (mem_wr_done),
        .mem_rd      (mem_rd),
        .mem_rd_word (rb_word[6:3]),
        .mem_rd_done (mem_rd_done),
        .mem_bad     (mem_bad),
        .aux_valid   (aux_valid),
        .aux_addr    (aux_addr),
        .aux_data    (aux_data),
        .aux_ready   (aux_ready),
        .aux_present (aux_here),
        .mreg_en     (mreg_en),
        .mreg_we     (mreg_we),
        .mreg_addr   (mreg_addr),
        .mreg_wdata  (mreg_wdata),
        .mreg_present(mreg_present),
        .mreg_err    (mreg_err)
    );

    orch_dispatch #(
        .ORC_X(ORC_X), .ORC_Y(ORC_Y), .STAGE_FLITS(STAGE_FLITS),
        .CREDIT_MAX(CREDIT_MAX), .NODE_MAP(NODE_MAP)
    ) u_dispatch (
        .clk        (clk),
        .rst_n      (rst_n),
        .stage_strb (stage_strb),
        .stage_word (stage_word),
        .stage_data (wb_data),
        .prog_dst   (prog_dst),
        .prog_len   (prog_len),
        .prog_base  (prog_base),
        .kick       (kick),
        .cancel     (cancel),
        .cred_we    (cred_we),
        .cred_seed  (cred_seed),
        .run        (run),
        .left       (left),
        .credit     (credit),
        .err_busy   (e_busy),
        .err_len0   (e_len0),
        .err_range  (e_range),
        .err_dst    (e_dst),
        .err_cred   (e_cred),
        .cred_return(evt_return),
        .tx_ready   (tx_ready),
        .push       (push),
        .push_flit  (push_flit)
    );

    orch_mailbox #(.TX_DEPTH(TX_DEPTH), .RX_DEPTH(RX_DEPTH)) u_mailbox (
        .clk          (clk),
        .rst_n        (rst_n),
        .tx_we        (tx_we),
        .tx_wdata     (wb_data),
        .tx_wstrb     (wb_strb),
        .tx_kick      (tx_kick),
        .tx_refused   (tx_refused),
        .tx_full      (tx_full),
        .tx_idle      (tx_idle),
        .rx_empty     (rx_empty),
        .rx_head      (rx_head),
        .rx_pop       (rx_pop),
        .ovf_clear    (ovf_clear),
        .overflow     (overflow),
        .rx_drop      (rx_drop),
        .disp_run     (run),
        .disp_push    (push),
        .disp_flit    (push_flit),
        .tx_ready     (tx_ready),
        .rx_push      (in_fire && !in_signal),
        .rx_flit      (noc_in_data),
        .noc_out_valid(noc_out_valid),
        .noc_out_data (noc_out_data),
        .noc_out_busy (noc_out_busy)
    );

    orch_mirror u_mirror (
        .clk         (clk),
        .rst_n       (rst_n),
        .ready       (ready),
        .sig_valid   (in_fire && in_signal),
        .sig_flit    (noc_in_data),
        .done_clear  (done_clear),
        .done_count  (done_count),
        .evt_return  (evt_return),
        .evt_fault   (evt_fault),
        .evt_reject  (evt_reject),
        .evt_code    (evt_code),
        .evt_arg     (evt_arg),
        .evt_node    (evt_node),
        .host_rd_en  (node_rd_en),
        .host_rd_node(node_rd_node),
        .host_rd_data(node_rd_data)
    );

    assign err_set[`KT_ERR_STAT_KICK_BUSY]   = e_busy;
    assign err_set[`KT_ERR_STAT_KICK_LEN0]   = e_len0;
    assign err_set[`KT_ERR_STAT_STAGE_RANGE] = e_range;
    assign err_set[`KT_ERR_STAT_CRED_RANGE]  = e_cred;
    assign err_set[`KT_ERR_STAT_DST_BAD]     = e_dst;
    assign err_set[`KT_ERR_STAT_TXKICK_DROP] = tx_refused;
    assign err_set[`KT_ERR_STAT_RX_DROP]     = rx_drop;
    assign err_set[`KT_ERR_STAT_NODE_FAULT]  = evt_fault;
    assign err_set[`KT_ERR_STAT_DATA_REJECT] = evt_reject;
    assign err_set[`KT_ERR_STAT_MESH_LOST]   = mesh_lost_in;
    assign err_set[`KT_ERR_STAT_AXI_BAD]     = slverr;
    assign err_set[`KT_ERR_STAT_AUX_ABSENT]  = aux_absent;

    orch_err u_err (
        .clk     (clk),
        .rst_n   (rst_n),
        .set     (err_set),
        .clear   (err_clear),
        .evt_code(evt_code),
        .evt_arg (evt_arg),
        .evt_node(evt_node),
        .stat    (err_stat),
        .info    (err_info)
    );
endmodule

`default_nettype wire
