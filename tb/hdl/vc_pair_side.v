// SPDX-License-Identifier: Apache-2.0
// vc_pair_side: one vector core of tb_vc_pair with its surroundings: instructions
// from a file, acknowledgements for its writes, a queue of flits from the peer.
//
// Trace of the flits that leave: one line "<side> <cycle> <flit>".
`default_nettype none

module vc_pair_side #(
    parameter SIDE = 0,                     // the core sits at (1 + SIDE, 0)
    parameter STIM = 4096
) (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         load,
    input  wire         go,
    input  wire [31:0]  n_inst,
    input  wire [31:0]  rnd,
    input  wire [7:0]   cfg_busy,
    input  wire         peer_valid,         // a flit from the other core
    input  wire [287:0] peer_flit,
    output wire         full,               // the queue takes no more
    input  wire         peer_full,
    output wire         out_valid,          // flit to the other core
    output wire [287:0] out_flit,
    output wire         sent,               // any flit leaves
    output wire         idle
);
    reg [287:0] inst [0:STIM-1];
    always @(posedge load) $readmemh(SIDE == 0 ? "inst0.hex" : "inst1.hex", inst, 0, n_inst - 1);

    reg          busy_q, in_valid_q, run_q;
    reg  [287:0] in_flit_q;
    reg  [31:0]  ip_q, done_q;
    wire         in_busy, valid;
    assign sent = valid && !busy_q;

    vc_core #(.CU_X(1 + SIDE), .CU_Y(0), .MEM_X(0), .MEM_Y(1)) dut (
        .clk           (clk),
        .rst_n         (rst_n),
        .noc_in_valid  (in_valid_q),
        .noc_in_data   (in_flit_q),
        .noc_in_busy   (in_busy),
        .noc_out_valid (valid),
        .noc_out_data  (out_flit),
        .noc_out_busy  (busy_q)
    );

    localparam [3:0] OTHER = 4'd2 - SIDE;
    localparam [3:0] OWN   = 4'd1 + SIDE;
    assign out_valid = sent && out_flit[287:280] == {OTHER, 4'd0};

    // what a few mesh links hold; a full one stops the peer's link altogether
    reg  [287:0] queue [0:15];
    reg  [3:0]   q_w_q, q_r_q;
    wire [3:0]   level = q_w_q - q_r_q;
    assign       full  = level >= 4'd8;
    wire         q_valid = q_w_q != q_r_q;

    reg  [7:0]   acks [0:255];
    reg  [7:0]   a_w_q, a_r_q;
    wire         a_valid = a_w_q != a_r_q;
    wire         ended = sent && out_flit[271:268] == 4'h4 && out_flit[259];

    wire         i_valid = run_q && ip_q < n_inst && ip_q - done_q < 32'd32;
    wire         load_in = !in_valid_q || !in_busy;
    wire         take_i = load_in && i_valid && (rnd[0] || !(q_valid || a_valid));
    wire         take_q = load_in && !take_i && q_valid && (rnd[1] || !a_valid);
    wire         take_a = load_in && !take_i && !take_q && a_valid;
    wire         signal = sent && out_flit[271:268] == 4'h6 && out_flit[255:248] != 8'h03;

    always @(posedge clk) begin
        if (!rst_n) begin
            busy_q     <= 1'b1;
            in_valid_q <= 1'b0;
            run_q      <= 1'b0;
            ip_q       <= 32'd0;
            done_q     <= 32'd0;
            q_w_q      <= 4'd0;
            q_r_q      <= 4'd0;
            a_w_q      <= 8'd0;
            a_r_q      <= 8'd0;
        end else begin
            if (go) run_q <= 1'b1;
            busy_q <= peer_full || rnd[15:8] < cfg_busy;
            if (load_in) begin
                in_valid_q <= take_i || take_q || take_a;
                in_flit_q  <= take_i ? inst[ip_q[11:0]] : take_q ? queue[q_r_q]
                            : {OWN, 4'd0, 8'h01, 4'h3, acks[a_r_q], 1'b1, 3'd0, 256'd0};
            end
            if (take_i) ip_q <= ip_q + 32'd1;
            if (signal) done_q <= done_q + 32'd1;
            if (peer_valid) begin
                queue[q_w_q] <= peer_flit;
                q_w_q        <= q_w_q + 4'd1;
            end
            if (take_q) q_r_q <= q_r_q + 4'd1;
            if (ended) begin
                acks[a_w_q] <= out_flit[267:260];
                a_w_q       <= a_w_q + 8'd1;
            end
            if (take_a) a_r_q <= a_r_q + 8'd1;
        end
    end

    assign idle = run_q && ip_q == n_inst && done_q == n_inst && !q_valid && !a_valid && !in_valid_q && !valid;

endmodule

`default_nettype wire
