// SPDX-License-Identifier: Apache-2.0
// AXI4 master that plays a list of bursts without waking Python.
//
// Purpose     the bench writes host_ops.hex, strobes `load`, raises `run` and wakes
//             on `done`; results are dumped to host_res.hex by strobing `dump`.
// List        a head {kind, len, addr} followed by len+1 data entries of a write;
//             kind 0 ends, 1 writes, 2 reads. INCR bursts of 64-bit beats.
// Results     one entry a read beat and one a write burst: {resp, data}.
// Latency     a burst starts two cycles after the previous response.
// Limits      OPS entries in, OPS results out; simulation only.
`default_nettype none
module host_player #(
  parameter OPS = 16384
) (
  input  wire        clk,
  input  wire        rst_n,

  output reg  [3:0]  m_axi_awid,
  output reg  [31:0] m_axi_awaddr,
  output reg  [7:0]  m_axi_awlen,
  output wire [2:0]  m_axi_awsize,
  output wire [1:0]  m_axi_awburst,
  output reg         m_axi_awvalid,
  input  wire        m_axi_awready,
  output reg  [63:0] m_axi_wdata,
  output wire [7:0]  m_axi_wstrb,
  output reg         m_axi_wlast,
  output reg         m_axi_wvalid,
  input  wire        m_axi_wready,
  input  wire [1:0]  m_axi_bresp,
  input  wire        m_axi_bvalid,
  output wire        m_axi_bready,
  output reg  [3:0]  m_axi_arid,
  output reg  [31:0] m_axi_araddr,
  output reg  [7:0]  m_axi_arlen,
  output wire [2:0]  m_axi_arsize,
  output wire [1:0]  m_axi_arburst,
  output reg         m_axi_arvalid,
  input  wire        m_axi_arready,
  input  wire [63:0] m_axi_rdata,
  input  wire [1:0]  m_axi_rresp,
  input  wire        m_axi_rlast,
  input  wire        m_axi_rvalid,
  output wire        m_axi_rready
);
  localparam KIND_WRITE = 4'd1;
  localparam KIND_READ  = 4'd2;
  localparam S_IDLE = 3'd0, S_HEAD = 3'd1, S_ADDR = 3'd2, S_DATA = 3'd3, S_RESP = 3'd4, S_READ = 3'd5, S_DONE = 3'd6;

  reg         load;
  reg         dump;
  reg         run;
  reg         done;
  reg  [31:0] results;

  reg  [63:0] ops [0:OPS-1];
  reg  [65:0] res [0:OPS-1];
  reg  [2:0]  state;
  reg  [31:0] at;
  reg  [7:0]  left;

  wire [63:0] head      = ops[at];
  wire [3:0]  head_kind = head[47:44];
  wire [7:0]  head_len  = head[39:32];

  assign m_axi_awsize  = 3'd3;
  assign m_axi_awburst = 2'b01;
  assign m_axi_arsize  = 3'd3;
  assign m_axi_arburst = 2'b01;
  assign m_axi_wstrb   = 8'hFF;
  assign m_axi_bready  = 1'b1;
  assign m_axi_rready  = 1'b1;

  initial begin
    load = 1'b0;
    dump = 1'b0;
    run  = 1'b0;
    done = 1'b0;
    results = 32'd0;
  end

  always @(posedge load) $readmemh("host_ops.hex", ops);
  always @(posedge dump) if (results != 0) $writememh("host_res.hex", res, 0, results - 1);

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
      case (state)
        S_IDLE: if (run) begin
          state   <= S_HEAD;
          at      <= 32'd0;
          results <= 32'd0;
          done    <= 1'b0;
        end
        S_HEAD: begin
          at   <= at + 32'd1;
          left <= head_len;
          m_axi_awaddr <= head[31:0];
          m_axi_araddr <= head[31:0];
          m_axi_awlen  <= head_len;
          m_axi_arlen  <= head_len;
          if (head_kind == KIND_WRITE) begin
            m_axi_awvalid <= 1'b1;
            state         <= S_ADDR;
          end else if (head_kind == KIND_READ) begin
            m_axi_arvalid <= 1'b1;
            state         <= S_READ;
          end else begin
            done  <= 1'b1;
            state <= S_DONE;
          end
        end
        S_ADDR: if (m_axi_awready) begin
          m_axi_awvalid <= 1'b0;
          m_axi_wvalid  <= 1'b1;
          m_axi_wdata   <= ops[at];
          m_axi_wlast   <= left == 8'd0;
          at            <= at + 32'd1;
          state         <= S_DATA;
        end
        S_DATA: if (m_axi_wready) begin
          left        <= left - 8'd1;
          m_axi_wlast <= left == 8'd1;
          if (left == 8'd0) begin
            m_axi_wvalid <= 1'b0;
            state        <= S_RESP;
          end else begin
            m_axi_wdata <= ops[at];
            at          <= at + 32'd1;
          end
        end
        S_RESP: if (m_axi_bvalid) begin
          res[results] <= {m_axi_bresp, 64'd0};
          results      <= results + 32'd1;
          state        <= S_HEAD;
        end
        S_READ: begin
          if (m_axi_arready) m_axi_arvalid <= 1'b0;
          if (m_axi_rvalid) begin
            res[results] <= {m_axi_rresp, m_axi_rdata};
            results      <= results + 32'd1;
            if (m_axi_rlast) state <= S_HEAD;
          end
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
