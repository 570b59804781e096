// SPDX-License-Identifier: Apache-2.0
// Bench top of mag_path: three scripted requesters on axi_dram_model.
`default_nettype none
module tb_mag_path #(
    parameter RD_OUT        = 4,
    parameter WORDS         = 8192,
    parameter STAGE         = 1,
    parameter STAGE_BANKS   = 4,
    parameter STAGE_ENTRIES = 1024,
    parameter STAGE_PIPE    = 1
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        play,
    input  wire        dump,
    input  wire [47:0] n_reads,       // 16 bits a requester
    input  wire [47:0] n_writes,
    input  wire [47:0] n_words,
    input  wire [7:0]  idle,
    output reg         done,
    output wire [47:0] n_errors,
    output reg  [31:0] read_beats,
    output reg  [31:0] write_beats,
    output reg  [31:0] stage_reads,
    output reg  [31:0] stage_writes,
    output reg  [31:0] cycles         // from play to done
);
    localparam NREQ = 3;
    wire [NREQ-1:0]     rd_valid, rd_ready, rsp_valid, wr_valid, wr_ready;
    wire [NREQ-1:0]     wd_valid, wd_ready, wd_last, done_valid, end_of;
    wire [NREQ*32-1:0]  rd_word, wr_word;
    wire [NREQ*8-1:0]   rd_len, wr_len;
    wire [NREQ*256-1:0] wd_data;
    wire [NREQ*32-1:0]  wd_strb;
    wire [NREQ*256-1:0] rsp_data;
    wire [NREQ-1:0]     rsp_err, done_err;
    wire                read_beat, write_beat, stage_read_beat, stage_write_beat;
    reg                 play_q;

    always @(posedge clk) begin
        play_q <= play;
        done   <= play && play_q && &end_of;
        if (!rst_n) begin
            read_beats   <= 32'd0;
            write_beats  <= 32'd0;
            stage_reads  <= 32'd0;
            stage_writes <= 32'd0;
        end else begin
            if (play && !play_q) cycles <= 32'd0;
            else if (!done) cycles <= cycles + 32'd1;
            stage_reads  <= stage_reads + {31'd0, stage_read_beat};
            stage_writes <= stage_writes + {31'd0, stage_write_beat};
            read_beats  <= read_beats + {31'd0, read_beat};
            write_beats <= write_beats + {31'd0, write_beat};
        end
    end

    path_player #(
        .READS  ("reads0.hex"),
        .WRITES ("writes0.hex"),
        .DATA   ("data0.hex"),
        .CAP    ("cap0.hex"),
        .SEED   (32'h1357)
    ) u_player0 (
        .clk        (clk),
        .rst_n      (rst_n),
        .play       (play),
        .dump       (dump),
        .n_reads    (n_reads[15:0]),
        .n_writes   (n_writes[15:0]),
        .n_words    (n_words[15:0]),
        .idle       (idle),
        .done       (end_of[0]),
        .n_errors   (n_errors[15:0]),
        .rd_valid   (rd_valid[0]),
        .rd_ready   (rd_ready[0]),
        .rd_word    (rd_word[31:0]),
        .rd_len     (rd_len[7:0]),
        .rsp_valid  (rsp_valid[0]),
        .rsp_data   (rsp_data[255:0]),
        .rsp_err    (rsp_err[0]),
        .wr_valid   (wr_valid[0]),
        .wr_ready   (wr_ready[0]),
        .wr_word    (wr_word[31:0]),
        .wr_len     (wr_len[7:0]),
        .wd_valid   (wd_valid[0]),
        .wd_ready   (wd_ready[0]),
        .wd_data    (wd_data[255:0]),
        .wd_strb    (wd_strb[31:0]),
        .wd_last    (wd_last[0]),
        .done_valid (done_valid[0]),
        .done_err   (done_err[0])
    );

    path_player #(
        .READS  ("reads1.hex"),
        .WRITES ("writes1.hex"),
        .DATA   ("data1.hex"),
        .CAP    ("cap1.hex"),
        .SEED   (32'h3579)
    ) u_player1 (
        .clk        (clk),
        .rst_n      (rst_n),
        .play       (play),
        .dump       (dump),
        .n_reads    (n_reads[31:16]),
        .n_writes   (n_writes[31:16]),
        .n_words    (n_words[31:16]),
        .idle       (idle),
        .done       (end_of[1]),
        .n_errors   (n_errors[31:16]),
        .rd_valid   (rd_valid[1]),
        .rd_ready   (rd_ready[1]),
        .rd_word    (rd_word[63:32]),
        .rd_len     (rd_len[15:8]),
        .rsp_valid  (rsp_valid[1]),
        .rsp_data   (rsp_data[511:256]),
        .rsp_err    (rsp_err[1]),
        .wr_valid   (wr_valid[1]),
        .wr_ready   (wr_ready[1]),
        .wr_word    (wr_word[63:32]),
        .wr_len     (wr_len[15:8]),
        .wd_valid   (wd_valid[1]),
        .wd_ready   (wd_ready[1]),
        .wd_data    (wd_data[511:256]),
        .wd_strb    (wd_strb[63:32]),
        .wd_last    (wd_last[1]),
        .done_valid (done_valid[1]),
        .done_err   (done_err[1])
    );

    path_player #(
        .READS  ("reads2.hex"),
        .WRITES ("writes2.hex"),
        .DATA   ("data2.hex"),
        .CAP    ("cap2.hex"),
        .SEED   (32'h579b)
    ) u_player2 (
        .clk        (clk),
        .rst_n      (rst_n),
        .play       (play),
        .dump       (dump),
        .n_reads    (n_reads[47:32]),
        .n_writes   (n_writes[47:32]),
        .n_words    (n_words[47:32]),
        .idle       (idle),
        .done       (end_of[2]),
        .n_errors   (n_errors[47:32]),
        .rd_valid   (rd_valid[2]),
        .rd_ready   (rd_ready[2]),
        .rd_word    (rd_word[95:64]),
        .rd_len     (rd_len[23:16]),
        .rsp_valid  (rsp_valid[2]),
        .rsp_data   (rsp_data[767:512]),
        .rsp_err    (rsp_err[2]),
        .wr_valid   (wr_valid[2]),
        .wr_ready   (wr_ready[2]),
        .wr_word    (wr_word[95:64]),
        .wr_len     (wr_len[23:16]),
        .wd_valid   (wd_valid[2]),
        .wd_ready   (wd_ready[2]),
        .wd_data    (wd_data[767:512]),
        .wd_strb    (wd_strb[95:64]),
        .wd_last    (wd_last[2]),
        .done_valid (done_valid[2]),
        .done_err   (done_err[2])
    );

    wire [3:0]   aw_id, ar_id, b_id, r_id, cache_w, cache_r, qos_w, qos_r, region_w, region_r;
    wire [39:0]  aw_addr, ar_addr;
    wire [7:0]   aw_len, ar_len;
    wire [2:0]   aw_size, ar_size, prot_w, prot_r;
    wire [1:0]   aw_burst, ar_burst, b_resp, r_resp;
    wire         aw_valid, aw_ready, ar_valid, ar_ready, w_valid, w_ready, w_last, lock_w, lock_r;
    wire         b_valid, b_ready, r_valid, r_ready, r_last;
    wire [255:0] w_data, r_data;
    wire [31:0]  w_strb;

    mag_path #(
        .NREQ          (NREQ),
        .RD_OUT        (RD_OUT),
        .STAGE         (STAGE),
        .STAGE_BANKS   (STAGE_BANKS),
        .STAGE_ENTRIES (STAGE_ENTRIES),
        .STAGE_PIPE    (STAGE_PIPE)
    ) u_path (
        .clk                  (clk),
        .rst_n                (rst_n),
        .rd_valid             (rd_valid),
        .rd_ready             (rd_ready),
        .rd_word              (rd_word),
        .rd_len               (rd_len),
        .rsp_valid            (rsp_valid),
        .rsp_data             (rsp_data),
        .rsp_err              (rsp_err),
        .wr_valid             (wr_valid),
        .wr_ready             (wr_ready),
        .wr_word              (wr_word),
        .wr_len               (wr_len),
        .wd_valid             (wd_valid),
        .wd_ready             (wd_ready),
        .wd_data              (wd_data),
        .wd_strb              (wd_strb),
        .wd_last              (wd_last),
        .done_valid           (done_valid),
        .done_err             (done_err),
        .read_beat            (read_beat),
        .write_beat           (write_beat),
        .stage_read_beat      (stage_read_beat),
        .stage_write_beat     (stage_write_beat),
        .m_axi_dram_awid     (aw_id),
        .m_axi_dram_awaddr   (aw_addr),
        .m_axi_dram_awlen    (aw_len),
        .m_axi_dram_awsize   (aw_size),
        .m_axi_dram_awburst  (aw_burst),
        .m_axi_dram_awlock   (lock_w),
        .m_axi_dram_awcache  (cache_w),
        .m_axi_dram_awprot   (prot_w),
        .m_axi_dram_awqos    (qos_w),
        .m_axi_dram_awregion (region_w),
        .m_axi_dram_awvalid  (aw_valid),
        .m_axi_dram_awready  (aw_ready),
        .m_axi_dram_wdata    (w_data),
        .m_axi_dram_wstrb    (w_strb),
        .m_axi_dram_wlast    (w_last),
        .m_axi_dram_wvalid   (w_valid),
        .m_axi_dram_wready   (w_ready),
        .m_axi_dram_bid      (b_id),
        .m_axi_dram_bresp    (b_resp),
        .m_axi_dram_bvalid   (b_valid),
        .m_axi_dram_bready   (b_ready),
        .m_axi_dram_arid     (ar_id),
        .m_axi_dram_araddr   (ar_addr),
        .m_axi_dram_arlen    (ar_len),
        .m_axi_dram_arsize   (ar_size),
        .m_axi_dram_arburst  (ar_burst),
        .m_axi_dram_arlock   (lock_r),
        .m_axi_dram_arcache  (cache_r),
        .m_axi_dram_arprot   (prot_r),
        .m_axi_dram_arqos    (qos_r),
        .m_axi_dram_arregion (region_r),
        .m_axi_dram_arvalid  (ar_valid),
        .m_axi_dram_arready  (ar_ready),
        .m_axi_dram_rid      (r_id),
        .m_axi_dram_rdata    (r_data),
        .m_axi_dram_rresp    (r_resp),
        .m_axi_dram_rlast    (r_last),
        .m_axi_dram_rvalid   (r_valid),
        .m_axi_dram_rready   (r_ready)
    );

    axi_dram_model #(
        .WORDS  (WORDS),
        .MAX_RD (64),
        .MAX_WR (32)
    ) u_dram (
        .clk           (clk),
        .rst_n         (rst_n),
        .s_axi_awid    (aw_id),
        .s_axi_awaddr  (aw_addr),
        .s_axi_awlen   (aw_len),
        .s_axi_awsize  (aw_size),
        .s_axi_awburst (aw_burst),
        .s_axi_awvalid (aw_valid),
        .s_axi_awready (aw_ready),
        .s_axi_wdata   (w_data),
        .s_axi_wstrb   (w_strb),
        .s_axi_wlast   (w_last),
        .s_axi_wvalid  (w_valid),
        .s_axi_wready  (w_ready),
        .s_axi_bid     (b_id),
        .s_axi_bresp   (b_resp),
        .s_axi_bvalid  (b_valid),
        .s_axi_bready  (b_ready),
        .s_axi_arid    (ar_id),
        .s_axi_araddr  (ar_addr),
        .s_axi_arlen   (ar_len),
        .s_axi_arsize  (ar_size),
        .s_axi_arburst (ar_burst),
        .s_axi_arvalid (ar_valid),
        .s_axi_arready (ar_ready),
        .s_axi_rid     (r_id),
        .s_axi_rdata   (r_data),
        .s_axi_rresp   (r_resp),
        .s_axi_rlast   (r_last),
        .s_axi_rvalid  (r_valid),
        .s_axi_rready  (r_ready)
    );

    wire unused = &{1'b0, lock_w, cache_w, prot_w, qos_w, region_w, lock_r, cache_r, prot_r, qos_r, region_r};
endmodule
`default_nettype wire
