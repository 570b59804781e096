// SPDX-License-Identifier: Apache-2.0
// router: five-port mesh switch, docs/spec/fabric.md 3. Ports N(0), E(1), S(2),
// W(3), L(4); <p>_in_* enters the router, <p>_out_* leaves it.
//
// Latency    a flit transferred in cycle k is offered in cycle k+3 if nothing
//            competes.
// Throughput one flit per cycle on every input and every output.
// route_err  one-cycle pulse: a flit with an impossible turn was discarded.
//
// POS_X 1..GRID_X_HI, POS_Y 1..GRID_Y_HI, GRID_X_HI and GRID_Y_HI 1..14,
// FIFO_DEPTH a power of two >= 4, FIFO_PRIM "distributed" | "block".
`default_nettype none
`include "ktpu_defs.vh"

module router #(
    parameter POS_X      = 1,
    parameter POS_Y      = 1,
    parameter GRID_X_HI  = 1,
    parameter GRID_Y_HI  = 1,
    parameter FIFO_DEPTH = 32,
    parameter FIFO_PRIM  = "distributed"
) (
    input  wire                  clk,
    input  wire                  rst_n,

    input  wire                  n_in_valid,
    input  wire [`KT_FLIT_W-1:0] n_in_data,
    output wire                  n_in_busy,
    output wire                  n_out_valid,
    output wire [`KT_FLIT_W-1:0] n_out_data,
    input  wire                  n_out_busy,

    input  wire                  e_in_valid,
    input  wire [`KT_FLIT_W-1:0] e_in_data,
    output wire                  e_in_busy,
    output wire                  e_out_valid,
    output wire [`KT_FLIT_W-1:0] e_out_data,
    input  wire                  e_out_busy,

    input  wire                  s_in_valid,
    input  wire [`KT_FLIT_W-1:0] s_in_data,
    output wire                  s_in_busy,
    output wire                  s_out_valid,
    output wire [`KT_FLIT_W-1:0] s_out_data,
    input  wire                  s_out_busy,

    input  wire                  w_in_valid,
    input  wire [`KT_FLIT_W-1:0] w_in_data,
    output wire                  w_in_busy,
    output wire                  w_out_valid,
    output wire [`KT_FLIT_W-1:0] w_out_data,
    input  wire                  w_out_busy,

    input  wire                  l_in_valid,
    input  wire [`KT_FLIT_W-1:0] l_in_data,
    output wire                  l_in_busy,
    output wire                  l_out_valid,
    output wire [`KT_FLIT_W-1:0] l_out_data,
    input  wire                  l_out_busy,

    output wire                  route_err
);

    generate
        if (FIFO_DEPTH < 4) begin : g_illegal
            router_illegal_parameters u_stop ();
        end
    endgenerate

    // Turns that a neighbouring router which obeys the route function cannot
    // ask for: back to it, and from the y axis to a router on the x axis.
    localparam N_ROUTER = POS_Y > 1;
    localparam E_ROUTER = POS_X < GRID_X_HI;
    localparam S_ROUTER = POS_Y < GRID_Y_HI;
    localparam W_ROUTER = POS_X > 1;
    localparam [4:0] Y_TURN  = {1'b1, !W_ROUTER, 1'b1, !E_ROUTER, 1'b1};
    localparam [4:0] ALLOW_N = N_ROUTER ? (Y_TURN & 5'b11110) : 5'b11111;
    localparam [4:0] ALLOW_E = E_ROUTER ? 5'b11101 : 5'b11111;
    localparam [4:0] ALLOW_S = S_ROUTER ? (Y_TURN & 5'b11011) : 5'b11111;
    localparam [4:0] ALLOW_W = W_ROUTER ? 5'b10111 : 5'b11111;
    localparam [4:0] ALLOW_L = 5'b11111;

    // <p>_req: outputs that input p asks for; <p>_grant: inputs that output p takes.
    wire [4:0]            n_req, n_grant;
    wire [`KT_FLIT_W-1:0] n_data;
    wire [4:0]            e_req, e_grant;
    wire [`KT_FLIT_W-1:0] e_data;
    wire [4:0]            s_req, s_grant;
    wire [`KT_FLIT_W-1:0] s_data;
    wire [4:0]            w_req, w_grant;
    wire [`KT_FLIT_W-1:0] w_data;
    wire [4:0]            l_req, l_grant;
    wire [`KT_FLIT_W-1:0] l_data;
    wire [4:0]            err;
    reg                   err_q;

    router_input #(
        .POS_X      (POS_X),
        .POS_Y      (POS_Y),
        .GRID_X_HI  (GRID_X_HI),
        .GRID_Y_HI  (GRID_Y_HI),
        .FIFO_DEPTH (FIFO_DEPTH),
        .FIFO_PRIM  (FIFO_PRIM),
        .ALLOW      (ALLOW_N)
    ) u_in_n (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (n_in_valid),
        .in_data   (n_in_data),
        .in_busy   (n_in_busy),
        .req       (n_req),
        .req_data  (n_data),
        .taken     (|{l_grant[0], w_grant[0], s_grant[0], e_grant[0], n_grant[0]}),
        .route_err (err[0])
    );

    router_input #(
        .POS_X      (POS_X),
        .POS_Y      (POS_Y),
        .GRID_X_HI  (GRID_X_HI),
        .GRID_Y_HI  (GRID_Y_HI),
        .FIFO_DEPTH (FIFO_DEPTH),
        .FIFO_PRIM  (FIFO_PRIM),
        .ALLOW      (ALLOW_E)
    ) u_in_e (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (e_in_valid),
        .in_data   (e_in_data),
        .in_busy   (e_in_busy),
        .req       (e_req),
        .req_data  (e_data),
        .taken     (|{l_grant[1], w_grant[1], s_grant[1], e_grant[1], n_grant[1]}),
        .route_err (err[1])
    );

    router_input #(
        .POS_X      (POS_X),
        .POS_Y      (POS_Y),
        .GRID_X_HI  (GRID_X_HI),
        .GRID_Y_HI  (GRID_Y_HI),
        .FIFO_DEPTH (FIFO_DEPTH),
        .FIFO_PRIM  (FIFO_PRIM),
        .ALLOW      (ALLOW_S)
    ) u_in_s (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (s_in_valid),
        .in_data   (s_in_data),
        .in_busy   (s_in_busy),
        .req       (s_req),
        .req_data  (s_data),
        .taken     (|{l_grant[2], w_grant[2], s_grant[2], e_grant[2], n_grant[2]}),
        .route_err (err[2])
    );

    router_input #(
        .POS_X      (POS_X),
        .POS_Y      (POS_Y),
        .GRID_X_HI  (GRID_X_HI),
        .GRID_Y_HI  (GRID_Y_HI),
        .FIFO_DEPTH (FIFO_DEPTH),
        .FIFO_PRIM  (FIFO_PRIM),
        .ALLOW      (ALLOW_W)
    ) u_in_w (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (w_in_valid),
        .in_data   (w_in_data),
        .in_busy   (w_in_busy),
        .req       (w_req),
        .req_data  (w_data),
        .taken     (|{l_grant[3], w_grant[3], s_grant[3], e_grant[3], n_grant[3]}),
        .route_err (err[3])
    );

    router_input #(
        .POS_X      (POS_X),
        .POS_Y      (POS_Y),
        .GRID_X_HI  (GRID_X_HI),
        .GRID_Y_HI  (GRID_Y_HI),
        .FIFO_DEPTH (FIFO_DEPTH),
        .FIFO_PRIM  (FIFO_PRIM),
        .ALLOW      (ALLOW_L)
    ) u_in_l (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (l_in_valid),
        .in_data   (l_in_data),
        .in_busy   (l_in_busy),
        .req       (l_req),
        .req_data  (l_data),
        .taken     (|{l_grant[4], w_grant[4], s_grant[4], e_grant[4], n_grant[4]}),
        .route_err (err[4])
    );

    router_output u_out_n (
        .clk       (clk),
        .rst_n     (rst_n),
        .req       ({l_req[0], w_req[0], s_req[0], e_req[0], n_req[0]}),
        .data_n    (n_data),
        .data_e    (e_data),
        .data_s    (s_data),
        .data_w    (w_data),
        .data_l    (l_data),
        .grant     (n_grant),
        .out_valid (n_out_valid),
        .out_data  (n_out_data),
        .out_busy  (n_out_busy)
    );

    router_output u_out_e (
        .clk       (clk),
        .rst_n     (rst_n),
        .req       ({l_req[1], w_req[1], s_req[1], e_req[1], n_req[1]}),
        .data_n    (n_data),
        .data_e    (e_data),
        .data_s    (s_data),
        .data_w    (w_data),
        .data_l    (l_data),
        .grant     (e_grant),
        .out_valid (e_out_valid),
        .out_data  (e_out_data),
        .out_busy  (e_out_busy)
    );

    router_output u_out_s (
        .clk       (clk),
        .rst_n     (rst_n),
        .req       ({l_req[2], w_req[2], s_req[2], e_req[2], n_req[2]}),
        .data_n    (n_data),
        .data_e    (e_data),
        .data_s    (s_data),
        .data_w    (w_data),
        .data_l    (l_data),
        .grant     (s_grant),
        .out_valid (s_out_valid),
        .out_data  (s_out_data),
        .out_busy  (s_out_busy)
    );

    router_output u_out_w (
        .clk       (clk),
        .rst_n     (rst_n),
        .req       ({l_req[3], w_req[3], s_req[3], e_req[3], n_req[3]}),
        .data_n    (n_data),
        .data_e    (e_data),
        .data_s    (s_data),
        .data_w    (w_data),
        .data_l    (l_data),
        .grant     (w_grant),
        .out_valid (w_out_valid),
        .out_data  (w_out_data),
        .out_busy  (w_out_busy)
    );

    router_output u_out_l (
        .clk       (clk),
        .rst_n     (rst_n),
        .req       ({l_req[4], w_req[4], s_req[4], e_req[4], n_req[4]}),
        .data_n    (n_data),
        .data_e    (e_data),
        .data_s    (s_data),
        .data_w    (w_data),
        .data_l    (l_data),
        .grant     (l_grant),
        .out_valid (l_out_valid),
        .out_data  (l_out_data),
        .out_busy  (l_out_busy)
    );

    always @(posedge clk) begin
        if (!rst_n) err_q <= 1'b0;
        else        err_q <= err != 5'b00000;
    end

    assign route_err = err_q;

endmodule

`default_nettype wire
