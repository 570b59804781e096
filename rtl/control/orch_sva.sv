// SPDX-License-Identifier: Apache-2.0
// orch_sva: properties of the orchestrator, docs/spec/fabric.md 6. Simulation only; bound to orch.
`default_nettype none
`include "ktpu_defs.vh"

/* verilator lint_off DECLFILENAME */
module orch_sva #(
/* verilator lint_on DECLFILENAME */
    parameter CREDIT_MAX = 32
) (
    input wire        clk,
    input wire        rst_n,
    input wire        noc_in_busy,
    input wire        ready,
    input wire        run,
    input wire        push,
    input wire        tx_ready,
    input wire        waiting,
    input wire        stop,
    input wire        reserve,
    input wire        cred_we,
    input wire [15:0] seed_lim,
    input wire [15:0] credit,
    input wire [15:0] ceiling,
    input wire [15:0] left,
    input wire        kick,
    input wire        sig,
    input wire [7:0]  sig_code,
    input wire        s_axi_bvalid,
    input wire        s_axi_bready,
    input wire [1:0]  s_axi_bresp,
    input wire        s_axi_rvalid,
    input wire        s_axi_rready,
    input wire [63:0] s_axi_rdata,
    input wire [1:0]  s_axi_rresp,
    input wire        aux_valid,
    input wire        aux_ready,
    input wire [7:0]  aux_addr,
    input wire [63:0] aux_data,
    input wire        mreg_en
);
    default clocking cb @(posedge clk); endclocking
    default disable iff (!rst_n);

    credit_below_ceiling:  assert property (credit <= ceiling);
    ceiling_below_maximum: assert property (ceiling <= 16'(CREDIT_MAX));
    no_credit_no_reserve:  assert property (reserve |-> credit != 16'd0 && tx_ready && run);
    push_has_room:         assert property (push |-> tx_ready && run);
    accepts_every_cycle:   assert property (ready |-> !noc_in_busy);
    ready_stays:           assert property (ready |=> ready);
    run_ends_on_a_flit:    assert property ($fell(run) |-> $past(push || (waiting && stop)));
    left_only_moves_in_run: assert property (!run && !kick |=> $stable(left));
    left_counts_down:      assert property (push |=> left == $past(left) - 16'd1);
    b_held: assert property (s_axi_bvalid && !s_axi_bready |=> s_axi_bvalid && $stable(s_axi_bresp));
    r_held: assert property (s_axi_rvalid && !s_axi_rready |=>
                             s_axi_rvalid && $stable(s_axi_rdata) && $stable(s_axi_rresp));
    aux_held: assert property (aux_valid && !aux_ready |=>
                               aux_valid && $stable(aux_addr) && $stable(aux_data));
    mreg_is_a_pulse: assert property (mreg_en |=> !mreg_en);

    // Instructions outstanding never exceed the seed. A new seed allows its own number on top of
    // what is still out; one signal (batch or not) ends one instruction.
    int unsigned open, bound;
    wire ended = sig && (sig_code == `KT_SIG_INST_COMPLETE || sig_code == `KT_SIG_BATCH_COMPLETE ||
                         sig_code == `KT_SIG_FAULT) && (open != 0);
    always @(posedge clk) begin
        if (!rst_n) begin
            open  <= 0;
            bound <= 0;
        end else begin
            open <= open + (reserve ? 1 : 0) - (ended ? 1 : 0);
            if (cred_we) bound <= open + (reserve ? 1 : 0) - (ended ? 1 : 0) + {16'd0, seed_lim};
        end
    end
    outstanding_below_seed: assert property (open <= bound);
endmodule

bind orch orch_sva #(.CREDIT_MAX(CREDIT_MAX)) u_sva (
    .clk(clk), .rst_n(rst_n), .noc_in_busy(noc_in_busy), .ready(ready), .run(run), .push(push),
    .tx_ready(tx_ready), .waiting(u_dispatch.waiting), .stop(u_dispatch.stop),
    .reserve(u_dispatch.reserve), .cred_we(cred_we), .seed_lim(u_dispatch.seed_lim),
    .credit(credit), .ceiling(u_dispatch.ceil_q), .left(left), .kick(kick),
    .sig(u_mirror.s1_valid_q), .sig_code(evt_code),
    .s_axi_bvalid(s_axi_bvalid), .s_axi_bready(s_axi_bready), .s_axi_bresp(s_axi_bresp),
    .s_axi_rvalid(s_axi_rvalid), .s_axi_rready(s_axi_rready), .s_axi_rdata(s_axi_rdata),
    .s_axi_rresp(s_axi_rresp), .aux_valid(aux_valid), .aux_ready(aux_ready), .aux_addr(aux_addr),
    .aux_data(aux_data), .mreg_en(mreg_en)
);

`default_nettype wire
