// SPDX-License-Identifier: Apache-2.0
// Link checkers of the tb_mag_adapter bench, on both faces of the adapter.
`default_nettype none
bind tb_mag_adapter link_checker #(.ROLE(4)) u_link_ep_in (
    .clk(clk), .rst_n(rst_n), .valid(ep_in_valid), .busy(ep_in_busy), .data(ep_in_data),
    .own_out_blocked((ep_out_valid && ep_out_busy) || (rt_out_valid && rt_out_busy)));
bind tb_mag_adapter link_checker #(.ROLE(0)) u_link_ep_out (
    .clk(clk), .rst_n(rst_n), .valid(ep_out_valid), .busy(ep_out_busy), .data(ep_out_data), .own_out_blocked(1'b1));
bind tb_mag_adapter link_checker #(.ROLE(0)) u_link_rt_in (
    .clk(clk), .rst_n(rst_n), .valid(rt_in_valid), .busy(rt_in_busy), .data(rt_in_data),
    .own_out_blocked(ep_out_valid && ep_out_busy));
bind tb_mag_adapter link_checker #(.ROLE(4)) u_link_rt_out (
    .clk(clk), .rst_n(rst_n), .valid(rt_out_valid), .busy(rt_out_busy), .data(rt_out_data), .own_out_blocked(1'b1));
`default_nettype wire
