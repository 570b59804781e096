// SPDX-License-Identifier: Apache-2.0
// Operand preparation of one lane: every opcode becomes x*y + z; the special cases of the four seeds become
// a move of the result (x = 0). A seed that has to be evaluated gives `poly` = 1 with z = +0.
// op: 0..13 the opcodes VMOV..VCMPEQ, 16..19 VEXP2, VLOG2, VINV, VRSQRT.
// Latency 2 cycles (compare; select), one a cycle. en[s] enables stage s.
// Specification: docs/spec/numerics.md 9 and 10.2, docs/spec/vector.md 12.2 and 12.4.
`default_nettype none

module vc_prep (
    input  wire        clk,
    input  wire [1:0]  en,
    input  wire [4:0]  op,
    input  wire [23:0] a,
    input  wire [23:0] b,
    input  wire [23:0] c,
    output reg  [23:0] x_q,
    output reg  [23:0] y_q,
    output reg  [23:0] z_q,
    output reg         poly_q
);
    localparam [23:0] ONE = 24'h3F8000;
    localparam [22:0] INF = 23'h7F8000;
    localparam [22:0] NAN = 23'h7FC000;

    localparam [4:0] OP_NEG = 5'd1,  OP_ABS = 5'd2,   OP_ADD = 5'd3,   OP_SUB = 5'd4,  OP_MUL = 5'd5,
                     OP_FMA = 5'd6,  OP_FNMA = 5'd7,  OP_MAX = 5'd8,   OP_MIN = 5'd9,  OP_SEL = 5'd10,
                     OP_LT  = 5'd11, OP_GT   = 5'd12, OP_EQ  = 5'd13;
    localparam [1:0] EXP2 = 2'd0, LOG2 = 2'd1, INV = 2'd2;

    // What x becomes; TRUE and FALSE are results of compares.
    localparam [1:0] PICK_A = 2'd0, PICK_B = 2'd1, PICK_TRUE = 2'd2, PICK_FALSE = 2'd3;

    // ------------------------------------------------- stage 0: compare, signs
    reg [23:0] a0_q;
    reg [23:0] b0_q;
    reg [23:0] c0_q;
    reg [1:0]  pick0_q;
    reg        product0_q;                                 // y is b
    reg        seed0_q;
    reg [1:0]  fsel0_q;

    always @(posedge clk) if (en[0]) begin : compare
        reg nan;
        reg same;
        reg below;
        reg less;
        reg more;
        nan   = a[22:0] > INF || b[22:0] > INF;
        same  = a == b || (a[22:0] == 23'd0 && b[22:0] == 23'd0);
        below = (a[23] != b[23]) ? a[23] : a[23] ? a[22:0] > b[22:0] : a[22:0] < b[22:0];
        less  = !nan && !same && below;
        more  = !nan && !same && !below;
        case (op)
            OP_MAX:  pick0_q <= less ? PICK_B : PICK_A;
            OP_MIN:  pick0_q <= more ? PICK_B : PICK_A;
            OP_SEL:  pick0_q <= (c[22:0] != 23'd0) ? PICK_A : PICK_B;
            OP_LT:   pick0_q <= less ? PICK_TRUE : PICK_FALSE;
            OP_GT:   pick0_q <= more ? PICK_TRUE : PICK_FALSE;
            OP_EQ:   pick0_q <= (same && !nan) ? PICK_TRUE : PICK_FALSE;
            default: pick0_q <= PICK_A;
        endcase
        a0_q       <= {(a[23] ^ (op == OP_NEG || op == OP_FNMA)) && op != OP_ABS, a[22:0]};
        b0_q       <= b;
        c0_q       <= (op == OP_ADD || op == OP_SUB || op == OP_FMA || op == OP_FNMA)
                      ? {c[23] ^ (op == OP_SUB), c[22:0]} : 24'd0;
        product0_q <= op == OP_MUL || op == OP_FMA || op == OP_FNMA;
        seed0_q    <= op[4];
        fsel0_q    <= op[1:0];
    end

    // ------------------------------------------------- stage 1: select; special operands of the seeds
    always @(posedge clk) if (en[1]) begin : select
        reg s;
        reg zero;
        reg inf;
        reg big;                                           // beyond the range of exp2
        s    = a0_q[23];
        zero = a0_q[22:15] == 8'd0;
        inf  = a0_q[22:0] == INF;
        big  = a0_q[22:15] >= 8'd134;
        if (seed0_q) begin
            x_q <= 24'd0;
            y_q <= ONE;
            // log2 and rsqrt take no negative operand
            if (a0_q[22:0] > INF || (s && !zero && fsel0_q[0])) begin
                poly_q <= 1'b0;
                z_q    <= {1'b0, NAN};
            end else begin
                poly_q <= (fsel0_q == EXP2) ? !big : !zero && !inf;
                case (fsel0_q)
                    EXP2:    z_q <= {1'b0, (big && !s) ? INF : 23'd0};
                    LOG2:    z_q <= {zero, (zero || inf) ? INF : 23'd0};
                    INV:     z_q <= {s && (zero || inf), zero ? INF : 23'd0};
                    default: z_q <= {1'b0, zero ? INF : 23'd0};
                endcase
            end
        end else begin
            case (pick0_q)
                PICK_A:    x_q <= a0_q;
                PICK_B:    x_q <= b0_q;
                PICK_TRUE: x_q <= ONE;
                default:   x_q <= 24'd0;
            endcase
            y_q    <= product0_q ? b0_q : ONE;
            z_q    <= c0_q;
            poly_q <= 1'b0;
        end
    end
endmodule

`default_nettype wire
