// SPDX-License-Identifier: Apache-2.0
// mov_steps: walks the elements of a move, checks each and hands it on: its source word
// to the read side, its destination to the write side.
//
// Latency    2 cycles from go to the first element (GATHER: after its index vector).
// Throughput one element per cycle; mode 5 one source word per cycle and one cycle per
//            entry (two per output word when each has a destination of its own).
// Checks     in the order of the page. The first that fails ends the walk; what was
//            handed on before is the part of the move that is carried out.
// Parameters as in mag_classify; GRANULE 1: the granule transpose is built.
// Spec       docs/spec/memory.md 12.2, 12.3, 12.6, 13
`default_nettype none
`include "ktpu_defs.vh"

module mov_steps #(
    parameter MESH_ID          = 0,
    parameter DRAM_BYTES_LOG2  = 32,
    parameter STAGE            = 0,
    parameter STAGE_BYTES_LOG2 = 21,
    parameter GRANULE          = 0
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         go,
    input  wire         stop,          // a bus error: end the walk
    input  wire         over,          // the move is over
    output wire         ended,         // nothing more will be handed on

    input  wire [2:0]   mode,
    input  wire [1:0]   ewidth,
    input  wire [79:0]  base,
    input  wire [5:0]   ndim,
    input  wire [1:0]   bad_index,
    input  wire [3:0]   xform_id,
    input  wire         xform_each,    // XFORM_MODE[0]
    input  wire [791:0] dims,
    input  wire [127:0] windows,
    input  wire [39:0]  index_addr,
    input  wire [15:0]  index_count,
    input  wire [31:0]  pitch,
    input  wire [15:0]  words,

    output wire         el_valid,      // to mov_write
    input  wire         el_ready,
    output wire         el_four,
    output wire [1:0]   el_kind,
    output wire [31:0]  el_word,
    output wire         sr_valid,      // to mov_read
    input  wire         sr_ready,
    output wire [31:0]  sr_word,
    output wire         sr_flush,
    output wire         rnd_valid,     // to mov_prng
    input  wire         rnd_ready,
    input  wire         word_valid,    // index words, from mov_read
    output wire         word_ready,
    input  wire [255:0] word_data,

    output wire [3:0]   fault,         // of the walk
    output wire [3:0]   fault_code,    // memory code and address of F_RANGE
    output wire [39:0]  fault_addr
);

    localparam [2:0] G_IDLE = 3'd0, G_CHECK = 3'd1, G_INDEX = 3'd2, G_LOAD = 3'd3, G_RUN = 3'd4, G_PLACE = 3'd5,
                     G_FEED = 3'd6, G_END = 3'd7;

    reg  [2:0]   state_q;
    reg          put_q;                // G_PLACE hands out the four places of an entry
    reg  [1:0]   at_q;                 // place of an entry
    reg  [2:0]   fed_q;                // source word of an entry
    reg  [127:0] place_q;
    reg  [40:0]  index_q;              // address of the next index word
    reg  [8:0]   ask_q, wait_q;        // index words to request, to arrive
    reg  [3:0]   fault_q, code_q;
    reg  [39:0]  addr_q;

    wire is_copy   = mode == `KT_MV_MODE_COPY;
    wire is_gather = mode == `KT_MV_MODE_GATHER;
    wire is_random = mode == `KT_MV_MODE_GENERATE;
    wire is_fill   = mode == `KT_MV_MODE_FILL;
    wire is_xform  = mode == `KT_MV_MODE_XFORM;

    // ---------------------------------------------------------------- walkers
    wire         load = state_q == G_CHECK;
    wire         d_step, s_step, d_valid, s_valid, d_ended, s_ended;
    wire [55:0]  d_addr, w_addr;

    mov_walk u_source (
        .clk     (clk),
        .load    (load),
        .step    (s_step),
        .base    (base[39:0]),
        .ndim    (ndim[2:0]),
        .dims    (dims[395:0]),
        .windows (windows[63:0]),
        .addr    (w_addr),
        .valid   (s_valid),
        .ended   (s_ended)
    );

    mov_walk u_destination (
        .clk     (clk),
        .load    (load),
        .step    (d_step),
        .base    (base[79:40]),
        .ndim    (ndim[5:3]),
        .dims    (dims[791:396]),
        .windows (windows[127:64]),
        .addr    (d_addr),
        .valid   (d_valid),
        .ended   (d_ended)
    );

    wire         g_ready, g_over, g_step;
    wire [65:0]  g_addr;
    wire         loaded = state_q == G_LOAD && wait_q == 9'd0;

    mov_gather u_gather (
        .clk        (clk),
        .rst_n      (rst_n),
        .load       (load),
        .word_valid (word_valid && word_ready),
        .word_data  (word_data),
        .start      (loaded),
        .base       (base[39:0]),
        .pitch      (pitch),
        .words      (words),
        .count      (index_count[11:0]),
        .ready      (g_ready),
        .step       (g_step),
        .over       (g_over),
        .addr       (g_addr)
    );

    // ---------------------------------------------------------------- checks at GO
    wire wants_source = is_copy || is_xform;
    wire bad_walk = ndim[5:3] == 3'd0 || ndim[5:3] == 3'd7 || bad_index[1]
                    || (wants_source && (ndim[2:0] == 3'd0 || ndim[2:0] == 3'd7 || bad_index[0]))
                    || (is_gather && words == 16'd0);
    wire bad_id   = xform_id > `KT_MV_XFORM_GRANULE || (xform_id == `KT_MV_XFORM_GRANULE && GRANULE == 0);
    wire [3:0] go_fault = ewidth == 2'd3                                                  ? `KT_MV_F_EWIDTH
                        : !(is_copy || is_gather || is_random || is_fill || is_xform)    ? `KT_MV_F_MODE
                        : is_xform && bad_id                                              ? `KT_MV_F_XFORM
                        : bad_walk                                                        ? `KT_MV_F_WALK
                        : is_gather && (index_count == 16'd0 || index_count > `KT_MEM_MOVER_INDEX_MAX)
                                                                                          ? `KT_MV_F_IDXLEN
                                                                                          : `KT_MV_F_NONE;

    // ---------------------------------------------------------------- addresses
    wire         apart  = is_xform && xform_id == `KT_MV_XFORM_GRANULE && xform_each;   // a place per output word
    wire         asking = state_q == G_INDEX;
    wire [39:0]  s_addr = asking ? index_q[39:0] : is_gather ? g_addr[39:0] : w_addr[39:0];
    wire         s_far  = asking ? index_q[40] : is_gather ? g_addr[65:40] != 26'd0 : w_addr[55:40] != 16'd0;
    wire         d_far  = d_addr[55:40] != 16'd0;
    wire [3:0]   s_class, d_class;
    wire [31:0]  s_word, d_word;

    mag_classify #(
        .MESH_ID          (MESH_ID),
        .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2),
        .ALIGNED          (0)
    ) u_source_class (
        .addr  (s_addr),
        .words (11'd1),
        .code  (s_class),
        .word  (s_word)
    );

    mag_classify #(
        .MESH_ID          (MESH_ID),
        .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2),
        .ALIGNED          (0)
    ) u_destination_class (
        .addr  (d_addr[39:0]),
        .words (is_xform && !apart ? 11'd4 : 11'd1),
        .code  (d_class),
        .word  (d_word)
    );

    wire [3:0] s_code  = s_far ? `KT_M_RANGE : s_class;
    wire [3:0] d_code  = d_far ? `KT_M_RANGE : d_class;
    wire [3:0] s_fault = s_addr[4:0] != 5'd0 ? `KT_MV_F_ALIGN : s_code != `KT_M_NONE ? `KT_MV_F_RANGE : `KT_MV_F_NONE;
    wire [3:0] d_fault = d_addr[4:0] != 5'd0 ? `KT_MV_F_ALIGN : d_code != `KT_M_NONE ? `KT_MV_F_RANGE : `KT_MV_F_NONE;

    // ---------------------------------------------------------------- one element
    wire       reads   = is_gather || (is_copy && s_valid);
    wire       known   = !is_gather || g_ready;
    wire       at_end  = is_xform ? state_q == G_PLACE && !put_q && at_q == 2'd0 && s_ended
                                  : state_q == G_RUN && d_ended;
    wire       skip    = state_q == G_RUN && !d_valid;
    wire [2:0] in_last = xform_id == `KT_MV_XFORM_QUANTISE ? 3'd7 : 3'd3;
    reg  [3:0] why;                   // fault of the present element
    reg        by_source;             // its address is the source's
    always @* begin
        why = `KT_MV_F_NONE; by_source = 1'b0;
        case (state_q)
            G_INDEX: begin
                why       = ask_q != 9'd0 ? s_fault : `KT_MV_F_NONE;
                by_source = 1'b1;
            end
            G_RUN: begin
                if (is_copy && s_ended)             why = `KT_MV_F_WALK;
                else if (!d_valid)                  why = `KT_MV_F_NONE;
                else if (d_fault != `KT_MV_F_NONE)  why = d_fault;
                else if (is_gather && g_over)       why = `KT_MV_F_IDXLEN;
                else if (reads) begin
                    why       = s_fault;
                    by_source = 1'b1;
                end
            end
            G_PLACE: if (!put_q) why = d_ended ? `KT_MV_F_WALK : !d_valid ? `KT_MV_F_XPAD : d_fault;
            G_FEED: begin
                why       = s_ended ? `KT_MV_F_WALK : !s_valid ? `KT_MV_F_XPAD : s_fault;
                by_source = 1'b1;
            end
            default: ;
        endcase
    end

    wire good     = why == `KT_MV_F_NONE && !stop;
    wire run      = state_q == G_RUN && !at_end && known && good;
    wire place    = state_q == G_PLACE && !put_q && !at_end && good;
    wire feed     = state_q == G_FEED && good;
    wire feed_end = fed_q == in_last;
    wire write    = run && !skip;
    wire write_ok = (!reads || sr_ready) && (!is_random || rnd_ready);
    wire run_done = run && (skip || (el_ready && write_ok));
    wire feed_done = feed && sr_ready && (!feed_end || el_ready);
    wire put      = state_q == G_PLACE && put_q && !stop;

    assign el_valid  = (write && write_ok) || (feed && feed_end && !apart && sr_ready) || put;
    assign el_four   = is_xform && !apart;
    assign el_kind   = is_xform ? 2'd3 : is_random ? 2'd2 : reads ? 2'd0 : 2'd1;
    assign el_word   = !is_xform ? d_word
                     : put && at_q == 2'd1 ? place_q[63:32]
                     : put && at_q == 2'd2 ? place_q[95:64]
                     : put && at_q == 2'd3 ? place_q[127:96] : place_q[31:0];
    assign sr_valid  = (write && reads && el_ready) || (feed && (!feed_end || el_ready))
                       || (asking && ask_q != 9'd0 && good);
    assign sr_word   = s_word;
    assign sr_flush  = state_q == G_LOAD || state_q == G_END;
    assign rnd_valid = write && is_random && el_ready;
    assign word_ready = state_q == G_LOAD;
    assign d_step    = run_done || place;
    assign s_step    = (run_done && is_copy) || feed_done;
    assign g_step    = run_done && is_gather;
    assign ended     = state_q == G_END;
    assign fault      = fault_q;
    assign fault_code = code_q;
    assign fault_addr = addr_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            state_q <= G_IDLE;
            put_q   <= 1'b0;
        end else case (state_q)
            G_IDLE:  if (go) state_q <= G_CHECK;
            G_CHECK: begin
                put_q   <= 1'b0;
                state_q <= go_fault != `KT_MV_F_NONE ? G_END : is_gather ? G_INDEX : is_xform ? G_PLACE : G_RUN;
            end
            G_INDEX: if (!good) state_q <= G_END;
                     else if (ask_q == 9'd0) state_q <= G_LOAD;
            G_LOAD:  if (stop) state_q <= G_END;
                     else if (loaded) state_q <= G_RUN;
            G_RUN:   if (at_end || (known && !good) || stop) state_q <= G_END;
            G_PLACE: if (put_q) begin
                         if (stop) state_q <= G_END;
                         else if (el_ready && at_q == 2'd3) put_q <= 1'b0;
                     end else if (at_end || !good) state_q <= G_END;
                     else if (!apart || at_q == 2'd3) state_q <= G_FEED;
            G_FEED:  if (!good) state_q <= G_END;
                     else if (feed_done && feed_end) begin
                         state_q <= G_PLACE;
                         put_q   <= apart;
                     end
            default: if (over) state_q <= G_IDLE;
        endcase
        case (state_q)
            G_CHECK: begin
                at_q    <= 2'd0;
                fed_q   <= 3'd0;
                index_q <= {1'b0, index_addr};
                ask_q   <= index_count[11:3] + {8'd0, index_count[2:0] != 3'd0};
                wait_q  <= index_count[11:3] + {8'd0, index_count[2:0] != 3'd0};
                fault_q <= go_fault;
                code_q  <= `KT_M_NONE;
            end
            G_INDEX: if (sr_valid && sr_ready) begin
                ask_q   <= ask_q - 9'd1;
                index_q <= index_q + 41'd32;
            end
            G_LOAD:  if (word_valid) wait_q <= wait_q - 9'd1;
            G_PLACE: if (place || (put && el_ready)) at_q <= apart ? at_q + 2'd1 : 2'd0;
            G_FEED:  if (feed_done) fed_q <= feed_end ? 3'd0 : fed_q + 3'd1;
            default: ;
        endcase
        if (place) place_q <= apart ? {d_word, place_q[127:32]} : {96'd0, d_word};
        if (state_q != G_CHECK && state_q != G_END && !at_end && (known || asking) && why != `KT_MV_F_NONE && !stop) begin
            fault_q <= why;
            addr_q  <= by_source ? s_addr : d_addr[39:0];
            code_q  <= why != `KT_MV_F_RANGE ? `KT_M_NONE : by_source ? s_code : d_code;
        end
    end

    wire unused = &{1'b0, index_count[15:12]};

endmodule

`default_nettype wire
