// SPDX-License-Identifier: Apache-2.0
//
// port_hub: lets the memory agent's engine and the orchestrator share one mesh port
// (docs/spec/fabric.md 10.1); one port, no interlink.
//
// Inbound (noc_in): a two-entry skid, then by the head flit: a CU_DATA flit marked remote is
// discarded (`remote_drop` and `lost` pulse; the memory agent records M_REMOTE), memory requests and
// write data go to the engine (eng_out) whatever `rsvd` is, everything else to the orchestrator
// (orc_out).
// Outbound (noc_out): the orchestrator (orc_in) before the engine (eng_in), which holds its flit; a
// flit offered to the mesh is never replaced by a later one.
// Latency: 1 cycle in each direction. Throughput: one flit per cycle in each direction.

`default_nettype none
`include "ktpu_defs.vh"

module port_hub (
    input  wire         clk,
    input  wire         rst_n,

    // mesh
    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,
    output wire         noc_out_valid,
    output wire [287:0] noc_out_data,
    input  wire         noc_out_busy,

    // memory engine: eng_out feeds its inbound link, eng_in is its outbound link
    output wire         eng_out_valid,
    output wire [287:0] eng_out_data,
    input  wire         eng_out_busy,
    input  wire         eng_in_valid,
    input  wire [287:0] eng_in_data,
    output wire         eng_in_busy,

    // orchestrator, likewise
    output wire         orc_out_valid,
    output wire [287:0] orc_out_data,
    input  wire         orc_out_busy,
    input  wire         orc_in_valid,
    input  wire [287:0] orc_in_data,
    output wire         orc_in_busy,

    output wire         lost,
    output wire         remote_drop
);
    // ---- inbound ------------------------------------------------------------------------------
    wire         in_ready, head_valid, head_ready;
    wire [287:0] head;

    skid2 #(.WIDTH(288)) u_in (
        .clk      (clk),
        .rst_n    (rst_n),
        .in_valid (noc_in_valid),
        .in_ready (in_ready),
        .in_data  (noc_in_data),
        .out_valid(head_valid),
        .out_ready(head_ready),
        .out_data (head)
    );
    assign noc_in_busy = !in_ready;

    wire [3:0] head_type = head[`KT_FLIT_TYPE];
    wire       head_mark = head[258];                 // rsvd[2]: remote marker
    wire       to_none   = (head_type == `KT_TYPE_CU_DATA) && head_mark;
    wire       to_engine = (head_type == `KT_TYPE_MEM_RD_REQ) ||
                           (head_type == `KT_TYPE_MEM_WR_REQ) ||
                           (head_type == `KT_TYPE_MEM_WR_DATA);
    wire       to_orch   = !to_none && !to_engine;

    assign eng_out_valid = head_valid && to_engine;
    assign orc_out_valid = head_valid && to_orch;
    assign eng_out_data  = head;
    assign orc_out_data  = head;
    assign head_ready    = to_engine ? !eng_out_busy : (to_orch ? !orc_out_busy : 1'b1);
    assign remote_drop   = head_valid && to_none;
    assign lost          = remote_drop;

    // ---- outbound -----------------------------------------------------------------------------
    wire         orc_ready, orc_valid, eng_ready, eng_valid;
    wire [287:0] orc_flit, eng_flit;

    // An engine flit that was offered and refused stays offered, whatever arrives meanwhile.
    reg  hold_eng_q;
    wire take_eng = hold_eng_q || !orc_valid;
    always @(posedge clk) begin
        if (!rst_n) hold_eng_q <= 1'b0;
        else        hold_eng_q <= take_eng && eng_valid && noc_out_busy;
    end

    skid2 #(.WIDTH(288)) u_orc (
        .clk      (clk),
        .rst_n    (rst_n),
        .in_valid (orc_in_valid),
        .in_ready (orc_ready),
        .in_data  (orc_in_data),
        .out_valid(orc_valid),
        .out_ready(!noc_out_busy && !take_eng),
        .out_data (orc_flit)
    );

    skid2 #(.WIDTH(288)) u_eng (
        .clk      (clk),
        .rst_n    (rst_n),
        .in_valid (eng_in_valid),
        .in_ready (eng_ready),
        .in_data  (eng_in_data),
        .out_valid(eng_valid),
        .out_ready(!noc_out_busy && take_eng),
        .out_data (eng_flit)
    );
    assign orc_in_busy = !orc_ready;
    assign eng_in_busy = !eng_ready;

    assign noc_out_valid = take_eng ? eng_valid : orc_valid;
    assign noc_out_data  = take_eng ? eng_flit : orc_flit;
endmodule

`default_nettype wire
