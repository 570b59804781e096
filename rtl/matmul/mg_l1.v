// SPDX-License-Identifier: Apache-2.0
// mg_l1: the two operand memories of the cluster and the placement of raw
// entries into them (docs/spec/cluster.md 3.1, 3.2).
//
// After reset every entry is written with zero, one per cycle and both sides at
// once, before `ready` rises: an entry never written reads as zero.
//
// Latency    a commit is readable from the next cycle on; rd_a, rd_b are valid
//            LAT cycles after rd_en and held while rd_en = 0.
// Throughput one commit (of either source) and one read of both sides a cycle.
// The FILL has the write port first; a CU_DATA entry waits (c_ready).
//
// Raw form: word w of the entry at [224*w +: 224], its slot s at the bits
// [223-7s -: 7]; the four scale bytes of word 0, lane 0 topmost, at [927:896].
// GA, GB: powers of two, 32..512. LAT 1..2. PRIM as ram_sdp.
`default_nettype none

module mg_l1 #(
    parameter GA   = 512,
    parameter GB   = 512,
    parameter PRIM = "block",
    parameter LAT  = 1
) (
    input  wire         clk,
    input  wire         rst_n,
    output wire         ready,

    input  wire         f_commit,
    input  wire         f_side,
    input  wire [8:0]   f_idx,
    input  wire [927:0] f_raw,

    input  wire         c_commit,
    output wire         c_ready,
    input  wire         c_side,
    input  wire [8:0]   c_idx,
    input  wire [927:0] c_raw,

    input  wire         rd_en,
    input  wire [8:0]   rd_a_idx,
    input  wire [8:0]   rd_b_idx,
    output wire [927:0] rd_a,
    output wire [927:0] rd_b
);

    localparam AW_A = $clog2(GA);
    localparam AW_B = $clog2(GB);
    localparam [9:0] WALK_END = (GA > GB) ? GA[9:0] : GB[9:0];

    reg [9:0] walk_q;
    wire      walking = walk_q != WALK_END;
    assign ready = !walking;

    always @(posedge clk) begin
        if (!rst_n) walk_q <= 10'd0;
        else if (walking) walk_q <= walk_q + 10'd1;
    end

    assign c_ready = !walking && !f_commit;

    wire         wr_any  = f_commit || (c_commit && c_ready);
    wire         wr_side = f_commit ? f_side : c_side;
    wire [8:0]   wr_idx  = walking ? walk_q[8:0] : f_commit ? f_idx : c_idx;
    wire [927:0] raw     = walking ? 928'd0 : f_commit ? f_raw : c_raw;
    wire         wr_a    = walking || (wr_any && !wr_side);
    wire         wr_b    = walking || (wr_any && wr_side);

    wire [927:0] place_a, place_b;
    genvar l, w, e;
    generate
        for (l = 0; l < 4; l = l + 1) begin : g_lane
            for (w = 0; w < 4; w = w + 1) begin : g_word
                for (e = 0; e < 8; e = e + 1) begin : g_elem
                    assign place_a[7*(32*l + 8*w + e) +: 7]  = raw[224*w + 223 - 7*(8*l + e) -: 7];
                    assign place_b[7*(4*(8*w + e) + l) +: 7] = raw[224*w + 223 - 7*(4*e + l) -: 7];
                end
            end
            assign place_a[896 + 8*l +: 8] = raw[927 - 8*l -: 8];
            assign place_b[896 + 8*l +: 8] = raw[927 - 8*l -: 8];
        end
    endgenerate

    ram_sdp #(.WIDTH(928), .DEPTH(GA), .PRIM(PRIM), .READ_LAT(LAT)) l1_a (
        .clk     (clk),
        .wr_en   (wr_a),
        .wr_addr (wr_idx[AW_A-1:0]),
        .wr_data (place_a),
        .rd_en   (rd_en),
        .rd_addr (rd_a_idx[AW_A-1:0]),
        .rd_data (rd_a)
    );

    ram_sdp #(.WIDTH(928), .DEPTH(GB), .PRIM(PRIM), .READ_LAT(LAT)) l1_b (
        .clk     (clk),
        .wr_en   (wr_b),
        .wr_addr (wr_idx[AW_B-1:0]),
        .wr_data (place_b),
        .rd_en   (rd_en),
        .rd_addr (rd_b_idx[AW_B-1:0]),
        .rd_data (rd_b)
    );

    // A side smaller than 512 entries has no use for the top index bits: the
    // checks of decode keep them zero.
    wire unused = &{1'b0, rd_a_idx, rd_b_idx, wr_idx};

endmodule

`default_nettype wire
