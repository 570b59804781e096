// SPDX-License-Identifier: Apache-2.0
// Mesh endpoint driven by a bench: sends flits one at a time, records what arrives.
//
// Send        put a flit on `tx_flit` and toggle `tx_req`; `tx_ack` follows `tx_req`
//             when the flit has been transferred.
// Receive     every transfer goes to ring[rx_count mod DEPTH]; a change of
//             `rx_count` is the bench's wake-up event.
// Pressure    `busy_pct` of the cycles refuse a flit, from a seeded LFSR; the
//             decision depends on registered state only.
`default_nettype none
module flit_port #(
  parameter DEPTH = 4096,
  parameter SEED  = 1
) (
  input  wire         clk,
  input  wire         rst_n,
  output reg          out_valid,
  output reg  [287:0] out_data,
  input  wire         out_busy,
  input  wire         in_valid,
  input  wire [287:0] in_data,
  output reg          in_busy
);
  localparam AW = $clog2(DEPTH);
  reg [287:0] ring [0:DEPTH-1];
  reg [31:0]  rx_count;
  reg [287:0] tx_flit;
  reg         tx_req;
  reg         tx_ack;
  reg [6:0]   busy_pct;
  reg [31:0]  lfsr;

  wire [14:0] scaled    = {8'd0, lfsr[9:3]} * 15'd100;
  wire [7:0]  percent   = scaled[14:7];
  wire [31:0] lfsr_next = {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};

  initial begin
    tx_req   = 1'b0;
    tx_flit  = 288'd0;
    busy_pct = 7'd0;
    rx_count = 32'd0;
    lfsr     = 32'hACE1_0001 ^ SEED;
  end

  always @(posedge clk) begin
    lfsr <= lfsr_next;
    if (!rst_n) begin
      out_valid <= 1'b0;
      tx_ack    <= tx_req;  // a flit of before the reset is not sent after it
      in_busy   <= 1'b1;
    end else begin
      in_busy <= percent < {1'b0, busy_pct};
      if (in_valid && !in_busy) begin
        ring[rx_count[AW-1:0]] <= in_data;
        rx_count               <= rx_count + 32'd1;
      end
      if (out_valid && !out_busy) begin
        out_valid <= 1'b0;
        tx_ack    <= tx_req;
      end else if (!out_valid && tx_req != tx_ack) begin
        out_valid <= 1'b1;
        out_data  <= tx_flit;
      end
    end
  end
endmodule
`default_nettype wire
