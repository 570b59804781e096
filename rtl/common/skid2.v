// SPDX-License-Identifier: Apache-2.0
// skid2: two-entry register slice. All outputs are registers, so it cuts the
// timing path of data, valid and ready alike.
//
// Latency    1 cycle. Throughput one word per cycle.
// in_ready   0 while rst_n = 0 and in the cycle after, then 0 exactly while
//            the second entry is occupied.
//
// WIDTH >= 1.
`default_nettype none

module skid2 #(
    parameter WIDTH = 32
) (
    input  wire             clk,
    input  wire             rst_n,

    input  wire             in_valid,
    output wire             in_ready,
    input  wire [WIDTH-1:0] in_data,

    output wire             out_valid,
    input  wire             out_ready,
    output wire [WIDTH-1:0] out_data
);

    reg             ready_q, valid_q, spare_q;
    reg [WIDTH-1:0] data_q, spare_data_q;

    wire push = in_valid && ready_q;
    wire free = !valid_q || out_ready;      // the first entry can be loaded
    wire park = push && !free;              // the word waits in the second entry

    always @(posedge clk) begin
        if (!rst_n) begin
            ready_q <= 1'b0;
            valid_q <= 1'b0;
            spare_q <= 1'b0;
        end else begin
            ready_q <= !(park || (spare_q && !free));
            spare_q <= park || (spare_q && !free);
            valid_q <= !free || spare_q || push;
        end
        if (free && spare_q) data_q <= spare_data_q;
        else if (free && push) data_q <= in_data;
        if (park) spare_data_q <= in_data;
    end

    assign in_ready  = ready_q;
    assign out_valid = valid_q;
    assign out_data  = data_q;

endmodule

`default_nettype wire
