// SPDX-License-Identifier: Apache-2.0
//
// orch_mirror: status mirror, signal counter and signal events of `orch` (docs/spec/fabric.md 6.5).
//
// Takes one signal per cycle without ever refusing one. After reset the 256 mirror words are
// cleared, `ready` = 0 meanwhile (256 cycles). A signal is looked up in its arrival cycle and
// written back, counted and reported on the `evt_*` outputs one cycle later; two signals of one
// node in consecutive cycles forward the count. The host reads a second copy, so its port is never
// in the way of a signal: data one cycle after `host_rd_en`, held, and 0 until `ready`.

`default_nettype none
`include "ktpu_defs.vh"

module orch_mirror (
    input  wire         clk,
    input  wire         rst_n,
    output wire         ready,

    input  wire         sig_valid,      // a CU_SIGNAL is taken from the link in this cycle
    input  wire [287:0] sig_flit,

    input  wire         done_clear,     // SIG_DONE write
    output wire [15:0]  done_count,

    output wire         evt_return,     // INST_COMPLETE or FAULT
    output wire         evt_fault,
    output wire         evt_reject,
    output wire [7:0]   evt_code,
    output wire [31:0]  evt_arg,
    output wire [7:0]   evt_node,

    input  wire         host_rd_en,
    input  wire [7:0]   host_rd_node,
    output wire [63:0]  host_rd_data
);
    localparam COUNT_W = 17;            // {valid, count}
    localparam WORD_W  = 57;            // {code, arg, count, valid}

    // ---- clear after reset --------------------------------------------------------------------
    reg [8:0] clr_q;
    assign ready = clr_q[8];
    always @(posedge clk) begin
        if (!rst_n) clr_q <= 9'd0;
        else if (!clr_q[8]) clr_q <= clr_q + 9'd1;
    end

    // ---- stage 1: signal fields ---------------------------------------------------------------
    wire [7:0] in_node = {sig_flit[`KT_FLIT_SRC_Y], sig_flit[`KT_FLIT_SRC_X]};

    reg        s1_valid_q;
    reg [7:0]  s1_node_q;
    reg [7:0]  s1_code_q;
    reg [31:0] s1_arg_q;
    always @(posedge clk) begin
        if (!rst_n) s1_valid_q <= 1'b0;
        else        s1_valid_q <= sig_valid;
        if (sig_valid) begin
            s1_node_q <= in_node;
            s1_code_q <= sig_flit[`KT_CU_SIGNAL_CODE];
            s1_arg_q  <= sig_flit[`KT_CU_SIGNAL_ARG];
        end
    end

    // ---- read, add, write back ------------------------------------------------------------------
    reg                fwd_valid_q;     // the write of the previous cycle, not visible to its read
    reg [7:0]          fwd_node_q;
    reg [15:0]         fwd_count_q;
    wire [COUNT_W-1:0] old_word;
    wire               fwd_hit   = fwd_valid_q && (fwd_node_q == s1_node_q);
    wire [15:0]        old_count = fwd_hit ? fwd_count_q :
                                   (old_word[16] ? old_word[15:0] : 16'd0);
    wire [15:0]        new_count = old_count + 16'd1;

    always @(posedge clk) begin
        if (!rst_n) fwd_valid_q <= 1'b0;
        else        fwd_valid_q <= s1_valid_q;
        if (s1_valid_q) begin
            fwd_node_q  <= s1_node_q;
            fwd_count_q <= new_count;
        end
    end

    wire              wr_en   = !ready || s1_valid_q;
    wire [7:0]        wr_addr = ready ? s1_node_q : clr_q[7:0];
    wire [WORD_W-1:0] wr_word = ready ? {s1_code_q, s1_arg_q, new_count, 1'b1} : {WORD_W{1'b0}};
    wire [WORD_W-1:0] host_word;

    ram_sdp #(.WIDTH(COUNT_W), .DEPTH(256), .PRIM("block"), .READ_LAT(1)) u_count (
        .clk    (clk),
        .wr_en  (wr_en),
        .wr_addr(wr_addr),
        .wr_data({wr_word[0], wr_word[16:1]}),
        .rd_en  (sig_valid),
        .rd_addr(in_node),
        .rd_data(old_word)
    );

    ram_sdp #(.WIDTH(WORD_W), .DEPTH(256), .PRIM("block"), .READ_LAT(1)) u_host (
        .clk    (clk),
        .wr_en  (wr_en),
        .wr_addr(wr_addr),
        .wr_data(wr_word),
        .rd_en  (host_rd_en),
        .rd_addr(host_rd_node),
        .rd_data(host_word)
    );

    // A word of before the reset must not be seen while the clear runs.
    reg host_live_q;
    always @(posedge clk) begin
        if (!rst_n) host_live_q <= 1'b0;
        else if (host_rd_en) host_live_q <= ready;
    end
    assign host_rd_data = host_live_q ? {host_word[56:1], 7'd0, host_word[0]} : 64'd0;

    // ---- SIG_DONE and events --------------------------------------------------------------------
    reg [15:0] done_q;
    always @(posedge clk) begin
        if (!rst_n)          done_q <= 16'd0;
        else if (done_clear) done_q <= {15'd0, s1_valid_q};
        else if (s1_valid_q) done_q <= done_q + 16'd1;
    end
    assign done_count = done_q;

    wire is_fault = (s1_code_q == `KT_SIG_FAULT);
    assign evt_return = s1_valid_q && ((s1_code_q == `KT_SIG_INST_COMPLETE) || is_fault);
    assign evt_fault  = s1_valid_q && is_fault;
    assign evt_reject = s1_valid_q && (s1_code_q == `KT_SIG_DATA_RECEIVED) && s1_arg_q[31];
    assign evt_code   = s1_code_q;
    assign evt_arg    = s1_arg_q;
    assign evt_node   = s1_node_q;

    wire unused_ok = &{1'b0, sig_flit[287:280], sig_flit[271:256], sig_flit[215:0]};
endmodule

`default_nettype wire
