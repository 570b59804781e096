# SPDX-License-Identifier: Apache-2.0
"""Two clusters on one mesh: peers, load, compiled products and illegal programs.

Every link carries a checker. The tests stand in ``mesh_duo_peer``, ``mesh_duo_load`` and
``mesh_duo_replay``.
"""

from dataclasses import replace

from benches.mesh_duo_load import *  # noqa: F403
from benches.mesh_duo_peer import *  # noqa: F403
from benches.mesh_duo_replay import *  # noqa: F403
from kohakubench.machines import PUBLIC, machine_bench

BENCH = machine_bench(
    "mesh_duo",
    "mesh_duo",
    timeout_cycles=4_000_000,
    wall_s=1800,
    mutations={
        "watchdog_off": ("rtl/matmul/mg_peer.v", "(WDOG != 0) && open_q", "1'b0 && (WDOG != 0) && open_q"),
        "peer_offset": (
            "rtl/matmul/mg_burst.v",
            "{tail_q[23:16], addr_q[20:5], 5'd0",
            "{tail_q[23:16], 8'd0, addr_q[12:5], 5'd0",
        ),
        "fault_credit": (
            "rtl/control/orch_mirror.v",
            "((s1_code_q == `KT_SIG_INST_COMPLETE) || is_fault)",
            "(s1_code_q == `KT_SIG_INST_COMPLETE)",
        ),
        "ack_target": ("rtl/control/cud_rx.v", "(in_named != 8'd0) ? in_named : in_src", "in_src"),
        "ack_order": (
            "rtl/control/cu_fence.v",
            "$signed(snap_q[16*i +: 16] - acked_d) >= 16'sd0;",
            "$signed(snap_q[16*i +: 16] - acked_d) >= 16'sd1;",
        ),
    },
    mutation_tests={
        "watchdog_off": ["stalled_peer_stream"],
        "peer_offset": ["crossed_disjoint_streams"],
        "fault_credit": ["fault_at_every_position"],
        "ack_target": ["peer_reduction"],
        "ack_order": ["random_illegal_programs"],
    },
)
# the load tests prove that the memory agent's intake was full
BENCH = replace(BENCH, public=[*PUBLIC, "flit_tap.busy"])
