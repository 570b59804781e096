// SPDX-License-Identifier: Apache-2.0
// vc_mem_ctl: one memory command after the other: checks in the order of
// docs/spec/vector.md 11.2, waiting for outstanding words, start of the engines,
// the answer.
//
// Latency    command in cycle k: VLD, VST start in k+1; VFILL answers and its walk
// starts in k+4 unless it waits; VDRAIN offers a flit from k+5 on (n = 1) or k+10;
// VBAR, VHALT answer in k+1 when nothing is outstanding.
// `stage_desc` is the cycle after acceptance: the descriptor's fields are there.
`default_nettype none
`include "ktpu_defs.vh"

module vc_mem_ctl #(
    parameter MERGE    = 1,
    parameter MX_STORE = 0
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        enable,

    input  wire        cmd_valid,
    output wire        cmd_ready,
    input  wire [2:0]  cmd_op,
    input  wire [31:0] cmd_word,
    input  wire [7:0]  cmd_vl,
    output wire        rsp_valid,
    output reg  [7:0]  rsp_fault,

    // descriptor
    output wire        desc_rd,
    input  wire [39:0] base,
    input  wire [17:0] stride0,
    input  wire [15:0] bound0,
    input  wire        unaligned,
    input  wire        one_dim,
    input  wire        near_edge,
    input  wire [8:0]  n,               // words of L1 unless `over`
    input  wire        over,

    output wire [31:0] word,            // of the command under way
    output wire        mx,              //   a VDRAIN that quantises; stays 0 with MX_STORE = 0
    output wire [7:0]  vl,
    output wire        store,
    output wire        wide,

    output wire        ldst_start,
    input  wire        ldst_done,
    input  wire [7:0]  ldst_fault,

    output wire        fill_go,
    output wire        fill_merge,
    input  wire        fill_walking,
    input  wire        fill_idle,
    input  wire        fill_ended,
    input  wire        fill_outside,

    output wire        drain_start,
    output wire        drain_go,
    output wire        drain_drop,
    input  wire        drain_done,
    input  wire        drain_outside,

    // outstanding words and bad marks
    input  wire        slot_room,
    input  wire        range_busy,
    input  wire        tags_busy,
    input  wire        quiet,
    input  wire        any_bad,
    input  wire [7:0]  bad_code,
    output wire        scan,
    output wire [8:0]  scan_word,
    input  wire [7:0]  bad_at,
    output wire        clean,
    input  wire        cleaning,

    output wire        first            // first command of a RUN, for counters
);

    localparam [2:0] VLD     = 3'd0;
    localparam [2:0] VST     = 3'd1;
    localparam [2:0] VFILL   = 3'd2;
    localparam [2:0] VDRAIN  = 3'd3;
    localparam [2:0] VBAR    = 3'd4;
    localparam [2:0] VHALT   = 3'd5;
    localparam [2:0] QUIESCE = 3'd6;

    localparam [3:0] S_IDLE  = 4'd0;
    localparam [3:0] S_DESC  = 4'd1;    // the descriptor is there
    localparam [3:0] S_PROD  = 4'd2;    // its product is not
    localparam [3:0] S_CHECK = 4'd3;
    localparam [3:0] S_WAIT  = 4'd4;    // VFILL, VDRAIN: outstanding words
    localparam [3:0] S_SCAN  = 4'd5;    // bad marks of the range
    localparam [3:0] S_FILL  = 4'd6;    // a walk that may leave the address space
    localparam [3:0] S_DRAIN = 4'd7;
    localparam [3:0] S_LDST  = 4'd8;
    localparam [3:0] S_BAR   = 4'd9;
    localparam [3:0] S_CLEAN = 4'd10;

    reg  [3:0]  state_q;
    reg  [2:0]  op_q;
    reg  [31:0] word_q;
    reg  [7:0]  vl_q, code_q;
    reg  [8:0]  scan_q;
    reg         fresh_q;

    wire accept  = cmd_valid && cmd_ready;
    wire is_fill = op_q == VFILL;
    wire is_ldst = (op_q == VLD) || (op_q == VST);

    assign cmd_ready = (state_q == S_IDLE) && enable;
    assign desc_rd   = accept;
    assign word      = word_q;
    assign vl        = vl_q;
    assign store     = op_q == VST;
    assign mx        = (MX_STORE != 0) && (op_q == VDRAIN) && word_q[`KT_VC_DRAIN_MX];

    // ----------------------------------------------------------------- checks
    wire [2:0]  dtype     = word_q[`KT_VC_LDST_DTYPE];
    wire        bad_dtype = (dtype != `KT_VC_DTYPE_FP16) && (dtype != `KT_VC_DTYPE_FP32);
    wire        node      = word_q[`KT_VC_DRAIN_NODE];
    wire [7:0]  dst       = {word_q[`KT_VC_DRAIN_DST_X], word_q[`KT_VC_DRAIN_DST_Y]};
    wire        memory    = is_fill || !node;
    wire [3:0]  buffer    = word_q[`KT_VC_DRAIN_BUF];
    wire        no_pack   = mx && (buffer[3:1] != 3'd0);
    wire        bad_buf   = mx ? no_pack : buffer != 4'd0;
    wire        reserved  = !is_fill && ((!mx && word_q[`KT_VC_DRAIN_MX])
                            || (!node && ((dst != 8'd0) || word_q[`KT_VC_DRAIN_SIGNAL] || bad_buf)));
    wire [8:0]  granules  = mx ? {1'b0, n[8:1]} : n;
    wire [16:0] peer_end  = {1'b0, base[`KT_VC_PEER_OFF]} + {8'd0, granules};
    wire        bad_peer  = (dst == 8'd0) || !one_dim || no_pack
                            || ((bound0 != 16'd1) && (stride0 != 18'd1))
                            || (peer_end[16] && (peer_end[15:0] != 16'd0))
                            || ((base[33:26] != 8'd0) && (base[23:16] == 8'd0));
    wire [8:0]  lo        = word_q[8:0];
    wire [9:0]  hi        = {1'b0, lo} + {1'b0, n};
    wire        bad_range = (is_fill && (word_q[13:9] != 5'd0)) || (hi[9] && (hi[8:0] != 9'd0));
    wire [7:0]  refusal   = reserved               ? `KT_VC_F_ENC
                          : over                   ? `KT_VC_F_LEN
                          : (!memory && bad_peer)  ? `KT_VC_F_PEER
                          : (memory && unaligned)  ? `KT_VC_F_ALIGN
                          : bad_range              ? `KT_VC_F_L1RANGE : 8'd0;

    // ------------------------------------------------------ start of an engine
    wire blocked   = is_fill ? (fill_walking || !slot_room || tags_busy) : range_busy;
    wire wait_over = (state_q == S_WAIT) && !blocked;
    wire scan_hit  = (state_q == S_SCAN) && (scan_q != 9'd0) && (bad_at != 8'd0);
    wire scan_over = (state_q == S_SCAN) && !scan_hit && (scan_q == n);
    wire go        = (wait_over && !any_bad) || scan_over;
    wire refused   = (state_q == S_CHECK) && (refusal != 8'd0);
    wire halting   = (op_q != VBAR);

    assign wide        = dtype == `KT_VC_DTYPE_FP32;
    assign ldst_start  = (state_q == S_DESC) && is_ldst && !bad_dtype;
    assign fill_go     = go && is_fill;
    assign fill_merge  = (MERGE != 0) && !near_edge;
    assign drain_start = (state_q == S_DESC) && (op_q == VDRAIN);
    assign drain_go    = go && !is_fill;
    assign drain_drop  = !is_fill && (refused || scan_hit);
    assign scan        = (state_q == S_SCAN) && (scan_q != n);
    assign scan_word   = lo + scan_q;
    assign clean       = (state_q == S_BAR) && quiet && fill_idle && halting && any_bad;
    assign first       = accept && fresh_q;

    // ----------------------------------------------------------------- answer
    reg answer;
    always @* begin
        answer    = 1'b0;
        rsp_fault = 8'd0;
        case (state_q)
            S_DESC: begin
                answer    = is_ldst && bad_dtype;
                rsp_fault = `KT_VC_F_DTYPE;
            end
            S_CHECK: begin
                answer    = refused;
                rsp_fault = refusal;
            end
            S_WAIT: answer = go && is_fill && !near_edge;
            S_SCAN: begin
                answer    = scan_hit || (go && is_fill && !near_edge);
                rsp_fault = scan_hit ? bad_at : 8'd0;
            end
            S_FILL: begin
                answer    = fill_ended || !fill_walking;
                rsp_fault = fill_outside ? `KT_VC_F_ADDR : 8'd0;
            end
            S_DRAIN: begin
                answer    = drain_done;
                rsp_fault = drain_outside ? `KT_VC_F_ADDR : 8'd0;
            end
            S_LDST: begin
                answer    = ldst_done;
                rsp_fault = ldst_fault;
            end
            S_BAR: begin
                answer    = quiet && (halting ? fill_idle && !any_bad : 1'b1);
                rsp_fault = (!halting && any_bad) ? bad_code : 8'd0;
            end
            S_CLEAN: begin
                answer    = !cleaning;
                rsp_fault = code_q;
            end
            default: ;
        endcase
    end

    assign rsp_valid = answer;

    always @(posedge clk) begin
        if (!rst_n) begin
            state_q <= S_IDLE;
        end else if (answer) begin
            state_q <= S_IDLE;
        end else begin
            case (state_q)
                S_IDLE:  if (accept) state_q <= (cmd_op > VDRAIN) ? S_BAR : S_DESC;
                S_DESC:  state_q <= is_ldst ? S_LDST : S_PROD;
                S_PROD:  state_q <= S_CHECK;
                S_CHECK: state_q <= S_WAIT;
                S_WAIT:  if (go) state_q <= is_fill ? S_FILL : S_DRAIN;
                         else if (wait_over) state_q <= S_SCAN;
                S_SCAN:  if (go) state_q <= is_fill ? S_FILL : S_DRAIN;
                S_BAR:   if (clean) state_q <= S_CLEAN;
                default: ;
            endcase
        end

        if (accept) begin
            op_q   <= cmd_op;
            word_q <= cmd_word;
            vl_q   <= cmd_vl;
        end
        scan_q <= (state_q == S_SCAN) ? scan_q + 9'd1 : 9'd0;
        if (clean) code_q <= (op_q == VHALT) ? bad_code : 8'd0;
    end

    // A RUN ends with an unfaulted VHALT or a QUIESCE.
    always @(posedge clk) begin
        if (!rst_n) fresh_q <= 1'b1;
        else if (accept) fresh_q <= 1'b0;
        else if (answer && ((op_q == QUIESCE) || ((op_q == VHALT) && (rsp_fault == 8'd0)))) fresh_q <= 1'b1;
    end

    // The rest of a peer record goes to the flits only.
    wire unused = &{1'b0, base[39:34], base[`KT_VC_PEER_MESH]};

endmodule

`default_nettype wire
