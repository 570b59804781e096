// SPDX-License-Identifier: Apache-2.0
// AXI4 DRAM model for benches: a behavioural 256-bit slave on a word array.
//
// Behaviour   per-ID in order, up to MAX_RD reads and MAX_WR writes outstanding
//             (SINGLE = 1: one transaction at all); a write takes effect when
//             its B is offered, a read samples a word when its beat is offered
//             (the latest and therefore meanest points AXI allows).
// Latency     AR handshake to first R beat, and last W beat to B: random in
//             [cfg_lat_min, cfg_lat_max]; cfg_ideal = 1: exactly cfg_lat_min
//             cycles, always ready, one beat a cycle.
// Controls    are registers (cfg_*, bd_*), set by parameters or plusargs at time
//             0 and by the bench while running; tb/kohakubench/dram.py drives
//             them and names them for lean visibility (DRAM_PUBLIC).
// Plusargs    +dram_seed=n +dram_lat_min=n +dram_lat_max=n +dram_ideal=0|1
// Backdoor    bd_load: $readmemh dram_in.hex; bd_dump: $writememh bd_count words
//             from bd_first to dram_out.hex; bd_peek, bd_poke: one word at
//             bd_first. All act on the rising edge of the strobe, no clock needed.
// Checks      illegal burst (type, size, 4 KiB, alignment), WLAST position,
//             request stability; a failure prints, sets err_count/err_code and
//             ends the simulation unless cfg_fatal is 0. An address outside the
//             array is answered DECERR and counted in oor_count.
// Limits      ADDR_W <= 64, WORDS a power of two.
// Spec        docs/spec/memory.md section 8 (M_AXI_DRAM).
`default_nettype none
/* verilator lint_off BLKSEQ */
/* verilator lint_off UNUSEDSIGNAL */
/* verilator lint_off MULTIDRIVEN */
/* verilator lint_off SYNCASYNCNET */
module axi_dram_model #(
    parameter WORDS      = 2097152,   // 32-byte words, 64 MiB
    parameter BASE       = 0,         // byte address of word 0
    parameter ADDR_W     = 40,
    parameter ID_W       = 4,
    parameter MAX_RD     = 16,
    parameter MAX_WR     = 16,
    parameter SINGLE     = 0,
    parameter IDEAL      = 0,
    parameter LAT_MIN    = 4,
    parameter LAT_MAX    = 40,
    parameter SEED       = 1
) (
    input  wire              clk,
    input  wire              rst_n,

    input  wire [ID_W-1:0]   s_axi_awid,
    input  wire [ADDR_W-1:0] s_axi_awaddr,
    input  wire [7:0]        s_axi_awlen,
    input  wire [2:0]        s_axi_awsize,
    input  wire [1:0]        s_axi_awburst,
    input  wire              s_axi_awvalid,
    output reg               s_axi_awready,
    input  wire [255:0]      s_axi_wdata,
    input  wire [31:0]       s_axi_wstrb,
    input  wire              s_axi_wlast,
    input  wire              s_axi_wvalid,
    output reg               s_axi_wready,
    output reg  [ID_W-1:0]   s_axi_bid,
    output reg  [1:0]        s_axi_bresp,
    output reg               s_axi_bvalid,
    input  wire              s_axi_bready,

    input  wire [ID_W-1:0]   s_axi_arid,
    input  wire [ADDR_W-1:0] s_axi_araddr,
    input  wire [7:0]        s_axi_arlen,
    input  wire [2:0]        s_axi_arsize,
    input  wire [1:0]        s_axi_arburst,
    input  wire              s_axi_arvalid,
    output reg               s_axi_arready,
    output reg  [ID_W-1:0]   s_axi_rid,
    output reg  [255:0]      s_axi_rdata,
    output reg  [1:0]        s_axi_rresp,
    output reg               s_axi_rlast,
    output reg               s_axi_rvalid,
    input  wire              s_axi_rready
);
    localparam AW = $clog2(WORDS);
    localparam WB = $clog2(MAX_WR);
    /* verilator lint_off WIDTH */    // an overridden parameter is 32 bits wide
    localparam [ADDR_W-1:0] ORIGIN  = BASE;
    localparam [ADDR_W-1:0] N_WORDS = WORDS;
    /* verilator lint_on WIDTH */

    // ------------------------------------------------------------ controls
    reg [31:0]       cfg_seed;        // written by the bench with cfg_reseed = 1
    reg              cfg_reseed;
    reg              cfg_ideal;
    reg              cfg_fatal;
    reg [15:0]       cfg_lat_min;
    reg [15:0]       cfg_lat_max;
    reg [6:0]        cfg_ar_pct;      // percent of cycles the channel is willing
    reg [6:0]        cfg_aw_pct;
    reg [6:0]        cfg_w_pct;
    reg [6:0]        cfg_r_pct;
    reg [6:0]        cfg_b_pct;
    reg              cfg_reorder;     // complete different IDs out of order
    reg              cfg_interleave;  // change the burst between R beats
    reg              cfg_err_rd;      // error window applies to reads
    reg              cfg_err_wr;      // error window applies to writes
    reg [1:0]        cfg_err_resp;    // 2 SLVERR, 3 DECERR
    reg [ADDR_W-1:0] cfg_err_lo;      // window [lo, hi) in byte addresses
    reg [ADDR_W-1:0] cfg_err_hi;
    reg              bd_load;
    reg              bd_dump;
    reg              bd_peek;
    reg              bd_poke;
    reg [31:0]       bd_first;
    reg [31:0]       bd_count;
    reg [255:0]      bd_data;

    // ------------------------------------------------------------ observers
    reg [31:0]       rd_beats;
    reg [31:0]       wr_beats;
    reg [31:0]       rd_bursts;
    reg [31:0]       wr_bursts;
    reg [31:0]       oor_count;
    reg [31:0]       err_count;
    reg [7:0]        err_code;
    reg [15:0]       rd_out_max;      // most reads outstanding at once
    reg [15:0]       wr_out_max;

    // ------------------------------------------------------------ state
    reg [255:0]      mem [0:WORDS-1];
    reg [31:0]       rng;
    reg [31:0]       now;

    // Outstanding bursts in age order, entry 0 the oldest.
    reg [ID_W-1:0]   rq_id   [0:MAX_RD];
    reg [ADDR_W-1:0] rq_addr [0:MAX_RD];
    reg [8:0]        rq_left [0:MAX_RD];
    reg [31:0]       rq_due  [0:MAX_RD];
    integer          rq_n;
    integer          rq_cur;          // burst being returned, -1 none
    reg [ID_W-1:0]   wq_id   [0:MAX_WR];
    reg [ADDR_W-1:0] wq_addr [0:MAX_WR];
    reg [8:0]        wq_beats[0:MAX_WR];
    reg [31:0]       wq_due  [0:MAX_WR];
    reg              wq_full [0:MAX_WR];   // all data present
    reg [7:0]        wq_buf  [0:MAX_WR];   // which data buffer
    integer          wq_n;
    reg [287:0]      wbuf [0:MAX_WR*256-1];
    reg [MAX_WR-1:0] wbuf_used;
    reg [8:0]        wbeat;

    integer          wopen;           // oldest write still collecting, wq_n if none
    reg              r_pend, b_pend;  // an R beat or a B is on offer
    reg              turn_w;          // SINGLE: whose turn while idle

    // ------------------------------------------------------------ helpers
    function [31:0] next_rng(input [31:0] s);
        reg [31:0] t;
        begin
            t = s ^ (s << 13);
            t = t ^ (t >> 17);
            next_rng = t ^ (t << 5);
        end
    endfunction

    task draw;                        // fresh random bits into rng
        rng = next_rng(rng);
    endtask

    task draw_due(output [31:0] due);
        begin
            due = now + {16'd0, cfg_lat_min};
            if (!cfg_ideal && cfg_lat_max > cfg_lat_min) begin
                draw;
                due = due + ((rng >> 8) % ({16'd0, cfg_lat_max} - {16'd0, cfg_lat_min} + 1));
            end
        end
    endtask

    task draw_gate(input [6:0] pct, output gate);
        begin
            gate = 1'b1;
            if (!cfg_ideal && pct < 100) begin
                draw;
                gate = ((rng >> 7) % 100) < {25'd0, pct};
            end
        end
    endtask

    task violation(input [7:0] code, input [ADDR_W-1:0] addr);
        begin
            err_count = err_count + 1;
            err_code  = code;
            if (cfg_fatal) begin
                $display("axi_dram_model %m: AXI violation %0d at address %h, time %0t", code, addr, $time);
                $display("  1 burst type, 2 size, 3 crosses 4 KiB, 4 unaligned, 5 WLAST, 6 AR/AW/W not held, 7 unknown bit");
                $finish;
            end
        end
    endtask

    task check_burst(input [ADDR_W-1:0] addr, input [7:0] len, input [2:0] size, input [1:0] burst);
        begin
            if (burst != 2'b01) violation(8'd1, addr);
            if (size != 3'd5)   violation(8'd2, addr);
            if ({1'b0, addr[11:5]} + {1'b0, len[6:0]} > 8'd127 || len[7]) violation(8'd3, addr);
            if (addr[4:0] != 0) violation(8'd4, addr);
            if ((^addr) === 1'bx || (^len) === 1'bx) violation(8'd7, addr);
        end
    endtask

    function in_array(input [ADDR_W-1:0] addr);    // an address below ORIGIN wraps far beyond
        in_array = ((addr - ORIGIN) >> 5) < N_WORDS;
    endfunction

    function in_window(input [ADDR_W-1:0] addr);
        in_window = (addr >= cfg_err_lo) && (addr < cfg_err_hi);
    endfunction

    function [AW-1:0] index_of(input [ADDR_W-1:0] addr);
        reg [ADDR_W-1:0] t;
        begin
            t = (addr - ORIGIN) >> 5;
            index_of = t[AW-1:0];
        end
    endfunction

    // ------------------------------------------------------------ start
    integer k;
    initial begin
        cfg_seed = SEED;  cfg_reseed = 0;
        cfg_ideal = IDEAL != 0; cfg_fatal = 1;
        cfg_lat_min = LAT_MIN; cfg_lat_max = LAT_MAX;
        cfg_ar_pct = 100; cfg_aw_pct = 100; cfg_w_pct = 100; cfg_r_pct = 100; cfg_b_pct = 100;
        cfg_reorder = 0; cfg_interleave = 0;
        cfg_err_rd = 0; cfg_err_wr = 0; cfg_err_resp = 2; cfg_err_lo = 0; cfg_err_hi = 0;
        bd_load = 0; bd_dump = 0; bd_peek = 0; bd_poke = 0; bd_first = 0; bd_count = 0; bd_data = 0;
        if ($value$plusargs("dram_seed=%d", cfg_seed)) begin end
        if ($value$plusargs("dram_lat_min=%d", cfg_lat_min)) begin end
        if ($value$plusargs("dram_lat_max=%d", cfg_lat_max)) begin end
        if ($value$plusargs("dram_ideal=%d", cfg_ideal)) begin end
        rng = cfg_seed ^ 32'h9E3779B9;
        if (rng == 0) rng = 32'd1;
        now = 0;
        rd_beats = 0; wr_beats = 0; rd_bursts = 0; wr_bursts = 0;
        oor_count = 0; err_count = 0; err_code = 0; rd_out_max = 0; wr_out_max = 0;
        for (k = 0; k < WORDS; k = k + 1) mem[k] = 256'd0;
    end

    // ------------------------------------------------------------ backdoor
    always @(posedge bd_load) $readmemh("dram_in.hex", mem);
    always @(posedge bd_dump) $writememh("dram_out.hex", mem, bd_first, bd_first + bd_count - 1);
    always @(posedge bd_peek) bd_data = mem[bd_first[AW-1:0]];
    always @(posedge bd_poke) mem[bd_first[AW-1:0]] = bd_data;
    always @(posedge cfg_reseed) rng = (cfg_seed == 0) ? 32'd1 : cfg_seed;

    // ------------------------------------------------------------ one cycle
    integer i, j, pick, seen;
    reg     g, bad, ok;
    reg [31:0] due;
    reg [ADDR_W-1:0] a;

    // Oldest burst of an ID is the only one of that ID that may complete.
    task pick_read;
        begin
            pick = -1; seen = 0;
            for (i = 0; i < rq_n; i = i + 1) begin
                ok = (rq_due[i] - now >= 32'h8000_0000) || (rq_due[i] == now);
                for (j = 0; j < i; j = j + 1)
                    if (rq_id[j] == rq_id[i]) ok = 1'b0;
                if (ok && (cfg_reorder || i == 0)) begin
                    seen = seen + 1;
                    draw;
                    if (pick < 0 || (cfg_reorder && ((rng >> 9) % seen) == 0)) pick = i;
                end
            end
        end
    endtask

    task pick_write;
        begin
            pick = -1; seen = 0;
            for (i = 0; i < wq_n; i = i + 1) begin
                ok = wq_full[i] && ((wq_due[i] - now >= 32'h8000_0000) || (wq_due[i] == now));
                for (j = 0; j < i; j = j + 1)
                    if (wq_id[j] == wq_id[i]) ok = 1'b0;
                if (ok && (cfg_reorder || i == 0)) begin
                    seen = seen + 1;
                    draw;
                    if (pick < 0 || (cfg_reorder && ((rng >> 9) % seen) == 0)) pick = i;
                end
            end
        end
    endtask

    task return_beat;
        begin
            a = rq_addr[rq_cur];
            s_axi_rvalid <= 1'b1;
            r_pend = 1'b1;
            s_axi_rid    <= rq_id[rq_cur];
            s_axi_rlast  <= rq_left[rq_cur] == 9'd1;
            bad = !in_array(a);
            if (bad) oor_count = oor_count + 1;
            s_axi_rresp  <= bad ? 2'd3 : (cfg_err_rd && in_window(a)) ? cfg_err_resp : 2'd0;
            // An errored word returns poison so that a user of it is seen.
            s_axi_rdata  <= (bad || (cfg_err_rd && in_window(a))) ? {8{32'hDEADBEEF}} : mem[index_of(a)];
            rd_beats = rd_beats + 1;
            rq_addr[rq_cur] = a + 32;
            rq_left[rq_cur] = rq_left[rq_cur] - 9'd1;
            if (rq_left[rq_cur] == 0) begin
                for (i = rq_cur; i < rq_n - 1; i = i + 1) begin
                    rq_id[i] = rq_id[i+1]; rq_addr[i] = rq_addr[i+1];
                    rq_left[i] = rq_left[i+1]; rq_due[i] = rq_due[i+1];
                end
                rq_n = rq_n - 1;
                rq_cur = -1;
            end
        end
    endtask

    task commit_write;                // writes entry `pick` and offers its B
        begin
            bad = 1'b0; g = 1'b0;
            for (i = 0; i < {23'd0, wq_beats[pick]}; i = i + 1) begin
                a = wq_addr[pick] + i * 32;
                if (!in_array(a)) begin
                    bad = 1'b1;
                    oor_count = oor_count + 1;
                end else if (cfg_err_wr && in_window(a)) g = 1'b1;
                else store(index_of(a), wbuf[{24'd0, wq_buf[pick]} * 256 + i]);
            end
            s_axi_bvalid <= 1'b1;
            b_pend = 1'b1;
            s_axi_bid    <= wq_id[pick];
            s_axi_bresp  <= bad ? 2'd3 : g ? cfg_err_resp : 2'd0;
            wbuf_used[wq_buf[pick][WB-1:0]] = 1'b0;
            for (i = pick; i < wq_n - 1; i = i + 1) begin
                wq_id[i] = wq_id[i+1]; wq_addr[i] = wq_addr[i+1]; wq_beats[i] = wq_beats[i+1];
                wq_due[i] = wq_due[i+1]; wq_full[i] = wq_full[i+1]; wq_buf[i] = wq_buf[i+1];
            end
            wq_n = wq_n - 1;
            wopen = wopen - 1;
        end
    endtask

    reg [255:0] merged;
    task store(input [AW-1:0] idx, input [287:0] beat);
        begin
            if (beat[287:256] == 32'hFFFF_FFFF) mem[idx] = beat[255:0];
            else begin
                merged = mem[idx];
                for (j = 0; j < 32; j = j + 1)
                    if (beat[256+j]) merged[8*j +: 8] = beat[8*j +: 8];
                mem[idx] = merged;
            end
        end
    endtask

    task accept_write_beat;
        begin
            wbuf[{24'd0, wq_buf[wopen]} * 256 + {23'd0, wbeat}] = {s_axi_wstrb, s_axi_wdata};
            wr_beats = wr_beats + 1;
            if (s_axi_wlast != (wbeat + 9'd1 == wq_beats[wopen])) violation(8'd5, wq_addr[wopen]);
            wbeat = wbeat + 9'd1;
            if (wbeat == wq_beats[wopen]) begin
                draw_due(due);
                wq_due[wopen]  = due;
                wq_full[wopen] = 1'b1;
                wopen = wopen + 1;
                wbeat = 0;
            end
        end
    endtask

    // Request stability: an offer that was not taken must be repeated unchanged.
    reg [ADDR_W+ID_W+8:0] ar_was, aw_was;
    reg [289:0]           w_was;
    reg                   ar_wait, aw_wait, w_wait;
    wire [ADDR_W+ID_W+8:0] ar_is = {s_axi_arvalid, s_axi_arid, s_axi_arlen, s_axi_araddr};
    wire [ADDR_W+ID_W+8:0] aw_is = {s_axi_awvalid, s_axi_awid, s_axi_awlen, s_axi_awaddr};
    wire [289:0]           w_is  = {s_axi_wvalid, s_axi_wlast, s_axi_wstrb, s_axi_wdata};

    always @(posedge clk) begin
        now = now + 1;
        if (!rst_n) begin
            rq_n = 0; rq_cur = -1; wq_n = 0; wopen = 0; wbeat = 0; wbuf_used = 0;
            s_axi_rvalid <= 1'b0; s_axi_bvalid <= 1'b0;
            s_axi_rid <= 0; s_axi_rdata <= 0; s_axi_rresp <= 0; s_axi_rlast <= 1'b0;
            s_axi_bid <= 0; s_axi_bresp <= 0;
            s_axi_arready <= 1'b0; s_axi_awready <= 1'b0; s_axi_wready <= 1'b0;
            r_pend = 1'b0; b_pend = 1'b0; turn_w = 1'b0;
            ar_wait <= 1'b0; aw_wait <= 1'b0; w_wait <= 1'b0;
        end else begin
            if (ar_wait && ar_is !== ar_was) violation(8'd6, s_axi_araddr);
            if (aw_wait && aw_is !== aw_was) violation(8'd6, s_axi_awaddr);
            if (w_wait && w_is !== w_was)    violation(8'd6, s_axi_awaddr);
            ar_wait <= s_axi_arvalid && !s_axi_arready; ar_was <= ar_is;
            aw_wait <= s_axi_awvalid && !s_axi_awready; aw_was <= aw_is;
            w_wait  <= s_axi_wvalid && !s_axi_wready;   w_was  <= w_is;

            // Data of the write at the head of the collecting order.
            if (s_axi_wvalid && s_axi_wready) accept_write_beat;

            if (s_axi_awvalid && s_axi_awready) begin
                check_burst(s_axi_awaddr, s_axi_awlen, s_axi_awsize, s_axi_awburst);
                wr_bursts = wr_bursts + 1;
                pick = 0;
                for (i = MAX_WR - 1; i >= 0; i = i - 1) if (!wbuf_used[i]) pick = i;
                wbuf_used[pick[WB-1:0]] = 1'b1;
                wq_id[wq_n] = s_axi_awid;  wq_addr[wq_n] = s_axi_awaddr;
                wq_beats[wq_n] = {1'b0, s_axi_awlen} + 9'd1;
                wq_full[wq_n] = 1'b0;      wq_buf[wq_n] = pick[7:0];
                wq_n = wq_n + 1;
                if (wq_n > {16'd0, wr_out_max}) wr_out_max = wq_n[15:0];
            end

            if (s_axi_arvalid && s_axi_arready) begin
                check_burst(s_axi_araddr, s_axi_arlen, s_axi_arsize, s_axi_arburst);
                rd_bursts = rd_bursts + 1;
                draw_due(due);
                rq_id[rq_n] = s_axi_arid;  rq_addr[rq_n] = s_axi_araddr;
                rq_left[rq_n] = {1'b0, s_axi_arlen} + 9'd1;
                rq_due[rq_n] = due;
                rq_n = rq_n + 1;
                if (rq_n > {16'd0, rd_out_max}) rd_out_max = rq_n[15:0];
            end

            if (!s_axi_bvalid || s_axi_bready) begin
                s_axi_bvalid <= 1'b0;
                b_pend = 1'b0;
                if (wq_n != 0) begin
                    draw_gate(cfg_b_pct, g);
                    pick_write;
                    if (g && pick >= 0) commit_write;
                end
            end

            if (!s_axi_rvalid || s_axi_rready) begin
                s_axi_rvalid <= 1'b0;
                r_pend = 1'b0;
                if (rq_n != 0) begin
                    draw_gate(cfg_r_pct, g);
                    if (rq_cur < 0 || cfg_interleave) begin
                        pick_read;
                        rq_cur = pick;
                    end
                    if (g && rq_cur >= 0) return_beat;
                end
            end

            // Readiness of the next cycle, from the state after this one.
            turn_w = !turn_w;
            ok = rq_n == 0 && wq_n == 0 && !r_pend && !b_pend;
            draw_gate(cfg_ar_pct, g);
            s_axi_arready <= g && (SINGLE != 0 ? ok && !turn_w : rq_n < MAX_RD);
            draw_gate(cfg_aw_pct, g);
            s_axi_awready <= g && (SINGLE != 0 ? ok && turn_w : wq_n < MAX_WR);
            draw_gate(cfg_w_pct, g);
            s_axi_wready  <= g && wopen < wq_n;
        end
    end
endmodule
/* verilator lint_on SYNCASYNCNET */
/* verilator lint_on MULTIDRIVEN */
/* verilator lint_on UNUSEDSIGNAL */
/* verilator lint_on BLKSEQ */
`default_nettype wire
