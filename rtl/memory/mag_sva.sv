// SPDX-License-Identifier: Apache-2.0
// Simulation checkers of the memory port, bound to its modules; mag_path_sva.sv has the path.
`default_nettype none
`include "ktpu_defs.vh"

// Intake: the margin never lets a queue overflow; reset state of the link.
module mag_intake_sva (
    input wire clk, rst_n,
    input wire take, is_rd, is_wr, rd_room, wr_room, busy
);
    logic was_reset = 1'b0;
    always @(posedge clk) begin
        was_reset <= !rst_n;
        if (!rst_n && was_reset) assert (busy) else $error("busy low in reset");
        if (rst_n && take && is_rd) assert (rd_room) else $error("read queue overflow");
        if (rst_n && take && is_wr) assert (wr_room) else $error("write queue overflow");
    end
endmodule

// Slots: one open write per source, a slot queued once, nothing lost.
module mag_slots_sva #(parameter WR_SLOTS = 16, parameter SW = 4) (
    input wire clk, rst_n,
    input wire [WR_SLOTS-1:0] used, open,
    input wire [WR_SLOTS*8-1:0] src,
    input wire close, rdy_room, free_en, in_valid, in_ready, h_req, hit,
    input wire [SW-1:0] free_slot
);
    always @(posedge clk) if (rst_n) begin
        for (int a = 0; a < WR_SLOTS; a++)
            for (int b = a + 1; b < WR_SLOTS; b++)
                assert (!(open[a] && open[b] && src[8*a +: 8] == src[8*b +: 8])) else $error("two open writes of a source");
        assert ((open & ~used) == '0) else $error("open slot marked free");
        if (close) assert (rdy_room) else $error("ready queue overflow");
        if (free_en) assert (used[free_slot] && !open[free_slot]) else $error("freed slot %0d was not issued", free_slot);
        // Data never waits; a descriptor waits only for a slot or a cut.
        if (in_valid && !h_req) assert (in_ready) else $error("data flit held");
        if (in_valid && h_req && !in_ready) assert (hit || &used) else $error("descriptor held with a free slot");
    end
endmodule

// Read ring: free + promised + present words are constant.
module mag_read_sva #(parameter RW = 7) (
    input wire clk, rst_n,
    input wire grant, rsp_valid, release_entry,
    input wire [4:0] beats,
    input wire [2:0] job_ew,
    input wire [RW:0] free_words, avail
);
    int flying = 0;
    always @(posedge clk) begin
        if (!rst_n) flying <= 0;
        else begin
            flying <= flying + (grant ? int'(beats) : 0) - int'(rsp_valid);
            assert (int'(free_words) + int'(avail) + flying == (1 << RW)) else $error("ring words lost");
            assert (flying >= 0) else $error("word nobody asked for");
            if (release_entry) assert (int'(avail) >= int'(job_ew)) else $error("released more than present");
            if (grant) assert (beats >= 1 && beats <= 16) else $error("burst length %0d", beats);
        end
    end
endmodule

// Output: a waiting acknowledgement is loaded after at most one response.
module mag_port_sva (
    input wire clk, rst_n,
    input wire load, use_ack, ack_valid, resp_valid
);
    int passed = 0;
    always @(posedge clk) begin
        if (!rst_n || !ack_valid) passed <= 0;
        else if (load) passed <= use_ack ? 0 : passed + 1;
        if (rst_n && load && ack_valid && !use_ack) begin
            assert (resp_valid) else $error("acknowledgement held for nothing");
            assert (passed == 0) else $error("acknowledgement overtaken by two responses");
        end
    end
endmodule

bind mag_intake mag_intake_sva u_sva (.clk, .rst_n, .take, .is_rd, .is_wr, .rd_room, .wr_room, .busy(noc_in_busy));
bind mag_slots mag_slots_sva #(.WR_SLOTS(WR_SLOTS), .SW(SW)) u_sva (
    .clk, .rst_n, .used(used_q), .open(open_q), .src(src_q), .close, .rdy_room, .free_en,
    .in_valid, .in_ready, .h_req, .hit, .free_slot);
bind mag_read mag_read_sva #(.RW(RW)) u_sva (
    .clk, .rst_n, .grant, .rsp_valid, .release_entry, .beats, .job_ew, .free_words(free_q), .avail(avail_q));
bind mag_port mag_port_sva u_sva (.clk, .rst_n, .load, .use_ack, .ack_valid, .resp_valid);

`default_nettype wire
