// SPDX-License-Identifier: Apache-2.0
// Player for the arithmetic of one accumulator lane: mg_norm, mg_acc_add and mg_to_fp16 side by side.
// Python writes cases_<run_id>.hex, sets run_id and n_cases and raises `go`; the player offers one case per
// cycle with pseudo-random bubbles and writes results_<run_id>.hex, then raises `done`.
//   case:   {norm: anchor 8, sb 8, sa 8, d 24} {add: y 24, x 24} {fp16: four codes of 24}
//   result: four times {7'd0, clamp, half 16}, then {sum 24, block 24}
`default_nettype none

module tb_mg_lane #(
    parameter ACC_MW = 14,
    parameter CASES  = 1 << 20
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        go,
    input  wire [31:0] run_id,
    input  wire [31:0] n_cases,
    output reg         done
);
    localparam W = ACC_MW + 8;

    reg [191:0] cases   [0:CASES-1];
    reg [143:0] results [0:CASES-1];
    reg [31:0]  next_q;
    reg [31:0]  stored_q;
    reg [15:0]  lfsr_q;
    reg [7:0]   valid_q;
    reg         busy_q;
    reg [8*32-1:0] name;

    wire         offer = busy_q && next_q != n_cases && lfsr_q[1:0] != 2'd0;
    wire [191:0] now   = cases[next_q[19:0]];
    wire [W-1:0] block;
    wire [W-1:0] sum;
    wire [95:0]  half;

    mg_norm #(.ACC_MW(ACC_MW)) u_norm (
        .clk(clk), .en({valid_q[2:0], offer}),
        .d(now[162:144]), .sa(now[175:168]), .sb(now[183:176]), .anchor(now[191:184]), .code(block)
    );
    mg_acc_add #(.ACC_MW(ACC_MW)) u_add (
        .clk(clk), .en({valid_q[1:0], offer}), .x(now[96 +: W]), .y(now[120 +: W]), .code(sum)
    );
    genvar n;
    generate
        for (n = 0; n < 4; n = n + 1) begin : g_fp16
            mg_to_fp16 #(.ACC_MW(ACC_MW)) u_fp16 (
                .clk(clk), .en(offer), .code(now[24*n +: W]),
                .half_q(half[24*n +: 16]), .clamp_q(half[24*n+16])
            );
            assign half[24*n+17 +: 7] = 7'd0;
        end
    endgenerate

    // The blocks hold their outputs while nothing moves, so results of the shorter paths are taken when
    // their case leaves them and wait for the longest one.
    reg [23:0] sum4_q;
    reg [95:0] half2_q;
    reg [95:0] half3_q;
    reg [95:0] half4_q;

    always @(posedge clk) begin
        lfsr_q  <= {lfsr_q[14:0], lfsr_q[15] ^ lfsr_q[13] ^ lfsr_q[12] ^ lfsr_q[10]};
        valid_q <= {valid_q[6:0], offer};
        sum4_q  <= {{(24-W){1'b0}}, sum};
        half2_q <= half;
        half3_q <= half2_q;
        half4_q <= half3_q;
        if (valid_q[3]) begin
            results[stored_q[19:0]] <= {half4_q, sum4_q, {(24-W){1'b0}}, block};
            stored_q <= stored_q + 32'd1;
        end
        if (offer) next_q <= next_q + 32'd1;
        if (busy_q && stored_q == n_cases) begin
            $sformat(name, "results_%0d.hex", run_id);
            $writememh(name, results, 0, n_cases - 1);
            busy_q <= 1'b0;
            done   <= 1'b1;
        end
        if (go && !busy_q && !done) begin
            $sformat(name, "cases_%0d.hex", run_id);
            $readmemh(name, cases, 0, n_cases - 1);
            busy_q   <= 1'b1;
            next_q   <= 32'd0;
            stored_q <= 32'd0;
        end
        if (!go) done <= 1'b0;
        if (!rst_n) begin
            busy_q   <= 1'b0;
            done     <= 1'b0;
            valid_q  <= 8'd0;
            lfsr_q   <= 16'hACE1;
        end
    end
endmodule

`default_nettype wire
