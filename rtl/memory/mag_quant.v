// SPDX-License-Identifier: Apache-2.0
// Quantiser of the transform slot: entries of 8 FP16 words become 4 packed MXFP7 words.
//   in_valid   one source word; at most one a cycle, gaps allowed, never refused
//   in_start   with word 0 of an entry; an unfinished entry is abandoned
//   pack       0 A packing, 1 B packing; stable while entries are inside
//   done       one pulse per entry, in order: output word w at out_data[256*w +: 256], held until the next `done`;
//              nonfinite = 1 if an element of the entry has exponent 31
// `done` follows the last word by 8 cycles (the word in cycle t, the pulse in cycle t + 8). At most two entries may
// be started and not done; words can then follow each other without gaps, one entry in 8 cycles.
// rst_n = 0 drops what is inside.
//
// A lane's scale is known only after its second word, so words wait in a small RAM: the first half of a lane is
// converted 4 cycles after its second word came, the second half one cycle later.
// Specification: docs/spec/memory.md 13 and 13.1, docs/spec/numerics.md 3.2 and 3.3.
`default_nettype none

module mag_quant (
    input  wire          clk,
    input  wire          rst_n,
    input  wire          in_valid,
    input  wire          in_start,
    input  wire [255:0]  in_data,
    input  wire          pack,
    output wire          done,
    output wire [1023:0] out_data,
    output wire          nonfinite
);
    // ------------------------------------------------- position of the arriving word
    reg [2:0]  word_q;
    wire [2:0] word  = in_start ? 3'd0 : word_q;
    wire       pair  = in_valid && word[0];                // a lane is complete

    always @(posedge clk)
        if (!rst_n)        word_q <= 3'd0;
        else if (in_valid) word_q <= word + 3'd1;

    // ------------------------------------------------- what happens k cycles after a lane's second word
    // stage 1 peak, 2 normalise, 3 scale and read, 4 first half converted and second read, 5 second half
    reg       word1_q;                                     // stage 1 of the first half too
    reg [5:1] lane_q;
    reg [1:0] at1_q;                                       // which lane
    reg [1:0] at2_q;
    reg [1:0] at3_q;
    reg [1:0] at4_q;
    reg [1:0] at5_q;

    always @(posedge clk) begin
        word1_q <= in_valid && rst_n;
        lane_q  <= rst_n ? {lane_q[4:1], pair} : 5'd0;
        if (pair)      at1_q <= word[2:1];
        if (lane_q[1]) at2_q <= at1_q;
        if (lane_q[2]) at3_q <= at2_q;
        if (lane_q[3]) at4_q <= at3_q;
        if (lane_q[4]) at5_q <= at4_q;
    end

    wire [4:0]  exponent;
    wire [2:0]  mantissa;
    wire        special;
    mag_quant_scale u_scale (
        .clk(clk), .en({lane_q[3:1], in_valid}), .first(word1_q && !lane_q[1]), .in_data(in_data),
        .exponent_q(exponent), .mantissa_q(mantissa), .special_q(special)
    );

    // A word is read within 5 cycles and overwritten 8 words later at the earliest.
    wire [255:0] stored;
    ram_sdp #(.WIDTH(256), .DEPTH(8), .PRIM("distributed"), .READ_LAT(1)) u_words (
        .clk(clk), .wr_en(in_valid), .wr_addr(word), .wr_data(in_data),
        .rd_en(lane_q[3] || lane_q[4]), .rd_addr(lane_q[4] ? {at4_q, 1'b1} : {at3_q, 1'b0}), .rd_data(stored)
    );

    // ------------------------------------------------- conversion: operands, product, result
    wire        half4 = lane_q[4] || lane_q[5];
    reg         valid5_q;
    reg         valid6_q;
    reg [11:0]  side5_q;                                   // {lane, second half, special, scale}
    reg [11:0]  side6_q;

    always @(posedge clk) begin
        valid5_q <= half4 && rst_n;
        valid6_q <= valid5_q && rst_n;
        if (half4)    side5_q <= {lane_q[5] ? {at5_q, 1'b1} : {at4_q, 1'b0}, special, exponent, mantissa};
        if (valid5_q) side6_q <= side5_q;
    end

    wire [111:0] q;                                        // 16 elements of 7 bits, element 0 lowest
    mag_quant_elements u_elements (
        .clk(clk), .en({valid5_q, half4}), .in_data(stored), .exponent(exponent), .mantissa(mantissa), .q(q)
    );

    // ------------------------------------------------- collect eight halves, then pack
    mag_quant_pack u_pack (
        .clk(clk), .rst_n(rst_n), .en(valid6_q), .at(side6_q[11:9]), .special(side6_q[8]), .scale(side6_q[7:0]),
        .q(q), .pack(pack), .done_q(done), .out_data(out_data), .nonfinite_q(nonfinite)
    );
endmodule

`default_nettype wire
