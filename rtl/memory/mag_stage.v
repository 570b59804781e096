// SPDX-License-Identifier: Apache-2.0
// mag_stage: staging store of one memory agent with the service of its claims.
// A flat array of 256-bit words behind the converged path, one burst at a time.
//
// Store      BANKS memories of ENTRIES / BANKS rows of four words. Word w lies in
//            bank w[2 +: log2 BANKS], in the row above it, at w[1:0] in the row.
// Service    claims of all requesters and both directions take turns, a write
//            before a read of the same requester. A claim holds until it is taken;
//            a requester offers it only when its DRAM accesses of that direction
//            are done, and offers none to DRAM while rd_busy / wr_busy is set.
// Latency    first read word 1 cycle after its claim, 3 with PIPE; a write is done
//            the cycle after its last word.
// Throughput one word per cycle; a word with some but not all strobes set is read,
//            merged and written back: 3 cycles, 5 with PIPE.
// Order      words are stored and fetched in service order: a read claimed after a
//            write returns the new bytes.
// Reset      clears the control state, never the contents; those start at zero in
//            simulation only.
// Parameters NREQ 1..8, BANKS a power of two 2..16, ENTRIES a power of two from
//            8 * BANKS to 2^25, PIPE 0 or 1 (a register before and after the RAMs).
// Spec       docs/spec/memory.md 10
`default_nettype none

module mag_stage #(
    parameter NREQ    = 1,
    parameter BANKS   = 4,
    parameter ENTRIES = 16384,
    parameter PIPE    = 1
) (
    input  wire                clk,
    input  wire                rst_n,

    input  wire [NREQ-1:0]     rd_valid,
    output wire [NREQ-1:0]     rd_ready,
    input  wire [NREQ*32-1:0]  rd_word,
    input  wire [NREQ*8-1:0]   rd_len,       // words - 1
    output wire [NREQ-1:0]     rsp_valid,
    output wire [255:0]        rsp_data,
    output wire [NREQ-1:0]     rd_busy,

    input  wire [NREQ-1:0]     wr_valid,
    output wire [NREQ-1:0]     wr_ready,
    input  wire [NREQ*32-1:0]  wr_word,
    input  wire [NREQ*8-1:0]   wr_len,
    input  wire [NREQ-1:0]     wd_valid,
    output wire [NREQ-1:0]     wd_ready,
    input  wire [NREQ*256-1:0] wd_data,
    input  wire [NREQ*32-1:0]  wd_strb,
    output wire [NREQ-1:0]     done_valid,
    output wire [NREQ-1:0]     wr_busy,

    output wire                read_beat,    // one word read, written for a requester
    output wire                write_beat
);

    localparam WW = $clog2(ENTRIES) + 2;     // address of a word
    localparam BW = $clog2(BANKS);
    localparam RW = WW - BW;                 // address inside a bank
    localparam LAT = PIPE != 0 ? 3 : 1;      // dispatch of a read to its data

    generate
        if (NREQ < 1 || NREQ > 8 || BANKS < 2 || BANKS > 16 || (BANKS & (BANKS - 1)) != 0
            || (ENTRIES & (ENTRIES - 1)) != 0 || ENTRIES < 8 * BANKS || ENTRIES > (1 << 25)
            || PIPE < 0 || PIPE > 1) begin : g_illegal
            mag_stage_illegal_parameters u_stop ();
        end
    endgenerate

    // ---------------------------------------------------------------- claims
    // Places of the round: write of requester r at 2r, its read at 2r + 1.
    reg             act_q, is_wr_q;          // a burst is in service
    reg  [2:0]      who_q;
    reg  [3:0]      last_q;                  // place of the last claim
    reg  [WW-1:0]   word_q;
    reg  [7:0]      left_q;                  // words after the present one
    reg             found;
    reg  [3:0]      place;
    reg  [WW-1:0]   word_mux;
    reg  [7:0]      len_mux;
    wire            fire;                    // the present word is dispatched
    wire            free  = !act_q || (fire && left_q == 8'd0);
    wire            claim = free && found;
    integer         c, m;

    always @* begin
        found = 1'b0; place = 4'd0;
        for (c = 2 * NREQ - 1; c >= 0; c = c - 1)
            if (c[0] ? rd_valid[c >> 1] : wr_valid[c >> 1]) begin
                found = 1'b1;
                place = c[3:0];
            end
        for (c = 2 * NREQ - 1; c >= 0; c = c - 1)
            if ((c[0] ? rd_valid[c >> 1] : wr_valid[c >> 1]) && c > {28'd0, last_q}) place = c[3:0];
        word_mux = {WW{1'b0}}; len_mux = 8'd0;
        for (m = 0; m < NREQ; m = m + 1)
            if (place[3:1] == m[2:0]) begin
                word_mux = place[0] ? rd_word[32*m +: WW] : wr_word[32*m +: WW];
                len_mux  = place[0] ? rd_len[8*m +: 8] : wr_len[8*m +: 8];
            end
    end

    always @(posedge clk) begin
        if (!rst_n) begin
            act_q  <= 1'b0;
            last_q <= 4'd15;
        end else begin
            if (claim) begin
                act_q  <= 1'b1;
                last_q <= place;
            end else if (fire && left_q == 8'd0) act_q <= 1'b0;
        end
        if (claim) begin
            is_wr_q <= !place[0];
            who_q   <= place[3:1];
            word_q  <= word_mux;
            left_q  <= len_mux;
        end else if (fire) begin
            word_q <= word_q + {{(WW-1){1'b0}}, 1'b1};
            left_q <= left_q - 8'd1;
        end
    end

    // ---------------------------------------------------------------- present word
    reg          w_offer;
    reg  [255:0] w_data;
    reg  [31:0]  w_strb;
    integer      w;
    always @* begin
        w_offer = 1'b0; w_data = 256'd0; w_strb = 32'd0;
        for (w = 0; w < NREQ; w = w + 1)
            if (who_q == w[2:0]) begin
                w_offer = wd_valid[w];
                w_data  = wd_data[256*w +: 256];
                w_strb  = wd_strb[32*w +: 32];
            end
    end

    reg  [LAT:1]   old_q;                    // the old word of a merge is on its way
    wire [255:0]   old_data;
    wire           storing = act_q && is_wr_q && w_offer;
    wire           partial = w_strb != 32'hFFFF_FFFF && w_strb != 32'd0;
    wire           fetch_old = storing && partial && old_q == {LAT{1'b0}};
    wire [LAT:0]   old       = {old_q, fetch_old};
    wire           merge     = storing && partial && old_q[LAT];
    wire           store     = (storing && !partial) || merge;
    wire           fetch     = act_q && !is_wr_q;
    wire [255:0]   w_merged;

    assign fire       = store || fetch;
    assign read_beat  = fetch;
    assign write_beat = store;

    genvar g;
    generate
        for (g = 0; g < 32; g = g + 1) begin : g_byte
            assign w_merged[8*g +: 8] = (partial && !w_strb[g]) ? old_data[8*g +: 8] : w_data[8*g +: 8];
        end
    endgenerate

    always @(posedge clk) begin
        if (!rst_n || merge) old_q <= {LAT{1'b0}};
        else old_q <= old[LAT-1:0];
    end

    // ---------------------------------------------------------------- dispatch
    wire          op_wr, op_rd;
    wire [WW-1:0] op_word;
    wire [255:0]  op_data;
    generate
        if (PIPE != 0) begin : g_dispatch
            reg          wr_q, rd_q;
            reg [WW-1:0] at_q;
            reg [255:0]  data_q;
            always @(posedge clk) begin
                if (!rst_n) begin
                    wr_q <= 1'b0;
                    rd_q <= 1'b0;
                end else begin
                    wr_q <= store && w_strb != 32'd0;
                    rd_q <= fetch || fetch_old;
                end
                if (act_q) at_q <= word_q;
                if (store) data_q <= w_merged;
            end
            assign op_wr   = wr_q;
            assign op_rd   = rd_q;
            assign op_word = at_q;
            assign op_data = data_q;
        end else begin : g_direct
            assign op_wr   = store && w_strb != 32'd0;
            assign op_rd   = fetch || fetch_old;
            assign op_word = word_q;
            assign op_data = w_merged;
        end
    endgenerate

    // ---------------------------------------------------------------- store
    wire [BW-1:0]        bank = op_word[2 +: BW];
    wire [RW-1:0]        row  = {op_word[WW-1:BW+2], op_word[1:0]};
    wire [BANKS*256-1:0] bank_data;
    generate
        for (g = 0; g < BANKS; g = g + 1) begin : g_bank
            localparam [BW-1:0] BANK = g;
            ram_sdp #(
                .WIDTH (256),
                .DEPTH (ENTRIES * 4 / BANKS),
                .PRIM  ("ultra")
            ) u_ram (
                .clk     (clk),
                .wr_en   (op_wr && bank == BANK),
                .wr_addr (row),
                .wr_data (op_data),
                .rd_en   (op_rd && bank == BANK),
                .rd_addr (row),
                .rd_data (bank_data[256*g +: 256])
            );
        end
    endgenerate

    reg  [BW-1:0] bank_q;                    // bank of the word in the RAM registers
    reg  [255:0]  out_mux;
    integer       b;
    always @(posedge clk) if (op_rd) bank_q <= bank;
    always @* begin
        out_mux = 256'd0;
        for (b = 0; b < BANKS; b = b + 1)
            if (bank_q == b[BW-1:0]) out_mux = bank_data[256*b +: 256];
    end

    // ---------------------------------------------------------------- returns
    // Readers of the words under way, oldest on top.
    reg  [LAT:1]     way_q;
    reg  [3*LAT-1:0] way_who_q;
    wire [LAT:0]     way     = {way_q, fetch};
    wire [3*LAT+2:0] way_who = {way_who_q, who_q};
    reg              end_q;                  // a write burst stored its last word
    reg  [2:0]       end_who_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            way_q <= {LAT{1'b0}};
            end_q <= 1'b0;
        end else begin
            way_q <= way[LAT-1:0];
            end_q <= store && left_q == 8'd0;
        end
        if (way != {(LAT+1){1'b0}}) way_who_q <= way_who[3*LAT-1:0];
        if (store) end_who_q <= who_q;
    end

    generate
        if (PIPE != 0) begin : g_out
            reg         there_q;             // a word is in the RAM registers
            reg [255:0] out_q;
            always @(posedge clk) begin
                there_q <= op_rd;
                if (there_q) out_q <= out_mux;
            end
            assign old_data = out_q;
        end else begin : g_plain
            assign old_data = out_mux;
        end
    endgenerate
    assign rsp_data = old_data;

    integer          y, z;
    reg  [NREQ-1:0]  on_way;
    always @* begin
        on_way = {NREQ{1'b0}};
        for (y = 0; y < LAT; y = y + 1)
            for (z = 0; z < NREQ; z = z + 1)
                if (way_q[y+1] && way_who_q[3*y +: 3] == z[2:0]) on_way[z] = 1'b1;
    end

    generate
        for (g = 0; g < NREQ; g = g + 1) begin : g_return
            localparam [2:0] ID = g;
            assign rd_ready[g]   = claim && place == {ID, 1'b1};
            assign wr_ready[g]   = claim && place == {ID, 1'b0};
            assign wd_ready[g]   = act_q && is_wr_q && who_q == ID && (store || !w_offer);
            assign rsp_valid[g]  = way_q[LAT] && way_who_q[3*LAT-1 -: 3] == ID;
            assign done_valid[g] = end_q && end_who_q == ID;
            assign rd_busy[g]    = (act_q && !is_wr_q && who_q == ID) || on_way[g];
            assign wr_busy[g]    = (act_q && is_wr_q && who_q == ID) || done_valid[g];
        end
    endgenerate

    wire unused = &{1'b0, old[LAT], way_who[3*LAT+2:3*LAT], rd_word, wr_word};

endmodule

`default_nettype wire
