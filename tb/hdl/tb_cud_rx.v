// SPDX-License-Identifier: Apache-2.0
// tb_cud_rx: burst reception between a flit player and a unit with three buffers.
//
// The unit answers descriptors like the cluster (docs/spec/cluster.md 8.2): buffer 0
// holds CAP0 granules, buffer 1 the full 65,536, buffer 2 CAP2 with the rules of the
// accumulator. A line of the log (events_<log_id>.log) is written in every cycle in
// which something is offered, raised or changed.
`default_nettype none

`include "ktpu_defs.vh"

module tb_cud_rx #(
    parameter POS_X      = 3,
    parameter POS_Y      = 2,
    parameter ACKQ_DEPTH = 16,
    parameter CAP0       = 512,
    parameter CAP2       = 64
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire [31:0] seed,
    input  wire [15:0] log_id,
    input  wire        log_flush,
    input  wire        play,
    input  wire [15:0] play_count,
    output wire        play_done,
    input  wire [1:0]  wr_mode,
    input  wire [7:0]  wr_level,
    input  wire [1:0]  sig_mode,
    input  wire [7:0]  sig_level,
    input  wire [1:0]  abort_mode,
    input  wire [7:0]  abort_level,
    input  wire        not_ready,
    output wire        open,
    output reg  [31:0] stored,
    output reg  [31:0] signals,
    output reg  [31:0] taken
);
    wire         p_valid, in_ready, w_stall, s_stall, abort_now;
    wire [287:0] p_data;
    wire         is_burst = p_data[`KT_FLIT_TYPE] == `KT_TYPE_CU_DATA;
    wire         in_valid = p_valid && is_burst;

    flit_player u_player (
        .clk (clk), .rst_n (rst_n), .load (play), .count (play_count), .done (play_done),
        .out_valid (p_valid), .out_data (p_data), .out_ready (!is_burst || in_ready)
    );
    stall_gen u_wr_stall (
        .clk (clk), .rst_n (rst_n), .seed (seed ^ 32'h1122_3344), .mode (wr_mode),
        .level (wr_level), .stall (w_stall)
    );
    stall_gen u_sig_stall (
        .clk (clk), .rst_n (rst_n), .seed (seed ^ 32'h5566_7788), .mode (sig_mode),
        .level (sig_level), .stall (s_stall)
    );
    stall_gen u_abort (
        .clk (clk), .rst_n (rst_n), .seed (seed ^ 32'h99AA_BBCC), .mode (abort_mode),
        .level (abort_level), .stall (abort_now)
    );

    // ---------------------------------------------------------------- unit
    wire         desc_valid, wr_valid, wr_last, sig_valid, burst_end;
    wire [7:0]   desc_buf, desc_len, wr_buf;
    wire [15:0]  desc_off, wr_granule;
    wire [255:0] wr_data;
    wire [287:0] sig_flit;
    wire [1:0]   err;
    wire [16:0]  desc_end = {1'b0, desc_off} + {9'd0, desc_len};
    wire [16:0]  capacity = (desc_buf == 8'd0) ? CAP0[16:0] : (desc_buf == 8'd1) ? 17'd65536 : CAP2[16:0];
    reg  [2:0]   reason;

    always @* begin
        reason = 3'd0;
        if (desc_buf > 8'd2) reason = 3'd1;
        else if (desc_end >= capacity) reason = 3'd2;
        else if (desc_buf == 8'd2 && (desc_off[0] || !desc_len[0])) reason = 3'd3;
        else if (desc_buf == 8'd2 && not_ready) reason = 3'd6;
    end

    cud_rx #(
        .POS_X (POS_X), .POS_Y (POS_Y), .ACKQ_DEPTH (ACKQ_DEPTH)
    ) dut (
        .clk (clk), .rst_n (rst_n),
        .in_flit (p_data), .in_valid (in_valid), .in_ready (in_ready),
        .desc_valid (desc_valid), .desc_buf (desc_buf), .desc_off (desc_off), .desc_len (desc_len),
        .desc_reason (reason),
        .wr_valid (wr_valid), .wr_ready (!w_stall), .wr_buf (wr_buf), .wr_granule (wr_granule),
        .wr_data (wr_data), .wr_last (wr_last),
        .sig_valid (sig_valid), .sig_ready (!s_stall), .sig_flit (sig_flit),
        .abort (abort_now), .open (open), .burst_end (burst_end), .err (err)
    );

    // ----------------------------------------------------------- event log
    wire [13:0] levels = {in_valid, in_valid && in_ready, desc_valid, wr_valid, !w_stall,
                          wr_valid && wr_last, sig_valid, !s_stall, open, burst_end, err,
                          abort_now, not_ready};
    reg           open_q;
    reg [31:0]    cycle_q;
    reg [8*40:1]  name;
    integer       file;
    initial file = 0;

    always @(posedge clk) begin
        if (!rst_n) begin
            if (file != 0) $fclose(file);
            file     = 0;
            cycle_q <= 32'd0;
            stored  <= 32'd0;
            signals <= 32'd0;
            taken   <= 32'd0;
            open_q  <= 1'b0;
        end else begin
            if (file == 0) begin
                $sformat(name, "events_%0d.log", log_id);
                file = $fopen(name, "w");
            end
            if (in_valid || sig_valid || abort_now || burst_end || err != 2'd0 || wr_valid || desc_valid
                || open != open_q)
                $fwrite(file, "%0d %h %h %h %h %h %h\n", cycle_q, levels, in_valid ? p_data : 288'd0,
                        wr_valid ? {wr_buf, wr_granule} : 24'd0, wr_valid ? wr_data : 256'd0,
                        desc_valid ? {desc_buf, desc_off, desc_len} : 32'd0,
                        sig_valid ? sig_flit : 288'd0);
            if (log_flush) $fflush(file);
            open_q  <= open;
            cycle_q <= cycle_q + 32'd1;
            if (wr_valid && !w_stall) stored <= stored + 32'd1;
            if (sig_valid && !s_stall) signals <= signals + 32'd1;
            if (in_valid && in_ready) taken <= taken + 32'd1;
        end
    end
endmodule

`default_nettype wire
