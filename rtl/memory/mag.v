// SPDX-License-Identifier: Apache-2.0
// mag: memory agent of one mesh. Serves plain and streaming reads and posted
// writes of its mesh port from one AXI4 memory and the staging store, acknowledges
// every write, and answers every request that it cannot serve with a fault code.
// Beside the port the host window and the memory mover use the same memories.
//
// Latency    read: 8 cycles from the request's transfer to the first
//            response besides the memory's own latency; write: 6 from the last
//            data flit to its first W beat.
// Throughput reads one word per cycle as long as RD_OUT x 16 words cover the
//            memory's round trip (RD_OUT = 4: latency 40); writes 8 words per 9 flits.
// Requesters of the converged path, index = AXI ID: mesh port 0, host window (PORTS),
//            mover (PORTS + 1). The interlink landing (PORTS + 2) takes the next place
//            of the requester vectors.
// Parameters PORTS 1; STAGE 1 builds the staging store of STAGE_ENTRIES x 128 bytes,
//            0 none (aperture 0 is M_APER), STAGE_* as in mag_stage; HOST, MOVER 1
//            build the host window and the mover, 0 leaves their ports idle;
//            XFORM_GRANULE as in mov_engine; MESH_ID 0..3;
//            PORT0_X/Y the port's coordinate; WR_SLOTS a power of two 2..64, at least 2 per bound
//            endpoint; Q_DEPTH, Q_MARGIN as in mag_intake; DRAM_BYTES_LOG2 12..36;
//            RD_OUT 1..16 outstanding read bursts.
// Spec       docs/spec/memory.md 1 to 10, 12.5
`default_nettype none
`include "ktpu_defs.vh"

module mag #(
    parameter PORTS           = 1,
    parameter MESH_ID         = 0,
    parameter PORT0_X         = 0,
    parameter PORT0_Y         = 1,
    parameter WR_SLOTS        = 16,
    parameter Q_DEPTH         = 64,
    parameter Q_MARGIN        = 4,
    parameter DRAM_BYTES_LOG2 = 32,
    parameter STAGE           = 1,
    parameter STAGE_BANKS     = `KT_MEM_STAGE_BANKS,
    parameter STAGE_ENTRIES   = `KT_MEM_STAGE_ENTRIES,
    parameter STAGE_PIPE      = 1,
    parameter HOST            = 0,
    parameter MOVER           = 0,
    parameter XFORM_GRANULE   = 0,
    parameter RD_OUT          = 4
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy,

    output wire [3:0]   m_axi_dram_awid,
    output wire [39:0]  m_axi_dram_awaddr,
    output wire [7:0]   m_axi_dram_awlen,
    output wire [2:0]   m_axi_dram_awsize,
    output wire [1:0]   m_axi_dram_awburst,
    output wire         m_axi_dram_awlock,
    output wire [3:0]   m_axi_dram_awcache,
    output wire [2:0]   m_axi_dram_awprot,
    output wire [3:0]   m_axi_dram_awqos,
    output wire [3:0]   m_axi_dram_awregion,
    output wire         m_axi_dram_awvalid,
    input  wire         m_axi_dram_awready,
    output wire [255:0] m_axi_dram_wdata,
    output wire [31:0]  m_axi_dram_wstrb,
    output wire         m_axi_dram_wlast,
    output wire         m_axi_dram_wvalid,
    input  wire         m_axi_dram_wready,
    input  wire [3:0]   m_axi_dram_bid,
    input  wire [1:0]   m_axi_dram_bresp,
    input  wire         m_axi_dram_bvalid,
    output wire         m_axi_dram_bready,
    output wire [3:0]   m_axi_dram_arid,
    output wire [39:0]  m_axi_dram_araddr,
    output wire [7:0]   m_axi_dram_arlen,
    output wire [2:0]   m_axi_dram_arsize,
    output wire [1:0]   m_axi_dram_arburst,
    output wire         m_axi_dram_arlock,
    output wire [3:0]   m_axi_dram_arcache,
    output wire [2:0]   m_axi_dram_arprot,
    output wire [3:0]   m_axi_dram_arqos,
    output wire [3:0]   m_axi_dram_arregion,
    output wire         m_axi_dram_arvalid,
    input  wire         m_axi_dram_arready,
    input  wire [3:0]   m_axi_dram_rid,
    input  wire [255:0] m_axi_dram_rdata,
    input  wire [1:0]   m_axi_dram_rresp,
    input  wire         m_axi_dram_rlast,
    input  wire         m_axi_dram_rvalid,
    output wire         m_axi_dram_rready,

    // host window; byte lanes by strobes, one transaction at a time
    input  wire [3:0]   s_axi_mem_awid,
    input  wire [39:0]  s_axi_mem_awaddr,
    input  wire [7:0]   s_axi_mem_awlen,
    input  wire [2:0]   s_axi_mem_awsize,
    input  wire [1:0]   s_axi_mem_awburst,
    input  wire         s_axi_mem_awvalid,
    output wire         s_axi_mem_awready,
    input  wire [255:0] s_axi_mem_wdata,
    input  wire [31:0]  s_axi_mem_wstrb,
    input  wire         s_axi_mem_wlast,
    input  wire         s_axi_mem_wvalid,
    output wire         s_axi_mem_wready,
    output wire [3:0]   s_axi_mem_bid,
    output wire [1:0]   s_axi_mem_bresp,
    output wire         s_axi_mem_bvalid,
    input  wire         s_axi_mem_bready,
    input  wire [3:0]   s_axi_mem_arid,
    input  wire [39:0]  s_axi_mem_araddr,
    input  wire [7:0]   s_axi_mem_arlen,
    input  wire [2:0]   s_axi_mem_arsize,
    input  wire [1:0]   s_axi_mem_arburst,
    input  wire         s_axi_mem_arvalid,
    output wire         s_axi_mem_arready,
    output wire [3:0]   s_axi_mem_rid,
    output wire [255:0] s_axi_mem_rdata,
    output wire [1:0]   s_axi_mem_rresp,
    output wire         s_axi_mem_rlast,
    output wire         s_axi_mem_rvalid,
    input  wire         s_axi_mem_rready,

    // mover commands and status (fabric.md 6.6)
    input  wire         aux_valid,
    input  wire [7:0]   aux_addr,
    input  wire [63:0]  aux_data,
    input  wire [3:0]   aux_stat_sel,
    output wire         aux_ready,
    output wire         aux_present,
    output wire [63:0]  aux_stat,
    output wire [63:0]  aux_stat_q,

    input  wire         mreg_en,
    input  wire         mreg_we,
    input  wire [6:0]   mreg_addr,
    input  wire [63:0]  mreg_wdata,
    output wire         mreg_present,
    output wire [63:0]  mreg_rdata,
    output wire         mreg_err,

    input  wire         ctrl_drop_in,   // the orchestrator's mailbox lost a flit
    input  wire         remote_drop_in, // the hub dropped unit data marked for another mesh
    output wire         lost            // a flit nobody takes was dropped here
);

    // Converged path requesters; what is not built after the last one has no place.
    localparam NREQ     = MOVER != 0 ? PORTS + 2 : HOST != 0 ? PORTS + 1 : PORTS;
    localparam HOST_AT  = PORTS;
    localparam MOVER_AT = PORTS + 1;

    localparam STAGE_BYTES_LOG2 = $clog2(STAGE_ENTRIES) + 7;

    // The ring covers the read bursts in flight and as much again in emission.
    localparam RING = RD_OUT <= 4 ? 128 : RD_OUT <= 8 ? 256 : 512;

    generate
        if (PORTS != 1 || STAGE_ENTRIES > (1 << 24)) begin : g_illegal
            mag_illegal_parameters u_stop ();
        end
    endgenerate

    wire [NREQ-1:0]     rd_valid, rd_ready, rsp_valid, wr_valid, wr_ready;
    wire [NREQ-1:0]     wd_valid, wd_ready, wd_last, done_valid;
    wire [NREQ*32-1:0]  rd_word, wr_word;
    wire [NREQ*8-1:0]   rd_len, wr_len;
    wire [NREQ*256-1:0] wd_data;
    wire [NREQ*32-1:0]  wd_strb;
    wire [NREQ*256-1:0] rsp_data;
    wire [NREQ-1:0]     rsp_err, done_err;
    wire                read_beat, write_beat, stage_read_beat, stage_write_beat, served, issued;
    wire [3:0]          bad_valid;
    wire [239:0]        bad_info;
    wire                orphan_valid, drop_ctrl;
    wire [59:0]         orphan_info;

    // ---------------------------------------------------------------- port 0
    mag_port #(
        .PORT_X          (PORT0_X),
        .PORT_Y          (PORT0_Y),
        .MESH_ID         (MESH_ID),
        .DRAM_BYTES_LOG2 (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2),
        .WR_SLOTS        (WR_SLOTS),
        .Q_DEPTH         (Q_DEPTH),
        .Q_MARGIN        (Q_MARGIN),
        .RING            (RING)
    ) u_port0 (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (noc_in_valid),
        .noc_in_data   (noc_in_data),
        .noc_in_busy   (noc_in_busy),
        .noc_out_valid (noc_out_valid),
        .noc_out_data  (noc_out_data),
        .noc_out_busy  (noc_out_busy),
        .rd_valid      (rd_valid[0]),
        .rd_ready      (rd_ready[0]),
        .rd_word       (rd_word[31:0]),
        .rd_len        (rd_len[7:0]),
        .rsp_valid     (rsp_valid[0]),
        .rsp_data      (rsp_data[255:0]),
        .rsp_err       (rsp_err[0]),
        .wr_valid      (wr_valid[0]),
        .wr_ready      (wr_ready[0]),
        .wr_word       (wr_word[31:0]),
        .wr_len        (wr_len[7:0]),
        .wd_valid      (wd_valid[0]),
        .wd_ready      (wd_ready[0]),
        .wd_data       (wd_data[255:0]),
        .wd_last       (wd_last[0]),
        .done_valid    (done_valid[0]),
        .done_err      (done_err[0]),
        .bad_valid     (bad_valid),
        .bad_info      (bad_info),
        .orphan_valid  (orphan_valid),
        .orphan_info   (orphan_info),
        .drop_ctrl     (drop_ctrl),
        .served        (served),
        .issued        (issued)
    );
    assign wd_strb[31:0] = 32'hFFFF_FFFF;      // a port writes whole words
    assign lost          = drop_ctrl || bad_valid[0];

    // ---------------------------------------------------------------- host window
    wire         host_bad_valid;
    wire [3:0]   host_bad_code;
    wire [39:0]  host_bad_addr;
    generate
        if (HOST != 0) begin : g_host
            mag_host #(
                .MESH_ID          (MESH_ID),
                .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
                .STAGE            (STAGE),
                .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2)
            ) u_host (
                .clk               (clk),
                .rst_n             (rst_n),
                .s_axi_mem_awid    (s_axi_mem_awid),
                .s_axi_mem_awaddr  (s_axi_mem_awaddr),
                .s_axi_mem_awlen   (s_axi_mem_awlen),
                .s_axi_mem_awsize  (s_axi_mem_awsize),
                .s_axi_mem_awburst (s_axi_mem_awburst),
                .s_axi_mem_awvalid (s_axi_mem_awvalid),
                .s_axi_mem_awready (s_axi_mem_awready),
                .s_axi_mem_wdata   (s_axi_mem_wdata),
                .s_axi_mem_wstrb   (s_axi_mem_wstrb),
                .s_axi_mem_wlast   (s_axi_mem_wlast),
                .s_axi_mem_wvalid  (s_axi_mem_wvalid),
                .s_axi_mem_wready  (s_axi_mem_wready),
                .s_axi_mem_bid     (s_axi_mem_bid),
                .s_axi_mem_bresp   (s_axi_mem_bresp),
                .s_axi_mem_bvalid  (s_axi_mem_bvalid),
                .s_axi_mem_bready  (s_axi_mem_bready),
                .s_axi_mem_arid    (s_axi_mem_arid),
                .s_axi_mem_araddr  (s_axi_mem_araddr),
                .s_axi_mem_arlen   (s_axi_mem_arlen),
                .s_axi_mem_arsize  (s_axi_mem_arsize),
                .s_axi_mem_arburst (s_axi_mem_arburst),
                .s_axi_mem_arvalid (s_axi_mem_arvalid),
                .s_axi_mem_arready (s_axi_mem_arready),
                .s_axi_mem_rid     (s_axi_mem_rid),
                .s_axi_mem_rdata   (s_axi_mem_rdata),
                .s_axi_mem_rresp   (s_axi_mem_rresp),
                .s_axi_mem_rlast   (s_axi_mem_rlast),
                .s_axi_mem_rvalid  (s_axi_mem_rvalid),
                .s_axi_mem_rready  (s_axi_mem_rready),
                .rd_valid          (rd_valid[HOST_AT]),
                .rd_ready          (rd_ready[HOST_AT]),
                .rd_word           (rd_word[32*HOST_AT +: 32]),
                .rd_len            (rd_len[8*HOST_AT +: 8]),
                .rsp_valid         (rsp_valid[HOST_AT]),
                .rsp_data          (rsp_data[256*HOST_AT +: 256]),
                .rsp_err           (rsp_err[HOST_AT]),
                .wr_valid          (wr_valid[HOST_AT]),
                .wr_ready          (wr_ready[HOST_AT]),
                .wr_word           (wr_word[32*HOST_AT +: 32]),
                .wr_len            (wr_len[8*HOST_AT +: 8]),
                .wd_valid          (wd_valid[HOST_AT]),
                .wd_ready          (wd_ready[HOST_AT]),
                .wd_data           (wd_data[256*HOST_AT +: 256]),
                .wd_strb           (wd_strb[32*HOST_AT +: 32]),
                .wd_last           (wd_last[HOST_AT]),
                .done_valid        (done_valid[HOST_AT]),
                .done_err          (done_err[HOST_AT]),
                .bad_valid         (host_bad_valid),
                .bad_code          (host_bad_code),
                .bad_addr          (host_bad_addr)
            );
        end else begin : g_no_host
            if (NREQ > HOST_AT) begin : g_place
                assign {rd_valid[HOST_AT], wr_valid[HOST_AT], wd_valid[HOST_AT], wd_last[HOST_AT]} = 4'd0;
                assign {rd_word[32*HOST_AT +: 32], wr_word[32*HOST_AT +: 32]} = 64'd0;
                assign {rd_len[8*HOST_AT +: 8], wr_len[8*HOST_AT +: 8]}       = 16'd0;
                assign {wd_data[256*HOST_AT +: 256], wd_strb[32*HOST_AT +: 32]} = 288'd0;
            end
            assign {s_axi_mem_awready, s_axi_mem_wready, s_axi_mem_arready} = 3'd0;
            assign {s_axi_mem_bvalid, s_axi_mem_bid, s_axi_mem_bresp}       = 7'd0;
            assign {s_axi_mem_rvalid, s_axi_mem_rid, s_axi_mem_rresp, s_axi_mem_rlast, s_axi_mem_rdata} = 264'd0;
            assign {host_bad_valid, host_bad_code, host_bad_addr} = 45'd0;
            wire unused_host = &{1'b0, s_axi_mem_awid, s_axi_mem_awaddr, s_axi_mem_awlen, s_axi_mem_awsize,
                                 s_axi_mem_awburst, s_axi_mem_awvalid, s_axi_mem_wdata, s_axi_mem_wstrb,
                                 s_axi_mem_wlast, s_axi_mem_wvalid, s_axi_mem_bready, s_axi_mem_arid,
                                 s_axi_mem_araddr, s_axi_mem_arlen, s_axi_mem_arsize, s_axi_mem_arburst,
                                 s_axi_mem_arvalid, s_axi_mem_rready};
        end
    endgenerate

    // ---------------------------------------------------------------- mover
    wire         mover_bad_valid;
    wire [3:0]   mover_bad_code;
    wire [39:0]  mover_bad_addr;
    generate
        if (MOVER != 0) begin : g_mover
            mov_engine #(
                .MESH_ID          (MESH_ID),
                .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
                .STAGE            (STAGE),
                .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2),
                .XFORM_GRANULE    (XFORM_GRANULE)
            ) u_mover (
                .clk        (clk),
                .rst_n      (rst_n),
                .cmd_valid  (aux_valid),
                .cmd_ready  (aux_ready),
                .cmd_addr   (aux_addr),
                .cmd_data   (aux_data),
                .served     (served),
                .issued     (issued),
                .status     (aux_stat),
                .rd_valid   (rd_valid[MOVER_AT]),
                .rd_ready   (rd_ready[MOVER_AT]),
                .rd_word    (rd_word[32*MOVER_AT +: 32]),
                .rd_len     (rd_len[8*MOVER_AT +: 8]),
                .rsp_valid  (rsp_valid[MOVER_AT]),
                .rsp_data   (rsp_data[256*MOVER_AT +: 256]),
                .rsp_err    (rsp_err[MOVER_AT]),
                .wr_valid   (wr_valid[MOVER_AT]),
                .wr_ready   (wr_ready[MOVER_AT]),
                .wr_word    (wr_word[32*MOVER_AT +: 32]),
                .wr_len     (wr_len[8*MOVER_AT +: 8]),
                .wd_valid   (wd_valid[MOVER_AT]),
                .wd_ready   (wd_ready[MOVER_AT]),
                .wd_data    (wd_data[256*MOVER_AT +: 256]),
                .wd_last    (wd_last[MOVER_AT]),
                .done_valid (done_valid[MOVER_AT]),
                .done_err   (done_err[MOVER_AT]),
                .bad_valid  (mover_bad_valid),
                .bad_code   (mover_bad_code),
                .bad_addr   (mover_bad_addr)
            );
            assign wd_strb[32*MOVER_AT +: 32] = 32'hFFFF_FFFF;
            assign aux_present                = 1'b1;
            wire unused_mover = &{1'b0, aux_stat_sel};
        end else begin : g_no_mover
            assign {aux_ready, aux_present, aux_stat} = 66'd0;
            assign {mover_bad_valid, mover_bad_code, mover_bad_addr} = 45'd0;
            wire unused_mover = &{1'b0, aux_valid, aux_addr, aux_data, aux_stat_sel, served, issued,
                                  XFORM_GRANULE[0]};
        end
    endgenerate
    assign aux_stat_q = 64'd0;                 // status words of the interlink

    // ---------------------------------------------------------------- path
    mag_path #(
        .NREQ          (NREQ),
        .RD_OUT        (RD_OUT),
        .STAGE         (STAGE),
        .STAGE_BANKS   (STAGE_BANKS),
        .STAGE_ENTRIES (STAGE_ENTRIES),
        .STAGE_PIPE    (STAGE_PIPE)
    ) u_path (
        .clk                 (clk),
        .rst_n               (rst_n),
        .rd_valid            (rd_valid),
        .rd_ready            (rd_ready),
        .rd_word             (rd_word),
        .rd_len              (rd_len),
        .rsp_valid           (rsp_valid),
        .rsp_data            (rsp_data),
        .rsp_err             (rsp_err),
        .wr_valid            (wr_valid),
        .wr_ready            (wr_ready),
        .wr_word             (wr_word),
        .wr_len              (wr_len),
        .wd_valid            (wd_valid),
        .wd_ready            (wd_ready),
        .wd_data             (wd_data),
        .wd_strb             (wd_strb),
        .wd_last             (wd_last),
        .done_valid          (done_valid),
        .done_err            (done_err),
        .read_beat           (read_beat),
        .write_beat          (write_beat),
        .stage_read_beat     (stage_read_beat),
        .stage_write_beat    (stage_write_beat),
        .m_axi_dram_awid     (m_axi_dram_awid),
        .m_axi_dram_awaddr   (m_axi_dram_awaddr),
        .m_axi_dram_awlen    (m_axi_dram_awlen),
        .m_axi_dram_awsize   (m_axi_dram_awsize),
        .m_axi_dram_awburst  (m_axi_dram_awburst),
        .m_axi_dram_awlock   (m_axi_dram_awlock),
        .m_axi_dram_awcache  (m_axi_dram_awcache),
        .m_axi_dram_awprot   (m_axi_dram_awprot),
        .m_axi_dram_awqos    (m_axi_dram_awqos),
        .m_axi_dram_awregion (m_axi_dram_awregion),
        .m_axi_dram_awvalid  (m_axi_dram_awvalid),
        .m_axi_dram_awready  (m_axi_dram_awready),
        .m_axi_dram_wdata    (m_axi_dram_wdata),
        .m_axi_dram_wstrb    (m_axi_dram_wstrb),
        .m_axi_dram_wlast    (m_axi_dram_wlast),
        .m_axi_dram_wvalid   (m_axi_dram_wvalid),
        .m_axi_dram_wready   (m_axi_dram_wready),
        .m_axi_dram_bid      (m_axi_dram_bid),
        .m_axi_dram_bresp    (m_axi_dram_bresp),
        .m_axi_dram_bvalid   (m_axi_dram_bvalid),
        .m_axi_dram_bready   (m_axi_dram_bready),
        .m_axi_dram_arid     (m_axi_dram_arid),
        .m_axi_dram_araddr   (m_axi_dram_araddr),
        .m_axi_dram_arlen    (m_axi_dram_arlen),
        .m_axi_dram_arsize   (m_axi_dram_arsize),
        .m_axi_dram_arburst  (m_axi_dram_arburst),
        .m_axi_dram_arlock   (m_axi_dram_arlock),
        .m_axi_dram_arcache  (m_axi_dram_arcache),
        .m_axi_dram_arprot   (m_axi_dram_arprot),
        .m_axi_dram_arqos    (m_axi_dram_arqos),
        .m_axi_dram_arregion (m_axi_dram_arregion),
        .m_axi_dram_arvalid  (m_axi_dram_arvalid),
        .m_axi_dram_arready  (m_axi_dram_arready),
        .m_axi_dram_rid      (m_axi_dram_rid),
        .m_axi_dram_rdata    (m_axi_dram_rdata),
        .m_axi_dram_rresp    (m_axi_dram_rresp),
        .m_axi_dram_rlast    (m_axi_dram_rlast),
        .m_axi_dram_rvalid   (m_axi_dram_rvalid),
        .m_axi_dram_rready   (m_axi_dram_rready)
    );

    // ---------------------------------------------------------------- registers
    // Events carry {code, source, txn, address}; the register wants the address on
    // top. Requester class 0 is a mesh port.
    wire [319:0] event_info;
    genvar g;
    generate
        for (g = 0; g < 5; g = g + 1) begin : g_event
            wire [59:0] e;
            if (g < 4) begin : g_fault
                assign e = bad_info[60*g +: 60];
            end else begin : g_orphan
                assign e = orphan_info;
            end
            assign event_info[64*g +: 64] = {e[39:0], e[47:40], e[55:48], 4'd0, e[59:56]};
        end
    endgenerate

    mag_regs #(
        .FAULTS          (7),
        .DROPS           (2),
        .PORTS           (PORTS),
        .WR_SLOTS        (WR_SLOTS),
        .DRAM_BYTES_LOG2 (DRAM_BYTES_LOG2),
        .STAGE_BYTES     (STAGE != 0 ? STAGE_ENTRIES * 128 : 0)
    ) u_regs (
        .clk          (clk),
        .rst_n        (rst_n),
        .mreg_en      (mreg_en),
        .mreg_we      (mreg_we),
        .mreg_addr    (mreg_addr),
        .mreg_wdata   (mreg_wdata),
        .mreg_present (mreg_present),
        .mreg_rdata   (mreg_rdata),
        .mreg_err     (mreg_err),
        .fault_valid  ({mover_bad_valid, host_bad_valid, remote_drop_in, bad_valid}),
        // the hub does not pass on the flit it drops
        .fault_info   ({mover_bad_addr, 16'd0, `KT_MEM_CLS_MOVER, mover_bad_code,
                        host_bad_addr, 16'd0, `KT_MEM_CLS_HOST, host_bad_code,
                        60'd0, `KT_M_REMOTE, event_info[255:0]}),
        .orphan_valid (orphan_valid),
        .orphan_info  (event_info[319:256]),
        .ctrl_drop    ({ctrl_drop_in, drop_ctrl}),
        .read_beat    (read_beat),
        .write_beat       (write_beat),
        .stage_read_beat  (stage_read_beat),
        .stage_write_beat (stage_write_beat)
    );

endmodule

`default_nettype wire
