// SPDX-License-Identifier: Apache-2.0
// vc_lanes_wb: the write end of the arithmetic: destination, chunk and lane
// mask of every beat, and the predicate registers (docs/spec/vector.md 7.1, 7.2,
// 13.1).
//
// Groups wait here in issue order; `pre` (a beat is written in the next cycle)
// takes the next beat of the oldest. Tail and predicate masks apply at the
// write, so a group sees every compare before it without waiting.
`default_nettype none
`include "ktpu_defs.vh"

module vc_lanes_wb (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         push,
    input  wire [1:0]   push_mode,      // TREE: two beats a chunk, from the leaves
    input  wire [7:0]   push_vl,
    input  wire [3:0]   push_n,
    input  wire [3:0]   push_vd,
    input  wire [1:0]   push_pr,
    input  wire [1:0]   push_pm,
    input  wire         push_cmp,

    input  wire         pre,
    output wire         first,          // with pre
    output wire         last,           // with pre
    output wire         rel_cmp,
    output wire [3:0]   rel_reg,

    output wire         wb,             // this cycle
    output wire [15:0]  wb_we,          // vector lanes
    output wire [6:0]   wb_addr,
    output wire [1:0]   wb_mode,
    input  wire [15:0]  cmp_bits,       // results as predicate bits, by lane

    // predicates, read
    input  wire [1:0]   mv_pr,
    input  wire [2:0]   mv_chunk,
    output wire [15:0]  mv_bits,
    input  wire [1:0]   red_pr,
    input  wire [7:0]   red_vl,
    output wire         red_any,
    output wire         red_all
);

    // ------------------------------------------------------ groups in flight
    wire        head_valid_unused, ready_unused;
    wire [5:0]  level_unused;
    wire [1:0]  h_mode, h_pr, h_pm;
    wire [7:0]  h_vl;
    wire [3:0]  h_n, h_vd;
    wire        h_cmp;

    fifo_sync #(.WIDTH(23), .DEPTH(32)) u_groups (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (push),
        .in_ready  (ready_unused),
        .in_data   ({push_mode, push_vl, push_n, push_vd, push_pr, push_pm, push_cmp}),
        .out_valid (head_valid_unused),
        .out_ready (first),
        .out_data  ({h_mode, h_vl, h_n, h_vd, h_pr, h_pm, h_cmp}),
        .level     (level_unused)
    );

    reg         inside_q;               // further beats of the group belong to it
    reg         wb_q;
    reg  [1:0]  mode_q, pr_q, pm_q, phase_q;
    reg  [7:0]  vl_q;
    reg  [3:0]  n_q, vd_q;
    reg         cmp_q;
    reg  [2:0]  chunk_q;

    assign first = pre && !inside_q;

    wire [1:0] mode    = inside_q ? mode_q : h_mode;
    wire [3:0] n       = inside_q ? n_q : h_n;
    wire [1:0] top     = ({2'd0, mode} == `KT_VC_MODE_FLAT) ? 2'd0 : ({2'd0, mode} == `KT_VC_MODE_D4) ? 2'd3 : 2'd1;
    wire       wrap    = phase_q == top;
    wire [1:0] phase   = (!inside_q || wrap) ? 2'd0 : phase_q + 2'd1;
    wire [2:0] chunk   = !inside_q ? 3'd0 : chunk_q + {2'd0, wrap};
    wire       at_end  = phase == top && {1'b0, chunk} + 4'd1 == n;

    assign last    = pre && at_end;
    assign rel_cmp = inside_q ? cmp_q : h_cmp;
    assign rel_reg = rel_cmp ? {2'd0, inside_q ? pr_q : h_pr} : inside_q ? vd_q : h_vd;

    always @(posedge clk) begin
        if (!rst_n) begin
            inside_q <= 1'b0;
            wb_q     <= 1'b0;
        end else begin
            wb_q <= pre;
            if (pre) inside_q <= !at_end;
        end
        if (first) begin
            mode_q <= h_mode;
            vl_q   <= h_vl;
            n_q    <= h_n;
            vd_q   <= h_vd;
            pr_q   <= h_pr;
            pm_q   <= h_pm;
            cmp_q  <= h_cmp;
        end
        if (pre) begin
            chunk_q <= chunk;
            phase_q <= phase;
        end
    end

    // ------------------------------------------------------------------ masks
    reg  [127:0] p0_q, p1_q, p2_q, p3_q;

    function [15:0] below;              // lanes 0..n-1
        input [3:0] n_lanes;
        below = ~(16'hFFFF << n_lanes);
    endfunction

    wire [127:0] wb_pred = pr_q[1] ? (pr_q[0] ? p3_q : p2_q) : (pr_q[0] ? p1_q : p0_q);
    wire [127:0] mv_pred = mv_pr[1] ? (mv_pr[0] ? p3_q : p2_q) : (mv_pr[0] ? p1_q : p0_q);
    wire [15:0]  pbits   = wb_pred[16*chunk_q +: 16];
    assign       mv_bits = mv_pred[16*mv_chunk +: 16];

    wire [15:0]  tail    = ({1'b0, chunk_q} < vl_q[7:4]) ? 16'hFFFF : below(vl_q[3:0]);
    wire [15:0]  allowed = (pm_q == `KT_VC_PM_SET) ? pbits : (pm_q == `KT_VC_PM_CLEAR) ? ~pbits : 16'hFFFF;
    wire [15:0]  here    = ({2'd0, mode_q} == `KT_VC_MODE_FLAT) ? 16'hFFFF
                         : ({2'd0, mode_q} == `KT_VC_MODE_D4) ? 16'h000F << {phase_q, 2'd0}
                         : phase_q[0] ? 16'hFF00 : 16'h00FF;
    wire [15:0]  lanes   = tail & here;

    assign wb      = wb_q;
    assign wb_we   = (wb_q && !cmp_q) ? lanes & allowed : 16'd0;
    assign wb_addr = {vd_q, chunk_q};
    assign wb_mode = mode_q;

    wire [15:0]  p_new = (pbits & ~lanes) | (cmp_bits & lanes);
    wire         p_we  = wb_q && cmp_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            p0_q <= 128'd0;
            p1_q <= 128'd0;
            p2_q <= 128'd0;
            p3_q <= 128'd0;
        end else if (p_we) begin
            case (pr_q)
                2'd0:    p0_q[16*chunk_q +: 16] <= p_new;
                2'd1:    p1_q[16*chunk_q +: 16] <= p_new;
                2'd2:    p2_q[16*chunk_q +: 16] <= p_new;
                default: p3_q[16*chunk_q +: 16] <= p_new;
            endcase
        end
    end

    // ------------------------------------------------------------ ANY and ALL
    wire [127:0] in_vl  = ~({128{1'b1}} << red_vl);
    wire [127:0] red_p   = red_pr[1] ? (red_pr[0] ? p3_q : p2_q) : (red_pr[0] ? p1_q : p0_q);
    assign red_any = |(red_p & in_vl);
    assign red_all = &(red_p | ~in_vl);

endmodule

`default_nettype wire
