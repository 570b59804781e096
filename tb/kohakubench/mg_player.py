# SPDX-License-Identifier: Apache-2.0
"""Cocotb side of tb/hdl/mg_player.v: plays command streams into mg_datapath and compares what comes out."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from cocotb.triggers import RisingEdge, Timer

from kohakubench import checks, clocks, memfile, seed
from kohakubench.mg_stimulus import SEND, Array, Expected, Stream, columns, expect, random_pool


class Datapath:
    """Plays streams and compares everything that comes out with the reference."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.mw, self.tiles = int(dut.ACC_MW.value), int(dut.TILES.value)
        self.lat, self.banks = int(dut.TILE_LAT.value), int(dut.TILE_BANKS.value)
        self.packed = int(dut.MODEL.value) == 0
        self.reuse_min = self.lat + 3
        self.slot_lat = 21 - self.lat
        self.rng = np.random.default_rng(seed())
        self.state: Array = np.zeros((2, self.tiles, 16), dtype=np.uint32)
        self.run_id = 0
        self.iss_time: Array = np.zeros(0, dtype=np.int64)
        self.x_time: Array = np.zeros(0, dtype=np.int64)

    async def start(self) -> Datapath:
        """Clock, reset and a LOAD of every sub-tile of every bank."""
        self.dut.go.value = 0
        clocks.start(self.dut.clk)
        await clocks.reset(self.dut)
        await clocks.cycles(3)
        s = Stream(random_pool(self.rng, 64))
        for bank in range(self.banks):
            t = np.arange(self.tiles)
            s.issue(t, self.rng.integers(0, 64, t.size), self.rng.integers(0, 64, t.size), load=1, bank=bank)
        await self.play("open", s)
        return self

    async def play(self, name: str, stream: Stream) -> Expected:
        """Run one stream; compare sums, emitted and sent words and return the reference results."""
        self.run_id += 1
        iss, x = columns(stream.iss), columns(stream.x)
        flags = iss["load"] | iss["emit"] << 1 | iss["bank"] << 2
        a_b = iss["a"] | iss["b"] << 12
        files = {
            "a": stream.pool.words("a"),
            "b": stream.pool.words("b"),
            "p": codes24(stream.peers),
            "iss": memfile.pack(
                80,
                (iss["anchor"], 8),
                (iss["addr"], 16),
                (flags, 8),
                (a_b, 24),
                (iss["gap"], 8),
                (iss["phase"], 8),
                (0, 8),
            ),
            "x": memfile.pack(
                56,
                (x["addr"], 16),
                (x["op"] | x["bank"] << 2, 8),
                (x["peer"], 16),
                (x["gap"], 8),
                (x["phase"], 8),
            ),
        }
        for key, words in files.items():
            memfile.write(f"{key}_{self.run_id}.hex", words)
        d = self.dut
        d.run_id.value, d.n_pool.value, d.n_peer.value = self.run_id, len(files["a"]), len(files["p"])
        d.n_iss.value, d.n_x.value = len(files["iss"]), len(files["x"])
        d.go.value = 1
        await RisingEdge(d.done)
        d.go.value = 0
        await Timer(5 * clocks.PERIOD_NS, unit="ns")
        got = {
            key: self._read(key, width)
            for key, width in (("emit", 35), ("send", 50), ("sum", 38), ("time", 4))
        }
        for key in files:
            os.remove(f"{key}_{self.run_id}.hex")
        exp = self._compare(name, stream, got)
        checks.equal(f"{name}: nothing in flight", int(d.inflight.value) | int(d.arr_inflight.value), 0)
        return exp

    def _read(self, key: str, width: int) -> Array:
        path = f"{key}_{self.run_id}.hex"
        if not os.path.exists(path):
            return np.zeros((0, width), dtype=np.uint8)
        words = memfile.read(path, width)
        os.remove(path)
        return words

    def _compare(self, name: str, stream: Stream, got: dict[str, Array]) -> Expected:
        times = memfile.field(got["time"], 0, 32).astype(np.int64)
        n = len(columns(stream.iss)["a"])
        self.iss_time, self.x_time = times[:n], times[n:]
        exp = expect(
            stream,
            self.iss_time,
            self.x_time,
            self.state,
            mw=self.mw,
            slot_lat=self.slot_lat,
            one_bank=self.banks == 1,
        )
        sums = np.stack([memfile.field(got["sum"], 19 * v, 19) for v in range(16)], axis=1).astype(np.int64)
        checks.arrays(f"{name}: sums", np.where(sums >= 1 << 18, sums - (1 << 19), sums), exp.sums)
        checks.arrays(
            f"{name}: emit order", memfile.field(got["emit"], 256, 16).astype(np.int64), exp.emit_addr
        )
        half = np.ascontiguousarray(got["emit"][:, :32]).view("<u2")
        checks.arrays(f"{name}: emitted FP16", half, exp.emit_half)
        checks.arrays(f"{name}: clamp", memfile.field(got["emit"], 272, 8) != 0, exp.emit_clamp)
        checks.arrays(
            f"{name}: send order", memfile.field(got["send"], 384, 16).astype(np.int64), exp.send_addr
        )
        codes = np.stack([memfile.field(got["send"], 24 * v, 24) for v in range(16)], axis=1)
        checks.arrays(f"{name}: sent codes", codes.astype(np.uint32), exp.send_codes)
        if self.packed:
            checks.equal(f"{name}: MODEL 0 differs from MODEL 1 in cycles", int(self.dut.twin_diff.value), 0)
        return exp

    def dump(self, stream: Stream, phase: int) -> None:
        """SEND every sub-tile of every bank, so that ``play`` compares the whole store."""
        for bank in range(self.banks):
            stream.command(SEND, np.arange(self.tiles), bank=bank, phase=phase)

    def tile_list(self, n: int) -> Array:
        """n sub-tile numbers in ascending order, starting over at TILES."""
        return np.arange(n) % self.tiles


def codes24(codes: Array) -> Array:
    """Accumulator codes (n, 16) as words of sixteen 24-bit fields, uint8 (n, 48)."""
    c = np.asarray(codes, dtype=np.uint32)
    return (
        np.ascontiguousarray(c.astype("<u4"))
        .view(np.uint8)
        .reshape(len(c), 16, 4)[:, :, :3]
        .reshape(len(c), 48)
    )
