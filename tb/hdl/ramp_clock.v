// SPDX-License-Identifier: Apache-2.0
// ramp_clock: clock whose half period walks from lo_ps to hi_ps and back by
// step_ps each half period; constant for lo_ps = hi_ps, stopped for lo_ps = 0.
`default_nettype none

module ramp_clock (
    input  wire [31:0] lo_ps,
    input  wire [31:0] hi_ps,
    input  wire [31:0] step_ps,
    output reg         clk
);

    integer half;
    reg     down;

    initial begin
        clk = 0;
        half = 0;
        down = 0;
        forever begin
            if (lo_ps > 0) begin
                half = down ? half - step_ps : half + step_ps;
                if (half <= lo_ps) begin
                    half = lo_ps;
                    down = 0;
                end else if (half >= hi_ps) begin
                    half = hi_ps;
                    down = 1;
                end
                #(half / 1000.0) clk = !clk;
            end else #1;                // also while lo_ps is X
        end
    end

endmodule

`default_nettype wire
