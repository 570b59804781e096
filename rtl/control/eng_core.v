// SPDX-License-Identifier: Apache-2.0
//
// eng_core: executes the command list of `ctl_engine` (docs/spec/fabric.md 7.3).
//
// Commands run strictly one after another; command i+1 starts after the response of command i. The
// core is an AXI4-Lite master of the orchestrator window and reaches nothing else: any other address
// counts as a response that is not OKAY. Address bits 2:0 are sent as 0.
// ABORT is taken between transactions: before a command is executed, after a response, or while a
// poll waits; a bad response or a matching poll of the last slot still stops the program first.
// Latency: 2 cycles from a response to the next address. POLL repeats POLL_IVL + 1 cycles after a
// response that did not match (plus 1 cycle for the address).
// Parameters: NCMD 2..128, POLL_IVL 0..65535, CTRL_BASE a multiple of 64 KiB.

`default_nettype none
`include "ktpu_defs.vh"

module eng_core #(
    parameter        NCMD      = 128,
    parameter        POLL_IVL  = 31,
    parameter [31:0] CTRL_BASE = 32'h1000_0000,
    parameter        SLOT_W    = $clog2(NCMD)
) (
    input  wire              clk,
    input  wire              rst_n,

    input  wire              go,
    input  wire              stop,
    input  wire [31:0]       poll_limit,
    output wire              busy,
    output wire              done,
    output wire              err,
    output wire [3:0]        err_code,
    output wire [SLOT_W-1:0] pc,
    output wire [63:0]       code,
    output wire [31:0]       polls,
    output wire [31:0]       err_addr,

    output wire              fetch_en,
    output wire [SLOT_W-1:0] fetch_slot,
    input  wire [63:0]       cmd_op,
    input  wire [63:0]       cmd_addr,
    input  wire [63:0]       cmd_data,
    input  wire [63:0]       cmd_mask,

    output wire [15:0]       awaddr,
    output wire              awvalid,
    input  wire              awready,
    output wire [63:0]       wdata,
    output wire              wvalid,
    input  wire              wready,
    input  wire              bvalid,
    output wire              bready,
    input  wire [1:0]        bresp,
    output wire [15:0]       araddr,
    output wire              arvalid,
    input  wire              arready,
    input  wire              rvalid,
    output wire              rready,
    input  wire [63:0]       rdata,
    input  wire [1:0]        rresp
);
    localparam [2:0] IDLE = 3'd0, FETCH = 3'd1, EXEC = 3'd2, WRITE = 3'd3, READ = 3'd4,
                     PAUSE = 3'd5;
    localparam [63:0] OP_WR = 64'd1, OP_POLL = 64'd2, OP_DONE = 64'd3;
    localparam [15:0] IVL = POLL_IVL;
    localparam [15:0] LAST_SLOT = NCMD - 1;

    reg  [2:0]        state_q, state_d;
    reg  [SLOT_W-1:0] pc_q;
    reg               done_q, err_q, stop_q;
    reg  [3:0]        err_code_q, fail_code;
    reg  [63:0]       code_q;
    reg  [31:0]       polls_q, tries_q, err_addr_q;
    reg  [15:0]       pause_q;
    reg               addr_done_q, data_done_q;

    wire start    = (state_q == IDLE) && go;
    wire stopping = stop || stop_q;
    wire reach    = (cmd_addr[63:16] == {32'd0, CTRL_BASE[31:16]});
    wire w_resp   = (state_q == WRITE) && bvalid;
    wire r_resp   = (state_q == READ) && rvalid;
    wire match    = ((rdata & cmd_mask) == cmd_data);
    wire spent    = (poll_limit != 32'd0) && (tries_q >= poll_limit);

    // One of these ends a command in this cycle.
    reg fail, next, finish;
    // A read starts (it counts even if it can reach nothing): the first of a POLL, a repeated one.
    reg first, again;

    always @* begin
        state_d   = state_q;
        fail      = 1'b0;
        fail_code = `KT_ENG_ERR_NONE;
        next      = 1'b0;
        finish    = 1'b0;
        first     = 1'b0;
        again     = 1'b0;
        case (state_q)
            IDLE:  if (go) state_d = FETCH;
            FETCH: state_d = EXEC;
            EXEC: begin
                if (stopping) begin
                    fail = 1'b1;
                    fail_code = `KT_ENG_ERR_ABORTED;
                end else if (cmd_op == OP_DONE) begin
                    finish = 1'b1;
                end else if (cmd_op == OP_WR) begin
                    fail = !reach;
                    fail_code = `KT_ENG_ERR_WR_RESP;
                    state_d = WRITE;
                end else if (cmd_op == OP_POLL) begin
                    first = 1'b1;
                    fail = !reach;
                    fail_code = `KT_ENG_ERR_RD_RESP;
                    state_d = READ;
                end else begin
                    fail = 1'b1;
                    fail_code = `KT_ENG_ERR_BAD_OP;
                end
            end
            WRITE: if (w_resp) begin
                if (bresp != 2'b00) begin
                    fail = 1'b1;
                    fail_code = `KT_ENG_ERR_WR_RESP;
                end else begin
                    next = 1'b1;
                end
            end
            READ: if (r_resp) begin
                if (rresp != 2'b00) begin
                    fail = 1'b1;
                    fail_code = `KT_ENG_ERR_RD_RESP;
                end else if (match) begin
                    next = 1'b1;
                end else if (stopping) begin
                    fail = 1'b1;
                    fail_code = `KT_ENG_ERR_ABORTED;
                end else if (spent) begin
                    fail = 1'b1;
                    fail_code = `KT_ENG_ERR_POLL_LIMIT;
                end else begin
                    state_d = PAUSE;
                end
            end
            PAUSE: begin
                if (stopping) begin
                    fail = 1'b1;
                    fail_code = `KT_ENG_ERR_ABORTED;
                end else if (pause_q == 16'd0) begin
                    again = 1'b1;
                    state_d = READ;
                end
            end
            default: state_d = IDLE;
        endcase
        if (next) begin
            if (pc_q == LAST_SLOT[SLOT_W-1:0]) begin
                fail = 1'b1;
                fail_code = `KT_ENG_ERR_NO_DONE;
            end else begin
                state_d = FETCH;
            end
        end
        if (fail || finish) state_d = IDLE;
    end

    always @(posedge clk) begin
        if (!rst_n) begin
            state_q     <= IDLE;
            pc_q        <= {SLOT_W{1'b0}};
            done_q      <= 1'b0;
            err_q       <= 1'b0;
            stop_q      <= 1'b0;
            err_code_q  <= `KT_ENG_ERR_NONE;
            code_q      <= 64'd0;
            polls_q     <= 32'd0;
            tries_q     <= 32'd0;
            err_addr_q  <= 32'd0;
            pause_q     <= 16'd0;
            addr_done_q <= 1'b0;
            data_done_q <= 1'b0;
        end else begin
            state_q <= state_d;
            stop_q  <= (state_q != IDLE) && (state_d != IDLE) && stopping;

            if (start) begin
                pc_q       <= {SLOT_W{1'b0}};
                done_q     <= 1'b0;
                err_q      <= 1'b0;
                err_code_q <= `KT_ENG_ERR_NONE;
            end else if (fail) begin
                done_q     <= 1'b1;
                err_q      <= 1'b1;
                err_code_q <= fail_code;
                err_addr_q <= cmd_addr[31:0];
            end else if (finish) begin
                done_q     <= 1'b1;
                code_q     <= cmd_data;
            end else if (next) begin
                pc_q       <= pc_q + 1'b1;
            end

            if (start) polls_q <= 32'd0;
            else if (first || again) polls_q <= polls_q + 32'd1;
            if (first) tries_q <= 32'd1;
            else if (again) tries_q <= tries_q + 32'd1;

            if (state_q == READ) pause_q <= IVL;
            else if (state_q == PAUSE) pause_q <= pause_q - 16'd1;

            if ((state_d == WRITE || state_d == READ) && (state_q != state_d)) begin
                addr_done_q <= 1'b0;
                data_done_q <= 1'b0;
            end else begin
                if ((awvalid && awready) || (arvalid && arready)) addr_done_q <= 1'b1;
                if (wvalid && wready) data_done_q <= 1'b1;
            end
        end
    end

    assign busy       = (state_q != IDLE);
    assign done       = done_q;
    assign err        = err_q;
    assign err_code   = err_code_q;
    assign pc         = pc_q;
    assign code       = code_q;
    assign polls      = polls_q;
    assign err_addr   = err_addr_q;
    assign fetch_en   = (state_q == FETCH);
    assign fetch_slot = pc_q;

    assign awaddr  = {cmd_addr[15:3], 3'b000};
    assign araddr  = {cmd_addr[15:3], 3'b000};
    assign wdata   = cmd_data;
    assign awvalid = (state_q == WRITE) && !addr_done_q;
    assign wvalid  = (state_q == WRITE) && !data_done_q;
    assign bready  = (state_q == WRITE);
    assign arvalid = (state_q == READ) && !addr_done_q;
    assign rready  = (state_q == READ);
endmodule

`default_nettype wire
