# SPDX-License-Identifier: Apache-2.0
"""The shell in front of a compute unit, docs/spec/fabric.md 5.

Every test ends in a replay: each cycle of the run is compared with the reference shell
(``kohakubench.shell_model``), so what a test states itself is only what the page
promises in words.
"""

from benches.cu_t_fence import *  # noqa: F403
from benches.cu_t_issue import *  # noqa: F403
from kohakubench import Bench

_RTL = "rtl/control/"
BENCH = Bench(
    name="cu_base",
    top="tb_cu_base",
    sources=[
        "rtl/common/ram_sdp.v",
        "rtl/common/fifo_sync.v",
        "rtl/control/cu_fence.v",
        "rtl/control/cu_regs.v",
        "rtl/control/cu_base.v",
        "rtl/control/cu_base_sva.sv",
        "rtl/control/cud_rx.v",
        "rtl/control/cud_rx_sva.sv",
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/flit_player.v",
        "tb/hdl/stall_gen.v",
        "tb/hdl/ack_memory.v",
        "tb/hdl/unit_standin.v",
        "tb/hdl/tb_cu_base.v",
        "tb/hdl/tb_cu_base_links.sv",
    ],
    params={"MAX_INFLIGHT": 4, "RD_ERR_FAULT": 0},
    slow_variants=("inflight1", "inflight2"),
    variants={
        "inflight1": {"MAX_INFLIGHT": 1, "RD_ERR_FAULT": 1},
        "inflight2": {"MAX_INFLIGHT": 2, "RD_ERR_FAULT": 0},
        "inflight8": {"MAX_INFLIGHT": 8, "RD_ERR_FAULT": 0},
        "nofence": {
            "MAX_INFLIGHT": 1,
            "RD_ERR_FAULT": 1,
            "ACK_FENCE": 0,
            "RECV_TYPES": 0x010C,
            "RECV_DEPTH": 64,
        },
        "small": {
            "INST_DEPTH": 2,
            "RECV_DEPTH": 2,
            "RECV_TYPES": 0xFFFF,
            "MAX_INFLIGHT": 3,
            "RD_ERR_FAULT": 0,
        },
    },
    timeout_cycles=1_000_000,
    mutations={
        "fence_off_by_one": (
            _RTL + "cu_fence.v",
            "$signed(acked_q - snap_q[15:0]) >= 16'sd0",
            "$signed(acked_q - snap_q[15:0]) >= -16'sd1",
        ),
        "wrong_owner": (
            _RTL + "cu_fence.v",
            "$signed(snap_q[16*i +: 16] - acked_d) >= 16'sd0",
            "$signed(snap_q[16*i +: 16] - acked_q) >= 16'sd0",
        ),
        "last_failure_wins": (_RTL + "cu_fence.v", "owner[i] && !err_q[i]", "owner[i]"),
        "pending_failure_kept": (_RTL + "cu_fence.v", "else if (covering) pend_err_q <= 1'b0;", ""),
        "unsigned_fence": (
            _RTL + "cu_fence.v",
            "$signed(acked_q - snap_q[15:0]) >= 16'sd0",
            "acked_q >= snap_q[15:0]",
        ),
        "dropped_ack": (
            _RTL + "cu_base.v",
            ".ack          (to_fence)",
            ".ack          (to_fence && !accept)",
        ),
        "priority_swap": (
            _RTL + "cu_base.v",
            "&& rsp_valid;\n    assign send_ready = loadable && !sig_valid && !rsp_valid;",
            "&& rsp_valid && !send_valid;\n    assign send_ready = loadable && !sig_valid;",
        ),
        "fence_holds_sends": (
            _RTL + "cu_base.v",
            "assign send_ready = loadable && !sig_valid && !rsp_valid;",
            "assign send_ready = loadable && queued == 5'd0 && !rsp_valid;",
        ),
        "seventeen_signals": (_RTL + "cu_base.v", "reserved < SIGNALS;", "reserved <= SIGNALS;"),
        "misrouted_overtakes": (
            _RTL + "cu_base.v",
            "may_issue && !head_mine && idle",
            "may_issue && !head_mine",
        ),
        "clear_loses_event": (
            _RTL + "cu_regs.v",
            "sticky_q <= kept | events;",
            "sticky_q <= clear ? 15'd0 : (kept | events);",
        ),
        "deep_request_queue": (_RTL + "cu_regs.v", ".DEPTH (`KT_CTRLQ_DEPTH)", ".DEPTH (8)"),
        "same_cycle_retire_lost": (
            _RTL + "cu_base.v",
            "exec_done && (!idle || accept)",
            "exec_done && !idle",
        ),
    },
    mutation_tests={
        "fence_off_by_one": ["fence_two_wait"],
        "wrong_owner": ["fence_blame"],
        "last_failure_wins": ["fence_blame"],
        "pending_failure_kept": ["fence_batch"],
        "unsigned_fence": ["fence_wrap"],
        "dropped_ack": ["fence_delays", "random_program_stream"],
        "priority_swap": ["priority", "random_program_stream"],
        "fence_holds_sends": ["fence_blocks_nothing"],
        "seventeen_signals": ["link_blocked"],
        "misrouted_overtakes": ["misrouted"],
        "clear_loses_event": ["error_register"],
        "deep_request_queue": ["request_queue"],
        "same_cycle_retire_lost": ["spacing"],
    },
)
