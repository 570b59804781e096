// SPDX-License-Identifier: Apache-2.0
// mg_sweep: the counters of a GEMM, K block outermost, then row group, then
// column group, one issue a cycle (docs/spec/cluster.md 4.1, 4.3, 4.5).
//
// One GEMM may be armed while another runs. It starts in the cycle of the last
// issue of the running one if `start_ok`, so two sweeps follow each other
// without a gap. Issues on one sub-tile are kept REUSE apart by comparing with
// the last REUSE-1 commands; this also holds across two sweeps.
//
// Latency    go -> armed 1, armed -> first issue 1; the command reaches the
//            datapath L1_LAT cycles after its issue, beside the L1 data.
// `first` is high in the cycle of the first issue.
// TILES power of two 16..4096, L1_LAT 1..2, REUSE 4..5.
`default_nettype none

module mg_sweep #(
    parameter TILES  = 512,
    parameter L1_LAT = 1,
    parameter REUSE  = 5,
    parameter TW     = $clog2(TILES)
) (
    input  wire          clk,
    input  wire          rst_n,

    // dispatch
    input  wire          go,
    input  wire [7:0]    go_gm, go_gn, go_nk,
    input  wire [37:0]   go_region,     // entries {a_lo 9, a_hi 10, b_lo 9, b_hi 10}, half open
    input  wire          go_acc,
    input  wire          go_emit,
    input  wire          go_bank,
    input  wire [7:0]    go_anchor,

    // start
    output wire          armed,
    output wire          armed_emit,
    input  wire          start_ok,
    output wire          start,
    output wire          first,

    // regions still to be read
    output wire [37:0]   armed_region,
    output wire          run,
    output wire [37:0]   run_region,

    // L1 read
    output wire          rd_en,
    output wire [8:0]    rd_a_idx, rd_b_idx,

    // command to the datapath
    output wire          iss_valid,
    output wire          iss_load,
    output wire          iss_emit,
    output wire          iss_bank,
    output wire [TW-1:0] iss_addr,
    output wire [7:0]    iss_anchor,
    output wire          busy           // a sweep runs or an issue is on its way
);

    localparam [TW-1:0] T_1 = {{(TW-1){1'b0}}, 1'b1};
    localparam CMD_W = TW + 11;

    // ---- armed GEMM
    reg          armed_q;
    reg  [7:0]   a_gm_q, a_gn_q, a_nk_q, a_anchor_q;
    reg  [37:0]  a_region_q;
    reg          a_acc_q, a_emit_q, a_bank_q;

    // ---- running sweep
    reg          run_q, first_q;
    reg  [7:0]   gm_last_q, gn_last_q, nk_last_q, nk_q, anchor_q;
    reg  [37:0]  region_q;
    reg          acc_q, emit_q, bank_q;
    reg  [7:0]   k_q, g_q, h_q;
    reg  [7:0]   a_off_q, b_off_q;      // entries of this issue, inside the bank
    reg  [7:0]   a_base_q, b_base_q;    // entries of g = 0, h = 0 of this K block
    reg  [TW-1:0] t_q;

    wire last_h = h_q == gn_last_q;
    wire last_g = g_q == gm_last_q;
    wire last_k = k_q == nk_last_q;

    // ---- reuse interlock over the last REUSE-1 commands
    reg  [REUSE-2:0]          hist_v_q;
    reg  [(REUSE-1)*(TW+1)-1:0] hist_q;
    wire [TW:0]               this_cmd = {bank_q, t_q};
    wire [REUSE-2:0]          hit;
    genvar i;
    generate
        for (i = 0; i < REUSE - 1; i = i + 1) begin : g_hit
            assign hit[i] = hist_v_q[i] && (hist_q[i*(TW+1) +: TW+1] == this_cmd);
        end
    endgenerate

    wire issue = run_q && (hit == {(REUSE-1){1'b0}});
    wire ends  = issue && last_h && last_g && last_k;

    assign start = armed_q && start_ok && (!run_q || ends);
    assign first = issue && first_q;
    assign armed = armed_q;
    assign armed_emit = a_emit_q;
    assign run   = run_q;
    assign armed_region = a_region_q;
    assign run_region   = region_q;
    wire [8:0] a_start = a_region_q[37:29];
    wire [8:0] b_start = a_region_q[18:10];

    assign rd_en    = issue;
    assign rd_a_idx = {region_q[37], a_off_q};
    assign rd_b_idx = {region_q[18], b_off_q};

    always @(posedge clk) begin
        if (!rst_n) begin
            armed_q  <= 1'b0;
            run_q    <= 1'b0;
            hist_v_q <= {(REUSE-1){1'b0}};
        end else begin
            if (go) armed_q <= 1'b1;
            else if (start) armed_q <= 1'b0;
            if (start) run_q <= 1'b1;
            else if (ends) run_q <= 1'b0;
            hist_v_q <= {hist_v_q[REUSE-3:0], issue};
        end
        hist_q <= {hist_q[(REUSE-2)*(TW+1)-1:0], this_cmd};

        if (go) begin
            a_gm_q     <= go_gm;
            a_gn_q     <= go_gn;
            a_nk_q     <= go_nk;
            a_anchor_q <= go_anchor;
            a_region_q <= go_region;
            a_acc_q    <= go_acc;
            a_emit_q   <= go_emit;
            a_bank_q   <= go_bank;
        end

        if (start) begin
            first_q   <= 1'b1;
            gm_last_q <= a_gm_q - 8'd1;
            gn_last_q <= a_gn_q - 8'd1;
            nk_last_q <= a_nk_q - 8'd1;
            nk_q      <= a_nk_q;
            anchor_q  <= a_anchor_q;
            region_q  <= a_region_q;
            acc_q     <= a_acc_q;
            emit_q    <= a_emit_q;
            bank_q    <= a_bank_q;
            k_q       <= 8'd0;
            g_q       <= 8'd0;
            h_q       <= 8'd0;
            a_off_q   <= a_start[7:0];
            b_off_q   <= b_start[7:0];
            a_base_q  <= a_start[7:0];
            b_base_q  <= b_start[7:0];
            t_q       <= {TW{1'b0}};
        end else if (issue) begin
            first_q <= 1'b0;
            t_q     <= t_q + T_1;
            h_q     <= h_q + 8'd1;
            b_off_q <= b_off_q + nk_q;
            if (last_h) begin
                h_q     <= 8'd0;
                b_off_q <= b_base_q;
                g_q     <= g_q + 8'd1;
                a_off_q <= a_off_q + nk_q;
                if (last_g) begin
                    g_q      <= 8'd0;
                    k_q      <= k_q + 8'd1;
                    a_off_q  <= a_base_q + 8'd1;
                    b_off_q  <= b_base_q + 8'd1;
                    a_base_q <= a_base_q + 8'd1;
                    b_base_q <= b_base_q + 8'd1;
                    t_q      <= {TW{1'b0}};
                end
            end
        end
    end

    // ---- the command travels beside the L1 read
    reg  [L1_LAT-1:0]       pv_q;
    reg  [L1_LAT*CMD_W-1:0] pc_q;
    wire [CMD_W-1:0]        cmd = {(k_q == 8'd0) && !acc_q, emit_q && last_k, bank_q, t_q, anchor_q};

    generate
        if (L1_LAT == 1) begin : g_lat1
            always @(posedge clk) begin
                if (!rst_n) pv_q <= 1'b0;
                else pv_q <= issue;
                if (issue) pc_q <= cmd;
            end
        end else begin : g_lat2
            always @(posedge clk) begin
                if (!rst_n) pv_q <= {L1_LAT{1'b0}};
                else pv_q <= {pv_q[L1_LAT-2:0], issue};
                pc_q <= {pc_q[(L1_LAT-1)*CMD_W-1:0], cmd};
            end
        end
    endgenerate

    assign iss_valid = pv_q[L1_LAT-1];
    assign {iss_load, iss_emit, iss_bank, iss_addr, iss_anchor} = pc_q[(L1_LAT-1)*CMD_W +: CMD_W];

    wire unused = &{1'b0, a_start[8], b_start[8]};      // the banks travel in region_q

    assign busy = run_q || (pv_q != {L1_LAT{1'b0}});

endmodule

`default_nettype wire
