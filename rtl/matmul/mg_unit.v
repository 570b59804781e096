// SPDX-License-Identifier: Apache-2.0
// mg_unit: the matmul unit behind the shell: control, operand memories and
// datapath (docs/spec/cluster.md).
//
// One instruction executes at a time; what outlives it (the sweep of a GEMM, an
// emitted batch, CU_DATA bursts) runs beside later ones under the interlocks of
// 4.4, 4.5, 5.3 and 8.4. Parameters as mg_cluster.
`default_nettype none
`include "ktpu_defs.vh"

module mg_unit #(
    parameter [3:0] CU_X       = 4'd2,
    parameter [3:0] CU_Y       = 4'd1,
    parameter [3:0] MEM_X      = 4'd0,
    parameter [3:0] MEM_Y      = 4'd1,
    parameter       TILES      = 512,
    parameter       GA         = 512,
    parameter       GB         = 512,
    parameter       ACC_MW     = 14,
    parameter       ACKQ_DEPTH = 128,
    parameter       L1_PRIM    = "block",
    parameter       L1_LAT     = 1,
    parameter       TILE_PRIM  = "block",
    parameter       TILE_LAT   = 2,
    parameter       TILE_BANKS = 2,
    parameter       EMIT_BUF   = 512,
    parameter       FILL_WDOG  = 1048576,
    parameter       PEER_WDOG  = 65536,
    parameter       ROWMAJOR   = 0,
    parameter       MODEL      = 1
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire [287:0] inst_flit,
    input  wire         inst_valid,
    output wire         inst_ready,
    output wire         exec_done,
    output wire         exec_fault,
    output wire [31:0]  exec_result,
    output wire         exec_cover,

    output wire [287:0] send_flit,
    output wire         send_valid,
    input  wire         send_ready,
    input  wire [287:0] recv_flit,
    input  wire         recv_valid,
    output wire         recv_ready,

    output wire [63:0]  dbg_ctr,
    output wire [7:0]   unit_err,
    output wire [15:0]  dbg_fills,
    output wire [15:0]  dbg_gemms,
    output wire [15:0]  dbg_drains
);

    localparam TW     = $clog2(TILES);
    localparam TILE_W = 16 * (ACC_MW + 8);
    localparam REUSE  = TILE_LAT + 3;
    localparam [1:0] X_EMIT = 2'd0;
    localparam [1:0] X_SEND = 2'd1;
    localparam [1:0] X_PEER = 2'd2;

    // ------------------------------------------------------------------ front
    wire         l1_ready;
    wire [255:0] inst;
    wire         inst_last, in_flight, rec_open, retire;
    wire [7:0]   refused;
    wire         go_fill, go_gemm, go_drain, go_bank;
    wire [15:0]  go_n;
    wire [7:0]   go_gm, go_gn, go_nk;
    wire [37:0]  go_region, armed_region, run_region;
    wire [13:0]  go_granules;
    wire [12:0]  open_count;

    mg_front #(.CU_X(CU_X), .CU_Y(CU_Y), .TILES(TILES), .GA(GA), .GB(GB),
               .TILE_BANKS(TILE_BANKS), .ROWMAJOR(ROWMAJOR)) u_front (
        .clk        (clk),
        .rst_n      (rst_n),
        .ready      (l1_ready),
        .inst_flit  (inst_flit),
        .inst_valid (inst_valid),
        .inst_ready (inst_ready),
        .inst       (inst),
        .last       (inst_last),
        .in_flight  (in_flight),
        .open       (rec_open),
        .refused    (refused),
        .retire     (retire),
        .go_fill    (go_fill),
        .go_gemm    (go_gemm),
        .go_drain   (go_drain),
        .go_bank    (go_bank),
        .n          (go_n),
        .gm         (go_gm),
        .gn         (go_gn),
        .nk         (go_nk),
        .region     (go_region),
        .granules   (go_granules),
        .open_count (open_count)
    );

    // ---------------------------------------------------------------- inbound
    // FILL responses are always taken; only CU_DATA can wait.
    wire is_data    = recv_flit[`KT_FLIT_TYPE] == `KT_TYPE_CU_DATA;
    wire is_resp    = recv_flit[`KT_FLIT_TYPE] == `KT_TYPE_MEM_RD_RESP;
    wire data_ready;
    wire data_valid = recv_valid && is_data && l1_ready;
    wire resp_valid = recv_valid && is_resp && l1_ready;
    assign recv_ready = l1_ready && (!is_data || data_ready);

    wire         desc_valid, wr_valid, wr_ready, wr_last, burst_end, burst_open_unused;
    wire [7:0]   desc_buf, desc_len, wr_buf;
    wire [15:0]  desc_off, wr_granule;
    wire [2:0]   desc_reason;
    wire [255:0] wr_data;
    wire         sig_valid, sig_ready, peer_abort;
    wire [287:0] sig_flit;
    wire [1:0]   cud_err;

    cud_rx #(.POS_X(CU_X), .POS_Y(CU_Y), .ACKQ_DEPTH(ACKQ_DEPTH)) u_cud_rx (
        .clk         (clk),
        .rst_n       (rst_n),
        .in_flit     (recv_flit),
        .in_valid    (data_valid),
        .in_ready    (data_ready),
        .desc_valid  (desc_valid),
        .desc_buf    (desc_buf),
        .desc_off    (desc_off),
        .desc_len    (desc_len),
        .desc_reason (desc_reason),
        .wr_valid    (wr_valid),
        .wr_ready    (wr_ready),
        .wr_buf      (wr_buf),
        .wr_granule  (wr_granule),
        .wr_data     (wr_data),
        .wr_last     (wr_last),
        .sig_valid   (sig_valid),
        .sig_ready   (sig_ready),
        .sig_flit    (sig_flit),
        .abort       (peer_abort),
        .open        (burst_open_unused),
        .burst_end   (burst_end),
        .err         (cud_err)
    );

    wire wr_peer = wr_buf == `KT_MG_BUF_ACC;
    wire peer_wr_ready, l1_wr_ready;
    assign wr_ready = wr_peer ? peer_wr_ready : l1_wr_ready;

    // ------------------------------------------------------ operands and sweep
    wire         f_commit, f_side, c_commit, c_ready, c_side, c_pending;
    wire [8:0]   f_idx, c_idx;
    wire [927:0] f_raw, c_raw;
    wire         fill_hold, recv_hold;
    wire [19:0]  fill_region;
    wire         req_valid, req_ready;
    wire [287:0] req_flit;
    wire         fill_done, ev_resp, ev_wdog, ev_split;
    wire [7:0]   fill_code;

    mg_fill #(.CU_X(CU_X), .CU_Y(CU_Y), .MEM_X(MEM_X), .MEM_Y(MEM_Y), .WDOG(FILL_WDOG)) u_fill (
        .clk         (clk),
        .rst_n       (rst_n),
        .go          (go_fill),
        .go_addr     ({inst[`KT_MG_INST_ADDR_HI], inst[`KT_MG_INST_ADDR_LO]}),
        .go_n        (go_n[7:0]),
        .go_eoff     (inst[`KT_MG_INST_EOFF]),
        .go_bank     (inst[`KT_MG_INST_FBANK]),
        .go_side     (inst[`KT_MG_INST_SEL]),
        .hold        (fill_hold),
        .region      (fill_region),
        .req_valid   (req_valid),
        .req_ready   (req_ready),
        .req_flit    (req_flit),
        .resp_valid  (resp_valid),
        .resp_flit   (recv_flit),
        .commit      (f_commit),
        .commit_side (f_side),
        .commit_idx  (f_idx),
        .commit_raw  (f_raw),
        .done        (fill_done),
        .done_code   (fill_code),
        .a_resp      (ev_resp),
        .wdog_event  (ev_wdog)
    );

    // Sub-tiles opened by sweeps that have started: what a stream may add to.
    reg [12:0] live_count_q;

    mg_recv #(.TILES(TILES), .GA(GA), .GB(GB)) u_recv (
        .clk          (clk),
        .rst_n        (rst_n),
        .desc_buf     (desc_buf),
        .desc_off     (desc_off),
        .desc_len     (desc_len),
        .open_count   (live_count_q),
        .desc_reason  (desc_reason),
        .wr_valid     (wr_valid && !wr_peer),
        .wr_ready     (l1_wr_ready),
        .wr_side      (wr_buf[0]),
        .wr_granule   (wr_granule[10:0]),
        .wr_data      (wr_data),
        .commit       (c_commit),
        .commit_ready (c_ready),
        .commit_side  (c_side),
        .commit_idx   (c_idx),
        .commit_raw   (c_raw),
        .hold         (recv_hold),
        .pending      (c_pending),
        .a_split      (ev_split)
    );

    wire          armed, armed_emit, start_ok, start, first, run, sweep_busy;
    wire          rd_en;
    wire [8:0]    rd_a_idx, rd_b_idx;
    wire [927:0]  rd_a, rd_b;
    wire          iss_valid, iss_load, iss_emit, iss_bank;
    wire [TW-1:0] iss_addr;
    wire [7:0]    iss_anchor;

    mg_sweep #(.TILES(TILES), .L1_LAT(L1_LAT), .REUSE(REUSE)) u_sweep (
        .clk        (clk),
        .rst_n      (rst_n),
        .go         (go_gemm),
        .go_gm      (go_gm),
        .go_gn      (go_gn),
        .go_nk      (go_nk),
        .go_region  (go_region),
        .go_acc     (inst[`KT_MG_INST_ACC]),
        .go_emit    (inst[`KT_MG_INST_EMIT]),
        .go_bank    (go_bank),
        .go_anchor  (inst[`KT_MG_INST_ANCHOR]),
        .armed      (armed),
        .armed_emit (armed_emit),
        .start_ok   (start_ok),
        .start      (start),
        .first      (first),
        .armed_region (armed_region),
        .run        (run),
        .run_region (run_region),
        .rd_en      (rd_en),
        .rd_a_idx   (rd_a_idx),
        .rd_b_idx   (rd_b_idx),
        .iss_valid  (iss_valid),
        .iss_load   (iss_load),
        .iss_emit   (iss_emit),
        .iss_bank   (iss_bank),
        .iss_addr   (iss_addr),
        .iss_anchor (iss_anchor),
        .busy       (sweep_busy)
    );

    mg_hazard u_hazard (
        .armed      (armed),
        .armed_region (armed_region),
        .run        (run),
        .run_region (run_region),
        .fill_region (fill_region),
        .fill_hold  (fill_hold),
        .recv_side  (c_side),
        .recv_idx   (c_idx),
        .recv_hold  (recv_hold)
    );

    mg_l1 #(.GA(GA), .GB(GB), .PRIM(L1_PRIM), .LAT(L1_LAT)) u_l1 (
        .clk      (clk),
        .rst_n    (rst_n),
        .ready    (l1_ready),
        .f_commit (f_commit),
        .f_side   (f_side),
        .f_idx    (f_idx),
        .f_raw    (f_raw),
        .c_commit (c_commit),
        .c_ready  (c_ready),
        .c_side   (c_side),
        .c_idx    (c_idx),
        .c_raw    (c_raw),
        .rd_en    (rd_en),
        .rd_a_idx (rd_a_idx),
        .rd_b_idx (rd_b_idx),
        .rd_a     (rd_a),
        .rd_b     (rd_b)
    );

    // --------------------------------------------------- drain and peer stream
    wire          arr_inflight, inflight_unused, ctx_free, burst_idle, room, peer_open;
    wire          drain_start, drain_active;
    wire          dx_valid, dx_send, dx_bank, dx_ready;
    wire [TW-1:0] dx_addr;
    wire          drain_all;
    wire [TW:0]   drain_t;
    wire          px_valid, px_ready;
    wire [TW-1:0] px_addr;
    wire [TILE_W-1:0] px_peer;
    reg           live_bank_q;          // bank of the last started sweep

    wire tiles_quiet = !sweep_busy && !arr_inflight;
    wire is_send     = inst[`KT_MG_INST_DNODE] && (inst[`KT_MG_INST_DBUF] == `KT_MG_BUF_ACC);

    // Nothing outside the unit is waited for once this held (4.5).
    assign start_ok = !peer_open && !c_pending && !drain_active && (!armed_emit || ctx_free);

    mg_drain #(.TILES(TILES)) u_drain (
        .clk      (clk),
        .rst_n    (rst_n),
        .go       (go_drain),
        .go_n     (go_n[TW:0]),
        .go_send  (is_send),
        .go_bank  (go_bank),
        .start_ok (tiles_quiet && !peer_open && ctx_free),
        .start    (drain_start),
        .active   (drain_active),
        .room     (room),
        .x_valid  (dx_valid),
        .x_send   (dx_send),
        .x_bank   (dx_bank),
        .x_addr   (dx_addr),
        .x_ready  (dx_ready),
        .read_all (drain_all),
        .read_t   (drain_t)
    );

    mg_peer #(.TILES(TILES), .TILE_W(TILE_W), .WDOG(PEER_WDOG)) u_peer (
        .clk         (clk),
        .rst_n       (rst_n),
        .desc_accept (desc_valid && (desc_buf == `KT_MG_BUF_ACC) && (desc_reason == `KT_REJ_NONE)),
        .burst_end   (burst_end),
        .open        (peer_open),
        .abort       (peer_abort),
        .wr_valid    (wr_valid && wr_peer),
        .wr_ready    (peer_wr_ready),
        .wr_granule  (wr_granule[TW:0]),
        .wr_data     (wr_data),
        .wr_last     (wr_last),
        .tiles_quiet (tiles_quiet),
        .drain_all   (drain_all),
        .drain_t     (drain_t),
        .drain_n     (go_n[TW:0]),
        .x_valid     (px_valid),
        .x_addr      (px_addr),
        .x_peer      (px_peer),
        .x_ready     (px_ready)
    );

    wire          x_ready;
    wire          x_valid = dx_valid || px_valid;
    wire [1:0]    x_op    = !dx_valid ? X_PEER : dx_send ? X_SEND : X_EMIT;
    wire          x_bank  = dx_valid ? dx_bank : live_bank_q;
    wire [TW-1:0] x_addr  = dx_valid ? dx_addr : px_addr;
    assign dx_ready = x_ready;
    assign px_ready = x_ready && !dx_valid;

    wire              emit_valid, emit_clamp, send_out_valid;
    wire [255:0]      emit_data;
    wire [TILE_W-1:0] send_out_data;
    wire [TW-1:0]     emit_addr_unused, send_addr_unused;

    mg_datapath #(.TILES(TILES), .ACC_MW(ACC_MW), .TILE_PRIM(TILE_PRIM), .TILE_LAT(TILE_LAT),
                  .TILE_BANKS(TILE_BANKS), .MODEL(MODEL)) u_datapath (
        .clk          (clk),
        .rst_n        (rst_n),
        .iss_valid    (iss_valid),
        .iss_a        (rd_a),
        .iss_b        (rd_b),
        .iss_load     (iss_load),
        .iss_emit     (iss_emit),
        .iss_bank     (iss_bank),
        .iss_addr     (iss_addr),
        .iss_anchor   (iss_anchor),
        .x_valid      (x_valid),
        .x_op         (x_op),
        .x_bank       (x_bank),
        .x_addr       (x_addr),
        .x_peer       (px_peer),
        .x_ready      (x_ready),
        .emit_valid   (emit_valid),
        .emit_addr    (emit_addr_unused),
        .emit_data    (emit_data),
        .emit_clamp   (emit_clamp),
        .send_valid   (send_out_valid),
        .send_addr    (send_addr_unused),
        .send_data    (send_out_data),
        .inflight     (inflight_unused),
        .arr_inflight (arr_inflight)
    );

    // --------------------------------------------------------------- outbound
    wire         drain_valid, drain_ready;
    wire [287:0] drain_flit;

    mg_burst #(.CU_X(CU_X), .CU_Y(CU_Y), .MEM_X(MEM_X), .MEM_Y(MEM_Y), .EMIT_BUF(EMIT_BUF),
               .SEND_W(TILE_W), .ROWMAJOR(ROWMAJOR)) u_burst (
        .clk           (clk),
        .rst_n         (rst_n),
        .open          (drain_start || (start && armed_emit)),
        .open_inst     (inst),
        .open_granules (go_granules),
        .ctx_free      (ctx_free),
        .idle          (burst_idle),
        .take          (dx_valid && dx_ready),
        .take_two      (dx_send),
        .room          (room),
        .emit_valid    (emit_valid),
        .emit_data     (emit_data),
        .send_valid    (send_out_valid),
        .send_data     (send_out_data),
        .out_valid     (drain_valid),
        .out_ready     (drain_ready),
        .out_flit      (drain_flit)
    );

    cu_send u_send (
        .clk         (clk),
        .rst_n       (rst_n),
        .sig_valid   (sig_valid),
        .sig_ready   (sig_ready),
        .sig_flit    (sig_flit),
        .req_valid   (req_valid),
        .req_ready   (req_ready),
        .req_flit    (req_flit),
        .drain_valid (drain_valid),
        .drain_ready (drain_ready),
        .drain_flit  (drain_flit),
        .open        (1'b0),
        .send_valid  (send_valid),
        .send_ready  (send_ready),
        .send_flit   (send_flit)
    );

    // -------------------------------------------- events, retirement, counters
    wire       async_valid;
    wire [7:0] async_code;

    mg_events u_events (
        .clk         (clk),
        .rst_n       (rst_n),
        .desc_valid  (desc_valid),
        .desc_reason (desc_reason),
        .burst_end   (burst_end),
        .cud_err     (cud_err),
        .peer_abort  (peer_abort),
        .resp        (ev_resp),
        .split       (ev_split),
        .clamp       (emit_valid && emit_clamp),
        .fill_wdog   (ev_wdog),
        .async_valid (async_valid),
        .async_code  (async_code),
        .unit_err    (unit_err)
    );

    mg_retire u_retire (
        .clk          (clk),
        .rst_n        (rst_n),
        .open         (rec_open),
        .op           (inst[`KT_MG_INST_OP]),
        .fuse         (inst[`KT_MG_INST_FUSE]),
        .last         (inst_last),
        .decode_code  (refused),
        .fill_done    (fill_done),
        .fill_code    (fill_code),
        .gemm_first   (first),
        .drain_active (drain_active),
        .burst_idle   (burst_idle),
        .async_valid  (async_valid),
        .async_code   (async_code),
        .retire       (retire),
        .exec_done    (exec_done),
        .exec_fault   (exec_fault),
        .exec_result  (exec_result),
        .exec_cover   (exec_cover),
        .fills_q      (dbg_fills),
        .gemms_q      (dbg_gemms),
        .drains_q     (dbg_drains)
    );

    mg_counters u_counters (
        .clk     (clk),
        .rst_n   (rst_n),
        .fill    (in_flight && (inst[`KT_MG_INST_OP] == `KT_MG_OP_FILL)),
        .sweep   (!tiles_quiet),
        .dbg_ctr (dbg_ctr)
    );

    always @(posedge clk) begin
        if (!rst_n) begin
            live_count_q <= 13'd0;
            live_bank_q  <= 1'b0;
        end else begin
            if (iss_valid) live_bank_q <= iss_bank;
            if (first) live_count_q <= open_count;
        end
    end

    // Decode and cud_rx bound both; the upper bits are zero here.
    wire unused = &{1'b0, go_n, wr_granule};

endmodule

`default_nettype wire
