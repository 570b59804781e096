// SPDX-License-Identifier: Apache-2.0
// mag_host: host window S_AXI_MEM, an AXI4 slave that is one requester of the
// converged path. One transaction at a time; of AW and AR in idle, AW goes first.
//
// Writes     beats are buffered and requested in pieces of at most PIECE words inside
//            a 4 KiB page, each when its data is complete: a slow host holds nobody.
//            B follows the last response of the memory.
// Reads      pieces are requested when the buffer has room for them, so a host that
//            does not take R holds nobody either. Order of R is address order.
// Errors     a refused burst is consumed or answered in full: DECERR for M_RSVD, M_MESH,
//            M_APER, M_RANGE, SLVERR for M_HOSTX (type or size, looked at first). A bus
//            error is SLVERR on its R beats or on B. Data with an error reads 0.
// Latency    3 cycles from AR to the request on the path; 1 from its data to R.
// Throughput one beat per cycle inside a burst.
// Limits     WLAST is not read, the length is AxLEN's; lanes are chosen by strobes,
//            address bits 4:0 select nothing.
// Parameters as in mag_classify.
// Spec       docs/spec/memory.md 9
`default_nettype none
`include "ktpu_defs.vh"

module mag_host #(
    parameter MESH_ID          = 0,
    parameter DRAM_BYTES_LOG2  = 32,
    parameter STAGE            = 0,
    parameter STAGE_BYTES_LOG2 = 21
) (
    input  wire         clk,
    input  wire         rst_n,

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

    // requester of the converged path (mag_path)
    output wire         rd_valid,
    input  wire         rd_ready,
    output wire [31:0]  rd_word,
    output wire [7:0]   rd_len,
    input  wire         rsp_valid,
    input  wire [255:0] rsp_data,
    input  wire         rsp_err,
    output wire         wr_valid,
    input  wire         wr_ready,
    output wire [31:0]  wr_word,
    output wire [7:0]   wr_len,
    output wire         wd_valid,
    input  wire         wd_ready,
    output wire [255:0] wd_data,
    output wire [31:0]  wd_strb,
    output wire         wd_last,
    input  wire         done_valid,
    input  wire         done_err,

    // a burst was refused or met a bus error
    output wire         bad_valid,
    output wire [3:0]   bad_code,
    output wire [39:0]  bad_addr
);

    localparam [1:0] OKAY = 2'b00, SLVERR = 2'b10, DECERR = 2'b11, INCR = 2'b01;
    localparam [2:0] FULL = 3'd5;
    localparam BUFFER = 64;
    localparam [5:0] PIECE = 6'd32;

    localparam [2:0] S_RESET = 3'd0, S_IDLE = 3'd1, S_CHECK = 3'd2, S_WRITE = 3'd3, S_RESP = 3'd4, S_READ = 3'd5;

    reg  [2:0]  state_q;
    reg         write_q;                // direction of the transaction
    reg  [3:0]  id_q;
    reg  [39:0] addr_q;
    reg  [7:0]  len_q;
    reg         odd_q;                  // unsupported type or size
    reg  [3:0]  code_q;                 // why it was refused
    reg  [31:0] word_q;                 // next word to request
    reg  [8:0]  ask_q;                  // words to request
    reg  [8:0]  beats_q;                // beats the host still has to send or get
    reg         bus_q;                  // a bus error was seen

    wire        aw_take = s_axi_mem_awvalid && s_axi_mem_awready;
    wire        ar_take = s_axi_mem_arvalid && s_axi_mem_arready;
    wire        w_take  = s_axi_mem_wvalid && s_axi_mem_wready;
    wire        r_take  = s_axi_mem_rvalid && s_axi_mem_rready;
    wire        refused = code_q != `KT_M_NONE;

    // ---------------------------------------------------------------- check
    wire [3:0]  addr_code;
    wire [31:0] addr_word;
    wire [8:0]  words = {1'b0, len_q} + 9'd1;
    wire [3:0]  code  = odd_q ? `KT_M_HOSTX : addr_code;

    mag_classify #(
        .MESH_ID          (MESH_ID),
        .DRAM_BYTES_LOG2  (DRAM_BYTES_LOG2),
        .STAGE            (STAGE),
        .STAGE_BYTES_LOG2 (STAGE_BYTES_LOG2),
        .ALIGNED          (0)
    ) u_classify (
        .addr  (addr_q),
        .words ({2'd0, words}),
        .code  (addr_code),
        .word  (addr_word)
    );

    // ---------------------------------------------------------------- pieces
    wire [7:0]  to_page = 8'd128 - {1'b0, word_q[6:0]};
    wire [5:0]  cap     = to_page > {2'd0, PIECE} ? PIECE : to_page[5:0];
    wire [5:0]  piece   = ask_q < {3'd0, cap} ? ask_q[5:0] : cap;
    wire        ask     = ask_q != 9'd0 && !refused;
    wire        grant   = (rd_valid && rd_ready) || (wr_valid && wr_ready);

    // ---------------------------------------------------------------- write data
    wire        buf_room, buf_valid;
    wire [6:0]  buf_level;
    reg  [6:0]  promised_q;             // buffered words that belong to requested pieces
    reg  [4:0]  open_q;                 // pieces without a response
    wire        wd_take = wd_valid && wd_ready;
    wire        wd_more, piece_room;
    wire [5:0]  wd_piece;
    reg  [5:0]  wd_at_q;
    wire [2:0]  piece_level;

    assign wr_valid = state_q == S_WRITE && ask && piece_room && buf_level - promised_q >= {1'b0, piece};
    assign wr_word  = word_q;
    assign wr_len   = {2'd0, piece - 6'd1};

    fifo_sync #(
        .WIDTH (288),
        .DEPTH (BUFFER),
        .PRIM  ("block")
    ) u_write (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (w_take && !refused),
        .in_ready  (buf_room),
        .in_data   ({s_axi_mem_wstrb, s_axi_mem_wdata}),
        .out_valid (buf_valid),
        .out_ready (wd_take),
        .out_data  ({wd_strb, wd_data}),
        .level     (buf_level)
    );

    fifo_sync #(
        .WIDTH (6),
        .DEPTH (4)
    ) u_pieces (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (wr_valid && wr_ready),
        .in_ready  (piece_room),
        .in_data   (piece),
        .out_valid (wd_more),
        .out_ready (wd_take && wd_last),
        .out_data  (wd_piece),
        .level     (piece_level)
    );
    assign wd_valid = wd_more && buf_valid;
    assign wd_last  = wd_at_q == wd_piece - 6'd1;

    always @(posedge clk) begin
        if (!rst_n) begin
            promised_q <= 7'd0;
            wd_at_q    <= 6'd0;
            open_q     <= 5'd0;
        end else begin
            promised_q <= promised_q + (wr_valid && wr_ready ? {1'b0, piece} : 7'd0) - {6'd0, wd_take};
            if (wd_take) wd_at_q <= wd_last ? 6'd0 : wd_at_q + 6'd1;
            open_q <= open_q + {4'd0, wr_valid && wr_ready} - {4'd0, done_valid};
        end
    end

    // ---------------------------------------------------------------- read data
    wire         ret_valid, ret_room, ret_err;
    wire [255:0] ret_data;
    wire [6:0]   ret_level;
    reg  [6:0]   free_q;                // places of the buffer not promised

    assign rd_valid = state_q == S_READ && ask && free_q >= {1'b0, piece};
    assign rd_word  = word_q;
    assign rd_len   = {2'd0, piece - 6'd1};

    fifo_sync #(
        .WIDTH (257),
        .DEPTH (BUFFER),
        .PRIM  ("block")
    ) u_read (
        .clk       (clk),
        .rst_n     (rst_n),
        .in_valid  (rsp_valid),
        .in_ready  (ret_room),
        .in_data   ({rsp_err, rsp_data}),
        .out_valid (ret_valid),
        .out_ready (r_take && !refused),
        .out_data  ({ret_err, ret_data}),
        .level     (ret_level)
    );

    always @(posedge clk) begin
        if (!rst_n) free_q <= BUFFER;
        else free_q <= free_q - (rd_valid && rd_ready ? {1'b0, piece} : 7'd0) + {6'd0, r_take && !refused};
    end

    // ---------------------------------------------------------------- transaction
    wire w_done = beats_q == 9'd0 && (refused || (ask_q == 9'd0 && open_q == 5'd0));
    wire r_done = r_take && s_axi_mem_rlast;

    always @(posedge clk) begin
        if (!rst_n) state_q <= S_RESET;
        else case (state_q)
            S_IDLE:  if (aw_take || ar_take) state_q <= S_CHECK;
            S_CHECK: state_q <= write_q ? S_WRITE : S_READ;
            S_WRITE: if (w_done) state_q <= S_RESP;
            S_RESP:  if (s_axi_mem_bready) state_q <= S_IDLE;
            S_READ:  if (r_done) state_q <= S_IDLE;
            default: state_q <= S_IDLE;
        endcase
        if (aw_take) begin
            write_q <= 1'b1;
            id_q    <= s_axi_mem_awid;
            addr_q  <= s_axi_mem_awaddr;
            len_q   <= s_axi_mem_awlen;
            odd_q   <= s_axi_mem_awburst != INCR || s_axi_mem_awsize != FULL;
        end else if (ar_take) begin
            write_q <= 1'b0;
            id_q    <= s_axi_mem_arid;
            addr_q  <= s_axi_mem_araddr;
            len_q   <= s_axi_mem_arlen;
            odd_q   <= s_axi_mem_arburst != INCR || s_axi_mem_arsize != FULL;
        end
        if (state_q == S_CHECK) begin
            code_q  <= code;
            word_q  <= addr_word;
            ask_q   <= words;
            beats_q <= words;
            bus_q   <= 1'b0;
        end else begin
            if (grant) begin
                word_q <= word_q + {26'd0, piece};
                ask_q  <= ask_q - {3'd0, piece};
            end
            if (w_take || r_take) beats_q <= beats_q - 9'd1;
            if ((done_valid && done_err) || (rsp_valid && rsp_err)) bus_q <= 1'b1;
        end
    end

    wire far = code_q == `KT_M_RSVD || code_q == `KT_M_MESH || code_q == `KT_M_APER || code_q == `KT_M_RANGE;
    wire bus_end = bus_q && ((state_q == S_WRITE && w_done) || (state_q == S_READ && r_done));

    assign s_axi_mem_awready = state_q == S_IDLE;
    assign s_axi_mem_arready = state_q == S_IDLE && !s_axi_mem_awvalid;
    assign s_axi_mem_wready  = state_q == S_WRITE && beats_q != 9'd0 && (refused || buf_room);
    assign s_axi_mem_bvalid  = state_q == S_RESP;
    assign s_axi_mem_bid     = id_q;
    assign s_axi_mem_bresp   = refused ? (far ? DECERR : SLVERR) : bus_q ? SLVERR : OKAY;
    assign s_axi_mem_rvalid  = state_q == S_READ && (refused || ret_valid);
    assign s_axi_mem_rid     = id_q;
    assign s_axi_mem_rdata   = (refused || ret_err) ? 256'd0 : ret_data;
    assign s_axi_mem_rresp   = refused ? (far ? DECERR : SLVERR) : ret_err ? SLVERR : OKAY;
    assign s_axi_mem_rlast   = beats_q == 9'd1;

    assign bad_valid = (state_q == S_CHECK && code != `KT_M_NONE) || bus_end;
    assign bad_code  = state_q == S_CHECK ? code : `KT_M_BUS;
    assign bad_addr  = addr_q;

    wire unused = &{1'b0, s_axi_mem_wlast, ret_room, ret_level, piece_level, to_page[7:6]};

endmodule

`default_nettype wire
