// SPDX-License-Identifier: Apache-2.0
// stall_gen: registered back-pressure from a xorshift generator.
//
// mode 0 never, 1 always, 2 each cycle with probability level/256, 3 bursts of
// 1..64 cycles that begin with probability level/256.
`default_nettype none

module stall_gen (
    input  wire        clk,
    input  wire        rst_n,
    input  wire [31:0] seed,
    input  wire [1:0]  mode,
    input  wire [7:0]  level,
    output wire        stall
);
    reg [31:0] x, y;
    reg [5:0]  run_q;
    reg        stall_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            x       <= seed | 32'd1;
            run_q   <= 6'd0;
            stall_q <= 1'b0;
        end else begin
            y = x ^ (x << 13);
            y = y ^ (y >> 17);
            y = y ^ (y << 5);
            x <= y;
            if (run_q != 6'd0) run_q <= run_q - 6'd1;
            else if (mode == 2'd3 && y[15:8] < level) run_q <= y[21:16];
            stall_q <= (mode == 2'd2) ? (y[15:8] < level) : (run_q != 6'd0);
        end
    end

    assign stall = mode == 2'd1 || (mode[1] && stall_q);
endmodule

`default_nettype wire
