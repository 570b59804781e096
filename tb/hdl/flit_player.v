// SPDX-License-Identifier: Apache-2.0
// flit_player: plays the flits of a file onto a valid/ready stream.
//
// A pulse on load reads `count` words from FILE in the working directory. Bits
// [303:288] of a word are the idle cycles before it is offered, [287:0] the flit.
`default_nettype none

module flit_player #(
    parameter FILE  = "stim.hex",
    parameter DEPTH = 32768
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         load,
    input  wire [15:0]  count,
    output wire         done,
    output wire         out_valid,
    output wire [287:0] out_data,
    input  wire         out_ready
);
    reg [303:0] mem [0:DEPTH-1];
    reg [303:0] word;
    reg [15:0]  next_q, total_q, gap_q;
    reg         valid_q;
    reg [287:0] data_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            next_q  <= 16'd0;
            total_q <= 16'd0;
            gap_q   <= 16'd0;
            valid_q <= 1'b0;
        end else if (load) begin
            $readmemh(FILE, mem, 0, {16'd0, count} - 1);
            next_q  <= 16'd0;
            total_q <= count;
            gap_q   <= 16'd0;
            valid_q <= 1'b0;
        end else if (!valid_q || out_ready) begin
            valid_q <= 1'b0;
            if (next_q != total_q) begin
                word = mem[next_q[14:0]];
                if (gap_q == word[303:288]) begin
                    valid_q <= 1'b1;
                    data_q  <= word[287:0];
                    next_q  <= next_q + 16'd1;
                    gap_q   <= 16'd0;
                end else begin
                    gap_q   <= gap_q + 16'd1;
                end
            end
        end
    end

    assign done      = next_q == total_q && !valid_q;
    assign out_valid = valid_q;
    assign out_data  = data_q;
endmodule

`default_nettype wire
