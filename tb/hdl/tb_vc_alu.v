// SPDX-License-Identifier: Apache-2.0
// Player for the arithmetic of one vector lane: vc_alu, the four conversions and the seed table.
// Python writes cases_<run_id>.hex, sets run_id, n_cases and the options, and raises `go`; the player offers one
// case per cycle (with pseudo-random gaps if `gaps`), writes results_<run_id>.hex and raises `done`.
//   case     {op 8, c 24, b 24, a 24}; with `counting` no file is read: a = base + index, b = c = index, op = 0
//   result   `convert` = 0: {y 24}
//            `convert` = 1: {row b[7:0] of the table: c2 24, c1 24, c0 24, e8_to_f32(a) 32,
//                            f32_to_e8({c[7:0], b}) 24, f16_to_e8(b[15:0]) 24, clamped 8, e8_to_f16(a) 16}
// unsteady counts cycles in which `y` moved although no result was due.
`default_nettype none

module tb_vc_alu #(
    parameter ALAT  = 14,
    parameter CASES = 1 << 20
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        go,
    input  wire        gaps,
    input  wire        counting,
    input  wire        convert,
    input  wire [23:0] base,
    input  wire [31:0] run_id,
    input  wire [31:0] n_cases,
    output reg         done,
    output reg  [31:0] unsteady,
    output reg  [31:0] cycles
);
    reg [79:0]  cases    [0:CASES-1];
    reg [23:0]  results  [0:CASES-1];
    reg [175:0] converted[0:CASES-1];
    reg [31:0]  next_q;
    reg [31:0]  stored_q;
    reg [15:0]  lfsr_q;
    reg [ALAT-1:0] valid_q;
    reg         busy_q;
    reg         seen_q;
    reg [23:0]  last_q;
    reg [8*32-1:0] name;

    wire        offer = busy_q && next_q != n_cases && !(gaps && lfsr_q[1:0] == 2'd0);
    wire [23:0] index = next_q[23:0];
    wire [79:0] now   = counting ? {8'd0, index, index, base + index} : cases[next_q[19:0]];
    wire [23:0] y;
    wire [15:0] half;
    wire        clamped;
    wire [23:0] from_half;
    wire [23:0] from_word;
    wire [31:0] word;
    wire [21:0] c0;
    wire [21:0] c1;
    wire [21:0] c2;

    vc_alu #(.ALAT(ALAT)) u_alu (
        .clk(clk), .en(offer && !convert), .op(now[76:72]), .a(now[23:0]), .b(now[47:24]), .c(now[71:48]), .y(y)
    );
    vc_e8_to_f16 u_to_half (.code(now[23:0]), .half(half), .clamped(clamped));
    vc_f16_to_e8 u_from_half (.half(now[39:24]), .code(from_half));
    vc_f32_to_e8 u_from_word (.word(now[55:24]), .code(from_word));
    vc_e8_to_f32 u_to_word (.code(now[23:0]), .word(word));
    vc_seed_rom u_rom (.row(now[31:24]), .c0(c0), .c1(c1), .c2(c2));

    always @(posedge clk) begin
        lfsr_q  <= {lfsr_q[14:0], lfsr_q[15] ^ lfsr_q[13] ^ lfsr_q[12] ^ lfsr_q[10]};
        valid_q <= {valid_q[ALAT-2:0], offer && !convert};
        if (busy_q) cycles <= cycles + 32'd1;
        if (valid_q[ALAT-1]) begin
            results[stored_q[19:0]] <= y;
            stored_q <= stored_q + 32'd1;
            seen_q   <= 1'b1;
            last_q   <= y;
        end else if (seen_q && y != last_q) unsteady <= unsteady + 32'd1;
        if (offer) next_q <= next_q + 32'd1;
        if (offer && convert) begin
            converted[next_q[19:0]] <= {2'd0, c2, 2'd0, c1, 2'd0, c0, word, from_word, from_half, 7'd0, clamped, half};
            stored_q <= stored_q + 32'd1;
        end
        if (busy_q && stored_q == n_cases) begin
            $sformat(name, "results_%0d.hex", run_id);
            if (convert) $writememh(name, converted, 0, n_cases - 1);
            else         $writememh(name, results, 0, n_cases - 1);
            busy_q <= 1'b0;
            done   <= 1'b1;
        end
        if (go && !busy_q && !done) begin
            $sformat(name, "cases_%0d.hex", run_id);
            if (!counting) $readmemh(name, cases, 0, n_cases - 1);
            busy_q   <= 1'b1;
            next_q   <= 32'd0;
            stored_q <= 32'd0;
            cycles   <= 32'd0;
        end
        if (!go) done <= 1'b0;
        if (!rst_n) begin
            busy_q   <= 1'b0;
            done     <= 1'b0;
            valid_q  <= {ALAT{1'b0}};
            lfsr_q   <= 16'hACE1;
            seen_q   <= 1'b0;
            unsteady <= 32'd0;
        end
    end
endmodule

`default_nettype wire
