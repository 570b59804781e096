// SPDX-License-Identifier: Apache-2.0
// mg_hazard: operand interlocks between sweeps and writers of L1
// (docs/spec/cluster.md 4.4). Combinational.
//
// fill_hold  an earlier GEMM, running or armed, still reads an entry of the
//            FILL that waits to send its request (WAR).
// recv_hold  the running sweep still reads the entry a CU_DATA burst completed;
//            an armed GEMM or a FILL never holds it.
// Regions are half open; a region counts until the last issue of its sweep.
// RAW needs no comparison here: a sweep starts only when no FILL is running.
`default_nettype none

module mg_hazard (
    input  wire       armed,
    input  wire [8:0] armed_a_lo, armed_b_lo,
    input  wire [9:0] armed_a_hi, armed_b_hi,
    input  wire       run,
    input  wire [8:0] run_a_lo, run_b_lo,
    input  wire [9:0] run_a_hi, run_b_hi,

    input  wire       fill_side,
    input  wire [8:0] fill_lo,
    input  wire [9:0] fill_hi,
    output wire       fill_hold,

    input  wire       recv_side,
    input  wire [8:0] recv_idx,
    output wire       recv_hold
);

    wire [8:0] f_armed_lo = fill_side ? armed_b_lo : armed_a_lo;
    wire [9:0] f_armed_hi = fill_side ? armed_b_hi : armed_a_hi;
    wire [8:0] f_run_lo   = fill_side ? run_b_lo : run_a_lo;
    wire [9:0] f_run_hi   = fill_side ? run_b_hi : run_a_hi;

    assign fill_hold = (armed && ({1'b0, fill_lo} < f_armed_hi) && ({1'b0, f_armed_lo} < fill_hi))
                    || (run && ({1'b0, fill_lo} < f_run_hi) && ({1'b0, f_run_lo} < fill_hi));

    wire [8:0] r_lo = recv_side ? run_b_lo : run_a_lo;
    wire [9:0] r_hi = recv_side ? run_b_hi : run_a_hi;

    assign recv_hold = run && (recv_idx >= r_lo) && ({1'b0, recv_idx} < r_hi);

endmodule

`default_nettype wire
