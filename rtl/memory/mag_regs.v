// SPDX-License-Identifier: Apache-2.0
// mag_regs: register block MEM_CAPS, MEM_FAULT, MEM_DROP, MEM_STGCNT, MEM_DRAMCNT.
//
// Latency    mreg_rdata and mreg_err are valid one cycle after mreg_en, held.
// Events     any number in one cycle; none is lost to a clear of the same cycle.
//            When several faults are first together, the lowest index is kept.
// Parameters FAULTS = number of fault inputs 1..15, DROPS = of control drops 1..15;
//            PORTS, WR_SLOTS, DRAM_BYTES_LOG2 and STAGE_BYTES are only published.
// Spec       docs/spec/memory.md 7; docs/spec/fabric.md 6.6
`default_nettype none
`include "ktpu_defs.vh"

module mag_regs #(
    parameter FAULTS          = 4,
    parameter DROPS           = 2,
    parameter PORTS           = 1,
    parameter WR_SLOTS        = 16,
    parameter DRAM_BYTES_LOG2 = 32,
    parameter STAGE_BYTES     = 0
) (
    input  wire                 clk,
    input  wire                 rst_n,

    input  wire                 mreg_en,
    input  wire                 mreg_we,
    input  wire [6:0]           mreg_addr,
    input  wire [63:0]          mreg_wdata,
    output wire                 mreg_present,
    output reg  [63:0]          mreg_rdata,
    output reg                  mreg_err,

    input  wire [FAULTS-1:0]    fault_valid,
    input  wire [FAULTS*64-1:0] fault_info,   // {address, txn, source, class, code}: the register's layout
    input  wire                 orphan_valid, // an orphan is a fault that is counted apart
    input  wire [63:0]          orphan_info,
    input  wire [DROPS-1:0]     ctrl_drop,
    input  wire                 read_beat,
    input  wire                 write_beat,
    input  wire                 stage_read_beat,
    input  wire                 stage_write_beat
);

    // Register index = address / 8.
    localparam [3:0] CAPS = 4'd0, FAULT = 4'd1, DROP = 4'd2, STGCNT = 4'd3, DRAMCNT = 4'd4;

    localparam [63:0] CAPS_VALUE = {8'd1, WR_SLOTS[7:0], 4'd8, PORTS[3:0], DRAM_BYTES_LOG2[7:0], STAGE_BYTES[31:0]};

    reg  [63:0] fault_q;
    reg  [15:0] faults_q, orphans_q, drops_q;
    reg  [31:0] reads_q, writes_q, stage_reads_q, stage_writes_q;

    wire [3:0]  index = mreg_addr[6:3];
    wire        clear_fault = mreg_en && mreg_we && index == FAULT;
    wire        clear_drop  = mreg_en && mreg_we && index == DROP;

    function [15:0] add_sat(input [15:0] value, input [4:0] n);
        reg [16:0] sum;
        begin
            sum     = {1'b0, value} + {12'd0, n};
            add_sat = sum[16] ? 16'hFFFF : sum[15:0];
        end
    endfunction

    reg  [63:0] first;
    reg         any;
    reg  [4:0]  n_faults, n_drops;
    integer     i;
    always @* begin
        any = orphan_valid; first = orphan_info; n_faults = 5'd0; n_drops = 5'd0;
        for (i = FAULTS - 1; i >= 0; i = i - 1)
            if (fault_valid[i]) begin
                any      = 1'b1;
                first    = fault_info[64*i +: 64];
                n_faults = n_faults + 5'd1;
            end
        for (i = 0; i < DROPS; i = i + 1) n_drops = n_drops + {4'd0, ctrl_drop[i]};
    end

    wire [63:0] fault_kept   = clear_fault ? 64'd0 : fault_q;
    wire [15:0] faults_kept  = clear_drop ? 16'd0 : faults_q;
    wire [15:0] orphans_kept = clear_drop ? 16'd0 : orphans_q;
    wire [15:0] drops_kept   = clear_drop ? 16'd0 : drops_q;

    always @(posedge clk) begin
        if (!rst_n) begin
            fault_q   <= 64'd0;
            faults_q  <= 16'd0;
            orphans_q <= 16'd0;
            drops_q   <= 16'd0;
            reads_q   <= 32'd0;
            writes_q  <= 32'd0;
            stage_reads_q  <= 32'd0;
            stage_writes_q <= 32'd0;
        end else begin
            // Code 0 is "none": a stored fault always has a code.
            if (clear_fault || any) fault_q <= (any && fault_kept[3:0] == 4'd0) ? first : fault_kept;
            faults_q  <= add_sat(faults_kept, n_faults);
            orphans_q <= add_sat(orphans_kept, {4'd0, orphan_valid});
            drops_q   <= add_sat(drops_kept, n_drops);
            if (read_beat) reads_q <= reads_q + 32'd1;
            if (write_beat) writes_q <= writes_q + 32'd1;
            if (stage_read_beat) stage_reads_q <= stage_reads_q + 32'd1;
            if (stage_write_beat) stage_writes_q <= stage_writes_q + 32'd1;
        end
    end

    assign mreg_present = 1'b1;

    always @(posedge clk) begin
        if (!rst_n) begin
            mreg_rdata <= 64'd0;
            mreg_err   <= 1'b0;
        end else if (mreg_en) begin
            mreg_err <= index > DRAMCNT;
            case (index)
                CAPS:    mreg_rdata <= CAPS_VALUE;
                FAULT:   mreg_rdata <= fault_q;
                DROP:    mreg_rdata <= {16'd0, drops_q, orphans_q, faults_q};
                STGCNT:  mreg_rdata <= {stage_writes_q, stage_reads_q};
                DRAMCNT: mreg_rdata <= {writes_q, reads_q};
                default: mreg_rdata <= 64'd0;
            endcase
        end
    end

    // Any write clears, whatever it carries.
    wire unused = &{1'b0, mreg_wdata, mreg_addr[2:0]};

endmodule

`default_nettype wire
