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

BENCH = machine_bench("mesh_duo", "mesh_duo", timeout_cycles=4_000_000, wall_s=1800)
# the load tests prove that the memory agent's intake was full
BENCH = replace(BENCH, public=[*PUBLIC, "flit_tap.busy"])
