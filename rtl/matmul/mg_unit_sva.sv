// SPDX-License-Identifier: Apache-2.0
// mg_unit_sva: properties of the matmul unit, bound to mg_unit in simulation
// (docs/spec/cluster.md 4.3, 4.5, 5.1, 12; docs/spec/fabric.md 5.7).
//
// A violation ends the run with its name.
`default_nettype none
`include "ktpu_defs.vh"

module mg_unit_sva #(
    parameter int TILES = 512,
    parameter int REUSE = 5,
    parameter int TW    = $clog2(TILES)
) (
    input wire          clk,
    input wire          rst_n,
    input wire          inst_valid,
    input wire          inst_ready,
    input wire          exec_done,
    input wire          send_valid,
    input wire          send_ready,
    input wire [287:0]  send_flit,
    input wire          iss_valid,
    input wire          iss_bank,
    input wire [TW-1:0] iss_addr,
    input wire          x_fire,
    input wire          x_bank,
    input wire [TW-1:0] x_addr,
    input wire          emit_valid,
    input wire [TW-1:0] emit_addr,
    input wire          send_out_valid,
    input wire          ctx_open,
    input wire          ctx_free,
    input wire          run,
    input wire          rd_en,
    input wire          push,
    input wire          push_ready,
    input wire          peer_open,
    input wire          start,
    input wire          c_pending
);

    int unsigned        in_flight;
    int unsigned        stall;
    logic               held;
    logic               reset_seen;
    logic [287:0]       held_flit;
    logic               send_before;
    logic [TW-1:0]      next_emit;
    logic               seen [REUSE-1];
    logic [TW:0]        at [REUSE-1];
    logic               x_seen [REUSE-1];
    logic [TW:0]        x_at [REUSE-1];

    always @(posedge clk) begin
        reset_seen <= !rst_n;
        if (!rst_n) begin
            in_flight   <= 0;
            stall       <= 0;
            held        <= 0;
            send_before <= 0;
            next_emit   <= 0;
            for (int i = 0; i < REUSE - 1; i++) begin
                seen[i]   <= 0;
                x_seen[i] <= 0;
            end
            if (reset_seen && (inst_ready || send_valid || exec_done)) $error("U10: activity in reset");
        end else begin
            // U2: one exec_done per accepted instruction
            if (exec_done && in_flight == 0 && !(inst_valid && inst_ready)) $error("U2: exec_done without instruction");
            in_flight <= in_flight + 32'(inst_valid && inst_ready) - 32'(exec_done);

            // U6: an offered flit stays
            if (held && (!send_valid || send_flit != held_flit)) $error("U6: an offered flit changed");
            held      <= send_valid && !send_ready;
            held_flit <= send_flit;

            // 4.3: commands of the same port on one sub-tile at least REUSE apart
            for (int i = 0; i < REUSE - 1; i++) begin
                if (iss_valid && seen[i] && at[i] == {iss_bank, iss_addr})
                    $error("4.3: two issues on sub-tile %0d within %0d cycles", iss_addr, i + 1);
                if (x_fire && x_seen[i] && x_at[i] == {x_bank, x_addr})
                    $error("4.3: two x commands on sub-tile %0d within %0d cycles", x_addr, i + 1);
            end
            seen[0]   <= iss_valid;
            at[0]     <= {iss_bank, iss_addr};
            x_seen[0] <= x_fire;
            x_at[0]   <= {x_bank, x_addr};
            for (int i = 1; i < REUSE - 1; i++) begin
                seen[i]   <= seen[i-1];
                at[i]     <= at[i-1];
                x_seen[i] <= x_seen[i-1];
                x_at[i]   <= x_at[i-1];
            end

            // 5.1: results come one at a time, in index order, into a queue with room
            if (emit_valid && send_out_valid) $error("5.1: EMIT and SEND results in one cycle");
            if (send_out_valid && send_before) $error("5.1: two SEND results in a row");
            send_before <= send_out_valid;
            if (push && !push_ready) $error("1.3: drain queue overflow");
            if (emit_valid && emit_addr != next_emit) $error("5.1: sub-tile %0d out of order", emit_addr);
            if (ctx_open) next_emit <= 0;
            else if (emit_valid) next_emit <= next_emit + 1;
            if (ctx_open && !ctx_free) $error("5.3: a context opened over another");

            // 4.5: a sweep never waits longer than the reuse distance
            if (run && !rd_en) stall <= stall + 1;
            else stall <= 0;
            if (stall >= REUSE) $error("4.5: a started sweep waits");
            if (start && (peer_open || c_pending)) $error("8: a sweep started over a stream or an entry");
        end
    end

endmodule

bind mg_unit mg_unit_sva #(.TILES(TILES), .REUSE(REUSE)) u_sva (
    .push       (u_burst.push),
    .push_ready (u_burst.q_ready),
    .emit_addr  (emit_addr_unused),
    .ctx_open   (drain_start || (start && armed_emit)),
    .x_fire     (x_valid && x_ready),
    .*
);

`default_nettype wire
