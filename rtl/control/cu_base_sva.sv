// SPDX-License-Identifier: Apache-2.0
// cu_base_sva: properties of the shell, bound to every cu_base in simulation.
//
// The checker keeps its own account of writes, acknowledgements and owners with
// unbounded counters, so a wrap of the 16-bit ones shows.
// docs/spec/fabric.md 5.2 to 5.7 and 5.9.
`default_nettype none
`include "ktpu_defs.vh"

module cu_base_sva #(
    parameter int INST_DEPTH   = 32,
    parameter int RECV_DEPTH   = 16,
    parameter int MAX_INFLIGHT = 1,
    parameter int ACK_FENCE    = 1
) (
    input wire         clk,
    input wire         rst_n,
    input wire         noc_in_busy,
    input wire         noc_out_valid,
    input wire         noc_out_busy,
    input wire [287:0] noc_out_data,
    input wire         to_inst,
    input wire         to_fence,
    input wire [15:0]  inst_level,
    input wire [15:0]  recv_level,
    input wire [4:0]   queued,
    input wire [4:0]   flying,
    input wire         inst_valid,
    input wire         inst_ready,
    input wire [287:0] inst_flit,
    input wire         exec_done,
    input wire         exec_cover,
    input wire         retire,
    input wire         sig_push,
    input wire         sig_take,
    input wire         rsp_valid,
    input wire         send_valid,
    input wire         send_ready,
    input wire [287:0] send_flit,
    input wire         recv_valid,
    input wire         recv_ready,
    input wire [287:0] recv_flit
);
    longint          issued, acked, covered;
    longint          owned [$];            // writes that must be acknowledged, per queued signal
    longint unsigned got, given;           // instruction flits in, signals out
    bit              in_reset, late;       // late: not the first cycle after reset

    wire wr_issue = send_valid && send_ready && send_flit[`KT_FLIT_TYPE] == `KT_TYPE_MEM_WR_REQ;

    always @(posedge clk) begin
        in_reset <= !rst_n;
        late     <= rst_n && !in_reset;
        if (!rst_n) begin
            issued  = 0;
            acked   = 0;
            covered = 0;
            got     <= 0;
            given   <= 0;
            owned.delete();
            assert (!exec_done && !(inst_valid && inst_ready) && !send_valid)
                else $error("%m U10: the unit acts in reset");
        end else begin
            got   <= got + 64'(to_inst);
            given <= given + 64'(sig_take);

            assert (32'(queued) == owned.size()) else $error("%m level of the signal queue");

            // no signal escapes before it is eligible
            if (sig_take) begin
                assert (owned.size() > 0) else $error("%m a signal left an empty queue");
                if (owned.size() > 0) begin
                    assert (ACK_FENCE == 0 || owned[0] <= acked)
                        else $error("%m a signal left with %0d of %0d writes acknowledged", acked, owned[0]);
                    void'(owned.pop_front());
                end
            end

            // exactly one signal per instruction, none lost on the way
            assert (got == given + 64'(inst_level) + 64'(flying) + 64'(queued))
                else $error("%m %0d instructions, %0d signals, %0d + %0d + %0d inside", got, given, inst_level,
                            flying, queued);

            // the queue never overflows, a retirement never waits
            assert (queued + flying <= 16) else $error("%m %0d signals and %0d in flight", queued, flying);
            assert (!sig_push || queued < 16) else $error("%m retirement into a full queue");
            assert (32'(flying) <= MAX_INFLIGHT) else $error("%m %0d instructions in flight", flying);

            // busy is a function of occupancy only
            if (late)
                assert (noc_in_busy == (32'(inst_level) == INST_DEPTH || 32'(recv_level) == RECV_DEPTH))
                    else $error("%m noc_in_busy %b at %0d, %0d", noc_in_busy, inst_level, recv_level);

            // a signal goes first, a queued request before the unit
            assert (!(send_valid && send_ready && (sig_take || rsp_valid))) else $error("%m priority");

            if (wr_issue) issued++;
            if (retire && exec_cover) covered = issued;
            if (sig_push) owned.push_back(covered);
            if (to_fence && acked < issued) acked++;
        end
    end

    // what is offered to the unit, and by the unit, stays
    assert property (@(posedge clk) disable iff (!rst_n)
        inst_valid && !inst_ready |=> inst_valid && $stable(inst_flit));
    assert property (@(posedge clk) disable iff (!rst_n)
        recv_valid && !recv_ready |=> recv_valid && $stable(recv_flit));
    assert property (@(posedge clk) disable iff (!rst_n)
        send_valid && !send_ready |=> send_valid && $stable(send_flit));
    assert property (@(posedge clk) disable iff (!rst_n)
        noc_out_valid && noc_out_busy |=> noc_out_valid && $stable(noc_out_data));
    // one cycle from send_* to the link
    assert property (@(posedge clk) disable iff (!rst_n)
        send_valid && send_ready |=> noc_out_valid && noc_out_data == $past(send_flit));
endmodule

bind cu_base cu_base_sva #(
    .INST_DEPTH   (INST_DEPTH),
    .RECV_DEPTH   (RECV_DEPTH),
    .MAX_INFLIGHT (MAX_INFLIGHT),
    .ACK_FENCE    (ACK_FENCE)
) u_sva (
    .clk           (clk),
    .rst_n         (rst_n),
    .noc_in_busy   (noc_in_busy),
    .noc_out_valid (noc_out_valid),
    .noc_out_busy  (noc_out_busy),
    .noc_out_data  (noc_out_data),
    .to_inst       (to_inst),
    .to_fence      (to_fence),
    .inst_level    (16'(inst_level)),
    .recv_level    (16'(recv_level_unused)),
    .queued        (queued),
    .flying        (flying),
    .inst_valid    (inst_valid),
    .inst_ready    (inst_ready),
    .inst_flit     (inst_flit),
    .exec_done     (exec_done),
    .exec_cover    (exec_cover),
    .retire        (retire),
    .sig_push      (sig_push),
    .sig_take      (sig_take),
    .rsp_valid     (rsp_valid),
    .send_valid    (send_valid),
    .send_ready    (send_ready),
    .send_flit     (send_flit),
    .recv_valid    (recv_valid),
    .recv_ready    (recv_ready),
    .recv_flit     (recv_flit)
);

`default_nettype wire
