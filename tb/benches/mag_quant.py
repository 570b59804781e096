# SPDX-License-Identifier: Apache-2.0
"""FP16 -> MXFP7 quantiser of the transform slot against the reference model and the published vectors."""

import os

import cocotb
import numpy as np
from cocotb.triggers import RisingEdge, Timer

from kohakubench import Bench, checks, clocks, memfile, scale, seed
from kohakubench import quant_corpus as corpus
from kohakubench.quant_corpus import source_bytes
from kohakutpu.model.numerics import Layout, quantise, quantise_entries

BENCH = Bench(
    name="mag_quant",
    top="tb_mag_quant",
    sources=[
        "rtl/common/ram_sdp.v",
        "rtl/memory/mag_quant_scale.v",
        "rtl/memory/mag_quant_elements.v",
        "rtl/memory/mag_quant_pack.v",
        "rtl/memory/mag_quant.v",
        "tb/hdl/tb_mag_quant.v",
    ],
    mutations={
        "scale_boundary": ("rtl/memory/mag_quant_scale.v", "frac2_q <= 10'd488", "frac2_q <= 10'd487"),
        "top_boundary": ("rtl/memory/mag_quant_scale.v", "frac2_q <= 10'd992", "frac2_q <= 10'd993"),
        "no_clamp": ("rtl/memory/mag_quant_scale.v", "(e < 6'sd0) ? 5'd0", "(e < -6'sd9) ? 5'd0"),
        "zero_scale": ("rtl/memory/mag_quant_scale.v", "zero2_q ? 5'd20", "zero2_q ? 5'd0"),
        "signed_peak": (
            "rtl/memory/mag_quant_scale.v",
            "in_data[62:48], in_data[46:32]",
            "in_data[63:49], in_data[46:32]",
        ),
        "old_half": ("rtl/memory/mag_quant_scale.v", "peak1_q <= larger(half_q, word)", "peak1_q <= word"),
        "nearest_13": ("rtl/memory/mag_quant_elements.v", "12'd2520", "12'd2521"),
        "ties_to_zero": ("rtl/memory/mag_quant_elements.v", "{6'd0, x[0]}", "7'd0"),
        "negative_tie": ("rtl/memory/mag_quant_elements.v", "{7{!x[0]}}", "7'h7F"),
        "subnormal_binade": ("rtl/memory/mag_quant_elements.v", "? 5'd1 : half", "? 5'd0 : half"),
        "far_element": ("rtl/memory/mag_quant_elements.v", "t >= 6'd8", "t >= 6'd16"),
        "b_slots": ("rtl/memory/mag_quant_pack.v", "side[56*(n%4) + 7*(n/4) +: 7]", "side[7*n +: 7]"),
        "special_kept": ("rtl/memory/mag_quant_pack.v", "(special_q && at != 3'd0)", "special_q"),
        "start_ignored": ("rtl/memory/mag_quant.v", "in_start ? 3'd0 : word_q", "word_q"),
        "same_half": ("rtl/memory/mag_quant.v", "lane_q[4] ? {at4_q, 1'b1}", "lane_q[4] ? {at4_q, 1'b0}"),
        "scale_early": (
            "rtl/memory/mag_quant.v",
            ".en({lane_q[3:1], in_valid})",
            ".en({lane_q[2], lane_q[2:1], in_valid})",
        ),
        "reset_keeps": ("rtl/memory/mag_quant.v", "rst_n ? {lane_q[4:1], pair} : 5'd0", "{lane_q[4:1], pair}"),
    },
    mutation_tests={
        "scale_boundary": ["scale_boundaries"],
        "top_boundary": ["scale_boundaries"],
        "no_clamp": ["scale_boundaries"],
        "zero_scale": ["scale_boundaries"],
        "signed_peak": ["random_entries"],
        "old_half": ["random_entries"],
        "nearest_13": ["random_entries"],
        "ties_to_zero": ["random_entries"],
        "negative_tie": ["random_entries"],
        "subnormal_binade": ["scale_boundaries"],
        "far_element": ["random_entries"],
        "b_slots": ["published"],
        "special_kept": ["every_code"],
        "start_ignored": ["abandoned_and_reset"],
        "same_half": ["random_entries"],
        "scale_early": ["random_entries"],
        "reset_keeps": ["abandoned_and_reset"],
    },
    timeout_cycles=5_000_000,
    wall_s=600,
)
LAYOUTS = (Layout.A, Layout.B)
LIMIT = 1 << 15
"""Entries of one run."""


class Quantiser:
    """Feeds entries through the player and compares what comes back."""

    def __init__(self, dut):
        self.dut = dut
        self.run_id = 0
        self.rng = np.random.default_rng(seed())

    async def start(self):
        for name in ("go", "gaps", "pack", "drop_at"):
            getattr(self.dut, name).value = 0
        clocks.start(self.dut.clk)
        await clocks.reset(self.dut)
        return self

    async def play(self, words, starts, layout, *, gaps=False, drop_at=0):
        """words: uint8 (n, 32), starts: bool (n,); returns entries (m, 128) and their nonfinite flags (m,)."""
        dut = self.dut
        self.run_id += 1
        memfile.write(f"words_{self.run_id}.hex", np.concatenate([words, starts.astype(np.uint8)[:, None]], axis=1))
        dut.run_id.value = self.run_id
        dut.n_words.value = len(words)
        dut.gaps.value = gaps
        dut.pack.value = int(layout)
        dut.drop_at.value = drop_at
        dut.go.value = 1
        await RisingEdge(dut.done)
        dut.go.value = 0
        await Timer(5 * clocks.PERIOD_NS, unit="ns")
        os.remove(f"words_{self.run_id}.hex")
        checks.equal("late", int(dut.late.value), 0)
        checks.equal("outputs moved without done", int(dut.unsteady.value), 0)
        if int(dut.n_results.value) == 0:
            return np.zeros((0, 128), dtype=np.uint8), np.zeros(0, dtype=bool)
        got = memfile.read(f"results_{self.run_id}.hex", 129)
        os.remove(f"results_{self.run_id}.hex")
        return got[:, :128], got[:, 128] != 0

    async def check(self, name, codes, layouts=LAYOUTS, *, gaps=False):
        """FP16 codes (n, 4, 32) in the given packings."""
        source = source_bytes(codes)
        for layout in layouts:
            for at in range(0, len(source), LIMIT):
                part, part_codes = source[at : at + LIMIT], codes[at : at + LIMIT]
                starts = np.arange(8 * len(part)) % 8 == 0
                got, flags = await self.play(part.reshape(-1, 32), starts, layout, gaps=gaps)
                checks.arrays(f"{name}, {layout.name}", got, quantise_entries(part, layout))
                special = ((part_codes & 0x7C00) == 0x7C00).any(axis=(1, 2))
                checks.arrays(f"{name}, {layout.name}: nonfinite", flags, special)


@cocotb.test()
async def published(dut):
    """The known answers of memory.md 13.1 and of the published vectors, with the values written there."""
    unit = await Quantiser(dut).start()
    for layout in LAYOUTS:
        codes, want = corpus.published(layout)
        got, _ = await unit.play(source_bytes(codes).reshape(-1, 32), np.arange(8 * len(codes)) % 8 == 0, layout)
        checks.arrays(f"published {layout.name}", got, want)
    lane, k = np.meshgrid(np.arange(4), np.arange(32), indexing="ij")
    codes = ((k - 15) * 0.125 * (lane + 1)).astype(np.float16).view(np.uint16)[None]
    first = {
        Layout.A: "973a955b373064973a955b3730649332854af6efe2973a955b37306479818589",
        Layout.B: "40810a048912a44e9d4a756ad62b5cb982e64c9a326ad5bb572e5db979818589",
    }
    for layout, word in ((Layout.A, 0), (Layout.B, 3)):
        got, _ = await unit.play(source_bytes(codes).reshape(-1, 32), np.arange(8) == 0, layout)
        checks.equal(
            f"word {word}, {layout.name}", got[0, 32 * word : 32 * word + 32][::-1].tobytes().hex(), first[layout]
        )
    await unit.check("the whole entry", codes)
    one = np.full((1, 4, 32), 0x3C00)
    got, _ = await unit.play(source_bytes(one).reshape(-1, 32), np.arange(8) == 0, Layout.A)
    checks.equal("scale of 32 ones", int(got[0, 0]), 0x71)


@cocotb.test()
async def every_code(dut):
    """All 65,536 FP16 codes: alone in a lane (31 zeros), and next to the fixed peak 7BFF."""
    unit = await Quantiser(dut).start()
    await unit.check("alone", corpus.every_code_alone(unit.rng))
    await unit.check("beside the peak", corpus.every_code_beside_a_peak())


@cocotb.test()
async def scale_boundaries(dut):
    """Every peak around every boundary of the scale at every exponent, elements of all sizes beside it."""
    unit = await Quantiser(dut).start()
    lanes, alone = corpus.boundaries(unit.rng)
    await unit.check("boundaries", lanes)
    await unit.check("lone peaks", alone)


@cocotb.test()
async def named_lanes(dut):
    """Lanes of zeros, of -0, of subnormals, of +-65504, with one outlier, with infinities and NaNs, in every place."""
    unit = await Quantiser(dut).start()
    await unit.check("lanes", corpus.named(unit.rng))
    got, flags = await unit.play(np.zeros((8, 32), dtype=np.uint8), np.arange(8) == 0, Layout.A)
    checks.equal("a zero entry", got.reshape(4, 32)[:, ::-1].tobytes().hex(), ("00" * 28 + "a0" * 4) * 4)
    checks.true("a zero entry has no special element", not flags[0])


@cocotb.test()
async def random_entries(dut):
    """Random entries of every shape, with and without gaps; without them one entry takes 8 cycles."""
    unit = await Quantiser(dut).start()
    n = scale(8000, 100_000)
    codes = corpus.random_entries(unit.rng, n)
    q, _ = quantise(codes)
    checks.true("all magnitudes up to 63 occur", len(np.unique(np.abs(q))) == 64)
    for code in ((0x7E00, 0x7C00), (0xFC00, 0x0001), (0x8000, 0x8000)):
        codes[unit.rng.integers(0, n, 40), :, 5], codes[unit.rng.integers(0, n, 40), 2, :] = code
    await unit.check("random", codes)
    cycles, whole = int(dut.cycles.value), min((n - 1) % LIMIT + 1, LIMIT)
    checks.true("8 cycles an entry", cycles <= 8 * whole + 10, f"{cycles} cycles for {whole} entries")
    await unit.check("random with gaps", codes[: n // 4], gaps=True)
    packed = np.concatenate([quantise_entries(source_bytes(codes), layout) for layout in LAYOUTS])
    ones, zeros = np.bitwise_or.reduce(packed, axis=0), np.bitwise_and.reduce(packed, axis=0)
    checks.true("every bit of the words was 0 and 1", bool((ones == 0xFF).all() and (zeros == 0).all()))


@cocotb.test()
async def abandoned_and_reset(dut):
    """Entries given up after 1..7 words and after a reset at every position leave no trace in their successors."""
    unit = await Quantiser(dut).start()
    rng = unit.rng
    for layout in LAYOUTS:
        for gaps in (False, True):
            whole = rng.random(600) < 0.5
            length = np.where(whole, 8, rng.integers(1, 8, whole.size))
            source = source_bytes(corpus.random_entries(rng, whole.size))
            words = np.concatenate([source[i].reshape(8, 32)[: length[i]] for i in range(whole.size)])
            starts = np.zeros(len(words), dtype=bool)
            starts[np.concatenate([[0], np.cumsum(length)[:-1]])] = True
            got, _ = await unit.play(words, starts, layout, gaps=gaps)
            checks.arrays("whole entries", got, quantise_entries(source[whole], layout))
    for position in range(1, 33):
        source = source_bytes(corpus.random_entries(rng, 7))
        words, starts = source.reshape(-1, 32), np.arange(56) % 8 == 0
        cut = position // 8 * 8 + (8 if position % 8 else 0)  # the rest of the broken entry is not sent
        words = np.concatenate([words[:position], words[cut:]])
        starts = np.concatenate([starts[:position], starts[cut:]])
        got, _ = await unit.play(words, starts, Layout.A, drop_at=position)
        want = quantise_entries(source, Layout.A)
        after = 7 - cut // 8
        checks.true("entries after the reset", after <= len(got) <= 7)
        checks.arrays("after the reset", got[len(got) - after :], want[7 - after :])
        before = len(got) - after
        checks.arrays("before the reset", got[:before], want[:before])
        # what ended 8 or more cycles before the pulse is out, everything later is gone
        checks.equal("entries done", before, max(0, (position - 7) // 8))
