// SPDX-License-Identifier: Apache-2.0
// mg_front: takes one instruction at a time, decodes it and hands it to its
// engine (docs/spec/cluster.md 2.1, 7.3, 7.4, 5.3).
//
// Latency    acceptance, products, checks: `go_*` is high two cycles after the
//            acceptance (a row-major DRAIN: mg_decode), in the only cycle in which architectural state of the
//            front (opened count, batch size, tile bank) moves.
// A refused instruction reaches no engine; `refused` carries its code.
`default_nettype none
`include "ktpu_defs.vh"

module mg_front #(
    parameter [3:0] CU_X       = 4'd0,
    parameter [3:0] CU_Y       = 4'd0,
    parameter       TILES      = 512,
    parameter       GA         = 512,
    parameter       GB         = 512,
    parameter       TILE_BANKS = 2,
    parameter       ROWMAJOR   = 0
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         ready,          // L1 is cleared

    input  wire [287:0] inst_flit,
    input  wire         inst_valid,
    output wire         inst_ready,

    output wire [255:0] inst,           // the instruction in execution
    output wire         last,
    output wire         in_flight,      // accepted, not retired
    output wire         open,           // its checks are done
    output wire [7:0]   refused,
    input  wire         retire,

    output wire         go_fill,
    output wire         go_gemm,
    output wire         go_drain,
    output wire         go_bank,        // tile bank of the GEMM or DRAIN
    output wire [15:0]  n,
    output wire [7:0]   gm, gn, nk,
    output wire [37:0]  region,         // operand entries {a_lo 9, a_hi 10, b_lo 9, b_hi 10}
    output wire [13:0]  granules,
    output wire [12:0]  open_count
);

    localparam [1:0] S_IDLE = 2'd0;
    localparam [1:0] S_MUL  = 2'd1;
    localparam [1:0] S_CHK  = 2'd2;
    localparam [1:0] S_RUN  = 2'd3;

    reg [1:0]   state_q;
    reg [255:0] inst_q;
    reg         last_q;
    reg [7:0]   code_q;
    reg [12:0]  open_q, batch_q;
    reg         bank_q;

    wire [7:0]  code;
    wire [15:0] prod_mk, prod_nk, prod_mn;
    wire [16:0] granules_w;
    wire        checked;

    mg_decode #(.CU_X(CU_X), .CU_Y(CU_Y), .TILES(TILES), .GA(GA), .GB(GB),
                .ROWMAJOR(ROWMAJOR)) u_decode (
        .clk        (clk),
        .mul        (state_q == S_MUL),
        .checked    (checked),
        .inst       (inst_q),
        .open_count (open_q),
        .batch_size (batch_q),
        .code       (code),
        .n          (n),
        .gm         (gm),
        .gn         (gn),
        .nk         (nk),
        .prod_mk_q  (prod_mk),
        .prod_nk_q  (prod_nk),
        .prod_mn_q  (prod_mn),
        .granules   (granules_w)
    );

    wire [3:0]  op      = inst_q[`KT_MG_INST_OP];
    wire        go      = (state_q == S_CHK) && (code == 8'd0);
    wire        fused   = inst_q[`KT_MG_INST_FUSE];
    wire        opens   = !inst_q[`KT_MG_INST_ACC];
    wire        grows   = prod_mn[12:0] >= open_q;
    wire        accept  = inst_valid && inst_ready;

    assign inst_ready = ready && (state_q == S_IDLE);
    assign inst       = inst_q;
    assign last       = last_q;
    assign in_flight  = state_q != S_IDLE;
    assign open       = state_q == S_RUN;
    assign refused    = code_q;
    assign go_fill    = go && (op == `KT_MG_OP_FILL);
    assign go_gemm    = go && (op == `KT_MG_OP_GEMM);
    assign go_drain   = go && (op == `KT_MG_OP_DRAIN) && !fused;
    wire [8:0]  a_lo  = {inst_q[`KT_MG_INST_ABANK], inst_q[`KT_MG_INST_AOFF]};
    wire [8:0]  b_lo  = {inst_q[`KT_MG_INST_BBANK], inst_q[`KT_MG_INST_BOFF]};
    assign region     = {a_lo, {1'b0, a_lo} + prod_mk[9:0], b_lo, {1'b0, b_lo} + prod_nk[9:0]};
    assign granules   = granules_w[13:0];
    assign open_count = open_q;

    // An opening GEMM that covers all opened sub-tiles moves to the other bank,
    // so the old one can still be read by what was accepted before.
    assign go_bank    = bank_q ^ ((TILE_BANKS == 2) && go_gemm && opens && grows);

    always @(posedge clk) begin
        if (!rst_n) begin
            state_q <= S_IDLE;
            open_q  <= 13'd0;
            batch_q <= 13'd0;
            bank_q  <= 1'b0;
        end else begin
            case (state_q)
                S_IDLE:  if (accept) state_q <= S_MUL;
                S_MUL:   if (checked) state_q <= S_CHK;
                S_CHK:   state_q <= S_RUN;
                default: if (retire) state_q <= S_IDLE;
            endcase
            if (go_gemm) begin
                bank_q <= go_bank;
                if (opens && grows) open_q <= prod_mn[12:0];
                if (inst_q[`KT_MG_INST_EMIT]) batch_q <= prod_mn[12:0];
            end
            if (go_drain) batch_q <= 13'd0;
        end
        if (accept) begin
            inst_q <= inst_flit[`KT_FLIT_PAYLOAD];
            last_q <= inst_flit[`KT_FLIT_LAST];
        end
        if (state_q == S_CHK) code_q <= code;
    end

    // The header beyond `last` is the shell's; product bits above the limits of
    // decode are zero in every instruction that goes on.
    wire unused = &{1'b0, inst_flit, prod_mk, prod_nk, prod_mn, granules_w};

endmodule

`default_nettype wire
