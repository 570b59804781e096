// SPDX-License-Identifier: Apache-2.0
// vc_mem_slots: the VFILLs in flight, their outstanding words, the watchdog and
// the bad marks (docs/spec/vector.md 7.8, 9.2).
//
// A slot holds one VFILL: its L1 range and the words still to come. A word is
// outstanding while a slot covers it; the slot ends when its last word is in L1
// or, if one of them failed, when all its words have been marked bad. Slots never
// share a tag (L1 word mod 256). `out_q` has one bit per tag: requested and not
// answered. Those are flip-flops, for a request sets up to 255 of them at once.
// With a tag's slot known, the ninth bit of its L1 word is the carry of the sum
// of the slot's first word and the distance to it.
//
// Throughput one response per cycle. A slot that ended is free in the next cycle.
// WDOG       cycles without an answer after which all outstanding words are
//            cancelled, 0 = never.
`default_nettype none
`include "ktpu_defs.vh"

module vc_mem_slots #(
    parameter WDOG = 1048576
) (
    input  wire         clk,
    input  wire         rst_n,

    // a VFILL starts; a walk that left the address space ends it early
    input  wire         alloc,
    input  wire [8:0]   alloc_lo,
    input  wire [8:0]   alloc_n,        // 1..256
    output wire         room,
    input  wire         trunc,          // of the slot last allocated
    input  wire [8:0]   trunc_n,        // words requested, fewer than n

    // tags requested now
    input  wire         set,
    input  wire [7:0]   set_tag,
    input  wire [8:0]   set_n,          // 1..255, not past tag 255

    // responses
    input  wire         rsp_valid,
    input  wire [7:0]   rsp_tag,
    input  wire         rsp_err,
    output wire         rsp_hit,        // outstanding: write it to rsp_word
    output wire [8:0]   rsp_word,
    output wire         expired,        // watchdog pulse

    // who is waiting for what
    input  wire [8:0]   ask_word,       // one word (VLD, VST)
    output wire         word_busy,
    input  wire [8:0]   ask_lo,         // a range (VFILL, VDRAIN)
    input  wire [8:0]   ask_n,
    output wire         range_busy,
    output wire         tags_busy,      // as range_busy, modulo 256
    output wire         quiet,          // no word outstanding

    // bad marks, read latency 1
    output wire         any_bad,
    output wire [7:0]   bad_code,       // of the RUN
    input  wire         bad_rd,
    input  wire [8:0]   bad_word,
    output wire [7:0]   bad_at,         // code of the word read, 0 = good
    input  wire         clean,          // pulse: forget all marks
    output wire         cleaning,

    input  wire         clr,            // walk after reset
    input  wire [8:0]   clr_word
);

    localparam SLOTS = 4;
    localparam [31:0] WDOG_LAST = WDOG[31:0] - 32'd1;

    wire [SLOTS-1:0] busy, hit, empty, failed, w_busy, r_busy, t_busy;
    wire [8:0]       word [0:SLOTS-1];
    wire [8:0]       lo   [0:SLOTS-1];
    wire [8:0]       n    [0:SLOTS-1];
    wire [SLOTS-1:0] lapsed;

    // ------------------------------------------------------ tags outstanding
    reg  [255:0] out_q;
    wire [255:0] ones     = {256{1'b1}};
    wire [8:0]   set_end  = {1'b0, set_tag} + set_n;
    wire [255:0] set_mask = (ones << set_tag) & ~(ones << set_end);
    wire         take     = rsp_valid && out_q[rsp_tag];    // never together with `expired`

    assign rsp_hit  = take;

    always @(posedge clk) begin
        if (!rst_n || expired) begin
            out_q <= 256'd0;
        end else begin
            if (set) out_q <= out_q | set_mask;
            if (take) out_q[rsp_tag] <= 1'b0;
        end
    end

    // ------------------------------------------------------------------ slots
    wire [SLOTS-1:0] free = ~busy;
    wire [SLOTS-1:0] pick = free & (~free + {{(SLOTS-1){1'b0}}, 1'b1});
    reg  [SLOTS-1:0] last_q;            // the slot last allocated
    reg  [SLOTS-1:0] mark_q;            // the slot being marked
    reg  [8:0]       mark_k_q;
    wire             mark_last;

    genvar s;
    generate
        for (s = 0; s < SLOTS; s = s + 1) begin : g_slot
            reg        busy_q, err_q, lapsed_q;
            reg [8:0]  lo_q, n_q, left_q;
            wire       here   = hit[s] && take;
            wire       cut    = trunc && last_q[s];
            wire [8:0] left_d = left_q - {8'd0, here} - (cut ? n_q - trunc_n : 9'd0);
            // A VFILL without a single request leaves nothing to wait for or to mark.
            wire       ends   = (cut && (trunc_n == 9'd0))
                              || (!expired && !err_q && !(here && rsp_err) && (left_d == 9'd0));
            wire [7:0] idx    = rsp_tag - lo_q[7:0];
            wire [7:0] t_fwd  = ask_lo[7:0] - lo_q[7:0];
            wire [7:0] t_back = lo_q[7:0] - ask_lo[7:0];
            wire [8:0] w_idx  = ask_word - lo_q;
            wire [8:0] r_fwd  = ask_lo - lo_q;
            wire [8:0] r_back = lo_q - ask_lo;

            assign busy[s]   = busy_q;
            assign hit[s]    = busy_q && ({1'b0, idx} < n_q);
            assign word[s]   = lo_q + {1'b0, idx};
            assign lo[s]     = lo_q;
            assign n[s]      = n_q;
            assign lapsed[s] = lapsed_q;
            assign empty[s]  = busy_q && (left_q == 9'd0);
            assign failed[s] = empty[s] && err_q;
            assign w_busy[s] = busy_q && (w_idx < n_q);
            // Ranges end at word 511 or before, so a negative distance is large.
            assign r_busy[s] = busy_q && ((r_fwd < n_q) || (r_back < ask_n));
            assign t_busy[s] = busy_q && (({1'b0, t_fwd} < n_q) || ({1'b0, t_back} < ask_n));

            always @(posedge clk) begin
                if (!rst_n) begin
                    busy_q <= 1'b0;
                end else if (alloc && pick[s]) begin
                    busy_q <= 1'b1;
                end else if (mark_q[s] ? mark_last : (here || cut) && ends) begin
                    busy_q <= 1'b0;
                end

                if (alloc && pick[s]) begin
                    lo_q     <= alloc_lo;
                    n_q      <= alloc_n;
                    left_q   <= alloc_n;
                    err_q    <= 1'b0;
                    lapsed_q <= 1'b0;
                end else if (busy_q) begin
                    if (expired && !empty[s]) begin
                        left_q   <= 9'd0;
                        err_q    <= 1'b1;
                        lapsed_q <= 1'b1;
                    end else if (here || cut) begin
                        left_q <= left_d;
                        if (here && rsp_err) err_q <= 1'b1;
                    end
                    if (cut) n_q <= trunc_n;
                end
            end
        end
    endgenerate

    assign room       = free != {SLOTS{1'b0}};
    assign quiet      = busy == {SLOTS{1'b0}};
    assign word_busy  = w_busy != {SLOTS{1'b0}};
    assign range_busy = r_busy != {SLOTS{1'b0}};
    assign tags_busy  = t_busy != {SLOTS{1'b0}};
    assign rsp_word   = ({9{hit[0]}} & word[0]) | ({9{hit[1]}} & word[1])
                      | ({9{hit[2]}} & word[2]) | ({9{hit[3]}} & word[3]);

    always @(posedge clk) begin
        if (alloc) last_q <= pick;
    end

    // --------------------------------------------------------------- watchdog
    reg  [31:0] wdog_q;
    wire        waiting = (busy & ~empty) != {SLOTS{1'b0}};

    assign expired = (WDOG != 0) && waiting && !take && (wdog_q == WDOG_LAST);

    always @(posedge clk) begin
        if (!waiting || take || expired) wdog_q <= 32'd0;
        else wdog_q <= wdog_q + 32'd1;
    end

    // -------------------------------------------------------------- bad marks
    // One slot after the other is marked, one word per cycle.
    wire [SLOTS-1:0] next_mark = failed & (~failed + {{(SLOTS-1){1'b0}}, 1'b1});
    wire             marking   = mark_q != {SLOTS{1'b0}};
    wire [8:0]       mark_lo   = ({9{mark_q[0]}} & lo[0]) | ({9{mark_q[1]}} & lo[1])
                               | ({9{mark_q[2]}} & lo[2]) | ({9{mark_q[3]}} & lo[3]);
    wire [8:0]       mark_n    = ({9{mark_q[0]}} & n[0]) | ({9{mark_q[1]}} & n[1])
                               | ({9{mark_q[2]}} & n[2]) | ({9{mark_q[3]}} & n[3]);
    wire             mark_wdog = (mark_q & lapsed) != {SLOTS{1'b0}};
    reg              any_bad_q, any_wdog_q, cleaning_q;
    reg              looked_q;          // the word read last was looked up
    reg  [8:0]       clean_k_q;
    wire [1:0]       bad;

    assign mark_last = marking && (mark_k_q + 9'd1 == mark_n);
    assign any_bad   = any_bad_q;
    assign bad_code  = any_wdog_q ? `KT_VC_F_WDOG : `KT_VC_F_MEM_RD;
    assign bad_at    = !(looked_q && bad[0]) ? 8'd0 : bad[1] ? `KT_VC_F_WDOG : `KT_VC_F_MEM_RD;
    assign cleaning  = cleaning_q;

    ram_sdp #(.WIDTH(2), .DEPTH(512), .PRIM("distributed")) u_bad (
        .clk     (clk),
        .wr_en   (clr || cleaning_q || marking),
        .wr_addr (clr ? clr_word : cleaning_q ? clean_k_q : mark_lo + mark_k_q),
        .wr_data ((clr || cleaning_q) ? 2'b00 : {mark_wdog, 1'b1}),
        .rd_en   (bad_rd && any_bad_q),
        .rd_addr (bad_word),
        .rd_data (bad)
    );

    // Without any mark a word that no slot covers is good: nothing is read then.
    always @(posedge clk) begin
        if (bad_rd) looked_q <= any_bad_q;
    end

    always @(posedge clk) begin
        if (!rst_n) begin
            mark_q     <= {SLOTS{1'b0}};
            mark_k_q   <= 9'd0;
            any_bad_q  <= 1'b0;
            any_wdog_q <= 1'b0;
            cleaning_q <= 1'b0;
            clean_k_q  <= 9'd0;
        end else begin
            if (!marking) mark_q <= next_mark;
            else if (mark_last) mark_q <= {SLOTS{1'b0}};
            mark_k_q <= (marking && !mark_last) ? mark_k_q + 9'd1 : 9'd0;

            if (marking) begin
                any_bad_q <= 1'b1;
                if (mark_wdog) any_wdog_q <= 1'b1;
            end else if (cleaning_q) begin
                any_bad_q  <= 1'b0;
                any_wdog_q <= 1'b0;
            end

            if (clean && any_bad_q) cleaning_q <= 1'b1;
            else if (clean_k_q == 9'd511) cleaning_q <= 1'b0;
            clean_k_q <= cleaning_q ? clean_k_q + 9'd1 : 9'd0;
        end
    end

endmodule

`default_nettype wire
