// SPDX-License-Identifier: Apache-2.0
// mov_write: write side of the memory mover. Takes the elements of a move in walk order,
// gives each its word and joins consecutive destinations into bursts.
//
// Element    {four words of an entry follow each other, kind, destination word}; kind 0
//            the next source word, 1 the immediate, 2 the next random word, 3 the next
//            word of the transform bank.
// Burst      at most `cap` words inside a 4 KiB page, single words without `coalesce`;
//            requested when its data is resident.
// Latency    2 cycles from an element's word to the request of its burst when it is the
//            last; a burst is closed by the element after it or by `flush`.
// Throughput one word per cycle.
// Error      the first failing response raises `bad` for good, with the place of its
//            burst. `stop` requests nothing new; what is granted gets its data.
// Limits     KT_MEM_MOVER_WRITES bursts outstanding.
// Spec       docs/spec/memory.md 12.3, 12.5, 12.6
`default_nettype none
`include "ktpu_defs.vh"

module mov_write (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         clear,
    input  wire         stop,
    input  wire         coalesce,
    input  wire [7:0]   cap,

    input  wire         el_valid,
    output wire         el_ready,
    input  wire         el_four,
    input  wire [1:0]   el_kind,
    input  wire [31:0]  el_word,
    input  wire         flush,         // no further elements
    output wire         idle,          // every write has its response

    input  wire         src_valid,
    output wire         src_ready,
    input  wire [255:0] src_data,
    input  wire [255:0] imm_data,
    input  wire         rnd_valid,
    output wire         rnd_ready,
    input  wire [255:0] rnd_data,
    input  wire         bank_valid,
    output wire         bank_ready,
    input  wire [255:0] bank_data,

    // requester of the converged path
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

    output reg          bad,
    output reg  [31:0]  bad_word
);

    localparam [1:0] SOURCE = 2'd0, IMMEDIATE = 2'd1, RANDOM = 2'd2, BANK = 2'd3;

    // ---------------------------------------------------------------- elements
    wire         e_valid, e_take, e_four;
    wire [1:0]   e_kind;
    wire [31:0]  e_word;
    wire [9:0]   e_level;
    fifo_sync #(
        .WIDTH (35),
        .DEPTH (`KT_MEM_MOVER_FIFO_WORDS),
        .PRIM  ("block")
    ) u_elements (
        .clk       (clk),
        .rst_n     (rst_n && !clear),
        .in_valid  (el_valid),
        .in_ready  (el_ready),
        .in_data   ({el_four, el_kind, el_word}),
        .out_valid (e_valid),
        .out_ready (e_take),
        .out_data  ({e_four, e_kind, e_word}),
        .level     (e_level)
    );

    // ---------------------------------------------------------------- join
    reg          run_q;
    reg  [31:0]  run_word_q, run_next_q;
    reg  [7:0]   run_len_q;
    reg  [1:0]   sub_q;                // word of an entry
    wire         data_room, req_room;
    wire [31:0]  word   = e_word + {30'd0, e_four ? sub_q : 2'd0};
    wire         joins  = coalesce && word == run_next_q && run_next_q[6:0] != 7'd0 && run_len_q < cap;
    wire         there  = e_kind == SOURCE ? src_valid : e_kind == IMMEDIATE ? 1'b1
                        : e_kind == RANDOM ? rnd_valid : bank_valid;
    wire         ready  = e_valid && data_room && !stop && (!run_q || joins || req_room);
    wire         take   = ready && there;
    wire         over   = flush && !e_valid;
    wire         push   = run_q && req_room && !stop && ((take && !joins) || over);

    assign src_ready  = ready && e_kind == SOURCE;
    assign rnd_ready  = ready && e_kind == RANDOM;
    assign bank_ready = ready && e_kind == BANK;
    assign e_take     = take && (!e_four || sub_q == 2'd3);

    always @(posedge clk) begin
        if (!rst_n || clear) begin
            run_q <= 1'b0;
            sub_q <= 2'd0;
        end else begin
            if (take) run_q <= 1'b1;
            else if (push) run_q <= 1'b0;
            if (take && e_four) sub_q <= sub_q + 2'd1;
        end
        if (take) begin
            run_next_q <= word + 32'd1;
            if (!run_q || !joins) begin
                run_word_q <= word;
                run_len_q  <= 8'd1;
            end else run_len_q <= run_len_q + 8'd1;
        end
    end

    wire [255:0] data = e_kind == SOURCE ? src_data : e_kind == IMMEDIATE ? imm_data
                      : e_kind == RANDOM ? rnd_data : bank_data;
    wire         d_valid;
    wire [8:0]   d_level;
    wire         wd_take = wd_valid && wd_ready;
    fifo_sync #(
        .WIDTH (256),
        .DEPTH (256),
        .PRIM  ("block")
    ) u_data (
        .clk       (clk),
        .rst_n     (rst_n && !clear),
        .in_valid  (take),
        .in_ready  (data_room),
        .in_data   (data),
        .out_valid (d_valid),
        .out_ready (wd_take),
        .out_data  (wd_data),
        .level     (d_level)
    );

    // ---------------------------------------------------------------- requests
    wire         q_valid, q_take, out_room, out_valid, len_room, len_valid;
    wire [31:0]  q_word, o_word;
    wire [7:0]   q_len, l_len;
    wire [5:0]   q_level, out_level, len_level;
    reg          held_q;
    reg  [7:0]   at_q;
    wire         grant = wr_valid && wr_ready;

    fifo_sync #(
        .WIDTH (40),
        .DEPTH (`KT_MEM_MOVER_WRITES)
    ) u_requests (
        .clk       (clk),
        .rst_n     (rst_n && !clear),
        .in_valid  (push),
        .in_ready  (req_room),
        .in_data   ({run_word_q, run_len_q}),
        .out_valid (q_valid),
        .out_ready (q_take),
        .out_data  ({q_word, q_len}),
        .level     (q_level)
    );
    // A request that was offered stays offered.
    assign wr_valid = q_valid && (held_q || (!stop && out_room && len_room));
    assign wr_word  = q_word;
    assign wr_len   = q_len - 8'd1;
    assign q_take   = grant;

    fifo_sync #(
        .WIDTH (8),
        .DEPTH (`KT_MEM_MOVER_WRITES)
    ) u_lengths (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (grant),
        .in_ready  (len_room),
        .in_data   (q_len),
        .out_valid (len_valid),
        .out_ready (wd_take && wd_last),
        .out_data  (l_len),
        .level     (len_level)
    );
    assign wd_valid = len_valid && d_valid;
    assign wd_last  = at_q == l_len - 8'd1;

    fifo_sync #(
        .WIDTH (32),
        .DEPTH (`KT_MEM_MOVER_WRITES)
    ) u_outstanding (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (grant),
        .in_ready  (out_room),
        .in_data   (q_word),
        .out_valid (out_valid),
        .out_ready (done_valid),
        .out_data  (o_word),
        .level     (out_level)
    );

    always @(posedge clk) begin
        if (!rst_n) begin
            held_q <= 1'b0;
            at_q   <= 8'd0;
        end else begin
            held_q <= wr_valid && !wr_ready;
            if (wd_take) at_q <= wd_last ? 8'd0 : at_q + 8'd1;
        end
        if (!rst_n || clear) bad <= 1'b0;
        else if (done_valid && done_err) bad <= 1'b1;
        if (done_valid && done_err && !bad) bad_word <= o_word;
    end

    assign idle = !out_valid && !wr_valid && (stop || (!e_valid && !run_q && !q_valid));

    wire unused = &{1'b0, e_level, d_level, q_level, out_level, len_level};

endmodule

`default_nettype wire
