// SPDX-License-Identifier: Apache-2.0
// Portable form of the tensor array: 16 dot products of 32 signed 7x7 products, written as plain
// 32-bit multiply-add. Same latency as the packed form (17 cycles): the sums, not the operands, wait in
// a small ring, so a cycle without an operation computes and moves nothing.
// `vld[n]` = operands were presented n cycles ago. Throughput: one entry pair a cycle.
// Specification: docs/spec/cluster.md 4.2.
`default_nettype none

module mg_array_plain (
    input  wire         clk,
    input  wire         rst_n,
    input  wire [16:0]  vld,
    input  wire [895:0] in_a,
    input  wire [895:0] in_b,
    output wire [303:0] out_d
);
    // One operand element a 32-bit word, sign-extended once: row i of A at word 32*i + k, column j of B at
    // word 32*j + k. Synthesis trims the copies of the sign.
    reg [4095:0] a_q;
    reg [4095:0] b_q;
    reg [303:0]  dot_q;
    reg [4:0]    wr_ptr_q;
    reg [4:0]    rd_ptr_q;

    function automatic signed [31:0] dot(input [1023:0] a, input [1023:0] b);
        integer k;
        begin
            dot = 32'sd0;
            for (k = 0; k < 32; k = k + 1)
                dot = dot + $signed(a[32*k +: 32]) * $signed(b[32*k +: 32]);
        end
    endfunction

    genvar n;
    genvar i;
    genvar j;
    generate
        for (n = 0; n < 128; n = n + 1) begin : g_operand
            always @(posedge clk) begin
                if (vld[0]) begin
                    a_q[32*n +: 32] <= {{25{in_a[7*n+6]}}, in_a[7*n +: 7]};
                    b_q[32*n +: 32] <= {{25{in_b[7*(4*(n%32)+n/32)+6]}}, in_b[7*(4*(n%32)+n/32) +: 7]};
                end
            end
        end
        for (i = 0; i < 4; i = i + 1) begin : g_row
            for (j = 0; j < 4; j = j + 1) begin : g_col
                wire [31:0] sum = dot(a_q[1024*i +: 1024], b_q[1024*j +: 1024]);
                wire unused_sum = &{1'b0, sum[31:19]};     // copies of bit 18
                always @(posedge clk) if (vld[1]) dot_q[19*(4*i+j) +: 19] <= sum[18:0];
            end
        end
    endgenerate

    always @(posedge clk) begin
        if (!rst_n) begin
            wr_ptr_q <= 5'd0;
            rd_ptr_q <= 5'd0;
        end else begin
            if (vld[2])  wr_ptr_q <= wr_ptr_q + 5'd1;
            if (vld[16]) rd_ptr_q <= rd_ptr_q + 5'd1;
        end
    end

    wire unused_vld = &{1'b0, vld[15:3]};

    ram_sdp #(.WIDTH(304), .DEPTH(32), .PRIM("distributed"), .READ_LAT(1)) u_ring (
        .clk    (clk),
        .wr_en  (vld[2]),
        .wr_addr(wr_ptr_q),
        .wr_data(dot_q),
        .rd_en  (vld[16]),
        .rd_addr(rd_ptr_q),
        .rd_data(out_d)
    );
endmodule

`default_nettype wire
