// SPDX-License-Identifier: Apache-2.0
// mg_fill: one FILL at a time: the read request, placement of its responses by
// tag and word index, and its end (docs/spec/cluster.md 3.3, 3.4).
//
// Latency    request offered in the cycle after `go` unless `hold`; an entry is
//            committed in the cycle after its last word; `done` is high in the
//            cycle of the last commit.
// Throughput one response flit per cycle, never refused.
//
// The words of an entry may come in any order. A word of no FILL, a second copy
// of a word and a word of another entry while one is open raise `a_resp`.
// WDOG: cycles without a response after which the FILL ends, 0 = never.
`default_nettype none
`include "ktpu_defs.vh"

module mg_fill #(
    parameter [3:0] CU_X  = 4'd0,
    parameter [3:0] CU_Y  = 4'd0,
    parameter [3:0] MEM_X = 4'd0,
    parameter [3:0] MEM_Y = 4'd0,
    parameter       WDOG  = 1048576
) (
    input  wire         clk,
    input  wire         rst_n,

    // dispatch
    input  wire         go,
    input  wire [39:0]  go_addr,
    input  wire [7:0]   go_n,           // 1..255
    input  wire [7:0]   go_eoff,
    input  wire         go_bank,
    input  wire         go_side,
    input  wire         hold,           // an entry of the region is still to be read

    // region of the waiting or running FILL
    output wire [19:0]  region,         // {side, lo 9, hi 10}, half open

    // read request
    output wire         req_valid,
    input  wire         req_ready,
    output wire [287:0] req_flit,

    // responses
    input  wire         resp_valid,
    input  wire [287:0] resp_flit,

    // commit of one entry, raw word order (mg_l1 places it)
    output wire         commit,
    output wire         commit_side,
    output wire [8:0]   commit_idx,
    output wire [927:0] commit_raw,

    output wire         done,
    output wire [7:0]   done_code,
    output wire         a_resp,
    output wire         wdog_event
);

    localparam [31:0] WDOG_LAST = WDOG[31:0] - 32'd1;

    reg         wait_q, live_q;         // request not yet accepted; responses outstanding
    reg [39:0]  addr_q;
    reg [7:0]   n_q, eoff_q, left_q;
    reg         bank_q, side_q, err_q;
    reg [31:0]  wdog_q;

    reg [3:0]   mask_q;
    reg [7:0]   entry_q;
    reg         full_q;
    reg [223:0] word0_q, word1_q, word2_q, word3_q;
    reg [31:0]  scale_q;

    // ---- responses
    wire [7:0]  txn      = resp_flit[`KT_FLIT_TXN];
    wire [1:0]  word     = resp_flit[`KT_FLIT_RSVD_LOW];
    wire        bad_word = resp_flit[`KT_FLIT_RSVD_FLAG];
    wire [7:0]  rel      = txn - eoff_q;
    wire        last_commit = full_q && (left_q == 8'd1);
    wire        ours     = resp_valid && live_q && !last_commit && (rel < n_q);
    wire [3:0]  bit_of   = 4'b0001 << word;
    wire        joins    = (mask_q == 4'd0) || ((txn == entry_q) && ((mask_q & bit_of) == 4'd0));
    wire [3:0]  mask_new = joins ? (mask_q | bit_of) : bit_of;
    wire        complete = ours && (mask_new == 4'b1111);
    wire [255:0] data    = bad_word ? 256'd0 : resp_flit[`KT_FLIT_PAYLOAD];

    wire        expired  = (WDOG != 0) && live_q && !ours && !full_q && (wdog_q == WDOG_LAST);

    assign a_resp      = resp_valid && !(ours && joins);
    assign commit      = full_q;
    assign commit_side = side_q;
    assign commit_idx  = {bank_q, entry_q};
    assign commit_raw  = {scale_q, word3_q, word2_q, word1_q, word0_q};
    assign done        = last_commit || expired;
    assign done_code   = expired ? `KT_MG_F_WDOG : err_q ? `KT_MG_F_MEM_RD : 8'd0;
    assign wdog_event  = expired;

    assign region = {side_q, bank_q, eoff_q, {1'b0, bank_q, eoff_q} + {2'd0, n_q}};

    assign req_valid = wait_q && !hold;
    assign req_flit  = {MEM_X, MEM_Y, CU_X, CU_Y, `KT_TYPE_MEM_RD_REQ, eoff_q, 1'b1, 3'd0,
                        addr_q, `KT_MG_FILL_LEN, `KT_MG_FILL_FLAGS, n_q, 192'd0};

    always @(posedge clk) begin
        if (!rst_n) begin
            wait_q <= 1'b0;
            live_q <= 1'b0;
            full_q <= 1'b0;
            mask_q <= 4'd0;
        end else begin
            if (go) wait_q <= 1'b1;
            else if (req_valid && req_ready) wait_q <= 1'b0;

            if (req_valid && req_ready) live_q <= 1'b1;
            else if (done) live_q <= 1'b0;

            full_q <= complete;
            if (complete || expired) mask_q <= 4'd0;
            else if (ours) mask_q <= mask_new;
        end

        if (go) begin
            addr_q <= go_addr;
            n_q    <= go_n;
            eoff_q <= go_eoff;
            bank_q <= go_bank;
            side_q <= go_side;
            left_q <= go_n;
            err_q  <= 1'b0;
        end else begin
            if (full_q) left_q <= left_q - 8'd1;
            if (ours && bad_word) err_q <= 1'b1;
        end

        if (!live_q || ours) wdog_q <= 32'd0;
        else wdog_q <= wdog_q + 32'd1;

        if (ours) entry_q <= txn;
        if (ours && word == 2'd0) begin
            word0_q <= data[255:32];
            scale_q <= data[31:0];
        end
        if (ours && word == 2'd1) word1_q <= data[255:32];
        if (ours && word == 2'd2) word2_q <= data[255:32];
        if (ours && word == 2'd3) word3_q <= data[255:32];
    end

    wire unused = &{1'b0, resp_flit[287:268], resp_flit[259]};

endmodule

`default_nettype wire
