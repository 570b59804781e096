// SPDX-License-Identifier: Apache-2.0
// link_slice: register slice of one link direction, docs/spec/fabric.md 2.3.
//
// Latency 1 cycle, throughput one flit per cycle. Two entries; in_busy is a
// register: second entry occupied, or reset.
`default_nettype none
`include "ktpu_defs.vh"

module link_slice (
    input  wire                  clk,
    input  wire                  rst_n,

    input  wire                  in_valid,
    input  wire [`KT_FLIT_W-1:0] in_data,
    output wire                  in_busy,

    output wire                  out_valid,
    output wire [`KT_FLIT_W-1:0] out_data,
    input  wire                  out_busy
);

    wire in_ready;

    skid2 #(
        .WIDTH (`KT_FLIT_W)
    ) u_skid (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (in_valid),
        .in_ready  (in_ready),
        .in_data   (in_data),
        .out_valid (out_valid),
        .out_ready (!out_busy),
        .out_data  (out_data)
    );

    assign in_busy = !in_ready;

endmodule

`default_nettype wire
