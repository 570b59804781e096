// SPDX-License-Identifier: Apache-2.0
// arbiter_props: router_output under free requests, for the Yosys SAT proof:
// one grant at most and only to a request, work-conserving, L1 and L2 on the
// link, and a request that stays is granted after at most four other grants.
`default_nettype none

module arbiter_props (
    input wire       clk,
    input wire       rst_n,
    input wire [4:0] req,
    input wire       out_busy,
    input wire [2:0] watched        // any input; constant by assumption
);

    wire [4:0]   grant;
    wire         out_valid;
    wire [287:0] out_data;

    // Each input shows its own number, so the link tells who was taken.
    router_output dut (
        .clk(clk), .rst_n(rst_n), .req(req),
        .data_n(288'd1), .data_e(288'd2), .data_s(288'd3), .data_w(288'd4), .data_l(288'd5),
        .grant(grant), .out_valid(out_valid), .out_data(out_data), .out_busy(out_busy));

    reg         live, held;
    reg [2:0]   held_data, who, waited;
    reg [4:0]   last_grant;
    wire        asks    = req[who];
    wire        granted = grant[who];

    initial live = 1'b0;
    always @(posedge clk) begin
        live <= live || !rst_n;
        who  <= watched;
        held <= rst_n && live && out_valid && out_busy;
        held_data <= out_data[2:0];
        last_grant <= (rst_n && live) ? grant : 5'd0;
        if (!rst_n || !asks || granted) waited <= 3'd0;
        else if (grant != 5'd0) waited <= waited + 3'd1;
    end

    always @* begin
        if (!live) assume (!rst_n);
        assume (watched < 3'd5);
        if (live) assume (who == watched);
        if (live) begin
            assert ((grant & (grant - 5'd1)) == 5'd0);
            assert ((grant & ~req) == 5'd0);
            if (rst_n && req != 5'd0 && (!out_valid || !out_busy)) assert (grant != 5'd0);
            if (out_valid && out_busy) assert (grant == 5'd0);
            if (held) assert (out_valid && out_data[2:0] == held_data);
            if (last_grant != 5'd0) assert (out_valid && last_grant[out_data[2:0] - 3'd1]);
            if (rst_n) assert (waited <= 3'd4);
        end
    end

endmodule

`default_nettype wire
