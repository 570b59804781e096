// SPDX-License-Identifier: Apache-2.0
// Link checkers of tb_vc_pair: each core sends as a unit; what enters it comes
// from many sources.
`default_nettype none

bind vc_pair_side link_checker #(.ROLE(1), .SRC_X(1 + SIDE), .SRC_Y(0), .MAX_BUSY(0)) u_links_out (
    .clk             (clk),
    .rst_n           (rst_n),
    .valid           (valid),
    .busy            (busy_q),
    .data            (out_flit),
    .own_out_blocked (1'b0)
);

bind vc_pair_side link_checker #(.ROLE(0), .MAX_BUSY(10000)) u_links_in (
    .clk             (clk),
    .rst_n           (rst_n),
    .valid           (in_valid_q),
    .busy            (in_busy),
    .data            (in_flit_q),
    .own_out_blocked (valid && busy_q)
);

`default_nettype wire
