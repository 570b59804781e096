// SPDX-License-Identifier: Apache-2.0
// Tensor array of the matmul cluster: d[i][j] = sum over k < 32 of A[i][k] * B[k][j], exact, 4x4 results.
// in_a: element (i,k) at [7*(32*i+k) +: 7]; in_b: element (k,j) at [7*(4*k+j) +: 7]; out_d: sum (i,j) at
// [19*(4*i+j) +: 19], signed.
// Latency: sums are valid with `out_valid`, 17 cycles after `in_valid`; `pre_valid` announces them
// PRE = 2 cycles earlier, so that the command FIFO can be popped in time. Throughput: one a cycle.
// MODEL: 1 = portable multiply-add, 0 = packed DSP form; identical results and latency.
// Specification: docs/spec/cluster.md 4.2, docs/spec/numerics.md 4.
`default_nettype none

module mg_array #(
    parameter MODEL = 1
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         in_valid,
    input  wire [895:0] in_a,
    input  wire [895:0] in_b,
    output wire         pre_valid,
    output wire         out_valid,
    output wire [303:0] out_d
);
    reg  [17:1] vld_q;
    wire [17:0] vld = {vld_q, in_valid};

    always @(posedge clk) begin
        if (!rst_n) vld_q <= 17'd0;
        else        vld_q <= vld[16:0];
    end

    generate
        if (MODEL != 0) begin : g_plain
            mg_array_plain u_plain (
                .clk(clk), .rst_n(rst_n), .vld(vld[16:0]), .in_a(in_a), .in_b(in_b), .out_d(out_d)
            );
        end else begin : g_packed
            mg_array_packed u_packed (
                .clk(clk), .vld(vld[16:0]), .in_a(in_a), .in_b(in_b), .out_d(out_d)
            );
        end
    endgenerate

    assign pre_valid = vld[15];
    assign out_valid = vld[17];
endmodule

`default_nettype wire
