// SPDX-License-Identifier: Apache-2.0
// mag_slots: write slots of one memory port. Binds data flits to descriptors by
// source, checks the framing, stores the words and queues finished slots.
//
// Latency    a slot is offered on rdy_* one cycle after its last flit.
// Throughput one flit per cycle; a descriptor that cuts off an open write of its
//            source takes one cycle more.
// Refused writes (address, length, remote mark, framing) collect like any other,
//            store nothing, and leave through the same queue with a code, so the
//            order of one source is the order of its descriptors.
// Parameters WR_SLOTS a power of two 2..64.
// Spec       docs/spec/memory.md 5, 7
`default_nettype none
`include "ktpu_defs.vh"

module mag_slots #(
    parameter MESH_ID          = 0,
    parameter DRAM_BYTES_LOG2  = 32,
    parameter STAGE            = 0,
    parameter STAGE_BYTES_LOG2 = 21,
    parameter WR_SLOTS         = 16,
    parameter SW               = $clog2(WR_SLOTS)
) (
    input  wire          clk,
    input  wire          rst_n,

    input  wire          in_valid,
    output wire          in_ready,
    input  wire [274:0]  in_data,       // mag_intake write layout

    // finished slots in the order they finished
    output wire          rdy_valid,
    input  wire          rdy_ready,
    output wire [SW-1:0] rdy_slot,
    output wire [3:0]    rdy_code,

    // {length - 1, address, txn, source} one cycle after info_en, held
    input  wire          info_en,
    input  wire [SW-1:0] info_slot,
    output wire [58:0]   info_data,
    // one stored word, one cycle after word_en, held
    input  wire          word_en,
    input  wire [SW-1:0] word_slot,
    input  wire [2:0]    word_index,
    output wire [255:0]  word_data,

    input  wire          free_en,
    input  wire [SW-1:0] free_slot,

    output wire          orphan,        // data without an open write, dropped
    output wire [15:0]   orphan_who     // its txn, source
);

    generate
        if (WR_SLOTS < 2 || WR_SLOTS > 64 || (WR_SLOTS & (WR_SLOTS - 1)) != 0 || SW != $clog2(WR_SLOTS))
        begin : g_illegal
            mag_slots_illegal_parameters u_stop ();
        end
    endgenerate

    // ---------------------------------------------------------------- head flit
    wire [7:0]   h_src  = in_data[7:0];
    wire [7:0]   h_txn  = in_data[15:8];
    wire         h_last = in_data[16];
    wire         h_far  = in_data[17];
    wire         h_req  = in_data[18];
    wire [39:0]  h_addr = in_data[274:235];
    wire [7:0]   h_len  = in_data[234:227];
    wire [3:0]   addr_code;
    wire [31:0]  addr_word;
    wire [3:0]   req_code = h_far                   ? `KT_M_REMOTE
                          : addr_code != `KT_M_NONE ? addr_code
                          : h_len > 8'd7            ? `KT_M_LEN : `KT_M_NONE;

    mag_classify #(
        .MESH_ID          (MESH_ID),
        .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2)
    ) u_classify (
        .addr  (h_addr),
        .words ({3'd0, h_len} + 11'd1),
        .code  (addr_code),
        .word  (addr_word)
    );

    // ---------------------------------------------------------------- table
    reg  [WR_SLOTS-1:0]   used_q;       // not free
    reg  [WR_SLOTS-1:0]   open_q;       // collecting
    reg  [WR_SLOTS*8-1:0] src_q;
    reg  [WR_SLOTS*8-1:0] len_q;
    reg  [WR_SLOTS*8-1:0] cnt_q;        // data flits taken
    reg  [WR_SLOTS*4-1:0] code_q;

    // The open slot of the head flit's source (at most one), and the lowest free slot.
    reg                  hit, spare;
    reg  [SW-1:0]        hit_slot, spare_slot;
    reg  [7:0]           hit_len, hit_cnt;
    reg  [3:0]           hit_code;
    integer              s;
    always @* begin
        hit = 1'b0; hit_slot = {SW{1'b0}}; hit_len = 8'd0; hit_cnt = 8'd0; hit_code = 4'd0;
        spare = 1'b0; spare_slot = {SW{1'b0}};
        for (s = WR_SLOTS - 1; s >= 0; s = s - 1) begin
            if (open_q[s] && src_q[8*s +: 8] == h_src) begin
                hit      = 1'b1;
                hit_slot = hit_slot | s[SW-1:0];
                hit_len  = hit_len | len_q[8*s +: 8];
                hit_cnt  = hit_cnt | cnt_q[8*s +: 8];
                hit_code = hit_code | code_q[4*s +: 4];
            end
            if (!used_q[s]) begin
                spare      = 1'b1;
                spare_slot = s[SW-1:0];
            end
        end
    end

    wire       cut     = in_valid && h_req && hit;           // new descriptor inside a write
    wire       alloc   = in_valid && h_req && !hit && spare;
    wire       data    = in_valid && !h_req && hit;
    wire       full    = hit_cnt == hit_len;                 // this is flit len + 1
    wire       misfit  = h_last != full;
    wire       close   = cut || (data && (full || h_last));
    // The first reason stands: a refused write stays refused for what it was.
    wire [3:0] new_code = hit_code != `KT_M_NONE ? hit_code
                        : (data && h_far)        ? `KT_M_REMOTE
                        : (cut || misfit)        ? `KT_M_FRAME : `KT_M_NONE;

    assign in_ready   = alloc || data || (in_valid && !h_req && !hit);
    assign orphan     = in_valid && !h_req && !hit;
    assign orphan_who = {h_txn, h_src};

    always @(posedge clk) begin
        if (!rst_n) begin
            used_q <= {WR_SLOTS{1'b0}};
            open_q <= {WR_SLOTS{1'b0}};
        end else begin
            if (free_en) used_q[free_slot] <= 1'b0;
            if (alloc) begin
                used_q[spare_slot] <= 1'b1;
                open_q[spare_slot] <= 1'b1;
            end
            if (close) open_q[hit_slot] <= 1'b0;
        end
        if (alloc) begin
            src_q[8*spare_slot +: 8]  <= h_src;
            len_q[8*spare_slot +: 8]  <= h_len;
            cnt_q[8*spare_slot +: 8]  <= 8'd0;
            code_q[4*spare_slot +: 4] <= req_code;
        end else if (data) begin
            cnt_q[8*hit_slot +: 8]  <= hit_cnt + 8'd1;
            code_q[4*hit_slot +: 4] <= new_code;
        end
    end

    // ---------------------------------------------------------------- stores
    ram_sdp #(
        .WIDTH (59),
        .DEPTH (WR_SLOTS),
        .PRIM  ("distributed")
    ) u_info (
        .clk     (clk),
        .wr_en   (alloc),
        .wr_addr (spare_slot),
        .wr_data ({h_len[2:0], h_addr, h_txn, h_src}),
        .rd_en   (info_en),
        .rd_addr (info_slot),
        .rd_data (info_data)
    );

    ram_sdp #(
        .WIDTH (256),
        .DEPTH (WR_SLOTS * 8)
    ) u_words (
        .clk     (clk),
        .wr_en   (data && hit_code == `KT_M_NONE),
        .wr_addr ({hit_slot, hit_cnt[2:0]}),
        .wr_data (in_data[274:19]),
        .rd_en   (word_en),
        .rd_addr ({word_slot, word_index}),
        .rd_data (word_data)
    );

    // A slot is in this queue at most once, so the queue has always room.
    wire          rdy_room;
    wire [SW:0]   rdy_level;
    fifo_sync #(
        .WIDTH (SW + 4),
        .DEPTH (WR_SLOTS)
    ) u_ready (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (close),
        .in_ready  (rdy_room),
        .in_data   ({hit_slot, new_code}),
        .out_valid (rdy_valid),
        .out_ready (rdy_ready),
        .out_data  ({rdy_slot, rdy_code}),
        .level     (rdy_level)
    );

    wire unused = &{1'b0, rdy_room, rdy_level, addr_word};

endmodule

`default_nettype wire
