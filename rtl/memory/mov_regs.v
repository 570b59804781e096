// SPDX-License-Identifier: Apache-2.0
// mov_regs: command queue and registers of the memory mover.
//
// Queue      KT_MEM_MOVER_QUEUE writes; a full queue holds cmd_ready low. One is applied
//            per cycle while no move runs; a CTRL write with GO starts a move and the
//            next is applied after `done`.
// Latency    2 cycles from a write to its effect; busy from the cycle after the write.
// Dimension  {step[15:0], axis[1:0], stride[31:0], count[15:0]}, dimension d of walker w
//            at index 6w + d, walker 0 the source. Window {extent[15:0], base[15:0]},
//            axis a of walker w at index 2w + a. A count of 0 is kept as 1.
// Offsets with bit 7 set belong to the interlink and are accepted and ignored.
// Spec       docs/spec/memory.md 12.1
`default_nettype none
`include "ktpu_defs.vh"

module mov_regs (
    input  wire         clk,
    input  wire         rst_n,

    input  wire         cmd_valid,
    output wire         cmd_ready,
    input  wire [7:0]   cmd_addr,
    input  wire [63:0]  cmd_data,

    output wire         go,            // one cycle; the registers hold the move's values from the next on
    input  wire         done,          // the move has ended
    output wire         busy,
    output wire         clear_fault,
    output wire         clear_nonfinite,

    output reg  [2:0]   mode,
    output reg  [1:0]   ewidth,
    output reg          coalesce,
    output reg  [7:0]   cap,           // words of a burst, 1..128
    output reg  [79:0]  base,
    output reg  [5:0]   ndim,
    output reg  [1:0]   bad_index,     // a dimension 6 or 7 was committed
    output reg  [3:0]   xform_id,
    output reg  [3:0]   xform_mode,
    output reg  [791:0] dims,
    output reg  [127:0] windows,
    output reg  [39:0]  index_addr,
    output reg  [15:0]  index_count,
    output reg  [63:0]  seed,
    output reg  [31:0]  imm,
    output reg  [31:0]  pitch,
    output reg  [15:0]  words
);

    // ---------------------------------------------------------------- queue
    wire        room, q_valid, take;
    wire [3:0]  q_reg;
    wire [63:0] q;
    wire [$clog2(`KT_MEM_MOVER_QUEUE):0] level;
    reg         run_q;

    fifo_sync #(
        .WIDTH (68),
        .DEPTH (`KT_MEM_MOVER_QUEUE)
    ) u_queue (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (cmd_valid && !cmd_addr[7]),
        .in_ready  (room),
        .in_data   ({cmd_addr[6:3], cmd_data}),
        .out_valid (q_valid),
        .out_ready (take),
        .out_data  ({q_reg, q}),
        .level     (level)
    );

    localparam [3:0] CTRL = 4'd0, CLEAR = 4'd1, HDR = 4'd2, DIM = 4'd3, AXIS = 4'd4, WINDOW = 4'd5, INDEX = 4'd6,
                     SEED = 4'd7, IMM = 4'd8, GATHER = 4'd10;

    assign cmd_ready       = room || cmd_addr[7];
    assign take            = q_valid && !run_q;
    assign go              = take && q_reg == CTRL && q[`KT_MV_CTRL_GO];
    assign busy            = run_q || q_valid || level != 0;
    assign clear_fault     = take && q_reg == CLEAR && q[`KT_MV_CLEAR_FAULT];
    assign clear_nonfinite = take && q_reg == CLEAR && q[`KT_MV_CLEAR_NONFINITE];

    always @(posedge clk) begin
        if (!rst_n) run_q <= 1'b0;
        else if (go) run_q <= 1'b1;
        else if (done) run_q <= 1'b0;
    end

    // ---------------------------------------------------------------- registers
    reg         named_q;               // walker of the last HDR, DIM or WINDOW write
    reg  [50:0] dim_q;                 // {stride, count, dimension index}
    wire [15:0] count = dim_q[18:3] == 16'd0 ? 16'd1 : dim_q[18:3];
    wire [65:0] commit = {q[`KT_MV_AXIS_STEP], q[`KT_MV_AXIS_AXIS], dim_q[50:19], count};
    integer     k;

    always @(posedge clk) begin
        if (!rst_n) begin
            mode        <= 3'd0;
            ewidth      <= 2'd1;
            coalesce    <= 1'b0;
            cap         <= 8'd128;
            base        <= 80'd0;
            ndim        <= {3'd1, 3'd1};
            bad_index   <= 2'd0;
            xform_id    <= 4'd0;
            xform_mode  <= 4'd0;
            windows     <= 128'd0;
            index_addr  <= 40'd0;
            index_count <= 16'd0;
            seed        <= 64'd0;
            imm         <= 32'd0;
            pitch       <= 32'd0;
            words       <= 16'd1;
            named_q     <= 1'b0;
            dim_q       <= 51'd0;
            for (k = 0; k < 12; k = k + 1) dims[66*k +: 66] <= {50'd0, 16'd1};
        end else if (take) begin
            case (q_reg)
                CTRL: begin
                    mode     <= q[`KT_MV_CTRL_MODE];
                    ewidth   <= q[`KT_MV_CTRL_EWIDTH];
                    coalesce <= q[`KT_MV_CTRL_COALESCE];
                    cap      <= q[`KT_MV_CTRL_CAP] == 3'd0 ? 8'd128 : 8'd1 << (q[`KT_MV_CTRL_CAP] - 3'd1);
                end
                HDR: begin
                    named_q <= q[`KT_MV_HDR_WALKER];
                    if (q[`KT_MV_HDR_WALKER]) begin
                        base[79:40]  <= q[`KT_MV_HDR_BASE];
                        ndim[5:3]    <= q[`KT_MV_HDR_NDIM];
                        bad_index[1] <= 1'b0;
                    end else begin
                        base[39:0]   <= q[`KT_MV_HDR_BASE];
                        ndim[2:0]    <= q[`KT_MV_HDR_NDIM];
                        bad_index[0] <= 1'b0;
                        xform_id     <= q[`KT_MV_HDR_XFORM_ID];
                        xform_mode   <= q[`KT_MV_HDR_XFORM_MODE];
                    end
                end
                DIM: begin
                    named_q <= q[`KT_MV_DIM_WALKER];
                    dim_q   <= {q[`KT_MV_DIM_STRIDE], q[`KT_MV_DIM_COUNT], q[`KT_MV_DIM_INDEX]};
                end
                AXIS: begin
                    for (k = 0; k < 12; k = k + 1)
                        if (named_q == (k >= 6) && {29'd0, dim_q[2:0]} == k % 6) dims[66*k +: 66] <= commit;
                    if (dim_q[2:1] == 2'd3) bad_index[named_q] <= 1'b1;
                end
                WINDOW: begin
                    named_q <= q[`KT_MV_WINDOW_WALKER];
                    for (k = 0; k < 4; k = k + 1)
                        if ({q[`KT_MV_WINDOW_WALKER], q[`KT_MV_WINDOW_AXIS]} == k[1:0])
                            windows[32*k +: 32] <= {q[`KT_MV_WINDOW_EXTENT], q[`KT_MV_WINDOW_BASE]};
                end
                INDEX: begin
                    index_addr  <= q[`KT_MV_INDEX_ADDR];
                    index_count <= q[`KT_MV_INDEX_COUNT];
                end
                SEED:   seed <= q;
                IMM:    imm <= q[`KT_MV_IMM_IMM];
                GATHER: begin
                    words <= q[`KT_MV_GATHER_WORDS];
                    pitch <= q[`KT_MV_GATHER_PITCH];
                end
                default: ;
            endcase
        end
    end

    wire unused = &{1'b0, cmd_addr[2:0], q[12], q[10:5]};

endmodule

`default_nettype wire
