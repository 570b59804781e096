// SPDX-License-Identifier: Apache-2.0
// sync_2ff_model: late arrival at a synchroniser. While tb_link_afifo.uncertain
// is 1, each bit of the last change of d that this clock has not sampled yet is
// sampled either old or new, by chance: bits that change together, and signals
// of different synchronisers, arrive up to one cycle apart.
`default_nettype none

module sync_2ff_model #(
    parameter WIDTH = 1
) (
    input  wire             clk,
    input  wire [WIDTH-1:0] d,
    output wire [WIDTH-1:0] seen
);

    reg [WIDTH-1:0] now, was;
    reg [31:0]      changes, changes_q;
    reg [31:0]      dice;

    initial begin
        now = 0;
        was = 0;
        changes = 0;
        changes_q = 0;
        dice = $random;
    end

    always @(d) begin
        was = now;
        now = d;
        changes = changes + 1;
    end

    always @(posedge clk) begin
        changes_q <= changes;
        dice <= dice * 32'd1664525 + 32'd1013904223;
    end

    wire [WIDTH-1:0] late = dice[31 -: WIDTH];
    assign seen = (tb_link_afifo.uncertain && changes != changes_q) ? (late & was) | (~late & d) : d;

endmodule

`default_nettype wire
