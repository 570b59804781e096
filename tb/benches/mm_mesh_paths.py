# SPDX-License-Identifier: Apache-2.0
"""Every path of the machine mm_mesh, and the peer transfer, bit for bit."""

import cocotb

from kohakubench import mesh_paths as paths
from kohakubench import seed
from kohakubench.insim import start
from kohakubench.machines import machine_bench

MACHINE = "mm_mesh"
BENCH = machine_bench(
    "mm_mesh_paths",
    MACHINE,
    timeout_cycles=1_000_000,
    mutations={"type_of_the_unit": ("rtl/control/cu_regs.v", "= CU_TYPE[15:0]", "= ~CU_TYPE[15:0]")},
)
PRESSURE = {"lat_min": 10, "lat_max": 80, "ar_pct": 70, "aw_pct": 70, "w_pct": 70, "r_pct": 80, "b_pct": 70}


async def _open(dut):
    sim = await start(dut, MACHINE, seed=seed(), **PRESSURE)
    return sim, paths.Mailbox(sim)


@cocotb.test()
async def discovery(dut):
    """Controller to cluster, to vector core, and back."""
    _, ctl = await _open(dut)
    await paths.discovery(ctl)


@cocotb.test()
async def memory(dut):
    """Controller to memory and memory to controller."""
    sim, ctl = await _open(dut)
    await paths.memory_round_trip(ctl, sim)


@cocotb.test()
async def memory_through_the_core(dut):
    """Vector core to memory, memory to vector core, vector core to controller."""
    sim, ctl = await _open(dut)
    await paths.memory_through_the_core(ctl, sim)


@cocotb.test()
async def burst_into_core(dut):
    """Controller to vector core, vector core to controller."""
    _, ctl = await _open(dut)
    await paths.burst_into_core(ctl)


@cocotb.test()
async def burst_into_cluster(dut):
    """Vector core to cluster, cluster to memory."""
    sim, ctl = await _open(dut)
    await paths.burst_into_cluster(ctl, paths.operands(seed()), sim)


@cocotb.test()
@cocotb.parametrize(n=[1, 8, 9, 64, 160])
async def peer_transfer(dut, n: int):
    """Cluster to vector core: 1, 1, 2, 8 and 20 bursts, each acknowledged at the controller; images identical."""
    sim, ctl = await _open(dut)
    await paths.peer_transfer(ctl, sim, n)
