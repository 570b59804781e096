// SPDX-License-Identifier: Apache-2.0
// vc_lanes_move: VCVT, VSHUF and VBCAST, and the queue through which moved and
// loaded chunks reach the register file (docs/spec/vector.md 7.5, 12.5).
//
// Arithmetic owns the write port of the registers in the cycles its beats end;
// what moves or is loaded waits in the queue for a free one.
// Latency    start -> first write four cycles, then one chunk a cycle.
// A load delivers at most sixteen half chunks, and only while nothing moves, so the
// queue never overflows.
`default_nettype none
`include "ktpu_defs.vh"

module vc_lanes_move (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         start,
    input  wire         cvt,            // through FP16
    input  wire         from_s,
    input  wire         to_s,
    input  wire [3:0]   vd,
    input  wire [3:0]   va,
    input  wire [3:0]   rot,
    input  wire [23:0]  s,
    input  wire [1:0]   pr,
    input  wire [1:0]   pm,
    input  wire [3:0]   chunks,
    input  wire [7:0]   vl,

    output wire         rd,
    output wire [6:0]   rd_addr,
    input  wire [383:0] rd_data,        // the cycle after rd
    output wire [1:0]   p_reg,
    output wire [2:0]   p_chunk,
    input  wire [15:0]  p_bits,

    output wire         done,           // element 0 is on `value`
    output wire [23:0]  value,
    output wire         clamp,

    input  wire         ld_valid,
    input  wire [2:0]   ld_chunk,
    input  wire [1:0]   ld_half,        // lanes 0..7, 8..15
    input  wire [3:0]   ld_vd,
    input  wire [383:0] ld_data,

    output wire         w_valid,
    input  wire         w_pop,
    output wire [15:0]  w_mask,
    output wire [6:0]   w_addr,
    output wire [383:0] w_data,
    output wire         idle
);

    reg          act_q, have_q, out_q;
    reg          cvt_q, from_s_q, to_s_q;
    reg  [3:0]   vd_q, va_q, rot_q, n_q;
    reg  [23:0]  s_q;
    reg  [1:0]   pr_q, pm_q;
    reg  [7:0]   vl_q;
    reg  [2:0]   chunk_q, have_chunk_q, out_chunk_q;
    reg  [15:0]  out_mask_q;
    reg  [383:0] out_data_q;

    wire         last = to_s_q || {1'b0, chunk_q} + 4'd1 == n_q;
    assign rd      = act_q && !from_s_q;
    assign rd_addr = {va_q, chunk_q};
    assign p_reg   = pr_q;
    assign p_chunk = have_chunk_q;
    assign done    = have_q && to_s_q;
    assign value   = rd_data[23:0];

    // Element i of the result is element i + rot of the chunk.
    wire [743:0] twice = {rd_data[359:0], rd_data};
    wire [551:0] rot8  = rot_q[3] ? twice[743:192] : twice[551:0];
    wire [455:0] rot4  = rot_q[2] ? rot8[551:96] : rot8[455:0];
    wire [407:0] rot2  = rot_q[1] ? rot4[455:48] : rot4[407:0];
    wire [383:0] rot1  = rot_q[0] ? rot2[407:24] : rot2[383:0];
    wire [383:0] rounded;
    wire [15:0]  clamped;

    genvar i;
    generate
        for (i = 0; i < 16; i = i + 1) begin : g_lane
            wire [15:0] half;
            vc_e8_to_f16 u_half (.code(rd_data[24*i +: 24]), .half(half), .clamped(clamped[i]));
            vc_f16_to_e8 u_back (.half(half), .code(rounded[24*i +: 24]));
        end
    endgenerate

    wire [15:0]  below = ~(16'hFFFF << vl_q[3:0]);
    wire [15:0]  live  = ({1'b0, have_chunk_q} < vl_q[7:4]) ? 16'hFFFF : below;
    assign clamp = have_q && cvt_q && |(clamped & live);

    always @(posedge clk) begin
        if (!rst_n) begin
            act_q  <= 1'b0;
            have_q <= 1'b0;
            out_q  <= 1'b0;
        end else begin
            if (start) act_q <= 1'b1;
            else if (last) act_q <= 1'b0;
            have_q <= act_q;
            out_q  <= have_q && !to_s_q;
        end
        if (start) begin
            cvt_q    <= cvt;
            from_s_q <= from_s;
            to_s_q   <= to_s;
            vd_q     <= vd;
            va_q     <= va;
            rot_q    <= rot;
            s_q      <= s;
            pr_q     <= pr;
            pm_q     <= pm;
            n_q      <= chunks;
            vl_q     <= vl;
            chunk_q  <= 3'd0;
        end else if (act_q) begin
            chunk_q <= chunk_q + 3'd1;
        end
        if (act_q) have_chunk_q <= chunk_q;
        if (have_q) begin
            out_chunk_q <= have_chunk_q;
            out_mask_q  <= (pm_q == `KT_VC_PM_SET) ? p_bits : (pm_q == `KT_VC_PM_CLEAR) ? ~p_bits : 16'hFFFF;
            out_data_q  <= from_s_q ? {16{s_q}} : cvt_q ? rounded : rot1;
        end
    end

    wire         ready_unused;
    wire [4:0]   level;
    fifo_sync #(.WIDTH(407), .DEPTH(16)) u_queue (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (out_q || ld_valid),
        .in_ready  (ready_unused),
        .in_data   (ld_valid ? {{8{ld_half[1]}}, {8{ld_half[0]}}, ld_vd, ld_chunk, ld_data} : {out_mask_q, vd_q, out_chunk_q, out_data_q}),
        .out_valid (w_valid),
        .out_ready (w_pop),
        .out_data  ({w_mask, w_addr, w_data}),
        .level     (level)
    );

    assign idle = !act_q && !have_q && !out_q && level == 5'd0;

endmodule

`default_nettype wire
