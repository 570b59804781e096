# SPDX-License-Identifier: Apache-2.0
"""Blocks, shared operands, conversions, lifetimes, tiers and split K of a plan (docs/spec/compiler.md 5 to 8)."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from kohakubench.plans import Bits, Half, expected, run_plan, sum_chain
from kohakubench.programs import description, spec
from kohakutpu.chain import Chain, ChainBuilder
from kohakutpu.errors import CannotFuse, CompileError
from kohakutpu.program import Fill
from kohakutpu.schedule import (
    Band,
    Contraction,
    Elementwise,
    Operand,
    Request,
    Schedule,
    Tiling,
    VectorBand,
    emit,
    plan,
)
from kohakutpu.schedule.blocks import entries
from kohakutpu.schedule.lifetimes import Placed, conflicts
from kohakutpu.schedule.requantise import ToRows
from kohakutpu.views import Spread, Window

pytestmark = pytest.mark.unit

STAGE = 1 << 39
BASE = ("emit_fuse", "stage_l2", "vshuf_pred")
MOVER = description(2, cores=2, features=(*BASE, "xform_granule"), stage_bytes=2 << 20)
CORES = description(2, cores=2, features=BASE, stage_bytes=2 << 20)
BOTH = pytest.mark.parametrize("text", [MOVER, CORES], ids=["mover", "cores"])


def half(*shape: int, seed: int = 3, scale: float = 1.0) -> Half:
    return (np.random.default_rng([seed, *shape]).standard_normal(shape) * scale).astype(np.float16)


def value(name: str, shape: tuple[int, int], role: str = "temp", **more: Any) -> Operand:
    return Operand(name, role, shape, **more)


def check(requests: list[Request], values: dict[str, Half], text: dict[str, Any], **options: Any) -> Schedule:
    """Run, and compare every bit of every output with the whole-array evaluation of the requests."""
    schedule, got = run_plan(requests, values, text, **options)
    want = expected(requests, values)
    assert got
    for name, bits in got.items():
        assert np.array_equal(bits, want[name].view(np.uint16)), name
    sound(schedule)
    return schedule


def sound(schedule: Schedule) -> None:
    """No two buffers that live in one step share a byte."""
    placed = [Placed(b.name, b.address, b.nbytes, schedule.lives[b.name]) for b in schedule.buffers.values()]
    assert conflicts(placed) == []


def chain(text: str) -> Chain:
    """A few passes by name."""
    b = ChainBuilder()
    x = b.operand(0)
    match text:
        case "neg":
            return b.chain([b.op("neg", x)])
        case "add":
            return b.chain([b.op("add", x, b.operand(1))])
        case "softmax":
            e = b.op("exp2", b.op("sub", x, b.op("row_max", x)))
            return b.chain([b.op("mul", e, b.op("recip", b.op("row_sum", e)))])
        case "centre":
            return b.chain([b.op("sub", x, b.op("mul", b.op("row_sum", x), b.const(1 / 64)))])
    raise ValueError(text)


# -- blocks --


def batched(z: int, m: int, n: int, k: int, *, shared: str = "", tiling: Tiling | None = None) -> Contraction:
    """Z products; "a" or "b" is shared by all."""
    wa = None if shared == "a" else Window(z, 0, m, 0, k)
    wb = None if shared == "b" else Window(z, 0, n, 0, k)
    a = value("a", (m if shared == "a" else z * m, k), "in")
    b = value("b", (n if shared == "b" else z * n, k), "in")
    return Contraction(a, b, value("c", (z * m, n), "out"), tiling, wa, wb, batch=z)


def given(*contractions: Contraction, seed: int = 3) -> dict[str, Half]:
    """Values of the operands the host holds."""
    out = {}
    for c in contractions:
        for o in (c.a, c.b):
            if o.role == "in":
                out[o.name] = half(*o.shape, seed=seed, scale=0.3)
    return out


@pytest.mark.parametrize("shared", ["", "a", "b"])
@pytest.mark.parametrize("tiling", [None, Tiling(2, 1, 1), Tiling(4, 3, 2)], ids=str)
def test_batch(shared: str, tiling: Tiling | None) -> None:
    """Three products of 16x24x64 in one band, an operand shared or not, chosen and named tilings."""
    c = batched(3, 16, 24, 64, shared=shared, tiling=tiling)
    schedule = check([c], given(c), MOVER)
    (band,) = schedule.bands
    assert isinstance(band, Band)
    assert len(list(band.instances())) == len(set(band.instances())) == band.grid[0] * band.grid[1]
    assert " batch=3" in band.text()


def test_resident_operand_of_a_block() -> None:
    """B stays in L1 across the row tiles of its own block: one fill a block, column and chunk."""
    c = batched(2, 32, 16, 64, tiling=Tiling(2, 2, 1))
    text = description(1)
    schedule = check([c], given(c), text)
    (band,) = schedule.bands
    assert isinstance(band, Band)
    assert band.resident == ("b",)
    assert list(band.instances())[:8] == [(mo, no) for no in (0, 1) for mo in (0, 1, 2, 3)]
    ((program,),) = emit(schedule, spec(text))
    fills = [i for i in program if isinstance(i, Fill) and i.side == "b"]
    assert len(fills) == 2 * 2 * 2


def test_joined_heads() -> None:
    """One accumulator sweeps the columns of four heads (docs/spec/compiler.md 13.3): A is [heads*L][Dv]."""
    heads, length, depth, width = 4, 8, 32, 20
    c = Contraction(
        value("a", (heads * length, depth), "in"),
        value("b", (width, heads * depth), "in"),
        value("c", (length, width), "out"),
        a_window=Window(heads, 0, length, 0, depth),
        join=heads,
    )
    schedule = check([c], given(c), MOVER)
    assert " join=4" in schedule.bands[0].text()


def random_blocks(seed: int) -> Contraction:
    """A contraction with windows, a batch and joined heads whose blocks a tiling can divide."""
    rng = random.Random(seed)
    z, h = rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])
    m, n, k = 4 * rng.randint(1, 4), 4 * rng.randint(1, 4), 32 * rng.randint(1, 3)
    before = [4 * rng.randint(0, 2) for _ in range(4)]
    col = [32 * rng.randint(0, 2) for _ in range(4)]
    blocks_a, blocks_b = rng.choice([1, z * h]), rng.choice([1, z])
    a = value("a", (blocks_a * (before[0] + m + before[1]), col[0] + k + col[1]), "in")
    b = value("b", (blocks_b * (before[2] + n + before[3]), col[2] + h * k + col[3]), "in")
    wa = Window(blocks_a, before[0], m, col[0], k)
    wb = Window(blocks_b, before[2], n, col[2], h * k)
    return Contraction(a, b, value("c", (z * m, n), "out"), None, wa, wb, z, h)


@pytest.mark.parametrize("seed", range(12))
def test_random_windows(seed: int) -> None:
    """Rows and columns from the middle of operands, in blocks, shared and not, with and without heads."""
    c = random_blocks(seed)
    check([c], given(c, seed=seed), description(1 + seed % 3))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_random_windows_long(seed: int) -> None:
    c = random_blocks(seed)
    check([c], given(c, seed=seed), description(1 + seed % 3))


BAD: list[tuple[Contraction, str]] = [
    (batched(2, 6, 8, 32), "blocks of 6 rows of a and 8 of b in a batch; pad them to a multiple of 4"),
    (batched(2, 8, 6, 32), "blocks of 8 rows of a and 6 of b in a batch; pad them to a multiple of 4"),
    (batched(2, 16, 8, 32, tiling=Tiling(3, 2, 1)), "gm = 3: 12 rows of a block of A do not divide 16; use a divisor"),
    (batched(2, 16, 8, 32, tiling=Tiling(2, 4, 1)), "gn = 4: 16 rows of a block of B do not divide 8; use a divisor"),
    (
        Contraction(
            value("a", (8, 96), "in"),
            value("b", (8, 48), "in"),
            value("c", (8, 8), "out"),
            a_window=Window(1, 0, 8, 0, 48),
        ),
        "nk = 1: 32 columns of a block do not divide 48; pad the block to a multiple of 32",
    ),
    (
        Contraction(
            value("a", (8, 128), "in"),
            value("b", (8, 64), "in"),
            value("c", (8, 8), "out"),
            Tiling(1, 1, 2),
            a_window=Window(1, 0, 8, 32, 64),
        ),
        "nk = 2: 64 columns of a block do not divide 32; use a divisor of 1 as nk",
    ),
    (
        Contraction(value("a", (8, 32), "in"), value("b", (8, 32), "in"), value("c", (8, 12), "out")),
        r"c \(8, 12\): its operands give \(8, 8\)",
    ),
    (
        Contraction(value("a", (8, 32), "in"), value("b", (8, 64), "in"), value("c", (8, 8), "out")),
        "1 x 32 columns of a meet 64 of b; K is the same on both",
    ),
    (
        Contraction(
            value("a", (8, 32), "in"),
            value("b", (8, 32), "in"),
            value("c", (8, 8), "out"),
            b_window=Window(3, 0, 3, 0, 32),
        ),
        r"b \(8, 32\) has no part \[3\*0:3, 0:32\]",
    ),
    (
        Contraction(
            value("a", (12, 32), "in"),
            value("b", (8, 32), "in"),
            value("c", (8, 8), "out"),
            a_window=Window(3, 0, 4, 0, 32),
            batch=2,
        ),
        "3 blocks of a; 2 are read, or 1 by all",
    ),
]


@pytest.mark.parametrize(("c", "message"), BAD, ids=[m[:30] for _, m in BAD])
def test_blocks_that_are_refused(c: Contraction, message: str) -> None:
    with pytest.raises(CompileError, match=message):
        plan([c], spec(MOVER))


# -- shared operands --


def test_one_packing_for_all_readers() -> None:
    """Three products of one x, of different widths: the smallest order of all, x in memory once (5.6)."""
    x = value("x", (64, 256), "in")
    sizes = {"q": 256, "k": 64, "v": 16}
    requests: list[Request] = [
        Contraction(x, value(f"w{n}", (width, 256), "in"), value(n, (64, width), "out")) for n, width in sizes.items()
    ]
    alone = [plan([r], spec(MOVER)).bands[0].tiling for r in requests]  # type: ignore[union-attr]
    schedule = check(requests, given(*requests), MOVER)  # type: ignore[arg-type]
    tilings = [b.tiling for b in schedule.bands if isinstance(b, Band)]
    assert len({(t.gm, t.nk) for t in alone}) > 1
    assert {(t.gm, t.nk) for t in tilings} == {(min(t.gm for t in alone), min(t.nk for t in alone))}
    assert [b.name for b in schedule.buffers.values() if b.name.startswith("x")] == ["x"]


def test_named_tilings_that_disagree_get_copies() -> None:
    """Each tiling has its own copy; a product without a named tiling takes one that is there."""
    x, w = value("x", (32, 64), "in"), value("w", (32, 64), "in")
    requests: list[Request] = [
        Contraction(x, w, value("c", (32, 32), "out"), Tiling(4, 4, 1)),
        Contraction(x, value("u", (32, 64), "in"), value("d", (32, 32), "out"), Tiling(2, 4, 2)),
        Contraction(x, value("t", (32, 64), "in"), value("e", (32, 32), "out")),
    ]
    schedule = check(requests, given(*requests), MOVER)  # type: ignore[arg-type]
    copies = {n: b.layout for n, b in schedule.buffers.items() if (b.source or n) == "x"}
    assert copies == {"x": "mx:4x1:a", "x:mx:2x2:a": "mx:2x2:a"}
    third = schedule.bands[2]
    assert isinstance(third, Band)
    assert third.reads[0] in copies


def test_a_computed_operand_is_quantised_once_an_order() -> None:
    """Two named tilings of readers give two quantise items, a third reader of one of them none."""
    x, w = value("x", (32, 64), "in"), value("w", (64, 64), "in")
    h = value("h", (32, 64))
    requests: list[Request] = [Contraction(x, w, h, Tiling(4, 4, 1))]
    for name, tiling in (("c", Tiling(4, 4, 1)), ("d", Tiling(2, 4, 2)), ("e", Tiling(2, 4, 2))):
        requests.append(Contraction(h, value(f"w{name}", (32, 64), "in"), value(name, (32, 32), "out"), tiling))
    schedule = check(requests, given(*requests), MOVER)  # type: ignore[arg-type]
    assert [c.operand for c in schedule.conversions if not isinstance(c, ToRows)] == ["h:mx:4x1:a", "h:mx:2x2:a"]


# -- conversions --


def folded(name: str, shape: tuple[int, int] = (32, 64), k: int = 64) -> tuple[list[Request], dict[str, Half]]:
    """A pass that reduces rows of a product, and a product that reads its result."""
    m, n = shape
    z, y, o = value("z", shape), value("y", shape), value("o", (m, 16), "out")
    first = Contraction(value("x", (m, k), "in"), value("w", (n, k), "in"), z)
    last = Contraction(y, value("v", (16, n), "in"), o)
    return [first, Elementwise(chain(name), (z,), (y,)), last], given(first, last)


@BOTH
@pytest.mark.parametrize("name", ["softmax", "centre"])
def test_a_fold_over_a_product(text: dict[str, Any], name: str) -> None:
    """Rows of a product are brought into rows once, by the mover or by the cores, and quantised for the next one."""
    requests, values = folded(name)
    schedule = check(requests, values, text)
    assert schedule.buffers["z:flat"].layout == "flat"
    roles = [b.role for b in schedule.bands]
    moved = [c for c in schedule.conversions if isinstance(c, ToRows)]
    assert (len(moved), roles.count("relayout")) == ((1, 0) if text is MOVER else (0, 1))
    quantised = [c for c in schedule.conversions if not isinstance(c, ToRows)]
    assert [(c.value, c.rows) for c in quantised] == [("y", "")]


def test_engines_by_name() -> None:
    """convert names the engine; the bits are the same, and a machine without one says so."""
    requests, values = folded("softmax")
    _, one = run_plan(requests, values, MOVER, convert="mover")
    schedule, two = run_plan(requests, values, MOVER, convert="cores")
    assert [b.role for b in schedule.bands].count("relayout") == 1
    assert np.array_equal(one["o"], two["o"])
    with pytest.raises(
        CompileError, match=r"z is read in rows; .* machine hand2 does not have \(feature xform_granule"
    ):
        plan(requests, spec(CORES), convert="mover")
    with pytest.raises(CompileError, match="convert = 'host'; it is one of auto, mover, cores"):
        plan(requests, spec(CORES), convert="host")


@BOTH
def test_rows_are_made_once(text: dict[str, Any]) -> None:
    """Two passes that fold one product read the same rows; a third in tiles keeps the tiles."""
    z = value("z", (16, 64))
    c = Contraction(value("x", (16, 64), "in"), value("w", (64, 64), "in"), z)
    outs = [value(n, (16, 64), "out") for n in "abd"]
    requests: list[Request] = [
        c,
        Elementwise(chain("softmax"), (z,), (outs[0],)),
        Elementwise(chain("centre"), (z,), (outs[1],)),
        Elementwise(chain("neg"), (z,), (outs[2],)),
    ]
    schedule = check(requests, given(c), text)
    assert [n for n in schedule.buffers if n.startswith("z")] == ["z", "z:flat"]
    assert schedule.buffers["d"].layout.startswith("tile:")
    relayouts = [b for b in schedule.bands if b.role == "relayout"]
    assert len(relayouts) + len(schedule.conversions) == 1


@BOTH
def test_mixed_orders_meet_in_rows(text: dict[str, Any]) -> None:
    """A sum of a product and of rows: the product is converted, the rows stay (residual after a layernorm)."""
    x, n, z, y = (value(v, (32, 64), r) for v, r in (("x", "in"), ("n", "temp"), ("z", "temp"), ("y", "out")))
    c = Contraction(n, value("w", (64, 64), "in"), z)
    requests: list[Request] = [Elementwise(chain("centre"), (x,), (n,)), c, Elementwise(chain("add"), (z, x), (y,))]
    schedule = check(requests, {**given(c), "x": half(32, 64)}, text)
    assert schedule.buffers["y"].layout == "flat"


@BOTH
def test_two_tilings_meet_in_rows(text: dict[str, Any]) -> None:
    """Results in different tiles have no common order but rows."""
    z, u, y = value("z", (32, 64)), value("u", (32, 64)), value("y", (32, 64), "out")
    one = Contraction(value("x", (32, 64), "in"), value("w", (64, 64), "in"), z, Tiling(4, 4, 1))
    two = Contraction(value("p", (32, 32), "in"), value("q", (64, 32), "in"), u, Tiling(2, 8, 1))
    schedule = check([one, two, Elementwise(chain("add"), (u, z), (y,))], given(one, two), text)
    assert {"u:flat", "z:flat"} <= set(schedule.buffers)
    assert "no common tile order" in schedule.relaxed[0]


PADDED = [(20, 48, 2), (5, 80, 2), (33, 16, 1), (8, 64, 4)]


@BOTH
@pytest.mark.parametrize(("rows", "cols", "nk"), PADDED)
def test_padding_the_value_does_not_hold(text: dict[str, Any], rows: int, cols: int, nk: int) -> None:
    """Rows and K of an operand in plain rows, padded through a scratch of zeros."""
    x, h, c = value("x", (rows, cols), "in"), value("h", (rows, cols)), value("c", (rows, 12), "out")
    last = Contraction(h, value("w", (12, cols), "in"), c, Tiling(2, 1, nk))
    requests: list[Request] = [Elementwise(chain("neg"), (x,), (h,)), last]
    schedule = check(requests, {**given(last), "x": half(rows, cols)}, text)
    (conversion,) = schedule.conversions
    assert not isinstance(conversion, ToRows)
    padded = rows + -rows % 8, cols + -cols % (32 * nk)
    assert conversion.rows == ("" if padded == (rows, cols) else f"h:rows:{padded[0]}x{padded[1]}")


@BOTH
def test_padding_of_tiles_that_is_not_zero(text: dict[str, Any]) -> None:
    """Columns behind the result of an epilogue are infinite; they are cleared before they are quantised."""
    z, h = value("z", (20, 48)), value("h", (20, 48))
    b = ChainBuilder()
    shifted = b.chain([b.op("recip", b.operand(0))])
    first = Contraction(value("x", (20, 64), "in"), value("w", (48, 64), "in"), z, Tiling(2, 8, 1))
    last = Contraction(h, value("v", (12, 48), "in"), value("c", (20, 12), "out"), Tiling(4, 1, 2))
    check([first, Elementwise(shifted, (z,), (h,)), last], given(first, last), text)


@BOTH
def test_rows_of_tiles_wider_than_the_value(text: dict[str, Any]) -> None:
    """A fold over a product whose tiles reach beyond its columns."""
    z, y = value("z", (20, 48)), value("y", (20, 48), "out")
    first = Contraction(value("x", (20, 64), "in"), value("w", (48, 64), "in"), z, Tiling(2, 8, 1))
    check([first, Elementwise(chain("softmax"), (z,), (y,))], given(first), text)


@BOTH
@pytest.mark.parametrize("role", ["out", "temp"])
def test_products_as_parts(text: dict[str, Any], role: str) -> None:
    """Two products side by side in the rows of one buffer; then a pass or nothing reads it."""
    cat = value("cat", (32, 96), role)
    requests: list[Request] = []
    for name, col, width in (("l", 0, 64), ("r", 64, 32)):
        part = value(name, (32, width), of="cat", window=Window(1, 0, 32, col, width))
        requests.append(Contraction(value("x", (32, 64), "in"), value(f"w{name}", (width, 64), "in"), part))
    values = given(*requests)  # type: ignore[arg-type]
    if role == "temp":
        requests.append(Elementwise(chain("neg"), (cat,), (value("y", (32, 96), "out"),)))
        check(requests, values, text)
        return
    _, got = run_plan(requests, values, text, buffers=[cat])
    sides = []
    for r in requests:
        assert isinstance(r, Contraction)
        alone = Contraction(r.a, r.b, value(r.c.name, r.c.shape, "out"))
        sides.append(expected([alone], values)[r.c.name].view(np.uint16))
    assert np.array_equal(got["cat"], np.concatenate(sides, axis=1))


@BOTH
def test_blocks_as_parts(text: dict[str, Any]) -> None:
    """Every block of a batch lands in its own block of the buffer, other rows keep another product."""
    cat = value("cat", (48, 32))
    upper = value("u", (16, 32), of="cat", window=Window(2, 0, 8, 0, 32))
    lower = value("l", (32, 32), of="cat", window=Window(2, 8, 16, 0, 32))
    one = Contraction(value("a", (16, 32), "in"), value("b", (32, 32), "in"), upper)
    two = Contraction(value("p", (32, 32), "in"), value("q", (32, 32), "in"), lower)
    last = Elementwise(chain("neg"), (cat,), (value("y", (48, 32), "out"),))
    check([one, two, last], given(one, two), text)


@BOTH
def test_passes_with_parts_and_periodic_reads(text: dict[str, Any]) -> None:
    """A pass repeats every row of a product twice and writes the columns of a buffer that another product shares."""
    cat, z = value("cat", (32, 64)), value("z", (16, 32))
    left = value("l", (32, 32), of="cat", window=Window(1, 0, 32, 0, 32))
    right = value("r", (32, 32), of="cat", window=Window(1, 0, 32, 32, 32))
    one = Contraction(value("a", (16, 64), "in"), value("b", (32, 64), "in"), z)
    two = Contraction(value("p", (32, 32), "in"), value("q", (32, 32), "in"), right)
    twice = Elementwise(chain("neg"), (z,), (left,), (Spread(0, 32, 2, 32),))
    y = value("y", (32, 64), "out")
    requests: list[Request] = [one, twice, two, Elementwise(chain("neg"), (cat,), (y,))]
    values = given(one, two)
    schedule, got = run_plan(requests, values, text)
    sound(schedule)
    outs = [Contraction(c.a, c.b, value(n, c.c.shape, "out")) for c, n in ((one, "one"), (two, "two"))]
    parts = expected(outs, values)
    want = -np.concatenate([-np.repeat(parts["one"], 2, axis=0), parts["two"]], axis=1)
    assert np.array_equal(got["y"].view(np.float16), want)
    assert schedule.buffers["cat"].layout == "flat"


# -- epilogues --


def test_epilogue_of_a_batch_on_the_arriving_tile() -> None:
    """Blocks of a batch are delivered like tiles of one product: fused and staged bits are equal."""
    b = batched(2, 8, 16, 64)
    z, y = value("z", (16, 16)), value("y", (16, 16), "out")
    c = Contraction(b.a, b.b, z, Tiling(2, 4, 1), b.a_window, b.b_window, batch=2)
    requests: list[Request] = [c, Elementwise(chain("neg"), (z,), (y,))]
    for fuse in ("require", "never"):
        schedule = check(requests, given(c), MOVER, fuse=fuse)
        assert ("z" in schedule.buffers) == (fuse == "never")


def test_epilogue_with_a_stored_operand_in_the_same_tiles() -> None:
    """A side operand that an earlier pass left in tiles of the same grid takes part in a fused epilogue."""
    t = Tiling(4, 4, 1)
    z, u, v, y = (value(n, (16, 16)) for n in "zuvy")
    y = value("y", (16, 16), "out")
    one = Contraction(value("a", (16, 32), "in"), value("b", (16, 32), "in"), z, t)
    two = Contraction(value("p", (16, 64), "in"), value("q", (16, 64), "in"), v, t)
    requests: list[Request] = [
        one, Elementwise(chain("neg"), (z,), (u,)), two, Elementwise(chain("add"), (v, u), (y,)),
    ]  # fmt: skip
    schedule = check(requests, given(one, two), MOVER, fuse="require")
    assert [n for n in schedule.buffers if n in "zuvy"] == ["u", "y"]


def test_epilogue_that_meets_rows() -> None:
    """No common tile order: recorded, and refused where the author requires the arriving tile."""
    x, n, z, y = (value(v, (32, 64), r) for v, r in (("x", "in"), ("n", "temp"), ("z", "temp"), ("y", "out")))
    c = Contraction(n, value("w", (64, 64), "in"), z)
    requests: list[Request] = [Elementwise(chain("centre"), (x,), (n,)), c, Elementwise(chain("add"), (z, x), (y,))]
    (reason,) = plan(requests, spec(MOVER)).relaxed
    assert "epilogue into y: its operands have no common tile order" in reason
    assert plan(requests, spec(MOVER), fuse="never").relaxed == ()
    with pytest.raises(CannotFuse, match="no common tile order"):
        plan(requests, spec(MOVER), fuse="require")


def test_product_of_one_row_for_every_row() -> None:
    """A pass that adds the only row of a product to every row reads it in rows."""
    z, y = value("z", (1, 64)), value("y", (16, 64), "out")
    c = Contraction(value("a", (1, 32), "in"), value("b", (64, 32), "in"), z)
    e = Elementwise(chain("add"), (value("x", (16, 64), "in"), z), (y,))
    schedule = check([c, e], {**given(c), "x": half(16, 64)}, MOVER)
    assert schedule.buffers["y"].layout == "flat"


def test_products_of_different_depth_in_one_pass() -> None:
    """Two products of one grid and different K: a band each, one pass in their order."""
    z, u = value("z", (16, 16)), value("u", (16, 16))
    one = Contraction(value("a", (16, 32), "in"), value("b", (16, 32), "in"), z)
    two = Contraction(value("p", (16, 96), "in"), value("q", (16, 96), "in"), u)
    e = Elementwise(chain("add"), (z, u), (value("y", (16, 16), "out"),))
    schedule = check([one, two, e], given(one, two), MOVER)
    assert [b.engine for b in schedule.bands] == ["MG", "MG", "VC"]
    assert "do not share M, N and K" in schedule.relaxed[0]


# -- attention --


def attention(heads: int = 2, length: int = 32, depth: int = 32, width: int = 64) -> list[Request]:
    """softmax(q k^T) v per head, joined and projected; q and k are computed, v transposed."""
    hl = heads * length
    x, wq, wk = value("x", (hl, width), "in"), value("wq", (depth, width), "in"), value("wk", (depth, width), "in")
    q, k, v = value("q", (hl, depth)), value("k", (hl, depth)), value("v", (heads * depth, length), "in")
    s, p, o = value("s", (hl, length)), value("p", (hl, length)), value("o", (hl, depth))
    y = value("y", (length, width), "out")
    rows = Window(heads, 0, length, 0, depth)
    return [
        Contraction(x, wq, q),
        Contraction(x, wk, k),
        Contraction(q, k, s, None, rows, rows, batch=heads),
        Elementwise(chain("softmax"), (s,), (p,)),
        Contraction(
            p, v, o, None, Window(heads, 0, length, 0, length), Window(heads, 0, depth, 0, length), batch=heads
        ),
        Contraction(o, value("wo", (width, heads * depth), "in"), y, a_window=rows, join=heads),
    ]


@BOTH
@pytest.mark.parametrize("options", [{}, {"reuse_temps": False}, {"clusters": 1, "cores": 1}, {"emit_fuse": False}])
def test_attention(text: dict[str, Any], options: dict[str, Any]) -> None:
    """Batched, softmaxed, joined: every bit, whatever the placement."""
    requests = attention()
    values = given(*(r for r in requests if isinstance(r, Contraction)))
    schedule = check(requests, values, text, **options)
    stack = {n: b for n, b in schedule.buffers.items() if b.role == "temp"}
    assert all(b.address >= STAGE for b in stack.values())
    assert schedule.staging_full == 0
    apart = sum(b.nbytes for b in stack.values())
    top = max(b.address + b.nbytes for b in stack.values()) - STAGE
    assert (top < apart) == options.get("reuse_temps", True)


# -- lifetimes and tiers --


def chained(seed: int) -> tuple[list[Request], dict[str, Half]]:
    """A random chain of products and passes, each reading one or two earlier values of one shape."""
    rng = random.Random(seed)
    m, n = 4 * rng.randint(1, 5), 16 * rng.randint(1, 4)
    known = [value("x", (m, n), "in")]
    requests: list[Request] = []
    for i in range(rng.randint(2, 6)):
        made = value(f"t{i}", (m, n))
        source = known[rng.randrange(len(known))] if i else known[0]
        kind = rng.choice(["product", "softmax", "neg", "add"]) if i else "neg"
        if kind == "product" and source.role != "in":
            requests.append(Contraction(source, value(f"w{i}", (n, n), "in"), made))
        elif kind == "add":
            requests.append(Elementwise(chain("add"), (source, known[-1]), (made,)))
            if source == known[-1]:
                requests[-1] = Elementwise(chain("neg"), (source,), (made,))
        else:
            requests.append(Elementwise(chain("softmax" if kind == "softmax" else "neg"), (source,), (made,)))
        known.append(made)
    last = value("y", (m, n), "out")
    requests.append(Elementwise(chain("add"), (known[-1], known[-2]), (last,)))
    values = given(*(r for r in requests if isinstance(r, Contraction)), seed=seed)
    values["x"] = half(m, n, seed=seed)
    return requests, values


@pytest.mark.parametrize("seed", range(8))
def test_random_chains(seed: int) -> None:
    """Random chains on both engines, placed with and without reuse and with a small store: one result."""
    requests, values = chained(seed)
    want = expected(requests, values)["y"].view(np.uint16)
    small = description(1, cores=2, features=(*BASE, "xform_granule"), stage_bytes=4096)
    for text, options in ((MOVER, {}), (CORES, {"reuse_temps": False}), (small, {}), (CORES, {"fuse": "never"})):
        schedule, got = run_plan(requests, values, text, **options)
        assert np.array_equal(got["y"], want), options
        sound(schedule)


def test_reuse_needs_less() -> None:
    """A long chain of passes takes the room of two temps."""
    names = [value("x", (64, 64), "in"), *(value(f"t{i}", (64, 64)) for i in range(6)), value("y", (64, 64), "out")]
    requests: list[Request] = [Elementwise(chain("neg"), (a,), (b,)) for a, b in pairwise(names)]
    machine = spec(description(1, cores=1))
    spans = {}
    for reuse in (True, False):
        s = plan(requests, machine, reuse_temps=reuse)
        spans[reuse] = max(b.address + b.nbytes for b in s.buffers.values())
    assert spans == {True: 4 * 8192, False: 8 * 8192}
    check(requests, {"x": half(64, 64)}, description(1, cores=1))


def test_adjacent_values() -> None:
    """Members lie one after another and live together."""
    x = value("x", (16, 64), "in")
    a, b, c = (value(n, (16, 64)) for n in "abc")
    requests: list[Request] = [
        Elementwise(chain("neg"), (x,), (a,)),
        Elementwise(chain("softmax"), (a,), (c,)),
        Elementwise(chain("add"), (c, a), (b,)),
        Elementwise(chain("add"), (b, c), (value("y", (16, 64), "out"),)),
    ]
    schedule = check(requests, {"x": half(16, 64)}, CORES, adjacent=[("b", "a")])
    first, second = schedule.buffers["b"], schedule.buffers["a"]
    assert second.address == first.address + first.nbytes
    assert schedule.lives["a"].meets(schedule.lives["b"])
    for groups, message in (
        ([("b", "nobody")], "nobody has no buffer of its own"),
        ([("a", "b"), ("b", "c")], "b is in two ADJACENT groups"),
        ([("a",)], "names fewer than two buffers"),
    ):
        with pytest.raises(CompileError, match=message):
            plan(requests, spec(CORES), adjacent=groups)


def tiered(tier: str) -> tuple[list[Request], dict[str, Half]]:
    x, y = value("x", (64, 64), "in"), value("y", (64, 64), "out")
    t, u = value("t", (64, 64), tier=tier), value("u", (64, 64), tier=tier)
    return [
        Elementwise(chain("neg"), (x,), (t,)),
        Elementwise(chain("add"), (t, x), (u,)),
        Elementwise(chain("add"), (u, t), (y,)),
    ], {"x": half(64, 64)}


def test_tiers_of_the_author() -> None:
    """l2 is kept or refused with the sizes, dram is never proposed away; bits do not depend on it."""
    results: list[Bits] = []
    for tier in ("", "dram", "l2"):
        requests, values = tiered(tier)
        schedule, got = run_plan(requests, values, CORES)
        results.append(got["y"])
        places = [schedule.buffers[n].address >= STAGE for n in "tu"]
        assert places == {"": [True, False], "dram": [False, False], "l2": [True, True]}[tier]
    assert all(np.array_equal(results[0], r) for r in results)
    requests, _ = tiered("l2")
    small = spec(CORES).with_(stage_bytes=12288)
    with pytest.raises(CompileError, match=r"u: 8192 bytes do not fit; .* at once: t 8192, u 8192; place one of them"):
        plan(requests, small)
    with pytest.raises(CompileError, match="t: tier l2: machine hand2 has no staging store"):
        plan(requests, spec(CORES).with_(stage_bytes=0))


def test_proposals_fall_back() -> None:
    """What conversions make comes first; what does not fit goes to memory and is counted."""
    requests, values = folded("softmax")
    whole, want = run_plan(requests, values, MOVER)
    assert whole.staging_full == 0
    tight, got = run_plan(requests, values, {**MOVER, "stage_bytes": 4096})
    assert np.array_equal(got["o"], want["o"])
    staged = {n for n, b in tight.buffers.items() if b.address >= STAGE}
    assert staged
    assert staged < {n for n, b in whole.buffers.items() if b.address >= STAGE}
    assert tight.staging_full == len([n for n, b in whole.buffers.items() if b.address >= STAGE]) - len(staged)


# -- properties --


@st.composite
def contractions(draw: st.DrawFn) -> Contraction:
    """Batches, heads and splits of any legal size."""
    z, h, split = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.sampled_from([1, 1, 2, 3]))
    m, n = (4 * draw(st.integers(1, 20)) - (0 if z > 1 else draw(st.integers(0, 3))) for _ in range(2))
    k = 32 * split * draw(st.integers(1, 4))
    wb = Window(z, 0, n, 0, h * k) if draw(st.booleans()) and n % 4 == 0 else None
    b = value("b", ((z if wb else 1) * n, h * k), "in")
    a = value("a", (z * h * m, k), "in")
    wa = Window(z * h, 0, m, 0, k) if z * h > 1 else None
    if z * h > 1 and m % 4:
        m -= m % 4 - 4
        a, wa = value("a", (z * h * m, k), "in"), Window(z * h, 0, m, 0, k)
    route = "memory" if split > 1 else ""
    return Contraction(a, b, value("c", (z * m, n), "out"), None, wa, wb, z, h, split, route)


@settings(max_examples=80, deadline=None)
@drawn(contractions(), st.integers(1, 2))
def test_every_element_once(c: Contraction, clusters: int) -> None:
    """Tiles cover every element once, each partial is there once, and every K chunk is read once."""
    schedule = plan([c], spec(CORES), clusters=clusters)
    sound(schedule)
    band = schedule.bands[0]
    assert isinstance(band, Band)
    rects = list(band.rects())
    counts = np.zeros((c.split, *c.c.shape), int)
    for r in rects:
        counts[r.ko, r.r0 : r.r1, r.c0 : r.c1] += 1
    assert (counts == 1).all()
    shapes = schedule.buffers["a"].shape, schedule.buffers["b"].shape
    size = band.tiling.gm * band.tiling.nk
    last = {key[:2] for key in band.instances()}
    for mo, no in last:
        keys = [(mo, no)] if c.split == 1 else [(mo, no, ko) for ko in range(c.split)]
        read = [at for key in keys for at, _ in entries(band, band.products[0], shapes, key)]
        assert len(set(read)) == len(read) == band.chunks * c.split
        assert all(at % size == 0 for at in read)


@settings(max_examples=30, deadline=None)
@drawn(st.integers(0, 1 << 20), st.booleans(), st.sampled_from([0, 4096, 2 << 20]))
def test_live_spans_never_intersect(seed: int, mover: bool, store: int) -> None:
    """Any chain of products and passes, any store."""
    requests, _ = chained(seed)
    sound(plan(requests, spec(MOVER if mover else CORES).with_(stage_bytes=store)))


# -- printed --


def test_printed_schedule_of_a_fold() -> None:
    """A product, its rows by the mover, a softmax, the next product."""
    requests, _ = folded("softmax", (16, 32), 32)
    assert plan(requests, spec(MOVER)).text().splitlines() == [
        "schedule for hand2, pass budget 64",
        "in x: mx:4x1:a 16x32 at 0x0, 512 bytes",
        "in w: mx:4x1:b 32x32 at 0x800, 1024 bytes",
        "temp z: tile:1x2:4x4 16x32 at 0x8000000000, 1024 bytes",
        "temp z:flat: flat 16x32 at 0x8000000400, 1024 bytes",
        "temp y: flat 16x32 at 0x8000000000, 1024 bytes",
        "temp y:mx:2x1:a: mx:2x1:a 16x32 at 0x8000000400, 512 bytes",
        "in v: mx:4x1:b 16x32 at 0x1000, 512 bytes",
        "out o: tile:2x1:2x4 16x16 at 0x1800, 512 bytes",
        "band MG contract 16x32x32 grid=1x2x1 tile=gm4,gn4,nk1 chunks=1 reads=x,w writes=z resident=- double=x,w "
        "tier=dram role=compute out=emit",
        "  dealt unit 0: 1, unit 1: 1",
        "band VC mul(exp2(sub(x0, row_max(x0))), recip(row_sum(exp2(sub(x0, row_max(x0)))))) 16x32 form=rows "
        "instances=1 steps=16 vl=32 l1=64 reads=z:flat writes=y role=compute",
        "  dealt unit 0: 1",
        "band MG contract 16x16x32 grid=2x1x1 tile=gm2,gn4,nk1 chunks=1 reads=y:mx:2x1:a,v writes=o resident=v "
        "double=y:mx:2x1:a,v tier=dram role=compute out=emit",
        "  dealt unit 0: 1, unit 1: 1",
        "relayout before band 1: z -> z:flat",
        "quantise before band 2: y -> y:mx:2x1:a",
        "note: z: FP16, bound unknown, saturates at 65504",
        "note: y: FP16, bound unknown, saturates at 65504",
        "note: o: FP16, bound unknown, saturates at 65504",
    ]


def test_printed_schedule_of_a_split_batch() -> None:
    """Blocks, batch and split with its route, and the pass that adds the partials."""
    b = batched(2, 8, 8, 64)
    c = Contraction(b.a, b.b, b.c, Tiling(1, 2, 1), b.a_window, b.b_window, 2, split=2, route="memory")
    assert plan([c], spec(CORES)).text().splitlines() == [
        "schedule for hand2, pass budget 64",
        "in a: mx:1x1:a 16x64 at 0x0, 1024 bytes",
        "in b: mx:2x1:b 16x64 at 0x800, 1024 bytes",
        "temp c:part0: tile:4x1:1x2 16x8 at 0x1800, 256 bytes",
        "temp c:part1: tile:4x1:1x2 16x8 at 0x2000, 256 bytes",
        "out c: tile:4x1:1x2 16x8 at 0x1000, 256 bytes",
        "band MG contract 16x8x64 grid=4x1x2 tile=gm1,gn2,nk1 chunks=1 reads=a,b writes=c:part0,c:part1 resident=b "
        "double=a,b tier=dram role=compute out=emit batch=2 split=2 route=memory a[2*0:8, 0:64] b[2*0:8, 0:64]",
        "  dealt unit 0: 4, unit 1: 4",
        "band VC add(x0, x1) 16x8 form=flat instances=1 steps=1 vl=128 l1=24 reads=c:part0,c:part1 writes=c "
        "role=reduce",
        "  dealt unit 0: 1",
        "note: c:part0: FP16, bound unknown, saturates at 65504",
        "note: c:part1: FP16, bound unknown, saturates at 65504",
        "note: c: FP16, bound unknown, saturates at 65504",
    ]


# -- split K --


@pytest.mark.parametrize("split", [2, 4])
def test_split_k_through_memory(split: int) -> None:
    """Partials in FP16 and one pass that adds them; printed, noted, and different from one accumulator."""
    c = Contraction(
        value("a", (24, 256), "in"),
        value("b", (20, 256), "in"),
        value("c", (24, 20), "out"),
        split=split,
        route="memory",
    )
    schedule = check([c], given(c), CORES)
    product, adding = schedule.bands
    assert isinstance(product, Band)
    assert isinstance(adding, VectorBand)
    assert f" split={split} route=memory" in product.text()
    assert (product.grid[2], adding.role, adding.reads) == (split, "reduce", product.writes)
    assert [n for n in schedule.notes if ":part" in n] == [
        f"c:part{i}: FP16, bound unknown, saturates at 65504" for i in range(split)
    ]
    plain = Contraction(c.a, c.b, c.c)
    assert not np.array_equal(expected([c], given(c))["c"], expected([plain], given(c))["c"])


def test_split_k_of_a_batch_feeds_an_epilogue() -> None:
    """The sum keeps the tiles of the product, so a pass behind it stays in their order."""
    b = batched(2, 16, 16, 128)
    z = value("z", (32, 16))
    c = Contraction(b.a, b.b, z, Tiling(2, 4, 1), b.a_window, b.b_window, 2, split=2, route="memory")
    schedule = check([c, Elementwise(chain("neg"), (z,), (value("y", (32, 16), "out"),))], given(c), CORES)
    assert schedule.buffers["y"].layout == schedule.buffers["z"].layout == "tile:4x1:2x4"


def test_splits_that_are_refused() -> None:
    base = batched(1, 8, 8, 128)

    def split(count: int, route: str, tiling: Tiling | None = None) -> Contraction:
        return Contraction(base.a, base.b, base.c, tiling, split=count, route=route)

    for c, message in (
        (split(2, "host"), "route 'host'; it is one of peer, core, memory"),
        (split(1, "memory"), "route memory without a split"),
        (split(2, "memory", Tiling(1, 1, 4)), "nk = 4: 1 chunks of K do not divide into 2 parts"),
        (split(3, "memory"), "chunks of K do not divide into 3 parts"),
    ):
        with pytest.raises(CompileError, match=message):
            plan([c], spec(CORES))


def test_sum_chain_is_the_order_of_the_partials() -> None:
    assert sum_chain(3).chain.text() == "add(add(x0, x1), x2)"
