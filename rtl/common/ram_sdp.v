// SPDX-License-Identifier: Apache-2.0
// ram_sdp: simple dual-port RAM, one write port and one read port, one clock.
//
// With ram_sdp_2clk the only place in the design where a memory array is inferred; PRIM asks the
// tool for a storage class through the ram_style attribute and never changes
// behaviour.
//
// Latency    rd_data is valid READ_LAT cycles after rd_en and rd_addr and is
//            held while no later read arrives.
// Throughput one write and one read per cycle.
// Same-cycle read and write of one address return the OLD word.
// No reset. Contents start at zero in simulation only.
//
// WIDTH >= 1, DEPTH >= 2, PRIM "block" | "ultra" | "distributed",
// READ_LAT 1..4, AW is derived and MUST NOT be set.
`default_nettype none

module ram_sdp #(
    parameter WIDTH    = 32,
    parameter DEPTH    = 512,
    parameter PRIM     = "block",
    parameter READ_LAT = 1,
    parameter AW       = $clog2(DEPTH)
) (
    input  wire             clk,
    input  wire             wr_en,
    input  wire [AW-1:0]    wr_addr,
    input  wire [WIDTH-1:0] wr_data,
    input  wire             rd_en,
    input  wire [AW-1:0]    rd_addr,
    output wire [WIDTH-1:0] rd_data
);

    generate
        if (WIDTH < 1 || DEPTH < 2 || READ_LAT < 1 || READ_LAT > 4
            || AW != $clog2(DEPTH)) begin : g_illegal
            ram_sdp_illegal_parameters u_stop ();
        end
    endgenerate

    // A linter that skips attributes would call PRIM unused.
    wire unused_prim = &{1'b0, PRIM};

    (* ram_style = PRIM *)
    reg [WIDTH-1:0] mem [0:DEPTH-1];
    reg [WIDTH-1:0] rd_q;

    always @(posedge clk) begin
        if (wr_en) mem[wr_addr] <= wr_data;
        if (rd_en) rd_q <= mem[rd_addr];
    end

`ifndef SYNTHESIS
    integer i;
    initial for (i = 0; i < DEPTH; i = i + 1) mem[i] = {WIDTH{1'b0}};
`endif

    // Further stages move only when a read passes, so the last word is held.
    generate
        if (READ_LAT <= 1) begin : g_lat1
            assign rd_data = rd_q;
        end else begin : g_latn
            reg [READ_LAT-2:0]       en_q;
            reg [WIDTH-1:0]          pipe_q [0:READ_LAT-2];
            integer                  s;
            always @(posedge clk) begin
                en_q[0] <= rd_en;
                if (en_q[0]) pipe_q[0] <= rd_q;
                for (s = 1; s < READ_LAT - 1; s = s + 1) begin
                    en_q[s] <= en_q[s-1];
                    if (en_q[s]) pipe_q[s] <= pipe_q[s-1];
                end
            end
            assign rd_data = pipe_q[READ_LAT-2];
        end
    endgenerate

endmodule

`default_nettype wire
