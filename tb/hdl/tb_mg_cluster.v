// SPDX-License-Identifier: Apache-2.0
// tb_mg_cluster: one matmul cluster with a memory agent at its link and two
// stimulus streams (instructions; CU_DATA, CU_CTRL and stray flits).
//
// Files in the run folder: inst.hex and data.hex (320-bit words: 32 bits of
// control, one flit), mem.hex; the trace goes to trace.txt, one line an event:
//   O c flit   flit left the cluster         A c       instruction accepted
//   D c x      exec_done {cover, fault, res} F/L c t   first / last issue of a sweep
//   R c        read request accepted         I c flit  CU_DATA or stray flit entered
//   K c        write acknowledgement entered
// Control word: [11:0] cycles to wait before, [12] wait until as many
// completions as [31:16] were seen, [13] the same for DATA_RECEIVED.
`default_nettype none

module tb_mg_cluster #(
    parameter TILES        = 512,
    parameter GA           = 512,
    parameter GB           = 512,
    parameter L1_LAT       = 1,
    parameter TILE_LAT     = 2,
    parameter TILE_BANKS   = 2,
    parameter MAX_INFLIGHT = 1,
    parameter FILL_WDOG    = 4000,
    parameter PEER_WDOG    = 3000,
    parameter ROWMAJOR     = 0,
    parameter MODEL        = 1,
    parameter STIM         = 65536
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        load,
    input  wire        dump,
    input  wire        go,
    input  wire        stop,
    input  wire [31:0] n_inst,
    input  wire [31:0] n_data,
    input  wire [15:0] cfg_credit,
    input  wire [15:0] cfg_lat,
    input  wire [7:0]  cfg_gap,
    input  wire        cfg_perm,
    input  wire        cfg_mute,
    input  wire [15:0] cfg_ack,
    input  wire [31:0] rd_bad_lo,
    input  wire [31:0] rd_bad_hi,
    input  wire [31:0] wr_bad_lo,
    input  wire [31:0] wr_bad_hi,
    input  wire [7:0]  cfg_busy,        // chance in 256 of a busy output link
    input  wire [31:0] block_flit,      // the output link stalls once before this flit
    input  wire [31:0] block_len,       //   for so many cycles
    input  wire [7:0]  cfg_mix,         // chance in 256 that a stimulus flit goes before a response
    input  wire [31:0] seed,
    input  wire [31:0] expect_done,
    input  wire [31:0] expect_recv,
    output reg         finished,
    output wire [63:0] dbg_ctr,
    output wire [15:0] dbg_fills,
    output wire [15:0] dbg_gemms,
    output wire [15:0] dbg_drains
);

    localparam [7:0] UNIT = 8'h21;

    reg [319:0] inst_mem [0:STIM-1];
    reg [319:0] data_mem [0:STIM-1];
    integer     trace;
    initial trace = 0;
    reg [31:0]  now_q;
    reg [31:0]  lfsr_q, lfsr2_q;

    always @(posedge load or posedge stop) begin
        if (trace != 0) $fclose(trace);
        if (stop) begin
            trace <= 0;
        end else begin
            if (n_inst != 0) $readmemh("inst.hex", inst_mem, 0, n_inst - 1);
            if (n_data != 0) $readmemh("data.hex", data_mem, 0, n_data - 1);
            trace <= $fopen("trace.txt", "w");
        end
    end

    // ---- link of the cluster
    wire         out_valid;
    wire [287:0] out_flit;
    wire         in_busy;
    reg          in_valid_q;
    reg  [287:0] in_flit_q;
    reg  [31:0]  out_count_q, block_q;
    reg          busy_q;
    wire         out_take = out_valid && !busy_q;

    mg_cluster #(.CU_X(2), .CU_Y(1), .MEM_X(0), .MEM_Y(1), .TILES(TILES), .GA(GA), .GB(GB),
                 .L1_LAT(L1_LAT), .TILE_LAT(TILE_LAT), .TILE_BANKS(TILE_BANKS),
                 .MAX_INFLIGHT(MAX_INFLIGHT), .FILL_WDOG(FILL_WDOG), .PEER_WDOG(PEER_WDOG),
                 .ROWMAJOR(ROWMAJOR), .MODEL(MODEL)) dut (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (in_valid_q),
        .noc_in_data   (in_flit_q),
        .noc_in_busy   (in_busy),
        .noc_out_valid (out_valid),
        .noc_out_data  (out_flit),
        .noc_out_busy  (busy_q),
        .dbg_fills     (dbg_fills),
        .dbg_gemms     (dbg_gemms),
        .dbg_drains    (dbg_drains)
    );
    assign dbg_ctr = dut.dbg_ctr;

    // ---- memory agent
    wire         rsp_valid, rsp_ready, ack_valid, ack_ready, quiet;
    wire [287:0] rsp_flit, ack_flit;

    mg_mem_agent agent (
        .clk       (clk),
        .rst_n     (rst_n),
        .load      (load),
        .dump      (dump),
        .rnd       (lfsr2_q),
        .cfg_lat   (cfg_lat),
        .cfg_gap   (cfg_gap),
        .cfg_perm  (cfg_perm),
        .cfg_ack   (cfg_ack),
        .cfg_mute  (cfg_mute),
        .rd_bad_lo (rd_bad_lo),
        .rd_bad_hi (rd_bad_hi),
        .wr_bad_lo (wr_bad_lo),
        .wr_bad_hi (wr_bad_hi),
        .in_valid  (out_take && (out_flit[287:280] == 8'h01)),
        .in_flit   (out_flit),
        .rsp_valid (rsp_valid),
        .rsp_ready (rsp_ready),
        .rsp_flit  (rsp_flit),
        .ack_valid (ack_valid),
        .ack_ready (ack_ready),
        .ack_flit  (ack_flit),
        .quiet     (quiet)
    );

    // ---- stimulus streams
    reg          run_q;
    reg  [31:0]  ip_q, dp_q;            // next word of a stream
    reg  [11:0]  iw_q, dw_q;            // cycles waited
    reg  [31:0]  done_q, recv_q;        // completions, DATA_RECEIVED seen
    reg  [31:0]  sent_q;                // instructions sent
    wire [319:0] ihead = inst_mem[ip_q[15:0]];
    wire [319:0] dhead = data_mem[dp_q[15:0]];
    wire         i_wait = (ihead[300] && (done_q < {16'd0, ihead[319:304]}))
                       || (ihead[301] && (recv_q < {16'd0, ihead[319:304]}));
    wire         d_wait = (dhead[300] && (done_q < {16'd0, dhead[319:304]}))
                       || (dhead[301] && (recv_q < {16'd0, dhead[319:304]}));
    wire         i_have = run_q && (ip_q < n_inst);
    wire         d_have = run_q && (dp_q < n_data);
    wire         i_valid = i_have && !i_wait && (iw_q >= ihead[299:288])
                        && ((sent_q - done_q) < {16'd0, cfg_credit});
    wire         d_valid = d_have && !d_wait && (dw_q >= dhead[299:288]);

    // ---- one flit a cycle into the cluster
    wire         load_in = !in_valid_q || !in_busy;
    wire         stim_first = lfsr_q[15:8] < cfg_mix;
    wire         i_first = lfsr_q[16];
    wire         stim   = i_valid || d_valid;
    wire         reply  = rsp_valid || ack_valid;
    wire         take_stim = load_in && stim && (stim_first || !reply);
    wire         take_i = take_stim && i_valid && (i_first || !d_valid);
    wire         take_d = take_stim && !take_i;
    assign rsp_ready = load_in && !take_stim;
    assign ack_ready = load_in && !take_stim && !rsp_valid;

    wire         is_sig  = out_take && (out_flit[271:268] == 4'h6);
    wire         is_recv = is_sig && (out_flit[255:248] == 8'h03);

    // ---- events inside, for cycle tables
    wire acc   = dut.inst_valid && dut.inst_ready;
    wire rdreq = dut.send_valid && dut.send_ready && (dut.send_flit[271:268] == 4'h0);
    wire swp_f = dut.u_unit.u_sweep.first;
    wire swp_l = dut.u_unit.u_sweep.ends;

    reg [7:0] idle_q;

    always @(posedge clk) begin
        now_q   <= now_q + 32'd1;
        lfsr_q  <= {lfsr_q[30:0], lfsr_q[31] ^ lfsr_q[21] ^ lfsr_q[1] ^ lfsr_q[0]};
        lfsr2_q <= (lfsr2_q * 32'd1664525) + 32'd1013904223 + {lfsr_q[15:0], 16'd0};
        if (!rst_n) begin
            now_q       <= 32'd0;
            lfsr_q      <= seed | 32'd1;
            lfsr2_q     <= seed ^ 32'h5A5A1234;
            in_valid_q  <= 1'b0;
            run_q       <= 1'b0;
            ip_q        <= 32'd0;
            dp_q        <= 32'd0;
            iw_q        <= 12'd0;
            dw_q        <= 12'd0;
            done_q      <= 32'd0;
            recv_q      <= 32'd0;
            sent_q      <= 32'd0;
            out_count_q <= 32'd0;
            block_q     <= 32'd0;
            busy_q      <= 1'b1;
            idle_q      <= 8'd0;
            finished    <= 1'b0;
        end else begin
            if (go) run_q <= 1'b1;
            if (load_in) begin
                in_valid_q <= stim || reply;
                in_flit_q  <= take_i ? ihead[287:0] : take_d ? dhead[287:0]
                            : rsp_valid ? rsp_flit : ack_flit;
            end
            if (take_i) begin
                ip_q <= ip_q + 32'd1;
                iw_q <= 12'd0;
                if (ihead[271:268] == 4'h5) sent_q <= sent_q + 32'd1;
            end else if (i_have && !i_wait && iw_q != 12'hFFF) iw_q <= iw_q + 12'd1;
            if (take_d) begin
                dp_q <= dp_q + 32'd1;
                dw_q <= 12'd0;
            end else if (d_have && !d_wait && dw_q != 12'hFFF) dw_q <= dw_q + 12'd1;

            if (out_take) out_count_q <= out_count_q + 32'd1;
            if (is_sig && !is_recv) done_q <= done_q + 32'd1;
            if (is_recv) recv_q <= recv_q + 32'd1;

            if ((out_count_q + {31'd0, out_take}) == block_flit && block_q < block_len) begin
                busy_q  <= 1'b1;
                block_q <= block_q + 32'd1;
            end else begin
                busy_q  <= lfsr_q[7:0] < cfg_busy;
            end

            idle_q <= (run_q && ip_q == n_inst && dp_q == n_data && !in_valid_q && !out_valid && (quiet || cfg_mute)
                       && done_q >= expect_done && recv_q >= expect_recv)
                      ? ((idle_q == 8'd255) ? idle_q : idle_q + 8'd1) : 8'd0;
            finished <= idle_q == 8'd255;

            if (trace != 0) begin
                if (out_take) $fwrite(trace, "O %0d %h\n", now_q, out_flit);
                if (acc) $fwrite(trace, "A %0d\n", now_q);
                if (dut.exec_done) $fwrite(trace, "D %0d %h\n", now_q,
                                           {2'd0, dut.exec_cover, dut.exec_fault, dut.exec_result});
                if (swp_f) $fwrite(trace, "F %0d\n", now_q);
                if (swp_l) $fwrite(trace, "L %0d\n", now_q);
                if (rdreq) $fwrite(trace, "R %0d\n", now_q);
                if (ack_valid && ack_ready) $fwrite(trace, "K %0d\n", now_q);
                if (take_d) $fwrite(trace, "I %0d %h\n", now_q, dhead[287:0]);
            end
        end
    end

    wire unused = &{1'b0, UNIT, ihead, dhead};

endmodule

`default_nettype wire
