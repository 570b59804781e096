// SPDX-License-Identifier: Apache-2.0
// link_term: terminator of a router port without endpoint or neighbour,
// docs/spec/fabric.md 4.1.
//
// Takes every flit at once (busy only in reset), discards it, pulses lost one
// cycle later and keeps the header of the first discarded flit for debugging
// (0 before). Sends nothing.
`default_nettype none
`include "ktpu_defs.vh"

module link_term (
    input  wire                  clk,
    input  wire                  rst_n,

    input  wire                  noc_in_valid,
    input  wire [`KT_FLIT_W-1:0] noc_in_data,
    output wire                  noc_in_busy,
    output wire                  noc_out_valid,
    output wire [`KT_FLIT_W-1:0] noc_out_data,
    input  wire                  noc_out_busy,

    output wire                  lost,
    output wire [`KT_HDR_W-1:0]  first_hdr
);

    reg                 busy_q, lost_q, seen_q;
    reg [`KT_HDR_W-1:0] hdr_q;

    wire take = noc_in_valid && !busy_q;
    wire unused = &{1'b0, noc_out_busy, noc_in_data[`KT_FLIT_PAYLOAD]};

    always @(posedge clk) begin
        if (!rst_n) begin
            busy_q <= 1'b1;
            lost_q <= 1'b0;
            seen_q <= 1'b0;
            hdr_q  <= {`KT_HDR_W{1'b0}};
        end else begin
            busy_q <= 1'b0;
            lost_q <= take;
            if (take && !seen_q) begin
                seen_q <= 1'b1;
                hdr_q  <= noc_in_data[`KT_FLIT_W-1 -: `KT_HDR_W];
            end
        end
    end

    assign noc_in_busy   = busy_q;
    assign noc_out_valid = 1'b0;
    assign noc_out_data  = {`KT_FLIT_W{1'b0}};
    assign lost          = lost_q;
    assign first_hdr     = hdr_q;

endmodule

`default_nettype wire
