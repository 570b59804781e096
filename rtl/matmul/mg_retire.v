// SPDX-License-Identifier: Apache-2.0
// mg_retire: the end of an instruction: result, own fault or pending
// asynchronous event, fence mark (docs/spec/cluster.md 2.2, 9.1).
//
// One record (opcode, last, decode fault) is open at a time; it retires when its
// own condition holds and, with `last`, when no emitted granule is left inside.
// Latency    condition -> exec_done one cycle.
//
// The first asynchronous code since the last report is kept; the next
// retirement without a fault of its own reports it once.
`default_nettype none
`include "ktpu_defs.vh"

module mg_retire (
    input  wire        clk,
    input  wire        rst_n,

    // record of the instruction in execution
    input  wire        open,
    input  wire [3:0]  op,
    input  wire        fuse,
    input  wire        last,
    input  wire [7:0]  decode_code,

    // conditions
    input  wire        fill_done,
    input  wire [7:0]  fill_code,
    input  wire        gemm_first,
    input  wire        drain_active,
    input  wire        burst_idle,

    // asynchronous events, oldest class first in a cycle
    input  wire        async_valid,
    input  wire [7:0]  async_code,

    output wire        retire,          // one cycle before exec_done
    output reg         exec_done,
    output reg         exec_fault,
    output reg  [31:0] exec_result,
    output reg         exec_cover,

    output reg  [15:0] fills_q,
    output reg  [15:0] gemms_q,
    output reg  [15:0] drains_q
);

    reg        seen_q;                  // FILL complete or GEMM started
    reg [7:0]  code_q;
    reg [15:0] count_q;
    reg        pend_q;
    reg [7:0]  pend_code_q;

    wire refused  = decode_code != 8'd0;
    wire is_fill  = op == `KT_MG_OP_FILL;
    wire is_gemm  = op == `KT_MG_OP_GEMM;
    wire is_drain = op == `KT_MG_OP_DRAIN;

    reg  own_done;
    always @* begin
        if (refused)      own_done = 1'b1;
        else if (is_fill) own_done = seen_q || fill_done;
        else if (is_gemm) own_done = seen_q || gemm_first;
        else if (fuse)    own_done = burst_idle;
        else              own_done = !drain_active && burst_idle;
    end

    assign retire = open && own_done && (!last || burst_idle);

    wire [7:0]  fill_end = seen_q ? code_q : fill_code;
    wire [7:0]  own_code = refused ? decode_code : is_fill ? fill_end : 8'd0;
    wire        own_fault = own_code != 8'd0;
    wire        fault = own_fault || pend_q;
    wire [15:0] count = count_q + {15'd0, !own_fault};

    always @(posedge clk) begin
        if (!rst_n) begin
            exec_done  <= 1'b0;
            exec_fault <= 1'b0;
            exec_cover <= 1'b0;
            seen_q     <= 1'b0;
            count_q    <= 16'd0;
            pend_q     <= 1'b0;
            fills_q    <= 16'd0;
            gemms_q    <= 16'd0;
            drains_q   <= 16'd0;
        end else begin
            exec_done <= retire;
            if (retire) begin
                exec_fault <= fault;
                exec_cover <= last || (is_drain && !refused);
                count_q    <= count;
                if (is_fill)  fills_q  <= fills_q + 16'd1;
                if (is_gemm)  gemms_q  <= gemms_q + 16'd1;
                if (is_drain) drains_q <= drains_q + 16'd1;
            end

            if (retire) seen_q <= 1'b0;
            else if (open && ((is_fill && fill_done) || (is_gemm && gemm_first))) seen_q <= 1'b1;

            // An event in the cycle of a report is the first of the next ones.
            if (async_valid) pend_q <= 1'b1;
            else if (retire && !own_fault) pend_q <= 1'b0;
        end

        if (fill_done) code_q <= fill_code;
        if (async_valid && (!pend_q || (retire && !own_fault))) pend_code_q <= async_code;
        if (retire) exec_result <= fault ? {`KT_MG_CU_TYPE, 4'd0, op, own_fault ? own_code : pend_code_q}
                                         : {16'd0, count};
    end

endmodule

`default_nettype wire
