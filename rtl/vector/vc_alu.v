// SPDX-License-Identifier: Apache-2.0
// Arithmetic of one lane: correctly rounded multiply-add, moves, compares, and the four seeds.
// op: the opcodes 0..13 (VMOV..VCMPEQ), 16..19 VEXP2, VLOG2, VINV, VRSQRT; others give no defined result.
// `y` belongs to the operands that came with `en` ALAT cycles before, one a cycle, never stalled; it holds its
// value behind a cycle without `en`. Stages without work keep their state. No reset: what is inside after power
// up leaves within ALAT cycles.
//   stages at ALAT = 14: capture | compare, select | table / classes, distance | slope | operands, multiply, add |
//   magnitude | octet count, octets, bits | round. 13 drops the capture stage, 12 the count; 15 splits rounding,
//   16 registers the sum's inputs once more, 17 captures twice, 18 registers the result once more.
// ALAT: 12..18.
// Specification: docs/spec/vector.md 12 and 13.1, docs/spec/numerics.md 8 to 10.
`default_nettype none

module vc_alu #(
    parameter ALAT = 14
) (
    input  wire        clk,
    input  wire        en,
    input  wire [4:0]  op,
    input  wire [23:0] a,
    input  wire [23:0] b,
    input  wire [23:0] c,
    output wire [23:0] y
);
    generate
        if (ALAT < 12 || ALAT > 18) begin : g_illegal
            vc_alu_illegal_parameters u_stop ();
        end
    endgenerate

    localparam CAPTURE = (ALAT >= 14) ? 1 : 0;
    localparam COUNT   = (ALAT >= 13) ? 1 : 0;
    localparam SPLIT   = (ALAT >= 15) ? 1 : 0;
    localparam REST    = (ALAT >= 16) ? 1 : 0;
    localparam AGAIN   = (ALAT >= 17) ? 1 : 0;
    localparam LAST    = (ALAT >= 18) ? 1 : 0;
    localparam P = CAPTURE + AGAIN;                        // stage of the preparation
    localparam S = P + 8 + REST;                           // stage of the sum

    // work[k] enables stage k, seed[k] marks a polynomial in it
    reg  [ALAT-2:0] work_q;
    wire [ALAT-1:0] work = {work_q, en};
    always @(posedge clk) work_q <= work[ALAT-2:0];

    // ------------------------------------------------- capture
    wire [28:0] in0;
    wire [47:0] bc0;
    wire [28:0] in1;                                       // {op, a}
    wire [47:0] bc1;
    vc_stage #(.W(29), .ON(AGAIN)) u_again (.clk(clk), .en(work[0]), .d({op, a}), .q(in0));
    vc_stage #(.W(48), .ON(AGAIN)) u_again_bc (.clk(clk), .en(work[0]), .d({b, c}), .q(bc0));
    vc_stage #(.W(29), .ON(CAPTURE)) u_capture (.clk(clk), .en(work[AGAIN]), .d(in0), .q(in1));
    vc_stage #(.W(48), .ON(CAPTURE)) u_capture_bc (.clk(clk), .en(work[AGAIN]), .d(bc0), .q(bc1));

    // ------------------------------------------------- P, P + 1: preparation
    wire [23:0] px;
    wire [23:0] py;
    wire [23:0] pz;
    wire        poly2;
    vc_prep u_prep (
        .clk(clk), .en(work[P +: 2]), .op(in1[28:24]), .a(in1[23:0]), .b(bc1[47:24]), .c(bc1[23:0]),
        .x_q(px), .y_q(py), .z_q(pz), .poly_q(poly2)
    );

    wire [7:0]         row;
    wire [11:0]        u2;
    wire signed [8:0]  ext;
    wire signed [9:0]  poly_top;
    wire               poly_sign;
    reg                seed_q;
    always @(posedge clk) if (work[P]) seed_q <= in1[28];
    vc_seed_prep u_seed (
        .clk(clk), .en({work[P+1] && seed_q, work[P] && in1[28]}), .fsel(in1[25:24]), .a(in1[23:0]),
        .row_q(row), .u_q(u2), .ext_q(ext), .top_q(poly_top), .sign_q(poly_sign)
    );

    // ------------------------------------------------- P + 2 .. P + 4: classes, distance; table, slope
    wire              poly4;
    wire              nan4;
    wire              only4;
    wire              zsign4;
    wire              psign4;
    wire signed [9:0] top4;
    wire [5:0]        down4;
    vc_scale u_scale (
        .clk(clk), .en(work[P+2 +: 2]), .x(px), .y(py), .z(pz),
        .poly(poly2), .poly_top(poly_top), .poly_sign(poly_sign),
        .poly_q(poly4), .nan_q(nan4), .only_z_q(only4), .zsign_q(zsign4), .psign_q(psign4),
        .top_q(top4), .down_q(down4)
    );

    // A polynomial's constant and position travel where the significands of a multiply-add do.
    wire signed [29:0] constant;
    wire signed [22:0] slope;
    wire               x_none = px[22:15] == 8'd0;
    wire               y_none = py[22:15] == 8'd0;
    wire               z_none = pz[22:15] == 8'd0;
    wire               z_only = x_none || y_none || px[22:15] == 8'd255 || py[22:15] == 8'd255;

    reg        poly3_q;
    reg [31:0] xy3_q;
    reg [15:0] zu3_q;
    reg [31:0] xy4_q;
    reg [15:0] zu4_q;
    reg [31:0] xy5_q;
    reg [15:0] zu5_q;
    reg [20:0] side5_q;                                    // {poly, only, nan, zsign, psign, down, top}

    always @(posedge clk) begin
        if (work[P+2]) begin
            poly3_q <= poly2;
            xy3_q   <= poly2 ? {2'd0, constant} : {1'b1, px[14:0], 1'b1, py[14:0]};
            zu3_q   <= poly2 ? {4'd0, u2} : z_none ? {z_only, 15'd0} : {1'b1, pz[14:0]};
        end
        if (work[P+3]) begin
            xy4_q <= xy3_q;
            zu4_q <= zu3_q;
        end
        if (work[P+4]) begin
            xy5_q   <= xy4_q;
            zu5_q   <= zu4_q;
            side5_q <= {poly4, only4, nan4, zsign4, psign4, down4, top4};
        end
    end

    vc_poly u_poly (
        .clk(clk), .en({work[P+4] && poly4, work[P+3] && poly3_q, work[P+2] && poly2}),
        .row(row), .ext(ext), .constant(constant), .u(zu3_q[11:0]), .slope_q(slope)
    );

    // ------------------------------------------------- P + 5 .. P + 7: product, addend
    reg [15:0] z6_q;
    reg [15:0] z7_q;
    reg [19:0] side6_q;                                    // {poly, nan, zsign, psign, down, top}
    reg [19:0] side7_q;
    reg [13:0] side8_q;                                    // {poly, nan, zsign, psign, top}
    always @(posedge clk) begin
        if (work[P+5]) begin
            z6_q    <= side5_q[20] ? 16'd0 : zu5_q;
            side6_q <= {side5_q[20], side5_q[18:0]};
        end
        if (work[P+6]) begin
            z7_q    <= z6_q;
            side7_q <= side6_q;
        end
        if (work[P+7]) side8_q <= {side7_q[19:16], side7_q[9:0]};
    end

    wire signed [46:0] p8;
    vc_product u_product (
        .clk(clk), .en(work[P+5 +: 3]), .poly(side5_q[20]), .none(side5_q[19]),
        .x(xy5_q[31:16]), .y(xy5_q[15:0]), .slope(slope), .u(zu5_q[11:0]), .constant(xy5_q[29:0]), .p_q(p8)
    );

    wire [48:0] window8;
    wire        lost8;
    vc_align u_align (
        .clk(clk), .en(work[P+7]), .sig(z7_q), .down(side7_q[15:10]), .window_q(window8), .lost_q(lost8)
    );

    // ------------------------------------------------- S: magnitude
    wire signed [46:0] p9;
    wire [48:0]        window9;
    wire               lost9;
    wire [13:0]        side9;
    vc_stage #(.W(47), .ON(REST)) u_rest_p (.clk(clk), .en(work[P+8]), .d(p8), .q(p9));
    vc_stage #(.W(64), .ON(REST)) u_rest_z (
        .clk(clk), .en(work[P+8]), .d({side8_q, lost8, window8}), .q({side9, lost9, window9})
    );

    wire [48:0] mag;
    wire        sign;
    reg [11:0]  side10_q;                                  // {lost, nan, top}
    vc_sum u_sum (
        .clk(clk), .en(work[S]), .poly(side9[13]), .zsign(side9[11]), .psign(side9[10]),
        .addend(window9), .lost(lost9), .p(p9), .mag_q(mag), .sign_q(sign)
    );
    always @(posedge clk) if (work[S]) side10_q <= {lost9, side9[12], side9[9:0]};

    // ------------------------------------------------- S + 1 ..: normalise and round
    wire [23:0] code;
    vc_round #(.COUNT(COUNT), .SPLIT(SPLIT)) u_round (
        .clk(clk), .en(work[S+1 +: 3+COUNT+SPLIT]),
        .mag(mag), .lost(side10_q[11]), .sign(sign), .nan(side10_q[10]), .top($signed(side10_q[9:0])), .code_q(code)
    );
    vc_stage #(.W(24), .ON(LAST)) u_last (.clk(clk), .en(work[ALAT-1]), .d(code), .q(y));
endmodule

`default_nettype wire
