// SPDX-License-Identifier: Apache-2.0
// vc_mem_ldst: VLD and VST: one L1 word per cycle along a walk, with conversion
// (docs/spec/vector.md 7.5, 7.8, 8).
//
// Stage A    address of the word: range check, wait for an outstanding fill, L1
//            read (VLD), look-up of the bad mark.
// Stage D    L1_LAT cycles later (VLD) or one (VST): the fault of the word, else
//            write-back of a chunk or half, or the L1 write. A fault stops here:
//            words before have taken effect, later ones have not.
//
// VST asks for chunk 0 with `start`. Registers asked for in cycle k are taken in
// k+2; a queue of four holds them while responses have the L1 write port.
// Latency    `start` in cycle k: first word in stage D in k+1+L1_LAT (VLD) or k+2
//            (VST); `done` with the last word.
// Throughput one word per cycle.
`default_nettype none
`include "ktpu_defs.vh"

module vc_mem_ldst #(
    parameter L1_LAT = 1
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         start,          // descriptor valid; word and vl stay until done
    input  wire         store,
    input  wire         wide,           // FP32
    input  wire [7:0]   vl,
    input  wire [13:0]  off,
    input  wire [39:0]  base,
    input  wire [71:0]  stride,
    input  wire [63:0]  bound,
    output wire         done,
    output wire [7:0]   fault,          // with done, 0 = none

    output wire [8:0]   ask_word,
    input  wire         word_busy,
    output wire         bad_rd,
    input  wire [7:0]   bad_at,

    output wire         rd_en,
    input  wire [255:0] rd_data,
    output wire         wr_valid,
    input  wire         wr_ready,
    output wire [8:0]   wr_word,
    output wire [255:0] wr_data,
    output wire         clamped,        // a finite value of the word written was limited

    output wire         ld_valid,
    output wire [2:0]   ld_chunk,
    output wire [1:0]   ld_half,
    output wire [383:0] ld_data,
    output wire         st_rd,
    output wire [2:0]   st_chunk,
    input  wire [383:0] st_data
);

    // Words of the walk, minus 1: N - 1 or 2N - 1.
    wire [7:0] vl_top   = vl - 8'd1;
    wire [3:0] last_k   = wide ? {vl_top[6:4], 1'b1} : {1'b0, vl_top[6:4]};

    // ---------------------------------------------------------------- stage A
    reg         walk_q;
    reg  [3:0]  k_q;
    wire [41:0] addr;
    wire [15:0] left0_unused;
    wire        final_unused;
    wire        outside = addr[41:9] != 33'd0;
    wire        room_d;                 // stage 1 takes a word
    wire        finish;
    wire        go_a    = walk_q && room_d && (outside || !word_busy);
    wire        last_a  = k_q == last_k;

    assign ask_word = addr[8:0];
    assign bad_rd   = go_a && !outside;
    assign rd_en    = bad_rd && !store;

    vc_mem_walk u_walk (
        .clk        (clk),
        .load       (start),
        .start      ({2'b00, base} + {{28{off[13]}}, off}),
        .stride     (stride),
        .bound      (bound),
        .step       (go_a),
        .run        (1'b0),
        .by         (9'd1),
        .addr       (addr),
        .left0      (left0_unused),
        .final_step (final_unused)
    );

    always @(posedge clk) begin
        if (!rst_n || finish) walk_q <= 1'b0;
        else if (start) walk_q <= 1'b1;
        else if (go_a && (outside || last_a)) walk_q <= 1'b0;
        if (start) k_q <= 4'd0;
        else if (go_a) k_q <= k_q + 4'd1;
    end

    // ---------------------------------------------------- stage 1 and, for VLD, 2
    reg         v1_q, out1_q, last1_q;
    reg  [3:0]  k1_q;
    reg  [8:0]  word1_q;
    wire [7:0]  code1 = out1_q ? `KT_VC_F_L1RANGE : bad_at;
    wire        st_done;                // the word of a VST in stage 1 leaves

    assign room_d = !store || !v1_q || st_done;

    always @(posedge clk) begin
        if (!rst_n || finish) v1_q <= 1'b0;
        else if (room_d) v1_q <= go_a;
        if (go_a) begin
            out1_q  <= outside;
            last1_q <= last_a;
            k1_q    <= k_q;
            word1_q <= addr[8:0];
        end
    end

    wire       vd, lastd;
    wire [3:0] kd;
    wire [7:0] coded;

    generate
        if (L1_LAT == 1) begin : g_lat1
            assign vd    = v1_q && !store;
            assign lastd = last1_q;
            assign kd    = k1_q;
            assign coded = code1;
        end else begin : g_lat2
            reg       v2_q, last2_q;
            reg [3:0] k2_q;
            reg [7:0] code2_q;
            assign vd    = v2_q;
            assign lastd = last2_q;
            assign kd    = k2_q;
            assign coded = code2_q;
            always @(posedge clk) begin
                if (!rst_n || finish) v2_q <= 1'b0;
                else v2_q <= v1_q && !store;
                last2_q <= last1_q;
                k2_q    <= k1_q;
                code2_q <= code1;
            end
        end
    endgenerate

    // ------------------------------------------------------------- VLD, stage D
    wire [383:0] narrow_data;
    wire [191:0] wide_data;

    assign ld_valid = vd && (coded == 8'd0);
    assign ld_chunk = wide ? kd[3:1] : kd[2:0];
    assign ld_half  = !wide ? 2'b11 : kd[0] ? 2'b10 : 2'b01;
    assign ld_data  = wide ? {wide_data, wide_data} : narrow_data;

    // ------------------------------------------------------------- VST, stage D
    // Registers asked for ahead of the words.
    reg          ask_q;
    reg  [3:0]   asked_q;               // chunks asked for
    reg  [1:0]   pipe_q;
    reg  [2:0]   held_q;                // chunks asked for and not used up
    wire         arrives = pipe_q[1];
    wire         have, q_valid, q_ready_unused, use_last;
    wire [2:0]   level_unused;
    wire [383:0] q_data;
    wire [383:0] regs    = q_valid ? q_data : st_data;
    wire         st_turn = v1_q && store;
    wire         st_fail = st_turn && (code1 != 8'd0);

    assign st_rd    = (start && store) || (ask_q && (held_q != 3'd4));
    assign st_chunk = start ? 3'd0 : asked_q[2:0];
    assign have     = q_valid || arrives;
    assign wr_valid = st_turn && !st_fail && have;
    assign st_done  = wr_valid && wr_ready;
    assign use_last = st_done && (!wide || k1_q[0]);

    fifo_sync #(.WIDTH(384), .DEPTH(4)) u_regs (
        .clk       (clk),
        .rst_n     (rst_n && !start),
        .in_valid  (arrives && !(use_last && !q_valid)),
        .in_ready  (q_ready_unused),    // held_q keeps a place free
        .in_data   (st_data),
        .out_valid (q_valid),
        .out_ready (use_last),
        .out_data  (q_data),
        .level     (level_unused)
    );

    always @(posedge clk) begin
        if (!rst_n || finish) begin
            ask_q  <= 1'b0;
            pipe_q <= 2'b00;
            held_q <= 3'd0;
        end else begin
            if (start) ask_q <= store && (vl_top[6:4] != 3'd0);
            else if (st_rd && (asked_q[2:0] == vl_top[6:4])) ask_q <= 1'b0;
            pipe_q <= {pipe_q[0], st_rd};
            held_q <= held_q + {2'd0, st_rd} - {2'd0, use_last};
        end
        if (start) asked_q <= 4'd1;
        else if (st_rd) asked_q <= asked_q + 4'd1;
    end

    assign wr_word = word1_q;

    // Both formats end here: a fault, or the last word.
    assign finish = vd ? (lastd || (coded != 8'd0)) : (st_fail || (st_done && last1_q));
    assign done   = finish;
    assign fault  = vd ? coded : st_fail ? code1 : 8'd0;

    // -------------------------------------------------------------- conversions
    wire [15:0]  limit;                 // lane i of a chunk was limited
    wire [255:0] narrow_word;
    wire [511:0] wide_words;
    wire [7:0]   e0 = {1'b0, k1_q[2:0], 4'd0};          // first element of the word

    genvar i;
    generate
        for (i = 0; i < 16; i = i + 1) begin : g_lane
            wire over;
            vc_f16_to_e8 u_from_half (.half(rd_data[16*i +: 16]), .code(narrow_data[24*i +: 24]));
            vc_e8_to_f16 u_to_half (.code(regs[24*i +: 24]), .half(narrow_word[16*i +: 16]), .clamped(over));
            vc_e8_to_f32 u_to_word (.code(regs[24*i +: 24]), .word(wide_words[32*i +: 32]));
            assign limit[i] = over && (e0 + i[7:0] < vl);
        end
        for (i = 0; i < 8; i = i + 1) begin : g_word
            vc_f32_to_e8 u_from_word (.word(rd_data[32*i +: 32]), .code(wide_data[24*i +: 24]));
        end
    endgenerate

    assign wr_data = !wide ? narrow_word : k1_q[0] ? wide_words[511:256] : wide_words[255:0];
    assign clamped = st_done && !wide && (limit != 16'd0);

    wire unused = &{1'b0, vl_top[7], vl_top[3:0]};

endmodule

`default_nettype wire
