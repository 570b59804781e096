// SPDX-License-Identifier: Apache-2.0
// Tile store of the matmul cluster: TILE_BANKS banks of TILES sub-tiles, two read clients.
//   wr_*   one write port (the accumulator)
//   acc_*  read of the accumulator, x_* read of the drain; both give data TILE_LAT cycles after rd_en.
// The two clients MUST NOT read the same bank in one cycle (the caller arbitrates).
// A read that meets a write of its address in the same cycle gets the NEW value (the RAM itself returns
// the old one), so two commands on one address may follow each other after TILE_LAT + 3 cycles.
// Legal: TILES power of two 16..4096, TILE_LAT 1..2, TILE_BANKS 1..2 (with 1 the bank inputs are ignored).
// Specification: docs/spec/cluster.md 1.3, 7.
`default_nettype none

module mg_tile_store #(
    parameter TILES      = 512,
    parameter WIDTH      = 352,
    parameter TILE_PRIM  = "block",
    parameter TILE_LAT   = 2,
    parameter TILE_BANKS = 2
) (
    input  wire                     clk,
    input  wire                     rst_n,

    input  wire                     wr_en,
    input  wire                     wr_bank,
    input  wire [$clog2(TILES)-1:0] wr_addr,
    input  wire [WIDTH-1:0]         wr_data,

    input  wire                     acc_rd_en,
    input  wire                     acc_bank,
    input  wire [$clog2(TILES)-1:0] acc_addr,
    output wire [WIDTH-1:0]         acc_data,

    input  wire                     x_rd_en,
    input  wire                     x_bank,
    input  wire [$clog2(TILES)-1:0] x_addr,
    output wire [WIDTH-1:0]         x_data
);
    localparam AW = $clog2(TILES);

    wire [TILE_BANKS-1:0]       collide;
    wire [WIDTH*TILE_BANKS-1:0] bank_data;
    wire [WIDTH-1:0]            fwd_data;

    genvar b;
    generate
        for (b = 0; b < TILE_BANKS; b = b + 1) begin : g_bank
            wire              mine_wr  = wr_en     && (TILE_BANKS == 1 || wr_bank  == (b == 1));
            wire              mine_acc = acc_rd_en && (TILE_BANKS == 1 || acc_bank == (b == 1));
            wire              mine_x   = x_rd_en   && (TILE_BANKS == 1 || x_bank   == (b == 1));
            wire [AW-1:0]     rd_addr  = mine_acc ? acc_addr : x_addr;
            wire [WIDTH-1:0]  ram_data;
            reg  [TILE_LAT:1] fwd_q;
            wire [TILE_LAT:0] fwd = {fwd_q, collide[b]};

            assign collide[b] = mine_wr && (mine_acc || mine_x) && rd_addr == wr_addr;

            always @(posedge clk) begin
                if (!rst_n) fwd_q <= {TILE_LAT{1'b0}};
                else        fwd_q <= fwd[TILE_LAT-1:0];
            end

            ram_sdp #(
                .WIDTH(WIDTH), .DEPTH(TILES), .PRIM(TILE_PRIM), .READ_LAT(TILE_LAT)
            ) u_ram (
                .clk    (clk),
                .wr_en  (mine_wr),
                .wr_addr(wr_addr),
                .wr_data(wr_data),
                .rd_en  (mine_acc || mine_x),
                .rd_addr(rd_addr),
                .rd_data(ram_data)
            );

            assign bank_data[WIDTH*b +: WIDTH] = fwd[TILE_LAT] ? fwd_data : ram_data;
        end

        // At most one collision a cycle: there is one write port. A plain delay of the written word.
        reg [WIDTH-1:0] fwd1_q;
        always @(posedge clk) if (|collide) fwd1_q <= wr_data;
        if (TILE_LAT == 1) begin : g_fwd1
            assign fwd_data = fwd1_q;
        end else begin : g_fwd2
            reg             any1_q;
            reg [WIDTH-1:0] fwd2_q;
            always @(posedge clk) begin
                if (!rst_n) any1_q <= 1'b0;
                else        any1_q <= |collide;
                if (any1_q) fwd2_q <= fwd1_q;
            end
            assign fwd_data = fwd2_q;
        end

        if (TILE_BANKS == 1) begin : g_one
            wire unused_bank = &{1'b0, wr_bank, acc_bank, x_bank};
            assign acc_data = bank_data;
            assign x_data   = bank_data;
        end else begin : g_two
            reg  [TILE_LAT:1] acc_bank_q;
            reg  [TILE_LAT:1] x_bank_q;
            wire [TILE_LAT:0] acc_sel = {acc_bank_q, acc_bank};
            wire [TILE_LAT:0] x_sel   = {x_bank_q, x_bank};
            always @(posedge clk) begin
                acc_bank_q <= acc_sel[TILE_LAT-1:0];
                x_bank_q   <= x_sel[TILE_LAT-1:0];
            end
            assign acc_data = acc_sel[TILE_LAT] ? bank_data[WIDTH +: WIDTH] : bank_data[0 +: WIDTH];
            assign x_data   = x_sel[TILE_LAT]   ? bank_data[WIDTH +: WIDTH] : bank_data[0 +: WIDTH];
        end
    endgenerate
endmodule

`default_nettype wire
