// SPDX-License-Identifier: Apache-2.0
// tb_route: the route function of every router of an NX by NY grid, side by side.
`default_nettype none

module tb_route #(
    parameter NX = 1,
    parameter NY = 1
) (
    input  wire [7:0]         dst,      // {y, x}
    output wire [5*NX*NY-1:0] routes    // router (x, y) at 5*((y-1)*NX + x-1)
);

    genvar x, y;
    generate
        for (y = 1; y <= NY; y = y + 1) begin : g_y
            for (x = 1; x <= NX; x = x + 1) begin : g_x
                router_route #(.POS_X(x), .POS_Y(y), .GRID_X_HI(NX), .GRID_Y_HI(NY)) u_route (
                    .dst_x(dst[3:0]), .dst_y(dst[7:4]), .route(routes[5*((y-1)*NX+x-1) +: 5]));
            end
        end
    endgenerate

endmodule

`default_nettype wire
