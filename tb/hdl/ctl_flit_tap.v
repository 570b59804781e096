// SPDX-License-Identifier: Apache-2.0
// ctl_flit_tap: flit sink for benches; keeps the last 1,024 flits, newest count in `count`.
`default_nettype none

module ctl_flit_tap (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         valid,
    input  wire         busy,
    input  wire [287:0] data,
    input  wire [9:0]   sel,
    output wire [287:0] sel_data,
    output reg  [31:0]  count,
    output reg  [31:0]  gap_max         // longest distance in cycles between two flits since `count` was 0
);
    reg [287:0] mem [0:1023];
    reg [31:0]  gap;
    assign sel_data = mem[sel];
    always @(posedge clk) begin
        if (!rst_n) begin
            count   <= 32'd0;
            gap     <= 32'd0;
            gap_max <= 32'd0;
        end else if (valid && !busy) begin
            mem[count[9:0]] <= data;
            count <= count + 32'd1;
            gap   <= 32'd1;
            if (count != 32'd0 && gap > gap_max) gap_max <= gap;
        end else begin
            gap <= gap + 32'd1;
        end
    end
endmodule

`default_nettype wire
