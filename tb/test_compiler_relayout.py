# SPDX-License-Identifier: Apache-2.0
"""Byte orders rewritten by vector cores: planner, images, functional cores (docs/spec/compiler.md 6.1, 7.2, 7.3)."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from kohakubench import scale
from kohakubench.programs import description, spec
from kohakubench.relayouts import SOURCE, TARGET, codes, execute, passed
from kohakutpu.errors import CompileError, CoverageError
from kohakutpu.machine_spec import MachineSpec
from kohakutpu.program import Desc, Dims, Image, Run, UnitProgram, Walk, encode
from kohakutpu.program.relayout import RelayoutWork, relayout_cost, relayout_cycles, relayout_image, relayout_program
from kohakutpu.program.vector_check import check_image
from kohakutpu.program.vector_words import Alu, Vdrain, Vfill, Vld, Vshuf, Vst, word_text
from kohakutpu.schedule.layout import ByteOrder, Entry, Flat, MxEntry, Tile
from kohakutpu.schedule.layout_conv import ConvEntry
from kohakutpu.schedule.relayout import RelayoutBand, covered, relayout_band
from kohakutpu.schedule.relayout_walks import Matrix, Side, factor

pytestmark = pytest.mark.unit

PLAIN = spec(description(cores=4))
PREDICATED = PLAIN.with_(features=PLAIN.features | {"vshuf_pred"})
COMPATIBLE = PREDICATED.with_(vc_l1_forbidden=(321, 511))
SHAPES = [(64, 64), (64, 128), (64, 256), (256, 64)]


GRIDS = (Tile(2, 8, 8, 8), Tile(4, 2, 8, 8), Tile(8, 2, 8, 8))
TILINGS = ((8, 8), (8, 2), (4, 2), (2, 8))


def orders(shape: tuple[int, int], tilings: int = 1) -> list[ByteOrder]:
    """The orders of the acceptance list that a matrix of ``shape`` fits, and some tilings of it."""
    tiles = [t for t in GRIDS if Tile.of(shape, 8, 8) == t] + [Tile.of(shape, *t) for t in TILINGS[:tilings]]
    return [Flat(), Entry(8, 2), Entry(4, 1), *dict.fromkeys(tiles)]


def convert(
    source: ByteOrder,
    target: ByteOrder,
    shape: tuple[int, int],
    machine: MachineSpec,
    cores: int,
    array: np.ndarray | None = None,
    **options: int,
) -> RelayoutBand:
    """Execute a conversion and require the bytes the host would pack."""
    array = codes(shape) if array is None else array
    band = relayout_band("from", source, "to", target, shape, machine, cores, **options)
    want = target.pack(passed(array, band))
    assert execute(band, source.pack(array), len(want), machine, cores) == want, band.text()
    return band


# ------------------------------------------------------------------ every pair


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_ordered_pair(shape: tuple[int, int], batch: int) -> None:
    """The permutation of every ordered pair, batches folded into the rows, on three cores."""
    folded = batch * shape[0], shape[1]
    for source, target in itertools.permutations(orders(folded), 2):
        convert(source, target, folded, PREDICATED, 3)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_ordered_pair_without_predication(shape: tuple[int, int]) -> None:
    for source, target in itertools.permutations(orders(shape), 2):
        convert(source, target, shape, PLAIN, 2)


@pytest.mark.slow
@pytest.mark.parametrize("machine", [PREDICATED, PLAIN, COMPATIBLE], ids=["predicated", "select", "compatible"])
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_ordered_pair_and_tiling(shape: tuple[int, int], batch: int, machine: MachineSpec) -> None:
    """More tilings, tile to tile, every kind of machine."""
    folded = batch * shape[0], shape[1]
    for source, target in itertools.permutations(orders(folded, 4), 2):
        convert(source, target, folded, machine, 3)


def test_acceptance_list_is_complete() -> None:
    """The three 8x8 grids of the acceptance list are orders of one of its shapes each, batches included."""
    met = {o.key for shape in SHAPES for batch in (1, 4) for o in orders((batch * shape[0], shape[1]))}
    assert {"tile:2x8:8x8", "tile:8x2:8x8", "flat", "entry:8x2", "entry:4x1"} <= met


@pytest.mark.parametrize("source", [Flat(), Entry(8, 2), Entry(4, 1), Tile(4, 2, 8, 8)], ids=lambda o: o.key)
def test_the_third_grid(source: ByteOrder) -> None:
    for target in (Flat(), Entry(8, 2), Entry(4, 1), Tile(4, 2, 8, 8), Tile(8, 2, 4, 8)):
        if source != target:
            convert(source, target, (128, 64), PREDICATED, 2)


@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize("limit", [4, 32, 128, 0])
def test_cores_and_lengths_of_a_run(limit: int, cores: int) -> None:
    """Any division gives the bytes; a limit of words a RUN is kept."""
    for source, target in itertools.permutations([Tile(2, 2, 4, 4), Flat(), Entry(2, 1)], 2):
        band = convert(source, target, (32, 32), PREDICATED, cores, run_words=limit)
        assert band.drain.words <= (limit or 256)


# ------------------------------------------------------------------ extents


@pytest.mark.parametrize("gn", [1, 2, 3, 4, 5, 6, 7, 10, 12])
@pytest.mark.parametrize("machine", [PREDICATED, PLAIN], ids=["predicated", "select"])
def test_any_width_of_a_tile(gn: int, machine: MachineSpec) -> None:
    """gn no multiple of 4: a granule array spans tiles; the walk gathers it."""
    shape = 24, 16 * gn
    for other in (Flat(), Entry(1, 1), Entry(3, 1)):
        tile = Tile.of(shape, 2, gn)
        if isinstance(other, Entry) and shape[1] % 32:
            continue
        convert(tile, other, shape, machine, 2)
        convert(other, tile, shape, machine, 2)


def test_padded_tiles_become_padded_rows() -> None:
    """The contract of the mover form: the rows take the whole tile, at a pitch; what lies between is not touched."""
    shape, tiles, pitch = (50, 70), (64, 96), 112
    order = Tile.of(shape, 4, 8)
    array = codes(shape)
    whole = order.unpack(order.pack(array), tiles)
    band = relayout_band("t", order, "rows", Flat(), tiles, PREDICATED, 4, pitch_to=pitch)
    raw = execute(band, order.pack(array), 2 * pitch * tiles[0], PREDICATED, 4)
    rows = np.frombuffer(raw, dtype=np.uint16).reshape(tiles[0], pitch)
    assert (rows[:, : tiles[1]] == whole.view(np.uint16)).all()
    assert (rows[:, tiles[1] :] == 0xA5A5).all()
    assert (rows[: shape[0], : shape[1]] == array.view(np.uint16)).all()
    back = relayout_band("rows", Flat(), "t", order, tiles, PREDICATED, 4, pitch_from=pitch)
    assert execute(back, raw, order.nbytes(tiles), PREDICATED, 4) == order.pack(array)


def test_padding_of_the_source_is_dropped() -> None:
    """A target that holds less takes its part."""
    shape = 52, 80
    convert(Tile.of(shape, 4, 8), Flat(), shape, PREDICATED, 4)
    convert(Entry(8, 2), Flat(), (50, 48), PREDICATED, 4)
    convert(Tile.of(shape, 4, 8), Tile.of(shape, 1, 4), shape, PREDICATED, 4)
    convert(Tile.of((64, 96), 4, 8), Entry(2, 1), (64, 70), PREDICATED, 4)


@pytest.mark.parametrize("step", [1, 2])
def test_images(step: int) -> None:
    """The pixels of an image and its rows, both ways; the halo keeps what it held."""
    image = (6, 8, 64)
    order = ConvEntry(1, 2, step)
    array = codes((48, 64))
    packed = order.pack(array.reshape(image))
    out = relayout_band("image", order, "rows", Flat(), (48, 64), PREDICATED, 2, image=image)
    assert execute(out, packed, Flat().nbytes((48, 64)), PREDICATED, 2) == Flat().pack(array)
    back = relayout_band("rows", Flat(), "image", order, (48, 64), PREDICATED, 2, image=image)
    raw = execute(back, Flat().pack(array), len(packed), PREDICATED, 2)
    assert (order.unpack(raw, image).view(np.uint16) == array.reshape(image).view(np.uint16)).all()
    got, want = (np.frombuffer(b, dtype=np.uint16).reshape(-1, 16) for b in (raw, packed))
    halo = (want == 0).all(axis=1)
    assert (got[halo] == 0xA5A5).all()
    assert (got[~halo] == want[~halo]).all()


def refusal(source: ByteOrder, target: ByteOrder, shape: tuple[int, int], machine: MachineSpec) -> str:
    """Why a conversion is refused, "" if it is not."""
    try:
        relayout_band("a", source, "b", target, shape, machine, 2)
    except CompileError as err:
        return str(err)
    return ""


def random_conversion(rng: random.Random) -> None:
    shape = 4 * rng.randint(1, 24), 16 * rng.randint(1, 12)
    pool: list[ByteOrder] = [Flat()]
    for _ in range(2):
        pool.append(Tile.of(shape, rng.choice([1, 2, 3, 4, 8]), rng.choice([1, 2, 3, 4, 6, 8])))
        pool.append(Entry(rng.randint(1, 6), rng.randint(1, 3)))
    source, target = rng.sample(pool, 2)
    machine = rng.choice([PREDICATED, PLAIN, COMPATIBLE])
    have, need = Matrix(source, shape).held, Matrix(target, shape).held
    granules = isinstance(source, Tile) != isinstance(target, Tile)
    if need[0] > have[0] or need[1] > have[1] or (granules and need[1] % 16):
        with pytest.raises(CompileError, match=r"allocate"):
            relayout_band("a", source, "b", target, shape, machine, 2)
        return
    if granules and any(isinstance(o, Tile) and o.gn % 4 for o in (source, target)):
        reason = refusal(source, target, shape, machine)
        assert not reason or "no walk of 4 dimensions" in reason
        if reason:
            return
    convert(source, target, shape, machine, rng.randint(1, 4))


@pytest.mark.parametrize("seed", range(60))
def test_random_conversions(seed: int) -> None:
    random_conversion(random.Random(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1000 + scale(500, 4000)))
def test_many_random_conversions(seed: int) -> None:
    random_conversion(random.Random(seed))


# ------------------------------------------------------------------ codes


@pytest.mark.parametrize("direction", ["rows", "tiles"])
@pytest.mark.parametrize("machine", [PREDICATED, PLAIN], ids=["predicated", "select"])
def test_every_code(machine: MachineSpec, direction: str) -> None:
    """All 65,536 codes: signalling NaNs become quiet, VSEL loses the sign of zero and all of a NaN, the rest stays."""
    every = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256)
    tile = Tile.of(every.shape, 4, 8)
    source, target = (tile, Flat()) if direction == "rows" else (Flat(), tile)
    band = convert(source, target, every.shape, machine, 4, every.view(np.float16))
    assert band.exact == (machine is PREDICATED)
    changed = passed(every.view(np.float16), band).view(np.uint16) != every
    signalling = ((every & 0x7E00) == 0x7C00) & ((every & 0x01FF) != 0)
    if band.exact:
        assert (changed == signalling).all()
    else:
        assert changed.sum() == 1 + 2 * 1023 - 1
        assert every[changed & ((every & 0x7C00) != 0x7C00)].tolist() == [0x8000]


def test_word_permutations_move_every_code() -> None:
    """No bit of a whole word changes, signalling NaNs included."""
    every = np.arange(1 << 16, dtype=np.uint16).reshape(256, 256).view(np.float16)
    convert(Flat(), Entry(4, 1), every.shape, PLAIN, 4, every)
    convert(Tile.of(every.shape, 8, 8), Tile.of(every.shape, 2, 4), every.shape, PLAIN, 4, every)


# ------------------------------------------------------------------ the program


def test_image_of_a_word_permutation() -> None:
    """Eight words with the immediate; a RUN is two base writes and the RUN (7.2)."""
    band = relayout_band("a", Flat(), "b", Entry(2, 1), (64, 32), PREDICATED, 1, run_words=64)
    program = list(relayout_program(0, band.work((0, 1), SOURCE, TARGET), PREDICATED, 128))
    assert [word_text(i.word) for i in program if isinstance(i, Image)] == [
        "VSETI S0", ".imm 0x00000080", "VSETVL S0", "VSETMODE FLAT", "VFILL A1, L1 0", "VBAR", "VDRAIN A2, L1 0",
        "VHALT",
    ]  # fmt: skip
    assert [i.dim for i in program if isinstance(i, Dims)] == [0, 1, 2, 3] * 2
    bases = [(SOURCE + a, TARGET + b) for a, b in band.offsets]
    assert program[-6:] == [
        Desc(1, bases[0][0]), Desc(2, bases[0][1]), Run(0), Desc(1, bases[1][0]), Desc(2, bases[1][1]), Run(0),
    ]  # fmt: skip


@pytest.mark.parametrize(("machine", "per_block"), [(PREDICATED, 24), (PLAIN, 36)], ids=["predicated", "select"])
def test_instructions_of_a_block(machine: MachineSpec, per_block: int) -> None:
    """24 instructions per 32 words with predication, 36 without; a later RUN starts behind the prologue."""
    sizes = {}
    for words in (32, 64, 128):
        walk = Walk.run(words, 32)
        image, again = relayout_image(RelayoutWork(True, walk, walk, ((0, 0), (0, 0))), machine)
        check_image(image, machine, [(0, words)])
        sizes[words] = len(image)
        assert isinstance(image[again], Vfill)
        assert sum(isinstance(w, Vld | Vst) for w in image[again:]) == words // 4
    assert sizes[64] - sizes[32] == per_block
    assert sizes[128] - sizes[64] == 2 * per_block
    work = RelayoutWork(True, walk, walk, ((0, 0), (32, 0), (64, 0)))
    starts = [i.pc for i in relayout_program(0, work, machine, 128) if isinstance(i, Run)]
    assert starts == [0, again, again]
    body = image[again:]
    assert any(isinstance(w, Alu) for w in body) == (machine is PLAIN)
    assert sum(isinstance(w, Vshuf) and bool(w.where) for w in body) == (48 if machine is PREDICATED else 0)


def test_short_and_odd_lengths_of_a_run() -> None:
    """Words past the last whole block are computed and not drained."""
    array = codes((20, 48))
    band = convert(Tile.of((20, 48), 1, 12), Flat(), (20, 48), PREDICATED, 1, array, run_words=60)
    assert band.drain.words % 32
    image, _ = relayout_image(band.work((0,), SOURCE, TARGET), PREDICATED)
    assert [w.l1 for w in image if isinstance(w, Vdrain)] == [0]


def test_text_and_protocol() -> None:
    band = relayout_band("scores", Tile.of((64, 64), 8, 8), "rows", Flat(), (64, 64), PREDICATED, 4)
    assert band.text() == (
        "band VC tile:2x2:8x8 -> flat 64x64 form=granules instances=8 words=32 fill=32*32 "
        "drain=4*128,2*32,4*512 reads=scores writes=rows role=relayout"
    )
    assert (band.engine, band.role, band.nodes, band.acks) == ("VC", "relayout", (), 0)
    assert list(band.instances()) == [(i, 0) for i in range(len(band.offsets))]
    assert (band.reads, band.writes, band.words) == (("scores",), ("rows",), 256)
    plain = relayout_band("scores", Tile.of((64, 64), 8, 8), "rows", Flat(), (64, 64), PLAIN, 4)
    assert plain.text().endswith("role=relayout merge=select")
    program = relayout_program(0, band.work((0, 1), SOURCE, TARGET), PREDICATED, 20)
    assert UnitProgram.from_text(program.text()) == program
    assert all(encode(i, PREDICATED) for i in program)


# ------------------------------------------------------------------ cost


def one_core(source: ByteOrder, target: ByteOrder, shape: tuple[int, int], machine: MachineSpec, words: int) -> int:
    """Analytic cycles of a conversion by one core, ``words`` a RUN."""
    band = relayout_band("a", source, "b", target, shape, machine, 1, run_words=words)
    assert band.drain.words == words
    return relayout_cycles(band.work(tuple(range(len(band.offsets))), SOURCE, TARGET), machine)


def test_cycles_by_hand() -> None:
    """4,096 and 2,048 words on one core, payloads and RUNs counted apart (14.2).

    A granule RUN of 128 words is VFILL, VBAR, VDRAIN 1 each, VHALT 8 and 4 blocks of 24 (36) instructions of 8.
    """
    tile = Tile.of((1024, 64), 8, 8)
    assert one_core(tile, Flat(), (1024, 64), PREDICATED, 128) == 120 + 13 + 64 + 86 + 32 * (11 + 4 * 24 * 8)
    assert one_core(tile, Flat(), (1024, 64), PLAIN, 128) == 167 + 13 + 64 + 78 + 32 * (11 + 4 * 36 * 8)
    half = Tile.of((512, 64), 8, 8)
    assert one_core(half, Flat(), (512, 64), PLAIN, 128) == 167 + 13 + 32 + 78 + 16 * (11 + 4 * 36 * 8)
    assert one_core(Flat(), Entry(8, 2), (1024, 64), PREDICATED, 256) == 8 + 8 + 32 + 16 * 14


def test_cost_splits_into_payloads_and_runs() -> None:
    walk = Walk.run(128, 32)
    work = RelayoutWork(True, walk, walk, tuple((0, 0) for _ in range(5)))
    before, first, later = relayout_cost(work, PREDICATED)
    assert relayout_cycles(work, PREDICATED) == before + 10 + first + 4 * later
    assert first > later == 11 + 4 * 24 * 8


# ------------------------------------------------------------------ refusals


REFUSED = [
    (MxEntry(1, 1, "a"), Flat(), (4, 32), {}, "mx:1x1:a -> flat: mx:1x1:a: MXFP7 is quantised by a move and never"),
    (Flat(), MxEntry(1, 1, "b"), (4, 32), {}, "flat -> mx:1x1:b: mx:1x1:b: MXFP7"),
    (Flat(), Entry(2, 1), (4, 32), {}, "flat -> entry:2x1: the target holds 8x32 with its padding, the source 4x32"),
    (Flat(), Tile(1, 1, 2, 4), (4, 16), {}, "the target holds 8x16 .* allocate the source padded and zeroed"),
    (Tile(1, 1, 1, 4), Flat(), (3, 16), {}, "3x16 elements; granules are transposed in arrays of 4x16, allocate 4x16"),
    (Flat(), Entry(1, 1), (4, 24), {}, "rows of 24 elements at a pitch of 24 do not start on words"),
    (Flat(), Entry(1, 1), (4, 32), {"pitch_from": 16}, "pitch of 16 .* at least 32"),
    (Entry(1, 1), Flat(), (4, 32), {"pitch_from": 64}, "entry:1x1: a pitch of 64 elements; only flat rows have one"),
    (Flat(), Tile(1, 1, 1, 3), (4, 12), {"pitch_from": 16}, "4x12 elements; granules .* allocate 4x16"),
    (Tile(1, 1, 1, 4), Flat(), (4, 64), {}, "tile:1x1:1x4: shape .* needs a grid of another size"),
    (Flat(), Entry(1, 1), (0, 32), {}, "a matrix of 0x32 has no element"),
]


@pytest.mark.parametrize(("a", "b", "shape", "options", "message"), REFUSED)
def test_refusals(a: ByteOrder, b: ByteOrder, shape: tuple[int, int], options: dict[str, int], message: str) -> None:
    """Both keys, the reason and the way out."""
    with pytest.raises(CompileError, match=message) as caught:
        relayout_band("x", a, "y", b, shape, PREDICATED, 2, **options)
    assert str(caught.value).startswith(f"{a.key} -> {b.key}: ")


def test_no_equal_walks() -> None:
    """Tiles of 67 sub-tiles: the first array that repeats has 268 words, more than a walk."""
    shape = 8, 4 * 67 * 4
    with pytest.raises(CompileError, match=r"tile:1x4:2x67 -> flat: no walk of 4 dimensions covers equal rectangles"):
        relayout_band("x", Tile.of(shape, 2, 67), "y", Flat(), shape, PREDICATED, 2)


def test_refusal_of_an_image() -> None:
    with pytest.raises(CompileError, match=r"an image of \(3, 3, 32\) is not a matrix of 8x32"):
        relayout_band("x", ConvEntry(1, 1), "y", Flat(), (8, 32), PREDICATED, 1, image=(3, 3, 32))


def test_refusals_of_a_core() -> None:
    """Every limit of the unit program, at its boundary."""
    good = RelayoutWork(True, Walk.run(32, 32), Walk.run(32, 32), ((0, 0),))
    relayout_image(good, PREDICATED)
    far = Walk(((32, 4), (1 << 17, 8)))
    for work, message in (
        (replace(good, fill=Walk.run(64, 32)), "64 words are filled, 32 drained"),
        (replace(good, fill=Walk.run(6, 32), drain=Walk.run(6, 32)), "6 words; granules are transposed in groups of 4"),
        (replace(good, fill=far), "relayout fill: a stride of 131072 bytes"),
        (replace(good, drain=Walk(((48, 32),))), "relayout drain: a stride of 48 bytes"),
        (replace(good, fill=Walk.run(288, 32)), "a walk of 288 words; a fill or drain moves 1..256"),
        (replace(good, fill=Walk(((32, 2),) * 5)), "a walk of 5 dimensions; a descriptor has 4"),
        (replace(good, runs=((0, 8),)), "run 0 starts at 0x8; a walk starts at a multiple of 32 bytes"),
    ):
        with pytest.raises(CompileError, match=message):
            relayout_image(work, PREDICATED)
    relayout_image(replace(good, fill=Walk(((32, 4), (-(1 << 17), 8)))), PREDICATED)
    with pytest.raises(CompileError, match="L1 words are needed; the core has 16"):
        relayout_image(good, PREDICATED.with_(vc_l1_words=16))
    with pytest.raises(CompileError, match="instruction memory holds 40, move fewer words a run"):
        relayout_image(good, PREDICATED.with_(vc_imem=40))
    with pytest.raises(CompileError, match="VC2: no run"):
        relayout_program(2, replace(good, runs=()), PREDICATED, 128)


def test_coverage_check_sees_gaps_and_overlaps() -> None:
    """A band with a RUN too many, or one whose drain misses, is caught."""
    shape = 64, 64
    band = relayout_band("a", Flat(), "b", Entry(4, 1), shape, PREDICATED, 4)
    side = Side.of(Matrix(Entry(4, 1), shape), shape, False)
    covered(band, side)
    with pytest.raises(CoverageError, match="OVERLAP: b byte"):
        covered(replace(band, offsets=(*band.offsets, band.offsets[0])), side)
    with pytest.raises(CoverageError, match="GAP: b byte"):
        covered(replace(band, offsets=band.offsets[1:]), side)


def test_factoring() -> None:
    """Fewest dimensions, also where a shorter inner run is needed; none where nothing repeats."""
    assert factor(np.arange(8, dtype=np.int64) * 32) == ((32, 8),)
    assert factor(np.array([0, 32, 64, 128, 160, 192], dtype=np.int64)) == ((32, 3), (128, 2))
    assert factor(np.array([0, 1, 2, 5, 3, 4, 5, 8], dtype=np.int64)) is None
    assert factor(np.array([0, 32, 64, 96, 32, 64, 96, 128], dtype=np.int64)) == ((32, 4), (32, 2))
    assert factor(np.array([0, 32, 64, 97], dtype=np.int64)) is None
    assert factor(np.array([0], dtype=np.int64)) == ()
