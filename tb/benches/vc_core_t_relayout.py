# SPDX-License-Identifier: Apache-2.0
"""Compiled conversions between byte orders on the RTL core, every FP16 code among the elements."""

from __future__ import annotations

import cocotb
import numpy as np

from benches.vc_core_rig import Rig
from kohakubench import checks, clocks, seed
from kohakubench.programs import description, spec
from kohakubench.relayouts import passed
from kohakutpu.isa import vector as isa
from kohakutpu.program import Run, encode
from kohakutpu.program.relayout import relayout_program
from kohakutpu.schedule.layout import Entry, Flat, Tile
from kohakutpu.schedule.relayout import relayout_band

AT, TO = 0x2_0000, 0x8_0000
SHAPE = (256, 256)
TILE = Tile.of(SHAPE, 8, 8)
PLAIN = spec(description(cores=1))
PREDICATED = PLAIN.with_(features=PLAIN.features | {"vshuf_pred"})
CONVERSIONS = {
    "tile_to_flat": (TILE, Flat(), PREDICATED),
    "flat_to_tile": (Flat(), TILE, PREDICATED),
    "tile_to_entry": (TILE, Entry(8, 2), PREDICATED),
    "odd_tile_to_flat": (Tile.of(SHAPE, 2, 2), Flat(), PREDICATED),
    "tile_to_flat_select": (TILE, Flat(), PLAIN),
    "flat_to_entry": (Flat(), Entry(8, 2), PREDICATED),
    "tile_to_tile": (TILE, Tile.of(SHAPE, 4, 2), PREDICATED),
}


@cocotb.test()
@cocotb.parametrize(name=list(CONVERSIONS))
async def relayouts(dut, name: str):
    """256x256 codes in another order, every descriptor dirty before: memory as the host packs it, no clamp raised."""
    clocks.start(dut.clk)
    source, target, machine = CONVERSIONS[name]
    array = np.random.default_rng(seed()).permutation(1 << 16).astype(np.uint16).reshape(SHAPE).view(np.float16)
    band = relayout_band("source", source, "target", target, SHAPE, machine, 1)
    rig = Rig(dut, seed())
    raw = np.frombuffer(source.pack(array), np.uint8).reshape(-1, 32)
    for memory in (rig.memory, rig.network.memory):
        memory[AT // 32 :][: len(raw)] = raw
    for ad in range(8):
        rig.word(isa.set_base(ad, 32 * int(rig.np_rng.integers(1 << 20))))
        for dim in range(4):
            rig.word(isa.set_dimension(ad, dim, 32 * int(rig.np_rng.integers(-4096, 4096)), 7))
    for ins in relayout_program(0, band.work(tuple(range(len(band.offsets))), AT, TO), machine, 128):
        index = rig.word(encode(ins, machine))
        if isinstance(ins, Run):
            rig.runs.append(index)
    await rig.run()
    got = rig.network.memory[TO // 32 :][: len(raw)]
    want = np.frombuffer(target.pack(passed(array, band)), np.uint8).reshape(-1, 32)
    checks.arrays("target", got, want)
    checks.equal("sticky errors", rig.shell.sticky, 0)
