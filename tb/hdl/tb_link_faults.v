// SPDX-License-Identifier: Apache-2.0
// tb_link_faults: links with one deliberate fault each, and the checker on
// every one of them. Lane 0 has no fault. STOP = 0, so Python reads what the
// checker saw; lane STOP_LANE stops the run instead.
`default_nettype none
`include "ktpu_defs.vh"

module tb_link_faults #(
    parameter STOP_LANE = -1
) (
    input  wire          clk,
    input  wire          rst_n,
    input  wire          hold_reset_rules,  // keep the reset faults of lanes 6 and 7 silent
    output wire [191:0]  failed,            // 16 bits a lane: bit n for property Ln
    output wire [383:0]  errors,
    output wire [31:0]   transfers,         // of lane 0
    output wire [31:0]   back_to_back
);

    localparam LANES = 12;
    genvar g;
    generate
        for (g = 0; g < LANES; g = g + 1) begin : g_lane
            localparam   STUCK = g >= 8 && g <= 10;  // L10, L9, and legal: own outbound blocked
            reg          valid, busy;
            reg          refused;
            reg  [31:0]  count;
            reg  [7:0]   lfsr;
            reg  [287:0] data;

            // A correct sender and receiver; faults are laid over their wires.
            wire moved = valid && !busy;
            always @(posedge clk) begin
                if (!rst_n) begin
                    refused <= 1'b0;
                    valid <= 1'b0;
                    busy  <= 1'b1;
                    count <= 0;
                    lfsr  <= 8'h5A + g;
                end else begin
                    refused <= v && b;
                    lfsr <= {lfsr[6:0], lfsr[7] ^ lfsr[5] ^ lfsr[4] ^ lfsr[3]};
                    busy <= STUCK || lfsr[1:0] == 2'd0;
                    if (!valid || moved) begin
                        valid <= g != 9 && lfsr[4:2] != 3'd0;
                        count <= count + 1;
                        data  <= {8'h12, 8'h21, 4'h8, 8'h00, 1'b0, 3'd0, 224'd0, count};
                    end
                end
            end

            reg          v, b;
            reg  [287:0] d;
            reg          blocked;
            always @* begin
                v = valid;
                b = busy;
                d = data;
                blocked = 1'b0;
                case (g)
                    1: v = valid && !refused;                                 // L1 withdraws
                    2: d[5] = data[5] ^ (busy && count[3]);                   // L2 changes
                    3: d[`KT_FLIT_SRC_X] = (count[4:0] == 5'd20) ? 4'h3 : 4'h2;      // L11
                    4: d[`KT_FLIT_TYPE] = (count[4:0] == 5'd20) ? 4'h2 : 4'h8;       // L12 type of memory
                    5: d[`KT_FLIT_RSVD] = (count[4:0] == 5'd20) ? 3'd1 : 3'd5;       // L12 rsvd
                    6: v = valid || (!rst_n && !hold_reset_rules);            // L8 sender
                    7: b = busy && (rst_n || hold_reset_rules);               // L8 receiver
                    10: blocked = 1'b1;
                    11: d[`KT_FLIT_TYPE] = (count[4:0] == 5'd20) ? 4'h9 : 4'h8;      // L12 unallocated type
                    default: ;
                endcase
            end

            link_checker #(
                .STOP     (g == STOP_LANE),
                .ROLE     (g == 11 ? 3 : 1),
                .SRC_X    (2),
                .SRC_Y    (1),
                .MAX_BUSY (g == 9 ? 0 : 500)
            ) u_chk (
                .clk             (clk),
                .rst_n           (rst_n),
                .valid           (v),
                .busy            (b),
                .data            (d),
                .own_out_blocked (blocked)
            );
            assign failed[16*g +: 16] = u_chk.failed;
            assign errors[32*g +: 32] = u_chk.errors;
        end
    endgenerate

    assign transfers    = g_lane[0].u_chk.transfers;
    assign back_to_back = g_lane[0].u_chk.back_to_back;

endmodule

`default_nettype wire
