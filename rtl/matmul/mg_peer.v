// SPDX-License-Identifier: Apache-2.0
// mg_peer: the accumulator stream of buffer 2: pairs of granules become
// ADD_PEER commands (docs/spec/cluster.md 8.4).
//
// A stream is open from its accepted descriptor to the command of its last
// sub-tile. The low half is stored; the high half is taken from cud_rx in the
// very cycle in which the command issues, so the burst ends, and is
// acknowledged, only when nothing can overtake it any more.
// `tiles_quiet`: no sweep runs and all its tile writes are done.
// An explicit DRAIN that runs has read sub-tile t first (drain_all, drain_t).
//
// Throughput one sub-tile in two cycles (two granules arrive per sub-tile).
// WDOG: cycles without a consumed granule after which `abort` rejects the rest
// of the burst, 0 = never. At most 2^24 - 1.
`default_nettype none

module mg_peer #(
    parameter TILES  = 512,
    parameter TILE_W = 352,
    parameter WDOG   = 65536,
    parameter TW     = $clog2(TILES)
) (
    input  wire              clk,
    input  wire              rst_n,

    input  wire              desc_accept,   // descriptor of buffer 2 taken, reason 0
    input  wire              burst_end,     // of the open burst, rejected or not
    output wire              open,
    output wire              abort,

    input  wire              wr_valid,
    output wire              wr_ready,
    input  wire [TW:0]       wr_granule,
    input  wire [255:0]      wr_data,
    input  wire              wr_last,

    input  wire              tiles_quiet,
    input  wire              drain_all,
    input  wire [TW:0]       drain_t,
    input  wire [TW:0]       drain_n,

    output wire              x_valid,
    output wire [TW-1:0]     x_addr,
    output wire [TILE_W-1:0] x_peer,
    input  wire              x_ready
);

    localparam [23:0] WDOG_LAST = WDOG[23:0] - 24'd1;

    reg         open_q;
    reg [255:0] low_q;
    reg [23:0]  wdog_q;

    wire          high = wr_granule[0];
    wire [TW-1:0] t    = wr_granule[TW:1];
    wire          was_read = drain_all || ({1'b0, t} < drain_t) || ({1'b0, t} >= drain_n);
    wire          take = wr_valid && wr_ready;

    assign open     = open_q;
    assign x_valid  = open_q && wr_valid && high && tiles_quiet && was_read && !abort;
    assign x_addr   = t;
    assign x_peer   = {wr_data[TILE_W-257:0], low_q};
    // Without an open stream words are left over from an aborted one.
    assign wr_ready = !open_q || (high ? (x_valid && x_ready) : !abort);
    assign abort    = (WDOG != 0) && open_q && (wdog_q == WDOG_LAST);

    always @(posedge clk) begin
        if (!rst_n) open_q <= 1'b0;
        else if (desc_accept) open_q <= 1'b1;
        else if (abort || burst_end || (take && wr_last)) open_q <= 1'b0;

        if (!open_q || take) wdog_q <= 24'd0;
        else wdog_q <= wdog_q + 24'd1;

        if (take && !high) low_q <= wr_data;
    end

    // The high half carries TILE_W - 256 bits; the rest is padding.
    wire unused = &{1'b0, wr_data};

endmodule

`default_nettype wire
