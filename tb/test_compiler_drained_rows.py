# SPDX-License-Identifier: Apache-2.0
"""Products drained as rows: no conversion, the same bits (docs/spec/compiler.md 6 Rows, 7.1; kernels.md 5.4, H12)."""

from __future__ import annotations

import random
from typing import Any

import pytest

import kernel_cases as kc
import ktpu
from drained_rows import Case, attention, chain, checked, conversions, folded, given, joined
from kohakubench.programs import description, spec
from kohakutpu.chain import ChainBuilder
from kohakutpu.errors import EncodeError
from kohakutpu.program import Drain
from kohakutpu.program.encode import decode, encode
from kohakutpu.program.instructions import parse, text
from kohakutpu.schedule import Band, Contraction, Elementwise, Operand, Request, Schedule, Tiling, emit, plan
from kohakutpu.views import Spread, Window

pytestmark = pytest.mark.unit

BASE = ("emit_fuse", "stage_l2", "vshuf_pred")
STAGE = 2 << 20
CORES = description(2, cores=2, features=BASE, stage_bytes=STAGE)
ROWS = description(2, cores=2, features=(*BASE, "drain_rowmajor"), stage_bytes=STAGE, MG_ROWMAJOR=1)
BOTH = description(
    2, cores=2, features=(*BASE, "xform_granule", "drain_rowmajor"), stage_bytes=STAGE, MG_ROWMAJOR=1
)


def check(case: Case, machine: dict[str, Any] = ROWS, **options: Any) -> Schedule:
    """Run: every bit is that of the whole-array evaluation and of a machine that drains tiles."""
    return checked(case, machine, CORES, **options)


def drains(schedule: Schedule, machine: dict[str, Any] = ROWS) -> list[Drain]:
    """Every DRAIN of a schedule that writes rows."""
    programs = [p for band in emit(schedule, spec(machine)) for p in band]
    return [i for p in programs for i in p if isinstance(i, Drain) and i.gn]


@pytest.mark.parametrize("machine", [ROWS, BOTH], ids=["rows", "rows_and_mover"])
@pytest.mark.parametrize("tiling", [None, Tiling(2, 4, 2), Tiling(4, 8, 1), Tiling(3, 12, 1)], ids=str)
def test_a_fold_over_a_product(tiling: Tiling | None, machine: dict[str, Any]) -> None:
    """One or many tiles, rows that end inside a tile: the buffer is in rows, and nothing is converted but to MXFP7."""
    schedule = check(folded("softmax", (36, 96), tiling), machine)
    assert conversions(schedule) == (0, 0, 1)
    z = schedule.buffers["z"]
    assert z.layout == "flat"
    band = schedule.bands[0]
    assert isinstance(band, Band)
    assert not band.emit_fuse
    assert " out=rows" in band.text()
    made = drains(schedule)
    assert len(made) == band.grid[0] * band.grid[1]
    assert {(d.gn, d.pitch, d.n) for d in made} == {(band.tiling.gn, 6, band.tiling.gm * band.tiling.gn)}
    ends = [d.at + 32 * (6 * (4 * band.tiling.gm - 1) + band.tiling.gn // 4) for d in made]
    assert max(ends) == z.address + z.nbytes
    (quantised,) = schedule.conversions
    assert quantised.text().startswith("quantise before band 2: y -> y:mx:")


@pytest.mark.parametrize(
    ("shape", "tiling"),
    [((32, 48), Tiling(2, 8, 1)), ((32, 64), Tiling(4, 2, 1)), ((16, 96), Tiling(2, 16, 1))],
    ids=["the last tile passes the rows", "gn 2", "one tile wider than the rows"],
)
def test_tiles_that_are_no_rows(shape: tuple[int, int], tiling: Tiling) -> None:
    """A named tiling whose tiles do not end with the rows on words stays in tiles and is converted."""
    moved, cores, rows = conversions(check(folded("softmax", shape, tiling)))
    assert (moved, cores, rows) == (0, 1, 0)


@pytest.mark.parametrize("tiling", [None, Tiling(2, 4, 2)], ids=str)
def test_parts(tiling: Tiling | None) -> None:
    """Two products side by side, each with the pitch of the buffer they are parts of."""
    schedule = check(joined("softmax", (32, 48), tiling))
    assert conversions(schedule) == (0, 0, 2)
    assert {d.pitch for d in drains(schedule)} == {6}
    assert not any(n.endswith(":tile") for n in schedule.buffers)


def test_parts_in_blocks() -> None:
    """A batch into rows and columns of every block; what is no part keeps what another product put there."""
    cat = Operand("cat", "temp", (3 * 40, 96))
    parts = [Window(3, 0, 40, 0, 32), Window(3, 8, 16, 32, 64), Window(3, 24, 16, 32, 64), Window(3, 0, 8, 32, 64)]
    requests: list[Request] = []
    for i, w in enumerate(parts):
        a, b = Operand(f"a{i}", "in", (3 * w.rows, 32)), Operand(f"b{i}", "in", (3 * w.cols, 32))
        c = Operand(f"c{i}", "temp", (3 * w.rows, w.cols), of="cat", window=w)
        windows = Window(3, 0, w.rows, 0, 32), Window(3, 0, w.cols, 0, 32)
        requests.append(Contraction(a, b, c, None, *windows, batch=3))
    values = given(*(r for r in requests if isinstance(r, Contraction)))
    requests.append(Elementwise(chain("softmax"), (cat,), (Operand("o", "out", cat.shape),)))
    schedule = check((requests, values, [cat]))
    assert conversions(schedule) == (0, 0, 4)


def test_a_product_of_a_product() -> None:
    """An operand is drained as rows and quantised by one move."""
    h = Operand("h", "temp", (40, 64))
    first = Contraction(Operand("x", "in", (40, 64)), Operand("w", "in", (64, 64)), h)
    last = Contraction(h, Operand("v", "in", (32, 64)), Operand("o", "out", (40, 32)))
    assert conversions(check(([first, last], given(first, last), []))) == (0, 0, 1)


def gated(role: str = "temp") -> Case:
    """mul of two products, read by a third."""
    x, shape = Operand("x", "in", (32, 64)), (32, 96)
    z = [Operand(f"z{i}", "temp", shape) for i in range(2)]
    made = [Contraction(x, Operand(f"w{i}", "in", (96, 64)), z[i]) for i in range(2)]
    y = Operand("y", role, shape)
    last = Contraction(y, Operand("v", "in", (32, 96)), Operand("o", "out", (32, 32)))
    requests: list[Request] = [*made, Elementwise(chain("mul"), tuple(z), (y,))]
    return [*requests, last] if role == "temp" else requests, given(*made, last), []


def test_a_plain_pass_between_products() -> None:
    """It works on rows, because its only reader needs them; asked onto the arriving tile it stays there."""
    assert conversions(check(gated())) == (0, 0, 2)
    requests, values, _ = gated("out")
    del values["v"]
    assert conversions(check((requests, values, []))) == (0, 0, 0)
    moved, cores, rows = conversions(plan(gated()[0], spec(BOTH), fuse="require"))
    assert (moved, cores, rows) == (0, 0, 0)


def test_a_value_read_in_tiles_too() -> None:
    """One reader in rows and one in tile order: the product stays in tiles and its rows are made once."""
    z = Operand("z", "temp", (32, 64))
    c = Contraction(Operand("x", "in", (32, 64)), Operand("w", "in", (64, 64)), z)
    passes = [Elementwise(chain(n), (z,), (Operand(f"o_{n}", "out", z.shape),)) for n in ("relu", "softmax")]
    assert conversions(check(([c, *passes], given(c), []))) == (0, 1, 0)


@pytest.mark.parametrize("seed", range(12))
def test_random_plans(seed: int) -> None:
    """Random shapes and tilings, whole results and parts."""
    rng = random.Random(seed)
    shape = (rng.randint(1, 40), 16 * rng.randint(1, 8))
    tiling = rng.choice([None, Tiling(rng.randint(1, 4), rng.randint(1, 12), rng.randint(1, 2))])
    if rng.random() < 0.5 and shape[0] % 4 == 0:
        check(joined("softmax", shape, None))
    else:
        check(folded("softmax" if shape[1] <= 128 else "relu", shape, tiling))


# -- instructions --


def test_text_and_word() -> None:
    """Both forms go there and back."""
    machine = spec(ROWS)
    largest = Drain(4, 0x20, gn=4, pitch=(1 << 22) - 1)
    for drain in (Drain(32, 0x4000, gn=8, pitch=2), largest, Drain(504, gn=252, pitch=63)):
        assert parse(text(drain)) == drain
        assert decode(encode(drain, machine), machine) == drain
    assert text(Drain(32, 0x4000, gn=8, pitch=2)) == "drain n=32 at=0x4000 gn=8 pitch=2"


@pytest.mark.parametrize(
    ("drain", "message"),
    [
        (Drain(8, gn=6, pitch=4), "gn = 6; rows of words take a multiple of 4"),
        (Drain(8, pitch=4), "gn = 0; rows of words take a multiple of 4"),
        (Drain(10, gn=4, pitch=4), "n = 10; it is a multiple of gn = 4"),
        (Drain(16, gn=8, pitch=1), "pitch = 1; a row has 2 words"),
        (Drain(8, gn=4, pitch=1 << 22), "pitch"),
        (Drain(8, fuse=1, gn=4, pitch=1), "only an explicit FP16 drain writes rows"),
        (Drain(8, to="MG1", buf=2, gn=4, pitch=1), "only an explicit FP16 drain writes rows"),
    ],
    ids=str,
)
def test_refused_words(drain: Drain, message: str) -> None:
    """A row drain that the hardware would refuse is never encoded."""
    with pytest.raises(EncodeError, match=message):
        encode(drain, spec(ROWS))


def test_a_machine_without_it() -> None:
    """Neither a plan nor an encoder uses it there."""
    requests, _, _ = folded("softmax", (32, 64))
    assert conversions(plan(requests, spec(CORES))) == (0, 1, 0)
    with pytest.raises(EncodeError, match="machine hand2 has no row-major drain"):
        encode(Drain(8, gn=4, pitch=1), spec(CORES))


# -- kernels --


def values_of(made: ktpu.Compiled, machine: str) -> list[bytes]:
    """Outputs on the model, in logical order."""
    device = ktpu.open(f"model:{machine}")
    result = device.run(made.artifact)
    assert not result.failed, result.problems()
    out = [ktpu.read_output(o, device.read(o.address, o.nbytes)).tobytes() for o in made.artifact.outputs]
    device.close()
    return out


@pytest.mark.parametrize("blocks", range(1, 9))
def test_conversions_of_attention(blocks: int) -> None:
    """2b granule conversions without the drain, none with it; b quantise moves either way."""
    call = attention(1, 64, 64 * blocks)
    for machine, granule in (("mm_store", 2 * blocks), ("mm_rows", 0)):
        counters = ktpu.compile(call, ktpu.machine(machine)).artifact.meta["counters"]
        assert (counters["relayouts_device"], counters["quantised"], counters["relayouts"]) == (granule, blocks, 0)


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"keys": 77},
        pytest.param({"qblock": 64, "causal": True}, marks=pytest.mark.slow),
        pytest.param({"groups": 2}, marks=pytest.mark.slow),
        pytest.param({"block": 32}, marks=pytest.mark.slow),
    ],
    ids=lambda k: "_".join(k) or "plain",
)
def test_attention_bit_for_bit(knobs: dict[str, Any]) -> None:
    """Rows from the clusters, from the mover, from the cores: one result."""
    call = attention(1, 128, 128, **knobs)
    made = {m: ktpu.compile(call, ktpu.machine(m)) for m in ("mm_rows", "mm_store", "mm_mesh")}
    assert made["mm_rows"].artifact.meta["counters"]["relayouts_device"] == 0
    assert made["mm_store"].artifact.meta["counters"]["relayouts_device"] > 0
    assert len({tuple(values_of(c, m)) for m, c in made.items()}) == 1


def test_hidden_layer_without_a_granule_conversion() -> None:
    """mlp: the hidden rows are quantised by one move, where tiles need a transpose in front of it."""
    case = next(c for c in kc.CASES if c.name.startswith("mlp_64x128x256x64"))
    call = ktpu.call(case.kernel(), *case.draw().values(), **case.knobs)
    made = {m: ktpu.compile(call, ktpu.machine(m)) for m in ("mm_rows", "mm_store")}
    moves = {m: c.artifact.meta["counters"]["moves"] for m, c in made.items()}
    assert moves == {"mm_rows": 1, "mm_store": 2}
    assert values_of(made["mm_rows"], "mm_rows") == values_of(made["mm_store"], "mm_store")


@pytest.mark.parametrize("reads", [(), (None, Spread(0, 64, 32, 0))], ids=["row", "repeated"])
def test_required_fusion_is_not_given_up_for_rows(reads: tuple[Spread | None, ...]) -> None:
    """A biased product feeds a product: in rows by choice, on the arriving tile if required, however it reads."""
    b = ChainBuilder()
    biased = b.chain([b.op("add", b.operand(0), b.operand(1))])
    c, h = Operand("c", "temp", (32, 64)), Operand("h", "temp", (32, 64))
    requests: list[Request] = [
        Contraction(Operand("x", "in", (32, 64)), Operand("w", "in", (64, 64)), c, Tiling(8, 8, 1)),
        Elementwise(biased, (c, Operand("bias", "in", (1, 64))), (h,), reads),
        Contraction(h, Operand("v", "in", (32, 64)), Operand("y", "out", (32, 32))),
    ]
    forms = {fuse: [b.text() for b in plan(requests, spec(ROWS), fuse=fuse).bands] for fuse in ("auto", "require")}
    assert " out=rows" in forms["auto"][0]
    assert " form=rows " in forms["auto"][1]
    assert " form=resident " in forms["require"][1]
