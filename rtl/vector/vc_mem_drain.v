// SPDX-License-Identifier: Apache-2.0
// vc_mem_drain: one VDRAIN: memory write bursts cut greedily along the walk, or
// one peer burst (docs/spec/vector.md 7.9, 9.1, 9.4, 15).
//
// `start` begins to collect the addresses of the first burst while the command is
// still being checked; `go` lets flits out, `drop` forgets everything. A burst is
// offered when its length is known: after 8 words, at the end of the walk, or
// where the next address is not the previous one + 32. The next one is collected
// while its data flits leave. L1 words are fetched ahead into a queue of four.
//
// Latency    write descriptor of n >= 8 words offered 9 cycles after `start`.
// Throughput one flit per cycle: m + 1 flits for a burst of m words.
// `done` is high in the cycle of the last flit's transfer, or without one if the
// first address lies outside 0..2^40-1; `fault` says that the walk left it.
//
// MX_STORE   with `mx` each address of the walk takes the four words that
//            vc_mem_mx makes of eight words of L1. A descriptor is then offered
//            only with its first data flit behind it, and the reads of L1 give
//            the pace: 8 cycles an entry. The queue then holds eight words.
//
// L1_LAT 1..2, read latency of L1.    MX_STORE 0, 1
`default_nettype none
`include "ktpu_defs.vh"

module vc_mem_drain #(
    parameter [3:0] CU_X     = 4'd0,
    parameter [3:0] CU_Y     = 4'd0,
    parameter [3:0] MEM_X    = 4'd0,
    parameter [3:0] MEM_Y    = 4'd0,
    parameter       L1_LAT   = 1,
    parameter       MX_STORE = 0
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         start,          // descriptor and word are valid from here to done
    input  wire         go,
    input  wire         drop,
    input  wire [31:0]  word,           // the instruction
    input  wire [39:0]  base,
    input  wire [71:0]  stride,
    input  wire [63:0]  bound,
    input  wire [8:0]   n,              // words of L1, from `go` on
    input  wire         mx,             // quantise; stays 0 with MX_STORE = 0
    output wire         done,
    output wire         fault,

    output wire         rd_en,
    output wire [8:0]   rd_word,
    input  wire [255:0] rd_data,

    output wire         out_valid,
    input  wire         out_ready,
    output wire [287:0] out_flit,
    output wire         open,           // between a write descriptor and its last data flit
    output wire         sent_word,
    output wire         special         // with it: of an entry with an infinity or NaN
);

    wire        node   = word[`KT_VC_DRAIN_NODE];
    wire [3:0]  buffer = word[`KT_VC_DRAIN_BUF];
    wire [7:0]  fin    = base[33:26];
    wire        remote = node && (fin != 8'd0);

    // ------------------------------------------------------ collecting a burst
    reg          form_q, at_end_q, left_q;      // walking; walk over; by leaving the space
    reg  [3:0]   cnt_q;
    reg  [39:0]  first_q;
    reg  [40:0]  next_q;                        // the word taken last, plus 32
    wire [41:0]  walk_addr, addr;
    wire         walk_on;                       // the next word has the walk's next address
    wire [15:0]  left0_unused;
    wire         final_step;
    wire         outside = addr[41:40] != 2'd0;
    wire         fits    = addr[39:0] == next_q[39:0];
    wire         full    = cnt_q == 4'd8;
    wire         whole   = (cnt_q != 4'd0) && (full || !form_q || outside || !fits);
    wire         desc_fire;
    wire         begins  = (cnt_q == 4'd0) || desc_fire;
    wire         takes   = form_q && !outside && (begins || (fits && !full));

    vc_mem_walk u_walk (
        .clk        (clk),
        .load       (start),
        .start      ({2'b00, base}),
        .stride     (stride),
        .bound      (bound),
        .step       (takes && walk_on),
        .run        (1'b0),
        .by         (9'd1),
        .addr       (walk_addr),
        .left0      (left0_unused),
        .final_step (final_step)
    );

    always @(posedge clk) begin
        if (!rst_n || drop || done) begin
            form_q   <= 1'b0;
            at_end_q <= 1'b0;
            left_q   <= 1'b0;
            cnt_q    <= 4'd0;
        end else begin
            if (start) form_q <= !node;
            else if (form_q && (outside || (takes && walk_on && final_step))) begin
                form_q   <= 1'b0;
                at_end_q <= 1'b1;
                left_q   <= outside;
            end
            if (takes) cnt_q <= begins ? 4'd1 : cnt_q + 4'd1;
            else if (desc_fire && !node) cnt_q <= 4'd0;
        end
        if (takes) begin
            next_q <= {1'b0, addr[39:0]} + 41'd32;
            if (begins) first_q <= addr[39:0];
        end
    end

    // ----------------------------------------------------------- L1 words ahead
    reg         run_q;                          // `go` was given
    reg  [8:0]  rd_left_q, rd_word_q;
    reg  [1:0]  rd_pipe_q;                      // reads under way
    reg  [2:0]  held_q;                         // words read and not sent
    wire        rd_room, rd_comes;
    wire        queue_valid, queue_ready, word_valid, word_ready;
    wire [255:0] word_data;
    wire        word_take = word_valid && word_ready;

    localparam QW = (MX_STORE != 0) ? 257 : 256;
    localparam QD = (MX_STORE != 0) ? 8 : 4;
    wire [QW-1:0] queue_data, queue_head;
    wire [$clog2(QD):0] level_unused;

    assign rd_en     = run_q && (rd_left_q != 9'd0) && rd_room;
    assign rd_word   = rd_word_q;
    assign rd_comes  = rd_pipe_q[L1_LAT-1];
    assign word_data = queue_head[255:0];

    fifo_sync #(.WIDTH(QW), .DEPTH(QD)) u_ahead (
        .clk       (clk),
        .rst_n     (rst_n && !done),
        .in_valid  (queue_valid),
        .in_ready  (queue_ready),
        .in_data   (queue_data),
        .out_valid (word_valid),
        .out_ready (word_ready),
        .out_data  (queue_head),
        .level     (level_unused)
    );

    generate
        if (MX_STORE != 0) begin : g_mx
            wire         mx_room, mx_valid, mx_special;
            wire [255:0] mx_data;
            reg  [1:0]   part_q;                // word of the entry to collect

            assign addr    = (part_q != 2'd0) ? {1'b0, next_q} : walk_addr;
            assign walk_on = !mx || (part_q == 2'd3);

            always @(posedge clk) begin
                if (!rst_n || start) part_q <= 2'd0;
                else if (takes && mx) part_q <= part_q + 2'd1;
            end

            vc_mem_mx u_mx (
                .clk         (clk),
                .rst_n       (rst_n && !done),
                .pack        (buffer[0]),
                .rd_en       (rd_en && mx),
                .room        (mx_room),
                .in_valid    (rd_comes && mx),
                .in_data     (rd_data),
                .out_valid   (mx_valid),
                .out_ready   (queue_ready),
                .out_data    (mx_data),
                .out_special (mx_special),
                .taken       (word_take && mx)
            );

            assign rd_room     = mx ? mx_room : held_q != 3'd4;
            assign queue_valid = mx ? mx_valid : rd_comes;
            assign queue_data  = mx ? {mx_special, mx_data} : {1'b0, rd_data};
            assign special     = queue_head[256] && sent_word;
        end else begin : g_plain
            assign addr        = walk_addr;
            assign walk_on     = 1'b1;
            assign rd_room     = (held_q != 3'd4);
            assign queue_valid = rd_comes;
            assign queue_data  = rd_data;
            assign special     = 1'b0;
            wire unused_plain  = &{1'b0, next_q[40], queue_ready};  // held_q keeps a place free
        end
    endgenerate

    always @(posedge clk) begin
        if (!rst_n || done) begin
            run_q     <= 1'b0;
            rd_pipe_q <= 2'b00;
            held_q    <= 3'd0;
        end else begin
            if (go) run_q <= 1'b1;
            rd_pipe_q <= {rd_pipe_q[0], rd_en};
            held_q    <= held_q + {2'd0, rd_en} - {2'd0, word_take};
        end
        if (go) begin
            rd_left_q <= n;
            rd_word_q <= word[`KT_VC_DRAIN_L1];
        end else if (rd_en) begin
            rd_left_q <= rd_left_q - 9'd1;
            rd_word_q <= rd_word_q + 9'd1;
        end
    end

    // ------------------------------------------------------------------ sending
    reg          data_q;                        // data flits of the burst
    reg  [8:0]   burst_left_q;
    wire [8:0]   last_of = !node ? {5'd0, cnt_q} : mx ? {1'b0, n[8:1]} : n;
    wire         fire    = out_valid && out_ready;
    wire         last    = data_q && (burst_left_q == 9'd1);
    wire         drained = at_end_q && (cnt_q == 4'd0);     // nothing collected is left

    assign desc_fire  = fire && !data_q;
    assign out_valid  = data_q ? word_valid : run_q && (node || whole) && (!mx || word_valid);
    assign word_ready = data_q && out_ready;
    assign open       = data_q && !node;
    assign sent_word  = fire && data_q;
    assign done       = run_q && (data_q ? fire && last && (node || drained) : !node && drained);
    assign fault      = left_q;

    wire [7:0]   dst  = node ? {word[`KT_VC_DRAIN_DST_X], word[`KT_VC_DRAIN_DST_Y]} : {MEM_X, MEM_Y};
    wire [7:0]   txn  = !node ? 8'h01 : fin;
    wire [2:0]   rsvd = remote ? {1'b1, base[`KT_VC_PEER_MESH]} : 3'd0;
    wire [3:0]   kind = node ? `KT_TYPE_CU_DATA : data_q ? `KT_TYPE_MEM_WR_DATA : `KT_TYPE_MEM_WR_REQ;
    wire [7:0]   len  = last_of[7:0] - 8'd1;
    wire [255:0] desc = node
        ? {4'd0, buffer, base[`KT_VC_PEER_OFF], len, 7'd0, word[`KT_VC_DRAIN_SIGNAL],
           base[`KT_VC_PEER_ACK_Y], base[`KT_VC_PEER_ACK_X], 208'd0}
        : {first_q, len, 208'd0};

    assign out_flit = {dst, CU_X, CU_Y, kind, txn, last, rsvd, data_q ? word_data : desc};

    always @(posedge clk) begin
        if (!rst_n) data_q <= 1'b0;
        else if (desc_fire) data_q <= 1'b1;
        else if (fire && last) data_q <= 1'b0;
        if (desc_fire) burst_left_q <= last_of;
        else if (fire) burst_left_q <= burst_left_q - 9'd1;
    end

    wire unused = &{1'b0, word[31:26], word[`KT_VC_DRAIN_AD]};

endmodule

`default_nettype wire
