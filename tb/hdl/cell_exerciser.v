// SPDX-License-Identifier: Apache-2.0
// cell_exerciser: source, sink and model of one FIFO-like cell under test.
// bad sticks when the cell breaks its contract: data out of order, a word lost
// or made up, an offered word withdrawn or changed, ready in reset or wrong
// about being full, a wrong level, or more than one cycle from in to out.
`default_nettype none

module cell_exerciser #(
    parameter DEPTH     = 2,
    parameter HAS_LEVEL = 1,
    parameter SALT      = 0
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire [8:0]  push_rate,
    input  wire [8:0]  pop_rate,
    input  wire [31:0] seed,
    input  wire [31:0] limit,

    output wire        in_valid,
    input  wire        in_ready,
    output wire [39:0] in_data,
    input  wire        out_valid,
    output wire        out_ready,
    input  wire [39:0] out_data,
    input  wire [31:0] level,

    output wire        done,
    output reg         bad,
    output reg         hit_full,
    output reg         hit_drained,
    output reg  [31:0] popped
);

    reg  [31:0] pushed;
    reg  [63:0] rng;
    reg  [1:0]  up;          // edges since reset release, saturating
    reg         was_reset;
    wire [31:0] stored = pushed - popped;

    function [63:0] xorshift(input [63:0] s);
        reg [63:0] t;
        begin
            t = s ^ (s << 13);
            t = t ^ (t >> 7);
            xorshift = t ^ (t << 17);
        end
    endfunction

    function [39:0] word(input [31:0] n);
        word = {n, 8'h00} * 40'h5D_EECE_66DB + {8'd0, n};
    endfunction

    assign in_valid  = rst_n && pushed != limit && {1'b0, rng[7:0]} < push_rate;
    assign in_data   = in_valid ? word(pushed) : rng[63:24];
    assign out_ready = {1'b0, rng[15:8]} < pop_rate;
    assign done      = popped == limit;

    always @(posedge clk) begin
        was_reset <= !rst_n;
        if (!rst_n) begin
            pushed      <= 0;
            popped      <= 0;
            bad         <= was_reset && (in_ready || out_valid);
            hit_full    <= 0;
            hit_drained <= 0;
            up          <= 0;
            rng         <= {seed, 32'h1234_5678 + SALT[31:0]};
        end else begin
            rng <= xorshift(rng);
            if (up != 2) up <= up + 1;
            if (in_valid && in_ready) pushed <= pushed + 1;
            if (out_valid && out_ready) begin
                popped <= popped + 1;
                if (out_data != word(popped)) bad <= 1;
            end
            // first-word fall-through after one cycle, and never without a word
            if (out_valid != (stored != 0)) bad <= 1;
            if (out_valid && out_data != word(popped)) bad <= 1;
            if (up == 2 && in_ready != (stored < DEPTH)) bad <= 1;
            if (HAS_LEVEL != 0 && level != stored) bad <= 1;
            if (stored == DEPTH) hit_full <= 1;
            if (hit_full && stored == 0) hit_drained <= 1;
        end
    end

endmodule

`default_nettype wire
