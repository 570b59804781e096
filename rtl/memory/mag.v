// SPDX-License-Identifier: Apache-2.0
// mag: memory agent of one mesh. Serves plain and streaming reads and posted
// writes of its mesh port from one AXI4 memory, acknowledges every write, and
// answers every request that it cannot serve with a fault code.
//
// Latency    read: 8 cycles from the request's transfer to the first
//            response besides the memory's own latency; write: 6 from the last
//            data flit to its first W beat.
// Throughput reads one word per cycle as long as RD_OUT x 16 words cover the
//            memory's round trip (RD_OUT = 4: latency 40); writes 8 words per 9 flits.
// Requesters of the converged path, index = AXI ID: mesh port 0. The host window
//            (PORTS), the mover (PORTS + 1) and the interlink landing (PORTS + 2)
//            take the next places of the requester vectors.
// Parameters PORTS 1; STAGE 0 (aperture 0 is M_APER); MESH_ID 0..3; PORT0_X/Y the
//            port's coordinate; WR_SLOTS a power of two 2..64, at least 2 per bound
//            endpoint; Q_DEPTH, Q_MARGIN as in mag_intake; DRAM_BYTES_LOG2 12..36;
//            RD_OUT 1..16 outstanding read bursts.
// Spec       docs/spec/memory.md 1 to 8
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
    parameter STAGE           = 0,
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

    // Converged path requesters; host, mover and landing come after the ports.
    localparam NREQ = PORTS;

    // The ring covers the read bursts in flight and as much again in emission.
    localparam RING = RD_OUT <= 4 ? 128 : RD_OUT <= 8 ? 256 : 512;

    generate
        if (PORTS != 1 || STAGE != 0) begin : g_illegal
            mag_illegal_parameters u_stop ();
        end
    endgenerate

    wire [NREQ-1:0]     rd_valid, rd_ready, rsp_valid, wr_valid, wr_ready;
    wire [NREQ-1:0]     wd_valid, wd_ready, wd_last, done_valid;
    wire [NREQ*31-1:0]  rd_word, wr_word;
    wire [NREQ*8-1:0]   rd_len, wr_len;
    wire [NREQ*256-1:0] wd_data;
    wire [NREQ*32-1:0]  wd_strb;
    wire [255:0]        rsp_data;
    wire                rsp_err, done_err, read_beat, write_beat;
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
        .rd_word       (rd_word[30:0]),
        .rd_len        (rd_len[7:0]),
        .rsp_valid     (rsp_valid[0]),
        .rsp_data      (rsp_data),
        .rsp_err       (rsp_err),
        .wr_valid      (wr_valid[0]),
        .wr_ready      (wr_ready[0]),
        .wr_word       (wr_word[30:0]),
        .wr_len        (wr_len[7:0]),
        .wd_valid      (wd_valid[0]),
        .wd_ready      (wd_ready[0]),
        .wd_data       (wd_data[255:0]),
        .wd_last       (wd_last[0]),
        .done_valid    (done_valid[0]),
        .done_err      (done_err),
        .bad_valid     (bad_valid),
        .bad_info      (bad_info),
        .orphan_valid  (orphan_valid),
        .orphan_info   (orphan_info),
        .drop_ctrl     (drop_ctrl)
    );
    assign wd_strb[31:0] = 32'hFFFF_FFFF;      // a port writes whole words
    assign lost          = drop_ctrl || bad_valid[0];

    // ---------------------------------------------------------------- path
    mag_path #(
        .NREQ   (NREQ),
        .RD_OUT (RD_OUT)
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
        .FAULTS          (5),
        .DROPS           (2),
        .PORTS           (PORTS),
        .WR_SLOTS        (WR_SLOTS),
        .DRAM_BYTES_LOG2 (DRAM_BYTES_LOG2)
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
        .fault_valid  ({remote_drop_in, bad_valid}),
        .fault_info   ({60'd0, `KT_M_REMOTE, event_info[255:0]}),   // the hub does not pass the flit on
        .orphan_valid (orphan_valid),
        .orphan_info  (event_info[319:256]),
        .ctrl_drop    ({ctrl_drop_in, drop_ctrl}),
        .read_beat    (read_beat),
        .write_beat   (write_beat)
    );

endmodule

`default_nettype wire
