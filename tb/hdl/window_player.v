// SPDX-License-Identifier: Apache-2.0
// AXI4 master of 256-bit beats that plays a list of bursts without waking Python.
//
// Purpose     the bench writes window_ops.hex, strobes `load`, raises `run` and wakes
//             on `done`; results are dumped to window_res.hex by strobing `dump`.
// List        a head {kind[59:56], burst[52:51], size[50:48], len[47:40], addr[39:0]}
//             followed by len+1 entries {strobe, data} of a write; kind 0 ends, 1
//             writes, 2 reads.
// Results     one entry a read beat and one a write burst: {resp, data}.
// Latency     a burst starts two cycles after the previous response; a beat per cycle.
// Limits      OPS entries in, OPS results out; simulation only.
`default_nettype none
module window_player #(
  parameter OPS = 8192
) (
  input  wire         clk,
  input  wire         rst_n,

  output reg  [3:0]   m_axi_awid,
  output reg  [39:0]  m_axi_awaddr,
  output reg  [7:0]   m_axi_awlen,
  output reg  [2:0]   m_axi_awsize,
  output reg  [1:0]   m_axi_awburst,
  output reg          m_axi_awvalid,
  input  wire         m_axi_awready,
  output reg  [255:0] m_axi_wdata,
  output reg  [31:0]  m_axi_wstrb,
  output reg          m_axi_wlast,
  output reg          m_axi_wvalid,
  input  wire         m_axi_wready,
  input  wire [3:0]   m_axi_bid,
  input  wire [1:0]   m_axi_bresp,
  input  wire         m_axi_bvalid,
  output wire         m_axi_bready,
  output reg  [3:0]   m_axi_arid,
  output reg  [39:0]  m_axi_araddr,
  output reg  [7:0]   m_axi_arlen,
  output reg  [2:0]   m_axi_arsize,
  output reg  [1:0]   m_axi_arburst,
  output reg          m_axi_arvalid,
  input  wire         m_axi_arready,
  input  wire [3:0]   m_axi_rid,
  input  wire [255:0] m_axi_rdata,
  input  wire [1:0]   m_axi_rresp,
  input  wire         m_axi_rlast,
  input  wire         m_axi_rvalid,
  output wire         m_axi_rready
);
  localparam KIND_WRITE = 4'd1;
  localparam KIND_READ  = 4'd2;
  localparam S_IDLE = 3'd0, S_HEAD = 3'd1, S_DATA = 3'd2, S_RESP = 3'd3, S_READ = 3'd4, S_DONE = 3'd5;

  reg         load;
  reg         dump;
  reg         run;
  reg         done;
  reg         broken;    // an answer with another ID, or rlast at the wrong beat
  reg  [31:0] results;

  reg  [287:0] ops [0:OPS-1];
  reg  [257:0] res [0:OPS-1];
  reg  [2:0]   state;
  reg  [31:0]  at;
  reg  [7:0]   left;

  wire [287:0] head      = ops[at];
  wire [3:0]   head_kind = head[59:56];

  assign m_axi_bready = state == S_RESP;
  assign m_axi_rready = state == S_READ;

  initial begin
    load = 1'b0;
    dump = 1'b0;
    run  = 1'b0;
    done = 1'b0;
    broken  = 1'b0;
    results = 32'd0;
  end

  always @(posedge load) $readmemh("window_ops.hex", ops);
  always @(posedge dump) if (results != 0) $writememh("window_res.hex", res, 0, results - 1);

  always @(posedge clk) begin
    if (!rst_n) begin
      state <= S_IDLE;
      done  <= 1'b0;
      m_axi_awvalid <= 1'b0;
      m_axi_wvalid  <= 1'b0;
      m_axi_arvalid <= 1'b0;
      m_axi_awid    <= 4'd0;
      m_axi_arid    <= 4'd0;
    end else begin
      if (m_axi_awready) m_axi_awvalid <= 1'b0;
      if (m_axi_arready) m_axi_arvalid <= 1'b0;
      case (state)
        S_IDLE: if (run) begin
          state   <= S_HEAD;
          at      <= 32'd0;
          results <= 32'd0;
          done    <= 1'b0;
        end
        S_HEAD: begin
          at   <= at + 32'd1;
          left <= head[47:40];
          if (head_kind == KIND_WRITE) begin
            m_axi_awaddr  <= head[39:0];
            m_axi_awlen   <= head[47:40];
            m_axi_awsize  <= head[50:48];
            m_axi_awburst <= head[52:51];
            m_axi_awid    <= m_axi_awid + 4'd1;
            m_axi_awvalid <= 1'b1;
            state         <= S_DATA;
          end else if (head_kind == KIND_READ) begin
            m_axi_araddr  <= head[39:0];
            m_axi_arlen   <= head[47:40];
            m_axi_arsize  <= head[50:48];
            m_axi_arburst <= head[52:51];
            m_axi_arid    <= m_axi_arid + 4'd1;
            m_axi_arvalid <= 1'b1;
            state         <= S_READ;
          end else begin
            done  <= 1'b1;
            state <= S_DONE;
          end
        end
        S_DATA: if (!m_axi_wvalid || m_axi_wready) begin
          if (m_axi_wvalid && m_axi_wlast) begin
            m_axi_wvalid <= 1'b0;
            state        <= S_RESP;
          end else begin
            m_axi_wvalid <= 1'b1;
            {m_axi_wstrb, m_axi_wdata} <= ops[at];
            m_axi_wlast  <= left == 8'd0;
            left         <= left - 8'd1;
            at           <= at + 32'd1;
          end
        end
        S_RESP: if (m_axi_bvalid) begin
          res[results] <= {m_axi_bresp, 256'd0};
          results      <= results + 32'd1;
          if (m_axi_bid != m_axi_awid) broken <= 1'b1;
          state        <= S_HEAD;
        end
        S_READ: if (m_axi_rvalid) begin
          res[results] <= {m_axi_rresp, m_axi_rdata};
          results      <= results + 32'd1;
          left         <= left - 8'd1;
          if (m_axi_rid != m_axi_arid || m_axi_rlast != (left == 8'd0)) broken <= 1'b1;
          if (left == 8'd0) state <= S_HEAD;
        end
        S_DONE: if (!run) begin
          done  <= 1'b0;
          state <= S_IDLE;
        end
        default: state <= S_IDLE;
      endcase
    end
  end
endmodule
`default_nettype wire
