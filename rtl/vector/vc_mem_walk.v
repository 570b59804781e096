// SPDX-License-Identifier: Apache-2.0
// vc_mem_walk: one walk of an address descriptor, dimension 0 fastest
// (docs/spec/vector.md 8).
//
// `addr` is the address of the current word, without wrapping (42 bits signed).
// A step moves on by one address per cycle; past the end the last address stays.
// Latency    addr of word 0 in the cycle after `load`.
//
// run, by    a step over `by` words of dimension 0 at once, 1..left0, for a
//            dimension of stride 32; by = 1 with run = 0 is the plain step.
// stride, bound  of dimensions 0..3, stable from `load` on; bounds >= 1.
`default_nettype none

module vc_mem_walk (
    input  wire        clk,

    input  wire        load,
    input  wire [41:0] start,
    input  wire [71:0] stride,          // dimension d at [18*d +: 18], signed
    input  wire [63:0] bound,           // dimension d at [16*d +: 16]

    input  wire        step,
    input  wire        run,
    input  wire [8:0]  by,

    output wire [41:0] addr,
    output wire [15:0] left0,           // words left in dimension 0, the current one included
    output wire        final_step       // a step now leaves the walk
);

    reg [41:0] a_q, r1_q, r2_q, r3_q;   // r<d>: address with the indices below d at 0
    reg [15:0] c0_q, c1_q, c2_q, c3_q;  // indices left in each dimension

    wire row_end = c0_q == {7'd0, by};
    wire last1   = c1_q == 16'd1;
    wire last2   = c2_q == 16'd1;
    wire last3   = c3_q == 16'd1;
    wire up1     = row_end && !last1;
    wire up2     = row_end && last1 && !last2;
    wire up3     = row_end && last1 && last2 && !last3;

    reg [41:0] from, add;
    always @* begin
        from = r3_q;
        add  = {{24{stride[71]}}, stride[71:54]};
        if (!row_end) begin
            from = a_q;
            add  = run ? {28'd0, by, 5'd0} : {{24{stride[17]}}, stride[17:0]};
        end else if (!last1) begin
            from = r1_q;
            add  = {{24{stride[35]}}, stride[35:18]};
        end else if (!last2) begin
            from = r2_q;
            add  = {{24{stride[53]}}, stride[53:36]};
        end
    end
    wire [41:0] next = from + add;

    assign addr       = a_q;
    assign left0      = c0_q;
    assign final_step = row_end && last1 && last2 && last3;

    always @(posedge clk) begin
        if (load) begin
            a_q  <= start;
            r1_q <= start;
            r2_q <= start;
            r3_q <= start;
            c0_q <= bound[15:0];
            c1_q <= bound[31:16];
            c2_q <= bound[47:32];
            c3_q <= bound[63:48];
        end else if (step && !final_step) begin
            a_q  <= next;
            c0_q <= row_end ? bound[15:0] : c0_q - {7'd0, by};
            if (row_end) begin
                c1_q <= up1 ? c1_q - 16'd1 : bound[31:16];
                r1_q <= next;
            end
            if (up2 || up3) begin
                c2_q <= up2 ? c2_q - 16'd1 : bound[47:32];
                r2_q <= next;
            end
            if (up3) begin
                c3_q <= c3_q - 16'd1;
                r3_q <= next;
            end
        end
    end

endmodule

`default_nettype wire
