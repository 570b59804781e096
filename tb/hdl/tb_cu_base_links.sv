// SPDX-License-Identifier: Apache-2.0
// Link properties on both links of tb_cu_base.
`default_nettype none

bind tb_cu_base link_checker #(
    .ROLE     (0),
    .MAX_BUSY (0)
) u_link_in (
    .clk             (clk),
    .rst_n           (rst_n),
    .valid           (in_valid_q),
    .busy            (in_busy),
    .data            (in_q),
    .own_out_blocked (1'b0)
);

bind tb_cu_base link_checker #(
    .ROLE     (1),
    .SRC_X    (POS_X),
    .SRC_Y    (POS_Y),
    .MAX_BUSY (0)
) u_link_out (
    .clk             (clk),
    .rst_n           (rst_n),
    .valid           (out_valid),
    .busy            (o_stall || !rst_n),
    .data            (out_data),
    .own_out_blocked (1'b0)
);

`default_nettype wire
