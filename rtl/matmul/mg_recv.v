// SPDX-License-Identifier: Apache-2.0
// mg_recv: answer to CU_DATA descriptors and assembly of operand entries that
// arrive in buffers 0 and 1 (docs/spec/cluster.md 8.1 to 8.3).
//
// Words of an entry arrive in order; the entry is offered for commit in the
// cycle after word 3 and waits while the running sweep still reads it (`hold`)
// or the FILL has the write port. An entry may end in a later burst. A word that
// does not continue the open entry, or whose earlier words are missing, raises
// `a_split` and the incomplete entry is not committed.
//
// Throughput one word per cycle.
`default_nettype none
`include "ktpu_defs.vh"

module mg_recv #(
    parameter TILES = 512,
    parameter GA    = 512,
    parameter GB    = 512
) (
    input  wire         clk,
    input  wire         rst_n,

    // descriptor at the head of cud_rx
    input  wire [7:0]   desc_buf,
    input  wire [15:0]  desc_off,
    input  wire [7:0]   desc_len,
    input  wire [12:0]  open_count,
    output reg  [2:0]   desc_reason,

    // words for buffers 0 and 1
    input  wire         wr_valid,
    output wire         wr_ready,
    input  wire         wr_side,
    input  wire [10:0]  wr_granule,
    input  wire [255:0] wr_data,

    output wire         commit,
    input  wire         commit_ready,
    output wire         commit_side,
    output wire [8:0]   commit_idx,
    output wire [927:0] commit_raw,
    input  wire         hold,

    output wire         pending,        // a complete entry waits for its commit
    output wire         a_split
);

    localparam [16:0] CAP_A = 17'd4 * GA[16:0];
    localparam [16:0] CAP_B = 17'd4 * GB[16:0];
    localparam [16:0] CAP_T = 17'd2 * TILES[16:0];

    wire [16:0] end_off = {1'b0, desc_off} + {9'd0, desc_len};  // last granule
    wire        is_buf2 = desc_buf == `KT_MG_BUF_ACC;
    wire [16:0] cap = is_buf2 ? CAP_T : (desc_buf == `KT_MG_BUF_B) ? CAP_B : CAP_A;

    always @* begin
        desc_reason = `KT_REJ_NONE;
        if (desc_buf > `KT_MG_BUF_ACC)                             desc_reason = `KT_REJ_UNKNOWN_BUF;
        else if (end_off >= cap)                                   desc_reason = `KT_REJ_RANGE;
        else if (is_buf2 && (desc_off[0] || !desc_len[0]))         desc_reason = `KT_REJ_ODD_START;
        else if (is_buf2 && (end_off[16:1] >= {3'd0, open_count})) desc_reason = `KT_REJ_NOT_READY;
    end

    // ---- assembly: words 0..next_q-1 of {side_q, entry_q} are in
    reg         full_q, side_q;
    reg [8:0]   entry_q;
    reg [1:0]   next_q;
    reg [223:0] word0_q, word1_q, word2_q, word3_q;
    reg [31:0]  scale_q;

    assign commit      = full_q && !hold;
    assign commit_side = side_q;
    assign commit_idx  = entry_q;
    assign commit_raw  = {scale_q, word3_q, word2_q, word1_q, word0_q};
    assign pending     = full_q;

    assign wr_ready = !full_q || (commit && commit_ready);

    wire        take   = wr_valid && wr_ready;
    wire [1:0]  word   = wr_granule[1:0];
    wire        starts = word == 2'd0;
    wire        joins  = (next_q != 2'd0) && (word == next_q)
                      && ({wr_side, wr_granule[10:2]} == {side_q, entry_q});
    wire        stores = take && (starts || joins);

    assign a_split = take && (starts ? (next_q != 2'd0) : !joins);

    always @(posedge clk) begin
        if (!rst_n) begin
            full_q <= 1'b0;
            next_q <= 2'd0;
        end else begin
            if (stores && (word == 2'd3)) full_q <= 1'b1;
            else if (commit && commit_ready) full_q <= 1'b0;
            // word 3 ends the entry: next wraps to 0
            if (take) next_q <= stores ? word + 2'd1 : 2'd0;
        end
        if (stores && starts) begin
            side_q  <= wr_side;
            entry_q <= wr_granule[10:2];
            word0_q <= wr_data[255:32];
            scale_q <= wr_data[31:0];
        end
        if (stores && word == 2'd1) word1_q <= wr_data[255:32];
        if (stores && word == 2'd2) word2_q <= wr_data[255:32];
        if (stores && word == 2'd3) word3_q <= wr_data[255:32];
    end

endmodule

`default_nettype wire
