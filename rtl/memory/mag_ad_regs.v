// SPDX-License-Identifier: Apache-2.0
// mag_ad_regs: control registers of an L2 adapter: CAPS, BASE, ENABLE, COUNT, STATUS.
//
// Requests   a queue of KT_MEM_ADAPTER_QUEUE; one that finds it full is discarded and
//            marked in STATUS. Each leaves the queue with its reply, in order; a write
//            takes effect then.
// Latency    2 cycles from a request to its reply.
// Parameters L2_BITS 14..32 (bits of an offset in the window).
// Spec       docs/spec/memory.md 11.2
`default_nettype none
`include "ktpu_defs.vh"

module mag_ad_regs #(
    parameter L2_BITS = 18
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         req_valid,
    input  wire [287:0] req_flit,
    output wire         reply_valid,
    input  wire         reply_ready,
    output wire [287:0] reply_flit,

    output wire [39:0]  base,
    output wire         enable,

    input  wire         local_event,    // a response was produced here
    input  wire         fwd_event,      // an in-window request was forwarded
    input  wire [2:0]   status_event    // STATUS bits 0..2
);

    localparam [39:0] BASE_MASK = {40{1'b1}} << L2_BITS;
    localparam [63:0] CAPS_VALUE = {16'd2, 8'd1, L2_BITS[7:0], 32'd1 << (L2_BITS - 5)};
    localparam [2:0]  CAPS = 3'd0, BASE = 3'd1, ENABLE = 3'd2, COUNT = 3'd3, STATUS = 3'd4;

    generate
        if (L2_BITS < 14 || L2_BITS > 32) begin : g_illegal
            mag_ad_regs_illegal_parameters u_stop ();
        end
    endgenerate

    // ---------------------------------------------------------------- queue
    // {destination, source, txn, op is a write, index[2:0], value[39:0]}
    wire        room, take;
    wire [7:0]  q_dst, q_src, q_txn;
    wire        q_write;
    wire [2:0]  q_index;
    wire [39:0] q_value;
    wire [$clog2(`KT_MEM_ADAPTER_QUEUE):0] level;

    fifo_sync #(
        .WIDTH (68),
        .DEPTH (`KT_MEM_ADAPTER_QUEUE)
    ) u_queue (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (req_valid),
        .in_ready  (room),
        .in_data   ({req_flit[287:280], req_flit[279:272], req_flit[`KT_FLIT_TXN],
                     req_flit[255:248] == 8'd1, req_flit[242:240], req_flit[215:176]}),
        .out_valid (reply_valid),
        .out_ready (reply_ready),
        .out_data  ({q_dst, q_src, q_txn, q_write, q_index, q_value}),
        .level     (level)
    );
    assign take = reply_valid && reply_ready;

    // ---------------------------------------------------------------- registers
    reg  [39:0] base_q;
    reg         enable_q;
    reg  [31:0] local_q, fwd_q;
    reg  [3:0]  status_q;
    wire        write = take && q_write;
    wire [39:0] base_d   = (q_write && q_index == BASE) ? q_value & BASE_MASK : base_q;
    wire        enable_d = (q_write && q_index == ENABLE) ? q_value[0] : enable_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            base_q   <= 40'h00_F000_0000 & BASE_MASK;
            enable_q <= 1'b0;
            local_q  <= 32'd0;
            fwd_q    <= 32'd0;
            status_q <= 4'd0;
        end else begin
            if (write) begin
                base_q   <= base_d;
                enable_q <= enable_d;
            end
            if (local_event) local_q <= local_q + 32'd1;
            if (fwd_event) fwd_q <= fwd_q + 32'd1;
            status_q <= ((write && q_index == STATUS) ? 4'd0 : status_q) | {req_valid && !room, status_event};
        end
    end
    assign base   = base_q;
    assign enable = enable_q;

    // ---------------------------------------------------------------- reply
    reg  [63:0] value;
    always @* begin
        case (q_index)
            CAPS:    value = CAPS_VALUE;
            BASE:    value = {24'd0, base_d};
            ENABLE:  value = {63'd0, enable_d};
            COUNT:   value = {local_q, fwd_q};
            STATUS:  value = {60'd0, status_q};
            default: value = 64'd0;
        endcase
    end
    wire refused = q_write && q_index != BASE && q_index != ENABLE && q_index != STATUS;

    assign reply_flit = {q_src, q_dst, `KT_TYPE_CU_CTRL, q_txn, 1'b1, 3'd0,
                         refused ? 8'h03 : 8'h02, 5'b11100, q_index, value, 176'd0};

    wire unused = &{1'b0, level, req_flit[271:268], req_flit[259:256], req_flit[247:243], req_flit[239:216], req_flit[175:0]};

endmodule

`default_nettype wire
