// SPDX-License-Identifier: Apache-2.0
// vc_mem_mx: the quantiser on the way from L1 to the flits of a VDRAIN with mx = 1: entries of 8 words of L1 become
// 4 words (docs/spec/vector.md 15). Only in a core with MX_STORE = 1.
//   rd_en      a word is read from L1, entries whole and one after the other; allowed while `room` is high
//   in_valid   it comes, in the order of the reads, a fixed number of cycles later; never refused
//   out_*      words of the entries, for a queue of eight words behind; a word moves when out_valid && out_ready.
//              out_special with every word of an entry with an infinity or NaN
//   taken      a word leaves that queue
//   rst_n = 0 drops everything, an entry under way included
//
// The quantiser keeps its result until the next one and cannot be held. The last word of an entry is therefore
// asked for only when at most two entries before it have not left: they are in the queue, or go there without a
// stop before the quantiser is done again. The other seven words are read at once.
//
// Latency    first word of an entry offered 9 cycles after its last word came.
// Throughput one entry in 8 cycles, the rate of the reads.
`default_nettype none

module vc_mem_mx (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         pack,           // 0 A packing, 1 B packing; stable while entries are inside

    input  wire         rd_en,
    output wire         room,
    input  wire         in_valid,
    input  wire [255:0] in_data,

    output wire         out_valid,
    input  wire         out_ready,
    output wire [255:0] out_data,
    output wire         out_special,
    input  wire         taken
);

    // ------------------------------------------------------------ entries inside
    reg  [2:0] asked_q;                 // words of the entry asked for
    reg  [1:0] sent_q;                  // words of the oldest entry that have left
    reg  [1:0] inside_q;                // entries asked for whole, not sent whole; 0..3
    wire       whole = rd_en && (asked_q == 3'd7);
    wire       gone  = taken && (sent_q == 2'd3);

    assign room = (asked_q != 3'd7) || (inside_q != 2'd3);

    always @(posedge clk) begin
        if (!rst_n) begin
            asked_q  <= 3'd0;
            sent_q   <= 2'd0;
            inside_q <= 2'd0;
        end else begin
            if (rd_en) asked_q <= asked_q + 3'd1;
            if (taken) sent_q <= sent_q + 2'd1;
            inside_q <= inside_q + {1'b0, whole} - {1'b0, gone};
        end
    end

    // ---------------------------------------------------------------- quantiser
    reg  [2:0]    word_q;               // of the entry that comes
    wire          done;
    wire [1023:0] entry;

    mag_quant u_quant (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (in_valid),
        .in_start  (word_q == 3'd0),
        .in_data   (in_data),
        .pack      (pack),
        .done      (done),
        .out_data  (entry),
        .nonfinite (out_special)
    );

    always @(posedge clk) begin
        if (!rst_n) word_q <= 3'd0;
        else if (in_valid) word_q <= word_q + 3'd1;
    end

    // ------------------------------------------------------- one word at a time
    reg       full_q;                   // `entry` has words to give
    reg [1:0] part_q;                   // the next of them
    wire      give = out_valid && out_ready;

    assign out_valid = full_q;
    assign out_data  = part_q[1] ? (part_q[0] ? entry[1023:768] : entry[767:512])
                                 : (part_q[0] ? entry[511:256] : entry[255:0]);

    always @(posedge clk) begin
        if (!rst_n) begin
            full_q <= 1'b0;
            part_q <= 2'd0;
        end else begin
            if (done) full_q <= 1'b1;
            else if (give && (part_q == 2'd3)) full_q <= 1'b0;
            if (give) part_q <= part_q + 2'd1;
        end
    end

endmodule

`default_nettype wire
