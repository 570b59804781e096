// SPDX-License-Identifier: Apache-2.0
// ram_sdp_2clk: simple dual-port RAM with a clock per port: ram_sdp for a
// clock crossing. Only link_afifo uses it; everything on one clock takes ram_sdp.
//
// PRIM asks the tool for a storage class through the ram_style attribute and
// never changes behaviour.
//
// Latency    rd_data is valid one rd_clk cycle after rd_en and rd_addr and is
//            held while no later read arrives.
// Throughput one write per wr_clk cycle, one read per rd_clk cycle.
// Collision  reading a word in the rd_clk cycle in which its write lands gives
//            undefined data. The user keeps the ports apart: here the write is
//            announced through a synchroniser, so it is older than the read.
// No reset. Contents start at zero in simulation only.
//
// WIDTH >= 1, DEPTH >= 2, PRIM "block" | "ultra" | "distributed",
// AW is derived and MUST NOT be set.
`default_nettype none

module ram_sdp_2clk #(
    parameter WIDTH = 32,
    parameter DEPTH = 16,
    parameter PRIM  = "distributed",
    parameter AW    = $clog2(DEPTH)
) (
    input  wire             wr_clk,
    input  wire             wr_en,
    input  wire [AW-1:0]    wr_addr,
    input  wire [WIDTH-1:0] wr_data,

    input  wire             rd_clk,
    input  wire             rd_en,
    input  wire [AW-1:0]    rd_addr,
    output wire [WIDTH-1:0] rd_data
);

    generate
        if (WIDTH < 1 || DEPTH < 2 || AW != $clog2(DEPTH)) begin : g_illegal
            ram_sdp_2clk_illegal_parameters u_stop ();
        end
    endgenerate

    // A linter that skips attributes would call PRIM unused.
    wire unused_prim = &{1'b0, PRIM};

    (* ram_style = PRIM *)
    reg [WIDTH-1:0] mem [0:DEPTH-1];
    reg [WIDTH-1:0] rd_q;

    always @(posedge wr_clk) begin
        if (wr_en) mem[wr_addr] <= wr_data;
    end

    always @(posedge rd_clk) begin
        if (rd_en) rd_q <= mem[rd_addr];
    end

`ifndef SYNTHESIS
    integer i;
    initial for (i = 0; i < DEPTH; i = i + 1) mem[i] = {WIDTH{1'b0}};
`endif

    assign rd_data = rd_q;

endmodule

`default_nettype wire
