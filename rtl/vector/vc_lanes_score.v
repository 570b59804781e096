// SPDX-License-Identifier: Apache-2.0
// vc_lanes_score: which registers have writes in flight (docs/spec/vector.md 13.2).
//
// Groups are written in the order of their issue, so a register is known by its
// latest writer. Two marks: `fresh` until the first beat of that writer is
// written, after which a reader that goes through the chunks no faster than the
// writer may start; `busy` until its last beat is written. A later writer takes
// a register over without waiting.
//
// At most 31 writers may be in flight.
`default_nettype none

module vc_lanes_score (
    input  wire        clk,
    input  wire        rst_n,

    input  wire        set,             // a group that writes is accepted
    input  wire        set_pred,        // it writes a predicate
    input  wire [3:0]  set_reg,

    input  wire        first,           // the group of `reg` begins to be written in the next cycle
    input  wire        last,            // its last beat is written in the next cycle
    input  wire        rel_pred,
    input  wire [3:0]  rel_reg,

    output wire [15:0] v_fresh,
    output wire [15:0] v_busy,
    output wire [3:0]  p_busy
);

    reg [4:0] set_id_q, rel_id_q, p_last_id_q;
    reg       p_last_q;
    reg [1:0] p_last_reg_q;

    // `first` opens the next number, the other beats of the group use it too.
    wire [4:0] rel_id = rel_id_q + {4'd0, first};

    always @(posedge clk) begin
        if (!rst_n) begin
            set_id_q <= 5'd1;
            rel_id_q <= 5'd0;
            p_last_q <= 1'b0;
        end else begin
            if (set) set_id_q <= set_id_q + 5'd1;
            rel_id_q <= rel_id;
            // A predicate is readable one cycle after its write.
            p_last_q <= last && rel_pred;
        end
        p_last_reg_q <= rel_reg[1:0];
        p_last_id_q  <= rel_id;
    end

    genvar r;
    generate
        for (r = 0; r < 16; r = r + 1) begin : g_v
            reg       fresh_q, busy_q;
            reg [4:0] id_q;
            wire      mine = !rel_pred && rel_reg == r && id_q == rel_id;
            always @(posedge clk) begin
                if (!rst_n) begin
                    fresh_q <= 1'b0;
                    busy_q  <= 1'b0;
                end else if (set && !set_pred && set_reg == r) begin
                    fresh_q <= 1'b1;
                    busy_q  <= 1'b1;
                    id_q    <= set_id_q;
                end else begin
                    if (first && mine) fresh_q <= 1'b0;
                    if (last && mine) busy_q <= 1'b0;
                end
            end
            assign v_fresh[r] = fresh_q;
            assign v_busy[r]  = busy_q;
        end
        for (r = 0; r < 4; r = r + 1) begin : g_p
            reg       busy_q;
            reg [4:0] id_q;
            always @(posedge clk) begin
                if (!rst_n) begin
                    busy_q <= 1'b0;
                end else if (set && set_pred && set_reg[1:0] == r) begin
                    busy_q <= 1'b1;
                    id_q   <= set_id_q;
                end else if (p_last_q && p_last_reg_q == r && id_q == p_last_id_q) begin
                    busy_q <= 1'b0;
                end
            end
            assign p_busy[r] = busy_q;
        end
    endgenerate

endmodule

`default_nettype wire
