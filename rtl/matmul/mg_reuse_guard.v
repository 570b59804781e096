// SPDX-License-Identifier: Apache-2.0
// Reuse interlock of the accumulator: `hit` = 1 when a command on {bank, addr} in this slot would be
// closer than REUSE_MIN = TILE_LAT + 3 cycles to another command on that sub-tile.
//   near_*  NEAR pipeline stages around the slot (commands that left it and commands that will reach it)
//   past_*  PAST earlier drain reads, which do not travel through the accumulator pipeline
// Combinational. Specification: docs/spec/cluster.md 4.3.
`default_nettype none

module mg_reuse_guard #(
    parameter KEY_W = 10,
    parameter NEAR  = 9,
    parameter PAST  = 4
) (
    input  wire [KEY_W-1:0]      key,
    input  wire [NEAR-1:0]       near_valid,
    input  wire [KEY_W*NEAR-1:0] near_key,
    input  wire [PAST-1:0]       past_valid,
    input  wire [KEY_W*PAST-1:0] past_key,
    output wire                  hit
);
    wire [NEAR-1:0] near_hit;
    wire [PAST-1:0] past_hit;

    genvar n;
    generate
        for (n = 0; n < NEAR; n = n + 1) begin : g_near
            assign near_hit[n] = near_valid[n] && near_key[KEY_W*n +: KEY_W] == key;
        end
        for (n = 0; n < PAST; n = n + 1) begin : g_past
            assign past_hit[n] = past_valid[n] && past_key[KEY_W*n +: KEY_W] == key;
        end
    endgenerate

    assign hit = |near_hit || |past_hit;
endmodule

`default_nettype wire
