// SPDX-License-Identifier: Apache-2.0
// sync_2ff: two flops that bring levels of another clock domain into this one,
// docs/spec/fabric.md 9.
//
// Latency    2 edges of clk, or 3 if d changes too close to an edge. A bit that
//            lasts for less than one clk period can be missed.
// d          registers of one other domain. Of several bits at most one changes
//            per edge of that domain (Gray code), or nobody looks while more do;
//            bits that change together may arrive one clk cycle apart.
// No reset. Also makes a clock domain's copy of a reset level.
// Timing     d is a false path, or a maximum delay of one source period if WIDTH > 1.
//
// WIDTH >= 1. KT_SYNC_MODEL puts a bench's model of late arrival in front.
`default_nettype none

module sync_2ff #(
    parameter WIDTH = 1
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] d,
    output wire [WIDTH-1:0] q
);

    wire [WIDTH-1:0] seen;

`ifdef KT_SYNC_MODEL
    sync_2ff_model #(.WIDTH(WIDTH)) u_model (.clk(clk), .d(d), .seen(seen));
`else
    assign seen = d;
`endif

    (* ASYNC_REG = "TRUE" *) reg [WIDTH-1:0] meta_q;
    (* ASYNC_REG = "TRUE" *) reg [WIDTH-1:0] sync_q;

    always @(posedge clk) begin
        meta_q <= seen;
        sync_q <= meta_q;
    end

    assign q = sync_q;

endmodule

`default_nettype wire
