// SPDX-License-Identifier: Apache-2.0
// vc_core: bench stand-in with the ports of the real module and a traffic_node on its link.
`default_nettype none

module vc_core #(
    parameter CU_X = 1,
    parameter CU_Y = 1,
    parameter MEM_X = 0,
    parameter MEM_Y = 1,
    parameter CU_VERSION = 5,
    parameter INST_DEPTH = 32,
    parameter ACKQ_DEPTH = 64,
    parameter MX_STORE = 0
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy
);

    traffic_node #(.POS_X(CU_X), .POS_Y(CU_Y), .TYPES(16'h01D3)) u_node (
        .clk(clk), .rst_n(rst_n),
        .noc_in_valid(noc_in_valid), .noc_in_data(noc_in_data), .noc_in_busy(noc_in_busy),
        .noc_out_valid(noc_out_valid), .noc_out_data(noc_out_data), .noc_out_busy(noc_out_busy));

endmodule

`default_nettype wire
