// SPDX-License-Identifier: Apache-2.0
// Exponents and special cases of x*y + z: where the addend lies against the product, or that only the addend
// counts (`only_z`: z passes, an infinity is the result, or the addend is too large for the product to matter).
//   top    biased exponent of bit 48 of the 49-bit window: product in bits [31:0], addend << 33 >> down
//          (exponent 0 with only_z stands for a zero, 255 for an infinity)
//   zsign  sign of the addend or of the result it stands for; psign: sign of the product
// A seed (poly = 1) takes top and sign from its range reduction and has no addend.
// Latency 2 cycles (classes; distance), one a cycle. en[s] enables stage s.
// Specification: docs/spec/numerics.md 8, docs/spec/vector.md 12.3.
`default_nettype none

module vc_scale (
    input  wire              clk,
    input  wire [1:0]        en,
    input  wire [23:0]       x,
    input  wire [23:0]       y,
    input  wire [23:0]       z,
    input  wire              poly,
    input  wire signed [9:0] poly_top,
    input  wire              poly_sign,
    output reg               poly_q,
    output reg               nan_q,
    output reg               only_z_q,
    output reg               zsign_q,
    output reg               psign_q,
    output reg signed [9:0]  top_q,
    output reg [5:0]         down_q
);
    localparam [22:0] INF = 23'h7F8000;

    // ------------------------------------------- stage 0: classes
    reg               poly0_q;
    reg               nan0_q;
    reg               only0_q;
    reg               none0_q;                             // no addend
    reg               zsign0_q;
    reg               psign0_q;
    reg signed [9:0]  ptop0_q;
    reg [7:0]         ez0_q;

    always @(posedge clk) if (en[0]) begin : classes
        reg p_zero;
        reg p_inf;
        reg p_nan;
        reg z_inf;
        reg sp;
        p_zero = x[22:15] == 8'd0 || y[22:15] == 8'd0;
        p_inf  = x[22:0] == INF || y[22:0] == INF;
        p_nan  = x[22:0] > INF || y[22:0] > INF || (p_inf && p_zero);
        z_inf  = z[22:0] == INF;
        sp     = x[23] ^ y[23];
        poly0_q  <= poly;
        nan0_q   <= p_nan || z[22:0] > INF || (p_inf && z_inf && sp != z[23]);
        only0_q  <= !poly && (p_inf || z_inf || p_zero);
        none0_q  <= z[22:15] == 8'd0;
        zsign0_q <= poly ? poly_sign : p_inf ? sp : z[23];
        psign0_q <= poly || sp;                            // a negative polynomial value
        ptop0_q  <= poly ? poly_top : $signed({2'd0, x[22:15]}) + $signed({2'd0, y[22:15]}) - 10'sd109;
        ez0_q    <= p_inf ? 8'd255 : z[22:15];
    end

    // ------------------------------------------- stage 1: distance
    always @(posedge clk) if (en[1]) begin : place
        reg signed [10:0] distance;
        reg               only;
        distance = {ptop0_q[9], ptop0_q} - $signed({3'd0, ez0_q});
        only     = only0_q || (distance[10] && !none0_q);
        poly_q   <= poly0_q;
        nan_q    <= nan0_q;
        only_z_q <= only;
        zsign_q  <= zsign0_q;
        psign_q  <= psign0_q;
        top_q    <= only ? $signed({2'd0, ez0_q}) : ptop0_q;
        down_q   <= only ? 6'd0 : (distance > 11'sd49) ? 6'd49 : distance[5:0];
    end
endmodule

`default_nettype wire
