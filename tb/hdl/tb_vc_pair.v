// SPDX-License-Identifier: Apache-2.0
// tb_vc_pair: two vector cores whose links lead to each other and to a host that
// only counts: for bursts in both directions at once. Files: inst0.hex, inst1.hex
// (flits); trace.txt, one line a flit: side, cycle, flit.
`default_nettype none

module tb_vc_pair (
    input  wire        clk,
    input  wire        rst_n,
    input  wire        load,
    input  wire        go,
    input  wire        stop,
    input  wire [31:0] n_inst,
    input  wire [31:0] seed,
    input  wire [7:0]  cfg_busy,
    output reg         finished
);
    integer    trace;
    initial trace = 0;
    always @(posedge load or posedge stop) begin
        if (trace != 0) $fclose(trace);
        if (stop) trace <= 0;
        else trace <= $fopen("trace.txt", "w");
    end

    wire         v0, v1, full0, full1, sent0, sent1, idle0, idle1;
    wire [287:0] f0, f1;
    reg  [31:0]  now_q, rnd_q;
    reg  [7:0]   idle_q;

    vc_pair_side #(.SIDE(0)) u_0 (
        .clk (clk), .rst_n (rst_n), .load (load), .go (go), .n_inst (n_inst), .rnd (rnd_q), .cfg_busy (cfg_busy),
        .full (full0), .peer_full (full1), .peer_valid (v1), .peer_flit (f1), .out_valid (v0), .out_flit (f0), .sent (sent0), .idle (idle0)
    );
    vc_pair_side #(.SIDE(1)) u_1 (
        .clk (clk), .rst_n (rst_n), .load (load), .go (go), .n_inst (n_inst), .rnd ({rnd_q[7:0], rnd_q[31:8]}),
        .cfg_busy (cfg_busy),
        .full (full1), .peer_full (full0), .peer_valid (v0), .peer_flit (f0), .out_valid (v1), .out_flit (f1), .sent (sent1), .idle (idle1)
    );

    always @(posedge clk) begin
        now_q <= now_q + 32'd1;
        rnd_q <= {rnd_q[30:0], rnd_q[31] ^ rnd_q[21] ^ rnd_q[1] ^ rnd_q[0]};
        if (!rst_n) begin
            now_q    <= 32'd0;
            rnd_q    <= seed | 32'd1;
            idle_q   <= 8'd0;
            finished <= 1'b0;
        end else begin
            idle_q   <= (idle0 && idle1) ? ((idle_q == 8'd255) ? idle_q : idle_q + 8'd1) : 8'd0;
            finished <= idle_q == 8'd255;
            if (trace != 0 && sent0) $fwrite(trace, "0 %0d %h\n", now_q, f0);
            if (trace != 0 && sent1) $fwrite(trace, "1 %0d %h\n", now_q, f1);
        end
    end

endmodule

`default_nettype wire
