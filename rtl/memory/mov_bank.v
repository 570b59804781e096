// SPDX-License-Identifier: Apache-2.0
// mov_bank: transform slot of the memory mover: identity, FP16 -> MXFP7 quantiser,
// granule transpose. Whole entries in, entries of four words out, in order.
//
// Throughput one source word per cycle; results wait in a queue of four entries.
// Latency    2 cycles from an entry's last word (identity, granule), mag_quant's and 1
//            more (quantiser).
// Entries    words arrive only after their checks, so a whole entry here is a good one; what
//            a faulting move leaves of one is cleared by reset.
// Limits     at most two entries started and not done, four done and not taken.
// Parameters GRANULE 1 builds the granule transpose.
// Spec       docs/spec/memory.md 13
`default_nettype none
`include "ktpu_defs.vh"

module mov_bank #(
    parameter GRANULE = 0
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         on,            // mode 5 runs
    input  wire [3:0]   id,
    input  wire         pack,          // XFORM_MODE[0]

    input  wire         in_valid,
    output wire         in_ready,
    input  wire [255:0] in_data,

    output wire         out_valid,     // one word of an entry, four in a row
    input  wire         out_ready,
    output wire [255:0] out_data,
    output wire         nonfinite      // with an entry's first word taken
);

    wire quant = id == `KT_MV_XFORM_QUANTISE;

    // ---------------------------------------------------------------- feed
    reg  [1:0]  started_q;             // started and not done
    reg  [2:0]  owed_q;                // started and not taken
    reg  [2:0]  at_q;                  // word of the present entry
    wire        last  = at_q == (quant ? 3'd7 : 3'd3);
    wire        first = at_q == 3'd0;
    wire        free  = started_q != 2'd2 && !owed_q[2];
    wire        feed  = in_valid && in_ready;
    wire        done, gone;

    assign in_ready = on && (!first || free);

    always @(posedge clk) begin
        if (!rst_n) begin
            started_q <= 2'd0;
            owed_q    <= 3'd0;
            at_q      <= 3'd0;
        end else begin
            started_q <= started_q + {1'b0, feed && first} - {1'b0, done};
            owed_q    <= owed_q + {2'd0, feed && first} - {2'd0, gone};
            if (feed) at_q <= last ? 3'd0 : at_q + 3'd1;
        end
    end

    // ---------------------------------------------------------------- occupants
    wire          q_done, q_nonfinite;
    wire [1023:0] q_data;
    mag_quant u_quant (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (feed && quant),
        .in_start  (first),
        .in_data   (in_data),
        .pack      (pack),
        .done      (q_done),
        .out_data  (q_data),
        .nonfinite (q_nonfinite)
    );

    reg           c_done_q;
    reg  [1023:0] c_data_q;
    wire [1023:0] c_data;
    always @(posedge clk) begin
        if (!rst_n) c_done_q <= 1'b0;
        else c_done_q <= feed && !quant && last;
        if (feed && !quant) c_data_q <= {in_data, c_data_q[1023:256]};
    end

    genvar i, j;
    generate
        if (GRANULE != 0) begin : g_granule
            for (i = 0; i < 4; i = i + 1) begin : g_out
                for (j = 0; j < 4; j = j + 1) begin : g_in
                    assign c_data[256*i+64*j +: 64] = id == `KT_MV_XFORM_GRANULE ? c_data_q[256*j+64*i +: 64]
                                                                                 : c_data_q[256*i+64*j +: 64];
                end
            end
        end else begin : g_identity
            assign c_data = c_data_q;
        end
    endgenerate

    // ---------------------------------------------------------------- results
    wire          room, e_valid, e_nonfinite;
    wire [1023:0] e_data;
    wire [2:0]    level;
    reg  [1:0]    word_q;

    assign done = q_done || c_done_q;
    assign gone = out_valid && out_ready && word_q == 2'd3;

    fifo_sync #(
        .WIDTH (1025),
        .DEPTH (4)
    ) u_out (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (done),
        .in_ready  (room),
        .in_data   (c_done_q ? {1'b0, c_data} : {q_nonfinite, q_data}),
        .out_valid (e_valid),
        .out_ready (gone),
        .out_data  ({e_nonfinite, e_data}),
        .level     (level)
    );

    always @(posedge clk) begin
        if (!rst_n) word_q <= 2'd0;
        else if (out_valid && out_ready) word_q <= word_q + 2'd1;
    end

    assign out_valid = e_valid;
    assign out_data  = word_q == 2'd0 ? e_data[255:0]
                     : word_q == 2'd1 ? e_data[511:256]
                     : word_q == 2'd2 ? e_data[767:512] : e_data[1023:768];
    assign nonfinite = e_nonfinite && out_ready && e_valid && word_q == 2'd0;

    wire unused = &{1'b0, room, level};

endmodule

`default_nettype wire
