// SPDX-License-Identifier: Apache-2.0
// Records the transfers of one link direction with their cycle.
//
// Purpose     what a diagnosis shows as "the last flits on the link", and the
//             sequence of signals a replay compares. Python reads it after the
//             fact; nothing wakes while the machine runs.
// Storage     ring of DEPTH transfers {cycle[63:0], flit}; `count` never wraps.
// Filter      with TYPE_ONLY < 16 only flits of that type are kept.
// Dump        rising `dump` writes the ring to the file named FILE.
`default_nettype none
module flit_tap #(
  parameter DEPTH     = 4096,
  parameter TYPE_ONLY = 16,
  parameter FILE      = "tap.hex"
) (
  input  wire         clk,
  input  wire         rst_n,
  input  wire [63:0]  cycle,
  input  wire         dump,
  input  wire         valid,
  input  wire         busy,
  input  wire [287:0] data
);
  localparam AW = $clog2(DEPTH);
  reg [351:0] ring [0:DEPTH-1];
  reg [31:0]  count;

  initial count = 32'd0;

  always @(posedge clk)
    if (rst_n && valid && !busy && (TYPE_ONLY > 15 || data[271:268] == TYPE_ONLY[3:0])) begin
      ring[count[AW-1:0]] <= {cycle, data};
      count               <= count + 32'd1;
    end

  always @(posedge dump) $writememh(FILE, ring);
endmodule
`default_nettype wire
