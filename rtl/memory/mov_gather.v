// SPDX-License-Identifier: Apache-2.0
// mov_gather: index vector of the mode GATHER and the source address of its elements.
//
// Element e lies in row e / words at word e % words; its source is
// base + index[row] * pitch + 32 * word, exact: bits above 39 say that it is illegal.
// Latency    5 cycles for the first element of a row.
// Throughput one element per cycle inside a row.
// over       the row has no index (row >= count).
// Spec       docs/spec/memory.md 12.3
`default_nettype none

module mov_gather (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         load,          // forget the vector and the position
    input  wire         word_valid,    // the next eight indices
    input  wire [255:0] word_data,
    input  wire         start,         // the vector is complete

    input  wire [39:0]  base,
    input  wire [31:0]  pitch,
    input  wire [15:0]  words,
    input  wire [11:0]  count,         // 1..2048

    output wire         ready,
    input  wire         step,
    output wire         over,
    output wire [65:0]  addr
);

    localparam [2:0] S_OFF = 3'd0, S_READ = 3'd1, S_PICK = 3'd2, S_MUL = 3'd3, S_ADD = 3'd4, S_OK = 3'd5;

    reg  [2:0]   state_q;
    reg  [7:0]   put_q;
    reg  [11:0]  row_q;
    reg  [15:0]  k_q;
    reg  [31:0]  index_q;
    reg  [63:0]  product_q;
    reg  [65:0]  addr_q;
    wire [255:0] word;
    wire         last = k_q == words - 16'd1;

    ram_sdp #(
        .WIDTH (256),
        .DEPTH (256)
    ) u_indices (
        .clk     (clk),
        .wr_en   (word_valid),
        .wr_addr (put_q),
        .wr_data (word_data),
        .rd_en   (state_q == S_READ),
        .rd_addr (row_q[10:3]),
        .rd_data (word)
    );

    assign over  = row_q == count;
    assign ready = state_q == S_OK;
    assign addr  = addr_q;

    always @(posedge clk) begin
        if (!rst_n || load) begin
            state_q <= S_OFF;
            put_q   <= 8'd0;
            row_q   <= 12'd0;
            k_q     <= 16'd0;
        end else begin
            if (word_valid) put_q <= put_q + 8'd1;
            case (state_q)
                S_OFF:  if (start) state_q <= S_READ;
                S_READ: state_q <= over ? S_OK : S_PICK;
                S_PICK: state_q <= S_MUL;
                S_MUL:  state_q <= S_ADD;
                S_ADD:  state_q <= S_OK;
                default: if (step) begin
                    k_q <= last ? 16'd0 : k_q + 16'd1;
                    if (last && !over) begin
                        row_q   <= row_q + 12'd1;
                        state_q <= S_READ;
                    end
                end
            endcase
        end
        if (state_q == S_PICK) index_q <= word[32*row_q[2:0] +: 32];
        if (state_q == S_MUL) product_q <= {32'd0, index_q} * {32'd0, pitch};
        if (state_q == S_ADD) addr_q <= {2'd0, product_q} + {26'd0, base};
        else if (state_q == S_OK && step) addr_q <= addr_q + 66'd32;
    end

endmodule

`default_nettype wire
