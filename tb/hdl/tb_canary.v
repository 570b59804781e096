// SPDX-License-Identifier: Apache-2.0
// Smallest design that shows the flow works: a counter that Python loads, and a
// register nobody resets.
`default_nettype none
module tb_canary (
  input  wire        clk,
  input  wire        rst_n,
  input  wire        load,
  input  wire [31:0] value,
  output reg  [31:0] count
);
  reg [31:0] hidden_q;
  always @(posedge clk) begin
    if (!rst_n)    count <= 32'd0;
    else if (load) count <= value;
    else           count <= count + 32'd1;
    hidden_q <= count;
  end
  initial hidden_q = 32'd0;
endmodule
`default_nettype wire
