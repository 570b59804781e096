// SPDX-License-Identifier: Apache-2.0
// Collects the eight halves of a quantised entry and lays them out as four words.
//   at       {lane, second half} of the 16 elements in `q`; half 7 completes the entry
//   done_q   one cycle after it, with out_data and nonfinite_q, which stay until the next one
// Element (lane, 8w + kk) is slot 8*lane + kk (pack = 0) or 4*kk + lane (pack = 1) of word w; slot n lies at
// [255-7n -: 7]. Scales of lanes 0..3 at [31:24] .. [7:0] of every word.
// Throughput one half a cycle. Specification: docs/spec/numerics.md 3.3, docs/spec/memory.md 13.1.
`default_nettype none

module mag_quant_pack (
    input  wire          clk,
    input  wire          rst_n,
    input  wire          en,
    input  wire [2:0]    at,
    input  wire          special,
    input  wire [7:0]    scale,
    input  wire [111:0]  q,
    input  wire          pack,
    output reg           done_q,
    output wire [1023:0] out_data,
    output reg           nonfinite_q
);
    reg [111:0] half0_q;
    reg [111:0] half1_q;
    reg [111:0] half2_q;
    reg [111:0] half3_q;
    reg [111:0] half4_q;
    reg [111:0] half5_q;
    reg [111:0] half6_q;
    reg [31:0]  scale_q;
    reg         special_q;
    wire        whole = en && at == 3'd7 && rst_n;

    always @(posedge clk) begin
        done_q <= whole;
        if (en) begin
            case (at)
                3'd0:    half0_q <= q;
                3'd1:    half1_q <= q;
                3'd2:    half2_q <= q;
                3'd3:    half3_q <= q;
                3'd4:    half4_q <= q;
                3'd5:    half5_q <= q;
                default: half6_q <= q;
            endcase
            if (!at[0]) begin
                scale_q   <= {scale_q[23:0], scale};
                special_q <= special || (special_q && at != 3'd0);
            end
        end
        if (whole) nonfinite_q <= special_q;
    end

    // Word 0 and 1 hold the first half of every lane, words 2 and 3 the second.
    wire [895:0] words = {
        q[111:56], half5_q[111:56], half3_q[111:56], half1_q[111:56],
        q[55:0], half5_q[55:0], half3_q[55:0], half1_q[55:0],
        half6_q[111:56], half4_q[111:56], half2_q[111:56], half0_q[111:56],
        half6_q[55:0], half4_q[55:0], half2_q[55:0], half0_q[55:0]};

    genvar w;
    genvar n;
    generate
        for (w = 0; w < 4; w = w + 1) begin : g_word
            wire [223:0] side = words[224*w +: 224];       // 8 elements of lane 0, then lane 1, ...
            wire [223:0] body;
            for (n = 0; n < 32; n = n + 1) begin : g_slot
                assign body[223-7*n -: 7] = pack ? side[56*(n%4) + 7*(n/4) +: 7] : side[7*n +: 7];
            end
            reg [255:0] out_q;
            always @(posedge clk) if (whole) out_q <= {body, scale_q};
            assign out_data[256*w +: 256] = out_q;
        end
    endgenerate
endmodule

`default_nettype wire
