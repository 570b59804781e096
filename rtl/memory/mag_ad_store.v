// SPDX-License-Identifier: Apache-2.0
// mag_ad_store: line store and read engine of an L2 adapter. Runs one read at a time
// and emits its MEM_RD_RESP flits; a refused read runs the same way with ERR set.
//
// Latency    4 cycles from run_valid to the first response.
// Throughput one line per cycle while the responses are taken; a new run may start in
//            the cycle after the last line of the former was launched.
// Queue      16 responses, at most 13 launched and not yet taken.
// Order      a line written before a run starts is seen by it.
// Parameters DEPTH a power of two 512..2^27 (lines of 256 bits).
// Spec       docs/spec/memory.md 11.3, 11.4
`default_nettype none
`include "ktpu_defs.vh"

module mag_ad_store #(
    parameter DEPTH = 8192,
    parameter AW    = $clog2(DEPTH)
) (
    input  wire          clk,
    input  wire          rst_n,

    input  wire          wr_en,
    input  wire [AW-1:0] wr_line,
    input  wire [255:0]  wr_data,

    input  wire          run_valid,
    output wire          run_ready,
    input  wire [AW-1:0] run_line,
    input  wire [10:0]   run_lines,     // >= 1
    input  wire [2:0]    run_ew,        // lines of an entry, 1..4; plain reads: ignored
    input  wire          run_strm,
    input  wire          run_err,
    input  wire [7:0]    run_txn,
    input  wire [15:0]   run_route,     // {destination, source} of the responses

    output wire          out_valid,
    input  wire          out_ready,
    output wire [287:0]  out_flit
);

    localparam LAT = 2;
    localparam [3:0] CREDITS = 4'd13;

    generate
        if (DEPTH < 512 || DEPTH > (1 << 27) || (DEPTH & (DEPTH - 1)) != 0 || AW != $clog2(DEPTH)) begin : g_illegal
            mag_ad_store_illegal_parameters u_stop ();
        end
    endgenerate

    // ---------------------------------------------------------------- run
    reg           run_q, strm_q, err_q;
    reg  [AW-1:0] line_q;
    reg  [10:0]   left_q;               // lines to launch
    reg  [2:0]    ew_q;
    reg  [1:0]    w_q;
    reg  [7:0]    txn_q;
    reg  [15:0]   route_q;
    reg  [3:0]    flying_q;             // launched and not taken
    wire          launch = run_q && flying_q != CREDITS;
    wire          final_line = left_q == 11'd1;
    wire          last_w = {1'b0, w_q} == ew_q - 3'd1;
    wire          taken  = out_valid && out_ready;

    assign run_ready = !run_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            run_q    <= 1'b0;
            flying_q <= 4'd0;
        end else begin
            if (run_valid && run_ready) run_q <= 1'b1;
            else if (launch && final_line) run_q <= 1'b0;
            flying_q <= flying_q + {3'd0, launch} - {3'd0, taken};
        end
        if (run_valid && run_ready) begin
            line_q  <= run_line;
            left_q  <= run_lines;
            ew_q    <= run_ew;
            strm_q  <= run_strm;
            err_q   <= run_err;
            txn_q   <= run_txn;
            route_q <= run_route;
            w_q     <= 2'd0;
        end else if (launch) begin
            line_q <= line_q + {{(AW-1){1'b0}}, 1'b1};
            left_q <= left_q - 11'd1;
            if (strm_q) begin
                w_q <= last_w ? 2'd0 : w_q + 2'd1;
                if (last_w) txn_q <= txn_q + 8'd1;
            end
        end
    end

    // ---------------------------------------------------------------- store
    wire [255:0] rd_data;
    ram_sdp #(
        .WIDTH    (256),
        .DEPTH    (DEPTH),
        .PRIM     ("ultra"),
        .READ_LAT (LAT)
    ) u_lines (
        .clk     (clk),
        .wr_en   (wr_en),
        .wr_addr (wr_line),
        .wr_data (wr_data),
        .rd_en   (launch && !err_q),
        .rd_addr (line_q),
        .rd_data (rd_data)
    );

    // What belongs to the words on their way: {err, word index, last, txn, route}.
    reg  [LAT-1:0]    way_q;
    reg  [28*LAT-1:0] way_head_q;
    wire              mark = strm_q ? last_w : final_line;
    always @(posedge clk) begin
        if (!rst_n) way_q <= {LAT{1'b0}};
        else way_q <= {way_q[LAT-2:0], launch};
        if (launch || way_q != {LAT{1'b0}})
            way_head_q <= {way_head_q[28*(LAT-1)-1:0], err_q, w_q, mark, txn_q, route_q};
    end
    wire [27:0] head = way_head_q[28*LAT-1 -: 28];

    wire         room;
    wire [4:0]   level;
    wire [27:0]  o_head;
    wire [255:0] o_data;
    fifo_sync #(
        .WIDTH (284),
        .DEPTH (16)
    ) u_out (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (way_q[LAT-1]),
        .in_ready  (room),
        .in_data   ({head, head[27] ? 256'd0 : rd_data}),
        .out_valid (out_valid),
        .out_ready (out_ready),
        .out_data  ({o_head, o_data}),
        .level     (level)
    );
    assign out_flit = {o_head[15:0], `KT_TYPE_MEM_RD_RESP, o_head[23:16], o_head[24], o_head[27:25], o_data};

    wire unused = &{1'b0, room, level};

endmodule

`default_nettype wire
