// SPDX-License-Identifier: Apache-2.0
// vc_seq: the sequencer: takes words in program order, checks them, executes
// scalar and mode instructions, hands arithmetic groups to the lanes, moves and
// reductions to their engines, memory instructions to the memory unit, and ends
// the run (docs/spec/vector.md 7, 11.2, 13.2).
//
// Throughput one word a cycle; an arithmetic group waits in the group register
//            until the lanes take it, and decode goes on behind it.
// Scalars, constants, VL and the mode are sampled when a word is decoded. Every
// writer of S is complete before the next word is decoded, so the sample is
// what program order demands; vector registers and predicates are interlocked
// by the lanes' scoreboard.
`default_nettype none
`include "ktpu_defs.vh"

module vc_seq (
    input  wire         clk,
    input  wire         rst_n,

    // envelope
    input  wire         imem_we,
    input  wire [8:0]   imem_addr,
    input  wire [31:0]  imem_word,
    input  wire         run_start,
    input  wire [8:0]   run_pc,
    output wire         run_done,
    output wire [7:0]   run_fault,      // with run_done; 0 = VHALT
    output wire [8:0]   run_fault_pc,
    output wire         stall,          // a word waits for a register

    // arithmetic group, or tree reduction
    output wire         g_valid,
    input  wire         g_accept,
    output wire [4:0]   g_op,           // lane operation of the head
    output wire [1:0]   g_mode,
    output wire         g_red,
    output wire [3:0]   g_kind,
    output wire [2:0]   g_v,            // operands {c, b, a} that come from a vector register
    output wire [11:0]  g_vr,           // their numbers {c, b, a}
    output wire [71:0]  g_k,            // scalar and constant operands {c, b, a}
    output wire [7:0]   g_vl,
    output wire [3:0]   g_n,
    output wire [3:0]   g_vd,
    output wire [1:0]   g_pr,
    output wire [1:0]   g_pm,
    output wire         g_cmp,
    output wire [3:0]   g_slot,
    // words 1..3 of a chain
    output wire [3:1]   t_we,
    output wire [79:0]  t_ctl,          // {op, operand is the chain value {c, b, a}, constants {c, b, a}}

    // moves
    output wire         mv_start,
    output wire         mv_cvt,         // through FP16
    output wire         mv_from_s,      // VBCAST of a scalar
    output wire         mv_to_s,        // VBCAST to a scalar
    output wire [3:0]   mv_rot,
    output wire [23:0]  mv_s,
    input  wire         mv_done,        // element 0 is on mv_value
    input  wire [23:0]  mv_value,

    // state of the lanes
    input  wire         read_free,      // nothing uses the read ports in the next cycle
    input  wire         move_idle,
    input  wire         lanes_empty,
    input  wire [15:0]  src_busy,
    input  wire [15:0]  dst_busy,
    input  wire [3:0]   pred_busy,
    input  wire         red_done,
    input  wire [23:0]  red_value,
    input  wire         pred_any,       // of P[w_word.pr] over VL elements
    input  wire         pred_all,

    // memory unit
    output wire         cmd_valid,
    input  wire         cmd_ready,
    output wire [2:0]   cmd_op,
    output wire [31:0]  cmd_word,       // also the word in decode
    output wire [7:0]   cmd_vl,
    output wire [3:0]   cmd_n,
    input  wire         rsp_valid,
    input  wire [7:0]   rsp_fault
);

    localparam [2:0] S_IDLE  = 3'd0;
    localparam [2:0] S_DEC   = 3'd1;
    localparam [2:0] S_IMM   = 3'd2;
    localparam [2:0] S_RSP   = 3'd3;
    localparam [2:0] S_WAIT  = 3'd4;    // for a reduction, or for element 0
    localparam [2:0] S_FAULT = 3'd5;
    localparam [2:0] S_QUIET = 3'd6;
    localparam [2:0] S_DONE  = 3'd7;

    localparam [2:0] C_VHALT   = 3'd5;
    localparam [2:0] C_QUIESCE = 3'd6;

    // ------------------------------------------------------------------ words
    reg  [2:0]  state_q;
    wire        w_valid, w_in_loop, w_at_end, w_past, w_pop;
    wire [31:0] word;
    wire [8:0]  w_pc;
    wire        loop_set;
    wire [23:0] sa, sb, sc;

    vc_seq_fetch u_fetch (
        .clk        (clk),
        .rst_n      (rst_n),
        .imem_we    (imem_we),
        .imem_addr  (imem_addr),
        .imem_word  (imem_word),
        .start      (run_start),
        .start_pc   (run_pc),
        .stop       (state_q == S_DONE),
        .loop_set   (loop_set),
        .loop_count (sa),
        .w_valid    (w_valid),
        .w_pop      (w_pop),
        .w_word     (word),
        .w_pc       (w_pc),
        .w_in_loop  (w_in_loop),
        .w_at_end   (w_at_end),
        .w_past     (w_past)
    );

    // ------------------------------------------------------ scalars, VL, mode
    reg  [1:0]  mode_q;
    reg  [7:0]  vl_q;
    reg  [3:0]  n_q;
    reg  [23:0] k3_q;
    reg  [1:0]  nth_q;                  // place of the next word in its chain
    reg  [3:0]  slot_q;
    reg  [8:0]  head_pc_q;
    reg  [3:0]  sd_q;
    reg         sel_k3_q;
    reg  [7:0]  code_q;
    reg  [8:0]  code_pc_q;

    wire        s_we;
    wire [3:0]  s_addr;
    wire [23:0] s_data;

    vc_seq_scalars u_scalars (
        .clk   (clk),
        .rst_n (rst_n),
        .we    (s_we),
        .waddr (s_addr),
        .wdata (s_data),
        .ra    (word[`KT_VC_ALU_VA]),
        .rb    (word[`KT_VC_ALU_VB]),
        .rc    (word[`KT_VC_ALU_VC]),
        .da    (sa),
        .db    (sb),
        .dc    (sc)
    );

    wire [95:0] k_all = {k3_q, 24'hBF8000, 24'h3F8000, 24'h000000};
    wire [23:0] ka = k_all[24*word[14:13] +: 24];
    wire [23:0] kb = k_all[24*word[10:9] +: 24];
    wire [23:0] kc = k_all[24*word[6:5] +: 24];
    wire [71:0] consts = {(word[`KT_VC_ALU_SC] == `KT_VC_SRC_S) ? sc : kc,
                          (word[`KT_VC_ALU_SB] == `KT_VC_SRC_S) ? sb : kb,
                          (word[`KT_VC_ALU_SA] == `KT_VC_SRC_S) ? sa : ka};

    // ----------------------------------------------------------------- checks
    wire [4:0]  op       = word[`KT_VC_ALU_OP];
    wire [1:0]  nth_last = ({2'd0, mode_q} == `KT_VC_MODE_D4) ? 2'd3 : {1'b0, {2'd0, mode_q} == `KT_VC_MODE_D2};
    wire        follows  = nth_q != 2'd0;
    wire        is_last  = nth_q == nth_last;
    wire        arith, compare, tree;
    wire [2:0]  reads;
    wire [4:0]  lane_op;
    wire [7:0]  word_code;

    vc_seq_check u_check (
        .word     (word),
        .mode     (mode_q),
        .follows  (follows),
        .is_last  (is_last),
        .vl_whole (vl_q[3:0] == 4'd0),
        .arith    (arith),
        .compare  (compare),
        .tree     (tree),
        .reads    (reads),
        .lane_op  (lane_op),
        .code     (word_code)
    );

    wire        is_seti  = op == `KT_VC_OP_VSETI;
    wire        is_loop  = op == `KT_VC_OP_VLOOP;
    wire        is_setvl = op == `KT_VC_OP_VSETVL;
    wire        more     = arith ? !is_last : is_seti;      // further words belong to it
    wire [9:0]  loop_end = {1'b0, w_pc} + {6'd0, word[`KT_VC_LOOP_BODY]};
    wire        bad_loop = w_in_loop || sa == 24'd0 || word[`KT_VC_LOOP_BODY] == 4'd0 || loop_end[9];
    wire        bad_vl   = sa == 24'd0 || sa > 24'd128;

    reg  [7:0]  code;
    always @* begin
        if (w_past)                      code = `KT_VC_F_PC;
        else if (state_q == S_IMM)       code = (word[31:24] != 8'd0) ? `KT_VC_F_ENC : 8'd0;
        else if (word_code != 8'd0)      code = word_code;
        else if (is_loop && bad_loop)    code = `KT_VC_F_LOOP;
        else if (more && w_at_end)       code = `KT_VC_F_LOOP;
        else if (is_setvl && bad_vl)     code = `KT_VC_F_VL;
        else                             code = 8'd0;
    end

    wire        taking = w_valid && (state_q == S_DEC || state_q == S_IMM);
    wire        bad    = taking && code != 8'd0;
    wire        dec    = w_valid && state_q == S_DEC && code == 8'd0;
    wire        imm    = w_valid && state_q == S_IMM && code == 8'd0;

    // --------------------------------------------------- what may go this cycle
    reg         g_valid_q;
    wire        g_room    = !g_valid_q || g_accept;
    wire [3:0]  vd        = word[`KT_VC_ALU_VD];
    wire [3:0]  va        = word[`KT_VC_ALU_VA];
    wire [1:0]  pr        = word[`KT_VC_ALU_PR];
    wire        is_red    = op == `KT_VC_OP_VRED;
    wire        is_bcast  = op == `KT_VC_OP_VBCAST;
    wire        is_shuf   = op == `KT_VC_OP_VSHUF;
    wire        is_move   = op == `KT_VC_OP_VCVT || is_bcast || is_shuf;
    wire        is_ld     = op == `KT_VC_OP_VLD;
    wire        is_st     = op == `KT_VC_OP_VST;
    wire        is_halt   = op == `KT_VC_OP_VHALT;
    wire        is_mem    = is_ld || is_st || op >= `KT_VC_OP_VBAR;
    wire        from_s    = is_bcast && word[25];
    wire        to_s      = is_bcast && !word[25];

    wire        pred_use  = (is_red && !tree) || (is_shuf && word[`KT_VC_SHUF_PM] != 2'd0);
    wire [3:0]  src       = is_st ? vd : va;
    wire        src_wait  = (is_st || (is_move && !from_s)) && src_busy[src];
    wire        dst_wait  = (is_ld || (is_move && !to_s)) && dst_busy[vd];
    wire        reg_wait  = src_wait || dst_wait || (pred_use && pred_busy[pr]);
    wire        ports     = !g_valid_q && read_free && move_idle;

    wire        go_group  = dec && arith && g_room;
    wire        go_tree   = dec && tree && g_room;
    wire        go_pred   = dec && is_red && !tree && !g_valid_q && !reg_wait;
    wire        go_move   = dec && is_move && ports && !reg_wait;
    wire        mem_ok    = (is_ld || is_st) ? ports && !reg_wait : !is_halt || (!g_valid_q && lanes_empty);
    wire        go_now    = dec && (is_loop || is_setvl || is_seti || op == `KT_VC_OP_VSETMODE);
    wire        quiet     = state_q == S_FAULT && !g_valid_q && lanes_empty;

    assign cmd_valid = (dec && is_mem && mem_ok) || quiet;
    assign cmd_op    = (state_q == S_FAULT) ? C_QUIESCE
                     : is_ld ? 3'd0 : is_st ? 3'd1
                     : (op == `KT_VC_OP_VFILL) ? 3'd2 : (op == `KT_VC_OP_VDRAIN) ? 3'd3
                     : is_halt ? C_VHALT : 3'd4;
    assign cmd_word  = word;
    assign cmd_vl    = vl_q;
    assign cmd_n     = n_q;

    wire        rsp_ok = state_q == S_RSP && rsp_valid && rsp_fault == 8'd0;
    wire        rsp_bad = state_q == S_RSP && rsp_valid && rsp_fault != 8'd0;
    assign w_pop    = go_group || go_tree || go_pred || go_move || go_now || imm || rsp_ok;
    assign loop_set = dec && is_loop;
    assign stall    = dec && reg_wait && !g_valid_q;

    assign mv_start  = go_move;
    assign mv_cvt    = op == `KT_VC_OP_VCVT && word[`KT_VC_CVT_DTYPE] == `KT_VC_DTYPE_FP16;
    assign mv_from_s = from_s;
    assign mv_to_s   = to_s;
    assign mv_rot    = is_shuf ? sb[3:0] : 4'd0;
    assign mv_s      = sa;

    // -------------------------------------------------------- scalar writes
    wire        pred_result = (word[`KT_VC_RED_KIND] == `KT_VC_RED_ALL) ? pred_all : pred_any;
    wire        waited = state_q == S_WAIT && (red_done || mv_done);
    assign s_we   = go_pred || (imm && !sel_k3_q) || waited;
    assign s_addr = go_pred ? vd : sd_q;
    assign s_data = go_pred ? (pred_result ? 24'h3F8000 : 24'd0)
                  : imm ? word[23:0] : red_done ? red_value : mv_value;

    always @(posedge clk) begin
        if (!rst_n) begin
            state_q   <= S_IDLE;
            mode_q    <= 2'd0;           // FLAT
            vl_q      <= 8'd128;
            n_q       <= 4'd8;
            k3_q      <= 24'd0;
            slot_q    <= 4'd0;
            nth_q     <= 2'd0;
            g_valid_q <= 1'b0;
        end else begin
            case (state_q)
                S_IDLE:  if (run_start) state_q <= S_DEC;
                S_DEC:   if (bad) state_q <= S_FAULT;
                         else if (cmd_valid && cmd_ready) state_q <= S_RSP;
                         else if (dec && is_seti) state_q <= S_IMM;
                         else if (go_tree || (go_move && to_s)) state_q <= S_WAIT;
                S_IMM:   if (bad) state_q <= S_FAULT;
                         else if (imm) state_q <= S_DEC;
                S_RSP:   if (rsp_bad) state_q <= S_FAULT;
                         else if (rsp_ok) state_q <= is_halt ? S_DONE : S_DEC;
                S_WAIT:  if (waited) state_q <= S_DEC;
                S_FAULT: if (quiet && cmd_ready) state_q <= S_QUIET;
                S_QUIET: if (rsp_valid) state_q <= S_DONE;
                default: state_q <= S_IDLE;
            endcase
            if (dec && op == `KT_VC_OP_VSETMODE) mode_q <= word[14:13];
            if (dec && is_setvl) begin
                vl_q <= sa[7:0];
                n_q  <= sa[7:4] + {3'd0, sa[3:0] != 4'd0};
            end
            if (imm && sel_k3_q) k3_q <= word[23:0];
            if (state_q == S_IDLE) nth_q <= 2'd0;
            else if (go_group) nth_q <= is_last ? 2'd0 : nth_q + 2'd1;
            if (go_group && is_last && follows) slot_q <= slot_q + 4'd1;
            if ((go_group && is_last) || go_tree) g_valid_q <= 1'b1;
            else if (g_accept) g_valid_q <= 1'b0;
        end
        if (dec && nth_q == 2'd0) begin
            head_pc_q <= w_pc;
            sd_q      <= vd;
            sel_k3_q  <= word[25];
        end
        if (run_start) code_q <= 8'd0;
        else if (bad) code_q <= code;
        else if (rsp_bad) code_q <= rsp_fault;
        if (bad) code_pc_q <= (state_q == S_IMM || follows) ? head_pc_q : w_pc;
        else if (rsp_bad) code_pc_q <= w_pc;
    end

    assign run_done     = state_q == S_DONE;
    assign run_fault    = code_q;
    assign run_fault_pc = code_pc_q;

    // --------------------------------------------------------- group register
    reg  [4:0]  g_op_q;
    reg  [1:0]  g_mode_q;
    reg         g_red_q;
    reg  [3:0]  g_kind_q;
    reg  [2:0]  g_v_q;
    reg  [11:0] g_vr_q;
    reg  [71:0] g_k_q;
    reg  [7:0]  g_vl_q;
    reg  [3:0]  g_n_q;
    reg  [3:0]  g_vd_q;
    reg  [1:0]  g_pr_q;
    reg  [1:0]  g_pm_q;
    reg         g_cmp_q;
    reg  [3:0]  g_slot_q;

    wire [3:0]  kind  = word[`KT_VC_RED_KIND];
    wire        pairs = kind == `KT_VC_RED_SUMSQ || kind == `KT_VC_RED_DOT;
    wire [2:0]  from_v = {word[`KT_VC_ALU_SC] == `KT_VC_SRC_V, word[`KT_VC_ALU_SB] == `KT_VC_SRC_V,
                          word[`KT_VC_ALU_SA] == `KT_VC_SRC_V} & reads;

    always @(posedge clk) begin
        if ((go_group && !follows) || go_tree) begin
            g_op_q   <= lane_op;
            g_mode_q <= mode_q;
            g_red_q  <= go_tree;
            g_kind_q <= kind;
            g_v_q    <= go_tree ? {1'b0, pairs, 1'b1} : from_v;
            g_vr_q   <= {word[`KT_VC_ALU_VC], word[`KT_VC_ALU_VB], va};
            g_k_q    <= consts;
            g_vl_q   <= vl_q;
            g_n_q    <= n_q;
            g_slot_q <= slot_q;
        end
        if (go_group || go_tree) begin
            g_vd_q  <= go_tree ? word[`KT_VC_RED_VB] : vd;
            g_pr_q  <= pr;
            g_pm_q  <= word[`KT_VC_ALU_PM];
            g_cmp_q <= compare && !go_tree;
        end
    end

    assign g_valid = g_valid_q;
    assign g_op    = g_op_q;
    assign g_mode  = g_mode_q;
    assign g_red   = g_red_q;
    assign g_kind  = g_kind_q;
    assign g_v     = g_v_q;
    assign g_vr    = g_vr_q;
    assign g_k     = g_k_q;
    assign g_vl    = g_vl_q;
    assign g_n     = g_n_q;
    assign g_vd    = g_vd_q;
    assign g_pr    = g_pr_q;
    assign g_pm    = g_pm_q;
    assign g_cmp   = g_cmp_q;
    assign g_slot  = g_slot_q;

    assign t_we  = {go_group && nth_q == 2'd3, go_group && nth_q == 2'd2, go_group && nth_q == 2'd1};
    assign t_ctl = {lane_op, word[`KT_VC_ALU_SC] == `KT_VC_SRC_C, word[`KT_VC_ALU_SB] == `KT_VC_SRC_C,
                    word[`KT_VC_ALU_SA] == `KT_VC_SRC_C, consts};

    wire unused = &{1'b0, loop_end[8:0]};

endmodule

`default_nettype wire
