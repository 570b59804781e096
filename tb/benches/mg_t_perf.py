# SPDX-License-Identifier: Apache-2.0
"""Cycle bounds of docs/spec/cluster.md 10.1 and the table of 10.2."""

from __future__ import annotations

import json

import cocotb

from benches.mg_ref import DRAIN, FILL, GEMM
from benches.mg_rig import Rig, operand_words, run_dir
from kohakubench import checks, clocks, seed

# name -> gm, gn, nk, K blocks, tiles, hand-out, order, regions a side, bound of Level A
TABLE = {
    "16x32 nk2 K256 2 tiles emit O2": (16, 32, 2, 8, 2, "emit", "O2", 2, 0.90),
    "16x32 nk2 K256 2 tiles emit O1": (16, 32, 2, 8, 2, "emit", "O1", 2, 0.855),
    "16x32 nk2 K256 2 tiles drain O1": (16, 32, 2, 8, 2, "drain", "O1", 2, 0.77),
    "16x32 nk4 K256 4 tiles emit O1": (16, 32, 4, 8, 4, "emit", "O1", 2, 0.795),
    "16x32 nk4 K256 4 tiles emit O3": (16, 32, 4, 8, 4, "emit", "O3", 2, 0.93),
    "16x32 nk4 K1024 4 tiles emit O3": (16, 32, 4, 32, 4, "emit", "O3", 2, 0.97),
    "8x8 nk4 K512 8 tiles emit O3": (8, 8, 4, 16, 8, "emit", "O3", 4, 0.67),
}


def schedule(rig: Rig, row: tuple) -> int:
    """Fill the rig with the program of one row; returns the issue cycles it needs."""
    gm, gn, nk, blocks, tiles, out, order, regions, _ = row
    steps = [(t, s) for t in range(tiles) for s in range(blocks // nk)]
    last_step = blocks // nk - 1
    n = gm * gn
    fused = {"fuse": int(out == "emit")}

    def region(i: int) -> tuple[int, int]:
        r = i % regions
        return (r % 2, (r // 2) * 128)

    def fills(i: int) -> None:
        bank, off = region(i)
        rig.op(FILL, 0x2000 * (i % 8), n=gm * nk, eoff=off, fbank=bank)
        rig.op(FILL, 0x10000 + 0x2000 * (i % 8), n=gn * nk, eoff=off, fbank=bank, sel=1)

    owed: int | None = None  # tile whose barrier or drain is still to come
    ends = len(steps) - 1
    for i, (tile, step) in enumerate(steps):
        if i == 0 or order in ("O1", "O3") or step != 0:
            fills(i)
        emits = out == "emit" and step == last_step
        if order == "O3" and emits and owed is not None:
            rig.op(DRAIN, 0x40000 + 32 * n * owed, n=n, **fused)
            owed = None
        bank, off = region(i)
        rig.op(
            GEMM, 0x40000 + 32 * n * tile, gm=gm, gn=gn, nk=nk, acc=int(step > 0), emit=int(emits),
            abank=bank, bbank=bank, aoff=off, boff=off,
        )  # fmt: skip
        if step == last_step:
            owed = tile
            if order == "O2" and i < ends:
                fills(i + 1)
            if order in ("O1", "O2") or i == ends:
                rig.op(DRAIN, 0x40000 + 32 * n * tile, n=n, last=int(i == ends), **fused)
                owed = None
    return n * nk * len(steps)


@cocotb.test()
async def perf_table(dut):
    """Every row of 10.2 reaches its Level A bound; the table is written as JSON beside the results."""
    clocks.start(dut.clk)
    result = {}
    for name, row in TABLE.items():
        rig = Rig(dut, seed())
        rig.memory[:8192] = operand_words(rig.rng, 8192)
        work = schedule(rig, row)
        t = await rig.run()
        u = work / t.elapsed()
        result[name] = {"useful": work, "elapsed": t.elapsed(), "utilisation": round(u, 4), "bound": row[-1]}
        cocotb.log.info("%-34s useful %6d elapsed %6d U %.4f (>= %.3f)", name, work, t.elapsed(), u, row[-1])
        checks.true(name, u >= row[-1], f"utilisation {u:.4f} is below {row[-1]}")
    (run_dir() / "perf_table.json").write_text(json.dumps(result, indent=1) + "\n")
