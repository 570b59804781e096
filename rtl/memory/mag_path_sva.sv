// SPDX-License-Identifier: Apache-2.0
// Simulation checkers of mag_path and mag_stage, docs/spec/memory.md 8, 10.
`default_nettype none

// Path: bus rules of the master and its limits.
module mag_path_sva #(parameter NREQ = 1, parameter RD_OUT = 4, parameter WR_OUT = 16) (
    input wire clk, rst_n,
    input wire [3:0] awid, arid, rid, bid,
    input wire [39:0] awaddr, araddr,
    input wire [7:0] awlen, arlen,
    input wire awvalid, awready, arvalid, arready, wvalid, wready, wlast, rvalid, rlast, bvalid,
    input wire [31:0] wstrb,
    input wire [255:0] wdata,
    input wire [NREQ-1:0] rd_valid, rd_want, rd_ready, wr_valid, wr_ready, all_wr_valid,
    input wire [NREQ-1:0] st_rd_ready, st_wr_ready, st_rd_busy, st_wr_busy, st_rsp_valid, st_done_valid
);
    int rd_out [NREQ];
    int own_out [NREQ];
    int rd_passed [NREQ], wr_passed [NREQ];   // grants to others while waiting
    int wr_out = 0;
    always @(posedge clk) begin
        if (!rst_n) begin
            foreach (rd_out[k]) begin
                rd_out[k] <= 0; own_out[k] <= 0; rd_passed[k] <= 0; wr_passed[k] <= 0;
            end
            wr_out <= 0;
        end else begin
            foreach (rd_out[k]) begin
                rd_out[k] <= rd_out[k] + int'(arvalid && arready && arid == 4'(k)) - int'(rvalid && rlast && rid == 4'(k));
                assert (rd_out[k] <= RD_OUT) else $error("more than RD_OUT reads outstanding");
                rd_passed[k] <= rd_ready[k] || !rd_want[k] ? 0 : rd_passed[k] + int'(|rd_ready);
                wr_passed[k] <= wr_ready[k] || !wr_valid[k] ? 0 : wr_passed[k] + int'(|wr_ready);
                assert (rd_passed[k] < NREQ && wr_passed[k] < NREQ) else $error("requester %0d passed over", k);
            end
            wr_out <= wr_out + int'(awvalid && awready) - int'(bvalid);
            assert (wr_out <= WR_OUT) else $error("more than WR_OUT writes outstanding");
            if (awvalid) assert ({1'b0, awaddr[11:5]} + awlen <= 127 && awaddr[4:0] == 0 && awaddr[39:36] == 0 && awid < NREQ)
                else $error("illegal AW");
            if (arvalid) assert ({1'b0, araddr[11:5]} + arlen <= 127 && araddr[4:0] == 0 && araddr[39:36] == 0 && arid < NREQ)
                else $error("illegal AR");
            if (rvalid) assert (rid < NREQ) else $error("unknown RID");
            if (bvalid) assert (bid < NREQ && wr_out > 0) else $error("unknown B");
            assert ($onehot0(rd_ready) && $onehot0(wr_ready)) else $error("two grants");
            assert ((rd_ready & ~rd_valid) == '0 && (wr_ready & ~wr_valid) == '0) else $error("grant without request");
            assert ((st_rd_ready & ~rd_valid) == '0 && (st_wr_ready & ~all_wr_valid) == '0) else $error("claim without request");
            assert ($onehot0({st_rd_ready, st_wr_ready})) else $error("two claims");
            foreach (rd_out[k]) begin
                // One direction of a requester is in one memory at a time: its accesses complete in order.
                assert (!(st_rd_ready[k] && rd_out[k] != 0)) else $error("claim %0d overtakes DRAM reads", k);
                assert (!(st_rd_busy[k] && rd_ready[k]) && !(st_wr_busy[k] && wr_ready[k])) else $error("DRAM access %0d overtakes a claim", k);
                assert (!(st_wr_ready[k] && own_out[k] != 0)) else $error("claim %0d overtakes DRAM writes", k);
                assert (!(st_rsp_valid[k] && rvalid && rid == 4'(k))) else $error("two words for %0d", k);
                assert (!(st_done_valid[k] && bvalid && bid == 4'(k))) else $error("two responses for %0d", k);
                own_out[k] <= own_out[k] + int'(awvalid && awready && awid == 4'(k)) - int'(bvalid && bid == 4'(k));
            end
        end
    end
    wire [51:0]  aw = {awid, awaddr, awlen};
    wire [51:0]  ar = {arid, araddr, arlen};
    wire [288:0] w  = {wlast, wstrb, wdata};
    aw_held: assert property (@(posedge clk) disable iff (!rst_n) awvalid && !awready |=> awvalid && $stable(aw));
    ar_held: assert property (@(posedge clk) disable iff (!rst_n) arvalid && !arready |=> arvalid && $stable(ar));
    w_held:  assert property (@(posedge clk) disable iff (!rst_n) wvalid && !wready |=> wvalid && $stable(w));
endmodule

// Staging store: the fairness bound of its claims.
module mag_stage_sva #(parameter NREQ = 1) (
    input wire clk, rst_n,
    input wire [NREQ-1:0] rd_valid, rd_ready, wr_valid, wr_ready
);
    wire [2*NREQ-1:0] want  = {rd_valid, wr_valid};
    wire [2*NREQ-1:0] taken = {rd_ready, wr_ready};
    int passed [2*NREQ];
    always @(posedge clk) foreach (passed[k]) begin
        passed[k] <= !rst_n || taken[k] || !want[k] ? 0 : passed[k] + int'(|taken);
        if (rst_n) assert (passed[k] < 2 * NREQ) else $error("claim %0d passed over", k);
    end
endmodule

bind mag_stage mag_stage_sva #(.NREQ(NREQ)) u_sva (.clk, .rst_n, .rd_valid, .rd_ready, .wr_valid, .wr_ready);

bind mag_path mag_path_sva #(.NREQ(NREQ), .RD_OUT(RD_OUT), .WR_OUT(WR_OUT)) u_sva (
    .clk, .rst_n,
    .awid(m_axi_dram_awid), .arid(m_axi_dram_arid), .rid(m_axi_dram_rid), .bid(m_axi_dram_bid),
    .awaddr(m_axi_dram_awaddr), .araddr(m_axi_dram_araddr), .awlen(m_axi_dram_awlen), .arlen(m_axi_dram_arlen),
    .awvalid(m_axi_dram_awvalid), .awready(m_axi_dram_awready), .arvalid(m_axi_dram_arvalid),
    .arready(m_axi_dram_arready), .wvalid(m_axi_dram_wvalid), .wready(m_axi_dram_wready),
    .wlast(m_axi_dram_wlast), .rvalid(m_axi_dram_rvalid), .rlast(m_axi_dram_rlast), .bvalid(m_axi_dram_bvalid),
    .wstrb(m_axi_dram_wstrb), .wdata(m_axi_dram_wdata), .rd_valid, .rd_want, .rd_ready(rd_go),
    .wr_valid(wr_dram), .wr_ready(wr_go), .st_rd_ready, .st_wr_ready, .st_rd_busy, .st_wr_busy,
    .st_rsp_valid, .st_done_valid, .all_wr_valid(wr_valid));

`default_nettype wire
