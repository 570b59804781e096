// SPDX-License-Identifier: Apache-2.0
// vc_lanes_pick: the lane a head ALU works on, by mode and phase
// (docs/spec/vector.md 13.1). Combinational.
//
// FLAT: lane in FLAT mode, 0..15. G2, G4: its group in D2 and D4. D4: 1 if the
// ALU is the head of a D4 group.
`default_nettype none

module vc_lanes_pick #(
    parameter FLAT = 0,
    parameter G2   = 0,
    parameter G4   = 0,
    parameter D4   = 0
) (
    input  wire         d2,
    input  wire         d4,
    input  wire [1:0]   phase,
    input  wire [383:0] r,
    output wire [23:0]  x
);

    wire [23:0] two = phase[0] ? r[24*(8+G2) +: 24] : r[24*G2 +: 24];
    wire [23:0] flat_or_two = d2 ? two : r[24*FLAT +: 24];

    generate
        if (D4 != 0) begin : g_four
            wire [23:0] low  = phase[0] ? r[24*(4+G4) +: 24] : r[24*G4 +: 24];
            wire [23:0] high = phase[0] ? r[24*(12+G4) +: 24] : r[24*(8+G4) +: 24];
            assign x = d4 ? (phase[1] ? high : low) : flat_or_two;
        end else begin : g_two
            assign x = flat_or_two;
        end
    endgenerate

    wire unused = &{1'b0, r, d4, phase};

endmodule

`default_nettype wire
