// SPDX-License-Identifier: Apache-2.0
// vc_seq_fetch: instruction memory, prefetch queue and the counted loop
// (docs/spec/vector.md 7.7, 11.1 F_PC).
//
// Words leave in program order with the marks decode needs: `in_loop` (read as
// part of a loop body), `at_end` (the last word of the body), `past` (there is
// no word: the address after 511).
// Latency    start -> first word three cycles.
// Throughput one word a cycle, across the loop end too.
//
// The loop is found while fetching, so that the words behind VLOOP carry their
// marks without a refetch; the count is known only when VLOOP executes
// (`loop_set`), and the end of the first pass waits for it.
`default_nettype none
`include "ktpu_defs.vh"

module vc_seq_fetch (
    input  wire        clk,
    input  wire        rst_n,

    // envelope
    input  wire        imem_we,
    input  wire [8:0]  imem_addr,
    input  wire [31:0] imem_word,

    input  wire        start,
    input  wire [8:0]  start_pc,
    input  wire        stop,            // drop everything until the next start
    input  wire        loop_set,
    input  wire [23:0] loop_count,      // >= 1

    output wire        w_valid,
    input  wire        w_pop,
    output wire [31:0] w_word,
    output wire [8:0]  w_pc,            // 0 with `past`
    output wire        w_in_loop,
    output wire        w_at_end,
    output wire        w_past
);

    localparam [9:0] END_PC = 10'd512;

    reg         run_q;
    reg  [9:0]  fpc_q;                  // next address to read
    reg         rd_q, rd_past_q;        // the word of rd_pc_q is on the RAM output
    reg  [8:0]  rd_pc_q;
    reg         lp_q, lp_known_q;
    reg  [8:0]  lp_top_q;
    reg  [9:0]  lp_next_q;              // address behind the body
    reg  [23:0] lp_left_q;              // passes, the present one included

    wire [31:0] rd_word;
    wire [2:0]  level;

    // One word may be on its way; the queue has four places.
    wire        room    = {1'b0, level} + {3'd0, rd_q} < 4'd4;
    wire        closing = lp_q && fpc_q == lp_next_q;
    wire        again   = closing && lp_left_q != 24'd1;
    wire        issue   = run_q && room && (!closing || lp_known_q);
    wire [9:0]  addr    = again ? {1'b0, lp_top_q} : fpc_q;
    wire        past    = addr == END_PC;

    wire        finds   = rd_q && !rd_past_q && rd_word[`KT_VC_LOOP_OP] == `KT_VC_OP_VLOOP && !lp_q;
    wire [9:0]  rd_next = {1'b0, rd_pc_q} + 10'd1;

    ram_sdp #(
        .WIDTH    (32),
        .DEPTH    (`KT_VC_IMEM_WORDS),
        .PRIM     ("block"),
        .READ_LAT (1)
    ) u_imem (
        .clk     (clk),
        .wr_en   (imem_we),
        .wr_addr (imem_addr),
        .wr_data (imem_word),
        .rd_en   (issue && !past),
        .rd_addr (addr[8:0]),
        .rd_data (rd_word)
    );

    // A word read as the last of the body arrives before or with the read that
    // leaves the loop, so the marks are taken on arrival.
    wire        queue_ready_unused;
    fifo_sync #(
        .WIDTH (44),
        .DEPTH (4)
    ) u_queue (
        .clk       (clk),
        .rst_n     (rst_n && !stop),
        .in_valid  (rd_q),
        .in_ready  (queue_ready_unused),
        .in_data   ({rd_past_q, lp_q, lp_q && rd_next == lp_next_q, rd_pc_q, rd_word}),
        .out_valid (w_valid),
        .out_ready (w_pop),
        .out_data  ({w_past, w_in_loop, w_at_end, w_pc, w_word}),
        .level     (level)
    );

    always @(posedge clk) begin
        if (!rst_n || stop) begin
            run_q <= 1'b0;
            rd_q  <= 1'b0;
            lp_q  <= 1'b0;
        end else begin
            rd_q <= issue;
            if (start) run_q <= 1'b1;
            else if (issue && past) run_q <= 1'b0;
            if (finds) lp_q <= 1'b1;
            else if (issue && closing && !again) lp_q <= 1'b0;
        end
        if (start) fpc_q <= {1'b0, start_pc};
        else if (issue) fpc_q <= addr + 10'd1;
        if (issue) begin
            rd_pc_q   <= addr[8:0];
            rd_past_q <= past;
        end
        if (finds) begin
            lp_known_q <= 1'b0;
            lp_top_q   <= rd_next[8:0];
            lp_next_q  <= rd_next + {6'd0, rd_word[`KT_VC_LOOP_BODY]};
        end else if (loop_set) begin
            lp_known_q <= 1'b1;
            lp_left_q  <= loop_count;
        end else if (issue && again) begin
            lp_left_q <= lp_left_q - 24'd1;
        end
    end

    // Decode faults before a VLOOP at 511 could use its wrapped top.
    wire unused = &{1'b0, rd_next};

endmodule

`default_nettype wire
