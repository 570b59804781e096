// SPDX-License-Identifier: Apache-2.0
// One packed multiplier of the tensor array: two MACs per multiplier, shaped so that
// synthesis maps it on one DSP48E2 (pre-adder, multiplier, 48-bit adder, cascade).
//   p = ((a_hi << 19) + a_lo) * b + (CASCADE ? pcin : 0) + (ADD_C ? c : 0)
// Latency: a_hi, a_lo, b -> p 4 cycles, c -> p 2, pcin -> p 1. Throughput: one operation a cycle.
// `en[s]` enables register stage s; no datapath reset (the pipeline's valid bits qualify the data).
// ADD_C, CASCADE: 0 or 1.
// Specification: docs/spec/cluster.md 4.2.
`default_nettype none

module mg_mac #(
    parameter CASCADE = 1,
    parameter ADD_C   = 0
) (
    input  wire        clk,
    input  wire [3:0]  en,
    input  wire [6:0]  a_hi,
    input  wire [6:0]  a_lo,
    input  wire [6:0]  b,
    input  wire [47:0] c,
    input  wire [47:0] pcin,
    output wire [47:0] p
);
    reg signed [26:0] a_q;
    reg signed [26:0] d_q;
    reg signed [26:0] ad_q;
    reg signed [6:0]  b1_q;
    reg signed [6:0]  b2_q;
    reg signed [33:0] m_q;
    reg signed [47:0] p_q;

    // A row on the high field: 19 is the largest shift whose sum with the low row fits 27 bits.
    wire signed [26:0] a_in = {a_hi[6], a_hi, 19'd0};
    wire signed [26:0] d_in = {{20{a_lo[6]}}, a_lo};

    wire signed [47:0] m_ext = {{14{m_q[33]}}, m_q};
    wire signed [47:0] cascade_sum;
    wire signed [47:0] p_sum;

    generate
        if (CASCADE != 0) begin : g_cascade
            assign cascade_sum = m_ext + $signed(pcin);
        end else begin : g_first
            wire unused_pcin = &{1'b0, pcin};
            assign cascade_sum = m_ext;
        end
        if (ADD_C != 0) begin : g_c
            reg signed [47:0] c_q;
            always @(posedge clk) if (en[2]) c_q <= c;
            assign p_sum = cascade_sum + c_q;
        end else begin : g_no_c
            wire unused_c = &{1'b0, c};
            assign p_sum = cascade_sum;
        end
    endgenerate

    always @(posedge clk) begin
        if (en[0]) begin
            a_q  <= a_in;
            d_q  <= d_in;
            b1_q <= b;
        end
        if (en[1]) begin
            ad_q <= a_q + d_q;
            b2_q <= b1_q;
        end
        if (en[2]) m_q <= ad_q * b2_q;
        if (en[3]) p_q <= p_sum;
    end

    assign p = p_q;
endmodule

`default_nettype wire
