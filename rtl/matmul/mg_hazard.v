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
    input  wire        armed,
    input  wire [37:0] armed_region,    // {a_lo 9, a_hi 10, b_lo 9, b_hi 10}
    input  wire        run,
    input  wire [37:0] run_region,

    input  wire [19:0] fill_region,     // {side, lo 9, hi 10}
    output wire        fill_hold,

    input  wire        recv_side,
    input  wire [8:0]  recv_idx,
    output wire        recv_hold
);

    wire [8:0] armed_a_lo, armed_b_lo, run_a_lo, run_b_lo, fill_lo;
    wire [9:0] armed_a_hi, armed_b_hi, run_a_hi, run_b_hi, fill_hi;
    wire       fill_side;
    assign {armed_a_lo, armed_a_hi, armed_b_lo, armed_b_hi} = armed_region;
    assign {run_a_lo, run_a_hi, run_b_lo, run_b_hi} = run_region;
    assign {fill_side, fill_lo, fill_hi} = fill_region;

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
