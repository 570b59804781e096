// SPDX-License-Identifier: Apache-2.0
// router_route: route function of one router, docs/spec/fabric.md 3.2.
//
// Combinational. route is one-hot: bit 0 N, 1 E, 2 S, 3 W, 4 L. Destinations
// outside the router rectangle are clamped into it; when the clamped router is
// this one, the last hop goes outwards (x before y, so a corner leaves
// horizontally).
//
// GRID_X_HI, GRID_Y_HI 1..14; POS_X 1..GRID_X_HI, POS_Y 1..GRID_Y_HI.
`default_nettype none

module router_route #(
    parameter POS_X     = 1,
    parameter POS_Y     = 1,
    parameter GRID_X_HI = 1,
    parameter GRID_Y_HI = 1
) (
    input  wire [3:0] dst_x,
    input  wire [3:0] dst_y,
    output reg  [4:0] route
);

    generate
        if (GRID_X_HI < 1 || GRID_X_HI > 14 || GRID_Y_HI < 1 || GRID_Y_HI > 14
            || POS_X < 1 || POS_X > GRID_X_HI || POS_Y < 1 || POS_Y > GRID_Y_HI) begin : g_illegal
            router_route_illegal_parameters u_stop ();
        end
    endgenerate

    localparam [3:0] PX = POS_X[3:0];
    localparam [3:0] PY = POS_Y[3:0];
    localparam [3:0] XH = GRID_X_HI[3:0];
    localparam [3:0] YH = GRID_Y_HI[3:0];

    localparam [4:0] TO_N = 5'b00001;
    localparam [4:0] TO_E = 5'b00010;
    localparam [4:0] TO_S = 5'b00100;
    localparam [4:0] TO_W = 5'b01000;
    localparam [4:0] TO_L = 5'b10000;

    wire [3:0] cx = (dst_x == 4'd0) ? 4'd1 : (dst_x > XH) ? XH : dst_x;
    wire [3:0] cy = (dst_y == 4'd0) ? 4'd1 : (dst_y > YH) ? YH : dst_y;

    always @* begin
        route = TO_L;
        if      (cx < PX)    route = TO_W;
        else if (cx > PX)    route = TO_E;
        else if (cy < PY)    route = TO_N;
        else if (cy > PY)    route = TO_S;
        else if (dst_x < PX) route = TO_W;
        else if (dst_x > PX) route = TO_E;
        else if (dst_y < PY) route = TO_N;
        else if (dst_y > PY) route = TO_S;
    end

endmodule

`default_nettype wire
