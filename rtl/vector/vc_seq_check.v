// SPDX-License-Identifier: Apache-2.0
// vc_seq_check: what a word of the instruction stream is and whether it is
// legal (docs/spec/vector.md 5, 6, 7.1 to 7.6, 11.2). Combinational.
//
// Only checks that need nothing but the word, the mode, VL and the place in a
// chain group; the rules of VLD, VST, VFILL and VDRAIN belong to the memory
// unit, those of VLOOP, VSETVL and of missing words to the sequencer.
`default_nettype none
`include "ktpu_defs.vh"

module vc_seq_check (
    input  wire [31:0] word,
    input  wire [1:0]  mode,
    input  wire        follows,         // a chain word behind the head
    input  wire        is_last,         // last word of its group, or FLAT
    input  wire        vl_whole,        // VL mod 16 = 0

    output wire        arith,           // opcode <= VRSQRT
    output wire        compare,
    output wire        tree,            // VRED 0..5
    output wire [2:0]  reads,           // operands {c, b, a} the opcode reads
    output wire [4:0]  lane_op,
    output reg  [7:0]  code             // 0 = legal
);

    wire [4:0] op   = word[`KT_VC_ALU_OP];
    wire [1:0] sa   = word[`KT_VC_ALU_SA];
    wire [1:0] sb   = word[`KT_VC_ALU_SB];
    wire [1:0] sc   = word[`KT_VC_ALU_SC];
    wire [1:0] pm   = word[`KT_VC_ALU_PM];
    wire [3:0] kind = word[`KT_VC_RED_KIND];

    wire fma = op == `KT_VC_OP_VFMA || op == `KT_VC_OP_VFNMA || op == `KT_VC_OP_VSEL;
    wire minmax = op == `KT_VC_OP_VMAX || op == `KT_VC_OP_VMIN;

    assign arith   = op <= `KT_VC_OP_VRSQRT;
    assign compare = op == `KT_VC_OP_VCMPLT || op == `KT_VC_OP_VCMPGT || op == `KT_VC_OP_VCMPEQ;
    assign tree    = op == `KT_VC_OP_VRED && kind <= `KT_VC_RED_EXPSUM;
    assign reads   = {fma || op == `KT_VC_OP_VADD || op == `KT_VC_OP_VSUB,
                      fma || minmax || compare || op == `KT_VC_OP_VMUL, 1'b1};
    assign lane_op = (op >= `KT_VC_OP_VEXP2) ? op + (`KT_VC_LANE_VEXP2 - `KT_VC_OP_VEXP2) : op;

    // Numbers of constants above 3, in slots that are read.
    wire bad_k = (sa == `KT_VC_SRC_K && |word[16:15])
              || (reads[1] && sb == `KT_VC_SRC_K && |word[12:11])
              || (reads[2] && sc == `KT_VC_SRC_K && |word[8:7]);
    wire any_c = sa == `KT_VC_SRC_C || sb == `KT_VC_SRC_C || sc == `KT_VC_SRC_C;
    wire any_v = sa == `KT_VC_SRC_V || sb == `KT_VC_SRC_V || sc == `KT_VC_SRC_V;
    wire bad_pm = pm == 2'd3 || (pm != 2'd0 && (compare || !is_last));

    wire [2:0] dtype = word[`KT_VC_CVT_DTYPE];
    wire       bad_dtype = dtype != `KT_VC_DTYPE_FP16 && dtype != `KT_VC_DTYPE_FP32;
    wire       bad_red = kind > `KT_VC_RED_ALL || pm != 2'd0
                      || (kind == `KT_VC_RED_SUMSQ && word[`KT_VC_RED_VA] != word[`KT_VC_RED_VB]);

    wire in_tree = {2'd0, mode} == `KT_VC_MODE_TREE;

    always @* begin
        code = 8'd0;
        if (arith) begin
            if (in_tree)                code = `KT_VC_F_OPCODE;
            else if (bad_pm || bad_k)   code = `KT_VC_F_ENC;
            else if (!follows && any_c) code = `KT_VC_F_CHAIN;
            else if (follows && any_v)  code = `KT_VC_F_VSRC;
        end else if (follows) begin
            code = `KT_VC_F_OPCODE;
        end else begin
            case (op)
                `KT_VC_OP_VCVT:     if (bad_dtype) code = `KT_VC_F_DTYPE;
                `KT_VC_OP_VRED:     if (bad_red) code = `KT_VC_F_ENC;
                                    else if (tree && !vl_whole) code = `KT_VC_F_REDVL;
                                    else if (tree && !in_tree) code = `KT_VC_F_OPCODE;
                `KT_VC_OP_VBCAST:   if (word[26]) code = `KT_VC_F_ENC;
                `KT_VC_OP_VSHUF:    if (pm == 2'd3) code = `KT_VC_F_ENC;
                `KT_VC_OP_VSETMODE: if (word[16:15] != 2'd0) code = `KT_VC_F_ENC;
                `KT_VC_OP_VSETI:    if (word[26] != word[25]) code = `KT_VC_F_ENC;
                default:            code = 8'd0;
            endcase
        end
    end

    wire unused = &{1'b0, word};

endmodule

`default_nettype wire
