// SPDX-License-Identifier: Apache-2.0
// vc_lanes: register file, sixteen ALUs, predicates, moves, reductions and the
// interlock between them (docs/spec/vector.md 7.1 to 7.5, 13).
//
// Latency    group accepted -> first beat one cycle; beat -> readable result
//            D*(ALAT+1) + 2 cycles for a chain of depth D.
// Throughput one beat a cycle: N beats for a group of depth 1, N*D for D.
// After reset the registers are cleared, which takes 128 cycles.
//
// A group starts when its source registers can be read in step with their last
// writer; predicates, tails and the order of writes need no wait. Moves, loads
// and stores come from the sequencer one at a time, when the marks it reads
// here allow.
//
// ALAT: 12..18.
`default_nettype none
`include "ktpu_defs.vh"

module vc_lanes #(
    parameter ALAT = 14
) (
    input  wire         clk,
    input  wire         rst_n,
    output wire         clear_done,
    output wire         beat,           // a beat of the lanes starts
    output wire         stall,          // a group waits for a register
    output wire         clamp,

    // groups
    input  wire         g_valid,
    output wire         g_accept,
    input  wire [4:0]   g_op,
    input  wire [1:0]   g_mode,
    input  wire         g_red,
    input  wire [3:0]   g_kind,
    input  wire [2:0]   g_v,
    input  wire [11:0]  g_vr,
    input  wire [71:0]  g_k,
    input  wire [7:0]   g_vl,
    input  wire [3:0]   g_n,
    input  wire [3:0]   g_vd,
    input  wire [1:0]   g_pr,
    input  wire [1:0]   g_pm,
    input  wire         g_cmp,
    input  wire [3:0]   g_slot,
    input  wire [3:1]   t_we,
    input  wire [79:0]  t_ctl,

    // moves; the registers of the word in decode
    input  wire         mv_start,
    input  wire         mv_cvt,
    input  wire         mv_from_s,
    input  wire         mv_to_s,
    input  wire [3:0]   mv_rot,
    input  wire [23:0]  mv_s,
    input  wire [3:0]   w_vd,
    input  wire [3:0]   w_va,
    input  wire [1:0]   w_pr,
    input  wire [1:0]   w_pm,           // 0 unless VSHUF
    input  wire [7:0]   w_vl,
    input  wire [3:0]   w_n,
    output wire         mv_done,
    output wire [23:0]  mv_value,

    // state
    output wire         read_free,
    output wire         move_idle,
    output wire         empty,
    output wire [15:0]  src_busy,
    output wire [15:0]  dst_busy,
    output wire [3:0]   pred_busy,
    output wire         red_done,
    output wire [23:0]  red_value,
    output wire         pred_any,
    output wire         pred_all,

    // memory unit: VLD into w_vd, VST from w_vd
    input  wire         ld_valid,
    input  wire [2:0]   ld_chunk,
    input  wire [1:0]   ld_half,
    input  wire [383:0] ld_data,
    input  wire         st_rd,
    input  wire [2:0]   st_chunk,
    output wire [383:0] st_data
);

    // ----------------------------------------------------------- acceptance
    wire        free, first, x_valid, writes;
    wire [1:0]  mode;
    wire        hold_flat, hold_d2, deep2, deep4, time_empty, red_idle;
    wire [15:0] v_fresh, v_busy;

    wire        g_is_d2 = {2'd0, g_mode} == `KT_VC_MODE_D2;
    wire        g_is_d4 = {2'd0, g_mode} == `KT_VC_MODE_D4;
    // A deep group in flight is written more slowly than a shallow one reads.
    wire        slower  = (deep4 && !g_is_d4) || (deep2 && !g_is_d2 && !g_is_d4);
    wire [15:0] g_busy  = slower ? v_busy : v_fresh;
    wire        reg_wait = (g_v[0] && g_busy[g_vr[3:0]]) || (g_v[1] && g_busy[g_vr[7:4]])
                        || (g_v[2] && g_busy[g_vr[11:8]]);
    wire        alu_wait = g_is_d4 ? 1'b0 : g_is_d2 ? hold_d2 : hold_flat;
    wire        expsum  = g_red && g_kind == `KT_VC_RED_EXPSUM;
    wire        g_writes = !g_red || expsum;

    assign g_accept = g_valid && free && move_idle && !reg_wait && !alu_wait;
    assign stall    = g_valid && free && reg_wait;
    assign src_busy = (deep2 || deep4) ? v_busy : v_fresh;
    assign dst_busy = v_busy;

    // ---------------------------------------------------------------- beats
    wire [2:0]  rd;
    wire [6:0]  addr_a, addr_b, addr_c;
    wire [1:0]  x_mode, x_phase;
    wire [4:0]  x_op;
    wire [2:0]  x_v;
    wire [71:0] x_k;
    wire        half, fin, fin_top;
    wire [4:0]  leaf_op, comb_op;
    wire [23:0] ident;

    vc_lanes_issue u_issue (
        .clk      (clk),
        .rst_n    (rst_n),
        .accept   (g_accept),
        .g_op     (g_op),
        .g_mode   (g_mode),
        .g_half   (g_red && g_kind >= `KT_VC_RED_SUMSQ),
        .g_v      (g_v),
        .g_vr     (g_vr),
        .g_k      (g_k),
        .g_n      (g_n),
        .g_writes (g_writes),
        .beat     (beat),
        .first    (first),
        .free     (free),
        .mode     (mode),
        .writes   (writes),
        .rd       (rd),
        .addr_a   (addr_a),
        .addr_b   (addr_b),
        .addr_c   (addr_c),
        .x_mode   (x_mode),
        .x_phase  (x_phase),
        .x_op     (x_op),
        .x_v      (x_v),
        .x_k      (x_k)
    );

    wire        ld1_d2, acc_wr, pre_wb;
    wire [3:1]  ld_d4, table_rd;
    wire [4:1]  ld_tree;

    vc_lanes_time #(.ALAT(ALAT)) u_time (
        .clk       (clk),
        .rst_n     (rst_n),
        .beat      (beat),
        .first     (first),
        .mode      (mode),
        .writes    (writes),
        .fin       (fin),
        .fin_top   (fin_top),
        .x_valid   (x_valid),
        .ld1_d2    (ld1_d2),
        .ld_d4     (ld_d4),
        .table_rd  (table_rd),
        .ld_tree   (ld_tree),
        .acc_wr    (acc_wr),
        .pre_wb    (pre_wb),
        .hold_flat (hold_flat),
        .hold_d2   (hold_d2),
        .deep2     (deep2),
        .deep4     (deep4),
        .empty     (time_empty)
    );

    // -------------------------------------------------------- register file
    reg         st_q;
    reg  [2:0]  st_chunk_q;
    reg  [7:0]  clear_q;
    wire        mv_rd;
    wire [6:0]  mv_addr;
    wire [383:0] ra, rb, rc, y, q_data;
    wire        wb, q_valid;
    wire [15:0] wb_we, q_mask;
    wire [6:0]  wb_addr, q_addr;
    wire [1:0]  wb_mode;
    wire        q_pop = !wb;
    wire [383:0] wb_data;
    wire        clearing = !clear_q[7];

    always @(posedge clk) begin
        if (!rst_n) begin
            st_q    <= 1'b0;
            clear_q <= 8'd0;
        end else begin
            st_q <= st_rd;
            if (clearing) clear_q <= clear_q + 8'd1;
        end
        if (st_rd) st_chunk_q <= st_chunk;
    end

    vc_lanes_file u_file (
        .clk    (clk),
        .rd_a   (rd[0] || st_q || mv_rd),
        .rd_b   (rd[1]),
        .rd_c   (rd[2]),
        .addr_a (st_q ? {w_vd, st_chunk_q} : mv_rd ? mv_addr : addr_a),
        .addr_b (addr_b),
        .addr_c (addr_c),
        .a      (ra),
        .b      (rb),
        .c      (rc),
        .we     (clearing ? 16'hFFFF : wb ? wb_we : q_valid ? q_mask : 16'd0),
        .waddr  (clearing ? clear_q[6:0] : wb ? wb_addr : q_addr),
        .wdata  (clearing ? 384'd0 : wb ? wb_data : q_data)
    );

    assign st_data    = ra;
    assign clear_done = !clearing;

    // ------------------------------------------------------------------ ALUs
    wire [239:0] ctl;
    wire [383:0] acc;

    vc_lanes_chain u_chain (
        .clk   (clk),
        .rst_n (rst_n),
        .we    (t_we),
        .slot  (g_slot),
        .wdata (t_ctl),
        .rd    (table_rd),
        .ctl   (ctl)
    );

    vc_lanes_array #(.ALAT(ALAT)) u_array (
        .clk     (clk),
        .x_valid (x_valid),
        .x_mode  (x_mode),
        .x_phase (x_phase),
        .x_op    (({2'd0, x_mode} == `KT_VC_MODE_TREE) ? leaf_op : x_op),
        .x_v     (x_v),
        .x_k     (x_k),
        .ra      (ra),
        .rb      (rb),
        .rc      (rc),
        .ld1_d2  (ld1_d2),
        .ld_d4   (ld_d4),
        .ctl     (ctl),
        .ld_tree (ld_tree),
        .half    (half),
        .comb_op (comb_op),
        .ident   (ident),
        .fin     (fin),
        .acc     (acc),
        .y       (y)
    );

    vc_lanes_red u_red (
        .clk        (clk),
        .rst_n      (rst_n),
        .start      (g_accept && g_red),
        .kind       (g_kind),
        .n          (g_n),
        .acc_wr     (acc_wr),
        .ld_top     (ld_tree[4]),
        .acc_value  (y[24*15 +: 24]),
        .root_value (y[24*14 +: 24]),
        .half       (half),
        .leaf_op    (leaf_op),
        .comb_op    (comb_op),
        .ident      (ident),
        .fin        (fin),
        .fin_top    (fin_top),
        .acc        (acc),
        .done       (red_done),
        .value      (red_value),
        .idle       (red_idle)
    );

    // ------------------------------------------------------------ write back
    wire        rel_first, rel_last, rel_cmp;
    wire [3:0]  rel_reg;
    wire [15:0] cmp_bits;
    wire [1:0]  mv_pr;
    wire [2:0]  mv_p_chunk;
    wire [15:0] mv_p_bits;

    // Result of lane l: FLAT y[l], D2 the second ALU of its group, D4 the fourth, TREE leaf l mod 8.
    genvar l;
    generate
        for (l = 0; l < 16; l = l + 1) begin : g_result
            wire [23:0] flat = y[24*l +: 24];
            wire [23:0] two  = y[24*(2*(l%8)+1) +: 24];
            wire [23:0] four = y[24*(4*(l%4)+3) +: 24];
            wire [23:0] leaf = y[24*(l%8) +: 24];
            assign wb_data[24*l +: 24] = wb_mode[1] ? (wb_mode[0] ? leaf : four) : wb_mode[0] ? two : flat;
            assign cmp_bits[l] = wb_data[24*l+21];       // a compare gives 1.0 or 0
        end
    endgenerate

    vc_lanes_wb u_wb (
        .clk       (clk),
        .rst_n     (rst_n),
        .push      (g_accept && g_writes),
        .push_mode (g_mode),
        .push_vl   (g_vl),
        .push_n    (g_n),
        .push_vd   (g_vd),
        .push_pr   (g_pr),
        .push_pm   (g_pm),
        .push_cmp  (g_cmp),
        .pre       (pre_wb),
        .first     (rel_first),
        .last      (rel_last),
        .rel_cmp   (rel_cmp),
        .rel_reg   (rel_reg),
        .wb        (wb),
        .wb_we     (wb_we),
        .wb_addr   (wb_addr),
        .wb_mode   (wb_mode),
        .cmp_bits  (cmp_bits),
        .mv_pr     (mv_pr),
        .mv_chunk  (mv_p_chunk),
        .mv_bits   (mv_p_bits),
        .red_pr    (w_pr),
        .red_vl    (w_vl),
        .red_any   (pred_any),
        .red_all   (pred_all)
    );

    vc_lanes_score u_score (
        .clk      (clk),
        .rst_n    (rst_n),
        .set      (g_accept && g_writes),
        .set_pred (g_cmp),
        .set_reg  (g_cmp ? {2'd0, g_pr} : g_vd),
        .first    (rel_first),
        .last     (rel_last),
        .rel_pred (rel_cmp),
        .rel_reg  (rel_reg),
        .v_fresh  (v_fresh),
        .v_busy   (v_busy),
        .p_busy   (pred_busy)
    );

    // -------------------------------------------------------- moves and loads
    vc_lanes_move u_move (
        .clk      (clk),
        .rst_n    (rst_n),
        .start    (mv_start),
        .cvt      (mv_cvt),
        .from_s   (mv_from_s),
        .to_s     (mv_to_s),
        .vd       (w_vd),
        .va       (w_va),
        .rot      (mv_rot),
        .s        (mv_s),
        .pr       (w_pr),
        .pm       (w_pm),
        .chunks   (w_n),
        .vl       (w_vl),
        .rd       (mv_rd),
        .rd_addr  (mv_addr),
        .rd_data  (ra),
        .p_reg    (mv_pr),
        .p_chunk  (mv_p_chunk),
        .p_bits   (mv_p_bits),
        .done     (mv_done),
        .value    (mv_value),
        .clamp    (clamp),
        .ld_valid (ld_valid),
        .ld_chunk (ld_chunk),
        .ld_half  (ld_half),
        .ld_vd    (w_vd),
        .ld_data  (ld_data),
        .w_valid  (q_valid),
        .w_pop    (q_pop),
        .w_mask   (q_mask),
        .w_addr   (q_addr),
        .w_data   (q_data),
        .idle     (move_idle)
    );

    assign read_free = free;
    assign empty     = time_empty && red_idle && move_idle;

endmodule

`default_nettype wire
