// SPDX-License-Identifier: Apache-2.0
// router_input: one input of a router, docs/spec/fabric.md 3.3: FIFO, route
// function, holding register with a one-hot output request.
//
// Latency    a flit taken in cycle k raises req in cycle k+2.
// Throughput one flit per cycle.
// busy       FIFO full or reset; a register.
//
// A flit whose turn is not in ALLOW never reaches the holding register: it is
// dropped and route_err pulses (registered), so it cannot wedge the port.
//
// FIFO_DEPTH a power of two >= 4, FIFO_PRIM as in ram_sdp, ALLOW bit per output
// (0 N, 1 E, 2 S, 3 W, 4 L), position parameters as in router_route.
`default_nettype none
`include "ktpu_defs.vh"

module router_input #(
    parameter       POS_X      = 1,
    parameter       POS_Y      = 1,
    parameter       GRID_X_HI  = 1,
    parameter       GRID_Y_HI  = 1,
    parameter       FIFO_DEPTH = 32,
    parameter       FIFO_PRIM  = "distributed",
    parameter [4:0] ALLOW      = 5'b11111
) (
    input  wire                  clk,
    input  wire                  rst_n,

    input  wire                  in_valid,
    input  wire [`KT_FLIT_W-1:0] in_data,
    output wire                  in_busy,

    output wire [4:0]            req,
    output wire [`KT_FLIT_W-1:0] req_data,
    input  wire                  taken,

    output wire                  route_err
);

    wire                  in_ready;
    wire                  head_valid;
    wire [`KT_FLIT_W-1:0] head;
    wire [4:0]            route;
    wire [$clog2(FIFO_DEPTH):0] unused_level;

    reg  [4:0]            req_q;
    reg  [`KT_FLIT_W-1:0] data_q;
    reg                   err_q;

    wire       hold_free = (req_q == 5'b00000) || taken;
    wire       pop       = head_valid && hold_free;
    wire [4:0] legal     = route & ALLOW;
    wire       accept    = pop && (legal != 5'b00000);

    fifo_sync #(
        .WIDTH (`KT_FLIT_W),
        .DEPTH (FIFO_DEPTH),
        .PRIM  (FIFO_PRIM)
    ) u_fifo (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (in_valid),
        .in_ready  (in_ready),
        .in_data   (in_data),
        .out_valid (head_valid),
        .out_ready (hold_free),
        .out_data  (head),
        .level     (unused_level)
    );

    router_route #(
        .POS_X     (POS_X),
        .POS_Y     (POS_Y),
        .GRID_X_HI (GRID_X_HI),
        .GRID_Y_HI (GRID_Y_HI)
    ) u_route (
        .dst_x (head[`KT_FLIT_DST_X]),
        .dst_y (head[`KT_FLIT_DST_Y]),
        .route (route)
    );

    always @(posedge clk) begin
        if (!rst_n) begin
            req_q <= 5'b00000;
            err_q <= 1'b0;
        end else begin
            if (hold_free) req_q <= accept ? legal : 5'b00000;
            err_q <= pop && !accept;
        end
        if (accept) data_q <= head;
    end

    assign in_busy   = !in_ready;
    assign req       = req_q;
    assign req_data  = data_q;
    assign route_err = err_q;

endmodule

`default_nettype wire
