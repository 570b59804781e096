// SPDX-License-Identifier: Apache-2.0
// Normalises a 49-bit magnitude and rounds it to E8M15: nearest, ties to even, infinity above the range, a
// signed zero below it (decided after rounding). `top` is the biased exponent of bit 48, `lost` a residue below
// bit 0; magnitude 0 gives +0, `nan` the canonical NaN.
// Latency 3 cycles (move by octets; by single bits; round), one more with each of COUNT = 1 (octets counted one
// stage before they move) and SPLIT = 1 (range tests after the increment). One a cycle. en[s] enables stage s;
// without COUNT or SPLIT its first or last bit belongs to the next stage or to nobody.
// Specification: docs/spec/numerics.md 8, docs/spec/vector.md 12.3.
`default_nettype none

module vc_round #(
    parameter COUNT = 1,
    parameter SPLIT = 0
) (
    input  wire                   clk,
    input  wire [2+COUNT+SPLIT:0] en,
    input  wire [48:0]            mag,
    input  wire                   lost,
    input  wire                   sign,
    input  wire                   nan,
    input  wire signed [9:0]      top,
    output reg  [23:0]            code_q
);
    // ------------------------------------------- count leading zero octets (bit 0 alone is the seventh)
    reg [2:0] octets;
    always @*
        if (mag[48:41] != 8'd0)      octets = 3'd0;
        else if (mag[40:33] != 8'd0) octets = 3'd1;
        else if (mag[32:25] != 8'd0) octets = 3'd2;
        else if (mag[24:17] != 8'd0) octets = 3'd3;
        else if (mag[16:9] != 8'd0)  octets = 3'd4;
        else if (mag[8:1] != 8'd0)   octets = 3'd5;
        else                         octets = 3'd6;

    wire [48:0] mag0;
    wire [2:0]  octets0;
    wire [12:0] side0;                                     // {lost, sign, nan, top}
    vc_stage #(.W(52), .ON(COUNT)) u_count (
        .clk(clk), .en(en[0]), .d({octets, mag}), .q({octets0, mag0})
    );
    vc_stage #(.W(13), .ON(COUNT)) u_count_side (
        .clk(clk), .en(en[0]), .d({lost, sign, nan, top}), .q(side0)
    );

    // ------------------------------------------- move by octets: the leading one in the top octet of 24 bits
    reg [23:0]       bits1_q;
    reg              residue1_q;
    reg [1:0]        side1_q;                              // {sign, nan}
    reg signed [9:0] top1_q;

    always @(posedge clk) if (en[COUNT]) begin
        case (octets0)
            3'd0:    bits1_q <= mag0[48:25];
            3'd1:    bits1_q <= mag0[40:17];
            3'd2:    bits1_q <= mag0[32:9];
            3'd3:    bits1_q <= mag0[24:1];
            3'd4:    bits1_q <= {mag0[16:0], 7'd0};
            3'd5:    bits1_q <= {mag0[8:0], 15'd0};
            default: bits1_q <= {mag0[0], 23'd0};
        endcase
        residue1_q <= side0[12]
                   || (octets0 == 3'd0 && mag0[24:17] != 8'd0)
                   || (octets0 <= 3'd1 && mag0[16:9] != 8'd0)
                   || (octets0 <= 3'd2 && mag0[8:1] != 8'd0)
                   || (octets0 <= 3'd3 && mag0[0]);
        side1_q    <= side0[11:10];
        top1_q     <= $signed(side0[9:0]) - $signed({4'd0, octets0, 3'd0});
    end

    // ------------------------------------------- move by bits
    reg [16:0]       bits2_q;                              // 16 bits and the round bit
    reg              residue2_q;
    reg [1:0]        side2_q;
    reg signed [9:0] exp2_q;

    always @(posedge clk) if (en[COUNT+1]) begin : fine
        reg [2:0]  n;
        reg [23:0] v;
        v    = bits1_q;
        n[2] = v[23:20] == 4'd0;
        if (n[2]) v = {v[19:0], 4'd0};
        n[1] = v[23:22] == 2'd0;
        if (n[1]) v = {v[21:0], 2'd0};
        n[0] = !v[23];
        if (n[0]) v = {v[22:0], 1'b0};
        bits2_q    <= v[23:7];
        residue2_q <= residue1_q || v[6:0] != 7'd0;
        side2_q    <= side1_q;
        exp2_q     <= top1_q - $signed({7'd0, n});
    end

    // ------------------------------------------- round: a carry out of the fraction is one binade more
    wire        up    = bits2_q[0] && (residue2_q || bits2_q[1]);
    wire [24:0] sum   = {exp2_q, bits2_q[15:1]} + {24'd0, up};
    wire [27:0] last;                                      // {sign, nan, not zero, exponent, fraction}
    vc_stage #(.W(28), .ON(SPLIT)) u_split (
        .clk(clk), .en(en[COUNT+2]), .d({side2_q, bits2_q[16], sum}), .q(last)
    );

    always @(posedge clk) if (en[COUNT+SPLIT+2]) begin : bound
        reg signed [9:0] e;
        e = $signed(last[24:15]);
        if (last[26])           code_q <= 24'h7FC000;
        else if (!last[25])     code_q <= 24'd0;
        else if (e <= 10'sd0)   code_q <= {last[27], 23'd0};
        else if (e >= 10'sd255) code_q <= {last[27], 23'h7F8000};
        else                    code_q <= {last[27], e[7:0], last[14:0]};
    end
endmodule

`default_nettype wire
