// SPDX-License-Identifier: Apache-2.0
// router_output: one output of a router, docs/spec/fabric.md 3.3: round robin
// over the five inputs, then the register that drives the link.
//
// Latency    a granted flit is on the link one cycle later.
// Throughput one flit per cycle: the register reloads in the cycle of its
//            transfer.
// Fairness   the pointer moves past the granted input and only on a grant, so
//            an input that keeps asking waits for at most four other grants.
`default_nettype none
`include "ktpu_defs.vh"

module router_output (
    input  wire                  clk,
    input  wire                  rst_n,

    input  wire [4:0]            req,
    input  wire [`KT_FLIT_W-1:0] data_n,
    input  wire [`KT_FLIT_W-1:0] data_e,
    input  wire [`KT_FLIT_W-1:0] data_s,
    input  wire [`KT_FLIT_W-1:0] data_w,
    input  wire [`KT_FLIT_W-1:0] data_l,
    output wire [4:0]            grant,

    output wire                  out_valid,
    output wire [`KT_FLIT_W-1:0] out_data,
    input  wire                  out_busy
);

    reg                  valid_q;
    reg [`KT_FLIT_W-1:0] data_q;
    reg [4:0]            first_q;         // one-hot: where the search starts

    // First request at or after first_q, going round: subtracting the pointer
    // from the doubled request vector clears exactly that bit.
    wire       load   = !valid_q || !out_busy;
    wire [9:0] twice  = {req, req};
    wire [9:0] picked = twice & ~(twice - {5'b00000, first_q});
    wire [4:0] winner = picked[9:5] | picked[4:0];

    assign grant = load ? winner : 5'b00000;

    always @(posedge clk) begin
        if (!rst_n) begin
            valid_q <= 1'b0;
            first_q <= 5'b00001;
        end else begin
            if (load) valid_q <= winner != 5'b00000;
            if (grant != 5'b00000) first_q <= {grant[3:0], grant[4]};
        end
    end

    always @(posedge clk) begin
        case (grant)
            5'b00001: data_q <= data_n;
            5'b00010: data_q <= data_e;
            5'b00100: data_q <= data_s;
            5'b01000: data_q <= data_w;
            5'b10000: data_q <= data_l;
            default:  ;
        endcase
    end

    assign out_valid = valid_q;
    assign out_data  = data_q;

endmodule

`default_nettype wire
