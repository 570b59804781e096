// SPDX-License-Identifier: Apache-2.0
//
// orch_client: client windows of `orch`, AUX_CFG and MEM_BLOCK (docs/spec/fabric.md 6.6).
//
// AUX_CFG: one strobed write beat is one transfer; `aux_wr_ready` follows `aux_ready`, so the beat
// is held until the client takes it. Unstrobed bytes come from the previous beat of the same
// register, else 0.
// MEM_BLOCK: one `mreg_en` pulse per strobed write beat or read beat, writes first when both wait;
// the answer is sampled one cycle later, `mreg_addr`, `mreg_we` and `mreg_wdata` hold meanwhile.
// Latency: AUX 0 cycles beyond the client's; MEM 1 cycle.

`default_nettype none

module orch_client (
    input  wire        clk,
    input  wire        rst_n,

    // AUX_CFG write beat
    input  wire        aux_wr,         // strobed beat at AUX_CFG, held until aux_wr_ready
    input  wire [7:3]  aux_wr_word,
    input  wire [63:0] wr_data,
    input  wire [7:0]  wr_strb,
    output wire        aux_wr_ready,
    output wire        aux_absent,     // pulse: the beat had no client

    // MEM_BLOCK beats, held until *_done
    input  wire        mem_wr,
    input  wire [6:3]  mem_wr_word,
    output wire        mem_wr_done,
    input  wire        mem_rd,
    input  wire [6:3]  mem_rd_word,
    output wire        mem_rd_done,
    output wire        mem_bad,        // with *_done: no such client or register

    // clients
    output wire        aux_valid,
    output wire [7:0]  aux_addr,
    output wire [63:0] aux_data,
    input  wire        aux_ready,
    input  wire        aux_present,
    output wire        mreg_en,
    output wire        mreg_we,
    output wire [6:0]  mreg_addr,
    output wire [63:0] mreg_wdata,
    input  wire        mreg_present,
    input  wire        mreg_err
);
    // ---- AUX_CFG --------------------------------------------------------------------------------
    reg         shadow_valid_q;
    reg  [7:3]  shadow_word_q;
    reg  [63:0] shadow_data_q;
    wire        same = shadow_valid_q && (shadow_word_q == aux_wr_word);
    wire [63:0] base = same ? shadow_data_q : 64'd0;

    genvar b;
    wire [63:0] merged;
    wire [63:0] masked;
    generate
        for (b = 0; b < 8; b = b + 1) begin : g_byte
            assign merged[8*b +: 8] = wr_strb[b] ? wr_data[8*b +: 8] : base[8*b +: 8];
            assign masked[8*b +: 8] = wr_strb[b] ? wr_data[8*b +: 8] : 8'd0;
        end
    endgenerate

    assign aux_valid    = aux_wr && aux_present;
    assign aux_addr     = {aux_wr_word, 3'b000};
    assign aux_data     = merged;
    assign aux_wr_ready = !aux_present || aux_ready;
    assign aux_absent   = aux_wr && !aux_present;

    always @(posedge clk) begin
        if (!rst_n) shadow_valid_q <= 1'b0;
        else if (aux_valid && aux_ready) shadow_valid_q <= 1'b1;
        if (aux_valid && aux_ready) begin
            shadow_word_q <= aux_wr_word;
            shadow_data_q <= merged;
        end
    end

    // ---- MEM_BLOCK ------------------------------------------------------------------------------
    reg  wait_q;                       // the answer of last cycle's pulse is here
    reg  we_q;
    wire we = wait_q ? we_q : mem_wr;
    wire en = (mem_wr || mem_rd) && !wait_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            wait_q <= 1'b0;
            we_q   <= 1'b0;
        end else begin
            wait_q <= en;
            if (en) we_q <= mem_wr;
        end
    end

    assign mreg_en     = en && mreg_present;
    assign mreg_we     = we;
    assign mreg_addr   = {we ? mem_wr_word : mem_rd_word, 3'b000};
    assign mreg_wdata  = masked;
    assign mem_wr_done = wait_q && we_q;
    assign mem_rd_done = wait_q && !we_q;
    assign mem_bad     = !mreg_present || mreg_err;
endmodule

`default_nettype wire
