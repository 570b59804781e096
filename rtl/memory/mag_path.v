// SPDX-License-Identifier: Apache-2.0
// mag_path: converged path. Merges the requesters of one mesh onto one AXI4
// master and the staging store; the index of a requester is its AXI ID.
//
// Requester  rd_*/wr_* hold until ready and never cross 4 KiB; a requester has
//            passed mag_classify and reserved room for what it asks, so R and B
//            are never refused. Write data follows in request order. Bit 31 of a
//            word index chooses the staging store.
// Latency    request to AR/AW 1 cycle, R to rsp_* 0 cycles, B to done_* 0 cycles;
//            of the staging store see mag_stage.
// Throughput one beat per cycle in each direction, one request per cycle.
// Order      a requester's accesses of one direction complete in request order: a
//            staging claim waits for its DRAM accesses and they for the claim.
// Limits     RD_OUT read bursts per requester and WR_OUT write bursts in all are
//            outstanding at most. Reads and writes are arbitrated apart, round
//            robin from behind the last winner.
// Parameters NREQ 1..8, RD_OUT 1..16, WR_OUT a power of two 2..16; STAGE 0: no
//            staging store, STAGE_* as in mag_stage.
// Spec       docs/spec/memory.md 8, 10
`default_nettype none

module mag_path #(
    parameter NREQ          = 1,
    parameter RD_OUT        = 4,
    parameter WR_OUT        = 16,
    parameter STAGE         = 0,
    parameter STAGE_BANKS   = 4,
    parameter STAGE_ENTRIES = 16384,
    parameter STAGE_PIPE    = 1
) (
    input  wire                clk,
    input  wire                rst_n,

    input  wire [NREQ-1:0]     rd_valid,
    output wire [NREQ-1:0]     rd_ready,
    input  wire [NREQ*32-1:0]  rd_word,
    input  wire [NREQ*8-1:0]   rd_len,
    output wire [NREQ-1:0]     rsp_valid,
    output wire [NREQ*256-1:0] rsp_data,
    output wire [NREQ-1:0]     rsp_err,

    input  wire [NREQ-1:0]     wr_valid,
    output wire [NREQ-1:0]     wr_ready,
    input  wire [NREQ*32-1:0]  wr_word,
    input  wire [NREQ*8-1:0]   wr_len,
    input  wire [NREQ-1:0]     wd_valid,
    output wire [NREQ-1:0]     wd_ready,
    input  wire [NREQ*256-1:0] wd_data,
    input  wire [NREQ*32-1:0]  wd_strb,
    input  wire [NREQ-1:0]     wd_last,
    output wire [NREQ-1:0]     done_valid,
    output wire [NREQ-1:0]     done_err,

    output wire                read_beat,    // one word crossed the bus
    output wire                write_beat,
    output wire                stage_read_beat,
    output wire                stage_write_beat,

    output wire [3:0]          m_axi_dram_awid,
    output wire [39:0]         m_axi_dram_awaddr,
    output wire [7:0]          m_axi_dram_awlen,
    output wire [2:0]          m_axi_dram_awsize,
    output wire [1:0]          m_axi_dram_awburst,
    output wire                m_axi_dram_awlock,
    output wire [3:0]          m_axi_dram_awcache,
    output wire [2:0]          m_axi_dram_awprot,
    output wire [3:0]          m_axi_dram_awqos,
    output wire [3:0]          m_axi_dram_awregion,
    output wire                m_axi_dram_awvalid,
    input  wire                m_axi_dram_awready,
    output wire [255:0]        m_axi_dram_wdata,
    output wire [31:0]         m_axi_dram_wstrb,
    output wire                m_axi_dram_wlast,
    output wire                m_axi_dram_wvalid,
    input  wire                m_axi_dram_wready,
    input  wire [3:0]          m_axi_dram_bid,
    input  wire [1:0]          m_axi_dram_bresp,
    input  wire                m_axi_dram_bvalid,
    output wire                m_axi_dram_bready,
    output wire [3:0]          m_axi_dram_arid,
    output wire [39:0]         m_axi_dram_araddr,
    output wire [7:0]          m_axi_dram_arlen,
    output wire [2:0]          m_axi_dram_arsize,
    output wire [1:0]          m_axi_dram_arburst,
    output wire                m_axi_dram_arlock,
    output wire [3:0]          m_axi_dram_arcache,
    output wire [2:0]          m_axi_dram_arprot,
    output wire [3:0]          m_axi_dram_arqos,
    output wire [3:0]          m_axi_dram_arregion,
    output wire                m_axi_dram_arvalid,
    input  wire                m_axi_dram_arready,
    input  wire [3:0]          m_axi_dram_rid,
    input  wire [255:0]        m_axi_dram_rdata,
    input  wire [1:0]          m_axi_dram_rresp,
    input  wire                m_axi_dram_rlast,
    input  wire                m_axi_dram_rvalid,
    output wire                m_axi_dram_rready
);

    generate
        if (NREQ < 1 || NREQ > 8 || RD_OUT < 1 || RD_OUT > 16
            || WR_OUT < 2 || WR_OUT > 16 || (WR_OUT & (WR_OUT - 1)) != 0) begin : g_illegal
            mag_path_illegal_parameters u_stop ();
        end
    endgenerate

    localparam [4:0] RD_MAX = RD_OUT[4:0];
    localparam [4:0] WR_MAX = WR_OUT[4:0];

    assign m_axi_dram_awsize   = 3'd5;
    assign m_axi_dram_awburst  = 2'b01;
    assign m_axi_dram_awlock   = 1'b0;
    assign m_axi_dram_awcache  = 4'b0011;
    assign m_axi_dram_awprot   = 3'd0;
    assign m_axi_dram_awqos    = 4'd0;
    assign m_axi_dram_awregion = 4'd0;
    assign m_axi_dram_arsize   = 3'd5;
    assign m_axi_dram_arburst  = 2'b01;
    assign m_axi_dram_arlock   = 1'b0;
    assign m_axi_dram_arcache  = 4'b0011;
    assign m_axi_dram_arprot   = 3'd0;
    assign m_axi_dram_arqos    = 4'd0;
    assign m_axi_dram_arregion = 4'd0;

    // ---------------------------------------------------------------- staging claims
    reg  [NREQ*5-1:0] wr_own_q;         // outstanding write bursts per requester
    reg  [NREQ*5-1:0] rd_out_q;         // outstanding read bursts per requester
    wire [NREQ-1:0]   st_rd_busy, st_wr_busy, st_rd_ready, st_wr_ready, st_wd_ready, st_rsp_valid, st_done_valid;
    wire [255:0]      st_rsp_data;
    wire [NREQ-1:0]   rd_dram, wr_dram, st_rd_valid, st_wr_valid;
    genvar            c;
    generate
        for (c = 0; c < NREQ; c = c + 1) begin : g_claim
            assign rd_dram[c]     = rd_valid[c] && !rd_word[32*c + 31] && !st_rd_busy[c];
            assign wr_dram[c]     = wr_valid[c] && !wr_word[32*c + 31] && !st_wr_busy[c];
            assign st_rd_valid[c] = rd_valid[c] && rd_word[32*c + 31] && rd_out_q[5*c +: 5] == 5'd0;
            assign st_wr_valid[c] = wr_valid[c] && wr_word[32*c + 31] && wr_own_q[5*c +: 5] == 5'd0;
        end
    endgenerate

    generate
        if (STAGE != 0) begin : g_stage
            mag_stage #(
                .NREQ    (NREQ),
                .BANKS   (STAGE_BANKS),
                .ENTRIES (STAGE_ENTRIES),
                .PIPE    (STAGE_PIPE)
            ) u_stage (
                .clk        (clk),
                .rst_n      (rst_n),
                .rd_valid   (st_rd_valid),
                .rd_ready   (st_rd_ready),
                .rd_word    (rd_word),
                .rd_len     (rd_len),
                .rsp_valid  (st_rsp_valid),
                .rsp_data   (st_rsp_data),
                .rd_busy    (st_rd_busy),
                .wr_valid   (st_wr_valid),
                .wr_ready   (st_wr_ready),
                .wr_word    (wr_word),
                .wr_len     (wr_len),
                .wd_valid   (wd_valid),
                .wd_ready   (st_wd_ready),
                .wd_data    (wd_data),
                .wd_strb    (wd_strb),
                .done_valid (st_done_valid),
                .wr_busy    (st_wr_busy),
                .read_beat  (stage_read_beat),
                .write_beat (stage_write_beat)
            );
        end else begin : g_no_stage
            assign st_rd_ready      = {NREQ{1'b0}};
            assign st_rsp_valid     = {NREQ{1'b0}};
            assign st_rsp_data      = 256'd0;
            assign st_rd_busy       = {NREQ{1'b0}};
            assign st_wr_ready      = {NREQ{1'b0}};
            assign st_wd_ready      = {NREQ{1'b0}};
            assign st_done_valid    = {NREQ{1'b0}};
            assign st_wr_busy       = {NREQ{1'b0}};
            assign stage_read_beat  = 1'b0;
            assign stage_write_beat = 1'b0;
            wire unused_claims = &{1'b0, st_rd_valid, st_wr_valid};
        end
    endgenerate

    // One-hot: the lowest requester above the last winner, else the lowest of all.
    function [NREQ-1:0] pick(input [NREQ-1:0] want, input [2:0] winner);
        integer k;
        begin
            pick = {NREQ{1'b0}};
            for (k = NREQ - 1; k >= 0; k = k - 1)
                if (want[k]) begin
                    pick    = {NREQ{1'b0}};
                    pick[k] = 1'b1;
                end
            for (k = NREQ - 1; k >= 0; k = k - 1)
                if (want[k] && k > {29'd0, winner}) begin
                    pick    = {NREQ{1'b0}};
                    pick[k] = 1'b1;
                end
        end
    endfunction

    // ---------------------------------------------------------------- reads
    reg  [2:0]        rd_last_q, wr_last_q;
    wire              ar_room;
    reg  [NREQ-1:0]   rd_want;
    reg  [2:0]        rd_index;
    reg  [30:0]       rd_word_mux;
    reg  [7:0]        rd_len_mux;
    wire [NREQ-1:0]   rd_win = pick(rd_want, rd_last_q);
    wire [NREQ-1:0]   rd_go  = ar_room ? rd_win : {NREQ{1'b0}};
    wire              r_end  = m_axi_dram_rvalid && m_axi_dram_rlast;
    integer           ra, rc, rr, wa, wc, wm;   // loop variables, one a process

    always @*
        for (rr = 0; rr < NREQ; rr = rr + 1)
            rd_want[rr] = rd_dram[rr] && rd_out_q[5*rr +: 5] != RD_MAX;

    always @* begin
        rd_index = 3'd0; rd_word_mux = 31'd0; rd_len_mux = 8'd0;
        for (ra = 0; ra < NREQ; ra = ra + 1)
            if (rd_win[ra]) begin
                rd_index    = ra[2:0];
                rd_word_mux = rd_word[32*ra +: 31];
                rd_len_mux  = rd_len[8*ra +: 8];
            end
    end
    assign rd_ready = rd_go | st_rd_ready;

    always @(posedge clk) begin
        if (!rst_n) begin
            rd_out_q  <= {(NREQ*5){1'b0}};
            rd_last_q <= 3'd0;
        end else begin
            for (rc = 0; rc < NREQ; rc = rc + 1)
                rd_out_q[5*rc +: 5] <= rd_out_q[5*rc +: 5] + {4'd0, rd_go[rc]}
                                    - {4'd0, r_end && m_axi_dram_rid == rc[3:0]};
            if (|rd_go) rd_last_q <= rd_index;
        end
    end

    skid2 #(.WIDTH (42)) u_ar (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (|rd_win),
        .in_ready  (ar_room),
        .in_data   ({rd_index, rd_word_mux, rd_len_mux}),
        .out_valid (m_axi_dram_arvalid),
        .out_ready (m_axi_dram_arready),
        .out_data  ({m_axi_dram_arid[2:0], m_axi_dram_araddr[35:5], m_axi_dram_arlen})
    );
    assign m_axi_dram_arid[3]       = 1'b0;
    assign m_axi_dram_araddr[39:36] = 4'd0;
    assign m_axi_dram_araddr[4:0]   = 5'd0;

    assign m_axi_dram_rready = 1'b1;
    assign read_beat         = m_axi_dram_rvalid;

    // ---------------------------------------------------------------- writes
    reg  [4:0]        wr_out_q;         // outstanding bursts of all requesters
    wire              aw_room, own_room;
    reg  [2:0]        wr_index;
    reg  [30:0]       wr_word_mux;
    reg  [7:0]        wr_len_mux;
    wire [NREQ-1:0]   wr_win = pick(wr_dram, wr_last_q);
    wire              wr_open = aw_room && own_room && wr_out_q != WR_MAX;
    wire [NREQ-1:0]   wr_go   = wr_open ? wr_win : {NREQ{1'b0}};

    always @* begin
        wr_index = 3'd0; wr_word_mux = 31'd0; wr_len_mux = 8'd0;
        for (wa = 0; wa < NREQ; wa = wa + 1)
            if (wr_win[wa]) begin
                wr_index    = wa[2:0];
                wr_word_mux = wr_word[32*wa +: 31];
                wr_len_mux  = wr_len[8*wa +: 8];
            end
    end
    assign wr_ready = wr_go | st_wr_ready;

    always @(posedge clk) begin
        if (!rst_n) begin
            wr_out_q  <= 5'd0;
            wr_own_q  <= {(NREQ*5){1'b0}};
            wr_last_q <= 3'd0;
        end else begin
            wr_out_q <= wr_out_q + {4'd0, |wr_go} - {4'd0, m_axi_dram_bvalid};
            for (wc = 0; wc < NREQ; wc = wc + 1)
                wr_own_q[5*wc +: 5] <= wr_own_q[5*wc +: 5] + {4'd0, wr_go[wc]}
                                    - {4'd0, m_axi_dram_bvalid && m_axi_dram_bid == wc[3:0]};
            if (|wr_go) wr_last_q <= wr_index;
        end
    end

    skid2 #(.WIDTH (42)) u_aw (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (|wr_go),
        .in_ready  (aw_room),
        .in_data   ({wr_index, wr_word_mux, wr_len_mux}),
        .out_valid (m_axi_dram_awvalid),
        .out_ready (m_axi_dram_awready),
        .out_data  ({m_axi_dram_awid[2:0], m_axi_dram_awaddr[35:5], m_axi_dram_awlen})
    );
    assign m_axi_dram_awid[3]       = 1'b0;
    assign m_axi_dram_awaddr[39:36] = 4'd0;
    assign m_axi_dram_awaddr[4:0]   = 5'd0;

    // Whose data comes next: W follows the order of AW.
    wire       own_valid;
    wire [2:0] own;
    wire       w_room;
    wire [$clog2(WR_OUT):0] own_level;
    reg        w_offer, w_last_mux;
    reg  [255:0] w_data_mux;
    reg  [31:0]  w_strb_mux;
    always @* begin
        w_offer = 1'b0; w_last_mux = 1'b0; w_data_mux = 256'd0; w_strb_mux = 32'd0;
        for (wm = 0; wm < NREQ; wm = wm + 1)
            if (own == wm[2:0]) begin
                w_offer    = own_valid && wd_valid[wm];
                w_last_mux = wd_last[wm];
                w_data_mux = wd_data[256*wm +: 256];
                w_strb_mux = wd_strb[32*wm +: 32];
            end
    end

    fifo_sync #(.WIDTH (3), .DEPTH (WR_OUT)) u_own (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (|wr_go),
        .in_ready  (own_room),
        .in_data   (wr_index),
        .out_valid (own_valid),
        .out_ready (w_offer && w_room && w_last_mux),
        .out_data  (own),
        .level     (own_level)
    );

    skid2 #(.WIDTH (289)) u_w (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (w_offer),
        .in_ready  (w_room),
        .in_data   ({w_last_mux, w_strb_mux, w_data_mux}),
        .out_valid (m_axi_dram_wvalid),
        .out_ready (m_axi_dram_wready),
        .out_data  ({m_axi_dram_wlast, m_axi_dram_wstrb, m_axi_dram_wdata})
    );

    assign m_axi_dram_bready = 1'b1;
    assign write_beat        = m_axi_dram_wvalid && m_axi_dram_wready;

    genvar g;
    generate
        for (g = 0; g < NREQ; g = g + 1) begin : g_return
            localparam [3:0] ID = g;
            assign rsp_valid[g]           = (m_axi_dram_rvalid && m_axi_dram_rid == ID) || st_rsp_valid[g];
            assign rsp_data[256*g +: 256] = st_rsp_valid[g] ? st_rsp_data : m_axi_dram_rdata;
            assign rsp_err[g]             = !st_rsp_valid[g] && m_axi_dram_rresp != 2'b00;
            assign done_valid[g]          = (m_axi_dram_bvalid && m_axi_dram_bid == ID) || st_done_valid[g];
            assign done_err[g]            = !st_done_valid[g] && m_axi_dram_bresp != 2'b00;
            assign wd_ready[g]            = (own_valid && own == ID[2:0] && w_room) || st_wd_ready[g];
        end
    endgenerate

    wire unused = &{1'b0, own_level};

endmodule

`default_nettype wire
