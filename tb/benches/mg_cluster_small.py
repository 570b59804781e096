# SPDX-License-Identifier: Apache-2.0
"""Matmul cluster with other sizes of L1 and tile store: limits move with the parameters."""

import cocotb

from benches.mg_ref import DRAIN, FILL, GEMM, bursts
from benches.mg_rig import Rig
from benches.mg_t_fill import fill_sizes  # noqa: F401
from kohakubench import Bench, checks, clocks, seed

BENCH = Bench(
    name="mg_cluster_small",
    top="tb_mg_cluster",
    sources=[
        "rtl/common/*.v",
        "rtl/control/cu_*.v",
        "rtl/control/cud_rx.v",
        "rtl/matmul/*.v",
        "rtl/matmul/mg_datapath_sva.sv",
        "rtl/matmul/mg_unit_sva.sv",
        "rtl/noc/link_checker_sva.sv",
        "tb/hdl/mg_mem_agent.v",
        "tb/hdl/tb_mg_cluster.v",
        "tb/hdl/tb_mg_cluster_links.sv",
    ],
    params={"GA": 32, "GB": 256, "TILES": 16},
    variants={"large": {"GA": 256, "GB": 512, "TILES": 4096}},
    slow_variants=("large",),
    mutations={
        "side_limit": ("rtl/matmul/mg_decode.v", "(a_top > GA_W)", "1'b0"),
    },
    mutation_tests={"side_limit": ["size_limits"]},
)


def rig_of(dut, number: int) -> tuple[Rig, int, int, int]:
    """A rig with the sizes of this build."""
    ga, gb, tiles = (int(getattr(dut, n).value) for n in ("GA", "GB", "TILES"))
    return Rig(dut, number, ga=ga, gb=gb, tiles=tiles), ga, gb, tiles


@cocotb.test()
async def size_limits(dut):
    """Ranges of both sides and of the tile store at max and max + 1, a working instruction after each."""
    clocks.start(dut.clk)
    rig, ga, gb, tiles = rig_of(dut, seed())
    rig.operands(4096)
    for sel, size in ((0, ga), (1, gb)):
        for bank in (0, 1):
            for end in (1, min(size, 255), min(size, 255) + 1, 255):
                rig.op(FILL, 0x1000, n=end, sel=sel, fbank=bank)
                rig.op(FILL, 0x2000, n=1, eoff=end - 1 if end else 0, sel=sel, fbank=bank)
    rig.op(GEMM, gm=2, gn=2)
    for gm, gn, nk in (
        (4, 4, 8),
        (4, 4, 9),
        (1, 1, 32),
        (1, 1, 33),
        (4, 5, 1),
        (16, 1, 2),
        (1, 16, 16),
        (1, 17, 1),
        (2, 8, 16),
    ):
        for bank in (0, 1):
            rig.op(GEMM, gm=gm, gn=gn, nk=nk, abank=bank)
            rig.op(GEMM, gm=gm, gn=gn, nk=nk, bbank=bank, aoff=1)
            rig.op(DRAIN, 0x40000, n=2)
    for n in (tiles, tiles + 1, min(4 * tiles, 65535)):
        rig.op(DRAIN, 0x40000, n=n)
        rig.op(DRAIN, n=n, fuse=1)
    rig.op(DRAIN, 0x40000, n=4, last=1)
    await rig.run()


@cocotb.test()
async def all_tiles(dut):
    """The whole tile store: emitted, drained to memory, sent; a stream into its last sub-tile and past it."""
    clocks.start(dut.clk)
    rig, _, _, tiles = rig_of(dut, seed())
    rig.operands(4096)
    g = int(tiles**0.5)
    rig.op(FILL, 0, n=g)
    rig.op(FILL, 0x4000, n=g, sel=1)
    rig.op(GEMM, 0x40000, gm=g, gn=g, emit=1)
    rig.op(DRAIN, n=tiles, fuse=1)
    rig.op(DRAIN, 0xA0000, n=tiles)
    rig.op(DRAIN, 0, n=tiles, dnode=1, dst_x=1, dbuf=2, dflags=1)
    zero = rig.rng.integers(0, 1, (2, 32), dtype="uint8")
    rig.burst(2, 2 * tiles - 2, zero, done=6)
    rig.burst(2, 2 * tiles, zero)
    rig.op(DRAIN, 0xA0000, n=tiles, recv=2)
    rig.op(DRAIN, 0xA0000, n=tiles, last=1)
    t = await rig.run()
    checks.equal(
        "node descriptors",
        sum(1 for f in t.of(8) if not f & (1 << 208) - 1 and f >> 248 & 255 == 2),
        bursts("send", tiles),
    )
