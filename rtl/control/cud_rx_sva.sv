// SPDX-License-Identifier: Apache-2.0
// cud_rx_sva: properties of burst reception, bound to every cud_rx in simulation.
//
// Counts bursts and flits on its own: every burst that asked for it gets one
// signal, the open burst is fed by its own source only, granules ascend.
// docs/spec/fabric.md 1.7 and 5.8.
`default_nettype none
`include "ktpu_defs.vh"

module cud_rx_sva #(
    parameter int ACKQ_DEPTH = 16
) (
    input wire         clk,
    input wire         rst_n,
    input wire [287:0] in_flit,
    input wire         in_valid,
    input wire         in_ready,
    input wire         desc_valid,
    input wire [2:0]   desc_reason,
    input wire         wr_valid,
    input wire         wr_ready,
    input wire [15:0]  wr_granule,
    input wire         wr_last,
    input wire         sig_valid,
    input wire         sig_ready,
    input wire [287:0] sig_flit,
    input wire         abort_in,
    input wire         open,
    input wire         burst_end,
    input wire [1:0]   err,
    input wire [15:0]  ackq_level
);
    int unsigned begun, ended, asked, answered;
    int          left;                    // data flits the open burst still needs
    bit [7:0]    source;
    bit          accepted, wants;
    bit [15:0]   granule;

    wire       taken = in_valid && in_ready;
    wire [7:0] src   = {in_flit[`KT_FLIT_SRC_X], in_flit[`KT_FLIT_SRC_Y]};

    always @(posedge clk) begin
        if (!rst_n) begin
            begun    = 0;
            ended    = 0;
            asked    = 0;
            answered = 0;
            left     = 0;
            accepted = 0;
        end else begin
            assert (open == (left > 0)) else $error("%m open %b with %0d flits to come", open, left);
            assert (32'(ackq_level) <= ACKQ_DEPTH) else $error("%m %0d signals queued", ackq_level);
            assert (!desc_valid || in_ready) else $error("%m a descriptor was held");
            assert (!(in_valid && !in_ready) || wr_valid || 32'(ackq_level) == ACKQ_DEPTH)
                else $error("%m input held without a reason");

            if (wr_valid) begin
                assert (open && accepted && !abort_in && src == source)
                    else $error("%m a flit of (%0d, %0d) is stored", src[7:4], src[3:0]);
                assert (wr_granule == granule) else $error("%m granule %0d, expected %0d", wr_granule, granule);
                assert (wr_last == (left == 1)) else $error("%m wr_last %b, %0d to come", wr_last, left);
                assert (wr_ready == in_ready) else $error("%m a flit is stored and not taken, or the reverse");
            end
            assert (burst_end == (taken && open && src == source && left == 1)) else $error("%m burst_end");
            assert (!err[1] || !burst_end || !accepted || abort_in || in_flit[`KT_FLIT_LAST] == 1'b0)
                else $error("%m an accepted burst counts as rejected");

            if (open && abort_in) accepted = 0;
            if (taken && open && src == source) begin
                if (in_flit[`KT_FLIT_LAST] != (left == 1)) accepted = 0;
                left    = left - 1;
                granule = granule + 16'd1;
                if (left == 0) begin
                    ended = ended + 1;
                    if (wants) asked = asked + 1;
                end
            end
            if (desc_valid) begin
                begun    = begun + 1;
                source   = src;
                left     = 32'(in_flit[`KT_CU_DATA_LEN]) + 1;
                granule  = in_flit[`KT_CU_DATA_OFFSET];
                accepted = desc_reason == `KT_REJ_NONE;
                wants    = in_flit[`KT_CU_DATA_FLAG_SIGNAL];
            end
            if (sig_valid && sig_ready && sig_flit[242:240] != 3'(`KT_REJ_SECOND_SENDER))
                answered = answered + 1;
            assert (answered <= asked) else $error("%m %0d signals for %0d bursts", answered, asked);
            if (!sig_valid)
                assert (asked - answered <= 1) else $error("%m %0d signals for %0d bursts, none queued", answered, asked);
        end
    end

    assert property (@(posedge clk) disable iff (!rst_n)
        sig_valid && !sig_ready |=> sig_valid && $stable(sig_flit));
    // a granule stays offered, unless the burst is aborted
    assert property (@(posedge clk) disable iff (!rst_n)
        wr_valid && !wr_ready |=> wr_valid || abort_in);
endmodule

bind cud_rx cud_rx_sva #(
    .ACKQ_DEPTH (ACKQ_DEPTH)
) u_sva (
    .clk         (clk),
    .rst_n       (rst_n),
    .in_flit     (in_flit),
    .in_valid    (in_valid),
    .in_ready    (in_ready),
    .desc_valid  (desc_valid),
    .desc_reason (desc_reason),
    .wr_valid    (wr_valid),
    .wr_ready    (wr_ready),
    .wr_granule  (wr_granule),
    .wr_last     (wr_last),
    .sig_valid   (sig_valid),
    .sig_ready   (sig_ready),
    .sig_flit    (sig_flit),
    .abort_in    (abort),
    .open        (open),
    .burst_end   (burst_end),
    .err         (err),
    .ackq_level  (16'(ackq_level_unused))
);

`default_nettype wire
