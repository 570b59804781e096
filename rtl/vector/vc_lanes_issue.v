// SPDX-License-Identifier: Apache-2.0
// vc_lanes_issue: turns the accepted group into beats, one a cycle without a
// gap (docs/spec/vector.md 13.1).
//
// A group can be accepted in the cycle of the last beat of the one before. Every
// phase reads its chunk again, because a group in step with the writer of its
// operand finds only the lanes of that phase written. The x_* outputs accompany
// the data the cycle after the beat.
`default_nettype none
`include "ktpu_defs.vh"

module vc_lanes_issue (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         accept,
    input  wire [4:0]   g_op,
    input  wire [1:0]   g_mode,
    input  wire         g_half,         // reduction with two beats a chunk
    input  wire [2:0]   g_v,
    input  wire [11:0]  g_vr,
    input  wire [71:0]  g_k,
    input  wire [3:0]   g_n,
    input  wire         g_writes,

    output wire         beat,
    output wire         first,
    output wire         free,           // idle, or this is the last beat
    output wire [1:0]   mode,
    output wire         writes,
    output wire [2:0]   rd,             // {c, b, a}
    output wire [6:0]   addr_a,
    output wire [6:0]   addr_b,
    output wire [6:0]   addr_c,

    output wire [1:0]   x_mode,
    output wire [1:0]   x_phase,
    output wire [4:0]   x_op,
    output wire [2:0]   x_v,
    output wire [71:0]  x_k
);

    reg         beat_q, first_q, writes_q;
    reg  [4:0]  op_q, x_op_q;
    reg  [1:0]  mode_q, x_mode_q, top_q, phase_q, x_phase_q;
    reg  [2:0]  v_q, x_v_q, chunk_q;
    reg  [11:0] vr_q;
    reg  [71:0] k_q, x_k_q;
    reg  [3:0]  n_q;

    wire wrap = phase_q == top_q;
    wire last = wrap && {1'b0, chunk_q} + 4'd1 == n_q;

    always @(posedge clk) begin
        if (!rst_n) beat_q <= 1'b0;
        else if (accept) beat_q <= 1'b1;
        else if (last) beat_q <= 1'b0;
        if (accept) begin
            first_q  <= 1'b1;
            op_q     <= g_op;
            mode_q   <= g_mode;
            v_q      <= g_v;
            vr_q     <= g_vr;
            k_q      <= g_k;
            n_q      <= g_n;
            writes_q <= g_writes;
            top_q    <= ({2'd0, g_mode} == `KT_VC_MODE_D4) ? 2'd3 : {1'b0, {2'd0, g_mode} == `KT_VC_MODE_D2 || g_half};
            chunk_q  <= 3'd0;
            phase_q  <= 2'd0;
        end else if (beat_q) begin
            first_q  <= 1'b0;
            phase_q  <= wrap ? 2'd0 : phase_q + 2'd1;
            chunk_q  <= chunk_q + {2'd0, wrap};
        end
        if (beat_q) x_phase_q <= phase_q;
        if (beat_q && first_q) begin
            x_op_q   <= op_q;
            x_mode_q <= mode_q;
            x_v_q    <= v_q;
            x_k_q    <= k_q;
        end
    end

    assign beat    = beat_q;
    assign first   = first_q;
    assign free    = !beat_q || last;
    assign mode    = mode_q;
    assign writes  = writes_q;
    assign rd      = beat_q ? v_q : 3'd0;
    assign addr_a  = {vr_q[3:0], chunk_q};
    assign addr_b  = {vr_q[7:4], chunk_q};
    assign addr_c  = {vr_q[11:8], chunk_q};
    assign x_mode  = x_mode_q;
    assign x_phase = x_phase_q;
    assign x_op    = x_op_q;
    assign x_v     = x_v_q;
    assign x_k     = x_k_q;

endmodule

`default_nettype wire
