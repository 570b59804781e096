// SPDX-License-Identifier: Apache-2.0
// vc_env: the envelope: takes one instruction at a time from the shell, writes
// instruction memory and descriptors, starts a run and retires it
// (docs/spec/vector.md 2, 11.2, 11.3, 16.1).
//
// Latency    IMEM, DESC and refused instructions: acceptance -> exec_done two
//            cycles. RUN: run_done -> exec_done one cycle.
// After reset instruction memory is cleared, which takes 512 cycles; no
// instruction is taken before every clearing walk of the core has ended.
//
// The first asynchronous event is kept until a RUN reports it; that RUN
// executes nothing.
`default_nettype none
`include "ktpu_defs.vh"

module vc_env (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         cleared,        // the other walks have ended
    output wire         ready,

    // shell
    input  wire [287:0] inst_flit,
    input  wire         inst_valid,
    output wire         inst_ready,
    output wire         exec_done,
    output wire         exec_fault,
    output wire [31:0]  exec_result,
    output wire [63:0]  dbg_ctr,

    output wire         imem_we,
    output wire [8:0]   imem_addr,
    output wire [31:0]  imem_word,

    output wire         desc_we,
    output wire [2:0]   desc_ad,
    output wire [2:0]   desc_fld,
    output wire [39:0]  desc_value,

    output wire         run_start,
    output wire [8:0]   run_pc,
    input  wire         run_done,
    input  wire [7:0]   run_fault,
    input  wire [8:0]   run_fault_pc,

    input  wire         ev_cudata,
    input  wire         ev_aresp,

    // counted for simulation
    input  wire         beat,
    input  wire         stall
);

    localparam [1:0] S_IDLE = 2'd0;
    localparam [1:0] S_OPEN = 2'd1;     // decode
    localparam [1:0] S_RUN  = 2'd2;
    localparam [1:0] S_DONE = 2'd3;

    reg  [1:0]   state_q;
    reg  [9:0]   clear_q;
    reg  [255:0] inst_q;
    reg  [7:0]   event_q;               // 0: none pending
    reg  [7:0]   code_q;
    reg  [31:0]  cycles_q;
    reg          faulted_q;
    reg  [8:0]   fault_pc_q;
    reg  [7:0]   fault_code_q;

    wire         clearing = !clear_q[9];
    wire         accept = inst_valid && inst_ready;
    wire [3:0]   op     = inst_q[`KT_VC_IMEM_OP];
    wire [2:0]   fld    = inst_q[`KT_VC_DESC_FLD];
    wire         open   = state_q == S_OPEN;
    wire         is_imem = op == `KT_VC_ENV_IMEM;
    wire         is_desc = op == `KT_VC_ENV_DESC;
    wire         is_run = op == `KT_VC_ENV_RUN;
    wire         known  = is_imem || is_run || (is_desc && fld <= 3'd4);
    wire         go_run = open && is_run && event_q == 8'd0;

    assign ready      = !clearing && cleared;
    assign inst_ready = ready && state_q == S_IDLE;

    assign imem_we    = clearing || (open && is_imem);
    assign imem_addr  = clearing ? clear_q[8:0] : inst_q[`KT_VC_IMEM_ADDR];
    assign imem_word  = clearing ? 32'd0 : inst_q[`KT_VC_IMEM_WORD];

    assign desc_we    = open && is_desc && known;
    assign desc_ad    = inst_q[`KT_VC_DESC_AD];
    assign desc_fld   = fld;
    assign desc_value = {inst_q[`KT_VC_DESC_VALUE_HI], inst_q[`KT_VC_DESC_VALUE]};

    assign run_start  = go_run;
    assign run_pc     = inst_q[`KT_VC_RUN_PC];

    wire [7:0] event_new = ev_cudata ? `KT_VC_F_CUDATA : ev_aresp ? `KT_VC_A_RESP : 8'd0;
    wire       reports = open && is_run && event_q != 8'd0;
    wire       retire = (open && !go_run) || (state_q == S_RUN && run_done);
    wire [7:0] code = (state_q == S_RUN) ? run_fault : !known ? `KT_VC_F_ENV : reports ? event_q : 8'd0;

    always @(posedge clk) begin
        if (!rst_n) begin
            state_q   <= S_IDLE;
            clear_q   <= 10'd0;
            event_q   <= 8'd0;
            faulted_q <= 1'b0;
            cycles_q  <= 32'd0;
            fault_pc_q   <= 9'd0;
            fault_code_q <= 8'd0;
        end else begin
            if (clearing) clear_q <= clear_q + 10'd1;
            case (state_q)
                S_IDLE:  if (accept) state_q <= S_OPEN;
                S_OPEN:  state_q <= go_run ? S_RUN : S_DONE;
                S_RUN:   if (run_done) state_q <= S_DONE;
                default: state_q <= S_IDLE;
            endcase
            if (reports || event_q == 8'd0) event_q <= event_new;
            // The cycle of acceptance and that of exec_done are not counted.
            if (open && is_run) cycles_q <= 32'd1;
            else if (state_q == S_RUN) cycles_q <= cycles_q + 32'd1;
            if (retire && code != 8'd0) begin
                faulted_q    <= 1'b1;
                fault_code_q <= code;
                fault_pc_q   <= (state_q == S_RUN) ? run_fault_pc : is_run ? run_pc : 9'd0;
            end
        end
        if (accept) inst_q <= inst_flit[`KT_FLIT_PAYLOAD];
        if (retire) code_q <= code;
    end

    assign exec_done   = state_q == S_DONE;
    assign exec_fault  = code_q != 8'd0;
    assign exec_result = exec_fault ? {`KT_VC_CU_TYPE, 4'd0, op, code_q} : is_run ? cycles_q : 32'd0;
    assign dbg_ctr     = {faulted_q, 6'd0, fault_pc_q, 8'd0, fault_code_q, cycles_q};

`ifndef SYNTHESIS
    // Of the last RUN.
    reg [31:0] n_beats_q;
    reg [31:0] n_stalls_q;
    always @(posedge clk) begin
        if (!rst_n || run_start) begin
            n_beats_q  <= 32'd0;
            n_stalls_q <= 32'd0;
        end else begin
            if (beat) n_beats_q <= n_beats_q + 32'd1;
            if (stall) n_stalls_q <= n_stalls_q + 32'd1;
        end
    end
`endif

    wire unused = &{1'b0, inst_flit, inst_q, beat, stall};

endmodule

`default_nettype wire
