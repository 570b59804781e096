// SPDX-License-Identifier: Apache-2.0
//
// eng_regs: register window and command RAM of `ctl_engine` (docs/spec/fabric.md 7.2).
//
// After reset the command RAM is cleared (NCMD cycles); writes to ENG_CTRL and CMD wait for it, so
// a program never meets a command of before the reset. A command is on `cmd_*` one cycle after
// `fetch_en` and held. CMD writes are refused while `busy` = 1.
// Parameters: NCMD 2..128, POLL_IVL 0..65535.

`default_nettype none
`include "ktpu_defs.vh"

module eng_regs #(
    parameter NCMD     = 128,
    parameter POLL_IVL = 31,
    parameter SLOT_W   = $clog2(NCMD)
) (
    input  wire              clk,
    input  wire              rst_n,

    input  wire              wb_valid,
    input  wire [15:3]       wb_word,
    input  wire [63:0]       wb_data,
    input  wire [7:0]        wb_strb,
    output wire              wb_ready,
    output wire              wb_err,
    input  wire [15:3]       rb_word,
    output wire              rb_ready,
    output wire [63:0]       rb_data,
    output wire              rb_err,

    output wire              go,           // pulses; the core ignores what does not apply
    output wire              stop,
    output wire [31:0]       poll_limit,
    input  wire              busy,
    input  wire              done,
    input  wire              err,
    input  wire [3:0]        err_code,
    input  wire [SLOT_W-1:0] pc,
    input  wire [63:0]       code,
    input  wire [31:0]       polls,
    input  wire [31:0]       err_addr,

    input  wire              fetch_en,
    input  wire [SLOT_W-1:0] fetch_slot,
    output wire [63:0]       cmd_op,
    output wire [63:0]       cmd_addr,
    output wire [63:0]       cmd_data,
    output wire [63:0]       cmd_mask
);
    localparam [15:0] CMD_END = 16'h1000 + 32 * NCMD;
    localparam [15:0] NCMD16  = NCMD;
    localparam [15:0] IVL16   = POLL_IVL;

    generate
        if (NCMD < 2 || NCMD > 128 || POLL_IVL < 0 || POLL_IVL > 65535) begin : g_illegal
            eng_regs_illegal_parameters u_stop ();
        end
    endgenerate

    wire [15:0] wa = {wb_word, 3'b000};
    wire [15:0] ra = {rb_word, 3'b000};

    function is_cmd; input [15:0] a; is_cmd = (a >= `KT_REG_CMD) && (a < CMD_END); endfunction

    function is_mapped;
        input [15:0] a;
        is_mapped = is_cmd(a) || (a <= `KT_REG_ENG_ERR_ADDR);
    endfunction

    // ---- clear after reset --------------------------------------------------------------------------
    reg [SLOT_W:0] clr_q;
    wire           cleared = (clr_q == NCMD16[SLOT_W:0]);
    always @(posedge clk) begin
        if (!rst_n) clr_q <= {(SLOT_W + 1){1'b0}};
        else if (!cleared) clr_q <= clr_q + 1'b1;
    end

    // ---- write --------------------------------------------------------------------------------------
    wire w_cmd  = is_cmd(wa);
    wire w_ctrl = (wa == `KT_REG_ENG_CTRL);
    wire fire   = wb_valid && wb_ready;

    assign wb_ready = cleared || !(w_cmd || w_ctrl);
    assign wb_err   = !is_mapped(wa) || (w_cmd && busy);
    assign go       = fire && w_ctrl && wb_strb[0] && wb_data[`KT_ENG_CTRL_GO];
    assign stop     = fire && w_ctrl && wb_strb[0] && wb_data[`KT_ENG_CTRL_ABORT];

    reg [31:0] limit_q;
    integer i;
    always @(posedge clk) begin
        if (!rst_n) begin
            limit_q <= 32'd0;
        end else if (wb_valid && (wa == `KT_REG_ENG_POLL_LIMIT)) begin
            for (i = 0; i < 4; i = i + 1)
                if (wb_strb[i]) limit_q[8*i +: 8] <= wb_data[8*i +: 8];
        end
    end
    assign poll_limit = limit_q;

    // ---- command RAM: slot wide, one byte enable per byte, field f in bytes 8f+7..8f --------------------
    wire        cmd_we   = fire && w_cmd && !busy;
    wire [31:0] cmd_strb = cmd_we ? ({24'd0, wb_strb} << {wa[4:3], 3'b000}) : 32'd0;

    ram_bytes #(.BYTES(32), .DEPTH(NCMD), .PRIM("block")) u_cmd (
        .clk    (clk),
        .wr_strb(cleared ? cmd_strb : 32'hFFFF_FFFF),
        .wr_addr(cleared ? wa[5 +: SLOT_W] : clr_q[SLOT_W-1:0]),
        .wr_data(cleared ? {4{wb_data}} : 256'd0),
        .rd_en  (fetch_en),
        .rd_addr(fetch_slot),
        .rd_data({cmd_mask, cmd_data, cmd_addr, cmd_op})
    );

    // ---- read ---------------------------------------------------------------------------------------
    reg [63:0] value;
    always @* begin
        value = 64'd0;
        case (ra)
            `KT_REG_ENG_CTRL: begin
                value[`KT_ENG_CTRL_ERR_CODE] = err_code;
                value[`KT_ENG_CTRL_ERR]      = err;
                value[`KT_ENG_CTRL_DONE]     = done;
                value[`KT_ENG_CTRL_BUSY]     = busy;
            end
            `KT_REG_ENG_PC:         value[SLOT_W-1:0] = pc;
            `KT_REG_ENG_CODE:       value = code;
            `KT_REG_ENG_POLLS:      value[31:0] = polls;
            `KT_REG_ENG_CAPS: begin
                value[`KT_ENG_CAPS_MAGIC]    = 16'h4345;
                value[`KT_ENG_CAPS_POLL_IVL] = IVL16;
                value[`KT_ENG_CAPS_NCMD]     = NCMD16;
            end
            `KT_REG_ENG_POLL_LIMIT: value[31:0] = limit_q;
            `KT_REG_ENG_ERR_ADDR:   value[31:0] = err_addr;
            default:                value = 64'd0;
        endcase
    end
    assign rb_ready = 1'b1;
    assign rb_data  = value;
    assign rb_err   = !is_mapped(ra);
endmodule

`default_nettype wire
