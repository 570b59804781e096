// SPDX-License-Identifier: Apache-2.0
// mg_decode: fields of a matmul instruction and every check of its table, in
// order (docs/spec/cluster.md 2, 2.1).
//
// Latency    the three products are registered in the cycle of `mul`; `code`
//            and the clean fields are valid combinationally from the next
//            cycle on, for as long as `inst` is held. code = 0: no fault.
//            `mul` is held until `checked`, at once except for a row-major
//            DRAIN, whose row groups take log2(TILES) - 1 more cycles.
// Products are exact (16 bits for two 8-bit factors), sums never wrap.
//
// TILES, GA, GB, ROWMAJOR as the cluster.
`default_nettype none
`include "ktpu_defs.vh"

module mg_decode #(
    parameter [3:0] CU_X  = 4'd0,
    parameter [3:0] CU_Y  = 4'd0,
    parameter       TILES = 512,
    parameter       GA    = 512,
    parameter       GB    = 512,
    parameter       ROWMAJOR = 0
) (
    input  wire         clk,
    input  wire         mul,
    output wire         checked,
    input  wire [255:0] inst,
    input  wire [12:0]  open_count,     // opened sub-tiles
    input  wire [12:0]  batch_size,     // current emit batch, 0 = none

    output reg  [7:0]   code,
    output wire [15:0]  n,              // 0 already replaced by 1
    output wire [7:0]   gm,
    output wire [7:0]   gn,
    output wire [7:0]   nk,
    output reg  [15:0]  prod_mk_q,      // entries of side A
    output reg  [15:0]  prod_nk_q,      // entries of side B
    output reg  [15:0]  prod_mn_q,      // sub-tiles
    output wire [16:0]  granules        // of the transfer this instruction makes
);

    wire [3:0]  op    = inst[`KT_MG_INST_OP];
    wire        emit  = inst[`KT_MG_INST_EMIT];
    wire        fuse  = inst[`KT_MG_INST_FUSE];
    wire        dnode = inst[`KT_MG_INST_DNODE];
    wire [3:0]  dst_x = inst[`KT_MG_INST_DST_X];
    wire [3:0]  dst_y = inst[`KT_MG_INST_DST_Y];
    wire [39:0] addr  = {inst[`KT_MG_INST_ADDR_HI], inst[`KT_MG_INST_ADDR_LO]};
    wire        buf2  = inst[`KT_MG_INST_DBUF] == `KT_MG_BUF_ACC;

    assign n  = (inst[`KT_MG_INST_N] == 16'd0) ? 16'd1 : inst[`KT_MG_INST_N];
    assign gm = (inst[`KT_MG_INST_GM] == 8'd0) ? 8'd1 : inst[`KT_MG_INST_GM];
    assign gn = (inst[`KT_MG_INST_GN] == 8'd0) ? 8'd1 : inst[`KT_MG_INST_GN];
    assign nk = (inst[`KT_MG_INST_NK] == 8'd0) ? 8'd1 : inst[`KT_MG_INST_NK];

    always @(posedge clk) begin
        if (mul) begin
            prod_mk_q <= {8'd0, gm} * {8'd0, nk};
            prod_nk_q <= {8'd0, gn} * {8'd0, nk};
            prod_mn_q <= {8'd0, gm} * {8'd0, gn};
        end
    end

    wire is_gemm = op == `KT_MG_OP_GEMM;
    wire is_send = !is_gemm && dnode && buf2;
    assign granules = is_gemm ? {1'b0, prod_mn_q} : is_send ? {n, 1'b0} : {1'b0, n};

    // Ends of the L1 ranges: inside the bank, and in the whole side.
    localparam [16:0] BANK  = 17'd256;
    localparam [16:0] GA_W  = GA[16:0];
    localparam [16:0] GB_W  = GB[16:0];
    localparam [15:0] TILES_W = TILES[15:0];

    wire [16:0] fill_end = {9'd0, inst[`KT_MG_INST_EOFF]} + {1'b0, n};
    wire [16:0] a_end    = {9'd0, inst[`KT_MG_INST_AOFF]} + {1'b0, prod_mk_q};
    wire [16:0] b_end    = {9'd0, inst[`KT_MG_INST_BOFF]} + {1'b0, prod_nk_q};
    wire [16:0] fill_top = fill_end + {8'd0, inst[`KT_MG_INST_FBANK], 8'd0};
    wire [16:0] a_top    = a_end + {8'd0, inst[`KT_MG_INST_ABANK], 8'd0};
    wire [16:0] b_top    = b_end + {8'd0, inst[`KT_MG_INST_BBANK], 8'd0};
    wire [16:0] node_end = {1'b0, addr[20:5]} + granules;
    wire        rows = (op == `KT_MG_OP_DRAIN) && !fuse && inst[`KT_MG_INST_ROWMAJOR];
    wire        rows_done, rows_bad, rows_beyond;
    wire        node_end_bad = rows ? rows_beyond : node_end > 17'd65536;

    generate
        if (ROWMAJOR != 0) begin : g_rows
            mg_row_check #(.TILES(TILES)) u_check (
                .clk           (clk),
                .run           (mul && rows),
                .n             (n),
                .gn            (inst[`KT_MG_INST_GN]),
                .pitch         (inst[`KT_MG_INST_PITCH]),
                .reserved      (inst[39:0]),
                .first_granule (addr[20:5]),
                .done          (rows_done),
                .bad           (rows_bad),
                .beyond        (rows_beyond)
            );
        end else begin : g_none
            assign rows_done   = 1'b1;
            assign rows_bad    = 1'b1;
            assign rows_beyond = 1'b0;
        end
    endgenerate
    assign checked = !rows || rows_done;

    wire fill_range = (fill_end > BANK)
                    || (fill_top > (inst[`KT_MG_INST_SEL] ? GB_W : GA_W));
    wire gemm_a     = (a_end > BANK) || (a_top > GA_W);
    wire gemm_b     = (b_end > BANK) || (b_top > GB_W);
    wire unopened_g = inst[`KT_MG_INST_ACC] && (prod_mn_q > {3'd0, open_count});
    wire unopened_d = n > {3'd0, open_count};

    wire ack0     = {inst[`KT_MG_INST_DACK_Y], inst[`KT_MG_INST_DACK_X]} == 8'd0;
    wire remote   = inst[`KT_MG_INST_DFIN] != 8'd0;
    wire bad_rem  = remote && (!dnode || ack0);
    wire bad_dst  = dnode && !remote
                  && (({dst_y, dst_x} == 8'd0) || ({dst_y, dst_x} == {CU_Y, CU_X}));
    wire bad_off  = dnode && ((addr[4:0] != 5'd0) || (addr[39:21] != 19'd0)
                              || node_end_bad || (buf2 && addr[5]));

    reg [7:0] dest_code;
    always @* begin
        dest_code = 8'd0;
        if (bad_rem)      dest_code = `KT_MG_F_REMOTE;
        else if (bad_dst) dest_code = `KT_MG_F_DST;
        else if (bad_off) dest_code = `KT_MG_F_NODE_OFF;
    end

    always @* begin
        code = 8'd0;
        case (op)
            `KT_MG_OP_FILL: begin
                if (n > 16'd255)                              code = `KT_MG_F_FILL_N;
                else if (fill_range)                          code = `KT_MG_F_FILL_RANGE;
                else if (inst[`KT_MG_INST_NPEER] != 2'd0)     code = `KT_MG_F_PEERS;
            end
            `KT_MG_OP_GEMM: begin
                if (gemm_a)                                   code = `KT_MG_F_GEMM_A;
                else if (gemm_b)                              code = `KT_MG_F_GEMM_B;
                else if (prod_mn_q > TILES_W)                 code = `KT_MG_F_TILES;
                else if (unopened_g)                          code = `KT_MG_F_UNOPENED;
                else if (emit && dnode && buf2)               code = `KT_MG_F_EMIT_SEND;
                else if (emit)                                code = dest_code;
            end
            `KT_MG_OP_DRAIN: begin
                if (n > TILES_W)                              code = `KT_MG_F_TILES;
                else if (!fuse && unopened_d)                 code = `KT_MG_F_UNOPENED;
                else if (fuse && (n > {3'd0, batch_size}))    code = `KT_MG_F_FUSE;
                else if (rows && (rows_bad || is_send))       code = `KT_MG_F_ROWMAJOR;
                else if (!fuse)                               code = dest_code;
            end
            default:                                          code = `KT_MG_F_OPCODE;
        endcase
    end

    // Fields this build never looks at: shared fetch peers, reserved bits and
    // those taken by the engines.
    wire unused = &{1'b0, inst};

endmodule

`default_nettype wire
