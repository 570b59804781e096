// SPDX-License-Identifier: Apache-2.0
// cu_regs: discovery registers of a shell and the queue of CU_CTRL requests.
//
// Function   queues up to 4 requests, forms one reply at a time, keeps the
//            sticky bits of CU_ERR and the counters of CU_COUNTERS.
// Latency    a request taken in cycle k offers its reply from k+1; the register
//            is read, and CU_ERR cleared, in the cycle rsp_take = 1.
// Throughput one request and one reply per cycle.
// Overflow   a request that finds the queue full is discarded (ctrl_ovf); the
//            queue never holds the link.
// CU_ERR     an event of the cycle that clears the register survives the clear.
//            Where a flit and something else set the first bit in one cycle,
//            first_hdr is the header of the flit.
//
// Parameters are those of cu_base. docs/spec/fabric.md 5.5.
`default_nettype none

`include "ktpu_defs.vh"

module cu_regs #(
    parameter CU_TYPE      = 0,
    parameter CU_VERSION   = 5,
    parameter N_BUFFERS    = 0,
    parameter INST_DEPTH   = 32,
    parameter MAX_INFLIGHT = 1,
    parameter FEATURES     = 0
) (
    input  wire        clk,
    input  wire        rst_n,

    // request of this cycle
    input  wire        req,
    input  wire [7:0]  req_node,       // {x, y} of the requester
    input  wire [7:0]  req_txn,
    input  wire [7:0]  req_op,
    input  wire [7:0]  req_index,

    // reply
    output wire        rsp_valid,
    input  wire        rsp_take,
    output wire [7:0]  rsp_node,
    output wire [7:0]  rsp_txn,
    output wire [7:0]  rsp_op,
    output wire [7:0]  rsp_index,
    output wire [63:0] rsp_value,

    // events of this cycle
    input  wire [31:0] in_hdr,         // header of the arriving flit
    input  wire        ev_misroute,
    input  wire        ev_bad_type,
    input  wire        ev_wr_drop,
    input  wire        ev_rd_err,
    input  wire        ev_spur_ack,
    input  wire        ev_spur_done,
    input  wire        ev_retire,
    input  wire [7:0]  unit_err,

    // levels
    input  wire [63:0] dbg_ctr,
    input  wire [15:0] inst_space,
    input  wire        busy
);

    localparam [7:0] INDEX_CAPS     = 8'd0;
    localparam [7:0] INDEX_STATUS   = 8'd1;
    localparam [7:0] INDEX_COUNTERS = 8'd2;
    localparam [7:0] INDEX_DBG      = 8'd3;
    localparam [7:0] INDEX_ERR      = 8'd4;

    // --------------------------------------------------------- request queue
    wire       queue_ready;
    wire       head_write;
    wire       ev_ctrl_ovf = req && !queue_ready;
    wire [2:0] queue_level_unused;

    fifo_sync #(
        .WIDTH (25),
        .DEPTH (`KT_CTRLQ_DEPTH)
    ) u_queue (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (req),
        .in_ready  (queue_ready),
        .in_data   ({req_node, req_txn, req_op == `KT_CTRL_OP_WRITE, req_index}),
        .out_valid (rsp_valid),
        .out_ready (rsp_take),
        .out_data  ({rsp_node, rsp_txn, head_write, rsp_index}),
        .level     (queue_level_unused)
    );

    // --------------------------------------------------------------- CU_ERR
    reg  [14:0] sticky_q;              // {unit_err, ctrl_ovf .. misroute}
    reg  [31:0] first_hdr_q;
    wire        flit_event = ev_misroute || ev_bad_type || ev_wr_drop || ev_rd_err
                             || ev_spur_ack || ev_ctrl_ovf;
    wire [14:0] events     = {unit_err, ev_ctrl_ovf, ev_spur_ack, ev_spur_done, ev_rd_err,
                              ev_wr_drop, ev_bad_type, ev_misroute};
    wire        clear      = rsp_take && head_write && (rsp_index == INDEX_ERR);
    wire [14:0] kept       = clear ? 15'd0 : sticky_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            sticky_q    <= 15'd0;
            first_hdr_q <= 32'd0;
        end else begin
            sticky_q <= kept | events;
            if (kept == 15'd0) first_hdr_q <= flit_event ? in_hdr : 32'd0;
        end
    end

    // --------------------------------------------------------- CU_COUNTERS
    reg [31:0] retired_q, busy_cycles_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            retired_q     <= 32'd0;
            busy_cycles_q <= 32'd0;
        end else begin
            if (ev_retire) retired_q <= retired_q + 32'd1;
            if (busy) busy_cycles_q <= busy_cycles_q + 32'd1;
        end
    end

    // ---------------------------------------------------------------- reply
    reg [63:0] value;

    always @* begin
        value = 64'd0;
        case (rsp_index)
            INDEX_CAPS: begin
                value[`KT_CU_CAPS_CU_TYPE]      = CU_TYPE[15:0];
                value[`KT_CU_CAPS_CU_VERSION]   = CU_VERSION[7:0];
                value[`KT_CU_CAPS_N_BUFFERS]    = N_BUFFERS[3:0];
                value[`KT_CU_CAPS_INST_DEPTH]   = INST_DEPTH[15:0];
                value[`KT_CU_CAPS_MAX_INFLIGHT] = MAX_INFLIGHT[3:0];
                value[`KT_CU_CAPS_FEATURES]     = FEATURES[7:0];
            end
            INDEX_STATUS: begin
                value[`KT_CU_STATUS_BUSY]       = busy;
                value[`KT_CU_STATUS_ERROR]      = sticky_q != 15'd0;
                value[`KT_CU_STATUS_INST_SPACE] = inst_space;
            end
            INDEX_COUNTERS: begin
                value[`KT_CU_COUNTERS_RETIRED]     = retired_q;
                value[`KT_CU_COUNTERS_BUSY_CYCLES] = busy_cycles_q;
            end
            INDEX_DBG: value[`KT_CU_DBG_DBG_CTR] = dbg_ctr;
            INDEX_ERR: begin
                value[`KT_CU_ERR_FIRST_HDR] = first_hdr_q;
                value[`KT_CU_ERR_UNIT_ERR]  = sticky_q[14:7];
                value[`KT_CU_ERR_CTRL_OVF]  = sticky_q[6];
                value[`KT_CU_ERR_SPUR_ACK]  = sticky_q[5];
                value[`KT_CU_ERR_SPUR_DONE] = sticky_q[4];
                value[`KT_CU_ERR_RD_ERR]    = sticky_q[3];
                value[`KT_CU_ERR_WR_DROP]   = sticky_q[2];
                value[`KT_CU_ERR_BAD_TYPE]  = sticky_q[1];
                value[`KT_CU_ERR_MISROUTE]  = sticky_q[0];
            end
            default: value = 64'd0;
        endcase
    end

    assign rsp_value = value;
    assign rsp_op    = (head_write && rsp_index != INDEX_ERR) ? `KT_CTRL_OP_REFUSED
                                                              : `KT_CTRL_OP_RSP;

endmodule

`default_nettype wire
