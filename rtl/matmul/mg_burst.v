// SPDX-License-Identifier: Apache-2.0
// mg_burst: drain queue, collection into bursts of eight granules, and the
// outgoing descriptors and data flits (docs/spec/cluster.md 5.1, 5.2, 5.4).
//
// One context (destination, granules left) collects at a time; it is free again
// when its last granule lies in the burst buffer, whose halves carry their own
// descriptor. Granules 8b..8b+7 are burst b, whatever the timing.
// ROWMAJOR = 1: the queue turns the sub-tiles of a row-major DRAIN into rows, and
// a burst also ends with a row that lies apart from the next one (5.6).
//
// Throughput 9 flits for 8 granules, without a gap: one half is collected while
// the other is sent. A burst is offered only when it is complete.
// The queue holds EMIT_BUF >= TILES granules; the caller opens an emit context
// only when it is free, so a whole batch fits, and issues EMIT or SEND only with
// `room`: pushes are never refused.
`default_nettype none
`include "ktpu_defs.vh"

module mg_burst #(
    parameter [3:0] CU_X     = 4'd0,
    parameter [3:0] CU_Y     = 4'd0,
    parameter [3:0] MEM_X    = 4'd0,
    parameter [3:0] MEM_Y    = 4'd0,
    parameter       EMIT_BUF = 512,
    parameter       SEND_W   = 352,
    parameter       ROWMAJOR = 0
) (
    input  wire              clk,
    input  wire              rst_n,

    // context
    input  wire              open,
    input  wire [255:0]      open_inst,     // destination fields of the instruction
    input  wire [13:0]       open_granules,
    output wire              ctx_free,
    output wire              idle,          // nothing collected, queued or unsent

    // credits of explicit drains
    input  wire              take,
    input  wire              take_two,
    output wire              room,

    // results of the datapath
    input  wire              emit_valid,
    input  wire [255:0]      emit_data,
    input  wire              send_valid,
    input  wire [SEND_W-1:0] send_data,

    output wire              out_valid,
    input  wire              out_ready,
    output wire [287:0]      out_flit
);

    localparam HI_W = SEND_W - 256;
    localparam QW   = $clog2(EMIT_BUF);
    localparam [QW+1:0] ROOM_MAX = EMIT_BUF[QW+1:0] - {{QW{1'b0}}, 2'd2};

    wire [39:0] o_addr = {open_inst[`KT_MG_INST_ADDR_HI], open_inst[`KT_MG_INST_ADDR_LO]};

    // ---- push side: a SEND is two granules, the second one a cycle later
    reg             hi_pend_q;
    reg  [HI_W-1:0] hi_q;
    wire            push = emit_valid || send_valid || hi_pend_q;
    wire [255:0]    push_data = hi_pend_q ? {{(256-HI_W){1'b0}}, hi_q}
                              : send_valid ? send_data[255:0] : emit_data;

    wire         q_valid, q_pop, q_ready;
    wire [255:0] q_data;
    wire         row_ends;              // this pop is the last one of its run
    wire [39:0]  row_next;

    generate
        if (ROWMAJOR != 0) begin : g_rows
            wire        rows  = (open_inst[`KT_MG_INST_OP] == `KT_MG_OP_DRAIN) && open_inst[`KT_MG_INST_ROWMAJOR];
            wire [7:0]  gn    = open_inst[`KT_MG_INST_GN];
            wire [5:0]  quads = rows ? gn[7:2] : 6'd0;
            wire [21:0] pitch = open_inst[`KT_MG_INST_PITCH];
            wire        unused_gn = &{1'b0, gn[1:0]};

            mg_row_queue #(.DEPTH(EMIT_BUF)) u_queue (
                .clk       (clk),
                .rst_n     (rst_n),
                .open      (open),
                .quads     (quads),
                .in_valid  (push),
                .in_ready  (q_ready),
                .in_data   (push_data),
                .out_valid (q_valid),
                .out_ready (q_pop),
                .out_data  (q_data)
            );

            mg_row_runs u_runs (
                .clk   (clk),
                .open  (open),
                .apart (rows && (pitch != {16'd0, quads})),
                .base  (o_addr),
                .words (quads),
                .pitch (pitch),
                .pop   (q_pop),
                .ends  (row_ends),
                .next  (row_next)
            );
        end else begin : g_linear
            wire [QW:0] level;
            wire        unused_level = &{1'b0, level};

            fifo_sync #(.WIDTH(256), .DEPTH(EMIT_BUF), .PRIM("block")) u_queue (
                .clk       (clk),
                .rst_n     (rst_n),
                .in_valid  (push),
                .in_ready  (q_ready),
                .in_data   (push_data),
                .out_valid (q_valid),
                .out_ready (q_pop),
                .out_data  (q_data),
                .level     (level)
            );
            assign row_ends = 1'b0;
            assign row_next = 40'd0;
        end
    endgenerate

    // ---- credits: commands issued by a DRAIN and not yet popped. An emitting
    // sweep takes none: it starts only on an empty queue.
    reg          credited_q;            // the open context is a DRAIN's
    reg [QW+1:0] used_q;
    wire [QW+1:0] used_add = !take ? {(QW+2){1'b0}} : take_two ? {{QW{1'b0}}, 2'd2} : {{QW{1'b0}}, 2'd1};
    wire [QW+1:0] used_sub = {{(QW+1){1'b0}}, q_pop && credited_q};
    assign room = used_q <= ROOM_MAX;

    // ---- collection
    reg         ctx_q;
    reg [13:0]  left_q;
    reg [39:0]  addr_q;
    reg         node_q;
    reg [18:0]  head_q;                 // dst, txn, rsvd
    reg [23:0]  tail_q;                 // flags, ack of a node descriptor
    reg         c_half_q;
    reg [2:0]   c_pos_q;
    reg [1:0]   full_q;

    assign q_pop = q_valid && ctx_q && !full_q[c_half_q];
    wire   c_last = left_q == 14'd1;
    wire   c_done = q_pop && (c_last || (c_pos_q == 3'd7) || row_ends);
    assign ctx_free = !ctx_q;
    assign idle     = !ctx_q && (full_q == 2'b00);

    wire        o_node   = open_inst[`KT_MG_INST_DNODE];
    wire        o_remote = o_node && (open_inst[`KT_MG_INST_DFIN] != 8'd0);
    wire [7:0]  o_dst    = o_node ? {open_inst[`KT_MG_INST_DST_X], open_inst[`KT_MG_INST_DST_Y]}
                                  : {MEM_X, MEM_Y};
    wire [7:0]  o_txn    = o_remote ? open_inst[`KT_MG_INST_DFIN] : `KT_MG_DRAIN_TXN;
    wire [2:0]  o_rsvd   = o_remote ? {1'b1, open_inst[`KT_MG_INST_DMESH]} : 3'd0;

    wire [47:0] desc = node_q
        ? {tail_q[23:16], addr_q[20:5], 5'd0, c_pos_q, tail_q[15:0]}
        : {addr_q, 5'd0, c_pos_q};

    // ---- sending
    reg         s_half_q;
    reg [3:0]   s_pos_q;                // 0 descriptor, 1.. data
    reg [66:0]  half0_q, half1_q;       // desc 48, head 19 (the node bit is kept apart)
    reg [1:0]   half_node_q;
    wire [66:0] half   = s_half_q ? half1_q : half0_q;
    wire        s_node = half_node_q[s_half_q];
    wire [2:0]  s_len  = s_node ? half[37:35] : half[21:19];
    wire        s_desc = s_pos_q == 4'd0;
    wire        s_last = !s_desc && (s_pos_q == {1'b0, s_len} + 4'd1);
    wire        fire   = out_valid && out_ready;
    wire        s_done = fire && s_last;
    wire [255:0] word;

    ram_sdp #(.WIDTH(256), .DEPTH(16), .PRIM("distributed"), .READ_LAT(1)) u_burst (
        .clk     (clk),
        .wr_en   (q_pop),
        .wr_addr ({c_half_q, c_pos_q}),
        .wr_data (q_data),
        .rd_en   (fire && !s_last),
        .rd_addr ({s_half_q, s_pos_q[2:0]}),
        .rd_data (word)
    );

    wire [3:0] s_type = s_node ? `KT_TYPE_CU_DATA
                      : s_desc ? `KT_TYPE_MEM_WR_REQ : `KT_TYPE_MEM_WR_DATA;

    assign out_valid = full_q[s_half_q];
    assign out_flit  = {half[18:11], CU_X, CU_Y, s_type, half[10:3], s_last, half[2:0],
                        s_desc ? {half[66:19], 208'd0} : word};

    always @(posedge clk) begin
        if (!rst_n) begin
            ctx_q     <= 1'b0;
            full_q    <= 2'b00;
            c_half_q  <= 1'b0;
            c_pos_q   <= 3'd0;
            s_half_q  <= 1'b0;
            s_pos_q   <= 4'd0;
            hi_pend_q <= 1'b0;
            used_q    <= {(QW+2){1'b0}};
        end else begin
            hi_pend_q <= send_valid;
            used_q    <= used_q + used_add - used_sub;

            if (open) ctx_q <= 1'b1;
            else if (q_pop && c_last) ctx_q <= 1'b0;

            if (c_done) begin
                c_half_q <= !c_half_q;
                c_pos_q  <= 3'd0;
            end else if (q_pop) begin
                c_pos_q <= c_pos_q + 3'd1;
            end

            if (s_done) begin
                s_half_q <= !s_half_q;
                s_pos_q  <= 4'd0;
            end else if (fire) begin
                s_pos_q <= s_pos_q + 4'd1;
            end

            full_q[0] <= (full_q[0] || (c_done && !c_half_q)) && !(s_done && !s_half_q);
            full_q[1] <= (full_q[1] || (c_done && c_half_q)) && !(s_done && s_half_q);
        end

        if (send_valid) hi_q <= send_data[SEND_W-1:256];

        if (open) begin
            left_q     <= open_granules;
            addr_q     <= o_addr;
            node_q     <= o_node;
            head_q     <= {o_dst, o_txn, o_rsvd};
            tail_q     <= {open_inst[`KT_MG_INST_DBUF], open_inst[`KT_MG_INST_DFLAGS],
                           open_inst[`KT_MG_INST_DACK_Y], open_inst[`KT_MG_INST_DACK_X]};
        end else begin
            if (q_pop) left_q <= left_q - 14'd1;
            if (c_done) addr_q <= row_ends ? row_next : addr_q + 40'd256;
        end
        if (take) credited_q <= 1'b1;
        else if (open) credited_q <= 1'b0;

        if (c_done && !c_half_q) half0_q <= {desc, head_q};
        if (c_done && c_half_q)  half1_q <= {desc, head_q};
        if (c_done) half_node_q[c_half_q] <= node_q;
    end

    // The instruction carries more than a destination; the queue never fills.
    wire unused = &{1'b0, open_inst, q_ready};

endmodule

`default_nettype wire
