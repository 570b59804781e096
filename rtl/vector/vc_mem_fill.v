// SPDX-License-Identifier: Apache-2.0
// vc_mem_fill: read requests of one VFILL (docs/spec/vector.md 7.8, 9.1).
//
// Walks the descriptor on its own while the program goes on. With `merge` a run of
// contiguous addresses along dimension 0 is one streaming request of up to 255
// entries of one word that does not cross L1 word 256; else every word is one.
//
// Latency    first request offered two cycles after `go`.
// Throughput one request per cycle.
// `ended`    pulse: every request of the walk has been formed, or the walk met an
//            address outside 0..2^40-1 (`left_space`); `idle` also wants the last
//            one accepted.
// `stop` ends the walk at once (watchdog); an offered request stays offered.
`default_nettype none
`include "ktpu_defs.vh"

module vc_mem_fill #(
    parameter [3:0] CU_X  = 4'd0,
    parameter [3:0] CU_Y  = 4'd0,
    parameter [3:0] MEM_X = 4'd0,
    parameter [3:0] MEM_Y = 4'd0
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         go,
    input  wire         merge,
    input  wire [39:0]  base,
    input  wire [71:0]  stride,
    input  wire [63:0]  bound,
    input  wire [8:0]   lo,
    input  wire         stop,

    output wire         idle,
    output wire         walking,
    output wire         ended,
    output wire         left_space,
    output wire [8:0]   formed,         // words requested so far

    output wire         set,            // tags of the request formed in this cycle
    output wire [7:0]   set_tag,
    output wire [8:0]   set_n,

    output wire         req_valid,
    input  wire         req_ready,
    output wire [287:0] req_flit
);

    reg          walk_q, merge_q, valid_q;
    reg  [71:0]  stride_q;
    reg  [63:0]  bound_q;
    reg  [7:0]   tag_q, txn_q;
    reg  [8:0]   formed_q, count_q;
    reg  [39:0]  addr_q;

    wire [41:0]  addr;
    wire [15:0]  left0;
    wire         final_step;

    // Words of a request: the rest of the row, at most 255, not past tag 255.
    wire [8:0]   to_wrap = 9'd256 - {1'b0, tag_q};
    wire [8:0]   cap     = to_wrap[8] ? `KT_VC_STREAM_MAX : to_wrap;
    wire [8:0]   by      = !merge_q ? 9'd1 : (left0 < {7'd0, cap}) ? left0[8:0] : cap;
    wire         outside = addr[41:40] != 2'd0;
    wire         form    = walk_q && !outside && !stop && (!valid_q || req_ready);

    assign walking    = walk_q;
    assign left_space = walk_q && outside && !stop;
    assign ended      = (form && final_step) || left_space;
    assign idle       = !walk_q && !valid_q;
    assign formed     = formed_q;
    assign set        = form;
    assign set_tag    = tag_q;
    assign set_n      = by;

    vc_mem_walk u_walk (
        .clk        (clk),
        .load       (go),
        .start      ({2'b00, base}),
        .stride     (go ? stride : stride_q),
        .bound      (go ? bound : bound_q),
        .step       (form),
        .run        (merge_q),
        .by         (by),
        .addr       (addr),
        .left0      (left0),
        .final_step (final_step)
    );

    wire plain = count_q == 9'd1;
    assign req_valid = valid_q;
    assign req_flit  = {MEM_X, MEM_Y, CU_X, CU_Y, `KT_TYPE_MEM_RD_REQ, txn_q, 1'b1, 3'd0,
                        addr_q, 8'd0, plain ? 8'h00 : 8'h40, plain ? 8'd0 : count_q[7:0], 26'd0,
                        plain ? 8'd0 : 8'd1, 158'd0};

    always @(posedge clk) begin
        if (!rst_n) begin
            walk_q  <= 1'b0;
            valid_q <= 1'b0;
        end else begin
            if (go) walk_q <= 1'b1;
            else if (ended || stop) walk_q <= 1'b0;

            if (form) valid_q <= 1'b1;
            else if (req_ready) valid_q <= 1'b0;
        end

        if (go) begin
            merge_q  <= merge && (stride[17:0] == `KT_VC_WORD_BYTES);
            stride_q <= stride;
            bound_q  <= bound;
            tag_q    <= lo[7:0];
            formed_q <= 9'd0;
        end else if (form) begin
            tag_q    <= tag_q + by[7:0];
            formed_q <= formed_q + by;
        end
        if (form) begin
            addr_q  <= addr[39:0];
            txn_q   <= tag_q;
            count_q <= by;
        end
    end

    wire unused = &{1'b0, lo[8]};

endmodule

`default_nettype wire
