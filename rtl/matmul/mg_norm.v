// SPDX-License-Identifier: Apache-2.0
// Block conversion of one lane: exact K-block sum, two scale bytes and the anchor to an accumulator code.
// Latency 4 cycles (absolute value and scales; scale product; normalising shift; rounding), one a
// cycle. en[s] enables stage s. ACC_MW: 10, 11, 12, 14, 16.
// Specification: docs/spec/numerics.md 5.2, docs/spec/cluster.md 6.1.
`default_nettype none

module mg_norm #(
    parameter ACC_MW = 14
) (
    input  wire                clk,
    input  wire [3:0]          en,
    input  wire signed [18:0]  d,
    input  wire [7:0]          sa,
    input  wire [7:0]          sb,
    input  wire [7:0]          anchor,
    output wire [ACC_MW+7:0]   code
);
    reg [17:0]       abs1_q;
    reg [7:0]        scale1_q;
    reg              sign1_q;
    reg signed [9:0] exp1_q;
    reg [24:0]       mag2_q;
    reg              sign2_q;
    reg signed [9:0] exp2_q;
    reg              sign3_q;
    reg signed [9:0] exp3_q;

    wire [31:0] mag3;
    wire [4:0]  lz3;

    function automatic [17:0] magnitude(input signed [18:0] value);
        magnitude = value[18] ? ~value[17:0] + 18'd1 : value[17:0];   // at most 2^17
    endfunction

    function automatic [7:0] scale_product(input [2:0] ma, input [2:0] mb);
        scale_product = {4'd0, 1'b1, ma} * {4'd0, 1'b1, mb};
    endfunction

    // Exponent of the code if bit 24 of the 25-bit magnitude is its leading one: 24 + x + 63.
    function automatic signed [9:0] top_exponent(input [4:0] ea, input [4:0] eb, input [7:0] offset);
        top_exponent = $signed({5'd0, ea}) + $signed({5'd0, eb}) - $signed({2'd0, offset}) + 10'sd81;
    endfunction

    always @(posedge clk) begin
        if (en[0]) begin
            abs1_q   <= magnitude(d);
            sign1_q  <= d[18];
            scale1_q <= scale_product(sa[2:0], sb[2:0]);
            exp1_q   <= top_exponent(sa[7:3], sb[7:3], anchor);
        end
        if (en[1]) begin
            mag2_q  <= {7'd0, abs1_q} * {17'd0, scale1_q};
            sign2_q <= sign1_q;
            exp2_q  <= exp1_q;
        end
        if (en[2]) begin
            sign3_q <= sign2_q;
            exp3_q  <= exp2_q;
        end
    end

    mg_normalize u_normalize (
        .clk(clk), .en(en[2]), .in({mag2_q, 7'd0}), .out_q(mag3), .lz_q(lz3)
    );

    mg_round #(.ACC_MW(ACC_MW)) u_round (
        .clk(clk), .en(en[3]), .mag(mag3), .sticky(1'b0), .sign(sign3_q),
        .exp(exp3_q - $signed({5'd0, lz3})), .keep(1'b0), .code_q(code)
    );
endmodule

`default_nettype wire
