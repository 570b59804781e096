// SPDX-License-Identifier: Apache-2.0
// mg_events: asynchronous codes and the sticky error inputs of the shell
// (docs/spec/cluster.md 8.2, 9.1).
//
// A rejected burst is reported when it ends, a burst the peer watchdog rejected
// when the watchdog ran out, since its end may never come. At most one event
// falls in a cycle, except a watchdog beside a response: the watchdog first, the
// response in the next cycle.
`default_nettype none
`include "ktpu_defs.vh"

module mg_events (
    input  wire       clk,
    input  wire       rst_n,

    input  wire       desc_valid,
    input  wire [2:0] desc_reason,
    input  wire       burst_end,
    input  wire [1:0] cud_err,          // [0] third sender, [1] a rejected burst ends
    input  wire       peer_abort,
    input  wire       resp,
    input  wire       split,
    input  wire       clamp,
    input  wire       fill_wdog,

    output reg        async_valid,
    output reg  [7:0] async_code,
    output wire [7:0] unit_err
);

    reg [2:0] reason_q;                 // the unit's own answer for the open burst
    reg       aborted_q, resp_q;

    wire open_rejected  = cud_err[1] && burst_end;
    wire other_rejected = cud_err[1] && !burst_end;

    always @* begin
        async_valid = 1'b0;
        async_code  = `KT_MG_A_RESP;
        if (peer_abort) begin
            async_valid = 1'b1;
            async_code  = `KT_MG_A_NOTREADY;
        end else if (open_rejected && (aborted_q == 1'b0)) begin
            async_valid = 1'b1;
            case (reason_q)
                `KT_REJ_UNKNOWN_BUF: async_code = `KT_MG_A_BUF;
                `KT_REJ_RANGE:       async_code = `KT_MG_A_RANGE;
                `KT_REJ_ODD_START:   async_code = `KT_MG_A_ODD;
                `KT_REJ_NOT_READY:   async_code = `KT_MG_A_NOTREADY;
                default:             async_code = `KT_MG_A_LEN;
            endcase
        end else if (other_rejected) begin
            async_valid = 1'b1;
            async_code  = `KT_MG_A_BUSY;
        end else if (split) begin
            async_valid = 1'b1;
            async_code  = `KT_MG_A_SPLIT;
        end else if (resp || resp_q) begin
            async_valid = 1'b1;
        end
    end

    always @(posedge clk) begin
        if (!rst_n) begin
            aborted_q <= 1'b0;
            resp_q    <= 1'b0;
        end else begin
            if (peer_abort) aborted_q <= 1'b1;
            else if (burst_end || desc_valid) aborted_q <= 1'b0;
            resp_q <= resp && peer_abort;
        end
        if (desc_valid) reason_q <= desc_reason;
    end

    assign unit_err = {1'b0, split, fill_wdog, peer_abort, clamp, resp, cud_err};

endmodule

`default_nettype wire
