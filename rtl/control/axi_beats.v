// SPDX-License-Identifier: Apache-2.0
//
// axi_beats: AXI4 slave front end of a 64-bit register window (docs/spec/fabric.md 6.1).
//
// Turns AXI bursts into single beats on two independent beat interfaces (write, read); beat n of a
// burst carries base + 8n. One write and one read transaction at a time; AW is accepted before W;
// the burst length comes from AxLEN; IDs are echoed; VALID never waits for READY.
// A beat interface holds `*b_valid` until `*b_ready`; `*b_err` is sampled with `*b_ready`.
// A burst (AxLEN > 0) that is not INCR or not 8 bytes wide reaches no beat interface and answers
// SLVERR. `slverr` pulses once per write response or read beat that answers SLVERR.
//
// Latency: write beat 1 cycle from W, read data 1 cycle after `rb_ready`.
// Throughput: one write beat per cycle; one read beat per (2 + client latency) cycles.
// Parameters: ADDR_W 12..32 (decoded address bits), ID_W 1..16.

`default_nettype none

module axi_beats #(
    parameter ADDR_W = 16,
    parameter ID_W   = 4
) (
    input  wire              clk,
    input  wire              rst_n,

    input  wire [ID_W-1:0]   s_axi_awid,
    input  wire [ADDR_W-1:0] s_axi_awaddr,
    input  wire [7:0]        s_axi_awlen,
    input  wire [2:0]        s_axi_awsize,
    input  wire [1:0]        s_axi_awburst,
    input  wire              s_axi_awvalid,
    output wire              s_axi_awready,
    input  wire [63:0]       s_axi_wdata,
    input  wire [7:0]        s_axi_wstrb,
    input  wire              s_axi_wlast,
    input  wire              s_axi_wvalid,
    output wire              s_axi_wready,
    output wire [ID_W-1:0]   s_axi_bid,
    output wire [1:0]        s_axi_bresp,
    output wire              s_axi_bvalid,
    input  wire              s_axi_bready,
    input  wire [ID_W-1:0]   s_axi_arid,
    input  wire [ADDR_W-1:0] s_axi_araddr,
    input  wire [7:0]        s_axi_arlen,
    input  wire [2:0]        s_axi_arsize,
    input  wire [1:0]        s_axi_arburst,
    input  wire              s_axi_arvalid,
    output wire              s_axi_arready,
    output wire [ID_W-1:0]   s_axi_rid,
    output wire [63:0]       s_axi_rdata,
    output wire [1:0]        s_axi_rresp,
    output wire              s_axi_rlast,
    output wire              s_axi_rvalid,
    input  wire              s_axi_rready,

    output wire              wb_valid,
    output wire [ADDR_W-1:3] wb_word,
    output wire [63:0]       wb_data,
    output wire [7:0]        wb_strb,
    input  wire              wb_ready,
    input  wire              wb_err,

    output wire              rb_valid,
    output wire [ADDR_W-1:3] rb_word,
    input  wire              rb_ready,
    input  wire [63:0]       rb_data,
    input  wire              rb_err,

    output wire              slverr
);
    localparam [1:0] OKAY   = 2'b00;
    localparam [1:0] SLVERR = 2'b10;
    localparam [1:0] INCR   = 2'b01;
    localparam [2:0] FULL   = 3'd3;

    // The length is taken from AxLEN, so WLAST carries no information; address bits 2:0 select
    // nothing, the strobes do.
    wire unused_ok = &{1'b0, s_axi_wlast, s_axi_awaddr[2:0], s_axi_araddr[2:0]};

    // ---- write ------------------------------------------------------------------------------
    localparam [1:0] W_RESET = 2'd0, W_IDLE = 2'd1, W_DATA = 2'd2, W_RESP = 2'd3;

    reg  [1:0]        w_state_q, w_state_d;
    reg  [ID_W-1:0]   w_id_q;
    reg  [ADDR_W-1:3] w_word_q;
    reg  [8:0]        w_left_q;       // beats not yet taken from W
    reg               w_bad_q;        // burst attributes refused: no beat has an effect
    reg               w_err_q;
    reg               w_beat_q;       // a beat waits in w_data_q, w_strb_q
    reg  [63:0]       w_data_q;
    reg  [7:0]        w_strb_q;

    wire aw_fire   = s_axi_awvalid && s_axi_awready;
    wire w_fire    = s_axi_wvalid && s_axi_wready;
    wire beat_fire = wb_valid && wb_ready;
    wire w_empty   = (w_left_q == 9'd0) && (!w_beat_q || beat_fire);

    assign s_axi_awready = (w_state_q == W_IDLE);
    assign s_axi_wready  = (w_state_q == W_DATA) && (w_left_q != 9'd0) && (!w_beat_q || wb_ready);
    assign s_axi_bvalid  = (w_state_q == W_RESP);
    assign s_axi_bid     = w_id_q;
    assign s_axi_bresp   = w_err_q ? SLVERR : OKAY;
    assign wb_valid      = w_beat_q;
    assign wb_word       = w_word_q;
    assign wb_data       = w_data_q;
    assign wb_strb       = w_strb_q;

    always @* begin
        w_state_d = w_state_q;
        case (w_state_q)
            W_RESET: w_state_d = W_IDLE;
            W_IDLE:  if (s_axi_awvalid) w_state_d = W_DATA;
            W_DATA:  if (w_empty) w_state_d = W_RESP;
            default: if (s_axi_bready) w_state_d = W_IDLE;
        endcase
    end

    always @(posedge clk) begin
        if (!rst_n) begin
            w_state_q <= W_RESET;
            w_beat_q  <= 1'b0;
            w_err_q   <= 1'b0;
            w_bad_q   <= 1'b0;
            w_left_q  <= 9'd0;
        end else begin
            w_state_q <= w_state_d;
            if (aw_fire) begin
                w_left_q <= {1'b0, s_axi_awlen} + 9'd1;
                w_bad_q  <= (s_axi_awlen != 8'd0) &&
                            ((s_axi_awburst != INCR) || (s_axi_awsize != FULL));
                w_err_q  <= (s_axi_awlen != 8'd0) &&
                            ((s_axi_awburst != INCR) || (s_axi_awsize != FULL));
            end else begin
                if (w_fire) w_left_q <= w_left_q - 9'd1;
                if (beat_fire && wb_err) w_err_q <= 1'b1;
            end
            if (w_fire) w_beat_q <= !w_bad_q;
            else if (beat_fire) w_beat_q <= 1'b0;
        end
    end

    always @(posedge clk) begin
        if (aw_fire) begin
            w_id_q   <= s_axi_awid;
            w_word_q <= s_axi_awaddr[ADDR_W-1:3];
        end else if (beat_fire) begin
            w_word_q <= w_word_q + 1'b1;
        end
        if (w_fire) begin
            w_data_q <= s_axi_wdata;
            w_strb_q <= s_axi_wstrb;
        end
    end

    // ---- read -------------------------------------------------------------------------------
    localparam [1:0] R_RESET = 2'd0, R_IDLE = 2'd1, R_BEAT = 2'd2, R_RESP = 2'd3;

    reg  [1:0]        r_state_q, r_state_d;
    reg  [ID_W-1:0]   r_id_q;
    reg  [ADDR_W-1:3] r_word_q;
    reg  [7:0]        r_left_q;       // beats after the present one
    reg               r_bad_q;
    reg               r_err_q;
    reg  [63:0]       r_data_q;

    wire ar_fire = s_axi_arvalid && s_axi_arready;
    wire r_fire  = s_axi_rvalid && s_axi_rready;
    wire r_done  = (r_state_q == R_BEAT) && (rb_ready || r_bad_q);

    assign s_axi_arready = (r_state_q == R_IDLE);
    assign s_axi_rvalid  = (r_state_q == R_RESP);
    assign s_axi_rid     = r_id_q;
    assign s_axi_rdata   = r_data_q;
    assign s_axi_rresp   = r_err_q ? SLVERR : OKAY;
    assign s_axi_rlast   = (r_left_q == 8'd0);
    assign rb_valid      = (r_state_q == R_BEAT) && !r_bad_q;
    assign rb_word       = r_word_q;

    always @* begin
        r_state_d = r_state_q;
        case (r_state_q)
            R_RESET: r_state_d = R_IDLE;
            R_IDLE:  if (s_axi_arvalid) r_state_d = R_BEAT;
            R_BEAT:  if (r_done) r_state_d = R_RESP;
            default: if (s_axi_rready) r_state_d = (r_left_q == 8'd0) ? R_IDLE : R_BEAT;
        endcase
    end

    always @(posedge clk) begin
        if (!rst_n) begin
            r_state_q <= R_RESET;
            r_err_q   <= 1'b0;
            r_bad_q   <= 1'b0;
        end else begin
            r_state_q <= r_state_d;
            if (ar_fire) r_bad_q <= (s_axi_arlen != 8'd0) &&
                                    ((s_axi_arburst != INCR) || (s_axi_arsize != FULL));
            if (r_done) r_err_q <= r_bad_q || rb_err;
        end
    end

    always @(posedge clk) begin
        if (ar_fire) begin
            r_id_q   <= s_axi_arid;
            r_word_q <= s_axi_araddr[ADDR_W-1:3];
            r_left_q <= s_axi_arlen;
        end else if (r_fire) begin
            r_word_q <= r_word_q + 1'b1;
            r_left_q <= r_left_q - 8'd1;
        end
        if (r_done) r_data_q <= (r_bad_q || rb_err) ? 64'd0 : rb_data;
    end

    wire w_slverr = (w_state_q == W_DATA) && w_empty && (w_err_q || (beat_fire && wb_err));
    wire r_slverr = r_done && (r_bad_q || rb_err);
    assign slverr = w_slverr || r_slverr;

endmodule

`default_nettype wire
