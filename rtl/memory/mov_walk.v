// SPDX-License-Identifier: Apache-2.0
// mov_walk: one address walker of the memory mover, up to six nested dimensions.
//
// Keeps for every dimension the address at which its present iteration began, so a
// step is one addition: the innermost dimension that is not at its end adds its
// stride, and everything inside starts there. Sums are exact.
// Latency    the first element one cycle after load, the next one cycle after step.
// Throughput one element per cycle.
// addr       signed; an address outside 0..2^40-1 is not legal, the user judges it.
// Layouts    as in mov_regs, one walker.
// Spec       docs/spec/memory.md 12.2
`default_nettype none

module mov_walk (
    input  wire         clk,

    input  wire         load,
    input  wire         step,

    input  wire [39:0]  base,
    input  wire [2:0]   ndim,
    input  wire [395:0] dims,
    input  wire [63:0]  windows,

    output wire [55:0]  addr,
    output wire         valid,         // inside both windows
    output reg          ended          // the last element has been passed
);

    reg  [95:0]  at_q;                 // indices
    reg  [335:0] from_q;               // 56 bits a dimension
    reg  [215:0] axis0_q, axis1_q;     // 36 bits a dimension

    // The dimension that advances: innermost first.
    reg  [5:0]  more;
    reg  [2:0]  who;
    reg  [55:0] sum;
    reg  [35:0] sum0, sum1;
    reg  [31:0] stride;
    reg  [15:0] jump;
    reg  [1:0]  axis;
    integer     d, e;

    always @* begin
        who = 3'd0; stride = 32'd0; jump = 16'd0; axis = 2'd0;
        sum = 56'd0; sum0 = 36'd0; sum1 = 36'd0;
        for (d = 0; d < 6; d = d + 1) begin
            more[d] = d < {29'd0, ndim} && at_q[16*d +: 16] != dims[66*d +: 16] - 16'd1;
            if (more[d]) begin
                who    = d[2:0];
                stride = dims[66*d+16 +: 32];
                axis   = dims[66*d+48 +: 2];
                jump   = dims[66*d+50 +: 16];
                sum    = from_q[56*d +: 56];
                sum0   = axis0_q[36*d +: 36];
                sum1   = axis1_q[36*d +: 36];
            end
        end
        sum = sum + {{24{stride[31]}}, stride};
        if (axis == 2'd1) sum0 = sum0 + {{20{jump[15]}}, jump};
        if (axis == 2'd2) sum1 = sum1 + {{20{jump[15]}}, jump};
    end

    always @(posedge clk) begin
        if (load) begin
            ended   <= 1'b0;
            at_q    <= 96'd0;
            from_q  <= {6{16'd0, base}};
            axis0_q <= {6{{20{windows[15]}}, windows[15:0]}};
            axis1_q <= {6{{20{windows[47]}}, windows[47:32]}};
        end else if (step) begin
            if (more == 6'd0) ended <= 1'b1;
            for (e = 0; e < 6; e = e + 1) begin
                if (more != 6'd0 && e >= {29'd0, who}) begin
                    from_q[56*e +: 56]  <= sum;
                    axis0_q[36*e +: 36] <= sum0;
                    axis1_q[36*e +: 36] <= sum1;
                    at_q[16*e +: 16]    <= e == {29'd0, who} ? at_q[16*e +: 16] + 16'd1 : 16'd0;
                end
            end
        end
    end

    // Dimensions that do not take part follow the innermost one.
    wire [35:0] axis0 = axis0_q[215:180];
    wire [35:0] axis1 = axis1_q[215:180];
    wire        in0   = windows[31:16] == 16'd0 || (axis0[35:16] == 20'd0 && axis0[15:0] < windows[31:16]);
    wire        in1   = windows[63:48] == 16'd0 || (axis1[35:16] == 20'd0 && axis1[15:0] < windows[63:48]);

    assign addr  = from_q[335:280];
    assign valid = in0 && in1;

endmodule

`default_nettype wire
