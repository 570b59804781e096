// SPDX-License-Identifier: Apache-2.0
// mag_write: write engine of one memory port. Issues finished slots to the
// converged path in the order they finished, splits at 4 KiB, and turns memory
// responses and refusals into acknowledgements.
//
// Latency    4 cycles from a slot's last flit to its first word on the path.
// Throughput one word per cycle; no idle cycle between bursts.
// Order      issued and refused slots retire in one order; a refused slot whose
//            source has nothing outstanding is acknowledged at once.
// Parameters WR_SLOTS as in mag_slots.
// Spec       docs/spec/memory.md 5, 7
`default_nettype none
`include "ktpu_defs.vh"

module mag_write #(
    parameter PORT_X           = 0,
    parameter PORT_Y           = 1,
    parameter MESH_ID          = 0,
    parameter DRAM_BYTES_LOG2  = 32,
    parameter STAGE            = 0,
    parameter STAGE_BYTES_LOG2 = 21,
    parameter WR_SLOTS         = 16
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         in_valid,
    output wire         in_ready,
    input  wire [274:0] in_data,        // mag_intake write layout

    // requester of the converged path; data follows in request order
    output wire         wr_valid,
    input  wire         wr_ready,
    output wire [31:0]  wr_word,        // as mag_classify names it
    output wire [7:0]   wr_len,
    output wire         wd_valid,
    input  wire         wd_ready,
    output wire [255:0] wd_data,
    output wire         wd_last,
    input  wire         done_valid,     // one per request, in request order
    input  wire         done_err,

    output wire         ack_valid,
    input  wire         ack_ready,
    output wire [287:0] ack_flit,

    // {code, source, txn, address}: a failed write, an orphan data flit
    output wire         bad_valid,
    output wire [59:0]  bad_info,
    output wire         orphan_valid,
    output wire [59:0]  orphan_info,
    output wire         issued          // a write that was not refused goes to memory
);

    localparam SW = $clog2(WR_SLOTS);

    // ---------------------------------------------------------------- slots
    wire          rdy_valid, rdy_take;
    wire [SW-1:0] rdy_slot;
    wire [3:0]    rdy_code;
    wire [58:0]   info;
    wire          word_en;
    reg  [SW-1:0] run_slot_q;
    wire [SW-1:0] word_slot;
    wire [2:0]    word_index;
    wire          free_en;
    wire [SW-1:0] free_slot;
    wire [15:0]   orphan_who;

    mag_slots #(
        .MESH_ID          (MESH_ID),
        .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2),
        .WR_SLOTS         (WR_SLOTS)
    ) u_slots (
        .clk        (clk),
        .rst_n      (rst_n),
        .in_valid   (in_valid),
        .in_ready   (in_ready),
        .in_data    (in_data),
        .rdy_valid  (rdy_valid),
        .rdy_ready  (rdy_take),
        .rdy_slot   (rdy_slot),
        .rdy_code   (rdy_code),
        .info_en    (rdy_take),
        .info_slot  (rdy_slot),
        .info_data  (info),
        .word_en    (word_en),
        .word_slot  (word_slot),
        .word_index (word_index),
        .word_data  (wd_data),
        .free_en    (free_en),
        .free_slot  (free_slot),
        .orphan     (orphan_valid),
        .orphan_who (orphan_who)
    );

    assign orphan_info = {`KT_M_ORPHAN, orphan_who[7:0], orphan_who[15:8], 40'd0};

    // ---------------------------------------------------------------- next slot
    reg           next_q;
    reg  [SW-1:0] next_slot_q;
    reg  [3:0]    next_code_q;
    wire [7:0]    n_src  = info[7:0];
    wire [7:0]    n_txn  = info[15:8];
    wire [39:0]   n_addr = info[55:16];
    wire [2:0]    n_len  = info[58:56];
    wire [31:0]   n_word = {n_addr[39], n_addr[35:5]};   // it passed mag_classify
    wire          next_take;

    assign rdy_take = rdy_valid && (!next_q || next_take);

    // Words up to the page end; the rest is a second burst.
    wire [7:0]    to_page = 8'd128 - {1'b0, n_addr[11:5]};
    wire          split   = to_page < 8'd8 && to_page[2:0] <= n_len;
    wire [2:0]    len_1   = split ? to_page[2:0] - 3'd1 : n_len;
    wire [2:0]    len_2   = n_len - to_page[2:0];

    // ---------------------------------------------------------------- issue
    reg           run_q;                // words of run_slot_q are being read
    reg  [2:0]    index_q, end_1_q, end_2_q;
    reg           second_q;             // the second burst's request is still to be queued
    reg  [31:0]   word_2_q;
    reg  [2:0]    len_2_q;
    reg           data_q, last_q;       // wd_* holds a word

    wire          refused   = next_code_q != `KT_M_NONE;
    wire          ret_room, ack_room;
    wire          older;                // the source of the next slot has writes outstanding
    wire          ret_done;             // the retire queue acknowledges in this cycle
    wire          req_room;
    wire          move      = !data_q || wd_ready;
    wire          word_end  = run_q && move && index_q == end_2_q;
    wire          shortcut  = next_q && refused && !older && ack_room && !ret_done;
    wire          to_retire = next_q && ret_room && (refused ? older : (!run_q || word_end) && req_room);
    wire          start     = to_retire && !refused;

    assign issued     = start;
    assign next_take  = shortcut || to_retire;
    assign word_en    = run_q && move;
    assign word_slot  = run_slot_q;
    assign word_index = index_q;
    assign wd_valid   = data_q;
    assign wd_last    = last_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            next_q   <= 1'b0;
            run_q    <= 1'b0;
            second_q <= 1'b0;
            data_q   <= 1'b0;
        end else begin
            if (rdy_take) next_q <= 1'b1;
            else if (next_take) next_q <= 1'b0;
            if (start) run_q <= 1'b1;
            else if (word_end) run_q <= 1'b0;
            second_q <= start && split;
            if (move) data_q <= run_q;
        end
        if (rdy_take) begin
            next_slot_q <= rdy_slot;
            next_code_q <= rdy_code;
        end
        if (start) begin
            run_slot_q <= next_slot_q;
            index_q    <= 3'd0;
            end_1_q    <= len_1;
            end_2_q    <= n_len;
            word_2_q   <= n_word + {29'd0, to_page[2:0]};
            len_2_q    <= len_2;
        end else if (word_en) index_q <= index_q + 3'd1;
        if (word_en) last_q <= index_q == end_1_q || index_q == end_2_q;
    end

    // A started slot queues one or two requests, so it needs two free places.
    wire          req_open;
    wire [2:0]    req_level;
    fifo_sync #(
        .WIDTH (35),
        .DEPTH (4)
    ) u_requests (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (start || second_q),
        .in_ready  (req_open),
        .in_data   (second_q ? {word_2_q, len_2_q} : {n_word, len_1}),
        .out_valid (wr_valid),
        .out_ready (wr_ready),
        .out_data  ({wr_word, wr_len[2:0]}),
        .level     (req_level)
    );
    assign wr_len[7:3] = 5'd0;
    assign req_room    = req_open && !second_q && req_level <= 3'd2;

    // ---------------------------------------------------------------- retire
    wire          ret_valid, ret_split;
    wire [SW-1:0] ret_slot;
    wire [3:0]    ret_code;
    wire [7:0]    ret_src, ret_txn;
    wire [39:0]   ret_addr;
    wire [SW:0]   ret_level;

    fifo_sync #(
        .WIDTH (SW + 61),
        .DEPTH (WR_SLOTS)
    ) u_retire (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (to_retire),
        .in_ready  (ret_room),
        .in_data   ({next_slot_q, split, next_code_q, n_addr, n_txn, n_src}),
        .out_valid (ret_valid),
        .out_ready (ret_done),
        .out_data  ({ret_slot, ret_split, ret_code, ret_addr, ret_txn, ret_src}),
        .level     (ret_level)
    );

    // Responses wait here, so the memory's B channel never waits for the mesh.
    wire          got_valid, got_err, got_room;
    wire          got_take;
    wire [SW+1:0] got_level;
    fifo_sync #(
        .WIDTH (1),
        .DEPTH (2 * WR_SLOTS)
    ) u_done (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (done_valid),
        .in_ready  (got_room),
        .in_data   (done_err),
        .out_valid (got_valid),
        .out_ready (got_take),
        .out_data  (got_err),
        .level     (got_level)
    );

    reg           half_q, half_err_q;   // first of two responses has been taken
    wire          ret_bad  = ret_code != `KT_M_NONE;
    wire          complete = ret_bad || (got_valid && (!ret_split || half_q));
    wire          bus_err  = got_err || (half_q && half_err_q);
    wire [3:0]    end_code = ret_bad ? ret_code : bus_err ? `KT_M_BUS : `KT_M_NONE;

    assign ret_done = ret_valid && complete && ack_room;
    assign got_take = ret_valid && !ret_bad && got_valid && (complete ? ack_room : 1'b1);

    always @(posedge clk) begin
        if (!rst_n) half_q <= 1'b0;
        else if (got_take) half_q <= !complete;
        if (got_take) half_err_q <= got_err;
    end

    // Slots in the retire queue, to find older writes of a source.
    reg  [WR_SLOTS-1:0]   wait_q;
    reg  [WR_SLOTS*8-1:0] wait_src_q;
    reg                   older_any;
    integer               s;
    always @* begin
        older_any = 1'b0;
        for (s = 0; s < WR_SLOTS; s = s + 1)
            if (wait_q[s] && wait_src_q[8*s +: 8] == n_src) older_any = 1'b1;
    end
    assign older = older_any;

    always @(posedge clk) begin
        if (!rst_n) wait_q <= {WR_SLOTS{1'b0}};
        else begin
            if (ret_done) wait_q[ret_slot] <= 1'b0;
            if (to_retire) wait_q[next_slot_q] <= 1'b1;
        end
        if (to_retire) wait_src_q[8*next_slot_q +: 8] <= n_src;
    end

    // ---------------------------------------------------------------- acknowledge
    wire [3:0]  a_code = shortcut ? next_code_q : end_code;
    wire [7:0]  a_src  = shortcut ? n_src : ret_src;
    wire [7:0]  a_txn  = shortcut ? n_txn : ret_txn;
    wire        a_put  = shortcut || ret_done;
    wire [3:0]  q_code;
    wire [7:0]  q_src, q_txn;
    wire [SW:0] ack_level;

    assign free_en   = a_put;
    assign free_slot = shortcut ? next_slot_q : ret_slot;
    assign bad_valid = a_put && a_code != `KT_M_NONE;
    assign bad_info  = {a_code, a_src, a_txn, shortcut ? n_addr : ret_addr};

    fifo_sync #(
        .WIDTH (20),
        .DEPTH (WR_SLOTS)
    ) u_acks (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (a_put),
        .in_ready  (ack_room),
        .in_data   ({a_code, a_txn, a_src}),
        .out_valid (ack_valid),
        .out_ready (ack_ready),
        .out_data  ({q_code, q_txn, q_src}),
        .level     (ack_level)
    );

    assign ack_flit = {q_src[3:0], q_src[7:4], PORT_X[3:0], PORT_Y[3:0], `KT_TYPE_MEM_WR_ACK,
                       q_txn, 1'b1, 3'd0, 248'd0, q_code, 3'd0, q_code != `KT_M_NONE};

    wire unused = &{1'b0, got_room, got_level, ret_level, ack_level, to_page[7:3]};

endmodule

`default_nettype wire
