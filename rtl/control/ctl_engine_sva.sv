// SPDX-License-Identifier: Apache-2.0
// ctl_engine_sva: properties of the engine's master port, docs/spec/fabric.md 7. Simulation only;
// bound to ctl_engine.
`default_nettype none

/* verilator lint_off DECLFILENAME */
module ctl_engine_sva (
/* verilator lint_on DECLFILENAME */
    input wire        clk,
    input wire        rst_n,
    input wire        awvalid,
    input wire        awready,
    input wire [15:0] awaddr,
    input wire [7:0]  awlen,
    input wire        wvalid,
    input wire        wready,
    input wire [63:0] wdata,
    input wire [7:0]  wstrb,
    input wire        bvalid,
    input wire        bready,
    input wire        arvalid,
    input wire        arready,
    input wire [15:0] araddr,
    input wire        rvalid,
    input wire        rready,
    input wire        rlast,
    input wire        h_bvalid,
    input wire        h_bready,
    input wire [1:0]  h_bresp,
    input wire        h_rvalid,
    input wire        h_rready,
    input wire [63:0] h_rdata,
    input wire        busy,
    input wire        done,
    input wire        e_awvalid,
    input wire        e_arvalid
);
    default clocking cb @(posedge clk); endclocking
    default disable iff (!rst_n);

    aw_held: assert property (awvalid && !awready |=> awvalid && $stable(awaddr) && $stable(awlen));
    w_held:  assert property (wvalid && !wready |=> wvalid && $stable(wdata) && $stable(wstrb));
    ar_held: assert property (arvalid && !arready |=> arvalid && $stable(araddr));
    b_held:  assert property (h_bvalid && !h_bready |=> h_bvalid && $stable(h_bresp));
    r_held:  assert property (h_rvalid && !h_rready |=> h_rvalid && $stable(h_rdata));
    idle_is_silent: assert property (!busy |-> !e_awvalid && !e_arvalid);
    one_command:    assert property (!(e_awvalid && e_arvalid));
    done_or_busy:   assert property (!(done && busy));

    // Whole transactions: no second address before the end of the first.
    bit w_open, r_open;
    always @(posedge clk) begin
        if (!rst_n) begin
            w_open <= 0;
            r_open <= 0;
        end else begin
            if (awvalid && awready) w_open <= 1;
            else if (bvalid && bready) w_open <= 0;
            if (arvalid && arready) r_open <= 1;
            else if (rvalid && rready && rlast) r_open <= 0;
        end
    end
    one_write: assert property (w_open |-> !awvalid);
    one_read:  assert property (r_open |-> !arvalid);
endmodule

bind ctl_engine ctl_engine_sva u_sva (
    .clk(clk), .rst_n(rst_n), .awvalid(m_axi_awvalid), .awready(m_axi_awready),
    .awaddr(m_axi_awaddr), .awlen(m_axi_awlen), .wvalid(m_axi_wvalid), .wready(m_axi_wready),
    .wdata(m_axi_wdata), .wstrb(m_axi_wstrb), .bvalid(m_axi_bvalid), .bready(m_axi_bready),
    .arvalid(m_axi_arvalid), .arready(m_axi_arready), .araddr(m_axi_araddr),
    .rvalid(m_axi_rvalid), .rready(m_axi_rready), .rlast(m_axi_rlast),
    .h_bvalid(s_axi_bvalid), .h_bready(s_axi_bready), .h_bresp(s_axi_bresp),
    .h_rvalid(s_axi_rvalid), .h_rready(s_axi_rready), .h_rdata(s_axi_rdata),
    .busy(busy), .done(done), .e_awvalid(c_awvalid), .e_arvalid(c_arvalid)
);

`default_nettype wire
