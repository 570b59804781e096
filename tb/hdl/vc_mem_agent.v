// SPDX-License-Identifier: Apache-2.0
// vc_mem_agent: bench model of the memory behind the memory unit: plain reads and
// streaming reads of one-word entries, answered in any order, and write bursts.
//
// WORDS words of 32 bytes from address 0; addresses are taken modulo that size, so
// both ends of the address space can be used. mem.hex is read on load, dump.hex
// written on dump.
// cfg_order  0 in order, 1 youngest word first, 2 random
// cfg_lat    in order: cycles from a request to its response; else the pause after
//            the last request before the first response
// cfg_gap    chance in 256 of no response in a cycle
// cfg_limit  words answered in all; the others never are
// rd_bad_*   words that answer with an error
// `broken`   a write that is not framed as docs/spec/vector.md 9.1 says, or a flit
//            of any type between a write descriptor and its last data flit
`default_nettype none

module vc_mem_agent #(
    parameter WORDS = 65536
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         load,
    input  wire         dump,
    input  wire [31:0]  rnd,

    input  wire [1:0]   cfg_order,
    input  wire [15:0]  cfg_lat,
    input  wire [7:0]   cfg_gap,
    input  wire [31:0]  cfg_limit,
    input  wire [31:0]  rd_bad_lo, rd_bad_hi,

    input  wire         in_valid,           // every flit the unit sent
    input  wire [287:0] in_flit,

    output wire         rsp_valid,
    input  wire         rsp_ready,
    output wire [287:0] rsp_flit,
    output wire         quiet,
    output reg          broken
);
    localparam AW = $clog2(WORDS);

    reg [255:0] mem [0:WORDS-1];
    always @(posedge load) $readmemh("mem.hex", mem);
    always @(posedge dump) $writememh("dump.hex", mem);

    // ---- words asked for
    reg [47:0]  ring [0:2047];              // {tag, address}
    reg [31:0]  due  [0:2047];
    reg [10:0]  head_q, tail_q, at;
    reg [31:0]  now_q, last_q, done_q;
    reg [47:0]  pick_q;
    reg         offer_q;
    wire [10:0] count   = tail_q - head_q;
    wire        is_rd   = in_valid && in_flit[271:268] == 4'h0;
    wire        stream  = in_flit[206];
    wire [7:0]  entries = stream ? in_flit[199:192] : 8'd1;
    wire        ready   = count != 11'd0 && done_q < cfg_limit && rnd[7:0] >= cfg_gap
                          && ((cfg_order == 2'd0) ? (now_q + 32'd1 >= due[head_q])
                                                  : (!is_rd && now_q - last_q > {16'd0, cfg_lat}));
    wire        bad     = pick_q[36:5] >= rd_bad_lo && pick_q[36:5] < rd_bad_hi;
    integer     i;

    assign rsp_valid = offer_q;
    assign rsp_flit  = {8'h10, 8'h01, 4'h2, pick_q[47:40], 1'b1, bad, 2'b00,
                        bad ? 256'd0 : mem[pick_q[AW+4:5]]};
    assign quiet     = (count == 11'd0 || done_q >= cfg_limit) && !offer_q && left_q == 4'd0;

    // ---- writes
    reg [39:0]  waddr_q;
    reg [3:0]   left_q;                     // data flits to come

    always @(posedge clk) begin
        now_q <= now_q + 32'd1;
        if (!rst_n) begin
            now_q   <= 32'd0;
            last_q  <= 32'd0;
            head_q  <= 11'd0;
            tail_q  <= 11'd0;
            done_q  <= 32'd0;
            offer_q <= 1'b0;
            left_q  <= 4'd0;
            broken  <= 1'b0;
        end else begin
            if (is_rd) begin
                for (i = 0; i < entries; i = i + 1) begin
                    ring[tail_q + i[10:0]] <= {in_flit[267:260] + i[7:0], in_flit[255:216] + {i[34:0], 5'd0}};
                    due[tail_q + i[10:0]]  <= now_q + {16'd0, cfg_lat} + i;
                end
                tail_q <= tail_q + {3'd0, entries};
                last_q <= now_q;
                if (entries == 8'd0 || (stream && in_flit[165:158] != 8'd1)
                    || in_flit[267:260] + entries - 8'd1 < in_flit[267:260]
                    || in_flit[215:208] != 8'd0 || in_flit[191:166] != 26'd0 || in_flit[157:0] != 158'd0
                    || (!stream && in_flit[207:158] != 50'd0)) broken <= 1'b1;
            end

            if (!offer_q || rsp_ready) begin
                offer_q <= ready;
                if (ready) begin
                    at = (cfg_order == 2'd0) ? head_q
                       : (cfg_order == 2'd1) ? tail_q - 11'd1
                       : head_q + (rnd[18:8] % count);
                    pick_q <= ring[at];
                    done_q <= done_q + 32'd1;
                    if (cfg_order == 2'd1) tail_q <= tail_q - 11'd1;
                    else begin
                        ring[at] <= ring[head_q];
                        head_q   <= head_q + 11'd1;
                    end
                end
            end

            if (in_valid && left_q != 4'd0 && in_flit[271:268] != 4'h4) broken <= 1'b1;
            if (in_valid && in_flit[271:268] == 4'h1) begin
                waddr_q <= in_flit[255:216];
                left_q  <= in_flit[211:208] + 4'd1;
                if (in_flit[215:211] != 5'd0 || in_flit[207:0] != 208'd0) broken <= 1'b1;
            end
            if (in_valid && in_flit[271:268] == 4'h4) begin
                mem[waddr_q[AW+4:5]] <= in_flit[255:0];
                waddr_q <= waddr_q + 40'd32;
                left_q  <= left_q - 4'd1;
                if (left_q == 4'd0 || in_flit[259] != (left_q == 4'd1)) broken <= 1'b1;
            end
        end
    end

    wire unused = &{1'b0, rnd, in_flit};
endmodule

`default_nettype wire
