// SPDX-License-Identifier: Apache-2.0
// Link checkers of the tb_mag bench.
`default_nettype none
bind tb_mag link_checker #(.ROLE(0)) u_link_in (
    .clk(clk), .rst_n(rst_n), .valid(in_valid), .busy(in_busy), .data(in_data), .own_out_blocked(out_valid && out_busy));
bind tb_mag link_checker #(.ROLE(2), .SRC_X(PORT_X), .SRC_Y(PORT_Y)) u_link_out (
    .clk(clk), .rst_n(rst_n), .valid(out_valid), .busy(out_busy), .data(out_data), .own_out_blocked(1'b0));
`default_nettype wire
