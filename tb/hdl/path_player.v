// SPDX-License-Identifier: Apache-2.0
// path_player: one scripted requester of mag_path. Plays read and write requests
// from files, feeds write data, records read data.
//
// READS   one line a request {len[7:0], word[31:0]}    WRITES likewise
// DATA    one line a write word {strobes[31:0], data[255:0]}
// CAP     written on dump: one line a returned word {error, data}
`default_nettype none
module path_player #(
    parameter READS  = "reads0.hex",
    parameter WRITES = "writes0.hex",
    parameter DATA   = "data0.hex",
    parameter CAP    = "cap0.hex",
    parameter SEED   = 1
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         play,
    input  wire         dump,
    input  wire [15:0]  n_reads,
    input  wire [15:0]  n_writes,
    input  wire [15:0]  n_words,        // read words that have to return
    input  wire [7:0]   idle,           // of 256 cycles, those without a new offer
    output wire         done,
    output reg  [15:0]  n_errors,       // write responses with an error

    output reg          rd_valid,
    input  wire         rd_ready,
    output wire [31:0]  rd_word,
    output wire [7:0]   rd_len,
    input  wire         rsp_valid,
    input  wire [255:0] rsp_data,
    input  wire         rsp_err,
    output reg          wr_valid,
    input  wire         wr_ready,
    output wire [31:0]  wr_word,
    output wire [7:0]   wr_len,
    output reg          wd_valid,
    input  wire         wd_ready,
    output wire [255:0] wd_data,
    output wire [31:0]  wd_strb,
    output wire         wd_last,
    input  wire         done_valid,
    input  wire         done_err
);
    reg [39:0]  reads  [0:1023];
    reg [39:0]  writes [0:1023];
    reg [287:0] data   [0:8191];
    reg [256:0] cap    [0:32767];

    reg [15:0] r_at, w_at, d_req, d_at, beat, got, finished;
    reg [31:0] lfsr;
    reg        play_q;
    wire       go = lfsr[15:8] >= idle;

    assign {rd_len, rd_word} = reads[r_at[9:0]];
    assign {wr_len, wr_word} = writes[w_at[9:0]];
    assign {wd_strb, wd_data} = data[d_at[12:0]];
    assign wd_last = beat == {8'd0, writes[d_req[9:0]][39:32]};
    assign done = r_at == n_reads && w_at == n_writes && got == n_words && finished == n_writes;

    always @(posedge clk) begin
        lfsr   <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
        play_q <= play;
        if (!rst_n || (play && !play_q)) begin
            if (play) begin
                $readmemh(READS, reads);
                $readmemh(WRITES, writes);
                $readmemh(DATA, data);
            end
            rd_valid <= 1'b0; wr_valid <= 1'b0; wd_valid <= 1'b0;
            r_at <= 16'd0; w_at <= 16'd0; d_req <= 16'd0; d_at <= 16'd0; beat <= 16'd0;
            got <= 16'd0; finished <= 16'd0; n_errors <= 16'd0; lfsr <= SEED;
        end else if (play_q) begin
            if (rd_valid && rd_ready) begin
                rd_valid <= 1'b0;
                r_at     <= r_at + 16'd1;
            end else if (!rd_valid && r_at != n_reads && go) rd_valid <= 1'b1;
            if (wr_valid && wr_ready) begin
                wr_valid <= 1'b0;
                w_at     <= w_at + 16'd1;
            end else if (!wr_valid && w_at != n_writes && go) wr_valid <= 1'b1;
            if (wd_valid && wd_ready) begin
                wd_valid <= 1'b0;
                d_at     <= d_at + 16'd1;
                beat     <= wd_last ? 16'd0 : beat + 16'd1;
                if (wd_last) d_req <= d_req + 16'd1;
            end else if (!wd_valid && d_req != n_writes && lfsr[20]) wd_valid <= 1'b1;
            if (rsp_valid) begin
                cap[got[14:0]] <= {rsp_err, rsp_data};
                got <= got + 16'd1;
            end
            if (done_valid) begin
                finished <= finished + 16'd1;
                n_errors <= n_errors + {15'd0, done_err};
            end
        end
    end

    always @(posedge dump) $writememh(CAP, cap, 0, got == 0 ? 0 : {16'd0, got} - 1);
endmodule
`default_nettype wire
