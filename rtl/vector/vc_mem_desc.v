// SPDX-License-Identifier: Apache-2.0
// vc_mem_desc: the eight address descriptors and what the checks need to know of
// one (docs/spec/vector.md 2, 3, 8, 11.2).
//
// Latency    `rd_en` in cycle k: fields and flags from k+1, n and over from k+3;
//            all of them stay until the next read.
// Writes come while no command is outstanding; `clr` zeroes descriptor clr_ad:
// a bound of 0 reads as 1, so zero is the reset value of every field.
`default_nettype none
`include "ktpu_defs.vh"

module vc_mem_desc (
    input  wire        clk,

    input  wire        clr,
    input  wire [2:0]  clr_ad,
    input  wire        we,
    input  wire [2:0]  we_ad,
    input  wire [2:0]  we_fld,          // 0 base, 1..4 dimension 0..3
    input  wire [39:0] we_value,

    input  wire        rd_en,
    input  wire [2:0]  rd_ad,
    output wire [39:0] base,
    output wire [71:0] stride,          // dimension d at [18*d +: 18], signed
    output wire [63:0] bound,           // dimension d at [16*d +: 16], 1..65535

    output wire        unaligned,       // base, or a stride that is used, not a multiple of 32
    output wire        one_dim,         // dimensions 1..3 are not walked
    output wire        near_edge,       // a walk of up to 256 words may leave 0..2^40-1
    output wire [8:0]  n,               // product of the bounds unless `over`
    output wire        over             // the product exceeds 256
);

    localparam [17:0] MAX = `KT_VC_WALK_MAX;

    wire [2:0] wr_ad = clr ? clr_ad : we_ad;

    ram_sdp #(.WIDTH(40), .DEPTH(8), .PRIM("distributed")) u_base (
        .clk     (clk),
        .wr_en   (clr || (we && we_fld == 3'd0)),
        .wr_addr (wr_ad),
        .wr_data (clr ? 40'd0 : we_value),
        .rd_en   (rd_en),
        .rd_addr (rd_ad),
        .rd_data (base)
    );

    wire [3:0] used, uneven, negative, big;

    genvar d;
    generate
        for (d = 0; d < 4; d = d + 1) begin : g_dim
            localparam [2:0] FLD = d[2:0] + 3'd1;
            wire [33:0] field;
            wire [15:0] b = (field[15:0] == 16'd0) ? 16'd1 : field[15:0];

            ram_sdp #(.WIDTH(34), .DEPTH(8), .PRIM("distributed")) u_field (
                .clk     (clk),
                .wr_en   (clr || (we && we_fld == FLD)),
                .wr_addr (wr_ad),
                .wr_data (clr ? 34'd0 : we_value[33:0]),
                .rd_en   (rd_en),
                .rd_addr (rd_ad),
                .rd_data (field)
            );

            assign stride[18*d +: 18] = field[33:16];
            assign bound[16*d +: 16]  = b;
            assign used[d]            = b != 16'd1;
            assign uneven[d]          = used[d] && (field[20:16] != 5'd0);
            assign negative[d]        = used[d] && field[33];
            assign big[d]             = b > MAX[15:0];
        end
    endgenerate

    assign unaligned = (base[4:0] != 5'd0) || (uneven != 4'd0);
    assign one_dim   = used[3:1] == 3'd0;

    // At most 255 steps of at most 2^17 bytes each: less than 2^25.
    assign near_edge = ((negative != 4'd0) && (base[39:25] == 15'd0)) || (base[39:25] == 15'h7FFF);

    // Product in two steps, saturating: every bound is at least 1, so a partial
    // product above 256 never comes down again.
    reg  [1:0]  v_q;
    reg  [8:0]  p01_q, p23_q, n_q;
    reg         o01_q, o23_q, over_q;
    wire [17:0] p01 = {9'd0, bound[8:0]} * {9'd0, bound[24:16]};
    wire [17:0] p23 = {9'd0, bound[40:32]} * {9'd0, bound[56:48]};
    wire [17:0] p   = {9'd0, p01_q} * {9'd0, p23_q};

    assign n    = n_q;
    assign over = over_q;

    always @(posedge clk) begin
        v_q <= {v_q[0], rd_en};
        if (v_q[0]) begin
            p01_q <= p01[8:0];
            o01_q <= (big[1:0] != 2'd0) || (p01 > MAX);
            p23_q <= p23[8:0];
            o23_q <= (big[3:2] != 2'd0) || (p23 > MAX);
        end
        if (v_q[1]) begin
            n_q    <= p[8:0];
            over_q <= o01_q || o23_q || (p > MAX);
        end
    end

    wire unused = &{1'b0, we_value[39:34]};

endmodule

`default_nettype wire
