// SPDX-License-Identifier: Apache-2.0
// port_hub_sva: no flit is lost or made up in the hub, docs/spec/fabric.md 10.1. Simulation only;
// bound to port_hub.
`default_nettype none

/* verilator lint_off DECLFILENAME */
module port_hub_sva (
/* verilator lint_on DECLFILENAME */
    input wire clk,
    input wire rst_n,
    input wire in_fire,
    input wire eng_out_valid,
    input wire orc_out_valid,
    input wire remote_drop,
    input wire eng_out_fire,
    input wire orc_out_fire,
    input wire out_fire,
    input wire eng_in_fire,
    input wire orc_in_fire,
    input wire orc_waits,
    input wire eng_leaves,
    input wire eng_held
);
    default clocking cb @(posedge clk); endclocking
    default disable iff (!rst_n);

    one_way: assert property ($onehot0({eng_out_valid, orc_out_valid, remote_drop}));
    orchestrator_first: assert property (orc_waits && eng_leaves |-> eng_held);

    int unsigned held_in, held_out;       // flits held by the inbound skid, by the two outbound skids
    always @(posedge clk) begin
        if (!rst_n) begin
            held_in  <= 0;
            held_out <= 0;
        end else begin
            held_in  <= held_in + (in_fire ? 1 : 0) - (eng_out_fire ? 1 : 0) - (orc_out_fire ? 1 : 0)
                       - (remote_drop ? 1 : 0);
            held_out <= held_out + (eng_in_fire ? 1 : 0) + (orc_in_fire ? 1 : 0) - (out_fire ? 1 : 0);
        end
    end
    inbound_kept:  assert property (held_in <= 2);
    outbound_kept: assert property (held_out <= 4);
endmodule

bind port_hub port_hub_sva u_sva (
    .clk(clk), .rst_n(rst_n), .in_fire(noc_in_valid && !noc_in_busy),
    .eng_out_valid(eng_out_valid), .orc_out_valid(orc_out_valid), .remote_drop(remote_drop),
    .eng_out_fire(eng_out_valid && !eng_out_busy), .orc_out_fire(orc_out_valid && !orc_out_busy),
    .out_fire(noc_out_valid && !noc_out_busy), .eng_in_fire(eng_in_valid && !eng_in_busy),
    .orc_in_fire(orc_in_valid && !orc_in_busy), .orc_waits(orc_valid),
    .eng_leaves(take_eng && eng_valid), .eng_held(hold_eng_q)
);

`default_nettype wire
