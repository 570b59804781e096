// SPDX-License-Identifier: Apache-2.0
// cu_send: order of a unit's outbound flits: DATA_RECEIVED signals, then read
// requests, then writes and bursts (docs/spec/cluster.md 5.5, docs/spec/vector.md
// 9.1, 10).
//
// Combinational. A flit that was offered and not taken stays offered: the choice
// is kept until its transfer. With `open` = 1 a memory write has begun: its data
// flits come without waiting for anything else.
`default_nettype none

module cu_send (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         sig_valid,
    output wire         sig_ready,
    input  wire [287:0] sig_flit,

    input  wire         req_valid,
    output wire         req_ready,
    input  wire [287:0] req_flit,

    input  wire         drain_valid,
    output wire         drain_ready,
    input  wire [287:0] drain_flit,
    input  wire         open,

    output wire         send_valid,
    input  wire         send_ready,
    output wire [287:0] send_flit
);

    reg       lock_q;
    reg [1:0] choice_q;                 // 0 signal, 1 request, 2 drain

    wire [1:0] pick   = open ? 2'd2 : sig_valid ? 2'd0 : req_valid ? 2'd1 : 2'd2;
    wire [1:0] choice = lock_q ? choice_q : pick;

    assign send_valid  = (choice == 2'd0) ? sig_valid : (choice == 2'd1) ? req_valid : drain_valid;
    assign send_flit   = (choice == 2'd0) ? sig_flit : (choice == 2'd1) ? req_flit : drain_flit;
    assign sig_ready   = send_ready && (choice == 2'd0);
    assign req_ready   = send_ready && (choice == 2'd1);
    assign drain_ready = send_ready && (choice == 2'd2);

    always @(posedge clk) begin
        if (!rst_n) lock_q <= 1'b0;
        else lock_q <= send_valid && !send_ready;
        if (!lock_q) choice_q <= pick;
    end

endmodule

`default_nettype wire
