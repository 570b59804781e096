// SPDX-License-Identifier: Apache-2.0
// ctl_clients: stand-ins for the two clients of the orchestrator.
//
// Auxiliary client: logs every transfer, aux_ready falls at random when aux_stall = 1 and always
// when aux_hold = 1. Register client: 0x00 constant, 0x08 number of reads of it (a write clears),
// 0x10 read-write, every other offset an error.
`default_nettype none

module ctl_clients (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        aux_hold,
    input  wire        aux_stall,
    input  wire        aux_valid,
    input  wire [7:0]  aux_addr,
    input  wire [63:0] aux_data,
    input  wire [3:0]  aux_stat_sel,
    output wire        aux_ready,
    output wire [63:0] aux_stat_q,
    input  wire [7:0]  log_sel,
    output wire [71:0] log_data,
    output reg  [31:0] log_count,

    input  wire        mreg_en,
    input  wire        mreg_we,
    input  wire [6:0]  mreg_addr,
    input  wire [63:0] mreg_wdata,
    output reg  [63:0] mreg_rdata,
    output reg         mreg_err,
    output reg  [31:0] mreg_count
);
    reg [71:0] log [0:255];
    reg [15:0] x;
    assign aux_ready  = !aux_hold && !(aux_stall && x[0]);
    assign aux_stat_q = {56'hA55A_0000_0000_C3, 4'h0, aux_stat_sel};
    assign log_data   = log[log_sel];

    reg [63:0] reads, store;
    always @(posedge clk) begin
        if (!rst_n) begin
            x          <= 16'hACE1;
            log_count  <= 32'd0;
            reads      <= 64'd0;
            store      <= 64'd0;
            mreg_err   <= 1'b0;
            mreg_count <= 32'd0;
        end else begin
            x <= {x[14:0], x[15] ^ x[13] ^ x[12] ^ x[10]};
            if (aux_valid && aux_ready) begin
                log[log_count[7:0]] <= {aux_addr, aux_data};
                log_count           <= log_count + 32'd1;
            end
            mreg_err   <= 1'b0;
            mreg_rdata <= 64'hDEAD_DEAD_DEAD_DEAD;      // only the sampled cycle carries data
            if (mreg_en) begin
                mreg_count <= mreg_count + 32'd1;
                mreg_err   <= (mreg_addr > 7'h10);
                case (mreg_addr)
                    7'h00: mreg_rdata <= 64'h0123_4567_89AB_CDEF;
                    7'h08: mreg_rdata <= reads + 64'd1;
                    7'h10: mreg_rdata <= store;
                    default: ;
                endcase
                if (mreg_addr == 7'h08) reads <= mreg_we ? 64'd0 : reads + 64'd1;
                if (mreg_addr == 7'h10 && mreg_we) store <= mreg_wdata;
            end
        end
    end
endmodule

`default_nettype wire
