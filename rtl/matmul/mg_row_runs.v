// SPDX-License-Identifier: Apache-2.0
// mg_row_runs: where the rows of a row-major DRAIN end and begin
// (docs/spec/cluster.md 5.6). Combinational outputs, state moves with `pop`.
//
// `ends`     the word popped now is the last of its row and the next row lies
//            apart, so the burst ends with it.
// `next`     byte address of the next row.
// `apart` = 0 (also every transfer that is not row-major): one run, `ends` stays 0.
`default_nettype none

module mg_row_runs (
    input  wire        clk,
    input  wire        open,
    input  wire        apart,
    input  wire [39:0] base,
    input  wire [5:0]  words,           // of a row
    input  wire [21:0] pitch,           // words between rows
    input  wire        pop,
    output wire        ends,
    output wire [39:0] next
);

    reg        apart_q;
    reg [5:0]  words_q, left_q;
    reg [21:0] pitch_q;
    reg [39:0] next_q;

    assign ends = apart_q && (left_q == 6'd1);
    assign next = next_q;

    always @(posedge clk) begin
        if (open) begin
            apart_q <= apart;
            words_q <= words;
            left_q  <= words;
            pitch_q <= pitch;
            next_q  <= base + {13'd0, pitch, 5'd0};
        end else if (pop && apart_q) begin
            left_q <= ends ? words_q : left_q - 6'd1;
            if (ends) next_q <= next_q + {13'd0, pitch_q, 5'd0};
        end
    end

endmodule

`default_nettype wire
