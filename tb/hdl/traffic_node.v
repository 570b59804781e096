// SPDX-License-Identifier: Apache-2.0
// traffic_node: traffic_core with the parameters of a mesh endpoint.
`default_nettype none
`include "ktpu_defs.vh"

module traffic_node #(
    parameter        POS_X = 1,
    parameter        POS_Y = 1,
    parameter        MEM_X = 0,         // accepted like every endpoint, not used
    parameter        MEM_Y = 0,
    parameter [15:0] TYPES = 16'hFFFF   // types it sends
) (
    input  wire                  clk,
    input  wire                  rst_n,

    input  wire                  noc_in_valid,
    input  wire [`KT_FLIT_W-1:0] noc_in_data,
    output wire                  noc_in_busy,
    output wire                  noc_out_valid,
    output wire [`KT_FLIT_W-1:0] noc_out_data,
    input  wire                  noc_out_busy
);

    traffic_core u_core (
        .clk           (clk),
        .rst_n         (rst_n),
        .pos_x         (POS_X[3:0]),
        .pos_y         (POS_Y[3:0]),
        .types         (TYPES),
        .noc_in_valid  (noc_in_valid),
        .noc_in_data   (noc_in_data),
        .noc_in_busy   (noc_in_busy),
        .noc_out_valid (noc_out_valid),
        .noc_out_data  (noc_out_data),
        .noc_out_busy  (noc_out_busy)
    );

endmodule

`default_nettype wire
