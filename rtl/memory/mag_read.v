// SPDX-License-Identifier: Apache-2.0
// mag_read: read engine of one memory port. Fetches plain and streaming reads in
// arrival order into a ring of words and emits them as MEM_RD_RESP flits to the
// requester and its peers.
//
// Latency    6 cycles from a request at the queue head to its first flit, plus
//            the memory's latency.
// Throughput one response flit per cycle as long as the memory returns one word
//            per cycle; requests are fetched ahead of the one being emitted.
// Reservation a burst is requested only when the ring has room for all of it, so
//            returned data is never refused.
// Parameters RING a power of two >= 32 (words); PORT_X, PORT_Y the coordinate.
// Spec       docs/spec/memory.md 4, 7
`default_nettype none
`include "ktpu_defs.vh"

module mag_read #(
    parameter PORT_X           = 0,
    parameter PORT_Y           = 1,
    parameter MESH_ID          = 0,
    parameter DRAM_BYTES_LOG2  = 32,
    parameter STAGE            = 0,
    parameter STAGE_BYTES_LOG2 = 21,
    parameter RING             = 128
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         req_valid,
    output wire         req_ready,
    input  wire [114:0] req_data,       // mag_intake read layout

    // requester of the converged path
    output wire         rd_valid,
    input  wire         rd_ready,
    output wire [31:0]  rd_word,        // as mag_classify names it
    output wire [7:0]   rd_len,         // beats - 1
    input  wire         rsp_valid,
    input  wire [255:0] rsp_data,
    input  wire         rsp_err,

    output wire         out_valid,
    input  wire         out_ready,
    output wire [287:0] out_flit,

    // {code, source, txn, address}: a refused request, a request hit by a bus error
    output wire         bad_valid,
    output wire [59:0]  bad_info,
    output wire         bus_valid,
    output wire [59:0]  bus_info,
    output wire         served          // a plain request or a streamed entry has been answered
);

    localparam RW = $clog2(RING);
    localparam [RW:0] RING_WORDS = {1'b1, {RW{1'b0}}};

    generate
        if (RING < 32 || (RING & (RING - 1)) != 0) begin : g_illegal
            mag_read_illegal_parameters u_stop ();
        end
    endgenerate

    // ---------------------------------------------------------------- decode
    localparam [1:0] S_IDLE = 2'd0, S_CHECK = 2'd1, S_FETCH = 2'd2;

    wire [7:0]  raw_ew    = req_data[24:17];
    wire [7:0]  raw_count = req_data[58:51];
    wire        raw_strm  = req_data[65];

    reg  [1:0]  state_q;
    reg  [7:0]  src_q, txn_q;
    reg         far_q, strm_q;
    reg  [39:0] addr_q;
    reg  [2:0]  ew_q;                   // words of an entry, 1..4
    reg  [8:0]  entries_q;              // 1..256
    reg  [1:0]  npeer_q;
    reg  [23:0] peers_q;

    wire [10:0] words = ew_q == 3'd1 ? {2'd0, entries_q}
                      : ew_q == 3'd2 ? {1'b0, entries_q, 1'b0}
                      : ew_q == 3'd3 ? {1'b0, entries_q, 1'b0} + {2'd0, entries_q}
                      :                {entries_q, 2'd0};
    wire        tag_over = strm_q && {1'b0, txn_q} + entries_q > 9'd256;
    wire [3:0]  addr_code;
    wire [31:0] addr_word;
    wire [3:0]  code = far_q                    ? `KT_M_REMOTE
                     : addr_code != `KT_M_NONE  ? addr_code
                     : tag_over                 ? `KT_M_TAG : `KT_M_NONE;
    wire        refuse = code != `KT_M_NONE;

    mag_classify #(
        .MESH_ID          (MESH_ID),
        .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2)
    ) u_classify (
        .addr  (addr_q),
        .words (words),
        .code  (addr_code),
        .word  (addr_word)
    );

    // ---------------------------------------------------------------- fetch
    reg  [31:0] word_q;
    reg  [10:0] left_q;
    reg  [RW:0] free_q;                 // ring words not promised to anybody

    wire        job_ready;
    wire        check_done = state_q == S_CHECK && job_ready;
    wire [7:0]  to_page  = 8'd128 - {1'b0, word_q[6:0]};
    wire [4:0]  cap_page = to_page > 8'd16 ? 5'd16 : to_page[4:0];
    wire [4:0]  beats    = left_q < {6'd0, cap_page} ? left_q[4:0] : cap_page;
    wire        room     = free_q >= {{(RW-4){1'b0}}, beats};
    wire        grant    = rd_valid && rd_ready;
    wire        release_entry;          // emission is done with job_ew words
    wire [2:0]  job_ew;

    assign rd_valid  = state_q == S_FETCH && room;
    assign rd_word   = word_q;
    assign rd_len    = {3'd0, beats - 5'd1};
    assign req_ready = state_q == S_IDLE;
    assign bad_valid = check_done && refuse;
    assign bad_info  = {code, src_q, txn_q, addr_q};

    always @(posedge clk) begin
        if (!rst_n) begin
            state_q <= S_IDLE;
            free_q  <= RING_WORDS;
        end else begin
            case (state_q)
                S_IDLE:  if (req_valid) state_q <= S_CHECK;
                S_CHECK: if (job_ready) state_q <= refuse ? S_IDLE : S_FETCH;
                default: if (grant && left_q == {6'd0, beats}) state_q <= S_IDLE;
            endcase
            free_q <= free_q - (grant ? {{(RW-4){1'b0}}, beats} : {(RW+1){1'b0}})
                             + (release_entry ? {{(RW-2){1'b0}}, job_ew} : {(RW+1){1'b0}});
        end
        if (req_valid && req_ready) begin
            src_q     <= req_data[7:0];
            txn_q     <= req_data[15:8];
            far_q     <= req_data[16];
            npeer_q   <= raw_strm ? req_data[26:25] : 2'd0;
            peers_q   <= req_data[50:27];
            strm_q    <= raw_strm;
            addr_q    <= req_data[114:75];
            ew_q      <= !raw_strm ? 3'd1 : (raw_ew == 8'd0 || raw_ew > 8'd4) ? 3'd4 : raw_ew[2:0];
            entries_q <= !raw_strm ? {1'b0, req_data[74:67]} + 9'd1
                       : raw_count == 8'd0 ? 9'd1 : {1'b0, raw_count};
        end
        if (check_done) begin
            word_q <= addr_word;
            left_q <= words;
        end else if (grant) begin
            word_q <= word_q + {27'd0, beats};
            left_q <= left_q - {6'd0, beats};
        end
    end

    // ---------------------------------------------------------------- jobs
    // What the emitter has to say about each request, in arrival order.
    wire        job_valid, job_done;
    wire [7:0]  job_src, job_txn;
    wire        job_strm, job_bad;
    wire [8:0]  job_entries;
    wire [1:0]  job_npeer;
    wire [23:0] job_peers;
    wire [39:0] job_addr;
    wire [3:0]  job_level;

    fifo_sync #(
        .WIDTH (96),
        .DEPTH (8)
    ) u_jobs (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (state_q == S_CHECK),
        .in_ready  (job_ready),
        .in_data   ({addr_q, peers_q, npeer_q, entries_q, ew_q, refuse, strm_q, txn_q, src_q}),
        .out_valid (job_valid),
        .out_ready (job_done),
        .out_data  ({job_addr, job_peers, job_npeer, job_entries, job_ew, job_bad, job_strm, job_txn, job_src}),
        .level     (job_level)
    );

    // ---------------------------------------------------------------- emit
    reg  [RW-1:0] wr_ptr_q, base_q;     // next word to arrive; first word of the entry
    reg  [RW:0]   avail_q;              // words present from base_q on
    reg  [8:0]    entry_q;
    reg  [1:0]    dest_q, w_q;
    reg           valid_q, bad_q;       // output stage; its request was refused
    reg           seen_q;               // its bus error has been reported

    wire          have   = job_bad || avail_q > {{(RW-1){1'b0}}, w_q};
    wire          step   = job_valid && have && (!valid_q || out_ready);
    wire          last_w = {1'b0, w_q} == job_ew - 3'd1;
    wire          last_d = dest_q == job_npeer;
    wire          last_e = entry_q == job_entries - 9'd1;
    wire          first  = entry_q == 9'd0 && dest_q == 2'd0 && w_q == 2'd0;
    wire          entry_done = step && last_w && last_d;
    wire [7:0]    node = dest_q == 2'd0 ? job_src
                       : dest_q == 2'd1 ? job_peers[7:0]
                       : dest_q == 2'd2 ? job_peers[15:8] : job_peers[23:16];
    wire [7:0]    tag  = job_strm ? job_txn + entry_q[7:0] : job_txn;
    wire          mark = job_strm ? last_w : last_e;
    wire [256:0]  ring_data;

    assign job_done      = entry_done && last_e;
    assign release_entry = entry_done && !job_bad;

    reg  [7:0]    node_q, tag_q;
    reg           mark_q;
    reg  [1:0]    w_out_q;
    reg  [55:0]   who_q;                // source, txn, address of the request in the output stage

    wire          word_err = !bad_q && ring_data[256];
    wire          err      = bad_q || word_err;

    always @(posedge clk) begin
        if (!rst_n) begin
            wr_ptr_q <= {RW{1'b0}};
            base_q   <= {RW{1'b0}};
            avail_q  <= {(RW+1){1'b0}};
            entry_q  <= 9'd0;
            dest_q   <= 2'd0;
            w_q      <= 2'd0;
            valid_q  <= 1'b0;
            seen_q   <= 1'b0;
        end else begin
            if (rsp_valid) wr_ptr_q <= wr_ptr_q + {{(RW-1){1'b0}}, 1'b1};
            if (release_entry) base_q <= base_q + {{(RW-3){1'b0}}, job_ew};
            avail_q <= avail_q + {{RW{1'b0}}, rsp_valid}
                               - (release_entry ? {{(RW-2){1'b0}}, job_ew} : {(RW+1){1'b0}});
            if (step) begin
                w_q <= last_w ? 2'd0 : w_q + 2'd1;
                if (last_w) dest_q <= last_d ? 2'd0 : dest_q + 2'd1;
                if (entry_done) entry_q <= last_e ? 9'd0 : entry_q + 9'd1;
            end
            if (step) valid_q <= 1'b1;
            else if (out_ready) valid_q <= 1'b0;
            // A request counts once, however many of its words fail.
            if (step && first) seen_q <= 1'b0;
            else if (bus_valid) seen_q <= 1'b1;
        end
        if (step) begin
            bad_q   <= job_bad;
            node_q  <= node;
            tag_q   <= tag;
            mark_q  <= mark;
            w_out_q <= job_strm ? w_q : 2'd0;
            if (first) who_q <= {job_src, job_txn, job_addr};
        end
    end

    ram_sdp #(
        .WIDTH (257),
        .DEPTH (RING)
    ) u_ring (
        .clk     (clk),
        .wr_en   (rsp_valid),
        .wr_addr (wr_ptr_q),
        .wr_data ({rsp_err, rsp_data}),
        .rd_en   (step && !job_bad),
        .rd_addr (base_q + {{(RW-2){1'b0}}, w_q}),
        .rd_data (ring_data)
    );

    assign out_valid = valid_q;
    assign out_flit  = {node_q[3:0], node_q[7:4], PORT_X[3:0], PORT_Y[3:0], `KT_TYPE_MEM_RD_RESP,
                        tag_q, mark_q, err, w_out_q, err ? 256'd0 : ring_data[255:0]};
    assign bus_valid = valid_q && word_err && !seen_q;
    assign bus_info  = {`KT_M_BUS, who_q};
    assign served    = !job_bad && (job_strm ? entry_done : job_done);

    wire unused = &{1'b0, job_level, req_data[66], req_data[64:59]};

endmodule

`default_nettype wire
