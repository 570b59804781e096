// SPDX-License-Identifier: Apache-2.0
//
// orch_regs: address decode, plain registers and read multiplexer of `orch` (docs/spec/fabric.md 6.2).
//
// Write beats take effect in the cycle of `wb_valid && wb_ready`: at once, except AUX_CFG (when the
// client takes it) and MEM_BLOCK (one cycle later). Read beats take two cycles, MEM_BLOCK at least
// two. An offset that is not mapped answers an error whatever its strobes; any other effect of a
// beat needs at least one strobe.
// Parameters: as `orch`.

`default_nettype none
`include "ktpu_defs.vh"

module orch_regs #(
    parameter [3:0] ORC_X       = 4'd1,
    parameter [3:0] ORC_Y       = 4'd1,
    parameter       STAGE_FLITS = 128,
    parameter [7:0] GRID_X_HI   = 8'd2,
    parameter [7:0] GRID_Y_HI   = 8'd1,
    parameter       WORD_AW     = $clog2(5 * STAGE_FLITS)
) (
    input  wire               clk,
    input  wire               rst_n,

    // beats
    input  wire               wb_valid,
    input  wire [15:3]        wb_word,
    input  wire [63:0]        wb_data,
    input  wire [7:0]         wb_strb,
    output wire               wb_ready,
    output wire               wb_err,
    input  wire               rb_valid,
    input  wire [15:3]        rb_word,
    output wire               rb_ready,
    output wire [63:0]        rb_data,
    output wire               rb_err,

    // plain registers
    output wire [7:0]         prog_dst,
    output wire [15:0]        prog_len,
    output wire [15:0]        prog_base,

    // write events, one cycle each
    output wire               kick,
    output wire               cancel,
    output wire               cred_we,
    output wire [15:0]        cred_seed,
    output wire               done_clear,
    output wire [4:0]         tx_we,
    output wire               tx_kick,
    output wire               rx_pop,
    output wire               ovf_clear,
    output wire [11:0]        err_clear,
    output wire [7:0]         stage_strb,
    output wire [WORD_AW-1:0] stage_word,

    // state shown to the host
    input  wire               ready,
    input  wire               busy,
    input  wire [11:0]        err_stat,
    input  wire [63:0]        err_info,
    input  wire               run,
    input  wire [15:0]        left,
    input  wire [15:0]        credit,
    input  wire [15:0]        done_count,
    input  wire               tx_full,
    input  wire               rx_empty,
    input  wire               overflow,
    input  wire [287:0]       rx_head,
    output wire               node_rd_en,
    output wire [7:0]         node_rd_node,
    input  wire [63:0]        node_rd_data,

    // client windows
    output wire               aux_wr,
    input  wire               aux_wr_ready,
    output wire [3:0]         aux_stat_sel,
    input  wire               aux_present,
    input  wire [63:0]        aux_stat,
    input  wire [63:0]        aux_stat_q,
    output wire               mem_wr,
    input  wire               mem_wr_done,
    output wire               mem_rd,
    input  wire               mem_rd_done,
    input  wire               mem_present,
    input  wire               mem_bad,
    input  wire [63:0]        mem_rdata
);
    localparam [15:0] STAGE_END = 16'h2000 + 40 * STAGE_FLITS;
    localparam [15:0] STAGES    = STAGE_FLITS;
    localparam [7:0]  GRID_HI   = (GRID_X_HI > GRID_Y_HI) ? GRID_X_HI : GRID_Y_HI;

    generate
        if (`KT_FLIT_W != 288) begin : g_illegal
            orch_regs_illegal_parameters u_stop ();
        end
    endgenerate

    // ---- decode -----------------------------------------------------------------------------------
    wire [15:0] wa = {wb_word, 3'b000};
    wire [15:0] ra = {rb_word, 3'b000};

    function is_aux;   input [15:0] a; is_aux   = ((a & 16'hFF00) == 16'h0800);                  endfunction
    function is_mem;   input [15:0] a; is_mem   = ((a & 16'hFF80) == 16'h0200);                  endfunction
    function is_statw; input [15:0] a; is_statw = ((a & 16'hFF80) == 16'h0080);                  endfunction
    function is_node;  input [15:0] a; is_node  = ((a & 16'hF800) == 16'h1000);                  endfunction
    function is_tx;    input [15:0] a; is_tx    = (a >= 16'h0100) && (a < 16'h0128);             endfunction
    function is_rx;    input [15:0] a; is_rx    = (a >= 16'h0180) && (a < 16'h01A8);             endfunction
    function is_stage; input [15:0] a; is_stage = (a >= `KT_REG_STAGE) && (a < STAGE_END);       endfunction

    function is_single;
        input [15:0] a;
        case (a)
            `KT_REG_CTRL, `KT_REG_STATUS, `KT_REG_CAPS, `KT_REG_IRQ_STAT, `KT_REG_IRQ_EN,
            `KT_REG_CAPS2, `KT_REG_ERR_STAT, `KT_REG_ERR_INFO, `KT_REG_PROG_DST, `KT_REG_PROG_LEN,
            `KT_REG_PROG_KICK, `KT_REG_PROG_STAT, `KT_REG_PROG_CRED, `KT_REG_PROG_BASE,
            `KT_REG_SIG_DONE, `KT_REG_AUX_STAT, `KT_REG_TX_KICK, `KT_REG_TX_STATUS,
            `KT_REG_PROG_ABORT, `KT_REG_RX_POP, `KT_REG_RX_STATUS: is_single = 1'b1;
            default: is_single = 1'b0;
        endcase
    endfunction

    function is_mapped;
        input [15:0] a;
        is_mapped = is_single(a) || is_statw(a) || is_tx(a) || is_rx(a) || is_mem(a) ||
                    is_aux(a) || is_node(a) || is_stage(a);
    endfunction

    // ---- write beats --------------------------------------------------------------------------------
    wire strobed = (wb_strb != 8'd0);
    wire w_aux   = is_aux(wa);
    wire w_mem   = is_mem(wa);

    assign aux_wr   = wb_valid && strobed && w_aux;
    assign mem_wr   = wb_valid && strobed && w_mem;
    assign wb_ready = (w_aux && strobed) ? aux_wr_ready :
                      (w_mem && strobed) ? mem_wr_done : 1'b1;
    assign wb_err   = !is_mapped(wa) || (w_mem && (strobed ? mem_bad : !mem_present));

    wire fire = wb_valid && strobed;

    assign kick       = fire && (wa == `KT_REG_PROG_KICK);
    assign cancel      = fire && (wa == `KT_REG_PROG_ABORT);
    assign tx_kick    = fire && (wa == `KT_REG_TX_KICK);
    assign rx_pop     = fire && (wa == `KT_REG_RX_POP);
    assign done_clear = fire && (wa == `KT_REG_SIG_DONE);
    assign cred_we    = wb_valid && (wb_strb[1:0] != 2'd0) && (wa == `KT_REG_PROG_CRED);
    assign cred_seed  = {wb_strb[1] ? wb_data[15:8] : 8'd0, wb_strb[0] ? wb_data[7:0] : 8'd0};
    assign ovf_clear  = wb_valid && wb_strb[2] && wb_data[`KT_RX_STATUS_OVERFLOW] &&
                        (wa == `KT_REG_RX_STATUS);
    assign err_clear  = (wb_valid && (wa == `KT_REG_ERR_STAT)) ?
                        {wb_data[11:8] & {4{wb_strb[1]}}, wb_data[7:0] & {8{wb_strb[0]}}} : 12'd0;

    genvar t;
    generate
        for (t = 0; t < 5; t = t + 1) begin : g_tx
            assign tx_we[t] = fire && (wa == `KT_REG_TX_FLIT + 8 * t);
        end
    endgenerate

    wire [12:0] stage_index = wb_word - 13'h0400;
    assign stage_strb = (wb_valid && is_stage(wa)) ? wb_strb : 8'd0;
    assign stage_word = stage_index[WORD_AW-1:0];
    wire unused_index = &{1'b0, stage_index};

    reg [63:0] ctrl_q, irq_en_q;
    reg [15:0] len_q, base_q;
    reg [7:0]  dst_q;
    integer i;
    always @(posedge clk) begin
        if (!rst_n) begin
            ctrl_q   <= 64'd0;
            irq_en_q <= 64'd0;
            len_q    <= 16'd0;
            base_q   <= 16'd0;
            dst_q    <= 8'd0;
        end else if (wb_valid) begin
            for (i = 0; i < 8; i = i + 1) begin
                if (wb_strb[i] && (wa == `KT_REG_CTRL))   ctrl_q[8*i +: 8]   <= wb_data[8*i +: 8];
                if (wb_strb[i] && (wa == `KT_REG_IRQ_EN)) irq_en_q[8*i +: 8] <= wb_data[8*i +: 8];
            end
            for (i = 0; i < 2; i = i + 1) begin
                if (wb_strb[i] && (wa == `KT_REG_PROG_LEN))  len_q[8*i +: 8]  <= wb_data[8*i +: 8];
                if (wb_strb[i] && (wa == `KT_REG_PROG_BASE)) base_q[8*i +: 8] <= wb_data[8*i +: 8];
            end
            if (wb_strb[0] && (wa == `KT_REG_PROG_DST)) dst_q <= wb_data[7:0];
        end
    end
    assign prog_dst  = dst_q;
    assign prog_len  = len_q;
    assign prog_base = base_q;

    // ---- read beats: cycle 0 looks memories up, cycle 1 answers -----------------------------------------
    reg  phase_q;
    wire r_mem = is_mem(ra);
    always @(posedge clk) begin
        if (!rst_n) phase_q <= 1'b0;
        else        phase_q <= rb_valid && !rb_ready;
    end

    assign node_rd_en   = rb_valid && !phase_q && is_node(ra);
    assign node_rd_node = ra[10:3];
    assign aux_stat_sel = ra[6:3];
    assign mem_rd       = rb_valid && r_mem;
    assign rb_ready     = r_mem ? mem_rd_done : phase_q;
    assign rb_err       = !is_mapped(ra) || (r_mem && mem_bad);

    reg [63:0] single;
    always @* begin
        single = 64'd0;
        case (ra)
            `KT_REG_CTRL:      single = ctrl_q;
            `KT_REG_STATUS: begin
                single[`KT_STATUS_MESH_READY] = ready;
                single[`KT_STATUS_ERROR]      = (err_stat != 12'd0);
                single[`KT_STATUS_BUSY]       = busy;
            end
            `KT_REG_CAPS: begin
                single[`KT_CAPS_GRID_HI]    = GRID_HI;
                single[`KT_CAPS_GRID_LO]    = 8'd1;
                single[`KT_CAPS_POS_WIDTH]  = 8'd4;
                single[`KT_CAPS_FLIT_WIDTH] = `KT_FLIT_W;
            end
            `KT_REG_IRQ_EN:    single = irq_en_q;
            `KT_REG_CAPS2: begin
                single[`KT_CAPS2_MAGIC]       = 16'h4F52;
                single[`KT_CAPS2_REVISION]    = 8'd1;
                single[`KT_CAPS2_STAGE_FLITS] = STAGES;
                single[`KT_CAPS2_ORC_Y]       = ORC_Y;
                single[`KT_CAPS2_ORC_X]       = ORC_X;
                single[`KT_CAPS2_GRID_Y_HI]   = GRID_Y_HI;
                single[`KT_CAPS2_GRID_X_HI]   = GRID_X_HI;
            end
            `KT_REG_ERR_STAT:  single[11:0] = err_stat;
            `KT_REG_ERR_INFO:  single = err_info;
            `KT_REG_PROG_DST:  single[7:0] = dst_q;
            `KT_REG_PROG_LEN:  single[15:0] = len_q;
            `KT_REG_PROG_STAT: begin
                single[`KT_PROG_STAT_CREDIT] = credit;
                single[`KT_PROG_STAT_LEFT]   = left;
                single[`KT_PROG_STAT_RUN]    = run;
            end
            `KT_REG_PROG_CRED: single[15:0] = credit;
            `KT_REG_PROG_BASE: single[15:0] = base_q;
            `KT_REG_SIG_DONE:  single[15:0] = done_count;
            `KT_REG_AUX_STAT:  single = aux_present ? aux_stat : 64'd0;
            `KT_REG_TX_STATUS: single[`KT_TX_STATUS_FULL] = tx_full;
            `KT_REG_RX_STATUS: begin
                single[`KT_RX_STATUS_OVERFLOW] = overflow;
                single[`KT_RX_STATUS_EMPTY]    = rx_empty;
            end
            16'h0180:          single = rx_head[63:0];
            16'h0188:          single = rx_head[127:64];
            16'h0190:          single = rx_head[191:128];
            16'h0198:          single = rx_head[255:192];
            16'h01A0:          single[31:0] = rx_head[287:256];
            default:           single = 64'd0;
        endcase
    end

    assign rb_data = is_node(ra)  ? node_rd_data :
                     r_mem        ? mem_rdata :
                     is_statw(ra) ? (aux_present ? aux_stat_q : 64'd0) : single;
endmodule

`default_nettype wire
