// SPDX-License-Identifier: Apache-2.0
// mag_intake: mesh side of one memory port. Sorts arriving flits into the read
// request queue and the write queue, and disposes of what no engine takes.
//
// Latency    1 cycle from a transfer to the head of an empty queue.
// Throughput one flit per cycle.
// busy       function of registered state only: reset, or a queue with Q_DEPTH -
//            Q_MARGIN flits or more. Never depends on the offered flit.
// Parameters Q_DEPTH a power of two >= 8, 2 <= Q_MARGIN < Q_DEPTH.
// Spec       docs/spec/memory.md 2.2 (plain port), 2.4; docs/spec/fabric.md 2, 10.1
`default_nettype none
`include "ktpu_defs.vh"

module mag_intake #(
    parameter Q_DEPTH  = 64,
    parameter Q_MARGIN = 4
) (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         noc_in_valid,
    input  wire [287:0] noc_in_data,
    output wire         noc_in_busy,

    // read requests: {payload[255:158], rsvd[2], txn, source node}
    output wire         rd_valid,
    input  wire         rd_ready,
    output wire [114:0] rd_data,

    // descriptors and data: {payload, is descriptor, rsvd[2], last, txn, source node}
    output wire         wr_valid,
    input  wire         wr_ready,
    output wire [274:0] wr_data,

    // a flit that nobody here can take was consumed in the cycle before
    output reg          drop_ctrl,
    output reg          drop_remote,   // unit data marked for another mesh
    output reg  [7:0]   drop_src,
    output reg  [7:0]   drop_txn
);

    localparam LW = $clog2(Q_DEPTH) + 1;
    localparam integer LIMIT = Q_DEPTH - Q_MARGIN;

    generate
        if (Q_DEPTH < 8 || (Q_DEPTH & (Q_DEPTH - 1)) != 0 || Q_MARGIN < 2 || Q_MARGIN >= Q_DEPTH)
        begin : g_illegal
            mag_intake_illegal_parameters u_stop ();
        end
    endgenerate

    reg           up_q, open_q;       // the queues accept one cycle after reset
    wire [LW-1:0] rd_level, wr_level;
    wire          rd_room, wr_room;

    wire take = noc_in_valid && !noc_in_busy;
    wire [3:0] kind = noc_in_data[`KT_FLIT_TYPE];
    wire is_rd  = kind == `KT_TYPE_MEM_RD_REQ;
    wire is_req = kind == `KT_TYPE_MEM_WR_REQ;
    wire is_wr  = is_req || kind == `KT_TYPE_MEM_WR_DATA;
    wire marked = noc_in_data[`KT_FLIT_RSVD_FLAG];
    wire is_far = kind == `KT_TYPE_CU_DATA && marked;

    wire [7:0] src = {noc_in_data[`KT_FLIT_SRC_Y], noc_in_data[`KT_FLIT_SRC_X]};
    wire [7:0] txn = noc_in_data[`KT_FLIT_TXN];

    assign noc_in_busy = !open_q || rd_level >= LIMIT[LW-1:0] || wr_level >= LIMIT[LW-1:0];

    always @(posedge clk) begin
        if (!rst_n) begin
            up_q        <= 1'b0;
            open_q      <= 1'b0;
            drop_ctrl   <= 1'b0;
            drop_remote <= 1'b0;
        end else begin
            up_q        <= 1'b1;
            open_q      <= up_q;
            drop_ctrl   <= take && !is_rd && !is_wr && !is_far;
            drop_remote <= take && is_far;
        end
        if (take) begin
            drop_src <= src;
            drop_txn <= txn;
        end
    end

    fifo_sync #(
        .WIDTH (115),
        .DEPTH (Q_DEPTH)
    ) u_rd (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (take && is_rd),
        .in_ready  (rd_room),
        .in_data   ({noc_in_data[255:158], marked, txn, src}),
        .out_valid (rd_valid),
        .out_ready (rd_ready),
        .out_data  (rd_data),
        .level     (rd_level)
    );

    fifo_sync #(
        .WIDTH (275),
        .DEPTH (Q_DEPTH)
    ) u_wr (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (take && is_wr),
        .in_ready  (wr_room),
        .in_data   ({noc_in_data[`KT_FLIT_PAYLOAD], is_req, marked, noc_in_data[`KT_FLIT_LAST], txn, src}),
        .out_valid (wr_valid),
        .out_ready (wr_ready),
        .out_data  (wr_data),
        .level     (wr_level)
    );

    // The margin keeps both queues open whenever busy is low; the destination was
    // decided by the mesh.
    wire unused = &{1'b0, rd_room, wr_room, noc_in_data[`KT_FLIT_DST_X], noc_in_data[`KT_FLIT_DST_Y],
                    noc_in_data[`KT_FLIT_RSVD_LOW]};

endmodule

`default_nettype wire
