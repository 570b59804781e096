// SPDX-License-Identifier: Apache-2.0
// Accumulator float adder of one lane: code = acc_add(x, y), 8 guard bits, the lost bits of the smaller
// operand reach the sticky for sums and differences alike (required by the specification).
// Latency 3 cycles (order and align; add and normalise; round), one a cycle. en[s] enables stage s.
// ACC_MW: 10, 11, 12, 14, 16.
// Specification: docs/spec/numerics.md 5.3, docs/spec/cluster.md 6.2.
`default_nettype none

module mg_acc_add #(
    parameter ACC_MW = 14
) (
    input  wire              clk,
    input  wire [2:0]        en,
    input  wire [ACC_MW+7:0] x,
    input  wire [ACC_MW+7:0] y,
    output wire [ACC_MW+7:0] code
);
    localparam MW = ACC_MW;
    localparam SW = MW + 9;                                // significand with 8 guard bits

    localparam AW = MW + SW + 12;                          // aligned operands, see align()

    reg  [AW-1:0] aligned1_q;
    wire [MW:0]   big1   = aligned1_q[MW:0];               // significand of the larger operand
    wire [SW-1:0] small1 = aligned1_q[MW+1 +: SW];         // aligned significand of the smaller one
    wire [6:0]    exp1   = aligned1_q[MW+SW+1 +: 7];
    wire          lost1  = aligned1_q[AW-4];
    wire          sub1   = aligned1_q[AW-3];
    wire          sign1  = aligned1_q[AW-2];
    wire          keep1  = aligned1_q[AW-1];
    reg          lost2_q;
    reg          sign2_q;
    reg          keep2_q;
    reg [6:0]    exp2_q;

    wire [31:0]  mag2;
    wire [4:0]   lz2;

    // {keep, sign, sub, lost, exponent, small, big}; a zero operand is always the smaller one and
    // contributes nothing, so the other comes through unchanged.
    function automatic [AW-1:0] align(input [MW+7:0] p, input [MW+7:0] q);
        reg          swap;
        reg [MW+7:0] b;
        reg [MW+7:0] s;
        reg          b_zero;
        reg          s_zero;
        reg [6:0]    diff;
        reg [SW-1:0] t;
        reg [SW-1:0] u;
        begin
            swap   = q[MW+6:0] > p[MW+6:0];
            b      = swap ? q : p;
            s      = swap ? p : q;
            b_zero = b[MW+6:MW] == 7'd0;                   // then s is zero too
            s_zero = s[MW+6:MW] == 7'd0;
            diff   = b[MW+6:MW] - s[MW+6:MW];
            t      = s_zero ? {SW{1'b0}} : {1'b1, s[MW-1:0], 8'd0};
            u      = t >> diff;                            // all zero from SW on
            align  = {s_zero, b[MW+7], b[MW+7] != s[MW+7],
                      (u << diff) != t,
                      b[MW+6:MW], u, b_zero ? {(MW+1){1'b0}} : {1'b1, b[MW-1:0]}};
        end
    endfunction

    always @(posedge clk) begin
        if (en[0]) aligned1_q <= align(x, y);
        if (en[1]) begin
            keep2_q <= keep1;
            sign2_q <= sign1;
            lost2_q <= lost1;
            exp2_q  <= exp1;
        end
    end

    wire [SW:0] wide_big   = {1'b0, big1, 8'd0};
    wire [SW:0] wide_small = {1'b0, small1};
    wire [SW:0] sum        = sub1 ? wide_big - wide_small : wide_big + wide_small;

    mg_normalize u_normalize (
        .clk(clk), .en(en[1]), .in({sum, {(31-SW){1'b0}}}), .out_q(mag2), .lz_q(lz2)
    );

    // Leading one at the top bit of `sum` means one binade above the larger operand.
    mg_round #(.ACC_MW(MW)) u_round (
        .clk(clk), .en(en[2]), .mag(mag2), .sticky(lost2_q), .sign(sign2_q),
        .exp($signed({3'd0, exp2_q}) + 10'sd1 - $signed({5'd0, lz2})), .keep(keep2_q), .code_q(code)
    );
endmodule

`default_nettype wire
