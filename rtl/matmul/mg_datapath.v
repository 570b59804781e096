// SPDX-License-Identifier: Apache-2.0
// Datapath of the matmul cluster: tensor array, 16 accumulator lanes, tile store, FP16 output.
//
// iss_*   one command a cycle, never refused (first one >= 2 cycles after reset): the K-block product of
//         entries iss_a, iss_b is written (LOAD) or added (ADD) to sub-tile {iss_bank, iss_addr}; iss_emit
//         also hands the new value out. The caller keeps two issues of one sub-tile >= REUSE_MIN apart.
// x_*     EMIT (0), SEND (1), ADD_PEER (2); taken when x_valid && x_ready. x_ready depends on x_op, x_bank
//         and x_addr, never on x_valid. A command taken here acts at once, so it overtakes issues that are
//         still in the array: who needs their result waits for arr_inflight = 0.
//         x_ready = 0 while (a) a command on that sub-tile is closer than REUSE_MIN = TILE_LAT + 3 before or
//         behind, (b) ADD_PEER: a partial sum takes the accumulator slot, (c) EMIT, SEND: an ADD reads
//         the same bank in this slot (LOAD reads nothing), (d) EMIT: an issue with iss_emit is on its way, so
//         that emitted words leave in the order in which their commands were accepted.
// emit_*, send_*  results, no back-pressure; emit_clamp: an element was clamped to +-65504.
// inflight / arr_inflight: 1 from the cycle after a command / an issue was taken up to and including
//         the cycle of its tile write and output.
//
// Latency: operands -> sums 17, sums -> tile write 7 (done at the next edge), -> emit_valid 8; x command ->
// emit_valid or send_valid TILE_LAT + 1. Throughput: one issue and one x command a cycle.
// Legal: TILES power of two 16..4096; ACC_MW 10, 11, 12, 14, 16; TILE_LAT 1..2; TILE_BANKS 1..2 (1: bank
// inputs ignored); MODEL 0 = packed DSP form, 1 = portable; TILE_PRIM as ram_sdp.
// Specification: docs/spec/cluster.md 4.2, 4.3, 6, 7.
`default_nettype none

module mg_datapath #(
    parameter TILES      = 512,
    parameter ACC_MW     = 14,
    parameter TILE_PRIM  = "block",
    parameter TILE_LAT   = 2,
    parameter TILE_BANKS = 2,
    parameter MODEL      = 1
) (
    input  wire                     clk,
    input  wire                     rst_n,

    input  wire                     iss_valid,
    input  wire [927:0]             iss_a,
    input  wire [927:0]             iss_b,
    input  wire                     iss_load,
    input  wire                     iss_emit,
    input  wire                     iss_bank,
    input  wire [$clog2(TILES)-1:0] iss_addr,
    input  wire [7:0]               iss_anchor,

    input  wire                     x_valid,
    input  wire [1:0]               x_op,
    input  wire                     x_bank,
    input  wire [$clog2(TILES)-1:0] x_addr,
    input  wire [16*(ACC_MW+8)-1:0] x_peer,
    output wire                     x_ready,

    output reg                      emit_valid,
    output reg  [$clog2(TILES)-1:0] emit_addr,
    output wire [255:0]             emit_data,
    output wire                     emit_clamp,

    output reg                      send_valid,
    output reg  [$clog2(TILES)-1:0] send_addr,
    output reg  [16*(ACC_MW+8)-1:0] send_data,

    output wire                     inflight,
    output wire                     arr_inflight
);
    generate
        if (TILES < 16 || TILES > 4096 || (TILES & (TILES - 1)) != 0
            || (ACC_MW != 10 && ACC_MW != 11 && ACC_MW != 12 && ACC_MW != 14 && ACC_MW != 16)
            || TILE_LAT < 1 || TILE_LAT > 2 || TILE_BANKS < 1 || TILE_BANKS > 2) begin : g_illegal
            mg_datapath_illegal_parameters u_stop ();
        end
    endgenerate

    localparam AW   = $clog2(TILES);
    localparam W    = ACC_MW + 8;
    localparam KW   = AW + 1;                              // {bank, addr}
    localparam CW   = KW + 3;                              // {peer, load, emit, bank, addr}
    localparam LAST = 9;                                   // stage of the tile write
    localparam SLOT = 6 - TILE_LAT;                        // stage of the tile read, the accumulator slot
    localparam NEAR = 2 * (TILE_LAT + 2) + 1;              // stages within REUSE_MIN-1 of the slot
    localparam PAST = TILE_LAT + 2;
    localparam [1:0] OP_EMIT = 2'd0;
    localparam [1:0] OP_SEND = 2'd1;
    localparam [1:0] OP_ADD_PEER = 2'd2;

    wire bank_mask = (TILE_BANKS == 2);

    // ---- array and command FIFO: one push per issue, one pop per set of sums, two cycles ahead of it
    localparam FW = CW - 1 + 72;
    wire          sums_pre;
    wire          sums_valid;
    wire [303:0]  sums;
    wire [FW-1:0] head;
    wire          fifo_in_ready;
    wire          fifo_out_valid;
    wire [6:0]    fifo_level;

    mg_array #(.MODEL(MODEL)) u_array (
        .clk(clk), .rst_n(rst_n), .in_valid(iss_valid), .in_a(iss_a[895:0]), .in_b(iss_b[895:0]),
        .pre_valid(sums_pre), .out_valid(sums_valid), .out_d(sums)
    );

    fifo_sync #(.WIDTH(FW), .DEPTH(64), .PRIM("distributed")) u_commands (
        .clk(clk), .rst_n(rst_n),
        .in_valid (iss_valid), .in_ready(fifo_in_ready),
        .in_data  ({iss_load, iss_emit, iss_bank && bank_mask, iss_addr, iss_anchor,
                    iss_b[927:896], iss_a[927:896]}),
        .out_valid(fifo_out_valid), .out_ready(sums_pre), .out_data(head),
        .level    (fifo_level)
    );
    wire unused_status = &{1'b0, sums_valid, fifo_in_ready, fifo_out_valid, fifo_level};

    reg [71:0] scale1_q;                                   // {anchor, sb, sa}
    reg [71:0] scale2_q;

    // ---- command pipeline: stage 0 is the FIFO head, the sums arrive in stage 2
    wire [LAST:0]        v;
    wire [CW*(LAST+1)-1:0] cmd;
    wire                 x_add;
    wire [CW-1:0]        x_cmd = {1'b1, 1'b0, 1'b0, x_bank && bank_mask, x_addr};

    assign v[0]          = sums_pre;
    assign cmd[0 +: CW]  = {1'b0, head[FW-1:72]};

    genvar s;
    generate
        for (s = 1; s <= LAST; s = s + 1) begin : g_stage
            reg          v_q;
            reg [CW-1:0] cmd_q;
            wire         take_peer = (s == SLOT + 1) && x_add;
            always @(posedge clk) begin
                if (!rst_n) v_q <= 1'b0;
                else        v_q <= v[s-1] || take_peer;
                if (v[s-1] || take_peer) cmd_q <= take_peer ? x_cmd : cmd[CW*(s-1) +: CW];
            end
            assign v[s]            = v_q;
            assign cmd[CW*s +: CW] = cmd_q;
        end
    endgenerate

    always @(posedge clk) begin
        if (v[0]) scale1_q <= head[71:0];
        if (v[1]) scale2_q <= scale1_q;
    end

    wire          slot_load  = cmd[CW*SLOT + KW + 1];
    wire          slot_bank  = cmd[CW*SLOT + AW];
    wire [AW-1:0] slot_addr  = cmd[CW*SLOT +: AW];
    wire          slot_read  = v[SLOT] && !slot_load;
    wire          add_load   = cmd[CW*6 + KW + 1];
    wire          add_peer   = cmd[CW*6 + KW + 2];
    wire          last_peer  = cmd[CW*LAST + KW + 2];
    wire          last_emit  = cmd[CW*LAST + KW];
    wire          last_bank  = cmd[CW*LAST + AW];
    wire [AW-1:0] last_addr  = cmd[CW*LAST +: AW];

    // ---- drain reads: stage n is n cycles after acceptance; data arrive in stage TILE_LAT
    wire              x_read;
    wire [PAST:0]     xv;
    wire [KW*(PAST+1)-1:0] xkey;
    wire [TILE_LAT:0] xsend;

    assign xv[0]         = x_read;
    assign xkey[0 +: KW] = {x_bank && bank_mask, x_addr};
    assign xsend[0]      = x_op == OP_SEND;

    generate
        for (s = 1; s <= PAST; s = s + 1) begin : g_xstage
            reg          v_q;
            reg [KW-1:0] key_q;
            always @(posedge clk) begin
                if (!rst_n) v_q <= 1'b0;
                else        v_q <= xv[s-1];
                if (xv[s-1]) key_q <= xkey[KW*(s-1) +: KW];
            end
            assign xv[s]            = v_q;
            assign xkey[KW*s +: KW] = key_q;
        end
        for (s = 1; s <= TILE_LAT; s = s + 1) begin : g_xsend
            reg send_q;
            always @(posedge clk) if (xv[s-1]) send_q <= xsend[s-1];
            assign xsend[s] = send_q;
        end
    endgenerate

    // ---- acceptance of drain and peer commands
    wire [KW*NEAR-1:0] near_key;
    wire               reuse_hit;
    generate
        for (s = 0; s < NEAR; s = s + 1) begin : g_near
            assign near_key[KW*s +: KW] = cmd[CW*(SLOT-TILE_LAT-2+s) +: KW];
        end
    endgenerate

    mg_reuse_guard #(.KEY_W(KW), .NEAR(NEAR), .PAST(PAST)) u_guard (
        .key       (xkey[0 +: KW]),
        .near_valid(v[SLOT-TILE_LAT-2 +: NEAR]), .near_key(near_key),
        .past_valid(xv[PAST:1]),                 .past_key(xkey[KW +: KW*PAST]),
        .hit       (reuse_hit)
    );

    reg  [5:0] arr_count_q;                                // issues whose tile is not yet written
    reg  [5:0] emit_count_q;                               // of these, issues that hand out
    wire       arr_done  = v[LAST] && !last_peer;
    wire       emit_done = v[LAST] && last_emit;

    wire port_taken = slot_read && slot_bank == (x_bank && bank_mask);
    wire is_add     = x_op == OP_ADD_PEER;
    wire add_ok     = !v[SLOT];
    wire read_ok    = !port_taken && (x_op != OP_EMIT || emit_count_q == 6'd0);

    assign x_ready = !reuse_hit && (is_add ? add_ok : read_ok);
    assign x_add   = x_valid && x_ready && is_add;
    assign x_read  = x_valid && x_ready && !is_add;

    always @(posedge clk) begin
        if (!rst_n) begin
            arr_count_q  <= 6'd0;
            emit_count_q <= 6'd0;
        end else begin
            arr_count_q  <= arr_count_q + {5'd0, iss_valid} - {5'd0, arr_done};
            emit_count_q <= emit_count_q + {5'd0, iss_valid && iss_emit} - {5'd0, emit_done};
        end
    end

    // ---- peer operand, beside the tile read
    wire [16*W-1:0] peer;
    reg  [16*W-1:0] peer1_q;
    always @(posedge clk) if (x_add) peer1_q <= x_peer;
    generate
        if (TILE_LAT == 1) begin : g_peer1
            assign peer = peer1_q;
        end else begin : g_peer2
            reg [16*W-1:0] peer2_q;
            always @(posedge clk)
                if (v[SLOT+1] && cmd[CW*(SLOT+1) + KW + 2]) peer2_q <= peer1_q;
            assign peer = peer2_q;
        end
    endgenerate

    // ---- tile store
    wire [16*W-1:0] result;
    wire [16*W-1:0] acc_tile;
    wire [16*W-1:0] x_tile;

    mg_tile_store #(
        .TILES(TILES), .WIDTH(16*W), .TILE_PRIM(TILE_PRIM), .TILE_LAT(TILE_LAT), .TILE_BANKS(TILE_BANKS)
    ) u_tiles (
        .clk      (clk),               .rst_n   (rst_n),
        .wr_en    (v[LAST]),           .wr_bank (last_bank),
        .wr_addr  (last_addr),         .wr_data (result),
        .acc_rd_en(slot_read || x_add),
        .acc_bank (v[SLOT] ? slot_bank : x_bank && bank_mask),
        .acc_addr (v[SLOT] ? slot_addr : x_addr),
        .acc_data (acc_tile),
        .x_rd_en  (x_read),            .x_bank  (x_bank && bank_mask),
        .x_addr   (x_addr),            .x_data  (x_tile)
    );

    // ---- lanes and outputs
    wire        x_emit   = xv[TILE_LAT] && !xsend[TILE_LAT];
    wire        x_send   = xv[TILE_LAT] && xsend[TILE_LAT];
    wire        conv_en  = emit_done || x_emit;
    wire [15:0] clamp;

    generate
        for (s = 0; s < 16; s = s + 1) begin : g_lane      // s = 4*i + j
            mg_lane #(.ACC_MW(ACC_MW)) u_lane (
                .clk(clk), .en(v[8:2]),
                .d       (sums[19*s +: 19]),
                .sa      (scale2_q[8*(s/4) +: 8]),
                .sb      (scale2_q[32 + 8*(s%4) +: 8]),
                .anchor  (scale2_q[71:64]),
                .load    (add_load),
                .use_peer(add_peer),
                .tile    (acc_tile[W*s +: W]),
                .peer    (peer[W*s +: W]),
                .conv_en  (conv_en),
                .conv_read(x_emit),
                .read    (x_tile[W*s +: W]),
                .result  (result[W*s +: W]),
                .half    (emit_data[16*s +: 16]),
                .clamp   (clamp[s])
            );
        end
    endgenerate

    always @(posedge clk) begin
        if (!rst_n) begin
            emit_valid <= 1'b0;
            send_valid <= 1'b0;
        end else begin
            emit_valid <= conv_en;
            send_valid <= x_send;
        end
        if (conv_en) emit_addr <= x_emit ? xkey[KW*TILE_LAT +: AW] : last_addr;
        if (x_send) begin
            send_addr <= xkey[KW*TILE_LAT +: AW];
            send_data <= x_tile;
        end
    end

    assign emit_clamp   = |clamp;
    assign arr_inflight = arr_count_q != 6'd0;
    assign inflight     = arr_inflight || |v[LAST:SLOT+1] || |xv[TILE_LAT:1] || emit_valid || send_valid;
endmodule

`default_nettype wire
