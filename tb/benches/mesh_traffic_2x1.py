# SPDX-License-Identifier: Apache-2.0
"""Traffic over a generated 2x1 mesh: see :mod:`benches.mesh_tests`."""

from benches.mesh_tests import all_to_all, latency_three_per_hop, mesh_bench, strays  # noqa: F401

BENCH = mesh_bench("mesh_traffic_2x1", "tb/machines/traffic_2x1.toml")
