// SPDX-License-Identifier: Apache-2.0
// tb_vc_core: one vector core with memory at its link and two stimulus streams
// (instructions; CU_DATA, CU_CTRL and stray flits).
//
// Files in the run folder: inst.hex and data.hex (320-bit words: 32 bits of
// control, one flit), mem.hex; the trace goes to trace.txt, one line an event:
//   O c flit   flit left the core            A c       instruction accepted
//   D c x      exec_done {fault, result}     I c flit  stimulus of data.hex entered
//   R c        read request accepted         P c       read response consumed
//   N c x      with D: {lane beats, hazard stalls, L1-port stalls, fill words, drain words} so far
// Control word: [11:0] cycles to wait before, [12] wait until as many
// completions as [31:16] were seen, [13] the same for DATA_RECEIVED, [14] the
// same for read requests sent, [15] the same for instructions accepted.
// Reads are answered by vc_mem_agent in any order; writes are acknowledged after
// cfg_ack cycles, and refused (M_BUS) if their burst touches wr_bad_*. Flits to
// the core's own coordinate come back to it.
`default_nettype none

module tb_vc_core #(
    parameter L1_LAT    = 1,
    parameter ALAT      = 14,
    parameter FILL_WDOG = 3000,
    parameter MX_STORE  = 0,
    parameter STIM      = 131072
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
    input  wire [1:0]  cfg_order,
    input  wire [15:0] cfg_lat,
    input  wire [7:0]  cfg_gap,
    input  wire [15:0] cfg_ack,
    input  wire [31:0] cfg_limit,
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
    output wire        broken,
    output wire [63:0] dbg_ctr
);

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

    // ---- link of the core
    wire         out_valid;
    wire [287:0] out_flit;
    wire         in_busy;
    reg          in_valid_q;
    reg  [287:0] in_flit_q;
    reg  [31:0]  out_count_q, block_q;
    reg          busy_q;
    wire         out_take = out_valid && !busy_q;

    vc_core #(.CU_X(1), .CU_Y(0), .MEM_X(0), .MEM_Y(1), .L1_LAT(L1_LAT), .ALAT(ALAT),
              .FILL_WDOG(FILL_WDOG), .MX_STORE(MX_STORE)) dut (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (in_valid_q),
        .noc_in_data   (in_flit_q),
        .noc_in_busy   (in_busy),
        .noc_out_valid (out_valid),
        .noc_out_data  (out_flit),
        .noc_out_busy  (busy_q)
    );
    assign dbg_ctr = dut.dbg_ctr;

    // ---- memory: a refused burst never reaches the image
    wire        to_mem  = out_take && (out_flit[287:280] == 8'h01);
    wire        is_rd   = to_mem && (out_flit[271:268] == 4'h0);
    wire        is_wr   = to_mem && (out_flit[271:268] == 4'h1);
    wire        is_wd   = to_mem && (out_flit[271:268] == 4'h4);
    wire [31:0] first   = out_flit[252:221];
    wire [31:0] beyond  = first + {24'd0, out_flit[215:208]} + 32'd1;
    wire        refuse  = (first < wr_bad_hi) && (beyond > wr_bad_lo);
    reg         refuse_q;

    wire         rsp_valid, rsp_ready, quiet;
    wire [287:0] rsp_flit;

    vc_mem_agent agent (
        .clk       (clk),
        .rst_n     (rst_n),
        .load      (load),
        .dump      (dump),
        .rnd       (lfsr2_q),
        .cfg_order (cfg_order),
        .cfg_lat   (cfg_lat),
        .cfg_gap   (cfg_gap),
        .cfg_limit (cfg_limit),
        .rd_bad_lo (rd_bad_lo),
        .rd_bad_hi (rd_bad_hi),
        .in_valid  (is_rd || (is_wr && !refuse) || (is_wd && !refuse_q)),
        .in_flit   (out_flit),
        .rsp_valid (rsp_valid),
        .rsp_ready (rsp_ready),
        .rsp_flit  (rsp_flit),
        .quiet     (quiet),
        .broken    (broken)
    );

    reg  [8:0]   aq [0:1023];               // {refused, txn}
    reg  [31:0]  aq_at [0:1023];
    reg  [9:0]   aq_w_q, aq_r_q;
    wire [8:0]   ack       = aq[aq_r_q];
    wire         ack_valid = (aq_w_q != aq_r_q) && ((now_q - aq_at[aq_r_q]) >= {16'd0, cfg_ack});
    wire         ack_ready;
    wire [287:0] ack_flit  = {8'h10, 8'h01, 4'h3, ack[7:0], 1'b1, 3'd0, 248'd0,
                              ack[8] ? 4'd9 : 4'd0, 3'd0, ack[8]};

    // ---- flits to itself
    reg  [287:0] self [0:2047];
    reg  [10:0]  self_w_q, self_r_q;
    wire         to_self    = out_take && (out_flit[287:280] == 8'h10);
    wire         self_valid = self_w_q != self_r_q;
    wire         self_ready;

    // ---- stimulus streams
    reg          run_q;
    reg  [31:0]  ip_q, dp_q;                // next word of a stream
    reg  [11:0]  iw_q, dw_q;                // cycles waited
    reg  [31:0]  done_q, recv_q, reads_q;   // completions, DATA_RECEIVED, read requests seen
    reg  [31:0]  sent_q, acc_q;             // instructions sent, accepted
    wire [319:0] ihead = inst_mem[ip_q[16:0]];
    wire [319:0] dhead = data_mem[dp_q[16:0]];
    wire         i_wait = (ihead[300] && (done_q < {16'd0, ihead[319:304]}))
                       || (ihead[301] && (recv_q < {16'd0, ihead[319:304]}));
    wire         d_wait = (dhead[300] && (done_q < {16'd0, dhead[319:304]}))
                       || (dhead[301] && (recv_q < {16'd0, dhead[319:304]}))
                       || (dhead[302] && (reads_q < {16'd0, dhead[319:304]}))
                       || (dhead[303] && (acc_q < {16'd0, dhead[319:304]}));
    wire         i_have = run_q && (ip_q < n_inst);
    wire         d_have = run_q && (dp_q < n_data);
    wire         i_valid = i_have && !i_wait && (iw_q >= ihead[299:288])
                        && ((sent_q - done_q) < {16'd0, cfg_credit});
    wire         d_valid = d_have && !d_wait && (dw_q >= dhead[299:288]);

    // ---- one flit a cycle into the core
    wire         load_in = !in_valid_q || !in_busy;
    wire         stim_first = lfsr_q[15:8] < cfg_mix;
    wire         i_first = lfsr_q[16];
    wire         stim   = i_valid || d_valid;
    wire         reply  = rsp_valid || ack_valid || self_valid;
    wire         take_stim = load_in && stim && (stim_first || !reply);
    wire         take_i = take_stim && i_valid && (i_first || !d_valid);
    wire         take_d = take_stim && !take_i;
    assign self_ready = load_in && !take_stim && (!rsp_valid || lfsr_q[17]);
    assign rsp_ready = load_in && !take_stim && !(self_valid && lfsr_q[17]);
    assign ack_ready = load_in && !take_stim && !rsp_valid && !self_valid;

    wire         is_sig  = out_take && (out_flit[271:268] == 4'h6);
    wire         is_recv = is_sig && (out_flit[255:248] == 8'h03);

    // ---- events inside, for cycle tables
    wire acc   = dut.inst_valid && dut.inst_ready;
    wire rdreq = dut.send_valid && dut.send_ready && (dut.send_flit[271:268] == 4'h0);
    wire rdrsp = dut.recv_valid && dut.recv_ready && (dut.recv_flit[271:268] == 4'h2);

    wire [159:0] counts = {dut.u_seq.u_env.n_beats_q, dut.u_seq.u_env.n_stalls_q, dut.u_mem.stat_port_stalls,
                           dut.u_mem.stat_fill_words, dut.u_mem.stat_drain_words};

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
            reads_q     <= 32'd0;
            sent_q      <= 32'd0;
            acc_q       <= 32'd0;
            out_count_q <= 32'd0;
            block_q     <= 32'd0;
            busy_q      <= 1'b1;
            idle_q      <= 8'd0;
            finished    <= 1'b0;
            aq_w_q      <= 10'd0;
            aq_r_q      <= 10'd0;
            self_w_q    <= 11'd0;
            self_r_q    <= 11'd0;
            refuse_q    <= 1'b0;
        end else begin
            if (go) run_q <= 1'b1;
            if (load_in) begin
                in_valid_q <= stim || reply;
                in_flit_q  <= take_i ? ihead[287:0] : take_d ? dhead[287:0]
                            : (self_valid && self_ready) ? self[self_r_q]
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
            if (is_rd) reads_q <= reads_q + 32'd1;
            if (acc) acc_q <= acc_q + 32'd1;

            if (is_wr) refuse_q <= refuse;
            if (is_wd && out_flit[259]) begin
                aq[aq_w_q]    <= {refuse_q, out_flit[267:260]};
                aq_at[aq_w_q] <= now_q;
                aq_w_q        <= aq_w_q + 10'd1;
            end
            if (ack_valid && ack_ready) aq_r_q <= aq_r_q + 10'd1;

            if (to_self) begin
                self[self_w_q] <= out_flit;
                self_w_q       <= self_w_q + 11'd1;
            end
            if (self_valid && self_ready) self_r_q <= self_r_q + 11'd1;

            if ((out_count_q + {31'd0, out_take}) == block_flit && block_q < block_len) begin
                busy_q  <= 1'b1;
                block_q <= block_q + 32'd1;
            end else begin
                busy_q  <= lfsr_q[7:0] < cfg_busy;
            end

            idle_q <= (run_q && ip_q == n_inst && dp_q == n_data && !in_valid_q && !out_valid && quiet
                       && aq_w_q == aq_r_q && !self_valid && done_q >= expect_done && recv_q >= expect_recv)
                      ? ((idle_q == 8'd255) ? idle_q : idle_q + 8'd1) : 8'd0;
            finished <= idle_q == 8'd255;

            if (trace != 0) begin
                if (out_take) $fwrite(trace, "O %0d %h\n", now_q, out_flit);
                if (acc) $fwrite(trace, "A %0d\n", now_q);
                if (dut.exec_done) $fwrite(trace, "D %0d %h\n", now_q, {3'd0, dut.exec_fault, dut.exec_result});
                if (dut.exec_done) $fwrite(trace, "N %0d %h\n", now_q, counts);
                if (rdreq) $fwrite(trace, "R %0d\n", now_q);
                if (rdrsp) $fwrite(trace, "P %0d\n", now_q);
                if (take_d) $fwrite(trace, "I %0d %h\n", now_q, dhead[287:0]);
            end
        end
    end

    wire unused = &{1'b0, ihead, dhead};

endmodule

`default_nettype wire
