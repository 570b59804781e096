// SPDX-License-Identifier: Apache-2.0
// cu_base: the shell in front of every compute unit.
//
// Function   takes flits from the mesh and sorts them (instructions, control
//            requests, acknowledgements, data for the unit), issues
//            instructions in order, returns one completion per instruction
//            behind the write fence, answers CU_CTRL, and owns the unit's
//            outbound link register.
// Latency    inbound flit -> inst_* or recv_* one cycle; send_* -> link one
//            cycle; exec_done -> completion on the link two cycles if nothing
//            is in its way.
// Throughput one inbound flit, one instruction, one retirement and one
//            outbound flit per cycle.
//
// POS_X, POS_Y  own coordinate, 0..15, not both 0
// CU_TYPE       16 bits        CU_VERSION 8 bits      FEATURES 8 bits
// N_BUFFERS     0..15          accepted CU_DATA buffer indices, published only
// INST_DEPTH    power of two >= 2, instruction FIFO
// RECV_DEPTH    power of two >= 2, receive FIFO
// MAX_INFLIGHT  1..8           accepted, unretired instructions
// ACK_FENCE     0 or 1         completions wait for write acknowledgements
// RD_ERR_FAULT  0 or 1         a read error faults the next retirement; 0 if
//                              MAX_INFLIGHT > 1
// RECV_TYPES    16-bit mask of message types delivered on recv_*
//
// docs/spec/fabric.md 5.1 to 5.7 and 5.9.
`default_nettype none

`include "ktpu_defs.vh"

module cu_base #(
    parameter POS_X        = 1,
    parameter POS_Y        = 1,
    parameter CU_TYPE      = 0,
    parameter CU_VERSION   = `KT_CU_VERSION,
    parameter N_BUFFERS    = 1,
    parameter INST_DEPTH   = 32,
    parameter RECV_DEPTH   = 16,
    parameter MAX_INFLIGHT = 1,
    parameter ACK_FENCE    = 1,
    parameter RD_ERR_FAULT = 1,
    parameter FEATURES     = 0,
    parameter RECV_TYPES   = (ACK_FENCE != 0) ? 16'h0104 : 16'h010C
) (
    input  wire         clk,
    input  wire         rst_n,

    // mesh link
    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy,

    // instructions
    output wire [287:0] inst_flit,
    output wire         inst_valid,
    input  wire         inst_ready,
    input  wire         exec_done,
    input  wire         exec_fault,
    input  wire [31:0]  exec_result,
    input  wire         exec_cover,

    // traffic of the unit
    input  wire [287:0] send_flit,
    input  wire         send_valid,
    output wire         send_ready,
    output wire [287:0] recv_flit,
    output wire         recv_valid,
    input  wire         recv_ready,

    // state
    input  wire [63:0]  dbg_ctr,
    input  wire [7:0]   unit_err,
    output wire [15:0]  inst_space,
    output wire         busy
);

    localparam INST_AW   = $clog2(INST_DEPTH);
    localparam RECV_AW   = $clog2(RECV_DEPTH);
    localparam CTX_DEPTH = (MAX_INFLIGHT < 2) ? 2 : (1 << $clog2(MAX_INFLIGHT));
    localparam CTX_AW    = $clog2(CTX_DEPTH);

    localparam [7:0]  OWN       = {POS_X[3:0], POS_Y[3:0]};
    localparam [15:0] RECV_MASK = RECV_TYPES[15:0];
    localparam [4:0]  LIMIT     = MAX_INFLIGHT[4:0];
    localparam [5:0]  SIGNALS   = `KT_SIG_DEPTH;

    generate
        if (POS_X < 0 || POS_X > 15 || POS_Y < 0 || POS_Y > 15 || (POS_X == 0 && POS_Y == 0)
            || N_BUFFERS < 0 || N_BUFFERS > 15 || INST_DEPTH > 32768
            || MAX_INFLIGHT < 1 || MAX_INFLIGHT > 8
            || (ACK_FENCE != 0 && ACK_FENCE != 1)
            || (RD_ERR_FAULT != 0 && RD_ERR_FAULT != 1)
            || (RD_ERR_FAULT == 1 && MAX_INFLIGHT > 1)) begin : g_illegal
            cu_base_illegal_parameters u_stop ();
        end
    endgenerate

    // ------------------------------------------------------------- inbound
    wire inst_push_ready, recv_push_ready;

    // Both are registers that are 0 in reset, so busy never sees the flit.
    assign noc_in_busy = !(inst_push_ready && recv_push_ready);

    wire        taken    = noc_in_valid && !noc_in_busy;
    wire [3:0]  in_type  = noc_in_data[`KT_FLIT_TYPE];
    wire [7:0]  in_src   = {noc_in_data[`KT_FLIT_SRC_X], noc_in_data[`KT_FLIT_SRC_Y]};
    wire        mine     = {noc_in_data[`KT_FLIT_DST_X], noc_in_data[`KT_FLIT_DST_Y]} == OWN;
    wire        is_inst  = in_type == `KT_TYPE_CU_INST;
    wire        is_ctrl  = in_type == `KT_TYPE_CU_CTRL;
    wire        is_ack   = in_type == `KT_TYPE_MEM_WR_ACK;
    wire        is_fence = is_ack && ACK_FENCE != 0;
    wire        claimed  = is_inst || is_ctrl || is_fence;
    wire        wanted   = RECV_MASK[in_type];

    wire        to_inst  = taken && is_inst;
    wire        to_recv  = taken && mine && !claimed && wanted;
    wire        to_ctrl  = taken && mine && is_ctrl;
    wire        to_fence = taken && mine && is_fence;

    wire        ack_drop = noc_in_data[`KT_MEM_WR_ACK_DROP];
    wire        spur_ack;
    wire        ev_misroute = taken && !mine;
    wire        ev_bad_type = taken && mine && !claimed && !wanted
                              && in_type != `KT_TYPE_CU_SIGNAL;
    wire        ev_rd_err   = to_recv && in_type == `KT_TYPE_MEM_RD_RESP
                              && noc_in_data[`KT_FLIT_RSVD_FLAG];
    wire        ev_wr_drop  = (to_fence || (to_recv && is_ack)) && ack_drop && !spur_ack;

    wire [INST_AW:0] inst_level;
    wire [RECV_AW:0] recv_level_unused;
    wire             head_valid, head_pop;
    wire [287:0]     head;

    fifo_sync #(
        .WIDTH (288),
        .DEPTH (INST_DEPTH)
    ) u_inst (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (to_inst),
        .in_ready  (inst_push_ready),
        .in_data   (noc_in_data),
        .out_valid (head_valid),
        .out_ready (head_pop),
        .out_data  (head),
        .level     (inst_level)
    );

    fifo_sync #(
        .WIDTH (288),
        .DEPTH (RECV_DEPTH)
    ) u_recv (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (to_recv),
        .in_ready  (recv_push_ready),
        .in_data   (noc_in_data),
        .out_valid (recv_valid),
        .out_ready (recv_ready),
        .out_data  (recv_flit),
        .level     (recv_level_unused)
    );

    // ------------------------------------------------- issue and retirement
    wire [CTX_AW:0] in_flight;
    wire [4:0]      queued;
    wire            sig_push;
    wire [4:0]      flying     = {{(4-CTX_AW){1'b0}}, in_flight};
    wire            idle       = flying == 5'd0;
    wire [5:0]      reserved   = {1'b0, queued} + {1'b0, flying};
    wire            head_mine  = {head[`KT_FLIT_DST_X], head[`KT_FLIT_DST_Y]} == OWN;
    wire            may_issue  = head_valid && flying < LIMIT && reserved < SIGNALS;
    wire            accept     = inst_valid && inst_ready;
    wire            mis_retire = may_issue && !head_mine && idle;
    wire            retire     = exec_done && (!idle || accept);
    wire            spur_done  = exec_done && !retire;

    assign inst_valid = may_issue && head_mine;
    assign inst_flit  = head;
    assign head_pop   = accept || mis_retire;
    assign inst_space = INST_DEPTH[15:0] - {{(15-INST_AW){1'b0}}, inst_level};
    assign busy       = !idle || head_valid || queued != 5'd0;

    // Reply context {src_x, src_y, txn, last}. An instruction that retires in
    // the cycle of its acceptance never enters the FIFO.
    wire [16:0] head_ctx = {head[`KT_FLIT_SRC_X], head[`KT_FLIT_SRC_Y], head[`KT_FLIT_TXN],
                            head[`KT_FLIT_LAST]};
    wire [16:0] old_ctx;
    wire [16:0] ctx = idle ? head_ctx : old_ctx;
    wire        ctx_ready_unused, ctx_valid_unused;

    fifo_sync #(
        .WIDTH (17),
        .DEPTH (CTX_DEPTH)
    ) u_ctx (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (accept && !(idle && exec_done)),
        .in_ready  (ctx_ready_unused),        // flying < LIMIT keeps a slot free
        .in_data   (head_ctx),
        .out_valid (ctx_valid_unused),        // level says the same
        .out_ready (exec_done && !idle),
        .out_data  (old_ctx),
        .level     (in_flight)
    );

    // Read error since the previous retirement; one of this cycle belongs to
    // the next retirement, for the unit has not seen it yet.
    reg  rd_pend_q;
    wire rd_fault = RD_ERR_FAULT != 0 && rd_pend_q;

    always @(posedge clk) begin
        if (!rst_n) rd_pend_q <= 1'b0;
        else if (ev_rd_err) rd_pend_q <= 1'b1;
        else if (sig_push) rd_pend_q <= 1'b0;
    end

    reg [7:0]  code;
    reg [31:0] arg;

    always @* begin
        code = `KT_SIG_INST_COMPLETE;
        arg  = exec_result;
        if (mis_retire) begin
            code = `KT_SIG_FAULT;
            arg  = {`KT_FAULT_MAGIC, 8'd0, `KT_FAB_MISROUTED};
        end else if (exec_fault) begin
            code = `KT_SIG_FAULT;
        end else if (rd_fault) begin
            code = `KT_SIG_FAULT;
            arg  = {`KT_FAULT_MAGIC, 8'd0, `KT_FAB_RD_ERR};
        end else if (ctx[0]) begin
            code = `KT_SIG_BATCH_COMPLETE;
            arg  = {24'd0, ctx[8:1]};
        end
    end

    assign sig_push = retire || mis_retire;

    // --------------------------------------------------- fence and signals
    wire        sig_valid, sig_take;
    wire [7:0]  sig_node, sig_txn, sig_code;
    wire [31:0] sig_arg;
    wire        send_taken = send_valid && send_ready;

    cu_fence #(
        .ACK_FENCE (ACK_FENCE)
    ) u_fence (
        .clk          (clk),
        .rst_n        (rst_n),
        .push         (sig_push),
        .push_cover   (retire && exec_cover),
        .push_node    (ctx[16:9]),
        .push_txn     (ctx[8:1]),
        .push_code    (code),
        .push_arg     (arg),
        .wr_issue     (send_taken && send_flit[`KT_FLIT_TYPE] == `KT_TYPE_MEM_WR_REQ),
        .ack          (to_fence),
        .ack_drop     (ack_drop),
        .ack_code     (noc_in_data[`KT_MEM_WR_ACK_FAULT_CODE]),
        .ack_spurious (spur_ack),
        .sig_valid    (sig_valid),
        .sig_take     (sig_take),
        .sig_node     (sig_node),
        .sig_txn      (sig_txn),
        .sig_code     (sig_code),
        .sig_arg      (sig_arg),
        .level        (queued)
    );

    // ------------------------------------------------------------ registers
    wire        rsp_valid, rsp_take;
    wire [7:0]  rsp_node, rsp_txn, rsp_op, rsp_index;
    wire [63:0] rsp_value;

    cu_regs #(
        .CU_TYPE      (CU_TYPE),
        .CU_VERSION   (CU_VERSION),
        .N_BUFFERS    (N_BUFFERS),
        .INST_DEPTH   (INST_DEPTH),
        .MAX_INFLIGHT (MAX_INFLIGHT),
        .FEATURES     (FEATURES)
    ) u_regs (
        .clk          (clk),
        .rst_n        (rst_n),
        .req          (to_ctrl),
        .req_node     (in_src),
        .req_txn      (noc_in_data[`KT_FLIT_TXN]),
        .req_op       (noc_in_data[`KT_CU_CTRL_OP]),
        .req_index    (noc_in_data[`KT_CU_CTRL_INDEX]),
        .rsp_valid    (rsp_valid),
        .rsp_take     (rsp_take),
        .rsp_node     (rsp_node),
        .rsp_txn      (rsp_txn),
        .rsp_op       (rsp_op),
        .rsp_index    (rsp_index),
        .rsp_value    (rsp_value),
        .in_hdr       (noc_in_data[287:256]),
        .ev_misroute  (ev_misroute),
        .ev_bad_type  (ev_bad_type),
        .ev_wr_drop   (ev_wr_drop),
        .ev_rd_err    (ev_rd_err),
        .ev_spur_ack  (spur_ack),
        .ev_spur_done (spur_done),
        .ev_retire    (sig_push),
        .unit_err     (unit_err),
        .dbg_ctr      (dbg_ctr),
        .inst_space   (inst_space),
        .busy         (busy)
    );

    // ------------------------------------------------------------- outbound
    reg          out_valid_q;
    reg  [287:0] out_data_q;
    wire         loadable = !out_valid_q || !noc_out_busy;
    wire         load     = sig_take || rsp_take || send_taken;
    reg  [287:0] own_flit;             // a flit that originates in the shell

    assign sig_take   = loadable && sig_valid;
    assign rsp_take   = loadable && !sig_valid && rsp_valid;
    assign send_ready = loadable && !sig_valid && !rsp_valid;

    always @* begin
        own_flit = 288'd0;
        own_flit[`KT_FLIT_SRC_X] = OWN[7:4];
        own_flit[`KT_FLIT_SRC_Y] = OWN[3:0];
        own_flit[`KT_FLIT_LAST]  = 1'b1;
        if (sig_valid) begin
            own_flit[`KT_FLIT_DST_X]     = sig_node[7:4];
            own_flit[`KT_FLIT_DST_Y]     = sig_node[3:0];
            own_flit[`KT_FLIT_TYPE]      = `KT_TYPE_CU_SIGNAL;
            own_flit[`KT_FLIT_TXN]       = sig_txn;
            own_flit[`KT_CU_SIGNAL_CODE] = sig_code;
            own_flit[`KT_CU_SIGNAL_ARG]  = sig_arg;
        end else begin
            own_flit[`KT_FLIT_DST_X]    = rsp_node[7:4];
            own_flit[`KT_FLIT_DST_Y]    = rsp_node[3:0];
            own_flit[`KT_FLIT_TYPE]     = `KT_TYPE_CU_CTRL;
            own_flit[`KT_FLIT_TXN]      = rsp_txn;
            own_flit[`KT_CU_CTRL_OP]    = rsp_op;
            own_flit[`KT_CU_CTRL_INDEX] = rsp_index;
            own_flit[`KT_CU_CTRL_VALUE] = rsp_value;
        end
    end

    always @(posedge clk) begin
        if (!rst_n) out_valid_q <= 1'b0;
        else if (loadable) out_valid_q <= load;
        if (load) out_data_q <= send_taken ? send_flit : own_flit;
    end

    assign noc_out_valid = out_valid_q;
    assign noc_out_data  = out_data_q;

endmodule

`default_nettype wire
