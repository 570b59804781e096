// SPDX-License-Identifier: Apache-2.0
// traffic_core: bench endpoint that sends stamped flits to listed destinations
// and checks every flit it receives. Runs without Python: a bench sets the
// control registers, waits, and reads the counters.
//
// A flit carries its type, the time and its sequence number per (source,
// destination), and all its other bits are computed from those, so the sink
// finds loss, duplication, reordering and damage by itself; equal totals of
// sent and received rule out a lost tail.
// The stimulus is a xorshift generator started from seed.
`default_nettype none
`include "ktpu_defs.vh"

module traffic_core (
    input  wire                  clk,
    input  wire                  rst_n,
    input  wire [3:0]            pos_x,
    input  wire [3:0]            pos_y,
    input  wire [15:0]           types,         // bit per type it sends

    input  wire                  noc_in_valid,
    input  wire [`KT_FLIT_W-1:0] noc_in_data,
    output wire                  noc_in_busy,
    output wire                  noc_out_valid,
    output wire [`KT_FLIT_W-1:0] noc_out_data,
    input  wire                  noc_out_busy
);

    /*verilator no_inline_module*/  // one compiled copy serves all nodes of a mesh

    // Control, written by the bench.
    reg [511:0] dst_list   /*verilator public_flat_rw*/;  // bytes {y, x}, entry 0 lowest
    reg [5:0]   n_dst      /*verilator public_flat_rw*/;  // 0: do not send
    reg [31:0]  send_limit /*verilator public_flat_rw*/;
    reg [8:0]   rate       /*verilator public_flat_rw*/;  // of 256: chance to send in a cycle
    reg [8:0]   busy_rate  /*verilator public_flat_rw*/;  // of 256: chance to be busy
    reg [7:0]   period     /*verilator public_flat_rw*/;  // not 0: ready once in period cycles
    reg [31:0]  seed       /*verilator public_flat_rw*/;

    // Results.
    reg [31:0]  sent       /*verilator public_flat_rd*/;
    reg [31:0]  received   /*verilator public_flat_rd*/;
    reg [31:0]  bad        /*verilator public_flat_rd*/;
    reg [287:0] first_bad  /*verilator public_flat_rd*/;
    reg [31:0]  lat_min    /*verilator public_flat_rd*/;
    reg [31:0]  lat_max    /*verilator public_flat_rd*/;
    reg [31:0]  max_gap    /*verilator public_flat_rd*/;  // flits between two of one source
    reg [31:0]  first_in   /*verilator public_flat_rd*/;  // cycle of the first and last flit
    reg [31:0]  last_in    /*verilator public_flat_rd*/;

    function [3:0] lowest(input [15:0] mask);
        integer k;
        begin
            lowest = 4'd0;
            for (k = 15; k >= 0; k = k - 1) if (mask[k]) lowest = k[3:0];
        end
    endfunction

    reg [31:0] seq_to    [0:255];
    reg [31:0] seq_from  [0:255];
    reg [31:0] last_from [0:255];

    reg [63:0]           rng_q;
    reg [31:0]           cycle_q;
    reg [7:0]            phase_q;
    reg                  busy_q;
    reg                  valid_q;
    reg [`KT_FLIT_W-1:0] data_q;
    integer              i;

    function [63:0] xorshift(input [63:0] s);
        reg [63:0] t;
        begin
            t = s ^ (s << 13);
            t = t ^ (t >> 7);
            xorshift = t ^ (t << 17);
        end
    endfunction

    // dst and src as {y, x}; rsvd stays legal for the type (docs/spec/fabric.md 1.2)
    function [`KT_FLIT_W-1:0] stamp(input [7:0] dst, input [7:0] src, input [3:0] kind,
                                    input [31:0] seq, input [31:0] when);
        reg [63:0] mix;
        reg [2:0]  rsvd;
        begin
            mix  = ({kind, seq[27:0], ~seq} * 64'h9E37_79B9_7F4A_7C15) ^ {4{dst, src}};
            rsvd = (kind == `KT_TYPE_MEM_RD_RESP) ? mix[15:13]
                 : (kind == `KT_TYPE_CU_DATA) ? {mix[13], mix[15:14] & {2{mix[13]}}} : 3'd0;
            stamp = {dst[3:0], dst[7:4], src[3:0], src[7:4], kind, mix[11:4], mix[12],
                     rsvd, mix, ~mix, mix[31:0], mix[63:32], when, kind, seq[27:0]};
        end
    endfunction

    wire [5:0] entry   = rng_q[37:32] % (n_dst == 0 ? 6'd1 : n_dst);
    wire [7:0] pick    = dst_list[{entry, 3'b000} +: 8];
    wire [3:0] kind    = types[rng_q[51:48]] ? rng_q[51:48] : lowest(types);
    wire       want    = n_dst != 0 && sent < send_limit && {1'b0, rng_q[7:0]} < rate;
    wire       load    = !valid_q || !noc_out_busy;
    wire       take    = noc_in_valid && !busy_q;
    wire [7:0] from    = {noc_in_data[`KT_FLIT_SRC_Y], noc_in_data[`KT_FLIT_SRC_X]};
    wire [7:0] to      = {noc_in_data[`KT_FLIT_DST_Y], noc_in_data[`KT_FLIT_DST_X]};
    wire [31:0] latency = cycle_q - noc_in_data[63:32];
    wire [31:0] gap     = received - last_from[from];

    always @(posedge clk) begin
        if (!rst_n) begin
            rng_q    <= {seed, pos_y, pos_x, 24'h5A5A5A};
            cycle_q  <= 0;
            phase_q  <= 0;
            busy_q   <= 1'b1;
            valid_q  <= 1'b0;
            sent     <= 0;
            received <= 0;
            bad      <= 0;
            first_bad <= 0;
            lat_min  <= 32'hFFFF_FFFF;
            lat_max  <= 0;
            max_gap  <= 0;
            first_in <= 0;
            last_in  <= 0;
            for (i = 0; i < 256; i = i + 1) begin
                seq_to[i]    <= 0;
                seq_from[i]  <= 0;
                last_from[i] <= 0;
            end
        end else begin
            rng_q   <= xorshift(rng_q);
            cycle_q <= cycle_q + 1;
            phase_q <= (phase_q + 1 >= period) ? 8'd0 : phase_q + 8'd1;
            busy_q  <= (period != 0) ? phase_q != 0 : {1'b0, rng_q[23:16]} < busy_rate;

            if (load) begin
                valid_q <= want;
                if (want) begin
                    data_q <= stamp(pick, {pos_y, pos_x}, kind, seq_to[pick], cycle_q + 1);
                    seq_to[pick] <= seq_to[pick] + 1;
                    sent <= sent + 1;
                end
            end

            if (take) begin
                received <= received + 1;
                last_in  <= cycle_q;
                if (received == 0) first_in <= cycle_q;
                seq_from[from]  <= seq_from[from] + 1;
                last_from[from] <= received;
                if (seq_from[from] != 0 && gap > max_gap) max_gap <= gap;
                if (latency < lat_min) lat_min <= latency;
                if (latency > lat_max) lat_max <= latency;
                if (to != {pos_y, pos_x}
                    || noc_in_data != stamp({pos_y, pos_x}, from, noc_in_data[31:28], seq_from[from],
                                            noc_in_data[63:32])) begin
                    bad <= bad + 1;
                    if (bad == 0) first_bad <= noc_in_data;
                end
            end
        end
    end

    assign noc_in_busy   = busy_q;
    assign noc_out_valid = valid_q;
    assign noc_out_data  = data_q;

endmodule

`default_nettype wire
