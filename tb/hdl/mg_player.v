// SPDX-License-Identifier: Apache-2.0
// Stimulus player and result recorder around mg_datapath; talks to Python through memory files only.
// `go` loads a_/b_/p_/iss_/x_<run_id>.hex and plays both command lists; `done` after everything has left
// and emit_/send_/sum_/time_<run_id>.hex are written.
//   operand pools a, b: 928 bits an entry; peers p: sixteen codes of 24 bits
//   iss: {8'd0, phase 8, gap 8, b 12, a 12, flags 8 (load, emit, bank), addr 16, anchor 8} bits [79:0]
//   x:   {phase 8, gap 8, peer 16, flags 8 (op 2, bank), addr 16} bits [55:0]
//   emit: {clamp 8, addr 16, data 256}  send: {addr 16, sixteen codes of 24}  sum: 304 bits  time: 32 bits
// A list waits before a record of a later phase until both lists have reached it and nothing is in flight.
// `gap` is the number of idle cycles before a record. time[n] is the cycle of issue n, then of x command n.
`default_nettype none

module mg_player #(
    parameter TILES      = 512,
    parameter ACC_MW     = 14,
    parameter TILE_LAT   = 2,
    parameter TILE_BANKS = 2,
    parameter MODEL      = 1,
    parameter RECORDS    = 1 << 16
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        go,
    input  wire [31:0] run_id,
    input  wire [31:0] n_pool,
    input  wire [31:0] n_peer,
    input  wire [31:0] n_iss,
    input  wire [31:0] n_x,
    output reg         done,
    output reg  [31:0] n_emit,
    output reg  [31:0] n_send,
    output reg  [31:0] n_sum,
    output reg  [31:0] twin_diff,
    output wire        inflight,
    output wire        arr_inflight
);
    localparam AW = $clog2(TILES);
    localparam W  = ACC_MW + 8;
    localparam RW = $clog2(RECORDS);

    reg [927:0] pool_a [0:4095];
    reg [927:0] pool_b [0:4095];
    reg [383:0] pool_p [0:4095];
    reg [79:0]  iss    [0:RECORDS-1];
    reg [55:0]  xs     [0:RECORDS-1];
    reg [279:0] emits  [0:RECORDS-1];
    reg [399:0] sends  [0:RECORDS-1];
    reg [303:0] sums   [0:RECORDS-1];
    reg [31:0]  times  [0:2*RECORDS-1];

    reg [31:0]  cycle_q;
    reg         busy_q;
    reg [7:0]   phase_q;
    reg [31:0]  iss_next_q;
    reg [31:0]  x_next_q;
    reg [7:0]   iss_gap_q;
    reg [7:0]   x_gap_q;
    reg [31:0]  x_taken_q;
    reg [7:0]   quiet_q;
    reg [8*32-1:0] name;

    reg         iss_valid;
    reg [927:0] iss_a;
    reg [927:0] iss_b;
    reg [26:0]  iss_cmd;                                   // {load, emit, bank, addr 16, anchor 8}
    reg         x_valid;
    reg [18:0]  x_cmd;                                     // {op, bank, addr 16}
    reg [383:0] x_peer24;

    wire          x_ready;
    wire          emit_valid;
    wire [AW-1:0] emit_addr;
    wire [255:0]  emit_data;
    wire          emit_clamp;
    wire          send_valid;
    wire [AW-1:0] send_addr;
    wire [16*W-1:0] send_data;
    wire [16*W-1:0] x_peer;
    wire [383:0]  send24;

    genvar g;
    generate
        for (g = 0; g < 16; g = g + 1) begin : g_code
            assign x_peer[W*g +: W]  = x_peer24[24*g +: W];
            assign send24[24*g +: 24] = {{(24-W){1'b0}}, send_data[W*g +: W]};
        end
    endgenerate

    mg_datapath #(
        .TILES(TILES), .ACC_MW(ACC_MW), .TILE_LAT(TILE_LAT), .TILE_BANKS(TILE_BANKS), .MODEL(MODEL)
    ) dut (
        .clk(clk), .rst_n(rst_n),
        .iss_valid(iss_valid), .iss_a(iss_a), .iss_b(iss_b),
        .iss_load(iss_cmd[26]), .iss_emit(iss_cmd[25]), .iss_bank(iss_cmd[24]),
        .iss_addr(iss_cmd[8 +: AW]), .iss_anchor(iss_cmd[7:0]),
        .x_valid(x_valid), .x_op(x_cmd[18:17]), .x_bank(x_cmd[16]), .x_addr(x_cmd[AW-1:0]),
        .x_peer(x_peer), .x_ready(x_ready),
        .emit_valid(emit_valid), .emit_addr(emit_addr), .emit_data(emit_data), .emit_clamp(emit_clamp),
        .send_valid(send_valid), .send_addr(send_addr), .send_data(send_data),
        .inflight(inflight), .arr_inflight(arr_inflight)
    );

    // The other form of the array runs beside the packed one and must agree cycle by cycle.
    generate
        if (MODEL == 0) begin : g_twin
            wire         pre;
            wire         valid;
            wire [303:0] sum;
            mg_array #(.MODEL(1)) u_twin (
                .clk(clk), .rst_n(rst_n), .in_valid(iss_valid),
                .in_a(iss_a[895:0]), .in_b(iss_b[895:0]),
                .pre_valid(pre), .out_valid(valid), .out_d(sum)
            );
            always @(posedge clk) begin
                if (!rst_n) twin_diff <= 32'd0;
                else if (pre != dut.sums_pre || valid != dut.sums_valid || (valid && sum != dut.sums))
                    twin_diff <= twin_diff + 32'd1;
            end
        end else begin : g_no_twin
            always @(posedge clk) twin_diff <= 32'd0;
        end
    endgenerate

    wire [79:0] iss_rec   = iss[iss_next_q[RW-1:0]];
    wire [55:0] x_rec     = xs[x_next_q[RW-1:0]];
    wire        iss_left  = iss_next_q != n_iss;
    wire        x_left    = x_next_q != n_x;
    wire        iss_ahead = !iss_left || iss_rec[71:64] != phase_q;
    wire        x_ahead   = !x_left || x_rec[55:48] != phase_q;
    wire        drained   = !iss_valid && !x_valid && !inflight;

    always @(posedge clk) begin
        cycle_q   <= cycle_q + 32'd1;
        quiet_q   <= drained ? quiet_q + 8'd1 : 8'd0;

        if (iss_valid) begin
            iss_valid <= 1'b0;
            iss_cmd   <= 27'h5A5A5A5;                      // an idle port carries junk, never stale data
        end
        if (busy_q && !iss_ahead) begin
            if (iss_gap_q != iss_rec[63:56]) iss_gap_q <= iss_gap_q + 8'd1;
            else begin
                iss_gap_q  <= 8'd0;
                iss_valid  <= 1'b1;
                iss_a      <= pool_a[iss_rec[43:32]];
                iss_b      <= pool_b[iss_rec[55:44]];
                iss_cmd    <= {iss_rec[24], iss_rec[25], iss_rec[26], iss_rec[23:0]};
                iss_next_q <= iss_next_q + 32'd1;
                times[iss_next_q[RW:0]] <= cycle_q + 32'd1;
            end
        end

        if (x_valid && x_ready) begin
            times[n_iss[RW:0] + x_taken_q[RW:0]] <= cycle_q;
            x_taken_q <= x_taken_q + 32'd1;
            x_valid   <= 1'b0;
        end
        if (busy_q && !x_ahead && (!x_valid || x_ready)) begin
            if (x_gap_q != x_rec[47:40]) x_gap_q <= x_gap_q + 8'd1;
            else begin
                x_gap_q  <= 8'd0;
                x_valid  <= 1'b1;
                x_cmd    <= {x_rec[17:16], x_rec[18], x_rec[15:0]};
                x_peer24 <= pool_p[x_rec[35:24]];
                x_next_q <= x_next_q + 32'd1;
            end
        end

        if (emit_valid) begin
            emits[n_emit[RW-1:0]] <= {7'd0, emit_clamp, {(16-AW){1'b0}}, emit_addr, emit_data};
            n_emit <= n_emit + 32'd1;
        end
        if (send_valid) begin
            sends[n_send[RW-1:0]] <= {{(16-AW){1'b0}}, send_addr, send24};
            n_send <= n_send + 32'd1;
        end
        if (dut.sums_valid) begin
            sums[n_sum[RW-1:0]] <= dut.sums;
            n_sum <= n_sum + 32'd1;
        end

        if (busy_q && iss_ahead && x_ahead && drained && quiet_q > 8'd3) begin
            if (iss_left || x_left) begin
                phase_q <= phase_q + 8'd1;
                quiet_q <= 8'd0;
            end else begin
                busy_q <= 1'b0;
                done   <= 1'b1;
                $sformat(name, "emit_%0d.hex", run_id);
                if (n_emit != 0) $writememh(name, emits, 0, n_emit - 1);
                $sformat(name, "send_%0d.hex", run_id);
                if (n_send != 0) $writememh(name, sends, 0, n_send - 1);
                $sformat(name, "sum_%0d.hex", run_id);
                if (n_sum != 0) $writememh(name, sums, 0, n_sum - 1);
                $sformat(name, "time_%0d.hex", run_id);
                $writememh(name, times, 0, n_iss + n_x - 1);
            end
        end

        if (go && !busy_q && !done) begin
            $sformat(name, "a_%0d.hex", run_id);
            if (n_pool != 0) $readmemh(name, pool_a, 0, n_pool - 1);
            $sformat(name, "b_%0d.hex", run_id);
            if (n_pool != 0) $readmemh(name, pool_b, 0, n_pool - 1);
            $sformat(name, "p_%0d.hex", run_id);
            if (n_peer != 0) $readmemh(name, pool_p, 0, n_peer - 1);
            $sformat(name, "iss_%0d.hex", run_id);
            if (n_iss != 0) $readmemh(name, iss, 0, n_iss - 1);
            $sformat(name, "x_%0d.hex", run_id);
            if (n_x != 0) $readmemh(name, xs, 0, n_x - 1);
            busy_q     <= 1'b1;
            phase_q    <= 8'd0;
            iss_next_q <= 32'd0;
            x_next_q   <= 32'd0;
            x_taken_q  <= 32'd0;
            iss_gap_q  <= 8'd0;
            x_gap_q    <= 8'd0;
            n_emit     <= 32'd0;
            n_send     <= 32'd0;
            n_sum      <= 32'd0;
        end
        if (!go) done <= 1'b0;

        if (!rst_n) begin
            cycle_q   <= 32'd0;
            busy_q    <= 1'b0;
            done      <= 1'b0;
            iss_valid <= 1'b0;
            x_valid   <= 1'b0;
            quiet_q   <= 8'd0;
            n_emit    <= 32'd0;
            n_send    <= 32'd0;
            n_sum     <= 32'd0;
        end
    end
endmodule

`default_nettype wire
