// SPDX-License-Identifier: Apache-2.0
// mov_read: read side of the memory mover. Joins consecutive source words into bursts
// and keeps what comes back in a queue, in order.
//
// Burst      at most `cap` words, inside a 4 KiB page, requested when the queue has room
//            for all of it: returned data is never refused.
// Latency    a burst is requested 1 cycle after the word that ends it or after `flush`.
// Throughput one word per cycle.
// Error      the first word that fails raises `bad` for good, with its place; from then
//            on nothing new is requested. `clear` empties everything.
// Limits     KT_MEM_MOVER_READS bursts outstanding, KT_MEM_MOVER_FIFO_WORDS words queued.
// Spec       docs/spec/memory.md 12.5, 12.6
`default_nettype none
`include "ktpu_defs.vh"

module mov_read (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         clear,
    input  wire         stop,          // request nothing new
    input  wire [7:0]   cap,

    input  wire         in_valid,
    output wire         in_ready,
    input  wire [31:0]  in_word,
    input  wire         flush,         // no further words: request what is joined

    output wire         out_valid,
    input  wire         out_ready,
    output wire [255:0] out_data,
    output wire         idle,          // nothing joined, requested or on its way

    // requester of the converged path
    output wire         rd_valid,
    input  wire         rd_ready,
    output wire [31:0]  rd_word,
    output wire [7:0]   rd_len,
    input  wire         rsp_valid,
    input  wire [255:0] rsp_data,
    input  wire         rsp_err,

    output reg          bad,
    output reg  [31:0]  bad_word
);

    localparam DEPTH = `KT_MEM_MOVER_FIFO_WORDS;
    localparam LW    = $clog2(DEPTH) + 1;

    // ---------------------------------------------------------------- join
    reg          run_q, req_q, held_q;
    reg  [31:0]  run_word_q, run_next_q, req_word_q;
    reg  [7:0]   run_len_q, req_len_q;
    reg  [LW-1:0] free_q;
    wire         grant   = rd_valid && rd_ready;
    wire         open    = !req_q || grant;             // the request register can be loaded
    wire         joins   = in_word == run_next_q && run_next_q[6:0] != 7'd0 && run_len_q < cap;
    wire         take    = in_valid && in_ready;
    wire         push    = run_q && open && ((in_valid && !joins) || flush);

    assign in_ready = !run_q || joins || open;

    always @(posedge clk) begin
        if (!rst_n || clear) begin
            run_q <= 1'b0;
            req_q <= 1'b0;
        end else begin
            if (take) run_q <= 1'b1;
            else if (push) run_q <= 1'b0;
            if (push && !stop) req_q <= 1'b1;
            else if (grant || (stop && !held_q)) req_q <= 1'b0;
        end
        if (take) begin
            run_next_q <= in_word + 32'd1;
            if (!run_q || !joins) begin
                run_word_q <= in_word;
                run_len_q  <= 8'd1;
            end else run_len_q <= run_len_q + 8'd1;
        end
        if (push) begin
            req_word_q <= run_word_q;
            req_len_q  <= run_len_q;
        end
    end

    // ---------------------------------------------------------------- request
    wire         track_room, track_valid;
    wire [31:0]  t_word;
    wire [7:0]   t_len;
    reg  [7:0]   t_at_q;
    wire         t_end = rsp_valid && t_at_q == t_len - 8'd1;
    wire [4:0]   track_level;

    // A request that was offered stays offered.
    assign rd_valid = req_q && (held_q || (!stop && track_room && free_q >= {{(LW-8){1'b0}}, req_len_q}));
    assign rd_word  = req_word_q;
    assign rd_len   = req_len_q - 8'd1;

    always @(posedge clk) begin
        if (!rst_n) begin
            held_q <= 1'b0;
            t_at_q <= 8'd0;
        end else begin
            held_q <= rd_valid && !rd_ready;
            if (rsp_valid) t_at_q <= t_end ? 8'd0 : t_at_q + 8'd1;
        end
        if (!rst_n || clear) free_q <= DEPTH;
        else free_q <= free_q - (grant ? {{(LW-8){1'b0}}, req_len_q} : {LW{1'b0}})
                              + {{(LW-1){1'b0}}, out_valid && out_ready};
        if (!rst_n || clear) bad <= 1'b0;
        else if (rsp_valid && rsp_err) bad <= 1'b1;
        if (rsp_valid && rsp_err && !bad) bad_word <= t_word + {24'd0, t_at_q};
    end

    fifo_sync #(
        .WIDTH (40),
        .DEPTH (`KT_MEM_MOVER_READS)
    ) u_track (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (grant),
        .in_ready  (track_room),
        .in_data   ({req_word_q, req_len_q}),
        .out_valid (track_valid),
        .out_ready (t_end),
        .out_data  ({t_word, t_len}),
        .level     (track_level)
    );

    assign idle = !run_q && !req_q && !track_valid;

    // ---------------------------------------------------------------- queue
    wire            room;
    wire [LW-1:0]   level;
    fifo_sync #(
        .WIDTH (256),
        .DEPTH (DEPTH),
        .PRIM  ("block")
    ) u_data (
        .clk       (clk),
        .rst_n     (rst_n && !clear),
        .in_valid  (rsp_valid),
        .in_ready  (room),
        .in_data   (rsp_data),
        .out_valid (out_valid),
        .out_ready (out_ready),
        .out_data  (out_data),
        .level     (level)
    );

    wire unused = &{1'b0, room, level, track_level};

endmodule

`default_nettype wire
