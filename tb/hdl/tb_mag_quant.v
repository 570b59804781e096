// SPDX-License-Identifier: Apache-2.0
// Player for the quantiser of the transform slot. Python writes words_<run_id>.hex ({start 8, data 256} a word), sets
// run_id, n_words and the options and raises `go`; the player feeds the words in order and never starts a third
// entry, writes results_<run_id>.hex ({nonfinite 8, data 1024} a `done`) and raises `done` when `n_words` are in and
// nothing has come out for 16 cycles.
//   gaps      pseudo-random pauses between words
//   drop_at   number of words after which rst_n is pulsed once (0: never)
// late counts `done` pulses that did not come 8 cycles after the last word of an entry, unsteady counts cycles in
// which the outputs moved without `done`, cycles runs from the first word to the last `done`.
`default_nettype none

module tb_mag_quant #(
    parameter WORDS = 1 << 18
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        go,
    input  wire        gaps,
    input  wire        pack,
    input  wire [31:0] drop_at,
    input  wire [31:0] run_id,
    input  wire [31:0] n_words,
    output reg         done,
    output reg  [31:0] n_results,
    output reg  [31:0] late,
    output reg  [31:0] unsteady,
    output reg  [31:0] cycles
);
    reg [263:0]  words   [0:WORDS-1];
    reg [1031:0] results [0:WORDS/8-1];
    reg [31:0]   next_q;
    reg [15:0]   lfsr_q;
    reg [1:0]    started_q;
    reg [2:0]    at_q;
    reg          open_q;
    reg [8:1]    ended_q;
    reg [4:0]    quiet_q;
    reg          busy_q;
    reg          drop_q;
    reg          seen_q;
    reg [1023:0] last_q;
    reg          flag_q;
    reg [8*32-1:0] name;

    wire [263:0]  now   = words[next_q[17:0]];
    wire          start = now[256];
    wire          more  = busy_q && next_q != n_words && !drop_q;
    wire          pause = gaps && lfsr_q[2:0] < 3'd3;
    // an entry that is given up leaves its place to its successor
    wire          offer = more && !pause && (!start || open_q || started_q != 2'd2);
    wire          out_done;
    wire [1023:0] out_data;
    wire          nonfinite;

    mag_quant u_quant (
        .clk(clk), .rst_n(rst_n && !drop_q), .in_valid(offer), .in_start(start), .in_data(now[255:0]), .pack(pack),
        .done(out_done), .out_data(out_data), .nonfinite(nonfinite)
    );

    wire [2:0] at   = start ? 3'd0 : at_q;
    wire       ends = offer && at == 3'd7;

    always @(posedge clk) begin
        lfsr_q  <= {lfsr_q[14:0], lfsr_q[15] ^ lfsr_q[13] ^ lfsr_q[12] ^ lfsr_q[10]};
        ended_q <= {ended_q[7:1], ends};
        drop_q  <= offer && drop_at != 32'd0 && next_q + 32'd1 == drop_at;
        if (busy_q && !(next_q == n_words && started_q == 2'd0)) cycles <= cycles + 32'd1;
        if (offer) begin
            next_q <= next_q + 32'd1;
            at_q   <= at + 3'd1;
            open_q <= at != 3'd7;
        end
        started_q <= started_q + {1'b0, offer && start && !open_q} - {1'b0, out_done};
        if (out_done != ended_q[8]) late <= late + 32'd1;
        if (out_done) begin
            results[n_results[14:0]] <= {7'd0, nonfinite, out_data};
            n_results <= n_results + 32'd1;
            seen_q    <= 1'b1;
            last_q    <= out_data;
            flag_q    <= nonfinite;
        end else if (seen_q && (out_data != last_q || nonfinite != flag_q)) unsteady <= unsteady + 32'd1;
        quiet_q <= (busy_q && next_q == n_words && !out_done) ? quiet_q + {4'd0, !quiet_q[4]} : 5'd0;
        if (busy_q && quiet_q[4]) begin
            $sformat(name, "results_%0d.hex", run_id);
            if (n_results != 32'd0) $writememh(name, results, 0, n_results - 1);
            busy_q <= 1'b0;
            done   <= 1'b1;
        end
        if (go && !busy_q && !done) begin
            $sformat(name, "words_%0d.hex", run_id);
            $readmemh(name, words, 0, n_words - 1);
            busy_q    <= 1'b1;
            next_q    <= 32'd0;
            n_results <= 32'd0;
            cycles    <= 32'd0;
            quiet_q   <= 5'd0;
        end
        if (!go) done <= 1'b0;
        if (drop_q || !rst_n) begin
            started_q <= 2'd0;
            ended_q   <= 8'd0;
            open_q    <= 1'b0;
            at_q      <= 3'd0;
        end
        if (!rst_n) begin
            busy_q    <= 1'b0;
            done      <= 1'b0;
            drop_q    <= 1'b0;
            seen_q    <= 1'b0;
            lfsr_q    <= 16'hACE1;
            late      <= 32'd0;
            unsteady  <= 32'd0;
        end
    end
endmodule

`default_nettype wire
