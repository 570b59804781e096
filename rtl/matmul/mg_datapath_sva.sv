// SPDX-License-Identifier: Apache-2.0
// Simulation checker of mg_datapath, bound into every instance. Written from docs/spec/cluster.md 4.2
// and 4.3, from the command stream alone: it keeps the last use of every sub-tile instead of the pipeline
// stages the interlock looks at.
`default_nettype none

module mg_datapath_sva #(
    parameter TILES      = 512,
    parameter TILE_LAT   = 2,
    parameter TILE_BANKS = 2
) (
    input wire                     clk,
    input wire                     rst_n,
    input wire                     iss_valid,
    input wire                     fifo_in_ready,
    input wire                     fifo_out_valid,
    input wire                     sums_pre,
    input wire                     slot_valid,
    input wire                     slot_read,
    input wire                     slot_bank,
    input wire [$clog2(TILES)-1:0] slot_addr,
    input wire                     x_valid,
    input wire                     x_ready,
    input wire [1:0]               x_op,
    input wire                     x_bank,
    input wire [$clog2(TILES)-1:0] x_addr,
    input wire                     wr_valid,
    input wire                     emit_done,
    input wire                     x_emit,
    input wire                     emit_valid,
    input wire                     send_valid,
    input wire                     inflight,
    input wire                     arr_inflight,
    input wire                     arr_done
);
    localparam REUSE_MIN = TILE_LAT + 3;

    longint cycle_q = 0;
    longint last_use [2][TILES];

    wire x_taken = x_valid && x_ready;
    wire s_bank  = slot_bank && TILE_BANKS == 2;
    wire d_bank  = x_bank && TILE_BANKS == 2;

    initial for (int b = 0; b < 2; b++) for (int t = 0; t < TILES; t++) last_use[b][t] = -64;

    always @(posedge clk) begin
        cycle_q <= cycle_q + 1;
        if (rst_n) begin
            if (iss_valid && !fifo_in_ready) $fatal(1, "%m: command FIFO overflow, or an issue too early after reset");
            if (sums_pre && !fifo_out_valid) $fatal(1, "%m: sums without a command");
            if (x_valid && x_op == 2'd3) $fatal(1, "%m: x_op 3 is not a command");
            if (slot_valid && cycle_q - last_use[s_bank][slot_addr] < REUSE_MIN)
                $fatal(1, "%m: partial sum on sub-tile %0d,%0d %0d cycles after its last use",
                       s_bank, slot_addr, cycle_q - last_use[s_bank][slot_addr]);
            if (x_taken && cycle_q - last_use[d_bank][x_addr] < REUSE_MIN)
                $fatal(1, "%m: x command on sub-tile %0d,%0d %0d cycles after its last use",
                       d_bank, x_addr, cycle_q - last_use[d_bank][x_addr]);
            if (slot_valid && x_taken && s_bank == d_bank && slot_addr == x_addr)
                $fatal(1, "%m: two commands on one sub-tile in one cycle");
            if (slot_valid && x_taken && x_op == 2'd2) $fatal(1, "%m: ADD_PEER in a taken slot");
            if (slot_read && x_taken && s_bank == d_bank) $fatal(1, "%m: two reads of one bank in one cycle");
            if (emit_done && x_emit) $fatal(1, "%m: two emitted words in one cycle");
            if (!inflight && (wr_valid || emit_valid || send_valid)) $fatal(1, "%m: inflight fell too early");
            if (!arr_inflight && arr_done) $fatal(1, "%m: arr_inflight fell too early");
            if (slot_valid) last_use[s_bank][slot_addr] <= cycle_q;
            if (x_taken) last_use[d_bank][x_addr] <= cycle_q;
        end
    end
endmodule

bind mg_datapath mg_datapath_sva #(
    .TILES(TILES), .TILE_LAT(TILE_LAT), .TILE_BANKS(TILE_BANKS)
) u_sva (
    .clk(clk), .rst_n(rst_n), .iss_valid(iss_valid), .fifo_in_ready(fifo_in_ready),
    .fifo_out_valid(fifo_out_valid), .sums_pre(sums_pre), .slot_valid(v[SLOT]), .slot_read(slot_read),
    .slot_bank(slot_bank), .slot_addr(slot_addr), .x_valid(x_valid), .x_ready(x_ready), .x_op(x_op),
    .x_bank(x_bank), .x_addr(x_addr), .wr_valid(v[LAST]), .emit_done(emit_done), .x_emit(x_emit),
    .emit_valid(emit_valid), .send_valid(send_valid), .inflight(inflight), .arr_inflight(arr_inflight),
    .arr_done(arr_done)
);

`default_nettype wire
