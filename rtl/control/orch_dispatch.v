// SPDX-License-Identifier: Apache-2.0
//
// orch_dispatch: staging RAM, dispatch and credit of `orch` (docs/spec/fabric.md 6.3, 6.5).
//
// A kick copies LEN flits from the staging RAM, slot BASE on, into the transmit FIFO and rewrites
// their destination and source. One flit per 6 cycles when credit and the link allow (required: 8).
// Credit and the transmit entry are taken with the first word read; nobody else pushes while run = 1,
// so `tx_ready` seen at the reservation still holds at the push.
// Parameters: STAGE_FLITS 1..1433 (what the window from 0x2000 holds), CREDIT_MAX 0..65535,
// NODE_MAP bit {y,x} = a unit sits there.

`default_nettype none
`include "ktpu_defs.vh"

module orch_dispatch #(
    parameter [3:0]   ORC_X       = 4'd1,
    parameter [3:0]   ORC_Y       = 4'd1,
    parameter         STAGE_FLITS = 128,
    parameter         CREDIT_MAX  = 32,
    parameter [255:0] NODE_MAP    = 256'd0,
    parameter         WORD_AW     = $clog2(5 * STAGE_FLITS)
) (
    input  wire               clk,
    input  wire               rst_n,

    // staging write: 64-bit word, linear index 5 * slot + word
    input  wire [7:0]         stage_strb,
    input  wire [WORD_AW-1:0] stage_word,
    input  wire [63:0]        stage_data,

    // registers
    input  wire [7:0]         prog_dst,
    input  wire [15:0]        prog_len,
    input  wire [15:0]        prog_base,
    input  wire               kick,
    input  wire               cancel,
    input  wire               cred_we,
    input  wire [15:0]        cred_seed,
    output wire               run,
    output wire [15:0]        left,
    output wire [15:0]        credit,
    output wire               err_busy,       // pulses: refusals of a kick, limited seed
    output wire               err_len0,
    output wire               err_range,
    output wire               err_dst,
    output wire               err_cred,

    input  wire               cred_return,

    input  wire               tx_ready,
    output wire               push,
    output wire [287:0]       push_flit
);
    localparam [16:0] STAGE_MAX = STAGE_FLITS;
    localparam [15:0] CRED_MAX  = CREDIT_MAX;

    generate
        if (STAGE_FLITS < 1 || STAGE_FLITS > 1433 || CREDIT_MAX < 0 || CREDIT_MAX > 65535)
        begin : g_illegal
            orch_dispatch_illegal_parameters u_stop ();
        end
    endgenerate

    // ---- kick check -----------------------------------------------------------------------------
    reg        run_q;
    reg [15:0] left_q;
    reg [15:0] credit_q, ceil_q;

    wire [16:0] kick_end = {1'b0, prog_base} + {1'b0, prog_len};
    wire        bad_len  = (prog_len == 16'd0);
    wire        bad_end  = (kick_end > STAGE_MAX);
    wire        bad_dst  = !NODE_MAP[prog_dst];
    assign err_busy  = kick && run_q;
    assign err_len0  = kick && !run_q && bad_len;
    assign err_range = kick && !run_q && !bad_len && bad_end;
    assign err_dst   = kick && !run_q && !bad_len && !bad_end && bad_dst;
    wire   start     = kick && !run_q && !bad_len && !bad_end && !bad_dst;

    // ---- copy loop: step 0 reserves and reads word 0, 1..4 read words 1..4, 5 pushes --------------
    reg  [2:0]         step_q;
    reg  [WORD_AW-1:0] word_q;
    reg                abort_q;
    reg  [7:0]         dst_q;
    reg  [255:0]       payload_q;
    wire [63:0]        rd_data;

    wire waiting = run_q && (step_q == 3'd0);
    wire stop    = cancel || abort_q;
    wire reserve = waiting && !stop && (credit_q != 16'd0) && tx_ready;
    wire rd_en   = reserve || (run_q && (step_q != 3'd0) && (step_q != 3'd5));
    wire finish  = push && ((left_q == 16'd1) || stop);

    assign push      = run_q && (step_q == 3'd5);
    assign push_flit = {dst_q[3:0], dst_q[7:4], ORC_X, ORC_Y, rd_data[15:0], payload_q};
    assign run       = run_q;
    assign left      = left_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            run_q   <= 1'b0;
            left_q  <= 16'd0;
            step_q  <= 3'd0;
            abort_q <= 1'b0;
        end else if (start) begin
            run_q   <= 1'b1;
            left_q  <= prog_len;
            step_q  <= 3'd0;
            abort_q <= 1'b0;
        end else if (run_q) begin
            if (cancel) abort_q <= 1'b1;
            if (rd_en) step_q <= step_q + 3'd1;
            if (push) begin
                step_q <= 3'd0;
                left_q <= left_q - 16'd1;
            end
            if (finish || (waiting && stop)) run_q <= 1'b0;
        end
    end

    always @(posedge clk) begin
        if (start) begin
            dst_q  <= prog_dst;
            word_q <= {prog_base[WORD_AW-3:0], 2'b00} + prog_base[WORD_AW-1:0];
        end else if (rd_en) begin
            word_q <= word_q + 1'b1;
        end
        case (step_q)
            3'd1:    payload_q[63:0]    <= rd_data;
            3'd2:    payload_q[127:64]  <= rd_data;
            3'd3:    payload_q[191:128] <= rd_data;
            3'd4:    payload_q[255:192] <= rd_data;
            default: ;
        endcase
    end
    // The staged coordinates are replaced and the upper half of word 4 is ignored.
    wire unused_ok = &{1'b0, rd_data[63:16]};

    ram_bytes #(.BYTES(8), .DEPTH(5 * STAGE_FLITS), .PRIM("block")) u_stage (
        .clk    (clk),
        .wr_strb(stage_strb),
        .wr_addr(stage_word),
        .wr_data(stage_data),
        .rd_en  (rd_en),
        .rd_addr(word_q),
        .rd_data(rd_data)
    );

    // ---- credit ---------------------------------------------------------------------------------
    wire        over     = (cred_seed > CRED_MAX);
    wire [15:0] seed_lim = over ? CRED_MAX : cred_seed;
    assign err_cred = cred_we && over;
    assign credit   = credit_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            credit_q <= 16'd0;
            ceil_q   <= 16'd0;
        end else if (cred_we) begin
            credit_q <= seed_lim;
            ceil_q   <= seed_lim;
        end else if (reserve && !cred_return) begin
            credit_q <= credit_q - 16'd1;
        end else if (!reserve && cred_return && (credit_q < ceil_q)) begin
            credit_q <= credit_q + 16'd1;
        end
    end
endmodule

`default_nettype wire
