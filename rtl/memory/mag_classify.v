// SPDX-License-Identifier: Apache-2.0
// mag_classify: the one address check of the memory agent. Every requester owns
// an instance and nothing else decides what an address means.
//
// Latency    combinational.
// Result     code = KT_M_NONE: the access lies in this mesh's DRAM or staging
//            store, and `word` says where; anything else is the memory fault code
//            of the first rule that failed. All sums are exact, nothing wraps.
// word       {1 staging, 0 DRAM; word index}: how the converged path names a word.
// Parameters MESH_ID 0..3; DRAM_BYTES_LOG2 12..36; STAGE 0: no staging store;
//            STAGE_BYTES_LOG2 12..32 its size; ALIGNED 1 for mesh ports, mover and
//            interlink, 0 for the host.
// Spec       docs/spec/memory.md 1.2
`default_nettype none
`include "ktpu_defs.vh"

module mag_classify #(
    parameter MESH_ID          = 0,
    parameter DRAM_BYTES_LOG2  = 32,
    parameter STAGE            = 0,
    parameter STAGE_BYTES_LOG2 = 21,
    parameter ALIGNED          = 1
) (
    input  wire [39:0] addr,
    input  wire [10:0] words,      // length of the whole access, >= 1
    output reg  [3:0]  code,
    output wire [31:0] word
);

    generate
        if (MESH_ID < 0 || MESH_ID > 3 || DRAM_BYTES_LOG2 < 12 || DRAM_BYTES_LOG2 > 36
            || STAGE < 0 || STAGE > 1 || STAGE_BYTES_LOG2 < 12 || STAGE_BYTES_LOG2 > 32) begin : g_illegal
            mag_classify_illegal_parameters u_stop ();
        end
    endgenerate

    localparam [1:0]  MESH      = MESH_ID[1:0];
    localparam [36:0] DRAM_TOP  = 37'd1 << DRAM_BYTES_LOG2;
    localparam [36:0] STAGE_TOP = 37'd1 << STAGE_BYTES_LOG2;

    // An unaligned host access is taken from the word below.
    wire [36:0] last = {1'b0, addr[35:5], 5'd0} + {21'd0, words, 5'd0};
    wire [36:0] top  = addr[39] ? STAGE_TOP : DRAM_TOP;

    always @* begin
        if (addr[38])                                                code = `KT_M_RSVD;
        else if (addr[37:36] != MESH)                                code = `KT_M_MESH;
        else if (addr[39] && (STAGE == 0 || addr[35:32] != 4'd0))    code = `KT_M_APER;
        else if (ALIGNED != 0 && addr[4:0] != 5'd0)                  code = `KT_M_ALIGN;
        else if (last > top)                                         code = `KT_M_RANGE;
        else                                                         code = `KT_M_NONE;
    end

    assign word = {addr[39], addr[35:5]};

    wire unused = &{1'b0, addr[4:0]};

endmodule

`default_nettype wire
