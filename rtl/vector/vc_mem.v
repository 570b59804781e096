// SPDX-License-Identifier: Apache-2.0
// vc_mem: memory unit of the vector core: L1, address descriptors, VLD, VST,
// VFILL, VDRAIN, VBAR, bursts from other units and the order of outbound flits
// (docs/spec/vector.md 7.5, 7.8 to 7.10, 8 to 11).
//
// Commands   one at a time in program order, each answered by one pulse of
//            rsp_valid with 0 or a fault code. VFILL answers when its walk is
//            under way (or, near the ends of the address space, over); VDRAIN when
//            its last flit has been accepted. 5 VHALT and 6 QUIESCE wait for every
//            fill and forget the bad marks; QUIESCE never faults.
// Latency    command to command without waiting, N chunks or n words: VLD FP16
//            N + 2 + L1_LAT, FP32 2N + 2 + L1_LAT, VST as VLD at
//            L1_LAT 1; VDRAIN to memory n + ceil(n/8) + 10, of E quantised entries
//            8E + 17 + L1_LAT at most; VFILL and VBAR n + 8 more than the read latency.
// Throughput one L1 word per cycle for every engine; one inbound flit per cycle.
// L1 ports   writes: burst words and fill responses before VST; reads: VLD, VDRAIN.
//
// CU_X, CU_Y own coordinate      MEM_X, MEM_Y memory port      L1_LAT 1..2
// L1_PRIM    "distributed", "block", "ultra"    ACKQ_DEPTH power of two >= 64
// FILL_WDOG  cycles, 0 = off     MERGE 0, 1: runs of words in one read request
// MX_STORE   0, 1: VDRAIN can quantise (section 15)
//
// all_clear  every clearing walk of the core has ended; `clear_done` is this one's
// (512 cycles). Before it no command and no flit is taken.
`default_nettype none
`include "ktpu_defs.vh"

module vc_mem #(
    parameter CU_X       = 1,
    parameter CU_Y       = 0,
    parameter MEM_X      = 0,
    parameter MEM_Y      = 1,
    parameter L1_PRIM    = "block",
    parameter L1_LAT     = 1,
    parameter FILL_WDOG  = `KT_VC_FILL_WDOG_DEFAULT,
    parameter ACKQ_DEPTH = `KT_VC_ACKQ_DEPTH_MIN,
    parameter MERGE      = 1,
    parameter MX_STORE   = `KT_VC_MX_STORE_DEFAULT
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         all_clear,
    output wire         clear_done,

    input  wire         cmd_valid,
    output wire         cmd_ready,
    input  wire [2:0]   cmd_op,         // 0 VLD 1 VST 2 VFILL 3 VDRAIN 4 VBAR 5 VHALT 6 QUIESCE
    input  wire [31:0]  cmd_word,
    input  wire [7:0]   cmd_vl,
    output wire         rsp_valid,
    output wire [7:0]   rsp_fault,

    // registers: VLD writes halves of a chunk; VST data come two cycles after st_rd
    output wire         ld_valid,
    output wire [2:0]   ld_chunk,
    output wire [1:0]   ld_half,        // [0] lanes 0..7, [1] lanes 8..15
    output wire [383:0] ld_data,
    output wire         st_rd,
    output wire [2:0]   st_chunk,
    input  wire [383:0] st_data,

    // descriptor writes, while no command is under way
    input  wire         desc_we,
    input  wire [2:0]   desc_ad,
    input  wire [2:0]   desc_fld,
    input  wire [39:0]  desc_value,

    // shell
    input  wire [287:0] recv_flit,
    input  wire         recv_valid,
    output wire         recv_ready,
    output wire [287:0] send_flit,
    output wire         send_valid,
    input  wire         send_ready,

    output wire         ev_cudata,      // pulses
    output wire         ev_aresp,
    output wire [7:0]   unit_err,

    // counts of the last RUN
    output wire [31:0]  stat_port_stalls,
    output wire [31:0]  stat_fill_words,
    output wire [31:0]  stat_drain_words
);

    generate
        if (CU_X < 0 || CU_X > 15 || CU_Y < 0 || CU_Y > 15 || MEM_X < 0 || MEM_X > 15
            || MEM_Y < 0 || MEM_Y > 15 || L1_LAT < 1 || L1_LAT > 2 || FILL_WDOG < 0
            || ACKQ_DEPTH < `KT_VC_ACKQ_DEPTH_MIN || (ACKQ_DEPTH & (ACKQ_DEPTH - 1)) != 0
            || (MERGE != 0 && MERGE != 1) || (MX_STORE != 0 && MX_STORE != 1)) begin : g_illegal
            vc_mem_illegal_parameters u_stop ();
        end
    endgenerate

    // ------------------------------------------------------- walk after reset
    reg        clear_q;
    reg  [8:0] clear_k_q;

    assign clear_done = !clear_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            clear_q   <= 1'b1;
            clear_k_q <= 9'd0;
        end else if (clear_q) begin
            clear_q   <= clear_k_q != 9'd511;
            clear_k_q <= clear_k_q + 9'd1;
        end
    end

    // --------------------------------------------------------------- commands
    wire [31:0] word;
    wire [7:0]  vl;
    wire        store, wide, desc_rd, first;
    wire        ldst_start, ldst_done, fill_go, fill_merge, fill_walking, fill_idle, fill_ended;
    wire        fill_outside, drain_start, drain_go, drain_drop, drain_done, drain_outside;
    wire [7:0]  ldst_fault, bad_code, bad_at;
    wire        slot_room, range_busy, tags_busy, quiet, any_bad, scan, clean, cleaning;
    wire [8:0]  scan_word;
    wire [39:0] base;
    wire [71:0] stride;
    wire [63:0] bound;
    wire        unaligned, one_dim, near_edge, walk_over;
    wire [8:0]  walk_n;
    wire        mx;
    // An address of a quantising VDRAIN takes eight words of L1.
    wire        over = walk_over || (mx && (walk_n > 9'd32));
    wire [8:0]  n    = mx ? {walk_n[5:0], 3'd0} : walk_n;

    vc_mem_desc u_desc (
        .clk       (clk),
        .clr       (clear_q && (clear_k_q[8:3] == 6'd0)),
        .clr_ad    (clear_k_q[2:0]),
        .we        (desc_we),
        .we_ad     (desc_ad),
        .we_fld    (desc_fld),
        .we_value  (desc_value),
        .rd_en     (desc_rd),
        .rd_ad     (cmd_word[`KT_VC_LDST_AD]),
        .base      (base),
        .stride    (stride),
        .bound     (bound),
        .unaligned (unaligned),
        .one_dim   (one_dim),
        .near_edge (near_edge),
        .n         (walk_n),
        .over      (walk_over)
    );

    vc_mem_ctl #(.MERGE(MERGE), .MX_STORE(MX_STORE)) u_ctl (
        .clk           (clk),
        .rst_n         (rst_n),
        .enable        (all_clear),
        .cmd_valid     (cmd_valid),
        .cmd_ready     (cmd_ready),
        .cmd_op        (cmd_op),
        .cmd_word      (cmd_word),
        .cmd_vl        (cmd_vl),
        .rsp_valid     (rsp_valid),
        .rsp_fault     (rsp_fault),
        .desc_rd       (desc_rd),
        .base          (base),
        .stride0       (stride[17:0]),
        .bound0        (bound[15:0]),
        .unaligned     (unaligned),
        .one_dim       (one_dim),
        .near_edge     (near_edge),
        .n             (n),
        .over          (over),
        .word          (word),
        .mx            (mx),
        .vl            (vl),
        .store         (store),
        .wide          (wide),
        .ldst_start    (ldst_start),
        .ldst_done     (ldst_done),
        .ldst_fault    (ldst_fault),
        .fill_go       (fill_go),
        .fill_merge    (fill_merge),
        .fill_walking  (fill_walking),
        .fill_idle     (fill_idle),
        .fill_ended    (fill_ended),
        .fill_outside  (fill_outside),
        .drain_start   (drain_start),
        .drain_go      (drain_go),
        .drain_drop    (drain_drop),
        .drain_done    (drain_done),
        .drain_outside (drain_outside),
        .slot_room     (slot_room),
        .range_busy    (range_busy),
        .tags_busy     (tags_busy),
        .quiet         (quiet),
        .any_bad       (any_bad),
        .bad_code      (bad_code),
        .scan          (scan),
        .scan_word     (scan_word),
        .bad_at        (bad_at),
        .clean         (clean),
        .cleaning      (cleaning),
        .first         (first)
    );

    // ------------------------------------------------------------------- fills
    wire         set, req_valid, req_ready, fill_stop;
    wire [7:0]   set_tag;
    wire [8:0]   set_n, formed;
    wire [287:0] req_flit;
    wire         rsp_in, rsp_err, rsp_hit;
    wire [7:0]   rsp_tag;
    wire [8:0]   rsp_word, ask_word;
    wire         word_busy, ldst_bad_rd;

    vc_mem_fill #(.CU_X(CU_X[3:0]), .CU_Y(CU_Y[3:0]), .MEM_X(MEM_X[3:0]), .MEM_Y(MEM_Y[3:0])) u_fill (
        .clk        (clk),
        .rst_n      (rst_n),
        .go         (fill_go),
        .merge      (fill_merge),
        .base       (base),
        .stride     (stride),
        .bound      (bound),
        .lo         (word[8:0]),
        .stop       (fill_stop),
        .idle       (fill_idle),
        .walking    (fill_walking),
        .ended      (fill_ended),
        .left_space (fill_outside),
        .formed     (formed),
        .set        (set),
        .set_tag    (set_tag),
        .set_n      (set_n),
        .req_valid  (req_valid),
        .req_ready  (req_ready),
        .req_flit   (req_flit)
    );

    vc_mem_slots #(.WDOG(FILL_WDOG)) u_slots (
        .clk        (clk),
        .rst_n      (rst_n),
        .alloc      (fill_go),
        .alloc_lo   (word[8:0]),
        .alloc_n    (n),
        .room       (slot_room),
        .trunc      (fill_outside),
        .trunc_n    (formed),
        .set        (set),
        .set_tag    (set_tag),
        .set_n      (set_n),
        .rsp_valid  (rsp_in),
        .rsp_tag    (rsp_tag),
        .rsp_err    (rsp_err),
        .rsp_hit    (rsp_hit),
        .rsp_word   (rsp_word),
        .expired    (fill_stop),
        .ask_word   (ask_word),
        .word_busy  (word_busy),
        .ask_lo     (word[8:0]),
        .ask_n      (n),
        .range_busy (range_busy),
        .tags_busy  (tags_busy),
        .quiet      (quiet),
        .any_bad    (any_bad),
        .bad_code   (bad_code),
        .bad_rd     (ldst_bad_rd || scan),
        .bad_word   (scan ? scan_word : ask_word),
        .bad_at     (bad_at),
        .clean      (clean),
        .cleaning   (cleaning),
        .clr        (clear_q),
        .clr_word   (clear_k_q)
    );

    // ---------------------------------------------------------------- inbound
    wire         wr_in, sig_valid, sig_ready, third, rejected;
    wire [8:0]   wr_in_word;
    wire [255:0] in_data;
    wire [287:0] sig_flit;

    vc_mem_recv #(.CU_X(CU_X), .CU_Y(CU_Y), .ACKQ_DEPTH(ACKQ_DEPTH)) u_recv (
        .clk        (clk),
        .rst_n      (rst_n),
        .enable     (all_clear),
        .recv_flit  (recv_flit),
        .recv_valid (recv_valid),
        .recv_ready (recv_ready),
        .rsp_valid  (rsp_in),
        .rsp_tag    (rsp_tag),
        .rsp_err    (rsp_err),
        .wr_valid   (wr_in),
        .wr_word    (wr_in_word),
        .data       (in_data),
        .sig_valid  (sig_valid),
        .sig_ready  (sig_ready),
        .sig_flit   (sig_flit),
        .third      (third),
        .rejected   (rejected)
    );

    // --------------------------------------------------------------------- L1
    wire         st_valid, clamped, ldst_rd, drain_rd;
    wire [8:0]   st_word, drain_word;
    wire [255:0] st_wdata, l1_data;
    wire         in_write = rsp_hit || wr_in;

    ram_sdp #(.WIDTH(256), .DEPTH(512), .PRIM(L1_PRIM), .READ_LAT(L1_LAT)) u_l1 (
        .clk     (clk),
        .wr_en   (clear_q || in_write || st_valid),
        .wr_addr (clear_q ? clear_k_q : rsp_hit ? rsp_word : wr_in ? wr_in_word : st_word),
        .wr_data (clear_q ? 256'd0 : in_write ? in_data : st_wdata),
        .rd_en   (ldst_rd || drain_rd),
        .rd_addr (drain_rd ? drain_word : ask_word),
        .rd_data (l1_data)
    );

    vc_mem_ldst #(.L1_LAT(L1_LAT)) u_ldst (
        .clk       (clk),
        .rst_n     (rst_n),
        .start     (ldst_start),
        .store     (store),
        .wide      (wide),
        .vl        (vl),
        .off       (word[`KT_VC_LDST_OFF]),
        .base      (base),
        .stride    (stride),
        .bound     (bound),
        .done      (ldst_done),
        .fault     (ldst_fault),
        .ask_word  (ask_word),
        .word_busy (word_busy),
        .bad_rd    (ldst_bad_rd),
        .bad_at    (bad_at),
        .rd_en     (ldst_rd),
        .rd_data   (l1_data),
        .wr_valid  (st_valid),
        .wr_ready  (!in_write),
        .wr_word   (st_word),
        .wr_data   (st_wdata),
        .clamped   (clamped),
        .ld_valid  (ld_valid),
        .ld_chunk  (ld_chunk),
        .ld_half   (ld_half),
        .ld_data   (ld_data),
        .st_rd     (st_rd),
        .st_chunk  (st_chunk),
        .st_data   (st_data)
    );

    // --------------------------------------------------------------- outbound
    wire         drain_valid, drain_ready, drain_open, sent_word, special;
    wire [287:0] drain_flit;

    vc_mem_drain #(.CU_X(CU_X[3:0]), .CU_Y(CU_Y[3:0]), .MEM_X(MEM_X[3:0]), .MEM_Y(MEM_Y[3:0]),
                   .L1_LAT(L1_LAT), .MX_STORE(MX_STORE)) u_drain (
        .clk       (clk),
        .rst_n     (rst_n),
        .start     (drain_start),
        .go        (drain_go),
        .drop      (drain_drop),
        .word      (word),
        .base      (base),
        .stride    (stride),
        .bound     (bound),
        .n         (n),
        .mx        (mx),
        .done      (drain_done),
        .fault     (drain_outside),
        .rd_en     (drain_rd),
        .rd_word   (drain_word),
        .rd_data   (l1_data),
        .out_valid (drain_valid),
        .out_ready (drain_ready),
        .out_flit  (drain_flit),
        .open      (drain_open),
        .sent_word (sent_word),
        .special   (special)
    );

    cu_send u_send (
        .clk         (clk),
        .rst_n       (rst_n),
        .sig_valid   (sig_valid),
        .sig_ready   (sig_ready),
        .sig_flit    (sig_flit),
        .req_valid   (req_valid),
        .req_ready   (req_ready),
        .req_flit    (req_flit),
        .drain_valid (drain_valid),
        .drain_ready (drain_ready),
        .drain_flit  (drain_flit),
        .open        (drain_open),
        .send_valid  (send_valid),
        .send_ready  (send_ready),
        .send_flit   (send_flit)
    );

    // ------------------------------------------------------- events and counts
    assign ev_cudata = rejected;
    assign ev_aresp  = rsp_in && !rsp_hit;
    assign unit_err  = {2'b00, fill_stop, 1'b0, clamped || special, ev_aresp, rejected, third};

`ifndef SYNTHESIS
    reg [31:0] port_stalls_q, fill_words_q, drain_words_q;
    always @(posedge clk) begin
        if (!rst_n || first) begin
            port_stalls_q <= 32'd0;
            fill_words_q  <= 32'd0;
            drain_words_q <= 32'd0;
        end else begin
            if (st_valid && in_write) port_stalls_q <= port_stalls_q + 32'd1;
            if (rsp_hit) fill_words_q <= fill_words_q + 32'd1;
            if (sent_word) drain_words_q <= drain_words_q + 32'd1;
        end
    end
    assign stat_port_stalls = port_stalls_q;
    assign stat_fill_words  = fill_words_q;
    assign stat_drain_words = drain_words_q;
`else
    assign stat_port_stalls = 32'd0;
    assign stat_fill_words  = 32'd0;
    assign stat_drain_words = 32'd0;
    wire unused_stat = &{1'b0, first, sent_word};
`endif

endmodule

`default_nettype wire
