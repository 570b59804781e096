// SPDX-License-Identifier: Apache-2.0
// Bench top of the L2 adapter: a scripted endpoint on one face; on the other the
// memory agent with its DRAM, and a scripted controller.
//
// ep.hex, ct.hex    scripts of endpoint and controller, as flit_player reads them
// ep_cap.hex        {cycle[31:0], flit} of every flit the endpoint got
// rt_cap.hex        the same of every flit that left through the router face
`default_nettype none
`include "ktpu_defs.vh"
module tb_mag_adapter #(
    parameter DEPTH     = 512,
    parameter PASS      = 0,
    parameter DRAM_LOG2 = 18
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        load,          // one cycle: read both scripts and start
    input  wire        dump,
    input  wire [15:0] n_ep,
    input  wire [15:0] n_ct,
    input  wire [31:0] goal_ep,       // flits that end the run
    input  wire [31:0] goal_rt,
    input  wire [1:0]  ep_mode,       // stall_gen modes of the two faces
    input  wire [7:0]  ep_level,
    input  wire [1:0]  rt_mode,
    input  wire [7:0]  rt_level,
    input  wire [31:0] stall_seed,
    output reg         done,
    output reg  [31:0] n_ep_cap,
    output reg  [31:0] n_rt_cap,
    output reg  [31:0] unlike         // PASS: cycles in which the faces differed
);
    localparam CAP = 65536;
    reg  [319:0] ep_cap [0:CAP-1];
    reg  [319:0] rt_cap [0:CAP-1];
    reg  [31:0]  cycle;

    wire         ep_in_valid, ep_in_busy, ep_out_valid, ep_out_busy, ep_done;
    wire         rt_in_valid, rt_in_busy, rt_out_valid, rt_out_busy;
    wire [287:0] ep_in_data, ep_out_data, rt_in_data, rt_out_data;
    wire         ct_valid, ct_done;
    wire [287:0] ct_data;

    flit_player #(.FILE ("ep.hex")) u_ep (
        .clk       (clk),
        .rst_n     (rst_n),
        .load      (load),
        .count     (n_ep),
        .done      (ep_done),
        .out_valid (ep_in_valid),
        .out_data  (ep_in_data),
        .out_ready (!ep_in_busy)
    );

    mag_adapter #(
        .DEPTH (DEPTH),
        .PASS  (PASS)
    ) u_adapter (
        .clk          (clk),
        .rst_n        (rst_n),
        .rt_in_valid  (rt_in_valid),
        .rt_in_data   (rt_in_data),
        .rt_in_busy   (rt_in_busy),
        .rt_out_valid (rt_out_valid),
        .rt_out_data  (rt_out_data),
        .rt_out_busy  (rt_out_busy),
        .ep_in_valid  (ep_in_valid),
        .ep_in_data   (ep_in_data),
        .ep_in_busy   (ep_in_busy),
        .ep_out_valid (ep_out_valid),
        .ep_out_data  (ep_out_data),
        .ep_out_busy  (ep_out_busy)
    );

    // ---------------------------------------------------------------- pressure
    wire ep_stall, rt_stall;
    reg  up_q;
    always @(posedge clk) up_q <= rst_n;
    stall_gen u_stall_ep (
        .clk (clk), .rst_n (rst_n), .seed (stall_seed), .mode (ep_mode), .level (ep_level), .stall (ep_stall)
    );
    stall_gen u_stall_rt (
        .clk (clk), .rst_n (rst_n), .seed (~stall_seed), .mode (rt_mode), .level (rt_level), .stall (rt_stall)
    );
    assign ep_out_busy = ep_stall || !up_q;

    // ---------------------------------------------------------------- router side
    wire       mem_busy;
    wire       to_mem = rt_out_data[271:268] == `KT_TYPE_MEM_RD_REQ || rt_out_data[271:268] == `KT_TYPE_MEM_WR_REQ
                        || rt_out_data[271:268] == `KT_TYPE_MEM_WR_DATA;
    // What the memory does not take is recorded only; its fullness holds every flit alike.
    assign rt_out_busy = rt_stall || mem_busy || !up_q;

    wire         mem_valid;
    wire [287:0] mem_data;
    reg          hold_q;               // an offered flit of the memory stays offered
    wire         use_ct = ct_valid && !hold_q;
    always @(posedge clk) hold_q <= rst_n && mem_valid && !use_ct && rt_in_busy;
    assign rt_in_valid = use_ct || mem_valid;
    assign rt_in_data  = use_ct ? ct_data : mem_data;

    flit_player #(.FILE ("ct.hex")) u_ct (
        .clk       (clk),
        .rst_n     (rst_n),
        .load      (load),
        .count     (n_ct),
        .done      (ct_done),
        .out_valid (ct_valid),
        .out_data  (ct_data),
        .out_ready (use_ct && !rt_in_busy)
    );

    wire [3:0]   aw_id, ar_id, b_id, r_id, cache_w, cache_r, qos_w, qos_r, region_w, region_r;
    wire [39:0]  aw_addr, ar_addr;
    wire [7:0]   aw_len, ar_len;
    wire [2:0]   aw_size, ar_size, prot_w, prot_r;
    wire [1:0]   aw_burst, ar_burst, b_resp, r_resp;
    wire         aw_valid, aw_ready, ar_valid, ar_ready, w_valid, w_ready, w_last, lock_w, lock_r;
    wire         b_valid, b_ready, r_valid, r_ready, r_last;
    wire [255:0] w_data, r_data;
    wire [31:0]  w_strb;
    wire         lost, mreg_present, mreg_err;
    wire [63:0]  mreg_rdata;

    mag #(
        .STAGE           (0),
        .WR_SLOTS        (64),
        .DRAM_BYTES_LOG2 (DRAM_LOG2)
    ) u_mag (
        .clk                 (clk),
        .rst_n               (rst_n),
        .noc_in_valid        (rt_out_valid && to_mem && !rt_stall && up_q),
        .noc_in_data         (rt_out_data),
        .noc_in_busy         (mem_busy),
        .noc_out_valid       (mem_valid),
        .noc_out_data        (mem_data),
        .noc_out_busy        (use_ct || rt_in_busy),
        .m_axi_dram_awid     (aw_id),
        .m_axi_dram_awaddr   (aw_addr),
        .m_axi_dram_awlen    (aw_len),
        .m_axi_dram_awsize   (aw_size),
        .m_axi_dram_awburst  (aw_burst),
        .m_axi_dram_awlock   (lock_w),
        .m_axi_dram_awcache  (cache_w),
        .m_axi_dram_awprot   (prot_w),
        .m_axi_dram_awqos    (qos_w),
        .m_axi_dram_awregion (region_w),
        .m_axi_dram_awvalid  (aw_valid),
        .m_axi_dram_awready  (aw_ready),
        .m_axi_dram_wdata    (w_data),
        .m_axi_dram_wstrb    (w_strb),
        .m_axi_dram_wlast    (w_last),
        .m_axi_dram_wvalid   (w_valid),
        .m_axi_dram_wready   (w_ready),
        .m_axi_dram_bid      (b_id),
        .m_axi_dram_bresp    (b_resp),
        .m_axi_dram_bvalid   (b_valid),
        .m_axi_dram_bready   (b_ready),
        .m_axi_dram_arid     (ar_id),
        .m_axi_dram_araddr   (ar_addr),
        .m_axi_dram_arlen    (ar_len),
        .m_axi_dram_arsize   (ar_size),
        .m_axi_dram_arburst  (ar_burst),
        .m_axi_dram_arlock   (lock_r),
        .m_axi_dram_arcache  (cache_r),
        .m_axi_dram_arprot   (prot_r),
        .m_axi_dram_arqos    (qos_r),
        .m_axi_dram_arregion (region_r),
        .m_axi_dram_arvalid  (ar_valid),
        .m_axi_dram_arready  (ar_ready),
        .m_axi_dram_rid      (r_id),
        .m_axi_dram_rdata    (r_data),
        .m_axi_dram_rresp    (r_resp),
        .m_axi_dram_rlast    (r_last),
        .m_axi_dram_rvalid   (r_valid),
        .m_axi_dram_rready   (r_ready),
        .s_axi_mem_awid       (4'd0),
        .s_axi_mem_awaddr     (40'd0),
        .s_axi_mem_awlen      (8'd0),
        .s_axi_mem_awsize     (3'd0),
        .s_axi_mem_awburst    (2'd0),
        .s_axi_mem_awvalid    (1'b0),
        .s_axi_mem_awready    (),
        .s_axi_mem_wdata      (256'd0),
        .s_axi_mem_wstrb      (32'd0),
        .s_axi_mem_wlast      (1'b0),
        .s_axi_mem_wvalid     (1'b0),
        .s_axi_mem_wready     (),
        .s_axi_mem_bid        (),
        .s_axi_mem_bresp      (),
        .s_axi_mem_bvalid     (),
        .s_axi_mem_bready     (1'b0),
        .s_axi_mem_arid       (4'd0),
        .s_axi_mem_araddr     (40'd0),
        .s_axi_mem_arlen      (8'd0),
        .s_axi_mem_arsize     (3'd0),
        .s_axi_mem_arburst    (2'd0),
        .s_axi_mem_arvalid    (1'b0),
        .s_axi_mem_arready    (),
        .s_axi_mem_rid        (),
        .s_axi_mem_rdata      (),
        .s_axi_mem_rresp      (),
        .s_axi_mem_rlast      (),
        .s_axi_mem_rvalid     (),
        .s_axi_mem_rready     (1'b0),
        .aux_valid            (1'b0),
        .aux_addr             (8'd0),
        .aux_data             (64'd0),
        .aux_stat_sel         (4'd0),
        .aux_ready            (),
        .aux_present          (),
        .aux_stat             (),
        .aux_stat_q           (),
        .mreg_en             (1'b0),
        .mreg_we             (1'b0),
        .mreg_addr           (7'd0),
        .mreg_wdata          (64'd0),
        .mreg_present        (mreg_present),
        .mreg_rdata          (mreg_rdata),
        .mreg_err            (mreg_err),
        .ctrl_drop_in        (1'b0),
        .remote_drop_in      (1'b0),
        .lost                (lost)
    );

    axi_dram_model #(.WORDS (1 << (DRAM_LOG2 - 5))) u_dram (
        .clk           (clk),
        .rst_n         (rst_n),
        .s_axi_awid    (aw_id),
        .s_axi_awaddr  (aw_addr),
        .s_axi_awlen   (aw_len),
        .s_axi_awsize  (aw_size),
        .s_axi_awburst (aw_burst),
        .s_axi_awvalid (aw_valid),
        .s_axi_awready (aw_ready),
        .s_axi_wdata   (w_data),
        .s_axi_wstrb   (w_strb),
        .s_axi_wlast   (w_last),
        .s_axi_wvalid  (w_valid),
        .s_axi_wready  (w_ready),
        .s_axi_bid     (b_id),
        .s_axi_bresp   (b_resp),
        .s_axi_bvalid  (b_valid),
        .s_axi_bready  (b_ready),
        .s_axi_arid    (ar_id),
        .s_axi_araddr  (ar_addr),
        .s_axi_arlen   (ar_len),
        .s_axi_arsize  (ar_size),
        .s_axi_arburst (ar_burst),
        .s_axi_arvalid (ar_valid),
        .s_axi_arready (ar_ready),
        .s_axi_rid     (r_id),
        .s_axi_rdata   (r_data),
        .s_axi_rresp   (r_resp),
        .s_axi_rlast   (r_last),
        .s_axi_rvalid  (r_valid),
        .s_axi_rready  (r_ready)
    );

    // ---------------------------------------------------------------- records
    always @(posedge clk) begin
        cycle <= cycle + 32'd1;
        if (!rst_n) begin
            cycle <= 32'd0; n_ep_cap <= 32'd0; n_rt_cap <= 32'd0; done <= 1'b0; unlike <= 32'd0;
        end else begin
            if (load) begin
                n_ep_cap <= 32'd0; n_rt_cap <= 32'd0; done <= 1'b0;
            end else begin
                if (ep_out_valid && !ep_out_busy) begin
                    ep_cap[n_ep_cap[15:0]] <= {cycle, ep_out_data};
                    n_ep_cap <= n_ep_cap + 32'd1;
                end
                if (rt_out_valid && !rt_out_busy) begin
                    rt_cap[n_rt_cap[15:0]] <= {cycle, rt_out_data};
                    n_rt_cap <= n_rt_cap + 32'd1;
                end
                done <= ep_done && ct_done && n_ep_cap >= goal_ep && n_rt_cap >= goal_rt;
            end
            if ({ep_in_valid, ep_in_data, rt_in_valid, rt_in_data, ep_in_busy, rt_in_busy}
                != {rt_out_valid, rt_out_data, ep_out_valid, ep_out_data, rt_out_busy, ep_out_busy})
                unlike <= unlike + 32'd1;
        end
    end

    always @(posedge dump) begin
        $writememh("ep_cap.hex", ep_cap, 0, n_ep_cap == 0 ? 0 : n_ep_cap - 1);
        $writememh("rt_cap.hex", rt_cap, 0, n_rt_cap == 0 ? 0 : n_rt_cap - 1);
    end

    wire unused = &{1'b0, lock_w, cache_w, prot_w, qos_w, region_w, lock_r, cache_r, prot_r, qos_r, region_r,
                    lost, mreg_present, mreg_err, mreg_rdata};
endmodule
`default_nettype wire
