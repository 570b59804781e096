# SPDX-License-Identifier: Apache-2.0
"""Conversions as mover moves, on the model's mover; tiers and their addresses (docs/spec/compiler.md 6.1, 8.3)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from kohakubench import scale
from kohakubench.model_rig import description
from kohakutpu.errors import CompileError, EncodeError
from kohakutpu.isa import mover
from kohakutpu.machine_spec import MachineSpec, MeshSpec
from kohakutpu.model.machine import Machine
from kohakutpu.program.moves import Move, encode, text
from kohakutpu.schedule.conversion import Placed, conv_quantise, conversion
from kohakutpu.schedule.ir import Operand
from kohakutpu.schedule.layout import Entry, Flat, MxEntry, Tile
from kohakutpu.schedule.layout_conv import ConvEntry, MxConv
from kohakutpu.schedule.placement import place
from kohakutpu.schedule.planner import Need
from kohakutpu.schedule.tiers import DRAM, L2, NEAR, global_addr
from kohakutpu.walks import Dim, Walk, contiguous

pytestmark = pytest.mark.unit

STAGE = 1 << 39
SPEC = MachineSpec(
    "moves",
    (MeshSpec({"MG": ((2, 1),)}), MeshSpec({})),
    stage_bytes=2 << 20,
    dram_bytes=1 << 26,
    features=frozenset({"emit_fuse", "xform_granule", "stage_l2", "adapter_l2"}),
)


class Bench:
    """A machine that runs moves, with buffers in DRAM and in the staging store."""

    def __init__(self) -> None:
        self.m = Machine(description(features=("xform_granule",)))

    def run(self, moves: tuple[Move, ...]) -> None:
        for move in moves:
            for offset, value in encode(move):
                self.m.host_write(self.m.register_address("AUX_CFG", offset // 8), value)
            assert self.m.mover.fault == 0, f"{self.m.mover.last}: {text(move)}"

    def check(self, placed: Placed, array: np.ndarray, guard: int = 0xA5) -> None:
        """Bytes of a buffer as its order packs them, and untouched ones on both sides."""
        raw = placed.order.pack(array)
        assert self.m.read_mem(placed.address, len(raw)) == raw
        assert set(self.m.read_mem(placed.address - 64, 64)) == {guard}
        assert set(self.m.read_mem(placed.address + len(raw), 64)) == {guard}

    def prepare(self, placed: Placed) -> None:
        """A buffer of another content with guards."""
        size = placed.order.nbytes(placed.shape)
        self.m.write_mem(placed.address - 64, bytes([0xA5]) * (size + 128))


def values(shape: tuple[int, ...], seed: int = 0) -> Any:
    """FP16 of every exponent, infinities and NaNs left out."""
    bits = np.random.default_rng([seed, *shape]).integers(0, 1 << 16, shape, dtype=np.uint16)
    bits[(bits & 0x7C00) == 0x7C00] ^= 0x4000
    return bits.view(np.float16)


def convert(source: Any, target: Any, shape: tuple[int, int], *, to: int = STAGE + 0x8_0000, seed: int = 0) -> Bench:
    bench = Bench()
    array = values(shape, seed)
    a, b = Placed(source, 0x1_0000, shape), Placed(target, to, shape)
    bench.prepare(b)
    bench.m.write_mem(a.address, source.pack(array))
    bench.run(conversion(a, b, SPEC))
    bench.check(b, array)
    return bench


# ------------------------------------------------------------------ word permutations


@pytest.mark.parametrize("shape", [(64, 64), (64, 128), (64, 256), (256, 64)])
@pytest.mark.parametrize("target", [Flat(), Entry(8, 2), Entry(4, 1), Entry(3, 1)])
@pytest.mark.parametrize("source", [Flat(), Entry(8, 2), Entry(4, 1), Entry(1, 4)])
def test_permutations(source: Flat | Entry, target: Flat | Entry, shape: tuple[int, int]) -> None:
    """Every ordered pair, padding included."""
    if source == target:
        placed = Placed(source, 0, shape)
        assert conversion(placed, placed, SPEC) == ()
    else:
        convert(source, target, shape)


@pytest.mark.parametrize("seed", range(scale(40, 400)))
def test_random_permutations(seed: int) -> None:
    rng = random.Random(seed)
    shape = rng.randint(1, 50), 16 * rng.randint(1, 9)
    orders = [Flat(), *(Entry(rng.randint(1, 5), rng.randint(1, 3)) for _ in range(2))]
    source, target = rng.sample(orders, 2)
    if source != target:
        convert(source, target, shape, to=rng.choice((0x10_0000, STAGE + 0x1000)), seed=seed)


# ------------------------------------------------------------------ quantising


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("source", ["flat", "entry"])
@pytest.mark.parametrize(("g", "b"), [(1, 1), (4, 2), (2, 3)])
def test_quantising_moves_equal_host_packing(g: int, b: int, source: str, side: str) -> None:
    target = MxEntry(g, b, side)
    bench = convert(Flat() if source == "flat" else Entry(g, b), target, (16 * g, 96 * b), seed=g)
    assert bench.m.mover.moves == 1


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("source", ["flat", "entry"])
def test_every_fp16_code(source: str, side: str) -> None:
    """All 65,536 codes through the mover, among others and as the peak of their lane: host packing bit for bit."""
    codes = np.arange(1 << 16, dtype=np.uint16)
    target = MxEntry(8, 4, side)
    among = codes.reshape(512, 128)
    spread = (codes * np.uint16(40503)).reshape(512, 128)
    for array in (among, spread):
        bench = Bench()
        a = Placed(Flat() if source == "flat" else Entry(8, 4), 0x1_0000, (512, 128))
        b = Placed(target, 0x40_0000, (512, 128))
        bench.m.write_mem(a.address, a.order.pack(array.view(np.float16)))
        bench.run(conversion(a, b, SPEC))
        assert bench.m.read_mem(b.address, 1 << 16) == target.pack(array.view(np.float16))
        assert bench.m.mover.nonfinite


def test_every_code_as_a_peak() -> None:
    """One code a lane, the rest 0 or the smallest number: the scale is that code's own."""
    bench = Bench()
    order = MxEntry(64, 1, "a")
    for rest in (0, 1):
        for first in range(0, 1 << 16, 1 << 14):
            array = np.full((1 << 14, 32), rest, dtype=np.uint16)
            array[np.arange(1 << 14), np.arange(1 << 14) % 32] = np.arange(first, first + (1 << 14))
            half = array.view(np.float16)
            a, b = Placed(Flat(), 0, half.shape), Placed(order, 0x100_0000, half.shape)
            bench.m.write_mem(0, Flat().pack(half))
            bench.run(conversion(a, b, SPEC))
            assert bench.m.read_mem(b.address, 1 << 19) == order.pack(half)


@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("shape", [(8, 8, 32), (9, 7, 64), (12, 10, 32)])
def test_image_phases(shape: tuple[int, int, int], step: int) -> None:
    order = ConvEntry(1, 2, step)
    target = MxConv.of(order, shape, [(dy, dx) for dy in range(3) for dx in range(3)])
    bench = Bench()
    array = values(shape)
    bench.m.write_mem(0x1_0000, order.pack(array))
    moves = conv_quantise(order, 0x1_0000, target, 0x10_0000, shape)
    assert len(moves) == 1
    bench.run(moves)
    raw = target.pack(array)
    assert bench.m.read_mem(0x10_0000, len(raw)) == raw
    with pytest.raises(CompileError, match="another order of the image"):
        conv_quantise(ConvEntry(0, 1), 0, target, 0, shape)


def test_image_whose_count_has_no_factors() -> None:
    """70,001 is prime and beyond the count field: a body and a tail."""
    order = ConvEntry(0, 1)
    target = MxConv(order, 1)
    big = next((2, n, 32) for n in range(69_900, 70_100) if target.entries((2, n, 32)) == 70_001)
    moves = conv_quantise(order, 0, target, 1 << 25, big)
    assert len(moves) == 2
    assert sum(m.target.elements for m in moves) == target.entries(big)
    bench = Bench()
    array = values(big)
    bench.m.write_mem(0, order.pack(array))
    bench.run(moves)
    raw = target.pack(array)
    assert bench.m.read_mem(1 << 25, len(raw)) == raw


# ------------------------------------------------------------------ tiles


@pytest.mark.parametrize(("gi", "gj", "gm", "gn"), [(1, 1, 1, 4), (2, 3, 2, 8), (3, 1, 4, 4), (1, 2, 3, 12)])
def test_tiles_to_rows(gi: int, gj: int, gm: int, gn: int) -> None:
    """The granule transpose moves bits: infinities, NaNs and negative zeros come through."""
    shape = 4 * gi * gm, 4 * gj * gn
    array = np.random.default_rng(gn).integers(0, 1 << 16, shape, dtype=np.uint16).view(np.float16)
    order = Tile(gi, gj, gm, gn)
    bench = Bench()
    a, b = Placed(order, STAGE, shape), Placed(Flat(), 0x2_0000, shape)
    bench.prepare(b)
    bench.m.write_mem(STAGE, order.pack(array))
    bench.run(conversion(a, b, SPEC))
    bench.check(b, array)
    assert not bench.m.mover.nonfinite


REFUSED = [
    (MxEntry(1, 1, "a"), Flat(), (4, 32), "mx:1x1:a -> flat: MXFP7 is never read back"),
    (Flat(), Tile(1, 1, 1, 4), (4, 16), "only a drain writes tiles"),
    (Tile(1, 1, 1, 4), MxEntry(1, 1, "a"), (4, 16), "a tile becomes rows first"),
    (Tile(1, 1, 1, 2), Flat(), (4, 8), "gn = 2; rows of whole words need a multiple of 4"),
    (Tile(1, 1, 1, 4), Flat(), (3, 16), r"allocate it as \(4, 16\)"),
    (Flat(), MxEntry(2, 1, "b"), (12, 32), r"12x32 is not padded to \(16, 32\); allocate it padded and zeroed"),
    (Entry(2, 1), MxEntry(1, 1, "b"), (8, 32), "copy to entry:1x1 first"),
    (Flat(), Entry(1, 1), (4, 24), "rows of 24 elements do not end on a word; .* rows of 32"),
]


@pytest.mark.parametrize(("a", "b", "shape", "message"), REFUSED)
def test_refusals(a: Any, b: Any, shape: tuple[int, int], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        conversion(Placed(a, 0, shape), Placed(b, 1 << 20, shape), SPEC)


def test_refusal_of_the_machine_and_of_shapes() -> None:
    tile, flat = Placed(Tile(1, 1, 1, 4), 0, (4, 16)), Placed(Flat(), 64, (4, 16))
    with pytest.raises(CompileError, match="machine moves lacks xform_granule; drain rows"):
        conversion(tile, flat, SPEC.with_(features=frozenset()))
    with pytest.raises(CompileError, match=r"shapes \(4, 16\) and \(8, 16\) differ"):
        conversion(flat, Placed(Entry(1, 1), 0, (8, 16)), SPEC)


# ------------------------------------------------------------------ the instruction


def test_text_and_cost() -> None:
    move = conversion(Placed(Flat(), 0x100, (5, 48)), Placed(Entry(1, 1), STAGE, (5, 48)), SPEC)[0]
    assert text(move) == (
        "copy from 0x100[8*96:x+1, 4:y+1] x=0:5 y=0:3 to 0x8000000000[2*512:x+4, 1*256:x+4, 4*64:x+1, "
        "2*256:y+2, 1*256:y+2, 2:y+1] x=0:8 y=0:4"
    )
    quantise = Move("quantise", contiguous(0, 24), contiguous(0x1000, 3, 128), "b")
    assert text(quantise) == "quantise side=b from 0x0[24] to 0x1000[3*128]"
    assert (quantise.traffic, quantise.cycles) == ((24, 12), 36)
    fill = Move("fill", None, contiguous(0x40, 2), pattern=0x3C00)
    assert text(fill) == "fill pattern=0x3c00 to 0x40[2]"
    assert (fill.traffic, fill.cycles) == ((0, 2), 16)
    bench = Bench()
    bench.run((fill,))
    assert bench.m.read_mem(0x40, 64) == bytes.fromhex("003c") * 32


def test_instruction_refusals() -> None:
    walk = contiguous(0, 8)
    for move, message in (
        (Move("swap", walk, walk), r"swap from 0x0\[8\] to 0x0\[8\]: operation 'swap' is unknown"),
        (Move("copy", None, walk), "needs a source"),
        (Move("quantise", walk, walk), "side ''; a quantised operand is packed for side a or b"),
        (Move("copy", contiguous(0, 7), walk), "source walk has 7 elements"),
        (Move("copy", Walk(0, (Dim(70000, 32),)), walk), "MV_DIM.count = 70000"),
        (Move("fill", None, Walk(1 << 40, (Dim(1, 0),))), "MV_HDR.base"),
    ):
        with pytest.raises(EncodeError, match=message):
            encode(move)


def test_every_move_writes_all_it_relies_on() -> None:
    """After any other move, with every register dirty, a move does the same."""
    move = conversion(Placed(Flat(), 0x100, (5, 48)), Placed(Entry(1, 1), STAGE, (5, 48)), SPEC)[0]
    clean, dirty = Bench(), Bench()
    for bench in (clean, dirty):
        bench.m.write_mem(0x100, bytes(range(240)) * 2)
    rng = random.Random(1)
    for offset in (0x10, 0x11, 0x18, 0x20, 0x28, 0x2A, 0x29, 0x2B, 0x30, 0x38, 0x40, 0x50):
        value = rng.getrandbits(64) & ~3 | offset & 3
        dirty.m.host_write(dirty.m.register_address("AUX_CFG", offset // 8), value)
    for bench in (clean, dirty):
        bench.run((move,))
    assert clean.m.read_mem(STAGE, 2048) == dirty.m.read_mem(STAGE, 2048)
    assert mover.disasm(encode(move))[-1] == "MV_CTRL go=1 coalesce=1 ewidth=1"


# ------------------------------------------------------------------ tiers


def test_global_addresses() -> None:
    assert global_addr(0x40, 0, DRAM, SPEC) == 0x40
    assert global_addr(0x40, 1, DRAM, SPEC) == 0x10_0000_0040
    assert global_addr(0x40, 1, L2, SPEC) == 0x90_0000_0040
    assert global_addr(0x40, 0, NEAR, SPEC, lines=512) == 0x81_0000_0040
    for args, message in (
        ((0, 2, DRAM, SPEC), "mesh 2: machine moves has 2"),
        ((0, 0, "l3", SPEC), "tier 'l3' is unknown"),
        ((0, 0, L2, SPEC.with_(stage_bytes=0)), "no staging store"),
        ((0, 0, NEAR, SPEC), "no adapter"),
        ((2 << 20, 0, L2, SPEC), "leave tier l2 of 2097152 bytes"),
        ((-1, 0, DRAM, SPEC), "leave tier dram"),
    ):
        with pytest.raises(CompileError, match=message):
            global_addr(*args)
    assert global_addr(2 << 20, 0, DRAM, SPEC, 0) == 2 << 20


def wanted(name: str, nbytes: int, tier: str = "", converted: int = 0) -> dict[str, Need]:
    return {name: Need(Operand(name, "temp", (1, 1), tier), Flat(), nbytes, converted=converted)}


def test_the_store_is_filled_exactly_and_not_beyond() -> None:
    """An author's granule too many is refused with the sizes, a proposed one goes to DRAM and is counted."""
    full = wanted("weights", (2 << 20) - 256, L2) | wanted("row", 256, L2)
    placed = place({**full, **wanted("scratch", 1, converted=1)}, [], SPEC)
    assert [placed.buffers[n].address for n in full] == [STAGE, STAGE + (2 << 20) - 256]
    assert placed.buffers["scratch"].address == 0
    assert placed.staging_full == 1
    with pytest.raises(CompileError, match=r"scratch: 256 bytes .* at once: weights 2096896, row 256, scratch 1"):
        place({**full, **wanted("scratch", 1, L2)}, [], SPEC)
    room = place({**wanted("weights", (2 << 20) - 256, L2), **wanted("again", 100, converted=1)}, [], SPEC)
    assert room.buffers["again"].address == STAGE + (2 << 20) - 256
    assert room.staging_full == 0


def test_a_machine_without_a_store() -> None:
    """Nothing is proposed for a store that is not there; an author who asks for it is told."""
    bare = SPEC.with_(stage_bytes=0)
    placed = place(wanted("a", 100, converted=1), [], bare)
    assert (placed.buffers["a"].address, placed.staging_full) == (0, 0)
    with pytest.raises(CompileError, match="b: tier l2: machine moves has no staging store; place the buffer in dram"):
        place(wanted("b", 100, L2), [], bare)
