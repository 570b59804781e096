// SPDX-License-Identifier: Apache-2.0
// mov_engine: memory mover of one mesh, a requester of the converged path that is
// commanded by register writes. Copies, gathers, generates, fills and converts words.
//
// Latency    about 10 cycles from a GO to the first read besides the queue.
// Throughput one word per cycle (GENERATE one per 10, GATHER 5 more per row, quantiser
//            8 source words per 9).
// Status     {moves, reads served, writes issued at mesh ports, fault, 0, non-finite,
//            sticky fault, busy}; busy falls after the last write's response.
// Parameters as in mag_classify; XFORM_GRANULE 1 builds the granule transpose.
// Spec       docs/spec/memory.md 12, 13
`default_nettype none
`include "ktpu_defs.vh"

module mov_engine #(
    parameter MESH_ID          = 0,
    parameter DRAM_BYTES_LOG2  = 32,
    parameter STAGE            = 0,
    parameter STAGE_BYTES_LOG2 = 21,
    parameter XFORM_GRANULE    = 0
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         cmd_valid,
    output wire         cmd_ready,
    input  wire [7:0]   cmd_addr,
    input  wire [63:0]  cmd_data,
    input  wire         served,
    input  wire         issued,
    output wire [63:0]  status,

    // requester of the converged path (mag_path)
    output wire         rd_valid,
    input  wire         rd_ready,
    output wire [31:0]  rd_word,
    output wire [7:0]   rd_len,
    input  wire         rsp_valid,
    input  wire [255:0] rsp_data,
    input  wire         rsp_err,
    output wire         wr_valid,
    input  wire         wr_ready,
    output wire [31:0]  wr_word,
    output wire [7:0]   wr_len,
    output wire         wd_valid,
    input  wire         wd_ready,
    output wire [255:0] wd_data,
    output wire         wd_last,
    input  wire         done_valid,
    input  wire         done_err,

    // F_RANGE or F_AXI ended a move
    output wire         bad_valid,
    output wire [3:0]   bad_code,
    output wire [39:0]  bad_addr
);

    localparam [1:0] MESH = MESH_ID[1:0];

    generate
        if (XFORM_GRANULE < 0 || XFORM_GRANULE > 1) begin : g_illegal
            mov_engine_illegal_parameters u_stop ();
        end
    endgenerate

    // ---------------------------------------------------------------- registers
    wire         go, over, busy, clear_fault, clear_nonfinite, coalesce;
    wire [2:0]   mode;
    wire [1:0]   ewidth, bad_index;
    wire [7:0]   cap;
    wire [79:0]  base;
    wire [5:0]   ndim;
    wire [3:0]   xform_id, xform_mode;
    wire [791:0] dims;
    wire [127:0] windows;
    wire [39:0]  index_addr;
    wire [15:0]  index_count, words;
    wire [63:0]  seed;
    wire [31:0]  imm, pitch;

    mov_regs u_regs (
        .clk             (clk),
        .rst_n           (rst_n),
        .cmd_valid       (cmd_valid),
        .cmd_ready       (cmd_ready),
        .cmd_addr        (cmd_addr),
        .cmd_data        (cmd_data),
        .go              (go),
        .done            (over),
        .busy            (busy),
        .clear_fault     (clear_fault),
        .clear_nonfinite (clear_nonfinite),
        .mode            (mode),
        .ewidth          (ewidth),
        .coalesce        (coalesce),
        .cap             (cap),
        .base            (base),
        .ndim            (ndim),
        .bad_index       (bad_index),
        .xform_id        (xform_id),
        .xform_mode      (xform_mode),
        .dims            (dims),
        .windows         (windows),
        .index_addr      (index_addr),
        .index_count     (index_count),
        .seed            (seed),
        .imm             (imm),
        .pitch           (pitch),
        .words           (words)
    );

    // ---------------------------------------------------------------- walk
    wire         el_valid, el_ready, el_four, sr_valid, sr_ready, sr_flush, rnd_valid, rnd_ready, ended;
    wire [1:0]   el_kind;
    wire [31:0]  el_word, sr_word;
    wire         word_ready, d_valid, d_ready;
    wire [255:0] d_data;
    wire [3:0]   walk_fault, walk_code;
    wire [39:0]  walk_addr;
    wire         rd_bad, wr_bad, rd_idle, wr_idle;
    wire [31:0]  rd_bad_word, wr_bad_word;
    wire         stop = rd_bad || wr_bad;

    mov_steps #(
        .MESH_ID          (MESH_ID),
        .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2),
        .GRANULE          (XFORM_GRANULE)
    ) u_steps (
        .clk         (clk),
        .rst_n       (rst_n),
        .go          (go),
        .stop        (stop),
        .over        (over),
        .ended       (ended),
        .mode        (mode),
        .ewidth      (ewidth),
        .base        (base),
        .ndim        (ndim),
        .bad_index   (bad_index),
        .xform_id    (xform_id),
        .xform_each  (xform_mode[0]),
        .dims        (dims),
        .windows     (windows),
        .index_addr  (index_addr),
        .index_count (index_count),
        .pitch       (pitch),
        .words       (words),
        .el_valid    (el_valid),
        .el_ready    (el_ready),
        .el_four     (el_four),
        .el_kind     (el_kind),
        .el_word     (el_word),
        .sr_valid    (sr_valid),
        .sr_ready    (sr_ready),
        .sr_word     (sr_word),
        .sr_flush    (sr_flush),
        .rnd_valid   (rnd_valid),
        .rnd_ready   (rnd_ready),
        .word_valid  (d_valid),
        .word_ready  (word_ready),
        .word_data   (d_data),
        .fault       (walk_fault),
        .fault_code  (walk_code),
        .fault_addr  (walk_addr)
    );

    // A move is over when every access it made has its answer; what it left behind in
    // the queues is forgotten.
    assign over = ended && rd_idle && wr_idle;

    // ---------------------------------------------------------------- data
    wire         src_ready, rnd_out_valid, rnd_out_ready, bank_valid, bank_ready, bank_in_ready, nonfinite;
    wire [255:0] rnd_word, bank_data;
    wire         is_xform = mode == `KT_MV_MODE_XFORM;
    wire [255:0] pattern  = ewidth == 2'd0 ? {32{imm[7:0]}} : ewidth == 2'd1 ? {16{imm[15:0]}} : {8{imm}};

    assign d_ready = word_ready || (is_xform ? bank_in_ready : src_ready);

    mov_read u_read (
        .clk       (clk),
        .rst_n     (rst_n),
        .clear     (over),
        .stop      (stop),
        .cap       (cap),
        .in_valid  (sr_valid),
        .in_ready  (sr_ready),
        .in_word   (sr_word),
        .flush     (sr_flush),
        .out_valid (d_valid),
        .out_ready (d_ready),
        .out_data  (d_data),
        .idle      (rd_idle),
        .rd_valid  (rd_valid),
        .rd_ready  (rd_ready),
        .rd_word   (rd_word),
        .rd_len    (rd_len),
        .rsp_valid (rsp_valid),
        .rsp_data  (rsp_data),
        .rsp_err   (rsp_err),
        .bad       (rd_bad),
        .bad_word  (rd_bad_word)
    );

    mov_prng u_prng (
        .clk       (clk),
        .rst_n     (rst_n && !over),
        .seed      (seed),
        .in_valid  (rnd_valid),
        .in_ready  (rnd_ready),
        .in_wa     ({el_word[31], 1'b0, MESH, el_word[30:0]}),
        .out_valid (rnd_out_valid),
        .out_ready (rnd_out_ready),
        .out_word  (rnd_word)
    );

    mov_bank #(.GRANULE (XFORM_GRANULE)) u_bank (
        .clk       (clk),
        .rst_n     (rst_n && !over),
        .on        (is_xform && !word_ready),
        .id        (xform_id),
        .pack      (xform_mode[0]),
        .in_valid  (d_valid && is_xform),
        .in_ready  (bank_in_ready),
        .in_data   (d_data),
        .out_valid (bank_valid),
        .out_ready (bank_ready),
        .out_data  (bank_data),
        .nonfinite (nonfinite)
    );

    mov_write u_write (
        .clk        (clk),
        .rst_n      (rst_n),
        .clear      (over),
        .stop       (stop),
        .coalesce   (coalesce),
        .cap        (cap),
        .el_valid   (el_valid),
        .el_ready   (el_ready),
        .el_four    (el_four),
        .el_kind    (el_kind),
        .el_word    (el_word),
        .flush      (ended),
        .idle       (wr_idle),
        .src_valid  (d_valid && !is_xform && !word_ready),
        .src_ready  (src_ready),
        .src_data   (d_data),
        .imm_data   (pattern),
        .rnd_valid  (rnd_out_valid),
        .rnd_ready  (rnd_out_ready),
        .rnd_data   (rnd_word),
        .bank_valid (bank_valid),
        .bank_ready (bank_ready),
        .bank_data  (bank_data),
        .wr_valid   (wr_valid),
        .wr_ready   (wr_ready),
        .wr_word    (wr_word),
        .wr_len     (wr_len),
        .wd_valid   (wd_valid),
        .wd_ready   (wd_ready),
        .wd_data    (wd_data),
        .wd_last    (wd_last),
        .done_valid (done_valid),
        .done_err   (done_err),
        .bad        (wr_bad),
        .bad_word   (wr_bad_word)
    );

    // ---------------------------------------------------------------- status
    // A bus error belongs to an earlier element than the fault that ended the walk.
    wire [3:0]  fault  = stop ? `KT_MV_F_AXI : walk_fault;
    wire [31:0] failed = wr_bad ? wr_bad_word : rd_bad_word;
    reg  [23:0] moves_q;
    reg  [15:0] reads_q, writes_q;
    reg  [3:0]  fault_q;
    reg         sticky_q, nonfinite_q;

    assign bad_valid = over && (fault == `KT_MV_F_AXI || fault == `KT_MV_F_RANGE);
    assign bad_code  = stop ? `KT_M_BUS : walk_code;
    assign bad_addr  = stop ? {failed[31], 1'b0, MESH, failed[30:0], 5'd0} : walk_addr;
    assign status    = {moves_q, reads_q, writes_q, fault_q, 1'b0, nonfinite_q, sticky_q, busy};

    always @(posedge clk) begin
        if (!rst_n) begin
            moves_q     <= 24'd0;
            reads_q     <= 16'd0;
            writes_q    <= 16'd0;
            fault_q     <= `KT_MV_F_NONE;
            sticky_q    <= 1'b0;
            nonfinite_q <= 1'b0;
        end else begin
            if (served) reads_q <= reads_q + 16'd1;
            if (issued) writes_q <= writes_q + 16'd1;
            if (go) fault_q <= `KT_MV_F_NONE;
            else if (over) fault_q <= fault;
            if (over && fault == `KT_MV_F_NONE) moves_q <= moves_q + 24'd1;
            if (over && fault != `KT_MV_F_NONE) sticky_q <= 1'b1;
            else if (clear_fault) sticky_q <= 1'b0;
            if (nonfinite) nonfinite_q <= 1'b1;
            else if (clear_nonfinite) nonfinite_q <= 1'b0;
        end
    end

    wire unused = &{1'b0, xform_mode[3:1]};

endmodule

`default_nettype wire
