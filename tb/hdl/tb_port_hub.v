// SPDX-License-Identifier: Apache-2.0
// tb_port_hub: the hub with a flit source and a flit sink on each of its three links.
`default_nettype none

module tb_port_hub (
    input  wire         clk,
    input  wire         rst_n,
    input  wire         mesh_push,
    input  wire [287:0] mesh_flit,
    input  wire         mesh_feed_hold,
    output wire         mesh_idle,
    input  wire         eng_push,
    input  wire [287:0] eng_flit,
    input  wire         eng_feed_hold,
    output wire         eng_idle,
    input  wire         orc_push,
    input  wire [287:0] orc_flit,
    input  wire         orc_feed_hold,
    output wire         orc_idle,
    input  wire [1:0]   mesh_mode,
    input  wire [7:0]   mesh_level,
    input  wire [9:0]   mesh_sel,
    output wire [287:0] mesh_data,
    output wire [31:0]  mesh_count,
    input  wire [1:0]   eng_mode,
    input  wire [7:0]   eng_level,
    input  wire [9:0]   eng_sel,
    output wire [287:0] eng_data,
    output wire [31:0]  eng_count,
    input  wire [1:0]   orc_mode,
    input  wire [7:0]   orc_level,
    input  wire [9:0]   orc_sel,
    output wire [287:0] orc_data,
    output wire [31:0]  orc_count,
    output wire [31:0]  lost_count,
    output wire [31:0]  remote_count
);

    // ---- mesh link pair: i = into the hub, o = out of it
    wire         mesh_i_valid, mesh_i_busy, mesh_o_valid, mesh_o_busy, mesh_stall;
    wire [287:0] mesh_i_data, mesh_o_data;
    ctl_flit_feed u_mesh_feed (
        .clk(clk), .rst_n(rst_n), .hold(mesh_feed_hold), .push(mesh_push), .flit(mesh_flit), .blast(1'b0),
        .blast_n(32'd0), .blast_rep(32'd1), .blast_node(8'd0), .blast_code(8'd0), .idle(mesh_idle),
        .valid(mesh_i_valid), .data(mesh_i_data), .busy(mesh_i_busy)
    );
    stall_gen u_mesh_stall (
        .clk(clk), .rst_n(rst_n), .seed(32'd77), .mode(mesh_mode),
        .level(mesh_level), .stall(mesh_stall)
    );
    assign mesh_o_busy = mesh_stall || !rst_n;
    ctl_flit_tap u_mesh_tap (
        .clk(clk), .rst_n(rst_n), .valid(mesh_o_valid), .busy(mesh_o_busy), .data(mesh_o_data),
        .sel(mesh_sel), .sel_data(mesh_data), .count(mesh_count), .gap_max()
    );
`ifndef KT_ICARUS
    link_checker #(.ROLE(4), .MAX_BUSY(0)) u_mesh_check_i (
        .clk(clk), .rst_n(rst_n), .valid(mesh_i_valid), .busy(mesh_i_busy), .data(mesh_i_data)
    );
    link_checker #(.ROLE(4), .MAX_BUSY(0)) u_mesh_check_o (
        .clk(clk), .rst_n(rst_n), .valid(mesh_o_valid), .busy(mesh_o_busy), .data(mesh_o_data)
    );
`endif

    // ---- eng link pair: i = into the hub, o = out of it
    wire         eng_i_valid, eng_i_busy, eng_o_valid, eng_o_busy, eng_stall;
    wire [287:0] eng_i_data, eng_o_data;
    ctl_flit_feed u_eng_feed (
        .clk(clk), .rst_n(rst_n), .hold(eng_feed_hold), .push(eng_push), .flit(eng_flit), .blast(1'b0),
        .blast_n(32'd0), .blast_rep(32'd1), .blast_node(8'd0), .blast_code(8'd0), .idle(eng_idle),
        .valid(eng_i_valid), .data(eng_i_data), .busy(eng_i_busy)
    );
    stall_gen u_eng_stall (
        .clk(clk), .rst_n(rst_n), .seed(32'd1234), .mode(eng_mode),
        .level(eng_level), .stall(eng_stall)
    );
    assign eng_o_busy = eng_stall || !rst_n;
    ctl_flit_tap u_eng_tap (
        .clk(clk), .rst_n(rst_n), .valid(eng_o_valid), .busy(eng_o_busy), .data(eng_o_data),
        .sel(eng_sel), .sel_data(eng_data), .count(eng_count), .gap_max()
    );
`ifndef KT_ICARUS
    link_checker #(.ROLE(4), .MAX_BUSY(0)) u_eng_check_i (
        .clk(clk), .rst_n(rst_n), .valid(eng_i_valid), .busy(eng_i_busy), .data(eng_i_data)
    );
    link_checker #(.ROLE(4), .MAX_BUSY(0)) u_eng_check_o (
        .clk(clk), .rst_n(rst_n), .valid(eng_o_valid), .busy(eng_o_busy), .data(eng_o_data)
    );
`endif

    // ---- orc link pair: i = into the hub, o = out of it
    wire         orc_i_valid, orc_i_busy, orc_o_valid, orc_o_busy, orc_stall;
    wire [287:0] orc_i_data, orc_o_data;
    ctl_flit_feed u_orc_feed (
        .clk(clk), .rst_n(rst_n), .hold(orc_feed_hold), .push(orc_push), .flit(orc_flit), .blast(1'b0),
        .blast_n(32'd0), .blast_rep(32'd1), .blast_node(8'd0), .blast_code(8'd0), .idle(orc_idle),
        .valid(orc_i_valid), .data(orc_i_data), .busy(orc_i_busy)
    );
    stall_gen u_orc_stall (
        .clk(clk), .rst_n(rst_n), .seed(32'd98765), .mode(orc_mode),
        .level(orc_level), .stall(orc_stall)
    );
    assign orc_o_busy = orc_stall || !rst_n;
    ctl_flit_tap u_orc_tap (
        .clk(clk), .rst_n(rst_n), .valid(orc_o_valid), .busy(orc_o_busy), .data(orc_o_data),
        .sel(orc_sel), .sel_data(orc_data), .count(orc_count), .gap_max()
    );
`ifndef KT_ICARUS
    link_checker #(.ROLE(4), .MAX_BUSY(0)) u_orc_check_i (
        .clk(clk), .rst_n(rst_n), .valid(orc_i_valid), .busy(orc_i_busy), .data(orc_i_data)
    );
    link_checker #(.ROLE(4), .MAX_BUSY(0)) u_orc_check_o (
        .clk(clk), .rst_n(rst_n), .valid(orc_o_valid), .busy(orc_o_busy), .data(orc_o_data)
    );
`endif

    wire lost, remote_drop;
    port_hub dut (
        .clk(clk), .rst_n(rst_n),
        .noc_in_valid(mesh_i_valid), .noc_in_data(mesh_i_data), .noc_in_busy(mesh_i_busy),
        .noc_out_valid(mesh_o_valid), .noc_out_data(mesh_o_data), .noc_out_busy(mesh_o_busy),
        .eng_out_valid(eng_o_valid), .eng_out_data(eng_o_data), .eng_out_busy(eng_o_busy),
        .eng_in_valid(eng_i_valid), .eng_in_data(eng_i_data), .eng_in_busy(eng_i_busy),
        .orc_out_valid(orc_o_valid), .orc_out_data(orc_o_data), .orc_out_busy(orc_o_busy),
        .orc_in_valid(orc_i_valid), .orc_in_data(orc_i_data), .orc_in_busy(orc_i_busy),
        .lost(lost), .remote_drop(remote_drop)
    );
    reg [31:0] lost_q, remote_q;
    always @(posedge clk) begin
        if (!rst_n) begin
            lost_q   <= 32'd0;
            remote_q <= 32'd0;
        end else begin
            if (lost) lost_q <= lost_q + 32'd1;
            if (remote_drop) remote_q <= remote_q + 32'd1;
        end
    end
    assign lost_count   = lost_q;
    assign remote_count = remote_q;
endmodule

`default_nettype wire
