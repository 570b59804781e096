// SPDX-License-Identifier: Apache-2.0
// Scale of a lane of the quantiser from its 32 FP16 magnitudes, which come as two words (in_data with en[0]).
//   en[0] a word; en[1] one cycle after the lane's second word, then en[2], en[3]; `first` one cycle after the
//   first word. Result after en[3], held: scale 2^(exponent-20) * (1 + mantissa/8), special = 1 if the peak has
//   exponent 31.
// Latency 4 cycles from the second word; one lane in 2 cycles.
// Specification: docs/spec/numerics.md 3.2, docs/spec/memory.md 13.1.
`default_nettype none

module mag_quant_scale (
    input  wire         clk,
    input  wire [3:0]   en,
    input  wire         first,
    /* verilator lint_off UNUSEDSIGNAL */
    input  wire [255:0] in_data,                           // signs are not looked at
    /* verilator lint_on UNUSEDSIGNAL */
    output reg  [4:0]   exponent_q,
    output reg  [2:0]   mantissa_q,
    output reg          special_q
);
    // ------------------------------------------------- peak of a word: 16 to 4, then 4 to 1 with the other half
    function automatic [14:0] larger(input [14:0] x, input [14:0] y);
        larger = (x > y) ? x : y;
    endfunction

    reg [59:0] four0_q;
    reg [14:0] half_q;
    reg [14:0] peak1_q;
    wire [14:0] word = larger(larger(four0_q[14:0], four0_q[29:15]), larger(four0_q[44:30], four0_q[59:45]));

    always @(posedge clk) begin
        if (en[0]) four0_q <= {
            larger(larger(in_data[254:240], in_data[238:224]), larger(in_data[222:208], in_data[206:192])),
            larger(larger(in_data[190:176], in_data[174:160]), larger(in_data[158:144], in_data[142:128])),
            larger(larger(in_data[126:112], in_data[110:96]), larger(in_data[94:80], in_data[78:64])),
            larger(larger(in_data[62:48], in_data[46:32]), larger(in_data[30:16], in_data[14:0]))};
        if (first) half_q  <= word;
        if (en[1]) peak1_q <= larger(half_q, word);
    end

    // ------------------------------------------------- significand 1024..2047; a subnormal peak is moved up
    reg              zero2_q;
    reg              special2_q;
    reg [9:0]        frac2_q;
    reg signed [5:0] exp2_q;

    always @(posedge clk) if (en[2]) begin : normalise
        reg [3:0] n;
        reg [9:0] v;
        v = peak1_q[9:0];
        n[3] = v[9:2] == 8'd0;
        if (n[3]) v = {v[1:0], 8'd0};
        n[2] = v[9:6] == 4'd0;
        if (n[2]) v = {v[5:0], 4'd0};
        n[1] = v[9:8] == 2'd0;
        if (n[1]) v = {v[7:0], 2'd0};
        n[0] = !v[9];
        if (n[0]) v = {v[8:0], 1'b0};
        zero2_q    <= peak1_q == 15'd0;
        special2_q <= peak1_q[14:10] == 5'd31;
        frac2_q    <= (peak1_q[14:10] != 5'd0) ? peak1_q[9:0] : {v[8:0], 1'b0};
        exp2_q     <= (peak1_q[14:10] != 5'd0) ? $signed({1'b0, peak1_q[14:10]}) : -$signed({2'd0, n});
    end

    // ------------------------------------------------- m8 = ceil(significand / 126), 16 and 17 one binade up
    always @(posedge clk) if (en[3]) begin : choose
        reg        up;
        reg [2:0]  m;
        reg signed [5:0] e;                                // exponent of the scale with its bias of 20
        up = frac2_q > 10'd866;
        if (frac2_q <= 10'd110)      m = 3'd1;
        else if (frac2_q <= 10'd236) m = 3'd2;
        else if (frac2_q <= 10'd362) m = 3'd3;
        else if (frac2_q <= 10'd488) m = 3'd4;
        else if (frac2_q <= 10'd614) m = 3'd5;
        else if (frac2_q <= 10'd740) m = 3'd6;
        else if (frac2_q <= 10'd866) m = 3'd7;
        else if (frac2_q <= 10'd992) m = 3'd0;
        else                         m = 3'd1;
        e = exp2_q - 6'sd1 + $signed({5'd0, up});
        exponent_q <= zero2_q ? 5'd20 : (e < 6'sd0) ? 5'd0 : e[4:0];
        mantissa_q <= zero2_q ? 3'd0 : m;
        special_q  <= special2_q;
    end
endmodule

`default_nettype wire
