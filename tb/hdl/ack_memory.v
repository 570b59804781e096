// SPDX-License-Identifier: Apache-2.0
// ack_memory: answers every MEM_WR_REQ it sees with one MEM_WR_ACK, in order.
//
// The unit stand-in says in payload bits [7:0] of its request whether the write
// fails and with which code. Each answer waits dly_min cycles plus a random
// number below dly_span, and while hold = 1.
`default_nettype none

`include "ktpu_defs.vh"

module ack_memory #(
    parameter POS_X = 0,
    parameter POS_Y = 1
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire [31:0]  seed,
    input  wire         hold,
    input  wire [15:0]  dly_min,
    input  wire [15:0]  dly_span,
    input  wire         see_valid,
    input  wire [287:0] see_data,
    output wire         out_valid,
    output wire [287:0] out_data,
    input  wire         out_ready
);
    reg [31:0]  due  [0:65535];
    reg [23:0]  what [0:65535];        // {node, txn, payload[7:0]}
    reg [15:0]  head_q, tail_q;
    reg [31:0]  now_q, x, y;
    reg [287:0] flit;

    wire request = see_valid && see_data[`KT_FLIT_TYPE] == `KT_TYPE_MEM_WR_REQ;

    always @(posedge clk) begin
        if (!rst_n) begin
            head_q <= 16'd0;
            tail_q <= 16'd0;
            now_q  <= 32'd0;
            x      <= ~seed | 32'd1;
        end else begin
            now_q <= now_q + 32'd1;
            y = x ^ (x << 13);
            y = y ^ (y >> 17);
            y = y ^ (y << 5);
            x <= y;
            if (request) begin
                due[tail_q]  <= now_q + {16'd0, dly_min}
                                + ((dly_span == 16'd0) ? 32'd0 : (y >> 8) % {16'd0, dly_span});
                what[tail_q] <= {see_data[`KT_FLIT_SRC_X], see_data[`KT_FLIT_SRC_Y],
                                 see_data[`KT_FLIT_TXN], see_data[7:0]};
                tail_q <= tail_q + 16'd1;
            end
            if (out_valid && out_ready) head_q <= head_q + 16'd1;
        end
    end

    wire [23:0] head_what = what[head_q];
    wire [31:0] head_due  = due[head_q];

    always @* begin
        flit = 288'd0;
        {flit[`KT_FLIT_DST_X], flit[`KT_FLIT_DST_Y], flit[`KT_FLIT_TXN]} = head_what[23:8];
        flit[`KT_FLIT_SRC_X] = POS_X[3:0];
        flit[`KT_FLIT_SRC_Y] = POS_Y[3:0];
        flit[`KT_FLIT_TYPE]  = `KT_TYPE_MEM_WR_ACK;
        flit[`KT_FLIT_LAST]  = 1'b1;
        flit[7:0]            = head_what[7:0];
    end

    assign out_valid = head_q != tail_q && now_q >= head_due && !hold;
    assign out_data  = flit;
endmodule

`default_nettype wire
