// SPDX-License-Identifier: Apache-2.0
// mg_drain: explicit DRAIN: one EMIT or SEND per sub-tile, ascending, through
// the datapath's x_ port (docs/spec/cluster.md 5.1).
//
// It starts when `start_ok` (all tile writes done, no peer stream, the context
// of the burst engine free) and then issues one EMIT a cycle, or one SEND every
// second cycle since a SEND yields two granules; `room` says that the drain
// queue holds two more. Latency go -> first command 2 when nothing is waited for.
//
// `read_all`/`read_t`: sub-tiles below read_t (or all) have been read, which is
// what an ADD_PEER has to wait for.
`default_nettype none

module mg_drain #(
    parameter TILES = 512,
    parameter TW    = $clog2(TILES)
) (
    input  wire          clk,
    input  wire          rst_n,

    input  wire          go,
    input  wire [TW:0]   go_n,          // sub-tiles, 1..TILES
    input  wire          go_send,
    input  wire          go_bank,

    input  wire          start_ok,
    output wire          start,
    output wire          active,        // accepted and not all commands issued
    input  wire          room,

    output wire          x_valid,
    output wire          x_send,
    output wire          x_bank,
    output wire [TW-1:0] x_addr,
    input  wire          x_ready,

    output wire          read_all,
    output wire [TW:0]   read_t
);

    localparam [TW:0] ONE = {{TW{1'b0}}, 1'b1};

    reg          wait_q, run_q, send_q, bank_q, gap_q;
    reg [TW:0]   n_q, t_q;

    wire fire = x_valid && x_ready;
    wire ends = fire && (t_q + ONE == n_q);

    assign start    = wait_q && start_ok;
    assign active   = wait_q || run_q;
    assign x_valid  = run_q && room && !gap_q;
    assign x_send   = send_q;
    assign x_bank   = bank_q;
    assign x_addr   = t_q[TW-1:0];
    assign read_all = !run_q;
    assign read_t   = t_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            wait_q <= 1'b0;
            run_q  <= 1'b0;
            gap_q  <= 1'b0;
        end else begin
            if (go) wait_q <= 1'b1;
            else if (start) wait_q <= 1'b0;
            if (start) run_q <= 1'b1;
            else if (ends) run_q <= 1'b0;
            gap_q <= fire && send_q;
        end
        if (go) begin
            n_q    <= go_n;
            send_q <= go_send;
            bank_q <= go_bank;
            t_q    <= {(TW+1){1'b0}};
        end else if (fire) begin
            t_q <= t_q + ONE;
        end
    end

endmodule

`default_nettype wire
