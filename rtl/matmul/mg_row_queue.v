// SPDX-License-Identifier: Apache-2.0
// mg_row_queue: drain queue of a cluster with the row-major DRAIN: passes
// granules on in order, or turns row groups of sub-tiles into rows
// (docs/spec/cluster.md 1.3, 5.6).
//
// `open` clears it for a new transfer; it must be empty. `quads` = 0: a FIFO.
// Otherwise the input is sub-tiles of row groups 4 * quads wide, and the output
// word (row i, q) holds row i of the sub-tiles 4q..4q+3 of its group.
//
// Four RAMs of 64 bits. Row i of the sub-tile at position m of its four lies in
// RAM (m + i) mod 4, so the four rows that come in together and the four parts
// that leave together never meet in one RAM: no transposing register.
//
// Latency    push -> out_valid 2; row-major: the last of four sub-tiles -> the
//            word of their row 0. Rows 1..3 follow when row 0 of the group left.
// Throughput one push and one pop a cycle in both forms; row 0 of the first group
//            leaves as it comes, a word in four pushes.
// DEPTH power of two 16..4096, at least the sub-tiles of a row-major transfer.
`default_nettype none

module mg_row_queue #(
    parameter DEPTH = 512
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         open,
    input  wire [5:0]   quads,

    input  wire         in_valid,
    output wire         in_ready,       // for checkers: the caller keeps the count
    input  wire [255:0] in_data,

    output wire         out_valid,
    input  wire         out_ready,
    output wire [255:0] out_data
);

    localparam AW = $clog2(DEPTH);
    localparam [AW:0]   FULL  = {1'b1, {AW{1'b0}}};
    localparam [AW:0]   ONE   = {{AW{1'b0}}, 1'b1};
    localparam [AW-1:0] PTR_1 = ONE[AW-1:0];

    reg [5:0]    quads_q;
    reg [AW:0]   level_q;
    wire         rows = quads_q != 6'd0;
    wire         pop  = out_valid && out_ready;

    // ---- write side: word of row 0 under construction, and where in its four
    reg [AW-1:0] wr_q;
    reg [1:0]    m_q;
    reg [5:0]    wr_left_q;             // fours left in the row group
    wire [AW+5:0] wide   = {{AW{1'b0}}, quads_q};
    wire [AW-1:0] step   = wide[AW-1:0];
    wire [AW-1:0] step3  = step + {step[AW-2:0], 1'b0};
    wire          quad   = in_valid && (!rows || (m_q == 2'd3));
    wire          group  = rows && (wr_left_q == 6'd1);

    // ---- read side: row and words left in it; rows 1..3 are there when row 0 was
    reg [AW-1:0] rd_q;
    reg [1:0]    row_q, rot_q;
    reg [5:0]    rd_left_q;
    reg [AW:0]   ahead_q;               // words of row 0 written and not read
    reg          valid_q;
    wire         read    = ((ahead_q != {(AW+1){1'b0}}) || (row_q != 2'd0)) && (!valid_q || out_ready);
    wire         row_end = rows && (rd_left_q == 6'd1);
    wire         spend   = read && (row_q == 2'd0);

    assign in_ready  = level_q != FULL;
    assign out_valid = valid_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            level_q   <= {(AW+1){1'b0}};
            ahead_q   <= {(AW+1){1'b0}};
            valid_q   <= 1'b0;
            quads_q   <= 6'd0;
            wr_q      <= {AW{1'b0}};
            rd_q      <= {AW{1'b0}};
            m_q       <= 2'd0;
            row_q     <= 2'd0;
        end else begin
            level_q <= level_q + {{AW{1'b0}}, in_valid} - {{AW{1'b0}}, pop};
            ahead_q <= ahead_q + {{AW{1'b0}}, quad} - {{AW{1'b0}}, spend};
            valid_q <= read || (valid_q && !out_ready);
            if (open) begin
                quads_q <= quads;
                wr_q    <= {AW{1'b0}};
                rd_q    <= {AW{1'b0}};
                m_q     <= 2'd0;
                row_q   <= 2'd0;
            end else begin
                if (in_valid && rows) m_q <= m_q + 2'd1;
                if (quad) wr_q <= wr_q + PTR_1 + (group ? step3 : {AW{1'b0}});
                if (read) rd_q <= rd_q + PTR_1;
                if (read && row_end) row_q <= row_q + 2'd1;
            end
        end
        if (open) wr_left_q <= quads;
        else if (quad) wr_left_q <= group ? quads_q : wr_left_q - 6'd1;
        if (open) rd_left_q <= quads;
        else if (read) rd_left_q <= row_end ? quads_q : rd_left_q - 6'd1;
        if (read) rot_q <= row_q;
    end

    // ---- addresses of the four rows; a FIFO writes one address
    wire [AW-1:0] at0 = wr_q;
    wire [AW-1:0] at1 = wr_q + step;
    wire [AW-1:0] at2 = wr_q + {step[AW-2:0], 1'b0};
    wire [AW-1:0] at3 = wr_q + step3;

    wire [255:0] turned, word;
    wire [4*AW-1:0] at;
    assign {turned, at} = (m_q == 2'd0) ? {in_data, at3, at2, at1, at0}
                        : (m_q == 2'd1) ? {in_data[191:0], in_data[255:192], at2, at1, at0, at3}
                        : (m_q == 2'd2) ? {in_data[127:0], in_data[255:128], at1, at0, at3, at2}
                        :                 {in_data[63:0], in_data[255:64], at0, at3, at2, at1};

    genvar b;
    generate
        for (b = 0; b < 4; b = b + 1) begin : g_bank
            ram_sdp #(.WIDTH(64), .DEPTH(DEPTH), .PRIM("block"), .READ_LAT(1)) u_ram (
                .clk     (clk),
                .wr_en   (in_valid),
                .wr_addr (at[AW*b +: AW]),
                .wr_data (turned[64*b +: 64]),
                .rd_en   (read),
                .rd_addr (rd_q),
                .rd_data (word[64*b +: 64])
            );
        end
    endgenerate

    assign out_data = (rot_q == 2'd0) ? word
                    : (rot_q == 2'd1) ? {word[63:0], word[255:64]}
                    : (rot_q == 2'd2) ? {word[127:0], word[255:128]}
                    :                   {word[191:0], word[255:192]};

    wire unused = &{1'b0, wide};

endmodule

`default_nettype wire
