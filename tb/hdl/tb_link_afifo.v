// SPDX-License-Identifier: Apache-2.0
// tb_link_afifo: the crossing between a source and a sink that number, check and
// count every flit, and a link checker on both faces.
//
// Flits carry their number in every word. The source goes on counting through
// resets; after one, the sink expects the first number that the write side took
// since (restart), and what lies between is dropped. clear restarts all counts
// and is high while both sides are in reset.
`default_nettype none
`include "ktpu_defs.vh"

module tb_link_afifo #(
    parameter DEPTH = 16
) (
    input  wire [31:0] wr_lo_ps, wr_hi_ps, wr_step_ps,
    input  wire [31:0] rd_lo_ps, rd_hi_ps, rd_step_ps,
    output wire        wr_clk,
    output wire        rd_clk,
    input  wire        wr_rst_n,
    input  wire        rd_rst_n,
    input  wire        clear,
    input  wire        uncertain,       // late arrival at the synchronisers
    input  wire [31:0] seed,

    input  wire [8:0]  src_rate,        // chances of 256 per cycle
    input  wire [8:0]  sink_rate,
    input  wire [31:0] src_limit,       // the source stops after this many
    input  wire [31:0] sink_limit,      // the sink is busy after this many

    output reg  [31:0] sent,
    output reg  [31:0] received,
    output reg  [31:0] lost,
    output reg  [31:0] duplicates,
    output reg  [31:0] out_of_order,
    output reg  [31:0] corrupt,
    output reg  [31:0] restarts,
    output reg  [31:0] wrong_restarts,
    output reg  [31:0] dropped,
    output reg  [31:0] dropped_max,
    output reg  [31:0] wr_blocked,      // wr_clk edges at which the read side's reset had to show
    output reg  [31:0] rd_blocked,
    output reg  [31:0] wr_not_blocked,  // ... and did not
    output reg  [31:0] rd_not_blocked,
    output reg  [31:0] wr_edges,
    output reg  [31:0] rd_edges,
    output reg         hit_full,
    output reg         hit_drained,
    output reg  [31:0] delay_min_ps,    // flit stored to flit taken
    output reg  [31:0] delay_max_ps,
    output wire        in_busy,
    output wire        out_valid
);

    localparam SETTLE = 24;             // edges until a reset must show on the other side

    function [63:0] xorshift(input [63:0] s);
        reg [63:0] t;
        begin
            t = s ^ (s << 13);
            t = t ^ (t >> 7);
            xorshift = t ^ (t << 17);
        end
    endfunction

    function [`KT_FLIT_W-1:0] flit(input [31:0] n);
        flit = {n ^ 32'h9E37_79B9, ~n, n + 32'h7F4A_7C15, {n[15:0], n[31:16]}, n ^ 32'hA5A5_5A5A,
                n * 32'd40503, ~n ^ 32'h0F0F_F0F0, n - 32'h1234_5678, n};
    endfunction

    ramp_clock u_wr_clk (.lo_ps(wr_lo_ps), .hi_ps(wr_hi_ps), .step_ps(wr_step_ps), .clk(wr_clk));
    ramp_clock u_rd_clk (.lo_ps(rd_lo_ps), .hi_ps(rd_hi_ps), .step_ps(rd_step_ps), .clk(rd_clk));

    reg                   in_valid;
    wire [`KT_FLIT_W-1:0] in_data, out_data;
    reg                   out_busy;

    link_afifo #(.DEPTH(DEPTH)) u_dut (
        .wr_clk(wr_clk), .wr_rst_n(wr_rst_n),
        .in_valid(in_valid), .in_data(in_data), .in_busy(in_busy),
        .rd_clk(rd_clk), .rd_rst_n(rd_rst_n),
        .out_valid(out_valid), .out_data(out_data), .out_busy(out_busy));

    // A reset of the other side is a reset of the link for the sending face:
    // only there an offered flit may go.
    wire wr_up = u_dut.wr_live_q;
    wire rd_up = u_dut.rd_live_q;
    wire rd_face = rd_rst_n && rd_up;

`ifndef KT_ICARUS                       // which does not take the checker's SystemVerilog
    link_checker #(.ROLE(0)) u_in_chk (
        .clk(wr_clk), .rst_n(wr_rst_n), .valid(in_valid), .busy(in_busy), .data(in_data));
    link_checker #(.ROLE(0)) u_out_chk (
        .clk(rd_clk), .rst_n(rd_face), .valid(out_valid), .busy(out_busy || !rd_face),
        .data(out_data));
`endif

    // ---- source
    reg  [63:0] src_rng;
    reg         wr_was_up;
    reg  [31:0] restart;                // first number since the last reset
    reg  [5:0]  wr_far_low, rd_far_low; // edges that the other side's reset lasts
    reg  [63:0] stored_ps [0:255];
    reg  [63:0] wr_now_ps, rd_now_ps;
    reg  [31:0] delay_ps;
    wire        push = in_valid && !in_busy && wr_rst_n;
    wire [31:0] sent_d = sent + {31'd0, push};

    assign in_data = in_valid ? flit(sent) : {9{src_rng[31:0]}};

    always @(posedge wr_clk) begin
        wr_now_ps = $realtime * 1000.0;
        src_rng <= xorshift(src_rng);
        wr_was_up <= wr_up;
        if (wr_up && !wr_was_up) restart <= sent;
        if (push) stored_ps[sent[7:0]] <= wr_now_ps;
        sent <= sent_d;
        wr_edges <= wr_edges + 1;
        in_valid <= wr_rst_n && ((in_valid && !push)
                                 || (sent_d < src_limit && {1'b0, src_rng[7:0]} < src_rate));
        if (wr_up && in_busy && wr_rst_n) hit_full <= 1;
        if (hit_full && sent == received) hit_drained <= 1;
        wr_far_low <= rd_rst_n ? 6'd0 : (wr_far_low == SETTLE) ? wr_far_low : wr_far_low + 6'd1;
        if (wr_far_low == SETTLE && !rd_rst_n) begin
            wr_blocked <= wr_blocked + 1;
            if (!in_busy) wr_not_blocked <= wr_not_blocked + 1;
        end
        if (clear) begin
            src_rng <= {seed, 32'h1357_9BDF};
            sent <= 0;
            restart <= 0;
            wr_edges <= 0;
            hit_full <= 0;
            hit_drained <= 0;
            wr_blocked <= 0;
            wr_not_blocked <= 0;
            wr_far_low <= 0;
        end
    end

    // ---- sink
    reg  [63:0] sink_rng;
    reg         fresh;                  // no flit since the last reset
    reg  [31:0] expected;
    wire        take = out_valid && !out_busy && rd_rst_n;
    wire [31:0] number = out_data[31:0];
    wire [31:0] received_d = received + {31'd0, take};

    always @(posedge rd_clk) begin
        rd_now_ps = $realtime * 1000.0;
        delay_ps = rd_now_ps - stored_ps[number[7:0]];
        sink_rng <= xorshift(sink_rng);
        received <= received_d;
        rd_edges <= rd_edges + 1;
        out_busy <= !rd_rst_n || received_d >= sink_limit || {1'b0, sink_rng[7:0]} >= sink_rate;
        if (!rd_up) fresh <= 1;
        if (take) begin
            expected <= number + 1;
            if (out_data != flit(number)) corrupt <= corrupt + 1;
            if (fresh) begin
                fresh <= 0;
                restarts <= restarts + 1;
                dropped <= dropped + (restart - expected);
                if (restart - expected > dropped_max) dropped_max <= restart - expected;
                if (number != restart) wrong_restarts <= wrong_restarts + 1;
            end else if (number > expected) lost <= lost + (number - expected);
            else if (number + 1 == expected) duplicates <= duplicates + 1;
            else if (number != expected) out_of_order <= out_of_order + 1;
            if (delay_ps < delay_min_ps) delay_min_ps <= delay_ps;
            if (delay_ps > delay_max_ps) delay_max_ps <= delay_ps;
        end
        rd_far_low <= wr_rst_n ? 6'd0 : (rd_far_low == SETTLE) ? rd_far_low : rd_far_low + 6'd1;
        if (rd_far_low == SETTLE && !wr_rst_n) begin
            rd_blocked <= rd_blocked + 1;
            if (out_valid) rd_not_blocked <= rd_not_blocked + 1;
        end
        if (clear) begin
            sink_rng <= {~seed, 32'h0246_8ACE};
            fresh <= 1;
            expected <= 0;
            received <= 0;
            rd_edges <= 0;
            lost <= 0;
            duplicates <= 0;
            out_of_order <= 0;
            corrupt <= 0;
            restarts <= 0;
            wrong_restarts <= 0;
            dropped <= 0;
            dropped_max <= 0;
            delay_min_ps <= 32'hFFFF_FFFF;
            delay_max_ps <= 0;
            rd_blocked <= 0;
            rd_not_blocked <= 0;
            rd_far_low <= 0;
        end
    end

endmodule

`default_nettype wire
