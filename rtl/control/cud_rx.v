// SPDX-License-Identifier: Apache-2.0
// cud_rx: receive framing of unit-to-unit bursts (CU_DATA).
//
// Function   turns the CU_DATA flits of recv_* into granule writes of one open
//            burst, counts out the burst of a second sender, and queues one
//            DATA_RECEIVED per burst that asked for it.
// Latency    zero cycles from in_* to wr_* and desc_*; a burst that ends in
//            cycle k offers its signal from k+1.
// Throughput one flit per cycle.
//
// POS_X, POS_Y  own coordinate, 0..15, not both 0
// ACKQ_DEPTH    power of two >= 16: signals queued. Only a burst end that finds
//               the queue full holds in_ready.
//
// desc_*     desc_valid = 1 exactly in the cycle in which the descriptor on
//            desc_buf/off/len is taken; the unit answers desc_reason in that
//            cycle (0 = accept). Descriptors are never held.
// wr_*       wr_last marks the final flit by count. A burst that gets rejected
//            under way has none; burst_end comes in any case. The flit whose
//            `last` disagrees with the count is still written, later ones not.
// burst_end  pulse in the cycle the final flit of the open burst is taken.
// err        [0] pulse per flit of a third sender; [1] pulse in the cycle a
//            rejected burst ends. err[1] without burst_end: a second sender
//            (reason 4); with burst_end: the reason the unit gave, else 6 if it
//            raised abort, else 5.
// abort      rejects the open burst from this cycle on (reason 6); ignored when
//            none is open. It MUST NOT depend on wr_valid.
// Flits of a third sender are discarded without memory: what still arrives of
// that burst after the other two have ended is framed as a burst of its own.
//
// docs/spec/fabric.md 1.7, 1.8 and 5.8.
`default_nettype none

`include "ktpu_defs.vh"

module cud_rx #(
    parameter POS_X      = 1,
    parameter POS_Y      = 1,
    parameter ACKQ_DEPTH = 16
) (
    input  wire         clk,
    input  wire         rst_n,

    // CU_DATA flits only
    input  wire [287:0] in_flit,
    input  wire         in_valid,
    output wire         in_ready,

    output wire         desc_valid,
    output wire [7:0]   desc_buf,
    output wire [15:0]  desc_off,
    output wire [7:0]   desc_len,
    input  wire [2:0]   desc_reason,

    output wire         wr_valid,
    input  wire         wr_ready,
    output wire [7:0]   wr_buf,
    output wire [15:0]  wr_granule,
    output wire [255:0] wr_data,
    output wire         wr_last,

    output wire         sig_valid,
    input  wire         sig_ready,
    output wire [287:0] sig_flit,

    // The port name is fixed by its users; C++ code is generated under another name.
    /* verilator lint_off SYMRSVDWORD */
    input  wire         abort,
    /* verilator lint_on SYMRSVDWORD */
    output wire         open,
    output wire         burst_end,
    output wire [1:0]   err
);

    generate
        if (POS_X < 0 || POS_X > 15 || POS_Y < 0 || POS_Y > 15 || (POS_X == 0 && POS_Y == 0)
            || ACKQ_DEPTH < 16) begin : g_illegal
            cud_rx_illegal_parameters u_stop ();
        end
    endgenerate

    // -------------------------------------------------------- arriving flit
    wire [7:0] in_src   = {in_flit[`KT_FLIT_SRC_X], in_flit[`KT_FLIT_SRC_Y]};
    wire [7:0] in_txn   = in_flit[`KT_FLIT_TXN];
    wire       in_last  = in_flit[`KT_FLIT_LAST];
    wire       in_sig   = in_flit[`KT_CU_DATA_FLAG_SIGNAL];
    wire [7:0] in_named = {in_flit[`KT_CU_DATA_ACK_X], in_flit[`KT_CU_DATA_ACK_Y]};
    wire [7:0] in_ack   = (in_named != 8'd0) ? in_named : in_src;

    wire       header_unused = &{1'b0, in_flit[`KT_FLIT_DST_X], in_flit[`KT_FLIT_DST_Y],
                                 in_flit[`KT_FLIT_TYPE], in_flit[`KT_FLIT_RSVD]};

    assign desc_buf = in_flit[`KT_CU_DATA_BUF_ID];
    assign desc_off = in_flit[`KT_CU_DATA_OFFSET];
    assign desc_len = in_flit[`KT_CU_DATA_LEN];

    // ----------------------------------------------------------- open burst
    reg         open_q, sig_q, rejected_q;
    reg  [2:0]  reason_q;
    reg  [7:0]  src_q, txn_q, ack_q, buf_q, left_q;     // left_q: flits to come, minus 1
    reg  [15:0] granule_q;

    // -------------------------------------------- burst of a second sender
    reg         trk_open_q, trk_sig_q;
    reg  [7:0]  trk_src_q, trk_txn_q, trk_ack_q, trk_buf_q, trk_left_q;

    wire        is_data  = open_q && in_src == src_q;
    wire        is_trk   = trk_open_q && in_src == trk_src_q && !is_data;
    wire        is_desc  = !open_q && !is_trk;
    wire        is_trk_desc = open_q && !trk_open_q && !is_data;
    wire        is_third = open_q && trk_open_q && !is_data && !is_trk;

    wire        final_data = is_data && left_q == 8'd0;
    wire        final_trk  = is_trk && trk_left_q == 8'd0;
    wire        store      = is_data && !rejected_q && !abort;
    wire        mismatch   = is_data && in_last != final_data;

    wire        ackq_ready;
    wire        wants_ack  = (final_data && sig_q) || (final_trk && trk_sig_q);
    wire        hold       = wants_ack && !ackq_ready;
    wire        taken      = in_valid && in_ready;

    assign in_ready   = !hold && (!store || wr_ready);
    assign wr_valid   = in_valid && store && !hold;
    assign wr_buf     = buf_q;
    assign wr_granule = granule_q;
    assign wr_data    = in_flit[`KT_FLIT_PAYLOAD];
    assign wr_last    = final_data;
    assign desc_valid = in_valid && is_desc;
    assign open       = open_q;

    // The first cause of a rejection stays.
    wire [2:0]  cause = rejected_q ? reason_q :
                        abort      ? `KT_REJ_NOT_READY :
                        mismatch   ? `KT_REJ_LAST_MISMATCH : `KT_REJ_NONE;
    wire        rejected_d = cause != `KT_REJ_NONE;

    assign burst_end = taken && final_data;
    assign err[0]    = taken && is_third;
    assign err[1]    = taken && ((final_data && rejected_d) || final_trk);

    always @(posedge clk) begin
        if (!rst_n) begin
            open_q     <= 1'b0;
            rejected_q <= 1'b0;
        end else if (taken && is_desc) begin
            open_q     <= 1'b1;
            rejected_q <= desc_reason != `KT_REJ_NONE;
        end else if (burst_end) begin
            open_q     <= 1'b0;
        end else if (open_q && (abort || (taken && mismatch))) begin
            rejected_q <= 1'b1;
        end

        if (taken && is_desc) reason_q <= desc_reason;
        else if (!rejected_q) reason_q <= cause;

        if (taken && is_desc) begin
            src_q     <= in_src;
            txn_q     <= in_txn;
            ack_q     <= in_ack;
            sig_q     <= in_sig;
            buf_q     <= desc_buf;
            left_q    <= desc_len;
            granule_q <= desc_off;
        end else if (taken && is_data) begin
            left_q    <= left_q - 8'd1;
            granule_q <= granule_q + 16'd1;
        end
    end

    always @(posedge clk) begin
        if (!rst_n) trk_open_q <= 1'b0;
        else if (taken && is_trk_desc) trk_open_q <= 1'b1;
        else if (taken && final_trk) trk_open_q <= 1'b0;

        if (taken && is_trk_desc) begin
            trk_src_q  <= in_src;
            trk_txn_q  <= in_txn;
            trk_ack_q  <= in_ack;
            trk_sig_q  <= in_sig;
            trk_buf_q  <= desc_buf;
            trk_left_q <= desc_len;
        end else if (taken && is_trk) begin
            trk_left_q <= trk_left_q - 8'd1;
        end
    end

    // ------------------------------------------------------------- signals
    wire [26:0] push_data = final_trk
                            ? {trk_ack_q, trk_txn_q, trk_buf_q, `KT_REJ_SECOND_SENDER}
                            : {ack_q, txn_q, buf_q, cause};
    wire [7:0]  sig_node, sig_txn, sig_buf;
    wire [2:0]  sig_reason;
    wire [$clog2(ACKQ_DEPTH):0] ackq_level_unused;

    fifo_sync #(
        .WIDTH (27),
        .DEPTH (ACKQ_DEPTH)
    ) u_ackq (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (taken && wants_ack),
        .in_ready  (ackq_ready),
        .in_data   (push_data),
        .out_valid (sig_valid),
        .out_ready (sig_ready),
        .out_data  ({sig_node, sig_txn, sig_buf, sig_reason}),
        .level     (ackq_level_unused)
    );

    reg [31:0]  sig_arg;
    reg [287:0] flit;

    always @* begin
        sig_arg = 32'd0;
        sig_arg[`KT_DATA_ARG_REJECT] = sig_reason != `KT_REJ_NONE;
        sig_arg[`KT_DATA_ARG_REASON] = {4'd0, sig_reason};
        sig_arg[`KT_DATA_ARG_BUF_ID] = sig_buf;
    end

    always @* begin
        flit = 288'd0;
        flit[`KT_FLIT_DST_X]     = sig_node[7:4];
        flit[`KT_FLIT_DST_Y]     = sig_node[3:0];
        flit[`KT_FLIT_SRC_X]     = POS_X[3:0];
        flit[`KT_FLIT_SRC_Y]     = POS_Y[3:0];
        flit[`KT_FLIT_TYPE]      = `KT_TYPE_CU_SIGNAL;
        flit[`KT_FLIT_TXN]       = sig_txn;
        flit[`KT_FLIT_LAST]      = 1'b1;
        flit[`KT_CU_SIGNAL_CODE] = `KT_SIG_DATA_RECEIVED;
        flit[`KT_CU_SIGNAL_ARG]  = sig_arg;
    end

    assign sig_flit = flit;

endmodule

`default_nettype wire
