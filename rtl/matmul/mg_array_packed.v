// SPDX-License-Identifier: Apache-2.0
// Packed form of the tensor array: 4 chained units x 8 chains x 8 multipliers = 256 multipliers,
// each doing two MACs (rows 2p and 2p+1 of A share one element of B).
// Unit c handles k = 8c..8c+7. Stage kk gets its operands kk cycles after stage 0, unit c starts
// 2c cycles after unit 0, so all 16 sums appear together 17 cycles after the operands.
// `vld[n]` = operands were presented n cycles ago; it enables the registers one by one, so bubbles
// and an idle array hold their state. Throughput: one entry pair a cycle.
// Specification: docs/spec/cluster.md 4.2.
`default_nettype none

module mg_array_packed (
    input  wire         clk,
    input  wire [16:0]  vld,
    input  wire [895:0] in_a,
    input  wire [895:0] in_b,
    output wire [303:0] out_d
);
    wire busy = |vld;

    genvar c;
    genvar kk;
    genvar p;
    genvar j;
    generate
        for (c = 0; c < 4; c = c + 1) begin : g_unit
            wire [8*48-1:0] p_last;                       // chain 4*p+j of this unit
            for (kk = 0; kk < 8; kk = kk + 1) begin : g_stage
                localparam K   = 8 * c + kk;
                localparam DLY = 2 * c + kk;
                wire [55:0]     ops;                      // {b[3:0], a[3:0]}, delayed
                wire [8*48-1:0] p_out;
                mg_skew #(.WIDTH(56), .DEPTH(DLY)) u_skew (
                    .clk(clk), .en(busy),
                    .in ({in_b[28*K +: 28], in_a[7*(96+K) +: 7], in_a[7*(64+K) +: 7],
                          in_a[7*(32+K) +: 7], in_a[7*K +: 7]}),
                    .out(ops)
                );
                for (p = 0; p < 2; p = p + 1) begin : g_pair
                    for (j = 0; j < 4; j = j + 1) begin : g_col
                        wire [47:0] pcin;
                        wire [47:0] c_in;
                        if (kk == 0) begin : g_zero
                            assign pcin = 48'd0;
                        end else begin : g_casc
                            assign pcin = g_unit[c].g_stage[kk-1].p_out[48*(4*p+j) +: 48];
                        end
                        if (kk == 7 && c != 0) begin : g_prev
                            assign c_in = g_unit[c-1].p_last[48*(4*p+j) +: 48];
                        end else begin : g_none
                            assign c_in = 48'd0;
                        end
                        mg_mac #(
                            .CASCADE(kk == 0 ? 0 : 1),
                            .ADD_C  (kk == 7 && c != 0 ? 1 : 0)
                        ) u_mac (
                            .clk (clk),
                            .en  (vld[DLY +: 4]),
                            .a_hi(ops[7*(2*p+1) +: 7]),
                            .a_lo(ops[7*(2*p) +: 7]),
                            .b   (ops[28 + 7*j +: 7]),
                            .c   (c_in),
                            .pcin(pcin),
                            .p   (p_out[48*(4*p+j) +: 48])
                        );
                    end
                end
            end
            assign p_last = g_stage[7].p_out;
        end

        // The low field borrows from the high one when it is negative; adding its sign bit back is exact.
        for (p = 0; p < 2; p = p + 1) begin : g_out_pair
            for (j = 0; j < 4; j = j + 1) begin : g_out_col
                wire [47:0] sum = g_unit[3].p_last[48*(4*p+j) +: 48];
                wire unused_sum = &{1'b0, sum[47:38]};    // copies of bit 37
                assign out_d[19*(4*(2*p)+j) +: 19]   = sum[18:0];
                assign out_d[19*(4*(2*p+1)+j) +: 19] = sum[37:19] + {18'd0, sum[18]};
            end
        end
    endgenerate
endmodule

`default_nettype wire
