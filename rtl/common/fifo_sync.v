// SPDX-License-Identifier: Apache-2.0
// fifo_sync: single-clock FIFO, first-word fall-through, on ram_sdp.
//
// Latency    a word pushed in cycle k is on out_data in cycle k+1 if the FIFO
//            was empty (the RAM cannot be read that early: a bypass register
//            holds the word).
// Throughput one push and one pop per cycle, at every DEPTH, also when full
//            minus one; all DEPTH entries are usable.
// in_ready   a register: 0 while rst_n = 0 and in the cycle after, then
//            "level < DEPTH". A push is in_valid && in_ready, a pop is
//            out_valid && out_ready.
// level      words stored, 0..DEPTH, the one on out_data included.
//
// WIDTH >= 1, DEPTH a power of two >= 2, PRIM as in ram_sdp.
`default_nettype none

module fifo_sync #(
    parameter WIDTH = 32,
    parameter DEPTH = 16,
    parameter PRIM  = "distributed"
) (
    input  wire                   clk,
    input  wire                   rst_n,

    input  wire                   in_valid,
    output wire                   in_ready,
    input  wire [WIDTH-1:0]       in_data,

    output wire                   out_valid,
    input  wire                   out_ready,
    output wire [WIDTH-1:0]       out_data,

    output wire [$clog2(DEPTH):0] level
);

    localparam AW = $clog2(DEPTH);
    localparam [AW:0]   FULL  = {1'b1, {AW{1'b0}}};
    localparam [AW:0]   ONE   = {{AW{1'b0}}, 1'b1};
    localparam [AW-1:0] PTR_1 = ONE[AW-1:0];

    generate
        if (WIDTH < 1 || DEPTH < 2 || (DEPTH & (DEPTH - 1)) != 0) begin : g_illegal
            fifo_sync_illegal_parameters u_stop ();
        end
    endgenerate

    reg  [AW:0]      level_q;
    reg  [AW-1:0]    wr_ptr_q, rd_ptr_q;
    reg              ready_q;
    reg              bypass_q;        // the head is in bypass_data_q, not in the RAM register
    reg  [WIDTH-1:0] bypass_data_q;

    wire             push = in_valid && ready_q;
    wire             pop  = out_valid && out_ready;
    wire [AW:0]      level_d = level_q + {{AW{1'b0}}, push} - {{AW{1'b0}}, pop};
    wire             only_new = (level_q == {(AW+1){1'b0}}) || (level_q == ONE && pop);
    wire             load_bypass = push && only_new;
    wire             load_ram = pop && !only_new;
    wire [AW-1:0]    rd_ptr_next = rd_ptr_q + PTR_1;
    wire [WIDTH-1:0] ram_data;

    ram_sdp #(
        .WIDTH    (WIDTH),
        .DEPTH    (DEPTH),
        .PRIM     (PRIM),
        .READ_LAT (1)
    ) u_ram (
        .clk     (clk),
        .wr_en   (push),
        .wr_addr (wr_ptr_q),
        .wr_data (in_data),
        .rd_en   (load_ram),
        .rd_addr (rd_ptr_next),
        .rd_data (ram_data)
    );

    always @(posedge clk) begin
        if (!rst_n) begin
            level_q  <= {(AW+1){1'b0}};
            wr_ptr_q <= {AW{1'b0}};
            rd_ptr_q <= {AW{1'b0}};
            ready_q  <= 1'b0;
            bypass_q <= 1'b0;
        end else begin
            level_q <= level_d;
            ready_q <= level_d != FULL;
            if (push) wr_ptr_q <= wr_ptr_q + PTR_1;
            if (pop) rd_ptr_q <= rd_ptr_next;
            if (load_bypass) bypass_q <= 1'b1;
            else if (load_ram) bypass_q <= 1'b0;
        end
        if (load_bypass) bypass_data_q <= in_data;
    end

    assign in_ready  = ready_q;
    assign out_valid = level_q != {(AW+1){1'b0}};
    assign out_data  = bypass_q ? bypass_data_q : ram_data;
    assign level     = level_q;

endmodule

`default_nettype wire
