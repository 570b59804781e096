// SPDX-License-Identifier: Apache-2.0
// tb_vc_mem: the memory unit alone. Commands, descriptor writes and settings come
// from cmd.hex, burst and stray flits from data.hex; a register file model stands
// for the lanes and vc_mem_agent for the memory.
//
// cmd.hex, 96 bits a record: [95:92] kind, [91:80] cycles to wait first
//   0 command   [47:45] op, [44:32] vl, [31:0] word; the next record waits for the answer
//   1 descriptor write [45:43] ad, [42:40] fld, [39:0] value
//   2 wait until [31:0] DATA_RECEIVED have been sent
//   3 wait until [31:0] records of data.hex have entered the unit and 3 cycles more
//   4 setting: [35:32] 0 hold the send link, 1 words the memory answers in all,
//     2 chance of a busy link, 3 chance of a gap between responses; value [31:0]
//   5 wait until [31:0] flits have been sent
// data.hex, 320 bits a record: [319:304] answered commands to wait for, [303:288]
//   cycles to wait, then a flit
// regs.hex 128 x 384 bits, l1.hex 512 words: contents at the start; *_out.hex at the end.
// trace.txt: O c flit sent, C c command accepted, R c code answer, E c {cudata, aresp,
// unit_err}, I c flit entered (not responses).
`default_nettype none

module tb_vc_mem #(
    parameter L1_LAT    = 1,
    parameter MERGE     = 1,
    parameter FILL_WDOG = 3000,
    parameter STIM      = 32768
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        load,
    input  wire        dump,
    input  wire        go,
    input  wire [31:0] n_cmd,
    input  wire [31:0] n_data,
    input  wire [31:0] seed,
    input  wire [1:0]  cfg_order,
    input  wire [15:0] cfg_lat,
    input  wire [7:0]  cfg_gap,
    input  wire [31:0] cfg_limit,
    input  wire [31:0] rd_bad_lo,
    input  wire [31:0] rd_bad_hi,
    input  wire [7:0]  cfg_busy,            // chance in 256 of a send link that is not ready
    input  wire [7:0]  cfg_mix,             // chance in 256 that data.hex goes before a response
    input  wire [31:0] block_flit,          // the send link stalls once before this flit
    input  wire [31:0] block_len,           //   for so many cycles
    input  wire        cfg_quiet,           // no O lines for memory flits
    output reg         finished,
    output reg  [7:0]  broken,              // protocol of the unit's ports
    output wire [31:0] stat_port_stalls,
    output wire [31:0] stat_fill_words,
    output wire [31:0] stat_drain_words
);

    reg [95:0]  cmds [0:STIM-1];
    reg [319:0] datas [0:STIM-1];
    reg [383:0] regs [0:127];
    integer     trace;
    initial trace = 0;

    always @(posedge load) begin
        if (n_cmd != 0) $readmemh("cmd.hex", cmds, 0, n_cmd - 1);
        if (n_data != 0) $readmemh("data.hex", datas, 0, n_data - 1);
        $readmemh("regs.hex", regs);
        trace <= $fopen("trace.txt", "w");
    end
    always @(posedge dump) begin
        $fclose(trace);
        trace <= 0;
        $writememh("regs_out.hex", regs);
        $writememh("l1_out.hex", dut.u_l1.mem);
    end

    // ---------------------------------------------------------------- unit
    wire         clear_done, cmd_ready, rsp_valid, ld_valid, st_rd, recv_ready, send_valid;
    wire         ev_cudata, ev_aresp;
    wire [7:0]   rsp_fault, unit_err;
    wire [2:0]   ld_chunk, st_chunk;
    wire [1:0]   ld_half;
    wire [383:0] ld_data;
    wire [287:0] send_flit;
    reg  [383:0] st_data;
    reg          recv_valid;
    reg  [287:0] recv_flit;
    reg          send_ready;
    wire         cmd_valid, desc_we;
    wire [95:0]  rec;

    vc_mem #(.CU_X(1), .CU_Y(0), .MEM_X(0), .MEM_Y(1), .L1_LAT(L1_LAT), .MERGE(MERGE),
             .FILL_WDOG(FILL_WDOG)) dut (
        .clk              (clk),
        .rst_n            (rst_n),
        .all_clear        (clear_done),
        .clear_done       (clear_done),
        .cmd_valid        (cmd_valid),
        .cmd_ready        (cmd_ready),
        .cmd_op           (rec[47:45]),
        .cmd_word         (rec[31:0]),
        .cmd_vl           (rec[39:32]),
        .rsp_valid        (rsp_valid),
        .rsp_fault        (rsp_fault),
        .ld_valid         (ld_valid),
        .ld_chunk         (ld_chunk),
        .ld_half          (ld_half),
        .ld_data          (ld_data),
        .st_rd            (st_rd),
        .st_chunk         (st_chunk),
        .st_data          (st_data),
        .desc_we          (desc_we),
        .desc_ad          (rec[45:43]),
        .desc_fld         (rec[42:40]),
        .desc_value       (rec[39:0]),
        .recv_flit        (recv_flit),
        .recv_valid       (recv_valid),
        .recv_ready       (recv_ready),
        .send_flit        (send_flit),
        .send_valid       (send_valid),
        .send_ready       (send_ready),
        .ev_cudata        (ev_cudata),
        .ev_aresp         (ev_aresp),
        .unit_err         (unit_err),
        .stat_port_stalls (stat_port_stalls),
        .stat_fill_words  (stat_fill_words),
        .stat_drain_words (stat_drain_words)
    );

    // -------------------------------------------------------------- player
    reg  [31:0] next_q, wait_q, answered_q, sigs_q, dnext_q, flits_q, quiet_q;
    reg         run_q, open_q;
    reg  [31:0] set_hold_q, set_limit_q, set_busy_q, set_gap_q;
    reg  [2:0]  op_q;
    reg  [3:0]  vd_q;
    assign rec = cmds[next_q[14:0]];
    wire [3:0]  kind  = rec[95:92];
    wire        ready = run_q && next_q < n_cmd && !open_q && wait_q >= {20'd0, rec[91:80]};
    wire        met   = (kind == 4'd2) ? sigs_q >= rec[31:0]
                      : (kind == 4'd3) ? dnext_q >= rec[31:0] && quiet_q > 32'd3
                      : (kind == 4'd5) ? flits_q >= rec[31:0] : 1'b1;
    assign cmd_valid = ready && kind == 4'd0;
    assign desc_we   = ready && kind == 4'd1;
    wire        accept = cmd_valid && cmd_ready;
    wire        moves  = ready && (kind == 4'd0 ? cmd_ready : met);

    // ------------------------------------------------------------- sent flits
    wire        sent   = send_valid && send_ready;
    wire        is_mem = send_flit[287:280] == 8'h01 && send_flit[271:268] != 4'h8
                         && send_flit[271:268] != 4'h6;
    reg  [31:0] blocked_q;
    reg         offered_q;
    reg [287:0] offer_q;

    // -------------------------------------------------------------- inbound
    wire         a_valid, a_ready, a_quiet, a_broken;
    wire [287:0] a_flit;
    reg  [31:0]  dwait_q, lfsr_q, lfsr2_q;
    wire [319:0] drec   = datas[dnext_q[14:0]];
    wire         d_valid = run_q && dnext_q < n_data && answered_q >= {16'd0, drec[319:304]}
                           && dwait_q >= {16'd0, drec[303:288]};
    wire         load_in = !recv_valid || recv_ready;
    wire         take_d  = load_in && d_valid && (!a_valid || lfsr_q[15:8] < cfg_mix);
    assign       a_ready = load_in && !take_d;

    vc_mem_agent agent (
        .clk       (clk),
        .rst_n     (rst_n),
        .load      (load),
        .dump      (dump),
        .rnd       (lfsr2_q),
        .cfg_order (cfg_order),
        .cfg_lat   (cfg_lat),
        .cfg_gap   (set_gap_q[7:0]),
        .cfg_limit (set_limit_q),
        .rd_bad_lo (rd_bad_lo),
        .rd_bad_hi (rd_bad_hi),
        .in_valid  (sent),
        .in_flit   (send_flit),
        .rsp_valid (a_valid),
        .rsp_ready (a_ready),
        .rsp_flit  (a_flit),
        .quiet     (a_quiet),
        .broken    (a_broken)
    );

    reg [383:0] st_mid_q;
    reg [1:0]   st_pipe_q;
    reg [31:0]  now_q, idle_q;
    wire        done_all = run_q && next_q == n_cmd && !open_q && dnext_q == n_data && a_quiet
                           && !recv_valid && !send_valid;

    always @(posedge clk) begin
        now_q   <= now_q + 32'd1;
        lfsr_q  <= {lfsr_q[30:0], lfsr_q[31] ^ lfsr_q[21] ^ lfsr_q[1] ^ lfsr_q[0]};
        lfsr2_q <= (lfsr2_q * 32'd1664525) + 32'd1013904223 + {lfsr_q[15:0], 16'd0};
        if (!rst_n) begin
            now_q      <= 32'd0;
            lfsr_q     <= seed | 32'd1;
            lfsr2_q    <= seed ^ 32'h5A5A1234;
            run_q      <= 1'b0;
            open_q     <= 1'b0;
            next_q     <= 32'd0;
            wait_q     <= 32'd0;
            answered_q <= 32'd0;
            sigs_q     <= 32'd0;
            flits_q    <= 32'd0;
            dnext_q    <= 32'd0;
            dwait_q    <= 32'd0;
            quiet_q    <= 32'd0;
            blocked_q  <= 32'd0;
            idle_q     <= 32'd0;
            recv_valid <= 1'b0;
            send_ready <= 1'b0;
            offered_q  <= 1'b0;
            broken     <= 8'd0;
            finished   <= 1'b0;
            st_pipe_q  <= 2'b00;
            set_hold_q  <= 32'd0;
            set_limit_q <= cfg_limit;
            set_busy_q  <= {24'd0, cfg_busy};
            set_gap_q   <= {24'd0, cfg_gap};
        end else begin
            if (go && clear_done && !run_q) begin
                run_q <= 1'b1;
                $readmemh("l1.hex", dut.u_l1.mem);
            end

            // commands
            if (moves) begin
                next_q <= next_q + 32'd1;
                wait_q <= 32'd0;
            end else if (run_q && !open_q) wait_q <= wait_q + 32'd1;
            if (moves && kind == 4'd4)
                case (rec[35:32])
                    4'd0: set_hold_q  <= rec[31:0];
                    4'd1: set_limit_q <= rec[31:0];
                    4'd2: set_busy_q  <= rec[31:0];
                    default: set_gap_q <= rec[31:0];
                endcase
            if (accept) begin
                open_q <= 1'b1;
                op_q   <= rec[47:45];
                vd_q   <= rec[20:17];
            end
            if (rsp_valid) begin
                open_q     <= 1'b0;
                answered_q <= answered_q + 32'd1;
            end
            if (rsp_valid && !open_q) broken[0] <= 1'b1;
            if (ld_valid && (!open_q || op_q != 3'd0)) broken[1] <= 1'b1;
            if (st_rd && (!open_q || op_q != 3'd1)) broken[2] <= 1'b1;
            if (a_broken) broken[3] <= 1'b1;
            // an offer stays until it is taken
            offered_q <= send_valid && !send_ready;
            offer_q   <= send_flit;
            if (offered_q && (!send_valid || send_flit != offer_q)) broken[4] <= 1'b1;

            // registers
            if (ld_valid && ld_half[0]) regs[{vd_q, ld_chunk}][191:0]   <= ld_data[191:0];
            if (ld_valid && ld_half[1]) regs[{vd_q, ld_chunk}][383:192] <= ld_data[383:192];
            st_pipe_q <= {st_pipe_q[0], st_rd};
            st_mid_q  <= regs[{vd_q, st_chunk}];
            st_data   <= st_pipe_q[0] ? st_mid_q : {12{lfsr_q}};

            // send link
            if (sent) flits_q <= flits_q + 32'd1;
            if (sent && send_flit[271:268] == 4'h6) sigs_q <= sigs_q + 32'd1;
            if (flits_q + {31'd0, sent} == block_flit && blocked_q < block_len) begin
                blocked_q  <= blocked_q + 32'd1;
                send_ready <= 1'b0;
            end else send_ready <= set_hold_q == 32'd0 && {24'd0, lfsr_q[7:0]} >= set_busy_q;

            // receive link
            if (load_in) begin
                recv_valid <= take_d || a_valid;
                recv_flit  <= take_d ? drec[287:0] : a_flit;
            end
            if (take_d) begin
                dnext_q <= dnext_q + 32'd1;
                dwait_q <= 32'd0;
                quiet_q <= 32'd0;
            end else begin
                if (dnext_q < n_data && answered_q >= {16'd0, drec[319:304]}) dwait_q <= dwait_q + 32'd1;
                if (!recv_valid) quiet_q <= quiet_q + 32'd1;
            end

            idle_q   <= done_all ? idle_q + 32'd1 : 32'd0;
            finished <= idle_q > 32'd40;

            if (trace != 0) begin
                if (sent && !(cfg_quiet && is_mem)) $fwrite(trace, "O %0d %h\n", now_q, send_flit);
                if (accept) $fwrite(trace, "C %0d 0\n", now_q);
                if (rsp_valid) $fwrite(trace, "R %0d %h\n", now_q, rsp_fault);
                if (ev_cudata || ev_aresp || unit_err != 8'd0)
                    $fwrite(trace, "E %0d %h\n", now_q, {6'd0, ev_cudata, ev_aresp, unit_err});
                if (take_d) $fwrite(trace, "I %0d %h\n", now_q, drec[287:0]);
            end
        end
    end

    wire unused = &{1'b0, rec, drec, set_gap_q};

endmodule

`default_nettype wire
