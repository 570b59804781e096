// SPDX-License-Identifier: Apache-2.0
// tb_cu_base: the shell between a scripted mesh side and a scripted unit.
//
// Everything that happens every cycle is in Verilog; Python loads flits, sets
// levels and reads the event log (events_<log_id>.log in the working directory)
// that tb/kohakubench/shell_model.py replays. A line is written in every cycle
// with a handshake or with a change of an observed level.
`default_nettype none

module tb_cu_base #(
    parameter POS_X        = 2,
    parameter POS_Y        = 1,
    parameter CU_TYPE      = 16'h4D47,
    parameter CU_VERSION   = 5,
    parameter N_BUFFERS    = 3,
    parameter INST_DEPTH   = 32,
    parameter RECV_DEPTH   = 16,
    parameter MAX_INFLIGHT = 1,
    parameter ACK_FENCE    = 1,
    parameter RD_ERR_FAULT = 1,
    parameter FEATURES     = 8'hA5,
    parameter RECV_TYPES   = 16'h0104
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire [31:0] seed,
    input  wire [15:0] log_id,
    input  wire        log_flush,

    input  wire        play,
    input  wire [15:0] play_count,
    output wire        play_done,

    input  wire [1:0]  out_mode,
    input  wire [7:0]  out_level,
    input  wire [1:0]  inst_mode,
    input  wire [7:0]  inst_level,
    input  wire [1:0]  recv_mode,
    input  wire [7:0]  recv_level,
    input  wire        hold_exec,
    input  wire        spurious,
    input  wire        aux_go,
    input  wire [63:0] dbg_ctr,
    input  wire [7:0]  unit_err,

    input  wire        ack_hold,
    input  wire [15:0] ack_min,
    input  wire [15:0] ack_span,
    input  wire [15:0] credit,         // instructions without completion; 0: no limit

    output wire        busy,
    output wire [15:0] inst_space,
    output wire        in_busy,
    output wire        in_waiting,
    output wire        out_waiting,
    output wire        acks_waiting,
    output reg  [31:0] retired,
    output reg  [31:0] completions,
    output reg  [31:0] accepted,
    output reg  [31:0] out_flits
);
    // ------------------------------------------------------------ mesh side
    wire         p_valid, a_valid, o_stall, i_stall, r_stall;
    wire [287:0] p_data, a_data;
    reg          in_valid_q;
    reg  [287:0] in_q;
    wire         in_slot = !in_valid_q || !in_busy;
    reg  [15:0]  open_q;
    wire         p_inst  = p_data[271:268] == 4'h5;
    wire         p_hold  = p_inst && credit != 16'd0 && open_q >= credit;
    wire         p_move  = p_valid && in_slot && !a_valid && !p_hold;
    wire         sig_move;
    wire         out_valid;
    wire [287:0] out_data;
    wire         out_move = out_valid && !o_stall;

    flit_player u_player (
        .clk (clk), .rst_n (rst_n), .load (play), .count (play_count), .done (play_done),
        .out_valid (p_valid), .out_data (p_data), .out_ready (in_slot && !a_valid && !p_hold)
    );

    ack_memory u_memory (
        .clk (clk), .rst_n (rst_n), .seed (seed), .hold (ack_hold),
        .dly_min (ack_min), .dly_span (ack_span),
        .see_valid (out_move), .see_data (out_data),
        .out_valid (a_valid), .out_data (a_data), .out_ready (in_slot)
    );

    always @(posedge clk) begin
        if (!rst_n) in_valid_q <= 1'b0;
        else if (in_slot) in_valid_q <= a_valid || p_move;
        if (in_slot) in_q <= a_valid ? a_data : p_data;
        if (!rst_n) open_q <= 16'd0;
        else open_q <= open_q + {15'd0, p_move && p_inst} - {15'd0, sig_move};
    end

    stall_gen u_out_stall (
        .clk (clk), .rst_n (rst_n), .seed (seed ^ 32'h1357_9BDF), .mode (out_mode),
        .level (out_level), .stall (o_stall)
    );
    stall_gen u_inst_stall (
        .clk (clk), .rst_n (rst_n), .seed (seed ^ 32'h0246_8ACE), .mode (inst_mode),
        .level (inst_level), .stall (i_stall)
    );
    stall_gen u_recv_stall (
        .clk (clk), .rst_n (rst_n), .seed (seed ^ 32'h7654_3210), .mode (recv_mode),
        .level (recv_level), .stall (r_stall)
    );

    // ------------------------------------------------------- shell and unit
    wire [287:0] inst_flit, send_flit, recv_flit;
    wire         inst_valid, inst_ready, send_valid, send_ready, recv_valid, recv_ready;
    wire         exec_done, exec_fault, exec_cover;
    wire [31:0]  exec_result;

    cu_base #(
        .POS_X (POS_X), .POS_Y (POS_Y), .CU_TYPE (CU_TYPE), .CU_VERSION (CU_VERSION),
        .N_BUFFERS (N_BUFFERS), .INST_DEPTH (INST_DEPTH), .RECV_DEPTH (RECV_DEPTH),
        .MAX_INFLIGHT (MAX_INFLIGHT), .ACK_FENCE (ACK_FENCE), .RD_ERR_FAULT (RD_ERR_FAULT),
        .FEATURES (FEATURES), .RECV_TYPES (RECV_TYPES)
    ) dut (
        .clk (clk), .rst_n (rst_n),
        .noc_in_valid (in_valid_q), .noc_in_data (in_q), .noc_in_busy (in_busy),
        .noc_out_valid (out_valid), .noc_out_data (out_data), .noc_out_busy (o_stall || !rst_n),
        .inst_flit (inst_flit), .inst_valid (inst_valid), .inst_ready (inst_ready),
        .exec_done (exec_done), .exec_fault (exec_fault), .exec_result (exec_result),
        .exec_cover (exec_cover),
        .send_flit (send_flit), .send_valid (send_valid), .send_ready (send_ready),
        .recv_flit (recv_flit), .recv_valid (recv_valid), .recv_ready (recv_ready),
        .dbg_ctr (dbg_ctr), .unit_err (unit_err), .inst_space (inst_space), .busy (busy)
    );

    unit_standin #(
        .POS_X (POS_X), .POS_Y (POS_Y), .MAX_INFLIGHT (MAX_INFLIGHT)
    ) u_unit (
        .clk (clk), .rst_n (rst_n),
        .hold_inst (i_stall || !rst_n), .hold_recv (r_stall), .hold_exec (hold_exec),
        .spurious (spurious), .aux_go (aux_go),
        .inst_flit (inst_flit), .inst_valid (inst_valid), .inst_ready (inst_ready),
        .exec_done (exec_done), .exec_fault (exec_fault), .exec_result (exec_result),
        .exec_cover (exec_cover),
        .send_flit (send_flit), .send_valid (send_valid), .send_ready (send_ready),
        .recv_flit (recv_flit), .recv_valid (recv_valid), .recv_ready (recv_ready),
        .acks_waiting (acks_waiting)
    );

    // ------------------------------------------------------------ event log
    wire in_move   = in_valid_q && !in_busy;
    wire take      = inst_valid && inst_ready;
    wire send_move = send_valid && send_ready;
    wire recv_move = recv_valid && recv_ready;
    wire [5:0]  events = {in_move, take, exec_done, send_move, recv_move, out_move};
    wire [23:0] levels = {inst_valid, recv_valid, send_valid, send_valid && !send_ready,
                          out_valid, out_valid && o_stall, busy, in_busy, inst_space};
    wire [71:0] probes = {unit_err, dbg_ctr};
    wire [7:0]  out_code = out_data[255:248];

    assign sig_move = out_move && out_data[271:268] == 4'h6 && out_code != 8'h03 && out_code < 8'h40;

    reg [23:0]    levels_q;
    reg [71:0]    probes_q;
    reg [31:0]    cycle_q;
    reg [8*40:1]  name;
    integer       file;
    initial file = 0;

    assign in_waiting  = in_valid_q;
    assign out_waiting = out_valid;

    always @(posedge clk) begin
        if (!rst_n) begin
            if (file != 0) $fclose(file);
            file        = 0;
            cycle_q     <= 32'd0;
            retired     <= 32'd0;
            completions <= 32'd0;
            accepted    <= 32'd0;
            out_flits   <= 32'd0;
        end else begin
            if (file == 0) begin
                $sformat(name, "events_%0d.log", log_id);
                file = $fopen(name, "w");
            end
            if (events != 6'd0 || levels != levels_q || probes != probes_q || cycle_q == 32'd0) begin
                $fwrite(file, "%0d %h %h %h %h", cycle_q, events, levels, probes,
                        {exec_cover, exec_fault, exec_result});
                if (in_move) $fwrite(file, " %h", in_q);
                if (take) $fwrite(file, " %h", inst_flit);
                if (send_move) $fwrite(file, " %h", send_flit);
                if (recv_move) $fwrite(file, " %h", recv_flit);
                if (out_move) $fwrite(file, " %h", out_data);
                $fwrite(file, "\n");
            end
            if (log_flush) begin
                $fwrite(file, "%0d end\n", cycle_q);
                $fflush(file);
            end
            levels_q <= levels;
            probes_q <= probes;
            cycle_q  <= cycle_q + 32'd1;
            if (exec_done) retired <= retired + 32'd1;
            if (take) accepted <= accepted + 32'd1;
            if (out_move) out_flits <= out_flits + 32'd1;
            if (sig_move) completions <= completions + 32'd1;
        end
    end
endmodule

`default_nettype wire
