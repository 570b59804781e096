// SPDX-License-Identifier: Apache-2.0
// cu_fence: signal queue of a shell with the write fence in front of its head.
//
// Function   queues one completion per retirement (16 entries) and holds the
//            head back until every memory write its instruction owns has been
//            acknowledged; a failed write turns exactly its owner into FAULT.
// Latency    a completion pushed in cycle k can leave in k+1; an
//            acknowledgement taken in cycle k opens the head in k+1.
// Throughput one push, one pop, one write and one acknowledgement per cycle.
// Order      retirement comes before an acknowledgement of the same cycle; a
//            write accepted in the cycle of a covering retirement is owned by it.
// Limits     at most 32,767 writes outstanding. push with level = 16 is illegal.
// ACK_FENCE  0 or 1; with 0 every entry may leave at once and ack is tied off.
//
// docs/spec/fabric.md 5.3, 5.4.
`default_nettype none

`include "ktpu_defs.vh"

module cu_fence #(
    parameter ACK_FENCE = 1
) (
    input  wire        clk,
    input  wire        rst_n,

    input  wire        push,
    input  wire        push_cover,
    input  wire [7:0]  push_node,      // {x, y} the completion is sent to
    input  wire [7:0]  push_txn,
    input  wire [7:0]  push_code,
    input  wire [31:0] push_arg,

    input  wire        wr_issue,       // a MEM_WR_REQ left the unit
    input  wire        ack,            // a MEM_WR_ACK arrived
    input  wire        ack_drop,
    input  wire [3:0]  ack_code,
    output wire        ack_spurious,

    output wire        sig_valid,      // head is eligible
    input  wire        sig_take,
    output wire [7:0]  sig_node,
    output wire [7:0]  sig_txn,
    output wire [7:0]  sig_code,
    output wire [31:0] sig_arg,

    output wire [4:0]  level
);

    localparam DEPTH = 16;

    // ------------------------------------------------------------ counters
    reg  [15:0] issued_q, acked_q, covered_q;
    wire [15:0] issued_d  = issued_q + {15'd0, wr_issue};
    wire        ack_take  = ack && (acked_q != issued_q);
    wire [15:0] acked_d   = acked_q + {15'd0, ack_take};
    wire        covering  = push && push_cover;
    wire [15:0] covered_d = covering ? issued_d : covered_q;

    assign ack_spurious = ack && !ack_take;

    always @(posedge clk) begin
        if (!rst_n) begin
            issued_q  <= 16'd0;
            acked_q   <= 16'd0;
            covered_q <= 16'd0;
        end else begin
            issued_q  <= issued_d;
            acked_q   <= acked_d;
            covered_q <= covered_d;
        end
    end

    // ------------------------------------------- failures of unretired owners
    reg        pend_err_q;
    reg  [3:0] pend_code_q;

    wire       new_err = push_cover && pend_err_q;

    // --------------------------------------------------------- fence entries
    // Entry 0 is the head; a pop shifts. Snapshots never decrease along the
    // queue, so the owner of a failed write is the first entry at or past it.
    reg  [16*DEPTH-1:0] snap_q;
    reg  [DEPTH-1:0]    err_q;
    reg  [4*DEPTH-1:0]  ecode_q;

    wire [DEPTH-1:0]    past;          // valid and snapshot - acked >= 0
    wire [DEPTH-1:0]    owner = past & (~past + {{(DEPTH-1){1'b0}}, 1'b1});
    wire                drop      = ack_take && ack_drop;
    wire                drop_old  = drop && past != {DEPTH{1'b0}};
    wire                drop_new  = drop && !drop_old && push
                                    && $signed(covered_d - acked_d) >= 16'sd0;
    wire                drop_pend = drop && !drop_old && !drop_new;
    wire [4:0]          slot      = level - {4'd0, sig_take};

    // The entries after this cycle's failure, then shifted, then filled.
    wire [DEPTH-1:0]    err_hit = err_q | (owner & {DEPTH{drop_old}});
    wire [4*DEPTH-1:0]  ecode_hit;
    wire [16*DEPTH-1:0] snap_moved  = sig_take ? {16'd0, snap_q[16*DEPTH-1:16]} : snap_q;
    wire [DEPTH-1:0]    err_moved   = sig_take ? {1'b0, err_hit[DEPTH-1:1]} : err_hit;
    wire [4*DEPTH-1:0]  ecode_moved = sig_take ? {4'd0, ecode_hit[4*DEPTH-1:4]} : ecode_hit;
    wire [16*DEPTH-1:0] snap_d;
    wire [DEPTH-1:0]    err_d;
    wire [4*DEPTH-1:0]  ecode_d;

    wire                err_new   = new_err || drop_new;
    wire [3:0]          ecode_new = (drop_new && !new_err) ? ack_code : pend_code_q;

    genvar i;
    generate
        for (i = 0; i < DEPTH; i = i + 1) begin : g_entry
            wire hit  = drop_old && owner[i] && !err_q[i];
            wire fill = push && slot == i;

            assign past[i] = level > i && $signed(snap_q[16*i +: 16] - acked_d) >= 16'sd0;
            assign ecode_hit[4*i +: 4] = hit ? ack_code : ecode_q[4*i +: 4];
            assign snap_d[16*i +: 16]  = fill ? covered_d : snap_moved[16*i +: 16];
            assign err_d[i]            = fill ? err_new : err_moved[i];
            assign ecode_d[4*i +: 4]   = fill ? ecode_new : ecode_moved[4*i +: 4];
        end
    endgenerate

    always @(posedge clk) begin
        if (!rst_n) begin
            snap_q  <= {16*DEPTH{1'b0}};
            err_q   <= {DEPTH{1'b0}};
            ecode_q <= {4*DEPTH{1'b0}};
        end else if (push || sig_take || drop_old) begin
            snap_q  <= snap_d;
            err_q   <= err_d;
            ecode_q <= ecode_d;
        end
    end

    always @(posedge clk) begin
        if (!rst_n) begin
            pend_err_q  <= 1'b0;
            pend_code_q <= 4'd0;
        end else begin
            if (drop_pend) pend_err_q <= 1'b1;
            else if (covering) pend_err_q <= 1'b0;
            if (drop_pend && (covering || !pend_err_q)) pend_code_q <= ack_code;
        end
    end

    // ------------------------------------------------------- queue of bodies
    wire [55:0] head;
    wire        queue_ready_unused;
    wire        queue_valid;

    fifo_sync #(
        .WIDTH (56),
        .DEPTH (DEPTH)
    ) u_queue (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (push),
        .in_ready  (queue_ready_unused),   // the issue rule keeps a slot free
        .in_data   ({push_node, push_txn, push_code, push_arg}),
        .out_valid (queue_valid),
        .out_ready (sig_take),
        .out_data  (head),
        .level     (level)
    );

    // The head's registered state decides: an acknowledgement opens it, and a
    // failure reaches it, one cycle after its arrival.
    wire       open      = ACK_FENCE == 0 || $signed(acked_q - snap_q[15:0]) >= 16'sd0;
    wire [7:0] head_code = head[39:32];

    assign sig_valid = queue_valid && open;
    assign sig_node  = head[55:48];
    assign sig_txn   = head[47:40];
    assign sig_code  = err_q[0] ? `KT_SIG_FAULT : head_code;
    assign sig_arg   = (err_q[0] && head_code != `KT_SIG_FAULT)
                       ? {`KT_FAULT_MAGIC, 4'd0, ecode_q[3:0], `KT_FAB_WR_DROP}
                       : head[31:0];

endmodule

`default_nettype wire
