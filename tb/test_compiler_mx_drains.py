# SPDX-License-Identifier: Apache-2.0
"""Results drained as MXFP7 entries: no quantise move, the same bits (docs/spec/compiler.md 9.4, vector.md 15)."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import kernel_cases as kc
import ktpu
from drained_rows import Case, attention, chain, checked, conversions, folded, given, half
from kohakubench.plans import artifact_of, expected, run_plan
from kohakubench.programs import description, device, spec
from kohakutpu.chain import ChainBuilder
from kohakutpu.cost import DEFAULT, REF, executed, price
from kohakutpu.errors import CompileError, CoverageError, EncodeError, HazardError
from kohakutpu.program import Image, LaneWork, Store, Stream, Walk, assemble, build_image, encode, parse, text
from kohakutpu.program.encode import decode_envelope
from kohakutpu.program.vector_check import check_image
from kohakutpu.program.vector_words import Bar, Halt, Vdrain, Vfill, Vld, Vst, decode_word, encode_word
from kohakutpu.schedule import Contraction, Elementwise, Operand, Request, Schedule, Tiling, VectorBand, emit, plan
from kohakutpu.schedule.lanes_choice import covered
from kohakutpu.schedule.lanes_entries import fitted
from kohakutpu.schedule.requantise import Requantise
from kohakutpu.views import Spread, Window

pytestmark = pytest.mark.unit

FEATURES = ("drain_rowmajor", "vec_mx_store")


def machine_of(*features: str) -> dict[str, Any]:
    """Two clusters and two cores; with some of :data:`FEATURES`."""
    known = ("emit_fuse", "stage_l2", "vshuf_pred", *features)
    rows = int("drain_rowmajor" in features)
    return description(2, cores=2, features=known, stage_bytes=2 << 20, MG_ROWMAJOR=rows)


PLAIN, ROWS, STORE, BOTH = (machine_of(*f) for f in ((), FEATURES[:1], FEATURES[1:], FEATURES))


def check(case: Case, machine: dict[str, Any] = BOTH, **options: Any) -> Schedule:
    """Run: every bit is that of the whole-array evaluation and of a machine without the features."""
    return checked(case, machine, PLAIN, **options)


def moves(schedule: Schedule) -> list[str]:
    """Values that a move quantises."""
    return [c.value for c in schedule.conversions if isinstance(c, Requantise)]


def entry_bands(schedule: Schedule) -> list[VectorBand]:
    """Bands that drain entries."""
    return [b for b in schedule.bands if isinstance(b, VectorBand) and b.form == "entries"]


def reasons(schedule: Schedule) -> list[str]:
    """Why values are quantised by a move."""
    return [n for n in schedule.notes if "quantised by a move" in n]


def between(name: str, shape: tuple[int, int], tiling: Tiling | None, role: str = "temp") -> Case:
    """A pass over rows of the host, and a product with ``tiling`` that reads its result."""
    y, last = Operand("y", role, shape), Operand("o", "out", (shape[0], 16))
    product = Contraction(y, Operand("v", "in", (16, shape[1])), last, tiling)
    passed = Elementwise(chain(name), (Operand("x", "in", shape),), (y,))
    return [passed, product], {"x": half(*shape), **given(product)}, []


# -- plans --


@pytest.mark.parametrize("machine", [STORE, BOTH], ids=["store", "both"])
@pytest.mark.parametrize("cols", [32, 64, 96, 128])
def test_a_fold_between_products(cols: int, machine: dict[str, Any]) -> None:
    """Rows of one to four entries, with the entries of the product that reads them."""
    schedule = check(folded("softmax", (64, cols)), machine)
    assert moves(schedule) == reasons(schedule) == []
    (band,) = entry_bands(schedule)
    assert band.text().endswith(" out=mx:a")
    assert band.stride == (() if cols == 32 else ((1, 2), (8, cols // 32)))
    y = schedule.buffers["y"]
    assert y.layout.startswith("mx:")
    assert y.nbytes == 64 * cols
    assert "y:mx" not in schedule.text()
    (number,) = [n for n, b in enumerate(schedule.bands) if b is band]
    words = [i.word for p in emit(schedule, spec(machine))[number] for i in p if isinstance(i, Image)]
    assert {(w.mx, w.l1 % 8) for w in words if isinstance(w, Vdrain)} == {("a", 0)}


@pytest.mark.parametrize("name", ["softmax", "relu"])
def test_image_of_the_entries(name: str) -> None:
    """Byte for byte what the mover makes of the same rows."""
    images = []
    for machine in (ROWS, BOTH):
        requests, values, _ = folded(name, (96, 128), Tiling(4, 8, 1))
        schedule = plan(requests, spec(machine), reuse_temps=False)
        dev = device(machine)
        assert not dev.run(artifact_of(schedule, values, machine)).failed
        (b,) = [b for n, b in schedule.buffers.items() if n.startswith("y") and b.layout.startswith("mx")]
        images.append((b.layout, dev.read(b.address, b.nbytes)))
    assert images[0] == images[1]
    assert len(set(images[0][1])) > 16


@pytest.mark.parametrize("tiling", [Tiling(2, 4, 1), Tiling(8, 4, 4), Tiling(8, 4, 8)], ids=str)
def test_rows_wider_than_a_run(tiling: Tiling) -> None:
    """Runs take parts of rows: whole entries, and as many as divide a chunk of K or are whole chunks."""
    schedule = check(between("relu", (64, 1280), tiling))
    assert moves(schedule) == []
    (band,) = entry_bands(schedule)
    assert len(band.offsets) >= 64 * 80 // 256


def gated(role: str = "temp") -> Case:
    """mul of two products, read by a third."""
    x, shape = Operand("x", "in", (32, 64)), (32, 96)
    z = [Operand(f"z{i}", "temp", shape) for i in range(2)]
    made = [Contraction(x, Operand(f"w{i}", "in", (96, 64)), z[i]) for i in range(2)]
    y = Operand("y", role, shape)
    last = Contraction(y, Operand("v", "in", (32, 96)), Operand("o", "out", (32, 32)))
    requests: list[Request] = [*made, Elementwise(chain("mul"), tuple(z), (y,)), last]
    return requests, given(*made, last), []


def test_a_gate_between_products() -> None:
    """Two products, their gate and a third product without any conversion."""
    schedule = check(gated())
    assert schedule.conversions == ()
    assert conversions(schedule) == (0, 0, 2)


def test_an_output_keeps_its_rows() -> None:
    """The region of a result that is also an output is drained twice: as rows and as entries."""
    schedule = check(gated("out"))
    assert moves(schedule) == []
    (band,) = entry_bands(schedule)
    first, second = band.stores
    assert (first.mx, second.mx, first.l1, second.again) == ("", "a", second.l1, True)
    assert " out=rows,mx:a" in band.text()


def read_twice(*last: tuple[str, Tiling]) -> Case:
    """A pass over rows whose result several products read, on the side named first."""
    x, y = Operand("x", "in", (64, 64)), Operand("y", "temp", (64, 64))
    requests: list[Request] = [Elementwise(chain("softmax"), (x,), (y,))]
    products = []
    for i, (side, tiling) in enumerate(last):
        v, o = Operand(f"v{i}", "in", (64, 64)), Operand(f"o{i}", "out", (64, 64))
        products.append(Contraction(*((y, v) if side == "a" else (v, y)), o, tiling))
    return [*requests, *products], {"x": half(64, 64), **given(*products)}, []


def test_one_side_and_the_other() -> None:
    """Keys of one product are queries of another, in entries of three orders, from one region."""
    case = read_twice(("a", Tiling(4, 4, 1)), ("b", Tiling(2, 8, 2)), ("a", Tiling(8, 2, 2)))
    schedule = check(case)
    assert moves(schedule) == []
    (band,) = entry_bands(schedule)
    assert band.writes == ("y", "y:mx:8x2:b", "y:mx:8x2:a")
    assert " out=mx:a,mx:b,mx:a" in band.text()
    assert len({s.l1 for s in band.stores}) == 1
    words = [i.word for i in emit(schedule, spec(BOTH))[0][0] if isinstance(i, Image)]
    assert sum(isinstance(w, Vst) for w in words) == band.steps


def test_a_value_that_a_pass_reads_too() -> None:
    """The FP16 rows stay for the pass."""
    requests, values, _ = read_twice(("a", Tiling(4, 4, 1)))
    y = Operand("y", "temp", (64, 64))
    requests.append(Elementwise(chain("relu"), (y,), (Operand("r", "out", y.shape),)))
    schedule = check((requests, values, []))
    assert moves(schedule) == []
    assert [s.mx for s in entry_bands(schedule)[0].stores] == ["", "a"]


READS = {
    "one row": None,
    "every four rows": Spread(64, 64, 4, 64),
    "half rows": Spread(0, 32, 8, 32),
    "every three rows": Spread(0, 64, 3, 64),
    "thirds": Spread(0, 32, 3, 32),
}


@pytest.mark.parametrize("kind", READS)
def test_a_second_operand(kind: str) -> None:
    """What every RUN finds in one order of at most four dimensions is filled as it lies in L1."""
    spread, b = READS[kind], ChainBuilder()
    both = b.chain([b.op("add", b.op("exp2", b.operand(0)), b.operand(1))])
    c, h = Operand("c", "temp", (48, 64)), Operand("h", "temp", (48, 64))
    first = Contraction(Operand("x", "in", (48, 64)), Operand("w", "in", (64, 64)), c)
    last = Contraction(h, Operand("v", "in", (32, 64)), Operand("o", "out", (48, 32)), Tiling(4, 8, 2))
    some = half(1 if spread is None else 32, 64, seed=9)
    side, reads = Operand("s", "in", some.shape), () if spread is None else (None, spread)
    values = {**given(first, last), "s": some}
    schedule, got = run_plan([first, Elementwise(both, (c, side), (h,), reads), last], values, BOTH)
    # as whole rows
    every = np.arange(48 * 64) % 64 if spread is None else spread.sources(48 * 64)
    values["s"] = some.reshape(-1)[every].reshape(48, 64)
    want = expected([first, Elementwise(both, (c, replace(side, shape=(48, 64))), (h,)), last], values)
    assert np.array_equal(got["o"], want["o"].view(np.uint16))
    assert moves(schedule) == (["h"] if kind == "thirds" else [])
    assert bool(reasons(schedule)) == bool(moves(schedule))


def test_a_last_run_of_fewer_rows() -> None:
    """Rows that the runs do not divide: the last one has walks of its own, in rows and in entries."""
    schedule = check(between("softmax", (76, 64), Tiling(1, 4, 2), role="out"))
    assert moves(schedule) == []
    (band,) = entry_bands(schedule)
    rows, entries = band.short[-2:]
    assert entries.words * 8 == rows.words < band.stores[0].words


@pytest.mark.parametrize("seed", range(12))
def test_random_plans(seed: int) -> None:
    """Random shapes, tilings, passes and features: a move or a drain, always the same bits."""
    rng = random.Random(seed)
    shape = 4 * rng.randint(1, 24), 32 * rng.randint(1, 6)
    name = rng.choice(["softmax", "relu"] if shape[1] <= 128 else ["relu"])
    tiling = rng.choice([None, Tiling(rng.randint(1, 4), 4 * rng.randint(1, 4), rng.randint(1, 2))])
    schedule = check(between(name, shape, tiling, rng.choice(["temp", "out"])), rng.choice([STORE, BOTH]))
    assert len(moves(schedule)) == len(reasons(schedule)) == 1 - len(entry_bands(schedule))


# -- refusals --


def parts() -> Case:
    """A pass into the left half of what a product reads."""
    left = Operand("l", "temp", (32, 32), of="y", window=Window(1, 0, 32, 0, 32))
    right = replace(left, name="r", window=Window(1, 0, 32, 32, 32))
    product = Contraction(
        Operand("y", "temp", (32, 64)), Operand("v", "in", (16, 64)), Operand("o", "out", (32, 16))
    )
    x = Operand("x", "in", (32, 32))
    requests: list[Request] = [Elementwise(chain("softmax"), (x,), (p,)) for p in (left, right)]
    return [*requests, product], {"x": half(32, 32), **given(product)}, []


def direct() -> Case:
    """A product of a product."""
    h = Operand("h", "temp", (32, 64))
    first = Contraction(Operand("x", "in", (32, 64)), Operand("w", "in", (64, 64)), h)
    last = Contraction(h, Operand("v", "in", (32, 64)), Operand("o", "out", (32, 32)))
    return [first, last], given(first, last), []


@pytest.mark.parametrize(
    ("case", "machine", "why"),
    [
        (between("softmax", (36, 64), Tiling(2, 4, 2)), BOTH, "y is 36x64, its entries mx:2x2:a are 40x64"),
        (between("softmax", (32, 48), Tiling(2, 4, 1)), BOTH, "y is 32x48, its entries mx:2x1:a are 32x64"),
        (folded("relu", (32, 64)), STORE, "it lies in tiles"),
        (parts(), BOTH, "it is no whole result of a pass over rows"),
        (direct(), BOTH, "it is no whole result of a pass over rows"),
    ],
    ids=["rows", "columns", "tiles", "parts", "product"],
)
def test_what_keeps_its_move(case: Case, machine: dict[str, Any], why: str) -> None:
    """The schedule says why, and nothing of the sort on a machine without the feature."""
    schedule = check(case, machine)
    assert entry_bands(schedule) == []
    (name,) = moves(schedule)
    (note,) = reasons(schedule)
    assert note.startswith(f"{name.partition(':')[0]}: quantised by a move; {why}")
    assert reasons(plan(case[0], spec(ROWS), buffers=case[2])) == []


def test_too_many_descriptors() -> None:
    """Six operands and an output beside its entries: the move stays."""
    b = ChainBuilder()
    total = b.operand(0)
    for i in range(1, 6):
        total = b.op("add", total, b.operand(i))
    y = Operand("y", "out", (32, 64))
    product = Contraction(y, Operand("v", "in", (16, 64)), Operand("o", "out", (32, 16)))
    names = [f"x{i}" for i in range(6)]
    summed = Elementwise(b.chain([total]), tuple(Operand(n, "in", y.shape) for n in names), (y,))
    values = {n: half(32, 64, seed=k) for k, n in enumerate(names)}
    (note,) = reasons(check(([summed, product], {**values, **given(product)}, [])))
    assert "need 9 address descriptors" in note


def test_coverage_counts_entries() -> None:
    """A band whose runs leave out or repeat an entry is refused with its number."""
    (band,) = entry_bands(plan(between("softmax", (64, 64), Tiling(4, 4, 1), "out")[0], spec(BOTH)))
    covered(band, spec(BOTH))
    repeated, further = np.array(band.offsets), np.array(band.offsets)
    repeated[1, -1] = repeated[0, -1]
    with pytest.raises(CoverageError, match="OVERLAP: y:mx:4x1:a entry 0 is written twice"):
        covered(replace(band, offsets=repeated), spec(BOTH))
    further[0, -1] = 128 * 32
    with pytest.raises(CoverageError, match="OVERSHOOT: y:mx:4x1:a entry 32 is no part"):
        covered(replace(band, offsets=further), spec(BOTH))


def test_a_walk_of_four_dimensions() -> None:
    """What a descriptor can walk, and what it cannot."""
    grid = np.arange(2)[:, None] * 7 + np.arange(3) * 3
    assert fitted(grid.reshape(-1), 32, spec(BOTH)) == Walk(((96, 3), (224, 2)))
    assert fitted(np.array([4]), 128, spec(BOTH)) == Walk(((128, 1),))
    assert fitted(np.array([0, 1, 2, 4]), 32, spec(BOTH)) is None
    assert fitted(np.array([0, 1, 5, 7]), 32, spec(BOTH)) is None
    five = np.zeros(1, dtype=np.int64)
    for k in range(5):
        five = (np.arange(2)[:, None] * 3**k + five).reshape(-1)
    assert fitted(five, 32, spec(BOTH)) is None


# -- words --


@pytest.mark.parametrize("word", [Vdrain(4, 0, "a"), Vdrain(7, 504, "b"), Vdrain(3, 16)], ids=str)
def test_text_and_word(word: Vdrain) -> None:
    """Word, payload and text go there and back."""
    assert decode_word(encode_word(word)) == word
    image = Image(9, word)
    assert decode_envelope(encode(image, spec(BOTH))) == image
    assert parse(text(image)) == image
    assert ("mx=1" in text(image)) == bool(word.mx)


def test_refused_words() -> None:
    """A drain that the hardware would refuse is never encoded."""
    with pytest.raises(EncodeError, match="packing 'c'; a drain quantises for side a or b"):
        encode_word(Vdrain(4, 0, "c"))
    with pytest.raises(EncodeError, match="an entry of 8 words at L1 word 505; L1 has 512 words, start at 504"):
        encode_word(Vdrain(4, 505, "a"))
    with pytest.raises(EncodeError, match=r"packing 2; a drain to memory quantises for side a \(0\) or b \(1\)"):
        decode_word(encode_word(Vdrain(4, 0, "b")) + (1 << 9))
    with pytest.raises(EncodeError, match="machine hand2 has no drain that quantises"):
        encode(Image(0, Vdrain(4, 0, "a")), spec(ROWS))


def work(entries: int = 4, **changed: Any) -> LaneWork:
    """A copy of ``entries`` entries by one core."""
    b = ChainBuilder()
    words = 8 * entries
    steps = tuple(range(0, words, 8))
    stream = Stream("x", 0, words, steps, Walk.run(words, 32))
    store = replace(Store("y", words, words, steps, Walk.run(entries, 128), mx="a"), **changed)
    return LaneWork(b.chain([b.op("neg", b.operand(0))]), 128, (stream,), (store,), ((0, 0),))


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (work(16, words=264, drain=Walk.run(33, 128)), "y: 33 entries of 8 words; a drain quantises 1..32 entries"),
        (work(drain=Walk.run(5, 128)), "y: 40 words are moved, its region holds 32"),
        (work(l1=488), "520 L1 words are needed; the core has 512"),
        (work(mx="c"), "y: FP16 words for side 'c'; FP16 words are quantised for side a or b"),
        (work(again=True), "y: its region at 32 holds no other result of the same value"),
        (replace(work(), stride=((1, 2), (2, 3))), "a step of 128 elements walks L1 in"),
    ],
    ids=["entries", "region", "end", "side", "again", "stride"],
)
def test_refused_work(made: LaneWork, message: str) -> None:
    """Every limit of vector.md 15 is checked before there are words."""
    with pytest.raises(CompileError, match=message):
        build_image(made, spec(BOTH))


def test_work_for_another_machine() -> None:
    """Accepted where cores quantise, refused elsewhere with the way out."""
    assert Vdrain(2, 32, "a") in build_image(work(), spec(BOTH))
    with pytest.raises(CompileError, match="machine hand2 has no drain that quantises"):
        build_image(work(), spec(ROWS))


def test_a_load_that_walks_into_a_fill() -> None:
    """Every word of a load is held against fills that nothing waited for, not its first one alone."""
    words = [Vfill(1, 8), Vld(0, 0, 0), Bar(), Halt()]
    check_image(words, spec(BOTH), [(8, 8)])
    with pytest.raises(HazardError, match="touches words of a fill that no VBAR waited for"):
        check_image(words, spec(BOTH), [(8, 8)], stride=((1, 2), (8, 2)))


@pytest.mark.parametrize("name", ["softmax", "relu"])
def test_two_routes_to_the_cost(name: str) -> None:
    """Analytic and executed cycles agree, and an entry counts as the four words it is."""
    schedule, machine = plan(folded(name, (64, 128))[0], spec(BOTH)), spec(BOTH)
    for programs in emit(schedule, machine):
        for program, unit in zip(programs, assemble(programs, machine), strict=True):
            words = [w for p in unit.programs for w in p.payloads]
            for profile in (DEFAULT, REF):
                counted = executed.payloads(program.engine, words, machine, profile)
                assert price.program(program, machine, profile) == counted
    (number,) = [n for n, b in enumerate(schedule.bands) if b in entry_bands(schedule)]
    spent = [price.program(p, machine, REF) for p in emit(schedule, machine)[number]]
    assert sum(s.words for s in spent) == 64 * 8 + 64 * 8 // 2


# -- kernels --


def values_of(made: ktpu.Compiled, machine: dict[str, Any]) -> list[bytes]:
    """Outputs on the model, in logical order."""
    dev = device(machine)
    result = dev.run(made.artifact)
    assert not result.failed, result.problems()
    return [ktpu.read_output(o, dev.read(o.address, o.nbytes)).tobytes() for o in made.artifact.outputs]


@pytest.mark.parametrize("blocks", range(1, 9))
def test_conversions_of_attention(blocks: int) -> None:
    """Neither granule conversions nor quantise moves; dispatches are those of the machine without the drain."""
    call, seen = attention(1, 64, 64 * blocks), []
    for machine in (PLAIN, ROWS, STORE, BOTH):
        c = ktpu.compile(call, spec(machine)).artifact.meta["counters"]
        seen.append((c["relayouts_device"], c["quantised"], c["moves"], c["relayouts"]))
        assert c["dispatches"] == 4 * blocks + 2
    assert seen == [(2 * blocks, blocks, blocks, 0), (0, blocks, blocks, 0), (2 * blocks, 0, 0, 0), (0, 0, 0, 0)]


KNOBS: dict[str, tuple[int, int, dict[str, Any]]] = {
    "plain": (64, 64, {}),
    "block 32": (32, 64, {"block": 32}),
    "keys": (64, 128, {"keys": 77}),
    "causal": (128, 128, {"qblock": 64, "causal": True}),
    "groups": (128, 64, {"groups": 2}),
    "block 96": (32, 192, {"block": 96, "value": 96}),
    "block 128": (32, 128, {"block": 128, "value": 256}),
}
SLOW = ("causal", "groups", "keys")


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] if k in SLOW else []) for k in KNOBS])
def test_attention_bit_for_bit(kind: str) -> None:
    """Weights of one to four entries a row, masked, stacked, in blocks: one result on every machine."""
    queries, length, knobs = KNOBS[kind]
    call, results = attention(1, queries, length, **knobs), set()
    for machine in (PLAIN, ROWS, STORE, BOTH):
        made = ktpu.compile(call, spec(machine))
        quantised = made.artifact.meta["counters"]["quantised"]
        assert bool(quantised) == ("vec_mx_store" not in machine["features"])
        results.add(tuple(values_of(made, machine)))
    assert len(results) == 1


def test_hidden_layer_without_a_conversion() -> None:
    """mlp: three dispatches and nothing between them."""
    case = next(c for c in kc.CASES if c.name.startswith("mlp_64x128x256x64"))
    call = ktpu.call(case.kernel(), *case.draw().values(), **case.knobs)
    made = ktpu.compile(call, spec(BOTH))
    counters = made.artifact.meta["counters"]
    assert [counters[n] for n in ("moves", "quantised", "relayouts_device", "dispatches")] == [0, 0, 0, 3]
    assert values_of(made, BOTH) == values_of(ktpu.compile(call, spec(PLAIN)), PLAIN)
