// SPDX-License-Identifier: Apache-2.0
// Bench top of the vector core's envelope, sequencer and lanes with a stand-in for the memory unit.
// Plays script_<run_id>.hex, n_script words of {op 16, data 256}, one after the other:
//   0x0000 envelope instruction, waits for its retirement    0x1aaa data into L1 word aaa
//   0x2000 snapshot of L1                                     0x3occ next command o answers with fault cc
//   0x400b async events: bit 0 F_CUDATA, bit 1 A_RESP         0x50dd random delays of the memory up to dd
// and writes results_<run_id>.hex, one word an instruction: {stalls 32, beats 32, clamp 8, fault 8, dbg[63:32],
// result 32}, and snaps_<run_id>.hex, 512 words a snapshot. `errors` counts breaches: commands that change while they
// wait, retirements out of turn, a wrong cycle count of a RUN, more than six cycles for anything else. An instruction
// that is not retired after LIMIT cycles ends the script early.
`default_nettype none

module tb_vc_seq #(
    parameter ALAT    = 14,
    parameter RECORDS = 1 << 16,
    parameter SNAPS   = 256,
    parameter LIMIT   = 100_000
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        go,
    input  wire [31:0] run_id,
    input  wire [31:0] n_script,
    output reg         done,
    output reg  [31:0] n_results,
    output reg  [31:0] n_snaps,
    output reg  [31:0] errors,
    output reg  [31:0] clear_cycles
);
    reg [271:0] script [0:RECORDS-1];
    reg [143:0] results [0:RECORDS-1];
    reg [255:0] snaps [0:512*SNAPS-1];
    reg [8*32-1:0] name;

    reg  [31:0]  at_q;
    reg          busy_q, sent_q, inst_valid_q, clamped_q;
    reg  [9:0]   snap_q;
    reg  [7:0]   delay_q;
    wire [271:0] rec = script[at_q];
    wire [3:0]   kind = rec[271:268];
    wire         active = busy_q && at_q != n_script;

    wire         inst_ready, exec_done, exec_fault, ready, clamp;
    wire [31:0]  exec_result, mem_errors;
    wire [63:0]  dbg;
    wire         desc_we, cmd_valid, cmd_ready, rsp_valid, ld_valid, st_rd;
    wire [2:0]   desc_ad, desc_fld, cmd_op, ld_chunk, st_chunk;
    wire [1:0]   ld_half;
    wire [39:0]  desc_value;
    wire [31:0]  cmd_word;
    wire [7:0]   cmd_vl, rsp_fault;
    wire [383:0] ld_data, st_data;
    wire [255:0] peek;

    vc_seq_top #(.ALAT(ALAT)) dut (
        .clk(clk), .rst_n(rst_n),
        .inst_flit({32'd0, rec[255:0]}), .inst_valid(inst_valid_q), .inst_ready(inst_ready),
        .exec_done(exec_done), .exec_fault(exec_fault), .exec_result(exec_result), .dbg_ctr(dbg),
        .mem_clear_done(1'b1), .ready(ready),
        .desc_we(desc_we), .desc_ad(desc_ad), .desc_fld(desc_fld), .desc_value(desc_value),
        .ev_cudata(active && kind == 4'd4 && rec[256]), .ev_aresp(active && kind == 4'd4 && rec[257]),
        .clamp(clamp),
        .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_op(cmd_op), .cmd_word(cmd_word), .cmd_vl(cmd_vl),
        .rsp_valid(rsp_valid), .rsp_fault(rsp_fault),
        .ld_valid(ld_valid), .ld_chunk(ld_chunk), .ld_half(ld_half), .ld_data(ld_data),
        .st_rd(st_rd), .st_chunk(st_chunk), .st_data(st_data)
    );

    vc_seq_mem mem (
        .clk(clk), .rst_n(rst_n), .delay(delay_q),
        .inject(active && kind == 4'd3), .inject_op(rec[266:264]), .inject_code(rec[263:256]),
        .poke(active && kind == 4'd1), .poke_addr(rec[264:256]), .poke_data(rec[255:0]),
        .peek_addr(snap_q[8:0]), .peek_data(peek), .errors(mem_errors),
        .desc_we(desc_we), .desc_ad(desc_ad), .desc_fld(desc_fld), .desc_value(desc_value),
        .lanes_empty(dut.lanes_empty),
        .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_op(cmd_op), .cmd_word(cmd_word), .cmd_vl(cmd_vl),
        .rsp_valid(rsp_valid), .rsp_fault(rsp_fault),
        .ld_valid(ld_valid), .ld_chunk(ld_chunk), .ld_half(ld_half), .ld_data(ld_data),
        .st_rd(st_rd), .st_chunk(st_chunk), .st_data(st_data)
    );

    // A command that waits does not change.
    reg          held_q;
    reg  [34:0]  held_cmd_q;
    reg  [31:0]  cycles_q;                                 // since the acceptance, both ends excluded

    always @(posedge clk) begin
        held_q     <= cmd_valid && !cmd_ready;
        held_cmd_q <= {cmd_op, cmd_word};
        if (held_q && (!cmd_valid || held_cmd_q != {cmd_op, cmd_word})) errors <= errors + 32'd1;
        if (exec_done && !sent_q) errors <= errors + 32'd1;
        if (inst_ready && sent_q) errors <= errors + 32'd1;
        cycles_q <= (inst_valid_q && inst_ready) ? 32'd0 : cycles_q + 32'd1;
        if (exec_done && !exec_fault && rec[255:252] == 4'd3 && exec_result != cycles_q) errors <= errors + 32'd1;
        if (exec_done && rec[255:252] != 4'd3 && cycles_q > 32'd5) errors <= errors + 32'd1;
        if (!ready) clear_cycles <= clear_cycles + 32'd1;
        if (clamp) clamped_q <= 1'b1;

        if (active) begin
            case (kind)
                4'd0: begin
                    if (inst_valid_q && inst_ready) begin
                        inst_valid_q <= 1'b0;
                        sent_q       <= 1'b1;
                    end else if (!sent_q) begin
                        inst_valid_q <= 1'b1;
                    end
                    if (exec_done) begin
                        results[n_results] <= {dut.u_env.n_stalls_q, dut.u_env.n_beats_q, 7'd0, clamped_q,
                                               7'd0, exec_fault, dbg[63:32], exec_result};
                        n_results <= n_results + 32'd1;
                        sent_q    <= 1'b0;
                        clamped_q <= 1'b0;
                        at_q      <= at_q + 32'd1;
                    end
                end
                4'd2: begin
                    snaps[512*n_snaps + {22'd0, snap_q}] <= peek;
                    snap_q <= snap_q + 10'd1;
                    if (snap_q == 10'd511) begin
                        snap_q  <= 10'd0;
                        n_snaps <= n_snaps + 32'd1;
                        at_q    <= at_q + 32'd1;
                    end
                end
                4'd5: begin
                    delay_q <= rec[263:256];
                    at_q    <= at_q + 32'd1;
                end
                default: at_q <= at_q + 32'd1;
            endcase
        end

        if (busy_q && (at_q == n_script || (sent_q && cycles_q > LIMIT))) begin
            busy_q <= 1'b0;
            done   <= 1'b1;
            $sformat(name, "results_%0d.hex", run_id);
            if (n_results != 0) $writememh(name, results, 0, n_results - 1);
            $sformat(name, "snaps_%0d.hex", run_id);
            if (n_snaps != 0) $writememh(name, snaps, 0, 512 * n_snaps - 1);
            errors <= errors + mem_errors;
        end
        if (go && !busy_q && !done) begin
            $sformat(name, "script_%0d.hex", run_id);
            $readmemh(name, script, 0, n_script - 1);
            busy_q    <= 1'b1;
            at_q      <= 32'd0;
            n_results <= 32'd0;
            n_snaps   <= 32'd0;
        end
        if (!go) done <= 1'b0;

        if (!rst_n) begin
            busy_q       <= 1'b0;
            sent_q       <= 1'b0;
            inst_valid_q <= 1'b0;
            clamped_q    <= 1'b0;
            held_q       <= 1'b0;
            snap_q       <= 10'd0;
            delay_q      <= 8'd0;
            done         <= 1'b0;
            errors       <= 32'd0;
            clear_cycles <= 32'd0;
        end
    end
endmodule

`default_nettype wire
