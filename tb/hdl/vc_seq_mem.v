// SPDX-License-Identifier: Apache-2.0
// Stand-in for the memory unit of a vector core: 512 words, descriptors and walks for VLD and VST; VFILL, VDRAIN
// and VBAR only answer. FP16 converts; FP32 keeps 24-bit lane codes in the low bits of each 32-bit element, so that
// a bench loads and sees every bit of a register.
// `delay` = 0: ideal, one word a cycle from the third cycle after the acceptance; else random gaps up to it.
// inject: the next command of inject_op answers with inject_code and does nothing.
`default_nettype none

module vc_seq_mem (
    input  wire         clk,
    input  wire         rst_n,
    input  wire [7:0]   delay,

    input  wire         inject,
    input  wire [2:0]   inject_op,
    input  wire [7:0]   inject_code,
    input  wire         poke,
    input  wire [8:0]   poke_addr,
    input  wire [255:0] poke_data,
    input  wire [8:0]   peek_addr,
    output wire [255:0] peek_data,
    output reg  [31:0]  errors,

    input  wire         desc_we,
    input  wire [2:0]   desc_ad,
    input  wire [2:0]   desc_fld,
    input  wire [39:0]  desc_value,

    input  wire         lanes_empty,
    input  wire         cmd_valid,
    output wire         cmd_ready,
    input  wire [2:0]   cmd_op,
    input  wire [31:0]  cmd_word,
    input  wire [7:0]   cmd_vl,
    output reg          rsp_valid,
    output reg  [7:0]   rsp_fault,
    output reg          ld_valid,
    output reg  [2:0]   ld_chunk,
    output reg  [1:0]   ld_half,
    output reg  [383:0] ld_data,
    output reg          st_rd,
    output reg  [2:0]   st_chunk,
    input  wire [383:0] st_data
);
    localparam [7:0] F_DTYPE = 8'h01, F_L1RANGE = 8'h0B;

    reg [255:0] l1 [0:511];
    reg [39:0]  base [0:7];
    reg [33:0]  dim [0:31];
    reg [7:0]   code [0:7];

    assign peek_data = l1[peek_addr];
    reg [8:0]   wipe_q = 9'd0;          // reset lasts 512 cycles or more and clears the words

    // ------------------------------------------------------------------ walk
    reg         busy_q;
    reg [2:0]   op_q;
    reg [31:0]  word_q;
    reg [7:0]   vl_q;
    reg [4:0]   k_q;
    wire        wide = word_q[26:24] == 3'd2;
    wire [2:0]  ad = word_q[23:21];
    wire [4:0]  chunks = {1'b0, vl_q[7:4]} + {4'd0, vl_q[3:0] != 4'd0};
    wire [4:0]  words = wide ? chunks << 1 : chunks;

    integer     d;
    reg [63:0]  t, total, bound;
    reg signed [63:0] addr;
    always @* begin
        total = 64'd1;
        for (d = 0; d < 4; d = d + 1)
            total = total * ((dim[4*ad + d[1:0]][15:0] == 16'd0) ? 64'd1 : {48'd0, dim[4*ad + d[1:0]][15:0]});
        t = ({59'd0, k_q} < total) ? {59'd0, k_q} : total - 64'd1;
        addr = {24'd0, base[ad]};
        addr = addr + {{50{word_q[13]}}, word_q[13:0]};
        for (d = 0; d < 4; d = d + 1) begin
            bound = (dim[4*ad + d[1:0]][15:0] == 16'd0) ? 64'd1 : {48'd0, dim[4*ad + d[1:0]][15:0]};
            addr = addr + $signed(t % bound) * $signed({{46{dim[4*ad + d[1:0]][33]}}, dim[4*ad + d[1:0]][33:16]});
            t = t / bound;
        end
    end
    wire        outside = addr < 0 || addr > 511;
    wire [255:0] l1_word = l1[addr[8:0]];

    // ----------------------------------------------------------- conversions
    wire [383:0] from_half, raw_in;
    wire [255:0] to_half, raw_out;
    genvar g;
    generate
        for (g = 0; g < 16; g = g + 1) begin : g_lane
            wire unused_clamp;
            vc_f16_to_e8 u_in (.half(l1_word[16*g +: 16]), .code(from_half[24*g +: 24]));
            vc_e8_to_f16 u_out (.code(st_data[24*g +: 24]), .half(to_half[16*g +: 16]), .clamped(unused_clamp));
        end
        for (g = 0; g < 8; g = g + 1) begin : g_raw
            assign raw_in[24*g +: 24] = l1_word[32*g +: 24];
            assign raw_in[24*(g+8) +: 24] = l1_word[32*g +: 24];
            assign raw_out[32*g +: 32] = {8'd0, st_half1 ? st_data[24*(g+8) +: 24] : st_data[24*g +: 24]};
        end
    endgenerate

    // A word asked for in cycle k is written in k+2.
    reg         st1_q, st2_q;
    reg [10:0]  place0_q, place1_q, place2_q;              // {last, half, address}, with st_rd, st1_q, st2_q
    wire        st_half1 = place2_q[9];

    reg [31:0]  rng_q;
    reg         gap_q;
    reg [7:0]   wait_q;
    assign cmd_ready = !busy_q && !gap_q;

    always @(posedge clk) begin
        rng_q <= {rng_q[30:0], 1'b0} ^ (rng_q[31] ? 32'h04C11DB7 : 32'd0);
        rsp_valid <= 1'b0;
        ld_valid  <= 1'b0;
        ld_data   <= {12{32'h5A5A5A5A}};                   // an idle port carries junk
        st_rd     <= 1'b0;
        st1_q     <= st_rd;
        st2_q     <= st1_q;
        place1_q  <= place0_q;
        place2_q  <= place1_q;
        gap_q     <= delay != 8'd0 && rng_q[1:0] == 2'd0;

        if (desc_we && desc_fld == 3'd0) base[desc_ad] <= desc_value;
        if (desc_we && desc_fld != 3'd0) dim[{desc_ad, desc_fld[1:0] - 2'd1}] <= desc_value[33:0];
        if (inject) code[inject_op] <= inject_code;
        if (poke) l1[poke_addr] <= poke_data;

        if (cmd_valid && cmd_ready) begin
            busy_q <= 1'b1;
            op_q   <= cmd_op;
            word_q <= cmd_word;
            vl_q   <= cmd_vl;
            k_q    <= 5'd0;
            wait_q <= (delay == 8'd0) ? 8'd0 : rng_q[7:0] % delay;
            if ((cmd_op >= 3'd5) && !lanes_empty) errors <= errors + 32'd1;
        end
        if (cmd_valid && busy_q) errors <= errors + 32'd1;

        if (busy_q && wait_q != 8'd0) wait_q <= wait_q - 8'd1;
        else if (busy_q && !rsp_valid) begin
            if (code[op_q] != 8'd0) begin
                rsp_valid  <= 1'b1;
                rsp_fault  <= code[op_q];
                code[op_q] <= 8'd0;
            end else if (op_q > 3'd1) begin
                rsp_valid <= 1'b1;
                rsp_fault <= 8'd0;
            end else if (word_q[26:24] != 3'd1 && word_q[26:24] != 3'd2) begin
                rsp_valid <= 1'b1;
                rsp_fault <= F_DTYPE;
            end else if (op_q == 3'd0) begin
                if (outside) begin
                    rsp_valid <= 1'b1;
                    rsp_fault <= F_L1RANGE;
                end else if (!gap_q) begin
                    ld_valid  <= 1'b1;
                    ld_chunk  <= wide ? k_q[3:1] : k_q[2:0];
                    ld_half   <= !wide ? 2'b11 : k_q[0] ? 2'b10 : 2'b01;
                    ld_data   <= wide ? raw_in : from_half;
                    k_q       <= k_q + 5'd1;
                    rsp_valid <= k_q + 5'd1 == words;
                    rsp_fault <= 8'd0;
                end
            end else if (k_q != words) begin
                if (outside) begin
                    if (!st_rd && !st1_q && !st2_q) begin
                        rsp_valid <= 1'b1;
                        rsp_fault <= F_L1RANGE;
                    end
                end else if (!gap_q) begin
                    st_rd    <= 1'b1;
                    st_chunk <= wide ? k_q[3:1] : k_q[2:0];
                    place0_q <= {k_q + 5'd1 == words, k_q[0], addr[8:0]};
                    k_q      <= k_q + 5'd1;
                end
            end
        end
        if (st2_q) begin
            l1[place2_q[8:0]] <= wide ? raw_out : to_half;
            if (place2_q[10]) begin
                rsp_valid <= 1'b1;
                rsp_fault <= 8'd0;
            end
        end
        if (rsp_valid) busy_q <= 1'b0;

        if (!rst_n) begin
            wipe_q <= wipe_q + 9'd1;
            l1[wipe_q] <= 256'd0;
            busy_q <= 1'b0;
            st1_q  <= 1'b0;
            st2_q  <= 1'b0;
            gap_q  <= 1'b0;
            errors <= 32'd0;
            rng_q  <= 32'h1234_5678;
            for (d = 0; d < 8; d = d + 1) begin
                base[d] <= 40'd0;
                code[d] <= 8'd0;
            end
            for (d = 0; d < 32; d = d + 1) dim[d] <= 34'd1;
        end
    end
endmodule

`default_nettype wire
