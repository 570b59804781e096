// SPDX-License-Identifier: Apache-2.0
// mag_ad_window: which of an endpoint's memory requests its L2 adapter answers.
//
// Latency    combinational.
// Result     mine: the adapter answers, with an error if code is not KT_M_NONE;
//            multicast: an in-window streaming read with peers, forwarded; straddle:
//            some bytes of the access lie inside the window and some outside.
// Parameters L2_BITS 14..32.
// Spec       docs/spec/memory.md 11.3
`default_nettype none
`include "ktpu_defs.vh"

module mag_ad_window #(
    parameter L2_BITS = 18
) (
    input  wire [39:0]  base,
    input  wire         enable,

    input  wire         is_read,       // else a write
    input  wire [7:0]   txn,
    input  wire [97:0]  head,          // payload[255:158]

    output wire [10:0]  lines,
    output wire [2:0]   ew,
    output wire         strm,
    output wire         mine,
    output wire         multicast,
    output wire         straddle,
    output wire [3:0]   code
);

    wire [39:0] addr  = head[97:58];
    wire [7:0]  len   = head[57:50];
    wire [7:0]  count = head[41:34] == 8'd0 ? 8'd1 : head[41:34];
    wire [7:0]  raw   = head[7:0];

    assign strm  = is_read && head[48];
    assign ew    = (raw == 8'd0 || raw > 8'd4) ? 3'd4 : raw[2:0];
    assign lines = !strm      ? {3'd0, len} + 11'd1
                 : ew == 3'd1 ? {3'd0, count}
                 : ew == 3'd2 ? {2'd0, count, 1'b0}
                 : ew == 3'd3 ? {2'd0, count, 1'b0} + {3'd0, count} : {1'b0, count, 2'd0};

    // The last byte, exact: the window may be entered, left or spanned.
    localparam TW = 40 - L2_BITS;
    wire [40:0] last_byte = {1'b0, addr} + {25'd0, lines, 5'd0} - 41'd1;
    wire [TW:0] tag   = {1'b0, base[39:L2_BITS]};
    wire [TW:0] tag_0 = {1'b0, addr[39:L2_BITS]};
    wire [TW:0] tag_1 = last_byte[40:L2_BITS];
    wire        touches = enable && tag_0 <= tag && tag_1 >= tag;

    assign multicast = touches && strm && head[9:8] != 2'd0;
    assign mine      = touches && !multicast;
    assign straddle  = mine && (tag_0 != tag || tag_1 != tag);
    assign code      = addr[4:0] != 5'd0                                 ? `KT_M_ALIGN
                     : straddle                                          ? `KT_M_RANGE
                     : strm && {1'b0, txn} + {1'b0, count} > 9'd256      ? `KT_M_TAG : `KT_M_NONE;

    wire unused = &{1'b0, head[49], head[47:42], head[33:10], base[L2_BITS-1:0], last_byte[L2_BITS-1:0]};

endmodule

`default_nettype wire
