// SPDX-License-Identifier: Apache-2.0
// skid_props: link_slice against a two-word model and link properties L1, L2,
// for the Yosys SAT proof. The flit is narrowed by looking at two bits of it.
`default_nettype none

module skid_props (
    input wire       clk,
    input wire       rst_n,
    input wire       in_valid,
    input wire [1:0] in_data,
    input wire       out_ready
);

    wire       in_ready, out_valid;
    wire [1:0] out_data;

    skid2 #(.WIDTH(2)) dut (
        .clk(clk), .rst_n(rst_n),
        .in_valid(in_valid), .in_ready(in_ready), .in_data(in_data),
        .out_valid(out_valid), .out_ready(out_ready), .out_data(out_data));

    reg [3:0] words;
    reg [1:0] count;
    reg       live, was_live, held;
    reg [1:0] held_data;
    wire      push = in_valid && in_ready;
    wire      pop  = out_valid && out_ready;
    wire [3:0] after_pop = pop ? {2'b00, words[3:2]} : words;
    wire [1:0] kept      = count - {1'b0, pop};

    initial live = 1'b0;
    initial was_live = 1'b0;
    always @(posedge clk) begin
        live     <= live || !rst_n;
        was_live <= live && rst_n;
        held     <= rst_n && live && out_valid && !out_ready;
        held_data <= out_data;
        if (!rst_n) begin
            count <= 2'd0;
            words <= 4'd0;
        end else begin
            count <= kept + {1'b0, push};
            words <= after_pop;
            if (push) words[2*kept[0] +: 2] <= in_data;
        end
    end

    always @* begin
        if (!live) assume (!rst_n);
        if (live) begin
            assert (count <= 2'd2);
            assert (out_valid == (count != 0));
            if (was_live) assert (in_ready == (count != 2'd2));
            if (out_valid) assert (out_data == words[1:0]);
            if (held) assert (out_valid && out_data == held_data);
        end
    end

endmodule

`default_nettype wire
