// SPDX-License-Identifier: Apache-2.0
// Bench top of the memory agent: mag on axi_dram_model, a flit player on its
// inbound link and a recorder on its outbound link and on the address channels. The
// host window is a port of the top; a player writes the mover's registers.
// Python loads a script (stim.hex), strobes play and wakes once at done.
//
// stim.hex  one line a flit: {acks[15:0], gap[15:0], flit[287:0]}; a flit is
//           offered `gap` cycles after its predecessor's transfer and not before
//           `acks` acknowledgements have left since play.
// cap.hex   one line an outbound flit: {cycle[31:0], flit}
// ax.hex    one line a bus request in order: {write, cycle[31:0], len[7:0], addr[39:0]}
// aux.hex   one line a register write of the mover: {gap[7:0], offset[7:0], data[63:0]}
`default_nettype none
`include "ktpu_defs.vh"
module tb_mag #(
    parameter DRAM_LOG2  = 18,
    parameter RD_OUT     = 4,
    parameter WR_SLOTS   = 16,
    parameter MESH_ID    = 0,
    parameter PORT_X     = 0,
    parameter PORT_Y     = 1,
    parameter SINGLE     = 0,
    parameter STAGE      = 0,
    parameter STAGE_ENTRIES = 16384,
    parameter STAGE_PIPE = 1,
    parameter HOST       = 0,
    parameter MOVER      = 0,
    parameter XFORM_GRANULE = 0
) (
    input  wire        clk,
    input  wire        rst_n,
    input  wire [3:0]   s_axi_mem_awid,
    input  wire [39:0]  s_axi_mem_awaddr,
    input  wire [7:0]   s_axi_mem_awlen,
    input  wire [2:0]   s_axi_mem_awsize,
    input  wire [1:0]   s_axi_mem_awburst,
    input  wire         s_axi_mem_awvalid,
    output wire         s_axi_mem_awready,
    input  wire [255:0] s_axi_mem_wdata,
    input  wire [31:0]  s_axi_mem_wstrb,
    input  wire         s_axi_mem_wlast,
    input  wire         s_axi_mem_wvalid,
    output wire         s_axi_mem_wready,
    output wire [3:0]   s_axi_mem_bid,
    output wire [1:0]   s_axi_mem_bresp,
    output wire         s_axi_mem_bvalid,
    input  wire         s_axi_mem_bready,
    input  wire [3:0]   s_axi_mem_arid,
    input  wire [39:0]  s_axi_mem_araddr,
    input  wire [7:0]   s_axi_mem_arlen,
    input  wire [2:0]   s_axi_mem_arsize,
    input  wire [1:0]   s_axi_mem_arburst,
    input  wire         s_axi_mem_arvalid,
    output wire         s_axi_mem_arready,
    output wire [3:0]   s_axi_mem_rid,
    output wire [255:0] s_axi_mem_rdata,
    output wire [1:0]   s_axi_mem_rresp,
    output wire         s_axi_mem_rlast,
    output wire         s_axi_mem_rvalid,
    input  wire         s_axi_mem_rready,
    input  wire         aux_play,     // rising edge loads aux.hex and starts
    input  wire [15:0]  n_aux,        // register writes of the script
    output reg          aux_done,     // all taken and the mover not busy
    output reg  [31:0]  aux_held,     // cycles in which a write was held
    output reg  [31:0]  aux_early,    // GO writes that were not followed by busy
    output wire         aux_present,
    output wire [63:0]  aux_stat,
    input  wire        mreg_en,
    input  wire        mreg_we,
    input  wire [6:0]  mreg_addr,
    input  wire [63:0] mreg_wdata,
    output wire        mreg_present,
    output wire [63:0] mreg_rdata,
    output wire        mreg_err,
    input  wire        ctrl_drop_in,
    input  wire        remote_drop_in,

    input  wire [6:0]  busy_pct,      // percent of cycles the outbound link is held
    input  wire [31:0] lfsr_seed,
    input  wire        play,          // rising edge loads stim.hex and starts
    input  wire        dump,          // rising edge writes cap.hex and ax.hex
    input  wire [15:0] n_play,        // flits of the script, taken with play
    input  wire [31:0] goal,          // outbound flits that end the run
    output reg         done,
    output reg  [31:0] n_cap,
    output reg  [31:0] n_ax,
    output reg  [31:0] first_in,      // cycle of the first and last inbound transfer
    output reg  [31:0] last_in,
    output reg  [31:0] n_lost,
    output reg  [31:0] n_held         // cycles in which an offered flit was held
);
    localparam STIM = 8192;
    localparam CAP  = 65536;
    localparam AX   = 16384;
    localparam AUX  = 8192;

    reg [319:0] stim [0:STIM-1];
    reg [319:0] cap  [0:CAP-1];
    reg [80:0]  ax   [0:AX-1];

    // ---------------------------------------------------------------- links
    reg          in_valid;
    reg  [287:0] in_data;
    wire         in_busy;
    wire         out_valid;
    wire [287:0] out_data;
    reg          out_busy;
    wire         lost;

    reg  [15:0]  at, n_q, gap_left;
    reg          running, play_q;
    reg  [31:0]  cycle, lfsr;
    reg  [15:0]  acks;
    wire [319:0] nxt = stim[at[12:0]];
    wire         out_take = out_valid && !out_busy;
    wire [7:0]   draw = {1'b0, lfsr[15:9]};

    always @(posedge clk) begin
        cycle  <= cycle + 32'd1;
        play_q <= play;
        lfsr   <= {lfsr[30:0], lfsr[31] ^ lfsr[21] ^ lfsr[1] ^ lfsr[0]};
        if (!rst_n) begin
            in_valid <= 1'b0; running <= 1'b0; done <= 1'b0; at <= 16'd0; n_q <= 16'd0; gap_left <= 16'd0;
            cycle <= 32'd0; acks <= 16'd0; n_cap <= 32'd0; n_ax <= 32'd0; lfsr <= 32'h1;
            first_in <= 32'd0; last_in <= 32'd0; n_lost <= 32'd0; n_held <= 32'd0; out_busy <= 1'b1;
        end else begin
            // 127 steps of the draw against a percentage scaled to 128.
            out_busy <= draw < {1'b0, busy_pct} + {3'd0, busy_pct[6:2]};
            if (play && !play_q) begin
                $readmemh("stim.hex", stim);
                running <= 1'b1; done <= 1'b0; at <= 16'd0; n_q <= n_play; acks <= 16'd0;
                n_cap <= 32'd0; n_ax <= 32'd0; n_lost <= 32'd0; n_held <= 32'd0; gap_left <= 16'd0;
                lfsr <= lfsr_seed | 32'd1;
            end else begin
                if (running && in_valid && !in_busy) begin
                    if (at == 16'd1) first_in <= cycle;
                    last_in <= cycle;
                end
                if (in_valid && in_busy) n_held <= n_held + 32'd1;
                if (!in_valid || !in_busy) begin
                    in_valid <= 1'b0;
                    if (running && at != n_q) begin
                        if (gap_left < nxt[303:288]) gap_left <= gap_left + 16'd1;
                        else if (acks >= nxt[319:304]) begin
                            in_valid <= 1'b1;
                            in_data  <= nxt[287:0];
                            at       <= at + 16'd1;
                            gap_left <= 16'd0;
                        end
                    end
                end
                if (out_take) begin
                    cap[n_cap[15:0]] <= {cycle, out_data};
                    n_cap <= n_cap + 32'd1;
                    if (out_data[`KT_FLIT_TYPE] == `KT_TYPE_MEM_WR_ACK) acks <= acks + 16'd1;
                end
                if (aw_take && ar_take) ax[n_ax[13:0] + 14'd1] <= {1'b0, cycle, ar_len, ar_addr};
                if (aw_take) ax[n_ax[13:0]] <= {1'b1, cycle, aw_len, aw_addr};
                else if (ar_take) ax[n_ax[13:0]] <= {1'b0, cycle, ar_len, ar_addr};
                n_ax <= n_ax + {31'd0, aw_take} + {31'd0, ar_take};
                if (lost) n_lost <= n_lost + 32'd1;
                done <= running && at == n_q && !in_valid && n_cap >= goal;
            end
        end
    end

    always @(posedge dump) begin
        $writememh("cap.hex", cap, 0, n_cap == 0 ? 0 : n_cap - 1);
        $writememh("ax.hex", ax, 0, n_ax == 0 ? 0 : n_ax - 1);
    end

    // ---------------------------------------------------------------- mover
    reg  [79:0] aux [0:AUX-1];
    reg  [15:0] aux_at, aux_n;
    reg         aux_valid, aux_run, aux_play_q;
    reg  [7:0]  aux_addr, aux_gap;
    reg  [63:0] aux_data;
    reg  [2:0]  aux_quiet;
    reg         aux_owed;             // a GO was taken in the cycle before
    wire        aux_ready;
    wire [63:0] aux_stat_q;
    wire [79:0] aux_next = aux[aux_at[12:0]];

    always @(posedge clk) begin
        aux_play_q <= aux_play;
        if (!rst_n) begin
            aux_valid <= 1'b0; aux_run <= 1'b0; aux_at <= 16'd0; aux_done <= 1'b0; aux_quiet <= 3'd0;
            aux_gap <= 8'd0; aux_held <= 32'd0; aux_early <= 32'd0; aux_owed <= 1'b0;
        end else if (aux_play && !aux_play_q) begin
            $readmemh("aux.hex", aux);
            aux_run <= 1'b1; aux_at <= 16'd0; aux_n <= n_aux; aux_done <= 1'b0; aux_quiet <= 3'd0; aux_gap <= 8'd0;
            aux_held <= 32'd0; aux_early <= 32'd0;
        end else begin
            if (aux_valid && !aux_ready) aux_held <= aux_held + 32'd1;
            if (!aux_valid || aux_ready) begin
                aux_valid <= 1'b0;
                if (aux_run && aux_at != aux_n) begin
                    if (aux_gap != aux_next[79:72]) aux_gap <= aux_gap + 8'd1;
                    else begin
                        aux_valid <= 1'b1;
                        aux_addr  <= aux_next[71:64];
                        aux_data  <= aux_next[63:0];
                        aux_at    <= aux_at + 16'd1;
                        aux_gap   <= 8'd0;
                    end
                end
            end
            aux_owed <= aux_valid && aux_ready && aux_addr == 8'd0 && aux_data[16];
            if (aux_owed && !aux_stat[0]) aux_early <= aux_early + 32'd1;
            aux_quiet <= (aux_run && aux_at == aux_n && !aux_valid && !aux_stat[0]) ? aux_quiet + {2'd0, !(&aux_quiet)} : 3'd0;
            aux_done  <= &aux_quiet;
        end
    end

    // ---------------------------------------------------------------- bus
    wire [3:0]   aw_id, ar_id, b_id, r_id, cache_w, cache_r, qos_w, qos_r, region_w, region_r;
    wire [39:0]  aw_addr, ar_addr;
    wire [7:0]   aw_len, ar_len;
    wire [2:0]   aw_size, ar_size, prot_w, prot_r;
    wire [1:0]   aw_burst, ar_burst, b_resp, r_resp;
    wire         aw_valid, aw_ready, ar_valid, ar_ready, w_valid, w_ready, w_last, lock_w, lock_r;
    wire         b_valid, b_ready, r_valid, r_ready, r_last;
    wire [255:0] w_data, r_data;
    wire [31:0]  w_strb;
    wire         aw_take = aw_valid && aw_ready;
    wire         ar_take = ar_valid && ar_ready;

    mag #(
        .MESH_ID         (MESH_ID),
        .PORT0_X         (PORT_X),
        .PORT0_Y         (PORT_Y),
        .WR_SLOTS        (WR_SLOTS),
        .DRAM_BYTES_LOG2 (DRAM_LOG2),
        .STAGE           (STAGE),
        .STAGE_ENTRIES   (STAGE_ENTRIES),
        .STAGE_PIPE      (STAGE_PIPE),
        .HOST            (HOST),
        .MOVER           (MOVER),
        .XFORM_GRANULE   (XFORM_GRANULE),
        .RD_OUT          (RD_OUT)
    ) u_mag (
        .clk                 (clk),
        .rst_n               (rst_n),
        .noc_in_valid        (in_valid),
        .noc_in_data         (in_data),
        .noc_in_busy         (in_busy),
        .noc_out_valid       (out_valid),
        .noc_out_data        (out_data),
        .noc_out_busy        (out_busy),
        .m_axi_dram_awid     (aw_id),
        .m_axi_dram_awaddr   (aw_addr),
        .m_axi_dram_awlen    (aw_len),
        .m_axi_dram_awsize   (aw_size),
        .m_axi_dram_awburst  (aw_burst),
        .m_axi_dram_awlock   (lock_w),
        .m_axi_dram_awcache  (cache_w),
        .m_axi_dram_awprot   (prot_w),
        .m_axi_dram_awqos    (qos_w),
        .m_axi_dram_awregion (region_w),
        .m_axi_dram_awvalid  (aw_valid),
        .m_axi_dram_awready  (aw_ready),
        .m_axi_dram_wdata    (w_data),
        .m_axi_dram_wstrb    (w_strb),
        .m_axi_dram_wlast    (w_last),
        .m_axi_dram_wvalid   (w_valid),
        .m_axi_dram_wready   (w_ready),
        .m_axi_dram_bid      (b_id),
        .m_axi_dram_bresp    (b_resp),
        .m_axi_dram_bvalid   (b_valid),
        .m_axi_dram_bready   (b_ready),
        .m_axi_dram_arid     (ar_id),
        .m_axi_dram_araddr   (ar_addr),
        .m_axi_dram_arlen    (ar_len),
        .m_axi_dram_arsize   (ar_size),
        .m_axi_dram_arburst  (ar_burst),
        .m_axi_dram_arlock   (lock_r),
        .m_axi_dram_arcache  (cache_r),
        .m_axi_dram_arprot   (prot_r),
        .m_axi_dram_arqos    (qos_r),
        .m_axi_dram_arregion (region_r),
        .m_axi_dram_arvalid  (ar_valid),
        .m_axi_dram_arready  (ar_ready),
        .m_axi_dram_rid      (r_id),
        .m_axi_dram_rdata    (r_data),
        .m_axi_dram_rresp    (r_resp),
        .m_axi_dram_rlast    (r_last),
        .m_axi_dram_rvalid   (r_valid),
        .m_axi_dram_rready   (r_ready),
        .s_axi_mem_awid       (s_axi_mem_awid),
        .s_axi_mem_awaddr     (s_axi_mem_awaddr),
        .s_axi_mem_awlen      (s_axi_mem_awlen),
        .s_axi_mem_awsize     (s_axi_mem_awsize),
        .s_axi_mem_awburst    (s_axi_mem_awburst),
        .s_axi_mem_awvalid    (s_axi_mem_awvalid),
        .s_axi_mem_awready    (s_axi_mem_awready),
        .s_axi_mem_wdata      (s_axi_mem_wdata),
        .s_axi_mem_wstrb      (s_axi_mem_wstrb),
        .s_axi_mem_wlast      (s_axi_mem_wlast),
        .s_axi_mem_wvalid     (s_axi_mem_wvalid),
        .s_axi_mem_wready     (s_axi_mem_wready),
        .s_axi_mem_bid        (s_axi_mem_bid),
        .s_axi_mem_bresp      (s_axi_mem_bresp),
        .s_axi_mem_bvalid     (s_axi_mem_bvalid),
        .s_axi_mem_bready     (s_axi_mem_bready),
        .s_axi_mem_arid       (s_axi_mem_arid),
        .s_axi_mem_araddr     (s_axi_mem_araddr),
        .s_axi_mem_arlen      (s_axi_mem_arlen),
        .s_axi_mem_arsize     (s_axi_mem_arsize),
        .s_axi_mem_arburst    (s_axi_mem_arburst),
        .s_axi_mem_arvalid    (s_axi_mem_arvalid),
        .s_axi_mem_arready    (s_axi_mem_arready),
        .s_axi_mem_rid        (s_axi_mem_rid),
        .s_axi_mem_rdata      (s_axi_mem_rdata),
        .s_axi_mem_rresp      (s_axi_mem_rresp),
        .s_axi_mem_rlast      (s_axi_mem_rlast),
        .s_axi_mem_rvalid     (s_axi_mem_rvalid),
        .s_axi_mem_rready     (s_axi_mem_rready),
        .aux_valid            (aux_valid),
        .aux_addr             (aux_addr),
        .aux_data             (aux_data),
        .aux_stat_sel         (4'd15),
        .aux_ready            (aux_ready),
        .aux_present          (aux_present),
        .aux_stat             (aux_stat),
        .aux_stat_q           (aux_stat_q),
        .mreg_en             (mreg_en),
        .mreg_we             (mreg_we),
        .mreg_addr           (mreg_addr),
        .mreg_wdata          (mreg_wdata),
        .mreg_present        (mreg_present),
        .mreg_rdata          (mreg_rdata),
        .mreg_err            (mreg_err),
        .ctrl_drop_in        (ctrl_drop_in),
        .remote_drop_in      (remote_drop_in),
        .lost                (lost)
    );

    axi_dram_model #(
        .WORDS  (1 << (DRAM_LOG2 - 5)),
        .SINGLE (SINGLE)
    ) u_dram (
        .clk           (clk),
        .rst_n         (rst_n),
        .s_axi_awid    (aw_id),
        .s_axi_awaddr  (aw_addr),
        .s_axi_awlen   (aw_len),
        .s_axi_awsize  (aw_size),
        .s_axi_awburst (aw_burst),
        .s_axi_awvalid (aw_valid),
        .s_axi_awready (aw_ready),
        .s_axi_wdata   (w_data),
        .s_axi_wstrb   (w_strb),
        .s_axi_wlast   (w_last),
        .s_axi_wvalid  (w_valid),
        .s_axi_wready  (w_ready),
        .s_axi_bid     (b_id),
        .s_axi_bresp   (b_resp),
        .s_axi_bvalid  (b_valid),
        .s_axi_bready  (b_ready),
        .s_axi_arid    (ar_id),
        .s_axi_araddr  (ar_addr),
        .s_axi_arlen   (ar_len),
        .s_axi_arsize  (ar_size),
        .s_axi_arburst (ar_burst),
        .s_axi_arvalid (ar_valid),
        .s_axi_arready (ar_ready),
        .s_axi_rid     (r_id),
        .s_axi_rdata   (r_data),
        .s_axi_rresp   (r_resp),
        .s_axi_rlast   (r_last),
        .s_axi_rvalid  (r_valid),
        .s_axi_rready  (r_ready)
    );

    wire unused = &{1'b0, lock_w, cache_w, prot_w, qos_w, region_w, lock_r, cache_r, prot_r, qos_r, region_r,
                    aux_stat_q};
endmodule
`default_nettype wire
