// SPDX-License-Identifier: Apache-2.0
// unit_standin: a compute unit that does what its instructions say.
//
// Obeys duties U1 to U12 of docs/spec/fabric.md 5.7. Instruction payload:
//   [15:0] cycles of work, [31:16] memory writes, [34:32] beats - 1, [35] cover,
//   [36] fault, [37] the writes leave after retirement (an emitted batch),
//   [38] write [55:40] fails with code [59:56], [39] write [79:64] fails with
//   code [83:80], [84] the writes are descriptors without data, [127:96] result.
// Work of several instructions runs at the same time; writes and retirement are
// in order. Received CU_DATA goes through a cud_rx; other flits are dropped.
`default_nettype none

`include "ktpu_defs.vh"

module unit_standin #(
    parameter POS_X        = 2,
    parameter POS_Y        = 1,
    parameter MAX_INFLIGHT = 1
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         hold_inst,
    input  wire         hold_recv,
    input  wire         hold_exec,
    input  wire         spurious,      // raise exec_done in this cycle
    input  wire         aux_go,        // offer a unit-defined signal when nothing else waits

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
    output wire         acks_waiting   // a DATA_RECEIVED waits for the send path
);
    // ---------------------------------------------------------------- slots
    reg [127:0] script [0:7];
    reg [15:0]  work   [0:7];
    reg [2:0]   head_q, tail_q;
    reg [3:0]   count_q;
    reg [15:0]  sent_q;                // own writes of the head begun

    // -------------------------------------------------------------- backlog
    reg [127:0] batch [0:255];
    reg [7:0]   bhead_q, btail_q;
    reg [15:0]  bsent_q;

    // --------------------------------------------------------- write engine
    reg         burst_q;               // between descriptor and last data flit
    reg [2:0]   left_q;
    reg [7:0]   serial_q;
    reg         out_valid_q, out_is_write_q;
    reg [287:0] out_q;

    wire [127:0] head     = script[head_q];
    wire [127:0] fresh    = inst_flit[127:0];
    wire [127:0] bscript  = batch[bhead_q];
    wire         blog     = bhead_q != btail_q;
    wire         quiet    = !burst_q && !(out_valid_q && out_is_write_q);
    wire         settled  = !blog && quiet;
    wire         ready    = count_q != 4'd0 && work[head_q] == 16'd0;
    wire         own      = !head[37] && head[31:16] != 16'd0;
    wire         own_left = ready && own && sent_q != head[31:16] && !blog;
    wire         own_done = !own || (sent_q == head[31:16] && quiet);
    wire         done_old = ready && own_done && (!head[35] || settled) && !hold_exec;
    wire         accept   = inst_valid && inst_ready;
    wire         done_new = accept && count_q == 4'd0 && fresh[15:0] == 16'd0 && !hold_exec
                            && (fresh[37] || fresh[31:16] == 16'd0) && (!fresh[35] || settled);
    wire [127:0] done_what = done_old ? head : fresh;
    wire         retire   = done_old || done_new;

    assign inst_ready  = !hold_inst && count_q < MAX_INFLIGHT[3:0];
    assign exec_done   = retire || spurious;
    assign exec_fault  = retire && done_what[36];
    assign exec_result = done_what[127:96];
    assign exec_cover  = retire && done_what[35];

    integer s;
    always @(posedge clk) begin
        if (!rst_n) begin
            head_q  <= 3'd0;
            tail_q  <= 3'd0;
            count_q <= 4'd0;
            btail_q <= 8'd0;
        end else begin
            for (s = 0; s < 8; s = s + 1) if (work[s] != 16'd0) work[s] <= work[s] - 16'd1;
            if (accept && !done_new) begin
                script[tail_q] <= fresh;
                work[tail_q]   <= (fresh[15:0] == 16'd0) ? 16'd0 : fresh[15:0] - 16'd1;
                tail_q         <= tail_q + 3'd1;
            end
            if (done_old) head_q <= head_q + 3'd1;
            count_q <= count_q + {3'd0, accept && !done_new} - {3'd0, done_old};
            if (retire && done_what[37] && done_what[31:16] != 16'd0) begin
                batch[btail_q] <= done_what;
                btail_q        <= btail_q + 8'd1;
            end
        end
    end

    // --------------------------------------------------------- send path
    wire [15:0]  k       = blog ? bsent_q : sent_q;
    wire [127:0] ws      = blog ? bscript : head;
    wire         fail0   = ws[38] && k == ws[55:40];
    wire         fail1   = ws[39] && k == ws[79:64];
    wire [7:0]   verdict = fail0 ? {ws[59:56], 4'h1} : fail1 ? {ws[83:80], 4'h1} : 8'h00;
    wire         sig_valid;
    wire [287:0] sig_flit;
    wire         slot    = !out_valid_q || send_ready;
    wire         go_data = slot && burst_q;
    wire         go_sig  = slot && !burst_q && sig_valid;
    wire         go_wr   = slot && !burst_q && !sig_valid && (blog || own_left);
    wire         go_aux  = slot && !burst_q && !sig_valid && !go_wr && aux_go;

    function [287:0] flit(input [3:0] dx, input [3:0] dy, input [3:0] kind, input [7:0] txn,
                          input last, input [255:0] payload);
        begin
            flit = 288'd0;
            flit[`KT_FLIT_DST_X]   = dx;
            flit[`KT_FLIT_DST_Y]   = dy;
            flit[`KT_FLIT_SRC_X]   = POS_X[3:0];
            flit[`KT_FLIT_SRC_Y]   = POS_Y[3:0];
            flit[`KT_FLIT_TYPE]    = kind;
            flit[`KT_FLIT_TXN]     = txn;
            flit[`KT_FLIT_LAST]    = last;
            flit[`KT_FLIT_PAYLOAD] = payload;
        end
    endfunction

    always @(posedge clk) begin
        if (!rst_n) begin
            sent_q      <= 16'd0;
            bsent_q     <= 16'd0;
            bhead_q     <= 8'd0;
            burst_q     <= 1'b0;
            serial_q    <= 8'd0;
            out_valid_q <= 1'b0;
        end else begin
            if (slot) begin
                out_valid_q    <= go_data || go_sig || go_wr || go_aux;
                out_is_write_q <= go_data || go_wr;
            end
            if (go_wr) begin
                out_q    <= flit(4'd0, 4'd1, `KT_TYPE_MEM_WR_REQ, serial_q, 1'b0,
                                 {24'd0, k, 5'd0, ws[34:32], 200'd0, verdict});
                burst_q  <= !ws[84];
                left_q   <= ws[34:32];
                serial_q <= serial_q + 8'd1;
                if (!blog) sent_q <= sent_q + 16'd1;
                else if (bsent_q + 16'd1 == bscript[31:16]) begin
                    bsent_q <= 16'd0;
                    bhead_q <= bhead_q + 8'd1;
                end else bsent_q <= bsent_q + 16'd1;
            end
            if (go_data) begin
                out_q   <= flit(4'd0, 4'd1, `KT_TYPE_MEM_WR_DATA, serial_q, left_q == 3'd0,
                                {8{24'hDA7A00, serial_q}});
                burst_q <= left_q != 3'd0;
                left_q  <= left_q - 3'd1;
            end
            if (go_sig) out_q <= sig_flit;
            if (go_aux) out_q <= flit(4'd1, 4'd1, `KT_TYPE_CU_SIGNAL, serial_q, 1'b1,
                                      {8'h40, 248'd0});
            if (done_old) sent_q <= 16'd0;
        end
    end

    assign send_flit    = out_q;
    assign send_valid   = out_valid_q;
    assign acks_waiting = sig_valid;

    // --------------------------------------------------------- receive path
    wire is_burst = recv_flit[`KT_FLIT_TYPE] == `KT_TYPE_CU_DATA;
    wire rx_ready;

    assign recv_ready = is_burst ? rx_ready && !hold_recv : !hold_recv;

    cud_rx #(
        .POS_X      (POS_X),
        .POS_Y      (POS_Y),
        .ACKQ_DEPTH (16)
    ) u_rx (
        .clk         (clk),
        .rst_n       (rst_n),
        .in_flit     (recv_flit),
        .in_valid    (recv_valid && is_burst && !hold_recv),
        .in_ready    (rx_ready),
        .desc_valid  (),
        .desc_buf    (),
        .desc_off    (),
        .desc_len    (),
        .desc_reason (3'd0),
        .wr_valid    (),
        .wr_ready    (1'b1),
        .wr_buf      (),
        .wr_granule  (),
        .wr_data     (),
        .wr_last     (),
        .sig_valid   (sig_valid),
        .sig_ready   (go_sig),
        .sig_flit    (sig_flit),
        .abort       (1'b0),
        .open        (),
        .burst_end   (),
        .err         ()
    );
endmodule

`default_nettype wire
