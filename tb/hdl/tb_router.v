// SPDX-License-Identifier: Apache-2.0
// tb_router: one router with a traffic_node on every port and a link_checker on
// every link. The nodes carry the coordinates of the neighbouring positions.
`default_nettype none
`include "ktpu_defs.vh"

module tb_router #(
    parameter POS_X      = 1,
    parameter POS_Y      = 1,
    parameter GRID_X_HI  = 1,
    parameter GRID_Y_HI  = 1,
    parameter FIFO_DEPTH = 32
) (
    input  wire       clk,
    input  wire       rst_n,
    output wire       route_err,
    output reg [31:0] route_errs,
    output reg [4:0]  hit_full,      // per input: the FIFO was full
    output reg [4:0]  hit_drained    // per input: empty again after it was full
);

    wire                  n_in_valid, n_in_busy, n_out_valid, n_out_busy;
    wire [`KT_FLIT_W-1:0] n_in_data, n_out_data;
    wire                  e_in_valid, e_in_busy, e_out_valid, e_out_busy;
    wire [`KT_FLIT_W-1:0] e_in_data, e_out_data;
    wire                  s_in_valid, s_in_busy, s_out_valid, s_out_busy;
    wire [`KT_FLIT_W-1:0] s_in_data, s_out_data;
    wire                  w_in_valid, w_in_busy, w_out_valid, w_out_busy;
    wire [`KT_FLIT_W-1:0] w_in_data, w_out_data;
    wire                  l_in_valid, l_in_busy, l_out_valid, l_out_busy;
    wire [`KT_FLIT_W-1:0] l_in_data, l_out_data;

    router #(
        .POS_X      (POS_X),
        .POS_Y      (POS_Y),
        .GRID_X_HI  (GRID_X_HI),
        .GRID_Y_HI  (GRID_Y_HI),
        .FIFO_DEPTH (FIFO_DEPTH)
    ) u_router (
        .clk         (clk),
        .rst_n       (rst_n),
        .n_in_valid  (n_in_valid),
        .n_in_data   (n_in_data),
        .n_in_busy   (n_in_busy),
        .n_out_valid (n_out_valid),
        .n_out_data  (n_out_data),
        .n_out_busy  (n_out_busy),
        .e_in_valid  (e_in_valid),
        .e_in_data   (e_in_data),
        .e_in_busy   (e_in_busy),
        .e_out_valid (e_out_valid),
        .e_out_data  (e_out_data),
        .e_out_busy  (e_out_busy),
        .s_in_valid  (s_in_valid),
        .s_in_data   (s_in_data),
        .s_in_busy   (s_in_busy),
        .s_out_valid (s_out_valid),
        .s_out_data  (s_out_data),
        .s_out_busy  (s_out_busy),
        .w_in_valid  (w_in_valid),
        .w_in_data   (w_in_data),
        .w_in_busy   (w_in_busy),
        .w_out_valid (w_out_valid),
        .w_out_data  (w_out_data),
        .w_out_busy  (w_out_busy),
        .l_in_valid  (l_in_valid),
        .l_in_data   (l_in_data),
        .l_in_busy   (l_in_busy),
        .l_out_valid (l_out_valid),
        .l_out_data  (l_out_data),
        .l_out_busy  (l_out_busy),
        .route_err   (route_err)
    );

    traffic_node #(.POS_X(POS_X), .POS_Y(POS_Y - 1)) u_n (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (n_out_valid),
        .noc_in_data   (n_out_data),
        .noc_in_busy   (n_out_busy),
        .noc_out_valid (n_in_valid),
        .noc_out_data  (n_in_data),
        .noc_out_busy  (n_in_busy)
    );

    traffic_node #(.POS_X(POS_X + 1), .POS_Y(POS_Y)) u_e (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (e_out_valid),
        .noc_in_data   (e_out_data),
        .noc_in_busy   (e_out_busy),
        .noc_out_valid (e_in_valid),
        .noc_out_data  (e_in_data),
        .noc_out_busy  (e_in_busy)
    );

    traffic_node #(.POS_X(POS_X), .POS_Y(POS_Y + 1)) u_s (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (s_out_valid),
        .noc_in_data   (s_out_data),
        .noc_in_busy   (s_out_busy),
        .noc_out_valid (s_in_valid),
        .noc_out_data  (s_in_data),
        .noc_out_busy  (s_in_busy)
    );

    traffic_node #(.POS_X(POS_X - 1), .POS_Y(POS_Y)) u_w (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (w_out_valid),
        .noc_in_data   (w_out_data),
        .noc_in_busy   (w_out_busy),
        .noc_out_valid (w_in_valid),
        .noc_out_data  (w_in_data),
        .noc_out_busy  (w_in_busy)
    );

    traffic_node #(.POS_X(POS_X), .POS_Y(POS_Y)) u_l (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (l_out_valid),
        .noc_in_data   (l_out_data),
        .noc_in_busy   (l_out_busy),
        .noc_out_valid (l_in_valid),
        .noc_out_data  (l_in_data),
        .noc_out_busy  (l_in_busy)
    );

`ifndef KT_ICARUS
    link_checker #(.STOP(1)) u_chk_n_in (.clk(clk), .rst_n(rst_n), .valid(n_in_valid),
        .busy(n_in_busy), .data(n_in_data), .own_out_blocked(1'b0));
    link_checker #(.STOP(1)) u_chk_n_out (.clk(clk), .rst_n(rst_n), .valid(n_out_valid),
        .busy(n_out_busy), .data(n_out_data), .own_out_blocked(1'b0));
    link_checker #(.STOP(1)) u_chk_e_in (.clk(clk), .rst_n(rst_n), .valid(e_in_valid),
        .busy(e_in_busy), .data(e_in_data), .own_out_blocked(1'b0));
    link_checker #(.STOP(1)) u_chk_e_out (.clk(clk), .rst_n(rst_n), .valid(e_out_valid),
        .busy(e_out_busy), .data(e_out_data), .own_out_blocked(1'b0));
    link_checker #(.STOP(1)) u_chk_s_in (.clk(clk), .rst_n(rst_n), .valid(s_in_valid),
        .busy(s_in_busy), .data(s_in_data), .own_out_blocked(1'b0));
    link_checker #(.STOP(1)) u_chk_s_out (.clk(clk), .rst_n(rst_n), .valid(s_out_valid),
        .busy(s_out_busy), .data(s_out_data), .own_out_blocked(1'b0));
    link_checker #(.STOP(1)) u_chk_w_in (.clk(clk), .rst_n(rst_n), .valid(w_in_valid),
        .busy(w_in_busy), .data(w_in_data), .own_out_blocked(1'b0));
    link_checker #(.STOP(1)) u_chk_w_out (.clk(clk), .rst_n(rst_n), .valid(w_out_valid),
        .busy(w_out_busy), .data(w_out_data), .own_out_blocked(1'b0));
    link_checker #(.STOP(1)) u_chk_l_in (.clk(clk), .rst_n(rst_n), .valid(l_in_valid),
        .busy(l_in_busy), .data(l_in_data), .own_out_blocked(1'b0));
    link_checker #(.STOP(1)) u_chk_l_out (.clk(clk), .rst_n(rst_n), .valid(l_out_valid),
        .busy(l_out_busy), .data(l_out_data), .own_out_blocked(1'b0));
`endif

    wire [4:0] full  = {u_router.u_in_l.u_fifo.level == FIFO_DEPTH,
                        u_router.u_in_w.u_fifo.level == FIFO_DEPTH,
                        u_router.u_in_s.u_fifo.level == FIFO_DEPTH,
                        u_router.u_in_e.u_fifo.level == FIFO_DEPTH,
                        u_router.u_in_n.u_fifo.level == FIFO_DEPTH};
    wire [4:0] empty = {u_router.u_in_l.u_fifo.level == 0,
                        u_router.u_in_w.u_fifo.level == 0,
                        u_router.u_in_s.u_fifo.level == 0,
                        u_router.u_in_e.u_fifo.level == 0,
                        u_router.u_in_n.u_fifo.level == 0};

    always @(posedge clk) begin
        if (!rst_n) begin
            route_errs  <= 0;
            hit_full    <= 0;
            hit_drained <= 0;
        end else begin
            route_errs  <= route_errs + {31'd0, route_err};
            hit_full    <= hit_full | full;
            hit_drained <= hit_drained | (hit_full & empty);
        end
    end

endmodule

`default_nettype wire
