# SPDX-License-Identifier: Apache-2.0
"""Traffic over a generated 2x2 mesh: see :mod:`benches.mesh_tests`."""

from benches.mesh_tests import all_to_all, latency_three_per_hop, mesh_bench, strays  # noqa: F401

MUTATIONS = {
    "fifo_overflows": ("rtl/common/fifo_sync.v", "ready_q <= level_d != FULL;", "ready_q <= 1'b1;"),
    "term_never_takes": ("rtl/noc/link_term.v", "busy_q <= 1'b0;", "busy_q <= 1'b1;"),
    "term_is_silent": ("rtl/noc/link_term.v", "lost_q <= take;", "lost_q <= 1'b0;"),
    "repeats_when_blocked": (
        "rtl/noc/router_output.v",
        "load   = !valid_q || !out_busy",
        "load   = !valid_q || !out_busy || first_q[2]",
    ),
    "y_before_x": (
        "rtl/noc/router_route.v",
        "if      (cx < PX)    route = TO_W;",
        "if      (cy < PY)    route = TO_N;",
    ),
}

BENCH = mesh_bench("mesh_traffic_2x2", "tb/machines/traffic_2x2.toml", mutations=MUTATIONS)
