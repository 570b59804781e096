# SPDX-License-Identifier: Apache-2.0
"""Matmul cluster alone: one endpoint, a memory agent at its link, two stimulus streams."""

import cocotb
from kohakubench import Bench, checks, clocks, seed

from benches.mg_ref import DRAIN, FILL, GEMM
from benches.mg_rig import Rig, operand_words
from benches.mg_t_data import *  # noqa: F403
from benches.mg_t_drain import *  # noqa: F403
from benches.mg_t_encode import *  # noqa: F403
from benches.mg_t_fill import *  # noqa: F403
from benches.mg_t_gemm import *  # noqa: F403
from benches.mg_t_perf import *  # noqa: F403
from benches.mg_t_system import *  # noqa: F403

BENCH = Bench(
    name="mg_cluster",
    top="tb_mg_cluster",
    sources=[
        "rtl/common/*.v",
        "rtl/control/cu_*.v",
        "rtl/control/cud_rx.v",
        "rtl/matmul/*.v",
        "tb/hdl/mg_mem_agent.v",
        "tb/hdl/tb_mg_cluster.v",
    ],
)


@cocotb.test()
async def smoke(dut):
    """FILL both sides, one GEMM, DRAIN to memory: bits as computed."""
    clocks.start(dut.clk)
    rig = Rig(dut, seed())
    rig.memory[:1024] = operand_words(rig.rng, 1024)
    rig.op(FILL, 0x0000, n=8)
    rig.op(FILL, 0x4000, n=6, sel=1)
    rig.op(GEMM, gm=4, gn=3, nk=2)
    rig.op(DRAIN, 0x10000, n=12, last=1)
    t = await rig.run()
    checks.equal("reads", len(t.reads), 2)
