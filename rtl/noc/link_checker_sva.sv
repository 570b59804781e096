// SPDX-License-Identifier: Apache-2.0
// link_checker: properties L1-L3, L7-L12 and L14 of one link direction,
// docs/spec/fabric.md 2.2. Simulation only.
//
// A violation adds to errors, sets bit n of failed for property Ln, and with
// STOP = 1 ends the run with a message that names property, instance and cycle.
// transfers and back_to_back count what L5 and L14 are about: flits handed over,
// and flits handed over in the cycle after another one. L5 and L13 need both
// ends of a path (scoreboards); L4 and L6 are proven on the netlist, since a
// clocked observer cannot see a combinational path.
//
// ROLE      0 router or slice sends: no claim about the header
//           1 compute unit, 2 memory port, 3 any endpoint (types 0x0-0x8)
//           4 mailbox or interlink: header not checked (exceptions of L11, L12)
// SRC_X/Y   coordinate of the sender, checked in roles 1-3
// MAX_BUSY  cycles of busy (own_out_blocked = 0) that count as a hang; 0: off
// RECOVER   cycles from reset release until an idle receiver must be ready
`default_nettype none
`include "ktpu_defs.vh"

/* verilator lint_off DECLFILENAME */
module link_checker #(
/* verilator lint_on DECLFILENAME */
    parameter int       STOP     = 1,
    parameter int       ROLE     = 0,
    parameter int       SRC_X    = 0,
    parameter int       SRC_Y    = 0,
    parameter int       MAX_BUSY = `KT_MAX_BUSY,
    parameter int       RECOVER  = 300
) (
    input wire                  clk,
    input wire                  rst_n,
    input wire                  valid,
    input wire                  busy,
    input wire [`KT_FLIT_W-1:0] data,
    // 1 while the receiving endpoint's own outbound link is blocked: that is a
    // legal reason for its busy (L10)
    input wire                  own_out_blocked = 1'b0
);

    int unsigned errors       /*verilator public_flat_rd*/;
    bit [15:0]   failed       /*verilator public_flat_rd*/;
    int unsigned transfers    /*verilator public_flat_rd*/;
    int unsigned back_to_back /*verilator public_flat_rd*/;

    localparam bit [15:0] UNIT_TYPES   = 16'h01D3;  // RD_REQ, WR_REQ, WR_DATA, SIGNAL, CTRL, DATA
    localparam bit [15:0] MEMORY_TYPES = 16'h000C;  // RD_RESP, WR_ACK
    localparam bit [15:0] ANY_TYPES    = 16'h01FF;
    localparam bit [15:0] TYPES = (ROLE == 1) ? UNIT_TYPES : (ROLE == 2) ? MEMORY_TYPES : ANY_TYPES;
    localparam bit        HEADER = ROLE >= 1 && ROLE <= 3;
    localparam bit [7:0]  SRC = {SRC_X[3:0], SRC_Y[3:0]};

    longint unsigned       cycle;
    bit                    reset_seen;       // rst_n was 0 at the previous edge
    bit                    held;             // the previous edge offered and was refused
    bit                    moved;
    bit [`KT_FLIT_W-1:0]   held_data;
    int unsigned           busy_for;
    int                    recover_left;

    function automatic void fail(input int id, input string what);
        errors = errors + 1;
        failed[id[3:0]] = 1'b1;
        if (STOP != 0)
            $error("link property L%0d violated at %m, cycle %0d: %s", id, cycle, what);
        else
            $display("link property L%0d violated at %m, cycle %0d: %s", id, cycle, what);
    endfunction

    function automatic bit rsvd_legal(input bit [3:0] kind, input bit [2:0] rsvd);
        case (kind)
            `KT_TYPE_MEM_RD_RESP: return 1'b1;
            `KT_TYPE_CU_DATA:     return rsvd == 3'd0 || rsvd[2];
            default:              return rsvd == 3'd0;
        endcase
    endfunction

    always @(posedge clk) begin
        cycle <= cycle + 1;
        reset_seen <= !rst_n;
        if (!rst_n) begin
            held <= 0;
            moved <= 0;
            busy_for <= 0;
            recover_left <= RECOVER;
            if (reset_seen && valid) fail(8, "valid is 1 in reset");
            if (reset_seen && !busy) fail(8, "busy is 0 in reset");
        end else begin
            if ($isunknown(valid)) fail(3, "valid is X");
            if ($isunknown(busy)) fail(7, "busy is X");
            if (valid && $isunknown(data)) fail(3, $sformatf("offered data has X bits: %h", data));
            if (held && !valid) fail(1, "an offered flit was withdrawn");
            if (held && valid && data != held_data)
                fail(2, $sformatf("an offered flit changed from %h to %h", held_data, data));

            held <= valid && busy;
            if (valid && busy && !held) held_data <= data;

            moved <= valid && !busy;
            if (valid && !busy) begin
                transfers <= transfers + 1;
                if (moved) back_to_back <= back_to_back + 1;
            end

            if (!busy || valid) recover_left <= 0;
            else if (recover_left > 0) begin
                recover_left <= recover_left - 1;
                if (recover_left == 1) fail(9, $sformatf("busy %0d cycles after reset, nothing offered", RECOVER));
            end

            if (!busy || own_out_blocked) busy_for <= 0;
            else begin
                busy_for <= busy_for + 1;
                if (MAX_BUSY != 0 && busy_for + 1 == MAX_BUSY)
                    fail(10, $sformatf("busy for %0d cycles", MAX_BUSY));
            end

            // a flit that waits was checked when it appeared
            if (HEADER && valid && !held) begin
                if ({data[`KT_FLIT_SRC_X], data[`KT_FLIT_SRC_Y]} != SRC)
                    fail(11, $sformatf("source (%0d, %0d) is not the sender", data[`KT_FLIT_SRC_X],
                                       data[`KT_FLIT_SRC_Y]));
                if (!TYPES[data[`KT_FLIT_TYPE]])
                    fail(12, $sformatf("type %h is not one of this role", data[`KT_FLIT_TYPE]));
                if (!rsvd_legal(data[`KT_FLIT_TYPE], data[`KT_FLIT_RSVD]))
                    fail(12, $sformatf("rsvd %b with type %h", data[`KT_FLIT_RSVD], data[`KT_FLIT_TYPE]));
            end
        end
    end

endmodule

`default_nettype wire
