// SPDX-License-Identifier: Apache-2.0
// mag_classify: the one address check of the memory agent. Every requester owns
// an instance and nothing else decides what an address means.
//
// Latency    combinational.
// Result     code = KT_M_NONE: the access lies in this mesh's DRAM; anything else
//            is the memory fault code of the first rule that failed. All sums are
//            exact, nothing wraps. No staging store is built yet, so every
//            aperture address is KT_M_APER.
// Parameters MESH_ID 0..3; DRAM_BYTES_LOG2 12..36; ALIGNED 1 for mesh ports,
//            mover and interlink, 0 for the host.
// Spec       docs/spec/memory.md 1.2
`default_nettype none
`include "ktpu_defs.vh"

module mag_classify #(
    parameter MESH_ID         = 0,
    parameter DRAM_BYTES_LOG2 = 32,
    parameter ALIGNED         = 1
) (
    input  wire [39:0] addr,
    input  wire [10:0] words,      // length of the whole access, >= 1
    output reg  [3:0]  code
);

    generate
        if (MESH_ID < 0 || MESH_ID > 3 || DRAM_BYTES_LOG2 < 12 || DRAM_BYTES_LOG2 > 36) begin : g_illegal
            mag_classify_illegal_parameters u_stop ();
        end
    endgenerate

    localparam [1:0]  MESH = MESH_ID[1:0];
    localparam [36:0] TOP  = 37'd1 << DRAM_BYTES_LOG2;

    // An unaligned host access is taken from the word below.
    wire [36:0] last = {1'b0, addr[35:5], 5'd0} + {21'd0, words, 5'd0};

    always @* begin
        if (addr[38])                               code = `KT_M_RSVD;
        else if (addr[37:36] != MESH)               code = `KT_M_MESH;
        else if (addr[39])                          code = `KT_M_APER;
        else if (ALIGNED != 0 && addr[4:0] != 5'd0) code = `KT_M_ALIGN;
        else if (last > TOP)                        code = `KT_M_RANGE;
        else                                        code = `KT_M_NONE;
    end

    wire unused = &{1'b0, addr[4:0]};

endmodule

`default_nettype wire
