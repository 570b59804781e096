// SPDX-License-Identifier: Apache-2.0
// Bench top of mg_datapath: only the control signals Python touches; the player sits below.
`default_nettype none

module tb_mg_datapath #(
    parameter TILES      = 512,
    parameter ACC_MW     = 14,
    parameter TILE_LAT   = 2,
    parameter TILE_BANKS = 2,
    parameter MODEL      = 1
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        go,
    input  wire [31:0] run_id,
    input  wire [31:0] n_pool,
    input  wire [31:0] n_peer,
    input  wire [31:0] n_iss,
    input  wire [31:0] n_x,
    output wire        done,
    output wire [31:0] n_emit,
    output wire [31:0] n_send,
    output wire [31:0] n_sum,
    output wire [31:0] twin_diff,
    output wire        inflight,
    output wire        arr_inflight
);
    mg_player #(
        .TILES(TILES), .ACC_MW(ACC_MW), .TILE_LAT(TILE_LAT), .TILE_BANKS(TILE_BANKS), .MODEL(MODEL)
    ) u_player (
        .clk(clk), .rst_n(rst_n), .go(go), .run_id(run_id),
        .n_pool(n_pool), .n_peer(n_peer), .n_iss(n_iss), .n_x(n_x), .done(done),
        .n_emit(n_emit), .n_send(n_send), .n_sum(n_sum), .twin_diff(twin_diff),
        .inflight(inflight), .arr_inflight(arr_inflight)
    );
endmodule

`default_nettype wire
