// SPDX-License-Identifier: Apache-2.0
// mov_prng: Philox-4x32-10 words of the mode GENERATE, a function of seed and address.
//
// Latency    22 cycles. Throughput one word per 10 cycles, two in the loop.
// Order      words come out in the order of their addresses; a queue of four waits for
//            the writer.
// Spec       docs/spec/memory.md 12.4
`default_nettype none
`include "ktpu_defs.vh"

module mov_prng (
    input  wire         clk,
    input  wire         rst_n,

    input  wire [63:0]  seed,          // stable for a whole move
    input  wire         in_valid,
    output wire         in_ready,
    input  wire [34:0]  in_wa,         // address bits 39:5

    output wire         out_valid,
    input  wire         out_ready,
    output wire [255:0] out_word
);

    localparam [3:0] LAST = `KT_MEM_PHILOX_ROUNDS - 1;

    reg          a_q, b_q;             // a word before, after the multipliers
    reg  [3:0]   a_round_q, b_round_q;
    reg  [63:0]  a_key_q, b_key_q;
    reg  [255:0] a_state_q, b_prod_q;  // both counters, {c3, c2, c1, c0} each; {p1, p0} each
    reg  [127:0] b_side_q;             // {c3, c1} each
    reg  [2:0]   owed_q;               // words taken and not delivered
    wire [255:0] b_next;

    wire         take   = in_valid && in_ready;
    wire         finish = b_q && b_round_q == LAST;
    wire         again  = b_q && !finish;
    wire         gone   = out_valid && out_ready;

    assign in_ready = !again && !owed_q[2];

    genvar h;
    generate
        for (h = 0; h < 2; h = h + 1) begin : g_half
            wire [63:0] p0 = b_prod_q[128*h +: 64];
            wire [63:0] p1 = b_prod_q[128*h+64 +: 64];
            wire [31:0] c1 = b_side_q[64*h +: 32];
            wire [31:0] c3 = b_side_q[64*h+32 +: 32];
            assign b_next[128*h +: 128] = {p0[31:0], p0[63:32] ^ c3 ^ b_key_q[63:32],
                                           p1[31:0], p1[63:32] ^ c1 ^ b_key_q[31:0]};
            always @(posedge clk) if (a_q) begin
                b_prod_q[128*h +: 64]    <= `KT_MEM_PHILOX_M0 * {32'd0, a_state_q[128*h +: 32]};
                b_prod_q[128*h+64 +: 64] <= `KT_MEM_PHILOX_M1 * {32'd0, a_state_q[128*h+64 +: 32]};
                b_side_q[64*h +: 64]     <= {a_state_q[128*h+96 +: 32], a_state_q[128*h+32 +: 32]};
            end
        end
    endgenerate

    always @(posedge clk) begin
        if (!rst_n) begin
            a_q    <= 1'b0;
            b_q    <= 1'b0;
            owed_q <= 3'd0;
        end else begin
            a_q    <= again || take;
            b_q    <= a_q;
            owed_q <= owed_q + {2'd0, take} - {2'd0, gone};
        end
        if (again) begin
            a_round_q <= b_round_q + 4'd1;
            a_key_q   <= {b_key_q[63:32] + `KT_MEM_PHILOX_W1, b_key_q[31:0] + `KT_MEM_PHILOX_W0};
            a_state_q <= b_next;
        end else if (take) begin
            a_round_q <= 4'd0;
            a_key_q   <= seed;
            a_state_q <= {64'd0, 28'd0, in_wa[34:32], 1'b1, in_wa[31:0], 64'd0, 28'd0, in_wa[34:32], 1'b0, in_wa[31:0]};
        end
        if (a_q) begin
            b_round_q <= a_round_q;
            b_key_q   <= a_key_q;
        end
    end

    wire       room;
    wire [2:0] level;
    fifo_sync #(
        .WIDTH (256),
        .DEPTH (4)
    ) u_out (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (finish),
        .in_ready  (room),
        .in_data   (b_next),
        .out_valid (out_valid),
        .out_ready (out_ready),
        .out_data  (out_word),
        .level     (level)
    );

    wire unused = &{1'b0, room, level};

endmodule

`default_nettype wire
