// SPDX-License-Identifier: Apache-2.0
// mg_counters: the two cycle counters of CU_DBG (docs/spec/cluster.md 9.2).
//
// memory   cycles from the acceptance of a FILL to its exec_done, that cycle
//          included; `fill` falls one cycle before exec_done.
// compute  cycles with a sweep issuing or a tile write of one still to come.
// Modulo 2^32, cleared by reset only.
`default_nettype none

module mg_counters (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        fill,
    input  wire        sweep,
    output wire [63:0] dbg_ctr
);

    reg [31:0] memory_q, compute_q;
    reg        fill_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            memory_q  <= 32'd0;
            compute_q <= 32'd0;
            fill_q    <= 1'b0;
        end else begin
            fill_q <= fill;
            if (fill || fill_q) memory_q <= memory_q + 32'd1;
            if (sweep) compute_q <= compute_q + 32'd1;
        end
    end

    assign dbg_ctr = {compute_q, memory_q};

endmodule

`default_nettype wire
