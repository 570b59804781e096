// SPDX-License-Identifier: Apache-2.0
// ctl_unit_echo: stands for all units behind the orchestrator: every CU_INST it sees is answered
// `delay` cycles later by one signal of the addressed node: FAULT for instruction number fault_at,
// else BATCH_COMPLETE if `last`, else INST_COMPLETE. `open` counts unanswered instructions.
`default_nettype none

module ctl_unit_echo (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         enable,
    input  wire [15:0]  delay,
    input  wire [15:0]  fault_at,
    input  wire         see_valid,
    input  wire [287:0] see_data,
    output wire         valid,
    output wire [287:0] data,
    input  wire         taken,
    output reg  [15:0]  seen,
    output wire [15:0]  open,
    output reg  [15:0]  open_max
);
    reg [48:0] mem [0:1023];        // {fault, dst, txn, last, due}
    reg [9:0]  wr, rd;
    reg [31:0] now;
    wire [48:0] head = mem[rd];
    wire        is_inst = see_valid && see_data[271:268] == 4'h5;
    wire [7:0]  code = head[48] ? 8'h04 : (head[31] ? 8'h01 : 8'h00);
    wire [31:0] arg  = head[48] ? 32'h4D47_0301 : (head[31] ? {24'd0, head[39:32]} : 32'h0000_BEEF);

    assign open  = {6'd0, wr - rd};
    assign valid = enable && (wr != rd) && ((now[30:0] - head[30:0]) < 31'h4000_0000);
    assign data  = {8'h11, head[47:40], 4'h6, head[39:32], 4'h8, code, arg, 216'd0};

    always @(posedge clk) begin
        if (!rst_n) begin
            wr       <= 10'd0;
            rd       <= 10'd0;
            now      <= 32'd0;
            seen     <= 16'd0;
            open_max <= 16'd0;
        end else begin
            now <= now + 32'd1;
            if (open > open_max) open_max <= open;
            if (is_inst) begin
                mem[wr] <= {seen == fault_at, see_data[287:280], see_data[267:260], see_data[259],
                            now[30:0] + {15'd0, delay}};
                wr      <= wr + 10'd1;
                seen    <= seen + 16'd1;
            end
            if (taken) rd <= rd + 10'd1;
        end
    end
endmodule

`default_nettype wire
