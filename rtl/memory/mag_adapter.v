// SPDX-License-Identifier: Apache-2.0
// mag_adapter: L2 adapter, a private line store in the link of one endpoint. Answers
// the endpoint's reads and writes of its window, passes everything else.
//
// Faces      rt_*: the router port; ep_*: the endpoint. *_in enters the adapter.
// Latency    2 cycles in each direction for what passes; a served read's first line
//            6 cycles after its request, a local acknowledgement 3 after its last data.
// Throughput one flit per cycle in each direction.
// Writes     every descriptor has a place in an order list of KT_MEM_ADAPTER_ORDER:
//            acknowledgements reach the endpoint in descriptor order, whoever made them.
// Deadlock   acknowledgements and replies need nothing from the endpoint but that it
//            takes what it is sent; a blocked router face stops no served read.
// Parameters DEPTH a power of two 512..2^27 lines; PASS 1: wires only.
// Spec       docs/spec/memory.md 11
`default_nettype none
`include "ktpu_defs.vh"

module mag_adapter #(
    parameter DEPTH = `KT_MEM_ADAPTER_DEPTH,
    parameter PASS  = 0
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         rt_in_valid,
    input  wire [287:0] rt_in_data,
    output wire         rt_in_busy,
    output wire         rt_out_valid,
    output wire [287:0] rt_out_data,
    input  wire         rt_out_busy,

    input  wire         ep_in_valid,
    input  wire [287:0] ep_in_data,
    output wire         ep_in_busy,
    output wire         ep_out_valid,
    output wire [287:0] ep_out_data,
    input  wire         ep_out_busy
);

    localparam AW      = $clog2(DEPTH);
    localparam L2_BITS = AW + 5;
    localparam OW      = $clog2(`KT_MEM_ADAPTER_ORDER);

    generate
        if (PASS != 0) begin : g_pass
            assign rt_out_valid = ep_in_valid;
            assign rt_out_data  = ep_in_data;
            assign ep_in_busy   = rt_out_busy;
            assign ep_out_valid = rt_in_valid;
            assign ep_out_data  = rt_in_data;
            assign rt_in_busy   = ep_out_busy;
            wire unused = &{1'b0, clk, rst_n};
        end else begin : g_adapter
            // ---------------------------------------------------- faces
            wire         e_valid, e_take, e_room, r_valid, r_take, r_room;
            wire [287:0] e, r;
            wire         to_rt_valid, to_rt_room, to_ep_valid, to_ep_room;
            wire [287:0] to_rt, to_ep;

            skid2 #(.WIDTH (288)) u_ep_in (
                .clk       (clk),
                .rst_n     (rst_n),
                .in_valid  (ep_in_valid),
                .in_ready  (e_room),
                .in_data   (ep_in_data),
                .out_valid (e_valid),
                .out_ready (e_take),
                .out_data  (e)
            );
            skid2 #(.WIDTH (288)) u_rt_in (
                .clk       (clk),
                .rst_n     (rst_n),
                .in_valid  (rt_in_valid),
                .in_ready  (r_room),
                .in_data   (rt_in_data),
                .out_valid (r_valid),
                .out_ready (r_take),
                .out_data  (r)
            );
            skid2 #(.WIDTH (288)) u_rt_out (
                .clk       (clk),
                .rst_n     (rst_n),
                .in_valid  (to_rt_valid),
                .in_ready  (to_rt_room),
                .in_data   (to_rt),
                .out_valid (rt_out_valid),
                .out_ready (!rt_out_busy),
                .out_data  (rt_out_data)
            );
            skid2 #(.WIDTH (288)) u_ep_out (
                .clk       (clk),
                .rst_n     (rst_n),
                .in_valid  (to_ep_valid),
                .in_ready  (to_ep_room),
                .in_data   (to_ep),
                .out_valid (ep_out_valid),
                .out_ready (!ep_out_busy),
                .out_data  (ep_out_data)
            );
            assign ep_in_busy = !e_room;
            assign rt_in_busy = !r_room;

            // ---------------------------------------------------- registers
            wire [39:0]  base;
            wire         enable, reply_valid, reply_ready;
            wire [287:0] reply;
            wire         is_ctrl = r[`KT_FLIT_TYPE] == `KT_TYPE_CU_CTRL && !r[`KT_FLIT_RSVD_FLAG]
                                   && r[247:243] == 5'b11100;
            wire         local_event, fwd_event;
            wire [2:0]   status_event;

            mag_ad_regs #(.L2_BITS (L2_BITS)) u_regs (
                .clk          (clk),
                .rst_n        (rst_n),
                .req_valid    (r_valid && is_ctrl),
                .req_flit     (r),
                .reply_valid  (reply_valid),
                .reply_ready  (reply_ready),
                .reply_flit   (reply),
                .base         (base),
                .enable       (enable),
                .local_event  (local_event),
                .fwd_event    (fwd_event),
                .status_event (status_event)
            );

            // ---------------------------------------------------- endpoint's head flit
            localparam [1:0] NONE = 2'd0, KEEP = 2'd1, DROP = 2'd2, PASSED = 2'd3;

            wire       far    = e[`KT_FLIT_RSVD_FLAG];
            wire       is_rd  = e_valid && e[`KT_FLIT_TYPE] == `KT_TYPE_MEM_RD_REQ && !far;
            wire       is_wr  = e_valid && e[`KT_FLIT_TYPE] == `KT_TYPE_MEM_WR_REQ;
            wire       is_wd  = e_valid && e[`KT_FLIT_TYPE] == `KT_TYPE_MEM_WR_DATA && !far;
            wire       e_last = e[`KT_FLIT_LAST];
            wire [10:0] lines;
            wire [2:0]  ew;
            wire        strm, hit, multicast, straddle;
            wire [3:0]  code;

            mag_ad_window #(.L2_BITS (L2_BITS)) u_window (
                .base      (base),
                .enable    (enable),
                .is_read   (is_rd),
                .txn       (e[`KT_FLIT_TXN]),
                .head      (e[255:158]),
                .lines     (lines),
                .ew        (ew),
                .strm      (strm),
                .mine      (hit),
                .multicast (multicast),
                .straddle  (straddle),
                .code      (code)
            );

            // ---------------------------------------------------- open write
            reg  [1:0]    open_q;           // what happens to the data of the open write
            reg  [7:0]    left_q;           // data flits after the next one
            reg  [3:0]    code_q;
            reg  [AW-1:0] line_q;
            reg  [23:0]   who_q;            // its {txn, writer, port}
            wire          list_room, run_ready;
            wire          wr_hit  = is_wr && !far && hit;
            wire          own     = open_q == KEEP || open_q == DROP;
            wire          cut     = is_wr && own;                          // closes the open write first
            wire          cut_far = wr_hit && open_q == PASSED;            // the agent cannot see this descriptor
            wire          passing = to_rt_room && !reply_valid;
            wire          wd_own  = is_wd && own;
            wire          wd_end  = left_q == 8'd0;
            wire          misfit  = e_last != wd_end;
            wire          close   = cut || (wd_own && (e_last || wd_end));
            wire          start_own = wr_hit && open_q == NONE && list_room;
            wire          start_far = is_wr && !wr_hit && !own && list_room && passing;
            wire          run       = is_rd && hit;
            wire          pass      = e_valid && !is_wr && !wd_own && !run;

            assign e_take = start_own || start_far || wd_own || (run && run_ready) || (pass && passing);

            always @(posedge clk) begin
                if (!rst_n) open_q <= NONE;
                else if (start_own) open_q <= code == `KT_M_NONE ? KEEP : DROP;
                else if (start_far) open_q <= PASSED;
                else if (close || (cut_far && passing)) open_q <= NONE;
                else if (is_wd && open_q == PASSED && passing && (e_last || wd_end)) open_q <= NONE;
                if (start_own || start_far) begin
                    left_q <= e[215:208];
                    code_q <= code;
                    line_q <= e[221 +: AW];
                    who_q  <= {e[`KT_FLIT_TXN], e[279:272], e[287:280]};
                end else if (is_wd && e_take) begin
                    left_q <= left_q - 8'd1;
                    line_q <= line_q + {{(AW-1){1'b0}}, 1'b1};
                end
            end

            // The flit that ends a forwarded write at the agent with a framing error.
            wire [287:0] ending = {who_q[7:0], who_q[15:8], `KT_TYPE_MEM_WR_DATA, who_q[23:16], !wd_end, 3'd0,
                                   256'd0};

            assign reply_ready = to_rt_room;
            assign to_rt_valid = reply_valid || start_far || cut_far || pass;
            assign to_rt       = reply_valid ? reply : cut_far ? ending : e;

            assign fwd_event       = pass && passing && is_rd && multicast;
            assign status_event[0] = (start_own || (run && run_ready)) && straddle;
            assign status_event[1] = fwd_event;
            assign status_event[2] = (close && (cut || misfit)) || (cut_far && passing);

            // ---------------------------------------------------- store
            wire         resp_valid, resp_ready;
            wire [287:0] resp;

            mag_ad_store #(.DEPTH (DEPTH)) u_store (
                .clk       (clk),
                .rst_n     (rst_n),
                .wr_en     (wd_own && open_q == KEEP),
                .wr_line   (line_q),
                .wr_data   (e[`KT_FLIT_PAYLOAD]),
                .run_valid (run),
                .run_ready (run_ready),
                .run_line  (e[221 +: AW]),
                .run_lines (lines),
                .run_ew    (ew),
                .run_strm  (strm),
                .run_err   (code != `KT_M_NONE),
                .run_txn   (e[`KT_FLIT_TXN]),
                .run_route ({e[279:272], e[287:280]}),
                .out_valid (resp_valid),
                .out_ready (resp_ready),
                .out_flit  (resp)
            );

            // ---------------------------------------------------- order of acknowledgements
            // A forwarded write enters with its descriptor, a local one when it is closed;
            // no other descriptor comes between, so the list is in descriptor order.
            wire        ord_valid, ord_take, ord_far;
            wire [3:0]  ord_code;
            wire [23:0] ord_who;
            wire [OW:0] ord_level;
            wire [3:0]  end_code = code_q != `KT_M_NONE ? code_q : (cut || misfit) ? `KT_M_FRAME : `KT_M_NONE;

            fifo_sync #(
                .WIDTH (29),
                .DEPTH (`KT_MEM_ADAPTER_ORDER)
            ) u_order (
                .clk       (clk),
                .rst_n     (rst_n),
                .in_valid  (close || start_far),
                .in_ready  (list_room),
                .in_data   (close ? {1'b0, end_code, who_q} : {1'b1, 28'd0}),
                .out_valid (ord_valid),
                .out_ready (ord_take),
                .out_data  ({ord_far, ord_code, ord_who}),
                .level     (ord_level)
            );

            wire         is_ack    = r_valid && r[`KT_FLIT_TYPE] == `KT_TYPE_MEM_WR_ACK;
            wire         ack_local = ord_valid && !ord_far;
            wire         r_pass    = r_valid && !is_ctrl && !(is_ack && ack_local);
            wire [287:0] ack       = {ord_who[15:8], ord_who[7:0], `KT_TYPE_MEM_WR_ACK, ord_who[23:16], 1'b1, 3'd0,
                                      248'd0, ord_code, 3'd0, ord_code != `KT_M_NONE};
            wire         quiet     = !ack_local && !resp_valid;

            assign resp_ready  = to_ep_room && !ack_local;
            assign ord_take    = to_ep_room && (ack_local || (is_ack && quiet));
            assign r_take      = is_ctrl || (r_pass && quiet && to_ep_room);
            assign to_ep_valid = ack_local || resp_valid || r_pass;
            assign to_ep       = ack_local ? ack : resp_valid ? resp : r;
            assign local_event = to_ep_room && !quiet;

            wire unused = &{1'b0, ord_level};
        end
    endgenerate

endmodule

`default_nettype wire
