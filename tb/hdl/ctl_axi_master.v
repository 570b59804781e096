// SPDX-License-Identifier: Apache-2.0
// ctl_axi_master: AXI4 master for benches, one write and one read transaction at a time.
//
// Set the w_/r_ fields, toggle w_go/r_go and wait until w_done/r_done equals it. Beat data comes
// from a buffer of 256 beats (fill toggle) or, for one beat, from w_data and w_strb. Read beats are
// looked up with r_sel after the end. stall = 1 inserts idle cycles on W, B and R.
`default_nettype none

module ctl_axi_master #(
    parameter ADDR_W = 16
) (
    input  wire              clk,
    input  wire              rst_n,
    input  wire              stall,

    input  wire              w_go,
    input  wire [ADDR_W-1:0] w_addr,
    input  wire [7:0]        w_len,
    input  wire [2:0]        w_size,
    input  wire [1:0]        w_burst,
    input  wire [3:0]        w_id,
    input  wire [63:0]       w_data,
    input  wire [7:0]        w_strb,
    input  wire              fill,
    input  wire [7:0]        fill_at,
    output reg               w_done,
    output reg  [1:0]        w_resp,
    output reg  [3:0]        w_bid,

    input  wire              r_go,
    input  wire [ADDR_W-1:0] r_addr,
    input  wire [7:0]        r_len,
    input  wire [2:0]        r_size,
    input  wire [1:0]        r_burst,
    input  wire [3:0]        r_id,
    input  wire [7:0]        r_sel,
    output reg               r_done,
    output wire [63:0]       r_data,
    output wire [1:0]        r_resp,
    output reg               r_framing,     // RLAST and RID were right on every beat

    output wire [3:0]        m_awid,
    output wire [ADDR_W-1:0] m_awaddr,
    output wire [7:0]        m_awlen,
    output wire [2:0]        m_awsize,
    output wire [1:0]        m_awburst,
    output reg               m_awvalid,
    input  wire              m_awready,
    output wire [63:0]       m_wdata,
    output wire [7:0]        m_wstrb,
    output wire              m_wlast,
    output reg               m_wvalid,
    input  wire              m_wready,
    input  wire [3:0]        m_bid,
    input  wire [1:0]        m_bresp,
    input  wire              m_bvalid,
    output reg               m_bready,
    output wire [3:0]        m_arid,
    output wire [ADDR_W-1:0] m_araddr,
    output wire [7:0]        m_arlen,
    output wire [2:0]        m_arsize,
    output wire [1:0]        m_arburst,
    output reg               m_arvalid,
    input  wire              m_arready,
    input  wire [3:0]        m_rid,
    input  wire [63:0]       m_rdata,
    input  wire [1:0]        m_rresp,
    input  wire              m_rlast,
    input  wire              m_rvalid,
    output reg               m_rready
);
    reg [31:0] x;
    wire       idle = stall && x[3];
    always @(posedge clk) begin
        if (!rst_n) x <= 32'h1234_5679;
        else        x <= {x[30:0], x[31] ^ x[21] ^ x[1] ^ x[0]};
    end

    // ---- write ----
    reg [71:0] wbuf [0:255];
    reg        fill_q, w_run;
    reg [8:0]  w_at;
    wire       w_start = (w_go != w_done) && !w_run;
    assign m_awid    = w_id;
    assign m_awaddr  = w_addr;
    assign m_awlen   = w_len;
    assign m_awsize  = w_size;
    assign m_awburst = w_burst;
    assign m_wdata   = (w_len == 8'd0) ? w_data : wbuf[w_at[7:0]][63:0];
    assign m_wstrb   = (w_len == 8'd0) ? w_strb : wbuf[w_at[7:0]][71:64];
    assign m_wlast   = (w_at[7:0] == w_len);

    always @(posedge clk) begin
        fill_q <= fill;
        if (fill != fill_q) wbuf[fill_at] <= {w_strb, w_data};
        if (!rst_n) begin
            w_run     <= 1'b0;
            w_done    <= w_go;
            m_awvalid <= 1'b0;
            m_wvalid  <= 1'b0;
            m_bready  <= 1'b0;
        end else if (w_start) begin
            w_run     <= 1'b1;
            w_at      <= 9'd0;
            m_awvalid <= 1'b1;
            m_wvalid  <= !idle;
        end else if (w_run) begin
            if (m_awvalid && m_awready) m_awvalid <= 1'b0;
            if (m_wvalid && m_wready) begin
                w_at     <= w_at + 9'd1;
                m_wvalid <= !m_wlast && !idle;
            end else if (!m_wvalid && w_at <= {1'b0, w_len}) begin
                m_wvalid <= !idle;
            end
            m_bready <= !idle;
            if (m_bvalid && m_bready) begin
                w_run    <= 1'b0;
                m_bready <= 1'b0;
                w_resp   <= m_bresp;
                w_bid    <= m_bid;
                w_done   <= w_go;
            end
        end
    end

    // ---- read ----
    reg [65:0] rbuf [0:255];
    reg        r_run;
    reg [7:0]  r_at;
    wire       r_start = (r_go != r_done) && !r_run;
    assign m_arid    = r_id;
    assign m_araddr  = r_addr;
    assign m_arlen   = r_len;
    assign m_arsize  = r_size;
    assign m_arburst = r_burst;
    assign r_data    = rbuf[r_sel][63:0];
    assign r_resp    = rbuf[r_sel][65:64];

    always @(posedge clk) begin
        if (!rst_n) begin
            r_run     <= 1'b0;
            r_done    <= r_go;
            m_arvalid <= 1'b0;
            m_rready  <= 1'b0;
        end else if (r_start) begin
            r_run     <= 1'b1;
            r_at      <= 8'd0;
            r_framing <= 1'b1;
            m_arvalid <= 1'b1;
        end else if (r_run) begin
            if (m_arvalid && m_arready) m_arvalid <= 1'b0;
            m_rready <= !idle;
            if (m_rvalid && m_rready) begin
                rbuf[r_at] <= {m_rresp, m_rdata};
                r_at       <= r_at + 8'd1;
                if (m_rid != r_id || m_rlast != (r_at == r_len)) r_framing <= 1'b0;
                if (r_at == r_len) begin
                    r_run    <= 1'b0;
                    m_rready <= 1'b0;
                    r_done   <= r_go;
                end
            end
        end
    end
endmodule

`default_nettype wire
