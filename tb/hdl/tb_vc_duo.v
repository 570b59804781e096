// SPDX-License-Identifier: Apache-2.0
// tb_vc_duo: two vector cores at (1,0) and (2,1) of one router, the bench at (1,1).
// There is no memory: the cores only drain into each other and to the bench.
`default_nettype none

module tb_vc_duo (
    input wire clk,
    input wire rst_n
);
    wire         n_iv, n_ib, n_ov, n_ob, e_iv, e_ib, e_ov, e_ob, l_iv, l_ib, l_ov, l_ob;
    wire         s_iv, s_ib, s_ov, s_ob, w_iv, w_ib, w_ov, w_ob, lost_s, lost_w;
    wire [287:0] n_id, n_od, e_id, e_od, l_id, l_od, s_id, s_od, w_id, w_od;
    wire [31:0]  hdr_s, hdr_w;
    wire         route_err;
    reg          lost;

    router #(.POS_X(1), .POS_Y(1), .GRID_X_HI(1), .GRID_Y_HI(1)) u_router (
        .clk         (clk),
        .rst_n       (rst_n),
        .n_in_valid  (n_iv), .n_in_data  (n_id), .n_in_busy  (n_ib),
        .n_out_valid (n_ov), .n_out_data (n_od), .n_out_busy (n_ob),
        .e_in_valid  (e_iv), .e_in_data  (e_id), .e_in_busy  (e_ib),
        .e_out_valid (e_ov), .e_out_data (e_od), .e_out_busy (e_ob),
        .s_in_valid  (s_iv), .s_in_data  (s_id), .s_in_busy  (s_ib),
        .s_out_valid (s_ov), .s_out_data (s_od), .s_out_busy (s_ob),
        .w_in_valid  (w_iv), .w_in_data  (w_id), .w_in_busy  (w_ib),
        .w_out_valid (w_ov), .w_out_data (w_od), .w_out_busy (w_ob),
        .l_in_valid  (l_iv), .l_in_data  (l_id), .l_in_busy  (l_ib),
        .l_out_valid (l_ov), .l_out_data (l_od), .l_out_busy (l_ob),
        .route_err   (route_err)
    );

    vc_core #(.CU_X(1), .CU_Y(0)) u_a (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (n_ov),
        .noc_in_data   (n_od),
        .noc_in_busy   (n_ob),
        .noc_out_valid (n_iv),
        .noc_out_data  (n_id),
        .noc_out_busy  (n_ib)
    );

    vc_core #(.CU_X(2), .CU_Y(1)) u_b (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (e_ov),
        .noc_in_data   (e_od),
        .noc_in_busy   (e_ob),
        .noc_out_valid (e_iv),
        .noc_out_data  (e_id),
        .noc_out_busy  (e_ib)
    );

    flit_port u_host (
        .clk       (clk),
        .rst_n     (rst_n),
        .out_valid (l_iv),
        .out_data  (l_id),
        .out_busy  (l_ib),
        .in_valid  (l_ov),
        .in_data   (l_od),
        .in_busy   (l_ob)
    );

    link_term u_south (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (s_ov),
        .noc_in_data   (s_od),
        .noc_in_busy   (s_ob),
        .noc_out_valid (s_iv),
        .noc_out_data  (s_id),
        .noc_out_busy  (s_ib),
        .lost          (lost_s),
        .first_hdr     (hdr_s)
    );

    link_term u_west (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (w_ov),
        .noc_in_data   (w_od),
        .noc_in_busy   (w_ob),
        .noc_out_valid (w_iv),
        .noc_out_data  (w_id),
        .noc_out_busy  (w_ib),
        .lost          (lost_w),
        .first_hdr     (hdr_w)
    );

    link_checker #(.ROLE(1), .SRC_X(1), .SRC_Y(0)) u_check_a (
        .clk (clk), .rst_n (rst_n), .valid (n_iv), .busy (n_ib), .data (n_id), .own_out_blocked (1'b1)
    );
    link_checker #(.ROLE(1), .SRC_X(2), .SRC_Y(1)) u_check_b (
        .clk (clk), .rst_n (rst_n), .valid (e_iv), .busy (e_ib), .data (e_id), .own_out_blocked (1'b1)
    );
    link_checker #(.ROLE(0)) u_check_to_a (
        .clk (clk), .rst_n (rst_n), .valid (n_ov), .busy (n_ob), .data (n_od), .own_out_blocked (n_iv && n_ib)
    );
    link_checker #(.ROLE(0)) u_check_to_b (
        .clk (clk), .rst_n (rst_n), .valid (e_ov), .busy (e_ob), .data (e_od), .own_out_blocked (e_iv && e_ib)
    );

    always @(posedge clk) lost <= rst_n && (lost || lost_s || lost_w || route_err);

    wire unused = &{1'b0, hdr_s, hdr_w};
endmodule

`default_nettype wire
