// SPDX-License-Identifier: Apache-2.0
// fifo_props: fifo_sync against a shift-register model, for the Yosys SAT proof.
// All inputs are free; reset is asserted in the first step.
`default_nettype none

module fifo_props (
    input wire       clk,
    input wire       rst_n,
    input wire       in_valid,
    input wire [1:0] in_data,
    input wire       out_ready
);

    wire       in_ready, out_valid;
    wire [1:0] out_data;
    wire [2:0] level;

    fifo_sync #(.WIDTH(2), .DEPTH(4)) dut (
        .clk(clk), .rst_n(rst_n),
        .in_valid(in_valid), .in_ready(in_ready), .in_data(in_data),
        .out_valid(out_valid), .out_ready(out_ready), .out_data(out_data), .level(level));

    reg [7:0] words;          // oldest lowest
    reg [2:0] count;
    reg       live, was_live;
    wire      push = in_valid && in_ready;
    wire      pop  = out_valid && out_ready;
    wire [7:0] after_pop = pop ? {2'b00, words[7:2]} : words;
    wire [2:0] kept      = count - {2'b00, pop};

    initial live = 1'b0;
    initial was_live = 1'b0;
    always @(posedge clk) begin
        live     <= live || !rst_n;
        was_live <= live && rst_n;
        if (!rst_n) begin
            count <= 3'd0;
            words <= 8'd0;
        end else begin
            count <= kept + {2'b00, push};
            words <= after_pop;
            if (push) words[2*kept[1:0] +: 2] <= in_data;
        end
    end

    always @* begin
        if (!live) assume (!rst_n);
        if (live) begin
            assert (level == count);
            assert (out_valid == (count != 0));
            assert (count <= 3'd4);
            if (count == 3'd4) assert (!in_ready);
            if (was_live) assert (in_ready == (count != 3'd4));
            if (out_valid) assert (out_data == words[1:0]);
        end
    end

endmodule

`default_nettype wire
