// SPDX-License-Identifier: Apache-2.0
// mg_mem_agent: bench model of the memory agent as one unit sees it
// (docs/spec/memory.md 3 to 7): streaming reads answered in order, writes with
// one acknowledgement each, error words and error acknowledgements.
//
// WORDS words of 32 bytes from address 0. Files: mem.hex is read on load,
// dump.hex written on dump.
// cfg_lat    cycles from the transfer of a request to its first response
// cfg_gap    chance in 256 of no response in a cycle
// cfg_perm   words of an entry in random order
// rd_bad_*   words that answer with an error; wr_bad_*: writes refused (M_BUS)
// cfg_ack    cycles from the last data flit to the acknowledgement
`default_nettype none

module mg_mem_agent #(
    parameter WORDS = 32768,
    parameter [3:0] POS_X = 4'd0,
    parameter [3:0] POS_Y = 4'd1
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         load,
    input  wire         dump,
    input  wire [31:0]  rnd,

    input  wire [15:0]  cfg_lat,
    input  wire [7:0]   cfg_gap,
    input  wire         cfg_perm,
    input  wire [15:0]  cfg_ack,
    input  wire         cfg_mute,       // reads are never answered
    input  wire [31:0]  rd_bad_lo, rd_bad_hi,
    input  wire [31:0]  wr_bad_lo, wr_bad_hi,

    input  wire         in_valid,       // flits that reached the agent
    input  wire [287:0] in_flit,

    output wire         rsp_valid,
    input  wire         rsp_ready,
    output wire [287:0] rsp_flit,
    output wire         ack_valid,
    input  wire         ack_ready,
    output wire [287:0] ack_flit,
    output wire         quiet
);

    localparam AW = $clog2(WORDS);
    localparam [40:0] BYTES = 41'd32 * WORDS;

    reg [255:0] mem [0:WORDS-1];

    always @(posedge load) $readmemh("mem.hex", mem);
    always @(posedge dump) $writememh("dump.hex", mem);

    reg [31:0] now_q;

    // ---- reads
    reg [287:0] rq [0:63];
    reg [31:0]  rq_at [0:63];
    reg [5:0]   rq_w_q, rq_r_q;
    reg [9:0]   pos_q;
    reg [1:0]   perm_q;

    wire        is_rd = in_valid && (in_flit[271:268] == 4'h0);
    wire [287:0] head  = rq[rq_r_q];
    wire        have  = rq_w_q != rq_r_q;
    wire        due   = have && ((now_q - rq_at[rq_r_q]) >= {16'd0, cfg_lat});
    wire [7:0]  count = (head[199:192] == 8'd0) ? 8'd1 : head[199:192];
    wire [39:0] base  = head[255:216];
    wire [40:0] ends  = {1'b0, base} + {26'd0, count, 7'd0};
    wire        bad_run = (base[4:0] != 5'd0) || (base[39:36] != 4'd0) || (ends > BYTES);
    wire [1:0]  w     = pos_q[1:0] ^ (cfg_perm ? perm_q : 2'd0);
    wire [39:0] at    = base + {25'd0, pos_q[9:2], 7'd0} + {33'd0, w, 5'd0};
    wire        bad   = bad_run || ((at[36:5] >= rd_bad_lo) && (at[36:5] < rd_bad_hi));
    wire [7:0]  tag   = head[267:260] + pos_q[9:2];
    wire        final_word = (pos_q[9:2] == count - 8'd1) && (pos_q[1:0] == 2'd3);

    assign rsp_valid = due && !cfg_mute && (rnd[7:0] >= cfg_gap);
    assign rsp_flit  = {head[279:272], POS_X, POS_Y, 4'h2, tag, w == 2'd3, bad, w,
                        bad ? 256'd0 : mem[at[AW+4:5]]};

    // ---- writes
    reg         col_q;                  // collecting
    reg [39:0]  waddr_q;
    reg [7:0]   wleft_q, wtxn_q;
    reg [3:0]   wcode_q;
    reg [7:0]   wsrc_q;
    reg [7:0]   wlen_q;
    reg [27:0]  aq [0:255];
    reg [31:0]  aq_at [0:255];
    reg [7:0]   aq_w_q, aq_r_q;
    reg [31:0]  orphans_q;

    wire        is_wr   = in_valid && (in_flit[271:268] == 4'h1);
    wire        is_wd   = in_valid && (in_flit[271:268] == 4'h4);
    wire [39:0] wbase   = in_flit[255:216];
    wire [40:0] wends   = {1'b0, wbase} + {28'd0, in_flit[215:208], 5'd0} + 41'd32;
    wire [27:0] ack     = aq[aq_r_q];

    assign ack_valid = (aq_w_q != aq_r_q) && ((now_q - aq_at[aq_r_q]) >= {16'd0, cfg_ack});
    assign ack_flit  = {ack[7:0], POS_X, POS_Y, 4'h3, ack[15:8], 1'b1, 3'd0, 248'd0,
                        ack[19:16], 3'd0, ack[19:16] != 4'd0};
    assign quiet     = !have && (aq_w_q == aq_r_q) && !col_q;

    wire [3:0] wcode = (wbase[4:0] != 5'd0) ? 4'd1
                     : wbase[38] ? 4'd2
                     : (wbase[37:36] != 2'd0) ? 4'd3
                     : wbase[39] ? 4'd4
                     : (wends > BYTES) ? 4'd5
                     : (in_flit[215:208] > 8'd7) ? 4'd6
                     : ((wbase[36:5] >= wr_bad_lo) && (wbase[36:5] < wr_bad_hi)) ? 4'd9 : 4'd0;

    always @(posedge clk) begin
        now_q <= now_q + 32'd1;
        if (!rst_n) begin
            now_q  <= 32'd0;
            rq_w_q <= 6'd0;
            rq_r_q <= 6'd0;
            pos_q  <= 10'd0;
            perm_q <= 2'd0;
            col_q  <= 1'b0;
            aq_w_q <= 8'd0;
            aq_r_q <= 8'd0;
            orphans_q <= 32'd0;
        end else begin
            if (is_rd) begin
                rq[rq_w_q]    <= in_flit;
                rq_at[rq_w_q] <= now_q;
                rq_w_q        <= rq_w_q + 6'd1;
            end
            if (rsp_valid && rsp_ready) begin
                pos_q <= final_word ? 10'd0 : pos_q + 10'd1;
                if (pos_q[1:0] == 2'd3) perm_q <= rnd[9:8];
                if (final_word) rq_r_q <= rq_r_q + 6'd1;
            end

            if (is_wr) begin
                col_q   <= 1'b1;
                waddr_q <= wbase;
                wleft_q <= in_flit[215:208];
                wlen_q  <= in_flit[215:208];
                wtxn_q  <= in_flit[267:260];
                wsrc_q  <= in_flit[279:272];
                wcode_q <= wcode;
                if (col_q) orphans_q <= orphans_q + 32'd1;
            end
            if (is_wd) begin
                if (!col_q) orphans_q <= orphans_q + 32'd1;
                else begin
                    if (wcode_q == 4'd0) mem[waddr_q[AW+4:5]] <= in_flit[255:0];
                    waddr_q <= waddr_q + 40'd32;
                    wleft_q <= wleft_q - 8'd1;
                    if ((wleft_q == 8'd0) || in_flit[259]) begin
                        col_q         <= 1'b0;
                        aq[aq_w_q]    <= {8'd0, ((wleft_q == 8'd0) && in_flit[259]) ? wcode_q : 4'd8,
                                          wtxn_q, wsrc_q};
                        aq_at[aq_w_q] <= now_q;
                        aq_w_q        <= aq_w_q + 8'd1;
                    end
                end
            end
            if (ack_valid && ack_ready) aq_r_q <= aq_r_q + 8'd1;
        end
    end

    wire unused = &{1'b0, head, wlen_q, rnd, ack, at};

endmodule

`default_nettype wire
