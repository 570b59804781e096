# SPDX-License-Identifier: Apache-2.0
"""The vector core with MX_STORE = 1: VDRAIN that quantises, against the functional model (docs/spec/vector.md 15)."""

import cocotb

from benches.vc_core_rig import CTRL, OWN, Rig
from benches.vc_core_t_programs import random_words  # noqa: F401
from benches.vc_mx_rig import ENTRY, LAYOUTS, drain, entries
from benches.vc_mx_t_checks import *  # noqa: F403
from benches.vc_mx_t_drain import *  # noqa: F403
from benches.vc_mx_t_flow import *  # noqa: F403
from kohakubench import Bench, checks, clocks, seed
from kohakubench import quant_corpus as corpus
from kohakubench.vector_programs import TARGET
from kohakutpu.isa import message
from kohakutpu.isa.codec import codec
from kohakutpu.isa.generated import ControlIndex, MessageType

MX, DRAIN, CTL, MEM, CORE = (f"rtl/vector/vc_{part}.v" for part in ("mem_mx", "mem_drain", "mem_ctl", "mem", "core"))

BENCH = Bench(
    name="vc_mx_store",
    top="tb_vc_core",
    sources=[
        "rtl/common/*.v",
        "rtl/control/cu_*.v",
        "rtl/control/cud_rx.v",
        "rtl/memory/mag_quant*.v",
        "rtl/vector/*.v",
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/vc_mem_agent.v",
        "tb/hdl/tb_vc_core.v",
        "tb/hdl/tb_vc_core_links.sv",
    ],
    params={"MX_STORE": 1},
    variants={"latencies": {"L1_LAT": 2, "ALAT": 18}},
    slow_variants=("latencies",),
    timeout_cycles=50_000_000,
    wall_s=3600,
    mutations={
        "no_room": (MX, "(asked_q != 3'd7) || (inside_q != 2'd3)", "1'b1"),
        "room_of_one": (MX, "(asked_q != 3'd7) || (inside_q != 2'd3)", "(asked_q != 3'd7) || (inside_q == 2'd0)"),
        "words_swapped": (MX, "part_q[1] ? (part_q[0]", "part_q[0] ? (part_q[1]"),
        "one_packing": (DRAIN, "(buffer[0])", "(1'b0)"),
        "entry_of_three": (DRAIN, "!mx || (part_q == 2'd3)", "!mx || (part_q[1])"),
        "lost_carry": (DRAIN, "{1'b0, next_q} : walk_addr", "{2'b00, next_q[39:0]} : walk_addr"),
        "entry_stays": (DRAIN, "(rst_n && !done),\n                .pack", "(rst_n),\n                .pack"),
        "mixed_place": (DRAIN, "if (!rst_n || start) part_q", "if (!rst_n) part_q"),
        "silent_special": (DRAIN, "queue_head[256] && sent_word", "1'b0"),
        "special_ahead": (DRAIN, "queue_head[256] && sent_word", "mx_special && mx_valid && mx"),
        "peer_length": (DRAIN, "mx ? {1'b0, n[8:1]} : n;", "n;"),
        "open_early": (DRAIN, "(node || whole) && (!mx || word_valid)", "(node || whole)"),
        "peer_end": (CTL, "mx ? {1'b0, n[8:1]} : n", "n"),
        "any_command": (CTL, "(op_q == VDRAIN) && word_q", "word_q"),
        "third_packing": (CTL, "buffer[3:1] != 3'd0", "buffer[3:2] != 2'd0"),
        "no_packing_at_a_peer": (CTL, "!one_dim || no_pack", "!one_dim"),
        "entries_33": (MEM, "walk_n > 9'd32", "walk_n > 9'd33"),
        "range_of_entries": (MEM, ".ask_n      (n),", ".ask_n      (walk_n),"),
        "capability": (CORE, ".FEATURES     (MX_STORE)", ".FEATURES     (0)"),
    },
    mutation_tests={
        "no_room": ["blocked_link"],
        "room_of_one": ["cycles_of_a_drain"],
        "words_swapped": ["published"],
        "one_packing": ["published"],
        "entry_of_three": ["walks"],
        "lost_carry": ["edges_of_memory"],
        "entry_stays": ["edges_of_memory"],
        "mixed_place": ["edges_of_memory"],
        "silent_special": ["special_elements"],
        "special_ahead": ["special_elements"],
        "peer_length": ["peers"],
        "open_early": ["cycles_of_a_drain"],
        "peer_end": ["limits"],
        "any_command": ["random_programs"],
        "third_packing": ["limits"],
        "no_packing_at_a_peer": ["limits"],
        "entries_33": ["limits"],
        "range_of_entries": ["outstanding_words"],
        "capability": ["published"],
    },
)


@cocotb.test()
async def published(dut):
    """The known answers of the quantiser in both packings, as they are written there; the capability bit."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    want = []
    for layout in LAYOUTS:
        codes, words = corpus.published(layout)
        entries(rig, codes)
        rig.describe(0, TARGET + 0x4000 * layout, (ENTRY, len(codes)))
        rig.text(drain(layout))
        rig.go()
        want.append((rig.network.memory[(TARGET + 0x4000 * layout) // 32 :][: 4 * len(codes)], words))
    rig.stray(message.encode("CU_CTRL_REQ", dst=OWN, src=CTRL, index=ControlIndex.CU_CAPS), done=len(rig.inst))
    t = await rig.run()
    for got, words in want:
        checks.arrays("published words", got.reshape(-1, ENTRY), words)
    caps = message.decode(t.of(MessageType.CU_CTRL)[0]).fields["value"]
    checks.equal("CU_CAPS", caps, rig.shell.register(ControlIndex.CU_CAPS))
    checks.equal("feature bit", codec("CU_CAPS").decode(caps)["features"], 1)
