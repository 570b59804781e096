# SPDX-License-Identifier: Apache-2.0
"""Every path of the machine mm_mesh_ext, and the peer transfer, bit for bit."""

import cocotb

from kohakubench import mesh_paths as paths
from kohakubench import seed
from kohakubench.insim import start
from kohakubench.machines import machine_bench
from kohakubench.ports import Port

MACHINE = "mm_mesh_ext"
BENCH = machine_bench("mm_mesh_ext_paths", MACHINE, timeout_cycles=1_000_000)
PRESSURE = {"lat_min": 10, "lat_max": 80, "ar_pct": 70, "aw_pct": 70, "w_pct": 70, "r_pct": 80, "b_pct": 70}


async def _open(dut):
    sim = await start(dut, MACHINE, seed=seed(), **PRESSURE)
    vc = Port(dut.u_vc0)
    vc.pressure(30)
    return sim, vc, paths.Bench(Port(dut.u_agt0))


@cocotb.test()
async def discovery(dut):
    """Controller to cluster, cluster to controller, controller to the vector core's place."""
    _, vc, ctl = await _open(dut)
    await paths.discovery(ctl, vc)


@cocotb.test()
@cocotb.parametrize(from_controller=[False, True])
async def memory(dut, from_controller: bool):
    """Endpoint to memory and memory to endpoint."""
    sim, vc, ctl = await _open(dut)
    await paths.memory_round_trip(ctl, vc, sim, from_controller)


@cocotb.test()
async def signal_of_the_core(dut):
    """Vector core's place to controller."""
    _, vc, ctl = await _open(dut)
    await paths.signals_to_controller(ctl, vc)


@cocotb.test()
async def burst_into_cluster(dut):
    """Vector core's place to cluster, cluster to memory."""
    sim, vc, ctl = await _open(dut)
    await paths.burst_into_cluster(ctl, vc, paths.operands(seed()), sim)


@cocotb.test()
async def full_mailbox_at_the_memory_port(dut):
    """16 flits fill the mailbox behind the hub, the rest are counted; memory and signals go on meanwhile."""
    sim, vc, _ = await _open(dut)
    await paths.full_mailbox(vc, sim)


@cocotb.test()
@cocotb.parametrize(n=[1, 8, 9, 64])
async def peer_transfer(dut, n: int):
    """Cluster to vector core's place: 1, 1, 2 and 8 bursts, each acknowledged at the controller."""
    sim, vc, ctl = await _open(dut)
    await paths.peer_transfer(ctl, vc, sim, n, 0)
    await ctl.signals(paths.VC, -(-n // 8))
