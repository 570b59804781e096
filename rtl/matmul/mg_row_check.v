// SPDX-License-Identifier: Apache-2.0
// mg_row_check: rules of a row-major DRAIN (docs/spec/cluster.md 5.6).
//
// `bad`      a rule of the form is broken: gn or n no multiple as required,
//            rows that overlap, reserved bits.
// `beyond`   the last granule of a node transfer lies past 65535.
// The row groups n / gn and the granules between first and last word are found
// together, one quotient bit a cycle: a restoring division whose bits add the
// pitch. No multiplier.
//
// Latency    `done` is high log2(TILES) - 1 cycles after `run` rose; the results
//            hold until `run` rises again. They mean nothing for n > TILES.
// TILES power of two 16..4096.
`default_nettype none

module mg_row_check #(
    parameter TILES = 512
) (
    input  wire        clk,
    input  wire        run,
    input  wire [15:0] n,               // sub-tiles, not 0
    input  wire [7:0]  gn,              // as encoded
    input  wire [21:0] pitch,
    input  wire [39:0] reserved,
    input  wire [15:0] first_granule,
    output wire        done,
    output wire        bad,
    output wire        beyond
);

    localparam QB = $clog2(TILES) - 1;  // bits of n / 4
    localparam PW = 22 + QB;
    localparam [3:0]    STEPS = QB[3:0];
    localparam [PW+1:0] LIMIT = {{(PW-15){1'b0}}, 17'd65536};

    reg  [3:0]    step_q;
    reg  [QB-1:0] num_q;
    reg  [5:0]    rem_q;
    reg  [PW-1:0] prod_q;

    wire [5:0]    quads = gn[7:2];
    wire          first = step_q == 4'd0;
    wire [QB-1:0] num   = first ? n[QB+1:2] : num_q;
    wire [6:0]    rem   = {first ? 6'd0 : rem_q, num[QB-1]};
    wire          take  = rem >= {1'b0, quads};
    wire [6:0]    diff  = rem - {1'b0, quads};
    wire [PW-2:0] prod  = first ? {(PW-1){1'b0}} : prod_q[PW-2:0];
    wire [PW-1:0] addend = take ? {{QB{1'b0}}, pitch} : {PW{1'b0}};

    always @(posedge clk) begin
        if (!run) begin
            step_q <= 4'd0;
        end else if (!done) begin
            step_q <= step_q + 4'd1;
            num_q  <= {num[QB-2:0], 1'b0};
            rem_q  <= take ? diff[5:0] : rem[5:0];
            prod_q <= {prod, 1'b0} + addend;
        end
    end

    // Four rows a group; the last one ends `quads` words behind its start.
    wire [PW+1:0] rows_end = {prod_q, 2'b00} - {{(PW-20){1'b0}}, pitch} + {{(PW-4){1'b0}}, quads};

    assign done   = step_q == STEPS;
    assign bad    = (gn == 8'd0) || (gn[1:0] != 2'd0) || (n[1:0] != 2'd0) || (rem_q != 6'd0)
                 || (pitch < {16'd0, quads}) || (reserved != 40'd0);
    assign beyond = rows_end + {{(PW-14){1'b0}}, first_granule} > LIMIT;

    wire unused = &{1'b0, n, diff[6]};

endmodule

`default_nettype wire
